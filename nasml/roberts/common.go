package roberts

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// ProblemParams are what the theorems' random problems have in common. The paper
// has no experiment: all values are ours.
type ProblemParams struct {
	Activations   []string  // the pool that operations are drawn from, see [Activation]; own ones are welcome
	Inputs        int       // k: x ∼ N(0, I_k)
	Width         int       // d hidden units; v ∼ N(0, I_d/d)
	Spread        float64   // standard deviation of the pre-activations Wᵀx
	Points        int       // n points, which are the whole population
	Concentration float64   // of the symmetric Dirichlet distribution of α; 1: uniform on the simplex
	Problems      int       // a seed
	Seeds         int       // records of so many problems each
	Noise         []float64 // levels of label noise, in standard deviations of the signal
	WeightErrors  []float64 // levels of W − W*, in standard deviations of W*
	AlphaErrors   []float64 // levels of α − α*: α = (1 − level)α* + level·(another draw)
	Sign          bool      // also labels ±1, the paper's classification setting, which Assumption 3 excludes
	Confidence    float64   // of the intervals
}

// pool has saturating, unbounded, odd and even activations, and with the leaky
// ReLU one that is a mixture of two others.
var pool = []string{"relu", "tanh", "identity", "sigmoid", "sin", "softplus", "square", "0.8*relu+0.2*identity"}

var quickProblems = ProblemParams{
	Activations: pool, Inputs: 4, Width: 8, Spread: 2, Points: 128, Concentration: 1,
	Problems: 250, Seeds: 4,
	Noise: []float64{0.01, 0.1, 1}, WeightErrors: []float64{0.01, 0.1, 1}, AlphaErrors: []float64{0.01, 0.1, 1},
	Sign: true, Confidence: 0.95,
}

var paperProblems = func() ProblemParams {
	p := quickProblems
	p.Points, p.Problems, p.Seeds = 2048, 1000, 10
	levels := []float64{0.01, 0.03, 0.1, 0.3, 1}
	p.Noise, p.WeightErrors, p.AlphaErrors = levels, levels, levels
	return p
}()

// check names everything that makes no sense, for problems of up to h
// operations.
func (p ProblemParams) check(h int) error {
	var wrong []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	if _, err := activations(p.Activations); err != nil {
		wrong = append(wrong, err.Error())
	}
	add(len(p.Activations) < h, "Activations has %d, %d operations are drawn from it", len(p.Activations), h)
	add(p.Inputs < 1 || p.Width < 1 || p.Points < 1, "Inputs = %d, Width = %d, Points = %d: all must be at least 1", p.Inputs, p.Width, p.Points)
	add(!(p.Spread > 0) || math.IsInf(p.Spread, 0), "Spread is %v, want a positive number", p.Spread)
	add(!(p.Concentration > 0) || math.IsInf(p.Concentration, 0), "Concentration is %v, want a positive number", p.Concentration)
	add(p.Problems < 1 || p.Seeds < 1, "Problems = %d, Seeds = %d: both must be at least 1", p.Problems, p.Seeds)
	add(!(p.Confidence > 0 && p.Confidence < 1), "Confidence is %v, want a number between 0 and 1", p.Confidence)
	for name, levels := range map[string][]float64{"Noise": p.Noise, "WeightErrors": p.WeightErrors, "AlphaErrors": p.AlphaErrors} {
		for _, l := range levels {
			add(!(l > 0) || math.IsInf(l, 0) || (name == "AlphaErrors" && l > 1), "%s has %v, want positive levels (of AlphaErrors at most 1)", name, l)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return catalog.Usagef("%s", strings.Join(wrong, "; "))
	}
	return nil
}

// base are problems that satisfy the assumptions.
func (p ProblemParams) base(h int) problems {
	return problems{
		Activations: p.Activations, Operations: h, Inputs: p.Inputs, Width: p.Width, Spread: p.Spread,
		Points: p.Points, Concentration: p.Concentration, Count: p.Problems, Violation: None,
	}
}

// only are base problems of these operations of the pool.
func (p ProblemParams) only(names []string) problems {
	q := p.base(len(names))
	q.Only = names
	return q
}

// splitSpace is the operations of "relu/tanh/sin".
func splitSpace(space string) []string { return strings.Split(space, "/") }

// normalized divides weights by their sum.
func normalized(weights []float64) []float64 {
	out := slices.Clone(weights)
	floats.Scale(1/floats.Sum(out), out)
	return out
}

// operationsOf splits "relu/tanh/sin" into activations, each of the pool.
func (p ProblemParams) operationsOf(space string) ([]string, error) {
	names := splitSpace(space)
	for i, name := range names {
		if !slices.Contains(p.Activations, name) || slices.Contains(names[:i], name) {
			return nil, catalog.Usagef("space %q: %q must be in Activations and come once: %v", space, name, p.Activations)
		}
	}
	return names, nil
}

// violated are the same problems with every violation that is asked for.
func (p ProblemParams) violated(h int) []problems {
	var all []problems
	add := func(kind string, levels ...float64) {
		for _, l := range levels {
			q := p.base(h)
			q.Violation, q.Level = kind, l
			all = append(all, q)
		}
	}
	add(NoisyLabels, p.Noise...)
	add(WrongWeights, p.WeightErrors...)
	add(WrongAlpha, p.AlphaErrors...)
	if p.Sign {
		add(SignLabels, 0)
	}
	return all
}

// shippedRecords are the trials that the project ships, so that nobody has to
// repeat them to see the results at the paper's scale.
//
//go:embed records
var shippedRecords embed.FS

//go:embed roberts.go factor.go check.go problems.go
var problemSources embed.FS

var problemCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(problemSources, supernet.Sources)
})

