package li2021

import (
	"context"
	"slices"
)

// throughSoftmax turns the gradient in θ = softmax(z) into that in z, (diag θ −
// θθᵀ) g: a step of EG with it is a step of SGD on the logits.
func throughSoftmax(theta, grad []float64) {
	m := inner(theta, grad)
	for o := range grad {
		grad[o] = theta[o] * (grad[o] - m)
	}
}

// everySo looks at ctx now and then.
func everySo(ctx context.Context, step int) error {
	if step&0xfff != 0 {
		return nil
	}
	return ctx.Err()
}

// inner is ⟨a, b⟩.
func inner(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// cloneRows is a deep copy.
func cloneRows(x [][]float64) [][]float64 {
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = slices.Clone(row)
	}
	return out
}
