package sparsity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/trial"
)

// The gradients of the small mixture against finite differences.
func TestMixtureGradient(t *testing.T) {
	rng := trial.RNG(10, "test")
	n := Trial{Edges: 3, Inputs: 4}.randomNet(rng)
	theta := newChooser("eg", 1, 3, len(unitOps)).theta
	x, target := []float64{0.3, -1, 0.5, 2}, 0.7
	gradW, gradTheta := zerosLike(n.w), zerosLike(theta)
	n.at(theta, x, target, 1, gradW, gradTheta)
	loss := func() float64 { r := n.at(theta, x, 0, 0, nil, nil) - target; return r * r / 2 }
	check := func(values, grads [][]float64) {
		for i := range values {
			for j := range values[i] {
				old := values[i][j]
				values[i][j] = old + 1e-6
				up := loss()
				values[i][j] = old - 1e-6
				down := loss()
				values[i][j] = old
				require.InDelta(t, (up-down)/2e-6, grads[i][j], 1e-8)
			}
		}
	}
	check(n.w, gradW)
	check(theta, gradTheta)
}
