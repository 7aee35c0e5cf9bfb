package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/trial"
)

// accuracy is the share of right answers of the shared weights on the
// validation images under operation weights. It takes whole batches, because
// batch statistics depend on their size; what is left over is not counted.
func (r *run) accuracy(ctx context.Context, ops [][]float64) (float64, error) {
	right, seen := 0, 0
	for from := 0; from+r.Batch <= len(r.validation); from += r.Batch {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.rightOn(r.validation[from:from+r.Batch], ops)
		if err != nil {
			return 0, err
		}
		right, seen = right+n, seen+r.Batch
	}
	if seen == 0 {
		return 0, fmt.Errorf("%d validation images, want at least a batch of %d", len(r.validation), r.Batch)
	}
	return float64(right) / float64(seen), nil
}

// rightOn is the number of right answers on some images, without augmentation.
func (r *run) rightOn(indices []int, ops [][]float64) (int, error) {
	images, labels, err := r.batch(indices, nil)
	if err != nil {
		return 0, err
	}
	args := []any{images, labels, r.matrix(ops)}
	state := Cut(r.Step, r.state())
	for _, t := range slices.Concat(state.Weights, state.Stats) {
		args = append(args, t)
	}
	out, err := r.evaluate.Call(args...)
	if err != nil {
		return 0, err
	}
	defer out[0].MustFinalizeAll()
	return int(tensors.ToScalar[int32](out[0])), nil
}

// matrix is an operation matrix as a float32 tensor.
func (r *run) matrix(ops [][]float64) *tensors.Tensor {
	var flat []float32
	for _, row := range ops {
		for _, x := range row {
			flat = append(flat, float32(x))
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, len(r.space.Edges), len(r.space.Ops))
}

// final picks the architecture at the end.
func (r *run) final(ctx context.Context) ([]int, error) {
	rng := trial.RNG(r.seed, "final")
	switch r.method.Final {
	case ByArgmax:
		return r.space.Argmax(rows(r.theta, len(r.space.Ops))), nil
	case ByRandom:
		return r.best(ctx, rng, func(int) ([]int, error) { return r.random(rng), nil })
	case ByLikelihood:
		ranked := likeliest(rows(r.theta, len(r.space.Ops)), r.Candidates)
		return r.best(ctx, rng, func(i int) ([]int, error) { return ranked[i%len(ranked)], nil })
	case ByController:
		return r.best(ctx, rng, func(int) ([]int, error) {
			sampled, _, err := r.control.sample(1, rng)
			if err != nil {
				return nil, err
			}
			return sampled[0], nil
		})
	}
	return nil, fmt.Errorf("no rule is called %q", r.method.Final)
}

// random draws an operation for each edge, uniformly.
func (s *searcher) random(rng *rand.Rand) []int {
	choice := make([]int, len(s.space.Edges))
	for e := range choice {
		choice[e] = rng.IntN(len(s.space.Ops))
	}
	return choice
}

// best is the candidate with the most right answers, each on a validation batch
// of its own; the first of equals.
func (r *run) best(ctx context.Context, rng *rand.Rand, candidate func(i int) ([]int, error)) ([]int, error) {
	var best []int
	size, most := min(r.CandidateBatch, len(r.validation)), -1
	for i := range r.Candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		choice, err := candidate(i)
		if err != nil {
			return nil, err
		}
		right, err := r.rightOn(pick(rng, r.validation, size), r.space.OneHot(choice))
		if err != nil {
			return nil, err
		}
		if right > most {
			best, most = choice, right
		}
	}
	return best, nil
}

// pick draws n different elements.
func pick(rng *rand.Rand, from []int, n int) []int {
	out := make([]int, n)
	for i, j := range rng.Perm(len(from))[:n] {
		out[i] = from[j]
	}
	return out
}

// likeliest are the n architectures of the largest probability Π_e θ_e,o(e), the
// likeliest first; of equals, the first in counting order with the last edge
// fastest.
func likeliest(theta [][]float64, n int) [][]int {
	type scored struct {
		choice []int
		logP   float64
	}
	all := []scored{{nil, 0}}
	for _, row := range theta {
		var next []scored
		for _, s := range all {
			for o, p := range row {
				next = append(next, scored{append(slices.Clone(s.choice), o), s.logP + math.Log(p)})
			}
		}
		// The n best of the whole have prefixes among the n best prefixes,
		// since the edges are independent.
		slices.SortStableFunc(next, func(a, b scored) int { return compare(b.logP, a.logP) })
		all = next[:min(n, len(next))]
	}
	out := make([][]int, len(all))
	for i, s := range all {
		out[i] = s.choice
	}
	return out
}

// compare orders −∞ and numbers; θ has no NaN (run.finite).
func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
