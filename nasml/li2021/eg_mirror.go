package li2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
)

// MirrorParams are the parameters of the comparison of geometries in Sections
// 3.1 to 3.3: on each edge one operation has a mean loss of −Margin, all others
// 0, and the oracle sees entries of ±1.
type MirrorParams struct {
	Edges    int
	Options  []int     // |O|
	Oracles  []string  // "dense": every entry of the gradient is ±1; "sparse": only that of the best operation, all others 0
	Gap      float64   // mean gap of a run, per edge, that counts as reached
	Margin   float64   // of the best operation
	Rates    []float64 // step sizes that tuned runs choose from
	Draws    int       // random points for the identities and norms
	Seeds    int
	CellENAS [3]int // h of ENAS' controller, |E| and |O| of DARTS' cell

	Confidence float64 // of the intervals
}

// MirrorQuick and MirrorPaper differ in |O| and in the number of seeds.
var (
	MirrorQuick = MirrorParams{
		Edges: 4, Options: []int{4, 16, 64}, Oracles: []string{"dense", "sparse"}, Gap: 0.1, Margin: 0.5,
		Rates: []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}, Draws: 2000, Seeds: 6,
		CellENAS: [3]int{100, 14, 7}, Confidence: 0.95,
	}
	MirrorPaper = func() MirrorParams {
		p := MirrorQuick
		p.Options, p.Draws, p.Seeds = []int{4, 16, 64, 256}, 20000, 8
		return p
	}()
)

const (
	mirrorID    = "li2021/mirror"
	mirrorTitle = "Exponentiated gradient against SGD: iterations and gradient bounds as |O| grows"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: mirrorID, Paper: "Li+ 2021", Title: mirrorTitle, Kind: "theorem",
		Notebook: "notebooks/li2021/mirror_geometry.ipynb",
		Cost:     catalog.Cost{Quick: "about 10 s on two cores", Paper: "about a quarter of an hour on two cores; the project ships its trials"},
	}, MirrorQuick, MirrorPaper, Mirror)
}

//go:embed eg_mirror.go theorem_math.go
var mirrorSources embed.FS

var mirrorTheory = theory{mirrorID, mirrorTitle, sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(mirrorSources, simplex.HostSources)
})}

// mirrorTrial is what a number of iterations depends on; Kind says which fields
// apply.
type mirrorTrial struct {
	Kind    string    `json:"kind"`             // "theory": the step of the bound; "tuned": each of Rates; "norms"
	Method  string    `json:"method,omitempty"` // "eg", "projected" or "softmax"
	Oracle  string    `json:"oracle,omitempty"`
	Edges   int       `json:"edges"`
	Options int       `json:"options"`
	Gap     float64   `json:"gap,omitempty"`
	Margin  float64   `json:"margin,omitempty"`
	Rates   []float64 `json:"rates,omitempty"`
	Draws   int       `json:"draws,omitempty"`
}

// MirrorCase is a trial with a record for every seed.
type MirrorCase struct {
	mirrorTrial
	records []*runs.Record
}

// MirrorResult holds numbers of iterations, and what was measured of the norms.
type MirrorResult struct {
	Params MirrorParams
	Scale  string // "quick", "paper" or empty for own parameters
	Cases  []MirrorCase
}

