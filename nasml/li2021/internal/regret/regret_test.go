package regret

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/supernet"
)

// Over all architectures of the second space, whose best cell the table has:
// no regret is negative against the table, the best's is 0, gaps are as many as
// the cells that are missing, and the two references agree.
func TestOneShotRegrets(t *testing.T) {
	table := datatest.NASBench101(t)
	s := supernet.OneShot2
	q := data.Query101{Split: data.Test, Epochs: 108, Trial: data.BestTrial}
	ours, err := NewOneShotRegrets(table, s, q, AgainstTable)
	require.NoError(t, err)
	theirs, err := NewOneShotRegrets(table, s, q, AgainstPublished)
	require.NoError(t, err)
	require.InDelta(t, theirs.Best.Accuracy, ours.Best.Accuracy, 1e-5, "single precision")
	require.Equal(t, !table.Complete(), ours.Best.IsBound())
	require.Equal(t, 7773, ours.Best.Asked)
	known, gaps, least := map[data.Cell101]bool{}, map[data.Cell101]bool{}, 1.0
	for a := range s.Archs(false) {
		r, found, err := ours.Of(a)
		require.NoError(t, err)
		c, err := OneShotCell(s, a)
		require.NoError(t, err)
		if !found {
			gaps[c.Canonical()] = true
			require.Zero(t, r)
			continue
		}
		known[c.Canonical()] = true
		least = min(least, r)
		p, _, err := theirs.Of(a)
		require.NoError(t, err)
		require.InDelta(t, r, p, 1e-5)
	}
	require.Len(t, known, ours.Best.Found)
	require.Len(t, gaps, ours.Best.Asked-ours.Best.Found)
	require.Zero(t, least)
}

// What has an operation that the benchmark has not is a gap, but where the node is
// left out; the benchmark's cells are as many as without it.
func TestOtherOperationsAreGaps(t *testing.T) {
	table := datatest.NASBench101(t)
	more := supernet.OneShot2.With("sep_conv_3x3")
	r, err := NewOneShotRegrets(table, more, data.Query101{Split: data.Test, Epochs: 108, Trial: 1}, AgainstTable)
	require.NoError(t, err)
	require.Equal(t, 7773, r.Best.Asked)
	arch := supernet.OneShotArch{Ops: []int{1, 3, 0, 3}, Parents: [][]int{{0}, {0}, {0, 1}, {0, 1}, {0, 1, 3}}}
	cell, err := OneShotCell(more, arch) // nodes 2 and 4 lead nowhere
	require.NoError(t, err)
	same := arch
	same.Ops = []int{1, 0, 0, 2}
	want, err := OneShotCell(supernet.OneShot2, same)
	require.NoError(t, err)
	require.Equal(t, want, cell)
	arch.Ops = []int{3, 0, 0, 0}
	_, err = OneShotCell(more, arch)
	require.ErrorIs(t, err, data.ErrNotInTable)
	x, found, err := r.Of(arch)
	require.NoError(t, err)
	require.Zero(t, x)
	require.False(t, found)
}

func TestOneShotRegretsRefuse(t *testing.T) {
	table := datatest.NASBench101(t)
	mine := supernet.OneShot1
	mine.Known = supernet.OneShotKnown{}
	for want, attempt := range map[string]func() (*OneShotRegrets, error){
		`found "best" to measure a regret against, expected "table" or "published"`: func() (*OneShotRegrets, error) {
			return NewOneShotRegrets(table, mine, data.Query101{Split: data.Test, Epochs: 108}, "best")
		},
		"found no published error of the best cell": func() (*OneShotRegrets, error) {
			return NewOneShotRegrets(table, mine, data.Query101{Split: data.Test, Epochs: 108}, AgainstPublished)
		},
		"expected one of the lengths": func() (*OneShotRegrets, error) {
			return NewOneShotRegrets(table, supernet.OneShot1, data.Query101{Split: data.Test, Epochs: 7}, AgainstTable)
		},
		"expected split": func() (*OneShotRegrets, error) {
			return NewOneShotRegrets(table, supernet.OneShot1,
				data.Query101{Split: data.Test, Epochs: 108, Trial: 4}, AgainstPublished)
		},
	} {
		_, err := attempt()
		require.ErrorContains(t, err, want)
	}
	r, err := NewOneShotRegrets(table, supernet.OneShot1,
		data.Query101{Split: data.Valid, Epochs: 108, Trial: 2}, AgainstPublished)
	require.NoError(t, err)
	_, _, err = r.Of(supernet.OneShotArch{})
	require.ErrorContains(t, err, "found 0 operations")
}
