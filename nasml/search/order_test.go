package search

import (
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/trial"
)

// doubleStep is one step of a search of a network with cells, in double precision:
// the architecture's gradient, and the running mean of the stem after the step.
func doubleStep(t *testing.T, s Settings) (grad, stem []float64) {
	t.Helper()
	space, err := s.Open(3)
	require.NoError(t, err)
	net := space.Network()
	step, err := NewStep(s, net, 1)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(dims ...int) *tensors.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		flat := make([]float64, n)
		for i := range flat {
			flat[i] = rng.NormFloat64()
		}
		return tensors.FromFlatDataAndDimensions(flat, dims...)
	}
	double := func(all []*tensors.Tensor) (out []*tensors.Tensor) {
		for _, x := range all {
			single := tensors.MustCopyFlatData[float32](x)
			flat := make([]float64, len(single))
			for i, v := range single {
				flat[i] = float64(v)
			}
			out = append(out, tensors.FromFlatDataAndDimensions(flat, x.Shape().Dimensions...))
		}
		return out
	}
	f := Feed[*tensors.Tensor]{
		TrainImages: draw(3, s.Image, s.Image, 3), TrainLabels: tensors.FromFlatDataAndDimensions([]int32{0, 1, 2}, 3),
		ValidImages: draw(3, s.Image, s.Image, 3), ValidLabels: tensors.FromFlatDataAndDimensions([]int32{2, 1, 1}, 3),
		Rate: tensors.FromScalar(0.1), Tau: tensors.FromScalar(1.), Done: tensors.FromScalar(0.), Warmup: tensors.FromScalar(0.),
	}
	var theta []*tensors.Tensor
	for _, b := range net.Architecture() {
		f.Draws = append(f.Draws, draw(2, b.Rows, b.Options))
		theta = append(theta, draw(b.Rows, b.Options))
	}
	var args []any
	for _, x := range f.List() {
		args = append(args, x)
	}
	for _, x := range step.State(double(net.InitWeights(trial.RNG(1, "weights"))), double(net.InitStats()), theta) {
		args = append(args, x)
	}
	out, err := CallOnceN(pure(t), func(in []*Node) []*Node {
		next, o := step.Graph(in)
		return append(o.GradTheta, Cut(step, next).Stats[0])
	}, args...)
	require.NoError(t, err)
	last := len(out) - 1
	for _, x := range out[:last] {
		grad = append(grad, tensors.MustCopyFlatData[float64](x)...)
	}
	return grad, tensors.MustCopyFlatData[float64](out[last])
}

// Second order on cells with two inputs: the exact product with the Hessian is the
// limit of DARTS' finite difference, and differs from the first order.
func TestSecondOrderOnCells(t *testing.T) {
	s := small(t, "darts", "darts-s2")
	s.Channels, s.Partial, s.EdgeWeights = 4, 2, true
	first, stem := doubleStep(t, s)
	s.Bilevel.Hypergradient = "unrolled"
	exact, _ := doubleStep(t, s)
	s.Bilevel.Hypergradient, s.Bilevel.Epsilon = "finite-difference", 1e-6
	near, _ := doubleStep(t, s)
	size := floats.Norm(exact, 2)
	require.Less(t, floats.Distance(exact, near, 2), 1e-5*size)
	require.Greater(t, floats.Distance(exact, first, 2), 1e-3*size)

	s.Running = InnerPasses
	again, inner := doubleStep(t, s)
	require.Less(t, floats.Distance(near, again, 2), 1e-12*size, "statistics are no part of a gradient")
	require.NotEqual(t, stem, inner)
	s.Bilevel.Hypergradient, s.Running = "first-order", OuterTwice
	again, twice := doubleStep(t, s)
	require.Less(t, floats.Distance(first, again, 2), 1e-12*size)
	// The stem's means start at 0. With batch means v of validation and w of
	// training, one pass of each leaves .9·.1v + .1w, and one more of the first
	// .9·(.9·.1v + .1v) + .1w: the difference is .081v.
	_, only := doubleStep(t, func() Settings { s.Method, s.Running = "rsps", OuterPass; return s }()) // .1w
	for i := range stem {
		require.InDelta(t, 0.9*(stem[i]-only[i]), twice[i]-stem[i], 1e-12)
	}
}
