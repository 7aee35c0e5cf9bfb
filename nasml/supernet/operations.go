// Package supernet holds the operations of weight-sharing networks and their continuous mixtures, on which searches
// work. Its first space is that of activation functions (Oymak+ 2021, Section 4.2): σ_α = Σᵢ αᵢ σᵢ.
package supernet

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/gradient"
	"github.com/nasml/lab/nasml/internal/kernels"
	"github.com/nasml/lab/nasml/internal/own"
)

// Operation is a candidate operation of any space's cells: it turns a map of C channels into one of C channels at a
// stride, 1 or 2 (2 only in cells with two inputs, as DARTS has them). It declares its weights through l as it goes,
// and computes with them; nothing else describes it. search tells a search, where pools end in a BN, from a derived
// network.
//
// A custom operation is one entry, and a space that names it:
//
//	supernet.Operations["conv_5x5"] = func(l supernet.Layers, x supernet.Map, stride int, search bool) supernet.Map {
//		return l.BN("bn", l.Conv("conv", l.ReLU(x), 5, stride, x.C))
//	}
//	supernet.Spaces["mine"] = supernet.NASBench201.With("conv_5x5")
//
// [Layers.Apply] makes one from a graph function with any weights.
type Operation func(l Layers, x Map, stride int, search bool) Map

// Operations are the known operations by name: those of DARTS (quark0/darts@f276dd3, operations.py), the convolutions
// of NAS-Bench-201 at any stride, and the noise of Zela+ 2020. none, which is 0, has no function. Cells of
// NAS-Bench-201 and NAS-Bench-1Shot1 have pools and skip connections of their own by these names, without DARTS' BN
// behind pools.
var Operations = map[string]Operation{
	none:           nil,
	"max_pool_3x3": pooled(Layers.MaxPool),
	"avg_pool_3x3": pooled(Layers.AvgPool),
	"skip_connect": skip,
	"nor_conv_1x1": convolved(1),
	"nor_conv_3x3": convolved(3),
	"sep_conv_3x3": separable(3),
	"sep_conv_5x5": separable(5),
	"sep_conv_7x7": separable(7),
	"dil_conv_3x3": dilated(3),
	"dil_conv_5x5": dilated(5),
	"noise":        noise,
}

// pooled is a pool, with a BN behind it in a search.
func pooled(pool func(l Layers, x Map, stride int) Map) Operation {
	return func(l Layers, x Map, stride int, search bool) Map {
		if x = pool(l, x, stride); search {
			return l.BN("bn", x)
		}
		return x
	}
}

func skip(l Layers, x Map, stride int, _ bool) Map {
	if stride == 1 {
		return x
	}
	return l.FactorizedReduce(x, x.C)
}

// convolved is ReLU, k×k with the stride, BN.
func convolved(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		return l.BN("bn", l.Conv("conv", l.ReLU(x), k, stride, x.C))
	}
}

// separable is ReLU, depthwise k×k with the stride, 1×1, BN, and the same again without a stride.
func separable(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		x = l.stage(filters{"depthwise_1", "pointwise_1", k, stride, 1}, "bn_1", x)
		return l.stage(filters{"depthwise_2", "pointwise_2", k, 1, 1}, "bn_2", x)
	}
}

// dilated is ReLU, depthwise k×k of dilation 2 with the stride, 1×1, BN.
func dilated(k int) Operation {
	return func(l Layers, x Map, stride int, _ bool) Map {
		return l.stage(filters{"depthwise", "pointwise", k, stride, 2}, "bn", x)
	}
}

// From here on: operations on feature maps [B, H, W, C], whose gradients are again made of such operations, so that
// second gradients exist: GoMLX v0.28 has none for Pad, Reverse and dilated convolutions, of which its gradients of
// slices and convolutions are made. Sums over pixels are products with ones: on a CPU they are four times faster than
// XLA's reductions.

// custom returns the values y, computed from x, with custom gradients: vjp(v) are those of x if v are those of y.
func custom(y []*Node, vjp func(v []*Node) []*Node, x ...*Node) []*Node {
	return gradient.Custom(y, func(v []*Node, _ int) []*Node { return vjp(v) }, x...)
}

func custom1(y *Node, vjp func(v *Node) []*Node, x ...*Node) *Node {
	return custom([]*Node{y}, func(v []*Node) []*Node { return vjp(v[0]) }, x...)[0]
}

