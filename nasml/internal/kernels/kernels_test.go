package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/kernels"
)

func xlaBackend(t testing.TB) compute.Backend {
	t.Helper()
	b, err := backend.Open()
	if err != nil || b.Name() != "xla" {
		t.Skip("no XLA: run `go tool nasml setup`, and do not set GOMLX_BACKEND=go")
	}
	return b
}

func goBackend(t testing.TB) compute.Backend {
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// draw draws numbers around 0, to 3 places: so that maxima have ties.
func draw(seed uint64, n int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Round(8*rng.NormFloat64()) / 8
	}
	return x
}

// tensor holds numbers as an array of a type.
func tensor(dtype dtypes.DType, x []float64, dims ...int) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(x), dims...)
	}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i])
	}
	return tensors.FromFlatDataAndDimensions(y, dims...)
}

func values(t testing.TB, x *tensors.Tensor) []float64 {
	t.Helper()
	if x.DType() == dtypes.Float64 {
		return tensors.MustCopyFlatData[float64](x)
	}
	var y []float64
	for _, v := range tensors.MustCopyFlatData[float32](x) {
		y = append(y, float64(v))
	}
	return y
}

// ulps is the rounding of one addition of numbers around 1.
func ulps(dtype dtypes.DType) float64 {
	if dtype == dtypes.Float64 {
		return math.Pow(2, -52)
	}
	return math.Pow(2, -23)
}

// mustAgree compares with the definition: the difference of a sum of n terms of
// size 1 is some of their roundings.
func mustAgree(t *testing.T, dtype dtypes.DType, n int, want []float64, got *tensors.Tensor, what string) {
	t.Helper()
	tolerance := 8 * ulps(dtype) * math.Sqrt(float64(n)) * 8
	found := values(t, got)
	require.Len(t, found, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], found[i], tolerance, "%s at %d", what, i)
	}
}

// checkAll compares all kernels of a backend with their definitions.
func checkAll(t *testing.T, b compute.Backend, dtype dtypes.DType, all []geometry) {
	for i, g := range all {
		t.Run(fmt.Sprintf("%v", g), func(t *testing.T) {
			nx, ny, nk := g.size()
			seed := uint64(10 * i)
			x, k, v, u := draw(seed, nx), draw(seed+1, nk), draw(seed+2, ny), draw(seed+3, ny)
			e, err := NewExec(b, func(in []*Node) []*Node {
				y := kernels.DepthwiseConv(in[0], in[1], g.s, g.d)
				out := append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, in[2])), in[0], in[1])...)
				if g.s == 1 {
					y := batchNorm(in[0])
					out = append(out, y, Gradient(ReduceAllSum(Mul(y, in[2])), in[0])[0])
				}
				if g.d == 1 && g.k == 3 {
					for _, y := range []*Node{kernels.MaxPool3x3(in[0], g.s), kernels.AvgPool3x3(in[0], g.s)} {
						out = append(out, y, Gradient(ReduceAllSum(Mul(y, in[3])), in[0])[0])
					}
				}
				return out
			})
			require.NoError(t, err)
			defer e.Finalize()
			got, err := e.Call(tensor(dtype, x, g.large()...), tensor(dtype, k, g.k, g.k, g.c),
				tensor(dtype, v, g.small()...), tensor(dtype, u, g.small()...))
			require.NoError(t, err)
			r := g.depthwise(x, k, v)
			mustAgree(t, dtype, g.k*g.k, r.y, got[0], "depthwise")
			mustAgree(t, dtype, g.k*g.k, r.dx, got[1], "depthwise, dx")
			mustAgree(t, dtype, g.b*g.rows()*g.columns(), r.dk, got[2], "depthwise, dkernel")
			got = got[3:]
			if g.s == 1 {
				unit, most := g.batchNorm(x, v)
				n := int(64 * max(1, most) * max(1, most))
				mustAgree(t, dtype, n, unit.y, got[0], "batch norm")
				mustAgree(t, dtype, n*n, unit.dx, got[1], "batch norm, dx")
				got = got[2:]
			}
			if len(got) > 0 {
				most := g.maxPool(x, u)
				require.Equal(t, most.y, values(t, got[0]), "max pool")
				mustAgree(t, dtype, 9, most.dx, got[1], "max pool, dx")
				mean := g.avgPool(x, u)
				mustAgree(t, dtype, 9, mean.y, got[2], "mean pool")
				mustAgree(t, dtype, 9, mean.dx, got[3], "mean pool, dx")
			}
		})
	}
}

