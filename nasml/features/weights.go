package features

import (
	"context"
	"fmt"
	"math"
)

// Reading says whose feature map is meant where Khodak+ and their code differ.
type Reading string

// The two readings. Besides what is listed here the code has a hash of its own
// for each configuration (NGramConfig.HashSeed), and its tokenizer "simple"
// takes punctuation out where the paper only speaks of spaces ("whitespace").
const (
	// AsPaper: a configuration is a fixed map φ_c, so that its weights come from all training texts under c; logarithms
	// are natural, as Wang and Manning write them.
	AsPaper Reading = "paper"
	// AsCode: the counts come from the one training matrix in which every text has the configuration that it was given,
	// whatever the texts of other configurations put into a bin; logarithms are to base 2.
	AsCode Reading = "code"
)

// Counts are how much of each bin the training texts of either class have,
// which is what Naive Bayes and SIF weights are made of.
type Counts struct {
	Bins           []Bin   // [d]
	PosSum, NegSum float64 // Σ p, Σ q
	PosRows        int     // texts of each class
	NegRows        int
}

// Bin is how much of one bin the positive and the negative texts have: p and q of Wang and Manning without α.
type Bin struct{ Pos, Neg int32 }

// Count adds up raw bags by class, labels ±1, a row each. Bags have whole numbers. It returns an error if labels are
// missing or others than ±1, or a bin holds more than an int32.
func Count(b *Sparse, labels []int8) (*Counts, error) {
	if len(labels) != b.Rows {
		return nil, fmt.Errorf("each of %d bags must have a label, got %d", b.Rows, len(labels))
	}
	c := &Counts{Bins: make([]Bin, b.Cols)}
	for i, y := range labels {
		sum, rows := &c.PosSum, &c.PosRows
		switch y {
		case 1:
		case -1:
			sum, rows = &c.NegSum, &c.NegRows
		default:
			return nil, fmt.Errorf("labels must be −1 or 1, got %d for bag %d", y, i)
		}
		*rows++
		cols, vals := b.Row(i)
		for n, col := range cols {
			count := &c.Bins[col].Pos
			if y < 0 {
				count = &c.Bins[col].Neg
			}
			if float64(*count)+float64(vals[n]) > math.MaxInt32 {
				return nil, fmt.Errorf("found more than %d n-grams in bin %d of %d, expected more bins or fewer texts",
					math.MaxInt32, col, b.Cols)
			}
			*count += int32(vals[n])
			*sum += float64(vals[n])
		}
	}
	return c, nil
}

// weight returns the weight of a bin as a function of its two counts p and q,
// in which N is all that was counted and d the number of bins:
//
//	nb    log ((p+α)/(Σp+αd) / ((q+α)/(Σq+αd)))   (Wang and Manning 2012)
//	sif   Nα / (Nα + p + q)                       (Arora+ 2017: a/(a + frequency))
//
// A class that has no text makes nb meaningless, which is an error. Where nothing was counted, sif is 1.
func (c *Counts) weight(config NGramConfig, reading Reading) (func(p, q int32) float64, error) {
	alpha, d := config.Alpha, float64(len(c.Bins))
	switch config.Weighting {
	case "nb":
		if c.PosRows == 0 || c.NegRows == 0 {
			return nil, fmt.Errorf(
				"the weighting \"nb\" needs texts of both classes, got %d positive and %d negative ones",
				c.PosRows, c.NegRows)
		}
		pNorm, qNorm := c.PosSum+alpha*d, c.NegSum+alpha*d
		unit := 1.0
		if reading == AsCode {
			unit = math.Log2E
		}
		return func(p, q int32) float64 {
			return unit * math.Log((float64(p)+alpha)/pNorm/((float64(q)+alpha)/qNorm))
		}, nil
	case "sif":
		a := (c.PosSum + c.NegSum) * alpha
		if a == 0 {
			return func(p, q int32) float64 { return 1 }, nil
		}
		return func(p, q int32) float64 { return a / (a + float64(p) + float64(q)) }, nil
	}
	return nil, nil
}

// weigher applies one configuration to rows. Most bins have few n-grams, and their weights are computed once.
type weigher struct {
	counts     *Counts
	preprocess string
	weight     func(p, q int32) float64 // nil: 1
	small      [fewGrams * fewGrams]float64
}

const fewGrams = 32

func newWeigher(c *Counts, config NGramConfig, reading Reading) (*weigher, error) {
	w := &weigher{counts: c, preprocess: config.Preprocess}
	if config.Weighting == "none" {
		return w, nil
	}
	var err error
	if w.weight, err = c.weight(config, reading); err != nil {
		return nil, err
	}
	for i := range w.small {
		w.small[i] = w.weight(int32(i/fewGrams), int32(i%fewGrams))
	}
	return w, nil
}

