package spectral

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func named(t *testing.T, names ...string) []Activation {
	t.Helper()
	a, err := NamedActivations(names...)
	require.NoError(t, err)
	return a
}

func tangent(t *testing.T, names ...string) *Tangent {
	t.Helper()
	return NewTangent(named(t, names...)...)
}

func TestSlopesAreDerivativesWithinTheirBounds(t *testing.T) {
	const step = 1e-5
	for _, name := range []string{
		"erf", "identity", "relu", "sigmoid", "sin", "softplus", "square", "tanh", "tanh*2", "sin*-3",
	} {
		a := named(t, name)[0]
		var slope, curvature float64
		for z := -6.0005; z < 6; z += 0.01 {
			up, upSlope := a.Eval(z + step)
			down, downSlope := a.Eval(z - step)
			_, s := a.Eval(z)
			require.InDelta(t, s, (up-down)/(2*step), 1e-8, "%s at %v", name, z)
			slope, curvature = max(slope, math.Abs(s)), max(curvature, math.Abs(upSlope-downSlope)/(2*step))
		}
		require.LessOrEqual(t, slope, a.Slope*(1+1e-9), name)
		if !math.IsInf(a.Curvature, 1) {
			require.LessOrEqual(t, curvature, a.Curvature*(1+1e-6), name)
			if a.Curvature > 0 {
				require.Greater(t, curvature, 0.99*a.Curvature, "%s: the bound is the supremum", name)
			}
		}
	}
}

func TestUnknownActivationsAreNamed(t *testing.T) {
	for name, part := range map[string]string{
		"tann": "tanh", "tanh*": "factor", "tanh*0": "factor", "tanh*2x": "factor",
	} {
		_, err := NamedActivation(name)
		require.ErrorContains(t, err, part)
	}
	_, err := NamedActivations()
	require.ErrorContains(t, err, "at least one")
}

func TestPairsHaveClosedForms(t *testing.T) {
	k := tangent(t, "relu", "sin", "erf", "identity", "square", "relu*-2")
	for _, rho := range []float64{-1, -0.6, 0, 0.3, 0.95, 1} {
		step := (math.Pi - math.Acos(rho)) / (2 * math.Pi)
		for _, c := range []struct {
			i, j int
			want float64
		}{
			{0, 0, step},                    // arc-cosine kernel of degree 0
			{1, 1, math.Cosh(rho) / math.E}, // E cos u cos v
			{2, 2, 4 / math.Pi / math.Sqrt(9-4*rho*rho)},
			{3, 3, 1}, {4, 4, rho},
			{0, 3, 0.5}, {1, 3, math.Exp(-0.5)}, {1, 4, 0},
			{0, 4, rho / math.Sqrt(2*math.Pi)}, // E 1{u>0}v
			{0, 5, -2 * (0.5 - step)}, {5, 5, 4 * step},
			{5, 3, -1},
		} {
			require.InDelta(t, c.want, k.Pair(c.i, c.j, rho), 1e-9, "κ(%d, %d)(%v)", c.i, c.j, rho)
			require.InDelta(t, k.Pair(c.i, c.j, rho), k.Pair(c.j, c.i, rho), 1e-15)
		}
	}
}

// The tensor rule knows nothing of Hermite series.
func TestPairsAgreeWithQuadratureInTwoDimensions(t *testing.T) {
	names := []string{"tanh", "sigmoid", "softplus", "sin*2", "tanh*2"}
	k, r := tangent(t, names...), mustRule(t, 160)
	for i, a := range k.Activations {
		for j, b := range k.Activations {
			for _, rho := range []float64{-0.99, -0.3, 0.5, 1} {
				want := mean2(r, func(u, v float64) float64 { return a.slope(u) * b.slope(v) }, rho)
				tolerance := 1e-8
				if i == 4 || j == 4 { // tanh(2z) has its poles at ±iπ/4: both methods converge slowly
					tolerance = 1e-5
				}
				require.InDelta(t, want, k.Pair(i, j, rho), tolerance, "κ(%s, %s)(%v)", names[i], names[j], rho)
			}
		}
	}
}

func TestKernelIsQuadraticAndPositive(t *testing.T) {
	k := tangent(t, "tanh", "relu", "sin")
	rapid.Check(t, func(t *rapid.T) {
		g := rng(rapid.Uint64().Draw(t, "seed"))
		x := SpherePoints(g, 7, rapid.IntRange(2, 9).Draw(t, "d"))
		b, err := k.Blocks(x, x)
		require.NoError(t, err)
		alpha := []float64{g.NormFloat64(), g.NormFloat64(), g.NormFloat64()}
		lo, hi := EigenRange(Symmetric(b.At(alpha)))
		require.Greater(t, lo, -1e-12*hi)
		doubled := b.At([]float64{2 * alpha[0], 2 * alpha[1], 2 * alpha[2]})
		require.InDelta(t, 4*mat.Norm(b.At(alpha), 2), mat.Norm(doubled, 2), 1e-9*hi)
	})
}

