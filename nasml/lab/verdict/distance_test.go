package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func TestCurveDistance(t *testing.T) {
	d := CurveDistance([]float64{1, 2, 3, 4}, []float64{1, 2, 6, 4}, []float64{2, 2, 2})
	require.Equal(t, 3, d.Points)
	require.InDelta(t, 5./3, d.Mean, 1e-15)
	require.InDelta(t, 1, d.Signed, 1e-15)
	require.InDelta(t, 4, d.Most, 0)
	require.InDelta(t, 3, d.At, 0)

	c := d.Claim(Claim("own: distance", "Fig. 1"), "epoch")
	require.Equal(t, runs.NotKnown, c.Holds)
	require.InDelta(t, 5./3, float64(c.Ours), 1e-15)
	require.Contains(t, c.Note, "over 3 points (that of ours − the paper's is 1); farthest at epoch 3, by 4")

	same := CurveDistance([]float64{1}, []float64{7}, []float64{7})
	require.InDelta(t, 0, same.Most, 0)
	require.InDelta(t, 1, same.At, 0)
	require.Contains(t, CurveDistance(nil, nil, []float64{1}).Claim(claim(), "epoch").Note, "not run")
}

func TestMeanCurve(t *testing.T) {
	require.Equal(t, []float64{2, 3}, MeanCurve([][]float64{{1, 2, 3}, {3, 4}}))
	require.Nil(t, MeanCurve(nil))
}
