package simplex

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func goBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// step is an update at one step size, compiled once for each shape.
func step(t *testing.T, update Update, eta float64) func(theta, grad [][]float64) [][]float64 {
	exec, err := NewExec(goBackend(t), func(theta, grad *Node) *Node { return update(theta, grad, eta) })
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return func(theta, grad [][]float64) [][]float64 {
		out, err := exec.Call1(theta, grad)
		require.NoError(t, err)
		return out.Value().([][]float64)
	}
}

// once is an update of one row.
func once(t *testing.T, update Update, theta, grad []float64, eta float64) []float64 {
	return step(t, update, eta)([][]float64{theta}, [][]float64{grad})[0]
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func sum(x []float64) float64 { return dot(x, slices.Repeat([]float64{1}, len(x))) }

// drawRow draws a point of a simplex, with weights of exactly 0 and very small
// ones among the others.
func drawRow(options int) *rapid.Generator[[]float64] {
	return rapid.Custom(func(t *rapid.T) []float64 {
		weight := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-300, 1e-290), rapid.Float64Range(0.01, 1))
		row := rapid.SliceOfN(weight, options, options).Draw(t, "weights")
		row[rapid.IntRange(0, options-1).Draw(t, "positive")] = 1
		total := sum(row)
		for i := range row {
			row[i] /= total
		}
		return row
	})
}

func drawGradient(options int) *rapid.Generator[[]float64] {
	usual := rapid.Float64Range(-3, 3)
	any := rapid.OneOf(usual, rapid.Float64Range(-1e300, 1e300), rapid.SampledFrom([]float64{0, 1, -1e38, 1e38}))
	return rapid.OneOf(rapid.SliceOfN(usual, options, options), rapid.SliceOfN(any, options, options))
}

// What must hold for every update of the library, for any θ, gradient and step.
func TestUpdatesStayOnTheSimplex(t *testing.T) {
	const options = 5
	for name, update := range Updates {
		for _, eta := range []float64{0, 0.1, 1e6} {
			take := step(t, update, eta)
			rapid.Check(t, func(rt *rapid.T) {
				theta := drawRow(options).Draw(rt, "theta")
				grad := drawGradient(options).Draw(rt, "grad")
				next := take([][]float64{theta}, [][]float64{grad})[0]
				for o, x := range next {
					if !(x >= 0 && x <= 1) {
						rt.Fatalf("%s, η = %v: θ' = %v", name, eta, next)
					}
					if theta[o] == 0 && (name == "eg" || name == "softmax") && x != 0 {
						rt.Fatalf("%s revived operation %d: %v", name, o, next)
					}
					if theta[o] > 0 && (name == "eg" || name == "softmax") && x == 0 {
						rt.Fatalf("%s lost operation %d: %v", name, o, next)
					}
				}
				over := 0.0
				if name == "eg-normalize-clamp" {
					over = clampAt * (options - 1)
				}
				if s := sum(next); s < 1-1e-12 || s > 1+over+1e-12 {
					rt.Fatalf("%s, η = %v: sum %v", name, eta, s)
				}
				size := slices.Max([]float64{slices.Max(grad), -slices.Min(grad)})
				clamps := name == "eg-clamp-normalize" || name == "eg-normalize-clamp"
				// softmax moves by g − ⟨g, θ⟩. Where that is the rounding of two
				// equal numbers and η makes it a step of size 1, no direction is left.
				rounded := name == "softmax" && eta*size*0x1p-52 > 1e-6
				if !clamps && !rounded && dot(grad, next) > dot(grad, theta)+1e-12*size {
					rt.Fatalf("%s, η = %v ascends: %v to %v", name, eta, dot(grad, theta), dot(grad, next))
				}
			})
		}
	}
}

func TestUpdatesAreFiniteInFloat32(t *testing.T) {
	thetas := [][]float32{{1, 0, 0, 0}, {0.25, 0.25, 0.25, 0.25}, {1e-38, 0, 1, 1e-30}}
	grads := [][]float32{{1e38, -1e38, 0, 1}, {-1e38, 1e38, -1e38, 3}, {1e38, -1e38, 1e38, -1}}
	for name, update := range Updates {
		for _, eta := range []float64{0, 0.1, 1e30} {
			out, err := ExecOnce(goBackend(t), func(theta, grad *Node) *Node { return update(theta, grad, eta) },
				thetas, grads)
			require.NoError(t, err)
			for _, row := range out.Value().([][]float32) {
				total := float32(0)
				for _, x := range row {
					total += x
				}
				require.InDelta(t, 1, total, 1e-4, "%s, η = %v: %v", name, eta, row)
			}
		}
	}
}

