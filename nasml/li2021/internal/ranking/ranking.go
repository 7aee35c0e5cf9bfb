// Package ranking correlates accuracies of cells of NAS-Bench-101 with shared weights and after their own training.
package ranking

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is one way to train and evaluate shared weights on one space of cells.
type Trial struct {
	Variant string     `json:"variant"`
	Space   string     `json:"space"`
	Split   data.Split `json:"split"` // whose accuracy after 108 epochs is compared, the mean of three trainings
}

// Series by supernet, beside an estimate for each of rank.Correlations.
const (
	Seeds = "seed"  // of the supernet
	Pairs = "pairs" // cells that were compared
)

// Constant is the value that counts supernets which give all cells the same accuracy; they are in no series.
const Constant = "constant"

// Run correlates for every supernet of the variant and space, in the order of the file. It returns an error if there is
// none, or if the table lacks an accuracy.
func (t Trial) Run(table *data.NASBench101, all []data.Shared101) (trial.Result, error) {
	out := trial.Result{Values: map[string]float64{Constant: 0}, Series: map[string][]float64{}}
	found := false
	for _, s := range all {
		if s.Variant != t.Variant || s.Space != t.Space {
			continue
		}
		found = true
		if slices.Min(s.Accuracy) == slices.Max(s.Accuracy) {
			out.Values[Constant]++
			continue
		}
		var own []float64
		for _, c := range s.Cells {
			x, err := table.Accuracy(c, data.Query101{Split: t.Split, Epochs: 108, Trial: data.Mean})
			if err != nil {
				return out, err
			}
			own = append(own, x)
		}
		for name, c := range rank.Correlations {
			r, err := c.Estimate(s.Accuracy, own)
			if err != nil {
				return out, fmt.Errorf("%s, space %s, seed %d: %w", s.Variant, s.Space, s.Seed, err)
			}
			out.Series[name] = append(out.Series[name], r)
		}
		out.Series[Seeds] = append(out.Series[Seeds], float64(s.Seed))
		out.Series[Pairs] = append(out.Series[Pairs], float64(len(own)))
	}
	if !found {
		return out, fmt.Errorf("found no supernet %q on the space %q, expected one of %q on one of %q", t.Variant,
			t.Space, names(all, func(s data.Shared101) string { return s.Variant }),
			names(all, func(s data.Shared101) string { return s.Space }))
	}
	return out, nil
}

func names(all []data.Shared101, of func(data.Shared101) string) []string {
	set := map[string]bool{}
	for _, s := range all {
		set[of(s)] = true
	}
	return slices.Sorted(maps.Keys(set))
}
