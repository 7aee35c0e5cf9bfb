// Package kernels has depthwise convolutions, 3 × 3 pools and what stands between two batch normalisations of a cell:
// stages, convolutions with all channels and weighted sums; and products with examples most numbers of which are 0.
// They are fast on a CPU, where XLA's own operations are two to ten times slower than they could be.
//
// Each is a graph function, written in XLA's operations, under a name of its own in the program. Package backend, which
// sees every program before XLA compiles it, puts a call of a C kernel (folder c) in the place of such a function if
// there is one: on a CPU, for float32 and float64. Everywhere else the function is compiled as it is written, to the
// same numbers within rounding. The same bits come out for any number of threads.
//
// The forms are definitions. Of pools they are made of shifted maps: XLA takes long to compile a network of them.
//
// Maps are [images, height, width, channels], padded by zeros so that y is [images, ⌈height/stride⌉, ⌈width/stride⌉,
// channels]. All have gradients of gradients, those of convolutions and pools made of the same functions, but for
// steps, which have none (Squares, Momentum, Running, SparseDescent).
package kernels

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/gradient"
)

// DepthwiseConv filters every channel of x with a k × k kernel [k, k, channels] of its own, as a cross-correlation:
//
//	y[i, j] = Σᵤᵥ x[s i + d u − p, s j + d v − p] kernel[u, v], p = d (k − 1)/2,
//
// with stride s and dilation d; outside of x there are zeros. There are kernels for k = 3, 5 and 7. It panics if k is
// even or if the channels differ, and where stride or dilation is below 1.
func DepthwiseConv(x, kernel *Node, stride, dilation int) *Node {
	w := windowOf("DepthwiseConv", x, stride, dilation)
	w.mustFilter("DepthwiseConv", x, kernel)
	w.k = kernel.Shape().Dim(0)
	return w.kernels().Forward(x, kernel)
}

func (w window) mustFilter(name string, x, kernel *Node) {
	if d := kernel.Shape().Dimensions; len(d) != 3 || d[0] != d[1] || d[0]%2 == 0 || d[2] != w.channels ||
		kernel.DType() != x.DType() {
		panic(fmt.Errorf("%s: the kernel is %s and x %s, expected [k, k, %d] of the same type with k odd",
			name, kernel.Shape(), x.Shape(), w.channels))
	}
}

// MaxPool3x3 is the largest of the 3 × 3 pixels around every stride-th pixel that lie inside x. The gradient goes to
// the first largest one, row by row. NaN stays NaN. It panics if stride is below 1.
func MaxPool3x3(x *Node, stride int) *Node {
	w := windowOf("MaxPool3x3", x, stride, 1)
	w.k = 3
	return w.maxPool(x)
}

// AvgPool3x3 is the mean of the 3 × 3 pixels around every stride-th pixel that lie inside x (PyTorch's
// count_include_pad=False). It panics if stride is below 1.
func AvgPool3x3(x *Node, stride int) *Node {
	w := windowOf("AvgPool3x3", x, stride, 1)
	w.k = 3
	return w.meanPool(x)
}

// window is the geometry of a convolution or pool.
type window struct {
	images, height, width, channels int // of x
	k, stride, dilation             int
	wide                            int // channels behind a stage
}

func windowOf(name string, x *Node, stride, dilation int) window {
	d := x.Shape().Dimensions
	if len(d) != 4 || !x.DType().IsFloat() {
		panic(fmt.Errorf("%s: x is %s, expected [images, height, width, channels] of floating-point numbers", name,
			x.Shape()))
	}
	if stride < 1 || dilation < 1 {
		panic(fmt.Errorf("%s: stride %d and dilation %d, expected 1 or more", name, stride, dilation))
	}
	return window{images: d[0], height: d[1], width: d[2], channels: d[3], stride: stride, dilation: dilation}
}

func (w window) pad() int     { return w.dilation * (w.k - 1) / 2 }
func (w window) rows() int    { return (w.height + w.stride - 1) / w.stride }
func (w window) columns() int { return (w.width + w.stride - 1) / w.stride }

// Trilinear are the derivatives of a form ⟨Forward(a, b), v⟩ that is linear in each of
// a, b and v: Forward, Input(v, b) and Kernel(a, v).
type Trilinear struct{ Forward, Input, Kernel func(a, b *Node) *Node }

