// Package sparsity measures how fast updates of θ decide for an operation, on one stream of gradients and in a small
// search, what the arg max loses, and what XNAS' wipe-out changes.
package sparsity

import (
	"context"
	"math"
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
