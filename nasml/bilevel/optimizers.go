package bilevel

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/kernels"
)

// SGD is stochastic gradient descent with momentum and coupled L2, as
// torch.optim.SGD without dampening. The zero value is plain descent.
type SGD struct {
	Momentum    float64 // μ
	WeightDecay float64 // wd
	Nesterov    bool    // look ahead by the new velocity

	// Together lets a [Search] clip and move all weights by one kernel of package kernels: for networks of hundreds of
	// arrays, which XLA would compile one by one. The numbers are the same but for rounding.
	Together bool
}

// Rule keeps the velocity, one slot, and moves by
//
//	g ← g + wd·w,  v ← μv + g,  w ← w − ηv,  Nesterov's: w ← w − η(g + μv) .
func (o SGD) Rule() Rule {
	return Each(1, func(w, g *Node, own []*Node, m Move) (*Node, []*Node) {
		if o.WeightDecay != 0 {
			g = Add(g, MulScalar(w, o.WeightDecay))
		}
		v := Add(MulScalar(own[0], o.Momentum), g)
		move := v
		if o.Nesterov {
			move = Add(MulScalar(v, o.Momentum), g)
		}
		return Add(w, Mul(ConvertDType(Neg(m.Rate), w.DType()), move)), []*Node{v}
	})
}

// clipped is Rule with its gradients clipped, in one kernel with Together.
func (o SGD) clipped(most float64) Rule {
	if !o.Together {
		return o.Rule().Clipped(most)
	}
	return Rule{Slots: 1, Update: func(m Move) ([]*Node, []*Node) {
		rates := kernels.Rates{Eta: m.Rate, Momentum: o.Momentum, Decay: o.WeightDecay, Nesterov: o.Nesterov}
		if most != 0 {
			rates.Factor = clipFactor(kernels.Squares(m.Grads), most)
		}
		return kernels.Momentum(m.Params, m.Grads, m.Slots, rates)
	}}
}

// Adam is torch.optim.Adam: L2 is added to the gradient (it is not AdamW). Its bias corrections 1 − βᵗ are exact to
// rounding, as PyTorch's, which takes them on the host in float64.
//
// In float32, 1 − exp(t log β) instead, with β₂ = 0.999, moves 7e-6 of a step too far or too short at t = 1, 3e-6 at t
// = 5, and by rounding only from t = 10 on. What then is left, up to 1e-5 of a step, is the factor β₂ of v, which has
// 24 bits here as it has in PyTorch.
type Adam struct {
	Beta1, Beta2 float64
	Epsilon      float64 // if 0, it is PyTorch's 1e-8
	WeightDecay  float64 // wd
}

// DARTSAdam is the architecture's optimizer of DARTS (architect.py:17-18), used at the learning rate 3e-4.
var DARTSAdam = Adam{Beta1: 0.5, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 1e-3}

// Rule keeps both moments, two slots, and moves by (Kingma & Ba 2015, Algorithm 1), where t is [Move].Done:
//
//	g ← g + wd·x,  m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²
//	x ← x − η m̂/(√v̂ + ε),  m̂ = m/(1−β₁ᵗ⁺¹),  v̂ = v/(1−β₂ᵗ⁺¹) .
func (o Adam) Rule() Rule {
	epsilon := o.Epsilon
	if epsilon == 0 {
		epsilon = 1e-8
	}
	average := func(beta float64, old, now *Node) *Node {
		return Add(MulScalar(old, beta), MulScalar(now, 1-beta))
	}
	// 1 − βᵗ⁺¹, as expm1: 1 − 0.999 in float32 has lost five digits
	unbiased := func(x *Node, beta float64, done *Node) *Node {
		steps := AddScalar(ConvertDType(done, x.DType()), 1)
		return Div(x, Neg(Expm1(MulScalar(steps, math.Log(beta)))))
	}
	return Each(2, func(x, g *Node, own []*Node, at Move) (*Node, []*Node) {
		g = Add(g, MulScalar(x, o.WeightDecay))
		m, v := average(o.Beta1, own[0], g), average(o.Beta2, own[1], Square(g))
		move := Div(unbiased(m, o.Beta1, at.Done), AddScalar(Sqrt(unbiased(v, o.Beta2, at.Done)), epsilon))
		return Sub(x, Mul(move, ConvertDType(at.Rate, x.DType()))), []*Node{m, v}
	})
}

// ClipGlobalNorm scales all gradients by min(1, most/(‖grad‖₂ + 1e-6)), the norm over all of them together, as
// PyTorch's clip_grad_norm_. As there, one NaN makes all of them NaN. It panics if most is not above 0.
func ClipGlobalNorm(grad []*Node, most float64) []*Node {
	clipped, _ := clipJointly(grad, nil, most)
	return clipped
}

// clipJointly is [ClipGlobalNorm] with one norm, and so one factor, over the gradients of weights and architecture.
//
// AutoDL-Projects clips all that the network counts as its parameters, α among them (DARTS-V1.py:53-59). What α's
// gradient holds at that moment is the last architecture gradient plus that of the training loss, which backward adds
// to it: gradTheta should be this sum. Only its norm matters, because α's gradient is zeroed before the next
// architecture step.
func clipJointly(gradW, gradTheta []*Node, most float64) (clippedW, clippedTheta []*Node) {
	const name = "ClipGlobalNorm"
	square := inner(name, gradW, gradW)
	if len(gradTheta) > 0 {
		square = Add(square, inner(name, gradTheta, gradTheta))
	}
	factor := clipFactor(square, most)
	scale := func(g *Node) *Node { return Mul(g, ConvertDType(factor, g.DType())) }
	return each(gradW, scale), each(gradTheta, scale)
}

// clipFactor is min(1, most/(√square + 1e-6)). It panics if most is not above 0.
func clipFactor(square *Node, most float64) *Node {
	if !(most > 0) {
		panic(fmt.Errorf("ClipGlobalNorm: the largest norm must be above 0, got %v", most))
	}
	norm, limit := AddScalar(Sqrt(square), 1e-6), Scalar(square.Graph(), square.DType(), most)
	return Where(LessOrEqual(norm, limit), OnesLike(norm), Div(limit, norm)) // NaN takes the second
}

// Cosine is the learning rate of an epoch, counted from 0:
//
//	last + (first − last)·(1 + cos(π·epoch/epochs))/2 .
//
// The last epoch, epochs−1, is not yet at last. Beyond epochs it rises again, which is how ENAS in AutoDL-Projects
// oscillates (T_max 10 in 250 epochs). A scheduler that PyTorch ≥ 1.1 steps at the start of an epoch is one epoch
// ahead: 1Shot1 trains epoch e at Cosine(…, e+1, …). It panics if epochs is below 1.
func Cosine(first, last float64, epoch, epochs int) float64 {
	if epochs < 1 {
		panic(fmt.Errorf("Cosine: epochs must be at least 1, got %d", epochs))
	}
	return last + (first-last)*(1+math.Cos(math.Pi*float64(epoch)/float64(epochs)))/2
}

// Rule is an optimizer: how parameters move by their gradients, and how much of the past it keeps. It holds no tensors:
// its caller keeps the slots, passes them in and gets them back, as in optax.
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

func (r Rule) given(before func(m *Move)) Rule {
	return Rule{Slots: r.Slots, Update: func(m Move) ([]*Node, []*Node) {
		before(&m)
		return r.Update(m)
	}}
}

// StepEach is a Step of every parameter by a rule of its own. The slots of a parameter are as many as its rule keeps.
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
