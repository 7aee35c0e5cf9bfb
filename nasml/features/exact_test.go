package features

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

func gaussian(rng *rand.Rand, n, d int) *mat.Dense {
	m := mat.NewDense(n, d, nil)
	m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
	return m
}

// The solution of ridge regression is where the gradient vanishes:
// Xᵀ(Y − XΘ − 1bᵀ) = λΘ and, with an intercept, 1ᵀ(Y − XΘ − 1bᵀ) = 0.
func TestExactRidgeIsStationary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d, k := rapid.IntRange(1, 12).
			Draw(t, "n"),
			rapid.IntRange(1, 12).
				Draw(t, "d"),
			rapid.IntRange(1, 3).
				Draw(t, "k")
		lambda := rapid.SampledFrom([]float64{0, 1e-3, 0.5, 100}).Draw(t, "λ")
		intercept := rapid.Bool().Draw(t, "intercept")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		x, y := gaussian(rng, n, d), gaussian(rng, n, k)
		fit, err := ExactRidge{lambda, intercept}.Fit(x, y)
		require.NoError(t, err)
		var r, g mat.Dense
		r.Sub(y, fit.Predict(x))
		g.Mul(x.T(), &r)
		for i := range d {
			for j := range k {
				require.InDelta(t, lambda*fit.Theta.At(i, j), g.At(i, j), 1e-8)
			}
		}
		for j := range k {
			if !intercept {
				require.Zero(t, fit.B[j])
				continue
			}
			require.InDelta(t, 0, mat.Sum(r.ColView(j)), 1e-9)
		}
	})
}

// Both sides of n = d are one formula; a row of zeros takes the system from
// one form to the other without changing the solution.
func TestExactRidgePrimalEqualsDual(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := gaussian(rng, 6, 7), gaussian(rng, 6, 2)
	dual, err := ExactRidge{Lambda: 0.3}.Fit(x, y)
	require.NoError(t, err)
	require.Equal(t, "dual", dual.Form)
	xx, yy := mat.NewDense(8, 7, nil), mat.NewDense(8, 2, nil)
	xx.Slice(0, 6, 0, 7).(*mat.Dense).Copy(x)
	yy.Slice(0, 6, 0, 2).(*mat.Dense).Copy(y)
	primal, err := ExactRidge{Lambda: 0.3}.Fit(xx, yy)
	require.NoError(t, err)
	require.Equal(t, "primal", primal.Form)
	require.True(t, mat.EqualApprox(dual.Theta, primal.Theta, 1e-12))
}

func TestExactRidgeByHand(t *testing.T) {
	// One feature x = (1, 2), y = (1, 3): θ = ⟨x, y⟩/(‖x‖² + λ) = 7/(5 + λ).
	x, y := mat.NewDense(2, 1, []float64{1, 2}), mat.NewDense(2, 1, []float64{1, 3})
	for _, lambda := range []float64{0, 2} {
		fit, err := ExactRidge{Lambda: lambda}.Fit(x, y)
		require.NoError(t, err)
		require.InDelta(t, 7/(5+lambda), fit.Theta.At(0, 0), 1e-14)
	}
	// With an intercept the line goes through both points: θ = 2, b = −1.
	fit, err := ExactRidge{Intercept: true}.Fit(x, y)
	require.NoError(t, err)
	require.InDelta(t, 2, fit.Theta.At(0, 0), 1e-14)
	require.InDelta(t, -1, fit.B[0], 1e-14)
}

// λ = 0 is the limit of λ → 0, also where X does not have full rank.
func TestMinimumNormIsTheLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shape := range [][2]int{{5, 9}, {9, 5}, {6, 6}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			var x mat.Dense
			x.Mul(gaussian(rng, shape[0], 3), gaussian(rng, 3, shape[1])) // rank 3
			y := gaussian(rng, shape[0], 2)
			zero, err := ExactRidge{}.Fit(&x, y)
			require.NoError(t, err)
			require.Equal(t, 3, zero.Rank)
			small, err := ExactRidge{Lambda: 1e-8}.Fit(&x, y)
			require.NoError(t, err)
			require.True(t, mat.EqualApprox(zero.Theta, small.Theta, 1e-5))
		})
	}
	fit, err := ExactRidge{}.Fit(mat.NewDense(2, 2, nil), mat.NewDense(2, 1, []float64{1, 2}))
	require.NoError(t, err)
	require.Zero(t, fit.Rank)
	require.Zero(t, mat.Norm(fit.Theta, 2))
}

func TestExactRidgeRefuses(t *testing.T) {
	x, y := mat.NewDense(2, 1, []float64{1, 2}), mat.NewDense(2, 1, []float64{1, 3})
	for name, fit := range map[string]func() (*ExactFit, error){
		"expected as many": func() (*ExactFit, error) { return ExactRidge{}.Fit(x, mat.NewDense(3, 1, nil)) },
		"expected 0":       func() (*ExactFit, error) { return ExactRidge{Lambda: -1}.Fit(x, y) },
		"λ = NaN":          func() (*ExactFit, error) { return ExactRidge{Lambda: math.NaN()}.Fit(x, y) },
		"not finite": func() (*ExactFit, error) {
			return ExactRidge{}.Fit(mat.NewDense(2, 1, []float64{1, math.NaN()}), y)
		},
		"singular": func() (*ExactFit, error) {
			return ExactRidge{Lambda: 1e-30}.Fit(mat.NewDense(2, 2, []float64{1, 1, 1, 1}), y)
		},
	} {
		_, err := fit()
		require.ErrorContains(t, err, name)
	}
}
