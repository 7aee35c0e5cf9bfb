package plots

import (
	"cmp"
	"fmt"
	"maps"
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
