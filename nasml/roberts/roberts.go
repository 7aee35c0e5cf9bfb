// Package roberts reproduces the figure and the theorems of Roberts, Liang, Sala, "Understanding Neural Architecture
// Search by its Architecture Parameters" (Roberts+): what the weights α of a mixture of operations say of the
// operations themselves.
//
// The setting is a two-layer network whose activation is a convex combination,
//
//	f_σ(x, W) = vᵀσ(Wᵀx),  σ_α = Σᵢ αᵢσᵢ,  α ∈ Δ^{h−1},       (Roberts+, Sec. 3)
//
// with x ∈ R^k, W ∈ R^{k×d}, v ∈ R^d. [Check] takes any such α with the outputs of the operations, wherever they come
// from, and tells which of the paper's assumptions and conditions hold, by how much, and whether the arg max of α is
// the best operation. [CheckNet] does so for a network.
package roberts

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Report is what α says of the operations that it mixes.
type Report = mixture.Report

// Check tells what α says of operations with the outputs [h][n] on points with labels y [n]. It returns an error if the
// shapes do not fit, a number is not finite, or α is not on the simplex.
func Check(alpha []float64, outputs [][]float64, y []float64) (*Report, error) {
	return mixture.Check(alpha, outputs, y)
}

// Net is a two-layer network f(x) = vᵀσ_α(Wᵀx) that a search has found.
type Net struct {
	Activations []string    // σ₁ … σ_h, see [ProblemParams]
	Alpha       []float64   // α, [h]
	W           [][]float64 // W, [k][d]
	V           []float64   // v, [d]
}

// CheckNet is [Check] for a network on inputs x [n][k] with labels y [n]. It
// evaluates every operation with the shared weights on the process's backend.
func CheckNet(net Net, x [][]float64, y []float64) (*Report, error) {
	outputs, err := net.Outputs(x)
	if err != nil {
		return nil, err
	}
	r, err := Check(net.Alpha, outputs, y)
	if err != nil {
		return nil, err
	}
	r.Names = net.Activations
	return r, nil
}

