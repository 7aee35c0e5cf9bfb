package sgdsweep

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
)

// Work is a sweep that a benchmark runs again and again from the same start, by the code that trains for the figure.
type Work struct {
	t     *trainer
	start []*tensors.Tensor
}

// Work prepares a sweep for a benchmark.
func (s *Sweep) Work(b compute.Backend) (*Work, error) {
	t, err := s.trainer(b)
	if err != nil {
		return nil, err
	}
	return &Work{t: t, start: s.initialState()}, nil
}

// Close frees the compiled program.
func (w *Work) Close() { w.t.exec.Finalize() }

// Models is the number of networks that are trained together.
func (w *Work) Models() int { return len(w.t.seeds) * (1 + len(w.t.deltas)) }

// Steps is the number of updates of each network in all epochs.
func (w *Work) Steps() int { return w.t.Batches() }

// Train trains all networks from the start to the last epoch. It returns the mean loss of each in every epoch,
// [epoch][s·V + v], and the time from weights on the device to losses in memory. The first call compiles. If ctx is
// cancelled it stops after the stretch under way.
func (w *Work) Train(ctx context.Context) (losses [][]float64, took time.Duration, err error) {
	for _, x := range w.start {
		if err := x.MaterializeOnDevice(w.t.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying the weights to the device: %w", err)
		}
	}
	p := &Progress{state: w.start}
	begin := time.Now()
	if err := w.t.run(ctx, p, func() error { return nil }); err != nil {
		return nil, 0, err
	}
	took = time.Since(begin)
	for _, x := range p.state {
		if err := x.FinalizeAll(); err != nil {
			return nil, 0, fmt.Errorf("freeing the weights: %w", err)
		}
	}
	return p.Losses, took, nil
}

// Inputs are the arrays of the training, for a program that computes the same: x [n, d], y [n], the head v [k] of panel
// (a), alpha [S, V], order [epochs, steps, S, B], weight [steps, B] and the initial weights w0, w1, … [S, V, out, in].
func (w *Work) Inputs() (map[string]*tensors.Tensor, error) {
	s := w.t.Sweep
	in := map[string]*tensors.Tensor{
		"x": s.x, "y": s.y, "weight": w.t.weights, "order": w.orders(),
		"alpha": s.tensor(s.alphas(), len(s.seeds), 1+len(s.deltas)),
		"v":     s.tensor(headWeights(s.net.Width, s.net.C0), s.net.Width),
	}
	for l, size := range s.net.layers(s.d) {
		flat, err := float64s(w.start[l])
		if err != nil {
			return nil, err
		}
		var all []float64
		for j := range s.seeds {
			for v := range 1 + len(s.deltas) {
				all = append(all, s.matrix(flat, l, j, v)...)
			}
		}
		in[fmt.Sprintf("w%d", l)] = s.tensor(all, len(s.seeds), 1+len(s.deltas), size[0], size[1])
	}
	return in, nil
}

// orders joins the orders of all epochs.
func (w *Work) orders() *tensors.Tensor {
	s := w.t.Sweep
	var flat []int32
	for epoch := range s.net.Epochs {
		order := s.order(epoch)
		flat = append(flat, tensors.MustCopyFlatData[int32](order)...)
		order.MustFinalizeAll()
	}
	return tensors.FromFlatDataAndDimensions(flat, s.net.Epochs, s.steps(), len(s.seeds), s.net.Batch)
}
