// Package proximal measures Bregman stationarity Δ_λ on random problems with known closed forms and near the worst
// vertex of a simplex.
package proximal

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what one problem of each kind depends on.
type Trial struct {
	Options   int       `json:"options"`
	Weights   int       `json:"weights"`
	Lambdas   []float64 `json:"lambdas"`
	Distances []float64 `json:"distances"`
}

// Run measures one problem of each kind.
func (t Trial) Run(seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "stationarity")
	out := trial.Result{Values: map[string]float64{}, Series: map[string][]float64{}}
	for _, part := range []func(*rand.Rand, trial.Result) error{t.linear, t.euclidean, t.joint, t.vertex} {
		if err := part(rng, out); err != nil {
			return trial.Result{}, err
		}
	}
	return out, nil
}

// linear: f = ⟨c, θ⟩ has Δ_λ = ⟨c, θ−p⟩/λ with p ∝ θ⊙e^{−λc}, and Δ_0 = Var_{o∼θ}(c_o).
func (t Trial) linear(rng *rand.Rand, out trial.Result) error {
	theta, c := make([]float64, t.Options), make([]float64, t.Options)
	total, m, variance := 0.0, 0.0, 0.0
	for o := range theta {
		theta[o], c[o] = rng.ExpFloat64(), rng.NormFloat64()
		total += theta[o]
	}
	for o := range theta {
		theta[o] /= total
		m += theta[o] * c[o]
	}
	for o := range theta {
		variance += theta[o] * (c[o] - m) * (c[o] - m)
	}
	f := func(simplex.Point) (simplex.Point, error) { return simplex.Point{Theta: [][]float64{c}}, nil }
	for _, lambda := range t.Lambdas {
		got, err := simplex.Stationarity{Gamma: 1 / (2 * lambda)}.At(f, simplex.Point{Theta: [][]float64{theta}})
		if err != nil {
			return err
		}
		p := simplex.EGOf([][]float64{theta}, [][]float64{c}, lambda)[0]
		closed := (descent.Inner(c, theta) - descent.Inner(c, p)) / lambda
		out.Series["closed"] = append(out.Series["closed"], closed)
		out.Series["numeric"] = append(out.Series["numeric"], got.Delta)
	}
	out.Values["variance"] = variance
	return nil
}

// euclidean: for f = ½wᵀBw with eigenvalues in [−γ, γ], ‖∇f(w)‖² ≤ (9/4)Δ.
func (t Trial) euclidean(rng *rand.Rand, out trial.Result) error {
	b, gamma, err := symmetric(rng, t.Weights)
	if err != nil {
		return err
	}
	w := make([]float64, t.Weights)
	for i := range w {
		w[i] = rng.NormFloat64()
	}
	got, err := simplex.Stationarity{Gamma: gamma}.At(quadraticOracle(b), simplex.Point{W: w})
	if err != nil {
		return err
	}
	var g mat.VecDense
	g.MulVec(b, mat.NewVecDense(t.Weights, w))
	out.Values["gradient_over_delta"] = mat.Dot(&g, &g) / got.Delta
	return nil
}

// joint: at the proximal point of a non-convex f of w and θ both forms of Δ agree, (D(x|p)+D(p|x))/λ² and ⟨∇f(p),
// x−p⟩/λ.
func (t Trial) joint(rng *rand.Rand, out trial.Result) error {
	b, gamma, err := symmetric(rng, t.Weights+t.Options)
	if err != nil {
		return err
	}
	x := simplex.Point{W: make([]float64, t.Weights), Theta: [][]float64{make([]float64, t.Options)}}
	for i := range x.W {
		x.W[i] = rng.NormFloat64()
	}
	total := 0.0
	for o := range x.Theta[0] {
		x.Theta[0][o] = rng.ExpFloat64()
		total += x.Theta[0][o]
	}
	for o := range x.Theta[0] {
		x.Theta[0][o] /= total
	}
	f := quadraticOracle(b)
	got, err := simplex.Stationarity{Gamma: gamma}.At(f, x)
	if err != nil {
		return err
	}
	g, err := f(got.Prox)
	if err != nil {
		return err
	}
	product := descent.Inner(g.W, x.W) - descent.Inner(g.W, got.Prox.W) +
		descent.Inner(g.Theta[0], x.Theta[0]) - descent.Inner(g.Theta[0], got.Prox.Theta[0])
	out.Values["two_forms"] = math.Abs(product*2*gamma/got.Delta - 1)
	return nil
}

// vertex: f = θ₁ near its worst vertex, at λ = ½.
func (t Trial) vertex(_ *rand.Rand, out trial.Result) error {
	f := func(simplex.Point) (simplex.Point, error) { return simplex.Point{Theta: [][]float64{{1, 0}}}, nil }
	for _, d := range append([]float64{0}, t.Distances...) {
		got, err := simplex.Stationarity{Gamma: 1}.At(f, simplex.Point{Theta: [][]float64{{1 - d, d}}})
		if err != nil {
			return err
		}
		if d == 0 {
			out.Values["vertex_delta"], out.Values["vertex_gap"] = got.Delta, got.Gap
			continue
		}
		flat := []float64{1 - d, d}
		simplex.FlatSimplex{}.Step(flat, []float64{1, 0}, 0.5)
		moved := 2 * (flat[0] - (1 - d)) * (flat[0] - (1 - d)) // ‖θ−p‖²
		out.Series["vertex_delta"] = append(out.Series["vertex_delta"], got.Delta)
		out.Series["vertex_gap"] = append(out.Series["vertex_gap"], got.Gap)
		out.Series["vertex_flat"] = append(out.Series["vertex_flat"], moved/0.25)
	}
	return nil
}

// symmetric is a random symmetric matrix with its spectral radius.
func symmetric(rng *rand.Rand, n int) (*mat.SymDense, float64, error) {
	b := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			b.SetSym(i, j, rng.NormFloat64())
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(b, false) {
		return nil, 0, fmt.Errorf("a symmetric matrix of %d rows has no eigenvalues", n)
	}
	values := eigen.Values(nil)
	return b, math.Max(-values[0], values[n-1]), nil
}

// quadraticOracle is the gradient of ½xᵀBx over x = (w, θ), θ of one row or none.
func quadraticOracle(b *mat.SymDense) simplex.Oracle {
	return func(at simplex.Point) (simplex.Point, error) {
		x := append([]float64{}, at.W...)
		for _, row := range at.Theta {
			x = append(x, row...)
		}
		var g mat.VecDense
		g.MulVec(b, mat.NewVecDense(len(x), x))
		out := simplex.Point{W: g.RawVector().Data[:len(at.W)]}
		if len(at.Theta) > 0 {
			out.Theta = [][]float64{g.RawVector().Data[len(at.W):]}
		}
		return out, nil
	}
}
