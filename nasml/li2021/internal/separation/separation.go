// Package separation follows one weight-sharing search in float64 and compares second-order gradients on the same
// weights and batches at some of its steps.
package separation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what the comparison depends on besides seed, code and images.
type Trial struct {
	// Settings are those of the search, as their Key has them, on halves of the images in order. Its own hypergradient
	// moves it.
	Settings search.Settings `json:"settings"`
	Examples int             `json:"examples"`
	Steps    []int           `json:"steps"` // at which gradients are compared, from 1, ascending
}

// way is a second-order gradient, or a stand-in.
type way struct {
	name          string // of its series
	hypergradient string
	epsilon       float64
	dtype         dtypes.DType
}

// exact is what the others are compared with: [bilevel.Unrolled] in float64.
var exact = way{"exact", "unrolled", 0, dtypes.Float64}

// Series of a result, by name.
const (
	FirstOrder = "first-order"
	Difference = "difference" // the central difference of Liu+ 2019, ε = 0.01/‖v‖₂
	Small      = "small"      // that with ε = 10⁻⁴/‖v‖₂
	Tiny       = "tiny"       // that with ε = 10⁻⁶/‖v‖₂, which float64 allows
	Rounded    = "rounded"    // the exact gradient in float32
)

// others are compared with the exact gradient.
var others = []way{
	{FirstOrder, "first-order", 0, dtypes.Float64},
	{Difference, "finite-difference", 0, dtypes.Float64},
	{Small, "finite-difference", 1e-4, dtypes.Float64},
	{Tiny, "finite-difference", 1e-6, dtypes.Float64},
	{Rounded, "unrolled", 0, dtypes.Float32},
}

// Run follows the search up to the last of the steps and calls done after each. It returns "step" and, for each other
// gradient by its name, ‖g − g*‖₂/‖g*‖₂ at the steps, g* being the exact gradient of the validation loss by α, before
// L2. It returns an error if the settings are not of a search that mixes its operations, if steps do not fit, or if a
// gradient is not finite.
func Run(ctx context.Context, b compute.Backend, t Trial, set *images.Images, seed uint64, done func(note string)) (
	trial.Result, error) {
	f, err := follow(b, t, set, seed)
	if err != nil {
		return trial.Result{}, err
	}
	defer f.close()
	series := map[string][]float64{}
	for f.at < t.Steps[len(t.Steps)-1] {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		inputs, err := f.inputs()
		if err != nil {
			return trial.Result{}, err
		}
		if slices.Contains(t.Steps, f.at+1) {
			if err := f.compare(inputs, series); err != nil {
				return trial.Result{}, fmt.Errorf("step %d: %w", f.at+1, err)
			}
		}
		if err := f.move(inputs); err != nil {
			return trial.Result{}, fmt.Errorf("step %d: %w", f.at, err)
		}
		done(fmt.Sprintf("step %d of %d", f.at, t.Steps[len(t.Steps)-1]))
	}
	return trial.Result{Series: series}, nil
}

type followed struct {
	Trial
	set               *images.Images
	seed              uint64
	theta             []int // rows and options
	train, validation []int
	steps             int // of an epoch
	at                int // steps made
	epoch             bilevel.Epoch
	state             []*tensors.Tensor // float64
	step              *Exec             // to the next state
	gradients         map[way]*Exec
}

