package features

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// CGOptions say when [CG] stops.
type CGOptions struct {
	Tol     float64 // ‖Aᵀ(b − Ax) − λx‖ ≤ Tol·‖Aᵀb‖
	MaxIter int     // if 0, 2d
}

// CG is the method of conjugate gradients on the normal equations,
//
//	(AᵀA + λI) x = Aᵀb ,
//
// for the columns of B, [n, k], all together; x has shape [d, k]. An iteration
// is one pass over a [Stepper], two over another operator. In exact arithmetic
// its iterates are those of [LSQR]; where the condition number is large it
// loses digits earlier. Errors as LSQR.
func CG(ctx context.Context, a Operator, b *mat.Dense, lambda float64, o CGOptions) (*mat.Dense, Solve, error) {
	_, d := a.Dims()
	_, k := b.Dims()
	atb := mat.NewDense(d, k, nil)
	if err := a.MulTransTo(ctx, atb, b); err != nil {
		return nil, Solve{}, fmt.Errorf("conjugate gradients: %w", err)
	}
	x, s, err := cgFrom(ctx, a, b, atb, lambda, o)
	s.Passes++
	return x, s, err
}

// cgFrom is CG where Aᵀb is known.
func cgFrom(
	ctx context.Context,
	a Operator,
	b, atb *mat.Dense,
	lambda float64,
	o CGOptions,
) (*mat.Dense, Solve, error) {
	if !(lambda >= 0) || math.IsInf(lambda, 1) || !(o.Tol >= 0) {
		return nil, Solve{}, fmt.Errorf("conjugate gradients: found λ = %v and tolerance %v, expected 0 or more",
			lambda, o.Tol)
	}
	n, k := b.Dims()
	_, d := a.Dims()
	if o.MaxIter <= 0 {
		o.MaxIter = 2 * d
	}
	c := &cgState{
		lambda: lambda, CGOptions: o, x: mat.NewDense(d, k,
			nil), p: mat.DenseCopyOf(atb), s: mat.DenseCopyOf(atb), r: mat.DenseCopyOf(b),
		first: columnNorms(atb),
		Solve: Solve{
			Iterations: make([]int, k),
			Stop:       make([]Stop, k),
			Residual:   columnNorms(b),
			Gradient:   columnNorms(atb),
		},
	}
	for j, g := range c.Gradient {
		if g == 0 {
			c.Stop[j] = StopZero
		}
	}
	q, atq, none := mat.NewDense(n, k, nil), mat.NewDense(d, k, nil), make([]float64, k)
	for c.running() {
		passes, err := step(ctx, a, atq, q, c.p, none)
		if err != nil {
			return nil, c.Solve, fmt.Errorf("conjugate gradients: %w", err)
		}
		c.Passes += passes
		if err := c.advance(q, atq); err != nil {
			return nil, c.Solve, err
		}
	}
	return c.x, c.Solve, nil
}

// cgState is where the iterations stand, with a column a target.
type cgState struct {
	CGOptions
	Solve
	lambda     float64
	x, p, s, r *mat.Dense // solution, direction, s = Aᵀr − λx: [d, k]; r = b − Ax: [n, k]
	first      []float64  // ‖Aᵀb‖
}

func (c *cgState) running() bool {
	for _, s := range c.Stop {
		if s == "" {
			return true
		}
	}
	return false
}

// advance is one iteration, with q = Ap and Aᵀq.
func (c *cgState) advance(q, atq *mat.Dense) error {
	pNorm, qNorm := columnNorms(c.p), columnNorms(q)
	k := len(c.Stop)
	length, minusLength := make([]float64, k), make([]float64, k)
	for j, g := range c.Gradient {
		if c.Stop[j] == "" {
			length[j] = g * g / (qNorm[j]*qNorm[j] + c.lambda*pNorm[j]*pNorm[j])
			minusLength[j] = -length[j]
		}
	}
	addColumns(atq, atq, c.p, repeat(c.lambda, k)) // (AᵀA + λI)p
	addColumns(c.x, c.x, c.p, length)
	addColumns(c.r, c.r, q, minusLength)
	addColumns(c.s, c.s, atq, minusLength)
	ratio := make([]float64, k)
	r, x := columnNorms(c.r), columnNorms(c.x)
	for j, g := range columnNorms(c.s) {
		if c.Stop[j] != "" {
			continue
		}
		if math.IsNaN(g) || math.IsInf(g, 0) {
			return fmt.Errorf(
				"conjugate gradients: found %v as the gradient of target %d after %d iterations: the matrix or the "+
					"right side has a number that is not finite", g, j, c.Iterations[j])
		}
		ratio[j] = g * g / (c.Gradient[j] * c.Gradient[j])
		c.Iterations[j]++
		c.Gradient[j] = g
		c.Residual[j] = math.Hypot(r[j], math.Sqrt(c.lambda)*x[j])
		switch {
		case g <= c.Tol*c.first[j]:
			c.Stop[j] = StopLeastSquares
		case g <= 0x1p-52*c.first[j]:
			c.Stop[j] = StopFlat
		case c.Iterations[j] >= c.MaxIter:
			c.Stop[j] = StopLimit
		}
	}
	addColumns(c.p, c.s, c.p, ratio)
	return nil
}

// addColumns stores a + b·diag(factors) in dst.
func addColumns(dst, a, b *mat.Dense, factors []float64) {
	rows, _ := dst.Dims()
	for i := range rows {
		to, ai, bi := dst.RawRowView(i), a.RawRowView(i), b.RawRowView(i)
		for j, f := range factors {
			to[j] = ai[j] + f*bi[j]
		}
	}
}

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}
