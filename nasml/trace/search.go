package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Search is the search of a trace, compiled: what a benchmark times.
type Search struct {
	trace   *Trace
	net     *supernet.Net
	backend compute.Backend
	exec    *Exec
	dtype   dtypes.DType
	batches [][]*tensors.Tensor // of each step, see feed
	outputs bool                // the step gives gradients and logits too
}

// NewSearch prepares the steps of a trace, which need not hold any output. It
// is compiled when it first runs.
func NewSearch(b compute.Backend, t *Trace) (*Search, error) { return newSearch(b, t, false) }

func newSearch(b compute.Backend, t *Trace, outputs bool) (*Search, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	net, err := t.Settings.net()
	if err != nil {
		return nil, err
	}
	s := &Search{trace: t, net: net, backend: b, outputs: outputs, dtype: dtypes.Float32}
	if t.Arrays["weights/stem/conv"].Type == "<f8" {
		s.dtype = dtypes.Float64
	}
	for step := range t.Settings.Steps {
		s.batches = append(s.batches, s.feed(step))
	}
	s.exec, err = NewExec(b, func(in []*Node) []*Node { return s.step(in) })
	if err != nil {
		return nil, fmt.Errorf("building the search step: %w", err)
	}
	return s, nil
}

// Close frees the compiled step.
func (s *Search) Close() { s.exec.Finalize() }

// Train computes all steps from the start. It returns the training loss of each
// and the time from a state and batches that stand on the device to a state
// there and losses in memory. The first call compiles. Cancelling ctx ends it
// after the step under way.
func (s *Search) Train(ctx context.Context) (losses []float64, took time.Duration, err error) {
	state, err := s.start()
	if err != nil {
		return nil, 0, err
	}
	for _, t := range slices.Concat(append(s.batches, state)...) {
		if err := t.MaterializeOnDevice(s.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying to the device: %w", err)
		}
	}
	begin := time.Now()
	for step := range s.batches {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		var out []*tensors.Tensor
		if state, out, err = s.call(state, step); err != nil {
			return nil, 0, fmt.Errorf("step %d: %w", step+1, err)
		}
		loss, err := s.array(out[0])
		if err != nil {
			return nil, 0, err
		}
		losses = append(losses, loss.Values[0])
	}
	took = time.Since(begin)
	for _, t := range state {
		if err := t.FinalizeAll(); err != nil {
			return nil, 0, fmt.Errorf("freeing the state: %w", err)
		}
	}
	return losses, took, nil
}

// Parts of a step's feed.
const (
	trainImages = iota
	trainLabels
	trainNoise
	validImages
	validLabels
	validNoise
	stepsBefore // scalar
	feeds
)

// feed is what step, from 0, is given.
func (s *Search) feed(step int) []*tensors.Tensor {
	t := s.trace
	theta := Array{Dims: []int{len(s.net.Config.Space.Edges), len(t.Settings.Ops)}}
	theta.Values = make([]float64, size(theta.Dims))
	pick := func(name string, rank int) Array {
		a, ok := t.Arrays[name]
		if !ok {
			return theta // noise 0, which nobody looks at
		}
		if len(a.Dims) > rank {
			n := size(a.Dims[1:])
			a.Dims, a.Values = a.Dims[1:], a.Values[step*n:(step+1)*n]
		}
		return a
	}
	var out []*tensors.Tensor
	for _, part := range []string{"train", "valid"} {
		labels := pick(part+"_labels", 1)
		ints := make([]int32, len(labels.Values))
		for i, x := range labels.Values {
			ints[i] = int32(x)
		}
		out = append(out,
			s.tensor(pick(part+"_images", 4).permuted(0, 2, 3, 1)),
			tensors.FromFlatDataAndDimensions(ints, len(ints)),
			s.tensor(pick("noise/"+part, 2)))
	}
	return append(out, s.tensor(Array{Values: []float64{float64(step)}}))
}

