package supernet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// refWindow folds the k×k pixels around every pixel of the stride that lie
// inside the map.
func refWindow(x fmap, k, pad, stride, dilation int, fold func(sum, pixel float64, di, dj, c int) float64) fmap {
	y := newMap(x.b, (x.h+2*pad-dilation*(k-1)-1)/stride+1, (x.w+2*pad-dilation*(k-1)-1)/stride+1, x.c)
	y.each(func(b, i, j, c int, v *float64) {
		for di := range k {
			for dj := range k {
				if p, q := i*stride+di*dilation-pad, j*stride+dj*dilation-pad; p >= 0 && p < x.h && q >= 0 && q < x.w {
					*v = fold(*v, *x.at(b, p, q, c), di, dj, c)
				}
			}
		}
	})
	return y
}

func refMax(x fmap, k, pad, stride int) fmap {
	shifted := newMap(x.b, x.h, x.w, x.c)
	// above the 0 that a fold begins with
	shifted.each(func(b, i, j, c int, v *float64) { *v = *x.at(b, i, j, c) + 100 })
	y := refWindow(shifted, k, pad, stride, 1, func(sum, pixel float64, _, _, _ int) float64 {
		return math.Max(sum, pixel)
	})
	y.each(func(_, _, _, _ int, v *float64) { *v -= 100 })
	return y
}

// onMaps computes f of flat float64 values in shapes.
func onMaps(t *testing.T, f func(x []*Node) []*Node, shapes [][]int, values ...[]float64) [][]float64 {
	t.Helper()
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = tensors.FromFlatDataAndDimensions(append([]float64{}, v...), shapes[i]...)
	}
	out, err := CallOnceN(goBackend(t), func(x []*Node) []*Node { return f(x) }, args...)
	require.NoError(t, err)
	flat := make([][]float64, len(out))
	for i, o := range out {
		flat[i] = tensors.MustCopyFlatData[float64](o)
	}
	return flat
}

// mapOperation is a function of a map and perhaps a kernel, with its plain loops.
type mapOperation struct {
	name    string
	weights func(c int) []int // shape, nil for none
	graph   func(x, w *Node) *Node
	loops   func(x fmap, w []float64) fmap
}

func mapOperations() []mapOperation {
	var all []mapOperation
	for _, k := range []int{1, 3, 5, 7} {
		for _, stride := range []int{1, 2} {
			for _, dilation := range []int{1, 2} {
				all = append(all, mapOperation{
					fmt.Sprintf("depthwise %d, stride %d, dilation %d", k, stride, dilation),
					func(c int) []int { return []int{k, k, c} },
					func(x, w *Node) *Node { return kernels.DepthwiseConv(x, w, stride, dilation) },
					func(x fmap, w []float64) fmap {
						return refWindow(x, k, dilation*(k/2), stride, dilation,
							func(sum, pixel float64, di, dj, c int) float64 {
								return sum + pixel*w[(di*k+dj)*x.c+c]
							})
					},
				})
			}
		}
	}
	for _, stride := range []int{1, 2} {
		all = append(all,
			mapOperation{fmt.Sprint("max, stride ", stride), nil,
				func(x, _ *Node) *Node { return kernels.MaxPool3x3(x, stride) },
				func(x fmap, _ []float64) fmap { return refMax(x, 3, 1, stride) }},
			mapOperation{fmt.Sprint("mean, stride ", stride), nil,
				func(x, _ *Node) *Node { return kernels.AvgPool3x3(x, stride) },
				func(x fmap, _ []float64) fmap { return refPool(x, 3, 1, stride) }},
			mapOperation{fmt.Sprint("mean of 2×2, stride ", stride), nil,
				func(x, _ *Node) *Node { return AvgPoolValid(x, 2, stride) },
				func(x fmap, _ []float64) fmap { return refPool(x, 2, 0, stride) }})
	}
	return append(all, mapOperation{"max of 2×2", nil,
		func(x, _ *Node) *Node { return MaxPool2x2(x) },
		func(x fmap, _ []float64) fmap { return refMax(x, 2, 0, 2) }})
}

// TestMapOperationsAreThePlainLoops on even and odd maps, with gradients as
// finite differences and gradients of gradients as finite differences of these.
func TestMapOperationsAreThePlainLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, op := range mapOperations() {
		for _, size := range [][2]int{{4, 6}, {5, 3}} {
			t.Run(fmt.Sprint(op.name, " of ", size), func(t *testing.T) { op.check(t, rng, size) })
		}
	}
}

