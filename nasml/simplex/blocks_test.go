package simplex

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a point of a space, from the interior.
func drawn(rng *rand.Rand, s Space, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		switch s.(type) {
		case Euclidean:
			x[i] = rng.NormFloat64()
		case Box:
			x[i] = 2*rng.Float64() - 1
		default:
			x[i] = rng.ExpFloat64()
		}
	}
	switch s.(type) {
	case Entropic, FlatSimplex:
		total := sum(x)
		for i := range x {
			x[i] /= total
		}
	}
	return x
}

var spaces = map[string]Space{
	"euclidean": Euclidean{}, "box": Box{Lo: -1, Hi: 1}, "entropic": Entropic{}, "flat simplex": FlatSimplex{},
}

// The step is the proximal step: no other point of the space is better.
func TestStepOfASpaceIsProximal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, s := range spaces {
		for range 20 {
			x, g, eta := drawn(rng, s, 5), drawn(rng, Euclidean{}, 5), 3*rng.Float64()
			objective := func(u []float64) float64 { return eta*dot(g, u) + s.Divergence(u, x) }
			next := slices.Clone(x)
			s.Step(next, g, eta)
			least := objective(next)
			for range 300 {
				other, toward := drawn(rng, s, 5), math.Exp(-8*rng.Float64())
				for i := range other {
					other[i] = next[i] + toward*(other[i]-next[i])
				}
				require.GreaterOrEqual(t, objective(other), least-1e-12, name)
			}
		}
	}
}

// D ≥ ½‖u−x‖² in the space's own norm, and the dual norm is dual: no direction
// gives more, and one gives as much.
func TestNormsOfASpace(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for name, s := range spaces {
		tight := math.Inf(1)
		for range 3000 {
			u, x, g := drawn(rng, s, 3), drawn(rng, s, 3), drawn(rng, Euclidean{}, 3)
			d := []float64{u[0] - x[0], u[1] - x[1], u[2] - x[2]}
			tight = math.Min(tight, s.Divergence(u, x)/(s.Norm(d)*s.Norm(d)))
			require.LessOrEqual(t, dot(g, d), s.DualNorm(g)*s.Norm(d)*(1+1e-12), name)
		}
		require.GreaterOrEqual(t, tight, 0.5-1e-12, name)
		require.Less(t, tight, 0.52, "%s: the constant is the best one", name)
		g := []float64{0.3, -2, 1}
		best := slices.Clone(g)
		if name == "entropic" {
			best = []float64{0, -1, 0}
		}
		require.InDelta(t, s.DualNorm(g), dot(g, best)/s.Norm(best), 1e-12, name)
	}
}

func TestEntropicStepIsEGOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theta := drawRow(5).Draw(t, "theta")
		grad := rapid.SliceOfN(rapid.Float64Range(-50, 50), 5, 5).Draw(t, "grad")
		eta := rapid.Float64Range(0, 5).Draw(t, "eta")
		want := EGOf([][]float64{theta}, [][]float64{grad}, eta)[0]
		got := slices.Clone(theta)
		Entropic{}.Step(got, grad, eta)
		for o := range got {
			require.InDelta(t, want[o], got[o], 1e-13)
			require.Equal(t, theta[o] == 0, got[o] == 0, "0 stays 0 and positive stays positive")
		}
		require.InDelta(t, 1, sum(got), 1e-13)
	})
}

// T steps on ⟨c, θ⟩ from the uniform point are softmax(−Tηc).
func TestEntropicStepsOnALinearFunction(t *testing.T) {
	c, theta := []float64{0.3, -0.2, 1, 0}, []float64{0.25, 0.25, 0.25, 0.25}
	for range 400 {
		Entropic{}.Step(theta, c, 0.1)
	}
	require.InDeltaSlice(t, PhiConjugateGradient([][]float64{{-12, 8, -40, 0}})[0], theta, 1e-12)
	for range 100000 {
		Entropic{}.Step(theta, c, 1)
	}
	require.Equal(t, 0x1p-1022, theta[2], "not lost")
	theta[1] = 1
	Entropic{}.Step(theta, []float64{0, 0, math.NaN(), 0}, 1)
	require.True(t, math.IsNaN(sum(theta)), "NaN is not hidden")
}

// The conditions of optimality: what is kept lies τ below y, what is dropped
// at most τ.
func TestProjectOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-2, 2), rapid.Float64Range(-1e9, 1e9)), 1, 12).Draw(t, "y")
		p := slices.Clone(y)
		project(p)
		scale := 1 + largest(y)*1e-15
		require.InDelta(t, 1, sum(p), 1e-12*scale*float64(len(y)))
		tau := math.Inf(1)
		for i := range p {
			require.GreaterOrEqual(t, p[i], 0.0)
			if p[i] > 0 {
				tau = math.Min(tau, y[i]-p[i])
			}
		}
		for i := range p {
			if p[i] > 0 {
				require.InDelta(t, tau, y[i]-p[i], 1e-6*scale)
			} else {
				require.LessOrEqual(t, y[i], tau+1e-6*scale)
			}
		}
	})
	for _, c := range []struct{ y, want []float64 }{
		{[]float64{7}, []float64{1}},
		{[]float64{0.2, 0.8}, []float64{0.2, 0.8}},
		{[]float64{3, 3, -1}, []float64{0.5, 0.5, 0}},
		{[]float64{1e300, 0}, []float64{1, 0}},
	} {
		project(c.y)
		require.InDeltaSlice(t, c.want, c.y, 1e-15)
	}
	broken := []float64{math.NaN(), 1, 2}
	project(broken)
	require.True(t, math.IsNaN(sum(broken)))
}

