package features

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady" // the same cases in every run
)

// randomMatrix has independent normal entries.
func randomMatrix(rng *rand.Rand, n, d int) *mat.Dense {
	a := mat.NewDense(n, d, nil)
	a.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, a)
	return a
}

// dense is a matrix on the host as an operator.
type dense struct{ *mat.Dense }

func (a dense) MulTo(ctx context.Context, dst, x *mat.Dense) error {
	dst.Mul(a.Dense, x)
	return ctx.Err()
}

func (a dense) MulTransTo(ctx context.Context, dst, y *mat.Dense) error {
	dst.Mul(a.T(), y)
	return ctx.Err()
}

func (a dense) StepTo(ctx context.Context, dst, y, x *mat.Dense, shift, scale []float64) error {
	var product mat.Dense
	product.Mul(a.Dense, x)
	y.Apply(func(i, j int, v float64) float64 { return product.At(i, j) - shift[j] - scale[j]*v }, y)
	return a.MulTransTo(ctx, dst, y)
}

// lsqrOf is LSQR on a matrix.
func lsqrOf(t *testing.T, a, b *mat.Dense, damp, tol float64) (*mat.Dense, Solve) {
	t.Helper()
	var atb mat.Dense
	atb.Mul(a.T(), b)
	_, k := b.Dims()
	x, s, err := lsqr(b, &atb, damp, tol, 0, func(dst, y, x *mat.Dense, scale []float64) error {
		return dense{a}.StepTo(t.Context(), dst, y, x, make([]float64, k), scale)
	})
	require.NoError(t, err)
	return x, s
}

// exactRidge solves the normal equations of the centred problem.
func exactRidge(a, y *mat.Dense, lambda float64) (w *mat.Dense, b []float64) {
	n, d := a.Dims()
	_, k := y.Dims()
	with := mat.NewDense(n, d+1, nil)
	with.Augment(a, mat.NewDense(n, 1, slices.Repeat([]float64{1}, n)))
	var gram, right, all mat.Dense
	gram.Mul(with.T(), with)
	for j := range d {
		gram.Set(j, j, gram.At(j, j)+lambda)
	}
	right.Mul(with.T(), y)
	if err := all.Solve(&gram, &right); err != nil {
		panic(err)
	}
	return mat.DenseCopyOf(all.Slice(0, d, 0, k)), mat.Row(nil, d, &all)
}

func TestRidgeFindsTheExactSolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, d := rapid.IntRange(2, 30).Draw(t, "n"), rapid.IntRange(1, 30).Draw(t, "d")
		k := rapid.IntRange(1, 4).Draw(t, "k")
		lambda := rapid.SampledFrom([]float64{0.01, 0.5, 20}).Draw(t, "lambda")
		a, y := randomMatrix(rng, n, d), randomMatrix(rng, n, k)
		w, b := exactRidge(a, y, lambda)
		m, err := FitRidge(t.Context(), dense{a}, y, RidgeParams{Lambda: lambda, Tol: 1e-12, MaxIter: 1000})
		require.NoError(t, err)
		require.True(t, mat.EqualApprox(w, m.Weights, 1e-7), "%v", mat.Formatted(m.Weights))
		require.InDeltaSlice(t, b, m.Intercept, 1e-7)
	})
}

func TestTargetsAreSolvedAsIfAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	a, y := randomMatrix(rng, 50, 20), randomMatrix(rng, 50, 5)
	p := RidgeParams{Lambda: 0.5, Tol: 1e-3}
	all, err := FitRidge(t.Context(), dense{a}, y, p)
	require.NoError(t, err)
	for j := range 5 {
		one, err := FitRidge(t.Context(), dense{a}, mat.DenseCopyOf(y.Slice(0, 50, j, j+1)), p)
		require.NoError(t, err)
		require.Equal(t, one.Solve.Iterations[0], all.Solve.Iterations[j])
		require.InDeltaSlice(t, mat.Col(nil, 0, one.Weights), mat.Col(nil, j, all.Weights), 1e-12)
		require.InDelta(t, one.Intercept[0], all.Intercept[j], 1e-12)
	}
}

func TestSolverReportsResidualAndGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	a, b := randomMatrix(rng, 40, 25), randomMatrix(rng, 40, 3)
	x, s := lsqrOf(t, a, b, 2, 1e-3)
	var r, g, penalty mat.Dense
	r.Mul(a, x)
	r.Sub(b, &r)
	g.Mul(a.T(), &r)
	penalty.Scale(4, x)
	g.Sub(&g, &penalty)
	for j, norm := range columnNorms(x) {
		require.InDelta(t, math.Hypot(columnNorms(&r)[j], 2*norm), s.Residual[j], 1e-9)
		require.InDelta(t, columnNorms(&g)[j], s.Gradient[j], 1e-9)
	}
	require.Equal(t, slices.Max(s.Iterations), s.Passes)
}

