package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// dartsRun is our program on a case.
type dartsRun struct {
	work    *dartsWork
	backend compute.Backend
	exec    *Exec
	full    bool // the step gives its gradients, too

	foreseen func() // ends the loading of programs of the cache
}

func (r *dartsRun) close() {
	r.exec.Finalize()
	r.foreseen()
}

func newDartsRun(b compute.Backend, w *dartsWork, full bool) (*dartsRun, error) {
	r := &dartsRun{work: w, backend: b, full: full, foreseen: backend.Foresee(b, []any{w.DartsCase, full})}
	var err error
	if r.exec, err = NewExec(b, func(in []*Node) []*Node { return r.step(in) }); err != nil {
		r.foreseen()
		return nil, fmt.Errorf("building the step: %w", err)
	}
	return r, nil
}

// step is the graph of a step: new state, losses and, if full, the gradients of weights and architecture.
func (r *dartsRun) step(in []*Node) []*Node {
	w, all := r.work, in[5:]
	take := func(n int) []*Node {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	weights, blocks := len(w.Weights), len(w.Theta)
	state := bilevel.State{W: take(weights), Velocity: take(weights), Aux: take(len(w.net.Stats()))}
	state.Theta, state.Slots = take(blocks), take(2*blocks)
	loss := func(images, labels *Node) func(aux []*Node) bilevel.Loss {
		return func(aux []*Node) bilevel.Loss {
			return func(weights, alpha []*Node) (*Node, []*Node) {
				theta := slices.Clone(alpha)
				for i := range alpha {
					if w.Update == "" {
						theta[i] = Softmax(alpha[i], -1)
					}
				}
				o := w.net.Evaluate(supernet.Pass{
					Images: images, Theta: theta, Weights: weights, Stats: aux, Train: true,
				})
				_, loss := supernet.Score(o.Logits, labels)
				return loss, o.Stats
			}
		}
	}
	outer := in[3:5]
	if w.ERM {
		outer = in[1:3]
	}
	search := bilevel.Search{
		Settings: bilevel.Settings{
			Order: bilevel.ArchitectureFirst, Clip: w.Clip, Hypergradient: cmp.Or(w.Hypergradient, "first-order"),
		},
		SGD: bilevel.SGD{Momentum: w.Momentum, WeightDecay: w.WeightDecay, Together: true},
		Problem: func(aux []*Node) bilevel.Problem {
			return bilevel.Problem{Inner: loss(in[1], in[2])(aux), Outer: loss(outer[0], outer[1])(aux)}
		},
	}
	if blocks > 0 {
		search.Architecture, search.Done = slices.Repeat([]bilevel.Rule{w.rule()}, blocks), in[0]
	}
	next, seen := search.Step(state, Scalar(in[0].Graph(), in[0].DType(), w.LearningRate), nil)
	out := slices.Concat(next.W, next.Velocity, next.Aux, next.Theta, next.Slots, []*Node{seen.Train})
	if blocks > 0 {
		out = append(out, seen.Validation)
	}
	if r.full {
		out = slices.Concat(out, seen.GradW, seen.GradTheta)
	}
	return out
}

// rule updates the architecture. It always has two slots.
func (w *dartsWork) rule() bilevel.Rule {
	update := simplex.Updates[w.Update]
	if update == nil {
		return bilevel.DARTSAdam.Rule().At(w.ArchRate)
	}
	return bilevel.Each(2, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
		return update(theta, grad, w.ArchRate), own
	})
}

func (r *dartsRun) floats(values []float32, dims ...int) *tensors.Tensor {
	if !r.work.Double {
		return tensors.FromFlatDataAndDimensions(values, dims...)
	}
	double := make([]float64, len(values))
	for i, x := range values {
		double[i] = float64(x)
	}
	return tensors.FromFlatDataAndDimensions(double, dims...)
}

func (r *dartsRun) start() (state []*tensors.Tensor) {
	cut := func(name string, list []namedDims, copies int) (own, zero []*tensors.Tensor) {
		flat := tensors.MustCopyFlatData[float32](r.work.arrays[name])
		for _, n := range list {
			size := 1
			for _, d := range n.Dims {
				size *= d
			}
			own = append(own, r.floats(slices.Clone(flat[:size]), n.Dims...))
			flat = flat[size:]
		}
		for _, t := range own {
			for range copies {
				zero = append(zero, tensors.FromShape(t.Shape()))
			}
		}
		return own, zero
	}
	weights, zeros := cut("weights", r.work.Weights, 1)
	state = slices.Concat(weights, zeros)
	for _, s := range r.work.net.InitStats() {
		state = append(state, r.floats(tensors.MustCopyFlatData[float32](s), s.Shape().Dimensions...))
	}
	theta, zeros := cut("theta", r.work.Theta, 2)
	return slices.Concat(state, theta, zeros)
}

func (r *dartsRun) feeds() (all [][]*tensors.Tensor) {
	w := r.work
	for step := range w.Steps {
		feed := []*tensors.Tensor{r.floats([]float32{float32(step)})} // a scalar
		for _, part := range []string{"train", "valid"} {
			images := tensors.MustCopyFlatData[float32](w.arrays[part+"_images"])
			labels := tensors.MustCopyFlatData[int32](w.arrays[part+"_labels"])
			n := len(images) / w.Steps
			feed = append(feed, r.floats(images[step*n:(step+1)*n], w.Batch, w.Image, w.Image, 3),
				tensors.FromFlatDataAndDimensions(labels[step*w.Batch:(step+1)*w.Batch], w.Batch))
		}
		all = append(all, feed)
	}
	return all
}

// train computes all steps and returns what each gave besides its state. The time is from inputs on the device to the
// last result in memory.
func (r *dartsRun) train(ctx context.Context) (out [][]*tensors.Tensor, took time.Duration, err error) {
	state, feeds := r.start(), r.feeds()
	for _, t := range slices.Concat(append(feeds, state)...) {
		if err := t.MaterializeOnDevice(r.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying to the device: %w", err)
		}
	}
	begin := time.Now()
	for _, feed := range feeds {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		var args []any
		for _, t := range feed {
			args = append(args, t)
		}
		next, seen, err := device.Step(r.backend, r.exec, args, state)
		if err != nil {
			return nil, 0, err
		}
		state, out = next, append(out, seen)
		if _, err := numbers(seen[0]); err != nil { // as a program that prints its loss
			return nil, 0, fmt.Errorf("reading the loss: %w", err)
		}
	}
	took = time.Since(begin)
	for _, t := range slices.Concat(append(feeds, state)...) {
		if err := t.FinalizeAll(); err != nil {
			return nil, 0, fmt.Errorf("freeing the state: %w", err)
		}
	}
	return out, took, nil
}

func numbers(t *tensors.Tensor) ([]float64, error) {
	if t.DType() == dtypes.Float64 {
		return tensors.CopyFlatData[float64](t)
	}
	single, err := tensors.CopyFlatData[float32](t)
	out := make([]float64, len(single))
	for i, x := range single {
		out[i] = float64(x)
	}
	return out, err
}

func (r *dartsRun) losses(ctx context.Context) (t training, err error) {
	out, took, err := r.train(ctx)
	t.Seconds = took.Seconds()
	for _, step := range out {
		loss, readErr := numbers(step[0])
		err = errors.Join(err, readErr)
		t.Losses = append(t.Losses, loss...)
	}
	return t, err
}
