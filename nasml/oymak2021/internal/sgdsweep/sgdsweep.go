// Package sgdsweep trains the networks of Oymak+ 2021, Figure 2, by stochastic gradient descent: a sweep of seeds and
// of perturbed architecture parameters, all in one graph, and measures how far the weights of θ_α and θ_{α+Δα} end
// apart.
package sgdsweep

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/trial"
)

// Sweep is one batched training: S seeds with V architecture parameters each, of one network, in one graph.
type Sweep struct {
	net    Network
	seeds  []uint64
	deltas []float64 // variants 1…V−1 are α + deltas; variant 0 is α
	x, y   *tensors.Tensor
	n, d   int // examples, input features that are not always 0
	fanIn  int // input features as He's initialization counts them
	active []int
	sparse bool // most numbers of x are 0
}

// Pair are two trainings of a sweep: with the α of a seed and with α + Δα.
type Pair struct {
	Seed       uint64
	DeltaAlpha float64
}

// New is the smallest rectangle of seeds × Δα that holds the pairs. It returns an error if the images leave nothing to
// learn from.
func New(net Network, im *pixels.Images, pairs []Pair) (*Sweep, error) {
	s := &Sweep{net: net}
	for _, p := range pairs {
		if !slices.Contains(s.seeds, p.Seed) {
			s.seeds = append(s.seeds, p.Seed)
		}
		if !slices.Contains(s.deltas, p.DeltaAlpha) {
			s.deltas = append(s.deltas, p.DeltaAlpha)
		}
	}
	return s, s.setExamples(im)
}

// Results are the numbers of each pair: its α, the normalized distance ‖θ_α − θ_{α+Δα}‖₂/Δα, and both training losses
// in the last epoch.
func (s *Sweep) Results(pairs []Pair, p *Progress) ([]trial.Result, error) {
	distances, err := s.distances(p)
	if err != nil {
		return nil, err
	}
	variants := 1 + len(s.deltas)
	last := p.Losses[len(p.Losses)-1]
	results := make([]trial.Result, len(pairs))
	for i, pair := range pairs {
		j, v := slices.Index(s.seeds, pair.Seed), slices.Index(s.deltas, pair.DeltaAlpha)
		results[i] = trial.Result{Values: map[string]float64{
			"alpha":          alphaOf(pair.Seed),
			"distance":       distances[j][v] / pair.DeltaAlpha,
			"loss":           last[j*variants],
			"loss_perturbed": last[j*variants+v+1],
		}}
	}
	return results, nil
}

// alphaOf draws the architecture parameter of a seed, uniform in [0, 1].
func alphaOf(seed uint64) float64 { return trial.RNG(seed, "alpha").Float64() }

// perturbed is α + Δα; if that leaves [0, 1] and BeyondOne is "reflect", it is α − Δα, at the same distance.
func (n Network) perturbed(alpha, delta float64) float64 {
	if n.BeyondOne == "reflect" && alpha+delta > 1 {
		return alpha - delta
	}
	return alpha + delta
}

// alphas are the architecture parameters [S, V]: α and α + Δα of each seed.
func (s *Sweep) alphas() []float64 {
	var out []float64
	for _, seed := range s.seeds {
		alpha := alphaOf(seed)
		out = append(out, alpha)
		for _, delta := range s.deltas {
			out = append(out, s.net.perturbed(alpha, delta))
		}
	}
	return out
}

// heWeights draws W_l of a seed, [d_{l+1}, d_l], from N(0, 2/d_l) (He+ 2015). A row of the first layer is drawn in full
// and then restricted to the active inputs, so that leaving out inputs that are always 0 changes no number.
func (s *Sweep) heWeights(seed uint64, layer, out, in int) []float64 {
	if layer == 0 {
		in = s.fanIn
	}
	w := trial.Normals(trial.RNG(seed, "init", fmt.Sprint(layer)), out*in, math.Sqrt(2/float64(in)))
	if layer > 0 {
		return w
	}
	var kept []float64
	for row := range slices.Chunk(w, in) {
		for _, i := range s.active {
			kept = append(kept, row[i])
		}
	}
	return kept
}

// Start is where a sweep begins.
func (s *Sweep) Start() *Progress { return &Progress{Layout: layout, state: s.initialState()} }

