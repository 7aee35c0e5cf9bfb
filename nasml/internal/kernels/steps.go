package kernels

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// This file has what a step does to all weights of a network and to all its running statistics: one kernel each instead
// of some operations for every array, which XLA compiles one by one. None has a gradient.

// Squares is Σ x² over all numbers of arrays of any shapes and one type, a scalar.
func Squares(x []*Node) *Node {
	in := []*Node{Reshape(number(x[0], 0), 1)}
	return Reshape(whole.call("squares", squaresForm, append(in, constants(x)...)...)[0])
}

// Rates are those of [Momentum]: two scalars and what does not change.
type Rates struct {
	Eta, Factor     *Node // η, and what the gradients are multiplied by, nil: 1
	Momentum, Decay float64
	Nesterov        bool
}

// Momentum is one step of SGD of arrays of any shapes and one type:
//
//	g ← factor·g + decay·w,  v ← μv + g,  w ← w − ηv,  Nesterov's: w ← w − η(g + μv) .
//
// It panics if lists differ in length or shapes.
func Momentum(w, grad, velocity []*Node, r Rates) (w2, velocity2 []*Node) {
	if len(w) == 0 || len(grad) != len(w) || len(velocity) != len(w) {
		panic(fmt.Errorf("Momentum: %d arrays, %d gradients, %d velocities, expected as many and some", len(w),
			len(grad), len(velocity)))
	}
	in := []*Node{r.row(w[0])}
	for i := range w {
		for what, x := range map[string]*Node{"gradient": grad[i], "velocity": velocity[i]} {
			if !x.Shape().Equal(w[i].Shape()) {
				panic(fmt.Errorf("Momentum: array %d is %s and its %s %s, expected the same", i, w[i].Shape(), what,
					x.Shape()))
			}
		}
		in = append(in, w[i], grad[i], velocity[i])
	}
	name := "momentum"
	if r.Nesterov {
		name = "nesterov"
	}
	out := whole.call(name, r.form, constants(in)...)
	for i := range w {
		w2, velocity2 = append(w2, StopGradient(out[2*i])), append(velocity2, StopGradient(out[2*i+1]))
	}
	return w2, velocity2
}

func (r Rates) row(like *Node) *Node {
	if r.Factor == nil {
		r.Factor = ConstAsDType(like.Graph(), like.DType(), 1.0)
	}
	fixed := []float64{r.Momentum, r.Decay}
	one := func(x *Node) *Node { return Reshape(ConvertDType(x, like.DType()), 1) }
	return Concatenate([]*Node{one(r.Eta), one(r.Factor), ConstAsDType(like.Graph(), like.DType(), fixed)}, 0)
}

// Batch is a map's part in its running statistics.
type Batch struct {
	Moments        *Node // [2, channels], of [Normal] or [Stage]
	Mean, Variance *Node // [channels], so far
	Pixels         int   // of a channel
}

// Running mixes batches into running statistics:
//
//	mean ← (1 − m) mean + m mean',  var ← (1 − m) var + m n/(n − 1) var' .
func Running(momentum float64, batches []Batch) (mean, variance []*Node) {
	first := batches[0].Mean
	rates, in := []float64{1 - momentum, momentum}, []*Node{nil}
	for _, b := range batches {
		n := float64(b.Pixels)
		rates = append(rates, n/(n-1))
		in = append(in, b.Moments, b.Mean, b.Variance)
	}
	in[0] = ConstAsDType(first.Graph(), first.DType(), rates)
	out := whole.call("running", runningForm, constants(in)...)
	for i := range batches {
		mean, variance = append(mean, StopGradient(out[2*i])), append(variance, StopGradient(out[2*i+1]))
	}
	return mean, variance
}

func constants(x []*Node) []*Node {
	y := make([]*Node, len(x))
	for i := range x {
		y[i] = StopGradient(x[i])
	}
	return y
}

// The forms.

func place(row *Node, i int) *Node { return Reshape(Slice(row, AxisRange(i, i+1))) }

func squaresForm(in []*Node) []*Node {
	y := place(in[0], 0)
	for _, x := range in[1:] {
		flat := Reshape(x, x.Shape().Size())
		y = Add(y, Dot(flat, flat).Product())
	}
	return []*Node{Reshape(y, 1)}
}

func (r Rates) form(in []*Node) (out []*Node) {
	times := func(i int, x *Node) *Node { return Mul(x, place(in[0], i)) }
	for i := 1; i < len(in); i += 3 {
		w, grad, velocity := in[i], in[i+1], in[i+2]
		grad = Add(times(1, grad), times(3, w))
		velocity = Add(times(2, velocity), grad)
		move := velocity
		if r.Nesterov {
			move = Add(times(2, velocity), grad)
		}
		out = append(out, Add(w, Mul(move, Neg(place(in[0], 0)))), velocity)
	}
	return out
}

func runningForm(in []*Node) (out []*Node) {
	for i := range (len(in) - 1) / 3 {
		moments, c := in[1+3*i], in[2+3*i].Shape().Dim(0)
		for row := range 2 {
			value := Reshape(Slice(moments, AxisElem(row)), c)
			if row == 1 {
				value = Mul(value, place(in[0], 2+i))
			}
			old := Mul(in[2+3*i+row], place(in[0], 0))
			out = append(out, Add(old, Mul(value, place(in[0], 1))))
		}
	}
	return out
}