func TestUpdatesDoNotHideNaN(t *testing.T) {
	theta := [][]float64{{0.5, 0.5, 0}, {0.5, 0.25, 0.25}}
	for name, update := range Updates {
		for option := range 3 { // also where the operation is out
			grad := [][]float64{{1, 2, 3}, {1, 2, 3}}
			grad[0][option] = math.NaN()
			next := step(t, update, 0.1)(theta, grad)
			require.True(t, math.IsNaN(sum(next[0])), "%s with NaN at %d: %v", name, option, next[0])
			require.False(t, math.IsNaN(sum(next[1])), "%s: the other row became %v", name, next[1])
			require.Error(t, Check(next, 1e-4))
		}
	}
}

func TestUpdatesTakeAnyLeadingAxes(t *testing.T) {
	for name, update := range Updates {
		flat := step(t, update, 0.3)([][]float64{{0.2, 0.8}, {0.5, 0.5}}, [][]float64{{1, -1}, {0, 2}})
		exec := func(theta, grad any) any {
			out, err := ExecOnce(goBackend(t), func(theta, grad *Node) *Node { return update(theta, grad, 0.3) }, theta,
				grad)
			require.NoError(t, err)
			return out.Value()
		}
		require.Equal(t, [][][]float64{{flat[0]}, {flat[1]}},
			exec([][][]float64{{{0.2, 0.8}}, {{0.5, 0.5}}}, [][][]float64{{{1, -1}}, {{0, 2}}}), name)
		require.Equal(t, flat[0], exec([]float64{0.2, 0.8}, []float64{1, -1}), name)
	}
}

func TestUpdatesRefuseWhatDoesNotFit(t *testing.T) {
	for name, update := range Updates {
		refuse := func(theta, grad any, eta float64) error {
			_, err := ExecOnce(goBackend(t), func(theta, grad *Node) *Node { return update(theta, grad, eta) }, theta,
				grad)
			return err
		}
		err := refuse([]float64{0.5, 0.5}, []float64{1, 2, 3}, 0.1)
		require.ErrorContains(t, err, "[2]", name)
		require.ErrorContains(t, err, "[3]", name)
		require.Error(t, refuse([]float64{0.5, 0.5}, []float32{1, 2}, 0.1), name)
		require.ErrorContains(t, refuse([]float64{0.5, 0.5}, []float64{1, 2}, -0.1), "-0.1", name)
		require.ErrorContains(t, refuse([]float64{0.5, 0.5}, []float64{1, 2}, math.NaN()), "NaN", name)
	}
	require.NoError(t, CheckUpdate("eg"))
	require.ErrorContains(t, CheckUpdate("adam"), "eg-clamp-normalize")
}

// T steps on ⟨c, θ⟩ from the uniform point end at softmax(−Tηc).
func TestEGOnALinearFunction(t *testing.T) {
	c := []float64{0.3, -1.2, 0.7, 0}
	const eta, steps = 0.1, 200
	take := step(t, EG, eta)
	theta := [][]float64{{0.25, 0.25, 0.25, 0.25}}
	for range steps {
		theta = take(theta, [][]float64{c})
	}
	want := PhiConjugateGradient([][]float64{
		{-steps * eta * c[0], -steps * eta * c[1], -steps * eta * c[2], -steps * eta * c[3]},
	})
	require.InDeltaSlice(t, want[0], theta[0], 1e-12)
}

func TestEGDoesNotSeeAShiftOfARow(t *testing.T) {
	theta := []float64{0.1, 0.6, 0.3}
	want := once(t, EG, theta, []float64{1, 2, -3}, 0.1)
	require.InDeltaSlice(t, want, once(t, EG, theta, []float64{1001, 1002, 997}, 0.1), 1e-12)
}

