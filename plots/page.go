package plots

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// page is a drawn figure: paths in order, from y = 0 downwards, in points.
type page struct {
	width, height vg.Length
	ops           []op
	texts         []vg.Rectangle // the ink of every text
	smallest      vg.Length      // size of the smallest of them, its scripts aside
}

// op is one path with how it is painted; lines of width 0 are fills.
type op struct {
	path  vg.Path
	color color.RGBA
	width vg.Length
	dash  []vg.Length
	phase vg.Length // how far into the pattern the line begins

	text  *setText // what the path is the outlines of; nil: no text
	veil  bool     // a fill that what lies under it is seen through
	hatch float64  // degrees of the lines that take a veil's place in a format without transparency
}

type setText struct {
	textLine
	at      vg.Point // where its baseline starts
	quarter bool     // turned counterclockwise
}

// texter is a canvas that can write text as text.
type texter interface {
	Text(t setText, c color.Color)
}

// canvas is what a page needs of a vg.Canvas. What is no texter gets text as paths.
type canvas interface {
	SetColor(color.Color)
	SetLineWidth(vg.Length)
	SetLineDash(pattern []vg.Length, offset vg.Length)
	Fill(vg.Path)
	Stroke(vg.Path)
}

func (p *page) paint(c canvas) {
	round := func(v vg.Length) vg.Length { return vg.Length(math.Round(100*float64(v)) / 100) } // keeps files small
	up := func(q vg.Point) vg.Point { return vg.Point{X: round(q.X), Y: round(q.Y + p.height)} }
	for _, o := range p.ops {
		c.SetColor(o.paint())
		if writer, ok := c.(texter); ok && o.text != nil {
			text := *o.text
			text.at = up(text.at)
			writer.Text(text, o.paint())
			if drawn := text.drawn(); len(drawn) > 0 {
				c.Fill(drawn)
			}
			continue
		}
		path := mapPath(o.path, up)
		if o.width == 0 {
			c.Fill(path)
			continue
		}
		c.SetLineWidth(o.width)
		c.SetLineDash(o.dash, o.phase)
		c.Stroke(path)
	}
}

// veilShare is how much of its colour a veil has.
const veilShare = 0.19

func (o op) paint() color.Color {
	if !o.veil {
		return o.color
	}
	return color.NRGBA{R: o.color.R, G: o.color.G, B: o.color.B, A: uint8(math.Round(255 * veilShare))}
}

func (p *page) veil(path vg.Path, with look) {
	if len(path) > 0 {
		p.ops = append(p.ops, op{path: path, color: with.color, veil: true, hatch: with.hatch})
	}
}

// hatched draws veils as parallel lines, for a format without transparency.
func (p *page) hatched() *page {
	const apart, width = 2.6, 0.3
	out := &page{width: p.width, height: p.height}
	for _, o := range p.ops {
		if !o.veil {
			out.ops = append(out.ops, o)
			continue
		}
		for _, line := range hatchLines(o.path, o.hatch, apart) {
			out.ops = append(out.ops, op{path: polyline(line), color: tint(o.color, edgeTint), width: width})
		}
	}
	return out
}

// hatchLines fills a polygon with parallel lines on a fixed grid, so that those of neighbours meet.
func hatchLines(polygon vg.Path, degrees float64, apart vg.Length) [][]vg.Point {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	along := func(q vg.Point) vg.Point { // turned so that the lines are level
		return vg.Point{X: q.X*vg.Length(cos) + q.Y*vg.Length(sin), Y: q.Y*vg.Length(cos) - q.X*vg.Length(sin)}
	}
	back := func(q vg.Point) vg.Point {
		return vg.Point{X: q.X*vg.Length(cos) - q.Y*vg.Length(sin), Y: q.Y*vg.Length(cos) + q.X*vg.Length(sin)}
	}
	var corners []vg.Point
	low, high := vg.Length(math.Inf(1)), vg.Length(math.Inf(-1))
	for _, part := range polygon {
		if part.Type == vg.MoveComp || part.Type == vg.LineComp {
			q := along(part.Pos)
			corners, low, high = append(corners, q), min(low, q.Y), max(high, q.Y)
		}
	}
	var lines [][]vg.Point
	for k := math.Ceil(float64(low / apart)); vg.Length(k)*apart <= high; k++ {
		y := vg.Length(k) * apart
		xs := crossings(corners, y)
		for i := 0; i+1 < len(xs); i += 2 {
			lines = append(lines, []vg.Point{back(vg.Point{X: xs[i], Y: y}), back(vg.Point{X: xs[i+1], Y: y})})
		}
	}
	return lines
}

