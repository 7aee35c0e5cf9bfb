package roberts

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
)

// This file is the arithmetic of the searches and nothing else: its text is part
// of the code version in the key of a trial.

// teaching is what a search is given: what a record of one depends on.
type teaching struct {
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

// lesson is one search as drawn: data, head, and where W starts.
type lesson struct {
	x, y [2][]float64 // training and validation
	v, w []float64
}

// inputs draws x [n, k] of both parts, and W* and v of the teacher.
func (t teaching) inputs(seed uint64) (x [2][]float64, w, v []float64) {
	for part, n := range []int{t.Train, t.Valid} {
		x[part] = normals(runs.RNG(seed, "x", fmt.Sprint(part)), n*t.Inputs, 1)
	}
	w = normals(runs.RNG(seed, "W*"), t.Inputs*t.Width, t.std())
	v = normals(runs.RNG(seed, "v"), t.Width, 1/math.Sqrt(float64(t.Width)))
	return x, w, v
}

func (t teaching) std() float64 { return t.Spread / math.Sqrt(float64(t.Inputs)) }

// start is where the student begins. A student of another width has a head of
// its own, drawn like the teacher's, and cannot start near it.
func (t teaching) start(seed uint64, w, v []float64) (w0, v0 []float64) {
	rng := runs.RNG(seed, "start", t.Start)
	if t.Student != t.Width {
		return normals(rng, t.Inputs*t.Student, t.std()), normals(rng, t.Student, 1/math.Sqrt(float64(t.Student)))
	}
	if t.Start == "near" {
		w0 = normals(rng, len(w), nearby*t.std())
		floats.Add(w0, w)
		return w0, v
	}
	return normals(rng, len(w), t.std()), v
}

// lesson draws the problem of a seed, with labels y = f_σα*(x, W*) and noise.
func (t teaching) lesson(es *evaluators, seed uint64) (lesson, error) {
	x, w, v := t.inputs(seed)
	l := lesson{x: x}
	for part, n := range []int{t.Train, t.Valid} {
		e, err := es.of(problems{Activations: t.Activations, Count: 1, Points: n, Inputs: t.Inputs, Width: t.Width})
		if err != nil {
			return l, err
		}
		out, err := e.outputs(x[part], w, v)
		if err != nil {
			return l, err
		}
		l.y[part] = combine(t.Teacher, out[0])
		addNoise(l.y[part], t.Noise, runs.RNG(seed, "noise", fmt.Sprint(part)))
	}
	l.w, l.v = t.start(seed, w, v)
	return l, nil
}

func addNoise(y []float64, level float64, rng *rand.Rand) {
	std := stat.PopStdDev(y, nil)
	for i := range y {
		y[i] += level * std * rng.NormFloat64()
	}
}

// class is searches of one shape that are trained together.
type class struct {
	teaching // of all but Noise and Start
	lessons  []lesson
}

// data are the tensors that do not change: x and y of both parts, v.
func (c *class) data() []any {
	var x, y [2][]float64
	var v []float64
	for _, l := range c.lessons {
		for part := range 2 {
			x[part], y[part] = append(x[part], l.x[part]...), append(y[part], l.y[part]...)
		}
		v = append(v, l.v...)
	}
	n := len(c.lessons)
	var out []any
	for part, points := range []int{c.Train, c.Valid} {
		out = append(out, tensors.FromFlatDataAndDimensions(x[part], n, points, c.Inputs), tensors.FromFlatDataAndDimensions(y[part], n, points))
	}
	return append(out, tensors.FromFlatDataAndDimensions(v, n, c.Student))
}

// state is W, its two moments and α: uniform, as searches start.
func (c *class) state() []*tensors.Tensor {
	n, h := len(c.lessons), len(c.Activations)
	var w []float64
	for _, l := range c.lessons {
		w = append(w, l.w...)
	}
	alpha := make([]float64, n*h)
	for i := range alpha {
		alpha[i] = 1 / float64(h)
	}
	dims := []int{n, c.Inputs, c.Student}
	zeros := func() *tensors.Tensor { return tensors.FromFlatDataAndDimensions(make([]float64, len(w)), dims...) }
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(w, dims...), zeros(), zeros(), tensors.FromFlatDataAndDimensions(alpha, n, h)}
}

