package bilevel

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// Hypergradient approximates ∇_θ F(w*(θ), θ) at the current w and θ, shaped like θ. velocity is the momentum buffer of
// the weights' optimizer, shaped like w; nil stands for zero, and only the unrolled forms look at it.
//
// loss and aux are those of the outer pass that grad comes from: F(w, θ), and F(w′, θ) in the unrolled forms. The aux
// of inner passes is dropped. (DARTS' code of second order does otherwise with batch norm's running statistics: the
// outer pass runs on a copy of the network, whose statistics are thrown away, and the three inner passes leave theirs.)
//
// w and θ are taken as inputs, whatever they were computed from, and no gradient passes what is returned.
//
// The losses are called more than once where the form says so; a loss that
// samples sees the same draw in all of them only if the draw is in its closure.
//
// Unrolled differentiates Inner by w and then by θ, cg and neumann (of more than one term) also twice by w: every
// operation on the way needs a gradient that has a gradient. In GoMLX v0.28.2 the gradients of Convolve, of pooling and
// of Slice (a Pad) have none, and the graph is refused with a message that names the operation. finite-difference needs
// first gradients only.
type Hypergradient func(p Problem, o Options, w, theta, velocity []*Node) (loss *Node, grad []*Node, aux []*Node)

// Hypergradients by name. A reader adds one with
// Hypergradients["mine"] = func(p Problem, o Options, w, theta, velocity []*Node) (loss *Node, grad, aux []*Node) {…}.
var Hypergradients = map[string]Hypergradient{
	"first-order":       FirstOrder,
	"unrolled":          Unrolled,
	"finite-difference": FiniteDifference,
	"cg":                ConjugateGradients,
	"neumann":           Neumann,
}

// Options of the hypergradients; each reads those that its formula has.
//
// WeightDecay is part of the inner problem in all forms but the first: SGD with
// coupled decay wd minimises G(w, θ) + wd/2·‖w‖².
type Options struct {
	Eta         *Node   // η, learning rate of the weights, scalar
	Momentum    float64 // μ of the weights' optimizer
	WeightDecay float64 // wd of the weights' optimizer
	Terms       int     // K: iterations of "cg", terms of "neumann", at least 1
	Damping     float64 // λ ≥ 0, added to the Hessian in "cg" and "neumann"
	StepSize    float64 // a > 0 of "neumann", at most 1/(largest eigenvalue)
	Epsilon     float64 // ε of "finite-difference" is Epsilon/‖v‖₂; if 0, it is DARTS' 0.01
}

// FirstOrder is ∇_θ F(w, θ), which takes w for w*(θ) and does not look at how
// w* moves with θ (Liu+ 2019, Sec. 2.3, ξ = 0). It calls Outer once.
func FirstOrder(p Problem, _ Options, w, theta, _ []*Node) (loss *Node, grad []*Node, aux []*Node) {
	w, theta = detach(w), detach(theta)
	loss, aux = p.Outer(w, theta)
	return result(loss, Gradient(loss, theta...), aux)
}

// Unrolled is the gradient through one step of the weights' optimizer (Liu+ 2019, eq. 7; architect.py:20-29 of DARTS),
//
//	w′ = w − η(μ·velocity + ∇_w G(w, θ) + wd·w)
//	∇_θ F(w′(θ), θ) = ∇_θ F(w′, θ) − η ∇²_θw G(w, θ) v,  v = ∇_w′ F(w′, θ),
//
// with an exact Hessian–vector product. w′ is neither clipped nor Nesterov's,
// as in DARTS. It calls Inner and Outer once each.
func Unrolled(p Problem, o Options, w, theta, velocity []*Node) (loss *Node, grad []*Node, aux []*Node) {
	w, theta = detach(w), detach(theta)
	inside, _ := p.Inner(w, theta)
	dw := Gradient(inside, w...)
	ahead := detach(o.lookAhead(w, dw, velocity))
	loss, aux = p.Outer(ahead, theta)
	direct, v := gradients(loss, theta, ahead)
	mixed := Gradient(inner("Unrolled", dw, constant(v)), theta...) // ∇²_θw G v
	return result(loss, addScaled("Unrolled", direct, Neg(o.Eta), mixed), aux)
}

