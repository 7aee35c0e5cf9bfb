// Package gradient gives functions of graphs a gradient of their own.
package gradient

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Backward returns the gradients of inputs x₀ … x_last, given those of the outputs. It may return more.
type Backward func(v []*Node, last int) []*Node

// Custom returns the values y, computed from x, with gradients of their own. x are of one type of numbers. Values that
// [Call] gave for the same x are returned as they are.
//
// GoMLX has custom gradients for the identity only. So no gradient passes through y itself, and a branch that is never
// taken carries v to x; nothing of it is left in a compiled program, but it takes long to write and to read if there
// are thousands: see Call. As Gradient goes through the nodes from the last to the first, the first x that it comes to
// is the last that is wanted.
func Custom(y []*Node, vjp Backward, x ...*Node) []*Node {
	if c := calls(y[0].Graph())[source(y[0])]; c != nil && c.vjp == nil && slices.Equal(c.x, x) {
		c.of, c.vjp = y, vjp
		return y
	}
	var v, grads []*Node // of the call of Gradient under way, which visits y before x
	var branch *Node     // a number that depends on all of x
	for i := range x {
		number := first(IdentityWithCustomGradient(x[i], func(_, _ *Node) *Node {
			if grads == nil {
				grads = vjp(v, i)
			}
			return grads[i]
		}))
		if branch != nil {
			number = Add(branch, number)
		}
		branch = number
	}
	out := make([]*Node, len(y))
	never := Const(branch.Graph(), false)
	for k := range y {
		carrier := Where(never, fill(branch, y[k].Shape()), StopGradient(y[k]))
		out[k] = IdentityWithCustomGradient(carrier, func(_, vk *Node) *Node {
			if v == nil || grads != nil { // a new call of Gradient
				v, grads = zerosLike(y), nil
			}
			v[k] = vk
			return vk
		})
	}
	return out
}

// Call calls a function of the graph. Its results have no gradients until Custom gives them some.
func Call(f *Function, x ...*Node) []*Node {
	c := &call{x: x}
	in := make([]*Node, len(x))
	for i := range x {
		in[i] = IdentityWithCustomGradient(x[i], func(_, _ *Node) *Node { return c.gradient(i) })
	}
	c.y = f.Call(in...)
	calls(x[0].Graph())[source(c.y[0])] = c
	return c.y
}

// call is a call of a function from x to y.
type call struct {
	x, y     []*Node
	of       []*Node // values of y that have a gradient
	vjp      Backward
	v, grads []*Node // of the call of Gradient under way, which visits y before x
}

// gradient is that of x_i, when it is asked for.
func (c *call) gradient(i int) *Node {
	if c.grads == nil {
		v := make([]*Node, len(c.of))
		for k := range v {
			v[k] = c.v[slices.Index(c.y, c.of[k])]
		}
		c.grads = c.vjp(v, i)
	}
	return c.grads[i]
}

func calls(g *Graph) map[*Node]*call {
	made, _ := g.State(callsKey{}).(map[*Node]*call)
	if made == nil {
		made = map[*Node]*call{}
		g.AttachState(callsKey{}, made)
	}
	return made
}

type callsKey struct{}

func source(y *Node) *Node {
	if y.Type() == NodeTypeSplitNode {
		return y.Inputs()[0]
	}
	return y
}

// GoMLX asks this table for gradients it does not know. It knows only the shapes of a call's inputs; gradients come
// from where they are asked for.
func init() {
	VJPRegistration[NodeTypeCall] = func(node *Node, v []*Node, _ shapes.Shape) []*Node {
		c := calls(node.Graph())[node]
		if c == nil || c.vjp == nil {
			panic(fmt.Errorf("the call %s has no gradient", node))
		}
		c.v, c.grads = v, nil
		return node.Inputs()
	}
}

// OfForm returns values y with the gradients of a function of x that computes them in GoMLX's operations.
func OfForm(y []*Node, form func(x []*Node) []*Node, x ...*Node) []*Node {
	return Custom(y, func(v []*Node, _ int) []*Node {
		own := make([]*Node, len(x))
		for i := range x {
			own[i] = Identity(x[i]) // one of x may depend on another: partial derivatives are meant
		}
		var sum *Node
		for k, value := range form(own) {
			if term := ReduceAllSum(Mul(value, v[k])); sum == nil {
				sum = term
			} else {
				sum = Add(sum, term)
			}
		}
		return Gradient(sum, own...)
	}, x...)
}

func zerosLike(y []*Node) []*Node {
	zeros := make([]*Node, len(y))
	for k := range y {
		zeros[k] = ZerosLike(y[k])
	}
	return zeros
}

func first(x *Node) *Node {
	return Slice(Reshape(x, 1, x.Shape().Size()), AxisRange(), AxisRange(0, 1))
}

func fill(x *Node, shape shapes.Shape) *Node {
	ones := Ones(x.Graph(), shapes.Make(x.DType(), 1, shape.Size()))
	return Reshape(Dot(x, ones).Product(), shape.Dimensions...)
}
