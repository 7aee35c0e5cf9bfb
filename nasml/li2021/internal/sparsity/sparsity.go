// Package sparsity measures how fast updates of θ decide for an operation, on one stream of gradients and in a small
// search, what the arg max loses, and what XNAS' wipe-out changes.
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

// Methods are the compared updates of θ: EG, SGD on logits, and Adam on logits.
var Methods = []string{"eg", "softmax", "adam"}

// Trial is what a record depends on; Kind says which fields apply.
type Trial struct {
	Kind     string  `json:"kind"`             // "stream", "mixture" or "wipeout"
	Method   string  `json:"method,omitempty"` // one of Methods
	Rate     float64 `json:"rate,omitempty"`
	Level    string  `json:"level,omitempty"`
	Edges    int     `json:"edges,omitempty"` // or units
	Options  int     `json:"options,omitempty"`
	Inputs   int     `json:"inputs,omitempty"`
	Margin   float64 `json:"margin,omitempty"`
	Noise    float64 `json:"noise,omitempty"`
	Below    float64 `json:"below,omitempty"`
	Batch    int     `json:"batch,omitempty"`
	Examples int     `json:"examples,omitempty"`
	Steps    int     `json:"steps,omitempty"`
	Runs     int     `json:"runs,omitempty"`
	Eager    float64 `json:"eager,omitempty"`
}

// Run computes the trial.
func (t Trial) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	switch t.Kind {
	case "stream":
		return t.stream(seed), nil
	case "wipeout":
		return t.wipeout(seed), nil
	}
	return t.mixture(ctx, seed)
}

// chooser moves θ, rows of simplices, by one of the updates.
type chooser struct {
	method string
	rate   float64
	theta  [][]float64
	logits [][]float64 // of Adam
	m, v   [][]float64 // its moments
	steps  int
}

func newChooser(method string, rate float64, edges, options int) *chooser {
	c := &chooser{method: method, rate: rate}
	for range edges {
		c.theta = append(c.theta, slices.Repeat([]float64{1 / float64(options)}, options))
		c.logits = append(c.logits, make([]float64, options))
		c.m, c.v = append(c.m, make([]float64, options)), append(c.v, make([]float64, options))
	}
	return c
}

// step takes one step against the gradient in θ, which it overwrites.
func (c *chooser) step(grad [][]float64) {
	c.steps++
	for e, row := range c.theta {
		switch c.method {
		case "softmax":
			descent.ThroughSoftmax(row, grad[e])
			simplex.Entropic{}.Step(row, grad[e], c.rate)
		case "adam":
			descent.ThroughSoftmax(row, grad[e])
			c.adam(e, grad[e])
		default:
			simplex.Entropic{}.Step(row, grad[e], c.rate)
		}
	}
}

// adam is DARTS' optimizer of logits: Adam with β = (0.5, 0.999) and weight decay 1e-3 in the gradient.
func (c *chooser) adam(e int, grad []float64) {
	const beta1, beta2, decay, tiny = 0.5, 0.999, 1e-3, 1e-8
	n := float64(c.steps)
	for o, g := range grad {
		g += decay * c.logits[e][o]
		c.m[e][o] = beta1*c.m[e][o] + (1-beta1)*g
		c.v[e][o] = beta2*c.v[e][o] + (1-beta2)*g*g
		mean, square := c.m[e][o]/(1-math.Pow(beta1, n)), c.v[e][o]/(1-math.Pow(beta2, n))
		c.logits[e][o] -= c.rate * mean / (math.Sqrt(square) + tiny)
	}
	copy(c.theta[e], simplex.PhiConjugateGradient([][]float64{c.logits[e]})[0])
}