// tensor is an array in the type of the computation.
func (s *Search) tensor(a Array) *tensors.Tensor {
	if s.dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(a.Values), a.Dims...)
	}
	single := make([]float32, len(a.Values))
	for i, x := range a.Values {
		single[i] = float32(x)
	}
	return tensors.FromFlatDataAndDimensions(single, a.Dims...)
}

// array reads a tensor and frees what of it stands in memory.
func (s *Search) array(t *tensors.Tensor) (Array, error) {
	dims := t.Shape().Dimensions
	if s.dtype == dtypes.Float64 {
		values, err := tensors.CopyFlatData[float64](t)
		return Array{Type: "<f8", Dims: dims, Values: values}, err
	}
	values, err := tensors.CopyFlatData[float32](t)
	return Float32(values, dims...), err
}

// foreign are the dimensions of one of our weights in a trace: a convolution's
// [height, width, in, out] as [out, in, height, width], a matrix transposed.
func foreign(dims []int) []int {
	return Array{Dims: dims}.permuted(toForeign(dims)...).Dims
}

func toForeign(dims []int) []int {
	return [][]int{{}, {0}, {1, 0}, {0, 1, 2}, {3, 2, 0, 1}}[len(dims)]
}

func toOurs(dims []int) []int {
	return [][]int{{}, {0}, {1, 0}, {0, 1, 2}, {2, 3, 1, 0}}[len(dims)]
}

// parts are the numbers of tensors in the state: weights, their velocity,
// statistics; then come the architecture, Adam's two moments and the stale
// gradient.
func (s *Search) parts() (weights, stats int) { return len(s.net.Weights()), len(s.net.Stats()) }

// start is the state before the first step.
func (s *Search) start() ([]*tensors.Tensor, error) {
	var state, velocity []*tensors.Tensor
	for _, w := range s.net.Weights() {
		a := s.trace.Arrays["weights/"+w.Path]
		ours := a.permuted(toOurs(a.Dims)...)
		if !slices.Equal(ours.Dims, w.Dims) {
			return nil, fmt.Errorf("weights/%s: found shape %v, expected %v", w.Path, a.Dims, foreign(w.Dims))
		}
		state = append(state, s.tensor(ours))
		velocity = append(velocity, s.tensor(Array{Dims: w.Dims, Values: make([]float64, size(w.Dims))}))
	}
	state = append(state, velocity...)
	for _, w := range s.net.Stats() {
		state = append(state, s.tensor(s.trace.stat(w)))
	}
	theta := s.trace.Arrays[methods[s.trace.Settings.Method].parameter]
	state = append(state, s.tensor(theta))
	for range 3 {
		state = append(state, s.tensor(Array{Dims: theta.Dims, Values: make([]float64, len(theta.Values))}))
	}
	return state, nil
}

// call computes a step, from 0. The old state is used up.
func (s *Search) call(state []*tensors.Tensor, step int) (next, rest []*tensors.Tensor, err error) {
	args := make([]any, 0, feeds+len(state))
	for _, t := range s.batches[step] {
		args = append(args, t)
	}
	for _, t := range state {
		if err := t.MaterializeOnDevice(s.backend, false, 0); err != nil {
			return nil, nil, fmt.Errorf("copying the state to the device: %w", err)
		}
		donated, err := DonateTensorBuffer(t, s.backend, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("donating the state: %w", err)
		}
		args = append(args, donated)
	}
	out, err := s.exec.Call(args...)
	if err != nil {
		return nil, nil, err
	}
	return out[:len(state)], out[len(state):], nil
}

