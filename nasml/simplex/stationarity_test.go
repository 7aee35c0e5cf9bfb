package simplex

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// linear is f = ⟨c, θ⟩.
func linear(c [][]float64) Oracle {
	return func(Point) (Point, error) { return Point{Theta: c}, nil }
}

// quadratic is f = ½xᵀAx over x = (w, θ) laid out flat; calls are counted.
func quadratic(a mat.Symmetric) Oracle {
	return func(at Point) (Point, error) {
		x := slices.Concat(at.W, slices.Concat(at.Theta...))
		var g mat.VecDense
		g.MulVec(a, mat.NewVecDense(len(x), x))
		out := Point{W: g.RawVector().Data[:len(at.W)]}
		from := len(at.W)
		out.Theta = mapRows(at.Theta, func(_ int, row, to []float64) {
			from += copy(to, g.RawVector().Data[from:from+len(row)])
		})
		return out, nil
	}
}

func randomSymmetric(rng *rand.Rand, n int) *mat.SymDense {
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			a.SetSym(i, j, rng.NormFloat64())
		}
	}
	return a
}

func TestStationarityOfALinearFunction(t *testing.T) {
	theta := [][]float64{{0.2, 0.5, 0.3, 0}, {0.9, 0.1}}
	c := [][]float64{{1, -0.5, 2, -9}, {0.3, -1}}
	for _, lambda := range []float64{1e-6, 0.1, 2, 50} {
		got, err := Stationarity{Gamma: 1 / (2 * lambda)}.At(linear(c), Point{Theta: theta})
		require.NoError(t, err)
		p := EGOf(theta, c, lambda)
		require.InDeltaSlice(t, slices.Concat(p...), slices.Concat(got.Prox.Theta...), 1e-14)
		want := inner(c, minus(theta, p)) / lambda
		require.InEpsilon(t, want, got.Delta, 1e-9, "λ = %v", lambda)
		require.InEpsilon(t, (BregmanOf(theta, p)+BregmanOf(p, theta))/lambda/lambda, got.Delta, 1e-3)
		require.LessOrEqual(t, got.Gradients, 3, "a linear function is solved in one step")
		require.InDelta(t, gap(theta, c), got.Gap, 1e-12)
	}
	// λ → 0: the variance of the gradient under θ.
	got, err := Stationarity{Gamma: 1e7}.At(linear(c), Point{Theta: theta})
	require.NoError(t, err)
	variance := 0.0
	for e, row := range theta {
		mean := dot(row, c[e])
		for o, x := range row {
			variance += x * (c[e][o] - mean) * (c[e][o] - mean)
		}
	}
	require.InEpsilon(t, variance, got.Delta, 1e-6)
}

func TestStationarityInEuclideanSpace(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 6
	for range 10 {
		b := randomSymmetric(rng, n)
		var eigen mat.EigenSym
		require.True(t, eigen.Factorize(b, false))
		values := eigen.Values(nil)
		gamma := math.Max(-values[0], values[n-1]) // ‖B‖: both weakly convex and smooth
		w := make([]float64, n)
		for i := range w {
			w[i] = rng.NormFloat64()
		}
		got, err := Stationarity{Gamma: gamma}.At(quadratic(b), Point{W: w})
		require.NoError(t, err)

		// p = (I + λB)⁻¹ w and Δ = ‖Bp‖².
		m := mat.NewDense(n, n, nil)
		m.Scale(1/(2*gamma), b)
		for i := range n {
			m.Set(i, i, m.At(i, i)+1)
		}
		var p, bp, bw mat.VecDense
		require.NoError(t, p.SolveVec(m, mat.NewVecDense(n, w)))
		bp.MulVec(b, &p)
		bw.MulVec(b, mat.NewVecDense(n, w))
		require.InDeltaSlice(t, p.RawVector().Data, got.Prox.W, 1e-7)
		require.InEpsilon(t, mat.Dot(&bp, &bp), got.Delta, 1e-7)
		require.LessOrEqual(t, mat.Dot(&bw, &bw), 9.0/4*got.Delta*(1+1e-9), "‖∇f(w)‖² ≤ (1+λγ)²Δ")
		require.Zero(t, got.Gap)
	}
}

