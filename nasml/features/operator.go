package features

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Operator is an n×d matrix A that is known by its products. Several right
// sides are multiplied together: k of them are the columns of X, [d, k], or of
// Y, [n, k].
type Operator interface {
	Dims() (rows, cols int)
	MulTo(ctx context.Context, dst, x *mat.Dense) error      // dst = AX, [n, k]
	MulTransTo(ctx context.Context, dst, y *mat.Dense) error // dst = AᵀY, [d, k]
}

// Stepper is an operator that multiplies both ways in one pass over A, which
// halves the work where the entries of A are recomputed for every pass.
type Stepper interface {
	Operator
	// StepTo replaces Y, and stores a product with the new Y:
	//
	//	Y ← AX − 1·shiftᵀ − Y·diag(scale),   dst = AᵀY .
	StepTo(ctx context.Context, dst, y, x *mat.Dense, shift, scale []float64) error
}

// Matrix is a matrix in the memory of the host, such as [Sparse].
type Matrix interface {
	Dims() (rows, cols int)
	MulTo(dst, x *mat.Dense)
	MulTransTo(dst, y *mat.Dense)
}

// OnHost makes a matrix an operator.
func OnHost(m Matrix) Operator { return host{m} }

type host struct{ m Matrix }

func (h host) Dims() (rows, cols int) { return h.m.Dims() }

func (h host) MulTo(ctx context.Context, dst, x *mat.Dense) error {
	if err := fits(h, dst, x); err != nil {
		return err
	}
	h.m.MulTo(dst, x)
	return ctx.Err()
}

func (h host) MulTransTo(ctx context.Context, dst, y *mat.Dense) error {
	if err := fits(h, y, dst); err != nil {
		return err
	}
	h.m.MulTransTo(dst, y)
	return ctx.Err()
}

// OfDense makes a dense matrix an operator.
func OfDense(a *mat.Dense) Operator { return OnHost(dense{a}) }

type dense struct{ *mat.Dense }

func (d dense) MulTo(dst, x *mat.Dense)      { dst.Mul(d.Dense, x) }
func (d dense) MulTransTo(dst, y *mat.Dense) { dst.Mul(d.T(), y) }

// fits returns an error that shows all shapes where those of Y, [n, k], and X,
// [d, k], are not those of a product with A.
func fits(a interface{ Dims() (int, int) }, y, x *mat.Dense) error {
	n, d := a.Dims()
	yn, yk := y.Dims()
	xd, xk := x.Dims()
	if yn != n || xd != d || yk != xk {
		return fmt.Errorf(
			"product with a matrix of shape [%d, %d]: found sides of shapes [%d, %d] and [%d, %d], expected [%d, k] "+
				"and [%d, k]", n, d, xd, xk, yn, yk, d, n)
	}
	return nil
}

// step is [Stepper.StepTo] without a shift, in two passes where a cannot do it
// in one. It returns the number of passes.
func step(ctx context.Context, a Operator, dst, y, x *mat.Dense, scale []float64) (passes int, err error) {
	if s, ok := a.(Stepper); ok {
		return 1, s.StepTo(ctx, dst, y, x, make([]float64, len(scale)), scale)
	}
	n, k := y.Dims()
	product := mat.NewDense(n, k, nil)
	if err := a.MulTo(ctx, product, x); err != nil {
		return 0, err
	}
	for i := range n {
		to, from := y.RawRowView(i), product.RawRowView(i)
		for j, s := range scale {
			to[j] = from[j] - s*to[j]
		}
	}
	return 2, a.MulTransTo(ctx, dst, y)
}

// centre returns A − 1·meansᵀ, of which the columns have mean 0 where the means
// are those of A.
func centre(a Operator, means []float64) Operator {
	c := centredOperator{a, means}
	if s, ok := a.(Stepper); ok {
		return centredStepper{c, s}
	}
	return c
}

type centredOperator struct {
	Operator
	means []float64 // [d]
}

func (c centredOperator) MulTo(ctx context.Context, dst, x *mat.Dense) error {
	if err := c.Operator.MulTo(ctx, dst, x); err != nil {
		return err
	}
	addOuter(dst, nil, c.offsets(x))
	return nil
}

func (c centredOperator) MulTransTo(ctx context.Context, dst, y *mat.Dense) error {
	if err := c.Operator.MulTransTo(ctx, dst, y); err != nil {
		return err
	}
	addOuter(dst, c.means, minusSums(y))
	return nil
}

// offsets is −meansᵀX, [k].
func (c centredOperator) offsets(x *mat.Dense) []float64 {
	_, k := x.Dims()
	out := make([]float64, k)
	for i, m := range c.means {
		for j, v := range x.RawRowView(i) {
			out[j] -= m * v
		}
	}
	return out
}

// centredStepper is a centred operator that keeps its one pass.
type centredStepper struct {
	centredOperator
	s Stepper
}

func (c centredStepper) StepTo(ctx context.Context, dst, y, x *mat.Dense, shift, scale []float64) error {
	all := c.offsets(x)
	for j, v := range all {
		all[j] = shift[j] - v
	}
	if err := c.s.StepTo(ctx, dst, y, x, all, scale); err != nil {
		return err
	}
	addOuter(dst, c.means, minusSums(y))
	return nil
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
		var v mat.VecDense
		v.ColViewOf(m, j)
		norms[j] = mat.Norm(&v, 2)
	}
	return norms
}
