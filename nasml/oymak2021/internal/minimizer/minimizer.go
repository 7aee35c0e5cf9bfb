// Package minimizer measures the Lipschitz constant of θ_α, the minimizer over θ of a loss L̄(α, θ), and the bound of
// Oymak+ 2021, Lemma 2.
package minimizer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Kinds are the random functions: quadratics that are jointly convex, or convex in θ only, and a log-sum-exp.
var Kinds = []string{"joint", "separate", "log-sum-exp"}

// Shares are the quantiles that are kept of the sorted ratios.
var Shares = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// Case is what a trial depends on but its seed.
type Case struct {
	Kind       string           `json:"kind"`
	Maps       []int            `json:"maps,omitempty"`
	Weights    []int            `json:"weights,omitempty"`
	Cases      int              `json:"cases,omitempty"`
	Lambda     float64          `json:"lambda,omitempty"`
	Train      int              `json:"train,omitempty"`
	Candidates int              `json:"candidates,omitempty"`
	Instance   *instance.Params `json:"world,omitempty"`
}

// Bounds are the Lipschitz constant of α ↦ θ_α and what should bound it.
type Bounds struct {
	Lipschitz float64
	Smooth    float64 // √(L̄/μ), L̄ the smoothness in α alone
	Joint     float64 // √(L̄/μ), L̄ the smoothness in (α, θ)
	Cross     float64 // ‖H_θα‖/μ
}

// Run draws and measures random functions or, of the kind "ridge", the ridge problem. The values of random functions
// are their number ("cases"), how many have a Lipschitz constant above each bound ("over_smooth", …) and the largest
// ratio to √(L̄/μ); the series are quantiles of the ratios, at Shares.
func (c Case) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	if c.Kind == "ridge" {
		return c.runRidge(ctx, seed)
	}
	var all []Bounds
	for _, h := range c.Maps {
		for _, p := range c.Weights {
			for i := range c.Cases {
				if err := ctx.Err(); err != nil {
					return trial.Result{}, err
				}
				b, err := draw(trial.RNG(seed, c.Kind, fmt.Sprint(h, p, i)), c.Kind, h, p)
				if err != nil {
					return trial.Result{}, err
				}
				all = append(all, b)
			}
		}
	}
	return ratios(all), nil
}

func ratios(all []Bounds) trial.Result {
	var smooth, joint []float64
	values := map[string]float64{"cases": float64(len(all)), "over_smooth": 0, "over_joint": 0, "over_cross": 0}
	for _, b := range all {
		smooth, joint = append(smooth, b.Lipschitz/b.Smooth), append(joint, b.Lipschitz/b.Joint)
		over := map[string]float64{"over_smooth": b.Smooth, "over_joint": b.Joint, "over_cross": b.Cross}
		for name, bound := range over {
			if b.Lipschitz > bound*(1+1e-9) {
				values[name]++
			}
		}
	}
	slices.Sort(smooth)
	slices.Sort(joint)
	values["largest"] = smooth[len(smooth)-1]
	series := map[string][]float64{}
	for _, share := range Shares {
		at := int(math.Round(share * float64(len(smooth)-1)))
		series["smooth"], series["joint"] = append(series["smooth"], smooth[at]), append(series["joint"], joint[at])
	}
	return trial.Result{Values: values, Series: series}
}

func draw(rng *rand.Rand, kind string, h, p int) (Bounds, error) {
	switch kind {
	case "joint":
		return quadratic(joint(rng, h, p), h)
	case "separate":
		return quadratic(separate(rng, h, p), h)
	}
	return logSumExp(rng, h, p)
}

