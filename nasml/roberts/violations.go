package roberts

import (
	"slices"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// violated are problems with every violation that is asked for.
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

// violations are those that have a size, as curves.
var violations = []struct {
	kind, label string
	look        plots.Look
}{
	{mixture.NoisyLabels, "label noise", plots.Look{Color: "#0072B2", Marker: plots.Circle, Line: plots.Solid}},
	{mixture.WrongWeights, "$W ≠ W^*$", plots.Look{Color: "#D55E00", Marker: plots.TriangleUp, Line: plots.Dashed}},
	{mixture.WrongAlpha, "$α ≠ α^*$", plots.Look{Color: "#009E73", Marker: plots.Square, Line: plots.Dotted}},
}

func levelOf(q problems) float64 { return q.Level }

// pooled is a share over several violations of the same problems.
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
		var sums []verdict.Share
		for _, level := range levels {
			of := drawn.Where(func(q problems) bool { return q.Level == level })
			sums = append(sums, pooled(of, "guaranteed_right", "guaranteed", confidence))
		}
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
