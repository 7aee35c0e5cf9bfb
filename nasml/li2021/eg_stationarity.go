package li2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/plots"
)

// StationarityParams are the parameters of what Bregman stationarity means
// (Section 3.2, Definitions 5 and 6).
type StationarityParams struct {
	Options   int       // |O| of the linear functions
	Weights   int       // dimension of w in the quadratic ones
	Lambdas   []float64 // λ
	Distances []float64 // δ: how far θ = (1−δ, δ) is from the worst vertex of f = θ₁
	Seeds     int

	Confidence float64 // of the intervals
}

// StationarityQuick and StationarityPaper differ in the number of problems.
var (
	StationarityQuick = StationarityParams{
		Options: 6, Weights: 4, Lambdas: []float64{1e-4, 1e-3, 1e-2, 0.1, 0.5, 2}, Distances: []float64{1e-9, 1e-7, 1e-5, 1e-3, 0.1, 0.5},
		Seeds: 20, Confidence: 0.95,
	}
	StationarityPaper = func() StationarityParams {
		p := StationarityQuick
		p.Seeds = 200
		return p
	}()
)

const (
	stationarityID     = "li2021/stationarity"
	stationarityTitle  = "What Bregman stationarity measures, and where it is blind"
	stationaritySource = "Li+ 2021, Section 3.2 and eq. 7"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: stationarityID, Paper: "Li+ 2021", Title: stationarityTitle, Kind: "theorem",
		Notebook: "notebooks/li2021/stationarity_meaning.ipynb",
		Cost:     catalog.Cost{Quick: "a second", Paper: "some seconds"},
	}, StationarityQuick, StationarityPaper, StationarityOf)
}

//go:embed eg_stationarity.go theorem_math.go
var stationaritySources embed.FS

var stationarityTheory = theory{stationarityID, stationarityTitle, sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(stationaritySources, simplex.HostSources)
})}

type stationarityTrial struct {
	Options   int       `json:"options"`
	Weights   int       `json:"weights"`
	Lambdas   []float64 `json:"lambdas"`
	Distances []float64 `json:"distances"`
}

// StationarityResult holds one record a seed.
type StationarityResult struct {
	Params  StationarityParams
	Scale   string // "quick", "paper" or empty for own parameters
	records []*runs.Record
}

// StationarityOf measures Δ_λ where closed forms are known, on random problems:
// linear functions on a simplex, quadratic ones of w, non-convex ones of both;
// and near the worst vertex of a simplex.
func StationarityOf(ctx context.Context, p StationarityParams) (*StationarityResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var trials []trialOf[stationarityTrial]
	for _, seed := range runs.Seeds(p.Seeds) {
		trials = append(trials, trialOf[stationarityTrial]{stationarityTrial{p.Options, p.Weights, p.Lambdas, p.Distances}, seed, 1})
	}
	records, err := runTheory(ctx, stationarityTheory, trials, func(_ context.Context, t stationarityTrial, seed uint64) (runs.Result, error) {
		return t.compute(seed)
	})
	if err != nil {
		return nil, err
	}
	return &StationarityResult{p, runs.Scale(ctx), records}, nil
}

func (p StationarityParams) check() error {
	var c checks
	c.expect(p.Options >= 2 && p.Weights >= 1, "Options is %d and Weights %d, want at least 2 and 1", p.Options, p.Weights)
	ascending(&c, "Lambdas", p.Lambdas, 2, 0)
	ascending(&c, "Distances", p.Distances, 2, 0)
	for _, d := range p.Distances {
		c.expect(d < 1, "Distances has %v, want below 1", d)
	}
	c.common(p.Seeds, p.Confidence)
	return c.err("stationarity")
}

// compute measures one problem of each kind.
func (t stationarityTrial) compute(seed uint64) (runs.Result, error) {
	rng := runs.RNG(seed, "stationarity")
	out := runs.Result{Values: map[string]float64{}, Series: map[string][]float64{}}
	for _, part := range []func(*rand.Rand, runs.Result) error{t.linear, t.euclidean, t.joint, t.vertex} {
		if err := part(rng, out); err != nil {
			return runs.Result{}, err
		}
	}
	return out, nil
}

// linear: f = ⟨c, θ⟩ has Δ_λ = ⟨c, θ−p⟩/λ with p ∝ θ⊙e^{−λc}, and Δ_0 =
// Var_{o∼θ}(c_o).
func (t stationarityTrial) linear(rng *rand.Rand, out runs.Result) error {
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
		closed := (inner(c, theta) - inner(c, p)) / lambda
		out.Series["closed"] = append(out.Series["closed"], closed)
		out.Series["numeric"] = append(out.Series["numeric"], got.Delta)
	}
	out.Values["variance"] = variance
	return nil
}

