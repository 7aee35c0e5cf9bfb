package kernels

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Sparse is the product of examples with the matrices of their set,
//
//	z[s, v, b, k] = Σⱼ x[s, b, j] w[s, j, v, k],
//
// x [S, B, D], w [S, D, V, K], z [S, V, B, K]: V variants of a matrix stand side by side.
// Its kernel is for examples most numbers of which are 0, as the pixels of handwritten
// digits: it leaves them out, so that 0 times ∞, or times what is no number, is 0. No
// gradient passes to x. It panics if shapes differ.
func Sparse(x, w *Node) *Node {
	mustMultiply("Sparse", x, w)
	x = StopGradient(x)
	z := whole.call1("sparse", func(in []*Node) *Node { return Einsum("sbj,sjvk->svbk", in[0], in[1]) }, x, w)
	return custom(z, func(v *Node) []*Node { return []*Node{ZerosLike(x), sparseGradient(x, v)} }, x, w)
}

func sparseGradient(x, v *Node) *Node {
	dw := whole.call1("sparse_gradient", func(in []*Node) *Node { return sparseGradientForm(in[0], in[1]) }, x, v)
	return custom(dw, func(u *Node) []*Node { return []*Node{ZerosLike(x), Sparse(x, u)} }, x, v)
}

// SparseDescent is a step down the gradient of [Sparse], where u is that of z,
//
//	w[s, j, v, k] − rate Σ_b x[s, b, j] u[s, v, b, k],
//
// in one pass. It has no gradient. It panics if shapes differ.
func SparseDescent(x, w, u *Node, rate float64) *Node {
	mustMultiply("SparseDescent", x, w)
	d := w.Shape().Dimensions
	if want := shapes.Make(w.DType(), d[0], d[2], x.Shape().Dim(1), d[3]); !u.Shape().Equal(want) {
		panic(fmt.Errorf("SparseDescent: the gradient of z is %s, expected %s", u.Shape(), want))
	}
	in := constants([]*Node{ConstAsDType(w.Graph(), w.DType(), []float64{rate}), x, u, w})
	return StopGradient(whole.call1("sparse_descent", func(in []*Node) *Node {
		return Sub(in[3], Mul(sparseGradientForm(in[1], in[2]), place(in[0], 0)))
	}, in...))
}

// whole is the window of what has none.
var whole = window{stride: 1, dilation: 1}

func mustMultiply(name string, x, w *Node) {
	if x.Rank() != 3 || w.Rank() != 4 || x.Shape().Dim(0) != w.Shape().Dim(0) || x.Shape().Dim(2) != w.Shape().Dim(1) ||
		x.DType() != w.DType() || !x.DType().IsFloat() {
		panic(fmt.Errorf("%s: x is %s and w %s, expected [S, B, D] and [S, D, V, K] of floating-point numbers of one "+
			"type", name, x.Shape(), w.Shape()))
	}
}

// The form.

func sparseGradientForm(x, v *Node) *Node { return Einsum("sbj,svbk->sjvk", x, v) }
