package plots

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Table is a table as papers set them, drawn as a panel: rules above, below and between its blocks, none upright.
// Columns are as wide as their content; the text is 2 pt smaller than the style's body, and down to 6 pt where the
// width asks for it. What does not fit then is an error.
//
// Where a column is aligned at the right, numbers with an uncertainty, such as
// "93.92 ± 0.30", are aligned at the sign, and what is no number is centred.
type Table struct {
	Columns []Column
	Blocks  []Block
	Note    string `json:",omitempty"` // a text below the table
}

// Column is the head of one column.
type Column struct {
	Header string // may have several lines
	Group  string `json:",omitempty"` // a header over all neighbours with the same group
	Align  Align  `json:",omitempty"`
}

// Align says where the entries of a column stand.
type Align string

// The alignments. AlignAuto is Left for the first column, else Right.
const (
	AlignAuto Align = ""
	Left      Align = "left"
	Center    Align = "center"
	Right     Align = "right"
)

// Block is a group of rows between two rules.
type Block struct {
	Title string    `json:",omitempty"`
	Rows  [][]Entry // each with an entry for every column
}

// Entry is one text of a table.
type Entry struct {
	Text string
	Bold bool `json:",omitempty"` // the best of its column
	Grey bool `json:",omitempty"` // not ours, or none: a paper's number, "no data", "not run"
}

func (t *Table) validate() error {
	if len(t.Columns) == 0 {
		return errors.New("table: it has no columns: expected at least one")
	}
	if err := checkText(t.Note); err != nil {
		return fmt.Errorf("table: note: %w", err)
	}
	for i, c := range t.Columns {
		if err := cmp.Or(checkText(c.Header), checkText(c.Group),
			known("align", c.Align, AlignAuto, Left, Center, Right)); err != nil {
			return fmt.Errorf("table: column %d %q: %w", i, c.Header, err)
		}
	}
	for b, block := range t.Blocks {
		if err := checkText(block.Title); err != nil {
			return fmt.Errorf("table: block %d: %w", b, err)
		}
		for r, row := range block.Rows {
			if err := t.validateRow(row); err != nil {
				return fmt.Errorf("table: block %d %q: row %d: %w", b, block.Title, r, err)
			}
		}
	}
	return nil
}

func (t *Table) align(c int) Align {
	return cmp.Or(t.Columns[c].Align, map[bool]Align{true: Left, false: Right}[c == 0])
}

func (t *Table) validateRow(row []Entry) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("it has %d entries and the table %d columns: expected as many", len(row), len(t.Columns))
	}
	for i, e := range row {
		if err := checkText(e.Text); err != nil {
			return fmt.Errorf("column %d %q: %w", i, t.Columns[i].Header, err)
		}
	}
	return nil
}

// tableBox is a Table with its last layout: the same width is asked for several times.
type tableBox struct {
	*Table
	last  vg.Length
	table *tableSet
	err   error
}

// Distances in a table, in em of its text, and the widths of its rules.
const (
	tableLeast  = 6   // pt: smaller text is not legible
	tableRow    = 1.4 // from baseline to baseline
	tablePad    = 0.4 // between a rule and text
	tableIndent = 0.8 // of rows below their block's title
	heavyRule   = 0.9 // pt, at the top and the bottom
	lightRule   = 0.5 // between blocks
	groupRule   = 0.4 // below a group's header
)

type tableSet struct {
	*Table
	font      Font
	size, gap vg.Length
	columns   []columnSet
}

// columnSet is a column's width and, of numbers with an uncertainty, the room for the number, the sign with its spaces,
// and what follows before and after the decimal point.
type columnSet struct {
	align                       Align
	width                       vg.Length
	left, sign, whole, decimals vg.Length
	header                      []textLine
}

func (t *tableBox) set(l *layout, width vg.Length) (*tableSet, error) {
	if t.last != width {
		t.table, t.err = t.Table.set(l, width)
		t.last = width
	}
	return t.table, t.err
}

// set uses the largest text size that fits.
func (t *Table) set(l *layout, width vg.Length) (*tableSet, error) {
	for size := l.small; ; size = max(size-0.25, tableLeast) {
		s := t.setIn(l.font, size)
		if total := s.width(); total <= width {
			s.gap += min((width-total)/vg.Length(max(1, len(s.columns)-1)), 0.8*size)
			return s, nil
		}
		if size <= tableLeast {
			return nil, fmt.Errorf("table: its %d columns need %.0f pt in %g pt text: found %.0f; use fewer columns, "+
				"shorter texts or a wider style", len(t.Columns), float64(s.width()), float64(size), float64(width))
		}
	}
}

