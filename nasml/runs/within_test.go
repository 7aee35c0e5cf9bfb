package runs

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithin(t *testing.T) {
	s, err := Summarize([]float64{0, 0, 0.9}, 0.95)
	require.NoError(t, err)
	require.Less(t, float64(s.Lo), 0.0)
	require.Greater(t, float64(s.Hi), 1.0)
	cut := s.Within(0, 1)
	require.Equal(t, Number(0), cut.Lo)
	require.Equal(t, Number(1), cut.Hi)
	require.Equal(t, s.Mean, cut.Mean)
	require.Equal(t, s, s.Within(math.Inf(-1), math.Inf(1)))
	one, err := Summarize([]float64{0.5}, 0.95)
	require.NoError(t, err)
	require.Equal(t, one.String(), one.Within(0, 1).String(), "no interval stays none")
}

func TestExpGivesTheGeometricMean(t *testing.T) {
	logs, err := Summarize([]float64{math.Log(2), math.Log(8)}, 0.95)
	require.NoError(t, err)
	s := logs.Exp()
	require.InDelta(t, 4, s.Mean, 1e-12)
	require.InDelta(t, 16, float64(s.Lo)*float64(s.Hi), 1e-9, "the interval is symmetric as a factor")
	require.Less(t, float64(s.Lo), 2.)
	require.Equal(t, 2, s.N)

	one, err := Summarize([]float64{0}, 0.95)
	require.NoError(t, err)
	require.False(t, one.Exp().Lo.Valid(), "no interval stays none")
}
