package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/internal/loop"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

type run struct {
	*Trainer
	seed  uint64
	at    position
	state []*tensors.Tensor // as Parts lists it
	order []int             // of the training examples in the epoch under way
	loop  loop.Loop[[]any]
}

// position is where a training stands, with what it has recorded. What is random
// is a function of seed, epoch and step, so that there is nothing else to keep.
type position struct {
	loop.At
	Loss  float64 `json:"loss"` // over the steps of the epoch under way: losses times examples
	Right float64 `json:"right"`
	Seen  int     `json:"seen"`
	Curve Curve   `json:"curve"`
}

func (t *Trainer) start(seed uint64, o Options) *run {
	r := &run{Trainer: t, seed: seed}
	r.loop = loop.Loop[[]any]{
		Epochs: t.Epochs, At: &r.at.At, Begin: r.begin, Feed: r.inputs, Advance: r.advance, End: r.end,
		Keeper: checkpoint.Keeper{Load: o.Load, Save: o.Save, Every: o.SaveEvery},
		Write: func(w io.Writer) error {
			return checkpoint.Write(w, head{r.at, checkpoint.Shapes(r.state)}, r.state...)
		},
		Read: r.load, Reset: func() { r.free(); r.initialise() },
	}
	if o.Observe != nil {
		r.loop.Observe = func(steps int, loss float64) {
			o.Observe(Snapshot{r.at.Epoch, r.Epochs, r.at.Step, steps, &r.at.Curve, loss})
		}
	}
	r.initialise()
	return r
}

func (r *run) initialise() {
	r.at = position{}
	weights := r.Net.InitWeights(trial.RNG(r.seed, "weights"))
	var velocity []*tensors.Tensor
	for _, w := range weights {
		velocity = append(velocity, tensors.FromShape(w.Shape()))
	}
	r.state = slices.Concat(weights, velocity, r.Net.InitStats())
}

func (r *run) free() { _ = device.Free(r.state...) }

type head struct {
	Position position `json:"position"`
	Shapes   []string `json:"shapes"` // of the tensors behind it
}

func (r *run) load(from io.Reader) error {
	var h head
	if err := checkpoint.Read(from, &h, r.state...); err != nil {
		return err
	}
	if !slices.Equal(h.Shapes, checkpoint.Shapes(r.state)) {
		return fmt.Errorf("the checkpoint has other tensors: %w", checkpoint.ErrOther)
	}
	r.at = h.Position
	return nil
}

func (r *run) begin() (steps int, err error) {
	r.order = trial.RNG(r.seed, "batches", fmt.Sprint(r.at.Epoch)).Perm(r.train.Len())
	return r.steps, nil
}

// end books an epoch whose steps are done. What is interrupted here changes nothing and is done again.
func (r *run) end(ctx context.Context) (loss float64, err error) {
	next := position{At: r.at.At, Curve: r.at.Curve}
	c, seen, due := &next.Curve, float64(r.at.Seen), r.at.Epoch+1
	loss = r.at.Loss / seen
	c.TrainLoss = append(slices.Clone(c.TrainLoss), loss)
	c.TrainError = append(slices.Clone(c.TrainError), 1-r.at.Right/seen)
	if due == r.Epochs || r.EvaluateEvery > 0 && due%r.EvaluateEvery == 0 {
		if err := r.evaluate(ctx, c, due); err != nil {
			return 0, errors.Join(err, r.loop.Keep())
		}
	}
	r.at = next
	return loss, nil
}

func (r *run) indices() []int {
	from := r.at.Step * r.Batch
	return r.order[from:min(from+r.Batch, len(r.order))]
}

// inputs are those of the step under way, as Step.Graph takes them.
func (r *run) inputs() ([]any, error) {
	rng := trial.RNG(r.seed, "step", fmt.Sprint(r.at.Epoch), fmt.Sprint(r.at.Step))
	indices := r.indices()
	images, labels, err := r.batch(r.train, indices, len(indices), rng)
	if err != nil {
		return nil, err
	}
	return []any{images, labels, r.drop(len(indices), rng), float32(r.Rate(r.at.Epoch))}, nil
}

// advance makes one step and returns the loss before it.
func (r *run) advance(args []any) (float64, error) {
	next, reports, err := device.Step(r.backend, r.trainer, args, r.state)
	if err != nil {
		return 0, err
	}
	r.state = next
	report, err := device.Float64s(reports...)
	if err != nil {
		return 0, err
	}
	if err := r.finite(report); err != nil {
		return 0, err
	}
	examples := len(r.indices())
	r.at.Loss += report[0] * float64(examples)
	r.at.Right += report[1]
	r.at.Seen += examples
	return report[0], nil
}

