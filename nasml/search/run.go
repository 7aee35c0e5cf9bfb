package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/loop"
	"github.com/nasml/lab/nasml/trial"
)

type run struct {
	*Runner
	seed                    uint64
	train, validation, test []int // images
	at                      position
	copies                  [][]*tensors.Tensor // of the state, by device
	theta                   []float64           // relaxed, now
	batches                 bilevel.Epoch       // of the epoch under way
	loop                    loop.Loop[[]any]
}

// position is the position of a search, with its record so far.
type position struct {
	loop.At
	Sums  [4]float64 `json:"sums"` // over the steps of the epoch under way: losses times images, and right answers
	Seen  [2]int     `json:"seen"` // images of both batches
	Curve Curve      `json:"curve"`
	Bias  float64    `json:"bias"`  // ENAS: moving average of the rewards
	Known bool       `json:"known"` // whether there is one
}

// Search runs one search to its end, from its start or from Options.Load. The same seed gives the same curve, however
// often the search was interrupted; a checkpoint does not depend on the number of devices. It returns an error if ctx
// ends, checked after every step, or if a loss or θ is not finite: the error gives the step and the edge.
func (s *Runner) Search(ctx context.Context, seed uint64, o Options) (*Curve, error) {
	r, err := s.start(seed, o)
	if err != nil {
		return nil, err
	}
	defer r.free()
	if err := r.loop.Run(ctx); err != nil {
		return nil, fmt.Errorf("%s, seed %d, %w", s, seed, err)
	}
	found, err := r.final(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d, picking an architecture: %w", s, seed, err)
	}
	r.at.Curve.Final, r.at.Curve.Found = found.Code, found.Text
	if o.Finished != nil {
		if err := r.finished(o.Finished); err != nil {
			return nil, fmt.Errorf("%s, seed %d, after its end: %w", s, seed, err)
		}
	}
	return &r.at.Curve, nil
}

func (s *Runner) start(seed uint64, o Options) (*run, error) {
	r := &run{Runner: s, seed: seed}
	var err error
	if r.train, r.validation, r.test, err = s.divide(s.images.Len(), seed); err != nil {
		return nil, err
	}
	r.loop = loop.Loop[[]any]{
		Epochs: s.Epochs, At: &r.at.At, Begin: r.begin, Feed: r.inputs, Advance: r.advance, End: r.end,
		Keeper: checkpoint.Keeper{Load: o.Load, Save: o.Save, Every: o.SaveEvery},
		Write:  r.save, Read: r.load, Reset: r.restart, Sound: r.bounded,
	}
	if o.Observe != nil {
		r.loop.Observe = func(steps int, loss float64) {
			o.Observe(Snapshot{r.at.Epoch, r.Epochs, r.at.Step, steps, &r.at.Curve, r.theta, loss})
		}
	}
	r.reset()
	if err := r.loop.Resume(); err != nil {
		return nil, err
	}
	return r, r.spread()
}

func (r *run) reset() {
	if r.control != nil {
		r.control.reset(r.seed)
	}
	r.copies, r.theta = [][]*tensors.Tensor{r.initial(r.seed)}, r.initialTheta(r.seed)
	r.at = position{Curve: Curve{Theta: [][]float64{r.theta}}}
}

func (r *run) restart() {
	r.free()
	r.reset()
}

// state is that of the first device.
func (r *run) state() []*tensors.Tensor { return r.copies[0] }

func (r *run) free() {
	for _, state := range r.copies {
		_ = device.Free(state...)
	}
}

func (r *run) begin() (steps int, err error) {
	r.batches, err = r.drawEpoch(r.images.Len(), r.seed, r.at.Epoch)
	return r.steps, err
}

