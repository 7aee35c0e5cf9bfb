// Package searching trains the weights α of a mixture and the network below it
// together, on the outputs of a teacher: the real searches of Roberts+.
package searching

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Teaching is what a search is given: what a record of one depends on.
type Teaching struct {
	Activations  []string  `json:"activations"`
	Probe        string    `json:"probe"`
	Teacher      []float64 `json:"teacher"` // α*
	Inputs       int       `json:"inputs"`
	Width        int       `json:"width"`   // of the teacher
	Student      int       `json:"student"` // hidden units of the student
	Spread       float64   `json:"spread"`
	Train        int       `json:"train"`
	Valid        int       `json:"valid"`
	Noise        float64   `json:"noise"` // of all labels, in standard deviations of the signal
	Start        string    `json:"start"` // "near" or "random"
	Update       string    `json:"update"`
	Eta          float64   `json:"eta"`
	LearningRate float64   `json:"learning_rate"`
	Steps        int       `json:"steps"`
}

// nearby is how far W starts from W* with Start "near", in standard deviations.
const nearby = 0.1

// Lesson is one search as drawn: data, head, and where W starts.
type Lesson struct {
	x, y [2][]float64 // training and validation
	v, w []float64
}

// inputs draws x [n, k] of both parts, and W* and v of the teacher.
func (t Teaching) inputs(seed uint64) (x [2][]float64, w, v []float64) {
	for part, n := range []int{t.Train, t.Valid} {
		x[part] = trial.Normals(trial.RNG(seed, "x", fmt.Sprint(part)), n*t.Inputs, 1)
	}
	w = trial.Normals(trial.RNG(seed, "W*"), t.Inputs*t.Width, t.std())
	v = trial.Normals(trial.RNG(seed, "v"), t.Width, 1/math.Sqrt(float64(t.Width)))
	return x, w, v
}

func (t Teaching) std() float64 { return t.Spread / math.Sqrt(float64(t.Inputs)) }

// start is where the student begins. A student of another width has a head of
// its own, drawn like the teacher's, and cannot start near it.
func (t Teaching) start(seed uint64, w, v []float64) (w0, v0 []float64) {
	rng := trial.RNG(seed, "start", t.Start)
	if t.Student != t.Width {
		w0 = trial.Normals(rng, t.Inputs*t.Student, t.std())
		return w0, trial.Normals(rng, t.Student, 1/math.Sqrt(float64(t.Student)))
	}
	if t.Start == "near" {
		w0 = trial.Normals(rng, len(w), nearby*t.std())
		floats.Add(w0, w)
		return w0, v
	}
	return trial.Normals(rng, len(w), t.std()), v
}

// Draw draws the problem of a seed, with labels y = f_σα*(x, W*) and noise.
func (t Teaching) Draw(es *mixture.Evaluators, seed uint64) (Lesson, error) {
	x, w, v := t.inputs(seed)
	l := Lesson{x: x}
	for part, n := range []int{t.Train, t.Valid} {
		e, err := es.Of(
			mixture.Problems{Activations: t.Activations, Count: 1, Points: n, Inputs: t.Inputs, Width: t.Width})
		if err != nil {
			return l, err
		}
		out, err := e.Outputs(x[part], w, v)
		if err != nil {
			return l, err
		}
		l.y[part] = mixture.Combine(t.Teacher, out[0])
		mixture.AddNoise(l.y[part], t.Noise, trial.RNG(seed, "noise", fmt.Sprint(part)))
	}
	l.w, l.v = t.start(seed, w, v)
	return l, nil
}

// Class is searches of one shape that are trained together.
type Class struct {
	Teaching // of all but Noise and Start
	Lessons  []Lesson
}

// data are the tensors that do not change: x and y of both parts, v.
func (c *Class) data() []any {
	var x, y [2][]float64
	var v []float64
	for _, l := range c.Lessons {
		for part := range 2 {
			x[part], y[part] = append(x[part], l.x[part]...), append(y[part], l.y[part]...)
		}
		v = append(v, l.v...)
	}
	n := len(c.Lessons)
	var out []any
	for part, points := range []int{c.Train, c.Valid} {
		out = append(out, tensors.FromFlatDataAndDimensions(x[part], n, points, c.Inputs),
			tensors.FromFlatDataAndDimensions(y[part], n, points))
	}
	return append(out, tensors.FromFlatDataAndDimensions(v, n, c.Student))
}

