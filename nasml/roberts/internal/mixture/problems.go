package mixture

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"

	"github.com/gomlx/compute"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/trial"
)

// Violations of the paper's assumptions, of size Level each.
const (
	None         = "none"
	NoisyLabels  = "noise"   // y = f_σα*(x, W*) + ε, ε normal with Level standard deviations of f
	WrongWeights = "weights" // W = W* + Level·(a matrix drawn as W*) with labels of W*
	WrongAlpha   = "alpha"   // α = (1 − Level)α* + Level·(a point drawn as α*) with labels of α*
	SignLabels   = "sign"    // y = ±1, the sign of f_σα*(x, W*)
	NotInterior  = "vertex"  // one weight of α* is 0: Assumption 2, with Assumption 3 as it was
)

// Problems are random two-layer problems: what a record of them depends on.
type Problems struct {
	Activations   []string `json:"activations"`   // the pool
	Probe         string   `json:"probe"`         // values of the activations
	Operations    int      `json:"operations"`    // h of them are drawn from the pool
	Only          []string `json:"only"`          // or these of the pool, always
	Inputs        int      `json:"inputs"`        // k, x ∼ N(0, I)
	Width         int      `json:"width"`         // d hidden units, v ∼ N(0, I/d)
	Spread        float64  `json:"spread"`        // standard deviation of Wᵀx, W with independent normal entries
	Points        int      `json:"points"`        // n: the sample is the population
	Concentration float64  `json:"concentration"` // of the symmetric Dirichlet distribution of α; 1: uniform
	Count         int      `json:"count"`         // problems of a record
	Violation     string   `json:"violation"`
	Level         float64  `json:"level"`
}

type problem struct {
	x, v           []float64
	w, found       []float64 // W* and W
	chosen         []int     // operations of the pool
	alpha, teacher []float64 // α and α*
	noise          *rand.Rand
}

// draw draws problem number i of a seed. The violation has streams of its own:
// problems of the same number differ in nothing else.
func (p Problems) draw(seed uint64, i int) problem {
	rng := trial.RNG(seed, "problem", strconv.Itoa(i))
	other := trial.RNG(seed, "violation", p.Violation, strconv.Itoa(i))
	std := p.Spread / math.Sqrt(float64(p.Inputs))
	q := problem{
		x:      trial.Normals(rng, p.Points*p.Inputs, 1),
		w:      trial.Normals(rng, p.Inputs*p.Width, std),
		v:      trial.Normals(rng, p.Width, 1/math.Sqrt(float64(p.Width))),
		chosen: rng.Perm(len(p.Activations))[:p.Operations],
		noise:  other,
	}
	for i, name := range p.Only {
		q.chosen[i] = slices.Index(p.Activations, name)
	}
	q.teacher = Dirichlet(rng, p.Operations, p.Concentration)
	if p.Violation == NotInterior {
		q.teacher[other.IntN(p.Operations)] = 0
		floats.Scale(1/floats.Sum(q.teacher), q.teacher)
	}
	q.found, q.alpha = q.w, q.teacher
	switch p.Violation {
	case WrongWeights:
		q.found = trial.Normals(other, p.Inputs*p.Width, p.Level*std)
		floats.Add(q.found, q.w)
	case WrongAlpha:
		q.alpha = Dirichlet(other, p.Operations, p.Concentration)
		floats.Scale(p.Level, q.alpha)
		floats.AddScaled(q.alpha, 1-p.Level, q.teacher)
	}
	return q
}

func (p Problems) labels(q problem, teacher [][]float64) []float64 {
	y := Combine(q.teacher, teacher)
	switch p.Violation {
	case NoisyLabels:
		AddNoise(y, p.Level, q.noise)
	case SignLabels:
		for i := range y {
			y[i] = math.Copysign(1, y[i])
		}
	}
	return y
}

// AddNoise adds normal noise to labels y, of so many standard deviations of theirs.
func AddNoise(y []float64, level float64, rng *rand.Rand) {
	std := stat.PopStdDev(y, nil)
	for i := range y {
		y[i] += level * std * rng.NormFloat64()
	}
}

// Dirichlet draws from the symmetric Dirichlet distribution.
func Dirichlet(rng *rand.Rand, h int, concentration float64) []float64 {
	gamma := distuv.Gamma{Alpha: concentration, Beta: 1, Src: rng}
	alpha := make([]float64, h)
	for floats.Sum(alpha) == 0 { // a small concentration underflows
		for i := range alpha {
			alpha[i] = gamma.Rand()
		}
	}
	floats.Scale(1/floats.Sum(alpha), alpha)
	return alpha
}

// together is how many problems are evaluated in one call of the device.
const together = 25

// kept are the pairs of a record that are kept as points: pictures show some hundred, of all records together.
const kept = 30

// Evaluators keeps the compiled graphs of a run: compiling one takes longer than a record.
type Evaluators struct {
	backend compute.Backend
	all     map[string]*Evaluator
}

// NewEvaluators makes evaluators on a backend.
func NewEvaluators(b compute.Backend) *Evaluators { return &Evaluators{b, map[string]*Evaluator{}} }

