package lowrank

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Every kind of feature has mean 0 and variance 1, and correlated rows have the
// covariance that the model says.
func TestFeatures(t *testing.T) {
	for name, fill := range Features {
		x := make([]float64, 200000)
		rng := trial.RNG(1, name)
		for chunk := range len(x) / 20 { // a heavy factor is shared by a matrix
			fill(rng, x[chunk*20:(chunk+1)*20])
		}
		mean, variance := stat.MeanVariance(x, nil)
		require.InDelta(t, 0, mean, 0.02, name)
		require.InDelta(t, 1, variance, 0.1, name)
	}
	m := Data{H: 4, P: 3, Features: "correlated"}.model(5)
	var square mat.Dense
	square.Mul(m.root, m.root)
	require.True(t, mat.EqualApprox(m.cov, &square, 1e-12))
	require.Equal(t, Correlation, m.cov.At(0, 3))
}

// On the expectation of M̂ the whitened direction is α* and the plain one is A·α*.
func TestWhitening(t *testing.T) {
	m := Data{H: 4, P: 6, Features: "correlated"}.model(5)
	var mean mat.Dense
	mean.Product(m.cov, mat.NewDense(4, 1, m.alpha), mat.NewDense(1, 6, m.theta))
	white, err := m.direction(&mean, true)
	require.NoError(t, err)
	require.InDelta(t, 1, spectral.Correlation2(white, m.alpha), 1e-12)
	plain, err := m.direction(&mean, false)
	require.NoError(t, err)
	require.InDelta(t, 1/(1+3*Correlation*Correlation), spectral.Correlation2(plain, m.alpha), 1e-12)
}

// At 2n = p there is a direction whose Z_α is singular, found by its equation.
func TestExceptionalDirection(t *testing.T) {
	found := 0.0
	for seed := range uint64(8) {
		r, err := Fit{"fit", 8, 2, 3}.Run(t.Context(), seed)
		require.NoError(t, err)
		require.Less(t, max(r.Values["residual_at"], r.Values["residual_above"], r.Values["residual_double"]), 1e-6)
		require.Greater(t, r.Values["residual_below"], 1e-3)
		require.Less(t, r.Values["error_below"], 1e-15)
		if r.Values["found_at"] == 1 {
			found++
			require.Less(t, r.Values["smallest_at"], 1e-10)
			require.Greater(t, r.Values["exceptional_at"], 1e-6)
		}
	}
	require.Positive(t, found)
}
