package plots

import (
	"fmt"

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

// layout places the parts of a figure on a page: first it measures what the
// labels need, then all panels get the same width from what is left, and the
// height follows from Style.Aspect.
type layout struct {
	page
	figure       Figure
	style        Style
	small, label vg.Length // sizes of text
	looks        looks
	panels       [][]*panel
	left, right  []vg.Length // of each column, beside its frames
	frame        vg.Point    // width and height of every frame
}

// newLayout draws the figure on a page.
func newLayout(f Figure) (*layout, error) {
	style := f.Style.filled()
	l := &layout{
		page:   page{width: vg.Length(style.Width) * vg.Inch},
		figure: f, style: style,
		small: vg.Length(style.Body - 2), label: vg.Length(style.Body - 1),
		looks: looks{palette: style.Palette, byKey: map[string]int{}},
	}
	perRow := 0
	for r, row := range f.Panels {
		l.panels = append(l.panels, nil)
		for c, p := range row {
			l.panels[r] = append(l.panels[r], l.newPanel(p, fmt.Sprint(r, c)))
		}
		perRow = max(perRow, len(row))
	}
	for l.measure(); l.frame.X < narrow && perRow > 1; l.measure() {
		perRow--
		l.panels = reflow(l.panels, perRow)
	}
	if l.frame.X < least {
		return nil, fmt.Errorf("labels leave a width of %.0f pt to a panel: expected %d or more; use shorter tick labels or a wider style",
			float64(l.frame.X), least)
	}
	l.draw()
	return l, nil
}

// reflow breaks rows of more than perRow panels into rows of about equal length.
func reflow(panels [][]*panel, perRow int) [][]*panel {
	var out [][]*panel
	for _, row := range panels {
		n := (len(row) + perRow - 1) / perRow
		for i := range n {
			out = append(out, row[i*len(row)/n:(i+1)*len(row)/n])
		}
	}
	return out
}

// measure decides on margins, line breaks and the frames' size. The line
// breaks depend on the frame, and the frame on how many lines there are: a
// smaller frame makes more lines, which make the frame smaller, until all fits.
func (l *layout) measure() {
	for range 10 {
		before := l.frame
		l.measureFrame()
		for _, row := range l.panels {
			for _, p := range row {
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
		for c, p := range row {
			if c == len(l.left) {
				l.left, l.right = append(l.left, 0), append(l.right, 0)
			}
			left, right := p.margins(l)
			l.left[c], l.right[c] = max(l.left[c], left), max(l.right[c], right)
		}
	}
	n := vg.Length(len(l.left))
	free := l.width - 2*edge - (n-1)*columns
	for c := range l.left {
		free -= l.left[c] + l.right[c]
	}
	width := max(1, free/n) // 1: goes on to less panels in a row, or to an error
	l.frame = vg.Point{X: width, Y: width * vg.Length(l.style.Aspect)}
}

// draw draws everything from the title to the caption, and sets the height.
func (l *layout) draw() {
	y := vg.Length(-edge)
	if title := setLines(l.figure.Title, l.label, l.width-2*edge); len(title) > 0 {
		y = l.block(title, l.label, edge, l.width-edge, y, 0.5) - titleGap
	}
	var below []entry
	for r, row := range l.panels {
		if r > 0 {
			y -= rows
		}
		y = l.drawRow(row, y, &below)
	}
	if len(below) > 0 {
		y = l.legendBelow(below, y-rows)
	}
	if caption := setLines(l.figure.Caption, l.small, l.width-2*edge); len(caption) > 0 {
		y = l.block(caption, l.small, edge, l.width-edge, y-rows, 0)
	}
	l.height = edge - y
}

// drawRow draws a row of panels below y and returns where it ends. Legends
// that find no place inside are added to below.
func (l *layout) drawRow(row []*panel, y vg.Length, below *[]entry) vg.Length {
	top, bottom := l.small/3, vg.Length(0) // half a tick label stands above the frame
	for _, p := range row {
		if len(p.title) > 0 {
			top = max(top, blockHeight(p.title, l.label)+titleGap)
		}
		bottom = max(bottom, p.bottom(l))
	}
	x := vg.Length(edge)
	for c, p := range row {
		x += l.left[c]
		p.frame = vg.Rectangle{Min: vg.Point{X: x, Y: y - top - l.frame.Y}, Max: vg.Point{X: x + l.frame.X, Y: y - top}}
		p.draw(l)
		l.legend(p, below)
		x += l.frame.X + l.right[c] + columns
	}
	return y - top - l.frame.Y - bottom
}
