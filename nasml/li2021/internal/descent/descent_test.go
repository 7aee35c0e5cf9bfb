package descent

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/simplex"
)

// ThroughSoftmax is the Jacobian of a softmax: against finite differences.
func TestThroughSoftmax(t *testing.T) {
	z, c := []float64{0.3, -1, 0.8}, []float64{1, 2, -0.5}
	f := func(z []float64) float64 { return Inner(c, simplex.PhiConjugateGradient([][]float64{z})[0]) }
	grad := slices.Clone(c)
	ThroughSoftmax(simplex.PhiConjugateGradient([][]float64{z})[0], grad)
	for o := range z {
		up, down := slices.Clone(z), slices.Clone(z)
		up[o], down[o] = z[o]+1e-6, z[o]-1e-6
		require.InDelta(t, (f(up)-f(down))/2e-6, grad[o], 1e-9)
	}
}