func crossings(corners []vg.Point, y vg.Length) []vg.Length {
	var xs []vg.Length
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		if (a.Y < y) != (b.Y < y) {
			xs = append(xs, a.X+(b.X-a.X)*(y-a.Y)/(b.Y-a.Y))
		}
	}
	slices.Sort(xs)
	return xs
}

func (p *page) fill(path vg.Path, col color.RGBA) {
	if len(path) > 0 {
		p.ops = append(p.ops, op{path: path, color: col})
	}
}

func (p *page) outline(path vg.Path, col color.RGBA, width vg.Length) {
	p.ops = append(p.ops, op{path: path, color: col, width: width})
}

type pen struct {
	color color.RGBA
	width vg.Length
	line  Line
}

func (p *page) stroke(points []vg.Point, with pen) {
	if len(points) < 2 || with.line == NoLine {
		return
	}
	p.ops = append(p.ops,
		op{path: polyline(points), color: with.color, width: with.width, dash: dashes(with.line, with.width)})
}

// strokeCentred centres the first dash on a line of that length: a gap there would be hidden by a marker, and a short
// dashed line look solid.
func (p *page) strokeCentred(points []vg.Point, length vg.Length, with pen) {
	at := len(p.ops)
	p.stroke(points, with)
	if at == len(p.ops) || len(p.ops[at].dash) == 0 { // no line, or one without dashes
		return
	}
	dash, period := p.ops[at].dash, vg.Length(0)
	for _, d := range dash {
		period += d
	}
	phase := math.Mod(float64(dash[0]/2-length/2), float64(period))
	p.ops[at].phase = vg.Length(phase) + period // between 0 and two periods
}

func polyline(points []vg.Point) vg.Path {
	var path vg.Path
	path.Move(points[0])
	for _, q := range points[1:] {
		path.Line(q)
	}
	return path
}

func polygon(points []vg.Point) vg.Path {
	if len(points) == 0 {
		return nil
	}
	path := polyline(points)
	path.Close()
	return path
}

func dashes(l Line, width vg.Length) []vg.Length {
	unit := max(width, 0.8)
	pattern := map[Line][]vg.Length{
		Dashed:   {4, 2},
		Dotted:   {1, 1.5},
		DashDot:  {5, 1.5, 1, 1.5},
		LongDash: {9, 2.5},
	}[l]
	var scaled []vg.Length
	for _, d := range pattern {
		scaled = append(scaled, d*unit)
	}
	return scaled
}

// text draws a line of text with the start of its baseline at pt.
func (p *page) text(l textLine, pt vg.Point) { p.tintedText(l, pt, false, ink) }

// turnedBlock draws lines turned a quarter counterclockwise, from the baseline at x on, their middles at y.
func (p *page) turnedBlock(lines []textLine, size, x, y vg.Length) {
	for i, l := range lines {
		p.tintedText(l, vg.Point{X: x + vg.Length(i)*lineStep*size, Y: y - l.width/2}, true, ink)
	}
}