// Mirror counts the steps that exponentiated gradient, projected SGD and SGD on
// logits need to the same mean gap, and measures the norms that the bounds are
// made of. Cancelling ctx keeps what is finished.
func Mirror(ctx context.Context, p MirrorParams) (*MirrorResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &MirrorResult{Params: p, Scale: runs.Scale(ctx)}
	var trials []trialOf[mirrorTrial]
	for _, t := range p.cases() {
		r.Cases = append(r.Cases, MirrorCase{mirrorTrial: t})
		for _, seed := range runs.Seeds(p.Seeds) {
			trials = append(trials, trialOf[mirrorTrial]{t, seed, t.units()})
		}
	}
	records, err := runTheory(ctx, mirrorTheory, trials, func(ctx context.Context, t mirrorTrial, seed uint64) (runs.Result, error) {
		switch t.Kind {
		case "norms":
			return t.norms(seed), nil
		case "theory":
			return t.theory(ctx, seed)
		}
		return t.tuned(ctx, seed)
	})
	if err != nil {
		return nil, err
	}
	for i := range r.Cases {
		r.Cases[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	return r, nil
}

// cases lists the trials. Projected SGD and EG are run at the step of their
// bounds; on the dense oracle all three methods are also run at every rate.
func (p MirrorParams) cases() []mirrorTrial {
	var cases []mirrorTrial
	for _, options := range p.Options {
		cases = append(cases, mirrorTrial{Kind: "norms", Edges: p.Edges, Options: options, Draws: p.Draws})
		for _, oracle := range p.Oracles {
			t := mirrorTrial{Oracle: oracle, Edges: p.Edges, Options: options, Gap: p.Gap, Margin: p.Margin}
			for _, method := range []string{"eg", "projected", "softmax"} {
				t.Method, t.Kind, t.Rates = method, "theory", nil
				if method != "softmax" { // no bound names its step
					cases = append(cases, t)
				}
				t.Kind, t.Rates = "tuned", p.Rates
				cases = append(cases, t)
			}
		}
	}
	return cases
}

func (p MirrorParams) check() error {
	var c checks
	c.expect(p.Edges >= 1, "Edges is %d, want at least 1", p.Edges)
	ascending(&c, "Options", p.Options, 2, 1)
	ascending(&c, "Rates", p.Rates, 1, 0)
	c.expect(len(p.Oracles) > 0, "Oracles is empty")
	for i, o := range p.Oracles {
		c.expect((o == "dense" || o == "sparse") && !slices.Contains(p.Oracles[:i], o), "Oracles has %q, want dense and sparse at most once each", o)
	}
	c.expect(p.Margin > 0 && p.Margin <= 1, "Margin is %v, want between 0 and 1: it is a mean of ±1", p.Margin)
	c.expect(p.Gap > 0 && p.Gap < p.Margin/2, "Gap is %v, want above 0 and below Margin/2: the start's is nearly Margin", p.Gap)
	c.expect(p.Draws >= 1, "Draws is %d, want at least 1", p.Draws)
	c.expect(slices.Min(p.CellENAS[:]) >= 1, "CellENAS is %v, want h, |E| and |O| of at least 1", p.CellENAS)
	c.common(p.Seeds, p.Confidence)
	return c.err("the comparison of geometries")
}

// bound is the number of steps after which the mean gap of a run is at most
// Gap, by the regret of mirror descent with entries bounded by 1: 2 ln|O|/ε² for
// EG and (1−1/|O|)G²/ε² for projected SGD, G² = |O| or, sparse, 1.
func (t mirrorTrial) bound() float64 {
	k := float64(t.Options)
	if t.Method == "eg" {
		return 2 * math.Log(k) / (t.Gap * t.Gap)
	}
	return (1 - 1/k) * t.square() / (t.Gap * t.Gap)
}

// square is G², the squared ℓ₂ norm of an edge's gradient.
func (t mirrorTrial) square() float64 {
	if t.Oracle == "sparse" {
		return 1
	}
	return float64(t.Options)
}

// step is the step size that the bound is for, with T steps.
func (t mirrorTrial) step(steps int) float64 {
	k, n := float64(t.Options), float64(steps)
	if t.Method == "eg" {
		return math.Sqrt(2 * math.Log(k) / n)
	}
	return math.Sqrt((1 - 1/k) / (t.square() * n))
}

// cap is where a run at a bad rate is given up.
func (t mirrorTrial) cap() int {
	return int(2 * float64(t.Options) / (t.Gap * t.Gap))
}

func (t mirrorTrial) units() int {
	if t.Kind == "norms" {
		return 1 + t.Draws*t.Options/100000
	}
	return 1 + t.Edges*t.Options*t.Options/1000
}

// gaps runs a method from the uniform point and calls visit with the mean gap
// per edge before each step, until it returns false.
func (t mirrorTrial) gaps(ctx context.Context, eta float64, rng *rand.Rand, visit func(step int, gap float64) bool) error {
	var space simplex.Space = simplex.Entropic{}
	if t.Method == "projected" {
		space = simplex.FlatSimplex{}
	}
	theta := make([][]float64, t.Edges)
	for e := range theta {
		theta[e] = slices.Repeat([]float64{1 / float64(t.Options)}, t.Options)
	}
	grad := make([]float64, t.Options)
	for step := 0; ; step++ {
		gap := 0.0
		for _, row := range theta {
			gap += t.Margin * (1 - row[0]) / float64(t.Edges)
		}
		if !visit(step, gap) {
			return nil
		}
		if err := everySo(ctx, step); err != nil {
			return err
		}
		for _, row := range theta {
			t.draw(grad, rng)
			if t.Method == "softmax" {
				throughSoftmax(row, grad)
			}
			space.Step(row, grad, eta)
		}
	}
}

// draw writes one edge's gradient: ±1 with mean −Margin at operation 0, and ±1
// with mean 0, or 0, elsewhere.
func (t mirrorTrial) draw(grad []float64, rng *rand.Rand) {
	if t.Oracle == "dense" {
		var bits uint64
		for o := range grad {
			if o&63 == 0 {
				bits = rng.Uint64()
			}
			grad[o] = float64(2*int(bits&1)) - 1
			bits >>= 1
		}
	}
	grad[0] = 1
	if rng.Float64() < (1+t.Margin)/2 {
		grad[0] = -1
	}
}

// theory is the least T of the grid 2^{j/4} at which runs with the bound's step
// for T have a mean gap of at most Gap; a bound is on an expectation.
func (t mirrorTrial) theory(ctx context.Context, seed uint64) (runs.Result, error) {
	at := func(j int) int { return int(math.Round(math.Pow(2, float64(j)/4))) }
	reached := func(j int) (bool, error) {
		const repeats = 4
		steps, sum := at(j), 0.0
		for i := range repeats {
			err := t.gaps(ctx, t.step(steps), runs.RNG(seed, "mirror", t.Method, strconv.Itoa(i)), func(step int, gap float64) bool {
				if step == steps {
					return false
				}
				sum += gap
				return true
			})
			if err != nil {
				return false, err
			}
		}
		return sum/float64(repeats*steps) <= t.Gap, nil
	}
	lo, hi := 0, 8 // at(lo) is not enough, at(hi) is, once it is found
	for {
		ok, err := reached(hi)
		if err != nil {
			return runs.Result{}, err
		}
		if ok {
			break
		}
		if at(hi) > 16*t.cap() {
			return runs.Result{}, fmt.Errorf("the gap is not reached in %d steps, which the bound has at %.4g", at(hi), t.bound())
		}
		lo, hi = hi, hi+4
	}
	for hi-lo > 1 {
		middle := (lo + hi) / 2
		ok, err := reached(middle)
		if err != nil {
			return runs.Result{}, err
		}
		if ok {
			hi = middle
		} else {
			lo = middle
		}
	}
	return runs.Result{Values: map[string]float64{"steps": float64(at(hi)), "bound": t.bound()}}, nil
}

// tuned is, for each of the rates, the first step at which the mean gap so far
// is at most Gap, and the cap where it is not reached.
func (t mirrorTrial) tuned(ctx context.Context, seed uint64) (runs.Result, error) {
	out := runs.Result{Series: map[string][]float64{}}
	for _, rate := range t.Rates {
		sum, first := 0.0, t.cap()
		err := t.gaps(ctx, rate, runs.RNG(seed, "mirror", t.Method), func(step int, gap float64) bool {
			sum += gap
			if sum <= t.Gap*float64(step+1) {
				first = step + 1
				return false
			}
			return step < t.cap()
		})
		if err != nil {
			return runs.Result{}, err
		}
		out.Series["steps"] = append(out.Series["steps"], float64(first))
	}
	return out, nil
}

// norms measures, at random points of the product of simplices:
//
//   - step, egStep: |objective of eq. 4 and 5 at the step − its closed form|,
//     −η²‖g‖²/2 and −Σ_e log Z_e, and better: how far a random feasible point
//     is below that, at most;
//   - convex: the least D_φ(x‖y)/(‖x−y‖₁²/|E|), ½ where the norm is right;
//   - dual: the largest ⟨g, x⟩/(√|E|‖g‖_∞ · ‖x‖₁/√|E|), and at the maximizer;
//   - ratio: ‖g‖₂²/‖g‖_∞² of an edge's gradient, for entries ±1, for entries
//     of a sine, and for one entry;
//   - monteCarlo: E‖ĝ‖²/‖g‖² of the score-function gradient in the logits.
func (t mirrorTrial) norms(seed uint64) runs.Result {
	rng := runs.RNG(seed, "norms")
	v := map[string]float64{"step": 0, "eg_step": 0, "better": math.Inf(-1), "convex": math.Inf(1), "dual": 0, "attained": math.Inf(1)}
	for range t.Draws {
		t.proximal(v, rng)
		x, y := t.point(rng), t.point(rng)
		d := make([][]float64, t.Edges)
		for e := range d {
			d[e] = make([]float64, t.Options)
			for o := range d[e] {
				d[e][o] = x[e][o] - y[e][o]
			}
		}
		v["convex"] = math.Min(v["convex"], simplex.BregmanOf(x, y)/math.Pow(simplex.Norm(d), 2))
		g, product := t.normal(rng), 0.0
		for e := range g {
			product += inner(g[e], d[e])
		}
		v["dual"] = math.Max(v["dual"], product/(simplex.DualNorm(g)*simplex.Norm(d)))
		v["attained"] = math.Min(v["attained"], attained(g))
	}
	t.ratios(v, rng)
	v["monte_carlo"] = t.monteCarlo(rng)
	return runs.Result{Values: v}
}

func (t mirrorTrial) point(rng *rand.Rand) [][]float64 {
	sharp := math.Exp(1.5 * rng.NormFloat64()) // near the middle and near the corners
	logits := t.normal(rng)
	for _, row := range logits {
		for o := range row {
			row[o] *= sharp
		}
	}
	return simplex.PhiConjugateGradient(logits)
}

func (t mirrorTrial) normal(rng *rand.Rand) [][]float64 {
	x := make([][]float64, t.Edges)
	for e := range x {
		x[e] = make([]float64, t.Options)
		for o := range x[e] {
			x[e][o] = rng.NormFloat64()
		}
	}
	return x
}

// proximal notes how well the steps of eq. 4 and 5 minimize their objectives.
func (t mirrorTrial) proximal(v map[string]float64, rng *rand.Rand) {
	theta, g, eta := t.point(rng), t.normal(rng), rng.Float64()
	next := simplex.EGOf(theta, g, eta)
	objective := func(u [][]float64) float64 {
		sum := simplex.BregmanOf(u, theta)
		for e := range u {
			sum += eta * inner(g[e], u[e])
		}
		return sum
	}
	closed, square, flat := 0.0, 0.0, 0.0
	for e, row := range theta {
		z := 0.0
		for o, x := range row {
			z += x * math.Exp(-eta*g[e][o])
		}
		closed -= math.Log(z)
		w := slices.Clone(row) // eq. 4 on ℝᵏ, at the same point
		simplex.Euclidean{}.Step(w, g[e], eta)
		square -= eta * eta * inner(g[e], g[e]) / 2
		flat += eta*(inner(g[e], w)-inner(g[e], row)) + simplex.Euclidean{}.Divergence(w, row)
	}
	v["eg_step"] = math.Max(v["eg_step"], math.Abs(objective(next)-closed))
	v["step"] = math.Max(v["step"], math.Abs(flat-square)/(1-square))
	other, toward := t.point(rng), math.Exp(-6*rng.Float64())
	for e := range other {
		for o := range other[e] {
			other[e][o] = toward*other[e][o] + (1-toward)*next[e][o]
		}
	}
	v["better"] = math.Max(v["better"], objective(next)-objective(other))
}

// attained is ⟨g, x⟩ over the product of the norms at the best x, which has one
// entry.
func attained(g [][]float64) float64 {
	x, best := make([][]float64, len(g)), [2]int{}
	for e := range g {
		x[e] = make([]float64, len(g[e]))
		for o, v := range g[e] {
			if math.Abs(v) > math.Abs(g[best[0]][best[1]]) {
				best = [2]int{e, o}
			}
		}
	}
	at := g[best[0]][best[1]]
	x[best[0]][best[1]] = at
	return at * at / (simplex.DualNorm(g) * simplex.Norm(x))
}

// ratios are ‖g‖₂²/‖g‖_∞² of one edge.
func (t mirrorTrial) ratios(v map[string]float64, rng *rand.Rand) {
	dense, sparse := make([]float64, t.Options), make([]float64, t.Options)
	t.Margin, t.Oracle = 0.5, "dense"
	t.draw(dense, rng)
	t.Oracle = "sparse"
	t.draw(sparse, rng)
	phase := rng.Float64()
	sine := make([]float64, t.Options) // operations sin(z + 2πo/|O|)
	for o := range sine {
		sine[o] = math.Sin(2 * math.Pi * (phase + float64(o)/float64(t.Options)))
	}
	for name, g := range map[string][]float64{"ratio_dense": dense, "ratio_sine": sine, "ratio_sparse": sparse} {
		most := simplex.Entropic{}.DualNorm(g)
		v[name] = inner(g, g) / (most * most)
	}
}

// monteCarlo compares ENAS' kind of gradient with DARTS': for losses cₑₒ ∼ U(0,
// 1) at the uniform point the exact gradient in the logits is θ⊙(c−⟨θ, c⟩), and
// the score-function estimate (Σ_e cₑₐ)·(1ₐ − θ), over a random a on each edge.
func (t mirrorTrial) monteCarlo(rng *rand.Rand) float64 {
	k := float64(t.Options)
	costs, exact := t.normal(rng), 0.0
	for _, row := range costs {
		m := 0.0
		for o := range row {
			row[o] = rng.Float64()
			m += row[o] / k
		}
		for _, c := range row {
			exact += (c - m) * (c - m) / (k * k)
		}
	}
	second := 0.0
	for range t.Draws {
		loss := 0.0
		for _, row := range costs {
			loss += row[rng.IntN(t.Options)]
		}
		second += loss * loss * float64(t.Edges) * (1 - 1/k) / float64(t.Draws) // ‖1ₐ − θ‖² = 1 − 1/k
	}
	return second / exact
}

// Records are the keys of the trials.
func (r *MirrorResult) Records() []string {
	var keys []string
	for _, c := range r.Cases {
		for _, record := range c.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}

// methodName is a method's name in pictures.
func methodName(method string) string {
	return strings.NewReplacer("eg", "EG", "projected", "projected SGD", "softmax", "SGD on logits").Replace(method)
}