// runRidge takes suprema over α in the simplex for ‖y − Φ_αθ‖² + λ‖θ‖², whose second derivatives are
//
//	H_αα = 2 (θᵀΦᵢᵀΦⱼθ)ᵢⱼ ,  H_θαᵢ = 2 (Φ_αᵀΦᵢθ − Φᵢᵀr) ,  H_θθ = 2 (Φ_αᵀΦ_α + λI) .
func (c Case) runRidge(ctx context.Context, seed uint64) (trial.Result, error) {
	t := instance.NewTeacher(seed, *c.Instance)
	x, y := t.Sample(trial.RNG(seed, "train"), c.Train)
	train, err := t.Mixture(x, y)
	if err != nil {
		return trial.Result{}, err
	}
	var lipschitz, outer, cross float64
	weakest := math.Inf(1)
	for _, alpha := range instance.Candidates(trial.RNG(seed, "candidates"), c.Instance.Maps, c.Candidates) {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		fit, err := train.Fit(alpha, c.Lambda)
		if err != nil {
			return trial.Result{}, err
		}
		jacobian, err := fit.Jacobian()
		if err != nil {
			return trial.Result{}, err
		}
		outerHere, crossHere := hessianNorms(train, fit)
		lipschitz = max(lipschitz, singular(jacobian.Slice(0, c.Instance.Features, 0, len(alpha)).(*mat.Dense)))
		outer, cross = max(outer, outerHere), max(cross, crossHere)
		least := 0.0
		if c.Instance.Features <= c.Train {
			if least, err = train.MinSingular(alpha); err != nil {
				return trial.Result{}, err
			}
		}
		weakest = min(weakest, 2*(c.Lambda+least*least))
	}
	return trial.Result{Values: map[string]float64{
		"lipschitz": lipschitz, "smooth": math.Sqrt(outer / weakest), "cross": cross / weakest,
	}}, nil
}

// hessianNorms are ‖H_αα‖ and ‖H_θα‖ at the minimizer of one α.
func hessianNorms(train *features.Mixture, fit *features.MixtureFit) (outer, cross float64) {
	h, n, p := len(fit.Alpha), len(fit.Residual), len(fit.Theta)
	images, mixed := mat.NewDense(n, h, nil), mat.NewDense(p, h, nil)
	phi, theta := train.At(fit.Alpha), mat.NewVecDense(p, fit.Theta)
	for i, m := range train.Maps {
		var image, back, rest mat.VecDense
		image.MulVec(m, theta)
		back.MulVec(phi.T(), &image)
		rest.MulVec(m.T(), mat.NewVecDense(n, fit.Residual))
		back.SubVec(&back, &rest)
		images.SetCol(i, image.RawVector().Data)
		mixed.SetCol(i, back.RawVector().Data)
	}
	return 2 * singular(images) * singular(images), 2 * singular(mixed)
}

// joint is a Hessian AAᵀ of (α, θ) of rank p + a random part of h: convex, strongly in θ, often not strongly in (α, θ).
func joint(rng *rand.Rand, h, p int) *mat.SymDense {
	a := spectral.Normals(rng, h+p, p+rng.IntN(h+1))
	var hessian mat.SymDense
	hessian.SymOuterK(1, a)
	return &hessian
}

// separate is a random symmetric Hessian whose θ-block is made positive definite, with a smallest eigenvalue in
// [0.1, 1.1].
func separate(rng *rand.Rand, h, p int) *mat.SymDense {
	hessian := spectral.Symmetric(spectral.Normals(rng, h+p, h+p))
	shift := 0.1 + rng.Float64() - smallest(block(hessian, h, h+p))
	for i := h; i < h+p; i++ {
		hessian.SetSym(i, i, hessian.At(i, i)+shift)
	}
	return hessian
}

// block is the symmetric block of rows and columns from…to−1.
func block(m *mat.SymDense, from, to int) *mat.SymDense {
	out := mat.NewSymDense(to-from, nil)
	for i := range to - from {
		for j := i; j < to-from; j++ {
			out.SetSym(i, j, m.At(from+i, from+j))
		}
	}
	return out
}

func smallest(m *mat.SymDense) float64 {
	least, _ := spectral.EigenRange(m)
	return least
}

// Example is (μ/2)θ² − kμαθ, which is not jointly convex: H_αα = 0 and θ_α = kα.
func Example(k, mu float64) Bounds {
	b, err := quadratic(mat.NewSymDense(2, []float64{0, -k * mu, -k * mu, mu}), 1)
	if err != nil { // the θ-block is the number μ
		panic(err)
	}
	return b
}

