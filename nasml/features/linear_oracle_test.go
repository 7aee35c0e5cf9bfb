package features

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// linearOracle is what testdata/linear.py prints: SciPy's and scikit-learn's
// solutions of problems that both languages make from the same formulas.
type linearOracle struct {
	LSQR []struct {
		N, D               int
		Decay, Damp, Tol   float64
		Iterations, Stop   []int
		Residual, Gradient []float64
		X                  [][]float64
	}
	Ridge []struct {
		N, D              int
		Decay, Alpha, Tol float64
		Iterations        []int
		Weights           [][]float64
		Intercept         []float64
	}
	SVM []struct {
		N, D         int
		Loss         string
		C            float64
		Intercept    bool
		Objective, B float64
		W            []float64
	}
}

func oracleMatrix(n, d int, decay, shift float64) *mat.Dense {
	a := mat.NewDense(n, d, nil)
	a.Apply(func(i, j int, _ float64) float64 {
		x, y := float64(i), float64(j)
		return math.Sin(1+12.9898*x+78.233*y+x*y)/math.Pow(1+y, decay) + shift
	}, a)
	return a
}

func oracleTargets(n, k int) *mat.Dense {
	y := mat.NewDense(n, k, nil)
	y.Apply(func(i, j int, _ float64) float64 {
		a, b := float64(i), float64(j)
		return math.Cos(3+4.1414*a+1.7*b+0.1*a*b) + 0.5*b
	}, y)
	return y
}

// oracleRows are the sparse rows and labels of a problem for the SVM.
func oracleRows(n, d int) (*Sparse, []int8) {
	a := oracleMatrix(n, d, 0, 0)
	rows, labels := emptyRows(d), make([]int8, n)
	for i := range n {
		var cols []int32
		var vals []float32
		values := make([]float64, d)
		for j := range d {
			if v := float32(a.At(i, j)); math.Abs(float64(v)) >= 0.6 {
				cols, vals, values[j] = append(cols, int32(j)), append(vals, v), float64(v)
			}
		}
		rows.add(cols, vals)
		labels[i] = -1
		if math.Cos(5+2.3*float64(i)+values[0])+values[1] > 0 {
			labels[i] = 1
		}
	}
	return rows, labels
}

func TestLinearModelsAgainstSciPyAndScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/linear.json")
	require.NoError(t, err)
	checkOracle(t, text)
}

func TestLinearModelsAgainstLiveOracle(t *testing.T) {
	python, err := filepath.Abs("../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if exec.Command(python, "-c", "import scipy, sklearn").Run() != nil {
		t.Skip("no scikit-learn in .nasml/venv-peers: go tool nasml bench --peers installs it")
	}
	text, err := exec.CommandContext(t.Context(), python, "testdata/linear.py").Output()
	require.NoError(t, err)
	checkOracle(t, text)
}

func checkOracle(t *testing.T, text []byte) {
	var o linearOracle
	require.NoError(t, json.Unmarshal(text, &o))
	require.NotEmpty(t, o.LSQR)
	require.NotEmpty(t, o.Ridge)
	require.NotEmpty(t, o.SVM)
	ctx := context.Background()
	stops := []Stop{
		StopZero,
		StopResidual,
		StopLeastSquares,
		StopCondition,
		StopExact,
		StopFlat,
		StopSingular,
		StopLimit,
	}
	for _, c := range o.LSQR {
		a, b := oracleMatrix(c.N, c.D, c.Decay, 0), oracleTargets(c.N, 3)
		x, s := lsqrOf(t, a, b, c.Damp, c.Tol)
		for j, want := range c.Iterations {
			require.InDeltaSlice(t, c.X[j], mat.Col(nil, j, x), 1e-9*mat.Norm(x, math.Inf(1)))
			require.InDelta(t, c.Residual[j], s.Residual[j], 1e-9*(1+c.Residual[j]))
			if c.Tol < 1e-4 {
				continue // at this precision rounding decides when it ends
			}
			require.Equal(
				t,
				want,
				s.Iterations[j],
				"n = %d, d = %d, damp = %v, tol = %v, target %d",
				c.N,
				c.D,
				c.Damp,
				c.Tol,
				j,
			)
			require.Equal(t, stops[c.Stop[j]], s.Stop[j])
			require.InEpsilon(t, c.Gradient[j], s.Gradient[j], 1e-6)
		}
	}
	for _, c := range o.Ridge {
		a, y := oracleMatrix(c.N, c.D, c.Decay, 0.3), oracleTargets(c.N, 3)
		m, err := FitRidge(ctx, dense{a}, y, RidgeParams{Lambda: c.Alpha, Tol: c.Tol})
		require.NoError(t, err)
		if c.Tol >= 1e-4 {
			require.Equal(t, c.Iterations, m.Solve.Iterations, "%+v", c)
		}
		require.InDeltaSlice(t, c.Intercept, m.Intercept, 1e-9)
		for j, w := range c.Weights {
			require.InDeltaSlice(t, w, mat.Col(nil, j, m.Weights), 1e-9)
		}
	}
	for _, c := range o.SVM {
		if !c.Intercept {
			continue
		}
		rows, labels := oracleRows(c.N, c.D)
		m, err := FitSVM(ctx, rows, labels, SVMParams{C: c.C, Loss: c.Loss, Tol: 1e-6, MaxEpochs: 1e6, Seed: 3})
		require.NoError(t, err)
		require.True(t, m.Converged)
		require.InEpsilon(t, c.Objective, m.Primal, 1e-4)
		require.InEpsilon(t, c.Objective, m.Dual, 1e-4)
		require.InDeltaSlice(t, c.W, m.Weights, 1e-3)
		require.InDelta(t, c.B, m.Intercept, 1e-3)
	}
}

// emptyRows are sparse rows to add to.
func emptyRows(cols int) *Sparse { return &Sparse{Cols: cols, RowPtr: []int{0}} }

func (s *Sparse) add(cols []int32, vals []float32) {
	s.Col, s.Val = append(s.Col, cols...), append(s.Val, vals...)
	s.Rows, s.RowPtr = s.Rows+1, append(s.RowPtr, len(s.Col))
}
