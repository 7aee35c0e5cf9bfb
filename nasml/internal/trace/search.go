package trace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

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

// NewSearch prepares the steps of a trace, with or without outputs. It compiles when it first runs.
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

// Train computes all steps. It returns their training losses and the time that they took, see [Timed]. The first call
// compiles.
func (s *Search) Train(ctx context.Context) (losses []float64, took time.Duration, err error) {
	state, err := s.start()
	if err != nil {
		return nil, 0, err
	}
	batches := make([][]*tensors.Tensor, s.trace.Settings.Steps)
	for step := range batches {
		batches[step] = s.feed(step).List()
	}
	seen, took, err := Timed(ctx, s.backend, s.exec, batches, state)
	for _, step := range seen {
		loss, readErr := device.Values(step[0])
		losses, err = append(losses, loss...), errors.Join(err, readErr)
	}
	return losses, took, err
}

// Timed takes a step for each of feeds and returns what each gave besides its state, the loss first. The time is from
// inputs on the device to the last loss in memory; each is read as a program does that prints it. If ctx is cancelled
// it stops after the current step.
func Timed(
	ctx context.Context, b compute.Backend, exec *Exec, feeds [][]*tensors.Tensor, state []*tensors.Tensor,
) (all [][]*tensors.Tensor, took time.Duration, err error) {
	for _, t := range slices.Concat(append(feeds, state)...) {
		if err := t.MaterializeOnDevice(b, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying to the device: %w", err)
		}
	}
	begin := time.Now()
	for step, feed := range feeds {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		next, seen, err := device.Step(b, exec, anys(feed), state)
		if err != nil {
			return nil, 0, fmt.Errorf("step %d: %w", step+1, err)
		}
		state, all = next, append(all, seen)
		if _, err := device.Values(seen[0]); err != nil {
			return nil, 0, fmt.Errorf("reading the loss: %w", err)
		}
	}
	took = time.Since(begin)
	if err := device.Free(slices.Concat(append(feeds, state)...)...); err != nil {
		return nil, 0, fmt.Errorf("freeing the state: %w", err)
	}
	return all, took, nil
}

func (s *Search) feed(step int) search.Inputs[*tensors.Tensor] {
	t := s.trace
	images := func(part string) *tensors.Tensor {
		return s.tensor(t.at(part+"_images", 4, step).permuted(0, 2, 3, 1))
	}
	labels := func(part string) *tensors.Tensor { return t.at(part+"_labels", 1, step).labels() }
	return search.Inputs[*tensors.Tensor]{
		TrainImages: images("train"), TrainLabels: labels("train"),
		ValidImages: images("valid"), ValidLabels: labels("valid"),
		Draws: s.draws(s.noise("train", step), s.noise("valid", step)),
		Rate:  s.tensor(scalar(t.Settings.LearningRate)), Tau: s.tensor(scalar(t.Settings.Tau)),
		Done: s.tensor(scalar(float64(step))), Warmup: s.tensor(scalar(0)),
	}
}

// at is an array at a step, from 0. rank is that of a single step's array.
func (t *Trace) at(name string, rank, step int) Array {
	if a := t.Arrays[name]; len(a.Dims) > rank {
		return a.at(step)
	}
	return t.Arrays[name]
}

func (s *Search) noise(part string, step int) Array {
	if !methods[s.trace.Settings.Method].sampled {
		return zeros(len(s.net.Config.Space.Edges), len(s.trace.Settings.Ops))
	}
	return s.trace.at("noise/"+part, 2, step)
}

func (s *Search) draws(train, valid Array) []*tensors.Tensor {
	both := Array{Dims: append([]int{2}, train.Dims...), Values: slices.Concat(train.Values, valid.Values)}
	return []*tensors.Tensor{s.tensor(both)}
}

func (s *Search) tensor(a Array) *tensors.Tensor { return a.tensor(s.dtype) }

func (a Array) tensor(dtype dtypes.DType) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(a.Values), a.Dims...)
	}
	return tensors.FromFlatDataAndDimensions(Converted[float32](a.Values), a.Dims...)
}

func (a Array) labels() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(Converted[int32](a.Values), len(a.Values))
}

func arrayOf(t *tensors.Tensor) (Array, error) {
	values, err := device.Values(t)
	kind := map[bool]string{false: "<f4", true: "<f8"}[t.DType() == dtypes.Float64]
	return Array{Type: kind, Dims: t.Shape().Dimensions, Values: values}, err
}

// foreign are the dimensions of one of our weights in a trace: convolutions [height, width, in, out] become [out, in,
// height, width], matrices are transposed.
func foreign(dims []int) []int {
	return Array{Dims: dims}.permuted(toForeign(dims)...).Dims
}

func toForeign(dims []int) []int {
	return [][]int{{}, {0}, {1, 0}, {0, 1, 2}, {3, 2, 0, 1}}[len(dims)]
}

func toOurs(dims []int) []int {
	return [][]int{{}, {0}, {1, 0}, {0, 1, 2}, {2, 3, 1, 0}}[len(dims)]
}

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

func (s *Search) call(state []*tensors.Tensor, f search.Inputs[*tensors.Tensor]) (
	next, rest []*tensors.Tensor, err error,
) {
	out, err := s.exec.Call(anys(f.List(), state)...)
	if err != nil {
		return nil, nil, err
	}
	return out[:len(state)], out[len(state):], nil
}

