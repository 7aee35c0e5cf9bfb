package roberts

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/roberts/internal/mixture"
)

// The graph against the same network in plain loops.
func TestOutputsAgainstLoops(t *testing.T) {
	net := Net{
		Activations: []string{"relu", "tanh", "0.8*relu+0.2*identity"}, Alpha: []float64{0.5, 0.3, 0.2},
		W: [][]float64{{1, -0.5, 0.3}, {0.2, 2, -1}}, V: []float64{0.7, -1.1, 0.4},
	}
	x := [][]float64{{1, 2}, {-0.5, 0.1}, {0, -3}, {2, 0.4}}
	got, err := net.Outputs(x)
	require.NoError(t, err)
	for i, sigma := range []func(float64) float64{
		func(z float64) float64 { return max(z, 0) }, math.Tanh,
		func(z float64) float64 { return max(z, 0.2*z) },
	} {
		for p := range x {
			var f float64
			for u := range net.V {
				f += net.V[u] * sigma(net.W[0][u]*x[p][0]+net.W[1][u]*x[p][1])
			}
			require.InDelta(t, f, got[i][p], 1e-13)
		}
	}
	r, err := CheckNet(net, x, mixture.Combine(net.Alpha, got))
	require.NoError(t, err)
	require.True(t, r.Realized)
	require.Contains(t, r.String(), "0.8*relu")
	net.W[1] = net.W[1][:1]
	_, err = CheckNet(net, x, make([]float64, 4))
	require.ErrorContains(t, err, "row 1 of W must have 3 entries, got 1")
}