func (p *page) tintedText(l textLine, pt vg.Point, quarter bool, col color.RGBA) {
	path := l.path(pt, quarter)
	if len(path) == 0 {
		return
	}
	p.ops = append(p.ops, op{path: path, color: col, text: &setText{l, pt, quarter}})
	if size := l.size(); len(p.texts) == 0 || size < p.smallest {
		p.smallest = size
	}
	p.texts = append(p.texts, l.box(pt, quarter))
}

// In em: the distance of lines, and what letters take above and below the baseline.
const (
	lineStep = 1.2
	ascent   = 0.72
	descent  = 0.22
)

func blockHeight(lines []textLine, size vg.Length) vg.Length {
	if len(lines) == 0 {
		return 0
	}
	first, last := lines[0], lines[len(lines)-1]
	return max(ascent*size, first.height) + vg.Length(len(lines)-1)*lineStep*size + max(descent*size, last.depth)
}

// block draws lines below y, aligned between left and right (0 left, 0.5 centred), and returns where they end.
func (p *page) block(lines []textLine, size, left, right, y, align vg.Length) vg.Length {
	if len(lines) == 0 {
		return y
	}
	baseline := y - max(ascent*size, lines[0].height)
	for _, l := range lines {
		p.text(l, vg.Point{X: left + align*(right-left-l.width), Y: baseline})
		baseline -= lineStep * size
	}
	return y - blockHeight(lines, size)
}

func (p *page) mark(m Marker, pt vg.Point, r vg.Length, col color.RGBA, hollow bool) {
	outline := markerPath(m, pt, r)
	if outline == nil {
		return
	}
	inside := col
	if hollow {
		inside = color.RGBA{R: 255, G: 255, B: 255, A: 255}
	}
	p.fill(outline, inside)
	p.outline(outline, col, 0.35*r)
}

// polygons are the markers with corners: how many, their radius, and the angle of the first.
var polygons = map[Marker]struct {
	n       int
	r       vg.Length
	degrees float64
}{
	Square: {4, 1.2, 45}, Diamond: {4, 1.35, 90}, TriangleUp: {3, 1.4, 90}, TriangleDown: {3, 1.4, -90},
	Pentagon: {5, 1.15, 90}, Hexagon: {6, 1.1, 0},
}

func markerPath(m Marker, at vg.Point, r vg.Length) vg.Path {
	if m == Circle {
		return circle(at, 0.95*r)
	}
	p := polygons[m]
	return regular(at, p.n, p.r*r, p.degrees)
}

// regular returns a regular polygon; degrees is the angle of its first corner.
func regular(at vg.Point, n int, r vg.Length, degrees float64) vg.Path {
	var corners []vg.Point
	for i := range n {
		sin, cos := math.Sincos(degrees*math.Pi/180 + 2*math.Pi*float64(i)/float64(n))
		corners = append(corners, vg.Point{X: at.X + r*vg.Length(cos), Y: at.Y + r*vg.Length(sin)})
	}
	return polygon(corners)
}

// circle is four cubic curves: formats draw arcs differently.
func circle(at vg.Point, r vg.Length) vg.Path {
	const k = 0.5522847498 // 4/3·(√2 − 1)
	to := func(x, y vg.Length) vg.Point { return vg.Point{X: at.X + r*x, Y: at.Y + r*y} }
	var p vg.Path
	p.Move(to(1, 0))
	p.CubeTo(to(1, k), to(k, 1), to(0, 1))
	p.CubeTo(to(-k, 1), to(-1, k), to(-1, 0))
	p.CubeTo(to(-1, -k), to(-k, -1), to(0, -1))
	p.CubeTo(to(k, -1), to(1, -k), to(1, 0))
	p.Close()
	return p
}

func clipLine(r vg.Rectangle, points []vg.Point) [][]vg.Point {
	return (&draw.Canvas{Rectangle: r}).ClipLinesXY(points)
}

func clipPolygon(r vg.Rectangle, points []vg.Point) []vg.Point {
	return (&draw.Canvas{Rectangle: r}).ClipPolygonXY(points)
}
