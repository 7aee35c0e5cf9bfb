package kernels_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/kernels"
)

// denseCase is a convolution of maps with so many channels behind it.
type denseCase struct {
	geometry
	wide   int
	linear bool
}

func denseCases() (all []denseCase) {
	channels := []int{1, 3, 4, 8, 16, 21, 33}
	for i := range 14 {
		all = append(all, denseCase{geometry{
			b: 1 + i%4, h: []int{9, 6, 12, 2, 5, 1}[i%6], w: []int{7, 16, 3, 8, 1}[i%5], c: channels[i%7],
			k: 3 - 2*(i%3/2), s: 1, d: 1,
		}, channels[(i+3)%7], i%4 > 1})
	}
	return append(all, denseCase{geometry{20, 4, 5, 16, 3, 1, 1}, 16, false},
		denseCase{geometry{2, 32, 32, 16, 3, 1, 1}, 48, false}, denseCase{geometry{3, 17, 17, 80, 1, 1, 1}, 16, true})
}

// dense is z by the definition, in float64.
func (s denseCase) dense(x, affine, kernel []float64) []float64 {
	r := make([]float64, len(x))
	for i := range x {
		if r[i] = affine[i%s.c]*x[i] + affine[s.c+i%s.c]; !s.linear {
			r[i] = math.Max(0, r[i])
		}
	}
	z := make([]float64, s.b*s.h*s.w*s.wide)
	s.visit(func(at, from, tap, c int) {
		for m := range s.wide {
			z[at/s.c*s.wide+m] += r[from] * kernel[(tap*s.c+c)*s.wide+m]
		}
	})
	return z
}

func (s denseCase) of(x, affine *Node, filters ...*Node) []kernels.Filtered {
	if s.linear {
		return kernels.Linear(x, affine, filters...)
	}
	return kernels.Dense(x, affine, filters...)
}

// cell is the weighted sum of a convolution and of another map behind it, both
// normalised.
func (s denseCase) cell(in []*Node) []*Node {
	y := s.of(in[0], in[1], in[2])[0]
	again, _ := kernels.Normal(Tanh(y.Z))
	sum := kernels.Weighted(in[3], []*Node{y.Z, Tanh(y.Z)}, []*Node{y.Normal, again})
	return []*Node{y.Z, y.Normal, y.Moments, sum}
}

func (s denseCase) inputs(seed uint64) (values [][]float64, dims [][]int) {
	nx, _, nk := s.size()
	values = [][]float64{smooth(seed, nx), affineOf(seed+1, s.c), smooth(seed+2, nk*s.wide), {0.3, 0.7}}
	return values, [][]int{s.large(), {2, s.c}, {s.k, s.k, s.c, s.wide}, {1, 2}}
}

// checkDense compares convolutions and their gradients with the definition, the
// gradients as differences of a number of all outputs.
func checkDense(t *testing.T, b compute.Backend, dtype dtypes.DType, all []denseCase) {
	for i, s := range all {
		if s.b*s.h*s.w == 1 {
			continue // one value has no variance
		}
		t.Run(fmt.Sprintf("%v", s), func(t *testing.T) {
			at, dims := s.inputs(uint64(20 * i))
			e, err := NewExec(b, func(in []*Node) []*Node {
				out := s.cell(in)
				return append(out, Gradient(ReduceAllSum(Mul(out[3], in[4])), in[:4]...)...)
			})
			require.NoError(t, err)
			defer e.Finalize()
			z := s.dense(at[0], at[1], at[2])
			v := smooth(uint64(20*i+9), len(z))
			args := func(values [][]float64) (all []any) {
				for i := range values {
					all = append(all, tensor(dtype, values[i], dims[i]...))
				}
				return append(all, tensor(dtype, v, s.b, s.h, s.w, s.wide))
			}
			got, err := e.Call(args(at)...)
			require.NoError(t, err)
			terms := 4 * s.k * s.k * s.c // of tiles
			mustAgree(t, dtype, terms, z, got[0], "convolution")
			affine, moments := normal(z, s.wide)
			most := max(1, slices.Max(affine[:s.wide]))
			mustAgree(t, dtype, terms*int(most*most*most*most), affine, got[1], "scale and shift")
			largest := max(1, int(slices.Max(moments)))
			mustAgree(t, dtype, terms*largest*largest, moments, got[2], "moments")
			if dtype == dtypes.Float64 {
				stageCase{}.checkSlopes(t, e, args, at, v, got[4:])
			}
		})
	}
}

