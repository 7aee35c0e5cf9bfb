package kernels_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// BenchmarkKernels times operations on 64 maps of 32 × 32 pixels with 16
// channels, forward, and with their gradients: the kernels, and GoMLX's own
// operations, which XLA compiles. NASML_KERNELS=off times the forms.
func BenchmarkKernels(b *testing.B) {
	const images, size, channels = 64, 32, 16
	native := func(k, stride, dilation int) func(x, kernel *Node) *Node {
		p := dilation * (k - 1) / 2
		return func(x, kernel *Node) *Node {
			c := Convolve(x, Reshape(kernel, k, k, 1, channels)).ChannelGroupCount(channels).
				PaddingPerDim([][2]int{{p, p}, {p, p}})
			if stride > 1 {
				c = c.Strides(stride)
			}
			if dilation > 1 {
				c = c.Dilations(dilation)
			}
			return c.Done()
		}
	}
	for _, c := range []struct {
		name              string
		k, stride         int
		f, own            func(x, kernel *Node) *Node
		withoutOwnReverse bool
	}{
		{"depthwise-3", 3, 1, func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 1, 1) },
			native(3, 1, 1), false},
		{"depthwise-5", 5, 1, func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 1, 1) },
			native(5, 1, 1), false},
		{"depthwise-3-stride-2", 3, 2, func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 2, 1) },
			native(3, 2, 1), false},
		{"dilated-5", 5, 1, func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 1, 2) }, native(5, 1, 2), true},
		{"max-pool", 3, 1, func(x, _ *Node) *Node { return kernels.MaxPool3x3(x, 1) },
			func(x, _ *Node) *Node { return MaxPool(x).Window(3).Strides(1).PadSame().Done() }, false},
		{"avg-pool", 3, 1, func(x, _ *Node) *Node { return kernels.AvgPool3x3(x, 1) },
			func(x, _ *Node) *Node { return MeanPool(x).Window(3).Strides(1).PadSame().Done() }, false},
	} {
		forward := func(f func(x, k *Node) *Node) func(in []*Node) []*Node {
			return func(in []*Node) []*Node { return []*Node{f(in[0], in[1])} }
		}
		reverse := func(f func(x, k *Node) *Node) func(in []*Node) []*Node {
			return func(in []*Node) []*Node {
				y := f(in[0], in[1])
				loss := Add(ReduceAllSum(Mul(y, in[2])), ReduceAllSum(Mul(in[1], in[1]))) // pools have no in[1]
				return append([]*Node{y}, Gradient(loss, in[0], in[1])...)
			}
		}
		x := smooth(1, images*size*size*channels)
		n := size / c.stride
		for _, what := range []struct {
			name string
			f    func([]*Node) []*Node
		}{
			{"forward/kernel", forward(c.f)}, {"forward/XLA", forward(c.own)},
			{"gradients/kernel", reverse(c.f)}, {"gradients/XLA", reverse(c.own)},
		} {
			if c.withoutOwnReverse && what.name == "gradients/XLA" {
				continue // GoMLX v0.28 has no gradient of a dilated convolution
			}
			b.Run(c.name+"/"+what.name, func(b *testing.B) {
				e, err := NewExec(xlaBackend(b), what.f)
				require.NoError(b, err)
				defer e.Finalize()
				in := []*tensors.Tensor{
					tensor(dtypes.Float32, x, images, size, size, channels),
					tensor(dtypes.Float32, x[:c.k*c.k*channels], c.k, c.k, channels),
					tensor(dtypes.Float32, x[:images*n*n*channels], images, n, n, channels),
				}
				best, before := time.Hour, processorTime(b)
				for b.Loop() {
					start := time.Now()
					out, err := e.Call(in[0], in[1], in[2])
					require.NoError(b, err)
					best = min(best, time.Since(start))
					for _, o := range out {
						require.NoError(b, o.FinalizeAll())
					}
				}
				b.ReportMetric(best.Seconds()*1000, "ms-at-best")
				b.ReportMetric((processorTime(b)-before)/float64(b.N)*1000, "cpu-ms")
			})
		}
	}
}