func (op mapOperation) check(t *testing.T, rng *rand.Rand, size [2]int) {
	x := newMap(2, size[0], size[1], 3)
	x.v = normal(rng, len(x.v))
	shapes, values := [][]int{{2, size[0], size[1], 3}}, [][]float64{x.v}
	var w []float64
	if op.weights != nil {
		shapes = append(shapes, op.weights(3))
		w = normal(rng, shapes[1][0]*shapes[1][1]*3)
		values = append(values, w)
	}
	want := op.loops(x, w)
	kernel := func(in []*Node) *Node {
		if op.weights == nil {
			return nil
		}
		return in[1]
	}
	got := onMaps(t, func(in []*Node) []*Node { return []*Node{op.graph(in[0], kernel(in))} }, shapes, values...)
	require.InDeltaSlice(t, want.v, got[0], 1e-12)

	// f is a number that bends with x and w: Σ u·sin(y).
	u := normal(rng, len(want.v))
	f := func(in []*Node) *Node {
		y := op.graph(in[0], kernel(in))
		return ReduceAllSum(Mul(ConstAsDType(y.Graph(), y.DType(), reshaped(u, want)), Sin(y)))
	}
	// g is a number of its gradients: Σ (∂f/∂in)³.
	g := func(in []*Node) *Node {
		var total *Node
		for _, d := range Gradient(f(in), in[:len(values)]...) {
			cube := ReduceAllSum(Mul(Mul(d, d), d))
			if total == nil {
				total = cube
			} else {
				total = Add(total, cube)
			}
		}
		return total
	}
	for name, number := range map[string]func(in []*Node) *Node{"gradient": f, "gradient of the gradient": g} {
		numbers := func(v ...[]float64) float64 {
			return onMaps(t, func(in []*Node) []*Node { return []*Node{number(in)} }, shapes, v...)[0][0]
		}
		gradient := onMaps(t, func(in []*Node) []*Node { return Gradient(number(in), in...) }, shapes, values...)
		direction, slope := make([][]float64, len(values)), 0.0
		at := func(step float64) [][]float64 {
			moved := make([][]float64, len(values))
			for i, v := range values {
				moved[i] = append([]float64{}, v...)
				for j := range v {
					moved[i][j] += step * direction[i][j]
				}
			}
			return moved
		}
		for i, v := range values {
			direction[i] = normal(rng, len(v))
			for j := range v {
				slope += gradient[i][j] * direction[i][j]
			}
		}
		const h = 1e-6 // far less than the distance between the pixels that a maximum chooses from
		difference := (numbers(at(h)...) - numbers(at(-h)...)) / (2 * h)
		require.InDelta(t, difference, slope, 1e-6*(1+math.Abs(slope)), name)
	}
}

func reshaped(v []float64, like fmap) [][][][]float64 {
	out := make([][][][]float64, like.b)
	for b := range out {
		out[b] = make([][][]float64, like.h)
		for i := range out[b] {
			out[b][i] = make([][]float64, like.w)
			for j := range out[b][i] {
				at := ((b*like.h+i)*like.w + j) * like.c
				out[b][i][j] = v[at : at+like.c]
			}
		}
	}
	return out
}

// TestMaxPoolOfEqualPixels: the first of them by rows takes the gradient, as in
// PyTorch, and a NaN is not lost.
func TestMaxPoolOfEqualPixels(t *testing.T) {
	shapes := [][]int{{1, 3, 3, 1}}
	sum := func(in []*Node) []*Node { return Gradient(ReduceAllSum(kernels.MaxPool3x3(in[0], 1)), in[0]) }
	equal := onMaps(t, sum, shapes, make([]float64, 9))
	require.Equal(t, []float64{4, 2, 0, 2, 1, 0, 0, 0, 0}, equal[0])
	halves := onMaps(t, func(in []*Node) []*Node { return Gradient(ReduceAllSum(MaxPool2x2(in[0])), in[0]) },
		[][]int{{1, 2, 2, 1}}, []float64{1, 2, 2, 2})
	require.Equal(t, []float64{0, 1, 0, 0}, halves[0])
	for place := range 9 {
		x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
		x[place] = math.NaN()
		y := onMaps(t, func(in []*Node) []*Node { return []*Node{kernels.MaxPool3x3(in[0], 1)} }, shapes, x)[0]
		require.True(t, math.IsNaN(y[4]), "%d: %v", place, y)
		infinite := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
		infinite[place] = math.Inf(1)
		pool := func(in []*Node) []*Node { return []*Node{kernels.MaxPool3x3(in[0], 1)} }
		require.Equal(t, math.Inf(1), onMaps(t, pool, shapes, infinite)[0][4])
	}
}

func TestShuffled(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	y := onMaps(t, func(in []*Node) []*Node { return []*Node{Shuffled(in[0], 4)} }, [][]int{{1, 1, 1, 8}}, x)
	require.Equal(t, []float64{0, 2, 4, 6, 1, 3, 5, 7}, y[0])
}
