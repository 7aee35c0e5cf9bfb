package simplex

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinearStationarityIsThatOfALinearFunction: the closed form is what the
// proximal map gives, and for small λ the variance of the gradient under θ.
func TestLinearStationarityIsThatOfALinearFunction(t *testing.T) {
	theta := [][]float64{{0.2, 0.5, 0.3}, {0.7, 0.2, 0.1}}
	grad := [][]float64{{1, -0.5, 2}, {0, 3, -1}}
	oracle := func(Point) (Point, error) { return Point{Theta: grad}, nil }
	for _, gamma := range []float64{0.25, 1, 5} {
		m, err := Stationarity{Gamma: gamma}.At(oracle, Point{Theta: theta})
		require.NoError(t, err)
		require.InEpsilon(t, m.Delta, LinearStationarity(theta, grad, 1/(2*gamma)), 1e-7)
	}
	variance := 0.0
	for e, row := range theta {
		mean := 0.0
		for o, p := range row {
			mean += p * grad[e][o]
		}
		for o, p := range row {
			variance += p * math.Pow(grad[e][o]-mean, 2)
		}
	}
	require.InEpsilon(t, variance, LinearStationarity(theta, grad, 1e-5), 1e-4)
	require.InEpsilon(t, variance, LinearStationarity(theta, grad, 1e-9), 1e-12)
	require.InEpsilon(t, variance, LinearStationarity(theta, grad, math.Inf(1)), 1e-12)
	require.Zero(t, LinearStationarity([][]float64{{0, 1}}, [][]float64{{-5, 2}}, 0.5), "a vertex stays")
}
