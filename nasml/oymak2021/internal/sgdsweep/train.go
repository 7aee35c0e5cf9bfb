package sgdsweep

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/internal/device"
)

// Progress is the state of a sweep: epochs done, with their mean losses [epoch][s·V + v], batches done of the epoch
// under way, with the sums of their losses, and the weights and slots after them.
type Progress struct {
	Epoch  int         `json:"epoch"`
	Losses [][]float64 `json:"losses"`
	Step   int         `json:"step"`
	Sum    []float64   `json:"sum"`
	Layout int         `json:"layout"` // of the state: layout
	state  []*tensors.Tensor
}

// layout is 2 since the first matrices stand side by side, [S, d, V, k].
const layout = 2

type trainer struct {
	*Sweep
	backend        compute.Backend
	exec           *Exec
	alpha, weights *tensors.Tensor
	order          *tensors.Tensor // of epoch orderOf
	orderOf        int
	loops          bool // a call may take more than one batch
	stretch        int  // batches in one call
}

func (s *Sweep) trainer(backend compute.Backend) (*trainer, error) {
	loops := backend.Name() == "xla" // GoMLX's Go backend (compute v0.1.2) fails on this loop: there a batch is a call
	exec, err := NewExec(backend, func(in []*Node) []*Node {
		p := pass{in[0], in[1], in[2], in[3], in[4], in[5], s.sparse}
		if loops {
			return s.net.stretch(p, in[6], in[7], in[8], in[9:])
		}
		loss, state := s.net.step(p.pick(in[6]), p.alpha, Add(p.before, in[6]), in[9:])
		return append(state, Add(in[8], loss))
	})
	if err != nil {
		return nil, fmt.Errorf("building the training graph: %w", err)
	}
	alpha := s.tensor(s.alphas(), len(s.seeds), 1+len(s.deltas), 1, 1)
	return &trainer{
		Sweep: s, backend: backend, exec: exec, alpha: alpha,
		weights: s.weights(), orderOf: -1, loops: loops, stretch: 1,
	}, nil
}

// Train runs the sweep from p to its last epoch. After every stretch it calls after, which may save p; an error of it,
// or of ctx, ends the training.
func (s *Sweep) Train(ctx context.Context, backend compute.Backend, p *Progress, after func() error) error {
	t, err := s.trainer(backend)
	if err != nil {
		return err
	}
	defer t.exec.Finalize()
	return t.run(ctx, p, after)
}

func (t *trainer) run(ctx context.Context, p *Progress, after func() error) error {
	for p.Epoch < t.net.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.advance(p); err != nil {
			return fmt.Errorf("epoch %d: %w", p.Epoch+1, err)
		}
		if err := after(); err != nil {
			return err
		}
	}
	return nil
}

// A call of the device cannot be interrupted, and each copies the weights once, so a stretch takes between these times:
// whole epochs for small networks, a few batches for the largest. How an epoch is cut changes no bit.
const shortest, longest = time.Second, 3 * time.Second

func (t *trainer) advance(p *Progress) error {
	begin, to := time.Now(), min(p.Step+t.stretch, t.steps())
	if err := t.call(p, to); err != nil {
		return err
	}
	switch took := time.Since(begin); {
	case took < shortest && t.loops:
		t.stretch = min(2*t.stretch, t.steps())
	case took > longest:
		t.stretch = max(1, t.stretch/2)
	}
	if p.Step = to; p.Step < t.steps() {
		return nil
	}
	floats.Scale(1/float64(t.steps()), p.Sum)
	p.Epoch, p.Losses, p.Step, p.Sum = p.Epoch+1, append(p.Losses, p.Sum), 0, nil
	return t.checkFinite(p.Losses[p.Epoch-1])
}

// call trains up to the batch to. The state is donated: the device may write
// the new weights over the old ones.
func (t *trainer) call(p *Progress, to int) error {
	t.setOrder(p.Epoch)
	if p.Sum == nil {
		p.Sum = make([]float64, len(t.seeds)*(1+len(t.deltas)))
	}
	sum := t.tensor(p.Sum, len(t.seeds), 1+len(t.deltas))
	args := []any{t.x, t.y, t.alpha, t.order, t.weights, int32(p.Epoch * t.steps()), int32(p.Step), int32(to), sum}
	next, report, err := device.Step(t.backend, t.exec, args, p.state)
	if err != nil {
		return err
	}
	p.state = next
	p.Sum, err = float64s(report[0])
	return err
}

func (t *trainer) setOrder(epoch int) {
	if t.orderOf == epoch {
		return
	}
	if t.order != nil {
		t.order.MustFinalizeAll()
	}
	t.order, t.orderOf = t.Sweep.order(epoch), epoch
}

// checkFinite refuses a diverged training: a NaN must not reach a figure.
func (s *Sweep) checkFinite(losses []float64) error {
	variants := 1 + len(s.deltas)
	for i, loss := range losses {
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return fmt.Errorf("the training of seed %d (α = %.4g, k = %d) diverged: loss %v; lower LearningRate "+
				"(now %v)", s.seeds[i/variants], s.alphas()[i], s.net.Width, loss, s.net.LearningRate)
		}
	}
	return nil
}

// distances are ‖θ_α − θ_{α+Δα}‖₂ over all trained weights, [S][V−1], summed in float64.
func (s *Sweep) distances(p *Progress) ([][]float64, error) {
	distances := make([][]float64, len(s.seeds))
	for j := range distances {
		distances[j] = make([]float64, len(s.deltas))
	}
	for l := range s.net.layers(s.d) {
		flat, err := float64s(p.state[l])
		if err != nil {
			return nil, err
		}
		for j, row := range distances {
			base := s.matrix(flat, l, j, 0)
			for v := range row {
				row[v] = math.Hypot(row[v], floats.Distance(base, s.matrix(flat, l, j, v+1), 2))
			}
		}
	}
	return distances, nil
}

func float64s(t *tensors.Tensor) ([]float64, error) {
	if t.DType() == dtypes.Float64 {
		return tensors.CopyFlatData[float64](t)
	}
	single, err := tensors.CopyFlatData[float32](t)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(single))
	for i, v := range single {
		out[i] = float64(v)
	}
	return out, nil
}

// Save writes p to a checkpoint.
func (p *Progress) Save(w io.Writer) error { return checkpoint.Write(w, p, p.state...) }

// Load reads a checkpoint of the same sweep into p, which is at its start. The error is checkpoint.ErrOther if it is of
// another one.
func (p *Progress) Load(r io.Reader) error {
	p.Layout = 0
	err := checkpoint.Read(r, p, p.state...)
	if err == nil && p.Layout != layout {
		err = fmt.Errorf("its weights are in layout %d, expected %d: %w", p.Layout, layout, checkpoint.ErrOther)
	}
	return err
}

// Bytes is the size of a checkpoint but for a few kilobytes.
func (p *Progress) Bytes() int64 {
	var size int64
	for _, t := range p.state {
		size += t.ByteSize()
	}
	return size
}
