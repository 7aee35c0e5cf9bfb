package verdict

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

func gaussian(name string, n int, mean, std float64) []float64 {
	rng := trial.RNG(3, name)
	values := make([]float64, n)
	for i := range values {
		values[i] = mean + std*rng.NormFloat64()
	}
	return values
}

// A mean that is off by half of the deviation over runs is another mean where 500
// runs were made, and cannot be told apart where 4 were.
func TestSameMeanIsJudgedByItsStandardError(t *testing.T) {
	judge := func(n int, mean float64) runs.Claim {
		values := gaussian("runs", n, mean, 0.3)
		s, err := runs.Summarize(values, 0.95)
		return SameMean(claim(), s, err, Printed{93.92, 0.3, n, 0.01}, 0.95)
	}
	require.Equal(t, runs.Holds, judge(500, 93.92).Holds)
	off := judge(500, 94.07)
	require.Equal(t, runs.Fails, off.Holds)
	require.InDelta(t, 1.96*0.3*0.0632+0.005, float64(off.Tolerance), 0.003)
	require.Contains(t, off.Note, "standard errors apart")
	require.Equal(t, runs.NotKnown, judge(4, 93.92).Holds)
	require.Equal(t, runs.Fails, judge(4, 95).Holds)
	require.Contains(t, SameMean(claim(), runs.Summary{}, errors.New("no runs"), Printed{}, 0.95).Note, "not run")
	one, err := runs.Summarize([]float64{93.92}, 0.95)
	require.Equal(t, runs.NotKnown, SameMean(claim(), one, err, Printed{93.92, 0.3, 4, 0.01}, 0.95).Holds)
}

// All runs end alike in the paper and here: DARTS' 54.30 ± 0.00.
func TestSameMeanWithoutDeviation(t *testing.T) {
	s, err := runs.Summarize([]float64{54.3, 54.3, 54.3}, 0.95)
	require.Equal(t, runs.Holds, SameMean(claim(), s, err, Printed{54.30, 0, 3, 0.01}, 0.95).Holds)
	require.Equal(t, runs.Fails, SameMean(claim(), s, err, Printed{54.40, 0, 3, 0.01}, 0.95).Holds)
}

func TestApartCountsStandardErrors(t *testing.T) {
	s := runs.Summary{N: 400, Mean: 1, Std: 2}
	z, most, err := Apart(s, Printed{0, 2, 400, 0}, 0.95, 1)
	require.NoError(t, err)
	require.InDelta(t, 1/(0.1*1.4142135623), z, 1e-6)
	require.InDelta(t, 1.959964, most, 1e-6)
	_, more, err := Apart(s, Printed{0, 2, 400, 0}, 0.95, 3)
	require.NoError(t, err)
	require.InDelta(t, 2.393980, more, 1e-6) // z of 1 − 0.05/6
	_, _, err = Apart(runs.Summary{N: 3, Mean: 1}, Printed{0, 0, 3, 0}, 0.95, 1)
	require.ErrorContains(t, err, "no standard error")
}

func TestDescendingNeedsEveryStep(t *testing.T) {
	a, b, c := gaussian("a", 200, 3, 1), gaussian("b", 200, 2, 1), gaussian("c", 200, 1, 1)
	names := []string{"a", "b", "c"}
	require.Equal(t, runs.Holds, Descending(claim(), names, [][]float64{a, b, c}, 0.95).Holds)
	require.Equal(t, runs.Fails, Descending(claim(), names, [][]float64{a, c, b}, 0.95).Holds)
	require.Equal(t, runs.NotKnown, Descending(claim(), names, [][]float64{a, b, b}, 0.95).Holds)
	require.Contains(t, Descending(claim(), names[:1], [][]float64{a}, 0.95).Note, "not run")
	require.Contains(t, Descending(claim(), names[:2], [][]float64{a, b[:1]}, 0.95).Note, "a and b")
}
