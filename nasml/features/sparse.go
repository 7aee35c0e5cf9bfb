package features

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"
)

// Sparse is a matrix in compressed rows: those of row i are
// Col[RowPtr[i]:RowPtr[i+1]], ascending and each once, with their values in
// Val. What is not stored is 0.
//
// Products are summed in float64, each entry of a result in one fixed order,
// so that they do not depend on the number of processors.
type Sparse struct {
	Rows, Cols int
	RowPtr     []int // Rows+1
	Col        []int32
	Val        []float32
}

// NewSparse puts a matrix together and checks it: the counts, rows in order
// and columns ascending in each and within 0…cols−1. It keeps the slices.
func NewSparse(rows, cols int, rowPtr []int, col []int32, val []float32) (*Sparse, error) {
	if rows < 0 || cols < 0 || len(rowPtr) != rows+1 || rowPtr[0] != 0 || rowPtr[rows] != len(col) ||
		len(col) != len(val) {
		return nil, fmt.Errorf(
			"found %d×%d with %d row pointers, %d columns and %d values, expected row pointers for %d rows from 0 to "+
				"the number of columns and values", rows, cols, len(rowPtr), len(col), len(val), rows)
	}
	for i := range rows {
		from, to := rowPtr[i], rowPtr[i+1]
		if from > to || to > len(col) {
			return nil, fmt.Errorf("found row %d from %d to %d of %d, expected them in order", i, from, to, len(col))
		}
		for k := from; k < to; k++ {
			if col[k] < 0 || int(col[k]) >= cols || k > from && col[k] <= col[k-1] {
				return nil, fmt.Errorf("found column %d as number %d of row %d, expected ascending ones in 0…%d",
					col[k], k-from, i, cols-1)
			}
		}
	}
	return &Sparse{Rows: rows, Cols: cols, RowPtr: rowPtr, Col: col, Val: val}, nil
}

// Dims returns the numbers of rows and columns.
func (s *Sparse) Dims() (rows, cols int) { return s.Rows, s.Cols }

// NNZ returns how many entries are stored.
func (s *Sparse) NNZ() int { return len(s.Col) }

// Row returns the columns and values of row i, as parts of the matrix.
func (s *Sparse) Row(i int) (cols []int32, vals []float32) {
	from, to := s.RowPtr[i], s.RowPtr[i+1]
	return s.Col[from:to:to], s.Val[from:to:to]
}

// Select returns the rows of the given numbers in their order, as a copy. Like
// an index out of range, it panics if there is no such row.
func (s *Sparse) Select(rows []int) *Sparse {
	part := &Sparse{Rows: len(rows), Cols: s.Cols, RowPtr: make([]int, len(rows)+1)}
	for i, r := range rows {
		part.RowPtr[i+1] = part.RowPtr[i] + s.RowPtr[r+1] - s.RowPtr[r]
	}
	part.Col = make([]int32, 0, part.RowPtr[len(rows)])
	part.Val = make([]float32, 0, part.RowPtr[len(rows)])
	for _, r := range rows {
		cols, vals := s.Row(r)
		part.Col, part.Val = append(part.Col, cols...), append(part.Val, vals...)
	}
	return part
}

// MulTo is the product dst = S X with all columns of X at once, [Cols, k] to
// [Rows, k]. It panics if the dimensions do not fit.
func (s *Sparse) MulTo(dst, x *mat.Dense) {
	s.mustFit("MulTo", dst, x, s.Rows, s.Cols)
	inBlocks(s.Rows, 256, func(from, to int) {
		for i := from; i < to; i++ {
			out := dst.RawRowView(i)
			clear(out)
			cols, vals := s.Row(i)
			for n, c := range cols {
				addScaled(out, float64(vals[n]), x.RawRowView(int(c)))
			}
		}
	})
}