func (w *weigher) binWeight(bin int32) float64 {
	b := w.counts.Bins[bin]
	if b.Pos < fewGrams && b.Neg < fewGrams {
		return w.small[fewGrams*b.Pos+b.Neg]
	}
	return w.weight(b.Pos, b.Neg)
}

// row weighs and preprocesses a bag in place. "average" divides by what was in the bag before the weighting, and an
// empty bag by 1; "normalize" leaves a row of zeros as it is.
func (w *weigher) row(cols []int32, vals []float32) {
	raw, squares := 0.0, 0.0
	for n, v := range vals {
		raw += float64(v)
		if w.weight != nil {
			vals[n] = float32(float64(v) * w.binWeight(cols[n]))
		}
		squares += float64(vals[n]) * float64(vals[n])
	}
	var scale float64
	switch {
	case w.preprocess == "average" && raw > 0:
		scale = 1 / raw
	case w.preprocess == "normalize" && squares > 0:
		scale = 1 / math.Sqrt(squares)
	default:
		return
	}
	for n, v := range vals {
		vals[n] = float32(scale * float64(v))
	}
}

// NGramMap is a feature map that training texts have been counted for.
type NGramMap struct {
	Configs []NGramConfig
	D       int
	Reading Reading

	texts  *Texts
	train  []int
	labels []int8                  // of the training texts
	mixed  *Counts                 // AsCode
	own    map[NGramConfig]*Counts // AsPaper, by what raw counts depend on
}

// FitNGrams counts the n-grams of the training texts and returns the feature map and the features of these texts: row i
// is text train[i] under configuration configs[of[i]] (weight sharing gives each its own; of nil: configs[0]), weighted
// and preprocessed. labels are those of all texts, ±1.
//
// AsPaper featurizes all training texts once for every configuration that has texts and weights, other than in
// weighting and preprocessing, and keeps 8·d bytes of each; AsCode needs one pass and keeps 8·d bytes in all.
func FitNGrams(
	ctx context.Context, t *Texts, labels []int8, train []int, configs []NGramConfig, of []int, d int, reading Reading,
) (*NGramMap, *Sparse, error) {
	if reading != AsPaper && reading != AsCode {
		return nil, nil, fmt.Errorf("reading must be %q or %q, got %q", AsPaper, AsCode, reading)
	}
	if len(labels) != t.Len() {
		return nil, nil, fmt.Errorf("each of %d texts must have a label, got %d", t.Len(), len(labels))
	}
	train, of, err := t.assign(train, configs, of, d)
	if err != nil {
		return nil, nil, err
	}
	m := &NGramMap{Configs: configs, D: d, Reading: reading, texts: t, train: train, own: map[NGramConfig]*Counts{}}
	for _, r := range train {
		m.labels = append(m.labels, labels[r])
	}
	b, err := Bags(ctx, t, train, configs, of, d)
	if err != nil {
		return nil, nil, err
	}
	if reading == AsCode {
		if m.mixed, err = Count(b, m.labels); err != nil {
			return nil, nil, err
		}
	}
	return m, b, m.weigh(ctx, b, of)
}

// Rows returns the features of texts: row i is text rows[i] under configuration of[i], with the counts of the training
// texts. nil stands for what it does in Bags.
func (m *NGramMap) Rows(ctx context.Context, rows, of []int) (*Sparse, error) {
	rows, of, err := m.texts.assign(rows, m.Configs, of, m.D)
	if err != nil {
		return nil, err
	}
	b, err := Bags(ctx, m.texts, rows, m.Configs, of, m.D)
	if err != nil {
		return nil, err
	}
	return b, m.weigh(ctx, b, of)
}

func (m *NGramMap) weigh(ctx context.Context, b *Sparse, of []int) error {
	weighers := map[int]*weigher{}
	for _, k := range of {
		if weighers[k] != nil {
			continue
		}
		c := m.Configs[k]
		counts, err := m.counts(ctx, c)
		if err != nil {
			return err
		}
		if weighers[k], err = newWeigher(counts, c, m.Reading); err != nil {
			return fmt.Errorf("configuration %d: %w", k, err)
		}
	}
	inBlocks(b.Rows, 256, func(from, to int) {
		for i := from; i < to; i++ {
			weighers[of[i]].row(b.Row(i))
		}
	})
	return ctx.Err()
}

func (m *NGramMap) counts(ctx context.Context, c NGramConfig) (*Counts, error) {
	if m.Reading == AsCode || c.Weighting == "none" {
		return m.mixed, nil
	}
	key := c
	key.Weighting, key.Alpha, key.Preprocess = "none", 0, "none" // raw counts do not depend on these
	if m.own[key] == nil {
		b, err := Bags(ctx, m.texts, m.train, []NGramConfig{key}, nil, m.D)
		if err != nil {
			return nil, err
		}
		if m.own[key], err = Count(b, m.labels); err != nil {
			return nil, err
		}
	}
	return m.own[key], nil
}
