package supernet

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// This file holds what the cells with two inputs do to feature maps besides
// ops.go: depthwise convolutions, pools, the mixed sum. All have gradients of
// gradients.

// DepthwiseConv is the convolution of every channel of x [B, H, W, C] with a
// kernel of its own, [k, k, C], k odd, as a cross-correlation with padding
// dilation·⌊k/2⌋: [B, ⌈H/stride⌉, ⌈W/stride⌉, C]. Stride and dilation are 1 or 2.
//
// It is a convolution with a diagonal kernel, which is C times the arithmetic.
// XLA:CPU's grouped convolution is slower than that for the narrow maps of a
// search, and GoMLX takes its gradient a channel at a time.
func DepthwiseConv(x, kernel *Node, stride, dilation int) *Node {
	k, c := kernel.Shape().Dim(0), x.Shape().Dim(-1)
	mustBe("a depthwise kernel", kernel, k, k, c)
	if k%2 == 0 || stride < 1 || stride > 2 || dilation < 1 || dilation > 2 {
		panic(fmt.Errorf("supernet: a depthwise convolution of kernel %d, stride %d, dilation %d: want odd, 1 or "+
			"2, 1 or 2",
			k, stride, dilation))
	}
	one := Reshape(selection(x, c, count(c)), 1, 1, c, c)
	diagonal := Mul(BroadcastToDims(Reshape(kernel, k, k, 1, c), k, k, c, c), BroadcastToDims(one, k, k, c, c))
	if dilation == 1 {
		return window{k / 2, stride}.conv(x, diagonal)
	}
	if stride == 2 { // every second pixel is all that it sees
		h, w := (x.Shape().Dim(1)+1)/2, (x.Shape().Dim(2)+1)/2
		return window{k / 2, 1}.conv(strided(x, along(1, 0, 2, h), along(2, 0, 2, w)), diagonal)
	}
	return together(window{k / 2, 1}.conv(apart(x), diagonal), x.Shape().Dim(1), x.Shape().Dim(2))
}

// apart makes four examples of each, of the pixels whose rows and columns are
// even or odd: with dilation 2 a pixel sees those of its kind only. together is
// its inverse, for a size of h×w.
func apart(x *Node) *Node {
	d := x.Shape().Dimensions
	h, w := (d[1]+1)/2, (d[2]+1)/2
	x = strided(x, along(1, 0, 1, 2*h), along(2, 0, 1, 2*w)) // where a size is odd, zeros follow
	x = TransposeAllAxes(Reshape(x, d[0], h, 2, w, 2, d[3]), 2, 4, 0, 1, 3, 5)
	return Reshape(x, 4*d[0], h, w, d[3])
}

func together(x *Node, h, w int) *Node {
	d := x.Shape().Dimensions
	x = TransposeAllAxes(Reshape(x, 2, 2, d[0]/4, d[1], d[2], d[3]), 2, 3, 0, 4, 1, 5)
	x = Reshape(x, d[0]/4, 2*d[1], 2*d[2], d[3])
	return strided(x, along(1, 0, 1, h), along(2, 0, 1, w))
}

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

func along(axis, offset, stride, n int) cut { return cut{axis, offset, stride, n} }

// strided is y with y[i] = x[stride·i + offset] for i < n along the axis of each
// cut, 0 where x ends. unstrided is its transpose, to the sizes given.
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

// MaxPool3x3 is the largest of the 3×3 pixels around every pixel, or around
// every second, that lie inside the map. As in PyTorch the gradient goes to the
// first of equal ones, by rows, and NaN is larger than any number.
func MaxPool3x3(x *Node, stride int) *Node { return max3(max3(x, 2, stride), 1, stride) }

