package data_test

import (
	"errors"
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
	require.Equal(t, "1e3031a9d767374b1f6227dd00722c57d2aa1d382414e09366d13b470b9b6848", pair.Fingerprint,
		"stored results depend on it")

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

// Class counts and means are the published ones (Krizhevsky 2009): 5,000
// images a class, means .4914, .4822, .4465.
func TestRealCIFAR10(t *testing.T) {
	datatest.Dir(t, datatest.CIFAR10)
	train, err := data.Load(t.Context(), data.CIFAR10, data.Train)
	require.NoError(t, err)
	require.Equal(t, [4]int{50_000, 32, 32, 3}, [4]int{train.Len(), train.Height, train.Width, train.Channels})
	require.Equal(t, []uint8{6, 9, 9, 4, 1, 1, 2, 7, 8, 3}, train.Labels[:10],
		"frog, truck, truck, deer, …: the publisher's order")
	require.Equal(t, []uint8{59, 62, 63, 43, 46, 45}, train.Image(0)[:6], "red, green, blue of the frog's first pixels")
	require.Len(t, train.Counts(), 10)
	for class, n := range train.Counts() {
		require.Equal(t, 5000, n, "class %d", class)
	}
	var sums [3]float64
	for i, p := range train.Pixels {
		sums[i%3] += float64(p)
	}
	for c, want := range data.Augments["darts"].Mean {
		require.InDelta(t, want, sums[c]/255/float64(len(train.Pixels)/3), 1e-6)
	}
	require.Equal(t, "3ca63dc2270e708eb5bc776433c93c4c62e2bf6e9ff0728d6910e852b5bfb014", train.Fingerprint,
		"stored results depend on it")

	half, err := train.Half()
	require.NoError(t, err)
	require.Equal(t, "ee4336a1dfb30c8409fa7d26506c7bdcc0daa20e29d533174c6600949f635a5b", half.Fingerprint,
		"stored results depend on it")
}

// A copy of which the test set is incomplete gives these images and no others.
func TestRealCIFAR10Test(t *testing.T) {
	datatest.Dir(t, datatest.CIFAR10)
	head, err := data.Load(t.Context(), data.CIFAR10, data.Test1000)
	require.NoError(t, err)
	require.Equal(t, 1000, head.Len())
	require.Equal(t, []uint8{3, 8, 8, 0, 6, 6, 1, 6, 3, 1}, head.Labels[:10], "cat, ship, ship, airplane, …")
	test, err := data.Load(t.Context(), data.CIFAR10, data.Test)
	if errors.Is(err, data.ErrIncomplete) {
		require.ErrorContains(t, err, `found the first 1000 of 10000 images in cifar-10-batches-bin/test_batch.bin, `+
			`which is enough for the splits ["train" "test-1000"]`)
		return
	}
	require.NoError(t, err)
	first, err := test.Head(1000)
	require.NoError(t, err)
	require.Equal(t, head.Fingerprint, first.Fingerprint)
}

func BenchmarkLoadCIFAR10Train(b *testing.B) {
	datatest.Dir(b, datatest.CIFAR10)
	for b.Loop() {
		if _, err := data.Load(b.Context(), data.CIFAR10, data.Train); err != nil {
			b.Fatal(err)
		}
	}
}

// Counts are the publisher's: 12,500 of each label, 1 to 4 and 7 to 10 stars.
func TestRealIMDb(t *testing.T) {
	datatest.Dir(t, datatest.IMDb)
	for _, split := range []data.Split{data.Train, data.Test} {
		r, err := data.LoadReviews(t.Context(), data.IMDb, split)
		require.NoError(t, err)
		require.Equal(t, 25_000, r.Len())
		sum, stars := 0, 0
		for i := range r.Len() {
			sum += 2*int(r.Labels[i]) - 1
			stars = max(stars, int(r.Ratings[i]))
			require.NotEmpty(t, r.Texts[i])
		}
		require.Zero(t, sum)
		require.Equal(t, 10, stars)
		require.Equal(t, []int32{0, 1, 2}, r.IDs[:3])
	}
}

func BenchmarkLoadIMDbTrain(b *testing.B) {
	datatest.Dir(b, datatest.IMDb)
	for b.Loop() {
		if _, err := data.LoadReviews(b.Context(), data.IMDb, data.Train); err != nil {
			b.Fatal(err)
		}
	}
}