// pixels is the number of values of a channel, over all examples.
func pixels(x *Node) int { return x.Shape().Size() / x.Shape().Dim(-1) }

// sums adds up the pixels of every channel: [1, C] over all examples, or [B, C] if rows is B.
func sums(x *Node, rows int) *Node {
	c := x.Shape().Dim(-1)
	ones := Ones(x.Graph(), shapes.Make(x.DType(), rows, 1, pixels(x)/rows))
	var y *Node
	if rows == 1 {
		y = Dot(Reshape(ones, 1, -1), Reshape(x, -1, c)).Product()
	} else {
		y = Reshape(Einsum("bip,bpc->bic", ones, Reshape(x, rows, -1, c)), rows, c)
	}
	return custom1(y, func(v *Node) []*Node { return []*Node{spread(v, x.Shape())} }, x)
}

// spread puts s [1, C] or [B, C] at every pixel of a shape [B, H, W, C]; it is the transpose of sums.
func spread(s *Node, shape shapes.Shape) *Node {
	rows, c := s.Shape().Dim(0), s.Shape().Dim(1)
	y := BroadcastToShape(Reshape(s, rows, 1, 1, c), shape)
	return custom1(y, func(v *Node) []*Node { return []*Node{sums(v, rows)} }, s)
}

// split deals out the channels into equal parts; join is its inverse and its transpose.
func split(x *Node, parts int) []*Node {
	width := x.Shape().Dim(-1) / parts
	y := make([]*Node, parts)
	for k := range y {
		y[k] = SliceAxis(x, -1, AxisRange(k*width, (k+1)*width))
	}
	return custom(y, func(v []*Node) []*Node { return []*Node{join(v)} }, x)
}

func join(parts []*Node) *Node {
	return custom1(Concatenate(parts, -1), func(v *Node) []*Node { return split(v, len(parts)) }, parts...)
}

// convolution is the convolution of stride 1 that keeps the size of the map.
func convolution(x, kernel *Node) *Node {
	k, in, out := kernel.Shape().Dim(0), kernel.Shape().Dim(2), kernel.Shape().Dim(3)
	if k > 1 {
		return window{k / 2, 1}.conv(x, kernel)
	}
	d := x.Shape().Dimensions
	return Reshape(Dot(Reshape(x, -1, in), Reshape(kernel, in, out)).Product(), d[0], d[1], d[2], out)
}

// A window is the geometry of a convolution.
type window struct{ pad, stride int }

// conv is the convolution of x [B, H, W, C] with a kernel [k, k, C, O], as a cross-correlation.
func (w window) conv(x, kernel *Node) *Node {
	of, with := x.Shape(), kernel.Shape()
	return kernels.Trilinear{
		Forward: w.native,
		Input:   func(v, kernel *Node) *Node { return nativeVJP(w.native(Zeros(v.Graph(), of), kernel), v)[0] },
		Kernel:  func(x, v *Node) *Node { return nativeVJP(w.native(x, Zeros(v.Graph(), with)), v)[1] },
	}.Smooth().Forward(x, kernel)
}

func (w window) native(x, kernel *Node) *Node {
	c := Convolve(x, kernel).PaddingPerDim([][2]int{{w.pad, w.pad}, {w.pad, w.pad}})
	if w.stride > 1 { // a stride of 1, said aloud, would leave a dilation in the gradient
		c = c.Strides(w.stride)
	}
	return c.Done()
}

// nativeVJP is GoMLX's own gradient of a convolution y, in its input and in its kernel.
func nativeVJP(y, v *Node) []*Node {
	return VJPRegistration[y.Type()](y, []*Node{v}, shapes.Make(v.DType()))
}

// halved is the mean of every 2×2 pixels; its transpose is doubled.
func halved(x *Node) *Node {
	d := x.Shape().Dimensions
	pairs := Reshape(x, d[0], d[1]/2, 2, d[2]/2, 2, d[3])
	corner := func(i, j int) *Node {
		return Slice(pairs, AxisRange(), AxisRange(), AxisElem(i), AxisRange(), AxisElem(j))
	}
	y := Add(Add(corner(0, 0), corner(0, 1)), Add(corner(1, 0), corner(1, 1)))
	y = DivScalar(Reshape(y, d[0], d[1]/2, d[2]/2, d[3]), 4)
	return custom1(y, func(v *Node) []*Node { return []*Node{doubled(v)} }, x)
}