// Outputs are f_σᵢ(x, W) of every operation with the shared weights, [h][n], for inputs x [n][k]. It returns an error
// if the shapes do not fit, an activation is unknown or the backend cannot be opened.
func (net Net) Outputs(x [][]float64) ([][]float64, error) {
	k, d := len(net.W), len(net.V)
	if k == 0 || d == 0 || len(x) == 0 || len(net.Activations) == 0 {
		return nil, fmt.Errorf("network with %d activations, W of %d rows and v of %d entries on %d inputs: each must "+
			"be at least 1", len(net.Activations), k, d, len(x))
	}
	flatX, err := flatten("x", x, k)
	if err != nil {
		return nil, err
	}
	flatW, err := flatten("W", net.W, d)
	if err != nil {
		return nil, err
	}
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	e, err := mixture.NewEvaluator(b, net.Activations, mixture.Sizes{Count: 1, Points: len(x), Inputs: k, Width: d})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	out, err := e.Outputs(flatX, flatW, net.V)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func flatten(name string, rows [][]float64, width int) ([]float64, error) {
	flat := make([]float64, 0, len(rows)*width)
	for i, row := range rows {
		if len(row) != width {
			return nil, fmt.Errorf("row %d of %s must have %d entries, got %d", i, name, width, len(row))
		}
		flat = append(flat, row...)
	}
	return flat, nil
}

// ProblemParams are the parameters that all random problems share. The paper has no
// experiments, so all values are choices of this implementation.
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

var paperProblems = lab.With(quickProblems, func(p *ProblemParams) {
	p.Points, p.Problems, p.Seeds = 2048, 1000, 10
	levels := []float64{0.01, 0.03, 0.1, 0.3, 1}
	p.Noise, p.WeightErrors, p.AlphaErrors = levels, levels, levels
})

// rules reports unknown activations, and a pool that is too small for h operations.
func (p ProblemParams) rules(h int, c *study.Checks) {
	_, err := mixture.ActivationsOf(p.Activations)
	c.Expect(err == nil, "%v", err)
	c.Expect(len(p.Activations) >= h, "Activations must have at least %d entries to draw operations from, got %d", h,
		len(p.Activations))
}

func (p ProblemParams) base(h int) problems {
	return problems{
		Activations: p.Activations, Operations: h, Inputs: p.Inputs, Width: p.Width, Spread: p.Spread,
		Points: p.Points, Concentration: p.Concentration, Count: p.Problems, Violation: mixture.None,
	}
}

func (p ProblemParams) only(names []string) problems {
	q := p.base(len(names))
	q.Only = names
	return q
}

func splitSpace(space string) []string { return strings.Split(space, "/") }

// operationsOf splits "relu/tanh/sin" into activations, each of the pool.
func (p ProblemParams) operationsOf(space string) ([]string, error) {
	names := splitSpace(space)
	for i, name := range names {
		if !slices.Contains(p.Activations, name) || slices.Contains(names[:i], name) {
			return nil, catalog.Usagef("space %q: %q must appear once, and in Activations %v",
				space, name, p.Activations)
		}
	}
	return names, nil
}

// shippedRecords are the trials that are shipped, so that nobody has to
// repeat them to see the results at the paper's scale.
//
//go:embed records
var shippedRecords embed.FS

// problemsCode is what the theorems compute: random problems and what the checker says of them.
var problemsCode = code.Define("roberts/problems", "roberts/internal/mixture")

func (p ProblemParams) caption() string {
	return fmt.Sprintf(
		"%d random problems a point, all settings ours: $k = %d$ inputs, width $d = %d$, a population of %d points, "+
			"operations from a pool of %d, $α$ from a Dirichlet distribution (%v); bars: %v %% CI of a share.",
		p.Problems*p.Seeds, p.Inputs, p.Width, p.Points, len(p.Activations), p.Concentration, 100*p.Confidence)
}

var paper = lab.Paper{ID: "roberts", Name: "Roberts+", Shipped: shippedRecords}

// problems and problemGroups are what the theorems compute: random problems of one kind, a record a seed.
type (
	problems      = mixture.Problems
	problemGroups = lab.Groups[problems]
)

// problemBench opens the backend. What the activations of the pool compute is part of the keys: own ones are welcome.
func problemBench[P interface{ problemParams() ProblemParams }](
	_ context.Context, p P, _ string,
) (lab.Bench[problems], error) {
	b, err := backend.Open()
	if err != nil {
		return lab.Bench[problems]{}, err
	}
	probe, err := mixture.Probe(b, p.problemParams().Activations)
	es := mixture.NewEvaluators(b)
	keyed := func(q problems) problems { q.Probe = probe; return q }
	return lab.Bench[problems]{
		Key: func(q problems) any { return keyed(q) },
		Run: func(ctx context.Context, q problems, seed uint64, step study.Step) (trial.Result, error) {
			return keyed(q).Simulate(ctx, es, seed, func(n int) { step(n, "") })
		},
		Study: study.Study{Workers: 1, Device: backend.Opener(1)}, // each uses all cores
		Close: es.Close,
	}, err
}

func (p ProblemParams) problemParams() ProblemParams { return p }

func problemUnits(q problems) int { return q.Count }

// problemWork was measured: the rest of a problem takes as long as a hundred points.
func problemWork(q problems) float64 { return float64(q.Count) * float64(q.Points+100) }

type counts struct {
	records    []*runs.Record
	operations int // of a problem, at most
}

// countsOf joins groups of problems, also of several sizes.
func countsOf(gs ...lab.Group[problems]) (all counts) {
	for _, g := range gs {
		all.records = append(all.records, g.Records...)
		all.operations = max(all.operations, g.Trial.Operations)
	}
	return all
}

func (c counts) sum(name string) (sum float64) {
	for _, r := range c.records {
		sum += r.Values[name]
	}
	return sum
}

func (c counts) per(name string) float64 { return c.sum(name) / c.sum("problems") }

func (c counts) most(name string) float64 {
	return slices.Max(append(study.Values(c.records, name), 0))
}

func (c counts) series(name string) []float64 { return slices.Concat(study.Rows(c.records, name)...) }

func (c counts) sumSeries(name string) (sum []float64) {
	for _, r := range c.records {
		for i, x := range r.Series[name] {
			if i == len(sum) {
				sum = append(sum, 0)
			}
			sum[i] += x
		}
	}
	return sum
}

func (c counts) share(yes, all string, confidence float64) verdict.Share {
	s := verdict.Share{Yes: c.sum(yes), Of: c.sum(all), Confidence: confidence}
	if slices.Contains(mixture.CountsOfPairs, all) {
		s.Alike = c.pairs()
	}
	return s
}

// without is the share that the first count lacks of the second.
func (c counts) without(yes, all string, confidence float64) verdict.Share {
	s := c.share(yes, all, confidence)
	s.Yes = s.Of - s.Yes
	return s
}

func (c counts) pairs() float64 { return max(1, float64(c.operations*(c.operations-1)/2)) }

// sharesOver is a curve of shares, a point a group, over a number of its problems. If there is nothing to share
// there is no point.
func sharesOver(
	label string, gs problemGroups, x func(problems) float64, yes, all string, confidence float64,
) plots.Series {
	return shares(label, gs.X(x), study.Map(gs, func(g lab.Group[problems]) verdict.Share {
		return countsOf(g).share(yes, all, confidence)
	}))
}

// What the error of an identity is: of α and γ, and of losses, which are differences of outputs.
const (
	ofNumbers = "largest relative error, in float64"
	ofRoots   = "largest error of the root of the loss, relative to the outputs, in float64"
)

// identity is a claim that two numbers are equal: the largest error over all problems.
func identity(c lab.Claim, err float64, ran bool, note string) runs.Claim {
	if !ran {
		c.Note = "not run"
		return c.Claim
	}
	c.Paper, c.Ours, c.Tolerance, c.Note = 0, runs.Number(err), mixture.Tolerance, note
	c.Holds = runs.Judge(err <= mixture.Tolerance)
	return c.Claim
}

const notInPaper = "ours, not in the paper; derived in the notebook"

func ours(name string) runs.Claim { return runs.NewClaim("own: "+name, notInPaper) }

// shares is a curve of proportions; if there is nothing to share, there is no point.
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

func (p ProblemParams) violated(h int) (all []problems) {
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

var violations = []struct {
	kind, label string
	look        plots.Look
}{
	{mixture.NoisyLabels, "label noise", plots.Look{Color: "#0072B2", Marker: plots.Circle, Line: plots.Solid}},
	{mixture.WrongWeights, "$W ≠ W^*$", plots.Look{Color: "#D55E00", Marker: plots.TriangleUp, Line: plots.Dashed}},
	{mixture.WrongAlpha, "$α ≠ α^*$", plots.Look{Color: "#009E73", Marker: plots.Square, Line: plots.Dotted}},
}

func levelOf(q problems) float64 { return q.Level }

func pooled(gs problemGroups, yes, all string, confidence float64) verdict.Share {
	s := verdict.Share{Confidence: confidence}
	for _, g := range gs {
		c := countsOf(g)
		s = s.Add(c.sum(yes), c.sum(all))
		s.Alike += c.pairs()
	}
	return s
}

// violationPanel draws how often the conclusion follows although Assumption 3 is violated, over the size of the
// violation.
func violationPanel(gs problemGroups, confidence float64) plots.Panel {
	p := plots.Panel{
		Title:  "Assumption 3 violated",
		X:      plots.Axis{Label: "size of the violation", Scale: plots.Log10},
		Y:      plots.Axis{Label: "pairs with $α_j < α_i$, share"},
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	var drawn problemGroups
	for _, v := range violations {
		of := gs.Where(func(q problems) bool { return q.Violation == v.kind })
		if len(of) > 0 {
			s := sharesOver(v.label, of, levelOf, "condition_right", "condition", confidence)
			p.Series, drawn = append(p.Series, v.look.On(s)), append(drawn, of...)
		}
	}
	if len(drawn) > 0 {
		levels := slices.Compact(slices.Sorted(slices.Values(drawn.X(levelOf))))
		sums := study.Map(levels, func(level float64) verdict.Share {
			same := drawn.Where(func(q problems) bool { return q.Level == level })
			return pooled(same, "guaranteed_right", "guaranteed", confidence)
		})
		look := plots.Look{Color: "#000000", Marker: plots.Diamond, Line: plots.LongDash}
		p.Series = append(p.Series, look.On(shares("any, with our gap", levels, sums)))
	}
	return p
}

// violationClaims are what violations show: that the condition alone is not enough then, and that with the gap it is.
func violationClaims(gs problemGroups, confidence float64) []runs.Claim {
	if len(gs) == 0 {
		return nil
	}
	wrong := pooled(gs, "condition_right", "condition", confidence)
	wrong.Yes = wrong.Of - wrong.Yes
	return []runs.Claim{
		wrong.Above(ours("without Assumption 3 the condition is not enough (share of pairs with α_j ≥ α_i)"), 0),
		pooled(gs, "guaranteed_right", "guaranteed", confidence).
			Always(ours("with L_j − L_i > 2√(D_ij R) the condition is enough without Assumption 3")),
	}
}
