package plots

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

func triangle(grid int) Figure {
	s := &Simplex{Corners: [3]string{"relu", "tanh", "sin"}, Grid: grid, Areas: []Area{
		{Label: "here", Color: "#0072B2"}, {Label: "there", Color: "#D55E00"}, {Label: "nowhere", Color: "#009E73"},
	}}
	for a := range grid {
		for b := range grid - a {
			p := []float64{(float64(a) + 1./3) / float64(grid), (float64(b) + 1./3) / float64(grid), 0}
			p[2] = 1 - p[0] - p[1]
			s.Areas[(a+b)%2].Points = append(s.Areas[(a+b)%2].Points, p)
		}
	}
	axes := Panel{X: Axis{Label: "x"}, Series: []Series{{X: []float64{1, 2}, Y: []float64{1, 2}}}}
	return Figure{Name: "t", Style: Style{Aspect: 0.9}, Panels: [][]Panel{{{Title: "Δ", Simplex: s}, axes}}}
}

// The patches of a grid cover the triangle, and none reaches beyond it.
func TestPatchesCoverTheSimplex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := rapid.IntRange(1, 12).Draw(t, "grid")
		x, y := rapid.Float64Range(0, 1).Draw(t, "x"), rapid.Float64Range(0, 1).Draw(t, "y")
		if x+y > 1 {
			x, y = 1-x, 1-y
		}
		covered := false
		for _, a := range triangle(grid).Panels[0][0].Simplex.Areas {
			for _, p := range a.Points {
				corners := patch(p, grid)
				for _, w := range corners {
					require.GreaterOrEqual(t, min(w[0], w[1], w[2]), 0.0)
					require.InDelta(t, 1, w[0]+w[1]+w[2], 1e-9)
				}
				covered = covered || encloses(corners, x, y)
			}
		}
		require.True(t, covered, "(%g, %g) is white", x, y)
	})
}

// encloses reports whether a convex polygon of weights has a point in it.
func encloses(corners [][3]float64, x, y float64) bool {
	left, right := false, false
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		cross := (b[0]-a[0])*(y-a[1]) - (b[1]-a[1])*(x-a[0])
		left, right = left || cross > 1e-12, right || cross < -1e-12
	}
	return !left || !right
}

func TestSimplexBesideAxes(t *testing.T) {
	f := triangle(9)
	requireTidy(t, f)
	l, err := newLayout(f)
	require.NoError(t, err)
	require.Len(t, merged(l.panels[0]), 3, "an area without points is explained, too")
	base := vg.Length(0) // of the lowest patch
	for _, o := range l.ops {
		if o.color == rgb("#0072B2") && o.width == 0 && len(o.path) < 8 {
			for _, part := range o.path[:len(o.path)-1] {
				base = min(base, part.Pos.Y)
			}
			break
		}
	}
	require.GreaterOrEqual(t, base, l.panels[0][1].frame.Min.Y-1e-6, "it stands where the frame beside it does")
	csv, err := f.CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "panel,area,left,right,top\nΔ,here,0.037")

	for want, spoil := range map[string]func(*Simplex){
		"Grid is 0":     func(s *Simplex) { s.Grid = 0 },
		"no colour":     func(s *Simplex) { s.Areas[0].Color = "" },
		"of sum 1":      func(s *Simplex) { s.Areas[1].Points[0] = []float64{0.5, 0.6, 0.1} },
		"three weights": func(s *Simplex) { s.Areas[1].Points[0] = []float64{0.5, 0.5} },
		"corner 1":      func(s *Simplex) { s.Corners[1] = "$" },
	} {
		f := triangle(3)
		spoil(f.Panels[0][0].Simplex)
		require.ErrorContains(t, f.Validate(), want)
	}
}
