package plots

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// Heat is a grid of numbers drawn as colours behind a panel's curves, with a colour bar at the right. Larger is darker,
// so that it can be read in grey. The axes end with the grid, unless Axis says otherwise.
type Heat struct {
	X, Y   []float64   // edges of the cells, increasing: one more than there are columns and rows
	Values [][]float64 // Values[row][column], the first row at Y[0]

	// Min and Max are the ends of the colours; both 0: from the values. What lies outside has the end's colour.
	Min, Max float64
	Label    string // of the bar, such as "$ρ^2$"
}

func (h *Heat) validate(x, y Scale) error {
	if err := checkText(h.Label); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	if err := cmp.Or(checkEdges("X", h.X, x), checkEdges("Y", h.Y, y)); err != nil {
		return err
	}
	return h.validateValues()
}

func checkEdges(name string, edges []float64, scale Scale) error {
	if len(edges) < 2 {
		return fmt.Errorf("%s has %d edges: expected at least 2", name, len(edges))
	}
	if err := finite(name, edges, scale); err != nil {
		return err
	}
	for i := 1; i < len(edges); i++ {
		if edges[i] <= edges[i-1] {
			return fmt.Errorf("%s[%d] is %g after %g: expected increasing edges", name, i, edges[i], edges[i-1])
		}
	}
	return nil
}

func (h *Heat) validateValues() error {
	if len(h.Values) != len(h.Y)-1 {
		return fmt.Errorf("there are %d rows of values and %d edges in Y: expected one row less than edges",
			len(h.Values), len(h.Y))
	}
	for i, row := range h.Values {
		if len(row) != len(h.X)-1 {
			return fmt.Errorf("row %d has %d values and X has %d edges: expected one value less than edges", i,
				len(row), len(h.X))
		}
		if err := finite(fmt.Sprintf("Values[%d]", i), row, Linear); err != nil {
			return err
		}
	}
	if err := finite("ends", []float64{h.Min, h.Max}, Linear); err != nil {
		return err
	}
	if (h.Min != 0 || h.Max != 0) && h.Min >= h.Max {
		return errors.New("the ends are not in order: expected Min < Max, or both 0 for automatic ends")
	}
	return nil
}

// heat is a Heat with everything decided.
type heat struct {
	*Heat
	bar   axis
	label []textLine
}

// The colour bar's place at the right of the frame, in points.
const (
	barGap   = 5
	barWidth = 7
	barSteps = 64
)

// heatMap are the colours from small to large, with evenly falling luminance: 247, 198, 143, 88, 30 of 255.
var heatMap = []color.RGBA{
	{R: 0xFB, G: 0xF7, B: 0xEC, A: 255}, {R: 0xF2, G: 0xBE, B: 0x79, A: 255}, {R: 0xC8, G: 0x79, B: 0x6A, A: 255},
	{R: 0x71, G: 0x44, B: 0x7F, A: 255}, {R: 0x20, G: 0x16, B: 0x45, A: 255},
}

func heatColor(share float64) color.RGBA {
	at := max(0, min(1, share)) * float64(len(heatMap)-1)
	i := min(int(at), len(heatMap)-2)
	mix := func(a, b uint8) uint8 {
		return uint8(math.Round(float64(a) + (at-float64(i))*(float64(b)-float64(a))))
	}
	a, b := heatMap[i], heatMap[i+1]
	return color.RGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 255}
}

func (l *layout) newHeat(h *Heat) *heat {
	if h == nil {
		return nil
	}
	bar := axis{min: h.Min, max: h.Max}
	if h.Min == 0 && h.Max == 0 {
		bar.min, bar.max = math.Inf(1), math.Inf(-1)
		for _, row := range h.Values {
			for _, v := range row {
				bar.min, bar.max = min(bar.min, v), max(bar.max, v)
			}
		}
		if bar.max-bar.min < 1e-9*max(1e-290, math.Abs(bar.max)) { // one value
			bar.min, bar.max = bar.min-0.5, bar.max+0.5
		}
	}
	return &heat{Heat: h, bar: newAxis(Axis{Label: h.Label, Min: bar.min, Max: bar.max}, nil, l.font, l.small)}
}

