package bilevel

import (
	"maps"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// shipped are the entries that are this package's own.
var shipped = maps.Clone(Hypergradients)

// HypergradientKey names an entry of [Hypergradients] in the key of a trial: one
// of this package by its name, a reader's by what it computes on a small
// problem. It returns an error if there is no such entry, or if it cannot be
// known by what it computes because it is random or has a state.
func HypergradientKey(name string) (string, error) {
	const where = "bilevel.Hypergradients"
	return own.Entry("hypergradient", name, where, Hypergradients, shipped, func(h Hypergradient) (probes []own.Probe) {
		for _, terms := range []int{1, 4} {
			for _, eta := range []float64{0.05, 0.4} {
				probes = append(probes, own.Probe{Of: onProbe(h, terms, eta), Inputs: probeInputs})
			}
		}
		return probes
	})
}

// probeInputs are two weights, two architecture parameters and two velocities.
var probeInputs = []any{
	[]float64{0.3, -1.1, 0.7}, [][]float64{{0.2, 0.9}, {-0.4, 0.1}},
	[][]float64{{0.5, 0.25, 0.25}}, []float64{0.6, -0.3},
	[]float64{0.01, 0.2, -0.1}, [][]float64{{0.3, 0}, {-0.05, 0.02}},
}

// onProbe is the hypergradient of a problem that is neither quadratic nor
// separable in w and θ:
//
//	G(w, θ) = Σ(w₁ ⊙ θ₁ + w₁²/2) + Σ exp(w₂·θ₂)/5,  F(w, θ) = Σ tanh(w₁)⊙θ₁ + (Σ w₂)² Σ θ₂² + Σθ₁² .
func onProbe(h Hypergradient, terms int, eta float64) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		inner := func(w, theta []*Node) (*Node, []*Node) {
			t1, t2 := Reshape(theta[0], 3), theta[1]
			bend := MulScalar(Exp(Mul(w[1], BroadcastToDims(InsertAxes(t2, 0), 2, 2))), 0.2)
			return Add(ReduceAllSum(Add(Mul(w[0], t1), MulScalar(Square(w[0]), 0.5))), ReduceAllSum(bend)), nil
		}
		outer := func(w, theta []*Node) (*Node, []*Node) {
			t1, t2 := Reshape(theta[0], 3), theta[1]
			first := ReduceAllSum(Mul(Tanh(w[0]), t1))
			second := Mul(Square(ReduceAllSum(w[1])), ReduceAllSum(Square(t2)))
			return Add(Add(first, second), ReduceAllSum(Square(t1))), []*Node{first}
		}
		o := Options{
			Eta: Scalar(in[0].Graph(), in[0].DType(), eta), Momentum: 0.9, WeightDecay: 1e-2,
			Terms: terms, Damping: 0.5, StepSize: 0.1, Epsilon: 0.01,
		}
		loss, grad, _ := h(Problem{inner, outer}, o, in[0:2], in[2:4], in[4:6])
		return append([]*Node{loss}, grad...)
	}
}
