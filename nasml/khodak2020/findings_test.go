package khodak2020

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/trial"
)

// Theorem 3.1 for weights that list points in [0, 1] where the function is 0, and
// ε elsewhere; one more weight makes it 0 everywhere. With the loss min(1, L|h|) the
// function that lists T and V has no loss on either, so that it solves the bilevel
// problem, and the best function has no risk, so that ε* = 0. All functions lie in one ball of
// radius ε, so that the bound is at most that at ε, where the version entropy is 0.
func TestTheorem31NeedsALipschitzConstant(t *testing.T) {
	const eps, train, valid, delta = 0.1, 2000, 2000, 0.1
	rng, listed := trial.RNG(1, "theorem 3.1"), map[float64]bool{}
	for range train + valid {
		listed[rng.Float64()] = true
	}
	h := func(x float64) float64 {
		if listed[x] {
			return 0
		}
		return eps
	}
	risk := func(lipschitz float64) (sum float64) {
		const draws = 10000
		for range draws {
			sum += min(1, lipschitz*math.Abs(h(rng.Float64()))) / draws
		}
		return sum
	}
	for x := range listed {
		require.Zero(t, h(x), "no loss on T and V")
	}
	bound := 3*eps + 1.5*math.Sqrt(2./valid*math.Log(1/delta))
	require.InDelta(t, 0.372, bound, 1e-3)
	require.InDelta(t, 0.4, risk(4), 1e-9)
	require.Greater(t, risk(4), bound)
	require.Less(t, risk(1.5), bound, "up to 3/2 the theorem holds")

	// Theorem A.1 on the same functions and V alone.
	require.GreaterOrEqual(t, risk(4), 3*eps)
	require.Less(t, 2*math.Exp(-valid*eps*eps/2), 1e-4)
	require.Less(t, risk(1.25), 3*eps)
}

// Setting A.3 by enumeration: every edge of a graph of N nodes is absent or has one
// of K operations.
func TestSettingA3CountsAbsentEdges(t *testing.T) {
	count := func(nodes, operations int) int {
		graphs := [][]int{{}}
		for range nodes * (nodes - 1) / 2 {
			var longer [][]int
			for _, g := range graphs {
				for o := range operations + 1 {
					longer = append(longer, append(append([]int{}, g...), o))
				}
			}
			graphs = longer
		}
		return len(graphs)
	}
	bound := func(nodes, operations int) int { return int(math.Pow(float64(operations), float64(nodes*nodes))) }
	require.Equal(t, 8, count(3, 1))
	require.Equal(t, 1, bound(3, 1))
	for operations := 2; operations <= 3; operations++ {
		for nodes := 1; nodes <= 4; nodes++ {
			require.LessOrEqual(t, count(nodes, operations), bound(nodes, operations))
		}
	}
}
