package regret

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

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