// quadratic is exact for ½(α, θ)ᵀH(α, θ): θ_α = −H_θθ⁻¹H_θα α.
func quadratic(hessian *mat.SymDense, h int) (Bounds, error) {
	n := hessian.SymmetricDim()
	inner := block(hessian, h, n)
	cross := mat.NewDense(n-h, h, nil)
	for i := range n - h {
		for j := range h {
			cross.Set(i, j, hessian.At(h+i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(inner) {
		return Bounds{}, errors.New("lemma 2: the Hessian in θ is not positive definite")
	}
	var slope mat.Dense
	if err := chol.SolveTo(&slope, cross); err != nil {
		return Bounds{}, fmt.Errorf("lemma 2: the Hessian in θ: %w", err)
	}
	mu := smallest(inner)
	return Bounds{
		Lipschitz: singular(&slope),
		Smooth:    math.Sqrt(spectral.Norm(block(hessian, 0, h)) / mu),
		Joint:     math.Sqrt(spectral.Norm(hessian) / mu),
		Cross:     singular(cross) / mu,
	}, nil
}

func singular(m mat.Matrix) float64 {
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return math.NaN() // a result with it is refused
	}
	return svd.Values(nil)[0]
}

// logSumExp is L̄(α, θ) = log Σᵢ exp(aᵢᵀα + bᵢᵀθ) + (μ/2)‖θ‖², jointly convex, L̄-smooth in α with L̄ = ‖A‖²/2 because
// ‖diag(q) − qqᵀ‖ ≤ ½. Its Lipschitz constant is measured on near and far pairs.
func logSumExp(rng *rand.Rand, h, p int) (Bounds, error) {
	const terms, mu = 12, 0.5
	a, b := spectral.Normals(rng, terms, h), spectral.Normals(rng, terms, p)
	most := 0.0
	for _, distance := range []float64{1e-3, 1, 10} {
		alpha, beta := make([]float64, h), make([]float64, h)
		for i := range alpha {
			alpha[i] = rng.NormFloat64()
			beta[i] = alpha[i] + distance*rng.NormFloat64()
		}
		x, err := newton(a, b, alpha, mu)
		if err != nil {
			return Bounds{}, err
		}
		y, err := newton(a, b, beta, mu)
		if err != nil {
			return Bounds{}, err
		}
		most = max(most, floats.Distance(x, y, 2)/floats.Distance(alpha, beta, 2))
	}
	whole := mat.NewDense(terms, h+p, nil)
	whole.Augment(a, b)
	full := singular(whole)*singular(whole)/2 + mu
	outer, inner := singular(a), singular(b)
	return Bounds{most, math.Sqrt(outer * outer / 2 / mu), math.Sqrt(full / mu), outer * inner / 2 / mu}, nil
}

func newton(a, b *mat.Dense, alpha []float64, mu float64) ([]float64, error) {
	_, p := b.Dims()
	theta := make([]float64, p)
	value, grad, hessian := expand(a, b, alpha, theta, mu)
	for range 100 {
		if floats.Norm(grad, 2) < 1e-12*(1+mu) {
			break
		}
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(hessian) {
			return nil, errors.New("lemma 2: the Hessian of the log-sum-exp is not positive definite")
		}
		if err := chol.SolveVecTo(&step, mat.NewVecDense(p, grad)); err != nil {
			return nil, err
		}
		for size := 1.0; size > 1e-12; size /= 2 {
			next := floats.AddScaledTo(make([]float64, p), theta, -size, step.RawVector().Data)
			v, g, hs := expand(a, b, alpha, next, mu)
			// Near the minimum the value no longer tells, the gradient does.
			rounding := 1e-12 * (1 + math.Abs(value))
			if v < value-rounding || (v <= value+rounding && floats.Norm(g, 2) < floats.Norm(grad, 2)) {
				theta, value, grad, hessian = next, v, g, hs
				break
			}
		}
	}
	if floats.Norm(grad, 2) > 1e-8 {
		return nil, fmt.Errorf("lemma 2: Newton's method stopped at a gradient of norm %.2g", floats.Norm(grad, 2))
	}
	return theta, nil
}

func expand(a, b *mat.Dense, alpha, theta []float64, mu float64) (float64, []float64, *mat.SymDense) {
	terms, p := b.Dims()
	z := make([]float64, terms)
	for i := range z {
		z[i] = floats.Dot(a.RawRowView(i), alpha) + floats.Dot(b.RawRowView(i), theta)
	}
	value := floats.LogSumExp(z)
	grad, hessian := floats.ScaleTo(make([]float64, p), mu, theta), mat.NewSymDense(p, nil)
	average := make([]float64, p)
	for i := range z {
		q := math.Exp(z[i] - value)
		floats.AddScaled(average, q, b.RawRowView(i))
		hessian.SymRankOne(hessian, q, b.RowView(i))
	}
	hessian.SymRankOne(hessian, -1, mat.NewVecDense(p, average))
	for i := range p {
		hessian.SetSym(i, i, hessian.At(i, i)+mu)
	}
	floats.Add(grad, average)
	return value + mu/2*floats.Dot(theta, theta), grad, hessian
}
