package simplex

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// xnasStep is XNAS.Step, compiled once.
func xnasStep(t *testing.T, x XNAS) func(theta [][]float64, grads [][][]float64, done int) [][]float64 {
	exec, err := NewExec(goBackend(t), x.Step)
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return func(theta [][]float64, grads [][][]float64, done int) [][]float64 {
		out, err := exec.Call1(theta, grads, int32(done))
		require.NoError(t, err)
		return out.Value().([][]float64)
	}
}

func TestXNASClipsEachExample(t *testing.T) {
	// Nine examples want operation 0 less, one very much more. Clipped, the
	// nine win: the sign of the step is not that of the mean gradient.
	grads := make([][][]float64, 10)
	mean := 0.0
	for b := range grads {
		grads[b] = [][]float64{{0.2, 0}}
		if b == 9 {
			grads[b][0][0] = -5
		}
		mean += grads[b][0][0] / 10
	}
	require.InDelta(t, -0.32, mean, 1e-12)
	theta := [][]float64{{0.5, 0.5}}

	const clipped = 9*0.2 - 0.25
	summed := xnasStep(t, XNAS{Steps: 100, Bound: 0.25, Eta: 0.1, KeepAll: true})(theta, grads, 0)
	require.InDelta(t, 1/(1+math.Exp(0.1*clipped)), summed[0][0], 1e-14)
	averaged := xnasStep(t, XNAS{Steps: 100, Bound: 0.25, Eta: 0.1, KeepAll: true, Mean: true})(theta, grads, 0)
	require.InDelta(t, 1/(1+math.Exp(0.01*clipped)), averaged[0][0], 1e-14)
}

func TestXNASWipesOutByHand(t *testing.T) {
	// One example, L = 1, η = 0.5, T = 4. A step changes a ratio of two weights
	// by at most exp(2ηL) = e.
	x := XNAS{Steps: 4, Eta: 0.5}
	take := xnasStep(t, x)
	grads := [][][]float64{{{-7, 1, 0, 0}, {1, 1, 1, 1}}} // −7 is clipped to −1
	theta := [][]float64{{math.Exp(-1), math.Exp(-3.9), math.Exp(-4.1), 0}, {0.4, 0.3, 0.2, 0.1}}
	total := sum(theta[0])
	for o := range theta[0] {
		theta[0][o] /= total
	}

	// After the step the logarithms are −0.5, −4.4, −4.1, −∞; after the first
	// of four steps 3 are left: out is what is below −3.5.
	next := take(theta, grads, 0)
	require.Equal(t, []float64{1, 0, 0, 0}, next[0])
	require.InDeltaSlice(t, theta[1], next[1], 1e-15, "all within e³")

	// One step longer to go, 4 left: out is what is below −4.5.
	next = xnasStep(t, XNAS{Steps: 5, Eta: 0.5})(theta, grads, 0)
	v := []float64{math.Exp(-0.5), math.Exp(-4.4), math.Exp(-4.1), 0}
	total = sum(v)
	require.InDeltaSlice(t, []float64{v[0] / total, v[1] / total, v[2] / total, 0}, next[0], 1e-14)

	// At the last step only the best is left, or those tied for it.
	next = take([][]float64{{0.4, 0.3, 0.2, 0.1}, {0.4, 0.4, 0.1, 0.1}}, [][][]float64{{{0, 0, 0, 0}, {0, 0, 0, 0}}}, 3)
	require.Equal(t, [][]float64{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}}, next)

	// A search that goes on for longer keeps its best operations.
	next = take([][]float64{{0.4, 0.3, 0.2, 0.1}}, [][][]float64{{{0, 0, 0, 0}}}, 9)
	require.Equal(t, []float64{1, 0, 0, 0}, next[0])

	// What is out stays out, whatever its gradient.
	next = xnasStep(t, XNAS{Steps: 4000, Eta: 0.5})([][]float64{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}},
		[][][]float64{{{9, -9, 0, 0}, {0, 0, -9, -9}}}, 0)
	require.Equal(t, [][]float64{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}}, next)
}