// group is the problems of one kind, all seeds together.
type group struct {
	problems
	records []*runs.Record
}

// simulateAll reads or computes the records of all kinds, a record a seed.
func simulateAll(ctx context.Context, id string, kinds []problems, seeds int) ([]group, error) {
	store, err := runs.FromContextWith(ctx, shippedRecords, path.Base(id))
	if err != nil {
		return nil, err
	}
	trials, err := problemTrials(id, kinds, seeds)
	if err != nil {
		return nil, err
	}
	progress := runs.ProgressFrom(ctx)
	total, computed := 0, 0
	for _, t := range trials {
		total += t.Params.(problems).Count
	}
	progress.Start(total, id)
	defer progress.Done()
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	es := &evaluators{b, map[string]*evaluator{}}
	defer es.close()
	records, err := store.Compute(ctx, trials, runs.Options{MaxBatch: 1}, func(ctx context.Context, job *runs.Job) error {
		job.Backend, job.Device = backend.Describe(b)
		p := job.Trials[0].Params.(problems)
		result, err := p.simulate(ctx, es, job.Trials[0].Seed, func(n int) {
			computed += n
			progress.Step(n, fmt.Sprintf("h = %d, violation: %s %v", p.Operations, p.Violation, p.Level))
		})
		if err != nil {
			return err
		}
		return job.Done(0, result)
	})
	if err != nil {
		return nil, err
	}
	progress.Skip(total - computed)
	groups := make([]group, len(kinds))
	for i, kind := range kinds {
		groups[i] = group{kind, records[i*seeds : (i+1)*seeds]}
	}
	return groups, nil
}

func problemTrials(id string, kinds []problems, seeds int) ([]runs.Trial, error) {
	code, err := problemCode()
	if err != nil {
		return nil, err
	}
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	probes := map[string]string{}
	var trials []runs.Trial
	for i := range kinds {
		names := strings.Join(kinds[i].Activations, "\n")
		if _, ok := probes[names]; !ok {
			if probes[names], err = probe(b, kinds[i].Activations); err != nil {
				return nil, err
			}
		}
		kinds[i].Probe = probes[names]
		for _, seed := range runs.Seeds(seeds) {
			trials = append(trials, runs.Trial{Figure: id, Params: kinds[i], Seed: seed, Code: code})
		}
	}
	return trials, nil
}

func (g group) sum(name string) float64 {
	var sum float64
	for _, r := range g.records {
		sum += r.Values[name]
	}
	return sum
}

func (g group) most(name string) float64 {
	var most float64
	for _, r := range g.records {
		most = max(most, r.Values[name])
	}
	return most
}

// series joins a series of all records.
func (g group) series(name string) []float64 {
	var all []float64
	for _, r := range g.records {
		all = append(all, r.Series[name]...)
	}
	return all
}