// Smooth gives the three gradients, which are made of each other.
func (f Trilinear) Smooth() (s Trilinear) {
	s.Forward = func(x, kernel *Node) *Node {
		return custom(f.Forward(x, kernel), func(v *Node) []*Node {
			return []*Node{s.Input(v, kernel), s.Kernel(x, v)}
		}, x, kernel)
	}
	s.Input = func(v, kernel *Node) *Node {
		return custom(f.Input(v, kernel), func(u *Node) []*Node {
			return []*Node{s.Forward(u, kernel), s.Kernel(u, v)}
		}, v, kernel)
	}
	s.Kernel = func(x, v *Node) *Node {
		return custom(f.Kernel(x, v), func(u *Node) []*Node {
			return []*Node{s.Input(v, u), s.Forward(x, u)}
		}, x, v)
	}
	return s
}

func (f Trilinear) calls(w window, forward, input, kernel string) Trilinear {
	of := func(name string, form func(a, b *Node) *Node) func(a, b *Node) *Node {
		return func(a, b *Node) *Node {
			return w.call1(name, func(in []*Node) *Node { return form(in[0], in[1]) }, a, b)
		}
	}
	return Trilinear{of(forward, f.Forward), of(input, f.Input), of(kernel, f.Kernel)}
}

// maxPool picks pixels, maxPoolInput puts v there, and maxPoolPicked picks from u where x is largest. The last two are
// linear and transposes of each other; their derivative by x is 0 almost everywhere.
func (w window) maxPool(x *Node) *Node {
	y := w.call1("max_pool", func(in []*Node) *Node { return w.maxPoolForm(in[0]) }, x)
	return custom(y, func(v *Node) []*Node { return []*Node{w.maxPoolInput(x, v)} }, x)
}

func (w window) maxPoolInput(x, v *Node) *Node {
	dx := w.call1("max_pool_input", func(in []*Node) *Node { return w.maxPoolInputForm(in[0], in[1]) }, x, v)
	return custom(dx, func(u *Node) []*Node { return []*Node{ZerosLike(x), w.maxPoolPicked(x, u)} }, x, v)
}

func (w window) maxPoolPicked(x, u *Node) *Node {
	y := w.maxPoolPickedForm(x, u)
	return custom(y, func(v *Node) []*Node { return []*Node{ZerosLike(x), w.maxPoolInput(x, v)} }, x, u)
}

// meanPool and meanPoolInput are linear and transposes of each other.
func (w window) meanPool(x *Node) *Node {
	y := w.call1("mean_pool", func(in []*Node) *Node { return w.meanPoolForm(in[0]) }, x)
	return custom(y, func(v *Node) []*Node { return []*Node{w.meanPoolInput(v)} }, x)
}

func (w window) meanPoolInput(v *Node) *Node {
	dx := w.call1("mean_pool_input", func(in []*Node) *Node { return w.meanPoolInputForm(in[0]) }, v)
	return custom(dx, func(u *Node) []*Node { return []*Node{w.meanPool(u)} }, v)
}

func (w window) call1(name string, form func(in []*Node) *Node, in ...*Node) *Node {
	return w.call(name, func(in []*Node) []*Node { return []*Node{form(in)} }, in...)[0]
}

// call puts form into a function of the program, nasml_NAME__strideS_dilationD, so that a kernel can replace it. Calls
// with the same name and shapes share a function. Only XLA has kernels: another backend computes the form in place
// (many function calls hang GoMLX's pure-Go backend v0.1.2).
func (w window) call(name string, form func(in []*Node) []*Node, in ...*Node) []*Node {
	g := in[0].Graph()
	if g.Backend().Name() != "xla" {
		return form(in)
	}
	name = fmt.Sprintf("%s%s__stride%d_dilation%d", prefix, name, w.stride, w.dilation)
	key := fmt.Sprint(name, w)
	for _, x := range in {
		key += x.Shape().String()
	}
	made, _ := g.State(functionsKey{}).(map[string]*Function)
	if made == nil {
		made = map[string]*Function{}
		g.AttachState(functionsKey{}, made)
	}
	if made[key] == nil {
		made[key] = NewFunction(g, g.UniqueName(name), func(g *Graph) []*Node {
			parameters := make([]*Node, len(in))
			for i, x := range in {
				parameters[i] = Parameter(g, fmt.Sprint("a", i), x.Shape())
			}
			return form(parameters)
		})
	}
	return gradient.Call(made[key], in...)
}

