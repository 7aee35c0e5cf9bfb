package trace

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// authorsRun is a replay under way.
type authorsRun struct {
	trace   *Authors
	net     supernet.Network
	program *search.Step // nil: the training of a genotype's network
	backend compute.Backend
	dtype   dtypes.DType
	state   []*tensors.Tensor
	moved   int // steps of the architecture done
	exec    *Exec
	names   []string // of what a step gives besides gradients
}

func newAuthorsRun(b compute.Backend, t *Authors) (*authorsRun, error) {
	r := &authorsRun{trace: t, net: t.net, backend: b, dtype: t.dtype()}
	var weights, stats []*tensors.Tensor
	for _, p := range t.Settings.Parameters {
		a := t.Arrays["start/"+p.Name]
		weights = append(weights, a.permuted(toOurs(a.Dims)...).tensor(r.dtype))
	}
	for _, s := range t.stats() {
		stats = append(stats, t.Arrays["start/"+s.Name].tensor(r.dtype))
	}
	return r, r.prepare(weights, stats)
}

func (r *authorsRun) prepare(weights, stats []*tensors.Tensor) (err error) {
	step := r.train
	if r.trace.kind.evaluation {
		for _, w := range weights {
			r.state = append(r.state, tensors.FromShape(w.Shape()))
		}
		r.state = slices.Concat(weights, r.state, stats)
	} else {
		settings := r.trace.searchSettings()
		if r.program, err = search.NewStep(settings, r.net, r.trace.Settings.Steps); err != nil {
			return err
		}
		r.state, step = r.program.State(weights, stats, r.startOfArchitecture()), r.search
	}
	if r.exec, err = NewExec(r.backend, step); err != nil {
		return fmt.Errorf("building the step: %w", err)
	}
	return nil
}

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

func (r *authorsRun) close() { r.exec.Finalize() }

func (r *authorsRun) moves(step int) bool {
	_, ok := r.trace.Arrays[stepName(step+1, "valid_loss")]
	return ok && len(r.net.Architecture()) > 0
}

func (r *authorsRun) feed(step int) []*tensors.Tensor {
	t := r.trace
	part := func(name string) (images, labels *tensors.Tensor) {
		pixels := t.Arrays[name+"_images"].at(step).permuted(0, 2, 3, 1)
		return pixels.tensor(r.dtype), t.Arrays[name+"_labels"].at(step).labels()
	}
	images, labels := part("train")
	number := func(x float64) *tensors.Tensor { return scalar(x).tensor(r.dtype) }
	if t.kind.evaluation {
		out := []*tensors.Tensor{images, labels, number(t.Settings.LearningRate)}
		if p := t.Settings.DropPathProb; p != 0 {
			factors := t.masks.at(step).permuted(1, 0)
			floats.Scale(1/(1-p), factors.Values) // of what is kept, see Pass.Drop
			out = append(out, factors.tensor(r.dtype))
		}
		return out
	}
	f := search.Inputs[*tensors.Tensor]{
		TrainImages: images, TrainLabels: labels, Rate: number(t.Settings.LearningRate), Tau: number(1),
		Done: number(float64(r.moved)), Warmup: number(0),
	}
	if !r.moves(step) {
		f.Warmup = number(1)
	}
	f.ValidImages, f.ValidLabels = part("valid")
	for _, b := range r.net.Architecture() {
		f.Draws = append(f.Draws, zeros(2, b.Rows, b.Options).tensor(r.dtype))
	}
	return f.List()
}

func (r *authorsRun) parts(state []*tensors.Tensor) search.Parts[*tensors.Tensor] {
	if r.program != nil {
		return search.Cut(r.program, state)
	}
	n := len(r.net.Weights())
	return search.Parts[*tensors.Tensor]{Weights: state[:n], Velocity: state[n : 2*n], Stats: state[2*n:]}
}

func (r *authorsRun) observe(step int) (map[string]Array, error) {
	out, err := r.exec.Call(anys(r.feed(step), r.state)...)
	if err != nil {
		return nil, err
	}
	r.state = out[:len(r.state)]
	found, err := r.found(out[len(r.state):])
	if r.moves(step) {
		r.moved++
		return found, err
	}
	maps.DeleteFunc(found, func(name string, _ Array) bool {
		ofArchitecture := architectureName.MatchString(name) && strings.HasPrefix(name, "grad/")
		return ofArchitecture || strings.HasPrefix(name, "valid_")
	})
	return found, err
}

func (r *authorsRun) found(out []*tensors.Tensor) (map[string]Array, error) {
	t, after := r.trace, r.parts(r.state)
	read := reader{found: map[string]Array{}}
	for i, name := range r.names {
		read.take(name, out[i])
	}
	out = out[len(r.names):]
	var grads, states []Array
	for i, s := range t.Settings.Parameters {
		grads = append(grads, read.takeWeight("grad/"+s.Name, out[i]))
		read.takeWeight("after/"+s.Name, after.Weights[i])
	}
	for i, s := range t.stats() {
		read.take("after/"+s.Name, after.Stats[i])
	}
	found := read.found
	for _, s := range t.Settings.State {
		states = append(states, found["after/"+s.Name])
	}
	found["grad_prints"], found["after_prints"] = printsOf(grads), printsOf(states)
	square := 0.0
	for i := range grads {
		norm := found["grad_prints"].Values[3*i+1]
		square += norm * norm
	}
	found["grad_norm"] = Array{Type: grads[0].Type, Values: []float64{math.Sqrt(square)}}
	read.errs = append(read.errs, r.foundArchitecture(found, after.Theta, out[len(grads):]))
	return found, read.finish()
}