// sumSeries adds a series up over the records.
func (g group) sumSeries(name string) []float64 {
	var sum []float64
	for _, r := range g.records {
		for i, x := range r.Series[name] {
			if i == len(sum) {
				sum = append(sum, 0)
			}
			sum[i] += x
		}
	}
	return sum
}

// proportion is how many of how many. Up to alike of them come from one problem
// and are not independent of each other.
type proportion struct {
	yes, all   float64
	confidence float64
	alike      float64
}

// share is a proportion of two counts.
func (g group) share(yes, all string, confidence float64) proportion {
	p := proportion{g.sum(yes), g.sum(all), confidence, 1}
	if slices.Contains(alikes, all) {
		p.alike = g.pairs()
	}
	return p
}

// pairs is the number of pairs of operations in a problem.
func (g group) pairs() float64 {
	return max(1, float64(g.Operations*(g.Operations-1)/2))
}

// Bounds are the share with Clopper and Pearson's interval, which covers at
// least at its confidence whatever the share is; NaN where there is nothing to
// share. Cases that may depend on each other count as one: the interval is then
// wider than it need be.
func (p proportion) Bounds() (y, lo, hi float64) {
	if p.all == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	tail := (1 - p.confidence) / 2
	yes, no := p.yes/max(p.alike, 1), (p.all-p.yes)/max(p.alike, 1)
	lo, hi = 0, 1
	if yes > 0 {
		lo = distuv.Beta{Alpha: yes, Beta: no + 1}.Quantile(tail)
	}
	if no > 0 {
		hi = distuv.Beta{Alpha: yes + 1, Beta: no}.Quantile(1 - tail)
	}
	return p.yes / p.all, lo, hi
}

// claim puts the share into a claim.
func (p proportion) claim(name, source string) runs.Claim {
	c := runs.NewClaim(name, source)
	y, lo, hi := p.Bounds()
	c.Ours, c.Lo, c.Hi = runs.Number(y), runs.Number(lo), runs.Number(hi)
	c.Note = fmt.Sprintf("%v of %v", p.yes, p.all)
	if p.all == 0 {
		c.Note = "not run: there is no such case"
	}
	return c
}

// always is a claim without exception: one counterexample refutes it.
func (p proportion) always(name, source string) runs.Claim {
	c := p.claim(name, source)
	c.Paper, c.Tolerance = 1, 0
	if p.all > 0 {
		c.Holds = runs.Judge(p.yes == p.all)
	}
	return c
}

// above judges a share against a bound.
func (p proportion) above(bound float64, name, source string) runs.Claim {
	c := p.claim(name, source)
	switch {
	case !c.Lo.Valid():
	case float64(c.Lo) > bound:
		c.Holds = runs.Holds
	case float64(c.Hi) <= bound:
		c.Holds = runs.Fails
	default:
		c.Note += fmt.Sprintf("; undecided: the interval holds %v", bound)
	}
	return c
}

// identity is a claim that two numbers are equal: the largest error over all
// problems.
func identity(err float64, ran bool, name, source string) runs.Claim {
	c := runs.NewClaim(name, source)
	if !ran {
		c.Note = "not run"
		return c
	}
	c.Paper, c.Ours, c.Tolerance = 0, runs.Number(err), Tolerance
	c.Holds = runs.Judge(err <= Tolerance)
	c.Note = "largest relative error, in float64"
	return c
}

// lossIdentity is identity for Lᵢ: the error of its root, relative to the outputs
// that losses are differences of.
func lossIdentity(err float64, ran bool, name, source string) runs.Claim {
	c := identity(err, ran, name, source)
	if ran {
		c.Note = "largest error of the root of the loss, relative to the outputs, in float64"
	}
	return c
}

// own is the source of what the paper does not say.
const own = "not in the paper; derived in the notebook"

// shares is a curve of proportions; where there is nothing to share, there is no
// point.
func shares(label string, x []float64, ps []proportion) plots.Series {
	var at []float64
	var points []proportion
	for i, p := range ps {
		if p.all > 0 {
			at, points = append(at, x[i]), append(points, p)
		}
	}
	return plots.Bars(label, at, points)
}

