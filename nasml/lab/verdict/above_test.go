package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func TestAboveIsTheOppositeOfAtMost(t *testing.T) {
	for _, x := range []struct {
		values []float64
		want   runs.Verdict
	}{
		{[]float64{2, 2.1, 2.2}, runs.Holds},
		{[]float64{0.1, 0.2, 0.3}, runs.Fails},
		{[]float64{0.1, 1, 3}, runs.NotKnown},
		{[]float64{1, 1, 1}, runs.Fails}, // equal is not above
		{[]float64{2}, runs.NotKnown},
	} {
		s, err := runs.Summarize(x.values, 0.95)
		require.Equal(t, x.want, Above(Claim("a", "b"), s, err, 1).Holds, "%v", x.values)
		minus := make([]float64, len(x.values))
		for i, v := range x.values {
			minus[i] = -v
		}
		s, err = runs.Summarize(minus, 0.95)
		require.Equal(t, x.want, Below(Claim("a", "b"), s, err, -1).Holds, "%v", minus)
	}
	_, err := runs.Summarize(nil, 0.95)
	require.Contains(t, Above(Claim("a", "b"), runs.Summary{}, err, 1).Note, "not run")
}

func TestWorstAllowsForTheNumberOfLists(t *testing.T) {
	lists := [][]float64{{1, 2, 3}, {2, 4, 6}, {0, 1, 2}}
	worst, err := Worst(lists, 0.94)
	require.NoError(t, err)
	alone, err := runs.Summarize(lists[1], 0.98)
	require.NoError(t, err)
	require.Equal(t, alone, worst)
	_, err = Worst(nil, 0.95)
	require.Error(t, err)
	_, err = Worst([][]float64{{1}, nil}, 0.95)
	require.Error(t, err)
}