func heatAxis(a Axis, edges []float64) Axis {
	if a.Min == 0 && a.Max == 0 {
		a.Min, a.Max = edges[0], edges[len(edges)-1]
	}
	return a
}

func (h *heat) breakLabels(l *layout) {
	h.label = l.font.lines(h.bar.label, l.label, l.frame.Y)
	h.bar.thin(l.frame.Y, 0.3*l.small, func(textLine) vg.Length { return l.small })
}

func (h *heat) width(l *layout) vg.Length {
	w := barGap + barWidth + tickMark + tickGap + h.bar.labelWidth()
	if len(h.label) > 0 {
		w += labelGap + blockHeight(h.label, l.label)
	}
	return w
}

// draw draws cells and bar. Cells overlap their right and upper neighbours a little, so that no gaps show.
func (h *heat) draw(l *layout, p *panel) {
	const under = 0.4
	for row := range h.Values {
		for column, v := range h.Values[row] {
			low, high := p.at(h.X[column], h.Y[row]), p.at(h.X[column+1], h.Y[row+1])
			high = vg.Point{X: min(high.X+under, p.frame.Max.X), Y: min(high.Y+under, p.frame.Max.Y)}
			low = vg.Point{X: max(low.X, p.frame.Min.X), Y: max(low.Y, p.frame.Min.Y)}
			if low.X < high.X && low.Y < high.Y {
				l.fill(rectangle(low, high), heatColor(h.bar.norm(v)))
			}
		}
	}
	h.drawBar(l, p.frame)
}

func (h *heat) drawBar(l *layout, frame vg.Rectangle) {
	x, height := frame.Max.X+barGap, frame.Size().Y
	for i := range barSteps {
		bottom := frame.Min.Y + height*vg.Length(i)/barSteps
		l.fill(rectangle(vg.Point{X: x, Y: bottom}, vg.Point{X: x + barWidth, Y: frame.Max.Y}),
			heatColor((float64(i)+0.5)/barSteps))
	}
	line := pen{ink, vg.Length(l.style.Hairline), Solid}
	bar := rectangle(vg.Point{X: x, Y: frame.Min.Y}, vg.Point{X: x + barWidth, Y: frame.Max.Y})
	l.outline(bar, line.color, line.width)
	for _, t := range h.bar.ticks {
		y := frame.Min.Y + vg.Length(h.bar.norm(t.value))*height
		l.stroke([]vg.Point{{X: x + barWidth, Y: y}, {X: x + barWidth + t.length(), Y: y}}, line)
		l.text(t.shown(), vg.Point{X: x + barWidth + tickMark + tickGap, Y: y - 0.33*l.small})
	}
	x += barWidth + tickMark + tickGap + h.bar.labelWidth() + labelGap + ascent*l.label
	l.turnedBlock(h.label, l.label, x, (frame.Min.Y+frame.Max.Y)/2)
}

func rectangle(low, high vg.Point) vg.Path {
	return polygon([]vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
}

// halo is the white edge that sets a curve off from the colours behind it.
func (p *panel) halo(l *layout, part []vg.Point, look look) {
	if p.heat != nil && look.line != NoLine {
		l.stroke(part, pen{tint(ink, 0), l.pen(look).width + 1.6, Solid})
	}
}

func (h *Heat) lines(panel string) [][]string {
	var lines [][]string
	for row := range h.Values {
		for column := range h.Values[row] {
			lines = append(lines, []string{panel, number(h.X, column), number(h.X, column+1), number(h.Y, row),
				number(h.Y, row+1), number(h.Values[row], column)})
		}
	}
	return lines
}
