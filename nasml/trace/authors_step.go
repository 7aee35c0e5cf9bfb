package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// authorsRun is a replay under way.
type authorsRun struct {
	trace   *Authors
	net     supernet.Network
	backend compute.Backend
	dtype   dtypes.DType
	state   []*tensors.Tensor
	moved   int            // steps of the architecture done
	execs   map[bool]*Exec // with and without a step of the architecture
	names   map[bool][]string
	drop    []float64 // factors of drop path, [S, places, B]
}

func newAuthorsRun(b compute.Backend, t *Authors) (*authorsRun, error) {
	r := &authorsRun{trace: t, net: t.net, backend: b, dtype: dtypes.Float32}
	r.execs, r.names = map[bool]*Exec{}, map[bool][]string{}
	if first := t.Settings.State[0]; t.Arrays["start/"+first.Name].Type == "<f8" {
		r.dtype = dtypes.Float64
	}
	if err := r.dropFactors(); err != nil {
		return nil, err
	}
	if _, ok := t.Arrays["valid_images"]; !ok {
		for step := range t.Settings.Steps {
			if r.moves(step) {
				return nil, fmt.Errorf("valid_images is missing, and there is %s", stepName(step+1, "valid_loss"))
			}
		}
	}
	zeros := func(dims []int) *tensors.Tensor {
		return Array{Dims: dims, Values: make([]float64, size(dims))}.tensor(r.dtype)
	}
	var velocity []*tensors.Tensor
	for i, w := range t.net.Weights() {
		a := t.Arrays["start/"+t.Settings.Parameters[i].Name]
		r.state = append(r.state, a.permuted(toOurs(a.Dims)...).tensor(r.dtype))
		velocity = append(velocity, zeros(w.Dims))
	}
	r.state = append(r.state, velocity...)
	for _, s := range t.stats() {
		r.state = append(r.state, t.Arrays["start/"+s.Name].tensor(r.dtype))
	}
	r.state = append(r.state, r.startOfArchitecture()...)
	for range 3 { // Adam's moments, the gradient that is left over
		for _, b := range t.net.Architecture() {
			r.state = append(r.state, zeros([]int{b.Rows, b.Options}))
		}
	}
	return r, nil
}

// startOfArchitecture cuts the authors' parameters into blocks.
func (r *authorsRun) startOfArchitecture() []*tensors.Tensor {
	blocks := r.net.Architecture()
	out := make([]*tensors.Tensor, len(blocks))
	for _, a := range r.trace.architecture() {
		values := r.trace.Arrays["start/"+a.name].Values
		for _, b := range a.blocks {
			n := blocks[b].Rows * blocks[b].Options
			out[b] = Array{Dims: []int{blocks[b].Rows, blocks[b].Options}, Values: values[:n]}.tensor(r.dtype)
			values = values[n:]
		}
	}
	return out
}

// dropFactors are those of Pass.Drop: what is kept, divided by 1−p.
func (r *authorsRun) dropFactors() error {
	s := r.trace.Settings
	p := s.DropPathProb
	if p == 0 {
		p = s.DropPath
	}
	net, ok := r.net.(*supernet.CellNet)
	masks := r.trace.masks()
	if !ok || p == 0 && masks == nil {
		return nil
	}
	batch := r.trace.Arrays["train_images"].Dims[1]
	if want := s.Steps * net.DropPlaces() * batch; len(masks) != want {
		return fmt.Errorf("drop path: found %d values in arrays with mask, drop or bernoulli in their names, "+
			"expected %d: "+
			"%d steps of %d places of %d examples", len(masks), want, s.Steps, net.DropPlaces(), batch)
	}
	for _, m := range masks {
		if m != 0 {
			m = 1 / (1 - p)
		}
		r.drop = append(r.drop, m)
	}
	return nil
}

func (r *authorsRun) close() {
	for _, e := range r.execs {
		e.Finalize()
	}
}

// moves says whether the architecture moves in a step, from 0.
func (r *authorsRun) moves(step int) bool {
	_, ok := r.trace.Arrays[stepName(step+1, "valid_loss")]
	return ok && len(r.net.Architecture()) > 0
}