// A joint, nonconvex f of w and θ: the two formulas of Δ agree only at the true
// proximal point, and no other point is better.
func TestStationarityOfANonconvexJointFunction(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 5 {
		a := randomSymmetric(rng, 2+4+3)
		var eigen mat.EigenSym
		require.True(t, eigen.Factorize(a, false))
		gamma := -eigen.Values(nil)[0] // enough: the mirror map is 1-strongly convex
		lambda := 1 / (2 * gamma)
		f := quadratic(a)
		x := Point{W: []float64{0.7, -1.1}, Theta: interior(rng, 4, 3)}
		got, err := Stationarity{Gamma: gamma}.At(f, x)
		require.NoError(t, err)
		require.Less(t, got.Gradients, 500)

		g, _ := f(got.Prox)
		identity := (dot(g.W, x.W) - dot(g.W, got.Prox.W) + inner(g.Theta, minus(x.Theta, got.Prox.Theta))) / lambda
		require.InEpsilon(t, identity, got.Delta, 1e-6)

		objective := func(u Point) float64 {
			g, _ := f(u)
			square := 0.0
			for i := range u.W {
				square += (u.W[i] - x.W[i]) * (u.W[i] - x.W[i])
			}
			return lambda*(dot(g.W, u.W)+inner(g.Theta, u.Theta))/2 + square/2 + BregmanOf(u.Theta, x.Theta)
		}
		least := objective(got.Prox)
		for range 200 {
			size := math.Exp(-6 * rng.Float64())
			u := Point{W: slices.Clone(got.Prox.W), Theta: interior(rng, 4, 3)}
			for i := range u.W {
				u.W[i] += size * rng.NormFloat64()
			}
			u.Theta = mapRows(u.Theta, func(e int, row, out []float64) {
				for o := range row {
					out[o] = size*row[o] + (1-size)*got.Prox.Theta[e][o]
				}
			})
			require.Greater(t, objective(u), least)
		}
	}
}

// A stiff convex f: the full step diverges, so the step size must be found.
func TestStationarityOfAStiffFunction(t *testing.T) {
	a := mat.NewDiagDense(5, []float64{300, 1, 0, 80, 2})
	sym := mat.NewSymDense(5, nil)
	for i := range 5 {
		sym.SetSym(i, i, a.At(i, i))
	}
	f := quadratic(sym)
	x := Point{W: []float64{1, 2}, Theta: [][]float64{{0.98, 0.01, 0.01}}}
	got, err := Stationarity{Gamma: 0.5}.At(f, x)
	require.NoError(t, err)
	g, _ := f(got.Prox)
	identity := dot(g.W, x.W) - dot(g.W, got.Prox.W) + inner(g.Theta, minus(x.Theta, got.Prox.Theta)) // λ = 1
	require.InEpsilon(t, identity, got.Delta, 1e-6)
	require.InDelta(t, 1.0/301, got.Prox.W[0], 1e-8)
}

// Li+'s fixed points are not stationary points on the boundary: near the worst
// vertex Δ vanishes and the Frank–Wolfe gap does not.
func TestStationarityVanishesNearEveryVertex(t *testing.T) {
	c := [][]float64{{1, 0}}
	for _, near := range []struct{ delta, want float64 }{
		{1e-1, 1.1e-1}, {1e-3, 1.3e-3}, {1e-6, 1.3e-6}, {1e-9, 1.3e-9},
	} {
		got, err := Stationarity{Gamma: 1}.At(linear(c), Point{Theta: [][]float64{{1 - near.delta, near.delta}}})
		require.NoError(t, err)
		require.InEpsilon(t, near.want, got.Delta, 0.05, "δ = %v", near.delta)
		require.InDelta(t, 1-near.delta, got.Gap, 1e-12)
	}
	at, err := Stationarity{Gamma: 1}.At(linear(c), Point{Theta: [][]float64{{1, 0}}})
	require.NoError(t, err)
	require.Zero(t, at.Delta)
	require.Equal(t, 1.0, at.Gap)
}

