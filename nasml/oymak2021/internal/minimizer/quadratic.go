package minimizer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// joint is a Hessian AAᵀ of (α, θ) of rank p + a random part of h: convex, strongly in θ, often not strongly in (α, θ).
func joint(rng *rand.Rand, h, p int) *mat.SymDense {
	a := spectral.Normals(rng, h+p, p+rng.IntN(h+1))
	var hessian mat.SymDense
	hessian.SymOuterK(1, a)
	return &hessian
}

// separate is a random symmetric Hessian whose θ-block is made positive definite, with a smallest eigenvalue in
// [0.1, 1.1].
func separate(rng *rand.Rand, h, p int) *mat.SymDense {
	hessian := spectral.Symmetric(spectral.Normals(rng, h+p, h+p))
	shift := 0.1 + rng.Float64() - smallest(block(hessian, h, h+p))
	for i := h; i < h+p; i++ {
		hessian.SetSym(i, i, hessian.At(i, i)+shift)
	}
	return hessian
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

func smallest(m *mat.SymDense) float64 {
	least, _ := spectral.EigenRange(m)
	return least
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
		Lipschitz: singular(&slope),
		Smooth:    math.Sqrt(spectral.Norm(block(hessian, 0, h)) / mu),
		Joint:     math.Sqrt(spectral.Norm(hessian) / mu),
		Cross:     singular(cross) / mu,
	}, nil
}

// singular is the largest singular value.
func singular(m mat.Matrix) float64 {
	var svd mat.SVD
	if !svd.Factorize(m, mat.SVDNone) {
		return math.NaN() // a result with it is refused
	}
	return svd.Values(nil)[0]
}
