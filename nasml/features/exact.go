// Package features maps inputs to features and fits linear models to them.
package features

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ExactRidge is ridge regression solved to rounding, by Cholesky in float64,
//
//	min_{Θ,b} ‖Y − XΘ − 1bᵀ‖²_F + λ‖Θ‖²_F ,
//
// with λ on the sum of squares, not on their mean, and b unpenalized. The
// system is the smaller of XᵀX + λI (primal) and XXᵀ + λI (dual). With λ = 0
// the solution is the limit λ → 0, that of minimum norm, by a singular value
// decomposition that tells the rank.
type ExactRidge struct {
	Lambda    float64 // λ ≥ 0
	Intercept bool    // fit b; else b = 0
}

// ExactFit is a solution of [ExactRidge].
type ExactFit struct {
	Theta *mat.Dense // Θ, [d, k]
	B     []float64  // b, [k]
	Rank  int        // numerical rank of the (centred) X where λ = 0, else min(n, d)
	Form  string     // "primal", "dual" or, where λ = 0, "min-norm"
}

// Fit solves for X of shape [n, d] and Y of shape [n, k], k targets at once.
//
// It returns an error if the shapes differ, λ is negative or not finite, or a
// number of X or Y is not finite.
func (r ExactRidge) Fit(x, y mat.Matrix) (*ExactFit, error) {
	n, d := x.Dims()
	rows, _ := y.Dims()
	if rows != n {
		return nil, fmt.Errorf("exact ridge: found %d rows of X and %d of Y, expected as many", n, rows)
	}
	if !(r.Lambda >= 0) || math.IsInf(r.Lambda, 1) {
		return nil, fmt.Errorf("exact ridge: found λ = %v, expected 0 or more", r.Lambda)
	}
	xc, xMean := centred(x, r.Intercept)
	yc, yMean := centred(y, r.Intercept)
	if !allFinite(xc) || !allFinite(yc) {
		return nil, fmt.Errorf("exact ridge: X or Y has a number that is not finite")
	}
	fit := &ExactFit{Rank: min(n, d)}
	var err error
	switch {
	case r.Lambda == 0:
		fit.Form = "min-norm"
		fit.Theta, fit.Rank, err = minNorm(xc, yc)
	case d <= n:
		fit.Form = "primal"
		fit.Theta, err = primalRidge(xc, yc, r.Lambda)
	default:
		fit.Form = "dual"
		fit.Theta, err = dualRidge(xc, yc, r.Lambda)
	}
	if err != nil {
		return nil, err
	}
	fit.B = make([]float64, len(yMean))
	for j := range fit.B { // b = ȳ − Θᵀx̄
		fit.B[j] = yMean[j] - mat.Dot(fit.Theta.ColView(j), mat.NewVecDense(d, xMean))
	}
	return fit, nil
}

// Predict is XΘ + 1bᵀ, [n, k].
func (f *ExactFit) Predict(x mat.Matrix) *mat.Dense {
	var out mat.Dense
	out.Mul(x, f.Theta)
	out.Apply(func(_, j int, v float64) float64 { return v + f.B[j] }, &out)
	return &out
}

// centred is a copy of m without the means of its columns, and these; without
// an intercept the means are 0.
func centred(m mat.Matrix, intercept bool) (*mat.Dense, []float64) {
	out := mat.DenseCopyOf(m)
	n, d := out.Dims()
	means := make([]float64, d)
	if !intercept {
		return out, means
	}
	for i := range n {
		for j, v := range out.RawRowView(i) {
			means[j] += v / float64(n)
		}
	}
	for i := range n {
		row := out.RawRowView(i)
		for j := range row {
			row[j] -= means[j]
		}
	}
	return out, means
}

// primalRidge is (XᵀX + λI)⁻¹XᵀY.
func primalRidge(x, y *mat.Dense, lambda float64) (*mat.Dense, error) {
	var right, theta mat.Dense
	right.Mul(x.T(), y)
	chol, err := shifted(x.T(), lambda)
	if err != nil {
		return nil, err
	}
	return &theta, chol.SolveTo(&theta, &right)
}

// dualRidge is Xᵀ(XXᵀ + λI)⁻¹Y.
func dualRidge(x, y *mat.Dense, lambda float64) (*mat.Dense, error) {
	var b, theta mat.Dense
	chol, err := shifted(x, lambda)
	if err != nil {
		return nil, err
	}
	if err := chol.SolveTo(&b, y); err != nil {
		return nil, err
	}
	theta.Mul(x.T(), &b)
	return &theta, nil
}

// maxCondition is the condition number above which a system is refused: some
// digits of a solution in float64 have to be left.
const maxCondition = 1e13

// shifted factorizes MMᵀ + λI. It returns an error if that matrix is singular to
// rounding.
func shifted(m mat.Matrix, lambda float64) (*mat.Cholesky, error) {
	var gram mat.SymDense
	gram.SymOuterK(1, m)
	n := gram.SymmetricDim()
	for i := range n {
		gram.SetSym(i, i, gram.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if ok := chol.Factorize(&gram); !ok || !(chol.Cond() < maxCondition) {
		return nil, fmt.Errorf(
			"the %d×%d system with λ = %v is singular to rounding (condition number over %.0e): expected features of "+
				"full rank, or a larger λ", n, n, lambda, maxCondition)
	}
	return &chol, nil
}

// minNorm is X†Y with the numerical rank of X: singular values below
// max(n, d)·ε·σ₁ count as 0.
func minNorm(x, y *mat.Dense) (*mat.Dense, int, error) {
	n, d := x.Dims()
	_, k := y.Dims()
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) {
		return nil, 0, fmt.Errorf("exact ridge: no singular value decomposition of X, [%d, %d]", n, d)
	}
	values := svd.Values(nil)
	rank, tol := 0, float64(max(n, d))*0x1p-52*values[0]
	for _, s := range values {
		if s > tol {
			rank++
		}
	}
	theta := mat.NewDense(d, k, nil)
	if rank > 0 {
		svd.SolveTo(theta, y, rank)
	}
	return theta, rank, nil
}

func allFinite(m *mat.Dense) bool {
	for _, v := range m.RawMatrix().Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