// end books a finished epoch. If it is interrupted nothing changes and it is done again, for which ENAS' controller has
// to be saved first.
func (r *run) end(ctx context.Context) (loss float64, err error) {
	next, due := r.at, r.at.Epoch+1
	if due == r.Epochs || r.EvaluateEvery > 0 && due%r.EvaluateEvery == 0 {
		if err := r.compare(ctx, &next.Curve, due); err != nil {
			return 0, errors.Join(err, r.loop.Keep())
		}
	}
	if r.control != nil {
		if err := r.loop.Keep(); err != nil {
			return 0, err
		}
		if err := r.control.train(ctx, r, &next); err != nil {
			return 0, err // the controller has moved: what was saved just now stays
		}
	}
	c, train, valid := &next.Curve, float64(r.at.Seen[0]), float64(r.at.Seen[1])
	loss = r.at.Sums[0] / train
	c.TrainLoss = append(c.TrainLoss, loss)
	c.TrainAccuracy = append(c.TrainAccuracy, r.at.Sums[1]/train)
	if r.method.Architecture != NoPass {
		c.ValidLoss = append(c.ValidLoss, r.at.Sums[2]/valid)
		c.ValidAccuracy = append(c.ValidAccuracy, r.at.Sums[3]/valid)
	}
	c.Theta = append(c.Theta, r.theta)
	next.Sums, next.Seen = [4]float64{}, [2]int{}
	r.at = next
	return loss, nil
}

// compare evaluates the supernet and its discretisation after an epoch.
func (r *run) compare(ctx context.Context, c *Curve, epoch int) error {
	if r.method.Hold == Nothing {
		return nil
	}
	theta := Blocks(r.product, r.theta)
	before, err := r.accuracy(ctx, r.validation, theta)
	if err != nil {
		return err
	}
	arch, err := r.space.Discretize(theta)
	if err != nil {
		return err
	}
	after, err := r.accuracy(ctx, r.validation, arch.Theta)
	if err != nil {
		return err
	}
	if err := r.compareParts(ctx, c, theta); err != nil {
		return err
	}
	if r.Curvature > 0 {
		largest, err := r.curvature(ctx, epoch)
		if err != nil {
			return err
		}
		c.Curvature = append(c.Curvature, largest)
	}
	if r.Instruments > 0 {
		if err := r.instruments(ctx, c, epoch); err != nil {
			return err
		}
	}
	c.Evaluated = append(c.Evaluated, float64(epoch))
	c.Supernet, c.Discrete = append(c.Supernet, before), append(c.Discrete, after)
	return nil
}

func (r *run) compareParts(ctx context.Context, c *Curve, theta [][][]float64) error {
	if r.Parts.Test == 0 {
		return nil
	}
	fitted, err := r.accuracy(ctx, r.train, theta)
	if err != nil {
		return err
	}
	tested, err := r.accuracy(ctx, r.test, theta)
	if err != nil {
		return err
	}
	c.Fitted, c.Tested = append(c.Fitted, fitted), append(c.Tested, tested)
	return nil
}

// advance makes one step on all devices and returns the loss of its weight pass.
func (r *run) advance(inputs []any) (float64, error) {
	shares, err := r.shares(inputs)
	if err != nil {
		return 0, err
	}
	reports, err := device.Steps(r.backend, r.trainer, shares, r.copies)
	if err != nil {
		return 0, err
	}
	report, err := device.Float64s(reports[0])
	if err != nil {
		return 0, err
	}
	if r.theta, err = device.Float64s(reports[1:]...); err != nil {
		return 0, err
	}
	if err := r.finite(report); err != nil {
		return 0, err
	}
	r.book(report)
	return report[0], nil
}

func (r *run) book(report []float64) {
	images := [2]int{len(r.batches.Weights[r.at.Step]), len(r.batches.Architecture[r.at.Step])}
	for i, n := range images {
		r.at.Seen[i] += n
		r.at.Sums[2*i] += report[2*i] * float64(n)
		r.at.Sums[2*i+1] += report[2*i+1]
	}
}

// finite rejects divergence: a NaN must not reach a figure.
func (r *run) finite(report []float64) error {
	for i, name := range []string{"training loss", "", "validation loss", ""} {
		if bad(report[i]) {
			return r.diverged(fmt.Sprintf("the %s is %v", name, report[i]))
		}
	}
	for b, block := range Blocks(r.product, r.theta) {
		for i, row := range block {
			for j, x := range row {
				if bad(x) {
					return fmt.Errorf("θ of %s is %v: its gradient or its update %q gave what is not a number; "+
						"lower its rate (now %v) or LearningRate (now %v)", r.space.Entry(b, i, j), x, r.rules[b].name,
						r.rules[b].rate, r.LearningRate)
				}
			}
		}
	}
	return r.onSimplex()
}

// diverged is the error for a number that is not finite.
func (r *run) diverged(what string) error {
	return fmt.Errorf("%s: the weights have diverged; lower LearningRate (now %v), with which another search "+
		"begins from its start: what is saved of this one stays", what, r.LearningRate)
}

