package geometry

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/trial"
)

// Entries of ±1 with the means that are asked for.
func TestOracle(t *testing.T) {
	rng := trial.RNG(9, "test")
	trial := Trial{Oracle: "dense", Options: 130, Margin: 0.5}
	grad, mean := make([]float64, 130), make([]float64, 130)
	const draws = 4000
	for range draws {
		trial.draw(grad, rng)
		for o, g := range grad {
			require.Equal(t, 1.0, math.Abs(g))
			mean[o] += g / draws
		}
	}
	require.InDelta(t, -0.5, mean[0], 0.06)
	for _, m := range mean[1:] {
		require.InDelta(t, 0, m, 0.08)
	}
}
