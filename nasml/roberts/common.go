package roberts

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// ProblemParams are what the theorems' random problems have in common. The paper
// has no experiment: all values are ours.
type ProblemParams struct {
	Activations   []string  // the pool that operations are drawn from, see [Activation]; own ones are welcome
	Inputs        int       `validate:"gte=1"`           // k: x ∼ N(0, I_k)
	Width         int       `validate:"gte=1"`           // d hidden units; v ∼ N(0, I_d/d)
	Spread        float64   `validate:"positive"`        // standard deviation of the pre-activations Wᵀx
	Points        int       `validate:"gte=1"`           // n points, which are the whole population
	Concentration float64   `validate:"positive"`        // of the symmetric Dirichlet distribution of α; 1: uniform
	Problems      int       `validate:"gte=1"`           // a seed
	Seeds         int       `validate:"gte=1"`           // records of so many problems each
	Noise         []float64 `validate:"dive,positive"`   // levels of label noise, in standard deviations of the signal
	WeightErrors  []float64 `validate:"dive,positive"`   // levels of W − W*, in standard deviations of W*
	AlphaErrors   []float64 `validate:"dive,gt=0,lte=1"` // levels of α − α*: α = (1 − level)α* + level·(another draw)
	Sign          bool      // also labels ±1, the paper's classification setting, which Assumption 3 excludes
	Confidence    float64   `validate:"gt=0,lt=1"` // of the intervals
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

// check is rules with the limits of single fields, for the entries that are not declared.
func (p ProblemParams) check(h int) error {
	var c study.Checks
	c.Limits(p)
	p.rules(h, &c)
	return c.Err("the random problems")
}

// rules wants activations that there are, for problems of up to h operations.
func (p ProblemParams) rules(h int, c *study.Checks) {
	if _, err := mixture.ActivationsOf(p.Activations); err != nil {
		c.Expect(false, "%v", err)
	}
	c.Expect(len(p.Activations) >= h, "Activations has %d, %d operations are drawn from it", len(p.Activations), h)
}

// base are problems that satisfy the assumptions.
func (p ProblemParams) base(h int) mixture.Problems {
	return mixture.Problems{
		Activations: p.Activations, Operations: h, Inputs: p.Inputs, Width: p.Width, Spread: p.Spread,
		Points: p.Points, Concentration: p.Concentration, Count: p.Problems, Violation: mixture.None,
	}
}

// only are base problems of these operations of the pool.
func (p ProblemParams) only(names []string) mixture.Problems {
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
			return nil, catalog.Usagef("space %q: %q must be in Activations and come once: %v",
				space, name, p.Activations)
		}
	}
	return names, nil
}

// violated are the same problems with every violation that is asked for.
func (p ProblemParams) violated(h int) []mixture.Problems {
	var all []mixture.Problems
	add := func(kind string, levels ...float64) {
		for _, l := range levels {
			q := p.base(h)
			q.Violation, q.Level = kind, l
			all = append(all, q)
		}
	}
	add(mixture.NoisyLabels, p.Noise...)
	add(mixture.WrongWeights, p.WeightErrors...)
	add(mixture.WrongAlpha, p.AlphaErrors...)
	if p.Sign {
		add(mixture.SignLabels, 0)
	}
	return all
}

// shippedRecords are the trials that the project ships, so that nobody has to
// repeat them to see the results at the paper's scale.
//
//go:embed records
var shippedRecords embed.FS

// problemsKind is what the theorems compute: random problems and what the checker
// says of them.
var problemsKind = code.Define("roberts/problems", "roberts/internal/mixture")

// group is the problems of one kind, all seeds together.
type group struct {
	mixture.Problems
	records []*runs.Record
}

// simulateAll reads or computes the records of all kinds, a record a seed.
func simulateAll(ctx context.Context, id string, kinds []mixture.Problems, seeds int) ([]group, error) {
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	if err := addProbes(b, kinds); err != nil {
		return nil, err
	}
	es := mixture.NewEvaluators(b)
	defer es.Close()
	var cases []study.Case
	for _, p := range kinds {
		note := fmt.Sprintf("h = %d, violation: %s %v", p.Operations, p.Violation, p.Level)
		cases = append(cases, study.Each(seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: p,
				Label:  note,
				Units:  p.Count,
				Run: func(ctx context.Context, step study.Step) (trial.Result, error) {
					return p.Simulate(ctx, es, seed, func(n int) { step(n, note) })
				},
			}
		})...)
	}
	records, err := study.Study{
		ID: id, Code: problemsKind, Shipped: shippedRecords, Workers: 1, // each uses all cores
		Device: func() (string, string, error) { name, device := backend.Describe(b); return name, device, nil },
	}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	groups := make([]group, len(kinds))
	for i, kind := range kinds {
		groups[i] = group{kind, records[i*seeds : (i+1)*seeds]}
	}
	return groups, nil
}

