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
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
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
