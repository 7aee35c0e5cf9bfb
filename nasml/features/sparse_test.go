package features

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady"
)

// Blocks cover every number once, on any number of processors.
func TestInBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := runtime.GOMAXPROCS(rapid.IntRange(1, 7).Draw(t, "processors"))
		defer runtime.GOMAXPROCS(old)
		seen := make([]atomic.Int32, rapid.IntRange(0, 500).Draw(t, "n"))
		inBlocks(len(seen), rapid.IntRange(1, 64).Draw(t, "block"), func(from, to int) {
			for i := from; i < to; i++ {
				seen[i].Add(1)
			}
		})
		for i := range seen {
			require.EqualValues(t, 1, seen[i].Load())
		}
	})
}

// requireSparse wants rows in order, with ascending columns in each.
func requireSparse(t require.TestingT, s *Sparse) {
	require.Len(t, s.RowPtr, s.Rows+1)
	require.Equal(t, []int{0, len(s.Col), len(s.Col)}, []int{s.RowPtr[0], s.RowPtr[s.Rows], len(s.Val)})
	for i := range s.Rows {
		cols, _ := s.Row(i)
		for k, c := range cols {
			require.True(t, 0 <= c && int(c) < s.Cols && (k == 0 || c > cols[k-1]), "row %d: %v", i, cols)
		}
	}
}

// rowSums are Σⱼ Sᵢⱼ, and rowNorms ‖Sᵢ‖₂.
func rowSums(s *Sparse) []float64 {
	sums := make([]float64, s.Rows)
	for i := range sums {
		_, vals := s.Row(i)
		for _, v := range vals {
			sums[i] += float64(v)
		}
	}
	return sums
}

func rowNorms(s *Sparse) []float64 {
	norms := make([]float64, s.Rows)
	for i := range norms {
		_, vals := s.Row(i)
		for _, v := range vals {
			norms[i] = math.Hypot(norms[i], float64(v))
		}
	}
	return norms
}
