package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/study"
)

// What quick scale computes of a theorem, it says the time of.
func TestWhatIsOpenAtQuickScaleHasAForecast(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	theorems := slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool { return e.Kind != "theorem" })
	ids := study.Map(theorems, func(e catalog.Entry) string { return e.ID })
	status, out, err := call(t, append([]string{"status", "--json"}, append(ids, "oymak2021/figure1")...)...)
	require.Equal(t, exitOK, status, err)
	open := 0
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var of struct {
			ID      string   `json:"id"`
			Open    int      `json:"open"`
			Seconds *float64 `json:"seconds_left"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &of))
		if of.Open > 0 {
			open++
			require.NotNil(t, of.Seconds, of.ID)
			require.Positive(t, *of.Seconds, of.ID)
		}
	}
	require.Greater(t, open, 10)
}

func TestStatusTellsOfTheOtherFigures(t *testing.T) {
	t.Setenv("NASML_STORE", t.TempDir())
	t.Setenv("NASML_DATA", t.TempDir())
	status, out, err := call(t, "status", "li2021/table1", "roberts/theorem1", "--scale", "paper")
	require.NotEqual(t, exitOK, status)
	require.Contains(t, err, "li2021/table1: ")
	require.NotContains(t, out, "li2021/table1")
	require.Contains(t, out, "roberts/theorem1")
}
