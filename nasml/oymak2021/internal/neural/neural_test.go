package neural

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// standIn are synthetic images, small enough for a test.
func standIn(t *testing.T) *Images {
	t.Helper()
	set := &Images{First: 0}
	for seed, part := range []**pixels.Images{&set.Train, &set.Test} {
		im, err := data.SyntheticImages(uint64(seed), 120, data.ImageSpec{Classes: 2, Height: 8, Width: 8})
		require.NoError(t, err)
		*part = &pixels.Images{Name: "stand-in", Size: 64, Pixels: im.Pixels, Labels: im.Labels}
	}
	return set
}

func TestExamples(t *testing.T) {
	images := standIn(t)
	for _, source := range []Source{
		{Data: Cap, Dim: 10, CosPhi: 0.8}, {Data: Flipped, Dim: 10, CosPhi: 0.8, Flip: 0.1},
		{Data: Product, Dim: 10}, {Data: Paired, Dim: 10}, {Data: Digits},
	} {
		train, rest, err := source.Draw(1, 40, 60, images)
		require.NoError(t, err)
		more, _, err := source.Draw(1, 60, 60, images)
		require.NoError(t, err)
		require.Equal(t, train.Y, more.Y[:40], "a seed's first examples are the same for every n")
		margin := 0
		for i := range 40 {
			require.InDelta(t, 1, mat.Norm(train.X.RowView(i), 2), 1e-12)
			require.InDelta(t, 1, math.Abs(train.Y[i]), 0)
			if math.Abs(train.X.At(i, 0)*train.Y[i]-source.CosPhi) < 1e-12 {
				margin++
			}
			if source.Data == Paired && i%2 == 1 {
				require.Equal(t, train.Y[i-1], train.Y[i])
				require.Equal(t, train.X.At(i-1, 3), -train.X.At(i, 3))
			}
		}
		switch source.Data {
		case Cap:
			require.Equal(t, 40, margin)
		case Flipped:
			require.Less(t, margin, 40)
			require.Greater(t, margin, 30)
		}
		require.False(t, mat.Equal(train.X.RowView(0), rest.X.RowView(0)))
	}
	_, _, err := Source{Data: Digits}.Draw(1, 1000, 60, images)
	require.ErrorContains(t, err, "expected at least 1000")
	images.Train.Pixels = make([]uint8, len(images.Train.Pixels))
	_, _, err = Source{Data: Digits}.Draw(1, 10, 10, images)
	require.ErrorContains(t, err, "black")
}

func TestOutputWeightsHaveNormC0(t *testing.T) {
	v := OutputWeights(64, 2.5)
	require.InDelta(t, 2.5, floats.Dot(v, v), 1e-12)
	require.InDelta(t, 0, floats.Sum(v), 1e-12, "half of each sign")
	require.Equal(t, []float64{0.25, 0.25, 0.25, 0.25}, spectral.Middle(4))
}