// violationNames label the curves.
var violationNames = []struct {
	kind, label, color string
	marker             plots.Marker
	line               plots.Line
}{
	{NoisyLabels, "label noise", "#0072B2", plots.Circle, plots.Solid},
	{WrongWeights, "$W ≠ W^*$", "#D55E00", plots.TriangleUp, plots.Dashed},
	{WrongAlpha, "$α ≠ α^*$", "#009E73", plots.Square, plots.Dotted},
}

// violationPanel draws how often the conclusion follows although Assumption 3
// is violated, over the size of the violation.
func violationPanel(groups []group, confidence float64) plots.Panel {
	p := plots.Panel{
		Title:  "Assumption 3 violated",
		X:      plots.Axis{Label: "size of the violation", Scale: plots.Log10},
		Y:      plots.Axis{Label: "pairs with $α_j < α_i$, share"},
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	var levels []float64
	var guaranteed []proportion
	for _, v := range violationNames {
		var x []float64
		var y []proportion
		for _, g := range groups {
			if g.Violation == v.kind {
				x, y = append(x, g.Level), append(y, g.share("condition_right", "condition", confidence))
				levels, guaranteed = addGuaranteed(levels, guaranteed, g, confidence)
			}
		}
		if len(x) > 0 {
			s := shares(v.label, x, y)
			s.Color, s.Marker, s.Line = v.color, v.marker, v.line
			p.Series = append(p.Series, s)
		}
	}
	if len(levels) > 0 {
		s := shares("any, with our gap", levels, guaranteed)
		s.Color, s.Marker, s.Line = "#000000", plots.Diamond, plots.LongDash
		p.Series = append(p.Series, s)
	}
	return p
}

// addGuaranteed adds up guaranteed pairs over the kinds of a level, in order of
// the levels.
func addGuaranteed(levels []float64, sums []proportion, g group, confidence float64) ([]float64, []proportion) {
	i, found := slices.BinarySearch(levels, g.Level)
	if !found {
		levels, sums = slices.Insert(levels, i, g.Level), slices.Insert(sums, i, proportion{confidence: confidence})
	}
	sums[i].alike += g.pairs() // all kinds of a level are about the same problems
	sums[i].yes += g.sum("guaranteed_right")
	sums[i].all += g.sum("guaranteed")
	return levels, sums
}

// violationClaims are what violations show: that the condition alone is not
// enough then, and that with the gap it is.
func violationClaims(groups []group, confidence float64) []runs.Claim {
	wrong, guaranteed := proportion{confidence: confidence}, proportion{confidence: confidence}
	for _, g := range groups {
		wrong.alike += g.pairs() // all kinds and levels are about the same problems
		guaranteed.alike += g.pairs()
		wrong.yes += g.sum("condition") - g.sum("condition_right")
		wrong.all += g.sum("condition")
		guaranteed.yes += g.sum("guaranteed_right")
		guaranteed.all += g.sum("guaranteed")
	}
	if len(groups) == 0 {
		return nil
	}
	return []runs.Claim{
		wrong.above(0, "own: without Assumption 3 the condition is not enough (share of pairs with α_j ≥ α_i)", own),
		guaranteed.always("own: with L_j − L_i > 2√(D_ij R) the condition is enough without Assumption 3", own),
	}
}

// keysOf are the keys of all records.
func keysOf(groups []group) []string {
	var keys []string
	for _, g := range groups {
		for _, r := range g.records {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// meta is the metadata of a figure.
func meta(title, scale string, params any) map[string]string {
	if scale == "" {
		scale = "own"
	}
	text, err := json.Marshal(params)
	if err != nil {
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return map[string]string{"title": title, "scale": scale, "params": hex.EncodeToString(sum[:6])}
}

// caption says what the problems are.
func (p ProblemParams) caption() string {
	return fmt.Sprintf("%d random problems of a kind: $k = %d$ inputs, width $d = %d$, %d points as the population, operations from a pool of %d, $α$ from a Dirichlet distribution (%v; 1 is uniform); %v %% intervals. The paper has no experiment; all settings are ours.",
		p.Problems*p.Seeds, p.Inputs, p.Width, p.Points, len(p.Activations), p.Concentration, 100*p.Confidence)
}