// stream gives a method the gradients of a seed, the same for all methods, and records the entropy at about 60 times,
// the first step below Below, whether every arg max is right at the end, and the error of EG's closed form.
func (t Trial) stream(seed uint64) trial.Result {
	rng := trial.RNG(seed, "stream")
	c := newChooser(t.Method, t.Rate, t.Edges, t.Options)
	best, grad := make([]int, t.Edges), make([][]float64, t.Edges)
	for e := range best {
		best[e], grad[e] = rng.IntN(t.Options), make([]float64, t.Options)
	}
	out := trial.Result{Values: map[string]float64{"first": float64(t.Steps)}, Series: map[string][]float64{}}
	next, found, worst := 1.0, false, 0.0
	for step := 1; step <= t.Steps; step++ {
		for e, row := range grad {
			for o := range row {
				row[o] = t.Noise * rng.NormFloat64()
			}
			row[best[e]] -= t.Margin
		}
		c.step(grad)
		entropy := simplex.EntropyOf(c.theta)
		if entropy < t.Below && !found {
			found, out.Values["first"] = true, float64(step)
		}
		if float64(step) >= next || step == t.Steps {
			out.Series["step"] = append(out.Series["step"], float64(step))
			out.Series["entropy"] = append(out.Series["entropy"], entropy)
			next *= 1.15
		}
		if t.Noise == 0 && t.Method == "eg" { // odds of the best operation e^{ηct}
			odds := math.Exp(-t.Rate * t.Margin * float64(step))
			worst = math.Max(worst, math.Abs(c.theta[0][best[0]]-1/(1+float64(t.Options-1)*odds)))
		}
	}
	right := 0.0
	for e, row := range c.theta {
		if slices.Index(row, slices.Max(row)) == best[e] {
			right += 1 / float64(t.Edges)
		}
	}
	out.Values["right"], out.Values["closed"], out.Values["end"] = right, worst, simplex.EntropyOf(c.theta)
	return out
}

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

// wipeout runs XNAS' update of one edge, L = 1 and η = √(2 ln|O|/T), on random sequences of gradients in [−1, 1], with
// and without wipe-out, the exponent of its threshold times Eager. It also clips gradients of 0.2 (nine in ten) and −5
// (one in ten) to ±0.25 for each example and returns both means.
func (t Trial) wipeout(seed uint64) trial.Result {
	rng := trial.RNG(seed, "wipeout")
	eta := math.Sqrt(2 * math.Log(float64(t.Options)) / float64(t.Steps))
	changed, wiped, mean, clipped := 0.0, 0.0, 0.0, 0.0
	share := 1 / float64(t.Runs)
	for range t.Runs {
		lean, kept, all := make([]float64, t.Options), make([]float64, t.Options), make([]float64, t.Options)
		for o := range lean {
			lean[o] = 0.4 * rng.NormFloat64()
		}
		for step := 1; step <= t.Steps; step++ {
			drift := 0.3 * math.Sin(6*float64(step)/float64(t.Steps)) // leaders change
			for o := range lean {
				g := math.Max(-1, math.Min(1, lean[o]+drift*float64(o%2*2-1)+0.5*rng.NormFloat64()))
				kept[o], all[o] = kept[o]-eta*g, all[o]-eta*g
			}
			threshold := slices.Max(kept) - 2*eta*t.Eager*float64(t.Steps-step)
			for o := range kept {
				if kept[o] < threshold {
					kept[o] = math.Inf(-1)
				}
			}
			if step == 3*t.Steps/4 {
				for _, v := range kept {
					if math.IsInf(v, -1) {
						wiped += share / float64(t.Options)
					}
				}
			}
		}
		if slices.Index(kept, slices.Max(kept)) != slices.Index(all, slices.Max(all)) {
			changed += share
		}
		for range 10 {
			g := 0.2
			if rng.IntN(10) == 0 {
				g = -5
			}
			mean += g * share / 10
			clipped += math.Max(-0.25, math.Min(0.25, g)) * share / 10
		}
	}
	return trial.Result{Values: map[string]float64{"changed": changed, "wiped": wiped, "mean": mean,
		"clipped": clipped}}
}
