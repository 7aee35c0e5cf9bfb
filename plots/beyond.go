package plots

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

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
