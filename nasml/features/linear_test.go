package features

import (
	"context"
	"math"
	"math/rand/v2"
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

// exactRidge solves the normal equations of the centred problem.
func exactRidge(a, y *mat.Dense, lambda float64) (w *mat.Dense, b []float64) {
	n, d := a.Dims()
	_, k := y.Dims()
	with := mat.NewDense(n, d+1, nil)
	with.Augment(a, mat.NewDense(n, 1, repeat(1, n)))
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

func TestSolversFindTheExactSolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, d, k := rapid.IntRange(2, 30).
			Draw(t, "n"),
			rapid.IntRange(1, 30).
				Draw(t, "d"),
			rapid.IntRange(1, 4).
				Draw(t, "k")
		lambda := rapid.SampledFrom([]float64{0.01, 0.5, 20}).Draw(t, "lambda")
		a, y := randomMatrix(rng, n, d), randomMatrix(rng, n, k)
		w, b := exactRidge(a, y, lambda)
		for _, solver := range []string{"lsqr", "cg"} {
			m, err := FitRidge(
				t.Context(),
				OfDense(a),
				y,
				RidgeParams{Lambda: lambda, Solver: solver, Tol: 1e-12, MaxIter: 1000},
			)
			require.NoError(t, err)
			require.True(t, mat.EqualApprox(w, m.Weights, 1e-7), "%s: %v", solver, mat.Formatted(m.Weights))
			require.InDeltaSlice(t, b, m.Intercept, 1e-7)
		}
	})
}

func TestTargetsAreSolvedAsIfAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	a, y := randomMatrix(rng, 50, 20), randomMatrix(rng, 50, 5)
	for _, solver := range []string{"lsqr", "cg"} {
		p := RidgeParams{Lambda: 0.5, Solver: solver, Tol: 1e-3}
		all, err := FitRidge(t.Context(), OfDense(a), y, p)
		require.NoError(t, err)
		for j := range 5 {
			one, err := FitRidge(t.Context(), OfDense(a), mat.DenseCopyOf(y.Slice(0, 50, j, j+1)), p)
			require.NoError(t, err)
			require.Equal(t, one.Solve.Iterations[0], all.Solve.Iterations[j])
			require.InDeltaSlice(t, mat.Col(nil, 0, one.Weights), mat.Col(nil, j, all.Weights), 1e-12)
			require.InDelta(t, one.Intercept[0], all.Intercept[j], 1e-12)
		}
	}
}

// In exact arithmetic LSQR and conjugate gradients have the same iterates.
func TestConjugateGradientsIterateAsLSQR(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	a, b := randomMatrix(rng, 40, 25), randomMatrix(rng, 40, 2)
	for steps := 1; steps <= 8; steps++ {
		x, s, err := LSQR(t.Context(), OfDense(a), b, math.Sqrt(0.5), LSQROptions{MaxIter: steps})
		require.NoError(t, err)
		xc, sc, err := CG(t.Context(), OfDense(a), b, 0.5, CGOptions{MaxIter: steps})
		require.NoError(t, err)
		require.True(t, mat.EqualApprox(x, xc, 1e-10))
		require.InDeltaSlice(t, s.Residual, sc.Residual, 1e-10)
		require.InDeltaSlice(t, s.Gradient, sc.Gradient, 1e-8)
		require.Equal(t, []Stop{StopLimit, StopLimit}, s.Stop)
		require.Equal(t, []Stop{StopLimit, StopLimit}, sc.Stop)
	}
}

func TestSolverReportsResidualAndGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	a, b := randomMatrix(rng, 40, 25), randomMatrix(rng, 40, 3)
	x, s, err := LSQR(t.Context(), OfDense(a), b, 2, LSQROptions{ATol: 1e-3, BTol: 1e-3})
	require.NoError(t, err)
	var r, g mat.Dense
	r.Mul(a, x)
	r.Sub(b, &r)
	g.Mul(a.T(), &r)
	addColumns(&g, &g, x, repeat(-4, 3))
	for j, norm := range columnNorms(x) {
		require.InDelta(t, math.Hypot(columnNorms(&r)[j], 2*norm), s.Residual[j], 1e-9)
		require.InDelta(t, columnNorms(&g)[j], s.Gradient[j], 1e-9)
	}
	// One pass for Aᵀb and two for an iteration of an operator that is no Stepper.
	most := 0
	for _, n := range s.Iterations {
		most = max(most, n)
	}
	require.Equal(t, 1+2*most, s.Passes)
}

