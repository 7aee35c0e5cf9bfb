package ranking

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// Shared accuracies that are the table's own are ordered as it is, turned around
// the other way, and no other supernet takes part.
func TestRunCorrelatesWithTheTable(t *testing.T) {
	table := datatest.NASBench101(t)
	cells := table.Cells()[:50]
	q := data.Query101{Split: data.Test, Epochs: 108, Trial: data.Mean}
	as, against := data.Shared101{Variant: "v", Space: "s", Cells: cells}, data.Shared101{Variant: "v", Space: "s"}
	for _, c := range cells {
		x, err := table.Accuracy(c, q)
		require.NoError(t, err)
		as.Accuracy, against.Accuracy = append(as.Accuracy, x), append(against.Accuracy, -x)
	}
	against.Cells = cells
	other := against
	other.Space = "r"
	r, err := Trial{"v", "s", data.Test}.Run(table, []data.Shared101{as, other, against})
	require.NoError(t, err)
	require.Equal(t, []float64{50, 50}, r.Series[Pairs])
	for _, name := range []string{"kendall", "spearman"} {
		require.InDeltaSlice(t, []float64{1, -1}, r.Series[name], 1e-14)
	}
	flat := data.Shared101{Variant: "v", Space: "s", Seed: 7, Cells: cells[:2], Accuracy: []float64{10, 10}}
	r, err = Trial{"v", "s", data.Test}.Run(table, []data.Shared101{flat, as})
	require.NoError(t, err)
	require.Equal(t, 1., r.Values[Constant])
	require.Equal(t, []float64{0}, r.Series[Seeds], "one that does not rank is left out")
	_, err = Trial{"v", "x", data.Test}.Run(table, []data.Shared101{as, other})
	require.EqualError(t, err,
		`found no supernet "v" on the space "x", expected one of ["v"] on one of ["r" "s"]`)
	_, err = Trial{"v", "s", data.Train}.Run(table, []data.Shared101{as})
	require.ErrorContains(t, err, `expected split "valid" or "test"`)
}
