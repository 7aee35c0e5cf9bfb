package kernels

import (
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/gradient"
)

// This file has what stands between two batch normalisations of a cell, made so that no normalised map is ever written
// down: a map is handed on with its scales and shifts [2, channels], as which it stands for scale·x + shift, and what
// reads it does the rest.

// Epsilon is what is added to a variance.
const Epsilon = 1e-5

// Normal returns batch norm's scales and shifts of x [images, height, width, channels]: scale = 1/√(var + ε) and shift
// = −mean·scale, [2, channels], so that scale·x + shift has mean 0 and variance 1 in every channel; and mean and var =
// mean (x − mean)², [2, channels], which pass no gradient.
func Normal(x *Node) (affine, moments *Node) {
	w := windowOf("Normal", x, 1, 1)
	out := w.call("normal", func(in []*Node) []*Node { return normalForm(in[0]) }, x)
	affine = gradient.Custom(out[:1], func(v []*Node, _ int) []*Node {
		return []*Node{w.normalInput(x, affine, v[0])}
	}, x)[0]
	return affine, StopGradient(out[1])
}

func (w window) normalInput(x, affine, v *Node) *Node {
	form := func(in []*Node) []*Node { return []*Node{bent(nil, in[0], in[1], in[2])} }
	return gradient.OfForm(w.call("normal_input", form, x, affine, v), form, x, affine, v)[0]
}

// Affine are a scale and a shift, [1, channels] each, as [2, channels].
func Affine(scale, shift *Node) *Node { return stacked(scale, shift) }

// Weighted is the sum of maps with their scales and shifts,
//
//	Σₖ wₖ (scaleₖ xₖ + shiftₖ),
//
// for weights [1, n], maps xₖ [images, height, width, channels] and affineₖ
// [2, channels]. It panics if their numbers or shapes differ.
func Weighted(weights *Node, x, affine []*Node) *Node {
	w := windowOf("Weighted", x[0], 1, 1)
	mustBe("Weighted: the weights are", weights, x[0], 1, len(x))
	in := []*Node{weights}
	for k := range x {
		mustBe("Weighted: a map is", x[k], x[0], x[0].Shape().Dimensions...)
		mustBe("Weighted: scales and shifts are", affine[k], x[0], 2, w.channels)
		in = append(in, x[k], affine[k])
	}
	return gradient.Custom(w.call("weighted", weightedForm, in...), func(v []*Node, _ int) []*Node {
		sums := w.weightedGradient(v[0], in)
		out := []*Node{sums[0]}
		for k := range x {
			out = append(out, scaled(v[0], sums[2+2*k]), sums[1+2*k])
		}
		return out
	}, in...)[0]
}

// Rectified is [Weighted] with a ReLU on those maps of which on says so,
//
//	Σₖ wₖ max(0, scaleₖ xₖ + shiftₖ).
func Rectified(weights *Node, x, affine []*Node, on []bool) *Node {
	w := windowOf("Rectified", x[0], 1, 1)
	mustBe("Rectified: the weights are", weights, x[0], 1, len(x))
	floors := [][]float64{make([]float64, len(x))}
	in := []*Node{weights, nil}
	for k := range x {
		mustBe("Rectified: a map is", x[k], x[0], x[0].Shape().Dimensions...)
		mustBe("Rectified: scales and shifts are", affine[k], x[0], 2, w.channels)
		if in = append(in, x[k], affine[k]); !on[k] {
			floors[0][k] = math.Inf(-1)
		}
	}
	in[1] = ConstAsDType(weights.Graph(), weights.DType(), floors)
	return gradient.Custom(w.call("rectified", rectifiedForm, in...), func(v []*Node, _ int) []*Node {
		all := slices.Concat(in[:2], v, in[2:])
		made := w.call("rectified_gradient", rectifiedGradientForm, all...)
		out := gradient.OfForm(made, rectifiedGradientForm, all...)
		return slices.Insert(out, 1, ZerosLike(in[1]))
	}, in...)[0]
}

// scaledMap is the product of a map and a row [1, channels], as [factors] finds it again.
type scaledMap struct{ x, row *Node }

