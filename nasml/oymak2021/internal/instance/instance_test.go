package instance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/trial"
)

func TestInstanceAgainstSamples(t *testing.T) {
	w := Params{Inputs: 5, Features: 7, Maps: 3, Decay: 1, Flips: 0.1}
	teacher := NewTeacher(2, w)
	for _, p := range teacher.maps {
		require.InDelta(t, 1, singular(t, p), 1e-12, "B = 1")
	}
	rng := trial.RNG(5, "w")
	x, y := teacher.Sample(rng, 200_000)
	v := []float64{1, -2, 0.5, 0.3, 0.7}
	var f mat.VecDense
	f.MulVec(x, mat.NewVecDense(5, v))
	sum := 0.0
	for i, target := range y {
		sum += (target - f.AtVec(i)) * (target - f.AtVec(i))
	}
	require.InDelta(t, teacher.Risk(v), sum/200_000, 0.02)

	// L̂_V − L by the moments of one sample, and its gradient.
	dev := teacher.Deviation(trial.RNG(6, "v"), 11)
	x, y = teacher.Sample(trial.RNG(6, "v"), 11)
	direct := func(v []float64) float64 {
		sum := 0.0
		for i, target := range y {
			r := target - floats.Dot(x.RawRowView(i), v)
			sum += r * r / 11
		}
		return sum - teacher.Risk(v)
	}
	gap, grad := dev.Gap(v)
	require.InDelta(t, direct(v), gap, 1e-12)
	require.InDeltaSlice(t, fd.Gradient(nil, direct, v, &fd.Settings{Formula: fd.Central}), grad, 1e-6)
}

func TestWeightsAndTheirJacobian(t *testing.T) {
	for _, w := range []Params{{6, 8, 3, 1, 0.1}, {1, 1, 1, 0, 0}} {
		teacher := NewTeacher(1, w)
		x, y := teacher.Sample(trial.RNG(1, "x"), min(4, w.Inputs))
		train, err := teacher.Mixture(x, y)
		require.NoError(t, err)
		at := append(simplexPoint(trial.RNG(2, "α"), w.Maps), 0.3)
		weights := func(at []float64) []float64 {
			fit, err := train.Fit(at[:w.Maps], at[w.Maps])
			require.NoError(t, err)
			return teacher.Weights(fit)
		}
		fit, err := train.Fit(at[:w.Maps], 0.3)
		require.NoError(t, err)
		v := teacher.Weights(fit)
		jacobian, err := teacher.Jacobian(fit)
		require.NoError(t, err)
		var outputs mat.VecDense
		outputs.MulVec(train.At(fit.Alpha), mat.NewVecDense(len(fit.Theta), fit.Theta))
		predicted := mat.NewVecDense(len(y), nil)
		predicted.MulVec(x, mat.NewVecDense(len(v), v))
		require.InDeltaSlice(t, outputs.RawVector().Data, predicted.RawVector().Data, 1e-12)
		want := mat.NewDense(w.Inputs, w.Maps+1, nil)
		fd.Jacobian(want, func(y, x []float64) { copy(y, weights(x)) }, at, &fd.JacobianSettings{Formula: fd.Central})
		require.True(t, mat.EqualApprox(want, jacobian, 1e-5*(1+mat.Norm(want, 2))))
	}
}

func TestCandidatesLieInTheSimplex(t *testing.T) {
	for _, h := range []int{1, 2, 7} {
		all := Candidates(trial.RNG(1, "c"), h, 30)
		require.GreaterOrEqual(t, len(all), 1)
		for _, alpha := range all {
			require.InDelta(t, 1, floats.Sum(alpha), 1e-12)
			require.GreaterOrEqual(t, floats.Min(alpha), 0.0)
		}
	}
}

// singular is the largest singular value.
func singular(t *testing.T, m *mat.Dense) float64 {
	t.Helper()
	var svd mat.SVD
	require.True(t, svd.Factorize(m, mat.SVDNone))
	return svd.Values(nil)[0]
}

func TestLargestIsTheSpectralNorm(t *testing.T) {
	rng := trial.RNG(1, "largest")
	rows := [][]float64{make([]float64, 4), make([]float64, 4), make([]float64, 4)}
	m := mat.NewDense(3, 4, nil)
	for i, row := range rows {
		for j := range row {
			row[j] = rng.NormFloat64()
		}
		m.SetRow(i, row)
	}
	require.InDelta(t, singular(t, m), Largest(rows), 1e-12)
}

func TestComplexityOfTheInterpolant(t *testing.T) {
	teacher := NewTeacher(5, Params{Inputs: 12, Features: 15, Maps: 3, Decay: 1})
	x, y := teacher.LinearSample(trial.RNG(1, "x"), 7, 0)
	train, err := teacher.Mixture(x, y)
	require.NoError(t, err)
	fit, err := train.Fit(teacher.Best, 0)
	require.NoError(t, err)
	phi := train.At(teacher.Best)
	var gram mat.Dense
	gram.Mul(phi, phi.T())
	var solved mat.VecDense
	require.NoError(t, solved.SolveVec(&gram, mat.NewVecDense(7, y)))
	require.InDelta(t, floats.Dot(y, solved.RawVector().Data), floats.Dot(fit.Theta, fit.Theta), 1e-9)
	require.LessOrEqual(t, floats.Dot(fit.Theta, fit.Theta), 1.0)
}

func TestPopulationIsTheLimit(t *testing.T) {
	teacher := NewTeacher(6, Params{Inputs: 6, Features: 3, Maps: 2, Flips: 0.1})
	alpha := []float64{0.3, 0.7}
	want, err := teacher.Limit(alpha)
	require.NoError(t, err)
	var last float64
	for i, n := range []int{200, 20_000} {
		x, y := teacher.Sample(trial.RNG(7, fmt.Sprint(n)), n)
		train, err := teacher.Mixture(x, y)
		require.NoError(t, err)
		fit, err := train.Fit(alpha, 0)
		require.NoError(t, err)
		got := teacher.Weights(fit)
		distance := floats.Distance(want, got, 2) / floats.Norm(want, 2)
		if i > 0 {
			require.Less(t, distance, last/3)
			require.Less(t, distance, 0.05)
		}
		last = distance
	}
	// No other weights in the row space of P_α have less risk.
	fit, err := (&features.Mixture{Maps: teacher.maps, Y: make([]float64, 3)}).Fit(alpha, 1)
	require.NoError(t, err)
	require.Len(t, fit.Theta, 6)
	for i := range 3 {
		moved := floats.AddScaledTo(make([]float64, 6), want, 0.05, teacher.at(alpha).RawRowView(i))
		require.Greater(t, teacher.Risk(moved), teacher.Risk(want))
	}
}
