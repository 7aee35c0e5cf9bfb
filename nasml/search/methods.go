// Package search holds the methods of neural architecture search: those that share weights in a supernet (New) and
// those that query a table (TabularMethods). Step is one step of the former.
//
// A weight-sharing method is data: how the architecture is parameterized, under which architecture the weights are
// trained and the architecture's gradient is taken, and how the final architecture is picked. Add a custom one with
//
//	search.Methods["mine"] = search.Method{
//		Hold: search.OnSimplex, Weights: search.Mixture, Architecture: search.Mixture,
//		Update: "mine", Final: search.ByArgmax,
//	}
//
// with Update the name of an update: of simplex.Updates where it has no state, of Updates where it has one.
//
// # Several devices
//
// With Settings.Devices = N the steps of a search run on N devices of one host, each with the N-th part of each batch
// and a copy of weights, momentum and architecture. Two ways, by Settings.Statistics:
//
// Synchronised (GoMLX's AutoSharding): XLA's partitioner cuts the program of one device
// up. Weights, θ and losses are those of one device to rounding.
//
// PerDevice (GoMLX's SPMD): batch norm sees a device's share only, and losses, gradients and running statistics are
// means over the devices, also inside unrolled and other hypergradients. XNAS, which takes a gradient of every example,
// has no such form.
//
// What a device needs besides a step's inputs and outputs falls to 1/N
// (BenchmarkDevices); with TrackStats and Synchronised statistics to about 1.5/N, since
// XLA computes the variance of batch norm twice if a sum over devices is in it.
//
// XLA's CPU plugin has four devices, or as many as backend.OpenDevices asks for. They share the cores, so that nothing
// gets faster: they are there to try a search out that is meant for several GPUs.
package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Parameterization says what the architecture parameters are.
type Parameterization string

// The parameterizations: logits α behind a softmax, points θ of a product of simplices, or none.
const (
	Logits    Parameterization = "logits"
	OnSimplex Parameterization = "simplex"
	Nothing   Parameterization = "none"
)

// Pass says under which architecture a forward pass is made.
type Pass string

// The passes. With θ̃ = softmax(α) or θ:
//
//	Mixture     every edge is Σ_o θ̃_o·o(x)
//	PerExample  the same with one copy of θ̃ an example, so that each has an architecture gradient of its own (XNAS)
//	Gumbel      one operation an edge by the hard Gumbel-softmax trick (GDAS)
//	Uniform     one operation an edge, drawn uniformly
//	Controller  one operation an edge, drawn by the LSTM controller of ENAS
//	NoPass      there is none
const (
	Mixture    Pass = "mixture"
	PerExample Pass = "per-example"
	Gumbel     Pass = "gumbel"
	Uniform    Pass = "uniform"
	Controller Pass = "controller"
	NoPass     Pass = ""
)

// Final says how the architecture is picked after the search.
type Final string

// The rules. ByArgmax takes the largest θ of each edge; the others rank candidates by the accuracy of the shared
// weights on one batch of validation images: random ones, the most probable under θ, or samples of the controller.
const (
	ByArgmax     Final = "argmax"
	ByRandom     Final = "random"
	ByLikelihood Final = "likelihood"
	ByController Final = "controller"
)

// Method is a weight-sharing search method.
type Method struct {
	Title        string
	Source       string // the paper it is from
	Hold         Parameterization
	Weights      Pass   // under which the weights are trained
	Architecture Pass   // under which the gradient of θ is taken
	Update       string // of θ: a name of Updates or simplex.Updates
	Final        Final
}

// Methods are the weight-sharing methods by name. PC-DARTS is DARTS on a supernet with Settings.Partial and
// Settings.EdgeWeights, set by its presets. Add a custom one as in the package comment.
var Methods = map[string]Method{
	"darts":         {"DARTS", "Liu+ 2019", Logits, Mixture, Mixture, "adam", ByArgmax},
	"gaea-darts":    {"GAEA DARTS", "Li+ 2021", OnSimplex, Mixture, Mixture, "eg", ByArgmax},
	"xnas":          {"XNAS", "Nayman+ 2019", OnSimplex, Mixture, PerExample, "xnas", ByArgmax},
	"gdas":          {"GDAS", "Dong & Yang 2019", Logits, Gumbel, Gumbel, "adam", ByArgmax},
	"pc-darts":      {"PC-DARTS", "Xu+ 2020", Logits, Mixture, Mixture, "adam", ByArgmax},
	"gaea-pc-darts": {"GAEA PC-DARTS", "Li+ 2021", OnSimplex, Mixture, Mixture, "eg", ByArgmax},
	"gaea-gdas":     {"GAEA GDAS", "Li+ 2021", OnSimplex, Gumbel, Gumbel, "eg", ByArgmax},
	"setn":          {"SETN", "Dong & Yang 2019b", Logits, Uniform, Mixture, "adam", ByLikelihood},
	"rsps":          {"RSPS", "Li & Talwalkar 2019", Nothing, Uniform, NoPass, "", ByRandom},
	"enas":          {"ENAS", "Pham+ 2018", Nothing, Controller, NoPass, "", ByController},
}

