package features

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Sparse is a matrix in compressed rows: those of row i are
// Col[RowPtr[i]:RowPtr[i+1]], ascending and each once, with their values in
// Val. What is not stored is 0.
type Sparse struct {
	Rows, Cols int
	RowPtr     []int // Rows+1
	Col        []int32
	Val        []float32
}

// NNZ returns how many entries are stored.
func (s *Sparse) NNZ() int { return len(s.Col) }

// Row returns the columns and values of row i, as parts of the matrix.
func (s *Sparse) Row(i int) (cols []int32, vals []float32) {
	from, to := s.RowPtr[i], s.RowPtr[i+1]
	return s.Col[from:to:to], s.Val[from:to:to]
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