func doubled(v *Node) *Node {
	d := v.Shape().Dimensions
	x := BroadcastToDims(Reshape(v, d[0], d[1], 1, d[2], 1, d[3]), d[0], d[1], 2, d[2], 2, d[3])
	x = DivScalar(Reshape(x, d[0], 2*d[1], 2*d[2], d[3]), 4)
	return custom1(x, func(u *Node) []*Node { return []*Node{halved(u)} }, v)
}

// inverseRoot is 1/√(variance + ε).
func inverseRoot(variance *Node) *Node { return Inverse(Sqrt(AddScalar(variance, epsilon))) }

// kept is x, computed once. XLA:CPU would recompute a sum of maps in every loop that reads it, unless something other
// than a loop reads it, too: here a convolution that looks at one pixel of an example and comes to nothing.
func kept(x *Node) *Node {
	d := x.Shape().Dimensions
	one := Ones(x.Graph(), shapes.Make(x.DType(), 1, 1, d[3], 1))
	look := Convolve(x, one).StridePerAxis(d[1], d[2]).Done()
	y := Add(x, BroadcastToShape(MulScalar(look, 0), x.Shape()))
	return custom1(y, func(v *Node) []*Node { return []*Node{kept(v)} }, x)
}

// From here on: what cells with two inputs need besides these and package kernels. All have second gradients.

// count is 0, 1, …, n−1.
func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// cut picks places along an axis: stride·i + offset for i < n.
type cut struct{ axis, offset, stride, n int }

// strided is y with y[i] = x[stride·i + offset] for i < n along the axis of each cut, 0 beyond x. unstrided is its
// transpose, to the given sizes.
func strided(x *Node, cuts ...cut) *Node {
	y := x
	sizes := make([]int, len(cuts))
	for i, c := range cuts {
		sizes[i] = x.Shape().Dim(c.axis)
		y = c.pick(y)
	}
	if y == x {
		return x
	}
	return custom1(y, func(v *Node) []*Node { return []*Node{unstrided(v, sizes, cuts...)} }, x)
}

// unstrided is x with x[k] = Σᵢ v[i]·1{stride·i + offset = k}.
func unstrided(v *Node, sizes []int, cuts ...cut) *Node {
	x := v
	for i, c := range cuts {
		x = c.place(x, sizes[i])
	}
	return custom1(x, func(u *Node) []*Node { return []*Node{strided(u, cuts...)} }, v)
}

// pick is strided along one axis, without a second gradient.
func (c cut) pick(x *Node) *Node {
	size := x.Shape().Dim(c.axis)
	if c.offset == 0 && c.stride == 1 && c.n == size {
		return x
	}
	end := c.offset + c.stride*(c.n-1) + 1 // behind the last place that is read
	x = padded(x, c.axis, max(0, -c.offset), max(0, end-size))
	from := max(0, c.offset)
	return SliceAxis(x, c.axis, AxisRange(from, from+c.stride*(c.n-1)+1).Stride(c.stride))
}

// place is unstrided along one axis, without a second gradient.
func (c cut) place(v *Node, n int) *Node {
	size := v.Shape().Dim(c.axis)
	x := v
	if c.stride > 1 { // each place is followed by zeros
		dims := v.Shape().Dimensions
		spaced := Reshape(v, splitAxis(dims, c.axis, size, 1)...)
		x = Reshape(padded(spaced, c.axis+1, 0, c.stride-1), splitAxis(dims, c.axis, size*c.stride)...)
	}
	x = padded(x, c.axis, max(0, c.offset), max(0, n-c.offset-size*c.stride))
	from := max(0, -c.offset)
	return SliceAxis(x, c.axis, AxisRange(from, from+n))
}

func splitAxis(dims []int, axis int, sizes ...int) []int {
	out := append([]int{}, dims[:axis]...)
	return append(append(out, sizes...), dims[axis+1:]...)
}

// padded has zeros before and after along an axis. It has no second gradient.
func padded(x *Node, axis, before, after int) *Node {
	var parts []*Node
	zeros := func(n int) *Node {
		shape := x.Shape().Clone()
		shape.Dimensions[axis] = n
		return Zeros(x.Graph(), shape)
	}
	if before > 0 {
		parts = append(parts, zeros(before))
	}
	parts = append(parts, x)
	if after > 0 {
		parts = append(parts, zeros(after))
	}
	if len(parts) == 1 {
		return x
	}
	return Concatenate(parts, axis)
}

