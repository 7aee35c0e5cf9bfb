package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
)

// The class histograms are the published ones (LeCun, Cortes, Burges): 5,923
// zeros and 6,742 ones for training, 980 and 1,135 for testing.
func TestRealMNIST(t *testing.T) {
	datatest.Dir(t)
	for split, want := range map[data.Split][10]int{
		data.Train: {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
		data.Test:  {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
	} {
		im, err := data.Load(t.Context(), data.MNIST, split)
		require.NoError(t, err)
		counts := im.Counts()
		require.Len(t, counts, 10)
		for digit, n := range want {
			require.Equal(t, n, counts[uint8(digit)], "digit %d", digit)
		}
	}
}

func TestRealMNISTZerosAndOnes(t *testing.T) {
	datatest.Dir(t)
	train, err := data.Load(t.Context(), data.MNIST, data.Train)
	require.NoError(t, err)
	require.Equal(t, [3]int{28, 28, 1}, [3]int{train.Height, train.Width, train.Channels})
	require.Equal(t, []uint8{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}, train.Labels[:10], "the publisher's order")
	pair, err := train.Classes(0, 1)
	require.NoError(t, err)
	require.Equal(t, 12665, pair.Len())
	require.Equal(t, train.Image(1), pair.Image(0), "the first zero is the second image")
	require.Equal(t, "1e3031a9d767374b1f6227dd00722c57d2aa1d382414e09366d13b470b9b6848", pair.Fingerprint, "stored results depend on it")

	ink := 0
	for _, p := range train.Pixels {
		if p > 0 {
			ink++
		}
	}
	require.InDelta(t, 0.19, float64(ink)/float64(len(train.Pixels)), 0.005, "what ImageSpec.Ink is like")
}

func BenchmarkLoadMNISTTrain(b *testing.B) {
	datatest.Dir(b)
	for b.Loop() {
		if _, err := data.Load(b.Context(), data.MNIST, data.Train); err != nil {
			b.Fatal(err)
		}
	}
}