// addProbes puts what the activations compute into the problems, which makes
// it part of their keys.
func addProbes(b compute.Backend, kinds []mixture.Problems) error {
	probes := map[string]string{}
	for i := range kinds {
		names := strings.Join(kinds[i].Activations, "\n")
		if _, ok := probes[names]; !ok {
			var err error
			if probes[names], err = mixture.Probe(b, kinds[i].Activations); err != nil {
				return err
			}
		}
		kinds[i].Probe = probes[names]
	}
	return nil
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

// share is a proportion of two counts.
func (g group) share(yes, all string, confidence float64) verdict.Share {
	p := verdict.Share{Yes: g.sum(yes), Of: g.sum(all), Confidence: confidence}
	if slices.Contains(mixture.CountsOfPairs, all) {
		p.Alike = g.pairs()
	}
	return p
}

// pairs is the number of pairs of operations in a problem.
func (g group) pairs() float64 {
	return max(1, float64(g.Operations*(g.Operations-1)/2))
}

// identity is a claim that two numbers are equal: the largest error over all
// problems.
func identity(c runs.Claim, err float64, ran bool) runs.Claim {
	if !ran {
		c.Note = "not run"
		return c
	}
	c.Paper, c.Ours, c.Tolerance = 0, runs.Number(err), mixture.Tolerance
	c.Holds = runs.Judge(err <= mixture.Tolerance)
	c.Note = "largest relative error, in float64"
	return c
}

// lossIdentity is identity for Lᵢ: the error of its root, relative to the outputs
// that losses are differences of.
func lossIdentity(c runs.Claim, err float64, ran bool) runs.Claim {
	c = identity(c, err, ran)
	if ran {
		c.Note = "largest error of the root of the loss, relative to the outputs, in float64"
	}
	return c
}

// own is the source of what the paper does not say.
const own = "ours, not in the paper; derived in the notebook"

// shares is a curve of proportions; where there is nothing to share, there is no
// point.
func shares(label string, x []float64, ps []verdict.Share) plots.Series {
	var at []float64
	var points []verdict.Share
	for i, p := range ps {
		if p.Of > 0 {
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
	{mixture.NoisyLabels, "label noise", "#0072B2", plots.Circle, plots.Solid},
	{mixture.WrongWeights, "$W ≠ W^*$", "#D55E00", plots.TriangleUp, plots.Dashed},
	{mixture.WrongAlpha, "$α ≠ α^*$", "#009E73", plots.Square, plots.Dotted},
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
	var guaranteed []verdict.Share
	for _, v := range violationNames {
		var x []float64
		var y []verdict.Share
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
func addGuaranteed(levels []float64, sums []verdict.Share, g group, confidence float64) ([]float64, []verdict.Share) {
	i, found := slices.BinarySearch(levels, g.Level)
	if !found {
		levels, sums = slices.Insert(levels, i, g.Level), slices.Insert(sums, i, verdict.Share{Confidence: confidence})
	}
	sums[i].Alike += g.pairs() // all kinds of a level are about the same problems
	sums[i].Yes += g.sum("guaranteed_right")
	sums[i].Of += g.sum("guaranteed")
	return levels, sums
}

// violationClaims are what violations show: that the condition alone is not
// enough then, and that with the gap it is.
func violationClaims(groups []group, confidence float64) []runs.Claim {
	wrong, guaranteed := verdict.Share{Confidence: confidence}, verdict.Share{Confidence: confidence}
	for _, g := range groups {
		wrong.Alike += g.pairs() // all kinds and levels are about the same problems
		guaranteed.Alike += g.pairs()
		wrong.Yes += g.sum("condition") - g.sum("condition_right")
		wrong.Of += g.sum("condition")
		guaranteed.Yes += g.sum("guaranteed_right")
		guaranteed.Of += g.sum("guaranteed")
	}
	if len(groups) == 0 {
		return nil
	}
	return []runs.Claim{
		wrong.Above(
			runs.NewClaim("own: without Assumption 3 the condition is not enough (share of pairs with α_j ≥ α_i)", own),
			0,
		),
		guaranteed.Always(
			runs.NewClaim("own: with L_j − L_i > 2√(D_ij R) the condition is enough without Assumption 3", own),
		),
	}
}

// keysOf are the keys of all records.
func keysOf(groups []group) []string {
	var keys []string
	for _, g := range groups {
		keys = append(keys, study.Keys(g.records)...)
	}
	return keys
}

// scaleNote is study.ScaleNote, and nothing at the larger scale: the paper has none
// of its own.
func scaleNote(params any) string {
	if catalog.ScaleOf(params) == catalog.Paper {
		return ""
	}
	return study.ScaleNote(params)
}

// caption says what the problems are.
func (p ProblemParams) caption() string {
	return fmt.Sprintf(
		"%d random problems of a kind: $k = %d$ inputs, width $d = %d$, %d points as the population, operations from "+
			"a pool of %d, $α$ from a Dirichlet distribution (%v; 1 is uniform); %v %% intervals. The paper has no "+
			"experiment; all settings are ours.",
		p.Problems*p.Seeds,
		p.Inputs,
		p.Width,
		p.Points,
		len(p.Activations),
		p.Concentration,
		100*p.Confidence,
	)
}