func TestStationarityIsZeroWhereFIsStationary(t *testing.T) {
	c := [][]float64{{3, 3, 3}}
	got, err := Stationarity{Gamma: 0.1}.At(linear(c), Point{Theta: [][]float64{{0.2, 0.5, 0.3}}})
	require.NoError(t, err)
	require.InDelta(t, 0, got.Delta, 1e-20)
	require.InDelta(t, 0, got.Gap, 1e-12)
}

func TestStationarityReportsWhatFails(t *testing.T) {
	theta := [][]float64{{0.5, 0.5}}
	x := Point{Theta: theta}
	refuse := func(s Stationarity, f Oracle, x Point) error {
		_, err := s.At(f, x)
		return err
	}
	flat := linear([][]float64{{1, 2}})
	require.ErrorContains(t, refuse(Stationarity{}, flat, x), "Gamma is 0")
	require.ErrorContains(t, refuse(Stationarity{Gamma: 1}, flat, Point{Theta: [][]float64{{0.5, math.NaN()}}}), "NaN")
	require.ErrorContains(t, refuse(Stationarity{Gamma: 1}, linear([][]float64{{1, math.NaN()}}), x), "not finite")
	require.ErrorContains(t, refuse(Stationarity{Gamma: 1}, linear([][]float64{{1}}), x), "does not fit")
	broken := errors.New("broken")
	require.ErrorIs(t, refuse(Stationarity{Gamma: 1}, func(Point) (Point, error) { return Point{}, broken }, x), broken)

	// f = w₁w₂ is linear in each block but has joint γ = 1: a smaller one is
	// found out, the right one is not complained of.
	product := mat.NewSymDense(2, []float64{0, 1, 1, 0})
	require.ErrorContains(t, refuse(Stationarity{Gamma: 0.1}, quadratic(product), Point{W: []float64{1, -0.9}}),
		"γ = 0.1")
	require.NoError(t, refuse(Stationarity{Gamma: 1}, quadratic(product), Point{W: []float64{1, -0.9}}))

	stiff := mat.NewSymDense(2, []float64{1000, 0, 0, 1})
	require.ErrorContains(t, refuse(Stationarity{Gamma: 0.1, Gradients: 20}, quadratic(stiff),
		Point{W: []float64{1, 1}}), "20 gradients")
}

// A gradient in float32 allows a tolerance of 1e-4, and is an error at 1e-8.
func TestStationarityOfAnInexactGradient(t *testing.T) {
	a := mat.NewSymDense(5, nil)
	for i, v := range []float64{10, 1, 0, 7, 2} {
		a.SetSym(i, i, v)
	}
	exact := quadratic(a)
	rounded := func(at Point) (Point, error) {
		g, err := exact(at)
		for _, row := range append(g.Theta, g.W) {
			for o := range row {
				row[o] = float64(float32(row[o]))
			}
		}
		return g, err
	}
	x := Point{W: []float64{1, 2}, Theta: [][]float64{{0.98, 0.01, 0.01}}}
	want, err := Stationarity{Gamma: 0.5}.At(exact, x)
	require.NoError(t, err)
	got, err := Stationarity{Gamma: 0.5, Tolerance: 1e-4}.At(rounded, x)
	require.NoError(t, err)
	require.InEpsilon(t, want.Delta, got.Delta, 1e-3)
	_, err = Stationarity{Gamma: 0.5}.At(rounded, x)
	require.ErrorContains(t, err, "larger Tolerance")
}