// observe computes a step, from 0, and returns all that a trace may hold of it,
// by its name and in its layout.
func (s *Search) observe(state []*tensors.Tensor, step int) (next []*tensors.Tensor, found map[string]Array, err error) {
	m := methods[s.trace.Settings.Method]
	weights, stats := s.parts()
	var old []*tensors.Tensor
	if m.sampled && s.trace.Settings.Unused == unusedSkip {
		if old, err = s.copied(state[:2*weights]); err != nil {
			return nil, nil, err
		}
	}
	next, rest, err := s.call(state, step)
	if err != nil {
		return nil, nil, err
	}
	if old != nil {
		if err := s.putBack(next, old, rest[5]); err != nil {
			return nil, nil, err
		}
	}
	found = map[string]Array{}
	take := func(name string, t *tensors.Tensor, isWeight bool) {
		a, readErr := s.array(t)
		err = errors.Join(err, readErr)
		if i := slices.IndexFunc(a.Values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }); i >= 0 && err == nil {
			err = fmt.Errorf("our %s has the element %v: the search diverges from where the trace starts", name, a.Values[i])
		}
		if isWeight {
			a = a.permuted(toForeign(a.Dims)...)
		}
		found[name] = a
	}
	for i, name := range []string{"loss", "valid_loss", "logits", "valid_logits", "grad/" + m.parameter} {
		take(name, rest[i], false)
	}
	take("after/"+m.parameter, next[2*weights+stats], false)
	for i, w := range s.net.Weights() {
		take("grad/"+w.Path, rest[6+i], true)
		take("after/weights/"+w.Path, next[i], true)
	}
	for i, w := range s.net.Stats() {
		take("after/stats/"+w.Path, next[2*weights+i], false)
	}
	return next, found, err
}

// copied are tensors of their own with the same elements.
func (s *Search) copied(tensors []*tensors.Tensor) ([]*tensors.Tensor, error) {
	out := slices.Clone(tensors)
	for i, t := range tensors {
		a, err := s.array(t)
		if err != nil {
			return nil, err
		}
		out[i] = s.tensor(a)
	}
	return out, nil
}

// putBack undoes what momentum and weight decay did to the weights of
// operations that were not chosen in the weights' pass.
func (s *Search) putBack(next, old []*tensors.Tensor, chosen *tensors.Tensor) error {
	hot, err := s.array(chosen)
	if err != nil {
		return err
	}
	unused := map[string]bool{} // "2<-0/nor_conv_1x1"
	ops := s.trace.Settings.Ops
	for e, edge := range s.net.Config.Space.Edges {
		for o, op := range ops {
			unused[edge.String()+"/"+op] = hot.Values[e*len(ops)+o] == 0
		}
	}
	for i, w := range s.net.Weights() {
		parts := strings.Split(w.Path, "/") // cells/0/2<-0/nor_conv_1x1/conv
		if len(parts) > 4 && unused[parts[2]+"/"+parts[3]] {
			next[i], next[len(old)/2+i] = old[i], old[len(old)/2+i]
		}
	}
	return nil
}

// step is a step as a graph: the new state, then the training and validation
// losses, and, for a comparison, the logits of both, the architecture's
// gradient, what was chosen in the weights' pass and the weights' gradients.
func (s *Search) step(in []*Node) []*Node {
	settings, feed, state := s.trace.Settings, in[:feeds], in[feeds:]
	weights, stats := s.parts()
	architecture := 2*weights + stats
	var inner, outer passes
	var grad *Node
	search := bilevel.Search{
		Settings: bilevel.Settings{Order: settings.Order, Clip: settings.Clip, ClipCovers: settings.ClipCovers, Hypergradient: settings.Hypergradient},
		SGD:      bilevel.SGD{Momentum: settings.Momentum, WeightDecay: settings.WeightDecay, Nesterov: settings.Nesterov},
		Problem: func(aux []*Node) bilevel.Problem {
			return bilevel.Problem{
				Inner: s.loss(feed[trainImages:], aux, &inner),
				Outer: s.loss(feed[validImages:], aux, &outer),
			}
		},
		Update: func(theta, gradient, slots []*Node) ([]*Node, []*Node) {
			grad = gradient[0]
			return s.update(theta, gradient, slots, feed[stepsBefore])
		},
	}
	rate := Scalar(in[0].Graph(), s.dtype, settings.LearningRate)
	next, train, valid := search.Step(bilevel.State{
		W: state[:weights], Velocity: state[weights : 2*weights], Aux: state[2*weights : architecture],
		Theta: state[architecture : architecture+1], Slots: state[architecture+1 : architecture+3], Stale: state[architecture+3:],
	}, rate, nil)
	out := slices.Concat(next.W, next.Velocity, next.Aux, next.Theta, next.Slots, next.Stale, []*Node{train, valid})
	if !s.outputs {
		return out
	}
	p := inner.of(train)
	out = append(out, p.logits, outer[0].logits, grad, p.chosen)
	return append(out, Gradient(p.loss, p.w...)...)
}

