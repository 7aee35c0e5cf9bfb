package algorithm2

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

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