func lookup(name string) (Method, error) {
	if m, ok := Methods[name]; ok {
		return m, nil
	}
	return Method{}, own.Unknown("search method", name, Methods, "search.Methods")
}

// SelectionRule says after which epoch of a recorded search its architecture is taken, for methods that read it off θ
// (ByArgmax). It applies to the record and is not part of the search: one search serves all rules.
type SelectionRule string

// The names of SelectionRules.
const (
	LastEpoch SelectionRule = "last" // as the search ended
	// of the best supernet on the validation images, among the epochs that it was evaluated after
	BestEpoch SelectionRule = "best"
	// of the best accuracy on the architecture's own batches, which every epoch has
	BestBatches SelectionRule = "best-batches"
)

// RuleTitles are the rules in words.
var RuleTitles = map[SelectionRule]string{
	LastEpoch:   "last epoch",
	BestEpoch:   "best validation epoch",
	BestBatches: "best epoch by validation batches",
}

// SelectionRules are the rules by name: the epoch, counted from 1, after which the architecture of a search is taken.
// It returns an error if the curve lacks what the rule reads. Of equal epochs it is the first, as in the authors' code,
// which keeps an architecture until another is strictly better.
var SelectionRules = map[SelectionRule]func(c *Curve) (int, error){
	LastEpoch: func(c *Curve) (int, error) { return len(c.TrainLoss), nil },
	BestEpoch: func(c *Curve) (int, error) {
		if len(c.Supernet) == 0 || len(c.Supernet) != len(c.Evaluated) {
			return 0, fmt.Errorf("found %d evaluations of the supernet after %d epochs, expected one each: search "+
				"with EvaluateEvery", len(c.Supernet), len(c.Evaluated))
		}
		return int(c.Evaluated[firstBest(c.Supernet)]), nil
	},
	BestBatches: func(c *Curve) (int, error) {
		if len(c.ValidAccuracy) == 0 {
			return 0, fmt.Errorf("found no accuracy on validation batches, expected one an epoch: the method " +
				"takes no architecture gradient")
		}
		return firstBest(c.ValidAccuracy) + 1, nil
	},
}

// firstBest is the place of the largest value, the first of equals.
func firstBest(values []float64) int { return slices.Index(values, slices.Max(values)) }

// RuleAsCode is the rule of the authors' code for a method: that of Li+ 2021 evaluates the supernet after every epoch
// and keeps the best architecture (liamcli/gaea_release, cnn/train_search.py), that of the benchmark's authors returns
// the last one. Unlike BestEpoch it augments the validation images, and evaluates twice after the last epoch. A
// single-level search has no validation images and ends with its last architecture.
func RuleAsCode(method string) SelectionRule {
	if slices.Contains([]string{"darts", "gaea-darts", "gaea-gdas"}, method) {
		return BestEpoch
	}
	return LastEpoch
}

// RuleAsCodeOn is RuleAsCode on any space. On cells with two inputs DARTS is its own authors' program, which returns
// the last architecture; the other methods are that of Li+ 2021, as on NAS-Bench-201.
func RuleAsCodeOn(space, method string) SelectionRule {
	if supernet.CellSpaces[space].Name == "" {
		return RuleAsCode(method)
	}
	if slices.Contains([]string{"gaea-darts", "pc-darts", "gaea-pc-darts"}, method) {
		return BestEpoch
	}
	return LastEpoch
}

// Check says which rules there are, where the name is of none.
func (p SelectionRule) Check() error {
	if SelectionRules[p] != nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(SelectionRules)) {
		names = append(names, string(name))
	}
	return fmt.Errorf("found the rule %q, expected one of %s", string(p), strings.Join(names, ", "))
}

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