// Two blocks are Algorithm 1, written out here, under the same random stream.
func TestBlockDescentIsAlgorithm1(t *testing.T) {
	gradient := func(x [][]float64) [][]float64 { // f = (w₀ + 2θ₀)²/2 + w₁ θ₁
		r := x[0][0] + 2*x[1][0]
		return [][]float64{{r, x[1][1]}, {2 * r, x[0][1], 0}}
	}
	const steps, eta = 200, 0.05
	d := BlockDescent{Spaces: []Space{Euclidean{}, Entropic{}}}
	x := [][]float64{{1, 0.5}, {0.2, 0.3, 0.5}}
	var visited []float64
	moved := [2]int{}
	oracle := func(_ int, block []int, x, grad [][]float64) error {
		g := gradient(x)
		copy(grad[block[0]], g[block[0]])
		moved[block[0]]++
		return nil
	}
	require.NoError(t, d.Run(x, steps, func(int) float64 { return eta }, rand.New(rand.NewPCG(5, 6)), oracle,
		func(step int, x [][]float64) error {
			require.Len(t, visited, step)
			visited = append(visited, x[0][0])
			return nil
		}))

	rng := rand.New(rand.NewPCG(5, 6))
	w, theta := []float64{1, 0.5}, [][]float64{{0.2, 0.3, 0.5}}
	for step := range steps {
		require.InDelta(t, visited[step], w[0], 1e-12, "visited before the step")
		g := gradient([][]float64{w, theta[0]})
		if rng.IntN(2) == 0 {
			w = []float64{w[0] - eta*g[0][0], w[1] - eta*g[0][1]}
		} else {
			theta = EGOf(theta, [][]float64{g[1]}, eta)
		}
	}
	require.InDeltaSlice(t, w, x[0], 1e-12)
	require.InDeltaSlice(t, theta[0], x[1], 1e-12)
	require.InDelta(t, steps/2, moved[0], 4*math.Sqrt(steps)/2, "each block half of the time")
	require.Equal(t, steps, moved[0]+moved[1])
}

func TestBlockDescentTakesBlocksInTurnOrTogether(t *testing.T) {
	ones := func(_ int, _ []int, _, grad [][]float64) error {
		for _, g := range grad {
			g[0] = 1
		}
		return nil
	}
	three := []Space{Euclidean{}, Euclidean{}, Euclidean{}}
	unit := func(int) float64 { return 1 }
	x := [][]float64{{0}, {0}, {0}}
	require.NoError(t, BlockDescent{Spaces: three, Cyclic: true}.Run(x, 4, unit, nil, ones, nil))
	require.Equal(t, [][]float64{{-2}, {-1}, {-1}}, x)
	x = [][]float64{{0}, {0}, {0}}
	require.NoError(t, BlockDescent{Spaces: three, Blocks: [][]int{{0, 2}, {1}}, Cyclic: true}.Run(x, 3,
		func(t int) float64 { return float64(t + 1) }, nil, ones, nil))
	require.Equal(t, [][]float64{{-4}, {-2}, {-4}}, x)
}

func TestBlockDescentRefusesWhatDoesNotFit(t *testing.T) {
	two := []Space{Euclidean{}, Euclidean{}}
	run := func(d BlockDescent, parts int) error {
		return d.Run(make([][]float64, parts), 3, func(int) float64 { return 1 }, rand.New(rand.NewPCG(1, 1)),
			func(int, []int, [][]float64, [][]float64) error { return errors.New("broken") }, nil)
	}
	require.ErrorContains(t, run(BlockDescent{Spaces: two}, 1), "1 parts and the domain 2")
	require.ErrorContains(t, run(BlockDescent{}, 0), "at least one")
	require.ErrorContains(t, run(BlockDescent{Spaces: two, Blocks: [][]int{{0}}}, 2), "space 1 is in 0 blocks")
	require.ErrorContains(t, run(BlockDescent{Spaces: two, Blocks: [][]int{{0, 1, 0}}}, 2), "space 0 is in 2 blocks")
	require.ErrorContains(t, run(BlockDescent{Spaces: two, Blocks: [][]int{{0, 2}}}, 2), "space 2 of 2")
	require.ErrorContains(t, run(BlockDescent{Spaces: two}, 2), "broken")
}

// Claim 2 of Li+ for two blocks: ½‖·‖_*² is the conjugate of ½‖·‖².
func TestProductDualNormIsTheConjugate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	parts := []Space{Euclidean{}, Entropic{}}
	for range 20 {
		g := [][]float64{drawn(rng, Euclidean{}, 2), drawn(rng, Euclidean{}, 2)}
		want, best := ProductDualNorm(parts, g), 0.0
		for range 20000 {
			x := [][]float64{drawn(rng, Euclidean{}, 2), drawn(rng, Euclidean{}, 2)}
			best = math.Max(best, (dot(g[0], x[0])+dot(g[1], x[1]))/ProductNorm(parts, x))
		}
		require.LessOrEqual(t, best, want*(1+1e-12))
		require.Greater(t, best, 0.97*want)
	}
}

// Near-ties, where rounding could make the support of Michelot's algorithm grow
// again: it must end.
func TestProjectOfEndsOnNearTies(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 20000 {
		y := slices.Repeat([]float64{1.0 / 64}, 64)
		for range 3 {
			for i := range y {
				y[i] += 0.003 * float64(2*rng.IntN(2)-1)
			}
			project(y)
		}
		require.InDelta(t, 1, sum(y), 1e-12)
	}
}
