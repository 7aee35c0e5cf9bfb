package bilevel

import (
	"math"
	"testing"

	_ "github.com/nasml/lab/nasml/internal/steady"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"
)

// Three gradients of two weights, each weight a list entry of its own shape;
// the expected weights are those of PyTorch 2.15 in float64.
var steps = [][]float64{{2, -0.3}, {2, 0}, {-1, 4}}

func two(g *Graph, x []float64) []*Node {
	return []*Node{Const(g, x[0]), Const(g, [][]float64{{x[1]}})} // a scalar and a [1, 1]
}

func requireSteps(t *testing.T, want [][]float64, walk func(g *Graph, x []*Node) [][]*Node) {
	t.Helper()
	got := run(t, func(in []*Node) []*Node {
		var all []*Node
		for _, x := range walk(in[0].Graph(), two(in[0].Graph(), []float64{1, -2})) {
			all = append(all, x...)
		}
		return all
	}, 0.0)
	for i := range want {
		require.InDelta(t, want[i][0], got[2*i][0], 1e-12, "step %d", i)
		require.InDelta(t, want[i][1], got[2*i+1][0], 1e-12, "step %d", i)
	}
}

// By hand, first weight: v = 2 + 0.1, w = 1 − 0.5·2.1 = −0.05; v = 0.9·2.1 +
// 2 − 0.005 = 3.885, w = −0.05 − 1.9425 = −1.9925. Nesterov: w = 1 − 0.5(2.1 +
// 0.9·2.1) = −0.995.
func TestSGDAgainstPyTorch(t *testing.T) {
	for nesterov, want := range map[bool][][]float64{
		false: {{-0.05, -1.75}, {-1.9925, -1.4375}, {-3.141125, -3.084375}},
		true:  {{-0.995, -1.525}, {-3.650975, -1.177625}, {-3.889284875, -4.621738125}},
	} {
		requireSteps(t, want, func(g *Graph, w []*Node) (all [][]*Node) {
			sgd, v := SGD{Momentum: 0.9, WeightDecay: 0.1, Nesterov: nesterov}.Rule(), each(w, ZerosLike)
			for _, step := range steps {
				w, v = sgd.Step("SGD", Move{Params: w, Grads: two(g, step), Slots: v, Rate: Const(g, 0.5)})
				all = append(all, w)
			}
			return all
		})
	}
}

func TestZeroSGDIsPlainDescent(t *testing.T) {
	requireSteps(t, [][]float64{{0, -1.85}}, func(g *Graph, w []*Node) [][]*Node {
		rate := Const(g, float32(0.5)) // of another float type
		w, _ = SGD{}.Rule().Step("SGD", Move{Params: w, Grads: two(g, steps[0]), Slots: each(w, ZerosLike), Rate: rate})
		return [][]*Node{w}
	})
}

func TestAdamAgainstPyTorch(t *testing.T) {
	for adam, want := range map[Adam][][]float64{
		{Beta1: 0.5, Beta2: 0.999, WeightDecay: 1e-3}: {
			{0.970000000149925, -1.97000000099338},
			{0.940000075151274, -1.95567008306975},
			{0.935035606332567, -1.98469725730047},
		},
		{Beta2: 0.9, Epsilon: 1e-3}: {
			{0.970014992503748, -1.97009966777409},
			{0.940029985007496, -1.97009966777409},
			{0.95765756152398, -2.01935355115904},
		},
	} {
		requireSteps(t, want, func(g *Graph, x []*Node) (all [][]*Node) {
			slots := []*Node{ZerosLike(x[0]), ZerosLike(x[0]), ZerosLike(x[1]), ZerosLike(x[1])}
			for i, step := range steps {
				m := Move{Params: x, Grads: two(g, step), Slots: slots, Done: Const(g, float64(i))}
				x, slots = adam.Rule().At(0.03).Step("Adam", m)
				all = append(all, x)
			}
			return all
		})
	}
}

// In float32 1 − 0.999 has a relative error of 1.3e-5, which expm1 avoids; and
// an operation whose gradient is exactly 0 must stay where it is.
func TestAdamInSinglePrecision(t *testing.T) {
	out, err := ExecOnce(goBackend(t), func(x *Node) *Node {
		zero := ZerosLike(x)
		none := []*Node{zero}
		x2, _ := DARTSAdam.Rule().At(1).Step("Adam", Move{
			Params: none, Grads: []*Node{x}, Slots: []*Node{zero, zero}, Done: Const(x.Graph(), int32(0)),
		})
		return x2[0]
	}, []float32{0.37, 0})
	require.NoError(t, err)
	got := out.Value().([]float32)
	require.InDelta(t, -1/(1+1e-8/0.37), float64(got[0]), 3e-7)
	require.Zero(t, got[1])
}

