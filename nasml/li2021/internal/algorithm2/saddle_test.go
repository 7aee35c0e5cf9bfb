package algorithm2

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Δ on f = xy at (0, 0): 8γ² for γ < ½ and 0 above; elsewhere against a
// search over a grid.
func TestSaddleStationarity(t *testing.T) {
	for gamma, want := range map[float64]float64{0.1: 0.08, 0.25: 0.5, 0.4: 1.28, 1: 0, 3: 0} {
		require.InDelta(t, want, saddleStationarity(0, 0, 1/(2*gamma)), 1e-12, "γ = %v", gamma)
	}
	for _, at := range [][3]float64{{0.3, -0.8, 0.5}, {1, -1, 2}, {-0.2, 0.9, 0.9}, {0.7, 0.6, 5}} {
		x, y, lambda := at[0], at[1], at[2]
		best, square := math.Inf(1), 0.0
		for u := -1.0; u <= 1.0005; u += 0.002 {
			for v := -1.0; v <= 1.0005; v += 0.002 {
				d := (u-x)*(u-x) + (v-y)*(v-y)
				if value := lambda*u*v + d/2; value < best {
					best, square = value, d
				}
			}
		}
		require.InDelta(t, square/lambda/lambda, saddleStationarity(x, y, lambda), 0.02)
	}
}
