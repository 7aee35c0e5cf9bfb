package minimizer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// joint is a Hessian AAᵀ of (α, θ) of rank p + a random part of h, so that
// it is convex, and strongly so in θ, and often not strongly in (α, θ).
func joint(rng *rand.Rand, h, p int) *mat.SymDense {
	a := gaussian(rng, h+p, p+rng.IntN(h+1))
	var hessian mat.SymDense
	hessian.SymOuterK(1, a)
	return &hessian
}

// separate is a random symmetric Hessian whose θ-block is made positive
// definite, with a smallest eigenvalue in [0.1, 1.1].
func separate(rng *rand.Rand, h, p int) *mat.SymDense {
	g := gaussian(rng, h+p, h+p)
	hessian := mat.NewSymDense(h+p, nil)
	for i := range h + p {
		for j := i; j < h+p; j++ {
			hessian.SetSym(i, j, (g.At(i, j)+g.At(j, i))/2)
		}
	}
	shift := 0.1 + rng.Float64() - smallest(block(hessian, h, h+p))
	for i := h; i < h+p; i++ {
		hessian.SetSym(i, i, hessian.At(i, i)+shift)
	}
	return hessian
}

func gaussian(rng *rand.Rand, n, d int) *mat.Dense {
	m := mat.NewDense(n, d, nil)
	m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
	return m
}

// block is the symmetric block of rows and columns from…to−1.
func block(m *mat.SymDense, from, to int) *mat.SymDense {
	out := mat.NewSymDense(to-from, nil)
	for i := range to - from {
		for j := i; j < to-from; j++ {
			out.SetSym(i, j, m.At(from+i, from+j))
		}
	}
	return out
}

func eigenvalues(m *mat.SymDense) []float64 {
	var eig mat.EigenSym
	if !eig.Factorize(m, false) {
		return []float64{math.NaN()} // a result with it is refused
	}
	return eig.Values(nil)
}

func smallest(m *mat.SymDense) float64 { return eigenvalues(m)[0] }

// norm is the spectral norm of a symmetric matrix.
func norm(m *mat.SymDense) float64 {
	values := eigenvalues(m)
	return max(math.Abs(values[0]), math.Abs(values[len(values)-1]))
}

// Example is (μ/2)θ² − kμαθ, which is not jointly convex: H_αα = 0 and
// θ_α = kα.
func Example(k, mu float64) Bounds {
	b, err := quadratic(mat.NewSymDense(2, []float64{0, -k * mu, -k * mu, mu}), 1)
	if err != nil { // the θ-block is the number μ
		panic(err)
	}
	return b
}

// quadratic is exact for ½(α, θ)ᵀH(α, θ): θ_α = −H_θθ⁻¹H_θα α.
func quadratic(hessian *mat.SymDense, h int) (Bounds, error) {
	n := hessian.SymmetricDim()
	inner := block(hessian, h, n)
	cross := mat.NewDense(n-h, h, nil)
	for i := range n - h {
		for j := range h {
			cross.Set(i, j, hessian.At(h+i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(inner) {
		return Bounds{}, errors.New("lemma 2: the Hessian in θ is not positive definite")
	}
	var slope mat.Dense
	if err := chol.SolveTo(&slope, cross); err != nil {
		return Bounds{}, fmt.Errorf("lemma 2: the Hessian in θ: %w", err)
	}
	mu := smallest(inner)
	return Bounds{
		Lipschitz: spectral(&slope),
		Smooth:    math.Sqrt(norm(block(hessian, 0, h)) / mu),
		Joint:     math.Sqrt(norm(hessian) / mu),
		Cross:     spectral(cross) / mu,
	}, nil
}

// spectral is the largest singular value.
func spectral(m *mat.Dense) float64 {
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return math.NaN()
	}
	return svd.Values(nil)[0]
}
