package convergence

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/trial"
)

func TestBallMaxAgainstSearch(t *testing.T) {
	rng := trial.RNG(1, "ball")
	for i := range 30 {
		g := mat.NewDense(2, 2, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
		shift := float64(i % 3)
		e := mat.NewSymDense(2, []float64{g.At(0, 0) - shift, g.At(0, 1), g.At(0, 1), g.At(1, 1) - shift})
		b := []float64{rng.NormFloat64(), rng.NormFloat64()}
		if i%5 == 0 { // no linear part: the largest eigenvalue, or 0
			b = []float64{0, 0}
		}
		got := ballMax(e, b)
		want := math.Inf(-1)
		for i := range 400 {
			for j := range 101 {
				angle, r := 2*math.Pi*float64(i)/400, float64(j)/100
				a := mat.NewVecDense(2, []float64{r * math.Cos(angle), r * math.Sin(angle)})
				want = max(want, mat.Inner(a, e, a)+2*floats.Dot(b, a.RawVector().Data))
			}
		}
		require.InDelta(t, want, got, 2e-3*(1+math.Abs(want)))
		require.GreaterOrEqual(t, got, want-1e-12)
	}
	// The hard case: b is orthogonal to the top eigenvector. max of a₁² + 2·0.1·a₂ is 1 + 0.01.
	got := ballMax(mat.NewSymDense(2, []float64{1, 0, 0, 0}), []float64{0, 0.1})
	require.InDelta(t, 1.01, got, 1e-9)
}

func TestTightGaps(t *testing.T) {
	for _, h := range []int{1, 2, 5} {
		f := newTight(trial.RNG(3, "tight"), h, 7)
		risk, gradient := f.gaps(h)
		gapAt := func(alpha []float64) float64 {
			a := mat.NewVecDense(h, alpha)
			return mat.Inner(a, f.second, a) - 2*floats.Dot(f.first, alpha) + f.rest
		}
		rng, nearRisk, nearGradient := trial.RNG(4, "α"), 0.0, 0.0
		for range 4000 {
			alpha := ballPoint(rng, h)
			if rng.IntN(2) == 0 {
				floats.Scale(1/floats.Norm(alpha, 2), alpha)
			}
			grad := fd.Gradient(nil, gapAt, alpha, &fd.Settings{Formula: fd.Central})
			nearRisk, nearGradient = max(nearRisk, math.Abs(gapAt(alpha))), max(nearGradient, floats.Norm(grad, 2))
		}
		require.LessOrEqual(t, nearRisk, risk*(1+1e-9))
		require.LessOrEqual(t, nearGradient, gradient*(1+1e-6))
		if h <= 2 {
			require.InEpsilon(t, risk, nearRisk, 0.02)
			require.InEpsilon(t, gradient, nearGradient, 0.02)
		}
		require.InDelta(t, math.Abs(gapAt(unit(h))), f.fixed(), 1e-12)
	}
}

func unit(h int) []float64 {
	e := make([]float64, h)
	e[0] = 1
	return e
}

func TestStepsStayInTheSimplex(t *testing.T) {
	for _, h := range []int{1, 2, 7} {
		vertex := make([]float64, h)
		vertex[0] = 1
		moved := multiplied(vertex, []float64{3, -1, 2, 0, 5, 1, 1}[:h])
		require.InDelta(t, 1, floats.Sum(moved), 1e-12)
		require.Positive(t, floats.Min(moved), "a vertex can be left")
	}
}

func TestCoversAreCounted(t *testing.T) {
	// Points −1, −0.5, 0, 0.5, 1 in order: greedy centres at ε = 0.8 are −1, 0, 1.
	sample := [][]float64{{-1}, {-0.5}, {0}, {0.5}, {1}}
	require.Equal(t, []float64{3, 5, 5, 5}, coverSizes(sample))
}

func TestCosinesGrowWithL(t *testing.T) {
	got := cosines(trial.RNG(1, "c"), 50, []float64{0, 1, 30}, 0.1)
	require.Zero(t, got[0], "at ω = 0 both sides are 1")
	require.True(t, slices.IsSorted(got))
	require.Less(t, got[2], 1.0)
}
