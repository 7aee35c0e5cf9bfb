package khodak2020

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// All settings of the paper's presets are the paper's, and are known without data.
func TestSettingsAreThePapers(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	for _, id := range []string{"khodak2020/figure1", "khodak2020/figure2", "khodak2020/figure3"} {
		entry, err := catalog.Lookup(id)
		require.NoError(t, err)
		for _, c := range entry.Settings() {
			require.Equal(t, runs.Holds, c.Holds, "%s: %s: %s", id, c.Name, c.Note)
			require.NotEmpty(t, c.Rows)
		}
	}
	p := paperTasks
	p.ImageTest, p.ReviewTrain = 1000, 10
	require.Equal(t, runs.Fails, p.imageSplit().Holds)
	require.NotEqual(t, runs.Holds, p.reviewSplit().Holds)
}
