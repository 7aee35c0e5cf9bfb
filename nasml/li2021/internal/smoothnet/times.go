package smoothnet

import (
	"math/rand/v2"
	"slices"
)

// Time is a step with its weight in a mean over all steps.
type Time struct {
	Step   int
	Weight float64
}

// DrawTimes draws so many of the steps 0, …, steps−1, in ascending order, such
// that Σ weight·g(step) is without bias the mean of any g over the steps, taken
// with probability eta(t)/Σ eta, or uniformly where eta is nil: the expectation
// at the random iterate of Algorithm 2. The early steps, where Δ is large, are
// drawn more often: with one u in each of count equal parts of [0, 1), the step
// at the quantile u² has weight 2u.
func DrawTimes(rng *rand.Rand, steps, count int, eta func(t int) float64) []Time {
	quantile := func(q float64) int { return int(float64(steps) * q) }
	if eta != nil {
		sums, total := make([]float64, steps), 0.0
		for t := range sums {
			total += eta(t)
			sums[t] = total
		}
		quantile = func(q float64) int {
			at, _ := slices.BinarySearch(sums, q*total)
			return at
		}
	}
	times := make([]Time, count)
	for i := range times {
		u := (float64(i) + rng.Float64()) / float64(count)
		times[i] = Time{min(quantile(u*u), steps-1), 2 * u / float64(count)}
	}
	return times
}
