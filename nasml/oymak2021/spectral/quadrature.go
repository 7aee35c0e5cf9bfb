package spectral

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// Rule is a quadrature rule for Gaussian means,
//
//	E f(g) ≈ Σᵢ Wᵢ f(Xᵢ),  g ~ N(0, 1) .
type Rule struct{ X, W []float64 }

// GaussHermite is the rule with m nodes, exact for polynomials of degree 2m − 1. For a function that is analytic in a
// strip around the real line the error falls like exp(−c√m). It returns an error if m is not in 1…200, the range in
// which double precision has weights.
func GaussHermite(m int) (Rule, error) {
	if m < 1 || m > 200 {
		return Rule{}, fmt.Errorf("a Gauss–Hermite rule must have 1 to 200 nodes, got %d", m)
	}
	r := Rule{X: make([]float64, m), W: make([]float64, m)}
	quad.Hermite{}.FixedLocations(r.X, r.W, math.Inf(-1), math.Inf(1))
	for i := range r.X { // from the weight e^(−x²) to the density of N(0, 1)
		r.X[i] *= math.Sqrt2
		r.W[i] /= math.Sqrt(math.Pi)
	}
	return r, nil
}

// Mean is E f(g).
func (r Rule) Mean(f func(float64) float64) float64 {
	var sum float64
	for i, x := range r.X {
		sum += r.W[i] * f(x)
	}
	return sum
}

// Hermite are the coefficients of f in the normalised Hermite polynomials of
// the probabilists,
//
//	c_k = E[f(g) He_k(g)] / √k!,  k = 0…degree,
//
// so that E f(u)² = Σ c_k² and E f(u)f(v) = Σ c_k² ρᵏ for correlation ρ. It
// panics if the rule cannot tell the degree's polynomial from lower ones.
func (r Rule) Hermite(f func(float64) float64, degree int) []float64 {
	if degree >= len(r.X) {
		panic(fmt.Sprintf("Hermite coefficients from %d nodes: the degree must be below that, got %d",
			len(r.X), degree))
	}
	c := make([]float64, degree+1)
	for i, x := range r.X {
		y := r.W[i] * f(x)
		before, now := 0.0, 1.0 // He_k/√k! by its three-term recurrence
		for k := range c {
			c[k] += y * now
			before, now = now, (x*now-math.Sqrt(float64(k))*before)/math.Sqrt(float64(k+1))
		}
	}
	return c
}

// powerSeries is Σ c_k ρᵏ.
func powerSeries(c []float64, rho float64) float64 {
	var sum float64
	for k := len(c) - 1; k >= 0; k-- {
		sum = sum*rho + c[k]
	}
	return sum
}
