package kernels

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/gradient"
)

// Filtered is a convolution's result z, with its scales and shifts and its moments as in [Normal].
type Filtered struct{ Z, Normal, Moments *Node }

// Dense is ReLU and convolutions with kernels [k, k, channels, wide], k odd, of
// stride 1, of a map with its scales and shifts:
//
//	z[i, j, m] = Σᵤᵥ꜀ max(0, scale x + shift)[i + u − p, j + v − p, c] kernel[u, v, c, m], p = (k − 1)/2,
//
// [images, height, width, wide] for every kernel. There are kernels in C for k = 1 and 3; that of 3 × 3 needs 16
// products where the formula has 36 (Winograd's F(2, 3)), and its rounding is some times that of the sum. Several 1 × 1
// kernels read x once, and the gradients in x are added up, from the last on, where they are. It panics if shapes
// differ.
func Dense(x, affine *Node, kernels ...*Node) []Filtered {
	return denseOf("dense", x, affine, kernels)
}

// Linear is [Dense] without the ReLU.
func Linear(x, affine *Node, kernels ...*Node) []Filtered {
	return denseOf("linear", x, affine, kernels)
}

func denseOf(name string, x, affine *Node, filters []*Node) (all []Filtered) {
	w := windowOf(name, x, 1, 1)
	w.mustConvolve(name, x, filters)
	w.k, w.wide = filters[0].Shape().Dim(0), filters[0].Shape().Dim(3)
	mustBe(name+": scales and shifts are", affine, x, 2, w.channels)
	if w.k > 1 && len(filters) > 1 {
		for _, f := range filters {
			all = append(all, denseOf(name, x, affine, []*Node{f})...)
		}
		return all
	}
	before := map[string]before{"dense": rectified, "linear": straight}[name]
	in := append([]*Node{x, affine}, filters...)
	out := w.call(name, func(in []*Node) []*Node { return w.denseForm(before, in) }, in...)
	var made, y []*Node // y: of every kernel z and its scales and shifts
	for i := range filters {
		made = append(made, out[3*i:3*i+2]...)
	}
	y = gradient.Custom(made, func(v []*Node, last int) []*Node {
		given := []*Node{x, affine}
		for i, f := range filters {
			up, own := factors(v[2*i])
			given = append(given, f, up, own, y[2*i], y[2*i+1], v[2*i+1])
		}
		return w.denseGradient(name, before, last >= 2, given)
	}, in...)
	for i := range filters {
		all = append(all, Filtered{y[2*i], y[2*i+1], StopGradient(out[3*i+2])})
	}
	return all
}

func (w window) mustConvolve(name string, x *Node, filters []*Node) {
	for _, f := range filters {
		d, first := f.Shape().Dimensions, filters[0].Shape().Dimensions
		if len(d) != 4 || d[0] != d[1] || d[0]%2 == 0 || d[2] != w.channels || f.DType() != x.DType() {
			panic(fmt.Errorf("%s: the kernel is %s and x %s, expected [k, k, %d, wide] of the same type with k odd",
				name, f.Shape(), x.Shape(), w.channels))
		}
		if !slices.Equal(d, first) {
			panic(fmt.Errorf("%s: kernels are %s and %s, expected the same shape", name, filters[0].Shape(), f.Shape()))
		}
	}
}

// denseGradient returns gradients by x, its scales and shifts and, if wanted, the kernels. Their own gradients are
// those of the form.
func (w window) denseGradient(name string, before before, ofKernels bool, in []*Node) []*Node {
	suffix, results := "_input", 2
	if ofKernels {
		suffix, results = "_gradient", 2+(len(in)-2)/6
	}
	of := func(c Trilinear) func(in []*Node) []*Node {
		return func(in []*Node) []*Node { return w.denseGradientForm(c, before, in)[:results] }
	}
	return gradient.OfForm(w.call(name+suffix, of(w.denseForms()), in...), of(w.denseForms().Smooth()), in...)
}

// The forms.

// before is applied before a convolution. It returns the map, and where its gradient passes, nil for everywhere.
type before func(x, affine *Node) (r, on *Node)

func straight(x, affine *Node) (r, on *Node) { return applied(x, affine), nil }

func (w window) denseForms() Trilinear {
	return Trilinear{w.convForm, w.convInputForm, w.convKernelForm}
}

func (w window) convForm(x, kernel *Node) *Node {
	p := w.pad()
	return Convolve(x, kernel).PaddingPerDim([][2]int{{p, p}, {p, p}}).Done()
}

func (w window) convInputForm(v, kernel *Node) *Node {
	return w.convForm(v, TransposeAllAxes(Reverse(kernel, 0, 1), 0, 1, 3, 2))
}

// convKernelForm is a convolution: channels act as images, images are summed, v is the kernel.
func (w window) convKernelForm(x, v *Node) *Node {
	side := compute.PadAxis{Start: w.pad(), End: w.pad()}
	wide := Pad(x, zero(x), compute.PadAxis{}, side, side, compute.PadAxis{})
	dk := Convolve(TransposeAllAxes(wide, 3, 1, 2, 0), TransposeAllAxes(v, 1, 2, 0, 3)).
		PaddingPerDim([][2]int{{0, 0}, {0, 0}}).Done()
	return TransposeAllAxes(dk, 1, 2, 0, 3)
}

func (w window) denseForm(before before, in []*Node) (out []*Node) {
	r, _ := before(in[0], in[1])
	for _, kernel := range in[2:] {
		z := w.convForm(r, kernel)
		out = append(append(out, z), normalForm(z)...)
	}
	return out
}

func (w window) denseGradientForm(c Trilinear, before before, in []*Node) []*Node {
	x, affine := in[0], in[1]
	r, on := before(x, affine)
	out := make([]*Node, 2+(len(in)-2)/6)
	for i := len(out) - 1; i >= 2; i-- {
		of := in[2+6*(i-2):]
		dz := bent(Mul(of[1], everywhere(of[2], of[1])), of[3], of[4], of[5])
		up := c.Input(dz, of[0])
		if on != nil {
			up = Where(on, up, zeros(up))
		}
		out[0] = plus(out[0], Mul(up, everywhere(rowOf(affine, 0), x)))
		out[1] = plus(out[1], stacked(sum(Mul(up, x)), sum(up)))
		out[i] = c.Kernel(r, dz)
	}
	return out
}

// Sparse is the product of examples with the matrices of their set,
//
//	z[s, v, b, k] = Σⱼ x[s, b, j] w[s, j, v, k],
//
// x [S, B, D], w [S, D, V, K], z [S, V, B, K]: V variants of a matrix stand side by side. Its kernel is for examples
// most numbers of which are 0, as the pixels of handwritten digits: it leaves them out, so that 0 times ∞, or times
// what is no number, is 0. No gradient passes to x. It panics if shapes differ.
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
