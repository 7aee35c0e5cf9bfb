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

	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
)

// Search is the search of a trace, compiled: what a benchmark times.
type Search struct {
	trace   *Trace
	net     *supernet.Net
	program *search.Step
	backend compute.Backend
	exec    *Exec
	dtype   dtypes.DType
	outputs bool            // the step gives gradients and logits too
	sampled map[string]bool // operations "2<-0/nor_conv_1x1" that were sampled since the start
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
	s := &Search{trace: t, net: net, backend: b, outputs: outputs, dtype: t.dtype()}
	if s.program, err = search.NewStep(t.Settings.search(), net, t.Settings.Steps); err != nil {
		return nil, err
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
	batches := make([][]*tensors.Tensor, s.trace.Settings.Steps)
	for step := range batches {
		batches[step] = s.feed(step).List()
	}
	for _, t := range slices.Concat(append(batches, state)...) {
		if err := t.MaterializeOnDevice(s.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying to the device: %w", err)
		}
	}
	begin := time.Now()
	for step, batch := range batches {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		var out []*tensors.Tensor
		if state, out, err = s.call(state, batch); err != nil {
			return nil, 0, fmt.Errorf("step %d: %w", step+1, err)
		}
		loss, err := arrayOf(out[0])
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

// feed is what step, from 0, is given.
func (s *Search) feed(step int) search.Feed[*tensors.Tensor] {
	t := s.trace
	theta := []int{len(s.net.Config.Space.Edges), len(t.Settings.Ops)}
	pick := func(name string, rank int) Array {
		a, ok := t.Arrays[name]
		if !ok { // noise 0, which nobody looks at
			a = Array{Dims: theta, Values: make([]float64, size(theta))}
		}
		if len(a.Dims) > rank {
			n := size(a.Dims[1:])
			a.Dims, a.Values = a.Dims[1:], a.Values[step*n:(step+1)*n]
		}
		return a
	}
	images := func(part string) *tensors.Tensor { return s.tensor(pick(part+"_images", 4).permuted(0, 2, 3, 1)) }
	labels := func(part string) *tensors.Tensor { return pick(part+"_labels", 1).labels() }
	noise := slices.Concat(pick("noise/train", 2).Values, pick("noise/valid", 2).Values)
	number := func(x float64) *tensors.Tensor { return s.tensor(Array{Values: []float64{x}}) }
	return search.Feed[*tensors.Tensor]{
		TrainImages: images("train"), TrainLabels: labels("train"),
		ValidImages: images("valid"), ValidLabels: labels("valid"),
		Draws: []*tensors.Tensor{s.tensor(Array{Dims: append([]int{2}, theta...), Values: noise})},
		Rate:  number(t.Settings.LearningRate), Tau: number(t.Settings.Tau),
		Done: number(float64(step)), Warmup: number(0),
	}
}

// tensor is an array in the type of the computation.
func (s *Search) tensor(a Array) *tensors.Tensor { return a.tensor(s.dtype) }

func (a Array) tensor(dtype dtypes.DType) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(a.Values), a.Dims...)
	}
	single := make([]float32, len(a.Values))
	for i, x := range a.Values {
		single[i] = float32(x)
	}
	return tensors.FromFlatDataAndDimensions(single, a.Dims...)
}

// labels are an array's values as int32.
func (a Array) labels() *tensors.Tensor {
	ints := make([]int32, len(a.Values))
	for i, x := range a.Values {
		ints[i] = int32(x)
	}
	return tensors.FromFlatDataAndDimensions(ints, len(ints))
}