// scaledKey is where a graph keeps its scaled maps.
type scaledKey struct{}

// scaled multiplies a map by a row [1, channels]. A stage's gradient takes the two apart, so that the product is never
// stored.
func scaled(x, row *Node) *Node {
	g := x.Graph()
	known, _ := g.State(scaledKey{}).(map[*Node]scaledMap)
	if known == nil {
		known = map[*Node]scaledMap{}
		g.AttachState(scaledKey{}, known)
	}
	y := Mul(x, everywhere(row, x))
	known[y] = scaledMap{x, row}
	return y
}

// factors returns the map and the row of a scaled map; for others, the map and ones.
func factors(y *Node) (x, row *Node) {
	known, _ := y.Graph().State(scaledKey{}).(map[*Node]scaledMap)
	if s, ok := known[y]; ok {
		return s.x, s.row
	}
	return y, wide(number(y, 1), 1, y.Shape().Dim(-1))
}

// weightedGradient returns the gradients by the weights and by all scales and shifts. After each comes wₖ scaleₖ [1,
// channels]; v times that is the gradient by xₖ.
func (w window) weightedGradient(v *Node, in []*Node) []*Node {
	all := append([]*Node{in[0], v}, in[1:]...)
	return gradient.OfForm(w.call("weighted_gradient", weightedGradientForm, all...), weightedGradientForm, all...)
}

// Stage is ReLU, a depthwise convolution with the kernel [k, k, channels], and a
// pointwise one [channels, wide], of a map with its scales and shifts:
//
//	z = depthwise(max(0, scale x + shift)) pointwise, [images, ⌈height/s⌉, ⌈width/s⌉, wide].
//
// With z come its own scales and shifts and its moments, as [Normal] has them. It panics if shapes differ.
func Stage(x, affine, kernel, pointwise *Node, stride, dilation int) (z, normal, moments *Node) {
	w := windowOf("Stage", x, stride, dilation)
	w.mustFilter("Stage", x, kernel)
	w.k, w.wide = kernel.Shape().Dim(0), pointwise.Shape().Dim(-1)
	mustBe("Stage: scales and shifts are", affine, x, 2, w.channels)
	mustBe("Stage: the pointwise kernel is", pointwise, x, w.channels, w.wide)
	out := w.call("stage", w.stageForm, x, affine, kernel, pointwise)
	var y []*Node
	y = gradient.Custom(out[:2], func(v []*Node, last int) []*Node {
		name := "stage_gradient"
		if last < 2 { // none of the kernels
			name = "stage_input"
		}
		up, own := factors(v[0])
		return w.stageGradient(name, x, affine, kernel, pointwise, up, own, y[0], y[1], v[1])
	}, x, affine, kernel, pointwise)
	return y[0], y[1], StopGradient(out[2])
}

// stageGradient returns gradients by x, its scales and shifts and, except for stage_input, the kernels. Their own
// gradients are those of the form.
func (w window) stageGradient(name string, in ...*Node) []*Node {
	results := 4
	if name == "stage_input" {
		results = 2
	}
	of := func(c Trilinear) func(in []*Node) []*Node {
		return func(in []*Node) []*Node { return w.stageGradientForm(c, in)[:results] }
	}
	return gradient.OfForm(w.call(name, of(w.forms()), in...), of(w.kernels()), in...)
}

func mustBe(what string, x, like *Node, dims ...int) {
	want := like.Shape().Clone()
	want.Dimensions = dims
	if !x.Shape().Equal(want) {
		panic(fmt.Errorf("%s %s, expected %s", what, x.Shape(), want))
	}
}

// The forms.

func number(x *Node, value float64) *Node {
	return Reshape(ConstAsDType(x.Graph(), x.DType(), value), 1, 1)
}

// entry is number k of a row [1, n] as [1, 1]; rowOf is row i of [2, n]; stacked joins two rows. Products with parts of
// the identity have gradients of gradients; slices have not.
func entry(row *Node, k int) *Node {
	unit := make([][]float64, row.Shape().Dim(1))
	for i := range unit {
		unit[i] = []float64{0}
	}
	unit[k][0] = 1
	return Dot(row, ConstAsDType(row.Graph(), row.DType(), unit)).Product()
}