// With λ = 0 and more unknowns than equations the solution of minimum norm is
// a combination of the rows.
func TestMinimumNormWithoutPenalty(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	a, y := randomMatrix(rng, 6, 15), randomMatrix(rng, 6, 2)
	x, _ := lsqrOf(t, a, y, 0, 1e-14)
	w, rows, inRows := mat.NewDense(6, 6, nil), new(mat.Dense), new(mat.Dense)
	inRows.Mul(a, x)
	require.True(t, mat.EqualApprox(inRows, y, 1e-9), "interpolates")
	w.Mul(a, a.T())
	require.NoError(t, rows.Solve(w, inRows))
	inRows.Reset()
	inRows.Mul(a.T(), rows)
	require.True(t, mat.EqualApprox(inRows, x, 1e-9), "in the span of the rows")
}

func TestInterceptIsNotPenalized(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	a, y := randomMatrix(rng, 30, 4), randomMatrix(rng, 30, 1)
	p := RidgeParams{Lambda: 3, Tol: 1e-13}
	before, err := FitRidge(t.Context(), dense{a}, y, p)
	require.NoError(t, err)
	shifted := mat.DenseCopyOf(y)
	addOuter(shifted, nil, []float64{1000})
	after, err := FitRidge(t.Context(), dense{a}, shifted, p)
	require.NoError(t, err)
	require.True(t, mat.EqualApprox(before.Weights, after.Weights, 1e-8))
	require.InDelta(t, before.Intercept[0]+1000, after.Intercept[0], 1e-8)
}

func TestRidgeOfDegenerateProblems(t *testing.T) {
	p := RidgeParams{Lambda: 0.5, Tol: 1e-10}
	fit := func(rows, features int, x, y []float64) *LinearModel {
		m, err := FitRidge(t.Context(), dense{mat.NewDense(rows, features, x)}, mat.NewDense(rows, len(y)/rows, y), p)
		require.NoError(t, err)
		return m
	}
	m := fit(1, 3, []float64{1, 2, 3}, []float64{4, -5}) // one row: nothing varies, the intercept is the target
	require.Zero(t, mat.Norm(m.Weights, 2))
	require.Equal(t, []float64{4, -5}, m.Intercept)
	require.Equal(t, []Stop{StopZero, StopZero}, m.Solve.Stop)
	m = fit(3, 1, []float64{2, 2, 2}, []float64{1, 2, 6}) // a constant feature
	require.Zero(t, m.Weights.At(0, 0))
	require.InDelta(t, 3, m.Intercept[0], 1e-15)
	m = fit(3, 1, []float64{-1, 0, 1}, []float64{1, 2, 6}) // one feature: w = Σxy/(Σx² + λ)
	require.InDelta(t, 2, m.Weights.At(0, 0), 1e-12)
	require.InDelta(t, 3, m.Intercept[0], 1e-12)
}

func TestRidgeRefuses(t *testing.T) {
	a, y := dense{mat.NewDense(2, 1, []float64{1, 2})}, mat.NewDense(2, 1, []float64{1, 2})
	for want, p := range map[string]RidgeParams{
		"got -1":                        {Lambda: -1},
		"λ must be at least 0, got NaN": {Lambda: math.NaN()},
		"tolerance":                     {Tol: -1},
	} {
		_, err := FitRidge(t.Context(), a, y, p)
		require.ErrorContains(t, err, want)
	}
	_, err := FitRidge(t.Context(), a, mat.NewDense(3, 1, nil), RidgeParams{})
	require.ErrorContains(t, err, "as many rows, at least one, got 2 and 3")
	_, err = FitRidge(t.Context(), a, mat.NewDense(2, 1, []float64{1, math.NaN()}), RidgeParams{})
	require.ErrorContains(t, err, "not finite")
	_, err = FitRidge(t.Context(), dense{mat.NewDense(2, 1, []float64{1, math.NaN()})}, y, RidgeParams{})
	require.ErrorContains(t, err, "not finite")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = FitRidge(ctx, a, y, RidgeParams{Lambda: 1})
	require.ErrorIs(t, err, context.Canceled)
}

func TestTargetsAndClasses(t *testing.T) {
	y := Targets([]int{2, 0}, 3)
	require.Equal(t, []float64{-1, -1, 1, 1, -1, -1}, y.RawMatrix().Data)
	require.Equal(t, []int{2, 0}, Classes(y))
	require.Equal(t, []int{0}, Classes(mat.NewDense(1, 2, nil)), "the first of equal ones")
}

