package data

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Trials101 is how often every cell was trained at each length.
const Trials101 = 3

// images101 is the number of evaluated images of 10,000: 39 batches of 256.
const images101 = 9984

// BestTrial is the Trial that asks for the best of the three trainings, as NAS-Bench-1Shot1's constants do.
const BestTrial = -1

// Query101 names one accuracy of a cell. Only Trial has a default, Mean.
type Query101 struct {
	Split  Split // Valid or Test
	Epochs int   // of the training, each length with its own schedule: 108, and with the full benchmark 4, 12 and 36
	Trial  int   // Mean, BestTrial, or 1, 2, 3: one training, in the order of the file
}

// String says in words what is asked for.
func (q Query101) String() string {
	trial := fmt.Sprintf("training %d", q.Trial)
	switch q.Trial {
	case Mean:
		trial = "mean over trainings"
	case BestTrial:
		trial = "best of the trainings"
	}
	return fmt.Sprintf("CIFAR-10 %s after %d epochs (%s)", q.Split, q.Epochs, trial)
}

// ErrNotInTable says that an incomplete table does not have the cell.
var ErrNotInTable = errors.New("this table does not have the cell")

// NASBench101 is the table of NAS-Bench-101 (Ying+ 2019): CIFAR-10 accuracies and costs of all 423,624 cells or some of
// them. It is immutable and safe for concurrent use.
type NASBench101 struct {
	Fingerprint string // SHA-256 of the uncompressed file

	path    string // of the file, for errors
	cells   []Cell101
	rows    map[Cell101]int // by canonical form
	params  []int32
	lengths []*length101 // in the order of the columns
}

// length101 are the trainings of one length, by row.
type length101 struct {
	epochs  int
	hits    map[Split]*hits101
	seconds [Trials101][]float32 // of the whole training; the benchmark measured in this precision
}

// hits101 are the images of images101 that were right, by trial and row.
type hits101 [Trials101][]uint16

// Len counts the cells of the table.
func (b *NASBench101) Len() int { return len(b.cells) }

// Complete reports whether the table has all cells of the benchmark.
func (b *NASBench101) Complete() bool { return len(b.cells) == Cells101 }

// Cells are the cells in the order of the file.
func (b *NASBench101) Cells() []Cell101 { return slices.Clone(b.cells) }

// Epochs are the lengths of training that the table has.
func (b *NASBench101) Epochs() []int {
	var epochs []int
	for _, l := range b.lengths {
		epochs = append(epochs, l.epochs)
	}
	return epochs
}

// Accuracy returns a cell's accuracy in percent, n/9984 (the benchmark's interface rounds to float32). It wraps
// ErrNotInTable if the table does not have the cell.
func (b *NASBench101) Accuracy(c Cell101, q Query101) (float64, error) {
	hits, err := b.column(q)
	if err != nil {
		return 0, err
	}
	row, err := b.row(c)
	if err != nil {
		return 0, err
	}
	return hits.percent(row, q.Trial), nil
}

func (h *hits101) percent(row, trial int) float64 {
	switch trial {
	case Mean:
		sum := 0
		for t := range h {
			sum += int(h[t][row])
		}
		return 100 * float64(sum) / (Trials101 * images101)
	case BestTrial:
		return 100 * float64(max(h[0][row], h[1][row], h[2][row])) / images101
	}
	return 100 * float64(h[trial-1][row]) / images101
}

func (b *NASBench101) column(q Query101) (*hits101, error) {
	l, err := b.length(q.Epochs)
	if err != nil {
		return nil, err
	}
	hits := l.hits[q.Split]
	if hits == nil || q.Trial < BestTrial || q.Trial > Trials101 {
		return nil, fmt.Errorf("%s: found no %s, expected split %q or %q and as trial Mean, BestTrial, 1, 2 or 3",
			b.path, q, Valid, Test)
	}
	return hits, nil
}

func (b *NASBench101) length(epochs int) (*length101, error) {
	for _, l := range b.lengths {
		if l.epochs == epochs {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%s: found no trainings of %d epochs, expected one of the lengths %v", b.path, epochs,
		b.Epochs())
}

func (b *NASBench101) row(c Cell101) (int, error) {
	if row, ok := b.rows[c.Canonical()]; ok {
		return row, nil
	}
	return 0, fmt.Errorf("%s: cell %s (%s): %w; it has %d of the benchmark's %d", b.path, c, c.Hash(), ErrNotInTable,
		b.Len(), Cells101)
}

// Params returns the number of weights of the cell's network.
func (b *NASBench101) Params(c Cell101) (int, error) {
	row, err := b.row(c)
	if err != nil {
		return 0, err
	}
	return int(b.params[row]), nil
}

// Seconds returns how long a training of this many epochs took on the benchmark's machines: trial 1, 2, 3, or the Mean.
func (b *NASBench101) Seconds(c Cell101, epochs, trial int) (float64, error) {
	l, err := b.length(epochs)
	if err != nil {
		return 0, err
	}
	if trial < Mean || trial > Trials101 {
		return 0, fmt.Errorf("%s: found trial %d, expected Mean, 1, 2 or 3", b.path, trial)
	}
	row, err := b.row(c)
	if err != nil {
		return 0, err
	}
	if trial != Mean {
		return float64(l.seconds[trial-1][row]), nil
	}
	sum := 0.0
	for t := range l.seconds {
		sum += float64(l.seconds[t][row])
	}
	return sum / Trials101, nil
}

// Best101 is the best accuracy of some cells as far as a table has them.
type Best101 struct {
	Accuracy float64 // in percent
	Cell     Cell101
	Found    int // cells that the table has
	Asked    int // cells that were to be compared
}

// IsBound reports whether the table lacks some of the cells: Accuracy is then a lower bound, and so is a regret against
// it.
func (b Best101) IsBound() bool { return b.Found < b.Asked }

// Best returns the best of all cells of the benchmark.
func (b *NASBench101) Best(q Query101) (Best101, error) {
	best, err := b.BestOf(slices.Values(b.cells), q)
	best.Asked = Cells101
	return best, err
}

// BestOf returns the best of the cells, the first of equals. It wraps ErrNotInTable if the table has none of them.
func (b *NASBench101) BestOf(cells iter.Seq[Cell101], q Query101) (Best101, error) {
	hits, err := b.column(q)
	if err != nil {
		return Best101{}, err
	}
	var best Best101
	for c := range cells {
		best.Asked++
		row, ok := b.rows[c.Canonical()]
		if !ok {
			continue
		}
		best.Found++
		if x := hits.percent(row, q.Trial); best.Found == 1 || x > best.Accuracy {
			best.Accuracy, best.Cell = x, c
		}
	}
	if best.Found == 0 {
		return best, fmt.Errorf("%s: found none of %d cells: %w", b.path, best.Asked, ErrNotInTable)
	}
	return best, nil
}
