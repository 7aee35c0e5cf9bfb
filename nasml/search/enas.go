package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// controller is the policy of ENAS (Pham+ 2018, Section 2.4): an LSTM of two layers that draws the operation of one
// edge after another and feeds each decision into the next by an embedding. It is trained by REINFORCE on the accuracy
// of the shared weights on validation batches. The papers do not say how an operation is embedded: here by one vector
// per operation, shared by the edges.
type controller struct {
	*Runner
	state           []*tensors.Tensor // parameters, Adam's moments, Adam's step
	sampler, update *Exec
}

// The parameters of the controller, in their order.
const (
	controlStart   = iota // [1, H], the first input
	controlEmbed          // [|O|, H]
	controlInput1         // [H, 4H], and so on: gates i, f, g, o
	controlHidden1        // [H, 4H]
	controlBias1          // [1, 4H]
	controlInput2
	controlHidden2
	controlBias2
	controlHead // [H, |O|]
	controlParameters
)

func newController(s *Runner) (*controller, error) {
	c := &controller{Runner: s}
	var err error
	c.sampler, err = NewExec(s.backend, func(in []*Node) []*Node { return c.draw(in[1:], in[0]) })
	if err != nil {
		return nil, fmt.Errorf("building the controller: %w", err)
	}
	c.update, err = NewExec(s.backend, func(in []*Node) []*Node { return c.reinforce(in[0], in[1], in[2:]) })
	if err != nil {
		return nil, fmt.Errorf("building the controller's update: %w", err)
	}
	return c, nil
}

func (c *controller) close() {
	c.sampler.Finalize()
	c.update.Finalize()
}

// reset draws new parameters, uniform in ±0.1 as in ENAS.
func (c *controller) reset(seed uint64) {
	rng, h, ops := trial.RNG(seed, "controller"), c.Control.Hidden, c.options()
	dims := [controlParameters][]int{{1, h}, {ops, h}, {h, 4 * h}, {h, 4 * h}, {1, 4 * h}, {h, 4 * h}, {h, 4 * h},
		{1, 4 * h}, {h, ops}}
	var moments []*tensors.Tensor
	c.state = nil
	for _, d := range dims {
		flat := make([]float32, d[0]*d[1])
		for i := range flat {
			flat[i] = float32(0.2*rng.Float64() - 0.1)
		}
		c.state = append(c.state, tensors.FromFlatDataAndDimensions(flat, d...))
		moments = append(moments, zeros(d...), zeros(d...))
	}
	c.state = append(append(c.state, moments...), tensors.FromScalar(float32(0)))
}

// policy runs the LSTM over the edges. next is called with the logits of each edge, [S, |O|], and returns the one-hot
// decision, [S, |O|].
func (c *controller) policy(params []*Node, samples int, next func(edge int, logits *Node) *Node) {
	h := c.Control.Hidden
	g, dtype := params[0].Graph(), params[0].DType()
	hidden := [2]*Node{}
	cell := [2]*Node{}
	for l := range hidden {
		hidden[l], cell[l] = Zeros(g, shapes.Make(dtype, samples, h)), Zeros(g, shapes.Make(dtype, samples, h))
	}
	x := BroadcastToDims(params[controlStart], samples, h)
	for edge := range c.edges() {
		for l := range hidden {
			p := params[controlInput1+3*l:]
			hidden[l], cell[l] = lstm(x, hidden[l], cell[l], p[0], p[1], p[2])
			x = hidden[l]
		}
		z := DivScalar(matmul(x, params[controlHead]), c.Control.Temperature)
		if c.Control.Tanh > 0 {
			z = MulScalar(Tanh(z), c.Control.Tanh)
		}
		x = matmul(next(edge, z), params[controlEmbed])
	}
}

func matmul(a, b *Node) *Node { return Einsum("ij,jk->ik", a, b) }

