// Package algorithm2 runs Algorithm 2 of Li+ 2021 over b blocks and computes every term of Theorem 2's bound.
package algorithm2

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/li2021/internal/smoothnet"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what the runs on one problem depend on; Kind says which other fields apply.
type Trial struct {
	Kind     string            `json:"kind"` // "net", "xy" or "norms"
	Net      *smoothnet.Params `json:"net,omitempty"`
	Blocks   int               `json:"blocks,omitempty"`
	Ratio    float64           `json:"ratio,omitempty"` // γ̂/γ
	Schedule string            `json:"schedule,omitempty"`
	Iterates int               `json:"iterates,omitempty"`
	Gamma    float64           `json:"gamma,omitempty"`
	Sigma    float64           `json:"sigma,omitempty"`
	Steps    int               `json:"steps,omitempty"`
	Runs     int               `json:"runs,omitempty"`
}

// Run computes the trial; problem gives the supernet of a seed.
func (t Trial) Run(
	ctx context.Context, problem func(seed uint64) (*smoothnet.Problem, error), seed uint64,
) (trial.Result, error) {
	switch t.Kind {
	case "xy":
		return t.saddle(ctx, seed)
	case "norms":
		return norms(seed), nil
	}
	s, err := problem(seed)
	if err != nil {
		return trial.Result{}, err
	}
	return t.supernet(ctx, s, seed)
}

// supernet runs one problem. With f* ≥ 0 replaced by 0 and L² = G_w²+G_θ², which does not depend on the blocks, the
// bound is
//
//	(γ̂b/(γ̂−γ)) · (min_u f(u) + γ̂D(u‖x¹) + (γ̂L²/2b) Σηₜ²) / Σηₜ .
func (t Trial) supernet(ctx context.Context, s *smoothnet.Problem, seed uint64) (trial.Result, error) {
	b, l2, hat := float64(t.Blocks), s.Gw+s.Gt, t.Ratio*s.Gamma
	base := math.Sqrt(b * s.AtStart / (s.Gamma * l2)) // of Corollary 1, up to √(2/T)
	eta := func(int) float64 { return base * math.Sqrt(2/float64(t.Steps)) }
	if t.Schedule == "decreasing" {
		eta = func(step int) float64 { return base / math.Sqrt(float64(step+1)) }
	}
	var sum, squares float64
	for step := range t.Steps {
		sum, squares = sum+eta(step), squares+eta(step)*eta(step)
	}
	least, err := envelope(s, hat)
	if err != nil {
		return trial.Result{}, err
	}
	out := trial.Result{Values: map[string]float64{
		"bound":       hat * b / (hat - s.Gamma) * (least + hat*l2/(2*b)*squares) / sum,
		"gamma":       s.Gamma,
		"f_start":     s.AtStart,
		"delta_start": s.Delta,
	}, Series: map[string][]float64{}}
	for i := range t.Runs {
		delta, err := t.run(ctx, s, eta, hat, seed, strconv.Itoa(i))
		if err != nil {
			return trial.Result{}, err
		}
		out.Series["delta"] = append(out.Series["delta"], delta)
	}
	return out, nil
}

// envelope is min_u f(u) + γ̂ D(u‖x¹).
func envelope(s *smoothnet.Problem, hat float64) (float64, error) {
	m, err := s.Stationarity(s.At, hat/2)
	if err != nil {
		return 0, err
	}
	at := make([][]float64, 0, 2*s.Edges)
	divergence := simplex.BregmanOf(m.Prox.Theta, s.At[s.Edges:])
	for e := range s.Edges {
		at = append(at, m.Prox.W[e*s.Inputs:(e+1)*s.Inputs])
		divergence += simplex.Euclidean{}.Divergence(at[e], s.At[e])
	}
	return s.Value(append(at, m.Prox.Theta...)) + hat*divergence, nil
}

// run is one run's Δ_{1/γ̂}, in expectation over the output's random time.
func (t Trial) run(
	ctx context.Context, s *smoothnet.Problem, eta func(int) float64, hat float64, seed uint64, name string,
) (float64, error) {
	delta, r := 0.0, smoothnet.Run{Blocks: t.Blocks, Steps: t.Steps, Eta: eta}
	r.Times = smoothnet.DrawTimes(trial.RNG(seed, "iterates", name), t.Steps, t.Iterates, eta)
	_, err := s.Descend(ctx, r, seed, name, func(x [][]float64, weight float64) error {
		m, err := s.Stationarity(x, hat/2)
		if err == nil {
			delta += weight * m.Delta
		}
		return err
	})
	return delta, err
}

