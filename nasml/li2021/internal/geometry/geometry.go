// Package geometry compares mirror descents on a product of simplices: it counts the steps that exponentiated gradient,
// projected SGD and SGD on logits need to reach the same mean gap, and measures the norms in their bounds.
package geometry

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what a number of steps depends on; Kind says which fields apply.
type Trial struct {
	Kind    string    `json:"kind"`             // "theory": the step of the bound; "tuned": each of Rates; "norms"
	Method  string    `json:"method,omitempty"` // "eg", "projected" or "softmax"
	Oracle  string    `json:"oracle,omitempty"` // "dense" or "sparse"
	Edges   int       `json:"edges"`
	Options int       `json:"options"`
	Gap     float64   `json:"gap,omitempty"`
	Margin  float64   `json:"margin,omitempty"`
	Rates   []float64 `json:"rates,omitempty"`
	Draws   int       `json:"draws,omitempty"`
}

// Run computes the trial.
func (t Trial) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	switch t.Kind {
	case "norms":
		return t.norms(seed), nil
	case "theory":
		return t.theory(ctx, seed)
	}
	return t.tuned(ctx, seed)
}

// Bound is the number of steps after which the mean gap of a run is at most Gap, by the regret of mirror descent with
// entries bounded by 1: 2 ln|O|/ε² for EG and (1−1/|O|)G²/ε² for projected SGD, G² = |O| or, sparse, 1.
func (t Trial) Bound() float64 {
	k := float64(t.Options)
	if t.Method == "eg" {
		return 2 * math.Log(k) / (t.Gap * t.Gap)
	}
	return (1 - 1/k) * t.square() / (t.Gap * t.Gap)
}

// square is G², the squared ℓ₂ norm of an edge's gradient.
func (t Trial) square() float64 {
	if t.Oracle == "sparse" {
		return 1
	}
	return float64(t.Options)
}

// step is the step size that the bound is for, with T steps.
func (t Trial) step(steps int) float64 {
	k, n := float64(t.Options), float64(steps)
	if t.Method == "eg" {
		return math.Sqrt(2 * math.Log(k) / n)
	}
	return math.Sqrt((1 - 1/k) / (t.square() * n))
}

// Cap is where a run at a bad rate is given up.
func (t Trial) Cap() int {
	return int(2 * float64(t.Options) / (t.Gap * t.Gap))
}

// gaps runs a method from the uniform point; before each step it calls visit with the mean gap per edge, until that
// returns false.
func (t Trial) gaps(ctx context.Context, eta float64, rng *rand.Rand, visit func(step int, gap float64) bool) error {
	var space simplex.Space = simplex.Entropic{}
	if t.Method == "projected" {
		space = simplex.FlatSimplex{}
	}
	theta := make([][]float64, t.Edges)
	for e := range theta {
		theta[e] = slices.Repeat([]float64{1 / float64(t.Options)}, t.Options)
	}
	grad := make([]float64, t.Options)
	for step := 0; ; step++ {
		gap := 0.0
		for _, row := range theta {
			gap += t.Margin * (1 - row[0]) / float64(t.Edges)
		}
		if !visit(step, gap) {
			return nil
		}
		if err := descent.EverySo(ctx, step); err != nil {
			return err
		}
		for _, row := range theta {
			t.draw(grad, rng)
			if t.Method == "softmax" {
				descent.ThroughSoftmax(row, grad)
			}
			space.Step(row, grad, eta)
		}
	}
}

// draw writes one edge's gradient: ±1 with mean −Margin at operation 0, and ±1 with mean 0, or 0, elsewhere.
func (t Trial) draw(grad []float64, rng *rand.Rand) {
	if t.Oracle == "dense" {
		var bits uint64
		for o := range grad {
			if o&63 == 0 {
				bits = rng.Uint64()
			}
			grad[o] = float64(2*int(bits&1)) - 1
			bits >>= 1
		}
	}
	grad[0] = 1
	if rng.Float64() < (1+t.Margin)/2 {
		grad[0] = -1
	}
}

