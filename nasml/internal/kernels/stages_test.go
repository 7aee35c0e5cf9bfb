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

// stageCase is a stage of maps with so many channels behind it.
type stageCase struct {
	geometry
	wide int
}

func stageCases() (all []stageCase) {
	channels := []int{1, 3, 4, 8, 16, 21, 33}
	for i, kind := range [][3]int{
		{3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}, {5, 1, 1}, {5, 2, 1}, {5, 1, 2}, {5, 2, 2}, {7, 1, 1}, {7, 2, 1},
		{7, 1, 2}, {7, 2, 2}, {3, 3, 1}, {3, 1, 3},
	} {
		all = append(all, stageCase{geometry{
			b: 2 + i%3, h: []int{9, 6, 12, 2, 5}[i%5], w: []int{7, 16, 3, 8}[i%4],
			c: channels[i%7], k: kind[0], s: kind[1], d: kind[2],
		}, channels[(i+3)%7]})
	}
	return append(all, stageCase{geometry{20, 4, 5, 16, 3, 1, 1}, 16}, stageCase{geometry{2, 32, 32, 16, 5, 1, 2}, 16})
}

// affineOf draws scales around 1 and shifts around 0.
func affineOf(seed uint64, c int) []float64 {
	a := smooth(seed, 2*c)
	for i := range c {
		a[i] = 1 + 0.3*a[i]
	}
	return a
}

// stage is z by the definition, in float64.
func (s stageCase) stage(x, affine, kernel, pointwise []float64) []float64 {
	r := make([]float64, len(x))
	for i := range x {
		r[i] = math.Max(0, affine[i%s.c]*x[i]+affine[s.c+i%s.c])
	}
	_, ny, _ := s.size()
	u := s.depthwise(r, kernel, make([]float64, ny)).y
	z := make([]float64, ny/s.c*s.wide)
	for i := range z {
		for c := range s.c {
			z[i] += u[i/s.wide*s.c+c] * pointwise[c*s.wide+i%s.wide]
		}
	}
	return z
}

// normal are scale and shift, mean and variance by the definition.
func normal(z []float64, c int) (affine, moments []float64) {
	affine, moments = make([]float64, 2*c), make([]float64, 2*c)
	n := float64(len(z) / c)
	for i, v := range z {
		moments[i%c] += v / n
	}
	for i, v := range z {
		moments[c+i%c] += (v - moments[i%c]) * (v - moments[i%c]) / n
	}
	for i := range c {
		affine[i] = 1 / math.Sqrt(moments[c+i]+kernels.Epsilon)
		affine[c+i] = -moments[i] * affine[i]
	}
	return affine, moments
}

// cell is the weighted sum of a stage and of another map behind it, both
// normalised: all that a cell does.
func (s stageCase) cell(in []*Node) []*Node {
	x, affine, kernel, pointwise, weights := in[0], in[1], in[2], in[3], in[4]
	z, own, moments := kernels.Stage(x, affine, kernel, pointwise, s.s, s.d)
	again, _ := kernels.Normal(Tanh(z))
	y := kernels.Weighted(weights, []*Node{z, Tanh(z)}, []*Node{own, again})
	return []*Node{z, own, moments, y}
}

func (s stageCase) inputs(seed uint64) (values [][]float64, dims [][]int) {
	nx, _, nk := s.size()
	values = [][]float64{
		smooth(seed, nx), affineOf(seed+1, s.c), smooth(seed+2, nk), smooth(seed+3, s.c*s.wide), {0.3, 0.7},
	}
	return values, [][]int{s.large(), {2, s.c}, {s.k, s.k, s.c}, {s.c, s.wide}, {1, 2}}
}

