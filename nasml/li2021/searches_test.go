package li2021

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
)

// Synthetic images are there for every side that a supernet takes, and the default ones
// where they do.
func TestSyntheticImagesHaveTheSideOfTheSearch(t *testing.T) {
	for side, want := range map[int]int{4: 8, 8: 8, 12: 12, 16: 16, 28: 0, 32: 32} {
		p := SearchParams{Preset: "quick", Data: data.Synthetic, Image: side, Seeds: 1, Confidence: 0.95}
		gs, err := p.plan([]string{"darts"})
		require.NoError(t, err)
		drawn := p.syntheticSide(gs.Trials())
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

// Beside searches on synthetic images stands neither the paper's data set nor its curve.
func TestSyntheticSearchesAreNotComparedWithThePaper(t *testing.T) {
	one, four := Figure1Quick, Figure4Quick
	for _, p := range []*SearchParams{&one.SearchParams, &four.SearchParams} {
		p.Data, p.Examples, p.Seeds, p.StoredOnly = data.Synthetic, 64, 1, true
	}
	t.Setenv("NASML_STORE", t.TempDir())
	first, err := Figure1(t.Context(), one)
	require.NoError(t, err)
	fourth, err := Figure4(t.Context(), four)
	require.NoError(t, err)
	for _, r := range []catalog.Result{first, fourth} {
		f := r.Figure()
		require.NotContains(t, f.Meta["title"], "on CIFAR-10")
		require.NotContains(t, f.Caption, "paper's curve")
		require.NotContains(t, f.Caption, "paper's searches")
		for _, panel := range slices.Concat(f.Panels...) {
			for _, s := range panel.Series {
				require.False(t, s.Reference, s.Label)
			}
		}
		for _, c := range r.Check() {
			require.NotContains(t, c.Name, "distance")
		}
	}
}
