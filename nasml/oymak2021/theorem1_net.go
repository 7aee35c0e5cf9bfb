package oymak2021

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
)

// thm1Activation is an activation and its derivative.
type thm1Activation struct{ value, slope func(z float64) float64 }

var thm1Activations = map[string]thm1Activation{
	"identity": {func(z float64) float64 { return z }, func(float64) float64 { return 1 }},
	"relu":     {func(z float64) float64 { return max(z, 0) }, thm1Step},
	"sigmoid":  {thm1Sigmoid, func(z float64) float64 { s := thm1Sigmoid(z); return s * (1 - s) }},
	"softplus": {func(z float64) float64 { return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }, thm1Sigmoid},
	"tanh":     {math.Tanh, func(z float64) float64 { t := math.Tanh(z); return 1 - t*t }},
	"sin":      {math.Sin, math.Cos},
	"sin4":     {func(z float64) float64 { return math.Sin(4*z) / 4 }, func(z float64) float64 { return math.Cos(4 * z) }},
}

func thm1Step(z float64) float64 {
	if z > 0 {
		return 1
	}
	return 0
}

func thm1Sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// thm1Net is the activation search of Section 4.2: f_α(x) = vᵀσ_α(Wx) with
// σ_α = Σᵢ αᵢσᵢ, v = ±√(c₀/k), W₀ with N(0, 1) entries, the same for every α;
// W is trained by gradient descent on ½Σ(y − f)² (eq. 9) with the step
// η = rate/λ_max(K̂_α).
type thm1Net struct {
	Classes     [2]int   `json:"classes"` // the first has y = −1
	Train       int      `json:"train"`   // n_T
	Pool        int      `json:"pool"`    // the distribution 𝒟: that of so many other images
	Activations []string `json:"activations"`
	Width       int      `json:"width"` // k
	Steps       int      `json:"steps"` // of gradient descent
	C0          float64  `json:"c0"`
	Rate        float64  `json:"rate"` // of gradient descent, in units of 1/λ_max(K̂_α) at W₀
}

// check says what is wrong with the network.
func (n thm1Net) check(c *checker) {
	c.expect(len(n.Activations) >= 1 && distinct(n.Activations), "Activations is %v, want different names", n.Activations)
	for _, name := range n.Activations {
		c.oneOf("Activations", name, slices.Sorted(maps.Keys(thm1Activations))...)
	}
	c.expect(n.Train >= 2 && n.Pool >= 2, "n_T is %d and the pool %d, want at least 2", n.Train, n.Pool)
	c.expect(n.Width >= 2 && n.Width%2 == 0, "Width is %d, want an even number from 2", n.Width)
	c.expect(n.Steps >= 1, "Steps is %d, want at least 1", n.Steps)
	c.expect(n.C0 > 0, "C0 is %v, want more than 0", n.C0)
	c.expect(n.Rate > 0 && n.Rate < 2, "Rate is %v, want between 0 and 2", n.Rate)
	for _, class := range n.Classes {
		c.expect(class >= 0 && class <= 255, "Classes has %d, want labels from 0 to 255", class)
	}
	c.expect(n.Classes[0] != n.Classes[1], "Classes is %v, want two different labels", n.Classes)
}

// thm1Task is a training sample and the distribution 𝒟 that it was drawn from,
// the uniform one on a pool of other images, so that test risks are exact and
// a validation sample is drawn from 𝒟 with replacement.
type thm1Task struct {
	net         thm1Net
	x, pool     *mat.Dense // [n_T, d], [N, d]: centred by the training mean, unit norm
	y, yPool    []float64  // ±1
	gram        *mat.Dense // xxᵀ
	cross       *mat.Dense // pool·xᵀ
	z, zPool    *mat.Dense // pre-activations at W₀
	head        []float64  // v
	activations []thm1Activation
}

// thm1Images are the images of two classes, all of the publisher's training
// split.
func thm1Images(ctx context.Context, name data.Name, classes [2]int) (*data.Images, error) {
	im, err := data.Load(ctx, name, data.Train)
	if err != nil {
		return nil, err
	}
	return im.Classes(uint8(classes[0]), uint8(classes[1]))
}