// separable are two points at ±1 on a line. With the intercept's penalty the
// maximum margin is w = 1, b = 0, α = ½ each, and the optimum ½.
func TestSVMByHand(t *testing.T) {
	rows := emptyRows(1)
	rows.add([]int32{0}, []float32{1})
	rows.add([]int32{0}, []float32{-1})
	labels := []int8{1, -1}
	m, err := FitSVM(t.Context(), rows, labels, SVMParams{C: 10, Loss: "hinge", Tol: 1e-12})
	require.NoError(t, err)
	require.True(t, m.Converged)
	require.InDelta(t, 1, m.Weights[0], 1e-10)
	require.InDelta(t, 0, m.Intercept, 1e-10)
	require.InDelta(t, 0.5, m.Primal, 1e-10)
	require.InDelta(t, 0.5, m.Dual, 1e-10)
	require.InDeltaSlice(t, []float64{1, -1}, m.Scores(rows), 1e-9)
	// With C below ½ the box binds: α = C, w = 2C.
	m, err = FitSVM(t.Context(), rows, labels, SVMParams{C: 0.125, Loss: "hinge", Tol: 1e-12})
	require.NoError(t, err)
	require.InDelta(t, 0.25, m.Weights[0], 1e-12)
	// Squared hinge: min ½w² + 2C(1 − w)² at w = 4C/(1 + 4C).
	m, err = FitSVM(t.Context(), rows, labels, SVMParams{C: 0.5, Loss: "squared-hinge", Tol: 1e-12})
	require.NoError(t, err)
	require.InDelta(t, 2.0/3, m.Weights[0], 1e-10)
}

func TestSVMGapClosesWithTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rows, labels := randomRows(rng, rapid.IntRange(2, 40).Draw(t, "n"), rapid.IntRange(1, 30).Draw(t, "d"))
		p := SVMParams{
			C:         rapid.SampledFrom([]float64{0.01, 1, 30}).Draw(t, "C"),
			Tol:       1e-2,
			MaxEpochs: 100_000,
			Seed:      1,
			Loss: rapid.SampledFrom([]string{"hinge", "squared-hinge"}).
				Draw(t, "loss"),
		}
		rough, err := FitSVM(t.Context(), rows, labels, p)
		require.NoError(t, err)
		p.Tol = 1e-9
		fine, err := FitSVM(t.Context(), rows, labels, p)
		require.NoError(t, err)
		require.True(t, fine.Converged)
		require.LessOrEqual(t, fine.Dual, fine.Primal*(1+1e-12)+1e-12, "weak duality")
		require.LessOrEqual(t, rough.Dual, fine.Primal*(1+1e-12)+1e-12)
		require.InEpsilon(t, 1+fine.Primal, 1+fine.Dual, 1e-6, "strong duality")
		again, err := FitSVM(t.Context(), rows, labels, p)
		require.NoError(t, err)
		require.Equal(t, fine, again, "the seed decides everything")
		p.Seed = 2
		other, err := FitSVM(t.Context(), rows, labels, p)
		require.NoError(t, err)
		require.InDelta(t, fine.Primal, other.Primal, 1e-6*(1+fine.Primal))
	})
}

// The weights are those of the caller's columns, also where some have no entry.
func TestSVMWeightsKeepTheirColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	rows, labels := randomRows(rng, 60, 40)
	rows.Cols = 50 // ten without an entry
	rows.add([]int32{7, 39}, []float32{3, -1})
	labels = append(labels, 1)
	m, err := FitSVM(t.Context(), rows, labels, SVMParams{C: 0.3, Loss: "hinge", Tol: 1e-9})
	require.NoError(t, err)
	require.Len(t, m.Weights, 50)
	require.Equal(t, make([]float64, 10), m.Weights[40:])
	primal := m.Intercept * m.Intercept / 2
	for _, w := range m.Weights {
		primal += w * w / 2
	}
	for i, score := range m.Scores(rows) {
		primal += 0.3 * max(0, 1-float64(labels[i])*score)
	}
	require.InEpsilon(t, m.Primal, primal, 1e-12)
}

// randomRows are sparse rows, some of them empty, with labels of both classes.
func randomRows(rng *rand.Rand, n, d int) (*Sparse, []int8) {
	rows, labels := emptyRows(d), make([]int8, n)
	for i := range n {
		var cols []int32
		var vals []float32
		for j := range d {
			if rng.IntN(4) == 0 {
				cols, vals = append(cols, int32(j)), append(vals, float32(rng.NormFloat64()))
			}
		}
		rows.add(cols, vals)
		labels[i] = int8(2*rng.IntN(2) - 1)
	}
	labels[0], labels[1] = 1, -1
	return rows, labels
}

func TestSVMRefuses(t *testing.T) {
	rows, labels := randomRows(rand.New(rand.NewPCG(1, 1)), 4, 3)
	good := SVMParams{C: 1, Loss: "hinge", Tol: 1e-3}
	for want, change := range map[string]func(*SVMParams){
		"C must be positive and finite, got 0": func(p *SVMParams) { p.C = 0 },
		`got "l2"`:                             func(p *SVMParams) { p.Loss = "l2" },
		"tolerance ":                           func(p *SVMParams) { p.Tol = math.NaN() },
	} {
		p := good
		change(&p)
		_, err := FitSVM(t.Context(), rows, labels, p)
		require.ErrorContains(t, err, want)
	}
	_, err := FitSVM(t.Context(), rows, []int8{1, 1, 1, 1}, good)
	require.ErrorContains(t, err, "both classes must have rows")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows, labels = randomRows(rand.New(rand.NewPCG(1, 1)), 4, 3)
	_, err = FitSVM(ctx, rows, labels, good)
	require.ErrorIs(t, err, context.Canceled)
}
