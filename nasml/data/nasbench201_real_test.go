package data_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// The best accuracies that Dong & Yang 2020 give: 91.607 on the validation half
// of CIFAR-10, and on test images 94.373, 73.51 and 47.31.
func TestRealNASBench201Best(t *testing.T) {
	table := datatest.NASBench201(t)
	queries := append(
		[]data.Query201{{Task: data.TaskCIFAR10Valid, Split: data.Valid, Epochs: 200, Release: data.ReleaseNB201}},
		data.Reported201[:]...)
	for i, want := range []float64{91.607, 94.373, 73.51, 47.31} {
		column, err := table.Column(queries[i])
		require.NoError(t, err)
		require.InDelta(t, want, slices.Max(column), 0.0051, "%s", queries[i])
	}
	require.Len(t, table.Queries(), 15+9)
	require.Equal(t, data.NASBench201Fingerprint, table.Fingerprint, "that of the shipped trials")
	require.Equal(t,
		"|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
		table.Arch(0).String())
	params, err := table.Params(table.Arch(0))
	require.NoError(t, err)
	require.Equal(t, 0.129306, params)
}

// The cell without any operation guesses; all cells of one class are equal up
// to the noise of training.
func TestRealNASBench201Noise(t *testing.T) {
	table := datatest.NASBench201(t)
	short := data.Query201{Task: data.TaskCIFAR10Valid, Split: data.Valid, Epochs: 12, Release: data.ReleaseNB201}
	none, err := table.Accuracy(data.Arch201{}, short)
	require.NoError(t, err)
	require.InDelta(t, 10, none, 0.5)

	column, err := table.Column(short)
	require.NoError(t, err)
	classes := map[int][]float64{}
	for n, x := range column {
		class, err := table.IsoClass(data.Arch201At(n))
		require.NoError(t, err)
		classes[class] = append(classes[class], x)
	}
	require.Len(t, classes, 6466, "as many as Dong & Yang count")
	squares, free := 0.0, 0
	for _, xs := range classes {
		mean := 0.0
		for _, x := range xs {
			mean += x / float64(len(xs))
		}
		if len(xs) < 2 || mean <= 80 {
			continue
		}
		for _, x := range xs {
			squares += (x - mean) * (x - mean)
		}
		free += len(xs) - 1
	}
	require.InDelta(t, 0.32, math.Sqrt(squares/float64(free)), 0.005, "what search.OneTrialNoise says")
}

func TestRealNASBench201Trials(t *testing.T) {
	table := datatest.NASBench201(t)
	var different int
	for n := range data.Archs201 {
		a, sum, trials := data.Arch201At(n), 0.0, 0.0
		for trial := 1; trial <= 3; trial++ {
			x, err := table.Accuracy(
				a,
				data.Query201{
					Task:    data.TaskCIFAR10Valid,
					Split:   data.Valid,
					Epochs:  200,
					Release: data.ReleaseNATS,
					Trial:   trial,
				},
			)
			if err != nil {
				require.Equal(t, 3, trial, "every architecture has two")
				continue
			}
			sum, trials = sum+x, trials+1
		}
		mean, err := table.Accuracy(
			a,
			data.Query201{Task: data.TaskCIFAR10Valid, Split: data.Valid, Epochs: 200, Release: data.ReleaseNB201},
		)
		require.NoError(t, err)
		if math.Abs(sum/trials-mean) > 1e-3 {
			different++
		}
	}
	require.Equal(t, 2418, different, "architectures in which the releases differ")
}

func BenchmarkLoadNASBench201(b *testing.B) {
	datatest.NASBench201(b)
	for b.Loop() {
		if _, err := data.LoadNASBench201(""); err != nil {
			b.Fatal(err)
		}
	}
}
