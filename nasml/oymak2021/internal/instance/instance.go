// Package instance has problem instances of feature-map selection whose test risk has a closed form: every f_α is
// linear in inputs that are uniform on a sphere.
package instance

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Params describe a problem of feature-map selection (Definition 2): x is uniform on the unit sphere of R^d and
//
//	φᵢ(x) = Pᵢx ∈ R^p,  ‖Pᵢ‖ = 1,  so that sup ‖φᵢ(x)‖² = B = 1 .
//
// The singular values of Pᵢ fall like j^(−decay/2) along directions of its own. Labels are ±1: y = sign⟨u*, x⟩, flipped
// with probability q. Every f_α is linear, f_α(x) = ⟨w_α, x⟩ with w_α = P_αᵀθ_α.
type Params struct {
	Inputs   int     `json:"inputs"`   // d
	Features int     `json:"features"` // p
	Maps     int     `json:"maps"`     // h
	Decay    float64 `json:"decay"`
	Flips    float64 `json:"flips"` // q
}

// Teacher is the problem instance of one seed.
type Teacher struct {
	Params
	Best []float64    // α*
	maps []*mat.Dense // Pᵢ, [p, d]
	star []float64    // u*, a unit vector along P_{α*}ᵀP_{α*}z
}

// NewTeacher draws maps and labels; p < d is allowed.
func NewTeacher(seed uint64, w Params) *Teacher {
	t := &Teacher{Params: w}
	k := min(w.Inputs, w.Features)
	scale := make([]float64, k)
	for j := range scale {
		scale[j] = math.Pow(float64(j+1), -w.Decay/2)
	}
	for i := range w.Maps {
		rng := trial.RNG(seed, "map", fmt.Sprint(i))
		left, right := Orthonormal(rng, w.Features, k), Orthonormal(rng, w.Inputs, k)
		var scaled, p mat.Dense
		scaled.Mul(left, mat.NewDiagDense(k, scale))
		p.Mul(&scaled, right.T())
		t.maps = append(t.maps, &p)
	}
	rng := trial.RNG(seed, "teacher")
	t.Best = simplexPoint(rng, w.Maps)
	z, p := trial.Normals(rng, w.Inputs, 1), t.at(t.Best)
	var seen, u mat.VecDense
	seen.MulVec(p, mat.NewVecDense(w.Inputs, z))
	u.MulVec(p.T(), &seen)
	t.star = u.RawVector().Data
	floats.Scale(1/floats.Norm(t.star, 2), t.star)
	return t
}

// Orthonormal has k ≤ n orthonormal columns, uniformly distributed up to signs.
func Orthonormal(rng *rand.Rand, n, k int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(spectral.Normals(rng, n, k))
	var q mat.Dense
	qr.QTo(&q)
	return mat.DenseCopyOf(q.Slice(0, n, 0, k))
}

// simplexPoint is uniform on the simplex of R^h.
func simplexPoint(rng *rand.Rand, h int) []float64 {
	alpha := make([]float64, h)
	for i := range alpha {
		alpha[i] = rng.ExpFloat64()
	}
	floats.Scale(1/floats.Sum(alpha), alpha)
	return alpha
}

// Candidates are the vertices of the simplex of R^h, its centre, and random points: n in all, at least the first h+1.
// Every second random point is concentrated on few maps.
func Candidates(rng *rand.Rand, h, n int) [][]float64 {
	all := spectral.Corners(h)
	if h > 1 {
		all = append(all, spectral.Middle(h))
	}
	for len(all) < n && h > 1 {
		alpha := simplexPoint(rng, h)
		if len(all)%2 == 0 {
			for i := range alpha {
				alpha[i] *= alpha[i] * alpha[i]
			}
			floats.Scale(1/floats.Sum(alpha), alpha)
		}
		all = append(all, alpha)
	}
	return all
}

// at is P_α = Σᵢ αᵢPᵢ.
func (t *Teacher) at(alpha []float64) *mat.Dense {
	m := features.Mixture{Maps: t.maps}
	return m.At(alpha)
}

// Sample draws n examples: X, [n, d], and labels.
func (t *Teacher) Sample(rng *rand.Rand, n int) (*mat.Dense, []float64) {
	x, y := mat.NewDense(n, t.Inputs, nil), make([]float64, n)
	for i := range n {
		row := x.RawRowView(i)
		copy(row, trial.Normals(rng, t.Inputs, 1))
		floats.Scale(1/floats.Norm(row, 2), row)
		y[i] = 1
		if floats.Dot(row, t.star) < 0 {
			y[i] = -1
		}
		if rng.Float64() < t.Flips {
			y[i] = -y[i]
		}
	}
	return x, y
}

// LinearSample labels a sample by y = φ_{α*}(x)ᵀθ* + noise·ε with ‖θ*‖ = 1.
func (t *Teacher) LinearSample(rng *rand.Rand, n int, noise float64) (*mat.Dense, []float64) {
	x, _ := t.Sample(rng, n)
	p := t.at(t.Best)
	var theta, w, y mat.VecDense
	theta.MulVec(p, mat.NewVecDense(len(t.star), t.star))
	theta.ScaleVec(1/mat.Norm(&theta, 2), &theta)
	w.MulVec(p.T(), &theta)
	y.MulVec(x, &w)
	out := y.RawVector().Data
	for i := range out {
		out[i] += noise * rng.NormFloat64()
	}
	return x, out
}

