package mixture

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// onSimplex is how far the sum of α may be from 1: what float32 leaves of it.
const onSimplex = 1e-5

// checkAlpha returns an error if α is not on the simplex.
func checkAlpha(alpha []float64) error {
	if len(alpha) == 0 {
		return errors.New("α must have the weight of at least one operation")
	}
	for i, a := range alpha {
		if math.IsNaN(a) || a < 0 || a > 1+onSimplex {
			return fmt.Errorf("α[%d] must be between 0 and 1, got %v", i, a)
		}
	}
	if sum := floats.Sum(alpha); math.Abs(sum-1) > onSimplex {
		return fmt.Errorf("α must sum to 1, got %v: take a softmax, or divide by the sum", sum)
	}
	return nil
}

// Rest is 1 − αᵢ as the sum of the others, which loses no digits where αᵢ is
// near 1.
func Rest(alpha []float64, i int) float64 {
	var sum float64
	for k, a := range alpha {
		if k != i {
			sum += a
		}
	}
	return sum
}

// Factor writes α as seen from operation i (Roberts+, Lemma 5):
//
//	α_k = (1 − αᵢ)γ_k,  γ_k = α_k / Σ_{l≠i} α_l,  k ≠ i .
//
// γ is on the simplex of the other operations; γ[i] is 0, so that it has the
// length of α, as the paper's [0, γ]. Where all αs are positive so are all other
// γs (the paper's Assumption 2), but αᵢ < 1 is all that the factorization needs:
// where αᵢ is 1 there is none, and γ is nil.
func Factor(alpha []float64, i int) (gamma []float64) {
	others := Rest(alpha, i)
	if others == 0 {
		return nil
	}
	gamma = make([]float64, len(alpha))
	for k, a := range alpha {
		if k != i {
			gamma[k] = a / others
		}
	}
	return gamma
}

// StickBreaking applies [Factor] to γ again and again (Roberts+, after Lemma 5):
//
//	b₁ = α₁,  bᵢ = αᵢ / Σ_{j≥i} α_j,  αᵢ = bᵢ Π_{j<i} (1 − b_j),  b_h = 1 .
//
// Tails are summed, because 1 − Σ_{j<i} α_j loses digits. Where a tail is zero
// its b are 1, which gives the zeros back.
func StickBreaking(alpha []float64) []float64 {
	b := make([]float64, len(alpha))
	tail := 0.0
	for i := len(alpha) - 1; i >= 0; i-- {
		tail += alpha[i]
		b[i] = 1
		if tail > 0 {
			b[i] = alpha[i] / tail
		}
	}
	return b
}

// Sticks is the inverse of [StickBreaking].
func Sticks(b []float64) []float64 {
	alpha := make([]float64, len(b))
	left := 1.0
	for i, x := range b {
		alpha[i] = left * x
		left *= 1 - x
	}
	return alpha
}
