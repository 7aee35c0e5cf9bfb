package plots

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Distances in points.
const (
	edge     = 1.5 // free around the figure, so that no line at the edge is cut
	tickMark = 2.6 // length of a major tick; a minor one has 0.6 of it
	tickGap  = 2   // between a tick and its label
	labelGap = 3.5 // between tick labels and the axis label
	titleGap = 4   // between a title and what is below it
	columns  = 14  // gap between panels side by side
	rows     = 8   // gap between panels, legend and caption, one above the other
	narrow   = 100 // panels less wide than this go below each other instead: five curves could not be told apart
	least    = 24  // and a panel cannot be less wide than this
)

// layout places the parts of a figure. Labels are measured first, then all panels share the rest of the width, and
// their height follows from Style.Aspect.
type layout struct {
	page
	figure       Figure
	style        Style
	font         Font
	small, label vg.Length // sizes of text
	looks        looks
	panels       [][]*panel
	left, right  []vg.Length // of each column, beside its frames
	frame        vg.Point    // width and height of every frame
	own          bool        // there are more entries than one legend explains well; see share
	groups       [][]*panel  // by row: whose shared legend stands under it; nil: none
}

func newLayout(f Figure) (*layout, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	f = f.called(Title)
	style := f.Style.filled()
	l := &layout{
		page:   page{width: vg.Length(style.Width) * vg.Inch},
		figure: f, style: style,
		font: style.Font, small: vg.Length(style.Body - 2), label: vg.Length(style.Body - 1),
		looks: looks{palette: style.Palette, byKey: map[string]int{}},
	}
	l.looks.assign(f.Panels)
	for r, row := range f.Panels {
		l.panels = append(l.panels, nil)
		for c, p := range row {
			l.panels[r] = append(l.panels[r], l.newPanel(p.withRuns(), fmt.Sprint(r, c)))
		}
	}
	if err := l.arrange(); err != nil {
		return nil, fmt.Errorf("plots: figure %q: %w", f.Name, err)
	}
	l.draw()
	return l, nil
}

// arrange breaks rows until every panel is wide enough: first between axes and boxes, then rows of the kind that is too
// narrow.
func (l *layout) arrange() error {
	for l.measure(); l.hasAxes() && l.frame.X < narrow || l.boxError() != nil; l.measure() {
		rows := splitKinds(l.panels)
		if len(rows) == len(l.panels) {
			rows = reflow(l.panels, l.boxError() != nil)
		}
		if len(rows) == len(l.panels) {
			break
		}
		l.panels = rows
	}
	if l.hasAxes() && l.frame.X < least {
		return fmt.Errorf("labels leave a width of %.0f pt to a panel: expected %d or more; use shorter tick labels "+
			"or a wider style", float64(l.frame.X), least)
	}
	return l.boxError()
}

// reflow breaks the longest rows of boxes, or of axes, into rows of about equal length with one panel less.
func reflow(panels [][]*panel, boxes bool) [][]*panel {
	perRow := 1
	for _, row := range panels {
		if boxesOnly(row) == boxes {
			perRow = max(perRow, len(row)-1)
		}
	}
	var out [][]*panel
	for _, row := range panels {
		n := 1
		if boxesOnly(row) == boxes {
			n = (len(row) + perRow - 1) / perRow
		}
		for i := range n {
			out = append(out, row[(i*len(row)+n-1)/n:((i+1)*len(row)+n-1)/n])
		}
	}
	return out
}

// measure sets margins, line breaks and the frame size. They depend on each other, so it repeats until nothing changes.
func (l *layout) measure() {
	for range 10 {
		before := l.frame
		l.measureFrame()
		for _, row := range l.panels {
			for c, p := range row {
				if p.box != nil {
					p.title = l.font.lines(p.Title, l.label, l.boxWidth(row, c))
					continue
				}
				p.breakLabels(l)
			}
		}
		if l.frame == before {
			return
		}
	}
}

func (l *layout) measureFrame() {
	l.left, l.right = nil, nil
	for _, row := range l.panels {
		if boxesOnly(row) {
			continue
		}
		for c, p := range row {
			if c == len(l.left) {
				l.left, l.right = append(l.left, 0), append(l.right, 0)
			}
			if p.box != nil {
				continue
			}
			left, right := p.margins(l)
			l.left[c], l.right[c] = max(l.left[c], left), max(l.right[c], right)
		}
	}
	if !l.hasAxes() {
		return
	}
	n := vg.Length(len(l.left))
	free := l.width - 2*edge - (n-1)*columns
	for c := range l.left {
		free -= l.left[c] + l.right[c]
	}
	width := max(1, free/n) // 1: goes on to less panels in a row, or to an error
	l.frame = vg.Point{X: width, Y: width * vg.Length(l.style.Aspect)}
}

