package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// panel is a Panel on its way to the page.
type panel struct {
	Panel
	x, y  axis
	looks []look      // one for each series
	aside []vg.Length // how far each series stands right of its x
	frame vg.Rectangle
	box   box // instead of axes, x to frame
	heat  *heat

	title, xLabel, yLabel []textLine
}

func (l *layout) newPanel(p Panel, place string) *panel {
	q := &panel{Panel: p, box: l.newBox(p), heat: l.newHeat(p.Heat)}
	if q.box != nil {
		return q
	}
	var xs, ys []float64
	for i, s := range p.Series {
		xs = append(xs, s.X...)
		for _, v := range [][]float64{s.Y, s.Lo, s.Hi} {
			ys = append(ys, v...)
		}
		q.looks = append(q.looks, l.looks.forSeries(s, fmt.Sprint(place, i)))
	}
	p.X, p.Y = p.fixedEnds()
	q.x, q.y = newAxis(p.X, xs, l.font, l.small), newAxis(p.Y, ys, l.font, l.small)
	q.setAside(l)
	return q
}

// setAside shifts curves with error bars a little sideways on an axis of names, so that none hides another.
func (p *panel) setAside(l *layout) {
	p.aside = make([]vg.Length, len(p.Series))
	if !p.X.categorical() {
		return
	}
	var barred []int
	for i, s := range p.Series {
		if len(s.Lo) > 0 && !s.asBand() {
			barred = append(barred, i)
		}
	}
	for n, i := range barred {
		p.aside[i] = (vg.Length(n) - vg.Length(len(barred)-1)/2) * 1.5 * vg.Length(l.style.Marker)
	}
}

func (p *panel) breakLabels(l *layout) {
	p.title = l.font.lines(p.Title, l.label, l.frame.X)
	p.xLabel = l.font.lines(p.x.label, l.label, l.frame.X)
	p.yLabel = l.font.lines(p.y.label, l.label, l.frame.Y)
	p.x.thin(l.frame.X, 0.5*l.small, func(t textLine) vg.Length { return t.width })
	p.y.thin(l.frame.Y, 0.3*l.small, func(textLine) vg.Length { return l.small })
	if p.heat != nil {
		p.heat.breakLabels(l)
	}
}

func (p *panel) margins(l *layout) (left, right vg.Length) {
	left = p.y.labelWidth() + tickMark + tickGap
	if len(p.yLabel) > 0 {
		left += labelGap + blockHeight(p.yLabel, l.label)
	}
	for _, t := range p.x.ticks {
		over := t.label.width/2 - vg.Length(1-p.x.norm(t.value))*l.frame.X
		right = max(right, over)
	}
	if p.heat != nil {
		right = max(right, p.heat.width(l))
	}
	return left, max(right, edge)
}

func (p *panel) bottom(l *layout) vg.Length {
	h := tickMark + tickGap + p.tickHeight(l) + descent*l.small
	if len(p.xLabel) > 0 {
		h += labelGap - descent*l.small + blockHeight(p.xLabel, l.label)
	}
	return h
}

func (p *panel) tickHeight(l *layout) vg.Length {
	h := ascent * l.small
	for _, t := range p.x.ticks {
		h = max(h, t.label.height)
	}
	return h
}

func (p *panel) at(x, y float64) vg.Point {
	size := p.frame.Size()
	return vg.Point{
		X: p.frame.Min.X + vg.Length(p.x.norm(x))*size.X,
		Y: p.frame.Min.Y + vg.Length(p.y.norm(y))*size.Y,
	}
}

func (p *panel) points(n int, y []float64) []vg.Point {
	s := p.Series[n]
	if s.spans() {
		if len(y) == 1 {
			return []vg.Point{p.at(p.x.min, y[0]), p.at(p.x.max, y[0])}
		}
		return []vg.Point{p.at(s.X[0], p.y.min), p.at(s.X[0], p.y.max)}
	}
	points := make([]vg.Point, len(y))
	for i, v := range y {
		points[i] = p.point(n, i, v)
	}
	return points
}

func (p *panel) point(n, i int, y float64) vg.Point {
	at := p.at(p.Series[n].X[i], y)
	at.X += p.aside[n]
	return at
}

