package plots

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Named are the looks of things in every figure, by the labels of their curves. "NAME, variant" has NAME's colour in
// another dash. What a [Series] sets itself comes first.
var Named = map[string]Look{}

// Title maps the name of a curve, row, column, tick or operation in programs to the one in pictures and tables. CSV
// keeps names.
var Title = func(name string) string { return name }

// renamed replaces names. It returns an error for one that the figure does not have.
func (f Figure) renamed(names map[string]string) (Figure, error) {
	used, known := map[string]bool{}, map[string]bool{}
	f = f.called(func(name string) string {
		known[name] = true
		if to, ok := names[name]; ok {
			used[name] = true
			return to
		}
		return name
	})
	for name := range names {
		if !used[name] {
			return f, fmt.Errorf("plots: figure %q: nothing in it is called %q: expected one of %q",
				f.Name, name, slices.Sorted(maps.Keys(known)))
		}
	}
	return f, nil
}

// called applies name to everything with a name. Looks go by the label and stay.
func (f Figure) called(name func(string) string) Figure {
	naming := func(text string) string {
		if text == "" || text == NoEntry {
			return text
		}
		return name(text)
	}
	var rows [][]Panel
	for _, row := range f.Panels {
		var panels []Panel
		for _, p := range row {
			panels = append(panels, p.called(naming))
		}
		rows = append(rows, panels)
	}
	f.Panels = rows
	return f
}

func (p Panel) called(name func(string) string) Panel {
	p.Series = slices.Clone(p.Series)
	for i := range p.Series {
		s := &p.Series[i]
		if old := cmp.Or(s.Entry, s.Label); name(old) != old {
			s.Entry = name(old)
		}
	}
	for _, a := range []*Axis{&p.X, &p.Y} {
		a.Ticks = slices.Clone(a.Ticks)
		for i := range a.Ticks {
			a.Ticks[i].Label = name(a.Ticks[i].Label)
		}
	}
	if p.Cell != nil {
		cell := *p.Cell
		cell.Ops = slices.Clone(cell.Ops)
		for i := range cell.Ops {
			cell.Ops[i].Label = name(cell.Ops[i].Label)
		}
		p.Cell = &cell
	}
	if p.Table != nil {
		p.Table = p.Table.called(name)
	}
	return p
}

func (t Table) called(name func(string) string) *Table {
	t.Columns, t.Blocks = slices.Clone(t.Columns), slices.Clone(t.Blocks)
	for i := range t.Columns {
		t.Columns[i].Header, t.Columns[i].Group = name(t.Columns[i].Header), name(t.Columns[i].Group)
	}
	for b := range t.Blocks {
		block := &t.Blocks[b]
		block.Title, block.Rows = name(block.Title), slices.Clone(block.Rows)
		for i, row := range block.Rows {
			block.Rows[i] = slices.Clone(row)
			if len(row) > 0 {
				block.Rows[i][0].Text = name(row[0].Text)
			}
		}
	}
	return &t
}

// lookOf is the registered look of a label. variant reports that the label adds a word to a registered name.
func lookOf(label string) (look Look, variant, ok bool) {
	if look, ok = Named[label]; ok {
		return look, false, true
	}
	for i := len(label) - 1; i > 0; i-- {
		if label[i] == ',' {
			if look, ok = Named[label[:i]]; ok {
				return look, true, true
			}
		}
	}
	return Look{}, false, false
}

// Graph is the curve of a formula, without markers and not in the legend.
func Graph(xs []float64, f func(x float64) float64) Series {
	s := Series{X: xs, Marker: NoMarker}
	for _, x := range xs {
		s.Y = append(s.Y, f(x))
	}
	return s
}

// Reference is [Graph] for what is not ours, named in the legend unless label is empty.
func Reference(label string, line Line, xs []float64, f func(x float64) float64) Series {
	s := Graph(xs, f)
	s.Label, s.Line, s.Marker, s.Reference = label, line, AutoMarker, true
	return s
}

// LogGrid is even on a log axis; empty where low ≥ high.
func LogGrid(low, high float64) []float64 {
	if low >= high {
		return nil
	}
	const n = 80
	grid := make([]float64, n+1)
	for i := range grid {
		grid[i] = low * math.Pow(high/low, float64(i)/n)
	}
	return grid
}

// Look is how a thing looks in every picture that it is in.
type Look struct {
	Color  string
	Marker Marker
	Line   Line
}

// On is a series with the look: a line through its points.
func (l Look) On(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, l.Marker, l.Line
	return s
}

// AsLine is a series with the look, without markers.
func (l Look) AsLine(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, NoMarker, l.Line
	return s
}

// AsPoints is a series with the look, without a line.
func (l Look) AsPoints(s Series) Series {
	s.Color, s.Marker, s.Line = l.Color, l.Marker, NoLine
	return s
}

// The colours and dashes of [Looks], in the order in which things get them, with those of autoMarkers.
var (
	lookColors = []string{"#0072B2", "#D55E00", "#000000", "#CC79A7", "#009E73", "#E69F00", "#56B4E9"}
	lookLines  = []Line{Solid, LongDash, DashDot, Dashed, Dotted}
)

// Looks gives each thing a look by its place in the list, which has everything that any picture may show. Duplicates
// keep their first.
func Looks[K comparable](things ...K) map[K]Look {
	looks := map[K]Look{}
	for _, thing := range things {
		if _, known := looks[thing]; !known {
			i := len(looks)
			looks[thing] = Look{
				lookColors[i%len(lookColors)], autoMarkers[i%len(autoMarkers)], lookLines[i%len(lookLines)],
			}
		}
	}
	return looks
}