// theory is the least T of the grid 2^{j/4} for which the mean gap of runs at the bound's step is at most Gap; the
// bound is on an expectation.
func (t Trial) theory(ctx context.Context, seed uint64) (trial.Result, error) {
	at := func(j int) int { return int(math.Round(math.Pow(2, float64(j)/4))) }
	reached := func(j int) (bool, error) {
		const repeats = 4
		steps, sum := at(j), 0.0
		for i := range repeats {
			rng := trial.RNG(seed, "mirror", t.Method, strconv.Itoa(i))
			err := t.gaps(ctx, t.step(steps), rng, func(step int, gap float64) bool {
				if step == steps {
					return false
				}
				sum += gap
				return true
			})
			if err != nil {
				return false, err
			}
		}
		return sum/float64(repeats*steps) <= t.Gap, nil
	}
	lo, hi := 0, 8 // at(lo) is not enough, at(hi) is, once it is found
	for {
		ok, err := reached(hi)
		if err != nil {
			return trial.Result{}, err
		}
		if ok {
			break
		}
		if at(hi) > 16*t.Cap() {
			return trial.Result{}, fmt.Errorf("the gap is not reached in %d steps, which the bound has at %.4g",
				at(hi), t.Bound())
		}
		lo, hi = hi, hi+4
	}
	for hi-lo > 1 {
		middle := (lo + hi) / 2
		ok, err := reached(middle)
		if err != nil {
			return trial.Result{}, err
		}
		if ok {
			hi = middle
		} else {
			lo = middle
		}
	}
	return trial.Result{Values: map[string]float64{"steps": float64(at(hi)), "bound": t.Bound()}}, nil
}

// tuned is, for each rate, the first step at which the mean gap so far is at most Gap, or the cap.
func (t Trial) tuned(ctx context.Context, seed uint64) (trial.Result, error) {
	out := trial.Result{Series: map[string][]float64{}}
	for _, rate := range t.Rates {
		sum, first := 0.0, t.Cap()
		err := t.gaps(ctx, rate, trial.RNG(seed, "mirror", t.Method), func(step int, gap float64) bool {
			sum += gap
			if sum <= t.Gap*float64(step+1) {
				first = step + 1
				return false
			}
			return step < t.Cap()
		})
		if err != nil {
			return trial.Result{}, err
		}
		out.Series["steps"] = append(out.Series["steps"], float64(first))
	}
	return out, nil
}

// norms measures, at random points of the product of simplices:
//
//   - step, egStep: |objective of eq. 4 and 5 at the step − its closed form|,
//     −η²‖g‖²/2 and −Σ_e log Z_e, and better: how far a random feasible point
//     is below that, at most;
//   - convex: the least D_φ(x‖y)/(‖x−y‖₁²/|E|), ½ where the norm is right;
//   - dual: the largest ⟨g, x⟩/(√|E|‖g‖_∞ · ‖x‖₁/√|E|), and at the maximizer;
//   - ratio: ‖g‖₂²/‖g‖_∞² of an edge's gradient, for entries ±1, for entries
//     of a sine, and for one entry;
//   - monteCarlo: E‖ĝ‖²/‖g‖² of the score-function gradient in the logits.
func (t Trial) norms(seed uint64) trial.Result {
	rng := trial.RNG(seed, "norms")
	v := map[string]float64{
		"step": 0, "eg_step": 0, "better": math.Inf(-1), "convex": math.Inf(1), "dual": 0, "attained": math.Inf(1),
	}
	for range t.Draws {
		t.proximal(v, rng)
		x, y := t.point(rng), t.point(rng)
		d := make([][]float64, t.Edges)
		for e := range d {
			d[e] = make([]float64, t.Options)
			for o := range d[e] {
				d[e][o] = x[e][o] - y[e][o]
			}
		}
		v["convex"] = math.Min(v["convex"], simplex.BregmanOf(x, y)/math.Pow(simplex.Norm(d), 2))
		g, product := t.normal(rng), 0.0
		for e := range g {
			product += descent.Inner(g[e], d[e])
		}
		v["dual"] = math.Max(v["dual"], product/(simplex.DualNorm(g)*simplex.Norm(d)))
		v["attained"] = math.Min(v["attained"], attained(g))
	}
	t.ratios(v, rng)
	v["monte_carlo"] = t.monteCarlo(rng)
	return trial.Result{Values: v}
}

func (t Trial) point(rng *rand.Rand) [][]float64 {
	sharp := math.Exp(1.5 * rng.NormFloat64()) // near the middle and near the corners
	logits := t.normal(rng)
	for _, row := range logits {
		for o := range row {
			row[o] *= sharp
		}
	}
	return simplex.PhiConjugateGradient(logits)
}