// formEnv starts this test's program once more, without kernels or with others.
const formEnv = "NASML_TEST_KERNELS"

// The kernels of XLA on a CPU.
func TestKernelsAgainstTheDefinition(t *testing.T) {
	b := xlaBackend(t)
	all := geometries()
	if os.Getenv(kernels.Env) == "off" {
		all = all[1:2] // XLA takes seconds to compile the forms of one
	}
	checkAll(t, b, dtypes.Float32, all)
	checkAll(t, b, dtypes.Float64, all)
	if os.Getenv(kernels.Env) == "off" {
		require.Empty(t, backend.Kernels())
	} else {
		require.Len(t, backend.Kernels(), 32, "the kernels were called")
	}
}

// The forms that are compiled if there are no kernels.
func TestFormsAgainstTheDefinition(t *testing.T) {
	b := goBackend(t)
	checkAll(t, b, dtypes.Float32, geometries()[:16])
	checkAll(t, b, dtypes.Float64, geometries()[:16])
}

// The same without kernels, and with those for other processors.
func TestEveryKindOfProcessor(t *testing.T) {
	xlaBackend(t)
	if os.Getenv(formEnv) != "" {
		t.Skip("is one of them")
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for _, isa := range []string{"off", "plain", "avx2", "avx512"} {
		instruction := map[string]string{"avx2": "avx2", "avx512": "avx512dq"}[isa]
		if !strings.Contains(string(info), instruction) {
			continue
		}
		t.Run(isa, func(t *testing.T) {
			const kinds = "(Kernels|Stages|Dense|Rectified|Sparse|Product|Steps|Running)"
			cmd := exec.Command(os.Args[0], "-test.run=^Test"+kinds+"AgainstTheDefinition$")
			cmd.Env = append(os.Environ(), formEnv+"=1", kernels.Env+"="+isa)
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.NotContains(t, string(said), "no kernels")
			require.NotContains(t, string(said), "no tests to run")
		})
	}
}

// Derivatives of derivatives against differences of derivatives, in float64.
func TestGradientsOfGradients(t *testing.T) {
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for name, f := range map[string]func(x, k *Node) *Node{
			"depthwise":  func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 2, 1) },
			"dilated":    func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 1, 2) },
			"max pool":   func(x, k *Node) *Node { return kernels.MaxPool3x3(kernels.DepthwiseConv(x, k, 1, 1), 2) },
			"batch norm": func(x, k *Node) *Node { return batchNorm(kernels.DepthwiseConv(x, k, 1, 1)) },
			"avg pool":   func(x, k *Node) *Node { return kernels.AvgPool3x3(kernels.DepthwiseConv(x, k, 1, 1), 2) },
		} {
			t.Run(b.Name()+" "+name, func(t *testing.T) { checkSecond(t, b, f) })
		}
	}
}

// checkSecond compares the gradient of φ = ⟨∇ₖ loss, a⟩ + ⟨∇ₓ loss, c⟩ in x and k
// with differences of φ, for loss = Σ y³.
func checkSecond(t *testing.T, b compute.Backend, f func(x, k *Node) *Node) {
	const n, channels = 5, 2
	x, k := smooth(1, n*n*channels), smooth(2, 9*channels)
	a, c := smooth(3, 9*channels), smooth(4, n*n*channels)
	e, err := NewExec(b, func(in []*Node) []*Node {
		y := f(in[0], in[1])
		g := Gradient(ReduceAllSum(Mul(y, Square(y))), in[1], in[0])
		phi := Add(ReduceAllSum(Mul(g[0], in[2])), ReduceAllSum(Mul(g[1], in[3])))
		return append([]*Node{phi}, Gradient(phi, in[0], in[1])...)
	})
	require.NoError(t, err)
	defer e.Finalize()
	call := func(x, k []float64) []*tensors.Tensor {
		out, err := e.Call(tensor(dtypes.Float64, x, 1, n, n, channels), tensor(dtypes.Float64, k, 3, 3, channels),
			tensor(dtypes.Float64, a, 3, 3, channels), tensor(dtypes.Float64, c, 1, n, n, channels))
		require.NoError(t, err)
		return out
	}
	out := call(x, k)
	const h = 1e-5
	for which, at := range map[int][]float64{1: x, 2: k} {
		got := values(t, out[which])
		for i := 0; i < len(at); i += 3 {
			old := at[i]
			at[i] = old + h
			up := values(t, call(x, k)[0])[0]
			at[i] = old - h
			down := values(t, call(x, k)[0])[0]
			at[i] = old
			require.InDelta(t, (up-down)/(2*h), got[i], 1e-5*(1+math.Abs(got[i])), "input %d at %d", which, i)
		}
	}
}