func follow(b compute.Backend, t Trial, set *images.Images, seed uint64) (*followed, error) {
	s := t.Settings
	if err := t.check(); err != nil {
		return nil, err
	}
	set, err := set.Fit(s.Image)
	if err != nil {
		return nil, err
	}
	space, err := s.Open(int(slices.Max(set.Labels)) + 1)
	if err != nil {
		return nil, err
	}
	f := &followed{Trial: t, set: set, seed: seed, gradients: map[way]*Exec{}}
	if f.train, f.validation, err = s.Bilevel.Split(set.Len(), 0.5, nil); err != nil {
		return nil, err
	}
	f.steps = len(f.train) / s.Batch
	net := space.Network()
	block := net.Architecture()[0]
	f.theta = []int{block.Rows, block.Options}
	program, err := f.compile(b, s, space, &f.step, func(next []*Node, _ search.Outcome) []*Node { return next })
	if err != nil {
		return nil, err
	}
	for _, w := range append([]way{exact}, others...) {
		s.Bilevel.Hypergradient, s.Bilevel.Epsilon = w.hypergradient, w.epsilon
		var exec *Exec
		if _, err := f.compile(b, s, space, &exec, func(_ []*Node, o search.Outcome) []*Node {
			return o.GradTheta
		}); err != nil {
			return nil, err
		}
		f.gradients[w] = exec
	}
	var weights, stats []*tensors.Tensor
	for _, w := range net.InitWeights(trial.RNG(seed, "weights")) {
		weights = append(weights, in(w, dtypes.Float64))
	}
	for _, w := range net.InitStats() {
		stats = append(stats, in(w, dtypes.Float64))
	}
	f.state = program.State(weights, stats, []*tensors.Tensor{f.start()})
	return f, nil
}

// check returns an error if a comparison cannot follow the search.
func (t Trial) check() error {
	s := t.Settings
	m := search.Methods[s.Method]
	switch {
	case m.Weights != search.Mixture || m.Architecture != search.Mixture || m.Hold != search.Logits:
		return fmt.Errorf("the method %q has no mixture of operations by logits α: compare gradients of DARTS",
			s.Method)
	case s.Split != "ordered" || s.Bilevel.Level != bilevel.Bilevel || s.Bilevel.KeepLast || s.Parts != search.Shares{}:
		return fmt.Errorf("split %q, level %q, KeepLast %v and Parts %+v: gradients are compared on ordered halves in "+
			"whole batches", s.Split, s.Bilevel.Level, s.Bilevel.KeepLast, s.Parts)
	case len(t.Steps) == 0 || t.Steps[0] < 1 || !slices.IsSorted(t.Steps):
		return fmt.Errorf("the steps must be at least 1 and ascending, got %v", t.Steps)
	}
	return nil
}

// compile prepares a step that returns report.
func (f *followed) compile(b compute.Backend, s search.Settings, space search.Space, exec **Exec,
	report func(next []*Node, o search.Outcome) []*Node) (*search.Step, error) {
	program, err := search.NewStep(s, space.Network(), f.steps)
	if err != nil {
		return nil, err
	}
	*exec, err = NewExec(b, func(in []*Node) []*Node { return report(program.Graph(in)) })
	return program, err
}

func (f *followed) close() {
	f.step.Finalize()
	for _, e := range f.gradients {
		e.Finalize()
	}
}

// start is α at the start of a search by the seed: 0, or 10⁻³·N(0, 1).
func (f *followed) start() *tensors.Tensor {
	rng := trial.RNG(f.seed, "architecture")
	alpha := make([]float64, f.theta[0]*f.theta[1])
	if f.Settings.Start == "normal" {
		for i := range alpha {
			alpha[i] = float64(float32(1e-3 * rng.NormFloat64()))
		}
	}
	return tensors.FromFlatDataAndDimensions(alpha, f.theta...)
}

