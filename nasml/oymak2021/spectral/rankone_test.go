package spectral

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// gaussian are examples of the theorem's model.
func gaussian(seed uint64, n int, alpha, theta []float64, noise float64) Examples {
	h, p := len(alpha), len(theta)
	return Examples{N: n, H: h, P: p, Draw: func(i int, x []float64) float64 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for k := range x {
			x[k] = rng.NormFloat64()
		}
		return floats.Dot(alpha, mulVec(mat.NewDense(h, p, x), theta)) + noise*rng.NormFloat64()
	}}
}

func randomUnit(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return unit(v)
}

// twoStage is the algorithm of Section 5 with the risk of its outcome.
func twoStage(t *testing.T, seed uint64, n, p, h int, noise float64) (rho2, risk, residual float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 99))
	alphaStar, thetaStar := randomUnit(rng, h), randomUnit(rng, p)
	m, err := Moment(t.Context(), gaussian(2*seed, n, alphaStar, thetaStar, noise))
	require.NoError(t, err)
	alpha, _, err := TopLeft(m)
	require.NoError(t, err)
	z, y, err := Projected(t.Context(), gaussian(2*seed+1, n, alphaStar, thetaStar, noise), alpha)
	require.NoError(t, err)
	theta, err := MinNorm(z[0], y)
	require.NoError(t, err)
	return Correlation2(
			alpha,
			alphaStar,
		), RankOneRisk(
			alpha,
			theta,
			alphaStar,
			thetaStar,
			nil,
		) + noise*noise, Residual(
			z[0],
			theta,
			y,
		)
}

func TestMomentAndProjectionsAgainstTheFullTensor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alpha, theta := randomUnit(rng, 3), randomUnit(rng, 5)
	d := gaussian(7, 11, alpha, theta, 0.3)
	want, x := mat.NewDense(3, 5, nil), make([]float64, 15)
	m, err := Moment(t.Context(), d)
	require.NoError(t, err)
	z, y, err := Projected(t.Context(), d, alpha, []float64{0, 1, 0})
	require.NoError(t, err)
	for i := range d.N {
		label := d.Draw(i, x)
		require.Equal(t, label, y[i])
		xi := mat.NewDense(3, 5, slices.Clone(x))
		require.InDeltaSlice(t, mulVec(xi.T(), alpha), z[0].RawRowView(i), 1e-14)
		require.Equal(t, xi.RawRowView(1), z[1].RawRowView(i))
		xi.Scale(label, xi)
		want.Add(want, xi)
	}
	require.True(t, mat.EqualApprox(want, m, 1e-12))
}

func TestTopLeftAgainstSVD(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, p := rapid.IntRange(1, 40).Draw(t, "h"), rapid.IntRange(1, 40).Draw(t, "p")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		data := make([]float64, h*p)
		for i := range data {
			data[i] = rng.NormFloat64()
		}
		m := mat.NewDense(h, p, data)
		u, sigma, err := TopLeft(m)
		require.NoError(t, err)
		var svd mat.SVD
		require.True(t, svd.Factorize(m, mat.SVDThin))
		var left mat.Dense
		svd.UTo(&left)
		require.InEpsilon(t, svd.Values(nil)[0], sigma, 1e-9)
		values := svd.Values(nil)
		if len(values) > 1 && values[1] > 0.999*values[0] {
			return // two directions lead: either may come
		}
		require.InDelta(t, 1, Correlation2(u, mat.Col(nil, 0, &left)), 1e-9)
		require.InDelta(t, 1, floats.Norm(u, 2), 1e-12)
		require.Positive(
			t,
			slices.MaxFunc(u, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) }),
		)
	})
}

// The direction turns with the rows, and neither columns' rotation nor the
// matrix's sign or scale moves it.
func TestTopLeftInvariances(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	h, p := 30, 50
	data := make([]float64, h*p)
	for i := range data {
		data[i] = rng.NormFloat64()
	}
	m := mat.NewDense(h, p, data)
	rows, cols := rotation(rng, h), rotation(rng, p)
	u, sigma, err := TopLeft(m)
	require.NoError(t, err)
	var turned mat.Dense
	turned.Product(rows, m, cols)
	turned.Scale(-3, &turned)
	v, sigma3, err := TopLeft(&turned)
	require.NoError(t, err)
	require.InEpsilon(t, 3*sigma, sigma3, 1e-9)
	require.InDelta(t, 1, Correlation2(mulVec(rows, u), v), 1e-9)
}

