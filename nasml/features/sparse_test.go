package features

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

// drawSparse draws a matrix with some empty rows, and the same one dense.
func drawSparse(t *rapid.T) (*Sparse, *mat.Dense) {
	rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "cols")
	dense := mat.NewDense(rows, cols, nil)
	s := &Sparse{Rows: rows, Cols: cols, RowPtr: []int{0}}
	for i := range rows {
		for j := range cols {
			if v := rapid.IntRange(-9, 9).Draw(t, "entry"); v > 4 || v < -6 {
				dense.Set(i, j, float64(v)/4)
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, float32(v)/4)
			}
		}
		s.RowPtr = append(s.RowPtr, len(s.Col))
	}
	return s, dense
}

func drawDense(t *rapid.T, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	m.Apply(func(int, int, float64) float64 { return rapid.Float64Range(-2, 2).Draw(t, "x") }, m)
	return m
}

func TestSparseIsItsDenseMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, dense := drawSparse(t)
		checked, err := NewSparse(s.Rows, s.Cols, s.RowPtr, s.Col, s.Val)
		require.NoError(t, err)
		require.Equal(t, s, checked)
		k := rapid.IntRange(1, 3).Draw(t, "right sides")

		x, got, want := drawDense(t, s.Cols, k), drawDense(t, s.Rows, k), mat.NewDense(s.Rows, k, nil)
		s.MulTo(got, x)
		want.Mul(dense, x)
		require.True(t, mat.EqualApprox(want, got, 1e-12))

		y, got, want := drawDense(t, s.Rows, k), drawDense(t, s.Cols, k), mat.NewDense(s.Cols, k, nil)
		s.MulTransTo(got, y)
		want.Mul(dense.T(), y)
		require.True(t, mat.EqualApprox(want, got, 1e-12))

		rows, cols := s.Dims()
		require.Equal(t, [2]int{s.Rows, s.Cols}, [2]int{rows, cols})
		sums, norms, columns := s.RowSums(), s.RowNorms(), s.ColumnSums()
		for i := range rows {
			require.InDelta(t, floats.Sum(dense.RawRowView(i)), sums[i], 1e-12)
			require.InDelta(t, floats.Norm(dense.RawRowView(i), 2), norms[i], 1e-12)
		}
		for j := range cols {
			require.InDelta(t, mat.Sum(dense.ColView(j)), columns[j], 1e-12)
		}

		pick := rapid.SliceOf(rapid.IntRange(0, rows-1)).Draw(t, "picked")
		part := s.Select(pick)
		require.Equal(t, len(pick), part.Rows)
		for i, r := range pick {
			wantCols, wantVals := s.Row(r)
			gotCols, gotVals := part.Row(i)
			require.Equal(t, append([]int32{}, wantCols...), append([]int32{}, gotCols...))
			require.Equal(t, append([]float32{}, wantVals...), append([]float32{}, gotVals...))
		}

		s.ScaleRows(norms)
		for i, sum := range s.RowSums() {
			require.InDelta(t, norms[i]*floats.Sum(dense.RawRowView(i)), sum, 1e-5)
		}
	})
}

// The last bit of a product does not depend on the number of processors.
func TestProductsDoNotDependOnProcessors(t *testing.T) {
	b, err := Bags(t.Context(), NewTexts(someTexts(t, 600)), nil, []NGramConfig{plain}, nil, 999)
	require.NoError(t, err)
	x, y := mat.NewDense(999, 2, nil), mat.NewDense(600, 2, nil)
	for _, m := range []*mat.Dense{x, y} {
		m.Apply(func(i, j int, _ float64) float64 { return math.Sin(float64(3*i + j)) }, m)
	}
	var first [2]mat.Dense
	for k, processors := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(processors)
		ax, ay := mat.NewDense(600, 2, nil), mat.NewDense(999, 2, nil)
		b.MulTo(ax, x)
		b.MulTransTo(ay, y)
		runtime.GOMAXPROCS(old)
		if k == 0 {
			first[0].CloneFrom(ax)
			first[1].CloneFrom(ay)
		}
		require.True(t, mat.Equal(&first[0], ax))
		require.True(t, mat.Equal(&first[1], ay))
	}
}

func TestNewSparseRefuses(t *testing.T) {
	for says, s := range map[string]*Sparse{
		"row pointers for 2 rows": {Rows: 2, Cols: 3, RowPtr: []int{0, 1}, Col: []int32{0}, Val: []float32{1}},
		"2 columns and 1 values": {Rows: 1, Cols: 3, RowPtr: []int{0, 2},
			Col: []int32{0, 1}, Val: []float32{1}},
		"found row 0 from 0 to 2 of 1": {Rows: 2, Cols: 3, RowPtr: []int{0, 2, 1},
			Col: []int32{0}, Val: []float32{1}},
		"found column 3 as number 0":  {Rows: 1, Cols: 3, RowPtr: []int{0, 1}, Col: []int32{3}, Val: []float32{1}},
		"found column -1 as number 0": {Rows: 1, Cols: 3, RowPtr: []int{0, 1}, Col: []int32{-1}, Val: []float32{1}},
		"found column 1 as number 1": {Rows: 1, Cols: 3, RowPtr: []int{0, 2},
			Col: []int32{1, 1}, Val: []float32{1, 1}},
		"expected ascending ones in 0…2": {Rows: 1, Cols: 3, RowPtr: []int{0, 2},
			Col: []int32{2, 1}, Val: []float32{1, 1}},
	} {
		_, err := NewSparse(s.Rows, s.Cols, s.RowPtr, s.Col, s.Val)
		require.ErrorContains(t, err, says)
	}
}

func TestProductsPanicWithBothShapes(t *testing.T) {
	s, err := NewSparse(2, 3, []int{0, 1, 2}, []int32{0, 2}, []float32{1, 2})
	require.NoError(t, err)
	require.PanicsWithValue(t, "MulTo: found 2×3 times 2×1 as 2×1, expected 3×k as 2×k",
		func() { s.MulTo(mat.NewDense(2, 1, nil), mat.NewDense(2, 1, nil)) })
	require.PanicsWithValue(t, "MulTransTo: found 2×3 times 2×1 as 3×2, expected 2×k as 3×k",
		func() { s.MulTransTo(mat.NewDense(3, 2, nil), mat.NewDense(2, 1, nil)) })
	require.Panics(t, func() { s.ScaleRows(nil) })
}

func TestSparseWithoutRows(t *testing.T) {
	s, err := NewSparse(0, 2, []int{0}, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0}, s.ColumnSums())
	require.Zero(t, s.NNZ())
	require.Empty(t, s.RowSums())
}
