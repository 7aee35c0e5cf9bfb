package oymak2021

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func emptyStore(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func TestSlopeOfSums(t *testing.T) {
	record := func(series ...float64) *runs.Record {
		return &runs.Record{Series: map[string][]float64{"excess": series}}
	}
	sizes := []int{1, 4, 16}
	slope, err := slopeOfSums(sizes, []*runs.Record{record(2, 0.5, 0.25), record(0, 0.5, 0.25)}, "excess")
	require.NoError(t, err)
	require.InDelta(t, -0.5, slope, 1e-12)
	_, err = slopeOfSums(sizes, []*runs.Record{record(1, 0.5, 0)}, "excess")
	require.ErrorContains(t, err, "(16, 0) has no logarithm")
}

func TestMeanSlopeNeedsACurve(t *testing.T) {
	line, point := points{[]float64{1, 4}, []float64{1, 2}}, points{[]float64{1}, []float64{1}}
	slope, err := meanSlope([]points{line, point, {[]float64{1, 4}, []float64{1, 4}}})
	require.NoError(t, err)
	require.InDelta(t, 0.75, slope, 1e-12)
	_, err = meanSlope([]points{point})
	require.ErrorContains(t, err, "too few points")
	_, err = meanSlope([]points{line, {[]float64{1, 4}, []float64{1, -4}}})
	require.ErrorContains(t, err, "no logarithm")
}

func TestLogBandLeavesOutWhatHasNoPlace(t *testing.T) {
	s := logBand("", []float64{1, 2, 3}, [][]float64{{1, 3}, {0, 0}, {0.9, 1.1, 1}}, 0.95)
	require.Equal(t, []float64{1, 3}, s.X)
	require.InDeltaSlice(t, []float64{2, 1}, s.Y, 1e-12)
	require.InDelta(t, 0.02, s.Lo[0], 1e-12, "two values are as good as none")
	reference := halfRate(s, true)[0]
	require.InDelta(t, 1, reference.Y[1], 1e-12)
	require.InDelta(t, math.Sqrt(3), reference.Y[0], 1e-12)
	require.Nil(t, halfRate(logBand("", nil, nil, 0.95), false))
}