// Definition 3's identity, and its features against derivatives of the network.
func TestFeaturesAreDerivativesAndAdditive(t *testing.T) {
	g := rng(1)
	acts := named(t, "tanh", "softplus", "sin")
	x, w := SpherePoints(g, 4, 3), Normals(g, 6, 3)
	alpha, v := []float64{0.2, 0.3, 0.5}, []float64{.4, .4, .4, -.4, -.4, -.4}
	network := func(i int, w *mat.Dense) (f float64) {
		for r := range 6 {
			value, _ := Mixture{acts, alpha}.Eval(mat.Dot(w.RowView(r), x.RowView(i)))
			f += v[r] * value
		}
		return f
	}
	phi := Features(Mixture{acts, alpha}.Eval, x, w, v)
	sum := mat.NewDense(4, 18, nil)
	for j, a := range acts {
		one := Features(a.Eval, x, w, v)
		one.Scale(alpha[j], one)
		sum.Add(sum, one)
	}
	require.True(t, mat.EqualApprox(sum, phi, 1e-15))
	for i := range 4 {
		for p := range 18 {
			up, down := mat.DenseCopyOf(w), mat.DenseCopyOf(w)
			up.RawMatrix().Data[p] += 1e-5
			down.RawMatrix().Data[p] -= 1e-5
			require.InDelta(t, (network(i, up)-network(i, down))/2e-5, phi.At(i, p), 1e-9)
		}
	}
	// ⟨φ(x), φ(x′)⟩ = c₀K̂, c₀ = Σv² = 6·0.16
	b := WideBlocks(acts, x, x, w)
	gram := new(mat.Dense)
	gram.Mul(phi, phi.T())
	gram.Scale(1/0.96, gram)
	require.True(t, mat.EqualApprox(gram, b.At(alpha), 1e-14))
}

// WideBlocks are Monte Carlo estimates: the error falls as k^(−1/2).
func TestWideBlocksConverge(t *testing.T) {
	acts := named(t, "tanh", "relu")
	k := NewTangent(acts...)
	var logWidth, logError []float64
	for _, width := range []int{100, 400, 1600, 6400} {
		var squares []float64
		for seed := range uint64(12) {
			g := rng(seed)
			x := SpherePoints(g, 8, 5)
			exact, err := k.Blocks(x, x)
			require.NoError(t, err)
			wide := WideBlocks(acts, x, x, Normals(g, width, 5))
			for i := range 2 {
				for j := range 2 {
					d := new(mat.Dense)
					d.Sub(exact.k[i][j], wide.k[i][j])
					squares = append(squares, math.Pow(mat.Norm(d, 2), 2))
				}
			}
		}
		logWidth = append(logWidth, math.Log(float64(width)))
		logError = append(logError, math.Log(stat.Mean(squares, nil))/2)
	}
	_, slope := stat.LinearRegression(logWidth, logError, nil, false)
	require.InDelta(t, -0.5, slope, 0.05)
}

func TestTableIsTheMixture(t *testing.T) {
	m := Mixture{named(t, "tanh", "sigmoid", "softplus", "sin"), []float64{.1, .2, .3, .4}}
	table := NewTable(m)
	for z := -13.0; z < 13; z += 0.00137 {
		value, slope := m.Eval(z)
		v, s := table.Eval(z)
		require.InDelta(t, value, v, 1e-11)
		require.InDelta(t, slope, s, 1e-8)
	}
	kinked := NewTable(Mixture{named(t, "relu"), []float64{1}})
	v, s := kinked.Eval(1e-9)
	require.Equal(t, []float64{1e-9, 1}, []float64{v, s})
	v, _ = table.Eval(math.NaN())
	require.True(t, math.IsNaN(v))
}

func TestUnusableInputsAreRefused(t *testing.T) {
	k := tangent(t, "tanh")
	x := SpherePoints(rng(1), 3, 4)
	require.Panics(t, func() { _, _ = k.Blocks(x, SpherePoints(rng(1), 3, 5)) })
	_, err := k.Blocks(Normals(rng(1), 3, 4), x)
	require.ErrorContains(t, err, "norm")
	b, err := k.Blocks(x, x)
	require.NoError(t, err)
	require.Panics(t, func() { b.At([]float64{1, 2}) })
}