func rowOf(x *Node, i int) *Node {
	unit := [][]float64{{0, 0}}
	unit[0][i] = 1
	return Dot(ConstAsDType(x.Graph(), x.DType(), unit), x).Product()
}

func stacked(above, below *Node) *Node {
	place := func(x *Node, unit [][]float64) *Node {
		return Dot(ConstAsDType(x.Graph(), x.DType(), unit), x).Product()
	}
	return Add(place(above, [][]float64{{1}, {0}}), place(below, [][]float64{{0}, {1}}))
}

// wide is a number or row [1, 1] or [1, n] in every place of [rows, n].
func wide(x *Node, rows, n int) *Node { return BroadcastToDims(x, rows, n) }

func everywhere(row, like *Node) *Node {
	return BroadcastToShape(Reshape(row, 1, 1, 1, -1), like.Shape())
}

// sum adds up each channel's pixels, [1, channels], by a product with ones: functions have no reductions in go-xla
// v0.4.
func sum(x *Node) *Node {
	ones := BroadcastToDims(number(x, 1), 1, x.Shape().Size()/x.Shape().Dim(-1))
	return Dot(ones, Reshape(x, -1, x.Shape().Dim(-1))).Product()
}

func pixels(x *Node) float64 { return float64(x.Shape().Size() / x.Shape().Dim(-1)) }

func average(x *Node) *Node {
	y := sum(x)
	return Mul(y, wide(number(x, 1/pixels(x)), 1, y.Shape().Dim(1)))
}

func normalForm(x *Node) []*Node {
	mean := average(x)
	d := Sub(x, everywhere(mean, x))
	variance := average(Mul(d, d))
	one := func(value float64) *Node { return wide(number(x, value), 1, x.Shape().Dim(-1)) }
	scale := Div(one(1), Sqrt(Add(variance, one(Epsilon))))
	return []*Node{stacked(scale, Neg(Mul(mean, scale))), stacked(mean, variance)}
}

// bent is the gradient of z where v is the one that comes to z itself, nil for
// none, and given that of its scale s and shift t:
//
//	v − (t′ s + s³ (s′ − mean t′) (z − mean))/n, mean = −t/s.
func bent(v, z, affine, given *Node) *Node {
	scale, ofScale, ofShift := rowOf(affine, 0), rowOf(given, 0), rowOf(given, 1)
	mean := Neg(Div(rowOf(affine, 1), scale))
	share := wide(number(z, -1/pixels(z)), 1, z.Shape().Dim(-1))
	slope := Mul(share, Mul(Mul(scale, Mul(scale, scale)), Sub(ofScale, Mul(mean, ofShift))))
	constant := Sub(Mul(share, Mul(scale, ofShift)), Mul(slope, mean))
	y := Add(Mul(everywhere(slope, z), z), everywhere(constant, z))
	if v == nil {
		return y
	}
	return Add(v, y)
}

func applied(x, affine *Node) *Node {
	return Add(Mul(x, everywhere(rowOf(affine, 0), x)), everywhere(rowOf(affine, 1), x))
}

func weightedForm(in []*Node) []*Node {
	var y *Node
	for k := range (len(in) - 1) / 2 {
		c := in[1].Shape().Dim(-1)
		y = plus(y, applied(in[1+2*k], Mul(wide(entry(in[0], k), 2, c), in[2+2*k])))
	}
	return []*Node{y}
}

// cut raises a map to a floor, number k of a row, and says where it is above it.
func cut(x, affine, floors *Node, k int) (y, above *Node) {
	y = applied(x, affine)
	floor := everywhere(wide(Slice(floors, AxisRange(), AxisRange(k, k+1)), 1, x.Shape().Dim(-1)), x) // may be infinite
	above = Not(LessOrEqual(y, floor))
	return Where(above, y, floor), above
}