// arrayOf reads a tensor.
func arrayOf(t *tensors.Tensor) (Array, error) {
	dims := t.Shape().Dimensions
	if t.DType() == dtypes.Float64 {
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

// start is the state before the first step.
func (s *Search) start() ([]*tensors.Tensor, error) {
	var weights, stats []*tensors.Tensor
	for _, w := range s.net.Weights() {
		a := s.trace.Arrays["weights/"+w.Path]
		ours := a.permuted(toOurs(a.Dims)...)
		if !slices.Equal(ours.Dims, w.Dims) {
			return nil, fmt.Errorf("weights/%s: found shape %v, expected %v", w.Path, a.Dims, foreign(w.Dims))
		}
		weights = append(weights, s.tensor(ours))
	}
	for _, w := range s.net.Stats() {
		stats = append(stats, s.tensor(s.trace.stat(w)))
	}
	s.sampled = map[string]bool{}
	theta := s.tensor(s.trace.Arrays[methods[s.trace.Settings.Method].parameter])
	return s.program.State(weights, stats, []*tensors.Tensor{theta}), nil
}

// call computes a step of a batch. The old state is used up.
func (s *Search) call(state, batch []*tensors.Tensor) (next, rest []*tensors.Tensor, err error) {
	args := make([]any, 0, len(batch))
	for _, t := range batch {
		args = append(args, t)
	}
	for _, t := range state {
		if err := t.MaterializeOnDevice(s.backend, false, 0); err != nil {
			return nil, nil, fmt.Errorf("copying the state to the device: %w", err)
		}
	}
	return device.Step(s.backend, s.exec, args, state)
}

// observe computes a step, from 0, and returns all that a trace may hold of it,
// by its name and in its layout.
func (s *Search) observe(state []*tensors.Tensor, step int) (
	next []*tensors.Tensor, found map[string]Array, err error,
) {
	m := methods[s.trace.Settings.Method]
	advance := s.whole
	switch {
	case s.trace.Settings.leavesBetween():
		advance = s.halves
	case s.trace.Settings.leaves():
		advance = s.leaving
	}
	next, rest, err := advance(state, s.feed(step))
	if err != nil {
		return nil, nil, err
	}
	found = map[string]Array{}
	take := func(name string, t *tensors.Tensor, isWeight bool) {
		a, readErr := arrayOf(t)
		err = errors.Join(err, readErr)
		if i := slices.IndexFunc(a.Values, notFinite); i >= 0 && err == nil {
			err = fmt.Errorf("our %s has the element %v: the search diverges from where the trace starts", name,
				a.Values[i])
		}
		if isWeight {
			a = a.permuted(toForeign(a.Dims)...)
		}
		found[name] = a
	}
	for i, name := range []string{"loss", "valid_loss", "logits", "valid_logits", "grad/" + m.parameter} {
		take(name, rest[i], false)
	}
	after := search.Cut(s.program, next)
	take("after/"+m.parameter, after.Theta[0], false)
	for i, w := range s.net.Weights() {
		take("grad/"+w.Path, rest[5+i], true)
		take("after/weights/"+w.Path, after.Weights[i], true)
	}
	for i, w := range s.net.Stats() {
		take("after/stats/"+w.Path, after.Stats[i], false)
	}
	return next, found, err
}

// whole computes a step at once.
func (s *Search) whole(state []*tensors.Tensor, f search.Feed[*tensors.Tensor]) (
	next, rest []*tensors.Tensor, err error,
) {
	return s.call(state, f.List())
}

// leaving computes a step at once, and leaves weights alone that nobody sampled: the
// architecture came first.
func (s *Search) leaving(state []*tensors.Tensor, f search.Feed[*tensors.Tensor]) (
	next, rest []*tensors.Tensor, err error,
) {
	if err := s.notePass(search.Cut(s.program, state).Theta[0], f, 1); err != nil {
		return nil, nil, err
	}
	old, err := s.copied(state)
	if err != nil {
		return nil, nil, err
	}
	if next, rest, err = s.call(state, f.List()); err != nil {
		return nil, nil, err
	}
	return next, rest, s.putBack(next, old, rest[len(rest)-1])
}

// halves computes a step whose weights go first and leaves those alone that nobody
// sampled, before the architecture's pass sees them. The same program does it in
// three parts: a step while the architecture rests, which moves the weights; one at
// learning rate 0 with the validation batch in both places, which moves the
// architecture; and one more of these while it rests, which moves the running
// statistics as the architecture's pass does.
func (s *Search) halves(state []*tensors.Tensor, f search.Feed[*tensors.Tensor]) (
	next, rest []*tensors.Tensor, err error,
) {
	old, err := s.copied(state)
	if err != nil {
		return nil, nil, err
	}
	one, zero := s.tensor(Array{Values: []float64{1}}), s.tensor(Array{Values: []float64{0}})
	weights := f
	weights.Warmup = one
	moved, rest, err := s.call(state, weights.List())
	if err != nil {
		return nil, nil, err
	}
	if err := s.putBack(moved, old, rest[len(rest)-1]); err != nil {
		return nil, nil, err
	}
	if err := s.notePass(search.Cut(s.program, old).Theta[0], f, 1); err != nil {
		return nil, nil, err
	}
	again := f
	again.TrainImages, again.TrainLabels, again.Rate, again.Warmup = f.ValidImages, f.ValidLabels, zero, zero
	valid, err := s.draws(f, 1)
	if err != nil {
		return nil, nil, err
	}
	again.Draws = []*tensors.Tensor{s.tensor(Array{
		Dims: append([]int{2}, valid.Dims...), Values: slices.Concat(valid.Values, valid.Values),
	})}
	after, outcome, err := s.callCopy(moved, again)
	if err != nil {
		return nil, nil, err
	}
	again.Warmup = one
	rested, _, err := s.callCopy(moved, again)
	if err != nil {
		return nil, nil, err
	}
	const validLoss, validLogits, gradTheta = 1, 3, 4 // of rest, see step
	for _, i := range []int{validLoss, validLogits, gradTheta} {
		rest[i] = outcome[i]
	}
	n := 2 * len(s.net.Weights()) // weights and velocity, then statistics, then the architecture
	stats := n + len(s.net.Stats())
	return slices.Concat(moved[:n], rested[n:stats], after[stats:]), rest, nil
}

// callCopy is call without using the state up.
func (s *Search) callCopy(state []*tensors.Tensor, f search.Feed[*tensors.Tensor]) (
	next, rest []*tensors.Tensor, err error,
) {
	own, err := s.copied(state)
	if err != nil {
		return nil, nil, err
	}
	return s.call(own, f.List())
}

// copied are tensors of their own with the same elements.
func (s *Search) copied(tensors []*tensors.Tensor) ([]*tensors.Tensor, error) {
	out := slices.Clone(tensors)
	for i, t := range tensors {
		a, err := arrayOf(t)
		if err != nil {
			return nil, err
		}
		out[i] = s.tensor(a)
	}
	return out, nil
}

// draws are the noise of a pass, 0 the weights' and 1 the architecture's.
func (s *Search) draws(f search.Feed[*tensors.Tensor], which int) (Array, error) {
	a, err := arrayOf(f.Draws[0])
	if err != nil {
		return a, err
	}
	n := len(a.Values) / 2
	return Array{Type: a.Type, Dims: a.Dims[1:], Values: a.Values[which*n : (which+1)*n]}, nil
}

// notePass notes which operations a pass samples at α or θ: on each edge that with
// the largest log θ + noise, the first of equals.
func (s *Search) notePass(theta *tensors.Tensor, f search.Feed[*tensors.Tensor], which int) error {
	logits, err := arrayOf(theta)
	if err != nil {
		return err
	}
	noise, err := s.draws(f, which)
	if err != nil {
		return err
	}
	ops := s.trace.Settings.Ops
	for e, edge := range s.net.Config.Space.Edges {
		best, most := 0, math.Inf(-1)
		for o := range ops {
			x := logits.Values[e*len(ops)+o] // α: its softmax differs by a number for the whole edge
			if methods[s.trace.Settings.Method].parameter == "theta" {
				x = math.Log(x)
			}
			if x += noise.Values[e*len(ops)+o]; x > most {
				best, most = o, x
			}
		}
		s.sampled[edge.String()+"/"+ops[best]] = true
	}
	return nil
}

// putBack undoes what momentum and weight decay did to the weights of operations
// without a gradient, see Settings.Unused. chosen are those of the weights' pass.
func (s *Search) putBack(next, old []*tensors.Tensor, chosen *tensors.Tensor) error {
	hot, err := arrayOf(chosen)
	if err != nil {
		return err
	}
	unused := map[string]bool{} // "2<-0/nor_conv_1x1"
	ops := s.trace.Settings.Ops
	for e, edge := range s.net.Config.Space.Edges {
		for o, op := range ops {
			name := edge.String() + "/" + op
			if hot.Values[e*len(ops)+o] != 0 {
				s.sampled[name] = true
				continue
			}
			unused[name] = s.trace.Settings.Unused == unusedSkip || !s.sampled[name]
		}
	}
	n := len(s.net.Weights())
	for i, w := range s.net.Weights() {
		parts := strings.Split(w.Path, "/") // cells/0/2<-0/nor_conv_1x1/conv
		if len(parts) > 4 && unused[parts[2]+"/"+parts[3]] {
			next[i], next[n+i] = old[i], old[n+i]
		}
	}
	return nil
}

// step is the step of a search as a graph: the new state, then the training and
// validation losses, and, for a comparison, the logits of both, the
// architecture's gradient, the weights' gradients and what was chosen in the
// weights' pass.
func (s *Search) step(in []*Node) []*Node {
	next, o := s.program.Graph(in)
	out := append(next, o.TrainLoss, o.ValidLoss)
	if !s.outputs {
		return out
	}
	out = append(out, o.TrainLogits, o.ValidLogits, o.GradTheta[0])
	return slices.Concat(out, o.GradW, o.Chosen)
}