// With λ = 0 and more unknowns than equations the solution of minimum norm is
// a combination of the rows.
func TestMinimumNormWithoutPenalty(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	a, y := randomMatrix(rng, 6, 15), randomMatrix(rng, 6, 2)
	for _, solver := range []string{"lsqr", "cg"} {
		m, err := FitRidge(t.Context(), OfDense(a), y, RidgeParams{Solver: solver, Tol: 1e-14})
		require.NoError(t, err)
		fit, err := m.Scores(t.Context(), OfDense(a))
		require.NoError(t, err)
		require.True(t, mat.EqualApprox(fit, y, 1e-9), "interpolates")
		w := mat.NewDense(6, 6, nil)
		w.Mul(a, a.T())
		var inRows, coefficients mat.Dense
		inRows.Mul(a, m.Weights)
		require.NoError(t, coefficients.Solve(w, &inRows))
		inRows.Reset()
		inRows.Mul(a.T(), &coefficients)
		require.True(t, mat.EqualApprox(&inRows, m.Weights, 1e-9), "in the span of the rows")
	}
}

func TestInterceptIsNotPenalized(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	a, y := randomMatrix(rng, 30, 4), randomMatrix(rng, 30, 1)
	p := RidgeParams{Lambda: 3, Tol: 1e-13}
	before, err := FitRidge(t.Context(), OfDense(a), y, p)
	require.NoError(t, err)
	shifted := mat.DenseCopyOf(y)
	addOuter(shifted, nil, []float64{1000})
	after, err := FitRidge(t.Context(), OfDense(a), shifted, p)
	require.NoError(t, err)
	require.True(t, mat.EqualApprox(before.Weights, after.Weights, 1e-8))
	require.InDelta(t, before.Intercept[0]+1000, after.Intercept[0], 1e-8)

	p.NoIntercept = true
	none, err := FitRidge(t.Context(), OfDense(a), shifted, p)
	require.NoError(t, err)
	require.Zero(t, none.Intercept[0])
	require.False(t, mat.EqualApprox(before.Weights, none.Weights, 1))
}

func TestRidgeOfDegenerateProblems(t *testing.T) {
	for _, solver := range []string{"lsqr", "cg"} {
		p := RidgeParams{Lambda: 0.5, Solver: solver, Tol: 1e-10}
		// One row: nothing varies, so the weights are 0 and the intercept is the target.
		m, err := FitRidge(
			t.Context(),
			OfDense(mat.NewDense(1, 3, []float64{1, 2, 3})),
			mat.NewDense(1, 2, []float64{4, -5}),
			p,
		)
		require.NoError(t, err)
		require.Zero(t, mat.Norm(m.Weights, 2))
		require.Equal(t, []float64{4, -5}, m.Intercept)
		require.Equal(t, []Stop{StopZero, StopZero}, m.Solve.Stop)
		// One feature, which is constant.
		m, err = FitRidge(
			t.Context(),
			OfDense(mat.NewDense(3, 1, []float64{2, 2, 2})),
			mat.NewDense(3, 1, []float64{1, 2, 6}),
			p,
		)
		require.NoError(t, err)
		require.Zero(t, m.Weights.At(0, 0))
		require.InDelta(t, 3, m.Intercept[0], 1e-15)
		// One feature: w = Σxy/(Σx² + λ).
		m, err = FitRidge(
			t.Context(),
			OfDense(mat.NewDense(3, 1, []float64{-1, 0, 1})),
			mat.NewDense(3, 1, []float64{1, 2, 6}),
			p,
		)
		require.NoError(t, err)
		require.InDelta(t, 2, m.Weights.At(0, 0), 1e-12)
		require.InDelta(t, 3, m.Intercept[0], 1e-12)
	}
}

