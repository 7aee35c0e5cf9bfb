package plots

import (
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
)

// What of a series lies outside its axes is cut off, and a small triangle at the
// frame says where; the caption says what it means.

// beyondNote is what the caption says of the triangles.
const beyondNote = "Triangles at the frame: beyond the axis."

// caption is what stands below the panels: Caption, and where something is cut
// off, what marks it. An empty one stays empty.
func (f Figure) caption() string {
	if f.Caption == "" || !f.beyond() {
		return f.Caption
	}
	return strings.TrimSpace(f.Caption) + " " + beyondNote
}

// beyond reports whether a panel cuts off some of its data.
func (f Figure) beyond() bool {
	for _, row := range f.Panels {
		for _, p := range row {
			x, y := p.fixedEnds()
			for _, s := range p.Series {
				if !s.Reference && (x.cuts(s.X) || y.cuts(s.Y) || y.cuts(s.Lo) || y.cuts(s.Hi)) {
					return true
				}
			}
		}
	}
	return false
}

// fixedEnds are the axes whose ends do not follow from the series.
func (p Panel) fixedEnds() (x, y Axis) {
	x, y = p.X, p.Y
	if p.Heat != nil {
		x, y = heatAxis(x, p.Heat.X), heatAxis(y, p.Heat.Y)
	}
	return x, y
}

// cuts reports whether one of the values lies outside an axis of fixed ends.
func (a Axis) cuts(values []float64) bool {
	if a.Min == 0 && a.Max == 0 {
		return false
	}
	ends := axis{scale: a.Scale, min: a.Min, max: a.Max}
	for _, v := range values {
		if side(ends.norm(v)) != 0 {
			return true
		}
	}
	return false
}

// side is −1 before the start of an axis, 1 behind its end, else 0.
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

// cuts are the triangles of series n, those of one border well apart: the value
// itself first, and then the ends of its intervals.
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

// apart is how far from each other the triangles of a series stand: those of a
// curve as its markers do, those of single points as far as they can be told apart.
func (p *panel) apart(s Series, r vg.Length) vg.Length {
	if s.Line == NoLine {
		return r
	}
	return max(2*r, p.frame.Size().X/8)
}

// crowded reports whether one of the triangles in the same direction is nearer to c.
func crowded(all []cut, c cut, apart vg.Length) bool {
	for _, o := range all {
		d := o.at.Sub(c.at)
		if o.x == c.x && o.y == c.y && math.Hypot(float64(d.X), float64(d.Y)) < float64(apart) {
			return true
		}
	}
	return false
}

// drawCuts draws the triangles of series n inside the frame.
func (p *panel) drawCuts(l *layout, n int) {
	r := 0.95 * vg.Length(l.style.Marker)
	for _, c := range p.cuts(n, r) {
		toward := math.Atan2(float64(c.y), float64(c.x))
		sin, cos := math.Sincos(toward)
		middle := c.at.Sub(vg.Point{X: r * vg.Length(cos), Y: r * vg.Length(sin)})
		l.fill(regular(middle, 3, r, toward*180/math.Pi), p.looks[n].color)
	}
}