// feed is what a step, from 0, is given.
func (r *authorsRun) feed(step int) []any {
	t := r.trace
	at := func(name string) Array {
		a := t.Arrays[name]
		n := size(a.Dims[1:])
		return Array{Type: a.Type, Dims: a.Dims[1:], Values: a.Values[step*n : (step+1)*n]}
	}
	out := []any{float64(r.moved)}
	for _, part := range []string{"train", "valid"} {
		if _, ok := t.Arrays[part+"_images"]; ok {
			out = append(out, at(part+"_images").permuted(0, 2, 3, 1).tensor(r.dtype), at(part+"_labels").labels())
		}
	}
	if r.drop != nil {
		n := len(r.drop) / t.Settings.Steps
		batch := t.Arrays["train_images"].Dims[1]
		factors := Array{Dims: []int{n / batch, batch}, Values: r.drop[step*n : (step+1)*n]}
		out = append(out, factors.permuted(1, 0).tensor(r.dtype))
	}
	return out
}

// observe computes a step, from 0, and returns all that a trace may hold of it.
func (r *authorsRun) observe(step int) (map[string]Array, error) {
	moves, args := r.moves(step), r.feed(step)
	feeds := len(args)
	if r.execs[moves] == nil {
		exec, err := NewExec(r.backend, func(in []*Node) []*Node { return r.step(in[:feeds], in[feeds:], moves) })
		if err != nil {
			return nil, fmt.Errorf("building the step: %w", err)
		}
		r.execs[moves] = exec
	}
	for _, t := range r.state {
		args = append(args, t)
	}
	out, err := r.execs[moves].Call(args...)
	if err != nil {
		return nil, err
	}
	if moves {
		r.moved++
	}
	r.state = out[:len(r.state)]
	return r.found(out[len(r.state):], r.names[moves])
}

// found reads what a step gave, by the authors' names and in their layout.
func (r *authorsRun) found(out []*tensors.Tensor, names []string) (map[string]Array, error) {
	found := map[string]Array{}
	var errs []error
	for i, name := range names {
		a, err := arrayOf(out[i])
		found[name] = a
		errs = append(errs, err)
	}
	t := r.trace
	weights, stats := len(r.net.Weights()), len(r.net.Stats())
	var grads, states []Array
	for i, s := range t.Settings.Parameters {
		g, errG := arrayOf(out[len(names)+i])
		w, errW := arrayOf(r.state[i])
		errs = append(errs, errG, errW)
		g, w = g.permuted(toForeign(g.Dims)...), w.permuted(toForeign(w.Dims)...)
		found["grad/"+s.Name], found["after/"+s.Name] = g, w
		grads = append(grads, g)
	}
	for i, s := range t.stats() {
		a, err := arrayOf(r.state[2*weights+i])
		errs = append(errs, err)
		found["after/"+s.Name] = a
	}
	for _, s := range t.Settings.State {
		states = append(states, found["after/"+s.Name])
	}
	found["grad_prints"], found["after_prints"] = printsOf(grads), printsOf(states)
	blocks := len(r.net.Architecture())
	theta := r.state[2*weights+stats : 2*weights+stats+blocks]
	for _, a := range t.architecture() {
		joined, err := r.joined(theta, a)
		found["after/"+a.name] = joined
		errs = append(errs, err)
		if len(out) > len(names)+weights {
			joined, err = r.joined(out[len(names)+weights:], a)
			found["grad/"+a.name] = joined
			errs = append(errs, err)
		}
	}
	for _, name := range t.fixed {
		found["after/"+name] = t.Arrays["start/"+name]
	}
	for name, a := range found {
		if i := slices.IndexFunc(a.Values, notFinite); i >= 0 {
			errs = append(errs, fmt.Errorf("our %s has the element %v: the search diverges from where the trace starts",
				name, a.Values[i]))
		}
	}
	return found, errors.Join(errs...)
}

// joined is one of the authors' parameters, of the blocks that it holds.
func (r *authorsRun) joined(blocks []*tensors.Tensor, p authorsParameter) (Array, error) {
	var all Array
	for _, b := range p.blocks {
		a, err := arrayOf(blocks[b])
		if err != nil {
			return all, err
		}
		all.Type, all.Values = a.Type, append(all.Values, a.Values...)
		all.Dims = a.Dims
	}
	if p.flat {
		all.Dims = []int{len(all.Values)}
	}
	return all, nil
}

// authorsPass is a forward pass as it stands in the graph.
type authorsPass struct {
	out               supernet.Outcome
	loss, main, aside *Node   // the second and third where there is an auxiliary head
	dw, dtheta        []*Node // gradients, once they have been taken
}

