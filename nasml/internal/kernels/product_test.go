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

// productCase are S × V models, each with B rows of K numbers and a matrix [L, K].
type productCase struct{ s, v, b, l, k int }

// product is x wᵀ by the definition, with the numbers u of it the gradients uw and uᵀx.
func (c productCase) product(x, w, u []float64) (z, dx, dw []float64) {
	z, dx, dw = make([]float64, len(u)), make([]float64, len(x)), make([]float64, len(w))
	for m := range c.s * c.v {
		for b := range c.b {
			for l := range c.l {
				for k := range c.k {
					row, of, to := (m*c.b+b)*c.k+k, (m*c.l+l)*c.k+k, (m*c.b+b)*c.l+l
					z[to] += x[row] * w[of]
					dx[row] += u[to] * w[of]
					dw[of] += u[to] * x[row]
				}
			}
		}
	}
	return z, dx, dw
}

// Products, gradients and gradients of gradients, for matrices of whole panels and of
// pieces, rows of several parts, and single numbers.
func TestProductAgainstTheDefinition(t *testing.T) {
	cases := []productCase{
		{1, 1, 1, 1, 1}, {2, 3, 5, 7, 3}, {1, 2, 128, 64, 128}, {3, 1, 66, 1, 32}, {1, 2, 70, 129, 17},
		{1, 1, 4, 400, 400},
	}
	for _, b := range []compute.Backend{goBackend(t), xlaBackend(t)} {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			for i, c := range cases {
				t.Run(fmt.Sprint(b.Name(), dtype, c), func(t *testing.T) { c.check(t, b, dtype, uint64(10*i)) })
			}
		}
	}
}

func (c productCase) check(t *testing.T, b compute.Backend, dtype dtypes.DType, seed uint64) {
	x, w := smooth(seed, c.s*c.v*c.b*c.k), smooth(seed+1, c.s*c.v*c.l*c.k)
	u := smooth(seed+2, c.s*c.v*c.b*c.l)
	z, dx, dw := c.product(x, w, u)
	_, xw, _ := c.product(x, dw, u) // with dx = uw and dw = uᵀx, ½‖dx‖² + ½‖dw‖² has in x the gradient u dw,
	zx, _, _ := c.product(x, dw, u) // and in u dx wᵀ + x dwᵀ
	zw, _, _ := c.product(dx, w, u)
	for i := range zx {
		zx[i] += zw[i]
	}
	e, err := NewExec(b, func(x, w, u *Node) []*Node {
		z := kernels.Product(x, w)
		first := Gradient(ReduceAllSum(Mul(z, u)), x, w)
		half := MulScalar(Add(ReduceAllSum(Square(first[0])), ReduceAllSum(Square(first[1]))), 0.5)
		second := Gradient(half, x, u)
		return []*Node{z, first[0], first[1], second[0], second[1]}
	})
	require.NoError(t, err)
	defer e.Finalize()
	got, err := e.Call(tensor(dtype, x, c.s, c.v, c.b, c.k), tensor(dtype, w, c.s, c.v, c.l, c.k),
		tensor(dtype, u, c.s, c.v, c.b, c.l))
	require.NoError(t, err)
	terms := c.k*(c.l+c.b) + c.l*c.b // of sums of sums
	for i, want := range [][]float64{z, dx, dw, xw, zx} {
		mustAgree(t, dtype, terms, want, got[i], fmt.Sprint("output ", i))
	}
}

func TestProductRefusesOtherShapes(t *testing.T) {
	one := func(dims ...int) any { return tensor(dtypes.Float64, make([]float64, 6), dims...) }
	for name, w := range map[string]any{"numbers": one(1, 1, 2, 3), "models": one(1, 3, 1, 2), "axes": one(1, 3, 2)} {
		e := MustNewExec(goBackend(t), kernels.Product)
		_, err := e.Call(one(1, 1, 3, 2), w)
		require.ErrorContains(t, err, "expected [S, V, B, K] and [S, V, L, K]", name)
	}
}