// lstm is one step of a layer (Hochreiter & Schmidhuber 1997, with forget gates).
func lstm(x, h, cell, input, hidden, bias *Node) (*Node, *Node) {
	n := h.Shape().Dim(1)
	gates := Add(matmul(x, input), matmul(h, hidden))
	gates = Add(gates, BroadcastToDims(bias, gates.Shape().Dimensions...))
	gate := func(i int) *Node { return Slice(gates, AxisRange(), AxisRange(i*n, (i+1)*n)) }
	cell = Add(Mul(Sigmoid(gate(1)), cell), Mul(Sigmoid(gate(0)), Tanh(gate(2))))
	return Mul(Sigmoid(gate(3)), Tanh(cell)), cell
}

// draw turns uniform numbers [S, |E|] into decisions [S, |E|] int32, by the inverse of each edge's distribution
// function, and returns the entropy [S] of these distributions, summed over the edges, in nats.
func (c *controller) draw(params []*Node, uniform *Node) []*Node {
	samples, ops := uniform.Shape().Dim(0), c.options()
	var decisions []*Node
	entropy := Zeros(uniform.Graph(), shapes.Make(uniform.DType(), samples))
	c.policy(params, samples, func(edge int, logits *Node) *Node {
		below := matmul(Softmax(logits, -1), upper(logits.Graph(), logits.DType(), ops)) // P(o' ≤ o)
		u := BroadcastToDims(Slice(uniform, AxisRange(), AxisElem(edge)), samples, ops)
		passed := ConvertDType(LessOrEqual(below, u), dtypes.Int32)
		decision := MinScalar(ReduceSum(passed, -1), float64(ops-1)) // rounding may leave the last sum below 1
		decisions = append(decisions, decision)
		entropy = Sub(entropy, ReduceSum(Mul(Softmax(logits, -1), LogSoftmax(logits, -1)), -1))
		return OneHot(decision, ops, logits.DType())
	})
	return []*Node{Stack(decisions, 1), entropy}
}

// upper is the matrix that sums up to and including a column.
func upper(g *Graph, dtype dtypes.DType, n int) *Node {
	m := make([][]float32, n)
	for i := range m {
		m[i] = make([]float32, n)
		for j := i; j < n; j++ {
			m[i][j] = 1
		}
	}
	return ConvertDType(Const(g, m), dtype)
}

// reinforce is one step of Adam, clipped at 5, on the mean over samples of −A·log P(decisions), A being the advantage
// [S].
func (c *controller) reinforce(decisions, advantage *Node, state []*Node) []*Node {
	params, t := state[:controlParameters], state[3*controlParameters]
	moments := state[controlParameters : 3*controlParameters]
	samples, ops := decisions.Shape().Dim(0), c.options()
	var logP *Node
	c.policy(params, samples, func(edge int, logits *Node) *Node {
		hot := OneHot(Squeeze(Slice(decisions, AxisRange(), AxisElem(edge)), 1), ops, logits.DType())
		chosen := ReduceSum(Mul(hot, LogSoftmax(logits, -1)), -1)
		if logP == nil {
			logP = chosen
		} else {
			logP = Add(logP, chosen)
		}
		return hot
	})
	grad := bilevel.ClipGlobalNorm(Gradient(Neg(ReduceAllMean(Mul(advantage, logP))), params...), 5)
	adam := bilevel.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}.Rule().At(c.Control.Rate)
	next, moments := adam.Step("the controller", bilevel.Move{Params: params, Grads: grad, Slots: moments, Done: t})
	return append(append(next, moments...), AddScalar(t, 1))
}

func (c *controller) sample(n int, rng *rand.Rand) (archs [][]int, entropy []float64, err error) {
	uniform := make([]float32, n*c.edges())
	for i := range uniform {
		uniform[i] = rng.Float32()
	}
	args := []any{tensors.FromFlatDataAndDimensions(uniform, n, c.edges())}
	for _, t := range c.state[:controlParameters] {
		args = append(args, t)
	}
	out, err := c.sampler.Call(args...)
	if err != nil {
		return nil, nil, err
	}
	defer out[0].MustFinalizeAll()
	flat, err := tensors.CopyFlatData[int32](out[0])
	if err != nil {
		return nil, nil, err
	}
	archs = make([][]int, n)
	for i, o := range flat {
		archs[i/c.edges()] = append(archs[i/c.edges()], int(o))
	}
	entropy, err = device.Float64s(out[1])
	return archs, entropy, err
}