func (r *run) finite(report []float64) error {
	for i, name := range []string{"loss", "", "squared norm of weights, momentum and statistics"} {
		if x := report[i]; math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the %s is %v: the weights have diverged; lower LearningRate (now %v), with which "+
				"another training begins from its start: what is saved of this one stays", name, x, r.LearningRate)
		}
	}
	return nil
}

// batch makes tensors of n examples, the last of them without label if there are fewer indices.
func (r *run) batch(
	from images.Examples, indices []int, n int, rng *rand.Rand,
) (pictures, labels *tensors.Tensor, err error) {
	pixels, classes := make([]float32, n*r.Image*r.Image*3), make([]int32, n)
	size := len(indices) * r.Image * r.Image * 3
	if err := from.Batch(pixels[:size], classes[:len(indices)], indices, rng); err != nil {
		return nil, nil, err
	}
	for i := len(indices); i < n; i++ {
		classes[i] = -1
	}
	pictures = tensors.FromFlatDataAndDimensions(pixels, n, r.Image, r.Image, 3)
	return pictures, tensors.FromFlatDataAndDimensions(classes, n), nil
}

// drop draws the drop path of a step: for every example and place 0 with probability p, else 1/(1 − p).
func (r *run) drop(examples int, rng *rand.Rand) *tensors.Tensor {
	if r.DropPath == 0 {
		return tensors.FromShape(shapes.Make(dtypes.Float32, 1, 1)) // nobody looks at it
	}
	p, places := r.Drop(r.at.Epoch), r.Net.DropPlaces()
	flat := make([]float32, examples*places)
	for i := range flat {
		if rng.Float64() >= p {
			flat[i] = float32(1 / (1 - p))
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, examples, places)
}

func (r *run) evaluate(ctx context.Context, c *Curve, epoch int) error {
	parts := cut(r.Net, r.state)
	sums := make([]float64, 3)
	for from := 0; from < r.test.Len(); from += r.Batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		report, err := r.tested(parts, from)
		if err != nil {
			return fmt.Errorf("test image %d and following: %w", from, err)
		}
		for i := range sums {
			sums[i] += report[i]
		}
	}
	n := float64(r.test.Len())
	if math.IsNaN(sums[0]) || math.IsInf(sums[0], 0) {
		return fmt.Errorf("the test loss is %v: the running statistics do not fit the weights; lower LearningRate "+
			"(now %v)", sums[0], r.LearningRate)
	}
	c.Evaluated = append(slices.Clone(c.Evaluated), float64(epoch))
	c.TestLoss = append(slices.Clone(c.TestLoss), sums[0]/n)
	c.TestError = append(slices.Clone(c.TestError), 1-sums[1]/n)
	c.TestTop5 = append(slices.Clone(c.TestTop5), 1-sums[2]/n)
	return nil
}

func (r *run) tested(parts Parts[*tensors.Tensor], from int) ([]float64, error) {
	indices := trial.Indices(from, min(r.Batch, r.test.Len()-from))
	images, labels, err := r.batch(r.test, indices, r.Batch, nil)
	if err != nil {
		return nil, err
	}
	args := []any{images, labels}
	for _, t := range slices.Concat(parts.Weights, parts.Stats) {
		args = append(args, t)
	}
	out, err := r.tester.Call(args...)
	if err != nil {
		return nil, err
	}
	return device.Float64s(out...)
}

// Step is one step of a training as a graph function.
type Step struct {
	Settings
	Net *supernet.CellNet
}

// Parts are the parts of a state, in the order in which they stand in it.
type Parts[T any] struct {
	Weights, Velocity []T // of the network
	Stats             []T // running statistics
}

func cut[T any](net *supernet.CellNet, all []T) Parts[T] {
	w := len(net.Weights())
	return Parts[T]{Weights: all[:w:w], Velocity: all[w : 2*w : 2*w], Stats: all[2*w:]}
}

