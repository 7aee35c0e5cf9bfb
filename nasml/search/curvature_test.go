package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/supernet"
)

// All eigenvalues are those of a full decomposition; a few products come close to
// the largest from below.
func TestLanczos(t *testing.T) {
	const n = 12
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		a := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				a.SetSym(i, j, rng.NormFloat64())
			}
		}
		var eigen mat.EigenSym
		require.True(t, eigen.Factorize(a, false))
		want := slices.Max(eigen.Values(nil))
		calls := 0
		product := func(v []float64) ([]float64, error) {
			calls++
			var y mat.VecDense
			y.MulVec(a, mat.NewVecDense(n, v))
			return y.RawVector().Data, nil
		}
		all, err := lanczos(product, n, 100, rng)
		require.NoError(t, err)
		require.InDelta(t, want, all, 1e-9)
		require.LessOrEqual(t, calls, n)
		calls = 0
		few, err := lanczos(product, n, 6, rng)
		require.NoError(t, err)
		require.Equal(t, 6, calls)
		require.Less(t, few, want+1e-9)
	}
	// A matrix of rank one ends after two products.
	one := func(v []float64) ([]float64, error) {
		y := make([]float64, n)
		y[3] = 5 * v[3]
		return y, nil
	}
	largest, err := lanczos(one, n, n, rng)
	require.NoError(t, err)
	require.InDelta(t, 5, largest, 1e-9)
}

// The product with the Hessian in a search is the slope of the gradient, in double
// precision.
func TestCurvatureOfASearch(t *testing.T) {
	for _, s := range []Settings{tiny(t, "gaea-darts"), small(t, "darts", "darts-s2")} {
		s.Curvature, s.Epochs = 3, 1
		x, err := New(pure(t), s, pictures(t, 16))
		require.NoError(t, err)
		defer x.Close()
		c, err := x.Search(t.Context(), 1, Options{})
		require.NoError(t, err)
		require.Len(t, c.Curvature, 1)
		require.NotZero(t, c.Curvature[0])

		r, err := x.start(1, Options{})
		require.NoError(t, err)
		defer r.free()
		images, labels, err := r.batch(r.validation[:4], nil)
		require.NoError(t, err)
		double := func(in *tensors.Tensor) *tensors.Tensor {
			single, err := tensors.CopyFlatData[float32](in)
			require.NoError(t, err)
			flat := make([]float64, len(single))
			for i, x := range single {
				flat[i] = float64(x)
			}
			return tensors.FromFlatDataAndDimensions(flat, in.Shape().Dimensions...)
		}
		state := Cut(r.Step, r.state())
		call := func(of func(in []*Node) []*Node, v, alpha []float64) []float64 {
			args := []any{double(images), labels}
			for _, flat := range [][]float64{v, alpha} {
				for b := range r.product {
					args = append(args, double(matrix(r.product[b], Blocks(r.product, flat)[b])))
				}
			}
			for _, w := range slices.Concat(state.Weights, state.Stats) {
				args = append(args, double(w))
			}
			out, err := CallOnceN(r.backend, of, args...)
			require.NoError(t, err)
			var all []float64
			for _, y := range out {
				all = append(all, tensors.MustCopyFlatData[float64](y)...)
			}
			return all
		}
		gradient := func(in []*Node) []*Node {
			n, weights := len(r.product), len(state.Weights)
			alpha, rest := in[2+n:2+2*n], in[2+2*n:]
			theta := each(alpha, func(x *Node) *Node { return Softmax(x, -1) })
			made := r.net.Evaluate(supernet.Pass{
				Images: in[0], Theta: theta, Weights: rest[:weights], Stats: rest[weights:], Train: true,
			})
			_, loss := supernet.Score(made.Logits, in[1])
			return Gradient(loss, alpha...)
		}
		const step = 1e-5
		n := len(r.theta)
		alpha, v := make([]float64, n), make([]float64, n)
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range n {
			alpha[i], v[i] = float64(float32(0.1*rng.NormFloat64())), float64(float32(rng.NormFloat64()))
		}
		// matrix rounds to single precision: both points are exact there
		side := func(sign float64) (at []float64) {
			for i := range n {
				at = append(at, float64(float32(alpha[i]+sign*step*v[i])))
			}
			return at
		}
		ahead, behind := side(1), side(-1)
		for i := range n {
			v[i] = (ahead[i] - behind[i]) / (2 * step)
		}
		want := call(gradient, v, ahead)
		floats.Sub(want, call(gradient, v, behind))
		floats.Scale(1/(2*step), want)
		got := call(x.curvedInLogits, v, alpha)
		require.Greater(t, floats.Norm(want, 2), 1e-3)
		require.Less(t, floats.Distance(want, got, 2), 1e-3*floats.Norm(want, 2))
	}
}
