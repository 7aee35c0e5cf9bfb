// Package regret looks up what architectures of NAS-Bench-1Shot1 lose to the best in the table of NAS-Bench-101.
package regret

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
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

// Which of a cell's trainings an accuracy is.
const (
	MeanTraining = "mean" // of the three, as Zela+ 2020 report
	OneTraining  = "one"  // one of the three, drawn for every look-up, as in Li+ 2021's code; or "1", "2", "3"
)

// trainings are those that each value of Lookup.Training may draw.
var trainings = map[string][]int{
	MeanTraining: {data.Mean}, OneTraining: {1, 2, 3}, "1": {1}, "2": {2}, "3": {3},
}

// Lookup is what the look-ups of one search depend on besides the table: its architecture after every epoch, read off
// θ, in the table of trainings of 108 epochs. A space is keyed by its content, since a reader's may have any name.
type Lookup struct {
	Search   string           `json:"search"` // key of the search's record
	Space    supernet.OneShot `json:"space"`
	Ties     supernet.Ties    `json:"ties"`
	Split    data.Split       `json:"split"`
	Training string           `json:"training"`
	Against  string           `json:"against"`
}

// Series of a curve of look-ups, by epoch from 0, the state before the first.
const (
	SeriesRegret = "regret" // a fraction, 0 where the cell is not in the table
	SeriesKnown  = "known"  // 1 where it is
)

// Values of a curve of look-ups.
const (
	ValueBest  = "best"  // accuracy that regrets are against, in percent
	ValueFound = "found" // cells of the space that the table has
	ValueAsked = "asked" // cells of the space; if there are more, every regret is a lower bound
)

// Run looks up the architectures of a search after each epoch, given θ as the blocks of the space's Product one after
// another, each row on a simplex. An architecture whose cell is not in the table is a gap. The seed draws one training
// of three. It returns an error if the table lacks the query or if θ is not of the space.
func (l Lookup) Run(
	ctx context.Context, table *data.NASBench101, theta [][]float64, seed uint64,
) (trial.Result, error) {
	regrets, err := l.regrets(table)
	if err != nil {
		return trial.Result{}, err
	}
	out := trial.Result{
		Values: map[string]float64{ValueBest: regrets[0].Best.Accuracy, ValueFound: float64(regrets[0].Best.Found),
			ValueAsked: float64(regrets[0].Best.Asked)},
		Series: map[string][]float64{},
	}
	rng := trial.RNG(seed, "training of a look-up")
	for epoch, flat := range theta {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		arch, err := l.arch(flat)
		if err != nil {
			return trial.Result{}, fmt.Errorf("after epoch %d: %w", epoch, err)
		}
		x, known, err := regrets[rng.IntN(len(regrets))].Of(arch)
		if err != nil {
			return trial.Result{}, fmt.Errorf("after epoch %d: %w", epoch, err)
		}
		out.Series[SeriesRegret] = append(out.Series[SeriesRegret], x/100)
		out.Series[SeriesKnown] = append(out.Series[SeriesKnown], map[bool]float64{true: 1}[known])
	}
	return out, nil
}

// regrets are the look-ups of each training that may be drawn.
func (l Lookup) regrets(table *data.NASBench101) ([]*OneShotRegrets, error) {
	if trainings[l.Training] == nil {
		return nil, fmt.Errorf("found %q as training of a cell, expected one of %q", l.Training,
			slices.Sorted(maps.Keys(trainings)))
	}
	var out []*OneShotRegrets
	for _, training := range trainings[l.Training] {
		q := data.Query101{Split: l.Split, Epochs: 108, Trial: training}
		r, err := NewOneShotRegrets(table, l.Space, q, l.Against)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// arch reads an architecture off weights on simplices. It takes their logarithms, since rules for ties may apply a
// softmax before they compare.
func (l Lookup) arch(flat []float64) (supernet.OneShotArch, error) {
	blocks, err := Blocks(l.Space, flat)
	if err != nil {
		return supernet.OneShotArch{}, err
	}
	for _, block := range blocks {
		for _, row := range block {
			for i, x := range row {
				row[i] = math.Log(max(x, math.SmallestNonzeroFloat32))
			}
		}
	}
	return l.Space.Discretize(blocks, l.Ties)
}

// Blocks cuts a flat θ into copies of the blocks of a space's Product. It returns an error if the length does not fit.
func Blocks(s supernet.OneShot, flat []float64) ([][][]float64, error) {
	product, want := s.Product(), 0
	for _, b := range product {
		want += b.Rows * b.Options
	}
	if len(flat) != want {
		return nil, fmt.Errorf("found %d weights, expected %d in the space %q", len(flat), want, s.Name)
	}
	flat = slices.Clone(flat)
	var blocks [][][]float64
	for _, b := range product {
		n := b.Rows * b.Options
		blocks = append(blocks, slices.Collect(slices.Chunk(flat[:n], b.Options)))
		flat = flat[n:]
	}
	return blocks, nil
}

// Spread asks for the spread over the three trainings of a space's best cell, by mean accuracy after 108 epochs.
type Spread struct {
	Space supernet.OneShot `json:"space"`
	Of    string           `json:"of"` // "spread of the best"; tells it from a Lookup
	Split data.Split       `json:"split"`
}

// Values of a Spread, in percent.
const (
	ValueStd    = "std"    // population's standard deviation of the error of the three trainings
	ValueSample = "sample" // likewise with divisor n−1
	ValueSingle = "single" // lowest error of one training of any cell that the table has
)

// Run finds it among the cells that the table has.
func (s Spread) Run(table *data.NASBench101) (trial.Result, error) {
	ask := func(trial int) data.Query101 { return data.Query101{Split: s.Split, Epochs: 108, Trial: trial} }
	best, err := table.BestOf(OneShotCells(s.Space), ask(data.Mean))
	if err != nil {
		return trial.Result{}, err
	}
	single, err := table.BestOf(OneShotCells(s.Space), ask(data.BestTrial))
	if err != nil {
		return trial.Result{}, err
	}
	squares := 0.
	for t := 1; t <= data.Trials101; t++ {
		x, err := table.Accuracy(best.Cell, ask(t))
		if err != nil {
			return trial.Result{}, err
		}
		squares += (x - best.Accuracy) * (x - best.Accuracy)
	}
	return trial.Result{Values: map[string]float64{
		ValueStd: math.Sqrt(squares / data.Trials101), ValueSample: math.Sqrt(squares / (data.Trials101 - 1)),
		ValueSingle: 100 - single.Accuracy, ValueFound: float64(best.Found), ValueAsked: float64(best.Asked),
	}}, nil
}