func (c *controller) one(rng *rand.Rand) (Arch, error) {
	sampled, _, err := c.sample(1, rng)
	if err != nil {
		return Arch{}, err
	}
	return c.space.(rowwise).rowwise(sampled[0]), nil // by Check
}

// edges and options are those of the one block of θ.
func (c *controller) edges() int   { return c.product[0].Rows }
func (c *controller) options() int { return c.product[0].Options }

// train makes the controller's updates after an epoch. A sample's reward is its accuracy on one validation batch plus a
// little of its entropy; the baseline is the rewards' moving average, which starts at the first accuracy and is updated
// before the advantage.
func (c *controller) train(ctx context.Context, r *run, at *position) error {
	rng := trial.RNG(r.seed, "controller", fmt.Sprint(r.at.Epoch))
	for range c.Control.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		archs, entropy, err := c.sample(c.Control.Samples, rng)
		if err != nil {
			return err
		}
		advantage, decisions := make([]float32, len(archs)), []int32{}
		for i, choice := range archs {
			right, err := r.rightOn(pick(rng, r.validation, r.Batch), r.space.(rowwise).rowwise(choice).Theta)
			if err != nil {
				return err
			}
			reward := float64(right) / float64(r.Batch)
			if !at.Known {
				at.Bias, at.Known = reward, true
			}
			reward += c.Control.EntropyWeight * entropy[i]
			at.Bias -= (1 - c.Control.BaselineDecay) * (at.Bias - reward)
			advantage[i] = float32(reward - at.Bias)
			for _, o := range choice {
				decisions = append(decisions, int32(o))
			}
		}
		if err := c.step(decisions, advantage); err != nil {
			return err
		}
	}
	return nil
}

func (c *controller) step(decisions []int32, advantage []float32) (err error) {
	n := len(advantage)
	args := []any{tensors.FromFlatDataAndDimensions(decisions, n, len(decisions)/n),
		tensors.FromFlatDataAndDimensions(advantage, n)}
	c.state, _, err = device.Step(c.backend, c.update, args, c.state)
	return err
}

// accuracy is the share of right answers of the shared weights on some images. It takes whole batches, since batch
// statistics depend on their size; a rest is not counted. With Parts, of any size, the batch is the largest that
// divides the images.
func (r *run) accuracy(ctx context.Context, images []int, theta [][][]float64) (float64, error) {
	right, seen, size := 0, 0, r.Batch
	if r.Parts != (Shares{}) {
		for size = min(size, len(images)); size > 1 && len(images)%size != 0; {
			size--
		}
	}
	for from := 0; from+size <= len(images); from += size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.rightOn(images[from:from+size], theta)
		if err != nil {
			return 0, err
		}
		right, seen = right+n, seen+size
	}
	if seen == 0 {
		return 0, fmt.Errorf("an accuracy needs at least a batch of %d images, got %d", r.Batch, len(images))
	}
	return float64(right) / float64(seen), nil
}

// rightOn is the number of right answers on some images, without augmentation.
func (r *run) rightOn(indices []int, theta [][][]float64) (int, error) {
	images, labels, err := r.batch(indices, nil)
	if err != nil {
		return 0, err
	}
	args := []any{images, labels}
	for b, block := range r.product {
		args = append(args, matrix(block, theta[b]))
	}
	state := Cut(r.Step, r.state())
	for _, t := range slices.Concat(state.Weights, state.Stats) {
		args = append(args, t)
	}
	out, err := r.evaluate.Call(args...)
	if err != nil {
		return 0, err
	}
	defer out[0].MustFinalizeAll()
	return int(tensors.ToScalar[int32](out[0])), nil
}

