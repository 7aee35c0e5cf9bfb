package spectral

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// TopEigen is the largest eigenvalue λ of a symmetric positive semidefinite operator on ℝⁿ, given by its product with a
// vector, and its unit eigenvector with the largest entry positive. It is Lanczos' method with full
// reorthogonalization, from a fixed random start, until ‖Av − λv‖ ≤ 10⁻¹⁰λ, at most n steps. If λ is multiple it
// returns one eigenvector.
//
// It returns an error if the operator is 0 (ErrNoDirection) or not finite.
func TopEigen(n int, apply func(dst, v []float64)) (value float64, vector []float64, err error) {
	k := newKrylov(n)
	for steps := 1; ; steps++ {
		beta, err := k.step(apply)
		if err != nil {
			return 0, nil, err
		}
		// Looking is as expensive as a dense eigenproblem of size steps.
		if exhausted := steps == n || beta == 0; exhausted || steps%10 == 0 {
			value, vector, residual := k.ritz(beta)
			if value == 0 {
				return 0, nil, ErrNoDirection
			}
			if exhausted || residual <= 1e-10*value {
				return value, vector, nil
			}
		}
	}
}

// krylov is an orthonormal basis q of the span of q₁, Aq₁, A²q₁, … with the
// tridiagonal matrix of A in it.
type krylov struct {
	q           [][]float64
	alpha, beta []float64
}

func newKrylov(n int) *krylov {
	rng := rand.New(rand.NewPCG(1, 2)) // any start with a share of the leading direction
	return &krylov{q: [][]float64{unit(Normals(rng, 1, n).RawRowView(0))}}
}

// step adds a direction and returns its length β before normalization, 0 if the space is exhausted.
func (k *krylov) step(apply func(dst, v []float64)) (beta float64, err error) {
	last := k.q[len(k.q)-1]
	next := make([]float64, len(last))
	apply(next, last)
	size := floats.Norm(next, 2)
	if math.IsNaN(size) || math.IsInf(size, 0) {
		return 0, fmt.Errorf("spectral: the operator's product with a unit vector has norm %v, expected a finite one",
			size)
	}
	k.alpha = append(k.alpha, floats.Dot(last, next))
	for range 2 { // once leaves a rest of rounding errors
		for _, q := range k.q {
			floats.AddScaled(next, -floats.Dot(q, next), q)
		}
	}
	beta = floats.Norm(next, 2)
	if beta <= 1e-14*size || len(k.q) == len(last) {
		return 0, nil
	}
	floats.Scale(1/beta, next)
	k.q, k.beta = append(k.q, next), append(k.beta, beta)
	return beta, nil
}

// ritz is the leading eigenpair of the tridiagonal matrix, in ℝⁿ, with the norm of its residual.
func (k *krylov) ritz(beta float64) (value float64, vector []float64, residual float64) {
	m := len(k.alpha)
	t := mat.NewSymDense(m, nil)
	for i, a := range k.alpha {
		t.SetSym(i, i, a)
		if i+1 < m {
			t.SetSym(i, i+1, k.beta[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, true) {
		panic("spectral: a finite tridiagonal matrix has eigenvalues")
	}
	var s mat.Dense
	eigen.VectorsTo(&s)
	value = eigen.Values(nil)[m-1]
	vector = make([]float64, len(k.q[0]))
	for i := range m {
		floats.AddScaled(vector, s.At(i, m-1), k.q[i])
	}
	return value, positive(unit(vector)), math.Abs(beta * s.At(m-1, m-1))
}

// positive is v or −v, so that the entry of largest size is positive.
func positive(v []float64) []float64 {
	largest := 0
	for i, x := range v {
		if math.Abs(x) > math.Abs(v[largest]) {
			largest = i
		}
	}
	if v[largest] < 0 {
		floats.Scale(-1, v)
	}
	return v
}