// In float32, late and early: one step from moments as float64 has them moves as
// far as in float64. 1 − exp(t log β) instead of expm1 would be off by 7e-6.
func TestAdamsCorrectionsInSinglePrecision(t *testing.T) {
	adam, g := Adam{Beta1: 0.9, Beta2: 0.999}, []float32{0.37, -2, 1e-3}
	for _, done := range []float64{0, 1, 4, 9, 99, 999, 9999} {
		m, v := make([]float32, len(g)), make([]float32, len(g))
		for i, x := range g { // of a constant gradient, so that m̂ = g and v̂ = g²
			m[i] = x * float32(-math.Expm1(done*math.Log(adam.Beta1)))
			v[i] = x * x * float32(-math.Expm1(done*math.Log(adam.Beta2)))
		}
		out, err := ExecOnce(goBackend(t), func(g, m, v *Node) *Node {
			x2, _ := adam.Rule().At(1).Step("Adam", Move{
				Params: []*Node{ZerosLike(g)}, Grads: []*Node{g}, Slots: []*Node{m, v}, Done: Const(g.Graph(), done),
			})
			return x2[0]
		}, g, m, v)
		require.NoError(t, err)
		for i, x := range out.Value().([]float32) {
			size := math.Abs(float64(g[i]))
			require.InDelta(t, -float64(g[i])/(size+1e-8), float64(x), 4e-7, "t = %v, gradient %v", done+1, g[i])
		}
	}
}

func TestClipGlobalNorm(t *testing.T) {
	clip := func(most float64, x, y []float64) []float64 {
		return concat(run(t, func(in []*Node) []*Node { return ClipGlobalNorm(in, most) }, x, y)...)
	}
	require.InDeltaSlice(t, []float64{3 * 2.5 / (5 + 1e-6), 0, 4 * 2.5 / (5 + 1e-6)},
		clip(2.5, []float64{3, 0}, []float64{4}), 1e-15)
	require.Equal(t, []float64{3, 0, 4}, clip(5.1, []float64{3, 0}, []float64{4}))
	require.Equal(t, []float64{0, 0, 0}, clip(1, []float64{0, 0}, []float64{0}))
	for _, x := range clip(5, []float64{1, math.NaN()}, []float64{1}) {
		require.True(t, math.IsNaN(x), "as in PyTorch, one NaN makes all of them NaN")
	}
	require.ErrorContains(t, fails(t, func(in []*Node) *Node { return ClipGlobalNorm(in, 0)[0] }, []float64{1}),
		"the largest norm must be above 0, got 0")
	require.ErrorContains(t, fails(t, func(in []*Node) *Node { return ClipGlobalNorm(in[:0], 1)[0] }, []float64{1}),
		"an empty list")
}

func TestClipJointlyCountsTheArchitecture(t *testing.T) {
	out := run(t, func(in []*Node) []*Node {
		w, theta := clipJointly(in[:1], in[1:], 1)
		return append(w, theta...)
	}, []float64{3}, []float64{4})
	require.InDeltaSlice(t, []float64{3 / (5 + 1e-6), 4 / (5 + 1e-6)}, concat(out...), 1e-15)
}

func TestClippedNormIsAtMostTheLimit(t *testing.T) {
	backend := goBackend(t)
	const most = 2.0
	exec, err := NewExec(backend, func(x *Node) *Node { return ClipGlobalNorm([]*Node{x}, most)[0] })
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 4, 4).Draw(t, "gradient")
		out, err := exec.Call1(x)
		require.NoError(t, err)
		y := out.Value().([]float64)
		require.LessOrEqual(t, floats.Norm(y, 2), most)
		require.InDelta(t, floats.Norm(x, 2)*floats.Norm(y, 2), floats.Dot(x, y), 1e-9*(1+floats.Dot(x, y)),
			"the direction stays")
	})
}

func TestCosine(t *testing.T) {
	require.Equal(t, 0.025, Cosine(0.025, 0.001, 0, 50))
	require.InDelta(t, 0.013, Cosine(0.025, 0.001, 25, 50), 1e-17)
	require.InDelta(t, 0.001, Cosine(0.025, 0.001, 50, 50), 1e-17)
	require.InDelta(t, 0.05, Cosine(0.05, 0.0005, 20, 10), 1e-16, "T_max 10: up again at epoch 20")
	require.Panics(t, func() { Cosine(1, 0, 0, 0) })
}
