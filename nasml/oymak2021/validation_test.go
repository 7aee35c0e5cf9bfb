package oymak2021

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study/studytest"
)

func emptyStore(t *testing.T) context.Context {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

func TestValidationEntriesAreRegistered(t *testing.T) {
	for _, id := range []string{theorem1ID, figure1ID, lemma1ID, "oymak2021/lemma2", theorem2ID} {
		entry, err := catalog.Lookup(id)
		require.NoError(t, err)
		_, err = os.Stat("../../" + entry.Notebook)
		require.NoError(t, err, "the entry's notebook must be there")
	}
	for _, check := range []func() error{
		Theorem1Quick.check, Theorem1Paper.check, Theorem2Quick.check, Theorem2Paper.check,
		Lemma1Quick.check, Lemma1Paper.check,
		Figure1Quick.check, Figure1Paper.check,
	} {
		require.NoError(t, check())
	}
}

// What the project ships is of this code, is all that the paper's scale needs,
// needs no data to be drawn, and says what it has said before.
func TestShippedClaimsOfValidationEntries(t *testing.T) {
	var shipped []studytest.Shipped
	for _, id := range []string{figure1ID, theorem1ID, theorem2ID, lemma1ID, "oymak2021/lemma2"} {
		shipped = append(shipped, studytest.Shipped{ID: id, Scale: "paper"})
	}
	studytest.Golden(t, "testdata/claims_validation.json", shipped...)
}

func TestJudgedHasThreeVerdicts(t *testing.T) {
	claim := func(values ...float64) runs.Claim {
		return judged("own: name", "source", 0, -0.1, 0.1, overValues(values, 0.95), "note")
	}
	require.Equal(t, runs.Holds, claim(0.01, -0.01, 0.02).Holds)
	require.Equal(t, runs.Fails, claim(0.51, 0.49, 0.5).Holds)
	require.Equal(t, runs.NotKnown, claim(0.3, -0.3, 0.1).Holds, "the interval holds an end")
	require.Equal(t, runs.NotKnown, claim(0).Holds, "one seed has no interval")
	require.Equal(t, runs.NotKnown, claim(math.NaN(), 0).Holds)
	require.Contains(t, claim(math.NaN(), 0).Note, "not run: value 0 of 2 is NaN")
	require.Equal(t, runs.Fails, claim(1, 1).Holds, "a number without noise is its own interval")
	require.Equal(t, runs.Fails, none("", "", 1, 5, "").Holds)
	require.Equal(t, runs.NotKnown, none("", "", 0, 0, "").Holds)
	require.Equal(t, runs.Fails, zero("", "", 2e-8, 1e-8, "").Holds)
	lacking := overSeeds(2, 0.95, func(int) (float64, error) { return meanSlope(nil) })
	require.Contains(t, judged("", "", 0, 0, 1, lacking, "").Note, "not run: seed 0: there are too few points "+
		"for a slope")
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
	means := []runs.Summary{{Mean: 2, Lo: 1, Hi: 3}, {Mean: 0, Lo: 0, Hi: 0}, {Mean: 1, Lo: -1, Hi: 3}}
	s := logBand("", []float64{1, 2, 3}, means)
	require.Equal(t, []float64{1, 3}, s.X)
	require.Equal(t, []float64{1, 0.01}, s.Lo)
	reference := halfRate(s, true)[0]
	require.InDelta(t, 1, reference.Y[1], 1e-12)
	require.InDelta(t, math.Sqrt(3), reference.Y[0], 1e-12)
	require.Nil(t, halfRate(logBand("", nil, nil), false))
}
