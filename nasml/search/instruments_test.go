package search

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/simplex"
)

// TestReadingsOfASearch: Δ falls with λ and is at most the squared norm of the
// gradient; of two operations each is as far from the other as that from it; the
// search itself is the one without instruments.
func TestReadingsOfASearch(t *testing.T) {
	for name, s := range map[string]Settings{
		"NAS-Bench-201": tiny(t, "gaea-darts"), "two operations": small(t, "darts", "darts-s2"),
	} {
		t.Run(name, func(t *testing.T) {
			s.Epochs, s.EvaluateEvery = 1, 1
			plain, err := New(pure(t), s, pictures(t, 16))
			require.NoError(t, err)
			defer plain.Close()
			want, err := plain.Search(t.Context(), 1, Options{})
			require.NoError(t, err)
			require.Zero(t, want.Readings.Loss)

			s.Instruments = 3
			x, err := New(pure(t), s, pictures(t, 16))
			require.NoError(t, err)
			defer x.Close()
			c, err := x.Search(t.Context(), 1, Options{})
			require.NoError(t, err)
			require.Equal(t, want.Theta, c.Theta)
			m := c.Readings
			require.Len(t, m.Loss, 1)
			for i := range m.Loss {
				require.Positive(t, m.Loss[i])
				require.Positive(t, m.Stationarity[i])
				require.LessOrEqual(t, m.Stationarity[i], m.Gradient[i])
				require.GreaterOrEqual(t, m.Convexity[i], 0.)
				require.Len(t, m.Alone[i], len(x.start0(t)))
				at := 0
				for _, b := range x.product {
					for range b.Rows {
						alone, apart := m.Alone[i][at:at+b.Options], m.Apart[i][at:at+b.Options]
						require.NotEqual(t, alone[0], alone[1])
						if b.Options == 2 {
							require.InEpsilon(t, apart[0], apart[1], 1e-3)
						}
						at += b.Options
					}
				}
			}
		})
	}
}

// start0 is θ at the start.
func (s *Runner) start0(t *testing.T) []float64 {
	t.Helper()
	require.NoError(t, simplex.Check(Blocks(s.product, s.initialTheta(1))[0], 1e-4))
	return s.initialTheta(1)
}

// TestGraphsOfTheInstruments: the gradient is the slope of the loss, and the
// products are slopes of the gradient, in double precision.
func TestGraphsOfTheInstruments(t *testing.T) {
	s := tiny(t, "gaea-darts")
	x, err := New(pure(t), s, pictures(t, 16))
	require.NoError(t, err)
	defer x.Close()
	r, err := x.start(1, Options{})
	require.NoError(t, err)
	defer r.free()
	images, labels, err := r.batch(r.validation[:4], nil)
	require.NoError(t, err)
	state := Cut(r.Step, r.state())
	block := r.product[0]
	call := func(graph func(in []*Node) []*Node, flat ...[]float64) (all []float64) {
		args := []any{doubled(t, images), labels}
		for _, f := range flat {
			args = append(args, tensors.FromFlatDataAndDimensions(f, block.Rows, block.Options))
		}
		for _, w := range slices.Concat(state.Weights, state.Stats) {
			args = append(args, doubled(t, w))
		}
		out, err := CallOnceN(r.backend, graph, args...)
		require.NoError(t, err)
		for _, y := range out {
			all = append(all, tensors.MustCopyFlatData[float64](y)...)
		}
		return all
	}
	v := make([]float64, len(r.theta))
	for k := range v {
		v[k] = math.Sin(float64(k) + 1)
	}
	const step = 1e-6
	moved := func(sign float64) []float64 {
		at := slices.Clone(r.theta)
		floats.AddScaled(at, sign*step, v)
		return at
	}
	ahead, behind := call(x.slope, moved(1)), call(x.slope, moved(-1))
	here := call(x.slope, r.theta)
	require.InEpsilon(t, (ahead[0]-behind[0])/(2*step), floats.Dot(here[1:], v), 1e-6)
	require.InEpsilon(t, here[0], call(x.scored, r.theta)[0], 1e-12)
	products := call(x.curved, v, r.theta)
	for k := range products {
		require.InDelta(t, (ahead[1+k]-behind[1+k])/(2*step), products[k], 1e-5*floats.Norm(products, 2))
	}
	require.Greater(t, floats.Norm(products, 2), 1e-6)
}

// doubled is a tensor in double precision.
func doubled(t *testing.T, x *tensors.Tensor) *tensors.Tensor {
	t.Helper()
	single, err := tensors.CopyFlatData[float32](x)
	require.NoError(t, err)
	flat := make([]float64, len(single))
	for i, x := range single {
		flat[i] = float64(x)
	}
	return tensors.FromFlatDataAndDimensions(flat, x.Shape().Dimensions...)
}