func (l *layout) draw() {
	y := vg.Length(-edge)
	if title := l.font.lines(l.figure.Title, l.label, l.width-2*edge); len(title) > 0 {
		y = l.block(title, l.label, edge, l.width-edge, y, 0.5) - titleGap
	}
	l.share()
	var below, waiting []entry // the legend of all that is not grouped, and one that stands beside the last row
	for r, row := range l.panels {
		if r > 0 {
			y -= rows
		}
		y = l.drawRow(row, y, &below)
		if l.groups[r] == nil {
			continue
		}
		entries := l.direct(l.groups[r], merged(l.groups[r]))
		if r == len(l.panels)-1 {
			entries = l.legendBeside(row, entries)
		}
		switch {
		case len(entries) == 0:
		case l.waits(r):
			waiting = entries
		default:
			y = l.legendBelow(entries, y-rows)
		}
	}
	if last := l.panels[len(l.panels)-1]; waiting != nil {
		l.legendBeside(last, waiting)
	} else {
		below = l.legendBeside(last, below)
	}
	for _, ops := range []bool{false, true} {
		if entries := ofKind(below, ops); len(entries) > 0 {
			y = l.legendBelow(entries, y-rows)
		}
	}
	if caption := l.font.lines(l.figure.caption(), l.small, l.width-2*edge); len(caption) > 0 {
		y = l.block(caption, l.small, edge, l.width-edge, y-rows, 0)
	}
	l.height = edge - y
}

// drawRow draws a row below y and returns where it ends. Legends that do not fit inside go to below, or under their
// panels.
func (l *layout) drawRow(row []*panel, y vg.Length, below *[]entry) vg.Length {
	top, frame, bottom := l.rowHeights(row)
	var own strips
	x := vg.Length(edge)
	for c, p := range row {
		if p.box != nil {
			width := l.boxWidth(row, c)
			l.drawBox(p,
				vg.Rectangle{Min: vg.Point{X: x, Y: y - top - frame - bottom}, Max: vg.Point{X: x + width, Y: y - top}},
				frame)
			l.legend(p, below)
			x += width + columns
			continue
		}
		slot := x
		x += l.left[c]
		p.frame = vg.Rectangle{Min: vg.Point{X: x, Y: y - top - l.frame.Y}, Max: vg.Point{X: x + l.frame.X, Y: y - top}}
		p.draw(l)
		x += l.frame.X + l.right[c]
		var entries []entry
		if !l.grouped(p) {
			l.legend(p, &entries)
		}
		if l.own {
			own.add(strip{entries, slot, x})
		} else {
			*below = addEntries(*below, entries)
		}
		x += columns
	}
	y -= top + frame + bottom
	return y - own.draw(l, x-columns, y)
}

// rowHeights returns a row's height above its frames, of the frames (0 if it has none), and below them.
func (l *layout) rowHeights(row []*panel) (top, frame, bottom vg.Length) {
	if !boxesOnly(row) {
		top, frame = l.small/3, l.frame.Y // half a tick label stands above the frame
	}
	for c, p := range row {
		if len(p.title) > 0 {
			top = max(top, blockHeight(p.title, l.label)+titleGap)
		}
		if p.box != nil {
			height, _ := p.box.height(l, l.boxWidth(row, c)) // arrange has seen the error
			bottom = max(bottom, height-frame)
			continue
		}
		bottom = max(bottom, p.bottom(l))
	}
	return top, frame, bottom
}

// box is what stands in a panel that has no axes.
type box interface {
	// height returns what it needs at a width. Its error says what does not fit.
	height(l *layout, width vg.Length) (vg.Length, error)
	draw(l *layout, in vg.Rectangle)
}

func (l *layout) newBox(p Panel) box {
	switch {
	case p.Cell != nil:
		return l.newCell(p.Cell)
	case p.Simplex != nil:
		return l.newSimplex(p.Simplex)
	case p.Table != nil:
		return &tableBox{Table: p.Table}
	}
	return nil
}

// drawBox draws a box with its title. Next to axes it is aligned with their frames, unless it is higher.
func (l *layout) drawBox(p *panel, in vg.Rectangle, frame vg.Length) {
	if height, _ := p.box.height(l, in.Size().X); height <= frame {
		in.Min.Y = in.Max.Y - frame
	}
	l.block(p.title, l.label, in.Min.X, in.Max.X, in.Max.Y+titleGap+blockHeight(p.title, l.label), 0.5)
	p.box.draw(l, in)
}

// boxWidth is an even share of a row of boxes, or the width of a column of axes.
func (l *layout) boxWidth(row []*panel, c int) vg.Length {
	if boxesOnly(row) {
		n := vg.Length(len(row))
		return (l.width - 2*edge - (n-1)*columns) / n
	}
	return l.left[c] + l.frame.X + l.right[c]
}

func (l *layout) boxError() error {
	for _, row := range l.panels {
		for c, p := range row {
			if p.box == nil {
				continue
			}
			if _, err := p.box.height(l, l.boxWidth(row, c)); err != nil {
				return fmt.Errorf("panel %q: %w", p.Title, err)
			}
		}
	}
	return nil
}

func (l *layout) hasAxes() bool { return len(l.left) > 0 }

func boxesOnly(row []*panel) bool {
	return !slices.ContainsFunc(row, func(p *panel) bool { return p.box == nil })
}

func splitKinds(panels [][]*panel) [][]*panel {
	var out [][]*panel
	for _, row := range panels {
		start := 0
		for i := range row {
			if i > 0 && (row[i].box == nil) != (row[i-1].box == nil) {
				out, start = append(out, row[start:i]), i
			}
		}
		out = append(out, row[start:])
	}
	return out
}