// Mixture is a sample seen through the feature maps, Φᵢ = XPᵢᵀ. It returns the error of features.NewMixture.
func (t *Teacher) Mixture(x *mat.Dense, y []float64) (*features.Mixture, error) {
	maps := make([]*mat.Dense, len(t.maps))
	for i, p := range t.maps {
		maps[i] = new(mat.Dense)
		maps[i].Mul(x, p.T())
	}
	return features.NewMixture(maps, y)
}

// Weights are w_α = P_αᵀθ_α.
func (t *Teacher) Weights(fit *features.MixtureFit) []float64 {
	var w mat.VecDense
	w.MulVec(t.at(fit.Alpha).T(), mat.NewVecDense(len(fit.Theta), fit.Theta))
	return w.RawVector().Data
}

// Jacobian is ∂w_α/∂(α, λ), [d, h+1]. It returns an error if the fit has none.
func (t *Teacher) Jacobian(fit *features.MixtureFit) (*mat.Dense, error) {
	dtheta, err := fit.Jacobian()
	if err != nil {
		return nil, err
	}
	theta := mat.NewVecDense(len(fit.Theta), fit.Theta)
	var j mat.Dense
	j.Mul(t.at(fit.Alpha).T(), dtheta)
	for i, m := range t.maps {
		var direct mat.VecDense
		direct.MulVec(m.T(), theta)
		for k := range t.Inputs {
			j.Set(k, i, j.At(k, i)+direct.AtVec(k))
		}
	}
	return &j, nil
}

// correlation is c with E[y·x] = c·u*: (1 − 2q)·E|x₁| on the unit sphere, where E|x₁| = Γ(d/2)/(√π Γ((d+1)/2)).
func (t *Teacher) correlation() float64 {
	d := float64(t.Inputs)
	above, _ := math.Lgamma(d / 2)
	below, _ := math.Lgamma((d + 1) / 2)
	return (1 - 2*t.Flips) * math.Exp(above-below) / math.Sqrt(math.Pi)
}

// Risk is the test risk of f(x) = ⟨w, x⟩ under squared loss,
//
//	L = E(y − ⟨w, x⟩)² = ‖w‖²/d − 2c⟨w, u*⟩ + 1 .
func (t *Teacher) Risk(w []float64) float64 {
	return floats.Dot(w, w)/float64(t.Inputs) - 2*t.correlation()*floats.Dot(w, t.star) + 1
}

// Limit is w of f_α^𝒟, the limit n_T → ∞ with λ = 0: the projection of d·c·u* onto the row space of P_α. It returns an
// error if P_α is singular.
func (t *Teacher) Limit(alpha []float64) ([]float64, error) {
	p := t.at(alpha)
	target := mat.NewVecDense(t.Inputs, nil)
	target.ScaleVec(float64(t.Inputs)*t.correlation(), mat.NewVecDense(t.Inputs, t.star))
	var theta, w mat.VecDense
	if err := theta.SolveVec(p.T(), target); err != nil {
		return nil, fmt.Errorf("feature maps: P_α at α = %.4g: %w", alpha, err)
	}
	w.MulVec(p.T(), &theta)
	return w.RawVector().Data, nil
}

// Deviation has the moments of a validation sample minus those of the distribution: L̂_V(w) − L(w) = wᵀEw − 2⟨e, w⟩.
type Deviation struct {
	second *mat.SymDense // E = X̃ᵀX̃/n − I/d
	first  []float64     // e = X̃ᵀỹ/n − c·u*
}

// Deviation draws a validation sample of n examples.
func (t *Teacher) Deviation(rng *rand.Rand, n int) Deviation {
	x, y := t.Sample(rng, n)
	var second mat.SymDense
	second.SymOuterK(1/float64(n), x.T())
	for i := range t.Inputs {
		second.SetSym(i, i, second.At(i, i)-1/float64(t.Inputs))
	}
	var first mat.VecDense
	first.MulVec(x.T(), mat.NewVecDense(n, y))
	first.ScaleVec(1/float64(n), &first)
	first.AddScaledVec(&first, -t.correlation(), mat.NewVecDense(t.Inputs, t.star))
	return Deviation{&second, first.RawVector().Data}
}

// Gap is L̂_V − L at w, and its gradient in w.
func (d Deviation) Gap(w []float64) (float64, []float64) {
	var g mat.VecDense
	g.MulVec(d.second, mat.NewVecDense(len(w), w))
	grad := g.RawVector().Data
	value := floats.Dot(w, grad) - 2*floats.Dot(d.first, w)
	floats.Sub(grad, d.first)
	floats.Scale(2, grad)
	return value, grad
}

// Largest is the largest singular value of a matrix of rows ∂w/∂αᵢ: the Lipschitz constant of α ↦ f_α at one α over
// inputs of unit norm.
func Largest(rows [][]float64) float64 {
	gram := mat.NewSymDense(len(rows), nil)
	for i := range rows {
		for j := i; j < len(rows); j++ {
			gram.SetSym(i, j, floats.Dot(rows[i], rows[j]))
		}
	}
	_, largest := spectral.EigenRange(gram)
	return math.Sqrt(max(0, largest))
}
