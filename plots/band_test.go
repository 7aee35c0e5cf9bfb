package plots

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// some is a mean of some runs with an interval, one if they are two or more.
type some []float64

func (v some) Bounds() (y, lo, hi float64) {
	if len(v) < 2 {
		return v[0], math.NaN(), math.NaN()
	}
	for _, x := range v {
		y += x / float64(len(v))
	}
	return y, y - 9, y + 9
}

func (v some) Runs() []float64 { return v }

// A band of few runs is a line for each of them.
func TestFewRunsAreLines(t *testing.T) {
	s := Band("a", []float64{1, 2}, []some{{1, 3, 2}, {-2, 4, 1}})
	require.Empty(t, s.Lo)
	require.Equal(t, [][]float64{{1, -2}, {3, 4}, {2, 1}}, s.Runs)
	f := Figure{Name: "f", Panels: [][]Panel{{{Series: []Series{s}}}}}
	l, err := newLayout(f)
	require.NoError(t, err)
	p := l.panels[0][0]
	faint := slices.DeleteFunc(slices.Clone(p.Series), func(s Series) bool { return !s.Faint })
	require.Len(t, faint, 3)
	require.Len(t, p.Series, 4)
	csv, err := f.CSV()
	require.NoError(t, err)
	require.Contains(t, string(csv), "a (run 2),2,4")
	f.Panels[0][0].Y = Axis{Scale: Log10}
	_, err = f.Render("svg")
	require.NoError(t, err, "what a log axis has no place for is left out")
	s.Runs[0] = s.Runs[0][:1]
	f.Panels[0][0] = Panel{Series: []Series{s}}
	require.ErrorContains(t, f.Validate(), "run 0 has 1 values and X has 2: expected as many")

	enough := some{1, 2, 3, 4, 5}
	require.Len(t, Band("a", []float64{1, 2}, []some{enough, enough}).Lo, 2)
	require.Empty(t, Band("a", []float64{1}, []some{enough}).Runs)
	require.Empty(t, Band("a", []float64{1, 2}, []some{{1, 2}, {1, 2, 3}}).Runs, "not the same runs")
	require.Len(t, Bars("a", []float64{1, 2}, []some{{1, 3}, {2, 4}}).Lo, 2, "a bar stays")
	require.Empty(t, Band("a", []float64{1}, []some{{1}}).Lo, "one run has neither")
}
