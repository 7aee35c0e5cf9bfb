package roberts

import (
	"context"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Theorem1Params are the parameters of Theorem 1: problems of two operations.
type Theorem1Params struct{ ProblemParams }

// Theorem1Quick and Theorem1Paper differ in the number of problems, their
// points, and the levels of the violations.
var (
	Theorem1Quick = Theorem1Params{quickProblems}
	Theorem1Paper = Theorem1Params{paperProblems}
)

const (
	theorem1ID     = "roberts/theorem1"
	theorem1Title  = "Two activations: the better one with shared weights has the larger α"
	theorem1Source = "Roberts+, Theorem 1"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem1ID, Paper: "Roberts+", Title: theorem1Title, Kind: "theorem",
		Notebook: "notebooks/roberts/theorem1_two.ipynb",
		Cost:     catalog.Cost{Quick: "seconds", Paper: "about two minutes on two cores; the project ships its trials"},
	}, Theorem1Quick, Theorem1Paper, Theorem1)
}

// Theorem1Result holds the problems of Theorem 1: those under its assumptions
// first, then the violated ones.
type Theorem1Result struct {
	Params Theorem1Params
	Scale  string // "quick", "paper" or empty for own parameters
	groups []group
}

// Theorem1 draws problems y = f_σα(x, W) with two operations and compares α with
// the losses: under Assumptions 1 and 3,
//
//	L₁ = α₂²𝓛(f₁, f₂),  L₂ = α₁²𝓛(f₁, f₂),  and so L₁ < L₂ ⇒ α₂ < α₁ .
//
// Then it violates Assumption 3. Cancelling ctx ends it within a second, with
// finished records stored. It is an error where a parameter makes no sense (a
// *catalog.UsageError).
func Theorem1(ctx context.Context, p Theorem1Params) (*Theorem1Result, error) {
	if err := p.check(2); err != nil {
		return nil, err
	}
	groups, err := simulateAll(ctx, theorem1ID, append([]mixture.Problems{p.base(2)}, p.violated(2)...), p.Seeds)
	if err != nil {
		return nil, err
	}
	return &Theorem1Result{p, runs.Scale(ctx), groups}, nil
}

// Records are the keys of the records behind the result.
func (r *Theorem1Result) Records() []string { return keysOf(r.groups) }

// Figure draws the ratio of the losses over the ratio of the weights, which is
// its square under the assumptions, and what violations do to the conclusion.
func (r *Theorem1Result) Figure() plots.Figure {
	p := plots.Panel{
		Title: "two operations",
		X:     plots.Axis{Label: "$α_1/α_2$", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$L_2/L_1$", Scale: plots.Log10},
	}
	for _, g := range r.groups {
		switch {
		case g.Violation == mixture.None:
			p.Series = append(p.Series, cloud("Assumption 3", plots.Circle, g))
		case g.Violation == mixture.NoisyLabels && g.Level == 1:
			p.Series = append(p.Series, cloud("noise, level 1", plots.Square, g))
		case g.Violation == mixture.SignLabels:
			p.Series = append(p.Series, cloud("labels $±1$", plots.TriangleUp, g))
		}
	}
	square := plots.Series{Label: "$(α_1/α_2)^2$", Reference: true, Line: plots.Dashed}
	for _, x := range []float64{0.1, 1, 10, 100} {
		square.X, square.Y = append(square.X, x), append(square.Y, x*x)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.1, 100, 0.7, 1e4
	p.Series = append(p.Series, square, plots.VLine("$α_1 = α_2$", 1))
	return plots.Figure{
		Name: "roberts-theorem1", Style: plots.ICLR,
		Caption: r.Params.caption() + scaleNote(r.Params) +
			" Left of the vertical line the better operation has the smaller weight.",
		Panels: [][]plots.Panel{{p, violationPanel(r.groups[1:], r.Params.Confidence)}},
		Meta:   study.Meta(theorem1Title, r.Scale, r.Params),
	}
}

// cloud shows some of the problems of a group as points.
func cloud(label string, marker plots.Marker, g group) plots.Series {
	const most = 100
	s := plots.Series{Label: label, Line: plots.NoLine, Marker: marker}
	alphas, losses := g.series("alphas"), g.series("losses")
	for i := range min(most, len(alphas)) {
		s.X, s.Y = append(s.X, alphas[i]), append(s.Y, 1/losses[i])
	}
	return s
}

// Check judges Theorem 1, the identities of its proof and its first assumption.
func (r *Theorem1Result) Check() []runs.Claim {
	base, c := r.groups[0], r.Params.Confidence
	ran := base.sum("pairs") > 0
	claims := []runs.Claim{
		base.share("right", "pairs", c).Always(runs.NewClaim("[RO001] h = 2, L_1 < L_2 ⇒ α_2 < α_1", theorem1Source)),
		lossIdentity(base.most("identity1"), ran, "[RO002] L_1 = α_2² 𝓛(f_1, f_2)", theorem1Source+", proof"),
		lossIdentity(base.most("identity2"), ran, "[RO003] L_2 = α_1² 𝓛(f_1, f_2)", theorem1Source+", proof"),
		base.share("ordered", "problems", c).
			Above(runs.NewClaim("[RO004] Assumption 1 (mostly realistic): a strict order of the losses",
				"Roberts+, Assumption 1"), 0.5),
	}
	return append(claims, violationClaims(r.groups[1:], c)...)
}
