// Package regret looks up what architectures of NAS-Bench-1Shot1 lose to the best in the table of NAS-Bench-101.
package regret

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
)

// OneShotCell is the cell of NAS-Bench-101 of an architecture of NAS-Bench-1Shot1, pruned by that benchmark's rule. It
// returns an error if the architecture is not of the space, and wraps data.ErrNotInTable if the pruned cell has an
// operation that the benchmark lacks.
func OneShotCell(s supernet.OneShot, a supernet.OneShotArch) (data.Cell101, error) {
	matrix, ops, err := s.Spec(a)
	if err != nil {
		return data.Cell101{}, err
	}
	// Other operations are pruned if the cell is the same whichever of the benchmark's takes their place.
	c, err := data.NewCell101(matrix, replaced(ops, data.Ops101[0]))
	if err != nil {
		return c, err
	}
	other, err := data.NewCell101(matrix, replaced(ops, data.Ops101[1]))
	if err == nil && c != other {
		err = fmt.Errorf("found the operations %v, expected those of %v: %w", ops, data.Ops101, data.ErrNotInTable)
	}
	return c, err
}

// replaced puts an operation of NAS-Bench-101 in place of others.
func replaced(ops []string, by string) []string {
	out := slices.Clone(ops)
	for i := 1; i < len(ops)-1; i++ {
		if !slices.Contains(data.Ops101[:], ops[i]) {
			out[i] = by
		}
	}
	return out
}

// OneShotCells are the cells of NAS-Bench-101 of a space's architectures, each once, in canonical form: 2,685, 7,773
// and 55,854 of the three spaces. It panics if the space does not pass Check.
func OneShotCells(s supernet.OneShot) iter.Seq[data.Cell101] {
	if err := s.Check(); err != nil {
		panic(err)
	}
	return func(yield func(data.Cell101) bool) {
		seen := map[data.Cell101]bool{}
		for a := range s.Archs(false) {
			c, err := OneShotCell(s, a)
			if errors.Is(err, data.ErrNotInTable) {
				continue
			}
			if err != nil { // a space that passes Check has no others
				panic(err)
			}
			if c = c.Canonical(); seen[c] {
				continue
			}
			seen[c] = true
			if !yield(c) {
				return
			}
		}
	}
}

// What a regret is measured against.
const (
	AgainstTable     = "table"     // the best single training of the space's cells in the table
	AgainstPublished = "published" // the lowest error that the space's authors print, as in Li+ 2021, Figure 2
)

// OneShotRegrets looks up what architectures of a space of NAS-Bench-1Shot1 lose to the best.
type OneShotRegrets struct {
	Space supernet.OneShot
	Query data.Query101 // of an architecture's accuracy
	Best  data.Best101  // what it is compared with; without a cell where it is published

	table *data.NASBench101
}

// NewOneShotRegrets prepares look-ups. It returns an error if the table lacks the query, if against is neither
// AgainstTable nor AgainstPublished, or if nothing is published for the space and split.
func NewOneShotRegrets(
	table *data.NASBench101, s supernet.OneShot, q data.Query101, against string,
) (*OneShotRegrets, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &OneShotRegrets{Space: s, Query: q, table: table}
	best := data.Query101{Split: q.Split, Epochs: q.Epochs, Trial: data.BestTrial}
	var err error
	switch against {
	case AgainstTable:
		r.Best, err = table.BestOf(OneShotCells(s), best)
	case AgainstPublished:
		known := map[data.Split]float64{data.Test: s.Known.TestError, data.Valid: s.Known.ValidError}[q.Split]
		if known == 0 || q.Epochs != 108 {
			return nil, fmt.Errorf("found no published error of the best cell of %q for %s, expected %q against "+
				"the table", s.Name, q, AgainstTable)
		}
		r.Best = data.Best101{Accuracy: 100 * (1 - known), Found: 1, Asked: 1}
		_, err = table.BestOf(slices.Values(table.Cells()[:1]), q) // that the table has the query
	default:
		err = fmt.Errorf("found %q to measure a regret against, expected %q or %q", against, AgainstTable,
			AgainstPublished)
	}
	return r, err
}

// Of is what an architecture loses to the best, in points of accuracy: at least this much if Best.IsBound. If the table
// lacks its cell, known is false. It returns an error if the architecture is not of the space.
func (r *OneShotRegrets) Of(a supernet.OneShotArch) (regret float64, known bool, err error) {
	c, err := OneShotCell(r.Space, a)
	accuracy := 0.
	if err == nil {
		accuracy, err = r.table.Accuracy(c, r.Query)
	}
	switch {
	case errors.Is(err, data.ErrNotInTable):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	return r.Best.Accuracy - accuracy, true, nil
}