// BenchmarkCell times a step on a cell of the DARTS space, without its
// preprocessing: four nodes with 2, 3, 4 and 5 inputs, on each edge the mean of
// two pools, two separable and two dilated convolutions and the identity, at 64
// maps of 16 × 16 pixels with 16 channels, with the gradients of all weights. It
// reports the first call, which compiles, and the best of the others.
func BenchmarkCell(b *testing.B) {
	const images, size, channels = 64, 16, 16
	shape := []int{images, size, size, channels}
	newCell := func(in []*Node) []*Node {
		x, next := in[0], 1
		weights := func() *Node { next++; return in[next-1] }
		stage := func(y *Node, dilation int) *Node {
			y = kernels.DepthwiseConv(Max(y, ZerosLike(y)), weights(), 1, dilation)
			return batchNorm(Reshape(Dot(Reshape(y, -1, channels), weights()).Product(), shape...))
		}
		edge := func(y *Node) *Node {
			sum := Add(y, Add(batchNorm(kernels.MaxPool3x3(y, 1)), batchNorm(kernels.AvgPool3x3(y, 1))))
			for range 2 { // 3 × 3 and 5 × 5
				sum = Add(sum, Add(stage(stage(y, 1), 1), stage(y, 2)))
			}
			return DivScalar(sum, 7)
		}
		states := []*Node{x, Tanh(x)}
		for range 4 {
			var node *Node
			for _, s := range states {
				if e := edge(s); node == nil {
					node = e
				} else {
					node = Add(node, e)
				}
			}
			states = append(states, node)
		}
		loss := ReduceAllMean(Square(states[5]))
		return append([]*Node{loss}, Gradient(loss, in[1:]...)...)
	}
	in := []any{tensor(dtypes.Float32, smooth(1, images*size*size*channels), shape...)}
	for range 14 {
		for k := 3; k <= 5; k += 2 {
			for range 3 {
				in = append(in, tensor(dtypes.Float32, smooth(2, k*k*channels), k, k, channels),
					tensor(dtypes.Float32, smooth(3, channels*channels), channels, channels))
			}
		}
	}
	e, err := NewExec(xlaBackend(b), newCell)
	require.NoError(b, err)
	defer e.Finalize()
	call := func() time.Duration {
		start := time.Now()
		out, err := e.Call(in...)
		took := time.Since(start)
		require.NoError(b, err)
		for _, o := range out {
			require.NoError(b, o.FinalizeAll())
		}
		return took
	}
	first, best, before := call(), time.Hour, processorTime(b)
	for b.Loop() {
		best = min(best, call())
	}
	b.ReportMetric(first.Seconds(), "s-first")
	b.ReportMetric(best.Seconds()*1000, "ms-at-best")
	b.ReportMetric((processorTime(b)-before)/float64(b.N)*1000, "cpu-ms")
}

// processorTime is what all threads have taken, in seconds: on a busy machine it
// says more than the clock.
func processorTime(b *testing.B) float64 {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// BenchmarkDense times ReLU, a convolution with all channels, its normalisation and
// all gradients on 64 maps as the cells of NAS-Bench-201 have them: the kernels, and
// GoMLX's own operations.
func BenchmarkDense(b *testing.B) {
	for _, c := range []struct{ k, size, channels int }{{3, 32, 16}, {3, 16, 32}, {3, 8, 64}, {1, 32, 16}, {1, 8, 64}} {
		const images = 64
		shape := []int{images, c.size, c.size, c.channels}
		n := images * c.size * c.size * c.channels
		reverse := func(f func(x, kernel *Node) *Node) func(in []*Node) []*Node {
			return func(in []*Node) []*Node {
				return Gradient(ReduceAllSum(Mul(f(in[0], in[1]), in[2])), in[0], in[1])
			}
		}
		own := func(x, kernel *Node) *Node {
			side := [2]int{c.k / 2, c.k / 2}
			y := Convolve(Max(x, ZerosLike(x)), kernel).PaddingPerDim([][2]int{side, side}).Done()
			return batchNorm(y)
		}
		kernel := func(x, kernel *Node) *Node {
			row := func(value float64) *Node {
				return BroadcastToDims(Reshape(ConstAsDType(x.Graph(), x.DType(), value), 1, 1), 1, c.channels)
			}
			y := kernels.Dense(x, kernels.Affine(row(1), row(0)), kernel)[0]
			one := ConstAsDType(x.Graph(), x.DType(), [][]float64{{1}})
			return kernels.Weighted(one, []*Node{y.Z}, []*Node{y.Normal})
		}
		for _, what := range []struct {
			name string
			f    func(x, kernel *Node) *Node
		}{{"kernel", kernel}, {"XLA", own}} {
			b.Run(fmt.Sprintf("%d/%d/%d/%s", c.k, c.size, c.channels, what.name), func(b *testing.B) {
				e, err := NewExec(xlaBackend(b), reverse(what.f))
				require.NoError(b, err)
				defer e.Finalize()
				x := smooth(1, n)
				in := []any{
					tensor(dtypes.Float32, x, shape...),
					tensor(dtypes.Float32, smooth(2, c.k*c.k*c.channels*c.channels), c.k, c.k, c.channels, c.channels),
					tensor(dtypes.Float32, smooth(3, n), shape...),
				}
				call := func() {
					out, err := e.Call(in...)
					require.NoError(b, err)
					for _, o := range out {
						require.NoError(b, o.FinalizeAll())
					}
				}
				call()
				before := processorTime(b)
				b.ResetTimer()
				for b.Loop() {
					call()
				}
				b.ReportMetric((processorTime(b)-before)/float64(b.N)*1000, "cpu-ms")
			})
		}
	}
}