// Of is the evaluator of the operations and sizes of some problems.
func (es *Evaluators) Of(p Problems) (*Evaluator, error) {
	s := Sizes{min(together, p.Count), p.Points, p.Inputs, p.Width}
	key := fmt.Sprint(p.Activations, s)
	if es.all[key] == nil {
		e, err := NewEvaluator(es.backend, p.Activations, s)
		if err != nil {
			return nil, err
		}
		es.all[key] = e
	}
	return es.all[key], nil
}

// Close frees what was compiled.
func (es *Evaluators) Close() {
	for _, e := range es.all {
		e.Close()
	}
}

// Simulate checks the problems of a seed and counts what it finds.
func (p Problems) Simulate(ctx context.Context, es *Evaluators, seed uint64, step func(int)) (trial.Result, error) {
	e, err := es.Of(p)
	if err != nil {
		return trial.Result{}, err
	}
	t := newTally()
	for first := 0; first < p.Count; first += e.Count {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		reports, err := p.reports(e, seed, first)
		if err != nil {
			return trial.Result{}, err
		}
		n := min(e.Count, p.Count-first)
		for _, r := range reports[:n] {
			t.add(r)
		}
		step(n)
	}
	return trial.Result{Values: t.values, Series: t.series}, nil
}

func (p Problems) reports(e *Evaluator, seed uint64, first int) ([]*Report, error) {
	drawn := make([]problem, e.Count)
	var x, w, found, v []float64
	_ = parallel(e.Count, func(i int) error { drawn[i] = p.draw(seed, first+i); return nil })
	for _, q := range drawn {
		x, w, found, v = append(x, q.x...), append(w, q.w...), append(found, q.found...), append(v, q.v...)
	}
	outputs, err := e.Outputs(x, found, v)
	if err != nil {
		return nil, err
	}
	teachers := outputs
	if p.Violation == WrongWeights {
		if teachers, err = e.Outputs(x, w, v); err != nil {
			return nil, err
		}
	}
	reports := make([]*Report, e.Count)
	err = parallel(e.Count, func(i int) error {
		q := drawn[i]
		y := p.labels(q, choose(teachers[i], q.chosen))
		var err error
		reports[i], err = Check(q.alpha, choose(outputs[i], q.chosen), y)
		return err
	})
	return reports, err
}

func choose(rows [][]float64, which []int) [][]float64 {
	out := make([][]float64, len(which))
	for i, k := range which {
		out[i] = rows[k]
	}
	return out
}

// parallel calls f for 0 … n−1 on all cores and returns the error of the smallest i.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		all.Go(func() error {
			if err := f(i); err != nil {
				errs[i] = fmt.Errorf("problem %d: %w", i, err)
			}
			return nil
		})
	}
	_ = all.Wait()
	return cmp.Or(errs...)
}

// CountsOfPairs are the counts of pairs; those of one problem are not independent.
var CountsOfPairs = []string{"pairs", "right", "condition", "guaranteed", "compared", "prior"}

// Bins of max α, each a tenth wide.
const Bins = 10

type tally struct {
	values map[string]float64
	series map[string][]float64
}

func newTally() *tally {
	t := &tally{map[string]float64{}, map[string][]float64{}}
	for _, name := range []string{"bin_problems", "bin_right", "bin_condition", "bin_sparse"} {
		t.series[name] = make([]float64, Bins)
	}
	return t
}

// count counts up where yes; a count of none is a number, too.
func (t *tally) count(name string, yes bool) { t.values[name] += trial.Indicator(yes) }

func (t *tally) most(name string, x float64) { t.values[name] = max(t.values[name], x) }

func (t *tally) add(r *Report) {
	right, ranked := r.ArgMaxRight(), r.RankingRight()
	first, all := r.Conditions()
	firstAll, every := r.Distinct && first == len(r.Alpha)-1, r.Distinct && all == len(r.Pairs)
	t.count("problems", true)
	t.count("ordered", r.Ordered && r.Distinct)
	t.count("interior", r.Interior)
	t.count("realized", r.Realized)
	t.count("argmax", right)
	t.count("ranking", ranked)
	t.count("first", firstAll)
	t.count("first_argmax", firstAll && right)
	t.count("every", every)
	t.count("every_ranking", every && ranked)
	t.count("sparse", r.Sparse())
	t.count("sparse_argmax", r.Sparse() && right)
	for _, p := range r.Pairs {
		t.addPair(r, p)
	}
	t.addErrors(r)
	bin := min(int(Bins*r.Alpha[r.ArgMax]), Bins-1)
	for name, yes := range map[string]bool{
		"bin_problems": true, "bin_right": right, "bin_condition": firstAll, "bin_sparse": r.Sparse(),
	} {
		t.series[name][bin] += trial.Indicator(yes)
	}
	near, far, fresh := math.Inf(1), 0.0, len(t.series["between"]) == 0
	for i, row := range r.Between {
		if fresh { // of the first problem alone: D₂₁, D₃₁, D₃₂, …
			t.series["between"] = append(t.series["between"], row[:i]...)
		}
		for _, d := range row[:i] {
			near, far = min(near, d), max(far, d)
		}
	}
	if far > 0 { // else all operations are the same, and equally far
		t.values["unequal"] += math.Log(far/max(near, 1e-12*far)) / 2 // of distances √D
	}
}

