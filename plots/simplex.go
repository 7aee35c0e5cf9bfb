package plots

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// Simplex is the triangle of all weights of three things, one at each corner; colours show what holds where.
type Simplex struct {
	Corners [3]string // names: left, right, top
	Grid    int       // points along an edge: how large the patch of a point is
	Areas   []Area
}

// Area is what holds at some points of a simplex. It is in the legend even without points.
type Area struct {
	Label  string
	Color  string      // "#RRGGBB"
	Points [][]float64 // weights of the corners in their order, each positive or 0, their sum 1
}

func (s *Simplex) validate() error {
	for i, name := range s.Corners {
		if err := checkText(name); err != nil {
			return fmt.Errorf("simplex: corner %d: %w", i, err)
		}
	}
	if s.Grid < 1 {
		return fmt.Errorf("simplex: Grid is %d: expected at least 1", s.Grid)
	}
	for i, a := range s.Areas {
		if err := a.validate(); err != nil {
			return fmt.Errorf("simplex: area %d %q: %w", i, a.Label, err)
		}
	}
	return nil
}

func (a Area) validate() error {
	if err := cmp.Or(checkText(a.Label), checkColor(a.Color)); err != nil {
		return err
	}
	if a.Color == "" {
		return errors.New("it has no colour: expected \"#RRGGBB\"")
	}
	for i, p := range a.Points {
		if len(p) != 3 || min(p[0], p[1], p[2]) < 0 || math.Abs(p[0]+p[1]+p[2]-1) > 1e-6 || math.IsNaN(p[0]+p[1]+p[2]) {
			return fmt.Errorf("point %d is %v: expected three weights ≥ 0 of sum 1", i, p)
		}
	}
	return nil
}

func (s *Simplex) lines(panel string) [][]string {
	var lines [][]string
	for _, a := range s.Areas {
		for _, p := range a.Points {
			lines = append(lines, []string{panel, plain(a.Label), number(p, 0), number(p, 1), number(p, 2)})
		}
	}
	return lines
}

// simplexBox is a Simplex on its way to the page.
type simplexBox struct {
	*Simplex
	size  vg.Length // of its text
	names [3]textLine
}

func (l *layout) newSimplex(s *Simplex) *simplexBox {
	b := &simplexBox{Simplex: s, size: l.small}
	for i, name := range s.Corners {
		b.names[i] = l.font.line(name, l.small)
	}
	return b
}

const cornerGap = 3

// above and below are what the names take over and under the triangle.
func (b *simplexBox) above() vg.Length { return max(ascent*b.size, b.names[2].height) + cornerGap }
func (b *simplexBox) below() vg.Length { return (ascent+descent)*b.size + cornerGap }

func (b *simplexBox) height(l *layout, width vg.Length) (vg.Length, error) {
	if room := width - b.names[0].width - b.names[1].width; room < b.size {
		return 0, fmt.Errorf("its corners' names leave %.0f pt between them: expected shorter names or a wider style",
			float64(room))
	}
	return b.above() + b.tall(l, width) + b.below(), nil
}

// tall is the triangle's height. Its base is level with the frames beside it.
func (b *simplexBox) tall(l *layout, width vg.Length) vg.Length {
	tall := vg.Length(math.Sqrt(3)/2) * width
	if l.hasAxes() {
		tall = min(tall, l.frame.Y-b.above())
	}
	return tall
}

func (b *simplexBox) draw(l *layout, in vg.Rectangle) {
	tall := b.tall(l, in.Size().X)
	side := tall * vg.Length(2/math.Sqrt(3))
	left := vg.Point{X: (in.Min.X + in.Max.X - side) / 2, Y: in.Max.Y - b.above() - tall}
	at := func(w [3]float64) vg.Point {
		return left.Add(vg.Point{
			X: side * vg.Length(w[1]+w[2]/2), Y: side * vg.Length(math.Sqrt(3)/2*w[2]),
		})
	}
	for _, a := range b.Areas {
		for _, p := range a.Points {
			var corners []vg.Point
			for _, w := range patch(p, b.Grid) {
				corners = append(corners, at(w))
			}
			l.fill(polygon(corners), rgb(a.Color))
		}
	}
	corners := []vg.Point{at([3]float64{1, 0, 0}), at([3]float64{0, 1, 0}), at([3]float64{0, 0, 1})}
	l.outline(polygon(corners), ink, vg.Length(l.style.Hairline))
	baseline := left.Y - cornerGap - ascent*b.size
	l.text(b.names[0], vg.Point{X: max(in.Min.X, left.X-b.names[0].width/2), Y: baseline})
	l.text(b.names[1], vg.Point{X: min(in.Max.X, left.X+side+b.names[1].width/2) - b.names[1].width, Y: baseline})
	l.text(b.names[2], vg.Point{X: corners[2].X - b.names[2].width/2, Y: corners[2].Y + cornerGap})
}

// patchSize enlarges patches so that neighbours overlap and no gaps show.
const patchSize = 1.15

// patch is the hexagon of points nearest to a grid point, clipped to the triangle.
func patch(point []float64, grid int) [][3]float64 {
	r := patchSize / (3 * float64(grid))
	var corners [][3]float64
	for _, d := range [][3]float64{{2, -1, -1}, {1, 1, -2}, {-1, 2, -1}, {-2, 1, 1}, {-1, -1, 2}, {1, -2, 1}} {
		corners = append(corners, [3]float64{point[0] + r*d[0], point[1] + r*d[1], point[2] + r*d[2]})
	}
	for i := range 3 {
		corners = clipWeight(corners, i)
	}
	return corners
}

func clipWeight(polygon [][3]float64, i int) [][3]float64 {
	var out [][3]float64
	for n, a := range polygon {
		b := polygon[(n+1)%len(polygon)]
		if a[i] >= 0 {
			out = append(out, a)
		}
		if (a[i] < 0) != (b[i] < 0) {
			t := a[i] / (a[i] - b[i])
			cross := [3]float64{a[0] + t*(b[0]-a[0]), a[1] + t*(b[1]-a[1]), a[2] + t*(b[2]-a[2])}
			cross[i] = 0
			out = append(out, cross)
		}
	}
	return out
}

func (b *simplexBox) entries() []entry {
	var all []entry
	for _, a := range b.Areas {
		if a.Label != "" {
			all = append(all, entry{name: a.Label, look: look{color: rgb(a.Color), line: NoLine}, patch: true})
		}
	}
	return all
}
