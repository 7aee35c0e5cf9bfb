package search

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of any size: the architecture sees only its own, however few, and the
// supernet is evaluated on all three.
func TestPartsOfASearch(t *testing.T) {
	s := tiny(t, "gaea-darts")
	s.Parts, s.Bilevel.KeepLast = Shares{Train: 16, Validation: 3, Test: 8}, true
	images := pictures(t, 30)
	x, err := New(pure(t), s, images)
	require.NoError(t, err)
	defer x.Close()
	c, err := x.Search(t.Context(), 1, Options{})
	require.NoError(t, err)
	require.Len(t, c.Fitted, 2)
	require.Len(t, c.Tested, 2)
	require.InDelta(t, 0, 3*c.Supernet[0]-float64(int(3*c.Supernet[0]+0.5)), 1e-9, "a share of three images")
	require.InDelta(t, 0, 8*c.Tested[0]-float64(int(8*c.Tested[0]+0.5)), 1e-9, "a share of eight")

	epoch, err := s.drawEpoch(30, 1, 0)
	require.NoError(t, err)
	require.Len(t, epoch.Weights, 4)
	train, validation, test, err := s.divide(30, 1)
	require.NoError(t, err)
	for _, batch := range epoch.Architecture {
		require.Len(t, batch, 3)
		require.Subset(t, validation, batch)
	}
	all := slices.Concat(train, validation, test)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 27, "no image is in two parts")

	s.Split = "random"
	one, _, _, err := s.divide(30, 1)
	require.NoError(t, err)
	two, _, _, err := s.divide(30, 2)
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	s.Parts.Test = 20
	_, err = New(pure(t), s, images)
	require.ErrorContains(t, err, "Parts need 39 images")
	s.Parts.Validation = 1
	require.ErrorContains(t, s.Check(), "Parts must have at least 2 images for training and for validation")
}
