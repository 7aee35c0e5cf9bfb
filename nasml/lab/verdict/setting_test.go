package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func TestSetting(t *testing.T) {
	batch := Setting("[LI248] batch", "App. C.3", 64, 64)
	require.Equal(t, []string{"LI248"}, batch.Rows)
	require.Equal(t, runs.Holds, batch.Holds)
	require.InDelta(t, 64, float64(batch.Ours), 0)
	require.InDelta(t, 64, float64(batch.Paper), 0)
	require.Equal(t, runs.Fails, Setting("rate", "App. C.3", 0.1, 0.01).Holds)

	widths := Setting("widths", "Fig. 2", []int{1, 2}, []int{1, 2, 3})
	require.Equal(t, runs.Fails, widths.Holds)
	require.False(t, widths.Ours.Valid())
	require.Contains(t, widths.Note, "[1 2]; the paper has [1 2 3]")
	require.Equal(t, runs.Holds, Setting("kernels", "App. B.2", []string{"a"}, []string{"a"}).Holds)
}
