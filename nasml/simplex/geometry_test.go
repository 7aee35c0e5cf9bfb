package simplex

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/optimize"
	"pgregory.net/rapid"
)

// mixed draws a point of the product of simplices with 2, 5 and 3 options.
func mixed(t *rapid.T, name string) [][]float64 {
	return [][]float64{drawRow(2).Draw(t, name+" 0"), drawRow(5).Draw(t, name+" 1"), drawRow(3).Draw(t, name+" 2")}
}

// interior is a random point with no small weights.
func interior(rng *rand.Rand, sizes ...int) [][]float64 {
	y := make([][]float64, len(sizes))
	for e, n := range sizes {
		for range n {
			y[e] = append(y[e], rng.NormFloat64())
		}
	}
	return PhiConjugateGradient(y)
}

func minus(a, b [][]float64) [][]float64 {
	return mapRows(a, func(e int, row, out []float64) {
		for o := range row {
			out[o] = row[o] - b[e][o]
		}
	})
}

func inner(a, b [][]float64) (sum float64) {
	for e := range a {
		sum += dot(a[e], b[e])
	}
	return sum
}

func TestEntropy(t *testing.T) {
	for options := 1; options < 20; options++ {
		uniform := Product{{"", 6, options}}.Uniform()[0]
		require.InDelta(t, math.Log(float64(options)), EntropyOf(uniform), 1e-12)
	}
	decided := [][]float64{{0, 1, 0}, {1, 0, 0}}
	require.Zero(t, EntropyOf(decided))

	// A mean over rows, of different lengths too, in nats.
	require.InDelta(t, math.Log(2)/2, EntropyOf([][]float64{{0.5, 0.5}, {0, 0, 1}}), 1e-15)
	rows := [][]float64{{0.7, 0.2, 0.1, 0}, {0.1, 0.2, 0.3, 0.4}}
	want := -(0.7*math.Log(0.7) + 2*0.2*math.Log(0.2) + 2*0.1*math.Log(0.1) + 0.3*math.Log(0.3) + 0.4*math.Log(0.4)) / 2
	require.InDelta(t, want, EntropyOf(rows), 1e-15)
}

// phiGradient is ∇φ(θ) = log θ + 1, −∞ where θ is 0.
func phiGradient(theta [][]float64) [][]float64 {
	return mapRows(theta, func(_ int, row, out []float64) {
		for o, x := range row {
			out[o] = math.Log(x) + 1
		}
	})
}

// phiConjugate is the convex conjugate of φ on the product of simplices,
//
//	φ*(y) = sup_{θ ∈ Θ} ⟨y, θ⟩ − φ(θ) = Σ_e log Σ_o exp y_eo .
func phiConjugate(y [][]float64) float64 {
	var sum float64
	for _, row := range y {
		sum += logSumExp(row)
	}
	return sum
}

func TestPhiAndItsConjugate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		theta := interior(rng, 2, 5, 3)
		y := mapRows(theta, func(_ int, row, out []float64) {
			for o := range row {
				out[o] = 3 * rng.NormFloat64()
			}
		})
		flat := slices.Concat(theta...)
		want := fd.Gradient(nil, func(x []float64) float64 { return Phi([][]float64{x}) }, flat,
			&fd.Settings{Formula: fd.Central})
		require.InDeltaSlice(t, want, slices.Concat(phiGradient(theta)...), 1e-6)

		// Fenchel–Young: φ(θ) + φ*(y) ≥ ⟨y, θ⟩, with equality at θ = ∇φ*(y).
		require.GreaterOrEqual(t, Phi(theta)+phiConjugate(y), inner(y, theta)-1e-12)
		best := PhiConjugateGradient(y)
		require.InDelta(t, inner(y, best), Phi(best)+phiConjugate(y), 1e-12)

		// ∇φ* takes ∇φ back.
		back := PhiConjugateGradient(phiGradient(theta))
		require.InDeltaSlice(t, flat, slices.Concat(back...), 1e-14)
	}
	require.InDelta(t, 1000+math.Log(2), phiConjugate([][]float64{{1000, 1000}}), 1e-12)
}

func TestBregmanDivergence(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		// Rows need not be normalised: that is where the linear terms count.
		u, v := interior(rng, 4, 4), interior(rng, 4, 4)
		for o := range u[0] {
			u[0][o] *= 1.5
			v[1][o] *= 0.3
		}
		want := Phi(u) - Phi(v) - inner(phiGradient(v), minus(u, v))
		require.InDelta(t, want, BregmanOf(u, v), 1e-13)
		require.Greater(t, BregmanOf(u, v), 0.0)
		require.Zero(t, BregmanOf(u, u))
	}
	for _, c := range []struct {
		u, v []float64
		want float64
	}{
		{[]float64{0, 1}, []float64{0.5, 0.5}, math.Ln2},
		{[]float64{0.5, 0.5}, []float64{0, 1}, math.Inf(1)},
		{[]float64{0, 1}, []float64{0, 1}, 0},
		{[]float64{0, 0}, []float64{0.5, 0.25}, 0.75},
	} {
		u, v := [][]float64{c.u}, [][]float64{c.v}
		require.Equal(t, c.want, BregmanOf(u, v), "D(%v‖%v)", c.u, c.v)
	}
}

// Close points lose no digits: the two forms meet where they take over, and
// far below D is ½ Σ (u−v)²/v.
func TestBregmanDivergenceOfClosePoints(t *testing.T) {
	for _, d := range []float64{-0.99e-3, 0.99e-3} {
		require.InEpsilon(t, 0.3*(math.Exp(d)*d-math.Expm1(d)), relativeEntropy(0.3*math.Exp(d), 0.3, d), 1e-11)
	}
	const h = 0x1p-30
	require.InEpsilon(t, 2*h*h, BregmanOf([][]float64{{0.5 + h, 0.5 - h}}, [][]float64{{0.5, 0.5}}), 1e-6)
}