func (t *Table) setIn(font Font, size vg.Length) *tableSet {
	s := &tableSet{Table: t, font: font, size: size, gap: 0.8 * size}
	for c := range t.Columns {
		s.columns = append(s.columns, s.setColumn(c))
	}
	for _, g := range s.groups() {
		s.widen(g)
	}
	for _, b := range t.Blocks {
		s.columns[len(s.columns)-1].width += max(0, s.font.line(b.Title, size).width-s.width())
	}
	return s
}

func (s *tableSet) setColumn(c int) columnSet {
	col := columnSet{align: s.align(c)}
	for _, line := range strings.Split(s.Columns[c].Header, "\n") {
		col.header = append(col.header, s.font.line(line, s.size))
	}
	plain := vg.Length(0)
	for _, block := range s.Blocks {
		for _, row := range block.Rows {
			if _, _, ok := row[c].split(); col.align == Right && (ok || row[c].isNumber()) {
				col.add(s.parts(row[c]))
				continue
			}
			indent := vg.Length(0)
			if c == 0 {
				indent = s.indent(block)
			}
			plain = max(plain, indent+s.entry(row[c], row[c].Text).width)
		}
	}
	col.width = max(plain, col.left+col.sign+col.whole+col.decimals)
	for _, line := range col.header {
		col.width = max(col.width, line.width)
	}
	return col
}

// parts are the pieces of a number with its uncertainty; a number without has the first only.
type parts struct {
	number, sign, spread textLine
	space                vg.Length // on each side of the sign
	whole                vg.Length // of spread, what stands before the decimal point
}

func (s *tableSet) parts(e Entry) parts {
	number, spread, ok := e.split()
	p := parts{number: s.entry(e, number)}
	if ok {
		whole, _, _ := strings.Cut(spread, ".")
		p.sign, p.spread = s.entry(e, "±"), s.entry(e, spread)
		p.space, p.whole = s.entry(e, " ").width, s.entry(e, whole).width
	}
	return p
}

func (c *columnSet) add(p parts) {
	c.left, c.sign = max(c.left, p.number.width), max(c.sign, p.sign.width+2*p.space)
	c.whole, c.decimals = max(c.whole, p.whole), max(c.decimals, p.spread.width-p.whole)
}

func (s *tableSet) indent(b Block) vg.Length {
	if b.Title == "" {
		return 0
	}
	return tableIndent * s.size
}

func (e Entry) split() (number, spread string, ok bool) {
	number, spread, ok = strings.Cut(e.Text, "±")
	return strings.TrimSpace(number), strings.TrimSpace(spread), ok && !strings.Contains(e.Text, "$")
}

func (e Entry) isNumber() bool {
	_, err := strconv.ParseFloat(strings.Replace(e.Text, "−", "-", 1), 64)
	return err == nil
}

func (s *tableSet) entry(e Entry, text string) textLine {
	if e.Bold {
		return s.font.boldLine(text, s.size)
	}
	return s.font.line(text, s.size)
}

type group struct {
	from, to int // the last one included
	header   textLine
}

func (s *tableSet) groups() []group {
	var all []group
	for c, column := range s.Columns {
		if n := len(all); n > 0 && column.Group != "" && all[n-1].to == c-1 && s.Columns[c-1].Group == column.Group {
			all[n-1].to = c
			continue
		}
		if column.Group != "" {
			all = append(all, group{c, c, s.font.line(column.Group, s.size)})
		}
	}
	return all
}

func (s *tableSet) widen(g group) {
	left, right := s.span(g.from, g.to)
	n := vg.Length(g.to - g.from + 1)
	for c := g.from; c <= g.to; c++ {
		s.columns[c].width += max(0, g.header.width-(right-left)) / n
	}
}

func (s *tableSet) span(from, to int) (left, right vg.Length) {
	for _, c := range s.columns[:from] {
		left += c.width + s.gap
	}
	right = left - s.gap
	for _, c := range s.columns[from : to+1] {
		right += c.width + s.gap
	}
	return left, right
}

func (s *tableSet) width() vg.Length {
	_, right := s.span(0, len(s.columns)-1)
	return right
}

func (t *tableBox) height(l *layout, width vg.Length) (vg.Length, error) {
	s, err := t.set(l, width)
	if err != nil {
		return 0, err
	}
	scratch := layout{} // where the table ends is known when it is drawn
	return -s.draw(&scratch.page, vg.Point{}, width), nil
}

func (t *tableBox) draw(l *layout, in vg.Rectangle) {
	width := in.Size().X
	s, err := t.set(l, width)
	if err != nil {
		return // arrange has seen it
	}
	s.draw(&l.page, vg.Point{X: in.Min.X, Y: in.Max.Y}, width)
}