// lowest is a number below all that a network computes with, but finite.
func lowest(x *Node) *Node { return Scalar(x.Graph(), x.DType(), -3e38) }

// larger is the larger of two maps, the first of equal ones.
func larger(a, b *Node) *Node {
	second := LogicalOr(GreaterThan(b, a), NotEqual(b, b)) // NaN is not itself
	return Where(second, b, a)
}

// insideAxis says which places of y, in its shape, read x, which has n places.
func insideAxis(y *Node, axis, offset, stride, n int) *Node {
	inside := make([]bool, y.Shape().Dim(axis))
	for i := range inside {
		at := stride*i + offset
		inside[i] = 0 <= at && at < n
	}
	dims := []int{1, 1, 1, 1}
	dims[axis] = len(inside)
	return BroadcastToDims(Reshape(Const(y.Graph(), inside), dims...), y.Shape().Dimensions...)
}

// MaxPool2x2 is the largest of every 2×2 pixels; an odd last row or column is dropped.
func MaxPool2x2(x *Node) *Node {
	for _, axis := range []int{2, 1} {
		out := x.Shape().Dim(axis) / 2
		x = larger(strided(x, cut{axis, 0, 2, out}), strided(x, cut{axis, 1, 2, out}))
	}
	return x
}

// windowSum is Σ_{j<k} x[stride·i + offset + j] along an axis for i < n.
func windowSum(x *Node, axis, offset, k, stride, n int) *Node {
	y := strided(x, cut{axis, offset, stride, n})
	for j := 1; j < k; j++ {
		y = Add(y, strided(x, cut{axis, offset + j, stride, n}))
	}
	return y
}

// AvgPoolValid is the mean of k×k pixels, without padding.
func AvgPoolValid(x *Node, k, stride int) *Node {
	for _, axis := range []int{2, 1} {
		x = windowSum(x, axis, 0, k, stride, (x.Shape().Dim(axis)-k)/stride+1)
	}
	return DivScalar(x, float64(k*k))
}

// MixedSum is Σₖ wₖ·yₖ of maps [B, H, W, C] with weights w [1, n], or [B, n] for those of every example.
func MixedSum(y []*Node, w *Node) *Node {
	r, n, c := w.Shape().Dim(0), len(y), y[0].Shape().Dim(-1)
	mustBe("weights of a mixed sum", w, r, n)
	ones := Ones(w.Graph(), shapes.Make(w.DType(), 1, c))
	wide := Dot(Reshape(w, r*n, 1), ones).Product()
	terms := make([]*Node, n)
	for k, row := range split(Reshape(wide, r, n*c), n) {
		terms[k] = Mul(y[k], everywhere(row, y[k].Shape()))
	}
	return sum(y[0], terms)
}

// sum adds maps in the shape of x; the result is kept.
func sum(x *Node, terms []*Node) *Node {
	if len(terms) == 0 {
		return ZerosLike(x)
	}
	y := terms[0]
	for _, term := range terms[1:] {
		y = Add(y, term)
	}
	return kept(y)
}

// everywhere puts s [1, C] or [B, C] at every pixel. As a product with ones its gradient is such a product, too:
// compare spread.
func everywhere(s *Node, shape shapes.Shape) *Node {
	rows, c := s.Shape().Dim(0), s.Shape().Dim(1)
	ones := Ones(s.Graph(), shapes.Make(s.DType(), rows, shape.Size()/(rows*c), 1))
	if rows == 1 {
		return Reshape(Dot(Reshape(ones, -1, 1), s).Product(), shape.Dimensions...)
	}
	return Reshape(Einsum("bpi,bic->bpc", ones, ExpandAxes(s, 1)), shape.Dimensions...)
}

// Shuffled deals the channels out as PC-DARTS' channel_shuffle: channel i·C/groups + j comes to j·groups + i.
func Shuffled(x *Node, groups int) *Node {
	d := x.Shape().Dimensions
	apart := Reshape(x, d[0], d[1], d[2], groups, d[3]/groups)
	return Reshape(TransposeAllAxes(apart, 0, 1, 2, 4, 3), d...)
}

// beside puts two maps of any widths beside each other.
func beside(x, y *Node) *Node {
	a, b := x.Shape().Dim(-1), y.Shape().Dim(-1)
	return custom1(Concatenate([]*Node{x, y}, -1), func(v *Node) []*Node {
		return []*Node{strided(v, cut{3, 0, 1, a}), strided(v, cut{3, a, 1, b})}
	}, x, y)
}

