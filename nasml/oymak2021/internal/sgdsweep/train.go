package sgdsweep

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/supernet"
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

// call trains up to the batch to. The state is donated: the device may write the new weights over the old ones.
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
	p.Sum, err = device.Values(report[0])
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
		flat, err := device.Values(p.state[l])
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

// Network says what is trained and how.
type Network struct {
	Panel        string    `json:"panel"` // "a": input layer of a shallow net, "b": four layers
	Width        int       `json:"width"` // k
	Activations  [2]string `json:"activations"`
	Output       bool      `json:"output_activation"` // panel b: σ_α also after the last layer
	C0           float64   `json:"c0"`                // panel a: v = ±√(c₀/k)
	Optimizer    string    `json:"optimizer"`
	LearningRate float64   `json:"learning_rate"`
	Momentum     float64   `json:"momentum"`
	Batch        int       `json:"batch"`
	Epochs       int       `json:"epochs"`
	Classes      []int     `json:"classes"`
	Examples     int       `json:"examples"`
	Labels       string    `json:"labels"`
	Inputs       string    `json:"inputs"`
	Loss         string    `json:"loss"`
	BeyondOne    string    `json:"beyond_one"`
	Precision    string    `json:"precision"`
}

// layers returns (output, input) sizes of the trained matrices for inputs of d
// features: k×d for panel (a), k×d, k/2×k, k/4×k/2, 1×k/4 for panel (b).
func (n Network) layers(d int) [][2]int {
	k := n.Width
	if n.Panel == "a" {
		return [][2]int{{k, d}}
	}
	return [][2]int{{k, d}, {k / 2, k}, {k / 4, k / 2}, {1, k / 4}}
}

// Weights is the number of trained weights for inputs of d features.
func (n Network) Weights(d int) int {
	sum := 0
	for _, l := range n.layers(d) {
		sum += l[0] * l[1]
	}
	return sum
}

// batch is a mini-batch for S seeds: x [S, B, d], y [S, B], and weight [B],
// 1/|batch| for an example and 0 for the padding of an epoch's last batch.
type batch struct {
	x, y, weight *Node
	sparse       bool // most numbers of x are 0
}

// first is W₁x [S, V, B, k] of all models. Their first matrices are side by side, [S, d, V, k]: the V variants of a
// seed are one product.
func (n Network) first(b batch, w *Node) *Node {
	if b.sparse {
		return kernels.Sparse(b.x, w)
	}
	return Einsum("sbd,sdvk->svbk", b.x, w)
}

// forward is the network's output [S, V, B] for S seeds with V values of the architecture parameter each: z = W₁x of
// all models, alpha [S, V, 1, 1], and the other weights W_l [S, V, d_{l+1}, d_l].
//
//	(a)  f_α(x) = vᵀσ_α(Wx),  v = √(c₀/k)·(1,…,1,−1,…,−1)   (Oymak+ 2021, Sec. 7a)
//	(b)  f_α(x) = σ_α(W₄σ_α(W₃σ_α(W₂σ_α(W₁x))))
func (n Network) forward(z, alpha *Node, w []*Node) *Node {
	sigma := func(z *Node) *Node {
		return supernet.MixActivations(n.Activations[0], n.Activations[1], alpha, z)
	}
	if n.Panel == "a" {
		v := ConvertDType(Const(z.Graph(), headWeights(n.Width, n.C0)), z.DType())
		return Einsum("svbk,k->svb", sigma(z), v)
	}
	for _, wl := range w {
		z = kernels.Product(sigma(z), wl)
	}
	if n.Output {
		z = sigma(z)
	}
	return Squeeze(z, 3)
}

// headWeights is the fixed head v of panel (a): +√(c₀/k) for the first half of the units, which are exchangeable at a
// random initialization, and −√(c₀/k) for the second.
func headWeights(k int, c0 float64) []float64 {
	size := []float64{math.Sqrt(c0 / float64(k))}
	return append(slices.Repeat(size, k/2), slices.Repeat([]float64{-size[0]}, k-k/2)...)
}

// losses is the weighted squared error of every model, [S, V]: Σ_b weight_b (f_b − y_b)², halved for the loss
// "half-mse". z is that of the first layer, w are the other weights.
func (n Network) losses(b batch, z, alpha *Node, w []*Node) *Node {
	f := n.forward(z, alpha, w)
	e := Sub(f, BroadcastToShape(ExpandAxes(b.y, 1), f.Shape()))
	loss := Einsum("svb,b->sv", Mul(e, e), b.weight)
	if n.Loss == "half-mse" {
		loss = MulScalar(loss, 0.5)
	}
	return loss
}

// gradients are those of each model's own loss [S, V], in the nodes of. The models share no weight, so the gradient of
// the sum of the losses has them all.
func gradients(loss *Node, of []*Node) []*Node {
	total := Einsum("sv,sv->", loss, OnesLike(loss)) // a dot: go-xla cannot reduce inside a loop
	return Gradient(total, of...)
}

