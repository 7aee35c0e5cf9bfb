// Package activation trains networks with the activation Σᵢ αᵢσᵢ, one for each α, on the images of two classes.
package activation

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

type function struct{ value, slope func(z float64) float64 }

var known = map[string]function{
	"identity": {func(z float64) float64 { return z }, func(float64) float64 { return 1 }},
	"relu": {func(z float64) float64 { return max(z, 0) },
		func(z float64) float64 { return trial.Indicator(z > 0) }},
	"sigmoid":  {sigmoid, func(z float64) float64 { s := sigmoid(z); return s * (1 - s) }},
	"softplus": {func(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }, sigmoid},
	"tanh":     {math.Tanh, func(z float64) float64 { t := math.Tanh(z); return 1 - t*t }},
	"sin":      {math.Sin, math.Cos},
	"sin4": {func(z float64) float64 { return math.Sin(4*z) / 4 },
		func(z float64) float64 { return math.Cos(4 * z) }},
}

// Names are the known activations, sorted.
func Names() []string { return slices.Sorted(maps.Keys(known)) }

// find is an activation by its name, one of these or an entry of spectral.Activations.
func find(name string) (function, error) {
	if f, ok := known[name]; ok {
		return f, nil
	}
	a, err := spectral.NamedActivation(name)
	if err != nil {
		return function{}, fmt.Errorf("found activation %q, expected one of %q or an entry of spectral.Activations",
			name, Names())
	}
	value := func(z float64) float64 { value, _ := a.Eval(z); return value }
	return function{value, func(z float64) float64 { _, slope := a.Eval(z); return slope }}, nil
}