func rotation(rng *rand.Rand, n int) *mat.Dense {
	data := make([]float64, n*n)
	for i := range data {
		data[i] = rng.NormFloat64()
	}
	var qr mat.QR
	qr.Factorize(mat.NewDense(n, n, data))
	var q mat.Dense
	qr.QTo(&q)
	return &q
}

func TestTopEigenAtTheEdges(t *testing.T) {
	_, _, err := TopLeft(mat.NewDense(3, 4, nil))
	require.ErrorIs(t, err, ErrNoDirection)
	u, sigma, err := TopLeft(mat.NewDense(1, 2, []float64{3, -4}))
	require.NoError(t, err)
	require.Equal(t, []float64{1}, u)
	require.InDelta(t, 5, sigma, 1e-14)
	value, v, err := TopEigen(4, func(dst, v []float64) { copy(dst, v) }) // all directions lead
	require.NoError(t, err)
	require.InDelta(t, 1, value, 1e-14)
	require.InDelta(t, 1, floats.Norm(v, 2), 1e-14)
	_, _, err = TopEigen(2, func(dst, _ []float64) { dst[0] = math.NaN() })
	require.ErrorContains(t, err, "finite")
}

func TestMinNorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 12).Draw(t, "n"), rapid.IntRange(1, 12).Draw(t, "p")
		rank := rapid.IntRange(0, min(n, p)).Draw(t, "rank")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		z := mat.NewDense(n, p, nil)
		for range rank {
			z.RankOne(z, 1, mat.NewVecDense(n, randomUnit(rng, n)), mat.NewVecDense(p, randomUnit(rng, p)))
		}
		y := randomUnit(rng, n)
		theta, err := MinNorm(z, y)
		require.NoError(t, err)
		// Least squares: Zᵀ(y − Zθ) = 0. Least norm: θ in the span of the rows.
		r := mulVec(z, theta)
		floats.SubTo(r, y, r)
		size := 1 + floats.Norm(theta, 2)
		require.InDelta(t, 0, floats.Norm(mulVec(z.T(), r), 2), 1e-8*size)
		back, err := MinNorm(mat.DenseCopyOf(z.T()), theta)
		require.NoError(t, err)
		require.InDelta(t, 0, floats.Distance(mulVec(z.T(), back), theta, 2), 1e-8*size)
	})
	_, err := MinNorm(mat.NewDense(1, 1, []float64{math.NaN()}), []float64{1})
	require.ErrorContains(t, err, "finite")
	_, err = MinNorm(mat.NewDense(2, 1, nil), []float64{1})
	require.ErrorContains(t, err, "2 rows")
}

func TestTwoStageInterpolatesAndOneOperationIsNoSearch(t *testing.T) {
	rho2, _, residual := twoStage(t, 5, 20, 50, 1, 0)
	require.Equal(t, 1.0, rho2)
	require.Less(t, residual, 1e-10)
	rho2, risk, _ := twoStage(t, 5, 60, 20, 1, 0) // more examples than parameters: exact
	require.Equal(t, 1.0, rho2)
	require.InDelta(t, 0, risk, 1e-14)
	_, _, err := Projected(t.Context(), gaussian(1, 3, []float64{1}, []float64{1}, 0), []float64{1, 2})
	require.ErrorContains(t, err, "h = 1")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Moment(done, gaussian(1, 3, []float64{1}, []float64{1}, 0))
	require.ErrorIs(t, err, context.Canceled)
}

// The features' simulation and RankOneLaw have the same law: means and spreads
// of ρ² and of the risk agree within four standard errors.
func TestLawAgainstSimulation(t *testing.T) {
	for _, c := range []struct {
		n, p, h int
		noise   float64
	}{{30, 60, 5, 0}, {40, 50, 8, 0.7}, {40, 20, 3, 0.5}, {20, 6, 9, 0}} {
		const draws = 300
		sim, law := [2][]float64{}, [2][]float64{}
		rng := rand.New(rand.NewPCG(11, 11))
		for seed := range uint64(draws) {
			rho2, risk, _ := twoStage(t, seed, c.n, c.p, c.h, c.noise)
			sim[0], sim[1] = append(sim[0], rho2), append(sim[1], risk)
			rho2, risk, err := RankOneLaw{c.n, c.p, c.h, c.noise}.Draw(rng)
			require.NoError(t, err)
			law[0], law[1] = append(law[0], rho2), append(law[1], risk)
		}
		for k := range sim {
			m1, s1 := stat.MeanStdDev(sim[k], nil)
			m2, s2 := stat.MeanStdDev(law[k], nil)
			require.InDelta(t, m1, m2, 4*math.Hypot(s1, s2)/math.Sqrt(draws), "mean, %+v, number %d", c, k)
			require.InDelta(t, 0, math.Log(s1/s2), 0.3, "spread, %+v, number %d", c, k)
		}
	}
}

