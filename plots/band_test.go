package plots

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// two is a mean of two values.
type two struct{ low, high float64 }

func (v two) Bounds() (y, lo, hi float64) { return (v.low + v.high) / 2, v.low - 9, v.high + 9 }

func (v two) Pair() (low, high float64, ok bool) { return v.low, v.high, true }

// A band of two runs is two lines, and the caption says so.
func TestTwoRunsAreTwoLines(t *testing.T) {
	s := Band("a", []float64{1, 2}, []two{{1, 3}, {-2, 4}})
	require.Empty(t, s.Lo)
	require.Equal(t, [][]float64{{1, -2}, {3, 4}}, s.Runs)
	f := Figure{Name: "f", Caption: "Means.", Panels: [][]Panel{{{Series: []Series{s}}}}}
	require.Equal(t, "Means. Thin lines: the two runs, too few for a band.", f.caption())
	l, err := newLayout(f)
	require.NoError(t, err)
	p := l.panels[0][0]
	faint := slices.DeleteFunc(slices.Clone(p.Series), func(s Series) bool { return !s.Faint })
	require.Len(t, faint, 2)
	require.Len(t, p.Series, 3)
	csv, err := f.CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "a (run 2),2,4")
	f.Panels[0][0].Y = Axis{Scale: Log10}
	_, err = f.Render("svg")
	require.NoError(t, err, "what a log axis has no place for is left out")

	require.Len(t, Bars("a", []float64{1, 2}, []two{{1, 3}, {2, 4}}).Lo, 2, "a bar stays")
	s.Runs[0] = s.Runs[0][:1]
	f.Panels[0][0] = Panel{Series: []Series{s}}
	require.ErrorContains(t, f.Validate(), "run 0 has 1 values and X has 2: expected as many")
}
