package li2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Corollary1Params are the parameters of Corollary 1: separable functions of b
// real blocks whose Δ has a closed form, chosen to come close to the bound.
type Corollary1Params struct {
	Shapes []string  // "sharp": f = Σ s|xᵢ|; "cosine": f = Σ s(1−cos xᵢ), weakly convex with γ = s
	Slopes []float64 // s ≤ 1; noise of ±√(1−s²) a coordinate makes every Lᵢ ≤ 1
	Blocks []int     // b
	Steps  []int     // T
	Start  float64   // x¹ᵢ
	Gamma  float64   // γ of the sharp function, which is convex: any γ > 0
	Runs   int       // independent runs a seed
	Seeds  int

	Confidence float64 // of the intervals
}

// Corollary1Quick and Corollary1Paper differ in T and in the number of runs.
var (
	Corollary1Quick = Corollary1Params{
		Shapes: []string{"sharp", "cosine"}, Slopes: []float64{0.03, 0.1, 0.3, 1}, Blocks: []int{1, 4},
		Steps: []int{1000, 10000, 100000}, Start: 1, Gamma: 1, Runs: 4, Seeds: 5, Confidence: 0.95,
	}
	Corollary1Paper = Corollary1Params{
		Shapes: []string{"sharp", "cosine"}, Slopes: []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}, Blocks: []int{1, 4, 16},
		Steps: []int{1000, 10000, 100000, 1000000}, Start: 1, Gamma: 1, Runs: 8, Seeds: 10, Confidence: 0.95,
	}
)

const (
	corollary1ID     = "li2021/corollary1"
	corollary1Title  = "Corollary 1: the constant that follows, the one that is printed, and the one that is needed"
	corollary1Source = "Li+ 2021, Corollary 1"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: corollary1ID, Paper: "Li+ 2021", Title: corollary1Title, Kind: "theorem",
		Notebook: "notebooks/li2021/corollary1_constant.ipynb",
		Cost:     catalog.Cost{Quick: "about 5 s on two cores", Paper: "about 15 minutes on two cores"},
	}, Corollary1Quick, Corollary1Paper, Corollary1)
}

//go:embed corollary1.go theorem_math.go
var corollary1Sources embed.FS

var corollary1Theory = theory{corollary1ID, corollary1Title, sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(corollary1Sources)
})}

// corollary1Trial is what some runs depend on.
type corollary1Trial struct {
	Shape  string  `json:"shape"`
	Slope  float64 `json:"slope"`
	Blocks int     `json:"blocks"`
	Steps  int     `json:"steps"`
	Start  float64 `json:"start"`
	Gamma  float64 `json:"gamma"`
	Runs   int     `json:"runs"`
}

// Corollary1Case is a trial with a record for every seed.
type Corollary1Case struct {
	corollary1Trial
	records []*runs.Record
}

// Corollary1Result holds the runs.
type Corollary1Result struct {
	Params Corollary1Params
	Scale  string // "quick", "paper" or empty for own parameters
	Cases  []Corollary1Case
}