// ExpectedRisk is the exact mean given ρ², at any size.
func TestExpectedRiskIsTheMeanOfTheLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		n, p        int
		rho2, noise float64
	}{{10, 25, 0.6, 0}, {10, 40, 0.9, 1}, {30, 12, 0.4, 0.2}, {8, 30, 1, 0}} {
		var risks []float64
		for range 20000 {
			risks = append(risks, RankOneLaw{c.n, c.p, 2, c.noise}.drawRisk(rng, c.rho2))
		}
		mean, std := stat.MeanStdDev(risks, nil)
		require.InDelta(t, ExpectedRisk(c.n, c.p, c.rho2, c.noise), mean, 4*std/math.Sqrt(20000), "%+v", c)
	}
	require.Equal(t, 0.5, ExpectedRisk(10, 20, 1, 0))
	require.Equal(t, 0.0, ExpectedRisk(10, 10, 1, 0))
	require.Equal(t, 0.0, ExpectedRisk(20, 10, 1, 0))
	require.True(t, math.IsInf(ExpectedRisk(10, 11, 0.5, 0), 1))
	require.InDelta(t, RiskLimit(2, 0.7, 0.3), ExpectedRisk(1e6, 2e6, 0.7, 0.3), 1e-5)
}

// The distance between the law's mean and its limit falls with n, and the limit
// is 0 from ph = n² on.
func TestCorrelationLimit(t *testing.T) {
	for _, c := range []struct{ pBar, hBar, noise float64 }{
		{2, 0.1, 0}, {5, 0.05, 0}, {1.5, 0.4, 0}, {3, 0.05, 1}, {0.5, 0.5, 0},
	} {
		rng := rand.New(rand.NewPCG(17, 0))
		var errors []float64
		for _, n := range []int{50, 800} {
			var rho2 []float64
			for range 40 {
				r, _, err := RankOneLaw{n, int(c.pBar * float64(n)), int(c.hBar * float64(n)), c.noise}.Draw(rng)
				require.NoError(t, err)
				rho2 = append(rho2, r)
			}
			mean, std := stat.MeanStdDev(rho2, nil)
			errors = append(errors, math.Abs(mean-CorrelationLimit(c.pBar, c.hBar, c.noise)))
			if n == 800 {
				require.Less(t, errors[1], 4*std/math.Sqrt(40)+0.005, "%+v", c)
			}
		}
		require.Less(t, errors[1], max(errors[0], 0.01), "%+v", c)
	}
	require.Equal(t, 0.0, CorrelationLimit(4, 0.25, 0))
	require.Equal(t, 0.0, CorrelationLimit(2, 0.25, 1),
		"noise of the signal's size needs twice the examples: ph = (n/2)²")
	require.Equal(t, 1.0, CorrelationLimit(7, 0, 0))
}

// Examples of different sizes, Xᵢ = rᵢGᵢ with 𝔼r² = 1, act as if there were
// n/𝔼r⁴ of them, which the limit with label noise σ² = 𝔼r⁴ − 1 says, too.
func TestUnequalExamplesActAsFewer(t *testing.T) {
	const n, p, h, seeds = 200, 300, 24, 24
	var rho2 []float64
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		alpha, theta := randomUnit(rng, h), randomUnit(rng, p)
		d := gaussian(seed, n, alpha, theta, 0)
		equal := d.Draw
		d.Draw = func(i int, x []float64) float64 {
			r := math.Sqrt([]float64{0.05, 1.95}[i%2]) // 𝔼r⁴ = 1.9025
			y := equal(i, x)
			floats.Scale(r, x)
			return r * y
		}
		m, err := Moment(t.Context(), d)
		require.NoError(t, err)
		top, _, err := TopLeft(m)
		require.NoError(t, err)
		rho2 = append(rho2, Correlation2(top, alpha))
	}
	mean, std := stat.MeanStdDev(rho2, nil)
	want := CorrelationLimit(float64(p)/n, float64(h)/n, math.Sqrt(0.9025))
	require.InDelta(t, want, mean, 4*std/math.Sqrt(seeds)+0.02)
	require.Greater(t, CorrelationLimit(float64(p)/n, float64(h)/n, 0), mean+4*std/math.Sqrt(seeds), "and not as n")
}

func TestRankOneRiskAgainstExamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	a, b, c, d := randomUnit(rng, 3), randomUnit(rng, 4), randomUnit(rng, 3), randomUnit(rng, 4)
	cov := mat.NewSymDense(3, []float64{2, 0.5, 0.3, 0.5, 1, 0.2, 0.3, 0.2, 1})
	var chol mat.Cholesky
	require.True(t, chol.Factorize(cov))
	var root mat.TriDense
	chol.LTo(&root)
	sum, sum2 := 0.0, 0.0
	const draws = 100000
	g := mat.NewDense(3, 4, nil)
	for range draws {
		for i := range 12 {
			g.RawMatrix().Data[i] = rng.NormFloat64()
		}
		error := floats.Dot(mulVec(root.T(), a), mulVec(g, b)) - floats.Dot(mulVec(root.T(), c), mulVec(g, d))
		sum += error * error
		sum2 += math.Pow(error, 4)
	}
	mean := sum / draws
	require.InDelta(t, mean, RankOneRisk(c, d, a, b, cov), 4*math.Sqrt(sum2/draws)/math.Sqrt(draws))
	require.InDelta(t, 0, RankOneRisk(a, b, a, b, cov), 1e-14)
	require.InDelta(t, 1, RankOneRisk(a, make([]float64, 4), a, b, nil), 1e-14, "the zero predictor")
}

func testSplit(t *testing.T, n, p, h int, ridge float64) (s Split, alphaStar, thetaStar []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(21, 0))
	alphaStar, thetaStar = randomUnit(rng, h), randomUnit(rng, p)
	train, err := Store(t.Context(), gaussian(22, n, alphaStar, thetaStar, 0))
	require.NoError(t, err)
	valid, err := Store(t.Context(), gaussian(23, n+3, alphaStar, thetaStar, 0))
	require.NoError(t, err)
	return Split{train, valid, ridge}, alphaStar, thetaStar
}

func TestHypergradientAgainstFiniteDifferences(t *testing.T) {
	for _, ridge := range []float64{0, 0.5} {
		s, _, _ := testSplit(t, 8, 15, 4, ridge)
		at := []float64{0.3, -0.7, 0.2, 0.4}
		_, grad, err := s.Loss(at)
		require.NoError(t, err)
		want := fd.Gradient(nil, func(x []float64) float64 {
			loss, _, err := s.Loss(x)
			require.NoError(t, err)
			return loss
		}, at, &fd.Settings{Formula: fd.Central})
		require.InDeltaSlice(t, want, grad, 1e-6*(1+floats.Norm(want, 2)))
		if ridge == 0 {
			require.InDelta(t, 0, floats.Dot(grad, at), 1e-10, "the length of α does not matter")
		}
	}
}

func TestSearchesFindTheDirectionWhereThereIsPlenty(t *testing.T) {
	s, alphaStar, thetaStar := testSplit(t, 60, 20, 3, 0.01)
	start := []float64{1, 1, 1}
	before, _, err := s.Loss(unit(start))
	require.NoError(t, err)
	alpha, loss, err := s.Descend(t.Context(), start, 100)
	require.NoError(t, err)
	require.Less(t, loss, before)
	require.Greater(t, Correlation2(alpha, alphaStar), 0.9)
	alternate, err := s.Alternate(t.Context(), start, 50)
	require.NoError(t, err)
	require.Greater(t, Correlation2(alternate, alphaStar), 0.9)
	theta, err := s.Theta(alpha)
	require.NoError(t, err)
	require.Less(t, RankOneRisk(alpha, theta, alphaStar, thetaStar, nil), 0.5)
}

func TestSearchesEndWithTheirContext(t *testing.T) {
	s, _, _ := testSplit(t, 8, 15, 4, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Descend(ctx, []float64{1, 2, 3, 4}, 50)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Alternate(ctx, []float64{1, 2, 3, 4}, 50)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSearchesRefuseNonsense(t *testing.T) {
	s, _, _ := testSplit(t, 8, 15, 4, 0)
	_, _, err := s.Descend(t.Context(), make([]float64, 4), 3)
	require.ErrorContains(t, err, "singular")
	wide, _, _ := testSplit(t, 20, 15, 4, 0)
	_, _, err = wide.Loss([]float64{1, 0, 0, 0})
	require.ErrorContains(t, err, "use a larger λ", "more examples than parameters without a ridge")
}