func (r *authorsRun) foundArchitecture(found map[string]Array, theta, grad []*tensors.Tensor) (err error) {
	for _, a := range r.trace.architecture() {
		if found["after/"+a.name], err = joined(theta, a); err != nil {
			return err
		}
		if len(grad) == 0 {
			continue
		}
		if found["grad/"+a.name], err = joined(grad, a); err != nil {
			return err
		}
	}
	for _, name := range r.trace.fixed {
		found["after/"+name] = r.trace.Arrays["start/"+name]
	}
	return nil
}

func joined(blocks []*tensors.Tensor, p authorsParameter) (Array, error) {
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

// search is the graph of a search step: new state, what r.names lists, gradients of weights and architecture.
func (r *authorsRun) search(in []*Node) []*Node {
	next, o := r.program.Graph(in)
	r.names = []string{"loss", "logits", "valid_loss", "valid_logits"}
	out := append(next, o.TrainLoss, o.TrainLogits, o.ValidLoss, o.ValidLogits)
	return slices.Concat(out, o.GradW, o.GradTheta)
}

// searchSettings are those of the authors' program as a step reads them. GAEA's programs for ImageNet
// (liamcli/PC-DARTS@dc3cfe0, architect_edarts.py:38-62) and NAS-Bench-1Shot1 (liamcli/nasbench-1shot1@e369bd7,
// optimizers/edarts/architect.py:80,95,111) do not clear the architecture's gradient before its step; the first takes
// the weights' step before it, the second evaluates twice and takes no second order.
func (t *Authors) searchSettings() search.Settings {
	s, k := t.Settings, t.kind
	adam := bilevel.DARTSAdam
	out := search.Settings{
		Method: "darts", Momentum: s.Momentum, WeightDecay: s.WeightDecay, Epochs: 1,
		ArchRate: s.ArchRate, ArchBeta1: adam.Beta1, ArchBeta2: adam.Beta2, ArchEpsilon: adam.Epsilon,
		ArchWeightDecay: s.ArchWeightDecay,
		Bilevel: bilevel.Settings{
			Order: bilevel.ArchitectureFirst, Clip: s.Clip, Hypergradient: "first-order",
			Uncleared: k.uncleared,
		},
	}
	if k.imageNet {
		out.Bilevel.ArchClip, out.Running = s.Clip, search.OperationsTwice
		if k.uncleared {
			out.Bilevel.Order = bilevel.WeightsFirst
		}
	}
	switch {
	case k.oneShot && k.uncleared:
		out.Running = search.OuterTwice
	case s.Unrolled:
		out.Running, out.Bilevel.Hypergradient = search.InnerPasses, "finite-difference"
	}
	if k.simplex { // of operations; edges of cells with two inputs are normalised only
		out.Method, out.Update = "gaea-darts", "eg-clamp-normalize"
		if k.oneShot { // operations have a rate of their own
			out.EdgeRate = s.EdgeRate
		} else {
			out.EdgeUpdate, out.ArchRate = "eg", cmp.Or(s.EdgeRate, s.ArchRate)
		}
	}
	return out
}

// train is the graph of a training step: new state, what r.names lists, gradients of weights.
func (r *authorsRun) train(in []*Node) []*Node {
	s := r.trace.Settings
	weights, feed := len(r.net.Weights()), len(in)-len(r.state)
	images, labels, rate, all := in[0], in[1], in[2], in[feed:]
	pass := supernet.Pass{Images: images, Stats: all[2*weights:], Train: true}
	if feed > 3 {
		pass.Drop = in[3]
	}
	var made supernet.Outcome
	var main, aside *Node
	step := bilevel.Search{
		Settings: bilevel.Settings{Clip: s.Clip}, SGD: bilevel.SGD{Momentum: s.Momentum, WeightDecay: s.WeightDecay},
		Problem: func([]*Node) bilevel.Problem {
			return bilevel.Problem{Inner: func(w, _ []*Node) (*Node, []*Node) {
				pass.Weights = w
				made = r.net.Evaluate(pass)
				main = training.CrossEntropy(made.Logits, labels, 0)
				loss := main
				if made.Auxiliary != nil {
					aside = training.CrossEntropy(made.Auxiliary, labels, 0)
					loss = Add(main, MulScalar(aside, s.AuxiliaryWeight))
				}
				return loss, made.Stats
			}}
		},
	}
	start := bilevel.State{W: all[:weights], Velocity: all[weights : 2*weights], Aux: pass.Stats}
	next, seen := step.Step(start, rate, nil)
	out := append(slices.Concat(next.W, next.Velocity, next.Aux), seen.Train, made.Logits)
	if r.names = []string{"loss", "logits"}; made.Auxiliary != nil {
		r.names = append(r.names, "main_loss", "loss_aux", "logits_aux")
		out = append(out, main, aside, made.Auxiliary)
	}
	return append(out, seen.GradW...)
}

// evaluate returns the last training batch's logits by running statistics.
func (r *authorsRun) evaluate() (Array, error) {
	if _, ok := r.trace.Arrays["eval_logits"]; !ok {
		return Array{}, nil
	}
	p, weights, stats := r.parts(r.state), len(r.net.Weights()), len(r.net.Stats())
	images := r.feed(r.trace.Settings.Steps - 1)[:1]
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
	}, anys(images, p.Weights, p.Stats, p.Theta)...)
	if err != nil {
		return Array{}, err
	}
	return arrayOf(out)
}

func (r *authorsRun) checkGenotype() error {
	want := r.trace.Settings.Genotype
	if want == "" || r.trace.kind.evaluation || r.trace.kind.oneShot {
		return nil
	}
	blocks, after := r.net.Architecture(), r.parts(r.state).Theta
	theta := make([][][]float64, len(blocks))
	for i, b := range blocks {
		a, err := arrayOf(after[i])
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
