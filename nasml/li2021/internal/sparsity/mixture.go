package sparsity

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

var unitOps = []func(z float64) (value, slope float64){
	func(float64) (float64, float64) { return 0, 0 },
	func(z float64) (float64, float64) { return z, 1 },
	func(z float64) (float64, float64) {
		if z > 0 {
			return z, 1
		}
		return 0, 0
	},
	func(z float64) (float64, float64) { t := math.Tanh(z); return t, 1 - t*t },
	func(z float64) (float64, float64) { s, c := math.Sincos(2 * z); return s, 2 * c },
}

// mixtureNet is y = |units|^{−½} Σ_j v_j Σ_o θ_jo σ_o(⟨w_j, x⟩), v_j = ±1 fixed.
type mixtureNet struct {
	v []float64
	w [][]float64
}

// at is the output at x; it adds the gradients of ½(y−target)², times a weight, to those that are not nil.
func (n mixtureNet) at(theta [][]float64, x []float64, target, weight float64, gradW, gradTheta [][]float64) float64 {
	scale, out := 1/math.Sqrt(float64(len(n.v))), 0.0
	var values [16][8]float64
	cache := values[:0]
	slopes := make([]float64, 0, 16)
	for j, w := range n.w {
		z, slope := descent.Inner(w, x), 0.0
		var row [8]float64
		for o, op := range unitOps {
			value, d := op(z)
			row[o] = value
			out += scale * n.v[j] * theta[j][o] * value
			slope += theta[j][o] * d
		}
		cache, slopes = append(cache, row), append(slopes, slope)
	}
	if gradW == nil && gradTheta == nil {
		return out
	}
	r := weight * (out - target) * scale
	for j := range n.w {
		if gradW != nil {
			for k, v := range x {
				gradW[j][k] += r * n.v[j] * slopes[j] * v
			}
		}
		if gradTheta != nil {
			for o := range unitOps {
				gradTheta[j][o] += r * n.v[j] * cache[j][o]
			}
		}
	}
	return out
}

type example struct {
	x []float64
	y float64
}

// mixture searches operations of a small net on a discrete teacher's data and returns the test loss of the mixture and
// of its arg max, without retraining.
func (t Trial) mixture(ctx context.Context, seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "mixture")
	teacher, answer := t.randomNet(rng), newChooser("eg", 1, t.Edges, len(unitOps)).theta
	for _, row := range answer {
		clear(row)
		row[rng.IntN(len(row))] = 1
	}
	draw := func(count int, noise float64) []example {
		out := make([]example, count)
		for i := range out {
			x := make([]float64, t.Inputs)
			for k := range x {
				x[k] = rng.NormFloat64()
			}
			out[i] = example{x, teacher.at(answer, x, 0, 0, nil, nil) + noise*rng.NormFloat64()}
		}
		return out
	}
	train, valid, test := draw(t.Examples, t.Noise), draw(t.Examples, t.Noise), draw(1000, 0)
	if t.Level == "erm" {
		train = append(train, valid...)
		valid = train
	}
	net := t.randomNet(rng)
	net.v = teacher.v
	c := newChooser(t.Method, t.Rate, t.Edges, len(unitOps))
	if err := t.search(ctx, net, c, train, valid, trial.RNG(seed, "batches")); err != nil {
		return trial.Result{}, err
	}
	discrete := newChooser("eg", 1, t.Edges, len(unitOps)).theta
	for j, row := range discrete {
		clear(row)
		row[slices.Index(c.theta[j], slices.Max(c.theta[j]))] = 1
	}
	mixture, arg := net.loss(c.theta, test), net.loss(discrete, test)
	return trial.Result{Values: map[string]float64{
		"mixture": mixture, "discrete": arg, "increase": arg - mixture, "entropy": simplex.EntropyOf(c.theta),
	}}, nil
}

func (t Trial) randomNet(rng *rand.Rand) mixtureNet {
	n := mixtureNet{v: make([]float64, t.Edges)}
	for j := range n.v {
		n.v[j] = float64(2*rng.IntN(2) - 1)
		w := make([]float64, t.Inputs)
		for k := range w {
			w[k] = rng.NormFloat64() / math.Sqrt(float64(t.Inputs))
		}
		n.w = append(n.w, w)
	}
	return n
}

// loss is the mean squared error.
func (n mixtureNet) loss(theta [][]float64, data []example) (sum float64) {
	for _, d := range data {
		r := n.at(theta, d.x, 0, 0, nil, nil) - d.y
		sum += r * r / float64(len(data))
	}
	return sum
}

// search alternates θ steps on valid with SGD steps on train, as in DARTS: momentum 0.9, gradients clipped to length 5,
// and a step size that falls from 0.025 along a cosine.
func (t Trial) search(ctx context.Context, n mixtureNet, c *chooser, train, valid []example, rng *rand.Rand) error {
	gradW, gradTheta, speed := zerosLike(n.w), zerosLike(c.theta), zerosLike(n.w)
	for step := range t.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		clearRows(gradTheta)
		for range t.Batch {
			d := valid[rng.IntN(len(valid))]
			n.at(c.theta, d.x, d.y, 1/float64(t.Batch), nil, gradTheta)
		}
		c.step(gradTheta)
		clearRows(gradW)
		for range t.Batch {
			d := train[rng.IntN(len(train))]
			n.at(c.theta, d.x, d.y, 1/float64(t.Batch), gradW, nil)
		}
		length := 0.0
		for _, row := range gradW {
			length += descent.Inner(row, row)
		}
		clip := math.Min(1, 5/math.Sqrt(math.Max(length, 1e-300)))
		rate := 0.025 / 2 * (1 + math.Cos(math.Pi*float64(step)/float64(t.Steps)))
		for j, row := range gradW {
			for k, g := range row {
				speed[j][k] = 0.9*speed[j][k] + clip*g
				n.w[j][k] -= rate * speed[j][k]
			}
		}
	}
	return nil
}

func zerosLike(x [][]float64) [][]float64 {
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = make([]float64, len(row))
	}
	return out
}

func clearRows(x [][]float64) {
	for _, row := range x {
		clear(row)
	}
}
