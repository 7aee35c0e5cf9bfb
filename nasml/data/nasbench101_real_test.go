package data_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

func query101(split data.Split, trial int) data.Query101 {
	return data.Query101{Split: split, Epochs: 108, Trial: trial}
}

// What the documentation of the benchmark's interface prints for its
// Inception-like cell, of one training: 2,694,282 parameters, 1155.85302734375
// s, accuracies .9376001358032227 and .9311898946762085.
func TestRealNASBench101Inception(t *testing.T) {
	table := datatest.NASBench101(t)
	inception, err := data.NewCell101([][]int{
		{0, 1, 1, 1, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 1, 0, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 0},
	}, []string{
		"input", "conv1x1-bn-relu", "conv3x3-bn-relu", "conv3x3-bn-relu", "conv3x3-bn-relu", "maxpool3x3", "output",
	})
	require.NoError(t, err)
	params, err := table.Params(inception)
	require.NoError(t, err)
	require.Equal(t, 2694282, params)
	for trial := 1; trial <= data.Trials101; trial++ {
		seconds, err := table.Seconds(inception, 108, trial)
		require.NoError(t, err)
		if seconds != 1155.85302734375 {
			continue
		}
		valid, err := table.Accuracy(inception, query101(data.Valid, trial))
		require.NoError(t, err)
		test, err := table.Accuracy(inception, query101(data.Test, trial))
		require.NoError(t, err)
		require.Equal(t, float32(.9376001358032227), float32(valid/100))
		require.Equal(t, float32(.9311898946762085), float32(test/100))
		return
	}
	t.Fatal("no training took 1155.85302734375 s")
}

// No cell is there twice, neither by canonical form (which loading checks) nor
// by the benchmark's hash (here of every tenth).
func TestRealNASBench101Hashes(t *testing.T) {
	table := datatest.NASBench101(t)
	hashes := map[string]bool{}
	for i, c := range table.Cells() {
		if i%10 == 0 {
			require.False(t, hashes[c.Hash()], "%s", c)
			hashes[c.Hash()] = true
		}
	}
	require.Len(t, hashes, (table.Len()+9)/10)
}

// A part of the benchmark gives bounds, and says so.
func TestRealNASBench101Best(t *testing.T) {
	table := datatest.NASBench101(t)
	best, err := table.Best(query101(data.Test, data.Mean))
	require.NoError(t, err)
	require.Equal(t, !table.Complete(), best.IsBound())
	require.LessOrEqual(t, best.Accuracy, 94.32, "the best mean test accuracy that Ying+ 2019 report, 94.32 %%")
	require.Greater(t, best.Accuracy, 94.0)
	own, err := table.Accuracy(best.Cell, query101(data.Test, data.Mean))
	require.NoError(t, err)
	require.Equal(t, best.Accuracy, own)
	one, err := table.BestOf(slices.Values([]data.Cell101{best.Cell}), query101(data.Test, data.BestTrial))
	require.NoError(t, err)
	require.False(t, one.IsBound())
	require.GreaterOrEqual(t, one.Accuracy, best.Accuracy)
}

func BenchmarkLoadNASBench101(b *testing.B) {
	datatest.NASBench101(b)
	for b.Loop() {
		if _, err := data.LoadNASBench101(""); err != nil {
			b.Fatal(err)
		}
	}
}

// Six ways to train and evaluate, seven spaces, five seeds, 1,000 cells each;
// every cell is in the table.
func TestRealShared101(t *testing.T) {
	dir := datatest.Dir(t, "nasbench/weightsharing_proxy.csv.gz", "nasbench/nb101_108_subset151644.csv.gz")
	table := datatest.NASBench101(t)
	all, err := data.LoadShared101(dir)
	require.NoError(t, err)
	require.Len(t, all, 210)
	require.Equal(t, data.Shared101Fingerprint, all[0].Fingerprint)
	if !table.Complete() {
		require.Equal(t, data.NASBench101Fingerprint, table.Fingerprint)
	}
	for _, s := range all {
		require.Len(t, s.Cells, 1000)
		require.Len(t, s.Accuracy, 1000)
		for _, c := range s.Cells {
			_, err := table.Params(c)
			require.NoError(t, err)
		}
	}
}