// FiniteDifference is [Unrolled] with the Hessian–vector product as a central
// difference (Liu+ 2019, eq. 8; architect.py:76-91 of DARTS),
//
//	∇²_θw G(w, θ) v ≈ (∇_θ G(w + εv, θ) − ∇_θ G(w − εv, θ))/2ε,  ε = Epsilon/‖v‖₂ .
//
// The error is O(ε²). DARTS moves one copy of w by +εv, −2εv and +εv, which rounds it each time; here both points start
// from w. Where v = 0 the correction is 0. It calls Inner three times and Outer once.
func FiniteDifference(p Problem, o Options, w, theta, velocity []*Node) (loss *Node, grad []*Node, aux []*Node) {
	const name = "FiniteDifference"
	w, theta = detach(w), detach(theta)
	inside, _ := p.Inner(w, theta)
	ahead := detach(o.lookAhead(w, Gradient(inside, w...), velocity))
	loss, aux = p.Outer(ahead, theta)
	direct, v := gradients(loss, theta, ahead)

	epsilon := o.Epsilon
	if epsilon == 0 {
		epsilon = 0.01
	}
	norm := Sqrt(inner(name, v, v))
	epsilonOverNorm := Div(Scalar(norm.Graph(), norm.DType(), epsilon), Where(IsZero(norm), OnesLike(norm), norm))
	side := func(step *Node) []*Node {
		inside, _ := p.Inner(detach(addScaled(name, w, step, v)), theta)
		return Gradient(inside, theta...)
	}
	plus, minus := side(epsilonOverNorm), side(Neg(epsilonOverNorm))
	mixed := each2(name, plus, minus, func(plus, minus *Node) *Node {
		return Div(Sub(plus, minus), MulScalar(epsilonOverNorm, 2))
	})
	return result(loss, addScaled(name, direct, Neg(o.Eta), mixed), aux)
}

// lookAhead is w′ = w − η(μ·velocity + ∇_w G + wd·w).
func (o Options) lookAhead(w, dw, velocity []*Node) []*Node {
	if o.Eta == nil || !o.Eta.IsScalar() {
		panic(fmt.Errorf("unrolled hypergradient: Options.Eta must be the scalar learning rate of the weights, got %v",
			o.Eta))
	}
	const name = "unrolled weights"
	move := each2(name, dw, w, func(dw, w *Node) *Node { return Add(dw, MulScalar(w, o.WeightDecay)) })
	if velocity != nil {
		move = each2(name, move, velocity, func(move, v *Node) *Node { return Add(move, MulScalar(v, o.Momentum)) })
	}
	return addScaled(name, w, Neg(o.Eta), move)
}

// ConjugateGradients is the implicit function theorem with w for w*(θ),
//
//	∇_θ F − ∇²_θw G q,  H q = ∇_w F,  H = ∇²_ww G + (wd + λ)I,
//
// with q from K iterations of conjugate gradients started at 0 (Hestenes & Stiefel 1952): exact for K = dim w where H
// is positive definite and w = w*(θ). It stops early at the first direction of curvature ≤ 0, where H is not positive
// definite: raise Damping (λ) then. It calls Inner and Outer once each, and differentiates ∇_w G K+1 times: the graph
// grows with K.
func ConjugateGradients(p Problem, o Options, w, theta, _ []*Node) (loss *Node, grad []*Node, aux []*Node) {
	return o.implicit("ConjugateGradients", p, w, theta, func(hessian func([]*Node) []*Node, v []*Node) []*Node {
		const name = "ConjugateGradients"
		x, r, d := each(v, ZerosLike), v, v
		rr := inner(name, r, r)
		for range o.Terms {
			hd := hessian(d)
			curvature := inner(name, d, hd)
			stop := LessOrEqual(curvature, ScalarZero(curvature.Graph(), curvature.DType()))
			step := Where(stop, ZerosLike(rr), Div(rr, curvature))
			x = addScaled(name, x, step, d)
			r = addScaled(name, r, Neg(step), hd)
			next := inner(name, r, r)
			d = addScaled(name, r, Div(next, rr), d)
			// from here on x stays, and r = 0 stops too
			d = each(d, func(d *Node) *Node { return Where(stop, ZerosLike(d), d) })
			rr = next
		}
		return x
	})
}