func TestDenseAgainstTheDefinition(t *testing.T) {
	b := xlaBackend(t)
	all := denseCases()
	if os.Getenv(kernels.Env) == "off" {
		all = all[2:4] // XLA takes seconds to compile the forms of one
	}
	checkDense(t, b, dtypes.Float32, all)
	checkDense(t, b, dtypes.Float64, all)
	if os.Getenv(kernels.Env) == "off" {
		require.Empty(t, backend.Kernels())
		return
	}
	require.Subset(t, backend.Kernels(), []string{
		"nasml_dense", "nasml_dense_gradient", "nasml_linear", "nasml_linear_gradient",
	})
}

// Kernels that read one map together give the bits that each gives alone, and
// gradients in x that are added up from the last on.
func TestKernelsTogetherAreKernelsAlone(t *testing.T) {
	for _, b := range []compute.Backend{xlaBackend(t), goBackend(t)} {
		for i, s := range []denseCase{
			{geometry{b: 3, h: 5, w: 9, c: 21, k: 1, s: 1, d: 1}, 5, true},
			{geometry{b: 2, h: 8, w: 8, c: 16, k: 1, s: 1, d: 1}, 16, false},
			{geometry{b: 2, h: 3, w: 4, c: 8, k: 3, s: 1, d: 1}, 4, false},
		} {
			t.Run(fmt.Sprint(b.Name(), i), func(t *testing.T) {
				steps := func(together bool) []*tensors.Tensor {
					e, err := NewExec(b, func(in []*Node) []*Node { return s.several(together, in) })
					require.NoError(t, err)
					defer e.Finalize()
					values, dims := s.inputs(uint64(i))
					var args []any
					for k, at := range []int{0, 1, 2, 2, 2} {
						v := smooth(uint64(k), len(values[at]))
						args = append(args, tensor(dtypes.Float32, v, dims[at]...))
					}
					out, err := e.Call(args...)
					require.NoError(t, err)
					return out
				}
				alone := steps(false)
				for k, together := range steps(true) {
					require.Equal(t, values(t, alone[k]), values(t, together), "result %d", k)
				}
			})
		}
	}
}

// several are three convolutions of one map, with the gradients of a number of all
// that they give.
func (s denseCase) several(together bool, in []*Node) []*Node {
	all := s.of(in[0], in[1], in[2:]...)
	if !together {
		for i, kernel := range in[2:] {
			all[i] = s.of(in[0], in[1], kernel)[0]
		}
	}
	var number *Node
	var out []*Node
	for i, y := range all {
		out = append(out, y.Z, y.Normal, y.Moments)
		term := Add(ReduceAllSum(Sin(MulScalar(y.Z, i+1))), ReduceAllSum(Cos(y.Normal)))
		if number == nil {
			number = term
		} else {
			number = Add(number, term)
		}
	}
	return append(out, Gradient(number, in...)...)
}

func TestFormsOfDenseAgainstTheDefinition(t *testing.T) {
	checkDense(t, goBackend(t), dtypes.Float64, denseCases()[:13])
}

// Derivatives of derivatives of a convolution and of what stands around it.
func TestGradientsOfGradientsOfDense(t *testing.T) {
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for _, s := range []denseCase{{linear: false}, {linear: true}} {
			t.Run(fmt.Sprint(b.Name(), s.linear), func(t *testing.T) {
				checkSecond(t, b, func(x, k *Node) *Node {
					rows := func(value any) *Node { return ConstAsDType(x.Graph(), x.DType(), value) }
					d := k.Shape().Dimensions // depthwise
					wide := BroadcastToDims(ExpandAxes(Mul(k, Cos(k)), -1), d[0], d[1], d[2], 2)
					mean := rows([][]float64{slices.Repeat([]float64{0.3}, d[0]*d[1])})
					point := Reshape(Dot(mean, Reshape(wide, d[0]*d[1], -1)).Product(), 1, 1, d[2], 2)
					in := Mul(rows([][]float64{{1, 0.7}, {0.1, -0.2}}), BroadcastToDims(Cos(ReduceAllMean(x)), 2, 2))
					maps, affine := []*Node{x}, []*Node{in}
					for _, y := range append(s.of(x, in, wide), s.of(x, in, point, Sin(point))...) {
						maps, affine = append(maps, y.Z), append(affine, y.Normal)
					}
					return kernels.Weighted(rows([][]float64{{0.4, 0.6, 0.3, -0.2}}), maps, affine)
				})
			})
		}
	}
}

// rectifiedCase are maps that are added up, some of them cut off at 0.
type rectifiedCase struct {
	geometry
	on []bool
}

