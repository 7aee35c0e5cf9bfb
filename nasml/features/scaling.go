package features

import (
	"fmt"
	"math"
	"slices"
)

// Table is the inputs x of n examples, row-major, of p numbers each.
type Table struct {
	Rows, Cols int
	Data       []float32 // [Rows·Cols]
}

// Row is the inputs of example i.
func (t Table) Row(i int) []float32 { return t.Data[i*t.Cols : (i+1)*t.Cols] }

// check returns an error if the table has another size than it says, no number at all, or one that is not finite.
func (t Table) check() error {
	if t.Rows < 1 || t.Cols < 1 || len(t.Data) != t.Rows*t.Cols {
		return fmt.Errorf(
			"found a table of %d rows and %d columns with %d numbers, expected one row and column at least and "+
				"their product", t.Rows, t.Cols, len(t.Data))
	}
	for i, v := range t.Data {
		if v-v != 0 { // NaN or infinite
			return fmt.Errorf("a table must be finite, got %v in row %d, column %d", v, i/t.Cols, i%t.Cols)
		}
	}
	return nil
}

// Preprocess is what is done to the inputs before their features are made.
type Preprocess string

// The four of Khodak+ 2020, which are those of scikit-learn.
const (
	Raw      Preprocess = "none"
	MinMax   Preprocess = "min-max"  // the training columns to [0, 1]
	Standard Preprocess = "standard" // the training columns to mean 0 and deviation 1
	UnitRows Preprocess = "l2"       // every row to norm 1
)

// Scaling is what preprocessing takes from the training inputs. Columns that
// are constant there are shifted, not scaled.
type Scaling struct {
	least, span     []float64 // of each column
	mean, deviation []float64
}

// FitScaling takes minimum, maximum, mean and standard deviation (divided by n)
// of every column. It returns an error if a number is not finite.
func FitScaling(train Table) (*Scaling, error) {
	if err := train.check(); err != nil {
		return nil, fmt.Errorf("preprocessing: %w", err)
	}
	p := train.Cols
	s := &Scaling{
		least:     slices.Repeat([]float64{math.Inf(1)}, p),
		span:      slices.Repeat([]float64{math.Inf(-1)}, p),
		mean:      make([]float64, p),
		deviation: make([]float64, p),
	}
	for i := range train.Rows {
		for j, v := range train.Row(i) {
			x := float64(v)
			s.least[j], s.span[j] = min(s.least[j], x), max(s.span[j], x)
			s.mean[j] += x
		}
	}
	for j := range s.mean {
		s.mean[j] /= float64(train.Rows)
	}
	for i := range train.Rows {
		for j, v := range train.Row(i) {
			d := float64(v) - s.mean[j]
			s.deviation[j] += d * d
		}
	}
	for j := range s.span {
		s.deviation[j] = math.Sqrt(s.deviation[j] / float64(train.Rows))
		s.span[j] -= s.least[j]
		if s.span[j] == 0 { // then the deviation is rounding only
			s.span[j], s.deviation[j] = 1, 1
			s.mean[j] = s.least[j]
		}
	}
	return s, nil
}

// applyTo stores factor times the preprocessed row in dst. A row of zeros has no direction and stays as it is under l2.
func (s *Scaling) applyTo(dst, row []float32, how Preprocess, factor float64) {
	if how == MinMax || how == Standard {
		shift, unit := s.least, s.span
		if how == Standard {
			shift, unit = s.mean, s.deviation
		}
		for j, v := range row {
			dst[j] = float32((float64(v) - shift[j]) / unit[j] * factor)
		}
		return
	}
	if how == UnitRows {
		sum := 0.0
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		if sum > 0 {
			factor /= math.Sqrt(sum)
		}
	}
	for j, v := range row {
		dst[j] = float32(float64(v) * factor)
	}
}