// Neumann is [ConjugateGradients] with H⁻¹ as K terms of its Neumann series (Lorraine+ 2020, Algorithm 3),
//
//	q = a Σ_{k<K} (I − aH)ᵏ ∇_w F,  a = StepSize .
//
// Where 0 < H and a is at most 1/(largest eigenvalue of H), the error of q falls as (1 − a·smallest eigenvalue)ᴷ; where
// a is above 2/(largest eigenvalue) it grows with K. It calls Inner and Outer once each, and differentiates ∇_w G K
// times.
func Neumann(p Problem, o Options, w, theta, _ []*Node) (loss *Node, grad []*Node, aux []*Node) {
	const name = "Neumann"
	if !(o.StepSize > 0) {
		panic(fmt.Errorf("%s: Options.StepSize must be above 0, got %v", name, o.StepSize))
	}
	return o.implicit(name, p, w, theta, func(hessian func([]*Node) []*Node, v []*Node) []*Node {
		term, sum := v, v
		for range o.Terms - 1 {
			term = each2(name, term, hessian(term),
				func(t, ht *Node) *Node { return Sub(t, MulScalar(ht, o.StepSize)) })
			sum = each2(name, sum, term, Add)
		}
		return each(sum, func(x *Node) *Node { return MulScalar(x, o.StepSize) })
	})
}

// implicit is ∇_θ F − ∇²_θw G q, where solve finds q ≈ H⁻¹v from products with the Hessian.
func (o Options) implicit(name string, p Problem, w, theta []*Node,
	solve func(hessian func([]*Node) []*Node, v []*Node) []*Node) (loss *Node, grad []*Node, aux []*Node) {
	if o.Terms < 1 {
		panic(fmt.Errorf("%s: Options.Terms must be at least 1, got %d", name, o.Terms))
	}
	w, theta = detach(w), detach(theta)
	inside, _ := p.Inner(w, theta)
	dw := Gradient(inside, w...)
	hessian := func(x []*Node) []*Node {
		hx := Gradient(inner(name, dw, constant(x)), w...)
		return each2(name, hx, x, func(hx, x *Node) *Node { return Add(hx, MulScalar(x, o.WeightDecay+o.Damping)) })
	}
	loss, aux = p.Outer(w, theta)
	direct, v := gradients(loss, theta, w)
	q := solve(hessian, v)
	mixed := Gradient(inner(name, dw, constant(q)), theta...) // ∇²_θw G q
	return result(loss, each2(name, direct, mixed, Sub), aux)
}

// result lets no gradient into what is returned.
func result(loss *Node, grad, aux []*Node) (*Node, []*Node, []*Node) {
	return StopGradient(loss), constant(grad), constant(aux)
}

var shipped = maps.Clone(Hypergradients)

// HypergradientKey names an entry of [Hypergradients] in the key of a trial: one of this package by its name, a
// reader's by what it computes on a small problem. It returns an error if there is no such entry, or if it cannot be
// known by what it computes because it is random or has a state.
func HypergradientKey(name string) (string, error) {
	const where = "bilevel.Hypergradients"
	return own.Entry("hypergradient", name, where, Hypergradients, shipped, func(h Hypergradient) (probes []own.Probe) {
		for _, terms := range []int{1, 4} {
			for _, eta := range []float64{0.05, 0.4} {
				probes = append(probes, own.Probe{Of: onProbe(h, terms, eta), Inputs: probeInputs})
			}
		}
		return probes
	})
}

