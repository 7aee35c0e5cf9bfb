package search

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
)

// Images that no halving makes as large as is asked for say what it makes of them.
func TestImagesOfAnotherSide(t *testing.T) {
	grey, err := data.SyntheticImages(1, 4, data.ImageSpec{Classes: 2, Height: 28, Width: 28})
	require.NoError(t, err)
	_, err = grey.Fit(8)
	require.ErrorContains(t, err, "are 7×7 after halving: Image must be one of [28 14 7], got 8")
	small, err := grey.Fit(14)
	require.NoError(t, err)
	require.Equal(t, []int{14, 14, 3}, []int{small.Height, small.Width, small.Channels})
}