// inputs draws the batches of the next step as a search does.
func (f *followed) inputs() (search.Inputs[*tensors.Tensor], error) {
	var inputs search.Inputs[*tensors.Tensor]
	s, epoch, step := f.Settings, f.at/f.steps, f.at%f.steps
	if step == 0 {
		var err error
		rng := trial.RNG(f.seed, "batches", fmt.Sprint(epoch))
		if f.epoch, err = s.Bilevel.Epoch(f.train, f.validation, s.Batch, rng); err != nil {
			return inputs, err
		}
	}
	rng := trial.RNG(f.seed, "step", fmt.Sprint(epoch), fmt.Sprint(step))
	batch := func(of []int) (pixels, labels *tensors.Tensor, err error) {
		side := f.set.Height
		flat, classes := make([]float32, len(of)*side*side*3), make([]int32, len(of))
		if err := s.Augment.Batch(flat, f.set, of, rng); err != nil {
			return nil, nil, err
		}
		for i, j := range of {
			classes[i] = int32(f.set.Labels[j])
		}
		return tensors.FromFlatDataAndDimensions(flat, len(of), side, side, 3),
			tensors.FromFlatDataAndDimensions(classes, len(of)), nil
	}
	var err error
	if inputs.TrainImages, inputs.TrainLabels, err = batch(f.epoch.Weights[step]); err != nil {
		return inputs, err
	}
	if inputs.ValidImages, inputs.ValidLabels, err = batch(f.epoch.Architecture[step]); err != nil {
		return inputs, err
	}
	none := make([]float32, 2*f.theta[0]*f.theta[1])
	inputs.Draws = []*tensors.Tensor{tensors.FromFlatDataAndDimensions(none, 2, f.theta[0], f.theta[1])}
	inputs.Rate = tensors.FromScalar(float32(bilevel.Cosine(s.LearningRate, s.LearningRateMin, epoch, s.Epochs)))
	inputs.Tau, inputs.Done = tensors.FromScalar(float32(1)), tensors.FromScalar(float32(f.at))
	inputs.Warmup = tensors.FromScalar(float32(0))
	return inputs, nil
}

// call runs a program on the inputs and the state in a type.
func (f *followed) call(exec *Exec, inputs search.Inputs[*tensors.Tensor], dtype dtypes.DType) ([]*tensors.Tensor,
	error) {
	var args []any
	for _, t := range append(inputs.List(), f.state...) {
		args = append(args, in(t, dtype))
	}
	return exec.Call(args...)
}

// compare adds the distances of all gradients from the exact one.
func (f *followed) compare(inputs search.Inputs[*tensors.Tensor], series map[string][]float64) error {
	gradient := func(w way) ([]float64, error) {
		out, err := f.call(f.gradients[w], inputs, w.dtype)
		if err != nil {
			return nil, fmt.Errorf("the gradient %q: %w", w.name, err)
		}
		return floats64(out[0]), nil
	}
	want, err := gradient(exact)
	if err != nil {
		return err
	}
	series["step"] = append(series["step"], float64(f.at+1))
	for _, w := range others {
		got, err := gradient(w)
		if err != nil {
			return err
		}
		off := floats.Distance(got, want, 2) / floats.Norm(want, 2)
		if math.IsNaN(off) || math.IsInf(off, 0) {
			return fmt.Errorf("the distance of the gradient %q is %v: the search has diverged", w.name, off)
		}
		series[w.name] = append(series[w.name], off)
	}
	return nil
}

func (f *followed) move(inputs search.Inputs[*tensors.Tensor]) error {
	next, err := f.call(f.step, inputs, dtypes.Float64)
	f.at++
	if err != nil {
		return err
	}
	for i, t := range next { // in memory, for gradients in both types
		next[i] = tensors.FromFlatDataAndDimensions(floats64(t), t.Shape().Dimensions...)
	}
	f.state = next
	return nil
}

// in is a tensor of floats in a type; integers stay.
func in(t *tensors.Tensor, dtype dtypes.DType) *tensors.Tensor {
	dims := t.Shape().Dimensions
	switch {
	case t.DType() == dtype || t.DType() == dtypes.Int32:
		return t
	case dtype == dtypes.Float64:
		return tensors.FromFlatDataAndDimensions(floats64(t), dims...)
	}
	wide := floats64(t)
	single := make([]float32, len(wide))
	for i, x := range wide {
		single[i] = float32(x)
	}
	return tensors.FromFlatDataAndDimensions(single, dims...)
}

func floats64(t *tensors.Tensor) []float64 {
	if t.DType() == dtypes.Float64 {
		return tensors.MustCopyFlatData[float64](t)
	}
	single := tensors.MustCopyFlatData[float32](t)
	wide := make([]float64, len(single))
	for i, x := range single {
		wide[i] = float64(x)
	}
	return wide
}