// functionsKey is where a graph keeps its functions by what they compute.
type functionsKey struct{}

// prefix begins the names of all functions that may have a kernel.
const prefix = "nasml_"

func custom(y *Node, vjp func(v *Node) []*Node, x ...*Node) *Node {
	return gradient.Custom([]*Node{y}, func(v []*Node, _ int) []*Node { return vjp(v[0]) }, x...)[0]
}

// The forms in XLA's operations.

func around(x, value *Node) *Node {
	side := compute.PadAxis{Start: 1, End: 1}
	return Pad(x, value, compute.PadAxis{}, side, side, compute.PadAxis{})
}

// zero is 0 of the type of x. GoMLX's ScalarZero caches its node for the graph, but functions cannot share nodes.
func zero(x *Node) *Node { return ConstAsDType(x.Graph(), x.DType(), 0.0) }

func zeros(x *Node) *Node { return BroadcastToShape(zero(x), x.Shape()) }

// tap is what all outputs see at [u, v] of the window.
func (w window) tap(padded *Node, u, v int) *Node {
	range1 := func(at, n int) SliceAxisSpec {
		return AxisRange(at*w.dilation, at*w.dilation+(n-1)*w.stride+1).Stride(w.stride)
	}
	return Slice(padded, AxisRange(), range1(u, w.rows()), range1(v, w.columns()), AxisRange())
}

// back is the transpose of all taps: it adds the outputs' values at every tap to where they came from.
func (w window) back(taps []*Node) *Node {
	span := w.dilation * (w.k - 1)
	var sum *Node
	for i, y := range taps {
		axis := func(at, n, size int) compute.PadAxis {
			start := at * w.dilation
			return compute.PadAxis{Start: start, End: size + span - start - (n-1)*w.stride - 1, Interior: w.stride - 1}
		}
		placed := Pad(y, zero(y), compute.PadAxis{}, axis(i/w.k, w.rows(), w.height), axis(i%w.k, w.columns(), w.width),
			compute.PadAxis{})
		sum = plus(sum, placed)
	}
	p := w.pad()
	return Slice(sum, AxisRange(), AxisRange(p, p+w.height), AxisRange(p, p+w.width), AxisRange())
}

func plus(sum, x *Node) *Node {
	if sum == nil {
		return x
	}
	return Add(sum, x)
}

func (w window) depthwiseForm(x, kernel *Node) *Node {
	p := w.pad()
	return w.grouped(x, w.one(kernel), w.stride, [][2]int{{p, p}, {p, p}})
}

// depthwiseInputForm convolves v, its pixels s places apart, with the flipped kernel.
func (w window) depthwiseInputForm(v, kernel *Node) *Node {
	axis := func(n, size int) compute.PadAxis {
		return compute.PadAxis{Start: w.pad(), End: w.pad() + size - (n-1)*w.stride - 1, Interior: w.stride - 1}
	}
	apart := Pad(v, zero(v), compute.PadAxis{}, axis(w.rows(), w.height), axis(w.columns(), w.width), compute.PadAxis{})
	return w.grouped(apart, w.one(Reverse(kernel, 0, 1)), 1, [][2]int{{0, 0}, {0, 0}})
}

func (w window) one(kernel *Node) *Node { return Reshape(kernel, w.k, w.k, 1, w.channels) }

func (w window) grouped(x, kernel *Node, stride int, padding [][2]int) *Node {
	c := Convolve(x, kernel)
	if stride > 1 && w.dilation > 1 { // GoMLX takes one of the two
		between := compute.PadAxis{Interior: w.dilation - 1}
		c = Convolve(x, Pad(kernel, zero(kernel), between, between))
	} else if w.dilation > 1 {
		c = c.Dilations(w.dilation)
	}
	if stride > 1 {
		c = c.Strides(stride)
	}
	return c.ChannelGroupCount(w.channels).PaddingPerDim(padding).Done()
}

