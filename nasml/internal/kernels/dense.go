package kernels

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
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
// [images, height, width, wide] for every kernel. There are kernels in C for k = 1 and 3;
// that of 3 × 3 needs 16 products where the formula has 36 (Winograd's F(2, 3)), and
// its rounding is some times that of the sum. Several 1 × 1 kernels read x once, and
// the gradients in x are added up, from the last on, where they are. It panics if
// shapes differ.
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
