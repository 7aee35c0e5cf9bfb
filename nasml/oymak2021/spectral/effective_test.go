package spectral

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func TestEffectiveDimensionOfABall(t *testing.T) {
	const radius = 2
	for _, h := range []int{1, 3, 40} {
		var eps, upper, lower []float64
		for e := float64(radius); e > 1e-6; e /= 2 {
			eps, upper, lower = append(
				eps,
				e,
			), append(
				upper,
				BallCover(h, radius, e),
			), append(
				lower,
				BallPacking(h, radius, e),
			)
			require.LessOrEqual(t, upper[len(upper)-1], math.Pow(3*radius/e, float64(h)))
		}
		most, err := EffectiveDimension(eps, upper, 3*radius)
		require.NoError(t, err)
		least, err := EffectiveDimension(eps, lower, 3*radius)
		require.NoError(t, err)
		require.LessOrEqual(t, most, float64(h), "h_eff = h with C̄ = 3R")
		require.Greater(t, least, 0.9*float64(h), "and not much less at small ε")
	}
}

func TestCoversOfOneDimension(t *testing.T) {
	require.Equal(t, 5.0, IntervalCover(1, 0.1))
	require.Equal(t, 1.0, IntervalCover(1, 7))
	require.Equal(t, 1.0, CircleCover(1, 1))
	require.Equal(t, 3.0, CircleCover(1, math.Sqrt(3)/2+1e-12), "three discs over the sides of a triangle")
	require.Equal(t, 6.0, CircleCover(2, 1+1e-12), "six over the sides of a hexagon")
	var x, y []float64
	for e := 0.1; e > 1e-5; e /= 2 {
		x, y = append(x, -math.Log(e)), append(y, math.Log(CircleCover(1, e)))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	require.InDelta(t, 1, slope, 0.01, "a curve has one dimension, wherever it lies")
}

func TestSparseVectorsHaveFewerDimensions(t *testing.T) {
	require.InEpsilon(t, 10*BallCover(3, 1, 0.1), SparseCover(5, 3, 1, 0.1), 1e-9)
	require.InEpsilon(t, BallCover(5, 1, 0.1), SparseCover(5, 5, 1, 0.1), 1e-9)
	var eps, sparse []float64
	for e := 0.5; e > 1e-9; e /= 2 {
		eps, sparse = append(eps, e), append(sparse, SparseCover(100, 3, 1, e))
	}
	d, err := EffectiveDimension(eps, sparse, 3)
	require.NoError(t, err)
	require.Less(t, d, 10.0)
}

func TestGreedyCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	points := mat.NewDense(4000, 2, nil)
	for i := range 4000 {
		u := randomUnit(rng, 2)
		floats.Scale(math.Sqrt(rng.Float64()), u)
		points.SetRow(i, u)
	}
	for _, eps := range []float64{0.8, 0.4, 0.2} {
		centres, err := GreedyCover(points, eps)
		require.NoError(t, err)
		for i := range 4000 {
			near := math.Inf(1)
			for _, c := range centres {
				near = min(near, floats.Distance(points.RawRowView(i), points.RawRowView(c), 2))
			}
			require.LessOrEqual(t, near, eps)
		}
		require.LessOrEqual(t, float64(len(centres)), BallCover(2, 1, eps))
		require.GreaterOrEqual(t, float64(len(centres)), 0.9*BallPacking(2, 1, eps))
	}
	_, err := GreedyCover(points, 0)
	require.ErrorContains(t, err, "positive")
	_, err = EffectiveDimension([]float64{2}, []float64{1}, 2)
	require.ErrorContains(t, err, "ε < C̄")
	_, err = EffectiveDimension(nil, nil, 2)
	require.ErrorContains(t, err, "at least one")
}
