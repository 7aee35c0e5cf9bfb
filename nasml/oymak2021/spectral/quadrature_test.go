package spectral

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

func mustRule(t *testing.T, m int) Rule {
	t.Helper()
	r, err := GaussHermite(m)
	require.NoError(t, err)
	return r
}

func TestRuleHasTheMomentsOfTheNormal(t *testing.T) {
	r := mustRule(t, 12)
	moment := 1.0
	for p := 0; p <= 20; p += 2 { // exact to degree 23
		require.InEpsilon(
			t,
			moment,
			r.Mean(func(x float64) float64 { return math.Pow(x, float64(p)) }),
			1e-11,
			"E g^%d",
			p,
		)
		moment *= float64(p + 1)
	}
	require.Greater(
		t,
		math.Abs(r.Mean(func(x float64) float64 { return math.Pow(x, 24) })/316234143225-1),
		1e-9,
		"and not beyond its degree",
	)
}

// mean2 is E f(u, v) of two standard normal variables with correlation ρ, by the tensor rule on u and
// v = ρu + √(1−ρ²)w.
func mean2(r Rule, f func(u, v float64) float64, rho float64) float64 {
	rest := math.Sqrt((1 - rho) * (1 + rho))
	return r.Mean(func(u float64) float64 {
		return r.Mean(func(w float64) float64 { return f(u, rho*u+rest*w) })
	})
}

func TestHermiteCoefficients(t *testing.T) {
	r := mustRule(t, 80)
	// e^{tg − t²/2} = Σ tᵏ/√k! · He_k/√k!
	c := r.Hermite(func(x float64) float64 { return math.Exp(0.5*x - 0.125) }, 20)
	term := 1.0
	for k := range c {
		require.InDelta(t, term, c[k], 1e-13)
		term *= 0.5 / math.Sqrt(float64(k+1))
	}
	require.Panics(t, func() { r.Hermite(math.Sin, 80) })
}

func TestRuleRefusesSizesWithoutWeights(t *testing.T) {
	for _, m := range []int{-1, 0, 201} {
		_, err := GaussHermite(m)
		require.ErrorContains(t, err, "must have 1 to 200 nodes")
	}
}