func TestRidgeRefuses(t *testing.T) {
	a, y := OfDense(mat.NewDense(2, 1, []float64{1, 2})), mat.NewDense(2, 1, []float64{1, 2})
	for want, p := range map[string]RidgeParams{
		"λ = -1":      {Lambda: -1},
		"λ = NaN":     {Lambda: math.NaN()},
		`solver "qr"`: {Solver: "qr"},
		"tolerance":   {Tol: -1},
	} {
		_, err := FitRidge(t.Context(), a, y, p)
		require.ErrorContains(t, err, want)
	}
	_, err := FitRidge(t.Context(), a, mat.NewDense(3, 1, nil), RidgeParams{})
	require.ErrorContains(t, err, "2 rows of features and 3 of targets")
	_, err = FitRidge(t.Context(), a, mat.NewDense(2, 1, []float64{1, math.NaN()}), RidgeParams{})
	require.ErrorContains(t, err, "not finite")
	for _, solver := range []string{"lsqr", "cg"} {
		_, err = FitRidge(
			t.Context(),
			OfDense(mat.NewDense(2, 1, []float64{1, math.NaN()})),
			y,
			RidgeParams{Solver: solver},
		)
		require.ErrorContains(t, err, "not finite", solver)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = FitRidge(ctx, a, y, RidgeParams{Lambda: 1})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, a.MulTo(t.Context(), mat.NewDense(3, 1, nil), mat.NewDense(1, 1, nil)), "[2, 1]")
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
	rows := csr{cols: 1}
	rows.append([]int32{0}, []float32{1})
	rows.append([]int32{0}, []float32{-1})
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
			NoIntercept: rapid.Bool().Draw(t, "none"),
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

// The weights are those of the caller's columns, also where some have no entry
// and one comes twice in a row.
func TestSVMWeightsKeepTheirColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	rows, labels := randomRows(rng, 60, 40)
	rows.cols = 50 // ten without an entry
	rows.append([]int32{7, 7, 39}, []float32{1, 2, -1})
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
func randomRows(rng *rand.Rand, n, d int) (csr, []int8) {
	rows, labels := csr{cols: d}, make([]int8, n)
	for i := range n {
		var cols []int32
		var vals []float32
		for j := range d {
			if rng.IntN(4) == 0 {
				cols, vals = append(cols, int32(j)), append(vals, float32(rng.NormFloat64()))
			}
		}
		rows.append(cols, vals)
		labels[i] = int8(2*rng.IntN(2) - 1)
	}
	labels[0], labels[1] = 1, -1
	return rows, labels
}

func TestSVMRefuses(t *testing.T) {
	rows, labels := randomRows(rand.New(rand.NewPCG(1, 1)), 4, 3)
	good := SVMParams{C: 1, Loss: "hinge", Tol: 1e-3}
	for want, change := range map[string]func(*SVMParams){
		"C = 0":      func(p *SVMParams) { p.C = 0 },
		`loss "l2"`:  func(p *SVMParams) { p.Loss = "l2" },
		"tolerance ": func(p *SVMParams) { p.Tol = math.NaN() },
	} {
		p := good
		change(&p)
		_, err := FitSVM(t.Context(), rows, labels, p)
		require.ErrorContains(t, err, want)
	}
	_, err := FitSVM(t.Context(), rows, []int8{1, 1, 1, 1}, good)
	require.ErrorContains(t, err, "expected both classes")
	_, err = FitSVM(t.Context(), rows, []int8{1, -1, 0, 1}, good)
	require.ErrorContains(t, err, "label 0 of row 2")
	_, err = FitSVM(t.Context(), rows, []int8{1, -1}, good)
	require.ErrorContains(t, err, "2 labels of 4 rows")
	rows.append([]int32{0}, []float32{float32(math.NaN())})
	_, err = FitSVM(t.Context(), rows, append(labels, 1), good)
	require.ErrorContains(t, err, "row 4")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows, labels = randomRows(rand.New(rand.NewPCG(1, 1)), 4, 3)
	_, err = FitSVM(ctx, rows, labels, good)
	require.ErrorIs(t, err, context.Canceled)
}
