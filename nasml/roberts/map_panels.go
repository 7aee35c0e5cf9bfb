package roberts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/plots"
)

// mapCurves are what is counted in spaces and over the width.
var mapCurves = []struct{ label, name string }{
	{"arg max $α$ is the best", "argmax"}, {"Condition 6 for all $(1, j)$", "first"},
}

// spacesPanel has a point a space.
func spacesPanel(r *mapped) plots.Panel {
	spaces := r.Part("spaces")
	p := plots.Panel{
		Title: fmt.Sprintf("%d spaces of %d operations", len(spaces), r.Params.Size),
		X:     plots.Axis{Label: "largest over smallest distance", Scale: plots.Log10},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
		// The next panel explains the same two colours.
		Legend: plots.Legend{Position: plots.LegendNone},
	}
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: x, Label: fmt.Sprint(x)})
	}
	for i, curve := range mapCurves {
		s := plots.Series{Label: curve.label, Line: plots.NoLine, Marker: markers[i]}
		for _, g := range spaces {
			s.X, s.Y = append(s.X, countsOf(g).ratio()), append(s.Y, countsOf(g).per(curve.name))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func widthPanel(r *mapped) plots.Panel {
	p := plots.Panel{
		Title: "width", X: plots.Axis{Label: "hidden units $d$", Scale: plots.Log2}, Y: plots.Axis{Max: 1.05},
	}
	for i, curve := range mapCurves {
		width := func(q problems) float64 { return float64(q.Width) }
		s := sharesOver(curve.label, r.Part("widths"), width, curve.name, "problems", r.Confidence)
		s.Marker = markers[i]
		p.Series = append(p.Series, s)
	}
	return p
}

// noisePanel has a curve a number of points: how often arg max is right beside
// the level of the noise.
func noisePanel(r *mapped) plots.Panel {
	p := plots.Panel{
		Title: "arg max under label noise",
		X:     plots.Axis{Label: "noise, sd of the signal", Scale: plots.Log10},
		Y:     plots.Axis{Max: 1.05},
	}
	noise := r.Part("noise")
	for _, n := range r.Params.NoisePoints {
		of := noise.Where(func(q problems) bool { return q.Points == n && q.Level > 0 })
		p.Series = append(p.Series,
			sharesOver(fmt.Sprintf("$n = %d$", n), of, levelOf, "argmax", "problems", r.Confidence))
	}
	if len(noise) > 0 { // which begins with a group without noise
		p.Series = append(p.Series, plots.HLine("without noise", countsOf(noise[0]).per("argmax")))
	}
	return p
}

// spacesTable lists the spaces where arg max is right most and least often.
func spacesTable(r *mapped) plots.Panel {
	const each = 4
	order := slices.SortedFunc(slices.Values(r.Part("spaces")), func(a, b lab.Group[problems]) int {
		return cmp.Compare(countsOf(b).per("argmax"), countsOf(a).per("argmax"))
	})
	t := &plots.Table{Columns: []plots.Column{
		{Header: "operations"}, {Header: "distances: largest/smallest"}, {Header: "arg max right"},
		{Header: "Condition 6 for all (1, j)"}, {Header: "whole ranking right"},
	}}
	if len(order) <= 2*each {
		t.Blocks = []plots.Block{{Rows: spaceRows(order)}}
	} else {
		t.Blocks = []plots.Block{{Rows: spaceRows(order[:each])}, {Rows: spaceRows(order[len(order)-each:])}}
		t.Note = fmt.Sprintf("The %d spaces at each end, of %d.", each, len(order))
	}
	return plots.Panel{Table: t}
}

func spaceRows(spaces problemGroups) (rows [][]plots.Entry) {
	for _, g := range spaces {
		of := countsOf(g)
		row := []plots.Entry{
			{Text: spaceLabel(strings.Join(g.Trial.Only, "/"))}, {Text: fmt.Sprintf("%.1f", of.ratio())},
		}
		for _, name := range []string{"argmax", "first", "ranking"} {
			row = append(row, plots.Entry{Text: fmt.Sprintf("%.2f", of.per(name))})
		}
		rows = append(rows, row)
	}
	return rows
}