// Check returns an error if there is no activation of that name, neither here nor in spectral.Activations.
func Check(name string) error {
	_, err := find(name)
	return err
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// Net is the activation search of Section 4.2: f_α(x) = vᵀσ_α(Wx) with σ_α = Σᵢ αᵢσᵢ, v = ±√(c₀/k), W₀ with N(0, 1)
// entries, the same for every α; W is trained by gradient descent on ½Σ(y − f)² (eq. 9) with the step η =
// rate/λ_max(K̂_α).
type Net struct {
	Classes     [2]int   `json:"classes"` // the first has y = −1
	Train       int      `json:"train"`   // n_T
	Pool        int      `json:"pool"`    // the distribution 𝒟: that of so many other images
	Activations []string `json:"activations"`
	Width       int      `json:"width"` // k
	Steps       int      `json:"steps"` // of gradient descent
	C0          float64  `json:"c0"`
	Rate        float64  `json:"rate"` // of gradient descent, in units of 1/λ_max(K̂_α) at W₀
}

// Task is a training sample and the distribution 𝒟, the uniform one on a pool of other images: test risks are exact,
// and a validation sample is drawn from 𝒟 with replacement.
type Task struct {
	Y, PoolY []float64 // ±1

	net         Net
	x, pool     *mat.Dense // [n_T, d], [N, d]: centred by the training mean, unit norm
	gram        *mat.Dense // xxᵀ
	cross       *mat.Dense // pool·xᵀ
	z, zPool    *mat.Dense // pre-activations at W₀
	head        []float64  // v
	activations []function
}

// Images are those of the two classes: pixels of image i, and a label each.
type Images struct {
	Pixels func(i int) []uint8
	Labels []uint8
}

// NewTask draws training sample, pool and W₀ of a seed. It returns an error if there are too few images.
func NewTask(im Images, net Net, seed uint64) (*Task, error) {
	if net.Train+net.Pool > len(im.Labels) {
		return nil, fmt.Errorf("found %d images of the two classes, expected %d for training and %d for the "+
			"distribution: set Train or Pool lower", len(im.Labels), net.Train, net.Pool)
	}
	order := trial.RNG(seed, "images").Perm(len(im.Labels))
	t := &Task{net: net}
	t.x, t.Y = pixels(im, order[:net.Train], net.Classes)
	t.pool, t.PoolY = pixels(im, order[net.Train:net.Train+net.Pool], net.Classes)
	centre(t.x, t.pool)
	_, d := t.x.Dims()
	w := spectral.Normals(trial.RNG(seed, "weights"), net.Width, d)
	t.gram, t.cross, t.z, t.zPool = new(mat.Dense), new(mat.Dense), new(mat.Dense), new(mat.Dense)
	t.gram.Mul(t.x, t.x.T())
	t.cross.Mul(t.pool, t.x.T())
	t.z.Mul(t.x, w.T())
	t.zPool.Mul(t.pool, w.T())
	for j := range net.Width {
		t.head = append(t.head, math.Copysign(math.Sqrt(net.C0/float64(net.Width)), 0.5-float64(j%2)))
	}
	for _, name := range net.Activations {
		f, err := find(name)
		if err != nil {
			return nil, err
		}
		t.activations = append(t.activations, f)
	}
	return t, nil
}

func pixels(im Images, index []int, classes [2]int) (*mat.Dense, []float64) {
	x, y := mat.NewDense(len(index), len(im.Pixels(0)), nil), make([]float64, len(index))
	for i, at := range index {
		row := x.RawRowView(i)
		for j, v := range im.Pixels(at) {
			row[j] = float64(v) / 255
		}
		y[i] = 1
		if int(im.Labels[at]) == classes[0] {
			y[i] = -1
		}
	}
	return x, y
}

// centre subtracts the mean of the training rows and scales every row to unit norm.
func centre(train, pool *mat.Dense) {
	n, d := train.Dims()
	mean := make([]float64, d)
	for i := range n {
		floats.AddScaled(mean, 1/float64(n), train.RawRowView(i))
	}
	for _, m := range []*mat.Dense{train, pool} {
		rows, _ := m.Dims()
		for i := range rows {
			row := m.RawRowView(i)
			floats.Sub(row, mean)
			if norm := floats.Norm(row, 2); norm > 0 {
				floats.Scale(1/norm, row)
			}
		}
	}
}

// apply is σ_α or, for the slope, σ_α′ of every entry of z.
func (t *Task) apply(alpha []float64, z *mat.Dense, slope bool) *mat.Dense {
	out := mat.NewDense(z.RawMatrix().Rows, z.RawMatrix().Cols, nil)
	to, from := out.RawMatrix().Data, z.RawMatrix().Data
	for i, a := range alpha {
		if a == 0 {
			continue
		}
		f := t.activations[i].value
		if slope {
			f = t.activations[i].slope
		}
		for j, v := range from {
			to[j] += a * f(v)
		}
	}
	return out
}

// outputs are vᵀσ_α(z).
func (t *Task) outputs(alpha []float64, z *mat.Dense) []float64 {
	var out mat.VecDense
	out.MulVec(t.apply(alpha, z, false), mat.NewVecDense(len(t.head), t.head))
	return out.RawVector().Data
}

// Train runs gradient descent for one α and returns the outputs on the training sample and on the pool. Descent in W is
// descent of the pre-activations Z = XWᵀ with the Gram matrix of the inputs in front,
//
//	Z ← Z − η XXᵀG,  G = (f − y)vᵀ ⊙ σ_α′(Z) ,
//
// and those of the pool follow from the sum of all G: exact, and cheaper by d/n.
func (t *Task) Train(ctx context.Context, alpha []float64) (train, pool []float64, err error) {
	z := mat.DenseCopyOf(t.z)
	n, k := z.Dims()
	total, step := mat.NewDense(n, k, nil), mat.NewDense(n, k, nil)
	eta := t.net.Rate / t.sharpness(alpha)
	if math.IsInf(eta, 0) {
		return nil, nil, fmt.Errorf("activation search: σ_α is constant at α = %.4g, so there is nothing to train",
			alpha)
	}
	for range t.net.Steps {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		f := t.outputs(alpha, z)
		g := t.apply(alpha, z, true)
		for i := range n {
			row := g.RawRowView(i)
			floats.Mul(row, t.head)
			floats.Scale(f[i]-t.Y[i], row)
		}
		total.Add(total, g)
		step.Mul(t.gram, g)
		step.Scale(eta, step)
		z.Sub(z, step)
	}
	train = t.outputs(alpha, z)
	if floats.HasNaN(train) {
		return nil, nil, fmt.Errorf("activation search: gradient descent diverged at α = %.4g", alpha)
	}
	var moved mat.Dense
	moved.Mul(t.cross, total)
	moved.Scale(-eta, &moved)
	moved.Add(&moved, t.zPool)
	return train, t.outputs(alpha, &moved), nil
}

// sharpness is λ_max of the tangent kernel at W₀, K̂_α = XXᵀ ⊙ (σ_α′(Z₀) diag(v²) σ_α′(Z₀)ᵀ).
func (t *Task) sharpness(alpha []float64) float64 {
	s := t.apply(alpha, t.z, true)
	n, _ := s.Dims()
	for i := range n {
		floats.Mul(s.RawRowView(i), t.head)
	}
	var kernel mat.Dense
	kernel.Mul(s, s.T())
	kernel.MulElem(&kernel, t.gram)
	_, largest := spectral.EigenRange(mat.NewSymDense(n, kernel.RawMatrix().Data))
	return largest
}

var losses = map[string]func(y, f float64) float64{
	"hinge":   func(y, f float64) float64 { return max(0, 1-y*f) },
	"squared": func(y, f float64) float64 { return (y - f) * (y - f) },
	"error":   func(y, f float64) float64 { return trial.Indicator(y*f <= 0) },
}

// Losses are the losses of every example.
func Losses(loss string, y, f []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = losses[loss](y[i], f[i])
	}
	return out
}