// The theorem behind the wipe-out: with clipped gradients it never changes the
// arg max at the end, though it takes most operations out.
func TestXNASWipeOutNeverChangesTheWinner(t *testing.T) {
	const edges, options, batch, steps = 100, 6, 3, 12
	rng := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []bool{false, true} {
		with := xnasStep(t, XNAS{Steps: steps, Mean: mean})
		without := xnasStep(t, XNAS{Steps: steps, Mean: mean, KeepAll: true})
		a := Product{{"edges", edges, options}}.Uniform()[0]
		b, early := a, 0.0
		for done := range steps {
			grads := make([][][]float64, batch)
			for i := range grads {
				grads[i] = mapRows(a, func(e int, _, out []float64) {
					for o := range out { // edges lean by their number, some a lot
						out[o] = rng.NormFloat64() + float64(e*o)/100
					}
				})
			}
			a, b = with(a, grads, done), without(b, grads, done)
			if done == steps-2 {
				early = sparsity(a, 1e-300)
			}
		}
		for e := range a {
			best := slices.Max(b[e])
			require.Equal(t, slices.Index(b[e], best), slices.Index(a[e], slices.Max(a[e])), "edge %d: %v and %v", e,
				a[e], b[e])
		}
		require.Greater(t, early, 0.02, "nothing was wiped out before the last step")
		require.InDelta(t, 5.0/6, sparsity(a, 1e-300), 1e-9, "only the best are left")
		require.Zero(t, sparsity(b, 1e-300))
	}
}

func TestXNASRate(t *testing.T) {
	// 50 epochs of 25,000 examples in batches of 100, 8 operations, L = 2.
	x := XNAS{Steps: 50 * 250, Bound: 2}
	require.InDelta(t, math.Sqrt(2*math.Log(8)/(50*25000*4)), x.Rate(8, 100), 1e-15)
	x.Mean = true
	require.InDelta(t, math.Sqrt(2*math.Log(8)/(50*250*4)), x.Rate(8, 100), 1e-15)
	x.Eta = 0.3
	require.Equal(t, 0.3, x.Rate(8, 100))
}

func TestXNASRefusesWhatDoesNotFit(t *testing.T) {
	run := func(x XNAS, theta, grads, done any) error {
		_, err := ExecOnce(goBackend(t), x.Step, theta, grads, done)
		return err
	}
	theta, grads := [][]float64{{0.5, 0.5}}, [][][]float64{{{1, 2}}}
	require.NoError(t, run(XNAS{Steps: 5}, theta, grads, 0.0))
	require.ErrorContains(t, run(XNAS{}, theta, grads, 0.0), "Steps is 0")
	require.ErrorContains(t, run(XNAS{Steps: 5, Bound: -1}, theta, grads, 0.0), "Bound is -1")
	require.ErrorContains(t, run(XNAS{Steps: 5, Eta: math.NaN()}, theta, grads, 0.0), "Eta is NaN")
	err := run(XNAS{Steps: 5}, theta, [][]float64{{1, 2}}, 0.0)
	require.ErrorContains(t, err, "[1, 2], grads (Float64)[1, 2]")
	require.Error(t, run(XNAS{Steps: 5}, theta, grads, []float64{0}))
	require.Error(t, run(XNAS{Steps: 5}, theta, [][][]float64{{{1, 2, 3}}}, 0.0))
}

func TestXNASDoesNotHideNaN(t *testing.T) {
	next := xnasStep(t, XNAS{Steps: 5})([][]float64{{0.5, 0.5, 0}, {0.5, 0.5, 0}},
		[][][]float64{{{1, 2, math.NaN()}, {1, 2, 3}}}, 0)
	require.True(t, math.IsNaN(sum(next[0])))
	require.InDelta(t, 1, sum(next[1]), 1e-15)
}

// sparsity is the share of the entries of θ below a threshold, in [0, 1]. It
// is NaN if there is no entry.
func sparsity(theta [][]float64, below float64) float64 {
	var few, all float64
	for _, row := range theta {
		for _, x := range row {
			all++
			if x < below {
				few++
			}
		}
	}
	return few / all
}
