package kernels

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/gradient"
)

// Dense is ReLU and a convolution with a kernel [k, k, channels, wide], k odd, of
// stride 1, of a map with its scales and shifts:
//
//	z[i, j, m] = Σᵤᵥ꜀ max(0, scale x + shift)[i + u − p, j + v − p, c] kernel[u, v, c, m], p = (k − 1)/2,
//
// [images, height, width, wide]. With z come its own scales and shifts and its
// moments, as [Normal] has them. There are kernels for k = 1 and 3; that of 3 × 3
// needs 16 products where the formula has 36 (Winograd's F(2, 3)), and its rounding
// is some times that of the sum. It panics where shapes differ.
func Dense(x, affine, kernel *Node) (z, normal, moments *Node) {
	return denseOf("dense", x, affine, kernel)
}

// Linear is [Dense] without the ReLU.
func Linear(x, affine, kernel *Node) (z, normal, moments *Node) {
	return denseOf("linear", x, affine, kernel)
}

func denseOf(name string, x, affine, kernel *Node) (z, normal, moments *Node) {
	w := windowOf(name, x, 1, 1)
	w.mustConvolve(name, x, kernel)
	w.k, w.wide = kernel.Shape().Dim(0), kernel.Shape().Dim(3)
	mustBe(name+": scales and shifts are", affine, x, 2, w.channels)
	before := map[string]before{"dense": rectified, "linear": straight}[name]
	out := w.call(name, func(in []*Node) []*Node { return w.denseForm(before, in) }, x, affine, kernel)
	var y []*Node
	y = gradient.Custom(out[:2], func(v []*Node, last int) []*Node {
		results := 3
		if last < 2 { // not that of the kernel
			results = 2
		}
		up, own := factors(v[0])
		return w.denseGradient(name, before, results, x, affine, kernel, up, own, y[0], y[1], v[1])
	}, x, affine, kernel)
	return y[0], y[1], StopGradient(out[2])
}

// mustConvolve panics where a kernel is none of a convolution of x.
func (w window) mustConvolve(name string, x, kernel *Node) {
	if d := kernel.Shape().Dimensions; len(d) != 4 || d[0] != d[1] || d[0]%2 == 0 || d[2] != w.channels ||
		kernel.DType() != x.DType() {
		panic(fmt.Errorf("%s: the kernel is %s and x %s, expected [k, k, %d, wide] of the same type with k odd", name,
			kernel.Shape(), x.Shape(), w.channels))
	}
}

// denseGradient are the gradients in x, in its scales and shifts and, where three
// results are wanted, in the kernel. Their own gradients are those of the form in
// convolutions that have gradients.
func (w window) denseGradient(name string, before before, results int, in ...*Node) []*Node {
	suffix := map[int]string{2: "_input", 3: "_gradient"}[results]
	of := func(c convolutions) func(in []*Node) []*Node {
		return func(in []*Node) []*Node { return w.denseGradientForm(c, before, in)[:results] }
	}
	return gradient.OfForm(w.call(name+suffix, of(w.denseForms()), in...), of(w.denseConvolutions()), in...)
}

// The forms.

// before is what stands before a convolution: the map, and where its gradient
// passes, nil for everywhere.
type before func(x, affine *Node) (r, on *Node)

func straight(x, affine *Node) (r, on *Node) { return applied(x, affine), nil }

func (w window) denseForms() convolutions {
	return convolutions{w.convForm, w.convInputForm, w.convKernelForm}
}

func (w window) denseConvolutions() convolutions {
	return convolutions{w.conv, w.convInput, w.convKernel}
}

// conv, convInput and convKernel are the derivatives of one trilinear form, as
// depthwise and its derivatives are.
func (w window) conv(x, kernel *Node) *Node {
	return custom(w.convForm(x, kernel), func(v *Node) []*Node {
		return []*Node{w.convInput(v, kernel), w.convKernel(x, v)}
	}, x, kernel)
}

func (w window) convInput(v, kernel *Node) *Node {
	return custom(w.convInputForm(v, kernel), func(u *Node) []*Node {
		return []*Node{w.conv(u, kernel), w.convKernel(u, v)}
	}, v, kernel)
}

func (w window) convKernel(x, v *Node) *Node {
	return custom(w.convKernelForm(x, v), func(u *Node) []*Node {
		return []*Node{w.convInput(v, u), w.conv(x, u)}
	}, x, v)
}

func (w window) convForm(x, kernel *Node) *Node {
	p := w.pad()
	return Convolve(x, kernel).PaddingPerDim([][2]int{{p, p}, {p, p}}).Done()
}

// convInputForm is the convolution with the kernel turned around, of the outputs.
func (w window) convInputForm(v, kernel *Node) *Node {
	return w.convForm(v, TransposeAllAxes(Reverse(kernel, 0, 1), 0, 1, 3, 2))
}

// convKernelForm is a convolution, too: channels are the images, images are what is
// summed up, and v is the kernel.
func (w window) convKernelForm(x, v *Node) *Node {
	side := compute.PadAxis{Start: w.pad(), End: w.pad()}
	wide := Pad(x, zero(x), compute.PadAxis{}, side, side, compute.PadAxis{})
	dk := Convolve(TransposeAllAxes(wide, 3, 1, 2, 0), TransposeAllAxes(v, 1, 2, 0, 3)).
		PaddingPerDim([][2]int{{0, 0}, {0, 0}}).Done()
	return TransposeAllAxes(dk, 1, 2, 0, 3)
}

func (w window) denseForm(before before, in []*Node) []*Node {
	r, _ := before(in[0], in[1])
	z := w.convForm(r, in[2])
	return append([]*Node{z}, normalForm(z)...)
}

func (w window) denseGradientForm(c convolutions, before before, in []*Node) []*Node {
	x, affine, kernel := in[0], in[1], in[2]
	dz := bent(Mul(in[3], everywhere(in[4], in[3])), in[5], in[6], in[7])
	r, on := before(x, affine)
	up := c.input(dz, kernel)
	if on != nil {
		up = Where(on, up, zeros(up))
	}
	return []*Node{
		Mul(up, everywhere(rowOf(affine, 0), x)), stacked(sum(Mul(up, x)), sum(up)), c.kernel(r, dz),
	}
}