func matrix(b simplex.Block, theta [][]float64) *tensors.Tensor {
	var flat []float32
	for _, row := range theta {
		for _, x := range row {
			flat = append(flat, float32(x))
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, b.Rows, b.Options)
}

func (r *run) final(ctx context.Context) (Arch, error) {
	rng, theta := trial.RNG(r.seed, "final"), Blocks(r.product, r.theta)
	switch r.method.Final {
	case ByArgmax:
		return r.space.Discretize(theta)
	case ByRandom:
		return r.best(ctx, rng, func(int) (Arch, error) { return r.space.Random(rng) })
	case ByLikelihood:
		ranked := likeliest(theta[0], r.Candidates)
		return r.best(ctx, rng, func(i int) (Arch, error) {
			return r.space.(rowwise).rowwise(ranked[i%len(ranked)]), nil // by Check
		})
	case ByController:
		return r.best(ctx, rng, func(int) (Arch, error) { return r.control.one(rng) })
	}
	return Arch{}, fmt.Errorf("no rule is called %q", r.method.Final)
}

// best is the candidate with the most right answers, each on its own validation batch; the first of equals.
func (r *run) best(ctx context.Context, rng *rand.Rand, candidate func(i int) (Arch, error)) (Arch, error) {
	var best Arch
	size, most := min(r.CandidateBatch, len(r.validation)), -1
	for i := range r.Candidates {
		if err := ctx.Err(); err != nil {
			return Arch{}, err
		}
		arch, err := candidate(i)
		if err != nil {
			return Arch{}, err
		}
		right, err := r.rightOn(pick(rng, r.validation, size), arch.Theta)
		if err != nil {
			return Arch{}, err
		}
		if right > most {
			best, most = arch, right
		}
	}
	return best, nil
}

// pick draws n different elements.
func pick(rng *rand.Rand, from []int, n int) []int {
	return trial.At(from, rng.Perm(len(from))[:n])
}

// likeliest are the n architectures of the largest probability Π_e θ_e,o(e), the likeliest first; of equals, the first
// in counting order with the last edge fastest.
func likeliest(theta [][]float64, n int) [][]int {
	type scored struct {
		choice []int
		logP   float64
	}
	all := []scored{{nil, 0}}
	for _, row := range theta {
		var next []scored
		for _, s := range all {
			for o, p := range row {
				next = append(next, scored{append(slices.Clone(s.choice), o), s.logP + math.Log(p)})
			}
		}
		// The n best have prefixes among the n best prefixes, since the edges are independent.
		slices.SortStableFunc(next, func(a, b scored) int { return cmp.Compare(b.logP, a.logP) })
		all = next[:min(n, len(next))]
	}
	out := make([][]int, len(all))
	for i, s := range all {
		out[i] = s.choice
	}
	return out
}

// Finished is a search that has ended, with its shared weights; see Options.Finished.
type Finished struct {
	*run
	byBatch *Exec // an evaluation by the statistics of the batch
}

// Evaluation says how shared weights are evaluated.
type Evaluation struct {
	Batch   int  // images at once, at most all; 0: as the search has it
	ByBatch bool // batch norm takes the batch's statistics, which are the architecture's own, not the supernet's
}

// Space is the one that was searched.
func (e *Finished) Space() Space { return e.space }

// Accuracy is the share of right answers of the shared weights under an architecture on the search's validation images.
func (e *Finished) Accuracy(ctx context.Context, a Arch, how Evaluation) (float64, error) {
	step, s, other := *e.Step, *e.Runner, *e.run
	step.Batch = min(cmp.Or(how.Batch, step.Batch), len(e.validation))
	if how.ByBatch {
		s.evaluate = e.byBatch
	}
	s.Step, other.Runner = &step, &s
	return other.accuracy(ctx, e.validation, a.Theta)
}

// finished calls visit with a finished search.
func (r *run) finished(visit func(e *Finished) error) error {
	if len(r.validation) == 0 {
		return errors.New("the search has no validation images on which its end could be looked at")
	}
	exec, err := NewExec(r.backend, r.right(true))
	if err != nil {
		return fmt.Errorf("building the evaluation by batches: %w", err)
	}
	defer exec.Finalize()
	return visit(&Finished{r, exec})
}
