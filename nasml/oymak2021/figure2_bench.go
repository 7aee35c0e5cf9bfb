package oymak2021

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/runs"
)

// Figure2Work is the training behind one width of Figure 2, all its seeds and
// Δα in one graph, to be run again and again from the same start: what a
// benchmark times. It is the code that Figure2 runs.
type Figure2Work struct {
	*trainer
	start []*tensors.Tensor
}

// NewFigure2Work prepares the training of width k of a panel, "a" or "b". It
// is an error where p makes no sense and where the data cannot be had.
func NewFigure2Work(ctx context.Context, b compute.Backend, p Figure2Params, panel string, k int) (*Figure2Work, error) {
	p.Panels, p.Widths, p.DeepWidths = []string{panel}, []int{k}, nil
	if panel == "b" {
		p.Widths, p.DeepWidths = nil, []int{k}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	images, err := p.images(ctx)
	if err != nil {
		return nil, err
	}
	s := &sweep{net: p.network(panel, k), seeds: runs.Seeds(p.Seeds), deltas: p.DeltaAlphas}
	if err := s.setData(images); err != nil {
		return nil, err
	}
	t, err := s.trainer(b)
	if err != nil {
		return nil, err
	}
	return &Figure2Work{trainer: t, start: s.initialState()}, nil
}

// Close frees the compiled program.
func (w *Figure2Work) Close() { w.close() }

// Models is the number of networks that are trained together.
func (w *Figure2Work) Models() int { return len(w.seeds) * (1 + len(w.deltas)) }

// Steps is the number of updates of each network in all epochs.
func (w *Figure2Work) Steps() int { return w.net.Epochs * w.steps() }

// Train trains all networks from the start to the last epoch. It returns the
// mean loss of each in every epoch, [epoch][s·V + v], and the time from weights
// that stand on the device to losses that stand in memory. The first call
// compiles. Cancelling ctx ends it after the stretch under way.
func (w *Figure2Work) Train(ctx context.Context) (losses [][]float64, took time.Duration, err error) {
	for _, t := range w.start {
		if err := t.MaterializeOnDevice(w.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying the weights to the device: %w", err)
		}
	}
	p := &progress{state: w.start}
	begin := time.Now()
	for p.Epoch < w.net.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if err := w.advance(p); err != nil {
			return nil, 0, fmt.Errorf("epoch %d: %w", p.Epoch+1, err)
		}
	}
	took = time.Since(begin)
	for _, t := range p.state {
		if err := t.FinalizeAll(); err != nil {
			return nil, 0, fmt.Errorf("freeing the weights: %w", err)
		}
	}
	return p.Losses, took, nil
}

// Inputs are the arrays that the training works on, for a program that is to
// compute the same: x [n, d], y [n], the head v [k] of panel (a), alpha [S, V],
// order [epochs, steps, S, B], weight [steps, B] and the initial weights
// w0, w1, … [S, V, out, in].
func (w *Figure2Work) Inputs() map[string]*tensors.Tensor {
	s := w.sweep
	in := map[string]*tensors.Tensor{
		"x": s.x, "y": s.y, "weight": w.weights, "order": w.orders(),
		"alpha": s.tensor(s.alphas(), len(s.seeds), 1+len(s.deltas)),
		"v":     s.tensor(headWeights(s.net.Width, s.net.C0), s.net.Width),
	}
	for l := range s.net.layers(s.d) {
		in[fmt.Sprintf("w%d", l)] = w.start[l]
	}
	return in
}

// orders joins the orders of all epochs.
func (w *Figure2Work) orders() *tensors.Tensor {
	s := w.sweep
	var flat []int32
	for epoch := range s.net.Epochs {
		order := s.order(epoch)
		flat = append(flat, tensors.MustCopyFlatData[int32](order)...)
		order.MustFinalizeAll()
	}
	return tensors.FromFlatDataAndDimensions(flat, s.net.Epochs, s.steps(), len(s.seeds), s.net.Batch)
}