var probeInputs = []any{
	[]float64{0.3, -1.1, 0.7}, [][]float64{{0.2, 0.9}, {-0.4, 0.1}},
	[][]float64{{0.5, 0.25, 0.25}}, []float64{0.6, -0.3},
	[]float64{0.01, 0.2, -0.1}, [][]float64{{0.3, 0}, {-0.05, 0.02}},
}

// onProbe is the hypergradient of a problem that is neither quadratic nor separable in w and θ:
//
//	G(w, θ) = Σ(w₁ ⊙ θ₁ + w₁²/2) + Σ exp(w₂·θ₂)/5,  F(w, θ) = Σ tanh(w₁)⊙θ₁ + (Σ w₂)² Σ θ₂² + Σθ₁² .
func onProbe(h Hypergradient, terms int, eta float64) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		inner := func(w, theta []*Node) (*Node, []*Node) {
			t1, t2 := Reshape(theta[0], 3), theta[1]
			bend := MulScalar(Exp(Mul(w[1], BroadcastToDims(InsertAxes(t2, 0), 2, 2))), 0.2)
			return Add(ReduceAllSum(Add(Mul(w[0], t1), MulScalar(Square(w[0]), 0.5))), ReduceAllSum(bend)), nil
		}
		outer := func(w, theta []*Node) (*Node, []*Node) {
			t1, t2 := Reshape(theta[0], 3), theta[1]
			first := ReduceAllSum(Mul(Tanh(w[0]), t1))
			second := Mul(Square(ReduceAllSum(w[1])), ReduceAllSum(Square(t2)))
			return Add(Add(first, second), ReduceAllSum(Square(t1))), []*Node{first}
		}
		o := Options{
			Eta: Scalar(in[0].Graph(), in[0].DType(), eta), Momentum: 0.9, WeightDecay: 1e-2,
			Terms: terms, Damping: 0.5, StepSize: 0.1, Epsilon: 0.01,
		}
		loss, grad, _ := h(Problem{inner, outer}, o, in[0:2], in[2:4], in[4:6])
		return append([]*Node{loss}, grad...)
	}
}

// Search is a search as one step that is repeated.
type Search struct {
	Settings Settings
	SGD      SGD // of the weights

	// Problem returns the losses of a step, whose passes start from aux.
	Problem func(aux []*Node) Problem

	// Architecture are the rules by which the architecture moves, one for each of its
	// tensors and each with a rate of its own. If empty, it is not trained.
	Architecture []Rule
	Done         *Node // moves that these rules made before, for those that count

	// Hypergradient, if not nil, takes the place of the one that Settings name. Its gradient may have any shape that
	// the rules of the architecture understand, such as one gradient an example.
	Hypergradient Hypergradient
}

// State is what a step changes.
type State struct {
	W, Velocity []*Node // weights and their momentum
	Theta       []*Node // architecture
	Slots       []*Node // of the architecture's rules
	Aux         []*Node // of the losses, such as running statistics

	// Stale, at first 0 and shaped like Theta, is the last architecture gradient with [ClipWeightsAndArchitecture], and
	// with Settings.Uncleared the sum of ∇_θ of the training losses since the architecture's last move. Without either
	// it is nil.
	Stale []*Node
}

