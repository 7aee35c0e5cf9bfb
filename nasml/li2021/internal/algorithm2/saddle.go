package algorithm2

import (
	"context"
	"math"
	"strconv"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

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