func rectifiedForm(in []*Node) []*Node {
	var sum *Node
	for k := range (len(in) - 2) / 2 {
		y, _ := cut(in[2+2*k], in[3+2*k], in[1], k)
		sum = plus(sum, Mul(y, everywhere(wide(entry(in[0], k), 1, y.Shape().Dim(-1)), y)))
	}
	return []*Node{sum}
}

func rectifiedGradientForm(in []*Node) []*Node {
	weights, v, c := in[0], in[2], in[2].Shape().Dim(-1)
	var dw *Node
	out := []*Node{nil}
	for k := range (len(in) - 3) / 2 {
		x, affine := in[3+2*k], in[4+2*k]
		_, above := cut(x, affine, in[1], k)
		up := Where(above, v, zeros(v))
		sums := stacked(sum(Mul(up, x)), sum(up))
		place := [][]float64{make([]float64, weights.Shape().Dim(1))}
		place[0][k] = 1
		total := Dot(Reshape(affine, 1, -1), Reshape(sums, -1, 1)).Product()
		dw = plus(dw, Dot(total, ConstAsDType(v.Graph(), v.DType(), place)).Product())
		weight := wide(entry(weights, k), 2, c)
		out = append(out, Mul(up, everywhere(rowOf(Mul(weight, affine), 0), x)), Mul(weight, sums))
	}
	out[0] = dw
	return out
}

func weightedGradientForm(in []*Node) []*Node {
	weights, v, c := in[0], in[1], in[1].Shape().Dim(-1)
	var dw *Node
	out := []*Node{nil}
	for k := range (len(in) - 2) / 2 {
		x, affine := in[2+2*k], in[3+2*k]
		sums := stacked(sum(Mul(v, x)), sum(v))
		place := [][]float64{make([]float64, weights.Shape().Dim(1))}
		place[0][k] = 1
		total := Dot(Reshape(affine, 1, -1), Reshape(sums, -1, 1)).Product()
		dw = plus(dw, Dot(total, ConstAsDType(v.Graph(), v.DType(), place)).Product())
		weight := wide(entry(weights, k), 2, c)
		out = append(out, Mul(weight, sums), rowOf(Mul(weight, affine), 0))
	}
	out[0] = dw
	return out
}

func (w window) forms() Trilinear {
	return Trilinear{w.depthwiseForm, w.depthwiseInputForm, w.depthwiseKernelForm}
}

func (w window) kernels() Trilinear {
	return w.forms().calls(w, "depthwise", "depthwise_input", "depthwise_kernel").Smooth()
}

func product(x, matrix *Node) *Node {
	d := x.Shape().Dimensions
	return Reshape(Dot(Reshape(x, -1, d[3]), matrix).Product(), d[0], d[1], d[2], matrix.Shape().Dim(1))
}

func rectified(x, affine *Node) (r, on *Node) {
	r = applied(x, affine)
	on = GreaterThan(r, zeros(r))
	return Where(on, r, zeros(r)), on
}

func (w window) stageForm(in []*Node) []*Node {
	r, _ := rectified(in[0], in[1])
	z := product(w.depthwiseForm(r, in[2]), in[3])
	return append([]*Node{z}, normalForm(z)...)
}

func (w window) stageGradientForm(c Trilinear, in []*Node) []*Node {
	x, affine, kernel, pointwise := in[0], in[1], in[2], in[3]
	dz := bent(Mul(in[4], everywhere(in[5], in[4])), in[6], in[7], in[8])
	r, on := rectified(x, affine)
	du := product(dz, TransposeAllAxes(pointwise, 1, 0))
	up := c.Input(du, kernel)
	up = Where(on, up, zeros(up))
	rows := func(y *Node) *Node { return Reshape(y, -1, y.Shape().Dim(-1)) }
	return []*Node{
		Mul(up, everywhere(rowOf(affine, 0), x)), stacked(sum(Mul(up, x)), sum(up)),
		c.Kernel(r, du), Dot(TransposeAllAxes(rows(c.Forward(r, kernel)), 1, 0), rows(dz)).Product(),
	}
}
