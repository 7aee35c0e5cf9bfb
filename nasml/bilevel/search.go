package bilevel

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

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

	// Hypergradient, if not nil, takes the place of the one that Settings name.
	// Its gradient may have any shape that the rules of the architecture understand, such as one
	// gradient an example.
	Hypergradient Hypergradient
}

// State is what a step changes.
type State struct {
	W, Velocity []*Node // weights and their momentum
	Theta       []*Node // architecture
	Slots       []*Node // of the architecture's rules
	Aux         []*Node // of the losses, such as running statistics

	// Stale, at first 0 and shaped like Theta, is the last architecture gradient
	// with [ClipWeightsAndArchitecture], and with Settings.Uncleared the sum of
	// ∇_θ of the training losses since the architecture's last move. Without
	// either it is nil.
	Stale []*Node
}

// Step is one step of weights and architecture, the second at the values that
// the first has left. eta is the weights' learning rate. warmup, a scalar, is 1
// to leave the architecture as it is (and Slots, Stale and Aux as if its batch
// had not been seen), 0 to move it; nil is 0.
//
// It returns the new state and what the step has seen. It panics if Settings
// name a hypergradient that is not there.
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