// draw draws the table centred below at and returns where it ends.
func (s *tableSet) draw(p *page, at vg.Point, width vg.Length) vg.Length {
	x, right := at.X+(width-s.width())/2, at.X+(width+s.width())/2
	rule := func(y, wide vg.Length) {
		p.stroke([]vg.Point{{X: x, Y: y}, {X: right, Y: y}}, pen{ink, wide, Solid})
	}
	pad := tablePad * s.size
	y := at.Y - heavyRule/2
	rule(y, heavyRule)
	y = s.drawHeader(p, x, y-pad) - pad
	for _, block := range s.Blocks {
		rule(y, lightRule)
		y = s.drawBlock(p, x, y-pad, block) - pad
	}
	rule(y, heavyRule)
	y -= heavyRule / 2
	if note := s.font.lines(s.Note, s.size, right-x); len(note) > 0 {
		y = p.block(note, s.size, x, right, y-titleGap, 0)
	}
	return y
}

func (s *tableSet) drawHeader(p *page, x, y vg.Length) vg.Length {
	if groups := s.groups(); len(groups) > 0 {
		for _, g := range groups {
			left, right := s.span(g.from, g.to)
			p.text(g.header, vg.Point{X: x + (left+right-g.header.width)/2, Y: y - ascent*s.size})
			under := y - (ascent+descent+0.15)*s.size
			p.stroke([]vg.Point{{X: x + left, Y: under}, {X: x + right, Y: under}}, pen{ink, groupRule, Solid})
		}
		y -= (ascent + descent + 0.15 + tablePad) * s.size
	}
	lines := 0
	for _, c := range s.columns {
		lines = max(lines, len(c.header))
	}
	for i, c := range s.columns {
		left, right := s.span(i, i)
		baseline := y - (ascent+vg.Length(lines-len(c.header))*lineStep)*s.size
		for _, line := range c.header {
			share := map[Align]vg.Length{Center: 0.5, Right: 1}[c.align]
			if c.sign > 0 {
				share = 0.5
			}
			p.text(line, vg.Point{X: x + left + share*(right-left-line.width), Y: baseline})
			baseline -= lineStep * s.size
		}
	}
	return y - (ascent+descent+vg.Length(lines-1)*lineStep)*s.size
}

func (s *tableSet) drawBlock(p *page, x, y vg.Length, block Block) vg.Length {
	start := y
	if block.Title != "" {
		p.text(s.font.line(block.Title, s.size), vg.Point{X: x, Y: y - ascent*s.size})
		y -= tableRow * s.size
	}
	for _, row := range block.Rows {
		for c, e := range row {
			indent := vg.Length(0)
			if c == 0 {
				indent = s.indent(block)
			}
			s.drawEntry(p, c, e, x, indent, y-ascent*s.size)
		}
		y -= tableRow * s.size
	}
	return min(start, y+max(0, (tableRow-ascent-descent)*s.size))
}

func (s *tableSet) drawEntry(p *page, c int, e Entry, x, indent, baseline vg.Length) {
	col := s.columns[c]
	left, right := s.span(c, c)
	color := ink
	if e.Grey {
		color = grey
	}
	put := func(text textLine, x vg.Length) {
		p.tintedText(text, vg.Point{X: x, Y: baseline}, false, color)
	}
	_, _, ok := e.split()
	switch text := s.entry(e, e.Text); {
	case col.sign > 0 && (ok || e.isNumber()):
		p := s.parts(e)
		half := cmp.Or(p.sign.width+2*p.space, s.font.line(" ± ", s.size).width) / 2 // bold ones are wider
		sign := x + (left+right+col.left-col.whole-col.decimals)/2                   // its middle
		put(p.number, sign-half-p.number.width)
		put(p.sign, sign-p.sign.width/2)
		put(p.spread, sign+half+col.whole-p.whole)
	case col.sign > 0 || col.align == Center:
		put(text, x+(left+right-text.width)/2)
	case col.align == Right:
		put(text, x+right-text.width)
	default:
		put(text, x+left+indent)
	}
}

func (t *Table) lines(panel string) [][]string {
	head := []string{"panel", "block"}
	for _, c := range t.Columns {
		head = append(head, strings.TrimSpace(plain(c.Group)+" "+plain(c.Header)))
	}
	lines := [][]string{head}
	for _, b := range t.Blocks {
		for _, row := range b.Rows {
			line := []string{panel, plain(b.Title)}
			for _, e := range row {
				line = append(line, plain(e.Text))
			}
			lines = append(lines, line)
		}
	}
	return lines
}