// smooth draws numbers without ties.
func smooth(seed uint64, n int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 9))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// What is no number is not lost in a pool, and goes where it came from.
func TestPoolsKeepWhatIsNoNumber(t *testing.T) {
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		x := []float64{1, math.NaN(), 3, math.Inf(-1), math.Inf(-1), math.Inf(-1), math.Inf(-1), 5, math.Inf(1)}
		e, err := NewExec(b, func(x *Node) []*Node {
			y := kernels.MaxPool3x3(x, 2)
			return []*Node{y, Gradient(ReduceAllSum(Mul(y, y)), x)[0], kernels.AvgPool3x3(x, 2)}
		})
		require.NoError(t, err)
		out, err := e.Call(tensor(dtypes.Float64, x, 1, 1, 9, 1))
		require.NoError(t, err)
		y, dx, mean := values(t, out[0]), values(t, out[1]), values(t, out[2])
		require.True(t, math.IsNaN(y[0]) && math.IsNaN(y[1]), "%s: %v", b.Name(), y)
		require.Equal(t, []float64{math.Inf(-1), 5, math.Inf(1)}, y[2:], b.Name())
		require.True(t, math.IsNaN(dx[1]), "%s: %v", b.Name(), dx)
		require.Equal(t, math.Inf(-1), dx[3], "%s: a window of −∞ has a first: %v", b.Name(), dx)
		require.True(t, math.IsNaN(mean[0]), b.Name())
		e.Finalize()
	}
}

// Functions are shared by calls of one shape, also in a loop, and each shape has
// its own.
func TestFunctionsInALoop(t *testing.T) {
	b := xlaBackend(t)
	e, err := NewExec(b, func(x, k *Node) []*Node {
		g := x.Graph()
		once := kernels.DepthwiseConv(x, k, 1, 1)
		cond := NewClosure(g, func(g *Graph) []*Node {
			i := Parameter(g, "i", shapes.Make(dtypes.Int32))
			Parameter(g, "x", x.Shape())
			Parameter(g, "k", k.Shape())
			return []*Node{LessThan(i, Const(g, int32(3)))}
		})
		body := NewClosure(g, func(g *Graph) []*Node {
			i := Parameter(g, "i", shapes.Make(dtypes.Int32))
			x, k := Parameter(g, "x", x.Shape()), Parameter(g, "k", k.Shape())
			return []*Node{Add(i, Const(g, int32(1))), kernels.DepthwiseConv(x, k, 1, 1), k}
		})
		looped := While(cond, body, Const(g, int32(0)), x, k)[1]
		thrice := kernels.DepthwiseConv(kernels.DepthwiseConv(once, k, 1, 1), k, 1, 1)
		return []*Node{Sub(looped, thrice), kernels.DepthwiseConv(kernels.AvgPool3x3(x, 2), k, 1, 1)}
	})
	require.NoError(t, err)
	out, err := e.Call(tensor(dtypes.Float32, smooth(1, 2*6*6*4), 2, 6, 6, 4),
		tensor(dtypes.Float32, smooth(2, 9*4), 3, 3, 4))
	require.NoError(t, err)
	for _, d := range values(t, out[0]) {
		require.InDelta(t, 0, d, 1e-4)
	}
	require.Equal(t, []int{2, 3, 3, 4}, out[1].Shape().Dimensions)
	e.Finalize()
}