// initialState is the state before training: He weights, equal for the V variants of a seed, and slots of zeros.
func (s *Sweep) initialState() []*tensors.Tensor {
	var state, slots []*tensors.Tensor
	for l, size := range s.net.layers(s.d) {
		dims := s.dims(l)
		flat := make([]float64, 0, len(s.seeds)*(1+len(s.deltas))*size[0]*size[1])
		for _, seed := range s.seeds {
			flat = s.repeated(flat, l, s.heWeights(seed, l, size[0], size[1]))
		}
		state = append(state, s.tensor(flat, dims...))
		for range s.net.rule().Slots {
			slots = append(slots, tensors.FromShape(shapes.Make(s.dtype(), dims...)))
		}
	}
	return append(state, slots...)
}

// dims are those of layer l of all models: [S, d, V, k] of the first, [S, V, d_{l+1}, d_l] of the others.
func (s *Sweep) dims(l int) []int {
	size, variants := s.net.layers(s.d)[l], 1+len(s.deltas)
	if l == 0 {
		return []int{len(s.seeds), size[1], variants, size[0]}
	}
	return []int{len(s.seeds), variants, size[0], size[1]}
}

// repeated appends a matrix [out, in] for all variants of a seed.
func (s *Sweep) repeated(flat []float64, l int, w []float64) []float64 {
	if l > 0 {
		for range 1 + len(s.deltas) {
			flat = append(flat, w...)
		}
		return flat
	}
	for i := range s.d {
		for range 1 + len(s.deltas) {
			for row := range s.net.Width {
				flat = append(flat, w[row*s.d+i])
			}
		}
	}
	return flat
}

// matrix is layer l of model (j, v) of a state, [out, in].
func (s *Sweep) matrix(flat []float64, l, j, v int) []float64 {
	size, variants := s.net.layers(s.d)[l], 1+len(s.deltas)
	if n := size[0] * size[1]; l > 0 {
		return flat[(j*variants+v)*n:][:n]
	}
	w := make([]float64, 0, size[0]*size[1])
	for row := range size[0] {
		for i := range size[1] {
			w = append(w, flat[((j*size[1]+i)*variants+v)*size[0]+row])
		}
	}
	return w
}

func (s *Sweep) dtype() dtypes.DType {
	if s.net.Precision == "float64" {
		return dtypes.Float64
	}
	return dtypes.Float32
}

// tensor converts float64 values to a tensor of the sweep's precision.
func (s *Sweep) tensor(flat []float64, dims ...int) *tensors.Tensor {
	if s.dtype() == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(flat, dims...)
	}
	single := make([]float32, len(flat))
	for i, v := range flat {
		single[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(single, dims...)
}

// steps is the number of batches of an epoch; the last one may be smaller.
func (s *Sweep) steps() int { return (s.n + s.net.Batch - 1) / s.net.Batch }

// Batches is the number of batches from the start to the last epoch.
func (s *Sweep) Batches() int { return s.net.Epochs * s.steps() }

// Done is the number of batches that were trained on up to p.
func (s *Sweep) Done(p *Progress) int { return p.Epoch*s.steps() + p.Step }

// order draws the examples of every batch of an epoch, [steps, S, B], by one permutation a seed. It depends on seed and
// epoch alone: a resumed run needs no generator state, and α and α+Δα see the same batches.
func (s *Sweep) order(epoch int) *tensors.Tensor {
	steps, size := s.steps(), s.net.Batch
	flat := make([]int32, steps*len(s.seeds)*size)
	for j, seed := range s.seeds {
		for i, row := range trial.RNG(seed, "order", fmt.Sprint(epoch)).Perm(s.n) {
			flat[(i/size*len(s.seeds)+j)*size+i%size] = int32(row)
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, steps, len(s.seeds), size)
}

// weights are batch.weight of every batch, [steps, B].
func (s *Sweep) weights() *tensors.Tensor {
	steps, size := s.steps(), s.net.Batch
	flat := make([]float64, steps*size)
	for i := range s.n {
		flat[i] = 1 / float64(min(size, s.n-i/size*size))
	}
	return s.tensor(flat, steps, size)
}

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
		flat, err := device.Values(w.start[l])
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
