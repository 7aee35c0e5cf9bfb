package search

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
)

// Update says by which rule the architecture moves.
type Update struct {
	Moves      Parameterization // what it moves: Logits or OnSimplex
	PerExample bool             // it takes a gradient for each example, [B, rows, options]
	OwnRate    bool             // it has a step size of its own where Settings.ArchRate is 0

	// Rule is the rule of a search: its slots, and its move as a graph function.
	Rule func(o Setup) bilevel.Rule
}

// Setup is what a rule is made of.
type Setup struct {
	Rate     float64  // η: Settings.ArchRate, or that of edges
	Total    int      // moves of the whole search
	Settings Settings // of which a rule reads what it needs
}

// Updates are the updates that keep a state, or read more settings than the step size, by name. Add one with
//
//	search.Updates["momentum"] = search.Update{
//		Moves: search.OnSimplex, Rule: func(o search.Setup) bilevel.Rule {
//			return bilevel.Each(1, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
//				v := Add(MulScalar(own[0], 0.9), grad)
//				return simplex.EG(theta, v, o.Rate), []*Node{v}
//			})
//		},
//	}
//
// Entries of simplex.Updates are updates without a state: a name is looked up in both.
var Updates = map[string]Update{
	"adam": {Moves: Logits, Rule: adamRule},
	"sgd":  {Moves: Logits, Rule: sgdRule},
	"xnas": {Moves: OnSimplex, PerExample: true, OwnRate: true, Rule: xnasRule},
}

// adamRule keeps both moments.
func adamRule(o Setup) bilevel.Rule {
	s := o.Settings
	adam := bilevel.Adam{Beta1: s.ArchBeta1, Beta2: s.ArchBeta2, Epsilon: s.ArchEpsilon, WeightDecay: s.ArchWeightDecay}
	return adam.Rule().At(o.Rate)
}

// sgdRule is plain descent: α ← α − η(∇ + wd·α).
func sgdRule(o Setup) bilevel.Rule {
	return bilevel.Each(0, func(alpha, grad *Node, _ []*Node, _ bilevel.Move) (*Node, []*Node) {
		grad = Add(grad, MulScalar(alpha, o.Settings.ArchWeightDecay))
		return Sub(alpha, MulScalar(grad, o.Rate)), nil
	})
}

// xnasRule needs no slots: what it wipes out stays at 0.
func xnasRule(o Setup) bilevel.Rule {
	xnas := simplex.XNAS{Steps: o.Total, Bound: o.Settings.GradientClip, Eta: o.Rate}
	return bilevel.Rule{Update: func(m bilevel.Move) ([]*Node, []*Node) {
		return []*Node{xnas.Step(m.Params[0], m.Grads[0], m.Done)}, nil
	}}
}

func stateless(update simplex.Update) Update {
	return Update{Moves: OnSimplex, Rule: func(o Setup) bilevel.Rule {
		return bilevel.Each(0, func(theta, grad *Node, _ []*Node, _ bilevel.Move) (*Node, []*Node) {
			return update(theta, grad, o.Rate), nil
		})
	}}
}

func lookupUpdate(name string) (Update, error) {
	keeps, ok := Updates[name]
	update, geometric := simplex.Updates[name]
	switch {
	case ok && geometric:
		return Update{}, fmt.Errorf("two updates are called %q, in search.Updates and in simplex.Updates: rename one",
			name)
	case ok:
		return keeps, nil
	case geometric:
		return stateless(update), nil
	}
	return Update{}, fmt.Errorf("unknown update %q: take one of %v, or add your own to simplex.Updates or, with a "+
		"state, to search.Updates",
		name, updateNames(Logits, OnSimplex))
}

// updateNames are the names of the updates that move what is held in these ways.
func updateNames(holds ...Parameterization) []string {
	var names []string
	for name, u := range Updates {
		if slices.Contains(holds, u.Moves) {
			names = append(names, name)
		}
	}
	if slices.Contains(holds, OnSimplex) {
		names = slices.AppendSeq(names, maps.Keys(simplex.Updates))
	}
	slices.Sort(names)
	return names
}

func (s Settings) updateName(m Method) string {
	if s.Update != "" {
		return s.Update
	}
	return m.Update
}
