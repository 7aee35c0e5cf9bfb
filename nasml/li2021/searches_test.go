package li2021

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
)

// Synthetic images are there for every side that a supernet takes, and the default ones
// where they do.
func TestSyntheticImagesHaveTheSideOfTheSearch(t *testing.T) {
	for side, want := range map[int]int{4: 8, 8: 8, 12: 12, 16: 16, 28: 0, 32: 32} {
		p := SearchParams{Preset: "quick", Data: data.Synthetic, Image: side}
		drawn, err := p.syntheticSide([]row{"darts"})
		require.NoError(t, err)
		require.Equal(t, want, drawn)
		if drawn == 0 {
			drawn = 28
		}
		made, err := data.SyntheticImages(1, 4, data.ImageSpec{Height: drawn, Width: drawn})
		require.NoError(t, err)
		fitted, err := made.Fit(side)
		require.NoError(t, err)
		require.Equal(t, side, fitted.Width)
	}
}
