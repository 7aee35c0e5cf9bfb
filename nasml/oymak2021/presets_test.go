package oymak2021

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
)

// All settings of the paper's preset are the paper's.
func TestSettingsAreThePapers(t *testing.T) {
	for _, id := range []string{"oymak2021/figure2", "oymak2021/figure3"} {
		entry, err := catalog.Lookup(id)
		require.NoError(t, err)
		for _, c := range entry.Settings() {
			require.Equal(t, runs.Holds, c.Holds, "%s: %s", c.Name, c.Note)
			require.NotEmpty(t, c.Rows)
		}
	}
}