// Graph is the step of SGD on the loss
//
//	H(logits) + Auxiliary·H(auxiliary logits) ,
//
// H the mean cross entropy with smoothed labels. It returns the state after it, the loss before it, and the number of
// right answers before it. in are images [B, side, side, 3], labels [B], supernet.Pass.Drop [B, places], or anything
// where DropPath is 0, η, and the state.
func (s Step) Graph(in []*Node) (next []*Node, loss, right *Node) {
	rate, parts := in[3], cut(s.Net, in[4:])
	zero := ScalarZero(rate.Graph(), rate.DType())
	descent := bilevel.Search{
		Settings: bilevel.Settings{Clip: s.Clip},
		SGD:      bilevel.SGD{Momentum: s.Momentum, WeightDecay: s.WeightDecay, Together: true},
		Problem: func(aux []*Node) bilevel.Problem {
			return bilevel.Problem{Inner: func(w, _ []*Node) (*Node, []*Node) {
				loss, right, stats := s.loss(in[0], in[1], in[2], w, aux[:len(aux)-1])
				return loss, append(stats, right)
			}}
		},
	}
	stats := append(parts.Stats[:len(parts.Stats):len(parts.Stats)], zero)
	after, seen := descent.Step(bilevel.State{W: parts.Weights, Velocity: parts.Velocity, Aux: stats}, rate, nil)
	last := len(after.Aux) - 1
	next = append(append(append(next, after.W...), after.Velocity...), after.Aux[:last]...)
	return next, seen.Train, after.Aux[last]
}

// loss is that of a batch, with the right answers and the statistics after it.
func (s Step) loss(images, labels, drop *Node, w, stats []*Node) (loss, right *Node, after []*Node) {
	pass := supernet.Pass{Images: images, Weights: w, Stats: stats, Train: true}
	if s.DropPath > 0 {
		pass.Drop = drop
	}
	out := s.Net.Evaluate(pass)
	loss = CrossEntropy(out.Logits, labels, s.Smoothing)
	if s.Auxiliary > 0 {
		loss = Add(loss, MulScalar(CrossEntropy(out.Auxiliary, labels, s.Smoothing), s.Auxiliary))
	}
	right = ReduceAllSum(ConvertDType(Equal(ArgMax(out.Logits, -1, labels.DType()), labels), loss.DType()))
	return loss, right, out.Stats
}

// CrossEntropy is the mean over a batch of −Σ_c q_c log softmax(logits)_c, where
// smoothing ε spreads the label y (Szegedy+ 2016, Section 7):
//
//	q_c = (1 − ε)·1[c = y] + ε/classes .
//
// logits are [B, classes], labels [B] integers.
func CrossEntropy(logits, labels *Node, smoothing float64) *Node {
	logp := LogSoftmax(logits)
	q := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	if smoothing > 0 {
		q = AddScalar(MulScalar(q, 1-smoothing), smoothing/float64(logits.Shape().Dim(-1)))
	}
	return Neg(ReduceAllMean(ReduceSum(Mul(q, logp), -1)))
}

// top is the number of classes among which the label has to be.
const top = 5

// score is what a test looks at in a batch, [sum of cross entropies, right answers, labels among the five largest
// logits]. Labels below 0 do not count. A label is among them where fewer than five logits are larger.
func (s Step) score(images, labels *Node, state []*Node) *Node {
	w := len(s.Net.Weights())
	logits := s.Net.Evaluate(supernet.Pass{Images: images, Weights: state[:w], Stats: state[w:]}).Logits
	hot := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	counts := ConvertDType(GreaterOrEqual(labels, ScalarZero(labels.Graph(), labels.DType())), logits.DType())
	own := ReduceAndKeep(Mul(hot, logits), ReduceSum, -1)
	larger := ReduceSum(ConvertDType(GreaterThan(logits, own), logits.DType()), -1)
	among := ConvertDType(LessThan(larger, Scalar(larger.Graph(), larger.DType(), top)), logits.DType())
	first := ConvertDType(Equal(ArgMax(logits, -1, labels.DType()), labels), logits.DType())
	return Stack([]*Node{
		Neg(ReduceAllSum(Mul(hot, LogSoftmax(logits)))), ReduceAllSum(Mul(first, counts)),
		ReduceAllSum(Mul(among, counts)),
	}, 0)
}

// reported is the step with a report behind the new state: loss, right answers,
// and the squared norm of the new state, which tells whether it is finite.
func (s Step) reported(in []*Node) []*Node {
	next, loss, right := s.Graph(in)
	norm := ScalarZero(loss.Graph(), loss.DType())
	for _, x := range next {
		norm = Add(norm, ConvertDType(ReduceAllSum(Square(x)), loss.DType()))
	}
	if !loss.IsScalar() {
		panic(fmt.Errorf("training: the loss must be a scalar, got shape %s", loss.Shape()))
	}
	return append(next, Stack([]*Node{loss, right, norm}, 0))
}
