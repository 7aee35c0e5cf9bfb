package simplex

import (
	"maps"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// shipped are the entries that are this package's own.
var shipped = maps.Clone(Updates)

// UpdateKey names an entry of [Updates] in the key of a trial: one of this
// package by its name, a reader's by what it computes, so that an edited body
// is recomputed and a new name is not. It returns an error if there is no such
// entry, and where it cannot be known by what it computes because it is random
// or has a state.
func UpdateKey(name string) (string, error) {
	return own.Entry("update", name, "simplex.Updates", Updates, shipped, func(update Update) (probes []own.Probe) {
		for _, eta := range []float64{0, 0.1, 3} {
			of := func(in []*Node) []*Node { return []*Node{update(in[0], in[1], eta)} }
			for _, point := range probePoints {
				probes = append(probes, own.Probe{Of: of, Inputs: []any{point.theta, point.grad}})
			}
		}
		return probes
	})
}

// probePoints are uniform and uneven rows, one next to a vertex and one on it,
// of two to eight options, under gradients of both signs and several sizes.
var probePoints = []struct{ theta, grad any }{
	{[][]float64{{0.5, 0.5}, {0.9, 0.1}}, [][]float64{{1, -1}, {0.3, 0.2}}},
	{
		[][]float64{
			{0.2, 0.2, 0.2, 0.2, 0.2}, {0.1, 0.4, 0.05, 0.25, 0.2}, {1 - 4e-6, 1e-6, 1e-6, 1e-6, 1e-6}, {0, 1, 0, 0, 0},
		},
		[][]float64{{0.3, -0.2, 0.05, 0, 1}, {-2, 0.7, 0.1, 5, -0.01}, {1, -1, 30, -0.5, 0}, {1e-3, -1e-3, 0.4, -7, 2}},
	},
	{
		[][][]float64{
			{{0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}},
			{{0.3, 0.05, 0.15, 0.02, 0.18, 0.1, 0.12, 0.08}},
		},
		[][][]float64{{{1, 2, 3, 4, -1, -2, -3, -4}}, {{0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0}}},
	},
}
