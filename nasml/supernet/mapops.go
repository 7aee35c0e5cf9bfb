package supernet

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// This file has the operations of cells with two inputs besides ops.go and package kernels. All have second gradients.

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
