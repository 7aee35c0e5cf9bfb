package search

import (
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/trial"
)

// doubleStep is one step of a search of a network with cells, in double precision:
// the architecture's gradient, and the running statistics after the step by path.
func doubleStep(t *testing.T, s Settings) (grad []float64, stats map[string][]float64) {
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
	f := Inputs[*tensors.Tensor]{
		TrainImages: draw(3, s.Image, s.Image, 3), TrainLabels: tensors.FromFlatDataAndDimensions([]int32{0, 1, 2}, 3),
		ValidImages: draw(3, s.Image, s.Image, 3), ValidLabels: tensors.FromFlatDataAndDimensions([]int32{2, 1, 1}, 3),
		Rate: tensors.FromScalar(0.1), Tau: tensors.FromScalar(1.), Done: tensors.FromScalar(0.),
		Warmup: tensors.FromScalar(0.),
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
		return append(o.GradTheta, Cut(step, next).Stats...)
	}, args...)
	require.NoError(t, err)
	first := len(out) - len(net.Stats())
	for _, x := range out[:first] {
		grad = append(grad, tensors.MustCopyFlatData[float64](x)...)
	}
	stats = map[string][]float64{}
	for i, w := range net.Stats() {
		stats[w.Path] = tensors.MustCopyFlatData[float64](out[first+i])
	}
	return grad, stats
}

// Second order on cells with two inputs: the exact product with the Hessian is the
// limit of DARTS' finite difference, and differs from the first order.
func TestSecondOrderOnCells(t *testing.T) {
	s := small(t, "darts", "darts-s2")
	s.Channels, s.Partial, s.EdgeWeights = 4, 2, true
	first, once := doubleStep(t, s)
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
	const stem = "stem/bn/mean"
	require.NotEqual(t, once[stem], inner[stem])
	s.Bilevel.Hypergradient, s.Running = "first-order", OuterTwice
	again, twice := doubleStep(t, s)
	require.Less(t, floats.Distance(first, again, 2), 1e-12*size)
	// The stem's means start at 0. With batch means v of validation and w of
	// training, one pass of each leaves .9·.1v + .1w, and one more of the first
	// .9·(.9·.1v + .1v) + .1w: the difference is .081v.
	_, only := doubleStep(t, func() Settings { s.Method, s.Running = "rsps", OuterPass; return s }()) // .1w
	for i, x := range once[stem] {
		require.InDelta(t, 0.9*(x-only[stem][i]), twice[stem][i]-x, 1e-12)
	}
}

// Inside operations each of the two passes of a step is mixed in twice, elsewhere
// once. The means start at 0 and the variances at 1, so that a training batch w
// alone leaves .1w and .9 + .1w, and a validation batch v before it .9·.1v + .1w for
// means; twice, they leave .81·.19v + .19w.
func TestStatisticsInsideOperationsTwice(t *testing.T) {
	s := small(t, "darts", "darts-s2")
	s.Channels, s.Partial, s.EdgeWeights = 4, 2, true
	sampled := s
	sampled.Method = "rsps"
	grad, once := doubleStep(t, s)
	_, only := doubleStep(t, sampled)
	s.Running, sampled.Running = OperationsTwice, OperationsTwice
	again, twice := doubleStep(t, s)
	_, onlyTwice := doubleStep(t, sampled)
	require.Equal(t, grad, again, "statistics are no part of a gradient")
	inside := 0
	for path, stat := range once {
		if !strings.Contains(path, "<-") {
			require.Equal(t, stat, twice[path], path)
			continue
		}
		inside++
		for i, x := range only[path] {
			start := 0.
			if strings.HasSuffix(path, "variance") {
				start = 1
			}
			require.InDelta(t, 1.9*x-0.9*start, onlyTwice[path][i], 1e-12, path)
			if strings.HasPrefix(path, "cells/0/2<-0/") && start == 0 { // whose input θ does not move
				v, w := (stat[i]-x)/0.09, x/0.1
				require.InDelta(t, 0.81*0.19*v+0.19*w, twice[path][i], 1e-12, path)
			}
		}
	}
	require.Positive(t, inside)
	s.Space = "nasbench201"
	require.ErrorContains(t, s.Check(),
		`Running "operations-twice" needs a space of cells with two inputs, got "nasbench201"`)
}
