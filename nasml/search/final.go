package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// accuracy is the share of right answers of the shared weights on some images. It takes whole batches, since batch
// statistics depend on their size; a rest is not counted. With Parts, of any size, the batch is the largest that
// divides the images.
func (r *run) accuracy(ctx context.Context, images []int, theta [][][]float64) (float64, error) {
	right, seen, size := 0, 0, r.Batch
	if r.Parts != (Shares{}) {
		for size = min(size, len(images)); size > 1 && len(images)%size != 0; {
			size--
		}
	}
	for from := 0; from+size <= len(images); from += size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.rightOn(images[from:from+size], theta)
		if err != nil {
			return 0, err
		}
		right, seen = right+n, seen+size
	}
	if seen == 0 {
		return 0, fmt.Errorf("an accuracy needs at least a batch of %d images, got %d", r.Batch, len(images))
	}
	return float64(right) / float64(seen), nil
}

// rightOn is the number of right answers on some images, without augmentation.
func (r *run) rightOn(indices []int, theta [][][]float64) (int, error) {
	images, labels, err := r.batch(indices, nil)
	if err != nil {
		return 0, err
	}
	args := []any{images, labels}
	for b, block := range r.product {
		args = append(args, matrix(block, theta[b]))
	}
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

func matrix(b simplex.Block, theta [][]float64) *tensors.Tensor {
	var flat []float32
	for _, row := range theta {
		for _, x := range row {
			flat = append(flat, float32(x))
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, b.Rows, b.Options)
}

func (r *run) final(ctx context.Context) (Arch, error) {
	rng, theta := trial.RNG(r.seed, "final"), Blocks(r.product, r.theta)
	switch r.method.Final {
	case ByArgmax:
		return r.space.Discretize(theta)
	case ByRandom:
		return r.best(ctx, rng, func(int) (Arch, error) { return r.space.Random(rng) })
	case ByLikelihood:
		ranked := likeliest(theta[0], r.Candidates)
		return r.best(ctx, rng, func(i int) (Arch, error) {
			return r.space.(rowwise).rowwise(ranked[i%len(ranked)]), nil // by Check
		})
	case ByController:
		return r.best(ctx, rng, func(int) (Arch, error) { return r.control.one(rng) })
	}
	return Arch{}, fmt.Errorf("no rule is called %q", r.method.Final)
}

// best is the candidate with the most right answers, each on its own validation batch; the first of equals.
func (r *run) best(ctx context.Context, rng *rand.Rand, candidate func(i int) (Arch, error)) (Arch, error) {
	var best Arch
	size, most := min(r.CandidateBatch, len(r.validation)), -1
	for i := range r.Candidates {
		if err := ctx.Err(); err != nil {
			return Arch{}, err
		}
		arch, err := candidate(i)
		if err != nil {
			return Arch{}, err
		}
		right, err := r.rightOn(pick(rng, r.validation, size), arch.Theta)
		if err != nil {
			return Arch{}, err
		}
		if right > most {
			best, most = arch, right
		}
	}
	return best, nil
}

// pick draws n different elements.
func pick(rng *rand.Rand, from []int, n int) []int {
	return gathered(from, rng.Perm(len(from))[:n])
}

// likeliest are the n architectures of the largest probability Π_e θ_e,o(e), the likeliest first; of equals, the first
// in counting order with the last edge fastest.
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
		// The n best have prefixes among the n best prefixes, since the edges are independent.
		slices.SortStableFunc(next, func(a, b scored) int { return cmp.Compare(b.logP, a.logP) })
		all = next[:min(n, len(next))]
	}
	out := make([][]int, len(all))
	for i, s := range all {
		out[i] = s.choice
	}
	return out
}
