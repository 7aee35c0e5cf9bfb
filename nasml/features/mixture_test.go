package features

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

func randomMixture(rng *rand.Rand, h, n, p int) *Mixture {
	m := &Mixture{}
	for range h {
		m.Maps = append(m.Maps, randomMatrix(rng, n, p))
	}
	for range n {
		m.Y = append(m.Y, 1-2*float64(rng.IntN(2)))
	}
	return m
}

// The Jacobian is the derivative of θ by central differences, on both sides of n = p.
func TestJacobianAgainstFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		n, p   int
		lambda float64
	}{{10, 25, 1}, {10, 25, 1e-2}, {25, 10, 1}, {8, 8, 0.5}, {1, 1, 0.5}} {
		m, alpha := randomMixture(rng, 3, c.n, c.p), []float64{0.6, -0.8, 0.7}
		f, err := m.Fit(alpha, c.lambda)
		require.NoError(t, err)
		got, err := f.Jacobian()
		require.NoError(t, err)
		want := mat.NewDense(c.p, 4, nil)
		fd.Jacobian(want, func(theta, at []float64) {
			f, err := m.Fit(at[:3], at[3])
			require.NoError(t, err)
			copy(theta, f.Theta)
		}, append(alpha, c.lambda), &fd.JacobianSettings{Formula: fd.Central, Step: 1e-5 * c.lambda})
		require.True(t, mat.EqualApprox(want, got, 1e-6*(1+mat.Norm(want, 2))), "%+v", c)
	}
}

// f_α is the same for (α, λ) and (cα, c²λ).
func TestScaleInvariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, lambda := range []float64{0, 0.2} {
		train, val := randomMixture(rng, 4, 12, 20), randomMixture(rng, 4, 9, 20)
		f, err := train.Fit([]float64{0.1, -0.4, 0.9, 0.3}, lambda)
		require.NoError(t, err)
		scaled, err := train.Fit([]float64{-0.3, 1.2, -2.7, -0.9}, 9*lambda)
		require.NoError(t, err)
		require.InDeltaSlice(t, mulVec(val.At(f.Alpha), f.Theta), mulVec(val.At(scaled.Alpha), scaled.Theta), 1e-11)
	}
}

// One map with α = 1 is plain ridge regression.
func TestMixtureOfOneIsRidge(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, lambda := range []float64{0, 0.4} {
		m := randomMixture(rng, 1, 5, 9)
		f, err := m.Fit([]float64{1}, lambda)
		require.NoError(t, err)
		want, _ := lsqrOf(t, m.Maps[0], mat.NewDense(5, 1, m.Y), math.Sqrt(lambda), 0)
		require.InDeltaSlice(t, want.RawMatrix().Data, f.Theta, 1e-10)
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
	require.ErrorContains(t, err, "λ must be at least 0")
	_, err = m.Fit([]float64{1}, 1)
	require.ErrorContains(t, err, "α must have 2 numbers")
	_, err = m.Fit([]float64{0, 0}, 0) // φ_α = 0 has no unique least-squares solution with a derivative
	require.ErrorContains(t, err, "singular to rounding")
	f, err := m.Fit([]float64{0, 0}, 1) // with a ridge θ = 0 is defined
	require.NoError(t, err)
	require.Zero(t, floats.Norm(f.Theta, 2))
	_, err = NewMixture(nil, nil)
	require.ErrorContains(t, err, "at least one feature map")
	_, err = NewMixture([]*mat.Dense{randomMatrix(rng, 2, 2), randomMatrix(rng, 2, 3)}, []float64{1, 1})
	require.ErrorContains(t, err, "maps must have equal shapes")
	_, err = NewMixture([]*mat.Dense{randomMatrix(rng, 2, 2)}, []float64{1})
	require.ErrorContains(t, err, "must have a target")
	_, err = NewMixture([]*mat.Dense{mat.NewDense(1, 1, []float64{math.Inf(1)})}, []float64{1})
	require.ErrorContains(t, err, "not finite")
}
