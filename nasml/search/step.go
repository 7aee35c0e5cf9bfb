package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Step is one step of a search as a graph function. A search on one device or several and the replay of a trace compile
// the same one.
type Step struct {
	Settings
	method Method
	net    supernet.Network
	rules  []rule // of the architecture, one a block; empty where it is not trained
	steps  int    // of an epoch

	// losses are those of the batches in a step's inputs, as this program sees them. counts are the numbers of right
	// answers on the whole batches.
	losses func(f Inputs[*Node], aux []*Node, seen *views) bilevel.Problem
	counts func(right []*Node) []*Node
}

// NewStep is the step of a search on a network, one of a number in an epoch. It reads the settings that say how weights
// and architecture move, and returns an error if they name an unknown method or update.
func NewStep(s Settings, net supernet.Network, steps int) (*Step, error) {
	m, err := lookup(s.Method)
	if err != nil {
		return nil, err
	}
	p := &Step{Settings: s, method: m, net: net, steps: steps}
	if m.Architecture != NoPass {
		if p.rules, err = s.rulesOf(m, net.Architecture()); err != nil {
			return nil, err
		}
	}
	p.losses, p.counts = p.problem, func(right []*Node) []*Node { return right }
	if s.Statistics == PerDevice {
		p.overDevices()
	}
	return p, nil
}

// Inputs are what a step is given besides the state: nodes inside a graph, tensors and numbers outside.
type Inputs[T any] struct {
	TrainImages, TrainLabels T
	ValidImages, ValidLabels T
	Draws                    []T // one a block, [2, rows, options]: Gumbel noise or one-hot rows of both passes
	Rate                     T   // η of the weights
	Tau                      T   // temperature of the Gumbel-softmax
	Done                     T   // moves of the architecture made before, as a float
	Warmup                   T   // 1 while the architecture rests
}

// divided is the number of inputs, at the head of List, that devices divide.
const divided = 4

// List is the inputs as the head of the step's arguments.
func (f Inputs[T]) List() []T {
	list := append([]T{f.TrainImages, f.TrainLabels, f.ValidImages, f.ValidLabels}, f.Draws...)
	return append(list, f.Rate, f.Tau, f.Done, f.Warmup)
}

// inputsOf takes the inputs off the step's arguments; blocks are those of θ.
func inputsOf(in []*Node, blocks int) (f Inputs[*Node], state []*Node) {
	f.TrainImages, f.TrainLabels, f.ValidImages, f.ValidLabels = in[0], in[1], in[2], in[3]
	f.Draws = in[divided : divided+blocks]
	in = in[divided+blocks:]
	f.Rate, f.Tau, f.Done, f.Warmup = in[0], in[1], in[2], in[3]
	return f, in[4:]
}

// Parts are the parts of a state, in the order in which they stand in it.
type Parts[T any] struct {
	Weights, Velocity []T // of the network
	Stats             []T // running statistics
	Theta             []T // α or θ, one a block
	Slots             []T // of the architecture's update, those of a block together
	Stale             []T // gradients of the architecture, as bilevel.State has them
}

