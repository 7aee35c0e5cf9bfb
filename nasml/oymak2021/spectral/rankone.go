// Package spectral has the matrix computations of the theory of Oymak+ 2021:
//
//   - rank-one estimators (Section 5): the leading direction of a weighted sum of feature matrices, least squares along
//     it, the bilevel search by gradient, and the exact law and large-system limits of the two-stage algorithm;
//   - neural tangent kernels of mixed activations (Section 4.2).
//
// It works in float64 with gonum, as GoMLX has neither factorizations nor eigenvectors. Functions of matrices panic as
// gonum does if shapes differ, and are NaN if gonum finds no eigenvalues.
package spectral

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Examples are n labelled feature matrices (Xᵢ, yᵢ) with Xᵢ ∈ ℝ^{h×p}, drawn one at a time: together they take 8·n·h·p
// bytes, 8 GB for h = 500, p = 2000, n = 1000.
type Examples struct {
	N, H, P int

	// Draw writes Xᵢ into x, row by row, and returns yᵢ. The same i gives the
	// same example. It is called by several goroutines, each with its own x.
	Draw func(i int, x []float64) (y float64)
}

// parts is the number of parts of a pass. It is fixed, so that sums do not depend on the number of processors.
const parts = 4

// pass draws every example once, in parallel parts, and calls visit with its part. It stops if ctx is cancelled.
func (d Examples) pass(ctx context.Context, visit func(part, i int, x []float64, y float64)) error {
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() {
			x := make([]float64, d.H*d.P)
			for i := part * d.N / parts; i < (part+1)*d.N/parts && ctx.Err() == nil; i++ {
				visit(part, i, x, d.Draw(i, x))
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// Moment is the sum that the spectral estimator reads (Oymak+ 2021, Section 5),
//
//	M̂ = Σᵢ yᵢ Xᵢ ∈ ℝ^{h×p} ,
//
// in one pass over the examples; each is made and forgotten. It keeps four
// matrices of M̂'s size.
func Moment(ctx context.Context, d Examples) (*mat.Dense, error) {
	var sums [parts][]float64
	for part := range sums {
		sums[part] = make([]float64, d.H*d.P)
	}
	err := d.pass(ctx, func(part, _ int, x []float64, y float64) { floats.AddScaled(sums[part], y, x) })
	if err != nil {
		return nil, err
	}
	for _, s := range sums[1:] {
		floats.Add(sums[0], s)
	}
	return mat.NewDense(d.H, d.P, sums[0]), nil
}

// Projected are the examples along directions α ∈ ℝ^h, in one pass, and the labels: row i of Z_α ∈ ℝ^{n×p} is Xᵢᵀα.
func Projected(ctx context.Context, d Examples, alphas ...[]float64) (z []*mat.Dense, y []float64, err error) {
	for _, alpha := range alphas {
		if len(alpha) != d.H { // a panic of pass would end the program
			return nil, nil, fmt.Errorf("spectral: α must have h = %d entries, got %d", d.H, len(alpha))
		}
		z = append(z, mat.NewDense(d.N, d.P, nil))
	}
	y = make([]float64, d.N)
	err = d.pass(ctx, func(_, i int, x []float64, label float64) {
		y[i] = label
		for k, alpha := range alphas {
			mulTrans(z[k].RawRowView(i), x, d.P, alpha)
		}
	})
	return z, y, err
}

// mulTrans is dst = Xᵀα for X of len(α) rows of p numbers.
func mulTrans(dst, x []float64, p int, alpha []float64) {
	m := blas64.General{Rows: len(alpha), Cols: p, Stride: p, Data: x}
	blas64.Gemv(blas.Trans, 1, m, vector(alpha), 0, vector(dst))
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Data: x, Inc: 1} }

// TopLeft is the left singular vector of m to its largest singular value σ, the leading eigenvector of m·mᵀ, of unit
// length and with its largest entry positive. m·mᵀ is not formed. It returns an error if m is 0 or not finite.
func TopLeft(m *mat.Dense) (u []float64, sigma float64, err error) {
	h, p := m.Dims()
	raw := m.RawMatrix()
	right := make([]float64, p)
	value, u, err := TopEigen(h, func(dst, v []float64) {
		blas64.Gemv(blas.Trans, 1, raw, vector(v), 0, vector(right))
		blas64.Gemv(blas.NoTrans, 1, raw, vector(right), 0, vector(dst))
	})
	return u, math.Sqrt(max(0, value)), err
}

// ErrNoDirection says that no direction leads: the matrix is 0.
var ErrNoDirection = errors.New("spectral: the matrix is 0, so that no direction of it leads; are all labels 0?")

// MinNorm is the least-squares solution of least norm,
//
//	θ = Z⁺y = argmin { ‖θ‖₂ : ‖y − Zθ‖₂ least } ,
//
// for Z ∈ ℝ^{n×p} of any shape and rank. Where Z has fewer rows than columns and
// is well conditioned it is Zᵀ(ZZᵀ)⁻¹y, else it comes from a singular value
// decomposition without the singular values below max(n, p)·ε·σ₁.
func MinNorm(z *mat.Dense, y []float64) ([]float64, error) {
	n, p := z.Dims()
	if len(y) != n {
		return nil, fmt.Errorf("spectral: each of %d rows must have a label, got %d labels", n, len(y))
	}
	size := mat.Norm(z, 1) + floats.Norm(y, math.Inf(1))
	if floats.HasNaN(y) || math.IsNaN(size) || math.IsInf(size, 0) {
		return nil, errors.New("spectral: features or labels are not finite")
	}
	if chol, ok := gramCholesky(z); ok {
		return mulVec(z.T(), solve(chol, y)), nil
	}
	var svd mat.SVD
	if !svd.Factorize(z, mat.SVDThin) {
		return nil, fmt.Errorf("spectral: the singular value decomposition of a %d×%d matrix did not converge", n, p)
	}
	var theta mat.VecDense
	rank := svd.Rank(float64(max(n, p)) * 0x1p-52)
	if rank == 0 {
		return make([]float64, p), nil
	}
	svd.SolveVecTo(&theta, mat.NewVecDense(n, y), rank)
	return theta.RawVector().Data, nil
}

// gramCholesky is the factor of ZZᵀ if Z is wide and the squared condition leaves half of the digits.
func gramCholesky(z *mat.Dense) (*mat.Cholesky, bool) {
	n, p := z.Dims()
	if n > p {
		return nil, false
	}
	var gram mat.SymDense
	gram.SymOuterK(1, z)
	var chol mat.Cholesky
	ok := chol.Factorize(&gram)
	return &chol, ok && chol.Cond() < 1e8
}

func solve(chol *mat.Cholesky, y []float64) []float64 {
	var c mat.VecDense
	if err := chol.SolveVecTo(&c, mat.NewVecDense(len(y), y)); err != nil {
		panic(err) // only where the condition is beyond float64, which callers have excluded
	}
	return c.RawVector().Data
}

func mulVec(m mat.Matrix, x []float64) []float64 {
	var out mat.VecDense
	out.MulVec(m, mat.NewVecDense(len(x), x))
	return out.RawVector().Data
}

// Residual is max |y − Zθ|, 0 where θ fits every label.
func Residual(z *mat.Dense, theta, y []float64) float64 {
	return floats.Distance(mulVec(z, theta), y, math.Inf(1))
}

// Correlation2 is ρ² = ⟨a, b⟩²/(‖a‖²‖b‖²), independent of sign and length; 0 if one of them is 0.
func Correlation2(a, b []float64) float64 {
	aa, bb, ab := floats.Dot(a, a), floats.Dot(b, b), floats.Dot(a, b)
	if aa == 0 || bb == 0 {
		return 0
	}
	return min(1, ab/aa*(ab/bb))
}

// RankOneRisk is the population risk of predicting α̂ᵀXθ̂ where the label is
// α*ᵀXθ* and X = A^{1/2}G with i.i.d. entries of unit variance in G,
//
//	𝔼(α*ᵀXθ* − α̂ᵀXθ̂)² = (α*ᵀAα*)‖θ*‖² − 2(α*ᵀAα̂)⟨θ*, θ̂⟩ + (α̂ᵀAα̂)‖θ̂‖² .
//
// cov is A; nil stands for the identity, where the risk is ‖M* − α̂θ̂ᵀ‖²_F with
// M* = α*θ*ᵀ. Label noise of variance σ² adds σ².
func RankOneRisk(alpha, theta, alphaStar, thetaStar []float64, cov mat.Symmetric) float64 {
	form := func(a, b []float64) float64 {
		if cov == nil {
			return floats.Dot(a, b)
		}
		return floats.Dot(a, mulVec(cov, b))
	}
	return form(alphaStar, alphaStar)*floats.Dot(thetaStar, thetaStar) -
		2*form(alphaStar, alpha)*floats.Dot(thetaStar, theta) +
		form(alpha, alpha)*floats.Dot(theta, theta)
}