// euclidean: for f = ½wᵀBw with eigenvalues in [−γ, γ], ‖∇f(w)‖² ≤ (9/4)Δ.
func (t stationarityTrial) euclidean(rng *rand.Rand, out runs.Result) error {
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

// joint: at the proximal point of a non-convex f of w and θ the two forms of Δ
// agree, (D(x|p)+D(p|x))/λ² and ⟨∇f(p), x−p⟩/λ.
func (t stationarityTrial) joint(rng *rand.Rand, out runs.Result) error {
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
	product := inner(g.W, x.W) - inner(g.W, got.Prox.W) + inner(g.Theta[0], x.Theta[0]) - inner(g.Theta[0], got.Prox.Theta[0])
	out.Values["two_forms"] = math.Abs(product*2*gamma/got.Delta - 1)
	return nil
}

// vertex: f = θ₁ near its worst vertex, at λ = ½.
func (t stationarityTrial) vertex(_ *rand.Rand, out runs.Result) error {
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
		out.Series["vertex_delta"], out.Series["vertex_gap"] = append(out.Series["vertex_delta"], got.Delta), append(out.Series["vertex_gap"], got.Gap)
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

// Records are the keys of the trials.
func (r *StationarityResult) Records() []string {
	var keys []string
	for _, record := range r.records {
		keys = append(keys, record.Key)
	}
	return keys
}

// Figure draws Δ over λ for a linear function, numeric on the closed form, and
// Δ with the Frank–Wolfe gap near the worst vertex.
func (r *StationarityResult) Figure() plots.Figure {
	first := r.records[0]
	left := plots.Panel{
		Title: "a linear function on the simplex", X: plots.Axis{Label: "$λ$", Scale: plots.Log10}, Y: plots.Axis{Label: "$Δ_λ$"},
		Series: []plots.Series{
			{Label: "closed form", X: r.Params.Lambdas, Y: first.Series["closed"], Reference: true},
			{Label: "proximal map, numeric", X: r.Params.Lambdas, Y: first.Series["numeric"], Line: plots.NoLine},
			plots.HLine("$λ → 0$: variance of the gradient", first.Values["variance"]),
		},
	}
	right := plots.Panel{
		Title: "near the worst vertex", X: plots.Axis{Label: "distance $δ$", Scale: plots.Log10}, Y: plots.Axis{Scale: plots.Log10},
		Series: []plots.Series{
			{Label: "$Δ_{1/2}$, entropy", X: r.Params.Distances, Y: first.Series["vertex_delta"]},
			{Label: "$Δ_{1/2}$, Euclidean", X: r.Params.Distances, Y: first.Series["vertex_flat"]},
			{Label: "Frank–Wolfe gap", X: r.Params.Distances, Y: first.Series["vertex_gap"]},
		},
	}
	return plots.Figure{
		Name: "li2021-stationarity", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{left, right}},
		Caption: "Left: one random $f = ⟨c, θ⟩$. Right: $f = θ_1$ at $θ = (1−δ, δ)$: every vertex is a fixed point of the entropic proximal map, also the worst." + scaleNote(r.Scale),
		Meta:    meta(stationarityTitle, r.Scale, r.Params),
	}
}

// most is the largest value over the seeds.
func (r *StationarityResult) most(value func(*runs.Record) float64) float64 {
	out := math.Inf(-1)
	for _, record := range r.records {
		out = math.Max(out, value(record))
	}
	return out
}

// Check judges the closed forms, O(ε) in the smooth unconstrained case, and that
// fixed points of the proximal map have no direction of descent.
func (r *StationarityResult) Check() []runs.Claim {
	numeric := exactly(runs.NewClaim("eq. 7: Δ of a linear function is ⟨c, θ−p⟩/λ, relative error", stationaritySource), 0, r.most(func(x *runs.Record) float64 {
		most := 0.0
		for i, closed := range x.Series["closed"] {
			most = math.Max(most, math.Abs(x.Series["numeric"][i]/closed-1))
		}
		return most
	}), 1e-6)
	numeric.Note = "the proximal map solved numerically against its closed form, the largest of all λ"
	forms := exactly(runs.NewClaim("eq. 7: the two forms of Δ agree at the proximal point of a non-convex f, relative error", stationaritySource), 0,
		r.most(func(x *runs.Record) float64 { return x.Values["two_forms"] }), 1e-5)
	limit := exactly(runs.NewClaim("ours: Δ_λ → Var_{o∼θ}(∇_o f) as λ → 0, relative error", "ours, from eq. 7"), 0,
		r.most(func(x *runs.Record) float64 { return math.Abs(x.Series["numeric"][0]/x.Values["variance"] - 1) }), 10*r.Params.Lambdas[0])
	limit.Note = fmt.Sprintf("at λ = %v; the error is of the order of λ", r.Params.Lambdas[0])
	smooth := runs.NewClaim("LI018: ‖∇f‖² over Δ, smooth, Euclidean, unconstrained", "Li+ 2021, Section 3.2")
	smooth.Paper = 9. / 4
	smooth.Ours = runs.Number(r.most(func(x *runs.Record) float64 { return x.Values["gradient_over_delta"] }))
	smooth.Holds = runs.Judge(smooth.Ours <= smooth.Paper)
	smooth.Note = "the paper says O(ε); (1+λγ)² = 9/4 at λ = 1/(2γ) is ours. The largest over random quadratics"
	fixed := runs.NewClaim("fixed points of prox have no feasible descent direction: the gap at the vertex where Δ = 0", "Li+ 2021, Section 3.2")
	fixed.Paper, fixed.Ours = 0, runs.Number(r.records[0].Values["vertex_gap"])
	fixed.Holds = runs.Judge(r.records[0].Values["vertex_delta"] > 0 || fixed.Ours <= 0)
	fixed.Note = fmt.Sprintf("our finding: with the entropy it holds in the interior only. At the worst vertex Δ = %v; at δ = %v from it Δ = %.2g and the gap %.3g: report the gap beside Δ",
		r.records[0].Values["vertex_delta"], r.Params.Distances[0], r.records[0].Series["vertex_delta"][0], r.records[0].Series["vertex_gap"][0])
	return []runs.Claim{numeric, forms, limit, smooth, fixed}
}