// Cut takes a state apart.
func Cut[T any](p *Step, all []T) Parts[T] {
	take := func(n int) []T {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	weights, blocks := len(p.net.Weights()), p.blocks()
	s := Parts[T]{
		Weights: take(weights), Velocity: take(weights), Stats: take(len(p.net.Stats())),
		Theta: take(blocks), Slots: take(p.slots()),
	}
	if p.keepsGradient() {
		s.Stale = take(blocks)
	}
	return s
}

func (s Parts[T]) list() []T {
	return slices.Concat(s.Weights, s.Velocity, s.Stats, s.Theta, s.Slots, s.Stale)
}

// State is the state before the first step: velocity, slots and stale gradients are 0, in the type of what they belong
// to.
func (p *Step) State(weights, stats, theta []*tensors.Tensor) []*tensors.Tensor {
	zeros := func(like []*tensors.Tensor) (out []*tensors.Tensor) {
		for _, t := range like {
			out = append(out, tensors.FromShape(t.Shape()))
		}
		return out
	}
	s := Parts[*tensors.Tensor]{Weights: weights, Velocity: zeros(weights), Stats: stats, Theta: theta}
	for i, r := range p.rules {
		s.Slots = append(s.Slots, zeros(slices.Repeat(theta[i:i+1], r.of(p).Slots))...)
	}
	if p.keepsGradient() {
		s.Stale = zeros(theta)
	}
	return s.list()
}

func (p *Step) blocks() int { return len(p.net.Architecture()) }

func (p *Step) slots() (n int) {
	for _, r := range p.rules {
		n += r.of(p).Slots
	}
	return n
}

// keepsGradient reports whether steps hand on a gradient of the architecture.
func (p *Step) keepsGradient() bool {
	return p.Bilevel.KeepsGradient() && p.method.Architecture != NoPass
}

// Outcome is what a step reports besides the new state. Without an architecture pass, ValidLoss and ValidRight are 0
// and its other fields are nil.
type Outcome struct {
	TrainLoss, TrainRight *Node // mean cross entropy and number of right answers, before the update
	ValidLoss, ValidRight *Node

	// Of one device, in a search whose devices have the same program.
	TrainLogits, ValidLogits *Node
	Chosen                   []*Node // operations of the weights' pass, 0 or 1, where it samples
	GradW                    []*Node // of TrainLoss by the weights, before clipping and L2
	GradTheta                []*Node // the hypergradient, before L2
}

// Graph is the step: in are the arguments, inputs and then a state; next is the state after the step. The numbers of
// right answers are the last two of the values that passes hand on.
func (p *Step) Graph(in []*Node) (next []*Node, o Outcome) {
	f, all := inputsOf(in, p.blocks())
	parts := Cut(p, all)
	zero := ScalarZero(f.Rate.Graph(), f.Rate.DType())
	seen := &views{}
	_, ofCells := p.net.(*supernet.CellNet) // of many hundreds of weights
	search := bilevel.Search{
		Settings: p.Bilevel,
		SGD: bilevel.SGD{
			Momentum: p.Momentum, WeightDecay: p.WeightDecay, Nesterov: p.Nesterov, Together: ofCells,
		},
		Problem: func(aux []*Node) bilevel.Problem { return p.losses(f, aux, seen) },
	}
	if p.method.Architecture != NoPass {
		search.Architecture, search.Done = p.moves(), f.Done
	}
	search.Hypergradient = p.hypergradient(f)
	if p.Running == InnerPasses || p.Running == OuterTwice {
		p.chain(&search)
	}
	after, report := search.Step(bilevel.State{
		W: parts.Weights, Velocity: parts.Velocity, Aux: append(slices.Clone(parts.Stats), zero, zero),
		Theta: parts.Theta, Slots: parts.Slots, Stale: parts.Stale,
	}, f.Rate, f.Warmup)
	stats := len(parts.Stats)
	right := p.counts(after.Aux[stats:])
	parts = Parts[*Node]{after.W, after.Velocity, after.Aux[:stats], after.Theta, after.Slots, after.Stale}
	o = Outcome{TrainLoss: report.Train, TrainRight: right[0], ValidLoss: report.Validation, ValidRight: right[1]}
	if o.ValidLoss == nil {
		o.ValidLoss = zero
	}
	o.GradW, o.GradTheta = report.GradW, report.GradTheta
	seen.complete(&o)
	return parts.list(), o
}

// hypergradient is the method's own, or nil for that of the settings.
func (p *Step) hypergradient(f Inputs[*Node]) bilevel.Hypergradient {
	if p.method.Architecture == PerExample {
		return perExample(f.ValidImages.Shape().Dim(0))
	}
	return nil
}

// chain makes the passes of an architecture's step change the running statistics one after another, as Running says.
// Their other values are those of the outer pass.
func (p *Step) chain(search *bilevel.Search) {
	problem, hypergradient, stats := search.Problem, search.Hypergradient, len(p.net.Stats())
	if hypergradient == nil {
		hypergradient = bilevel.Hypergradients[p.Bilevel.Hypergradient]
	}
	var before []*Node // what the passes under way start from
	search.Problem = func(aux []*Node) bilevel.Problem {
		before = aux
		return problem(aux)
	}
	search.Hypergradient = func(
		own bilevel.Problem, o bilevel.Options, w, theta, velocity []*Node,
	) (*Node, []*Node, []*Node) {
		if p.Running == OuterTwice {
			loss, grad, aux := hypergradient(own, o, w, theta, velocity)
			_, again := problem(aux).Outer(w, theta)
			return loss, grad, each(again, StopGradient)
		}
		running := before
		inner := func(w, theta []*Node) (*Node, []*Node) {
			loss, aux := problem(running).Inner(w, theta)
			running = aux
			return loss, aux
		}
		loss, grad, aux := hypergradient(bilevel.Problem{Inner: inner, Outer: own.Outer}, o, w, theta, velocity)
		return loss, grad, append(each(running[:stats], StopGradient), aux[stats:]...)
	}
}

// view is a forward pass in the graph.
type view struct {
	loss, logits *Node
	chosen       []*Node
}

// views are the passes of a step, of the weights' loss and the architecture's. Unrolled hypergradients make more than
// one of the former.
type views [2][]view

// complete adds logits and choices of the passes behind the losses.
func (v *views) complete(o *Outcome) {
	if i := slices.IndexFunc(v[0], func(x view) bool { return x.loss == o.TrainLoss }); i >= 0 {
		o.TrainLogits, o.Chosen = v[0][i].logits, v[0][i].chosen
	}
	if len(v[1]) > 0 {
		o.ValidLogits = v[1][0].logits
	}
}

// problem is the pair of losses of a step whose passes start from aux.
func (p *Step) problem(f Inputs[*Node], aux []*Node, seen *views) bilevel.Problem {
	stats := aux[:len(aux)-2]
	loss := func(pass Pass, which int, images, labels *Node) bilevel.Loss {
		return func(w, theta []*Node) (*Node, []*Node) {
			ops, chosen := p.operations(pass, theta, drawn(f.Draws, which), f.Tau)
			made := p.net.Evaluate(supernet.Pass{
				Images: images, Theta: ops, Chosen: p.gated(chosen), Weights: w, Stats: stats, Train: true,
			})
			right, loss := supernet.Score(made.Logits, labels)
			next := append(p.mixed(stats, made.Stats), aux[len(aux)-2:]...)
			next[len(stats)+which] = ConvertDType(right, loss.DType())
			seen[which] = append(seen[which], view{loss, made.Logits, chosen})
			return loss, next
		}
	}
	return bilevel.Problem{
		Inner: loss(p.method.Weights, 0, f.TrainImages, f.TrainLabels),
		Outer: loss(p.method.Architecture, 1, f.ValidImages, f.ValidLabels),
	}
}

// mixed are the running statistics after a pass. If the batch is mixed in twice, s′ = (1−m)s + m·batch becomes s″ =
// (1−m)s′ + m·batch = s′ + (1−m)(s′ − s).
func (p *Step) mixed(before, after []*Node) []*Node {
	const m = 0.1 // of BN in cells
	next := slices.Clone(after)
	for i, stat := range p.net.Stats() {
		if p.Running == OperationsTwice && strings.Contains(stat.Path, "<-") { // inside an operation
			next[i] = Add(after[i], MulScalar(Sub(after[i], before[i]), 1-m))
		}
	}
	return next
}

func drawn(draws []*Node, which int) []*Node {
	return each(draws, func(x *Node) *Node { return Squeeze(Slice(x, AxisElem(which)), 0) })
}

func each(x []*Node, f func(*Node) *Node) []*Node {
	y := make([]*Node, len(x))
	for i := range x {
		y[i] = f(x[i])
	}
	return y
}

// gated is what was chosen, for networks that use it. NAS-Bench-201's gives an operation that was not chosen the
// gradient of a scalar, as in GDAS' code; other networks compute all operations, and a straight-through gradient.
func (p *Step) gated(chosen []*Node) []*Node {
	if _, ok := p.net.(*supernet.Net); ok {
		return chosen
	}
	return nil
}

// operations are the weights of the operations in a pass, shaped as theta, and the chosen ones if the pass samples.
// Weights of edges are never sampled by the Gumbel-softmax, as in GDAS on NAS-Bench-1Shot1.
func (p *Step) operations(pass Pass, theta, draws []*Node, tau *Node) (ops, chosen []*Node) {
	switch pass {
	case Mixture, PerExample:
		return p.relaxed(theta), nil
	case Uniform, Controller:
		return draws, nil
	case Gumbel:
		for i, b := range p.net.Architecture() {
			if supernet.OnEdges(b) {
				ops = append(ops, p.relaxed(theta[i:i+1])...)
				continue
			}
			op, hard := gumbel(p.logarithm(theta[i]), draws[i], tau)
			ops, chosen = append(ops, op), append(chosen, hard)
		}
		return ops, chosen
	}
	panic(fmt.Errorf("no forward pass is called %q", pass))
}

// gumbel is the hard Gumbel-softmax (Dong & Yang 2019, eq. 5): with noise g and l = log softmax(α) or log θ, the
// largest of p = softmax((l + g)/τ) is chosen; its value is 1 and its gradient that of p.
func gumbel(logarithm, noise, tau *Node) (op, chosen *Node) {
	logits := Div(Add(logarithm, noise), tau)
	soft := Softmax(logits, -1)
	hard := StopGradient(OneHot(ArgMax(logits, -1), logarithm.Shape().Dim(-1), logarithm.DType()))
	return Add(Sub(hard, StopGradient(soft)), soft), hard
}

// relaxed is softmax(α), or θ itself; without architecture parameters α is 0.
func (p *Step) relaxed(theta []*Node) []*Node {
	if p.method.Hold == OnSimplex {
		return theta
	}
	return each(theta, func(x *Node) *Node { return Softmax(x, -1) })
}

// logarithm is log softmax(α), or log θ.
func (p *Step) logarithm(theta *Node) *Node {
	if p.method.Hold == OnSimplex {
		return Log(theta)
	}
	return LogSoftmax(theta, -1)
}

// perExample is ∇_θ ℓ_b of every example b of the validation batch, [B, rows, options] for each block. If batch
// statistics couple the examples, it is each example's share in the batch's gradient, times B.
func perExample(examples int) bilevel.Hypergradient {
	return func(p bilevel.Problem, _ bilevel.Options, w, theta, _ []*Node) (*Node, []*Node, []*Node) {
		copies := each(theta, func(x *Node) *Node { return BroadcastPrefix(x, examples) })
		loss, aux := p.Outer(w, copies)
		// the loss is a mean
		grad := each(Gradient(loss, copies...), func(g *Node) *Node { return MulScalar(g, float64(examples)) })
		return loss, grad, aux
	}
}

// moves are the rules of all blocks, with regularised gradients.
func (p *Step) moves() (rules []bilevel.Rule) {
	for _, r := range p.rules {
		rule := r.of(p)
		rules = append(rules, bilevel.Rule{Slots: rule.Slots, Update: func(m bilevel.Move) ([]*Node, []*Node) {
			if p.EntropyWeight > 0 { // ∇ Σ θ log(θ|O|), but for a constant that no update on a simplex sees
				m.Grads = []*Node{Add(m.Grads[0], MulScalar(p.logarithm(m.Params[0]), p.EntropyWeight))}
			}
			return rule.Step(fmt.Sprintf("the update %q", r.name), m)
		}})
	}
	return rules
}

func (r rule) of(p *Step) bilevel.Rule {
	total := (p.Epochs - p.Bilevel.Warmup) * p.steps
	return r.update.Rule(Setup{Rate: r.rate, Total: total, Settings: p.Settings})
}

type rule struct {
	name   string
	update Update
	rate   float64
}

func (s Settings) rulesOf(m Method, blocks simplex.Product) ([]rule, error) {
	var rules []rule
	for _, b := range blocks {
		r := rule{name: s.updateName(m), rate: s.ArchRate}
		if supernet.OnEdges(b) {
			r.name, r.rate = cmp.Or(s.EdgeUpdate, r.name), cmp.Or(s.EdgeRate, r.rate)
		}
		var err error
		if r.update, err = lookupUpdate(r.name); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}