// On two devices each of which has a part of the images: a program of each, and
// one that XLA divides.
func TestKernelsOnSeveralDevices(t *testing.T) {
	b := xlaBackend(t)
	if b.NumDevices() < 2 {
		t.Skip("one device")
	}
	g := geometry{4, 6, 5, 8, 3, 1, 1}
	nx, _, nk := g.size()
	x, k := smooth(1, nx), smooth(2, nk)
	want := g.depthwise(x, k, make([]float64, nx)).y
	mesh, err := distributed.NewDeviceMesh([]int{2}, []string{"batch"})
	require.NoError(t, err)
	f := func(x, k *Node) *Node { return kernels.DepthwiseConv(x, k, 1, 1) }
	own := func() *tensors.Tensor { return tensor(dtypes.Float32, k, 3, 3, 8) }
	half := func(i int) *tensors.Tensor { return tensor(dtypes.Float32, x[i*nx/2:(i+1)*nx/2], 2, 6, 5, 8) }

	apart, err := NewExec(b, f)
	require.NoError(t, err)
	defer apart.Finalize()
	out, err := apart.SPMD(mesh).Call(half(0), own(), half(1), own())
	require.NoError(t, err)
	mustAgree(t, dtypes.Float32, 9, want[:nx/2], out[0], "the first part")
	mustAgree(t, dtypes.Float32, 9, want[nx/2:], out[1], "the second part")

	shared, err := distributed.BuildSpec(mesh).S("batch").Done()
	require.NoError(t, err)
	whole := distributed.NewReplicatedShardingSpec(mesh)
	divided, err := NewExec(b, f)
	require.NoError(t, err)
	defer divided.Finalize()
	divided = divided.AutoSharding(mesh).WithInputShardingSpecs(shared, whole).WithOutputShardingSpecs(shared)
	out, err = divided.Call(half(0), own(), half(1), own())
	require.NoError(t, err)
	mustAgree(t, dtypes.Float32, 9, want[:nx/2], out[0], "the first part")
	mustAgree(t, dtypes.Float32, 9, want[nx/2:], out[1], "the second part")
}

func TestOtherTypesHaveTheirForms(t *testing.T) {
	b := xlaBackend(t)
	g := geometry{1, 5, 4, 3, 3, 1, 1}
	nx, _, nk := g.size()
	x, k := draw(1, nx), draw(2, nk)
	e, err := NewExec(b, func(x, k *Node) *Node {
		y := kernels.DepthwiseConv(ConvertDType(x, dtypes.BFloat16), ConvertDType(k, dtypes.BFloat16), 1, 1)
		return ConvertDType(y, dtypes.Float32)
	})
	require.NoError(t, err)
	out, err := e.Call1(tensor(dtypes.Float32, x, g.large()...), tensor(dtypes.Float32, k, 3, 3, 3))
	require.NoError(t, err)
	want := g.depthwise(x, k, make([]float64, nx)).y
	for i, v := range values(t, out) {
		require.InDelta(t, want[i], v, 0.3)
	}
}

func TestWrongShapesPanic(t *testing.T) {
	b := goBackend(t)
	for name, test := range map[string]struct {
		f    func(x, k *Node) *Node
		want string
	}{
		"channels": {func(x, k *Node) *Node {
			return kernels.DepthwiseConv(x, SliceAxis(k, 2, AxisRange(0, 1)), 1, 1)
		}, "expected [k, k, 2] of the same type with k odd"},
		"even k": {func(x, k *Node) *Node {
			return kernels.DepthwiseConv(x, Slice(k, AxisRange(0, 2), AxisRange(0, 2)), 1, 1)
		}, "with k odd"},
		"stride": {func(x, k *Node) *Node { return kernels.MaxPool3x3(x, 0) },
			"stride 0 and dilation 1, expected 1 or more"},
		"rank": {func(x, k *Node) *Node { return kernels.AvgPool3x3(k, 1) },
			"expected [images, height, width, channels]"},
		"integers": {func(x, k *Node) *Node { return kernels.MaxPool3x3(ConvertDType(x, dtypes.Int32), 1) },
			"of floating-point numbers"},
	} {
		e, err := NewExec(b, test.f)
		require.NoError(t, err)
		_, err = e.Call(tensor(dtypes.Float32, make([]float64, 32), 1, 4, 4, 2),
			tensor(dtypes.Float32, make([]float64, 18), 3, 3, 2))
		require.ErrorContains(t, err, test.want, name)
	}
}

// batchNorm is x with mean 0 and variance 1 in every channel of the batch.
func batchNorm(x *Node) *Node {
	affine, _ := kernels.Normal(x)
	return kernels.Weighted(Ones(x.Graph(), shapes.Make(x.DType(), 1, 1)), []*Node{x}, []*Node{affine})
}
