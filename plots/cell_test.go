package plots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// Cells of the tests: that of NAS-Bench-201 and that of DARTS, with a mixture
// on every edge or with one labelled operation on each.
var (
	ops201 = []Op{
		{Label: "none", None: true},
		{Label: "skip_connect"},
		{Label: "nor_conv_1x1"},
		{Label: "nor_conv_3x3"},
		{Label: "avg_pool_3x3"},
	}
	opsOf = []Op{
		{Label: "none", None: true},
		{Label: "max_pool_3x3"},
		{Label: "avg_pool_3x3"},
		{Label: "skip_connect"},
		{Label: "sep_conv_3x3"},
		{Label: "sep_conv_5x5"},
		{Label: "dil_conv_3x3"},
		{Label: "dil_conv_5x5"},
	}
)

func cell201() *Cell { return fullCell(ops201, "0", "1", "2", "3") }

// fullCell connects all nodes, each edge with its own mixture.
func fullCell(ops []Op, nodes ...string) *Cell {
	c := &Cell{Nodes: nodes, Ops: ops}
	for to := range nodes {
		for from := range to {
			c.Edges = append(c.Edges, Edge{From: from, To: to, Weights: softmax(len(ops), len(c.Edges))})
		}
	}
	return c
}

func softmax(n, seed int) []float64 {
	weights, sum := make([]float64, n), 0.0
	for k := range weights {
		weights[k] = math.Exp(math.Sin(float64(7*seed + 3*k*k)))
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

func oneHot(n, k int) []float64 {
	weights := make([]float64, n)
	weights[k] = 1
	return weights
}

// chosen gives every edge its heaviest operation only, with its name.
func chosen(c *Cell) *Cell {
	for i, e := range c.Edges {
		best := 0
		for k, w := range e.Weights {
			if w > e.Weights[best] {
				best = k
			}
		}
		c.Edges[i].Weights, c.Edges[i].Label = oneHot(len(c.Ops), best), c.Ops[best].Label
	}
	return c
}

// dartsCell has the 14 edges of a DARTS cell, or 8 of them, and the four into
// the output.
func dartsCell(all bool) *Cell {
	c := &Cell{Nodes: []string{"$c_{k-2}$", "$c_{k-1}$", "0", "1", "2", "3", "$c_k$"}, Ops: opsOf}
	for to := 2; to < 6; to++ {
		for from := range to {
			if all || from < 2 && to < 4 || from == 1 || from == 2 && to == 5 || from == 0 && to == 4 {
				c.Edges = append(c.Edges, Edge{From: from, To: to, Weights: softmax(len(opsOf), len(c.Edges))})
			}
		}
	}
	if !all {
		chosen(c)
	}
	for from := 2; from < 6; from++ {
		c.Edges = append(c.Edges, Edge{From: from, To: 6})
	}
	return c
}

func cellFigure(style Style, cells ...*Cell) Figure {
	f := Figure{Name: "cells", Style: style, Panels: [][]Panel{nil}}
	for i, c := range cells {
		f.Panels[0] = append(f.Panels[0], Panel{Title: fmt.Sprint("cell ", i), Cell: c})
	}
	return f
}

// liveFigure is what a notebook shows while a search runs: two panels of
// curves, the cell with a line of text, and a small table.
func liveFigure() Figure {
	f := figure2(ICLR, Bands)
	f.Name = "live"
	cell := cell201()
	cell.Note = "epoch 12 of 50, the table says 93.76 %"
	f.Panels = append(f.Panels, []Panel{{Title: "the cell now", Cell: cell}}, []Panel{{Table: &Table{
		Columns: []Column{{Header: "data"}, {Header: "accuracy"}},
		Blocks:  []Block{{Rows: [][]Entry{{{Text: "CIFAR-10"}, {Text: "93.76 ± 0.10", Bold: true}}}}},
	}}})
	return f
}

func TestValidateOfCells(t *testing.T) {
	require.NoError(t, cellFigure(ICML, cell201()).Validate())
	for name, c := range map[string]struct {
		spoil func(*Panel)
		wants []string
	}{
		"no nodes": {func(p *Panel) { p.Cell.Nodes = nil }, []string{"cell", "no nodes"}},
		"node":     {func(p *Panel) { p.Cell.Nodes[1] = "$x_$" }, []string{"node 1", "expected a symbol"}},
		"op": {func(p *Panel) { p.Cell.Ops = []Op{{Label: "a", Color: "red"}} },
			[]string{"op 0", "#RRGGBB"}},
		"op's name": {func(p *Panel) { p.Cell.Ops = []Op{{}} }, []string{"op 0", "no label"}},
		"width":     {func(p *Panel) { p.Cell.Width = math.NaN() }, []string{"Width is NaN", "0.1 to 40"}},
		"note":      {func(p *Panel) { p.Cell.Note = "漢" }, []string{"note", "no font"}},
		"backwards": {func(p *Panel) { p.Cell.Edges[2].To = 0 }, []string{"edge 2 (1→0)", "From < To < 4"}},
		"beyond":    {func(p *Panel) { p.Cell.Edges[2].To = 4 }, []string{"edge 2 (1→4)", "From < To < 4"}},
		"twice": {func(p *Panel) { p.Cell.Edges[2].From = 0 },
			[]string{"edge 2 (0→2)", "edge 1", "weights of all"}},
		"weights": {func(p *Panel) { p.Cell.Edges[0].Weights = make([]float64, 9) },
			[]string{"edge 0 (0→1)", "9 weights", "5 ops"}},
		"weight": {func(p *Panel) { p.Cell.Edges[5].Weights[3] = 1.5 },
			[]string{"edge 5 (2→3)", `weight 3 ("nor_conv_3x3") is 1.5`, "0 to 1"}},
		"NaN":   {func(p *Panel) { p.Cell.Edges[5].Weights[0] = math.NaN() }, []string{"edge 5", "is NaN"}},
		"label": {func(p *Panel) { p.Cell.Edges[0].Label = "$" }, []string{"edge 0", "the end"}},
		"emphasis": {func(p *Panel) { p.Cell.Edges[0].Emphasis = "loud" },
			[]string{"edge 0", `"loud"`, "dimmed"}},
		"and a table":    {func(p *Panel) { p.Table = &Table{} }, []string{"more than one of Cell", "one of them"}},
		"and a series":   {func(p *Panel) { p.Series = []Series{HLine("x", 1)} }, []string{"series", "one of them"}},
		"and axis label": {func(p *Panel) { p.X.Label = "epoch" }, []string{"axis labels", "one of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := cellFigure(ICML, cell201(), cell201())
			c.spoil(&f.Panels[0][1])
			err := f.Validate()
			require.Error(t, err)
			for _, want := range append(c.wants, "plots: figure", "panel [0][1]", "cell 1") {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func placedCell(t *testing.T, c *Cell, width vg.Length) *cellBox {
	l, err := newLayout(cellFigure(ICML, c))
	require.NoError(t, err)
	b, err := l.panels[0][0].box.(*cellBox).placed(width)
	require.NoError(t, err)
	return b
}

func TestCellOfNASBench201HasNoCrossings(t *testing.T) {
	b := placedCell(t, cell201(), 300)
	for i, e := range b.Edges {
		require.Equal(t, e.To == e.From+1, b.edges[i].side == 0, "neighbours are joined straight")
		for k, o := range b.Edges[:i] {
			if b.edges[i].side == b.edges[k].side && b.edges[i].side != 0 {
				require.False(t, crosses(e, o), "%v and %v", e, o)
			}
		}
	}
}

// Wherever arches share a side they keep apart: at the nodes, and where one
// runs above the other.
func TestArchesKeepApart(t *testing.T) {
	for _, c := range []*Cell{cell201(), chosen(cell201()), dartsCell(true), dartsCell(false)} {
		b := placedCell(t, c, 396)
		for i, e := range b.edges {
			for k, o := range b.edges[:i] {
				if e.side == 0 || e.side != o.side {
					continue
				}
				for _, x := range []vg.Length{e.start - o.start, e.start - o.end, e.end - o.start, e.end - o.end} {
					require.Greater(t, math.Abs(float64(x)), float64(b.slot+headWide), "ports of edges %d and %d", i, k)
				}
				if e.start < o.end && o.start < e.end {
					require.Greater(t, math.Abs(float64(e.rise-o.rise)), float64(b.slot), "edges %d and %d", i, k)
				}
			}
			if e.side != 0 {
				require.GreaterOrEqual(t, float64(b.radius(e)), float64(b.slot/2), "no inner curve turns over")
			}
		}
	}
}

// A cell that learns keeps its shape.
func TestShapeDoesNotDependOnWeights(t *testing.T) {
	early, late := cell201(), chosen(cell201())
	for i := range late.Edges {
		early.Edges[i].Weights, late.Edges[i].Label = softmax(5, i+20), ""
		late.Edges[i].Weights = []float64{0, 1e-9, 0, 1 - 1e-9, 0}
	}
	a, b := placedCell(t, early, 300), placedCell(t, late, 300)
	require.Equal(t, a.nodes, b.nodes)
	require.Equal(t, a.edges, b.edges)
}

func TestWidthsAreWeights(t *testing.T) {
	b := placedCell(t, cell201(), 300)
	theta := []float64{0.5, 0, 0.25, 0.125, 0.125}
	stripes, wide, head := b.stripes(Edge{Weights: theta})
	require.Equal(t, b.colors[0], head.color, "the heaviest")
	require.True(t, head.hollow, "none is hollow")
	require.Len(t, stripes, 4, "weight 0 is not drawn")
	outer := wide / 2
	for i, k := range []int{0, 2, 3, 4} {
		s := stripes[i]
		require.Equal(t, b.colors[k], s.color)
		require.InDelta(t, 7*theta[k], float64(s.wide), 1e-12)
		require.InDelta(t, float64(outer), float64(s.aside+s.wide/2), 1e-12, "side by side, from the outside in")
		outer -= s.wide + parallel
	}
	require.InDelta(t, float64(-wide/2), float64(outer+parallel), 1e-12)

	_, _, head = b.stripes(Edge{Weights: []float64{0.2, 0.2, 0.2, 0.2, 0.2}})
	require.Equal(t, stripe{color: grey}, head, "a tie is no choice")
	stripes, _, head = b.stripes(Edge{Weights: oneHot(5, 3), Emphasis: Dimmed})
	require.Equal(t, tint(b.colors[3], 0.25), head.color)
	require.Equal(t, head.color, stripes[0].color)
	stripes, _, _ = b.stripes(Edge{Weights: make([]float64, 5)})
	require.Empty(t, stripes)

	require.InDelta(t, 1.6, float64(placedCell(t, chosen(cell201()), 300).full), 1e-12, "single operations are lines")
	own := chosen(cell201())
	own.Width = 5
	require.InDelta(t, 5, float64(placedCell(t, own, 300).full), 1e-12)
}

// What stripes say is on the page, and a highlighted edge has an outline.
func TestEdgesAreOnThePage(t *testing.T) {
	c := cell201()
	plain, err := newLayout(cellFigure(ICML, c))
	require.NoError(t, err)
	b := plain.panels[0][0].box.(*cellBox)
	for _, e := range c.Edges {
		for k, w := range e.Weights {
			found := false
			for _, o := range plain.ops {
				found = found || o.color == b.colors[k] && o.width == vg.Length(w)*7
			}
			require.True(t, found, "operation %d of edge %d→%d", k, e.From, e.To)
		}
	}
	c.Edges[0].Emphasis = Highlighted
	marked, err := newLayout(cellFigure(ICML, c))
	require.NoError(t, err)
	require.Len(t, marked.ops, len(plain.ops)+2)
}

func TestColoursGoByOperation(t *testing.T) {
	other := cell201()
	other.Ops = []Op{
		{Label: "nor_conv_3x3"},
		{Label: "own", Color: "#123456"},
		{Label: "a"},
		{Label: "b"},
		{Label: "none", None: true},
	}
	l, err := newLayout(cellFigure(ICML, cell201(), other))
	require.NoError(t, err)
	a, b := l.panels[0][0].box.(*cellBox), l.panels[0][1].box.(*cellBox)
	require.Equal(t, a.colors[3], b.colors[0], "one operation, one colour")
	require.Equal(t, rgb("#123456"), b.colors[1])
	require.Equal(t, noOp, a.colors[0])
	require.Equal(t, noOp, b.colors[4])
	require.NotEqual(t, a.colors[4], b.colors[2])

	many := looks{palette: palette, byKey: map[string]int{}}
	seen := map[any]bool{}
	for i := range 14 {
		seen[many.op(Op{Label: fmt.Sprint(i)})] = true
	}
	require.Len(t, seen, 14, "where the palette ends, tints go on")
}

// Labels of edges touch neither edges nor each other nor nodes.
func TestLabelsOfEdgesAreClear(t *testing.T) {
	for _, style := range []Style{ICML, ICML.Column(), ICLR} {
		requireClear(t, cellFigure(style, chosen(cell201())))
	}
	for _, style := range []Style{ICML, ICLR} {
		requireClear(t, cellFigure(style, dartsCell(false)))
	}
	lines := chosen(cell201())
	lines.Edges[1].Label, lines.Edges[3].Label = "above\nthe lowest", "two\nlines"
	requireClear(t, cellFigure(ICML, lines))
}

func requireClear(t require.TestingT, f Figure) {
	requireTidy(t, f)
	l, err := newLayout(f)
	require.NoError(t, err)
	for _, o := range l.ops {
		if o.width == 0 || o.color == ink || o.color == tint(ink, 0) {
			continue // texts and fills, the nodes' outlines, what is left white
		}
		all := onPath(o.path)
		for i, q := range all[1:] {
			d := q.Sub(all[i])
			across := vg.Point{
				X: -d.Y,
				Y: d.X,
			}.Scale(
				o.width / 2 / max(1e-9, vg.Length(math.Hypot(float64(d.X), float64(d.Y)))),
			)
			for _, text := range l.texts {
				for _, p := range []vg.Point{q.Sub(across), q, q.Add(across)} {
					require.False(t, overlap(text, vg.Rectangle{Min: p, Max: p}), "text at %v, a line at %v", text, p)
				}
			}
		}
	}
}

// onPath returns points on a path, close to each other.
func onPath(p vg.Path) []vg.Point {
	var all []vg.Point
	for i, part := range p {
		switch part.Type {
		case vg.MoveComp:
			all = append(all, part.Pos)
		case vg.LineComp:
			all = append(all, sampled([]vg.Point{p[i-1].Pos, part.Pos})...)
		case vg.CurveComp:
			for s := vg.Length(0); s <= 1; s += 1. / 64 {
				u := 1 - s
				all = append(
					all,
					p[i-1].Pos.Scale(u*u*u).
						Add(part.Control[0].Scale(3*u*u*s)).
						Add(part.Control[1].Scale(3*u*s*s)).
						Add(part.Pos.Scale(s*s*s)),
				)
			}
		}
	}
	return all
}

func TestCellThatDoesNotFit(t *testing.T) {
	f := cellFigure(Style{Width: 1.5}, dartsCell(true))
	_, err := f.Render("svg")
	require.ErrorContains(t, err, `panel "cell 0": cell: its 7 nodes need`)
	require.ErrorContains(t, err, "found 105")
	long := chosen(cell201())
	long.Edges[0].Label = "a label that is longer than the way from one node to the next one"
	_, err = cellFigure(ICML.Column(), long).Render("svg")
	require.ErrorContains(t, err, `of edge 0→1 needs`)
	require.ErrorContains(t, err, "line end")
}

func TestRowsOfCells(t *testing.T) {
	pair := cellFigure(ICLR, cell201(), cell201())
	l, err := newLayout(pair)
	require.NoError(t, err)
	require.Len(t, l.panels, 1)
	pair.Style = Style{Width: 2.5}
	l, err = newLayout(pair)
	require.NoError(t, err)
	require.Len(t, l.panels, 2, "cells that would be too narrow stand one above the other")

	mixed := figure2(ICML, Bands)
	mixed.Panels[0] = append(mixed.Panels[0], Panel{Title: "cell", Cell: cell201()})
	requireTidy(t, mixed)
	l, err = newLayout(mixed)
	require.NoError(t, err)
	require.Len(t, l.panels, 1)
	mixed.Style = ICLR
	requireTidy(t, mixed)
	l, err = newLayout(mixed)
	require.NoError(t, err)
	require.Len(t, l.panels, 2)
	require.Len(t, l.panels[0], 2, "a row breaks between axes and cells first")
	require.NotNil(t, l.panels[1][0].box)

	// A cell below axes changes nothing about them.
	axes, err := newLayout(figure2(ICLR, Bands))
	require.NoError(t, err)
	require.Equal(t, axes.panels[0][1].frame, l.panels[0][1].frame)
}

func TestFiguresOfAllKinds(t *testing.T) {
	liveFigure := func() Figure {
		f := liveFigure()
		f.Style.DPI = 60
		return f
	}
	f := liveFigure()
	requireTidy(t, f)
	for _, format := range append(pictures, "csv") {
		first, err := f.encode(format)
		require.NoError(t, err)
		again, err := liveFigure().encode(format)
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, again), format)
		for name, change := range map[string]func(*Figure){
			"cell":  func(f *Figure) { f.Panels[1][0].Cell.Edges[0].Weights[0] *= 0.9 },
			"table": func(f *Figure) { f.Panels[2][0].Table.Blocks[0].Rows[0][0].Text = "CIFAR-100" },
		} {
			other := liveFigure()
			change(&other)
			changed, err := other.encode(format)
			require.NoError(t, err)
			require.False(t, bytes.Equal(first, changed), "%s shows the %s", format, name)
		}
	}
	data, err := json.Marshal(f)
	require.NoError(t, err)
	var again Figure
	require.NoError(t, json.Unmarshal(data, &again))
	require.Equal(t, f, again)
	data, err = json.Marshal(figure2(ICML, Bands))
	require.NoError(t, err)
	for _, key := range []string{"Cell", "Table", "Faint"} {
		require.NotContains(t, string(data), key, "figures without are written as ever")
	}
}

// Any cell is drawn tidily, or refused with a reason.
func TestAnyCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		c := &Cell{
			Ops:   opsOf[:rapid.IntRange(1, 8).Draw(t, "ops")],
			Width: rapid.SampledFrom([]float64{0, 0.5, 12}).Draw(t, "width"),
		}
		for i := range n {
			c.Nodes = append(c.Nodes, fmt.Sprintf("$x_%d$", i))
			for from := range i {
				if rapid.Bool().Draw(t, "edge") {
					c.Edges = append(c.Edges, Edge{
						From: from, To: i,
						Weights:  rapid.SliceOfN(rapid.Float64Range(0, 1), len(c.Ops), len(c.Ops)).Draw(t, "weights"),
						Label:    rapid.SampledFrom([]string{"", "op", "sep_conv_3x3", "two\nlines"}).Draw(t, "label"),
						Emphasis: rapid.SampledFrom([]Emphasis{Normal, Dimmed}).Draw(t, "emphasis"),
					})
				}
			}
		}
		f := cellFigure(Style{Width: rapid.Float64Range(2, 8).Draw(t, "inches")}, c)
		require.NoError(t, f.Validate())
		data, err := f.Render("svg")
		if err != nil {
			require.ErrorContains(t, err, "cell: ")
			return
		}
		require.NotContains(t, string(data), "NaN")
		requireClear(t, f)
	})
}

func TestFaintRunsStandBehindTheirMean(t *testing.T) {
	run := Series{Label: "EG", X: []float64{0, 1, 2}, Y: []float64{1, 2, 3}, Faint: true}
	mean := Series{Label: "EG", X: []float64{0, 1, 2}, Y: []float64{1, 2, 2.5}}
	f := Figure{Name: "x", Panels: [][]Panel{{{Series: []Series{mean, run, run}}}}}
	l, err := newLayout(f)
	require.NoError(t, err)
	p := l.panels[0][0]
	require.Equal(t, tint(p.looks[0].color, edgeTint), p.looks[1].color)
	require.Equal(t, p.looks[1], p.looks[2])
	require.Equal(t, NoMarker, p.looks[1].marker)
	require.Less(t, float64(l.pen(p.looks[1]).width), float64(l.pen(p.looks[0]).width))
	require.Len(t, p.entries(), 1, "only the mean is explained")

	last := map[bool]int{}
	for i, o := range l.ops {
		if o.color == p.looks[1].color {
			last[true] = i
		}
		if _, seen := last[false]; o.color == p.looks[0].color && !seen {
			last[false] = i
		}
	}
	require.Less(t, last[true], last[false], "runs are drawn before their mean")
}
