package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// Two searches with the same five seeds: the words say what was seen and what could not be.
func ExamplePaired() {
	mine, darts := []float64{93.1, 92.4, 93.5, 92.9, 93.3}, []float64{92.8, 92.9, 92.4, 93.0, 92.1}
	d, err := verdict.Paired(mine, darts, 0.95)
	fmt.Println(strings.ReplaceAll(d.Words("EG+M", "DARTS", "points"), ". With", ".\nWith"), err)
	// Output:
	// EG+M and DARTS cannot be told apart: the difference is 0.40 points (95 % CI -0.52 to 1.32; 5 seeds, paired).
	// With 5 seeds a difference below 1.25 points cannot be seen (power 80 %). <nil>
}

// Against runs that have no seeds in common.
func ExampleUnpaired() {
	d, err := verdict.Unpaired([]float64{93.9, 94.1, 94.0}, []float64{92.9, 93.2, 93.1, 92.8}, 0.95)
	fmt.Println(strings.ReplaceAll(d.Words("mine", "random search", "points"), ". With", ".\nWith"), err)
	// Output:
	// mine is 1.00 points above random search (95 % CI 0.72 to 1.28; 3 and 4 runs, Welch).
	// With 3 and 4 runs a difference below 0.39 points cannot be seen (power 80 %). <nil>
}

// A difference of the detectable size is seen in 80 of 100 repetitions: by simulation.
func TestDetectableDifferencesAreSeenAsOftenAsSaid(t *testing.T) {
	const repetitions, deviation = 4000, 2.
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 5, 10} {
		unit, err := verdict.Paired(spread(n), make([]float64, n), 0.95)
		require.NoError(t, err)
		delta := unit.Detectable / float64(unit.Std) * deviation
		seen := 0
		for range repetitions {
			a := make([]float64, n)
			for i := range a {
				a[i] = delta + deviation*rng.NormFloat64()
			}
			s, err := runs.Summarize(a, 0.95)
			require.NoError(t, err)
			if s.Lo > 0 || s.Hi < 0 {
				seen++
			}
		}
		require.InDelta(t, verdict.Power, float64(seen)/repetitions, 0.02, "n = %d", n)
	}
}

// spread are n numbers that differ.
func spread(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i * i)
	}
	return x
}

// For many runs the detectable difference is (z₀.₉₇₅ + z₀.₈)·se = 2.80·se.
func TestDetectableOfManyRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	a, b := make([]float64, 2000), make([]float64, 2000)
	for i := range a {
		a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
	}
	d, err := verdict.Unpaired(a, b, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 1.960+0.8416, d.Detectable/float64(d.Std), 0.01)
	paired, err := verdict.Paired(a, b, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 1.960+0.8416, paired.Detectable/float64(paired.Std)*math.Sqrt(2000), 0.01)
}

func TestDifferencesThatHaveNoInterval(t *testing.T) {
	_, err := verdict.Paired([]float64{1}, []float64{2}, 0.95)
	require.ErrorContains(t, err, "needs two seeds or more")
	_, err = verdict.Paired([]float64{1, 2}, []float64{2}, 0.95)
	require.ErrorContains(t, err, "2 and 1 values")
	_, err = verdict.Unpaired([]float64{1}, []float64{2, 3}, 0.95)
	require.ErrorContains(t, err, "expected two or more of each")
}

func TestWordsOfADifference(t *testing.T) {
	d, err := verdict.Paired([]float64{1, 1.1, 0.9}, []float64{2, 2.2, 2.1}, 0.95)
	require.NoError(t, err)
	require.Regexp(t, `^mine is 1.10 points below theirs \(95 % CI -1.35 to -0.85; 3 seeds, paired\)\.`,
		d.Words("mine", "theirs", "points"))
	same, err := verdict.Paired([]float64{1, 2}, []float64{1, 2}, 0.95)
	require.NoError(t, err)
	require.Contains(t, same.Words("mine", "theirs", "points"), "All runs differ by the same amount.")
	c := verdict.Ahead(verdict.Claim("own: mine above theirs", "x"), d, nil, "mine", "theirs", "points")
	require.Equal(t, runs.Fails, c.Holds)
	require.Contains(t, c.Note, "below theirs")
}
