package bilevel

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Rule is an optimizer: how parameters move by their gradients, and how much of
// the past it keeps. It holds no tensors: its caller keeps the slots, passes
// them in and gets them back, as in optax.
//
// optax has a function init in the place of Slots. A number is enough here, and
// the state before the first step is made on the host, if there is no graph.
type Rule struct {
	// Slots is the number of tensors kept for every parameter, shaped like it and
	// 0 at first. Those of one parameter stand together: m₀, v₀, m₁, v₁, …
	Slots int

	// Update is a graph function: the parameters and their slots after a move.
	Update func(m Move) (params, slots []*Node)
}

// Move is what a rule is given.
type Move struct {
	Params, Grads []*Node // as many, of equal shapes but for rules that take a gradient an example
	Slots         []*Node // as the last move left them
	Rate          *Node   // η, a scalar; nil where the rule has one of its own
	Done          *Node   // moves made before, a scalar; nil where nobody counts
}

// Step is Update with its promises checked. It panics if slots do not fit
// before or after, and where a parameter has another shape after the move.
func (r Rule) Step(name string, m Move) (params, slots []*Node) {
	r.mustFit(name+" before its move", m.Params, m.Slots)
	if len(m.Grads) != len(m.Params) {
		panic(fmt.Errorf("%s: got %d gradients for %d parameters", name, len(m.Grads), len(m.Params)))
	}
	params, slots = r.Update(m)
	each2(name+" after its move", m.Params, params, func(x, _ *Node) *Node { return x })
	r.mustFit(name+" after its move", params, slots)
	return params, slots
}

func (r Rule) mustFit(name string, params, slots []*Node) {
	if len(slots) != r.Slots*len(params) {
		panic(fmt.Errorf("%s: each parameter must have %d slots, got %d slots for %d parameters", name, r.Slots,
			len(slots), len(params)))
	}
	for i, x := range slots {
		if own := params[i/r.Slots]; !x.Shape().Equal(own.Shape()) {
			panic(fmt.Errorf("%s: slot %d must have the shape of its parameter, %s, got %s", name, i, own.Shape(),
				x.Shape()))
		}
	}
}

// Each is a rule by what it makes of one parameter and the gradient of its shape.
func Each(slots int, move func(x, grad *Node, own []*Node, m Move) (*Node, []*Node)) Rule {
	return Rule{Slots: slots, Update: func(m Move) (params, after []*Node) {
		each2("gradient", m.Grads, m.Params, func(g, _ *Node) *Node { return g })
		for i, x := range m.Params {
			y, kept := move(x, m.Grads[i], m.Slots[i*slots:(i+1)*slots], m)
			params, after = append(params, y), append(after, kept...)
		}
		return params, after
	}}
}

// At is a rule with a rate of its own.
func (r Rule) At(rate float64) Rule {
	return r.given(func(m *Move) { m.Rate = Scalar(m.Params[0].Graph(), m.Params[0].DType(), rate) })
}

// Clipped is a rule whose gradients first pass [ClipGlobalNorm]; most 0: any.
func (r Rule) Clipped(most float64) Rule {
	if most == 0 {
		return r
	}
	return r.given(func(m *Move) { m.Grads = ClipGlobalNorm(m.Grads, most) })
}

// given is a rule that something else comes before.
func (r Rule) given(before func(m *Move)) Rule {
	return Rule{Slots: r.Slots, Update: func(m Move) ([]*Node, []*Node) {
		before(&m)
		return r.Update(m)
	}}
}

// StepEach is a Step of every parameter by a rule of its own. The slots of a
// parameter are as many as its rule keeps.
func StepEach(name string, rules []Rule, m Move) (params, slots []*Node) {
	if len(rules) != len(m.Params) || len(m.Grads) != len(m.Params) {
		panic(fmt.Errorf("%s: got %d rules and %d gradients for %d parameters", name, len(rules),
			len(m.Grads), len(m.Params)))
	}
	left := m.Slots
	for i, r := range rules {
		own, one := m, fmt.Sprintf("%s %d", name, i)
		own.Params, own.Grads = m.Params[i:i+1], m.Grads[i:i+1]
		own.Slots, left = left[:min(r.Slots, len(left))], left[min(r.Slots, len(left)):]
		x, kept := r.Step(one, own)
		params, slots = append(params, x...), append(slots, kept...)
	}
	if len(left) > 0 {
		panic(fmt.Errorf("%s: %d slots more than the rules keep", name, len(left)))
	}
	return params, slots
}
