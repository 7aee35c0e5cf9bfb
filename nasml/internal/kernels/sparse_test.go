package kernels_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/kernels"
)

// sparseCase are S sets of B examples with D numbers, and V variants of matrices with K
// columns for each.
type sparseCase struct{ s, b, d, v, k int }

// thin are numbers of which two of three are 0.
func thin(seed uint64, n int) []float64 {
	x := smooth(seed, n)
	for i := range x {
		if i%7%3 != 0 {
			x[i] = 0
		}
	}
	return x
}

// product is z by the definition, and with the numbers u of z the gradient in w.
func (c sparseCase) product(x, w, u []float64) (z, dw []float64) {
	z, dw = make([]float64, len(u)), make([]float64, len(w))
	for s := range c.s {
		for v := range c.v {
			for b := range c.b {
				for j := range c.d {
					for k := range c.k {
						at, from := ((s*c.d+j)*c.v+v)*c.k+k, (s*c.b+b)*c.d+j
						to := ((s*c.v+v)*c.b+b)*c.k + k
						z[to] += x[from] * w[at]
						dw[at] += x[from] * u[to]
					}
				}
			}
		}
	}
	return z, dw
}

// Products, gradients, gradients of gradients and steps, with more rows than a span has,
// columns of whole parts and of pieces, and examples of zeros alone.
func TestSparseAgainstTheDefinition(t *testing.T) {
	cases := []sparseCase{{1, 1, 1, 1, 1}, {2, 5, 33, 3, 4}, {1, 17, 200, 2, 70}, {3, 4, 96, 1, 64}, {2, 3, 97, 2, 129}}
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			for i, c := range cases {
				t.Run(fmt.Sprint(b.Name(), dtype, c), func(t *testing.T) { c.check(t, b, dtype, uint64(10*i)) })
			}
		}
	}
}

func (c sparseCase) check(t *testing.T, b compute.Backend, dtype dtypes.DType, seed uint64) {
	x, w := thin(seed, c.s*c.b*c.d), smooth(seed+1, c.s*c.d*c.v*c.k)
	u := smooth(seed+2, c.s*c.v*c.b*c.k)
	clear(x[:c.d])
	z, dw := c.product(x, w, u)
	again, _ := c.product(x, dw, u)
	next := make([]float64, len(w))
	for i := range w {
		next[i] = w[i] - 0.1*dw[i]
	}
	e, err := NewExec(b, func(x, w, u *Node) []*Node {
		z := kernels.Sparse(x, w)
		dw := Gradient(ReduceAllSum(Mul(z, u)), w)[0]
		half := MulScalar(ReduceAllSum(Mul(dw, dw)), 0.5) // its gradient in u is Sparse(x, dw)
		return []*Node{z, dw, kernels.SparseDescent(x, w, u, 0.1), Gradient(half, u)[0]}
	})
	require.NoError(t, err)
	defer e.Finalize()
	got, err := e.Call(tensor(dtype, x, c.s, c.b, c.d), tensor(dtype, w, c.s, c.d, c.v, c.k),
		tensor(dtype, u, c.s, c.v, c.b, c.k))
	require.NoError(t, err)
	for i, want := range [][]float64{z, dw, next, again} {
		mustAgree(t, dtype, c.d*c.b, want, got[i], fmt.Sprint("output ", i))
	}
}

// In a loop the matrices are written over, and the ones that were given stay.
func TestSparseDescentInALoop(t *testing.T) {
	b := xlaBackend(t)
	e, err := NewExec(b, func(x, w *Node) []*Node {
		g := x.Graph()
		parameters := func(g *Graph) (*Node, *Node, *Node) {
			i := Parameter(g, "i", shapes.Make(dtypes.Int32))
			return i, Parameter(g, "x", x.Shape()), Parameter(g, "w", w.Shape())
		}
		step := func(x, w *Node) *Node { return kernels.SparseDescent(x, w, Tanh(kernels.Sparse(x, w)), 0.1) }
		cond := NewClosure(g, func(g *Graph) []*Node {
			i, _, _ := parameters(g)
			return []*Node{LessThan(i, Const(g, int32(3)))}
		})
		body := NewClosure(g, func(g *Graph) []*Node {
			i, x, w := parameters(g)
			return []*Node{Add(i, Const(g, int32(1))), x, step(x, w)}
		})
		looped := While(cond, body, Const(g, int32(0)), x, w)[2]
		return []*Node{Sub(looped, step(x, step(x, step(x, w)))), w}
	})
	require.NoError(t, err)
	defer e.Finalize()
	given := smooth(2, 2*30*3*20)
	out, err := e.Call(tensor(dtypes.Float64, thin(1, 2*5*30), 2, 5, 30), tensor(dtypes.Float64, given, 2, 30, 3, 20))
	require.NoError(t, err)
	for _, d := range values(t, out[0]) {
		require.Zero(t, d)
	}
	require.Equal(t, given, values(t, out[1]))
}

func TestSparseRefusesOtherShapes(t *testing.T) {
	one := func(dims ...int) any { return tensor(dtypes.Float64, make([]float64, 6), dims...) }
	for name, c := range map[string]struct {
		x, w, u any
		says    string
	}{
		"rows": {one(1, 2, 3), one(1, 6, 1, 1), one(1, 1, 2, 3), "x is (Float64)[1, 2, 3] and w (Float64)[1, 6, 1, 1]"},
		"gradient": {
			one(1, 2, 3), one(1, 3, 1, 2), one(1, 1, 3, 2), "is (Float64)[1, 1, 3, 2], expected (Float64)[1, 1, 2, 2]",
		},
	} {
		e := MustNewExec(goBackend(t), func(x, w, u *Node) *Node { return kernels.SparseDescent(x, w, u, 1) })
		_, err := e.Call(c.x, c.w, c.u)
		require.ErrorContains(t, err, c.says, name)
	}
}