// newThm1Task draws training sample, pool and W₀ of a seed.
func newThm1Task(im *data.Images, net thm1Net, seed uint64) (*thm1Task, error) {
	if net.Train+net.Pool > im.Len() {
		return nil, fmt.Errorf("found %d images of the two classes, expected %d for training and %d for the distribution: set Train or Pool lower", im.Len(), net.Train, net.Pool)
	}
	order := runs.RNG(seed, "images").Perm(im.Len())
	t := &thm1Task{net: net}
	t.x, t.y = thm1Pixels(im, order[:net.Train], net.Classes)
	t.pool, t.yPool = thm1Pixels(im, order[net.Train:net.Train+net.Pool], net.Classes)
	thm1Centre(t.x, t.pool)
	_, d := t.x.Dims()
	rng := runs.RNG(seed, "weights")
	w := mat.NewDense(net.Width, d, nil)
	w.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, w)
	t.gram, t.cross, t.z, t.zPool = new(mat.Dense), new(mat.Dense), new(mat.Dense), new(mat.Dense)
	t.gram.Mul(t.x, t.x.T())
	t.cross.Mul(t.pool, t.x.T())
	t.z.Mul(t.x, w.T())
	t.zPool.Mul(t.pool, w.T())
	t.head = make([]float64, net.Width)
	for j := range t.head {
		t.head[j] = math.Sqrt(net.C0 / float64(net.Width))
		if j%2 == 1 {
			t.head[j] = -t.head[j]
		}
	}
	for _, name := range net.Activations {
		t.activations = append(t.activations, thm1Activations[name])
	}
	return t, nil
}

// thm1Pixels are chosen images as rows, with targets ±1.
func thm1Pixels(im *data.Images, index []int, classes [2]int) (*mat.Dense, []float64) {
	x, y := mat.NewDense(len(index), len(im.Image(0)), nil), make([]float64, len(index))
	for i, at := range index {
		row := x.RawRowView(i)
		for j, v := range im.Image(at) {
			row[j] = float64(v) / 255
		}
		y[i] = 1
		if int(im.Labels[at]) == classes[0] {
			y[i] = -1
		}
	}
	return x, y
}

// thm1Centre subtracts the mean of the training rows and scales every row to
// unit norm.
func thm1Centre(train, pool *mat.Dense) {
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

// value and slope are σ_α and σ_α′ of every entry of z.
func (t *thm1Task) apply(alpha []float64, z *mat.Dense, slope bool) *mat.Dense {
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
func (t *thm1Task) outputs(alpha []float64, z *mat.Dense) []float64 {
	var out mat.VecDense
	out.MulVec(t.apply(alpha, z, false), mat.NewVecDense(len(t.head), t.head))
	return out.RawVector().Data
}

// train runs gradient descent for one α and returns the outputs on the training
// sample and on the pool. Descent in W is descent of the pre-activations Z = XWᵀ
// with the Gram matrix of the inputs in front,
//
//	Z ← Z − η XXᵀG,  G = (f − y)vᵀ ⊙ σ_α′(Z) ,
//
// and those of the pool follow from the sum of all G: exact, and cheaper by d/n.
func (t *thm1Task) train(ctx context.Context, alpha []float64) (train, pool []float64, err error) {
	z := mat.DenseCopyOf(t.z)
	n, k := z.Dims()
	total, step := mat.NewDense(n, k, nil), mat.NewDense(n, k, nil)
	eta := t.net.Rate / t.sharpness(alpha)
	if math.IsInf(eta, 0) {
		return nil, nil, fmt.Errorf("activation search: σ_α is constant at α = %.4g, so there is nothing to train", alpha)
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
			floats.Scale(f[i]-t.y[i], row)
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

// sharpness is λ_max of the tangent kernel at W₀,
// K̂_α = XXᵀ ⊙ (σ_α′(Z₀) diag(v²) σ_α′(Z₀)ᵀ).
func (t *thm1Task) sharpness(alpha []float64) float64 {
	s := t.apply(alpha, t.z, true)
	n, _ := s.Dims()
	for i := range n {
		floats.Mul(s.RawRowView(i), t.head)
	}
	var kernel mat.Dense
	kernel.Mul(s, s.T())
	kernel.MulElem(&kernel, t.gram)
	sym := mat.NewSymDense(n, kernel.RawMatrix().Data)
	var eig mat.EigenSym
	if !eig.Factorize(sym, false) {
		return math.NaN()
	}
	values := eig.Values(nil)
	return values[n-1]
}

// thm1Losses are the losses that a network is judged by, under their names in
// parameters.
var thm1Losses = map[string]func(y, f float64) float64{
	"hinge":   func(y, f float64) float64 { return max(0, 1-y*f) },
	"squared": func(y, f float64) float64 { return (y - f) * (y - f) },
	"error": func(y, f float64) float64 {
		if y*f <= 0 {
			return 1
		}
		return 0
	},
}

func thm1CheckLoss(c *checker, name string) {
	c.expect(thm1Losses[name] != nil, "Loss is %q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(thm1Losses)), ", "))
}

// thm1Each are the losses of every example.
func thm1Each(loss string, y, f []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = thm1Losses[loss](y[i], f[i])
	}
	return out
}

// thm1Draw is a validation sample: n examples of the pool with replacement.
func thm1Draw(rng *rand.Rand, pool, n int) []int {
	index := make([]int, n)
	for i := range index {
		index[i] = rng.IntN(pool)
	}
	return index
}

// thm1MeanAt is the mean over the chosen entries.
func thm1MeanAt(values []float64, index []int) float64 {
	sum := 0.0
	for _, i := range index {
		sum += values[i]
	}
	return sum / float64(len(index))
}