// draw draws from back to front: grid or heat map, bands, error bars and references, faint runs, curves.
func (p *panel) draw(l *layout) {
	if p.heat != nil {
		p.heat.draw(l, p)
	} else {
		p.drawGrid(l)
	}
	for i := range p.Series {
		p.drawBand(l, i)
	}
	for i := range p.Series {
		p.drawBandEdges(l, i)
	}
	p.drawFrame(l)
	for i := range p.Series {
		p.drawBars(l, i)
	}
	for _, of := range []func(Series) bool{
		func(s Series) bool { return s.Reference },
		func(s Series) bool { return !s.Reference && s.Faint },
		func(s Series) bool { return !s.Reference && !s.Faint },
	} {
		for i, s := range p.Series {
			if of(s) {
				p.drawCurve(l, i)
			}
		}
	}
	for i := range p.Series {
		p.drawCuts(l, i)
	}
	p.drawLabels(l)
}

func (p *panel) drawGrid(l *layout) {
	for _, t := range p.y.ticks {
		if n := p.y.norm(t.value); t.major && 0.001 < n && n < 0.999 {
			l.stroke([]vg.Point{p.at(p.x.min, t.value), p.at(p.x.max, t.value)}, pen{grid, 0.4, Solid})
		}
	}
}

// asBand reports whether the interval is a band. A band of one point becomes a bar.
func (s Series) asBand() bool { return s.Interval == Bands && len(s.Lo) > 1 }

func (p *panel) drawBand(l *layout, n int) {
	s, look := p.Series[n], p.looks[n]
	if !s.asBand() {
		return
	}
	low, high := p.points(n, s.Lo), p.points(n, s.Hi)
	outline := append([]vg.Point{}, high...)
	for i := range low {
		outline = append(outline, low[len(low)-1-i])
	}
	l.veil(polygon(clipPolygon(p.frame, outline)), look)
}

// drawBandEdges shows a band's ends even under another band.
func (p *panel) drawBandEdges(l *layout, n int) {
	s, look := p.Series[n], p.looks[n]
	if !s.asBand() {
		return
	}
	for _, side := range [][]float64{s.Lo, s.Hi} {
		for _, part := range clipLine(p.frame, p.points(n, side)) {
			l.stroke(part, pen{tint(look.color, edgeTint), 0.4, Solid})
		}
	}
}

// edgeTint is how much colour a band's edges have; see tint.
const edgeTint = 0.6

func (p *panel) drawBars(l *layout, n int) {
	s, look := p.Series[n], p.looks[n]
	if s.asBand() {
		return
	}
	hairline := pen{look.color, vg.Length(l.style.Hairline), Solid}
	for i := range s.Lo {
		low, high := p.point(n, i, s.Lo[i]), p.point(n, i, s.Hi[i])
		if s.Lo[i] == s.Hi[i] {
			continue
		}
		lines := [][]vg.Point{{low, high}, capOf(low, l), capOf(high, l)}
		for _, line := range lines {
			for _, part := range clipLine(p.frame, line) {
				l.stroke(part, hairline)
			}
		}
	}
}

func capOf(at vg.Point, l *layout) []vg.Point {
	half := vg.Length(l.style.Marker) * 0.8
	return []vg.Point{{X: at.X - half, Y: at.Y}, {X: at.X + half, Y: at.Y}}
}

func (p *panel) drawCurve(l *layout, n int) {
	s, look := p.Series[n], p.looks[n]
	points := p.points(n, s.Y)
	for _, part := range clipLine(p.frame, points) {
		p.halo(l, part, look)
		l.stroke(part, l.pen(look))
	}
	if s.spans() {
		return
	}
	for _, i := range p.marked(s, points) {
		l.mark(look.marker, points[i], vg.Length(l.style.Marker), look.color, s.hollow(i))
	}
}

// marked returns the points with a marker: all, or a few well apart if there are many.
func (p *panel) marked(s Series, points []vg.Point) []int {
	var chosen []int
	for i, q := range points {
		if !p.inside(q) {
			continue
		}
		if n := len(chosen); n > 0 && s.Marker == AutoMarker && len(points) > 20 {
			if distance(q, points[chosen[n-1]]) < p.frame.Size().X/8 {
				continue
			}
		}
		chosen = append(chosen, i)
	}
	return chosen
}