// max3 is the largest of three neighbours along an axis. Outside of the map is
// the smallest number.
func max3(x *Node, axis, stride int) *Node {
	n := x.Shape().Dim(axis)
	out := (n + stride - 1) / stride
	at := func(offset int) *Node {
		y := strided(x, along(axis, offset, stride, out))
		return Where(insideAxis(y, axis, offset, stride, n), y, BroadcastToShape(lowest(x), y.Shape()))
	}
	return larger(larger(at(-1), at(0)), at(1))
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

// MaxPool2x2 is the largest of every 2×2 pixels; an odd last row or column is
// left out.
func MaxPool2x2(x *Node) *Node {
	for _, axis := range []int{2, 1} {
		out := x.Shape().Dim(axis) / 2
		x = larger(strided(x, along(axis, 0, 2, out)), strided(x, along(axis, 1, 2, out)))
	}
	return x
}

// AvgPool3x3 is the mean of the 3×3 pixels around every pixel, or around every
// second, that lie inside the map (PyTorch's count_include_pad=False).
func AvgPool3x3(x *Node, stride int) *Node {
	if stride == 1 {
		return pool3(x)
	}
	y := x
	share := insideShare(x) // of the pixel that a window stands around
	for _, axis := range []int{2, 1} {
		out := (x.Shape().Dim(axis) + stride - 1) / stride
		y = windowSum(y, axis, -1, 3, stride, out)
		share = strided(share, along(axis, 0, stride, out))
	}
	return Mul(y, share)
}

// windowSum is Σ_{j<k} x[stride·i + offset + j] along an axis for i < n.
func windowSum(x *Node, axis, offset, k, stride, n int) *Node {
	y := strided(x, along(axis, offset, stride, n))
	for j := 1; j < k; j++ {
		y = Add(y, strided(x, along(axis, offset+j, stride, n)))
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

// MixedSum is Σₖ wₖ·yₖ of maps [B, H, W, C] with weights w [1, n], or [B, n] for
// those of every example.
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

// channelSums adds up all pixels of a channel, [1, C]; everywhere puts s [1, C]
// or [B, C] at every pixel. As products with ones their gradients are such
// products, too: compare sums and spread.
func channelSums(x *Node) *Node {
	n := pixels(x)
	ones := Ones(x.Graph(), shapes.Make(x.DType(), 1, n))
	return Dot(ones, Reshape(x, n, -1)).Product()
}

func everywhere(s *Node, shape shapes.Shape) *Node {
	rows, c := s.Shape().Dim(0), s.Shape().Dim(1)
	ones := Ones(s.Graph(), shapes.Make(s.DType(), rows, shape.Size()/(rows*c), 1))
	if rows == 1 {
		return Reshape(Dot(Reshape(ones, -1, 1), s).Product(), shape.Dimensions...)
	}
	return Reshape(Einsum("bpi,bic->bpc", ones, ExpandAxes(s, 1)), shape.Dimensions...)
}

// batchNormalized is ẑ = (z − mean(z))/√(var(z) + ε) of every channel over the
// batch, with the mean and the biased variance [1, C]. The gradient of z is
//
//	(v − mean(v) − ẑ·mean(v·ẑ))/√(var(z) + ε) .
func batchNormalized(z *Node) (hat, mean, variance *Node) {
	shape, n := z.Shape(), float64(pixels(z))
	average := func(x *Node) *Node { return DivScalar(channelSums(x), n) }
	mean = average(z)
	centred := Sub(z, everywhere(mean, shape))
	variance = average(Mul(centred, centred))
	inverse := everywhere(inverseRoot(variance), shape)
	plain := Mul(centred, inverse)
	hat = custom1(plain, func(v *Node) []*Node {
		aside := Add(everywhere(average(v), shape), Mul(plain, everywhere(average(Mul(v, plain)), shape)))
		return []*Node{Mul(Sub(v, aside), inverse)}
	}, z)
	return hat, mean, variance
}

// Shuffled deals the channels out as PC-DARTS' channel_shuffle does: channel
// i·C/groups + j comes to j·groups + i.
func Shuffled(x *Node, groups int) *Node {
	d := x.Shape().Dimensions
	apart := Reshape(x, d[0], d[1], d[2], groups, d[3]/groups)
	return Reshape(TransposeAllAxes(apart, 0, 1, 2, 4, 3), d...)
}

// beside puts two maps of any widths beside each other.
func beside(x, y *Node) *Node {
	a, b := x.Shape().Dim(-1), y.Shape().Dim(-1)
	return custom1(Concatenate([]*Node{x, y}, -1), func(v *Node) []*Node {
		return []*Node{strided(v, along(3, 0, 1, a)), strided(v, along(3, a, 1, b))}
	}, x, y)
}
