package simplex

import (
	"fmt"
	"slices"
)

// Block is a group of simplices of one size, a matrix [Rows, Options].
type Block struct {
	Name    string
	Rows    int
	Options int
}

// Product is a product of simplices of mixed sizes: a list of blocks, each a
// matrix of its own, so that no row is padded or masked. The cell of PC-DARTS:
//
//	Product{
//		{"operations", 14, 8},
//		{"edges into 2", 1, 2}, {"edges into 3", 1, 3}, {"edges into 4", 1, 4}, {"edges into 5", 1, 5},
//	}
//
// The host functions of this package work on all rows of a product at once:
// EntropyOf(slices.Concat(theta...)).
type Product []Block

// Uniform returns the uniform point, 1/Options everywhere: one matrix a block.
func (p Product) Uniform() [][][]float64 {
	theta := make([][][]float64, len(p))
	for b, block := range p {
		for range block.Rows {
			theta[b] = append(theta[b], slices.Repeat([]float64{1 / float64(block.Options)}, block.Options))
		}
	}
	return theta
}

// Check returns an error, with the block's name, where θ is not a point of the
// product: see Check for what else is wrong.
func (p Product) Check(theta [][][]float64, tolerance float64) error {
	if len(theta) != len(p) {
		return fmt.Errorf("%d matrices of θ for %d blocks", len(theta), len(p))
	}
	want := p.Uniform()
	for b, block := range p {
		if err := sameRows(want[b], theta[b]); err != nil {
			return fmt.Errorf("block %q is [%d, %d]: %w", block.Name, block.Rows, block.Options, err)
		}
		if err := Check(theta[b], tolerance); err != nil {
			return fmt.Errorf("block %q: %w", block.Name, err)
		}
	}
	return nil
}