// depthwiseKernelForm is a convolution: a channel's images are summed, v with its pixels s apart is the kernel, d the
// stride.
func (w window) depthwiseKernelForm(x, v *Node) *Node {
	p := w.pad()
	after := func(n, size int) int { return (n-1)*w.stride + 1 + w.dilation*(w.k-1) - p - size }
	side := func(n, size int) compute.PadAxis { return compute.PadAxis{Start: p, End: max(0, after(n, size))} }
	wide := Pad(x, zero(x), compute.PadAxis{}, side(w.rows(), w.height), side(w.columns(), w.width), compute.PadAxis{})
	end := func(n, size int) int { return p + size + after(n, size) }
	wide = Slice(wide, AxisRange(), AxisRange(0, end(w.rows(), w.height)), AxisRange(0, end(w.columns(), w.width)),
		AxisRange())
	wide = Reshape(TransposeAllAxes(wide, 1, 2, 3, 0), 1, end(w.rows(), w.height), end(w.columns(), w.width),
		w.channels*w.images)
	turned := window{channels: w.channels, stride: w.dilation, dilation: w.stride}
	return Reshape(turned.grouped(wide, TransposeAllAxes(v, 1, 2, 0, 3), w.dilation, [][2]int{{0, 0}, {0, 0}}), w.k,
		w.k, w.channels)
}

func (w window) maxPoolForm(x *Node) *Node {
	padded := around(x, ConstAsDType(x.Graph(), x.DType(), math.Inf(-1)))
	var y *Node
	for i := range 9 {
		if t := w.tap(padded, i/3, i%3); y == nil {
			y = t
		} else {
			y = Max(y, t)
		}
	}
	return y
}

// inside says which outputs see a pixel of x at tap i of a 3 × 3 window.
func (w window) inside(g *Graph, i int) *Node {
	in := make([][][]bool, w.rows())
	for r := range in {
		in[r] = make([][]bool, w.columns())
		for c := range in[r] {
			h, v := r*w.stride+i/3-1, c*w.stride+i%3-1
			in[r][c] = []bool{h >= 0 && h < w.height && v >= 0 && v < w.width}
		}
	}
	return ExpandAxes(Const(g, in), 0)
}

// picked says for every tap whether it is the first largest one.
func (w window) picked(x *Node) []*Node {
	padded, y := around(x, zero(x)), w.maxPoolForm(x)
	taps := make([]*Node, 9)
	var before *Node // an earlier tap is the largest
	for i := range taps {
		t := w.tap(padded, i/3, i%3)
		hit := And(Or(Equal(t, y), NotEqual(t, t)), BroadcastToDims(w.inside(x.Graph(), i), y.Shape().Dimensions...))
		taps[i] = hit
		if before != nil {
			taps[i] = And(hit, Not(before))
			hit = Or(before, hit)
		}
		before = hit
	}
	return taps
}

func (w window) maxPoolInputForm(x, v *Node) *Node {
	taps := w.picked(x)
	for i, hit := range taps {
		taps[i] = Where(hit, v, zeros(v))
	}
	return w.back(taps)
}

func (w window) maxPoolPickedForm(x, u *Node) *Node {
	padded := around(u, zero(u))
	var y *Node
	for i, hit := range w.picked(x) {
		t := w.tap(padded, i/3, i%3)
		y = plus(y, Where(hit, t, zeros(t)))
	}
	return y
}

// share is 1 over the number of pixels that an output of a pool sees.
func (w window) share(g *Graph, like *Node) *Node {
	count := func(at, n int) int { return min(n, at*w.stride+2) - max(0, at*w.stride-1) }
	share := make([][][]float64, w.rows())
	for r := range share {
		share[r] = make([][]float64, w.columns())
		for c := range share[r] {
			share[r][c] = []float64{1 / float64(count(r, w.height)*count(c, w.width))}
		}
	}
	return BroadcastToShape(ExpandAxes(ConstAsDType(g, like.DType(), share), 0), like.Shape())
}

func (w window) meanPoolForm(x *Node) *Node {
	padded := around(x, zero(x))
	var y *Node
	for i := range 9 {
		y = plus(y, w.tap(padded, i/3, i%3))
	}
	return Mul(y, w.share(x.Graph(), y))
}

func (w window) meanPoolInputForm(v *Node) *Node {
	scaled := Mul(v, w.share(v.Graph(), v))
	taps := make([]*Node, 9)
	for i := range taps {
		taps[i] = scaled
	}
	return w.back(taps)
}
