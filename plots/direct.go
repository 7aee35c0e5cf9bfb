package plots

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
)

// direct writes the names of references beside their curves while a legend has more entries than it can hold, and
// returns the entries that are left. A name is written in every panel that has the curve, or in none. Curves stay
// together in the legend.
func (l *layout) direct(panels []*panel, entries []entry) []entry {
	for i := 0; i < len(entries) && len(entries) > mostShared; {
		if e := entries[i]; e.look.thin && !e.empty && l.nameCurve(panels, e) {
			entries = slices.Delete(entries, i, i+1)
			continue
		}
		i++
	}
	return entries
}

type name struct {
	text textLine
	at   vg.Point // the start of its baseline
}

// nameCurve names a curve in every panel that has it. It reports whether each panel had room.
func (l *layout) nameCurve(panels []*panel, e entry) bool {
	var names []name
	for _, p := range panels {
		for n, s := range p.Series {
			if cmp.Or(s.Entry, s.Label) != e.name || !s.Reference || len(s.X)+len(s.Y) == 0 {
				continue
			}
			at, ok := p.nameAt(l, n, l.font.line(e.name, l.small))
			if !ok {
				return false
			}
			names = append(names, at)
			break // of several curves of one name, one is named
		}
	}
	for _, n := range names {
		l.tintedText(n.text, n.at, false, grey)
	}
	return len(names) > 0
}

// nameAt finds a free place for a name above or below its curve, near its right end if possible.
func (p *panel) nameAt(l *layout, n int, text textLine) (name, bool) {
	const away = 2 // from the curve
	curve := p.sampledCurve(n)
	obstacles := p.obstacles()
	for _, share := range []vg.Length{1, 0.75, 0.5, 0.25, 0} {
		x := p.frame.Min.X + insideGap + share*(p.frame.Size().X-2*insideGap-text.width)
		low, high, ok := heights(curve, x, x+text.width)
		if !ok {
			continue
		}
		for _, y := range []vg.Length{high + away + text.depth, low - away - text.height} {
			at := name{text, vg.Point{X: x, Y: y}}
			if p.clear(l, text.box(at.at, false), obstacles) {
				return at, true
			}
		}
	}
	return name{}, false
}

func (p *panel) sampledCurve(n int) []vg.Point {
	var all []vg.Point
	for _, part := range clipLine(p.frame, p.points(n, p.Series[n].Y)) {
		all = append(all, sampled(part)...)
	}
	return all
}

func heights(points []vg.Point, from, to vg.Length) (low, high vg.Length, ok bool) {
	for _, q := range points {
		if q.X < from || q.X > to {
			continue
		}
		if !ok {
			low, high, ok = q.Y, q.Y, true
		}
		low, high = min(low, q.Y), max(high, q.Y)
	}
	return low, high, ok
}

// clear reports whether text fits in the frame and touches neither data nor other texts.
func (p *panel) clear(l *layout, box vg.Rectangle, obstacles []vg.Point) bool {
	const gap = 1
	box.Min, box.Max = box.Min.Sub(vg.Point{X: gap, Y: gap}), box.Max.Add(vg.Point{X: gap, Y: gap})
	touches := func(q vg.Point) bool {
		return box.Min.X < q.X && q.X < box.Max.X && box.Min.Y < q.Y && q.Y < box.Max.Y
	}
	return p.inside(box.Min) && p.inside(box.Max) && !slices.ContainsFunc(obstacles, touches) &&
		!slices.ContainsFunc(l.texts, func(t vg.Rectangle) bool {
			return box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y
		})
}
