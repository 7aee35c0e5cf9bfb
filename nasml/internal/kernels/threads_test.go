package kernels_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// threadCase is a graph of kernels, and the dimensions of what it takes: large
// enough that its work is divided among threads.
type threadCase struct {
	dims  [][]int
	graph func(in []*Node) []*Node
}

// slopes are y and the gradients of ½ Σ y² in all inputs.
func slopes(y *Node, in ...*Node) []*Node {
	return append([]*Node{y}, Gradient(MulScalar(ReduceAllSum(Square(y)), 0.5), in...)...)
}

// threadCases have every kernel.
var threadCases = map[string]threadCase{
	"depthwise, stage and sum": {
		[][]int{{20, 16, 16, 24}, {5, 5, 24}, {24, 24}}, func(in []*Node) []*Node {
			y := kernels.DepthwiseConv(in[0], in[1], 1, 1)
			affine, _ := kernels.Normal(y)
			z, own, _ := kernels.Stage(y, affine, in[1], in[2], 1, 2)
			weights := ConstAsDType(y.Graph(), y.DType(), [][]float64{{0.4, 0.6}})
			return slopes(kernels.Weighted(weights, []*Node{y, z}, []*Node{affine, own}), in...)
		},
	},
	"pools, strided": {[][]int{{20, 16, 16, 24}, {3, 3, 24}}, func(in []*Node) []*Node {
		y := kernels.DepthwiseConv(in[0], in[1], 2, 1)
		return slopes(Add(kernels.MaxPool3x3(y, 1), kernels.AvgPool3x3(y, 1)), in...)
	}},
	"dense": {[][]int{{20, 16, 16, 24}, {3, 3, 24, 24}}, func(in []*Node) []*Node {
		affine, _ := kernels.Normal(in[0])
		f := kernels.Dense(in[0], affine, in[1])[0]
		return append(slopes(f.Z, in...), f.Normal, f.Moments)
	}},
	"linear": {[][]int{{20, 16, 16, 24}, {1, 1, 24, 40}, {1, 1, 24, 40}}, func(in []*Node) []*Node {
		affine, _ := kernels.Normal(in[0])
		f := kernels.Linear(in[0], affine, in[1], in[2])
		return slopes(Mul(f[0].Z, f[1].Z), in...)
	}},
	"rectified": {[][]int{{20, 16, 16, 24}, {20, 16, 16, 24}, {1, 2}}, func(in []*Node) []*Node {
		a, _ := kernels.Normal(in[0])
		b, _ := kernels.Normal(in[1])
		return slopes(kernels.Rectified(in[2], in[:2], []*Node{a, b}, []bool{true, false}), in...)
	}},
	"sparse": {[][]int{{4, 130, 90}, {4, 90, 3, 70}, {4, 3, 130, 70}}, func(in []*Node) []*Node {
		x := Max(in[0], ZerosLike(in[0])) // half of its numbers are 0
		return append(slopes(kernels.Sparse(x, in[1]), in[1]), kernels.SparseDescent(x, in[1], in[2], 0.1))
	}},
	"product": {[][]int{{3, 2, 130, 90}, {3, 2, 70, 90}}, func(in []*Node) []*Node {
		return slopes(kernels.Product(in[0], in[1]), in...)
	}},
	"steps": {[][]int{{300, 300}, {300, 300}, {300, 300}, {77}, {77}, {77}}, func(in []*Node) []*Node {
		rates := kernels.Rates{Eta: ConstAsDType(in[0].Graph(), in[0].DType(), 0.1), Momentum: 0.9, Decay: 0.01}
		w, v := kernels.Momentum([]*Node{in[0], in[3]}, []*Node{in[1], in[4]}, []*Node{in[2], in[5]}, rates)
		return append(append(w, v...), kernels.Squares(in))
	}},
	"running": {[][]int{{2, 700}, {700}, {700}}, func(in []*Node) []*Node {
		mean, variance := kernels.Running(0.1, []kernels.Batch{{in[0], in[1], in[2], 64}})
		return append(mean, variance...)
	}},
}

// The same bits whatever threads there are: calls one after the other, and a
// process of one processor.
func TestTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	b := xlaBackend(t)
	want := map[string]string{}
	for name, c := range threadCases {
		t.Run(name, func(t *testing.T) {
			calls := c.calls(t, b)
			want[name] = calls()
			if os.Getenv(formEnv) != "" {
				fmt.Printf("bits of %s: %s\n", name, want[name])
				return
			}
			for range 20 {
				require.Equal(t, want[name], calls(), "another call gives other bits")
			}
		})
	}
	if os.Getenv(formEnv) == "" {
		require.Equal(t, want, onOneProcessor(t), "one processor gives other bits")
	}
}

// onOneProcessor is what the test finds in a process of one processor.
func onOneProcessor(t *testing.T) map[string]string {
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("no taskset: not tried on one processor")
	}
	cmd := exec.Command(taskset, "-c", "0", os.Args[0], "-test.run=^TestTheSameBitsForAnyNumberOfThreads$")
	cmd.Env = append(os.Environ(), formEnv+"=1")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	alone := map[string]string{}
	for _, m := range regexp.MustCompile(`bits of (.*): (\w+)`).FindAllSubmatch(said, -1) {
		alone[string(m[1])] = string(m[2])
	}
	return alone
}

// calls gives a function that computes the case in both types and returns a sum of
// all bits of what came out.
func (c threadCase) calls(t *testing.T, b compute.Backend) func() string {
	e, err := NewExec(b, c.graph)
	require.NoError(t, err)
	t.Cleanup(e.Finalize)
	return func() string {
		sum := fnv.New64a()
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			var in []any
			for i, dims := range c.dims {
				n := 1
				for _, d := range dims {
					n *= d
				}
				in = append(in, tensor(dtype, smooth(uint64(i), n), dims...))
			}
			out, err := e.Call(in...)
			require.NoError(t, err)
			for _, x := range out {
				all := values(t, x)
				require.False(t, slices.ContainsFunc(all, math.IsNaN))
				_ = binary.Write(sum, binary.LittleEndian, all) // a hash takes everything
			}
		}
		return fmt.Sprintf("%x", sum.Sum(nil))
	}
}
