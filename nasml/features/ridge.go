// Package features maps examples to features, of which a linear model is trained: random Fourier features of images,
// hashed n-grams of texts, mixtures of feature maps; ridge regression and linear support vector machines.
//
// A feature matrix Φ, of shape [n, d], is known by its products ([Operator]), because it may be a matrix on the host,
// blocks on a device, or features that are recomputed for every product and never exist at once. With weight sharing
// (Khodak+ 2020, Algorithm 1) every example has its own feature map, so row i is φ_{c(i)}(xᵢ) of its configuration
// c(i).
//
// Everything but graph functions returns errors. NaN in an input is one.
package features

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// RidgeParams say what [FitRidge] minimizes, and how well.
type RidgeParams struct {
	Lambda  float64 // λ ≥ 0 on the sum of squares; Khodak+ 2020 take ½, which is scikit-learn's alpha
	Tol     float64 // scikit-learn's tol: 1e-3 before its version 1.2, as in the code of Khodak+ 2020, 1e-4 since
	MaxIter int     // of LSQR; if 0, 2d
}

// LinearModel has a score for each of k targets: φᵀw + b.
type LinearModel struct {
	Weights   *mat.Dense // [d, k]
	Intercept []float64  // [k]
	Solve     Solve
}

// FitRidge is ridge regression of k targets on the n rows φᵢ of a,
//
//	min_{w,b} λ‖w‖² + Σᵢ (⟨w, φᵢ⟩ + b − yᵢ)² ,
//
// with an intercept that is not penalized (Khodak+ 2020, Algorithm 1 with the squared loss). Y has shape [n, k]. As
// scikit-learn does, it solves for the centred features and targets and gets b from the means; the features are centred
// within the products, never in memory. With λ = 0 it is the least-squares solution of minimum norm.
//
// It returns an error if shapes differ, a parameter is invalid, a number is
// not finite, and where ctx ends. Not to converge is none: Solve.Stop says so.
func FitRidge(ctx context.Context, a Operator, y *mat.Dense, p RidgeParams) (*LinearModel, error) {
	if err := p.check(a, y); err != nil {
		return nil, fmt.Errorf("ridge: %w", err)
	}
	n, d := a.Dims()
	with, yMeans := centredTargets(y)
	c, atb, err := centre(ctx, a, with)
	if err != nil {
		return nil, fmt.Errorf("ridge: %w", err)
	}
	_, k := y.Dims()
	yc := mat.DenseCopyOf(with.Slice(0, n, 0, k))
	step := func(dst, y, x *mat.Dense, scale []float64) error { return c.step(ctx, dst, y, x, scale) }
	m := &LinearModel{Intercept: yMeans}
	if m.Weights, m.Solve, err = lsqr(yc, atb, math.Sqrt(p.Lambda), p.Tol, p.MaxIter, step); err != nil {
		return nil, fmt.Errorf("ridge on features of shape [%d, %d]: %w", n, d, err)
	}
	m.Solve.Passes++
	floats.Sub(m.Intercept, c.shift(m.Weights)) // b = ȳ − wᵀφ̄
	return m, nil
}

func (p *RidgeParams) check(a Operator, y *mat.Dense) error {
	n, _ := a.Dims()
	rows, _ := y.Dims()
	switch {
	case rows != n || n == 0:
		return fmt.Errorf("features and targets must have as many rows, at least one, got %d and %d", n, rows)
	case !(p.Lambda >= 0) || math.IsInf(p.Lambda, 1):
		return fmt.Errorf("λ must be at least 0, got %v", p.Lambda)
	}
	for j, norm := range columnNorms(y) {
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return fmt.Errorf("found a number of target %d that is not finite", j)
		}
	}
	return nil
}

// centredTargets are the targets less their means, with a column of ones, [n, k+1], and the means.
func centredTargets(y *mat.Dense) (with *mat.Dense, means []float64) {
	n, k := y.Dims()
	means = minusSums(y)
	for j, sum := range means {
		means[j] = -sum / float64(n)
	}
	with = mat.NewDense(n, k+1, nil)
	for i := range n {
		row := with.RawRowView(i)
		for j, v := range y.RawRowView(i) {
			row[j] = v - means[j]
		}
		row[k] = 1
	}
	return with, means
}

// centre returns A without the means of its columns, and its product with centred targets. The product with the
// column of ones gives the means in the same pass.
func centre(ctx context.Context, a Operator, with *mat.Dense) (c centred, atb *mat.Dense, err error) {
	n, d := a.Dims()
	_, ones := with.Dims()
	k := ones - 1
	product := mat.NewDense(d, ones, nil)
	if err := a.MulTransTo(ctx, product, with); err != nil {
		return c, nil, err
	}
	c = centred{a, mat.Col(nil, k, product)}
	for i := range c.means {
		c.means[i] /= float64(n)
	}
	atb = mat.DenseCopyOf(product.Slice(0, d, 0, k))
	addOuter(atb, c.means, minusSums(with)[:k]) // the sums are 0 but for rounding
	return c, atb, nil
}

// Scores is the score of every row of a for every target, [n, k].
func (m *LinearModel) Scores(ctx context.Context, a Operator) (*mat.Dense, error) {
	n, _ := a.Dims()
	scores := mat.NewDense(n, len(m.Intercept), nil)
	if err := a.MulTo(ctx, scores, m.Weights); err != nil {
		return nil, fmt.Errorf("scores of a linear model: %w", err)
	}
	addOuter(scores, nil, m.Intercept)
	return scores, nil
}

// Targets is +1 in the column of a row's label and −1 elsewhere, [n, classes],
// as in the code of Khodak+ 2020. It panics if a label is no class.
func Targets(labels []int, classes int) *mat.Dense {
	y := mat.NewDense(len(labels), classes, slices.Repeat([]float64{-1}, len(labels)*classes))
	for i, label := range labels {
		y.Set(i, label, 1)
	}
	return y
}

// Classes is the column of the highest score of every row, the first of equal ones.
func Classes(scores *mat.Dense) []int {
	n, _ := scores.Dims()
	out := make([]int, n)
	for i := range out {
		out[i] = floats.MaxIdx(scores.RawRowView(i))
	}
	return out
}

// Operator is an n×d matrix A that is known by its products. Several right sides are multiplied together: k of them are
// the columns of X, [d, k], or of Y, [n, k].
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

// columnNorms are the Euclidean norms of the columns. They are NaN or infinite where an entry is.
func columnNorms(m *mat.Dense) []float64 {
	_, k := m.Dims()
	norms := make([]float64, k)
	for j := range norms {
		norms[j] = mat.Norm(m.ColView(j), 2)
	}
	return norms
}
