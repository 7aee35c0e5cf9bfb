package spectral

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func TestInverseForm(t *testing.T) {
	k := mat.NewSymDense(2, []float64{2, 1, 1, 2})
	got, err := InverseForm(k, []float64{1, -1}) // eigenvalue 1, ‖y‖² = 2
	require.NoError(t, err)
	require.InDelta(t, 2, got, 1e-12)
	_, err = InverseForm(mat.NewSymDense(2, []float64{1, 1, 1, 1}), []float64{1, 1})
	require.ErrorContains(t, err, "equal or opposite inputs")
	require.Panics(t, func() { _, _ = InverseForm(k, []float64{1}) })
	_, err = InverseForm(mat.NewSymDense(2, []float64{math.NaN(), 0, 0, 1}), []float64{1, 1})
	require.Error(t, err)
}

func TestEigen(t *testing.T) {
	values, vectors := Eigen(mat.NewSymDense(2, []float64{2, 1, 1, 2}))
	require.InDeltaSlice(t, []float64{3, 1}, values, 1e-14)
	require.InDelta(t, math.Sqrt(0.5), math.Abs(vectors.At(0, 0)), 1e-14)
	require.InDelta(t, vectors.At(0, 0), vectors.At(1, 0), 1e-14)
	require.InDelta(t, 3, Norm(mat.NewSymDense(2, []float64{0, 0, 0, -3})), 1e-14)
	require.Panics(t, func() { Symmetric(mat.NewDense(1, 2, nil)) })
}

func TestSimplexPoints(t *testing.T) {
	g := rng(1)
	for range 100 {
		var sum float64
		for _, a := range SimplexPoint(g, 4) {
			require.GreaterOrEqual(t, a, 0.0)
			sum += a
		}
		require.InDelta(t, 1, sum, 1e-14)
	}
	require.Equal(t, []float64{1}, SimplexPoint(g, 1))
}

func TestFrankWolfeFindsTheMinimum(t *testing.T) {
	q := mat.NewSymDense(3, []float64{1, 0, 0, 0, 2, 0, 0, 0, 4})
	// αᵢ ∝ 1/Qᵢᵢ
	require.InDeltaSlice(t, []float64{4. / 7, 2. / 7, 1. / 7}, smallestOnSimplex(q, []float64{1, 0, 0}), 1e-2)
	// a corner is the minimum, and stays
	q = mat.NewSymDense(2, []float64{1, 2, 2, 5})
	require.Equal(t, []float64{1, 0}, smallestOnSimplex(q, []float64{1, 0}))
}

// No α does better than the certified bound nor, on the simplex, than what the
// search finds by more than its resolution.
func TestSmallestEigenvalueOverTheSimplex(t *testing.T) {
	k := tangent(t, "tanh", "softplus", "sin")
	rapid.Check(t, func(t *rapid.T) {
		g := rng(rapid.Uint64().Draw(t, "seed"))
		x := SpherePoints(g, 6, 5)
		b, err := k.Blocks(x, x)
		require.NoError(t, err)
		certified := b.CertifiedSmallest()
		found, alpha := b.SmallestOverSimplex(
			[]float64{1, 0, 0},
			[]float64{0, 1, 0},
			[]float64{0, 0, 1},
			[]float64{1. / 3, 1. / 3, 1. / 3},
		)
		require.Greater(t, certified, 0.0)
		require.GreaterOrEqual(t, found, certified)
		at, _ := EigenRange(Symmetric(b.At(alpha)))
		require.InDelta(t, found, at, 1e-12)
		for range 20 {
			p := SimplexPoint(g, 3)
			at, _ := EigenRange(Symmetric(b.At(p)))
			require.GreaterOrEqual(t, at, 0.98*found)
			signs := []float64{1, 1, 1}
			signed := make([]float64, 3)
			for i := range p { // signs leave the simplex but not the ℓ₁ sphere
				if g.IntN(2) == 0 {
					signs[i] = -1
				}
				signed[i] = signs[i] * p[i]
			}
			at, _ = EigenRange(Symmetric(b.At(signed)))
			require.True(t, mat.EqualApprox(b.At(signed), b.Signed(signs).At(p), 1e-14))
			require.GreaterOrEqual(t, at, certified*(1-1e-9))
		}
	})
}

// What Assumption 3 excludes: equal inputs, opposite inputs where every
// activation is odd, and polynomials.
func TestKernelsThatAreSingular(t *testing.T) {
	x := SpherePoints(rng(2), 5, 3)
	opposite := mat.DenseCopyOf(x)
	for c := range 3 {
		opposite.Set(4, c, -x.At(0, c))
	}
	smallest := func(names []string, x *mat.Dense) float64 {
		b, err := tangent(t, names...).Blocks(x, x)
		require.NoError(t, err)
		lo, _ := EigenRange(Symmetric(b.At([]float64{0.5, 0.5})))
		return lo
	}
	require.Greater(t, smallest([]string{"tanh", "sin"}, x), 1e-4)
	require.InDelta(t, 0, smallest([]string{"tanh", "sin"}, opposite), 1e-12)
	require.Greater(t, smallest([]string{"tanh", "softplus"}, opposite), 1e-6)
	require.InDelta(t, 0, smallest([]string{"identity", "identity"}, x), 1e-12, "rank d = 3 below n = 5")
	copied := mat.DenseCopyOf(x)
	copied.SetRow(4, x.RawRowView(0))
	require.InDelta(t, 0, smallest([]string{"tanh", "softplus"}, copied), 1e-12)
}
