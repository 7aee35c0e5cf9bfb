package features

import (
	"context"

	"gonum.org/v1/gonum/mat"
)

// Operator is an n×d matrix A that is known by its products. Several right
// sides are multiplied together: k of them are the columns of X, [d, k], or of
// Y, [n, k].
type Operator interface {
	Dims() (rows, cols int)
	MulTo(ctx context.Context, dst, x *mat.Dense) error      // dst = AX, [n, k]
	MulTransTo(ctx context.Context, dst, y *mat.Dense) error // dst = AᵀY, [d, k]
	// StepTo replaces Y, and stores a product with the new Y:
	//
	//	Y ← AX − 1·shiftᵀ − Y·diag(scale),   dst = AᵀY .
	//
	// One pass over A halves the work where its entries are recomputed for every pass.
	StepTo(ctx context.Context, dst, y, x *mat.Dense, shift, scale []float64) error
}

// centred is the operator A − 1·meansᵀ.
type centred struct {
	a     Operator
	means []float64 // [d]
}

// step is [Operator.StepTo] of the centred operator, without a shift.
func (c centred) step(ctx context.Context, dst, y, x *mat.Dense, scale []float64) error {
	if err := c.a.StepTo(ctx, dst, y, x, c.shift(x), scale); err != nil {
		return err
	}
	addOuter(dst, c.means, minusSums(y))
	return nil
}

// shift is meansᵀX, [k].
func (c centred) shift(x *mat.Dense) []float64 {
	_, k := x.Dims()
	out := make([]float64, k)
	for i, m := range c.means {
		for j, v := range x.RawRowView(i) {
			out[j] += m * v
		}
	}
	return out
}

// minusSums is −1ᵀY, [k].
func minusSums(y *mat.Dense) []float64 {
	n, k := y.Dims()
	out := make([]float64, k)
	for i := range n {
		for j, v := range y.RawRowView(i) {
			out[j] -= v
		}
	}
	return out
}

// addOuter adds u·vᵀ to m, where nil stands for a u of ones.
func addOuter(m *mat.Dense, u, v []float64) {
	rows, _ := m.Dims()
	for i := range rows {
		f := 1.0
		if u != nil {
			f = u[i]
		}
		row := m.RawRowView(i)
		for j, x := range v {
			row[j] += f * x
		}
	}
}

// columnNorms are the Euclidean norms of the columns. They are NaN or infinite
// where an entry is.
func columnNorms(m *mat.Dense) []float64 {
	_, k := m.Dims()
	norms := make([]float64, k)
	for j := range norms {
		norms[j] = mat.Norm(m.ColView(j), 2)
	}
	return norms
}
