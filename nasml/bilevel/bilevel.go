// Package bilevel holds the two nested optimizations of a weight-sharing search,
//
//	min_θ F(w*(θ), θ)  with  w*(θ) ∈ argmin_w G(w, θ),        (Li+ 2021, eq. 2)
//
// F the validation loss and G the training loss; with F and G on the same
// examples it is empirical risk minimization (ERM, Li+ 2021, eq. 3).
//
// Five [Hypergradients] approximate ∇_θ F(w*(θ), θ). [SGD] and [Adam] step as
// PyTorch's do, [ClipGlobalNorm] bounds gradients, [Search] composes one step of
// weights and architecture in the order that [Settings] name. On the host,
// [Settings.Split] and [Settings.Epoch] draw the examples, and [Cosine] is a
// learning rate.
//
// Weights w and architecture θ are lists of nodes of any shapes and one float
// type. Graph functions panic where shapes or lengths differ, and say both.
package bilevel

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Loss is a scalar loss of weights and architecture on the examples that its
// closure holds. aux is state that the forward pass changes, such as the
// running statistics of batch norm, or nil.
type Loss func(w, theta []*Node) (loss *Node, aux []*Node)

// Problem is the pair of objectives: Inner is the training loss G(w, θ), Outer
// the validation loss F(w, θ).
type Problem struct{ Inner, Outer Loss }

// detach returns nodes of the same values whose past no gradient enters: in
// what is built on them, they are inputs to differentiate by.
//
// It matters where one step is built on another. New weights are a function of
// θ in the graph, and a plain Gradient by θ of a loss at them would be an
// unrolled hypergradient without anyone asking for it.
func detach(x []*Node) []*Node {
	return each(x, func(x *Node) *Node { return Identity(StopGradient(x)) })
}

// constant returns nodes of the same values that no gradient passes.
func constant(x []*Node) []*Node { return each(x, StopGradient) }

func each(x []*Node, f func(*Node) *Node) []*Node {
	y := make([]*Node, len(x))
	for i := range x {
		y[i] = f(x[i])
	}
	return y
}

// each2 is f of the pairs of two lists of equal shapes; what names them where
// they differ.
func each2(what string, x, y []*Node, f func(x, y *Node) *Node) []*Node {
	if len(x) != len(y) {
		panic(fmt.Errorf("%s: lists must have equal lengths, got %d and %d tensors", what, len(x), len(y)))
	}
	z := make([]*Node, len(x))
	for i := range x {
		if !x[i].Shape().Equal(y[i].Shape()) {
			panic(fmt.Errorf("%s: tensor %d must have equal shapes, got %s and %s", what, i, x[i].Shape(),
				y[i].Shape()))
		}
		z[i] = f(x[i], y[i])
	}
	return z
}

// inner is ⟨x, y⟩ = Σᵢ ⟨xᵢ, yᵢ⟩.
func inner(what string, x, y []*Node) *Node {
	products := each2(what, x, y, func(x, y *Node) *Node {
		return Dot(Reshape(x, x.Shape().Size()), Reshape(y, y.Shape().Size())).Product()
	})
	if len(products) == 0 {
		panic(fmt.Errorf("%s: an empty list has no inner product", what))
	}
	sum := products[0]
	for _, product := range products[1:] {
		sum = Add(sum, product)
	}
	return sum
}

// addScaled is x + c·y for a scalar c.
func addScaled(what string, x []*Node, c *Node, y []*Node) []*Node {
	return each2(what, x, y, func(x, y *Node) *Node { return Add(x, Mul(ConvertDType(c, y.DType()), y)) })
}

func gradients(f *Node, x, y []*Node) (dx, dy []*Node) {
	all := Gradient(f, slices.Concat(x, y)...)
	return all[:len(x)], all[len(x):]
}