// watched are nodes that say what gradient arrived at them.
func watched(x []*Node, gradients *[]*Node) []*Node {
	*gradients = make([]*Node, len(x))
	out := make([]*Node, len(x))
	for i := range x {
		(*gradients)[i] = ZerosLike(x[i]) // none arrives where the network does not look at it
		out[i] = IdentityWithCustomGradient(x[i], func(_, v *Node) *Node {
			(*gradients)[i] = v
			return v
		})
	}
	return out
}

// pass evaluates the network in training.
func (r *authorsRun) pass(images, labels, drop *Node, w, theta, stats []*Node) *authorsPass {
	p := &authorsPass{}
	theta = watched(theta, &p.dtheta)
	if !r.trace.kind.simplex {
		relaxed := make([]*Node, len(theta))
		for i := range theta {
			relaxed[i] = Softmax(theta[i], -1)
		}
		theta = relaxed
	}
	p.out = r.net.Evaluate(supernet.Pass{
		Images: images, Theta: theta, Weights: watched(w, &p.dw), Stats: stats, Train: true, Drop: drop,
	})
	_, p.loss = supernet.Score(p.out.Logits, labels)
	if p.out.Auxiliary != nil {
		p.main = p.loss
		_, p.aside = supernet.Score(p.out.Auxiliary, labels)
		p.loss = Add(p.main, MulScalar(p.aside, r.trace.Settings.AuxiliaryWeight))
	}
	return p
}