// norms checks Claims 1 and 2 at random points of ℝ³ × (ℝ³, ‖·‖₁): the most by which ‖x+y‖ exceeds ‖x‖+‖y‖ and ⟨u, x⟩ −
// ½‖x‖² exceeds ½‖u‖_*², and how close the proof's maximizer comes to it.
func norms(seed uint64) trial.Result {
	rng := trial.RNG(seed, "norms")
	parts := []simplex.Space{simplex.Euclidean{}, simplex.Entropic{}}
	draw := func() [][]float64 {
		x := [][]float64{make([]float64, 3), make([]float64, 3)}
		for _, row := range x {
			size := math.Exp(2 * rng.NormFloat64())
			for i := range row {
				row[i] = size * rng.NormFloat64()
			}
		}
		return x
	}
	triangle, above, attained := math.Inf(-1), math.Inf(-1), 0.0
	for range 5000 {
		x, y := draw(), draw()
		norm, dual := simplex.ProductNorm(parts, x), simplex.ProductDualNorm(parts, y)
		sum := [][]float64{slices.Clone(x[0]), slices.Clone(x[1])}
		for p := range sum {
			for i := range sum[p] {
				sum[p][i] += y[p][i]
			}
		}
		triangle = math.Max(triangle, simplex.ProductNorm(parts, sum)/(norm+simplex.ProductNorm(parts, y))-1)
		above = math.Max(above, (descent.Inner(y[0], x[0])+descent.Inner(y[1], x[1])-norm*norm/2)/(dual*dual/2)-1)
		attained = math.Max(attained, math.Abs(atMaximizer(y, parts)/(dual*dual/2)-1))
	}
	return trial.Result{Values: map[string]float64{"triangle": triangle, "above": above, "attained": attained}}
}

// atMaximizer is ⟨u, x⟩ − ½‖x‖² where each part of x is aligned with its part of u and has that part's dual norm as
// length.
func atMaximizer(u [][]float64, parts []simplex.Space) float64 {
	largest := 0
	for i, v := range u[1] {
		if math.Abs(v) > math.Abs(u[1][largest]) {
			largest = i
		}
	}
	x := [][]float64{u[0], make([]float64, len(u[1]))}
	x[1][largest] = u[1][largest] // ‖x‖₁ = ‖u‖_∞
	n := simplex.ProductNorm(parts, x)
	return descent.Inner(u[0], x[0]) + descent.Inner(u[1], x[1]) - n*n/2
}

// saddle runs Algorithm 2 on f(x, y) = xy over [−1, 1]² from (0, 0), with b = 2 and Corollary 1's step, and measures
// Δ_{1/(2γ)} over all iterates. f is linear in x and in y, so that Setting 1 holds block-wise with every γ > 0; f* = −1
// and L² = 2(1+σ²).
func (t Trial) saddle(ctx context.Context, seed uint64) (trial.Result, error) {
	const b, drop = 2, 1.0
	l2 := 2 * (1 + t.Sigma*t.Sigma)
	step := math.Sqrt(2 * b * drop / (t.Gamma * l2 * float64(t.Steps)))
	unit := math.Sqrt(l2 * 2 * b * t.Gamma * drop / float64(t.Steps)) // L√(2bγ(f¹−f*)/T)
	out := trial.Result{Values: map[string]float64{"unit": unit, "one": 1}, Series: map[string][]float64{}}
	box := simplex.Box{Lo: -1, Hi: 1}
	for i := range t.Runs {
		rng, delta := trial.RNG(seed, "saddle", strconv.Itoa(i)), 0.0
		d := simplex.BlockDescent{Spaces: []simplex.Space{box, box}}
		err := d.Run([][]float64{{0}, {0}}, t.Steps, func(int) float64 { return step }, rng,
			func(_ int, block []int, x, grad [][]float64) error {
				i := block[0]
				grad[i][0] = x[1-i][0] + t.Sigma*float64(2*rng.IntN(2)-1)
				return nil
			}, func(step int, x [][]float64) error {
				delta += saddleStationarity(x[0][0], x[1][0], 1/(2*t.Gamma)) / float64(t.Steps)
				return descent.EverySo(ctx, step)
			})
		if err != nil {
			return trial.Result{}, err
		}
		out.Series["delta"] = append(out.Series["delta"], delta)
	}
	return out, nil
}

// saddleStationarity is Δ_λ = ‖(x, y) − prox‖²/λ² for f = xy on [−1, 1]². The proximal point is the best of the
// possible optima: one inside, and one on each side.
func saddleStationarity(x, y, lambda float64) float64 {
	clamp := func(v float64) float64 { return math.Max(-1, math.Min(1, v)) }
	best, square := math.Inf(1), 0.0
	try := func(u, v float64) {
		distance := (u-x)*(u-x) + (v-y)*(v-y)
		if value := lambda*u*v + distance/2; value < best {
			best, square = value, distance
		}
	}
	if det := 1 - lambda*lambda; det > 0 { // else the point inside is no minimum
		u, v := (x-lambda*y)/det, (y-lambda*x)/det
		if math.Abs(u) <= 1 && math.Abs(v) <= 1 {
			try(u, v)
		}
	}
	for _, side := range []float64{-1, 1} {
		try(side, clamp(y-lambda*side))
		try(clamp(x-lambda*side), side)
	}
	return square / (lambda * lambda)
}
