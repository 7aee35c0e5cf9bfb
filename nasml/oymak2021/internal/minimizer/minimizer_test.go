package minimizer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

func TestQuadratics(t *testing.T) {
	example := Example(3, 2)
	require.InDelta(t, 3, example.Lipschitz, 1e-12)
	require.Zero(t, example.Smooth)
	require.InDelta(t, 3, example.Cross, 1e-12)
	rng := trial.RNG(1, "q")
	for range 50 {
		h, p := 1+rng.IntN(3), 1+rng.IntN(4)
		hessian := separate(rng, h, p)
		b, err := quadratic(hessian, h)
		require.NoError(t, err)
		// By differences: θ_α solves H_θθθ = −H_θα α, so it is linear in α.
		most := 0.0
		for range 200 {
			alpha := spectral.Normals(rng, h, 1).RawMatrix().Data
			floats.Scale(1/floats.Norm(alpha, 2), alpha)
			var theta mat.VecDense
			right := mat.NewVecDense(p, nil)
			for i := range p {
				for j := range h {
					right.SetVec(i, right.AtVec(i)-hessian.At(h+i, j)*alpha[j])
				}
			}
			require.NoError(t, theta.SolveVec(block(hessian, h, h+p), right))
			most = max(most, mat.Norm(&theta, 2))
		}
		require.LessOrEqual(t, most, b.Lipschitz*(1+1e-9))
		require.Greater(t, most, 0.5*b.Lipschitz)
		require.LessOrEqual(t, b.Lipschitz, b.Cross*(1+1e-9))
		convex, err := quadratic(joint(rng, h, p), h)
		require.NoError(t, err)
		require.LessOrEqual(t, convex.Lipschitz, convex.Smooth*(1+1e-6))
	}
}

func TestNewtonFindsTheMinimum(t *testing.T) {
	rng := trial.RNG(2, "n")
	a, b := spectral.Normals(rng, 5, 2), spectral.Normals(rng, 5, 3)
	alpha := []float64{1, -2}
	theta, err := newton(a, b, alpha, 0.5)
	require.NoError(t, err)
	value := func(theta []float64) float64 {
		v, _, _ := expand(a, b, alpha, theta, 0.5)
		return v
	}
	require.InDeltaSlice(t, []float64{0, 0, 0}, fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central}), 1e-6)
	_, grad, hessian := expand(a, b, alpha, []float64{0.1, 0.2, 0.3}, 0.5)
	at := []float64{0.1, 0.2, 0.3}
	require.InDeltaSlice(t, fd.Gradient(nil, value, at, &fd.Settings{Formula: fd.Central}), grad, 1e-6)
	want := mat.NewSymDense(3, nil)
	fd.Hessian(want, value, at, nil)
	require.True(t, mat.EqualApprox(want, hessian, 1e-4))
}

func TestRidgeConstants(t *testing.T) {
	c := Case{
		Kind: "ridge", Lambda: 0.5, Train: 4, Candidates: 1,
		Instance: &instance.Params{Inputs: 5, Features: 6, Maps: 1},
	}
	got, err := c.Run(t.Context(), 1)
	require.NoError(t, err)
	teacher := instance.NewTeacher(1, *c.Instance)
	x, y := teacher.Sample(trial.RNG(1, "train"), 4)
	train, err := teacher.Mixture(x, y)
	require.NoError(t, err)
	fit, err := train.Fit([]float64{1}, 0.5) // h = 1: the only candidate
	require.NoError(t, err)
	objective := func(v []float64) float64 { // v = (α, θ)
		sum := 0.5 * floats.Dot(v[1:], v[1:])
		for i := range y {
			r := y[i] - v[0]*floats.Dot(train.Maps[0].RawRowView(i), v[1:])
			sum += r * r
		}
		return sum
	}
	hessian := mat.NewSymDense(7, nil)
	fd.Hessian(hessian, objective, append([]float64{1}, fit.Theta...), nil)
	cross := 0.0
	for i := 1; i < 7; i++ {
		cross += hessian.At(i, 0) * hessian.At(i, 0)
	}
	require.InEpsilon(t, math.Sqrt(hessian.At(0, 0)/1), got.Values["smooth"], 1e-3, "μ = 2λ = 1, because p > n_T")
	require.InEpsilon(t, math.Sqrt(cross), got.Values["cross"], 1e-3)
}