// Corollary1 runs Algorithm 2 at the printed step η = √(2b(f¹−f*)/(γL²T)) and
// measures the exact mean of Δ_{1/(2γ)} over all iterates, in units of
// L√(2bγ(f¹−f*)/T). Cancelling ctx keeps what is finished.
func Corollary1(ctx context.Context, p Corollary1Params) (*Corollary1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &Corollary1Result{Params: p, Scale: runs.Scale(ctx)}
	var trials []trialOf[corollary1Trial]
	for _, shape := range p.Shapes {
		for _, slope := range p.Slopes {
			for _, b := range p.Blocks {
				for _, steps := range p.Steps {
					t := corollary1Trial{shape, slope, b, steps, p.Start, p.Gamma, p.Runs}
					if shape == "cosine" {
						t.Gamma = slope
					}
					r.Cases = append(r.Cases, Corollary1Case{corollary1Trial: t})
					for _, seed := range runs.Seeds(p.Seeds) {
						trials = append(trials, trialOf[corollary1Trial]{t, seed, 1 + steps/1000})
					}
				}
			}
		}
	}
	records, err := runTheory(ctx, corollary1Theory, trials, func(ctx context.Context, t corollary1Trial, seed uint64) (runs.Result, error) {
		return t.compute(ctx, seed)
	})
	if err != nil {
		return nil, err
	}
	for i := range r.Cases {
		r.Cases[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	return r, nil
}

func (p Corollary1Params) check() error {
	var c checks
	for i, shape := range p.Shapes {
		c.expect((shape == "sharp" || shape == "cosine") && !slices.Contains(p.Shapes[:i], shape), "Shapes has %q, want sharp and cosine at most once each", shape)
	}
	c.expect(len(p.Shapes) > 0, "Shapes is empty")
	ascending(&c, "Slopes", p.Slopes, 1, 0)
	c.expect(len(p.Slopes) == 0 || slices.Max(p.Slopes) <= 1, "Slopes is %v, want at most 1, so that L = √b", p.Slopes)
	ascending(&c, "Blocks", p.Blocks, 1, 0)
	ascending(&c, "Steps", p.Steps, 1, 0)
	c.expect(p.Start > 0 && p.Start <= math.Pi, "Start is %v, want between 0 and π: at 0 there is nothing to reach", p.Start)
	c.expect(p.Gamma > 0 && !math.IsInf(p.Gamma, 0), "Gamma is %v, want more than 0", p.Gamma)
	c.expect(p.Runs >= 1, "Runs is %d, want at least 1", p.Runs)
	c.common(p.Seeds, p.Confidence)
	return c.err("corollary 1")
}

// drop is f¹ − f*.
func (t corollary1Trial) drop() float64 {
	if t.Shape == "sharp" {
		return float64(t.Blocks) * t.Slope * t.Start
	}
	return float64(t.Blocks) * t.Slope * (1 - math.Cos(t.Start))
}

// unit is L√(2bγ(f¹−f*)/T), with L² = b.
func (t corollary1Trial) unit() float64 {
	b := float64(t.Blocks)
	return math.Sqrt(b * 2 * b * t.Gamma * t.drop() / float64(t.Steps))
}

// printed is the step of Corollary 1.
func (t corollary1Trial) printed() float64 {
	return math.Sqrt(2 * t.drop() / (t.Gamma * float64(t.Steps))) // b/L² = 1
}

// gradient is f′ of one coordinate; at the kink of the sharp function it is 0.
func (t corollary1Trial) gradient(x float64) float64 {
	if t.Shape == "cosine" {
		return t.Slope * math.Sin(x)
	}
	switch {
	case x > 0:
		return t.Slope
	case x < 0:
		return -t.Slope
	}
	return 0
}

// stationarity is Δ_λ of one coordinate, (x − prox_λ(x))²/λ² with λ = 1/(2γ):
// min(s, |x|/λ)² for the sharp function, f′(p)² with p + λs·sin p = x for the
// cosine, which for λs = ½ is solved by Newton's method.
func (t corollary1Trial) stationarity(x float64) float64 {
	lambda := 1 / (2 * t.Gamma)
	if t.Shape == "sharp" {
		least := math.Min(t.Slope, math.Abs(x)/lambda)
		return least * least
	}
	x = math.Remainder(x, 2*math.Pi)
	p := x
	for range 50 {
		sin, cos := math.Sincos(p)
		move := (p + lambda*t.Slope*sin - x) / (1 + lambda*t.Slope*cos)
		p -= move
		if math.Abs(move) < 1e-14 {
			break
		}
	}
	g := t.Slope * math.Sin(p)
	return g * g
}

// compute is the mean of Δ over iterates and runs.
func (t corollary1Trial) compute(ctx context.Context, seed uint64) (runs.Result, error) {
	total := 0.0
	for i := range t.Runs {
		delta, err := t.run(ctx, runs.RNG(seed, "corollary 1", strconv.Itoa(i)))
		if err != nil {
			return runs.Result{}, err
		}
		total += delta / float64(t.Runs)
	}
	return runs.Result{Values: map[string]float64{"delta": total, "constant": total / t.unit()}}, nil
}

// run is Algorithm 2 over real blocks; only the block that moves changes its
// part of Δ.
func (t corollary1Trial) run(ctx context.Context, rng *rand.Rand) (float64, error) {
	eta, noise := t.printed(), math.Sqrt(1-t.Slope*t.Slope)
	x, parts := make([]float64, t.Blocks), make([]float64, t.Blocks)
	now, sum := 0.0, 0.0
	for i := range x {
		x[i] = t.Start
		parts[i] = t.stationarity(x[i])
		now += parts[i]
	}
	for step := range t.Steps {
		if err := everySo(ctx, step); err != nil {
			return 0, err
		}
		sum += now
		bits := rng.Uint64()
		i := int(bits >> 32 % uint64(t.Blocks))
		x[i] -= eta * (t.gradient(x[i]) + noise*float64(2*int(bits&1)-1))
		delta := t.stationarity(x[i])
		now += delta - parts[i]
		parts[i] = delta
	}
	return sum / float64(t.Steps), nil
}

// follows is the constant that Theorem 2 gives with γ̂ = 2γ and a constant step
// of so many times the printed one, in units of L√(2bγ(f¹−f*)/T): the bound
//
//	2b (f¹−f*)/(Tη) + 2γL²η ,   with min_u f(u) + γ̂D(u‖x¹) ≤ f¹ ,
//
// evaluated, not simplified, at numbers that it does not depend on.
func follows(times float64) float64 {
	const gamma, hat, l2, b, drop, steps = 0.7, 1.4, 3.0, 5.0, 2.0, 1e4
	eta := times * math.Sqrt(2*b*drop/(gamma*l2*steps))
	bound := hat * b / (hat - gamma) * (drop + hat*l2/(2*b)*steps*eta*eta) / (steps * eta)
	return bound / math.Sqrt(l2*2*b*gamma*drop/steps)
}

// callsFor is the number of oracle calls after which c·L√(2bγ(f¹−f*)/T) is ε, in
// units of γbL²(f¹−f*)/ε², found by bisection on T.
func callsFor(c float64) float64 {
	const gamma, l2, b, drop, epsilon = 0.7, 3.0, 5.0, 2.0, 0.01
	lo, hi := 1.0, 1e12
	for range 200 {
		middle := (lo + hi) / 2
		if c*math.Sqrt(l2*2*b*gamma*drop/middle) > epsilon {
			lo = middle
		} else {
			hi = middle
		}
	}
	return lo / (gamma * b * l2 * drop / (epsilon * epsilon))
}

// bestStep is the step, in units of the printed one, with the least constant,
// by golden-section search.
func bestStep() (times, constant float64) {
	lo, hi, ratio := 0.01, 10.0, (math.Sqrt(5)-1)/2
	for hi-lo > 1e-9 {
		a, b := hi-ratio*(hi-lo), lo+ratio*(hi-lo)
		if follows(a) < follows(b) {
			hi = b
		} else {
			lo = a
		}
	}
	return (lo + hi) / 2, follows((lo + hi) / 2)
}

// Records are the keys of the trials.
func (r *Corollary1Result) Records() []string {
	var keys []string
	for _, c := range r.Cases {
		for _, record := range c.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}

// constants are E Δ over the unit, one a seed.
func (c Corollary1Case) constants() []float64 {
	var out []float64
	for _, record := range c.records {
		out = append(out, record.Values["constant"])
	}
	return out
}

// Figure draws the constant that each function needs, a panel a shape, with
// those of the paper and of Theorem 2.
func (r *Corollary1Result) Figure() plots.Figure {
	_, best := bestStep()
	var row []plots.Panel
	for i, shape := range r.Params.Shapes {
		p := plots.Panel{
			Title: map[string]string{"sharp": "$f = Σ s|x_i|$", "cosine": "$f = Σ s(1 − cos x_i)$"}[shape],
			X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10}, Y: plots.Axis{Scale: plots.Log10},
		}
		if i == 0 {
			p.Y.Label = "$E Δ$ / $L(2bγF/T)^{1/2}$"
		}
		for _, slope := range r.Params.Slopes {
			p.Series = append(p.Series, r.curve(shape, slope))
		}
		p.Series = append(p.Series, plots.HLine("printed: 2", 2), plots.HLine("from Theorem 2: 3", follows(1)),
			plots.HLine("from Theorem 2, best step: 2.83", best))
		row = append(row, p)
	}
	return plots.Figure{
		Name: "li2021-corollary1", Style: plots.ICML.Text(), Panels: [][]plots.Panel{row},
		Caption: fmt.Sprintf("$b$ = %d, the printed step, %d seeds of %d runs, geometric mean over the seeds with %v %% intervals; $F = f^1 − f^*$.%s",
			r.Params.Blocks[0], r.Params.Seeds, r.Params.Runs, 100*r.Params.Confidence, scaleNote(r.Scale)),
		Meta: meta(corollary1Title, r.Scale, r.Params),
	}
}

func (r *Corollary1Result) curve(shape string, slope float64) plots.Series {
	s := plots.Series{Label: fmt.Sprintf("$s$ = %v", slope), Interval: plots.ErrorBars}
	for _, c := range r.Cases {
		if c.Shape == shape && c.Slope == slope && c.Blocks == r.Params.Blocks[0] {
			addGeometric(&s, float64(c.Steps), c.constants(), r.Params.Confidence)
		}
	}
	return s
}

// Check judges the printed constants: whether they follow from Theorem 2, and
// whether any of the functions needs more.
func (r *Corollary1Result) Check() []runs.Claim {
	times, best := bestStep()
	derived := exactly(runs.NewClaim("LI024, LI025: the constant 2 of the bound follows from Theorem 2", corollary1Source), 2, follows(1), 1e-9)
	derived.Note = "our finding: Theorem 2 with γ̂ = 2γ at the printed step gives 3; the printed 2 would need γ in place of γ̂ in the term with L²"
	derived.Note += fmt.Sprintf("; the least that it gives is %.4f = 2√2, at %.4f = 1/√2 of the printed step", best, times)
	calls := exactly(runs.NewClaim("LI026: T at which the printed bound is ε, over γbL²(f¹−f*)/ε²", corollary1Source), 8, callsFor(2), 1e-9)
	calls.Note = fmt.Sprintf("with the constants that follow from Theorem 2 it is %.4g at the printed step and %.4g at the best one", callsFor(follows(1)), callsFor(best))
	theorem := exactly(runs.NewClaim("LI016: the constant of Theorem 1's T is Corollary 1's with b = 2, f* ≥ 0", theorem1Source), theorem1Constant, 2*callsFor(2), 1e-9)
	theorem.Note = fmt.Sprintf("with the constants that follow it would be %.4g and %.4g", 2*callsFor(follows(1)), 2*callsFor(best))
	return append([]runs.Claim{derived, calls, theorem}, r.checkNeeded(), r.checkGrowth())
}

// checkNeeded judges the printed bound itself on all functions.
func (r *Corollary1Result) checkNeeded() runs.Claim {
	c := runs.NewClaim("LI025: the constant of the bound that the worst function needs", corollary1Source)
	c.Paper = 2
	var lists [][]float64
	for _, one := range r.Cases {
		lists = append(lists, one.constants())
	}
	s, err := worst(lists, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	at := slices.MaxFunc(r.Cases, func(a, b Corollary1Case) int {
		if mean(a.constants()) < mean(b.constants()) {
			return -1
		}
		return 1
	})
	c.Note = fmt.Sprintf("at most 2 is no contradiction to the printed bound; worst of %d: %s, s = %v, b = %d, T = %d", len(lists), at.Shape, at.Slope, at.Blocks, at.Steps)
	return atMost(c, s, 2)
}

// checkGrowth judges that the worst constant does not grow with T: that E Δ
// falls as T^−½ where the bound is tightest.
func (r *Corollary1Result) checkGrowth() runs.Claim {
	c := runs.NewClaim("LI025: E Δ of the worst function falls as T^−½", corollary1Source)
	c.Paper = -0.5
	if len(r.Params.Steps) < 2 {
		c.Note = "not run: a slope needs two T"
		return c
	}
	const tolerance = 0.1 // the slopes s are a grid
	c.Tolerance = tolerance
	var x []float64
	curves := make([][]float64, r.Params.Seeds)
	for _, steps := range r.Params.Steps {
		x = append(x, float64(steps))
		for seed := range curves {
			most := 0.0
			for _, one := range r.Cases {
				if one.Steps == steps {
					most = math.Max(most, one.records[seed].Values["constant"])
				}
			}
			curves[seed] = append(curves[seed], most/math.Sqrt(float64(steps)))
		}
	}
	s, err := slopes(x, curves, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Note = "slope of the largest E Δ/(L√(2bγF)) of all functions over T"
	c = atMost(c, s, -0.5+tolerance)
	if c.Holds == runs.Holds && float64(s.Hi) < -0.5-tolerance {
		c.Note += "; steeper than the bound: none of the functions is at its worst at large T"
	}
	return c
}
