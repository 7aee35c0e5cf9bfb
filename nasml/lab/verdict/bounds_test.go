package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

type size string

func (s size) String() string { return string(s) }

// Judging can fail: bounds that numbers cross fail, those in an interval are undecided.
func TestBounds(t *testing.T) {
	mean, err := runs.Summarize([]float64{0.80, 0.82, 0.84}, 0.95)
	require.NoError(t, err)
	of := func(bound, sign float64) runs.Claim {
		return Bounds(runs.Claim{}, []Bounded{{size("n = 1"), mean, bound}}, sign)
	}
	require.Equal(t, runs.Fails, of(0.872, 1).Holds)
	require.Equal(t, runs.NotKnown, of(0.81, 1).Holds)
	require.Equal(t, runs.Holds, of(0.7, 1).Holds)
	require.Equal(t, runs.Holds, of(0.9, -1).Holds)
	require.Equal(t, runs.Fails, of(0.7, -1).Holds)
	require.Contains(t, of(0.7, 1).Note, "at n = 1, of 1 points")
	require.Equal(t, runs.NotKnown, Bounds(runs.Claim{}, nil, 1).Holds)
	require.Equal(t, runs.Holds, LargestAtMost(runs.Claim{}, []Bounded{{size("n = 1"), mean, 0}}, 1).Holds)
}

// Two power laws of one exponent with constants of their own.
func TestPooledSlope(t *testing.T) {
	slope, err := PooledSlope([][]float64{{1, 2, 4}, {1, 10}}, [][]float64{{3, 12, 48}, {5, 500}})
	require.NoError(t, err)
	require.InDelta(t, 2, slope, 1e-12)
	_, err = PooledSlope([][]float64{{1}}, [][]float64{{1}})
	require.Error(t, err)
}