// state is W, its two moments and α: uniform, as searches start.
func (c *Class) state() []*tensors.Tensor {
	n, h := len(c.Lessons), len(c.Activations)
	var w []float64
	for _, l := range c.Lessons {
		w = append(w, l.w...)
	}
	alpha := slices.Repeat([]float64{1 / float64(h)}, n*h)
	dims := []int{n, c.Inputs, c.Student}
	zeros := func() *tensors.Tensor { return tensors.FromFlatDataAndDimensions(make([]float64, len(w)), dims...) }
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(w, dims...),
		zeros(),
		zeros(),
		tensors.FromFlatDataAndDimensions(alpha, n, h),
	}
}

// Fit runs Steps steps: Adam on W by the training loss, then the update of α by the gradient of the validation loss at
// the new W (first order), both with a cosine schedule to 0. It returns W and α of every search.
func (c *Class) Fit(ctx context.Context, b compute.Backend, step func()) (w, alpha *tensors.Tensor, err error) {
	sigmas, err := mixture.ActivationsOf(c.Activations)
	if err != nil {
		return nil, nil, err
	}
	update := simplex.Updates[c.Update]
	exec, err := NewExec(b, func(in []*Node) []*Node {
		x, y, xv, yv, v, t, decay, state := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7:]
		w, alpha := state[0], state[3]
		gradW := Gradient(mixtureLoss(mixture.Operations(sigmas, x, w, v), alpha, y), w)
		// Adam's rate is a number in the graph; the schedule scales what it moves.
		adam := bilevel.Adam{Beta1: 0.9, Beta2: 0.999}.Rule().At(c.LearningRate)
		moved, moments := adam.Step("Adam", bilevel.Move{Params: state[:1], Grads: gradW, Slots: state[1:3], Done: t})
		w2 := StopGradient(Add(w, Mul(Sub(moved[0], w), decay)))
		gradAlpha := Gradient(mixtureLoss(mixture.Operations(sigmas, xv, w2, v), alpha, yv), alpha)[0]
		return []*Node{w2, moments[0], moments[1], update(alpha, Mul(gradAlpha, decay), c.Eta)}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("building the search of %v: %w", c.Activations, err)
	}
	defer exec.Finalize()
	data, state := c.data(), c.state()
	for i := range c.Steps {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		in := append(append([]any{}, data...), float64(i), bilevel.Cosine(1, 0, i, c.Steps))
		for _, s := range state {
			in = append(in, s)
		}
		out, err := exec.Call(in...)
		if err != nil {
			return nil, nil, fmt.Errorf("step %d: %w", i, err)
		}
		for _, s := range state {
			if err := s.FinalizeAll(); err != nil {
				return nil, nil, err
			}
		}
		state = out
		step()
	}
	return state[0], state[3], nil
}

// mixtureLoss is Σ over searches of ½ mean (Σᵢ αᵢ f_σᵢ − y)², for outputs [S, h, n], α [S, h] and y [S, n].
func mixtureLoss(outputs, alpha, y *Node) *Node {
	e := Sub(Einsum("shn,sh->sn", outputs, alpha), y)
	return MulScalar(ReduceAllSum(Mul(e, e)), 0.5/float64(y.Shape().Dim(1)))
}

// Results checks what each search has found, on its validation data.
func (c *Class) Results(b compute.Backend, teachings []Teaching, w, alpha *tensors.Tensor) ([]trial.Result, error) {
	e, err := mixture.NewEvaluator(b, c.Activations,
		mixture.Sizes{Count: len(c.Lessons), Points: c.Valid, Inputs: c.Inputs, Width: c.Student})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var x, v []float64
	for _, l := range c.Lessons {
		x, v = append(x, l.x[1]...), append(v, l.v...)
	}
	flatW, err := tensors.CopyFlatData[float64](w)
	if err != nil {
		return nil, err
	}
	outputs, err := e.Outputs(x, flatW, v)
	if err != nil {
		return nil, err
	}
	results := make([]trial.Result, len(c.Lessons))
	for i, found := range alpha.Value().([][]float64) {
		report, err := mixture.Check(found, outputs[i], c.Lessons[i].y[1])
		if err != nil {
			return nil, fmt.Errorf("search %d of %v: %w", i, c.Activations, err)
		}
		results[i] = mixture.Found(report, teachings[i].Teacher)
	}
	return results, nil
}