func anys(lists ...[]*tensors.Tensor) (all []any) {
	for _, t := range slices.Concat(lists...) {
		all = append(all, t)
	}
	return all
}

// observe computes a step, from 0, and returns its arrays by name, in the trace's layout.
func (s *Search) observe(state []*tensors.Tensor, step int) (
	next []*tensors.Tensor, found map[string]Array, err error,
) {
	next, rest, err := s.advance(state, step)
	if err != nil {
		return nil, nil, err
	}
	read := reader{found: map[string]Array{}}
	parameter := methods[s.trace.Settings.Method].parameter
	for i, name := range []string{"loss", "valid_loss", "logits", "valid_logits", "grad/" + parameter} {
		read.take(name, rest[i])
	}
	after := search.Cut(s.program, next)
	read.take("after/"+parameter, after.Theta[0])
	for i, w := range s.net.Weights() {
		read.takeWeight("grad/"+w.Path, rest[5+i])
		read.takeWeight("after/weights/"+w.Path, after.Weights[i])
	}
	for i, w := range s.net.Stats() {
		read.take("after/stats/"+w.Path, after.Stats[i])
	}
	return next, read.found, read.finish()
}

// reader collects the arrays of a step by their names.
type reader struct {
	found map[string]Array
	errs  []error
}

func (r *reader) take(name string, t *tensors.Tensor) Array {
	a, err := arrayOf(t)
	r.found[name] = a
	r.errs = append(r.errs, err)
	return a
}

func (r *reader) takeWeight(name string, t *tensors.Tensor) Array {
	a := r.take(name, t)
	r.found[name] = a.permuted(toForeign(a.Dims)...)
	return r.found[name]
}

func (r *reader) finish() error {
	for _, name := range slices.Sorted(maps.Keys(r.found)) {
		values := r.found[name].Values
		if i := slices.IndexFunc(values, notFinite); i >= 0 {
			r.errs = append(r.errs, fmt.Errorf("our %s has the element %v: the search diverges from where the trace "+
				"starts", name, values[i]))
		}
	}
	return firstFew(r.errs)
}

// advance computes a step, from 0. Weights that were not sampled stay as they are, see Settings.Unused: they are
// restored after the step or, if the weights go first, before the architecture's pass.
func (s *Search) advance(state []*tensors.Tensor, step int) (next, rest []*tensors.Tensor, err error) {
	f := s.feed(step)
	switch {
	case !s.trace.Settings.leaves():
		return s.call(state, f)
	case s.trace.Settings.leavesBetween():
		return s.halves(state, f, s.noise("valid", step))
	}
	if err := s.notePass(state, s.noise("valid", step)); err != nil {
		return nil, nil, err
	}
	if next, rest, err = s.call(state, f); err != nil {
		return nil, nil, err
	}
	return next, rest, s.putBack(next, state, rest[len(rest)-1])
}

// halves computes a step whose weights go first and leaves those alone that nobody sampled, before the architecture's
// pass sees them. The same program does it in three parts: a step while the architecture rests, which moves the
// weights; one at learning rate 0 with the validation batch in both places, which moves the architecture; and one more
// of these while it rests, which moves the running statistics as the architecture's pass does. noise is that of the
// validation batch.
func (s *Search) halves(state []*tensors.Tensor, f search.Inputs[*tensors.Tensor], noise Array) (
	next, rest []*tensors.Tensor, err error,
) {
	one, zero := s.tensor(scalar(1)), s.tensor(scalar(0))
	weights := f
	weights.Warmup = one
	moved, rest, err := s.call(state, weights)
	if err != nil {
		return nil, nil, err
	}
	if err := s.putBack(moved, state, rest[len(rest)-1]); err != nil {
		return nil, nil, err
	}
	if err := s.notePass(state, noise); err != nil {
		return nil, nil, err
	}
	again := f
	again.TrainImages, again.TrainLabels, again.Rate, again.Warmup = f.ValidImages, f.ValidLabels, zero, zero
	again.Draws = s.draws(noise, noise)
	after, outcome, err := s.call(moved, again)
	if err != nil {
		return nil, nil, err
	}
	again.Warmup = one
	rested, _, err := s.call(moved, again)
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

// notePass records which operations the architecture's pass samples: on each edge the first largest log θ + noise.
func (s *Search) notePass(state []*tensors.Tensor, noise Array) error {
	logits, err := arrayOf(search.Cut(s.program, state).Theta[0])
	if err != nil {
		return err
	}
	if methods[s.trace.Settings.Method].parameter == "theta" { // log softmax(α) is α but for a number an edge
		for i, x := range logits.Values {
			logits.Values[i] = math.Log(x)
		}
	}
	floats.Add(logits.Values, noise.Values)
	ops := s.trace.Settings.Ops
	for e, edge := range s.net.Config.Space.Edges {
		s.sampled[edge.String()+"/"+ops[floats.MaxIdx(logits.Values[e*len(ops):(e+1)*len(ops)])]] = true
	}
	return nil
}

// putBack undoes momentum and weight decay for weights of operations without a gradient, see Settings.Unused. chosen
// are those of the weights' pass.
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

// step is the step of a search as a graph: the new state, then the training and validation losses, and, for a
// comparison, the logits of both, the architecture's gradient, the weights' gradients and what was chosen in the
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
