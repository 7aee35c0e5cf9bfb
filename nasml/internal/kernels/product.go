package kernels

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Product is the product of rows with the matrices of their model,
//
//	z[s, v, b, l] = Σₖ x[s, v, b, k] w[s, v, l, k],
//
// x [S, V, B, K], w [S, V, L, K], z [S, V, B, L]. XLA:CPU multiplies one matrix after another,
// which is slow where they are small. It panics if shapes differ.
func Product(x, w *Node) *Node {
	for axis, n := range w.Shape().Dimensions {
		if x.Rank() != 4 || w.Rank() != 4 || x.DType() != w.DType() || !x.DType().IsFloat() ||
			axis != 2 && x.Shape().Dim(axis) != n {
			panic(fmt.Errorf("Product: x is %s and w %s, expected [S, V, B, K] and [S, V, L, K] of floating-point "+
				"numbers of one type", x.Shape(), w.Shape()))
		}
	}
	return products.Forward(x, w)
}

// products are the product and its derivatives. That in w takes v first, as its C kernel does.
var products = func() Trilinear {
	of := func(equation string) func(a, b *Node) *Node {
		return func(a, b *Node) *Node { return Einsum(equation, a, b) }
	}
	f := Trilinear{of("svbk,svlk->svbl"), of("svbl,svlk->svbk"), of("svbl,svbk->svlk")}
	f = f.calls(whole, "product", "product_input", "product_weights")
	weights := f.Kernel
	f.Kernel = func(x, v *Node) *Node { return weights(v, x) }
	return f.Smooth()
}()
