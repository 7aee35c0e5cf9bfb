package search

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
)

// Update is a rule by which the architecture moves, with or without a state.
type Update struct {
	Moves      Hold // what it moves: Logits or OnSimplex
	Slots      int  // tensors that it keeps for each block of θ, shaped like it and 0 at first
	PerExample bool // it takes a gradient for each example, [B, rows, options]
	OwnRate    bool // it has a step size of its own where Settings.ArchRate is 0

	// Step is a graph function: the block and its slots after a move.
	Step func(m Move) (theta *Node, slots []*Node)
}

// Move is what an update is given.
type Move struct {
	Theta, Grad *Node    // a block [rows, options] and its gradient
	Slots       []*Node  // as the last move left them
	Done        *Node    // moves made before, a scalar
	Rate        float64  // η: Settings.ArchRate
	Total       int      // moves of the whole search
	Settings    Settings // of which a rule reads what it needs
}

// Updates are the updates that keep a state, or read more of the settings than
// the step size, by name. A reader adds one with
//
//	search.Updates["momentum"] = search.Update{
//		Moves: search.OnSimplex, Slots: 1, Step: func(m search.Move) (*Node, []*Node) {
//			v := Add(MulScalar(m.Slots[0], 0.9), m.Grad)
//			return simplex.EG(m.Theta, v, m.Rate), []*Node{v}
//		},
//	}
//
// Every entry of simplex.Updates is an update, too, one without a state: a name
// is looked up in both.
var Updates = map[string]Update{
	"adam": {Moves: Logits, Slots: 2, Step: adamUpdate},
	"sgd":  {Moves: Logits, Step: sgdUpdate},
	"xnas": {Moves: OnSimplex, PerExample: true, OwnRate: true, Step: xnasUpdate},
}

// adamUpdate keeps both moments.
func adamUpdate(m Move) (theta *Node, slots []*Node) {
	s := m.Settings
	adam := bilevel.Adam{Beta1: s.ArchBeta1, Beta2: s.ArchBeta2, Epsilon: s.ArchEpsilon, WeightDecay: s.ArchWeightDecay}
	x, first, second := adam.Step([]*Node{m.Theta}, []*Node{m.Grad}, m.Slots[:1], m.Slots[1:], m.Done, m.Rate)
	return x[0], []*Node{first[0], second[0]}
}

// sgdUpdate is plain descent: α ← α − η(∇ + wd·α).
func sgdUpdate(m Move) (theta *Node, slots []*Node) {
	grad := Add(m.Grad, MulScalar(m.Theta, m.Settings.ArchWeightDecay))
	return Sub(m.Theta, MulScalar(grad, m.Rate)), nil
}

// xnasUpdate needs no slots: what it wipes out stays at 0.
func xnasUpdate(m Move) (theta *Node, slots []*Node) {
	xnas := simplex.XNAS{Steps: m.Total, Bound: m.Settings.GradientClip, Eta: m.Rate}
	return xnas.Step(m.Theta, m.Grad, m.Done), nil
}

// stateless is an entry of simplex.Updates as an Update.
func stateless(update simplex.Update) Update {
	return Update{Moves: OnSimplex, Step: func(m Move) (*Node, []*Node) { return update(m.Theta, m.Grad, m.Rate), nil }}
}

// lookupUpdate finds an update in Updates or simplex.Updates.
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
func updateNames(holds ...Hold) []string {
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

// updateName is the name of the rule by which θ moves.
func (s Settings) updateName(m Method) string {
	if s.Update != "" {
		return s.Update
	}
	return m.Update
}
