package minimizer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// logSumExp is L̄(α, θ) = log Σᵢ exp(aᵢᵀα + bᵢᵀθ) + (μ/2)‖θ‖², jointly convex, L̄-smooth in α with L̄ = ‖A‖²/2 because
// ‖diag(q) − qqᵀ‖ ≤ ½. Its Lipschitz constant is measured on near and far pairs.
func logSumExp(rng *rand.Rand, h, p int) (Bounds, error) {
	const terms, mu = 12, 0.5
	a, b := spectral.Normals(rng, terms, h), spectral.Normals(rng, terms, p)
	most := 0.0
	for _, distance := range []float64{1e-3, 1, 10} {
		alpha, beta := make([]float64, h), make([]float64, h)
		for i := range alpha {
			alpha[i] = rng.NormFloat64()
			beta[i] = alpha[i] + distance*rng.NormFloat64()
		}
		x, err := newton(a, b, alpha, mu)
		if err != nil {
			return Bounds{}, err
		}
		y, err := newton(a, b, beta, mu)
		if err != nil {
			return Bounds{}, err
		}
		most = max(most, floats.Distance(x, y, 2)/floats.Distance(alpha, beta, 2))
	}
	whole := mat.NewDense(terms, h+p, nil)
	whole.Augment(a, b)
	full := singular(whole)*singular(whole)/2 + mu
	outer, inner := singular(a), singular(b)
	return Bounds{most, math.Sqrt(outer * outer / 2 / mu), math.Sqrt(full / mu), outer * inner / 2 / mu}, nil
}

// newton minimizes over θ by Newton's method with halved steps.
func newton(a, b *mat.Dense, alpha []float64, mu float64) ([]float64, error) {
	_, p := b.Dims()
	theta := make([]float64, p)
	value, grad, hessian := expand(a, b, alpha, theta, mu)
	for range 100 {
		if floats.Norm(grad, 2) < 1e-12*(1+mu) {
			break
		}
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(hessian) {
			return nil, errors.New("lemma 2: the Hessian of the log-sum-exp is not positive definite")
		}
		if err := chol.SolveVecTo(&step, mat.NewVecDense(p, grad)); err != nil {
			return nil, err
		}
		for size := 1.0; size > 1e-12; size /= 2 {
			next := floats.AddScaledTo(make([]float64, p), theta, -size, step.RawVector().Data)
			v, g, hs := expand(a, b, alpha, next, mu)
			// Near the minimum the value no longer tells, the gradient does.
			rounding := 1e-12 * (1 + math.Abs(value))
			if v < value-rounding || (v <= value+rounding && floats.Norm(g, 2) < floats.Norm(grad, 2)) {
				theta, value, grad, hessian = next, v, g, hs
				break
			}
		}
	}
	if floats.Norm(grad, 2) > 1e-8 {
		return nil, fmt.Errorf("lemma 2: Newton's method stopped at a gradient of norm %.2g", floats.Norm(grad, 2))
	}
	return theta, nil
}

// expand is the log-sum-exp with its gradient and Hessian in θ.
func expand(a, b *mat.Dense, alpha, theta []float64, mu float64) (float64, []float64, *mat.SymDense) {
	terms, p := b.Dims()
	z := make([]float64, terms)
	for i := range z {
		z[i] = floats.Dot(a.RawRowView(i), alpha) + floats.Dot(b.RawRowView(i), theta)
	}
	value := floats.LogSumExp(z)
	grad, hessian := floats.ScaleTo(make([]float64, p), mu, theta), mat.NewSymDense(p, nil)
	average := make([]float64, p)
	for i := range z {
		q := math.Exp(z[i] - value)
		floats.AddScaled(average, q, b.RawRowView(i))
		hessian.SymRankOne(hessian, q, b.RowView(i))
	}
	hessian.SymRankOne(hessian, -1, mat.NewVecDense(p, average))
	for i := range p {
		hessian.SetSym(i, i, hessian.At(i, i)+mu)
	}
	floats.Add(grad, average)
	return value + mu/2*floats.Dot(theta, theta), grad, hessian
}