// EG is the proximal step of φ: against a minimiser that knows no formula.
func TestEGIsTheProximalStep(t *testing.T) {
	theta := [][]float64{{0.2, 0.5, 0.3}, {0.6, 0.1, 0.3}}
	grad := [][]float64{{1, -0.5, 2}, {-3, 0.2, 0.4}}
	const eta = 0.4
	rows := func(z []float64) [][]float64 { return PhiConjugateGradient([][]float64{z[:3], z[3:]}) }
	objective := func(z []float64) float64 {
		u := rows(z)
		return eta*inner(grad, u) + BregmanOf(u, theta)
	}
	best, err := optimize.Minimize(optimize.Problem{Func: objective}, make([]float64, 6), nil, &optimize.NelderMead{})
	require.NoError(t, err)

	want := EGOf(theta, grad, eta)
	require.InDeltaSlice(t, slices.Concat(want...), slices.Concat(rows(best.X)...), 1e-4)
	logs := make([]float64, 6)
	for i, x := range slices.Concat(want...) {
		logs[i] = math.Log(x)
	}
	require.LessOrEqual(t, objective(logs), best.F+1e-12)

	got := step(t, EG, eta)(theta, grad)
	require.InDeltaSlice(t, slices.Concat(want...), slices.Concat(got...), 1e-15)
	require.Equal(t, [][]float64{{0, 1}}, EGOf([][]float64{{0, 1}}, [][]float64{{-1e300, 1e300}}, 1e10),
		"what is out stays out")
}

func TestNormsOfTheProduct(t *testing.T) {
	require.InDelta(t, 4/math.Sqrt(2), Norm([][]float64{{1, -2}, {0, 0.5, -0.5}}), 1e-15)
	require.InDelta(t, 14, DualNorm(Product{{"", 14 * 14, 8}}.Uniform()[0])*8, 1e-12) // √196·1
	require.True(t, math.IsNaN(DualNorm([][]float64{{1, math.NaN(), 5}})))
	rapid.Check(t, func(t *rapid.T) {
		u, v := mixed(t, "u"), mixed(t, "v")
		x := minus(u, v)
		// φ is 1-strongly convex in Norm (Pinsker on every row).
		if d := BregmanOf(u, v); d < Norm(x)*Norm(x)/2-1e-12 {
			t.Fatalf("D = %v < ½·%v²", d, Norm(x))
		}
		// Dual: ⟨g, x⟩ ≤ ‖g‖_* ‖x‖, reached by the sign vector at the largest.
		g := [][]float64{drawRow(2).Draw(t, "g0"), drawRow(5).Draw(t, "g1"), drawRow(3).Draw(t, "g2")}
		if inner(g, x) > DualNorm(g)*Norm(x)+1e-12 {
			t.Fatalf("⟨g, x⟩ = %v > %v·%v", inner(g, x), DualNorm(g), Norm(x))
		}
		top := mapRows(g, func(_ int, row, out []float64) {
			for o := range row {
				if row[o] == slices.Max(slices.Concat(g...)) {
					out[o] = 1
				}
			}
		})
		if math.Abs(inner(g, top)-DualNorm(g)*Norm(top)) > 1e-12 {
			t.Fatal("the dual norm is not reached")
		}
	})
}

func TestGap(t *testing.T) {
	theta, grad := [][]float64{{0.25, 0.75}, {1, 0, 0}}, [][]float64{{2, -1}, {5, 4, 7}}
	require.InDelta(t, 0.25*3+1, gap(theta, grad), 1e-15)
	require.Zero(t, gap([][]float64{{0, 1}}, [][]float64{{2, -1}}))
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	good := []float64{0.5, 0.5}
	require.NoError(t, Check([][]float64{good, {0.1, 0.2, 0.7}}, 1e-9))
	require.ErrorContains(t, Check([][]float64{good, {0.5, math.NaN()}}, 1e-9), "θ[1][1] is NaN")
	require.ErrorContains(t, Check([][]float64{{-0.5, 1.5}}, 1e-9), "θ[0][0] is -0.5")
	require.ErrorContains(t, Check([][]float64{{math.Inf(1), 0}}, 1e-9), "+Inf")
	require.ErrorContains(t, Check([][]float64{good, {0.5, 0.6}}, 1e-9), "row 1")
	require.NoError(t, Check([][]float64{{0.5, 0.6}}, 0.2))
	require.Panics(t, func() { BregmanOf([][]float64{good}, [][]float64{{1}}) })
	require.Panics(t, func() { gap([][]float64{good}, nil) })
}

func TestProductOfMixedSizes(t *testing.T) {
	p := Product{{"operations", 3, 4}, {"edges into 2", 1, 2}, {"edges into 3", 1, 3}}
	theta := p.Uniform()
	require.NoError(t, p.Check(theta, 1e-12))
	require.Equal(t, [][]float64{{0.5, 0.5}}, theta[1])
	require.InDelta(t, (3*math.Log(4)+math.Log(2)+math.Log(3))/5, EntropyOf(slices.Concat(theta...)), 1e-15)

	theta[2][0][1] = math.NaN()
	require.ErrorContains(t, p.Check(theta, 1e-12), `block "edges into 3": θ[0][1] is NaN`)
	theta[2] = [][]float64{{0.5, 0.5}}
	require.ErrorContains(t, p.Check(theta, 1e-12), `"edges into 3" is [1, 3]`)
	require.ErrorContains(t, p.Check(theta[:2], 1e-12), "2 matrices")
}