// pass is a forward pass as it stands in the graph.
type pass struct {
	w                    []*Node
	loss, logits, chosen *Node
}

// passes are those of one loss. Unrolled hypergradients make more than one of
// the inner loss.
type passes []pass

// of finds the pass that gave a loss.
func (p passes) of(loss *Node) pass {
	return p[slices.IndexFunc(p, func(x pass) bool { return x.loss == loss })]
}

// loss is the mean cross entropy on the batch that feed starts with, noting its
// passes.
func (s *Search) loss(feed, stats []*Node, seen *passes) bilevel.Loss {
	return func(w, theta []*Node) (*Node, []*Node) {
		ops, chosen := s.operations(theta[0], feed[trainNoise])
		in := supernet.Input{Images: feed[trainImages], Theta: ops, Weights: w, Stats: stats, Train: true}
		if methods[s.trace.Settings.Method].sampled {
			in.Chosen = chosen
		}
		logits, after := s.net.Forward(in)
		_, loss := supernet.Score(logits, feed[trainLabels])
		*seen = append(*seen, pass{w: w, loss: loss, logits: logits, chosen: chosen})
		return loss, after
	}
}

// operations are the weights of the operations, and, where the method samples,
// the chosen ones; elsewhere those are all.
func (s *Search) operations(a, noise *Node) (ops, chosen *Node) {
	m := methods[s.trace.Settings.Method]
	if !m.sampled {
		if m.parameter == "alpha" {
			a = Softmax(a, -1)
		}
		return a, OnesLike(a)
	}
	logs := Log(a)
	if m.parameter == "alpha" {
		logs = LogSoftmax(a, -1)
	}
	soft := Softmax(DivScalar(Add(logs, noise), s.trace.Settings.Tau), -1)
	hard := StopGradient(OneHot(ArgMax(soft, -1), soft.Shape().Dim(-1), soft.DType()))
	return Add(Sub(hard, StopGradient(soft)), soft), hard
}

// update moves the architecture; its slots are Adam's moments.
func (s *Search) update(a, grad, slots []*Node, stepsBefore *Node) (a2, slots2 []*Node) {
	settings := s.trace.Settings
	switch settings.Update {
	case "adam":
		adam := bilevel.Adam{Beta1: settings.ArchBeta1, Beta2: settings.ArchBeta2, Epsilon: settings.ArchEpsilon, WeightDecay: settings.ArchWeightDecay}
		a2, m, v := adam.Step(a, grad, slots[:1], slots[1:], stepsBefore, settings.ArchRate)
		return a2, slices.Concat(m, v)
	case "sgd":
		sgd := bilevel.SGD{WeightDecay: settings.ArchWeightDecay}
		a2, _ = sgd.Step(a, grad, []*Node{ZerosLike(a[0])}, Scalar(a[0].Graph(), s.dtype, settings.ArchRate))
		return a2, slots
	}
	return []*Node{simplex.Updates[settings.Update](a[0], grad[0], settings.ArchRate)}, slots
}
