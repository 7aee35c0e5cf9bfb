// Package validation chooses among models by a validation sample. The distribution is the uniform one on a pool of
// examples, so that test risks are exact.
package validation

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Losses are those of f(x) = ⟨w, x⟩ on every example, rows of x with labels y.
func Losses(x *mat.Dense, y, w []float64, loss func(y, f float64) float64) []float64 {
	var outputs mat.VecDense
	outputs.MulVec(x, mat.NewVecDense(len(w), w))
	losses := make([]float64, len(y))
	for k := range losses {
		losses[k] = loss(y[k], outputs.AtVec(k))
	}
	return losses
}

// Over are the means, by name and for every size n_V, of numbers that so many validation samples give; add adds those
// of one to sums. It stops if ctx is cancelled.
func Over(ctx context.Context, sizes []int, repeats int, add func(n, rep int, sums map[string]float64) error) (
	map[string][]float64, error) {
	means := map[string][]float64{}
	for _, n := range sizes {
		sums := map[string]float64{}
		for rep := range repeats {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := add(n, rep, sums); err != nil {
				return nil, err
			}
		}
		for name, sum := range sums {
			means[name] = append(means[name], sum/float64(repeats))
		}
	}
	return means, nil
}

// Draw is a validation sample: the places of n examples of the pool, with replacement.
func Draw(rng *rand.Rand, pool, n int) []int {
	index := make([]int, n)
	for i := range index {
		index[i] = rng.IntN(pool)
	}
	return index
}

// MeanAt is the mean over the chosen entries.
func MeanAt(values []float64, index []int) float64 {
	sum := 0.0
	for _, i := range index {
		sum += values[i]
	}
	return sum / float64(len(index))
}

// Choose takes the losses of every model on every example of the pool, and the models' test risks. It returns the
// uniform gap sup |L̂_V − L| on the sample with these places, and the test risk of the model with the least L̂_V, of
// several the first.
func Choose(losses [][]float64, risks []float64, index []int) (gap, chosen float64) {
	least := math.Inf(1)
	for i, each := range losses {
		value := MeanAt(each, index)
		gap = max(gap, math.Abs(value-risks[i]))
		if value < least {
			least, chosen = value, risks[i]
		}
	}
	return gap, chosen
}
