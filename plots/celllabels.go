package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

func (b *cellBox) setLabel(label string) []textLine {
	var lines []textLine
	if label != "" {
		for _, line := range strings.Split(label, "\n") {
			lines = append(lines, b.font.line(line, b.size))
		}
	}
	return lines
}

func (b *cellBox) labelHeight(e cellEdge) vg.Length {
	if len(e.label) == 0 {
		return 0
	}
	return blockHeight(e.label, b.size) + 0.6*air
}

// placeLabels puts each label at the middle of its edge, or where other arches leave more room, and shrinks labels that
// are too wide. It returns an error if one would not be legible.
func (b *cellBox) placeLabels() error {
	for i := range b.edges {
		e := &b.edges[i]
		if len(e.label) == 0 {
			continue
		}
		wide := vg.Length(0)
		for _, line := range e.label {
			wide = max(wide, line.width)
		}
		low, high := b.labelRoom(i, wide)
		if by := (high - low) / wide; by < 1 {
			if by*b.size < legible {
				return fmt.Errorf("cell: label %q of edge %d→%d needs %.0f pt: found %.0f; use a shorter label, a "+
					"line end in it, or a wider style", b.Edges[i].Label, b.Edges[i].From, b.Edges[i].To,
					float64(wide*legible/b.size), float64(high-low))
			}
			label := make([]textLine, len(e.label))
			for k, line := range e.label {
				label[k] = line.scaled(by)
			}
			e.label, wide = label, wide*by
		}
		e.middle = max(low+wide/2, min(high-wide/2, (e.start+e.end)/2))
	}
	return nil
}

// labelRoom returns the free part of edge i for a label: the one nearest to the middle that is wide enough, else the
// widest.
func (b *cellBox) labelRoom(i int, wide vg.Length) (low, high vg.Length) {
	e := b.edges[i]
	side, from := e.side, e.rise+b.slot/2
	if side == 0 {
		side, from = 1, b.slot/2-b.tall/2
	}
	type span struct{ low, high vg.Length }
	taken := []span{}
	for k, o := range b.edges {
		if k == i || o.side != side {
			continue
		}
		for _, leg := range []func(vg.Length) vg.Length{
			func(y vg.Length) vg.Length { return o.start + b.lean(o, y) },
			func(y vg.Length) vg.Length { return o.end - b.lean(o, y) },
		} {
			if from < o.rise {
				x, y := leg(from), leg(min(from+b.labelHeight(e), o.rise))
				half := max(b.slot, headWide)/2 + 1
				taken = append(taken, span{min(x, y) - half, max(x, y) + half})
			}
		}
	}
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	taken = append(taken, span{e.end - 1, e.end - 1})
	at, middle, best := e.start+1, (e.start+e.end)/2, math.Inf(-1)
	for _, t := range taken {
		room := min(t.low, e.end-1) - at
		score := float64(min(room, wide)) - 1e-3*math.Abs(float64(max(at+wide/2, min(at+room-wide/2, middle))-middle))
		if room > 0 && score > best {
			low, high, best = at, at+room, score
		}
		at = max(at, t.high)
	}
	return low, high
}

// lean is how far an arch's end bends inwards at a height.
func (b *cellBox) lean(e cellEdge, y vg.Length) vg.Length {
	r := b.radius(e)
	up := min(r, y-(e.rise-r))
	if up <= 0 {
		return 0
	}
	return r - vg.Length(math.Sqrt(float64(r*r-up*up)))
}

func (b *cellBox) noteHeight(width vg.Length) vg.Length {
	if lines := b.font.lines(b.Note, b.size, width); len(lines) > 0 {
		return titleGap + blockHeight(lines, b.size)
	}
	return 0
}

func (b *cellBox) drawLabel(l *layout, i int, origin vg.Point) {
	at := b.edges[i]
	if len(at.label) == 0 {
		return
	}
	col := ink
	if b.Edges[i].Emphasis == Dimmed {
		col = grey
	}
	side, y := vg.Length(1), b.slot/2
	if at.side != 0 {
		side, y = at.side, b.tall/2+at.rise+b.slot/2
	}
	y = origin.Y + side*(y+0.6*air)
	if side > 0 {
		y += blockHeight(at.label, b.size)
	}
	baseline := y - max(ascent*b.size, at.label[0].height)
	for _, line := range at.label {
		l.tintedText(line, vg.Point{X: origin.X + at.middle - line.width/2, Y: baseline}, false, col)
		baseline -= lineStep * b.size
	}
}
