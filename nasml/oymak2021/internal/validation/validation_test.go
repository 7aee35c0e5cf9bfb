package validation

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

// Two models on a pool of four: the sample has places 0, 1 and 1.
func TestChooseGoesByTheSample(t *testing.T) {
	losses := [][]float64{{1, 0, 1, 1}, {0.5, 0.5, 0.25, 0}}
	risks := []float64{trial.Mean(losses[0]), trial.Mean(losses[1])}
	require.Equal(t, []float64{0.75, 0.3125}, risks)
	gap, chosen := Choose(losses, risks, []int{0, 1, 1})
	require.InDelta(t, 0.75-1.0/3, gap, 1e-15)
	require.InDelta(t, 0.75, chosen, 0, "1/3 < 1/2: the worse model")
	_, chosen = Choose([][]float64{{1, 0}, {0, 1}}, []float64{0.1, 0.2}, []int{0, 1})
	require.InDelta(t, 0.1, chosen, 0, "of two the first")
}

func TestDrawsAreUniformWithReplacement(t *testing.T) {
	counts := make([]float64, 5)
	for _, i := range Draw(trial.RNG(1, "draw"), 5, 100_000) {
		counts[i] += 1.0 / 100_000
	}
	for _, share := range counts {
		require.InDelta(t, 0.2, share, 5*math.Sqrt(0.2*0.8/100_000))
	}
	require.Len(t, Draw(trial.RNG(1, "draw"), 2, 7), 7)
}

func TestLossesOfALinearModel(t *testing.T) {
	x := mat.NewDense(2, 2, []float64{1, 2, -3, 1})
	squared := func(y, f float64) float64 { return (y - f) * (y - f) }
	require.Equal(t, []float64{16, 9}, Losses(x, []float64{1, -4}, []float64{1, 2}, squared))
}
