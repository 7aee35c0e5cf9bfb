package khodak2020

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/runs"
)

// A trial speaks of the test images that it uses: with a whole archive its key
// is that of an archive that has no more than these. The stand-in, which has
// 10,000, is the whole one.
func TestAWholeArchiveFindsTheSameTrials(t *testing.T) {
	p := Figure1Large
	p.Images = data.Synthetic
	train, err := data.Load(t.Context(), data.Synthetic, data.Train)
	require.NoError(t, err)
	whole, err := data.Load(t.Context(), data.Synthetic, data.Test)
	require.NoError(t, err)
	require.Equal(t, 10_000, whole.Len())
	incomplete, err := whole.Head(1000)
	require.NoError(t, err)
	e, err := p.open(t.Context(), mapsearch.ImageTask)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s+%s [40000 20000 1000]", train.Fingerprint, incomplete.Fingerprint), e.fingerprint)
	p.ImageTest = 0
	e, err = p.open(t.Context(), mapsearch.ImageTask)
	require.NoError(t, err)
	want := fmt.Sprintf("%s+%s [40000 20000 10000]", train.Fingerprint, whole.Fingerprint)
	require.Equal(t, want, e.fingerprint, "all were asked for")
}

// With real data, whole or with the first 1,000 test images, the images that are
// loaded are those that shipped trials speak of.
func TestShippedTrialsAreOfTheRealImages(t *testing.T) {
	datatest.Dir(t, datatest.CIFAR10)
	e, err := Figure1Large.open(t.Context(), mapsearch.ImageTask)
	require.NoError(t, err)
	train, err := data.Load(t.Context(), data.CIFAR10, data.Train)
	require.NoError(t, err)
	test, err := data.Load(t.Context(), data.CIFAR10, data.Test1000)
	require.NoError(t, err)
	want := fmt.Sprintf("%s+%s [40000 10000 1000]", train.Fingerprint, test.Fingerprint)
	require.Equal(t, want, e.fingerprint)
	shipped := 0
	for _, r := range shippedTrials(t) {
		if r.Trial.Data == want {
			shipped++
		}
	}
	const paper = 5 // d = 12,500 of Figure1Paper
	one, three := Figure1Large, Figure3Large
	require.Equal(t, len(one.Dims)*one.Seeds+paper+len(three.Methods)*three.Seeds, shipped)
}

func shippedTrials(t *testing.T) []*runs.Record {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	all, broken, err := store.With(shippedRecords).List()
	require.NoError(t, err)
	require.Empty(t, broken)
	return all
}

func TestShippedRecordsAreOfThisCode(t *testing.T) {
	current := map[string]bool{}
	for _, kind := range []*code.Kind{
		corollary31Code, taskCode[mapsearch.ImageTask], taskCode[mapsearch.ReviewTask], lambdaCode,
	} {
		version, err := kind.Version()
		require.NoError(t, err)
		current[version] = true
	}
	for _, record := range shippedTrials(t) {
		require.True(t, current[record.Trial.Code],
			"%s %s: what it was computed with has changed: it has to be computed again",
			record.Trial.Figure, record.Key[:12])
	}
}
