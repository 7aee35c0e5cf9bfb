package landscape

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

func TestGridsOfTheSimplex(t *testing.T) {
	require.Equal(t, [][]float64{{1, 0}, {0.5, 0.5}, {0, 1}}, Grid(2, 2))
	grid := Grid(3, 4)
	require.Len(t, grid, 15)
	for _, alpha := range grid {
		require.InDelta(t, 1, floats.Sum(alpha), 1e-12)
	}
}
