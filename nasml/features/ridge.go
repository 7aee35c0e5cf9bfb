package features

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// RidgeParams say what [FitRidge] minimizes, and how well.
type RidgeParams struct {
	Lambda      float64 // λ ≥ 0 on the sum of squares; Khodak+ 2020 take ½, which is scikit-learn's alpha
	NoIntercept bool
	Solver      string  // "lsqr" or "cg"; if empty, "lsqr"
	Tol         float64 // scikit-learn's tol: 1e-3 before its version 1.2, as in the code of Khodak+ 2020, 1e-4 since
	MaxIter     int     // if 0, 2d
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
// with an intercept that is not penalized (Khodak+ 2020, Algorithm 1 with the
// squared loss). Y has shape [n, k]. As scikit-learn does, it solves for the
// centred features and targets and gets b from the means; the features are
// centred within the products, never in memory. With λ = 0 it is the
// least-squares solution of minimum norm.
//
// It returns an error if shapes differ, a parameter is invalid, a number is
// not finite, and where ctx ends. Not to converge is none: Solve.Stop says so.
func FitRidge(ctx context.Context, a Operator, y *mat.Dense, p RidgeParams) (*LinearModel, error) {
	if err := p.check(a, y); err != nil {
		return nil, fmt.Errorf("ridge: %w", err)
	}
	n, d := a.Dims()
	_, k := y.Dims()
	centred, yMeans, y, atb, err := centreProblem(ctx, a, y, !p.NoIntercept)
	if err != nil {
		return nil, fmt.Errorf("ridge: %w", err)
	}
	m := &LinearModel{Intercept: make([]float64, k)}
	if p.Solver == "cg" {
		m.Weights, m.Solve, err = cgFrom(ctx, centred, y, atb, p.Lambda, CGOptions{Tol: p.Tol, MaxIter: p.MaxIter})
	} else {
		m.Weights, m.Solve, err = lsqrFrom(ctx, centred, y, atb, math.Sqrt(p.Lambda),
			LSQROptions{ATol: p.Tol, BTol: p.Tol, MaxIter: p.MaxIter})
	}
	if err != nil {
		return nil, fmt.Errorf("ridge on features of shape [%d, %d]: %w", n, d, err)
	}
	m.Solve.Passes++
	if c, ok := centred.(interface{ offsets(*mat.Dense) []float64 }); ok {
		for j, v := range c.offsets(m.Weights) { // b = ȳ − wᵀφ̄
			m.Intercept[j] = yMeans[j] + v
		}
	}
	return m, nil
}

func (p *RidgeParams) check(a Operator, y *mat.Dense) error {
	n, _ := a.Dims()
	rows, _ := y.Dims()
	switch {
	case rows != n || n == 0:
		return fmt.Errorf("found %d rows of features and %d of targets, expected as many and one at least", n, rows)
	case !(p.Lambda >= 0) || math.IsInf(p.Lambda, 1):
		return fmt.Errorf("found λ = %v, expected 0 or more", p.Lambda)
	case p.Solver != "" && p.Solver != "lsqr" && p.Solver != "cg":
		return fmt.Errorf("found solver %q, expected lsqr or cg", p.Solver)
	}
	for j, norm := range columnNorms(y) {
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return fmt.Errorf("found a number of target %d that is not finite", j)
		}
	}
	return nil
}

// centreProblem returns the centred operator and targets, the means of the
// targets, and the product Aᵀy of the centred ones. The product with a column
// of ones gives the means of the features in the same pass.
func centreProblem(
	ctx context.Context,
	a Operator,
	y *mat.Dense,
	intercept bool,
) (_ Operator, yMeans []float64, yc, atb *mat.Dense, err error) {
	n, d := a.Dims()
	_, k := y.Dims()
	yMeans = make([]float64, k)
	if !intercept {
		atb = mat.NewDense(d, k, nil)
		return a, yMeans, y, atb, a.MulTransTo(ctx, atb, y)
	}
	for j, sum := range minusSums(y) {
		yMeans[j] = -sum / float64(n)
	}
	with := mat.NewDense(n, k+1, nil) // centred targets, and ones
	for i := range n {
		row := with.RawRowView(i)
		for j, v := range y.RawRowView(i) {
			row[j] = v - yMeans[j]
		}
		row[k] = 1
	}
	product := mat.NewDense(d, k+1, nil)
	if err := a.MulTransTo(ctx, product, with); err != nil {
		return nil, nil, nil, nil, err
	}
	means := mat.Col(nil, k, product)
	for i := range means {
		means[i] /= float64(n)
	}
	yc = mat.DenseCopyOf(with.Slice(0, n, 0, k))
	atb = mat.DenseCopyOf(product.Slice(0, d, 0, k))
	addOuter(atb, means, minusSums(yc)) // the sums are 0 but for rounding
	return centre(a, means), yMeans, yc, atb, nil
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
	y := mat.NewDense(len(labels), classes, repeat(-1, len(labels)*classes))
	for i, label := range labels {
		y.Set(i, label, 1)
	}
	return y
}

// Classes is the column of the highest score of every row, the first of equal
// ones.
func Classes(scores *mat.Dense) []int {
	n, _ := scores.Dims()
	out := make([]int, n)
	for i := range out {
		row := scores.RawRowView(i)
		for j, v := range row {
			if v > row[out[i]] {
				out[i] = j
			}
		}
	}
	return out
}