// step is a step as a graph: the new state, what r.names lists, the weights'
// gradients and the architecture's.
func (r *authorsRun) step(feed, all []*Node, moves bool) []*Node {
	t, s := r.trace, r.trace.Settings
	weights, stats, blocks := len(r.net.Weights()), len(r.net.Stats()), len(r.net.Architecture())
	take := func(n int) []*Node {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	state := bilevel.State{W: take(weights), Velocity: take(weights), Aux: take(stats)}
	state.Theta, state.Slots = take(blocks), take(2*blocks)
	state.Stale = take(blocks)
	var inner, outer *authorsPass
	var grad []*Node
	search := bilevel.Search{
		Settings: t.bilevelSettings(), SGD: bilevel.SGD{Momentum: s.Momentum, WeightDecay: s.WeightDecay},
	}
	var running []*Node // statistics, as the passes of a step change them one after the other
	search.Problem = func(aux []*Node) bilevel.Problem {
		running = aux
		return bilevel.Problem{
			Inner: func(w, theta []*Node) (*Node, []*Node) {
				inner = r.pass(feed[1], feed[2], dropOf(feed), w, theta, running)
				running = inner.out.Stats
				return inner.loss, running
			},
			Outer: func(w, theta []*Node) (*Node, []*Node) {
				outer = r.pass(feed[3], feed[4], nil, w, theta, running)
				stats := outer.out.Stats
				if t.kind.oneShotEG { // which evaluates twice: the statistics see it
					stats = r.pass(feed[3], feed[4], nil, w, theta, stats).out.Stats
				}
				return outer.loss, stats
			},
		}
	}
	if moves {
		search.Update = func(theta, gradient, slots []*Node) ([]*Node, []*Node) {
			if grad = gradient; t.kind.imageNet {
				grad = bilevel.ClipGlobalNorm(grad, s.Clip)
			}
			return r.update(theta, grad, slots, feed[0])
		}
	}
	// whose program does not look at it; the outer pass runs on a copy of the network whose statistics are thrown away
	if s.Unrolled && !t.kind.oneShotEG {
		search.Hypergradient = func(
			p bilevel.Problem, o bilevel.Options, w, theta, v []*Node,
		) (*Node, []*Node, []*Node) {
			loss, grad, _ := bilevel.FiniteDifference(p, o, w, theta, v)
			return loss, grad, running
		}
	}
	next, _ := search.Step(state, Scalar(feed[1].Graph(), r.dtype, s.LearningRate), nil)
	out := slices.Concat(next.W, next.Velocity, next.Aux, next.Theta, next.Slots, next.Stale)
	return append(out, r.report(inner, outer, grad, moves)...)
}

// bilevelSettings are those of the authors' program. Those of GAEA for ImageNet
// (liamcli/PC-DARTS@dc3cfe0, architect_edarts.py:38-62) and NAS-Bench-1Shot1
// (liamcli/nasbench-1shot1@e369bd7, optimizers/edarts/architect.py:80,95,111) do
// not clear the architecture's gradient before its step.
func (t *Authors) bilevelSettings() bilevel.Settings {
	s := bilevel.Settings{
		Order: bilevel.ArchitectureFirst, Clip: t.Settings.Clip, Hypergradient: "first-order",
		Uncleared: t.kind.imageNetEG || t.kind.oneShotEG,
	}
	if t.kind.imageNetEG {
		s.Order = bilevel.WeightsFirst
	}
	return s
}

// dropOf is the part of the feed with drop path, nil where there is none.
func dropOf(feed []*Node) *Node {
	if last := feed[len(feed)-1]; len(feed)%2 == 0 && last.Rank() == 2 {
		return last
	}
	return nil
}

// report notes the names of what it returns.
func (r *authorsRun) report(inner, outer *authorsPass, grad []*Node, moves bool) []*Node {
	var out []*Node
	r.names[moves] = nil
	note := func(name string, x *Node) {
		r.names[moves] = append(r.names[moves], name)
		out = append(out, x)
	}
	note("loss", inner.loss)
	note("logits", inner.out.Logits)
	if inner.aside != nil {
		note("main_loss", inner.main)
		note("loss_aux", inner.aside)
		note("logits_aux", inner.out.Auxiliary)
	}
	var square *Node
	for _, g := range inner.dw {
		if s := ReduceAllSum(Mul(g, g)); square == nil {
			square = s
		} else {
			square = Add(square, s)
		}
	}
	note("grad_norm", Sqrt(square))
	if moves {
		note("valid_loss", outer.loss)
		note("valid_logits", outer.out.Logits)
	}
	return slices.Concat(out, inner.dw, grad)
}

// update moves the architecture; its slots are Adam's moments.
func (r *authorsRun) update(theta, grad, slots []*Node, stepsBefore *Node) (theta2, slots2 []*Node) {
	s := r.trace.Settings
	if !r.trace.kind.simplex {
		adam := bilevel.DARTSAdam
		adam.WeightDecay = s.ArchWeightDecay
		n := len(theta)
		theta2, m, v := adam.Step(theta, grad, slots[:n], slots[n:], stepsBefore, s.ArchRate)
		return theta2, slices.Concat(m, v)
	}
	rate := s.ArchRate
	if s.EdgeRate > 0 {
		rate = s.EdgeRate
	}
	for i, b := range r.net.Architecture() {
		update := simplex.EGClampNormalize // of operations; edges are normalised only
		if strings.Contains(b.Name, "edges") {
			update = simplex.EG
		}
		theta2 = append(theta2, update(theta[i], grad[i], rate))
	}
	return theta2, slots
}

// evaluate gives the logits of the last step's training images by running
// statistics.
func (r *authorsRun) evaluate() (Array, error) {
	if _, ok := r.trace.Arrays["eval_logits"]; !ok {
		return Array{}, nil
	}
	weights, stats, blocks := len(r.net.Weights()), len(r.net.Stats()), len(r.net.Architecture())
	args := []any{r.feed(r.trace.Settings.Steps - 1)[1]}
	for _, t := range slices.Concat(r.state[:weights], r.state[2*weights:2*weights+stats+blocks]) {
		args = append(args, t)
	}
	out, err := CallOnce(r.backend, func(in []*Node) *Node {
		theta := in[1+weights+stats:]
		if !r.trace.kind.simplex {
			for i := range theta {
				theta[i] = Softmax(theta[i], -1)
			}
		}
		p := supernet.Pass{
			Images: in[0], Weights: in[1 : 1+weights], Stats: in[1+weights : 1+weights+stats], Theta: theta,
		}
		return r.net.Evaluate(p).Logits
	}, args...)
	if err != nil {
		return Array{}, err
	}
	return arrayOf(out)
}

// checkGenotype compares the genotype after all steps.
func (r *authorsRun) checkGenotype() error {
	want := r.trace.Settings.Genotype
	if want == "" || r.trace.kind.evaluation || r.trace.kind.oneShot {
		return nil
	}
	weights, stats := len(r.net.Weights()), len(r.net.Stats())
	blocks := r.net.Architecture()
	theta := make([][][]float64, len(blocks))
	for i, b := range blocks {
		a, err := arrayOf(r.state[2*weights+stats+i])
		if err != nil {
			return err
		}
		if !r.trace.kind.simplex {
			softmax(a.Values, b.Options)
		}
		theta[i] = slices.Collect(slices.Chunk(a.Values, b.Options))
	}
	got, err := r.net.(*supernet.CellNet).Discretize(theta)
	if err != nil {
		return err
	}
	theirs, err := supernet.ParseGenotype(want)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if got.String() != theirs.String() {
		return fmt.Errorf("genotype: found %s in the trace, here it is %s", theirs, got)
	}
	return nil
}
