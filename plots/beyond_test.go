package plots

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is beyond an axis has a triangle on the frame, near where it would be, and
// the caption says so; what is inside has none.
func TestWhatIsBeyondTheAxisIsMarked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "points")
		x := rapid.SliceOfN(rapid.Float64Range(-3, 3), n, n).Draw(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(-3, 3), n, n).Draw(t, "y")
		f := Figure{Name: "x", Caption: "Points.", Panels: [][]Panel{{{
			X: Axis{Min: -1, Max: 1}, Y: Axis{Min: -1, Max: 1}, Series: []Series{{X: x, Y: y, Line: NoLine}},
		}}}}
		l, err := newLayout(f)
		require.NoError(t, err)
		p := l.panels[0][0]
		cuts := p.cuts(0, 1)
		outside := 0
		for i := range x {
			if max(x[i], -x[i], y[i], -y[i]) <= 1 {
				continue
			}
			outside++
			at := p.at(max(-1, min(1, x[i])), max(-1, min(1, y[i])))
			require.True(t, slices.ContainsFunc(cuts, func(c cut) bool {
				d := c.at.Sub(at)
				return d.X*d.X+d.Y*d.Y < 1.001
			}), "(%g, %g) has no triangle", x[i], y[i])
		}
		require.LessOrEqual(t, len(cuts), outside)
		require.Equal(t, outside > 0, f.caption() == "Points. "+beyondNote)
		f.Panels[0][0].Series[0].Reference = true
		require.Equal(t, "Points.", f.caption(), "a reference goes on for ever")
		f.Caption = ""
		require.Empty(t, f.caption())
	})
}

// Where no transparency is, a band becomes lines that lie in it.
func TestHatchesLieInTheirBands(t *testing.T) {
	l, err := newLayout(figure2(ICML, Bands))
	require.NoError(t, err)
	veils := 0
	for _, o := range l.ops {
		if !o.veil {
			continue
		}
		veils++
		low, high := o.path[0].Pos, o.path[0].Pos
		for _, part := range o.path[:len(o.path)-1] {
			low.X, low.Y = min(low.X, part.Pos.X), min(low.Y, part.Pos.Y)
			high.X, high.Y = max(high.X, part.Pos.X), max(high.Y, part.Pos.Y)
		}
		lines := hatchLines(o.path, o.hatch, 2.6)
		require.NotEmpty(t, lines)
		for _, line := range lines {
			for _, q := range line {
				require.True(t, low.X-1e-6 <= q.X && q.X <= high.X+1e-6 && low.Y-1e-6 <= q.Y && q.Y <= high.Y+1e-6)
			}
		}
	}
	require.Positive(t, veils)
	eps, err := figure2(ICML, Bands).Render("eps")
	require.NoError(t, err)
	bars, err := figure2(ICML, ErrorBars).Render("eps")
	require.NoError(t, err)
	require.Greater(t, len(eps), len(bars), "the lines are in the file")
}