func (s Series) hollow(i int) bool { return i < len(s.Hollow) && s.Hollow[i] }

func (p *panel) inside(q vg.Point) bool {
	const slop = 1e-6
	return p.frame.Min.X-slop <= q.X && q.X <= p.frame.Max.X+slop && p.frame.Min.Y-slop <= q.Y &&
		q.Y <= p.frame.Max.Y+slop
}

func (l *layout) pen(look look) pen {
	if look.faint {
		return pen{look.color, 0.75 * vg.Length(l.style.Hairline), look.line}
	}
	if look.thin {
		return pen{look.color, 1.3 * vg.Length(l.style.Hairline), look.line}
	}
	return pen{look.color, vg.Length(l.style.Line), look.line}
}

func (p *panel) drawFrame(l *layout) {
	line := pen{ink, vg.Length(l.style.Hairline), Solid}
	l.outline(rectangle(p.frame.Min, p.frame.Max), line.color, line.width)
	for _, t := range p.x.ticks {
		q := p.at(t.value, p.y.min)
		l.stroke([]vg.Point{q, {X: q.X, Y: q.Y - t.length()}}, line)
		l.text(t.shown(), vg.Point{X: q.X - t.label.width/2, Y: q.Y - tickMark - tickGap - p.tickHeight(l)})
	}
	for _, t := range p.y.ticks {
		q := p.at(p.x.min, t.value)
		l.stroke([]vg.Point{q, {X: q.X - t.length(), Y: q.Y}}, line)
		l.text(t.shown(), vg.Point{X: q.X - tickMark - tickGap - t.label.width, Y: q.Y - 0.33*l.small})
	}
}

func (t tick) shown() textLine {
	if t.hidden {
		return textLine{}
	}
	return t.label
}

func (t tick) length() vg.Length {
	if t.major {
		return tickMark
	}
	return 0.6 * tickMark
}

func (p *panel) drawLabels(l *layout) {
	l.block(p.title, l.label, p.frame.Min.X, p.frame.Max.X, p.frame.Max.Y+titleGap+blockHeight(p.title, l.label), 0.5)
	l.block(p.xLabel, l.label, p.frame.Min.X, p.frame.Max.X, p.frame.Min.Y-tickMark-tickGap-p.tickHeight(l)-labelGap,
		0.5)
	if len(p.yLabel) == 0 {
		return
	}
	// The block of the y label ends where the widest tick label begins.
	x := p.frame.Min.X - tickMark - tickGap - p.y.labelWidth() - labelGap
	x += max(ascent*l.label, p.yLabel[0].height) - blockHeight(p.yLabel, l.label)
	l.turnedBlock(p.yLabel, l.label, x, (p.frame.Min.Y+p.frame.Max.Y)/2)
}

func (p *panel) obstacles() []vg.Point {
	var all []vg.Point
	for n, s := range p.Series {
		for _, part := range clipLine(p.frame, p.points(n, s.Y)) {
			all = append(all, sampled(part)...)
		}
		for _, q := range p.points(n, s.Y) {
			if p.inside(q) {
				all = append(all, q)
			}
		}
		for _, c := range p.cuts(n, 1) {
			all = append(all, c.at)
		}
		for _, across := range p.intervals(n) {
			for _, part := range clipLine(p.frame, across) {
				all = append(all, sampled(part)...)
			}
		}
	}
	return all
}

// intervals returns lines from Lo to Hi, for a band also between points.
func (p *panel) intervals(n int) [][]vg.Point {
	s := p.Series[n]
	var lines [][]vg.Point
	for i := range s.Lo {
		low, high := p.point(n, i, s.Lo[i]), p.point(n, i, s.Hi[i])
		lines = append(lines, []vg.Point{low, high})
		if i == 0 || !s.asBand() {
			continue
		}
		low0, high0 := p.point(n, i-1, s.Lo[i-1]), p.point(n, i-1, s.Hi[i-1])
		const between = 32
		for k := vg.Length(1); k < between; k++ {
			lines = append(lines,
				[]vg.Point{low0.Add(low.Sub(low0).Scale(k / between)), high0.Add(high.Sub(high0).Scale(k / between))})
		}
	}
	return lines
}

