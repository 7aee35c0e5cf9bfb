// Package descent has what the small problems of Li+ 2021 share: products of rows, and the gradient behind a softmax.
package descent

import (
	"context"
	"slices"
)

// ThroughSoftmax turns the gradient in θ = softmax(z) into that in z, (diag θ − θθᵀ) g: a step of EG with it is a step
// of SGD on the logits.
func ThroughSoftmax(theta, grad []float64) {
	m := Inner(theta, grad)
	for o := range grad {
		grad[o] = theta[o] * (grad[o] - m)
	}
}

// EverySo looks at ctx now and then.
func EverySo(ctx context.Context, step int) error {
	if step&0xfff != 0 {
		return nil
	}
	return ctx.Err()
}

// Inner is ⟨a, b⟩.
func Inner(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// Clone is a deep copy.
func Clone(x [][]float64) [][]float64 {
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = slices.Clone(row)
	}
	return out
}