// train runs Steps steps: Adam on W by the training loss, then the update of α by
// the gradient of the validation loss at the new W (first order), both with a
// cosine schedule to 0. It returns W and α of every search.
func (c *class) train(ctx context.Context, b compute.Backend, step func()) (w, alpha *tensors.Tensor, err error) {
	sigmas, err := activations(c.Activations)
	if err != nil {
		return nil, nil, err
	}
	update := simplex.Updates[c.Update]
	exec, err := NewExec(b, func(in []*Node) []*Node {
		x, y, xv, yv, v, t, decay, state := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7:]
		w, m, s, alpha := state[0], state[1], state[2], state[3]
		gradW := Gradient(mixtureLoss(operations(sigmas, x, w, v), alpha, y), w)
		adam := bilevel.Adam{Beta1: 0.9, Beta2: 0.999}
		// Adam's step is a number in the graph; the schedule scales what it moves.
		moved, ms, ss := adam.Step([]*Node{w}, gradW, []*Node{m}, []*Node{s}, t, c.LearningRate)
		w2 := StopGradient(Add(w, Mul(Sub(moved[0], w), decay)))
		gradAlpha := Gradient(mixtureLoss(operations(sigmas, xv, w2, v), alpha, yv), alpha)[0]
		return []*Node{w2, ms[0], ss[0], update(alpha, Mul(gradAlpha, decay), c.Eta)}
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

// mixtureLoss is Σ over searches of ½ mean (Σᵢ αᵢ f_σᵢ − y)², for outputs
// [S, h, n], α [S, h] and y [S, n].
func mixtureLoss(outputs, alpha, y *Node) *Node {
	e := Sub(Einsum("shn,sh->sn", outputs, alpha), y)
	return MulScalar(ReduceAllSum(Mul(e, e)), 0.5/float64(y.Shape().Dim(1)))
}

// results checks what each search has found, on its validation data.
func (c *class) results(b compute.Backend, teachings []teaching, w, alpha *tensors.Tensor) ([]runs.Result, error) {
	e, err := newEvaluator(b, c.Activations, sizes{len(c.lessons), c.Valid, c.Inputs, c.Student})
	if err != nil {
		return nil, err
	}
	defer e.close()
	var x, v []float64
	for _, l := range c.lessons {
		x, v = append(x, l.x[1]...), append(v, l.v...)
	}
	var flatW []float64
	if flatW, err = tensors.CopyFlatData[float64](w); err != nil {
		return nil, err
	}
	outputs, err := e.outputs(x, flatW, v)
	if err != nil {
		return nil, err
	}
	results := make([]runs.Result, len(c.lessons))
	for i, found := range alpha.Value().([][]float64) {
		report, err := Check(found, outputs[i], c.lessons[i].y[1])
		if err != nil {
			return nil, fmt.Errorf("search %d of %v: %w", i, c.Activations, err)
		}
		results[i] = found2(report, teachings[i].Teacher)
	}
	return results, nil
}

// found2 is what a record keeps of a report.
func found2(r *Report, teacher []float64) runs.Result {
	t := newTally()
	t.add(r)
	for name := range t.series {
		delete(t.series, name)
	}
	t.values["mixture"], t.values["best_loss"] = r.Mixture, r.Loss[r.Best]
	t.values["least_alpha"] = floats.Min(r.Alpha)
	t.values["alpha_error"] = floats.Distance(r.Alpha, teacher, math.Inf(1))
	for i, l := range r.Loss {
		// |√Lᵢ − (1 − αᵢ)√Aᵢ| ≤ √R by the triangle inequality.
		off := math.Abs(math.Sqrt(l) - r.root(i))
		if l > 0 {
			t.most("root_error", off/math.Sqrt(l))
		}
		t.count("bound_wrong", off > math.Sqrt(r.Mixture)+Tolerance*r.size)
		t.count("bounds", true)
	}
	t.series["alpha"], t.series["loss"] = r.Alpha, r.Loss
	return t.result()
}