// Step is one step of weights and architecture, the second at the values that the first has left. eta is the weights'
// learning rate. warmup, a scalar, is 1 to leave the architecture as it is (and Slots, Stale and Aux as if its batch
// had not been seen), 0 to move it; nil is 0.
//
// It returns the new state and what the step has seen. It panics if Settings name a hypergradient that is not there.
func (s Search) Step(state State, eta, warmup *Node) (next State, seen Seen) {
	next = state
	if s.Settings.Order == WeightsFirst {
		next = s.weights(next, eta, &seen)
	}
	if len(s.Architecture) > 0 {
		next = unless(warmup, next, s.architecture(next, eta, &seen))
	}
	if s.Settings.Order != WeightsFirst {
		next = s.weights(next, eta, &seen)
	}
	return next, seen
}

// Seen are the losses of a step, each before its own update, and their
// gradients. Those of the architecture are nil where it is not trained.
type Seen struct {
	Train, Validation *Node
	GradW             []*Node // of Train by the weights, before clipping and L2
	GradTheta         []*Node // the hypergradient with what was not cleared, clipped: as Update was given it
}

func (s Search) weights(state State, eta *Node, seen *Seen) State {
	w, theta := detach(state.W), detach(state.Theta)
	loss, aux := s.Problem(state.Aux).Inner(w, theta)
	grad, gradTheta := gradients(loss, w, theta)
	seen.Train, seen.GradW = loss, grad
	rule := s.SGD.clipped(s.Settings.Clip)
	if s.Settings.Clip != 0 && s.Settings.ClipCovers == ClipWeightsAndArchitecture {
		grad, _ = clipJointly(grad, each2("stale gradient", state.Stale, gradTheta, Add), s.Settings.Clip)
		rule = s.SGD.Rule()
	}
	if s.Settings.Uncleared {
		state.Stale = each2("uncleared gradient", state.Stale, gradTheta, Add)
	}
	state.W, state.Velocity = rule.Step("SGD", Move{Params: w, Grads: grad, Slots: state.Velocity, Rate: eta})
	state.Aux = aux
	return state
}

func (s Search) architecture(state State, eta *Node, seen *Seen) State {
	hypergradient, ok := Hypergradients[s.Settings.Hypergradient]
	if s.Hypergradient != nil {
		hypergradient, ok = s.Hypergradient, true
	}
	if !ok {
		known := slices.Sorted(maps.Keys(Hypergradients))
		panic(fmt.Errorf("no hypergradient is called %q, there are %v", s.Settings.Hypergradient, known))
	}
	w, theta := detach(state.W), detach(state.Theta)
	loss, grad, aux := hypergradient(s.Problem(state.Aux), s.Settings.Options(s.SGD, eta), w, theta, state.Velocity)
	if s.Settings.Uncleared {
		grad = each2("uncleared gradient", state.Stale, grad, Add)
		state.Stale = each(state.Stale, ZerosLike)
	}
	if s.Settings.ArchClip > 0 {
		grad = ClipGlobalNorm(grad, s.Settings.ArchClip)
	}
	seen.Validation, seen.GradTheta = loss, grad
	state.Theta, state.Slots = StepEach("architecture", s.Architecture, Move{
		Params: theta, Grads: grad, Slots: state.Slots, Done: s.Done,
	})
	state.Aux = aux
	if s.Settings.ClipCovers == ClipWeightsAndArchitecture {
		state.Stale = grad
	}
	return state
}

// unless is old while warmup is 1, else moved.
func unless(warmup *Node, old, moved State) State {
	if warmup == nil {
		return moved
	}
	on := GreaterThan(warmup, ScalarZero(warmup.Graph(), warmup.DType()))
	choose := func(what string, old, moved []*Node) []*Node {
		return each2(what, old, moved, func(old, moved *Node) *Node { return Where(on, old, moved) })
	}
	moved.Theta = choose("architecture", old.Theta, moved.Theta)
	moved.Slots = choose("slots of the architecture's update", old.Slots, moved.Slots)
	moved.Aux = choose("aux of the validation loss", old.Aux, moved.Aux)
	moved.Stale = choose("stale gradient", old.Stale, moved.Stale)
	return moved
}
