package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// Two edges in a row multiply their matrices; an edge past them adds.
func TestGraphByHand(t *testing.T) {
	space := supernet.Space{
		Name:  "by hand",
		Nodes: 3,
		Edges: []supernet.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 2}},
		Ops:   []string{"skip_connect", "avg_pool_3x3"},
	}
	d := newDAG(space, 1, trial.RNG(1))
	d.maps[0][1][0][0], d.maps[1][1][0][0], d.maps[2][1][0][0] = -2, 3, 5
	theta := [][]float64{{0.25, 0.75}, {0.5, 0.5}, {0.2, 0.8}}
	x := []float64{2}
	node := 2 * (0.25 - 0.75*2)                                                      // −2.5
	require.InDelta(t, node*(0.2+0.8*5)+2*(0.5+0.5*3), d.output(x, theta)[0], 1e-13) // −6.5
	sum, mode, err := d.sum(t.Context(), x, theta)
	require.NoError(t, err)
	require.InDelta(t, -6.5, sum[0], 1e-13)
	require.Equal(t, []int{1, 0, 1}, mode)
	d.relu = true
	require.InDelta(t, 4, d.output(x, theta)[0], 1e-13, "node 1 is negative")
	sum, _, err = d.sum(t.Context(), x, theta)
	require.NoError(t, err)
	require.InDelta(t, 4+0.25*2*4.2, sum[0], 1e-13, "where node 1 skips it is 2")
}