func distance(a, b vg.Point) vg.Length {
	d := a.Sub(b)
	return vg.Length(math.Hypot(float64(d.X), float64(d.Y)))
}

func sampled(line []vg.Point) []vg.Point {
	var all []vg.Point
	for i := range line {
		if i == 0 {
			all = append(all, line[0])
			continue
		}
		d := line[i].Sub(line[i-1])
		n := int(min(200, math.Ceil(float64(distance(line[i], line[i-1]))/2)))
		for k := 1; k <= n; k++ {
			all = append(all, line[i-1].Add(d.Scale(vg.Length(k)/vg.Length(n))))
		}
	}
	return all
}

// What of a series lies outside its axes is cut off, and a small triangle at the
// frame says where; the caption says what it means.

const beyondNote = "Triangles at the frame: beyond the axis."

// caption is Caption and, if data are cut off, a note on the triangles. An empty caption stays empty.
func (f Figure) caption() string {
	if f.Caption == "" || !f.beyond() {
		return f.Caption
	}
	return strings.TrimSpace(f.Caption) + " " + beyondNote
}

func (f Figure) beyond() bool {
	return slices.ContainsFunc(slices.Concat(f.Panels...), func(p Panel) bool {
		x, y := p.fixedEnds()
		return slices.ContainsFunc(p.Series, func(s Series) bool {
			return !s.Reference && (x.cuts(s.X) || y.cuts(s.Y) || y.cuts(s.Lo) || y.cuts(s.Hi))
		})
	})
}

func (p Panel) fixedEnds() (x, y Axis) {
	x, y = p.X, p.Y
	if p.Heat != nil {
		x, y = heatAxis(x, p.Heat.X), heatAxis(y, p.Heat.Y)
	}
	return x, y
}

func (a Axis) cuts(values []float64) bool {
	if a.Min == 0 && a.Max == 0 {
		return false
	}
	ends := axis{scale: a.Scale, min: a.Min, max: a.Max}
	return slices.ContainsFunc(values, func(v float64) bool { return side(ends.norm(v)) != 0 })
}

// side is −1 before the start of an axis, 1 after its end, else 0.
func side(norm float64) int {
	const slop = 1e-9
	switch {
	case norm < -slop:
		return -1
	case norm > 1+slop:
		return 1
	}
	return 0
}

// cut is a triangle at the frame, pointing to where a value is.
type cut struct {
	at   vg.Point // where its tip is
	x, y int      // its direction
}

// cuts returns the triangles of series n, well apart on each border: values first, then the ends of intervals.
func (p *panel) cuts(n int, r vg.Length) []cut {
	s := p.Series[n]
	if s.Reference {
		return nil
	}
	var all []cut
	for _, values := range [][]float64{s.Y, s.Lo, s.Hi} {
		for i, v := range values {
			c := cut{x: side(p.x.norm(s.X[i])), y: side(p.y.norm(v))}
			if c.x == 0 && c.y == 0 {
				continue
			}
			at := p.point(n, i, v)
			c.at = vg.Point{
				X: max(p.frame.Min.X, min(p.frame.Max.X, at.X)), Y: max(p.frame.Min.Y, min(p.frame.Max.Y, at.Y)),
			}
			if !crowded(all, c, p.apart(s, r)) {
				all = append(all, c)
			}
		}
	}
	return all
}

// apart is the least distance between triangles of a series: that of a curve's markers, or less for single points.
func (p *panel) apart(s Series, r vg.Length) vg.Length {
	if s.Line == NoLine {
		return r
	}
	return max(2*r, p.frame.Size().X/8)
}

func crowded(all []cut, c cut, apart vg.Length) bool {
	return slices.ContainsFunc(all, func(o cut) bool {
		return o.x == c.x && o.y == c.y && distance(o.at, c.at) < apart
	})
}

func (p *panel) drawCuts(l *layout, n int) {
	r := 0.95 * vg.Length(l.style.Marker)
	for _, c := range p.cuts(n, r) {
		toward := math.Atan2(float64(c.y), float64(c.x))
		sin, cos := math.Sincos(toward)
		middle := c.at.Sub(vg.Point{X: r * vg.Length(cos), Y: r * vg.Length(sin)})
		l.fill(regular(middle, 3, r, toward*180/math.Pi), p.looks[n].color)
	}
}
