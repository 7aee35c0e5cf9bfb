package smoothnet

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Time is a step with its weight in a mean over all steps.
type Time struct {
	Step   int
	Weight float64
}

// DrawTimes draws count of the steps 0, …, steps−1, in ascending order, with weights such that Σ weight·g(step) is an
// unbiased mean of any g over the steps, taken with probability eta(t)/Σ eta, or uniformly if eta is nil: the
// expectation at the random iterate of Algorithm 2. Early steps, where Δ is large, are drawn more often: with one u in
// each of count equal parts of [0, 1), the step at the quantile u² has weight 2u.
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

// Run is how [Problem.Descend] goes from the start.
type Run struct {
	Blocks int // as (*net).Blocks takes them
	Cyclic bool
	Steps  int
	Eta    func(step int) float64
	Times  []Time // at which it measures
}

// Descend runs block-stochastic mirror descent on minibatches, whose random streams have the name, and calls measure
// with the iterate at each of the times and its weight. It returns the last iterate.
func (s *Problem) Descend(
	ctx context.Context, r Run, seed uint64, name string, measure func(x [][]float64, weight float64) error,
) ([][]float64, error) {
	blocks, err := s.Blocks(r.Blocks)
	if err != nil {
		return nil, err
	}
	d := simplex.BlockDescent{Spaces: s.Spaces(), Blocks: blocks, Cyclic: r.Cyclic}
	at, examples, take := descent.Clone(s.At), trial.RNG(seed, "examples", name), r.Times
	return at, d.Run(at, r.Steps, r.Eta, trial.RNG(seed, "blocks", name),
		func(_ int, _ []int, x, grad [][]float64) error {
			s.Minibatch(x, grad, examples)
			return nil
		}, func(step int, x [][]float64) error {
			for ; len(take) > 0 && take[0].Step == step; take = take[1:] {
				if err := measure(x, take[0].Weight); err != nil {
					return err
				}
			}
			return descent.EverySo(ctx, step)
		})
}