// checkStages compares stages, their sums and their gradients with the
// definition, the gradients as differences of a number of all outputs.
func checkStages(t *testing.T, b compute.Backend, dtype dtypes.DType, all []stageCase) {
	for i, s := range all {
		t.Run(fmt.Sprintf("%v", s), func(t *testing.T) {
			values1, dims := s.inputs(uint64(20 * i))
			e, err := NewExec(b, func(in []*Node) []*Node {
				out := s.cell(in)
				loss := ReduceAllSum(Mul(out[3], in[5]))
				return append(out, Gradient(loss, in[:5]...)...)
			})
			require.NoError(t, err)
			defer e.Finalize()
			z := s.stage(values1[0], values1[1], values1[2], values1[3])
			out := smooth(uint64(20*i+9), len(z))
			args := func(v [][]float64) []any {
				var all []any
				for i := range v {
					all = append(all, tensor(dtype, v[i], dims[i]...))
				}
				return append(all, tensor(dtype, out, s.b, s.rows(), s.columns(), s.wide))
			}
			got, err := e.Call(args(values1)...)
			require.NoError(t, err)
			mustAgree(t, dtype, s.k*s.k*s.c, z, got[0], "stage")
			affine, moments := normal(z, s.wide)
			most := 1.0
			for _, scale := range affine[:s.wide] {
				most = max(most, scale)
			}
			n := s.k * s.k * s.c * int(most*most*most*most)
			mustAgree(t, dtype, n, affine, got[1], "scale and shift")
			largest := max(1, int(slices.Max(moments)))
			mustAgree(t, dtype, s.k*s.k*s.c*largest*largest, moments, got[2], "moments")
			if dtype == dtypes.Float64 {
				s.checkSlopes(t, e, args, values1, out, got[4:])
			}
		})
	}
}

// checkSlopes compares gradients with differences along a direction.
func (s stageCase) checkSlopes(
	t *testing.T, e *Exec, args func([][]float64) []any, at [][]float64, v []float64, gradients []*tensors.Tensor,
) {
	loss := func(step float64, which int, direction []float64) (sum float64) {
		moved := make([][]float64, len(at))
		copy(moved, at)
		moved[which] = make([]float64, len(at[which]))
		for i := range direction {
			moved[which][i] = at[which][i] + step*direction[i]
		}
		got, err := e.Call(args(moved)...)
		require.NoError(t, err)
		for i, y := range values(t, got[3]) {
			sum += y * v[i]
		}
		return sum
	}
	for which, gradient := range gradients {
		direction, slope := smooth(uint64(which), len(at[which])), 0.0
		for i, g := range values(t, gradient) {
			slope += g * direction[i]
		}
		const h = 1e-6
		difference := (loss(h, which, direction) - loss(-h, which, direction)) / (2 * h)
		require.InDelta(t, difference, slope, 1e-5*(1+math.Abs(slope)), "input %d", which)
	}
}

func TestStagesAgainstTheDefinition(t *testing.T) {
	b := xlaBackend(t)
	all := stageCases()
	if os.Getenv(kernels.Env) == "off" {
		all = all[3:4] // XLA takes seconds to compile the forms of one
	}
	checkStages(t, b, dtypes.Float32, all)
	checkStages(t, b, dtypes.Float64, all)
	if os.Getenv(kernels.Env) == "off" {
		require.Empty(t, backend.Kernels())
		return
	}
	require.Subset(t, backend.Kernels(), []string{"nasml_stage", "nasml_stage_gradient", "nasml_weighted_gradient"})
}

func TestFormsOfStagesAgainstTheDefinition(t *testing.T) {
	checkStages(t, goBackend(t), dtypes.Float64, stageCases()[:13])
}

// Derivatives of derivatives of what stands between two normalisations.
func TestGradientsOfGradientsOfStages(t *testing.T) {
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		t.Run(b.Name(), func(t *testing.T) {
			checkSecond(t, b, func(x, k *Node) *Node {
				rows := func(value any) *Node { return ConstAsDType(x.Graph(), x.DType(), value) }
				pointwise := Mul(rows([][]float64{{0.5, -1}, {1, 0.3}}), BroadcastToDims(Sin(ReduceAllSum(k)), 2, 2))
				in := Mul(rows([][]float64{{1, 0.7}, {0.1, -0.2}}), BroadcastToDims(Cos(ReduceAllMean(x)), 2, 2))
				z, affine, _ := kernels.Stage(x, in, k, pointwise, 1, 1)
				return kernels.Weighted(rows([][]float64{{0.4, 0.6}}), []*Node{z, x}, []*Node{affine, in})
			})
		})
	}
}