func (t Trial) normal(rng *rand.Rand) [][]float64 {
	x := make([][]float64, t.Edges)
	for e := range x {
		x[e] = make([]float64, t.Options)
		for o := range x[e] {
			x[e][o] = rng.NormFloat64()
		}
	}
	return x
}

// proximal notes how well the steps of eq. 4 and 5 minimize their objectives.
func (t Trial) proximal(v map[string]float64, rng *rand.Rand) {
	theta, g, eta := t.point(rng), t.normal(rng), rng.Float64()
	next := simplex.EGOf(theta, g, eta)
	objective := func(u [][]float64) float64 {
		sum := simplex.BregmanOf(u, theta)
		for e := range u {
			sum += eta * descent.Inner(g[e], u[e])
		}
		return sum
	}
	closed, square, flat := 0.0, 0.0, 0.0
	for e, row := range theta {
		z := 0.0
		for o, x := range row {
			z += x * math.Exp(-eta*g[e][o])
		}
		closed -= math.Log(z)
		w := slices.Clone(row) // eq. 4 on ℝᵏ, at the same point
		simplex.Euclidean{}.Step(w, g[e], eta)
		square -= eta * eta * descent.Inner(g[e], g[e]) / 2
		flat += eta*(descent.Inner(g[e], w)-descent.Inner(g[e], row)) + simplex.Euclidean{}.Divergence(w, row)
	}
	v["eg_step"] = math.Max(v["eg_step"], math.Abs(objective(next)-closed))
	v["step"] = math.Max(v["step"], math.Abs(flat-square)/(1-square))
	other, toward := t.point(rng), math.Exp(-6*rng.Float64())
	for e := range other {
		for o := range other[e] {
			other[e][o] = toward*other[e][o] + (1-toward)*next[e][o]
		}
	}
	v["better"] = math.Max(v["better"], objective(next)-objective(other))
}

// attained is ⟨g, x⟩ over the product of the norms at the best x, which has one entry.
func attained(g [][]float64) float64 {
	x, best := make([][]float64, len(g)), [2]int{}
	for e := range g {
		x[e] = make([]float64, len(g[e]))
		for o, v := range g[e] {
			if math.Abs(v) > math.Abs(g[best[0]][best[1]]) {
				best = [2]int{e, o}
			}
		}
	}
	at := g[best[0]][best[1]]
	x[best[0]][best[1]] = at
	return at * at / (simplex.DualNorm(g) * simplex.Norm(x))
}

// ratios are ‖g‖₂²/‖g‖_∞² of one edge.
func (t Trial) ratios(v map[string]float64, rng *rand.Rand) {
	dense, sparse := make([]float64, t.Options), make([]float64, t.Options)
	t.Margin, t.Oracle = 0.5, "dense"
	t.draw(dense, rng)
	t.Oracle = "sparse"
	t.draw(sparse, rng)
	phase := rng.Float64()
	sine := make([]float64, t.Options) // operations sin(z + 2πo/|O|)
	for o := range sine {
		sine[o] = math.Sin(2 * math.Pi * (phase + float64(o)/float64(t.Options)))
	}
	for name, g := range map[string][]float64{"ratio_dense": dense, "ratio_sine": sine, "ratio_sparse": sparse} {
		most := simplex.Entropic{}.DualNorm(g)
		v[name] = descent.Inner(g, g) / (most * most)
	}
}

// monteCarlo compares ENAS' gradient with DARTS'. For losses cₑₒ ∼ U(0, 1) at the uniform point the exact gradient in
// the logits is θ⊙(c−⟨θ, c⟩), and the score-function estimate (Σ_e cₑₐ)·(1ₐ − θ), over a random a on each edge.
func (t Trial) monteCarlo(rng *rand.Rand) float64 {
	k := float64(t.Options)
	costs, exact := t.normal(rng), 0.0
	for _, row := range costs {
		m := 0.0
		for o := range row {
			row[o] = rng.Float64()
			m += row[o] / k
		}
		for _, c := range row {
			exact += (c - m) * (c - m) / (k * k)
		}
	}
	second := 0.0
	for range t.Draws {
		loss := 0.0
		for _, row := range costs {
			loss += row[rng.IntN(t.Options)]
		}
		second += loss * loss * float64(t.Edges) * (1 - 1/k) / float64(t.Draws) // ‖1ₐ − θ‖² = 1 − 1/k
	}
	return second / exact
}