// MulTransTo is the product with the transposed matrix, dst = Sᵀ Y, [Rows, k]
// to [Cols, k]. Every entry is summed in the order of the rows: the processors
// divide the columns among themselves. It panics if the dimensions do not
// fit.
func (s *Sparse) MulTransTo(dst, y *mat.Dense) {
	s.mustFit("MulTransTo", dst, y, s.Cols, s.Rows)
	workers := max(1, min(runtime.GOMAXPROCS(0), s.Cols))
	inBlocks(workers, 1, func(from, to int) {
		s.mulColumns(dst, y, s.Cols*from/workers, s.Cols*to/workers)
	})
}

// mulColumns is the part of Sᵀ Y that the columns low…high−1 make.
func (s *Sparse) mulColumns(dst, y *mat.Dense, low, high int) {
	for c := low; c < high; c++ {
		clear(dst.RawRowView(c))
	}
	for i := range s.Rows {
		cols, vals := s.Row(i)
		in := y.RawRowView(i)
		for n := columnsBelow(cols, low); n < len(cols) && int(cols[n]) < high; n++ {
			addScaled(dst.RawRowView(int(cols[n])), float64(vals[n]), in)
		}
	}
}

// columnsBelow returns the number of columns below c.
func columnsBelow(cols []int32, c int) int {
	low, high := 0, len(cols)
	for low < high {
		if mid := (low + high) / 2; int(cols[mid]) < c {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// addScaled is dst += a x.
func addScaled(dst []float64, a float64, x []float64) {
	if len(dst) == 1 { // one right side: the common case
		dst[0] += a * x[0]
		return
	}
	for j, v := range x {
		dst[j] += a * v
	}
}

func (s *Sparse) mustFit(name string, dst, x *mat.Dense, out, in int) {
	rows, k := x.Dims()
	if r, c := dst.Dims(); rows != in || r != out || c != k {
		panic(
			fmt.Sprintf("%s: found %d×%d times %d×%d as %d×%d, expected %d×k as %d×k", name, s.Rows, s.Cols, rows, k, r,
				c, in, out))
	}
}

// RowSums returns Σⱼ Sᵢⱼ.
func (s *Sparse) RowSums() []float64 {
	return s.perRow(func(vals []float32) float64 {
		sum := 0.0
		for _, v := range vals {
			sum += float64(v)
		}
		return sum
	})
}

// RowNorms returns ‖Sᵢ‖₂.
func (s *Sparse) RowNorms() []float64 {
	return s.perRow(func(vals []float32) float64 {
		sum := 0.0
		for _, v := range vals {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum)
	})
}

func (s *Sparse) perRow(f func(vals []float32) float64) []float64 {
	out := make([]float64, s.Rows)
	for i := range out {
		_, vals := s.Row(i)
		out[i] = f(vals)
	}
	return out
}

// ScaleRows multiplies row i by factors[i], in place. It panics if there
// are not as many factors as rows.
func (s *Sparse) ScaleRows(factors []float64) {
	if len(factors) != s.Rows {
		panic(fmt.Sprintf("ScaleRows: found %d factors for %d rows", len(factors), s.Rows))
	}
	for i, f := range factors {
		_, vals := s.Row(i)
		for n := range vals {
			vals[n] = float32(f * float64(vals[n]))
		}
	}
}

// ColumnSums returns Σᵢ Sᵢⱼ.
func (s *Sparse) ColumnSums() []float64 {
	sums := make([]float64, s.Cols)
	for n, c := range s.Col {
		sums[c] += float64(s.Val[n])
	}
	return sums
}

// inBlocks calls f for the blocks of 0…n−1 on all processors. f must not
// depend on the order.
func inBlocks(n, block int, f func(from, to int)) {
	blocks := (n + block - 1) / block
	workers := min(runtime.GOMAXPROCS(0), blocks)
	if workers <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for b := int(next.Add(1)) - 1; b < blocks; b = int(next.Add(1)) - 1 {
				f(b*block, min(n, (b+1)*block))
			}
		})
	}
	wg.Wait()
}