// noise is a map of independent N(0, 1) numbers in the size of x, whose values it ignores (Zela+ 2020, Section 3, S4;
// automl/RobustDARTS@07f54ba, src/operations.py). It is drawn again in every pass, also in tests.
//
// The generator is seeded by the bits of the pass's images and the place in the network, so that a pass is a function:
// an interrupted search goes on as it would have, and all derivatives of a step are of one loss. Without augmentation
// the same images bring the same noise.
func noise(l Layers, x Map, stride int, _ bool) Map {
	return l.Apply(x, x.strided(stride), nil, 0, func(x *Node, _ []*Node) *Node {
		y := x.Shape().Clone()
		for axis := 1; axis <= 2; axis++ {
			y.Dimensions[axis] = (y.Dimensions[axis] + stride - 1) / stride
		}
		return gaussian(generator(l.path, l.walk.pass.Images), y)
	})
}

// generator is the state of a random generator for a place and images. Sums of integers wrap around, so that their
// order does not matter.
func generator(place string, images *Node) *Node {
	name := fnv.New64a()
	name.Write([]byte(place))
	bits := Bitcast(ConvertDType(StopGradient(images), dtypes.Float32), dtypes.Uint32)
	bits = ConvertDType(bits, dtypes.Uint64)
	first, second := ReduceAllSum(bits), ReduceAllSum(Mul(bits, bits))
	return Stack([]*Node{Const(images.Graph(), name.Sum64()), first, second}, 0)
}

// gaussian draws from N(0, 1) by Box and Muller's
//
//	√(−2 log(1 − u))·cos 2πv ,  u, v uniform in [0, 1) ,
//
// which is finite for all of these.
func gaussian(state *Node, shape shapes.Shape) *Node {
	state, u := RandomUniform(state, shape)
	_, v := RandomUniform(state, shape)
	radius := Sqrt(MulScalar(Log(OneMinus(u)), -2))
	return StopGradient(Mul(radius, Cos(MulScalar(v, 2*math.Pi))))
}

// Activation is an elementwise function σ: R → R as a graph function. Its result has the shape of z.
type Activation func(z *Node) *Node

// Activations are the known activation functions by name. Add a custom one with Activations["mine"] = func(z *Node)
// *Node {…}. They avoid reductions, which XLA's loops cannot contain in go-xla v0.4.
var Activations = map[string]Activation{
	"identity": func(z *Node) *Node { return z },
	"relu":     relu,
	"sigmoid":  Sigmoid,
	"sin":      Sin,
	"softplus": func(z *Node) *Node { return Sub(relu(z), Log(Sigmoid(Abs(z)))) }, // log(1+eᶻ) = max(z,0) − log σ(|z|)
	"square":   func(z *Node) *Node { return MulScalar(Mul(z, z), 0.5) },
	"tanh":     Tanh,
}

// relu is max(z, 0) with derivative 0 at z = 0, as in PyTorch and JAX.
func relu(z *Node) *Node {
	zero := ZerosLike(z)
	return Where(GreaterThan(z, zero), z, zero)
}

// CheckActivation returns an error that lists the known names if name is not one of Activations.
func CheckActivation(name string) error {
	if _, ok := Activations[name]; ok {
		return nil
	}
	return own.Unknown("activation", name, Activations, "supernet.Activations")
}

// MixActivations is the two-point activation mixture of Oymak+ 2021, Section 7a, with one hyperparameter:
//
//	σ_α(z) = (1−α)·σ₀(z) + α·σ₁(z) .
//
// alpha must broadcast to z by its axes of dimension 1; α outside [0, 1] is allowed. It is a graph function: it panics
// for an unknown name, and with both shapes if the ranks differ.
func MixActivations(sigma0, sigma1 string, alpha, z *Node) *Node {
	for _, name := range []string{sigma0, sigma1} {
		if err := CheckActivation(name); err != nil {
			panic(err)
		}
	}
	if alpha.Rank() != z.Rank() {
		panic(fmt.Errorf("MixActivations: alpha has shape %s and z %s: the ranks must agree", alpha.Shape(), z.Shape()))
	}
	a := BroadcastToShape(alpha, z.Shape())
	return Add(Mul(OneMinus(a), Activations[sigma0](z)), Mul(a, Activations[sigma1](z)))
}