// optimizers by name. sgd: w ← w − η∇. momentum: m ← μm + ∇, w ← w − ηm (as torch.optim.SGD). adam: Kingma & Ba 2015,
// Algorithm 1, β = (0.9, 0.999), ε = 1e-8.
var optimizers = map[string]func(n Network) bilevel.Rule{
	"sgd": func(n Network) bilevel.Rule {
		return bilevel.Each(0, func(w, grad *Node, _ []*Node, _ bilevel.Move) (*Node, []*Node) {
			return Sub(w, MulScalar(grad, n.LearningRate)), nil
		})
	},
	"momentum": func(n Network) bilevel.Rule {
		return bilevel.SGD{Momentum: n.Momentum}.Rule().At(n.LearningRate)
	},
	"adam": func(n Network) bilevel.Rule {
		return bilevel.Adam{Beta1: 0.9, Beta2: 0.999}.Rule().At(n.LearningRate)
	},
}

func (n Network) rule() bilevel.Rule { return optimizers[n.Optimizer](n) }

// pass has the inputs of a stretch of training: all examples, the batches of an epoch, and the number of updates before
// it.
type pass struct {
	x, y, alpha   *Node // [n, d], [n], [S, V, 1, 1]
	order, weight *Node // [steps, S, B] int32 picks the examples, [steps, B] is batch.weight
	before        *Node // int32
	sparse        bool  // as of a batch
}

func (p pass) nodes() []*Node { return []*Node{p.x, p.y, p.alpha, p.order, p.weight, p.before} }

// stretch trains on the batches from ≤ i < to of an epoch inside one loop of the device. state holds the weights, then
// the slots; sum [S, V] adds up the losses. It returns the new state, then sum.
func (n Network) stretch(p pass, from, to, sum *Node, state []*Node) []*Node {
	g := p.x.Graph()
	loop := slices.Concat([]*Node{from, to, sum}, p.nodes(), state)
	parameters := func(g *Graph) []*Node {
		all := make([]*Node, len(loop))
		for j, node := range loop {
			all[j] = Parameter(g, fmt.Sprintf("p%d", j), node.Shape())
		}
		return all
	}
	cond := NewClosure(g, func(g *Graph) []*Node {
		all := parameters(g)
		return []*Node{LessThan(all[0], all[1])}
	})
	body := NewClosure(g, func(g *Graph) []*Node {
		all := parameters(g)
		i, p, state := all[0], pass{all[3], all[4], all[5], all[6], all[7], all[8], p.sparse}, all[9:]
		loss, state := n.step(p.pick(i), p.alpha, Add(p.before, i), state)
		return slices.Concat([]*Node{AddScalar(i, 1), all[1], Add(all[2], loss)}, p.nodes(), state)
	})
	out := While(cond, body, loop...)
	return append(out[9:], out[2])
}

func (p pass) pick(i *Node) batch {
	at := Reshape(i, 1)
	rows := ExpandAxes(Gather(p.order, at), -1) // [S, B, 1]
	return batch{x: Gather(p.x, rows), y: Gather(p.y, rows), weight: Gather(p.weight, at), sparse: p.sparse}
}

// step is one update of every model. state holds all weights, then their slots.
func (n Network) step(b batch, alpha, step *Node, state []*Node) (loss *Node, next []*Node) {
	rule := n.rule()
	layers := len(state) / (1 + rule.Slots)
	w := state[:layers]
	z := n.first(b, w[0])
	loss = n.losses(b, z, alpha, w[1:])
	of, inOnePass := slices.Clone(w), b.sparse && n.Optimizer == "sgd"
	if inOnePass {
		of[0] = z
	}
	m := bilevel.Move{Params: w, Grads: gradients(loss, of), Slots: state[layers:], Done: step}
	if inOnePass {
		next = append(next, kernels.SparseDescent(b.x, w[0], m.Grads[0], n.LearningRate))
		m.Params, m.Grads = w[1:], m.Grads[1:]
	}
	w, slots := rule.Step(n.Optimizer, m)
	return loss, slices.Concat(next, w, slots)
}

// setExamples turns labelled images into the inputs and targets of a sweep: y [n], and x [n, d] restricted to the
// pixels that are not 0 in every image; the weights of the others receive no gradient.
func (s *Sweep) setExamples(im *pixels.Images) error {
	x := make([]float64, im.Len()*im.Size)
	for i := range im.Len() {
		pixels.Scale(s.net.Inputs, im.Image(i), x[i*im.Size:(i+1)*im.Size])
	}
	s.n, s.fanIn, s.active = im.Len(), im.Size, activeColumns(x, im.Size)
	s.d = len(s.active)
	if s.n == 0 || s.d == 0 {
		return fmt.Errorf("%s: %d images with %d pixels that are not always 0: nothing to learn from", im.Name, s.n,
			s.d)
	}
	rows, full := make([]float64, 0, s.n*s.d), 0
	for i := range s.n {
		for _, j := range s.active {
			value := x[i*im.Size+j]
			rows = append(rows, value)
			if value != 0 {
				full++
			}
		}
	}
	s.sparse = 2*full < len(rows)
	s.x = s.tensor(rows, s.n, s.d)
	s.y = s.tensor(targets(s.net.Labels, im.Labels, s.net.Classes), s.n)
	return nil
}

func activeColumns(x []float64, d int) []int {
	var active []int
	for j := range d {
		for i := j; i < len(x); i += d {
			if x[i] != 0 {
				active = append(active, j)
				break
			}
		}
	}
	return active
}

// targets codes the first class as 0 (or −1), the second as 1.
func targets(labels string, classes []uint8, two []int) []float64 {
	y := make([]float64, len(classes))
	for i, c := range classes {
		if int(c) == two[1] {
			y[i] = 1
		} else if labels == "±1" {
			y[i] = -1
		}
	}
	return y
}