func TestDeepKernelOfOneLayerIsTheTangent(t *testing.T) {
	g := rng(3)
	k := tangent(t, "tanh", "softplus")
	x := SpherePoints(g, 5, 4)
	b, err := k.Blocks(x, x)
	require.NoError(t, err)
	rho := new(mat.Dense)
	rho.Mul(x, x.T())
	alpha := []float64{0.3, 0.7}
	deep, err := Deep{k.Activations, 1, 1}.Kernel(alpha, rho)
	require.NoError(t, err)
	require.True(t, mat.EqualApprox(b.At(alpha), deep, 1e-12))
}

// The identity's deep network is linear: Σ_l = s^{2(l−1)}ρ, Θ_D = D s^{2(D−1)}ρ.
func TestDeepKernelOfLinearLayers(t *testing.T) {
	rho := mat.NewDense(1, 2, []float64{1, 0.4})
	k, err := Deep{named(t, "identity"), 5, 1.5}.Kernel([]float64{1}, rho)
	require.NoError(t, err)
	want := 5 * math.Pow(1.5, 8)
	require.InEpsilon(t, want, k.At(0, 0), 1e-10)
	require.InEpsilon(t, 0.4*want, k.At(0, 1), 1e-10)
	all, err := Deep{named(t, "identity"), 5, 1.5}.Kernels([]float64{1}, rho)
	require.NoError(t, err)
	require.InEpsilon(t, 3*math.Pow(1.5, 4), all[2].At(0, 0), 1e-10, "depth 3 on the way to 5")
	_, err = Deep{named(t, "identity"), 400, 1e3}.Kernel([]float64{1}, rho)
	require.ErrorContains(t, err, "variance")
	_, err = Deep{named(t, "softplus"), 8, 4}.Kernel([]float64{1}, rho)
	require.ErrorContains(t, err, "smaller gain", "softplus of a large variance has a step for its slope")
}

func deepWeights(g *rand.Rand, depth, k, d int) ([]*mat.Dense, []float64) {
	weights := []*mat.Dense{Normals(g, k, d)}
	for range depth - 1 {
		weights = append(weights, Normals(g, k, k))
	}
	signs := make([]float64, k)
	for r := range signs {
		signs[r] = 1 - 2*float64(r%2)
	}
	return weights, signs
}

func TestDeepWideKernelIsThatOfTheNetwork(t *testing.T) {
	g := rng(4)
	d := Deep{named(t, "tanh", "sin"), 3, 1.3}
	alpha, k := []float64{0.4, 0.6}, 4
	x := SpherePoints(g, 2, 3)
	weights, signs := deepWeights(g, 3, k, 3)
	network := func(i int) (f float64) {
		h := mat.VecDenseCopyOf(x.RowView(i))
		for l, w := range weights {
			z := mat.NewVecDense(k, nil)
			z.MulVec(w, h)
			if l > 0 {
				z.ScaleVec(1.3/2, z)
			}
			for r := range k {
				v, _ := Mixture{d.Activations, alpha}.Eval(z.AtVec(r))
				z.SetVec(r, v)
			}
			h = z
		}
		for r, s := range signs {
			f += s / 2 * h.AtVec(r)
		}
		return f
	}
	want := mat.NewDense(2, 2, nil)
	for _, w := range weights {
		for p := range w.RawMatrix().Data {
			var grad [2]float64
			for i := range grad {
				at := w.RawMatrix().Data[p]
				w.RawMatrix().Data[p] = at + 1e-5
				up := network(i)
				w.RawMatrix().Data[p] = at - 1e-5
				grad[i] = (up - network(i)) / 2e-5
				w.RawMatrix().Data[p] = at
			}
			for i := range 2 {
				for j := range 2 {
					want.Set(i, j, want.At(i, j)+grad[i]*grad[j])
				}
			}
		}
	}
	got := d.WideKernel(alpha, x, weights, signs)
	require.True(t, mat.EqualApprox(want, got, 1e-7))
}

func TestDeepWideKernelApproachesItsLimit(t *testing.T) {
	g := rng(5)
	d := Deep{named(t, "tanh", "softplus"), 3, 1.2}
	alpha := []float64{0.5, 0.5}
	x := SpherePoints(g, 3, 4)
	rho := new(mat.Dense)
	rho.Mul(x, x.T())
	limit, err := d.Kernel(alpha, rho)
	require.NoError(t, err)
	mean := mat.NewDense(3, 3, nil)
	const draws = 20
	for range draws {
		weights, signs := deepWeights(g, 3, 300, 4)
		k := d.WideKernel(alpha, x, weights, signs)
		mean.Add(mean, k)
	}
	mean.Scale(1.0/draws, mean)
	require.InDelta(t, 1, mat.Norm(mean, 2)/mat.Norm(limit, 2), 0.02)
	mean.Sub(mean, limit)
	require.Less(t, mat.Norm(mean, 2), 0.03*mat.Norm(limit, 2))
}