// addPair counts a pair Lᵢ < Lⱼ. Where α or the losses are so near to each other
// that rounding decides, the criteria are not compared.
func (t *tally) addPair(r *Report, p Pair) {
	t.count("pairs", true)
	t.count("right", p.Right)
	t.count("condition", p.Condition)
	t.count("condition_right", p.Condition && p.Right)
	t.count("guaranteed", p.Guaranteed)
	t.count("guaranteed_right", p.Guaranteed && p.Right)
	t.count("prior", p.Prior)
	t.count("prior_right", p.Prior && p.Right)
	ai, aj := r.Alpha[p.I], r.Alpha[p.J]
	near := math.Abs(ai-aj) < 1e-6 || r.Loss[p.J]-r.Loss[p.I] < 1e-6*r.Loss[p.J] || math.Sqrt(r.Loss[p.I]) < 1e-6*r.size
	if near || !p.Margin.Valid() || !p.Threshold.Valid() {
		return
	}
	far, losses := float64(r.Far[p.I]/r.Far[p.J]), r.Loss[p.I]/r.Loss[p.J]
	t.count("compared", true)
	t.count("criterion_wrong", (far > losses) != p.Right)
	t.count("threshold_wrong", ai-aj <= float64(p.Threshold))
	if len(t.series["far"]) < kept && far > 0 && losses > 0 && aj > 0 {
		t.series["far"] = append(t.series["far"], far)
		t.series["losses"] = append(t.series["losses"], losses)
		t.series["alphas"] = append(t.series["alphas"], ai/aj)
		t.series["points"] = append(t.series["points"], trial.Indicator(p.Right))
	}
}

// addErrors keeps the largest errors of the identities Lᵢ = (1−αᵢ)²Aᵢ and α_k = (1−αᵢ)γ_k. Those of the first are
// errors of the roots, relative to the outputs: Lᵢ is a mean of squared differences of outputs, and near a vertex of
// the simplex it is as small as their rounding.
func (t *tally) addErrors(r *Report) {
	for i := range r.Alpha {
		gamma := Factor(r.Alpha, i)
		if gamma == nil {
			continue
		}
		t.most("identity", r.rootError(i, r.root(i)))
		t.most("factor", math.Abs(floats.Sum(gamma)-1))
		for k, a := range r.Alpha {
			if k != i {
				t.most("factor", math.Abs(a-(1-r.Alpha[i])*gamma[k]))
				if floats.Min(r.Alpha) > 1e-12 { // else rounding makes a γ 0 or 1
					t.count("inside", gamma[k] > 0 && (gamma[k] < 1 || len(gamma) == 2))
					t.count("gammas", true)
				}
			}
		}
	}
	again := Sticks(StickBreaking(r.Alpha))
	t.most("sticks", floats.Distance(again, r.Alpha, math.Inf(1)))
	if len(r.Alpha) == 2 {
		for at, i := range r.Ranking { // L₁ = α₂²D and L₂ = α₁²D, the better operation first
			t.most("identity"+strconv.Itoa(at+1), r.rootError(i, r.Alpha[1-i]*math.Sqrt(r.Between[0][1])))
		}
	}
}

// Found is what a record of a search keeps of the report on what it found.
func Found(r *Report, teacher []float64) trial.Result {
	t := newTally()
	t.add(r)
	clear(t.series)
	t.values["mixture"], t.values["best_loss"] = r.Mixture, r.Loss[r.Best]
	t.values["least_alpha"] = floats.Min(r.Alpha)
	t.values["alpha_error"] = floats.Distance(r.Alpha, teacher, math.Inf(1))
	for i, l := range r.Loss {
		// |√Lᵢ − (1 − αᵢ)√Aᵢ| ≤ √R by the triangle inequality.
		off := math.Abs(math.Sqrt(l) - r.root(i))
		if l > 0 {
			t.most("root_error", off/math.Sqrt(l))
		}
		t.count("bound_wrong", off > math.Sqrt(r.Mixture)+Tolerance*r.size)
		t.count("bounds", true)
	}
	t.series["alpha"], t.series["loss"] = r.Alpha, r.Loss
	return trial.Result{Values: t.values, Series: t.series}
}

// root is (1−αᵢ)√Aᵢ, which is 0 where αᵢ is 1.
func (r *Report) root(i int) float64 {
	if !r.Far[i].Valid() {
		return 0
	}
	return Rest(r.Alpha, i) * math.Sqrt(float64(r.Far[i]))
}

// rootError is |√Lᵢ − root|, relative to the outputs.
func (r *Report) rootError(i int, root float64) float64 {
	if r.size == 0 {
		return 0 // all outputs are 0, and so are all losses
	}
	return math.Abs(math.Sqrt(r.Loss[i])-root) / r.size
}
