package features

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func randomMixture(rng *rand.Rand, h, n, p int) *Mixture {
	m := &Mixture{}
	for range h {
		m.Maps = append(m.Maps, gaussian(rng, n, p))
	}
	for range n {
		m.Y = append(m.Y, 1-2*float64(rng.IntN(2)))
	}
	return m
}

// The hypergradient is the derivative of the risk by central differences, on
// both sides of n = p, with and without a ridge.
func TestHyperGradientAgainstFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		n, p   int
		lambda float64
	}{{10, 25, 1}, {10, 25, 1e-2}, {10, 25, 0}, {25, 10, 1}, {25, 10, 0}, {8, 8, 0.5}, {1, 1, 0.5}} {
		for _, name := range []string{"squared", "logistic"} {
			train, val := randomMixture(rng, 3, c.n, c.p), randomMixture(rng, 3, 7, c.p)
			loss := OutputLosses[name]
			risk := func(at []float64) float64 {
				f, err := train.Fit(at[:3], at[3]+c.lambda)
				require.NoError(t, err)
				return f.Risk(val, loss)
			}
			alpha := []float64{0.6, -0.8, 0.7}
			f, err := train.Fit(alpha, c.lambda)
			require.NoError(t, err)
			got, err := f.HyperGradient(val, loss)
			require.NoError(t, err)
			at := append(slices.Clone(alpha), 0)
			if c.lambda == 0 { // the ridge is at its boundary: differences to one side only
				want := fd.Gradient(nil, func(a []float64) float64 { return risk(append(slices.Clone(a), 0)) }, alpha,
					&fd.Settings{Formula: fd.Central, Step: 1e-5})
				require.InDeltaSlice(t, want, got[:3], 1e-6*(1+floats.Norm(want, 2)))
				want = fd.Gradient(
					nil,
					func(l []float64) float64 { return risk(append(slices.Clone(alpha), l...)) },
					[]float64{0},
					&fd.Settings{Formula: fd.Forward, Step: 1e-7},
				)
				require.InDelta(t, want[0], got[3], 1e-4*(1+math.Abs(want[0])))
				continue
			}
			want := fd.Gradient(nil, risk, at, &fd.Settings{Formula: fd.Central, Step: 1e-5 * c.lambda})
			require.InDeltaSlice(t, want, got, 1e-6*(1+floats.Norm(want, 2)))
		}
	}
}

// The adjoint hypergradient is gᵀ∂f/∂α with the Jacobian of θ.
func TestJacobianAgreesWithHyperGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 8).Draw(t, "n"), rapid.IntRange(1, 8).Draw(t, "p")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		train, val := randomMixture(rng, 2, n, p), randomMixture(rng, 2, 5, p)
		alpha := []float64{1 + rng.Float64(), rng.NormFloat64()}
		f, err := train.Fit(alpha, 0.7)
		require.NoError(t, err)
		jacobian, err := f.Jacobian()
		require.NoError(t, err)
		loss := OutputLosses["squared"]
		g := f.slopes(val, loss)
		want := mulTransVec(jacobian, mulTransVec(val.At(alpha), g))
		floats.Add(want[:2], f.FrozenGradient(val, loss))
		got, err := f.HyperGradient(val, loss)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, got, 1e-9)
	})
}

// f_α is the same for (α, λ) and (cα, c²λ), so the hypergradient is orthogonal
// to (α, 2λ); the gradient with frozen weights is another vector.
func TestScaleInvariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, lambda := range []float64{0, 0.2} {
		train, val := randomMixture(rng, 4, 12, 20), randomMixture(rng, 4, 9, 20)
		alpha := []float64{0.1, -0.4, 0.9, 0.3}
		f, err := train.Fit(alpha, lambda)
		require.NoError(t, err)
		scaledFit, err := train.Fit(scaled(-3, alpha), 9*lambda)
		require.NoError(t, err)
		require.InDeltaSlice(t, f.Predict(val), scaledFit.Predict(val), 1e-11)
		g, err := f.HyperGradient(val, OutputLosses["logistic"])
		require.NoError(t, err)
		require.InDelta(t, 0, floats.Dot(alpha, g[:4])+2*lambda*g[4], 1e-13)
		require.Greater(
			t,
			floats.Distance(g[:4], f.FrozenGradient(val, OutputLosses["logistic"]), 2),
			0.1*floats.Norm(g, 2),
		)
	}
}

// One map with α = 1 is plain ridge regression.
func TestMixtureOfOneIsRidge(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, lambda := range []float64{0, 0.4} {
		m := randomMixture(rng, 1, 5, 9)
		f, err := m.Fit([]float64{1}, lambda)
		require.NoError(t, err)
		want, err := ExactRidge{Lambda: lambda}.Fit(m.Maps[0], mat.NewDense(5, 1, m.Y))
		require.NoError(t, err)
		require.InDeltaSlice(t, want.Theta.RawMatrix().Data, f.Theta, 1e-10)
		if lambda == 0 {
			require.InDelta(t, 0, floats.Norm(f.Residual, 2), 1e-10)
		}
	}
}

func TestMinSingular(t *testing.T) {
	m := &Mixture{Maps: []*mat.Dense{mat.NewDense(2, 3, []float64{3, 0, 0, 0, 2, 0})}, Y: []float64{1, 1}}
	s, err := m.MinSingular([]float64{-2})
	require.NoError(t, err)
	require.InDelta(t, 4, s, 1e-12) // of the two non-zero ones
}

func TestMixtureRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	m := randomMixture(rng, 2, 3, 4)
	_, err := m.Fit([]float64{1, 1}, -1)
	require.ErrorContains(t, err, "expected 0 or more")
	_, err = m.Fit([]float64{1}, 1)
	require.ErrorContains(t, err, "expected a number for each of 2 maps")
	_, err = m.Fit([]float64{0, 0}, 0) // φ_α = 0 has no unique least-squares solution with a derivative
	require.ErrorContains(t, err, "singular to rounding")
	f, err := m.Fit([]float64{0, 0}, 1) // with a ridge θ = 0 is defined
	require.NoError(t, err)
	require.Zero(t, floats.Norm(f.Theta, 2))
	_, err = NewMixture(nil, nil)
	require.ErrorContains(t, err, "no feature map")
	_, err = NewMixture([]*mat.Dense{gaussian(rng, 2, 2), gaussian(rng, 2, 3)}, []float64{1, 1})
	require.ErrorContains(t, err, "expected the same")
	_, err = NewMixture([]*mat.Dense{gaussian(rng, 2, 2)}, []float64{1})
	require.ErrorContains(t, err, "expected as many")
	_, err = NewMixture([]*mat.Dense{mat.NewDense(1, 1, []float64{math.Inf(1)})}, []float64{1})
	require.ErrorContains(t, err, "not finite")
}

func TestOutputLosses(t *testing.T) {
	for name, loss := range OutputLosses {
		for _, y := range []float64{-1, 1} {
			for _, f := range []float64{-2, -0.3, 0.4, 3, 800} {
				want := (loss.Value(y, f+1e-6) - loss.Value(y, f-1e-6)) / 2e-6
				require.InDelta(t, want, loss.Slope(y, f), 1e-5*(1+math.Abs(want)), "%s at y = %v, f = %v", name, y, f)
			}
		}
	}
	require.Zero(t, OutputLosses["absolute"].Slope(1, 1))
}
