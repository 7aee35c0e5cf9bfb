package kernels_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// stepped is a step of SGD by the definition.
func stepped(w, g, v []float64, nesterov bool) (w2, v2 []float64) {
	const eta, factor, mu, decay = 0.1, 0.7, 0.9, 0.01
	for i := range w {
		slope := factor*g[i] + decay*w[i]
		speed := mu*v[i] + slope
		move := speed
		if nesterov {
			move = slope + mu*speed
		}
		w2, v2 = append(w2, w[i]-eta*move), append(v2, speed)
	}
	return w2, v2
}

// Steps of arrays of several shapes, a scalar among them, with kernels and without.
func TestStepsAgainstTheDefinition(t *testing.T) {
	shapes := [][]int{{3, 3, 1, 5}, {7}, {}, {130}, {1, 1, 4, 33}}
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			for _, scalars := range []bool{false, true} { // for which there are no kernels
				for _, nesterov := range []bool{false, true} {
					of := shapes
					if !scalars {
						of = append(shapes[:2:2], shapes[3:]...)
					}
					t.Run(fmt.Sprint(b.Name(), dtype, scalars, nesterov), func(t *testing.T) {
						checkStep(t, b, dtype, of, nesterov)
					})
				}
			}
		}
	}
}

func checkStep(t *testing.T, b compute.Backend, dtype dtypes.DType, shapes [][]int, nesterov bool) {
	var in []any
	var want [][]float64
	square := 0.0
	for i, dims := range shapes {
		n := 1
		for _, d := range dims {
			n *= d
		}
		w, g, v := smooth(uint64(3*i), n), smooth(uint64(3*i+1), n), smooth(uint64(3*i+2), n)
		in = append(in, tensor(dtype, w, dims...), tensor(dtype, g, dims...), tensor(dtype, v, dims...))
		w2, v2 := stepped(w, g, v, nesterov)
		want = append(want, w2, v2)
		for _, x := range g {
			square += x * x
		}
	}
	e, err := NewExec(b, func(in []*Node) (out []*Node) {
		var w, g, v []*Node
		for i := 0; i < len(in); i += 3 {
			w, g, v = append(w, in[i]), append(g, in[i+1]), append(v, in[i+2])
		}
		scalar := func(x float64) *Node { return ConstAsDType(w[0].Graph(), w[0].DType(), x) }
		w, v = kernels.Momentum(w, g, v, kernels.Rates{
			Eta: scalar(0.1), Factor: scalar(0.7), Momentum: 0.9, Decay: 0.01, Nesterov: nesterov,
		})
		for i := range w {
			out = append(out, w[i], v[i])
		}
		return append(out, kernels.Squares(g))
	})
	require.NoError(t, err)
	defer e.Finalize()
	got, err := e.Call(in...)
	require.NoError(t, err)
	for i := range want {
		require.Equal(t, shapes[i/2], append([]int{}, got[i].Shape().Dimensions...))
		mustAgree(t, dtype, 1, want[i], got[i], fmt.Sprint("output ", i))
	}
	require.Empty(t, got[len(want)].Shape().Dimensions)
	require.InEpsilon(t, square, values(t, got[len(want)])[0], 64*ulps(dtype))
}

// Running statistics of maps of several widths.
func TestRunningAgainstTheDefinition(t *testing.T) {
	const momentum, pixels = 0.1, 12
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			var in []any
			var want [][]float64
			for i, c := range []int{1, 5, 16} {
				moments, mean, variance := smooth(uint64(i), 2*c), smooth(uint64(9+i), c), smooth(uint64(99+i), c)
				in = append(in, tensor(dtype, moments, 2, c), tensor(dtype, mean, c), tensor(dtype, variance, c))
				for k := range c {
					mean[k] = 0.9*mean[k] + 0.1*moments[k]
					variance[k] = 0.9*variance[k] + 0.1*moments[c+k]*pixels/(pixels-1)
				}
				want = append(want, mean, variance)
			}
			e, err := NewExec(b, func(in []*Node) (out []*Node) {
				var batches []kernels.Batch
				for i := 0; i < len(in); i += 3 {
					batches = append(batches, kernels.Batch{
						Moments: in[i], Mean: in[i+1], Variance: in[i+2], Pixels: pixels,
					})
				}
				mean, variance := kernels.Running(momentum, batches)
				for i := range mean {
					out = append(out, mean[i], variance[i])
				}
				return out
			})
			require.NoError(t, err)
			got, err := e.Call(in...)
			require.NoError(t, err)
			for i := range want {
				mustAgree(t, dtype, 1, want[i], got[i], fmt.Sprint(b.Name(), " output ", i))
			}
			e.Finalize()
		}
	}
}

func TestMomentumRefusesOtherShapes(t *testing.T) {
	one := func(dims ...int) any { return tensor(dtypes.Float64, make([]float64, 2), dims...) }
	e := MustNewExec(goBackend(t), func(in []*Node) []*Node {
		eta := ConstAsDType(in[0].Graph(), dtypes.Float64, 1.0)
		w, _ := kernels.Momentum(in[:1], in[1:2], in[:1], kernels.Rates{Eta: eta})
		return w
	})
	_, err := e.Call(one(2), one(1, 2))
	require.ErrorContains(t, err, "array 0 is (Float64)[2] and its gradient (Float64)[1, 2], expected the same")
}
