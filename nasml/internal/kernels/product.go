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
	return productOf(x, w)
}

// productOf, productInput and productWeights are the derivatives of one trilinear form,
// ⟨productOf(x, w), v⟩, and so the derivatives of each other.
func productOf(x, w *Node) *Node {
	z := whole.call1("product", func(in []*Node) *Node { return productForm(in[0], in[1]) }, x, w)
	return custom(z, func(v *Node) []*Node { return []*Node{productInput(v, w), productWeights(v, x)} }, x, w)
}

func productInput(v, w *Node) *Node {
	form := func(in []*Node) *Node { return Einsum("svbl,svlk->svbk", in[0], in[1]) }
	dx := whole.call1("product_input", form, v, w)
	return custom(dx, func(u *Node) []*Node { return []*Node{productOf(u, w), productWeights(v, u)} }, v, w)
}

func productWeights(v, x *Node) *Node {
	form := func(in []*Node) *Node { return Einsum("svbl,svbk->svlk", in[0], in[1]) }
	dw := whole.call1("product_weights", form, v, x)
	return custom(dw, func(u *Node) []*Node { return []*Node{productOf(x, u), productInput(v, u)} }, v, x)
}

// The form.

func productForm(x, w *Node) *Node { return Einsum("svbk,svlk->svbl", x, w) }