func (s rectifiedCase) sum(weights []float64, x, affine [][]float64) []float64 {
	y := make([]float64, len(x[0]))
	for k := range x {
		for i := range y {
			a := affine[k][i%s.c]*x[k][i] + affine[k][s.c+i%s.c]
			if s.on[k] {
				a = math.Max(0, a)
			}
			y[i] += weights[k] * a
		}
	}
	return y
}

func TestRectifiedAgainstTheDefinition(t *testing.T) {
	for _, b := range []compute.Backend{xlaBackend(t), goBackend(t)} {
		for i, s := range []rectifiedCase{
			{geometry{b: 2, h: 5, w: 3, c: 21}, []bool{true, false, true}},
			{geometry{b: 9, h: 8, w: 8, c: 16}, []bool{true}},
			{geometry{b: 1, h: 1, w: 2, c: 3}, []bool{false, false, true, true, false}},
		} {
			t.Run(fmt.Sprint(b.Name(), i), func(t *testing.T) {
				n := len(s.on)
				e, err := NewExec(b, func(in []*Node) []*Node {
					x, affine, v := in[1:1+n], in[1+n:1+2*n], in[1+2*n]
					y := kernels.Rectified(in[0], x, affine, s.on)
					g := Gradient(ReduceAllSum(Mul(y, v)), in[:1+2*n]...)
					return append([]*Node{y, y, y, y}, g...)
				})
				require.NoError(t, err)
				defer e.Finalize()
				weights, size := smooth(uint64(i), n), s.b*s.h*s.w*s.c
				at, dims := [][]float64{weights}, [][]int{{1, n}}
				var x, affine [][]float64
				for k := range n {
					x, affine = append(x, smooth(uint64(90*i+k), size)), append(affine, affineOf(uint64(70*i+k), s.c))
				}
				for range n {
					dims = append(dims, s.large())
				}
				for range n {
					dims = append(dims, []int{2, s.c})
				}
				at = append(append(at, x...), affine...)
				v := smooth(9, size)
				args := func(values [][]float64) (all []any) {
					for i := range values {
						all = append(all, tensor(dtypes.Float64, values[i], dims[i]...))
					}
					return append(all, tensor(dtypes.Float64, v, s.large()...))
				}
				got, err := e.Call(args(at)...)
				require.NoError(t, err)
				mustAgree(t, dtypes.Float64, 4*n, s.sum(weights, x, affine), got[0], "sum")
				stageCase{}.checkSlopes(t, e, args, at, v, got[4:])
			})
		}
	}
	if os.Getenv(kernels.Env) != "off" {
		require.Subset(t, backend.Kernels(), []string{"nasml_rectified", "nasml_rectified_gradient"})
	}
}

// What is no number stays one, cut off or not.
func TestRectifiedKeepsWhatIsNoNumber(t *testing.T) {
	for _, b := range []compute.Backend{xlaBackend(t), goBackend(t)} {
		for _, on := range []bool{true, false} {
			out, err := ExecOnce(b, func(x *Node) *Node {
				row := func(value float64) *Node { return Reshape(ConstAsDType(x.Graph(), x.DType(), value), 1, 1) }
				return kernels.Rectified(row(2), []*Node{x}, []*Node{kernels.Affine(row(1), row(0))}, []bool{on})
			}, [][][][]float64{{{{math.NaN()}, {-1}}, {{3}, {math.Inf(1)}}}})
			require.NoError(t, err)
			got := values(t, out)
			require.True(t, math.IsNaN(got[0]))
			require.Equal(t, map[bool]float64{true: 0, false: -2}[on], got[1])
			require.Equal(t, []float64{6, math.Inf(1)}, got[2:])
		}
	}
}

func TestGradientsOfGradientsOfRectified(t *testing.T) {
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		t.Run(b.Name(), func(t *testing.T) {
			checkSecond(t, b, func(x, k *Node) *Node {
				rows := func(value any) *Node { return ConstAsDType(x.Graph(), x.DType(), value) }
				in := Mul(rows([][]float64{{1, 0.7}, {0.1, -0.2}}), BroadcastToDims(Cos(ReduceAllMean(k)), 2, 2))
				weights := Mul(rows([][]float64{{0.4, 0.6}}), BroadcastToDims(Sin(ReduceAllSum(x)), 1, 2))
				return kernels.Rectified(weights, []*Node{x, Tanh(x)}, []*Node{in, Sin(in)}, []bool{true, false})
			})
		})
	}
}
