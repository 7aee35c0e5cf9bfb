package roberts

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// sharesPanel is how often conditions and conclusions are true over h.
func sharesPanel(r *theorem7) plots.Panel {
	p := plots.Panel{
		Title: "Condition 6 and what it is for",
		X: plots.Axis{
			Label: "operations $h$",
			Min:   float64(slices.Min(r.Params.Sizes)) - 0.5,
			Max:   float64(slices.Max(r.Params.Sizes)) + 0.5,
		},
		Y: plots.Axis{Label: "share of problems or pairs", Max: 1.05},
	}
	for _, h := range r.Params.Sizes {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: float64(h), Label: fmt.Sprint(h)})
	}
	for _, curve := range []struct{ label, yes, all string }{
		{"pairs with $α_j < α_i$", "right", "pairs"},
		{"pairs with Condition 6", "condition", "pairs"},
		{"pairs with $D_{ik} ≥ D_{jk}$", "prior", "pairs"},
		{"arg max $α$ is the best", "argmax", "problems"},
		{"Condition 6 for all $(1, j)$", "first", "problems"},
		{"whole ranking right", "ranking", "problems"},
	} {
		p.Series = append(p.Series,
			sharesOver(curve.label, r.Part("sizes"), operations, curve.yes, curve.all, r.Confidence))
	}
	return p
}

func operations(q problems) float64 { return float64(q.Operations) }

// criterionPanel shows pairs of the first size with more than two operations.
func criterionPanel(r *theorem7) plots.Panel {
	const most = 150
	sizes := r.Part("sizes")
	g := sizes[max(0, slices.IndexFunc(sizes, func(g lab.Group[problems]) bool { return g.Trial.Operations > 2 }))]
	p := plots.Panel{
		Title: fmt.Sprintf("the exact criterion, $h = %d$", g.Trial.Operations),
		X:     plots.Axis{Label: "$L_i/L_j$", Scale: plots.Log10, Min: 1e-3, Max: 1.3},
		Y:     plots.Axis{Label: "$A_i/A_j$", Scale: plots.Log10, Min: 1e-3, Max: 100},
	}
	right := plots.Series{Label: "$α_j < α_i$", Line: plots.NoLine, Marker: plots.Circle, Color: "#0072B2"}
	wrong := plots.Series{Label: "$α_j > α_i$", Line: plots.NoLine, Marker: plots.TriangleUp, Color: "#D55E00"}
	of := countsOf(g)
	x, y, ok := of.series("losses"), of.series("far"), of.series("points")
	for k := range min(most, len(x)) {
		s := &right
		if ok[k] == 0 {
			s = &wrong
		}
		s.X, s.Y = append(s.X, x[k]), append(s.Y, y[k])
	}
	diagonal := plots.Series{
		Label:     "$A_i/A_j = L_i/L_j$",
		Reference: true,
		X:         []float64{1e-3, 1},
		Y:         []float64{1e-3, 1},
	}
	p.Series = []plots.Series{right, wrong, diagonal, plots.HLine("Condition 6: above", 1)}
	p.Legend.Position = plots.LegendInside
	return p
}

// sparsityPanel is what the largest weight says of arg max.
func sparsityPanel(r *theorem7) plots.Panel {
	p := plots.Panel{
		Title: study.Title(spaceLabel(r.Params.Space)),
		X:     plots.Axis{Label: "largest weight, $\\max_i α_i$", Min: 0, Max: 1},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
	}
	space := countsOf(r.Part("space")...)
	all := space.sumSeries("bin_problems")
	for _, curve := range []struct{ label, name string }{
		{"arg max $α$ is the best", "bin_right"},
		{"Condition 6 for all $(1, j)$", "bin_condition"},
		{"so sparse that it must be", "bin_sparse"},
	} {
		var x []float64
		var y []verdict.Share
		for bin, yes := range space.sumSeries(curve.name) {
			x = append(x, (float64(bin)+0.5)/mixture.Bins)
			y = append(y, verdict.Share{Yes: yes, Of: all[bin], Confidence: r.Confidence})
		}
		s := shares(curve.label, x, y)
		if curve.name == "bin_sparse" { // the only curve that the panel above does not have
			s.Color, s.Marker, s.Line = "#CC79A7", plots.Hexagon, plots.Dotted
		}
		p.Series = append(p.Series, s)
	}
	return p
}
