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
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/trial"
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
// in one pass over the examples; each is made and forgotten. It keeps four matrices of M̂'s size.
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
// for Z ∈ ℝ^{n×p} of any shape and rank. Where Z has fewer rows than columns and is well conditioned it is Zᵀ(ZZᵀ)⁻¹y,
// else it comes from a singular value decomposition without the singular values below max(n, p)·ε·σ₁.
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

// RankOneLaw draws what the two-stage algorithm of Oymak+ 2021, Section 5, gives on i.i.d. standard normal features,
// without drawing the features: its results have the same law as those of Moment, TopLeft, Projected and MinNorm, in
// O(h²) numbers instead of 2nhp. N is n of each of the two sets, Noise the standard deviation σ of the labels' noise.
//
// By rotation α* = e₁ and θ* = e₁. Given the labels ỹ of the validation set, with S = ‖ỹ‖² ~ (1+σ²)χ²ₙ,
//
//	M̂ = S/(1+σ²)·e₁e₁ᵀ + √S·G,   G i.i.d. standard normal, but G₁₁ of variance σ²/(1+σ²),
//
// because only the entry (1,1) of a feature matrix tells of its label. So M̂M̂ᵀ = mmᵀ + S·LLᵀ with m the first column
// of M̂ and LLᵀ a Wishart matrix of p−1 degrees of freedom (Bartlett's L is triangular). In the second stage the
// features along α̂ are normal, y = ρZθ* + √(1−ρ²)·w + noise, and
//
//	risk = 1 + σ² − ρ²B + (1−ρ²+σ²)T    for p ≥ n,
//	risk = (1−ρ²+σ²)(1 + T)             for p ≤ n,
//
// with independent B ~ χ²ₙ/(χ²ₙ+χ²₍ₚ₋ₙ₎) the share of θ* in the rows' span and
// T ~ χ²ₙ/χ²₍ₚ₋ₙ₊₁₎ (for p < n: χ²ₚ/χ²₍ₙ₋ₚ₊₁₎) the rest's squared norm.
type RankOneLaw struct {
	N, P, H int
	Noise   float64
}

// Draw is one outcome: ρ² = ⟨α*, α̂⟩² and the population risk of (α̂, θ̂).
func (l RankOneLaw) Draw(rng *rand.Rand) (rho2, risk float64, err error) {
	if rho2, err = l.drawCorrelation(rng); err != nil {
		return 0, 0, err
	}
	return rho2, l.drawRisk(rng, rho2), nil
}

func chi2(rng *rand.Rand, k int) float64 {
	if k <= 0 {
		return 0
	}
	return distuv.ChiSquared{K: float64(k), Src: rng}.Rand()
}

func (l RankOneLaw) drawCorrelation(rng *rand.Rand) (float64, error) {
	v := 1 + l.Noise*l.Noise
	s := v * chi2(rng, l.N)
	first := trial.Normals(rng, l.H, math.Sqrt(s))
	first[0] = s/v + first[0]*l.Noise/math.Sqrt(v)
	rows := bartlett(rng, l.H, l.P-1)
	_, alpha, err := TopEigen(l.H, func(dst, x []float64) {
		copy(dst, first)
		floats.Scale(floats.Dot(first, x), dst)
		right := make([]float64, l.H)
		for i, row := range rows {
			floats.AddScaled(right[:len(row)], x[i], row)
		}
		for i, row := range rows {
			dst[i] += s * floats.Dot(row, right[:len(row)])
		}
	})
	if err != nil {
		return 0, err
	}
	return alpha[0] * alpha[0], nil
}

// bartlett are the rows of a lower triangular (or, for p < h, trapezoidal) L so
// that LLᵀ has the law of GGᵀ, G ∈ ℝ^{h×p} standard normal.
func bartlett(rng *rand.Rand, h, p int) [][]float64 {
	rows := make([][]float64, h)
	for i := range rows {
		rows[i] = trial.Normals(rng, min(i+1, p), 1)
		if i < p {
			rows[i][i] = math.Sqrt(chi2(rng, p-i))
		}
	}
	return rows
}

func (l RankOneLaw) drawRisk(rng *rand.Rand, rho2 float64) float64 {
	rest := 1 - rho2 + l.Noise*l.Noise
	if l.P < l.N {
		return rest * (1 + chi2(rng, l.P)/chi2(rng, l.N-l.P+1))
	}
	in, out := chi2(rng, l.N), chi2(rng, l.P-l.N)
	return rest + rho2*out/(in+out) + rest*chi2(rng, l.N)/chi2(rng, l.P-l.N+1)
}

// CorrelationLimit is the limit of ρ² as n, p, h → ∞ with p̄ = p/n and h̄ = h/n
// fixed, on standard normal features with label noise of variance σ²:
//
//	ρ² → (1 − ph/m²)₊ / (1 + h/m),   m = n/(1+σ²) .
//
// M̂/√(Sp) is a spike of size √(m/p) in a normalized h×p noise matrix, and the formula is that of Benaych-Georges and
// Nadakuditi (2012) for its left singular vector: it begins to show at ph = m². Oymak+ 2021, Theorem 4, has the bound 1
// − 64p̄h̄ for σ = 0.
func CorrelationLimit(pBar, hBar, noise float64) float64 {
	v := 1 + noise*noise
	pBar, hBar = pBar*v, hBar*v
	return max(0, 1-pBar*hBar) / (1 + hBar)
}

// ExpectedRisk is the exact mean risk of least squares of least norm along a direction of correlation ρ, on n standard
// normal examples in ℝᵖ with label noise of variance σ². With r = 1 − ρ² + σ²,
//
//	1 + σ² − ρ²·n/p + r·n/(p−n−1)   for p > n+1,
//	r·(1 + p/(n−p−1))               for p < n−1,
//
// and +∞ between. ρ² = 1, σ = 0 is the oracle that knows α*: 1 − n/p.
func ExpectedRisk(n, p int, rho2, noise float64) float64 {
	rest := 1 - rho2 + noise*noise
	switch N, P := float64(n), float64(p); {
	case p >= n && rest == 0:
		return 1 - N/P
	case p > n+1:
		return rest + rho2*(1-N/P) + rest*N/(P-N-1)
	case p < n-1:
		return rest * (1 + P/(N-P-1))
	case rest == 0:
		return 0
	}
	return math.Inf(1)
}

// RiskLimit is ExpectedRisk as n, p → ∞ with p̄ = p/n > 1 fixed:
//
//	ρ²(1 − 1/p̄) + (1 − ρ² + σ²)/(1 − 1/p̄) .
func RiskLimit(pBar, rho2, noise float64) float64 {
	x := 1 - 1/pBar
	return rho2*x + (1-rho2+noise*noise)/x
}