// An operation that underflows in float32 must be able to come back, as in
// exact arithmetic: after 2000 steps down and 4000 up it leads.
func TestEGComesBackFromUnderflow(t *testing.T) {
	out, err := ExecOnceN(goBackend(t), func(theta, down *Node) []*Node {
		low := theta
		for range 20 {
			low = EG(low, down, 10)
		}
		high := low
		for range 40 {
			high = EG(high, Neg(down), 10)
		}
		return []*Node{low, high}
	}, []float32{0.5, 0.5}, []float32{1, 0})
	require.NoError(t, err)
	require.Equal(t, []float32{0x1p-126, 1}, out[0].Value())
	require.Equal(t, []float32{1, 0x1p-126}, out[1].Value())
}

func TestClampedVariantsByHand(t *testing.T) {
	theta, grad := []float64{0.5, 0.5 - 1e-6, 1e-6, 0}, []float64{1, -2, 0, -5}
	a, b := 0.5*math.Exp(-0.1), (0.5-1e-6)*math.Exp(0.2)

	// Clamped as a product, 1e-6 and 0 become 1e-5; then normalised.
	total := a + b + 2e-5
	require.InDeltaSlice(t, []float64{a / total, b / total, 1e-5 / total, 1e-5 / total},
		once(t, EGClampNormalize, theta, grad, 0.1), 1e-15)

	// Normalised, then clamped: the row sums to more than 1.
	total = a + b + 1e-6
	require.InDeltaSlice(t, []float64{a / total, b / total, 1e-5, 1e-5},
		once(t, EGNormalizeClamp, theta, grad, 0.1), 1e-15)

	// A mean gradient moves the clamp of the first but not of the second.
	up := []float64{101, 98, 100, 95}
	require.InDeltaSlice(t, []float64{0.25, 0.25, 0.25, 0.25}, once(t, EGClampNormalize, theta, up, 1), 1e-12)
	require.InDelta(t, 0.95, once(t, EGNormalizeClamp, theta, up, 1)[1], 0.01)
}

// projectBySorting is the textbook projection onto the simplex.
func projectBySorting(y []float64) []float64 {
	sorted := slices.Clone(y)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	tau, sum := 0.0, 0.0
	for k, v := range sorted {
		if sum += v; v-(sum-1)/float64(k+1) > 0 {
			tau = (sum - 1) / float64(k+1)
		}
	}
	out := make([]float64, len(y))
	for i := range y {
		out[i] = max(y[i]-tau, 0)
	}
	return out
}

func TestProjectedAgainstSorting(t *testing.T) {
	take := step(t, Projected, 0.5)
	rapid.Check(t, func(rt *rapid.T) {
		theta := drawRow(7).Draw(rt, "theta")
		grad := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-2, 2), rapid.SampledFrom([]float64{-1, 0, 1})), 7, 7).
			Draw(rt, "grad")
		y := make([]float64, 7)
		for i := range y {
			y[i] = theta[i] - 0.5*grad[i]
		}
		want, got := projectBySorting(y), take([][]float64{theta}, [][]float64{grad})[0]
		for i := range want {
			if math.Abs(want[i]-got[i]) > 1e-14 {
				rt.Fatalf("projection of %v: %v, want %v", y, got, want)
			}
		}
	})
	require.Equal(t, []float64{0, 1, 0}, once(t, Projected, []float64{0.3, 0.3, 0.4}, []float64{0, -1e20, 0}, 1))
}

// A step on logits, differentiated through the softmax by the graph.
func TestSoftmaxSGDIsSGDOnLogits(t *testing.T) {
	out, err := ExecOnceN(goBackend(t), func(z, c *Node) []*Node {
		theta := Softmax(z, -1)
		loss := ReduceAllSum(Add(Mul(c, theta), Mul(theta, Mul(theta, theta))))
		onTheta := Gradient(loss, theta)[0]
		zNext := Sub(z, MulScalar(Gradient(loss, z)[0], 0.7))
		return []*Node{SoftmaxSGD(theta, onTheta, 0.7), Softmax(zNext, -1)}
	}, [][]float64{{0.1, -2, 1.5}, {3, 3, 3}}, [][]float64{{1, 2, -4}, {0.5, 0, 9}})
	require.NoError(t, err)
	got, want := out[0].Value().([][]float64), out[1].Value().([][]float64)
	for e := range want {
		require.InDeltaSlice(t, want[e], got[e], 1e-14)
	}
}

func TestSmallestNormalsAreNormal(t *testing.T) {
	require.Equal(t, math.Float32frombits(0x00800000), float32(smallestNormal(dtypes.Float32)))
	require.Equal(t, math.Float64frombits(0x0010000000000000), smallestNormal(dtypes.Float64))
}