// offSimplex is how far a row's sum may be from 1 and an entry below 0: a thousand times the rounding of single
// precision.
const offSimplex = 1e-3

// onSimplex rejects a θ off the simplex, which softmax cannot produce.
func (r *run) onSimplex() error {
	if r.method.Hold != OnSimplex {
		return nil
	}
	for b, block := range Blocks(r.product, r.theta) {
		for i, row := range block {
			sum, j := floats.Sum(row), floats.MinIdx(row)
			if math.Abs(sum-1) > offSimplex || row[j] < -offSimplex {
				return fmt.Errorf("the update %q left the simplex: θ of %s is %.4g, and its row sums to %.4g; a row "+
					"must be at least 0 and sum to 1: end the update with simplex.EG or another entry of "+
					"simplex.Updates, or clip at 0 and divide by the sum", r.rules[b].name, r.space.Entry(b, i, j),
					row[j], sum)
			}
		}
	}
	return nil
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func (s *Runner) initial(seed uint64) []*tensors.Tensor {
	var theta []*tensors.Tensor
	flat := s.initialArchitecture(seed)
	for _, b := range s.product {
		n := b.Rows * b.Options
		theta = append(theta, tensors.FromFlatDataAndDimensions(flat[:n:n], b.Rows, b.Options))
		flat = flat[n:]
	}
	return s.State(s.net.InitWeights(trial.RNG(seed, "weights")), s.net.InitStats(), theta)
}

func zeros(dims ...int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(dtypes.Float32, dims...))
}

// initialArchitecture is α, 0 or 10⁻³·N(0, 1), or the uniform θ, block by block.
func (s *Runner) initialArchitecture(seed uint64) []float32 {
	var flat []float32
	rng := trial.RNG(seed, "architecture")
	for _, b := range s.product {
		for range b.Rows * b.Options {
			x := float32(0)
			switch {
			case s.method.Hold == OnSimplex:
				x = 1 / float32(b.Options)
			case s.Start == "normal":
				x = float32(1e-3 * rng.NormFloat64())
			}
			flat = append(flat, x)
		}
	}
	return flat
}

// initialTheta is softmax(α) or θ at the start.
func (s *Runner) initialTheta(seed uint64) []float64 {
	var flat []float64
	for _, x := range s.initialArchitecture(seed) {
		flat = append(flat, float64(x))
	}
	if s.method.Hold == OnSimplex {
		return flat
	}
	for _, block := range Blocks(s.product, flat) {
		for _, row := range block { // a part of flat
			sum := 0.0
			for _, x := range row {
				sum += math.Exp(x)
			}
			for i, x := range row {
				row[i] = math.Exp(x) / sum
			}
		}
	}
	return flat
}

// bounded rejects a state that is not finite before it replaces one that is.
func (r *run) bounded() error {
	for _, t := range r.tensors() {
		if t.DType() != dtypes.Float32 {
			continue
		}
		flat, err := tensors.CopyFlatData[float32](t)
		if err != nil {
			return err
		}
		for _, x := range flat {
			if bad(float64(x)) {
				return r.diverged(fmt.Sprintf("after this step the state has a number that is %v", x))
			}
		}
	}
	return nil
}

// tensors are all that a checkpoint holds besides the position.
func (r *run) tensors() []*tensors.Tensor {
	if r.control == nil {
		return r.state()
	}
	return slices.Concat(r.state(), r.control.state)
}

// place is the head of a checkpoint. Randomness is a function of seed, epoch and step: there is no generator to keep.
type place struct {
	Position position  `json:"position"`
	Theta    []float64 `json:"theta"`
	Shapes   []string  `json:"shapes"` // of the tensors behind it
}

func (r *run) save(w io.Writer) error {
	return checkpoint.Write(w, place{r.at, r.theta, checkpoint.Shapes(r.tensors())}, r.tensors()...)
}

func (r *run) load(from io.Reader) error {
	var p place
	if err := checkpoint.Read(from, &p, r.tensors()...); err != nil {
		return err
	}
	if !slices.Equal(p.Shapes, checkpoint.Shapes(r.tensors())) || len(p.Theta) != len(r.theta) {
		return fmt.Errorf("the checkpoint has %d tensors and θ of %d numbers: %w", len(p.Shapes), len(p.Theta),
			checkpoint.ErrOther)
	}
	r.at, r.theta = p.Position, p.Theta
	return nil
}
