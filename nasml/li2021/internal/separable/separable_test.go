package separable

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/simplex"
)

// The closed forms of Δ against the general solver.
func TestStationarity(t *testing.T) {
	c := Trial{Shape: "cosine", Slope: 0.3, Gamma: 0.3}
	f := func(at simplex.Point) (simplex.Point, error) {
		return simplex.Point{W: []float64{c.gradient(at.W[0])}}, nil
	}
	for _, x := range []float64{0, 0.4, 1.7, -2.9, math.Pi, 9} {
		want, err := simplex.Stationarity{Gamma: c.Gamma}.At(f, simplex.Point{W: []float64{x}})
		require.NoError(t, err)
		require.InDelta(t, want.Delta, c.stationarity(x), 1e-8, "x = %v", x)
	}
	c = Trial{Shape: "sharp", Slope: 0.5, Gamma: 2} // λ = 1/4: |x| against 1/8
	require.InDelta(t, 0.25, c.stationarity(-3), 1e-15)
	require.InDelta(t, 0.04, c.stationarity(0.05), 1e-15)
	require.Zero(t, c.stationarity(0))
}
