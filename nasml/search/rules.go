package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/supernet"
)

// SelectionRule says after which epoch of a recorded search its architecture is taken, for methods that read it off θ
// (ByArgmax). It applies to the record and is not part of the search: one search serves all rules.
type SelectionRule string

// The names of SelectionRules.
const (
	LastEpoch SelectionRule = "last" // as the search ended
	// of the best supernet on the validation images, among the epochs that it was evaluated after
	BestEpoch SelectionRule = "best"
	// of the best accuracy on the architecture's own batches, which every epoch has
	BestBatches SelectionRule = "best-batches"
)

// RuleTitles are the rules in words.
var RuleTitles = map[SelectionRule]string{
	LastEpoch:   "last epoch",
	BestEpoch:   "best validation epoch",
	BestBatches: "best epoch by validation batches",
}

// SelectionRules are the rules by name: the epoch, counted from 1, after which the architecture of a search is taken.
// It returns an error if the curve lacks what the rule reads. Of equal epochs it is the first, as in the authors' code,
// which keeps an architecture until another is strictly better.
var SelectionRules = map[SelectionRule]func(c *Curve) (int, error){
	LastEpoch: func(c *Curve) (int, error) { return len(c.TrainLoss), nil },
	BestEpoch: func(c *Curve) (int, error) {
		if len(c.Supernet) == 0 || len(c.Supernet) != len(c.Evaluated) {
			return 0, fmt.Errorf("found %d evaluations of the supernet after %d epochs, expected one each: search "+
				"with EvaluateEvery", len(c.Supernet), len(c.Evaluated))
		}
		return int(c.Evaluated[firstBest(c.Supernet)]), nil
	},
	BestBatches: func(c *Curve) (int, error) {
		if len(c.ValidAccuracy) == 0 {
			return 0, fmt.Errorf("found no accuracy on validation batches, expected one an epoch: the method " +
				"takes no architecture gradient")
		}
		return firstBest(c.ValidAccuracy) + 1, nil
	},
}

// firstBest is the place of the largest value, the first of equals.
func firstBest(values []float64) int { return slices.Index(values, slices.Max(values)) }

// RuleAsCode is the rule of the authors' code for a method: that of Li+ 2021 evaluates the supernet after every epoch
// and keeps the best architecture (liamcli/gaea_release, cnn/train_search.py), that of the benchmark's authors returns
// the last one. Unlike BestEpoch it augments the validation images, and evaluates twice after the last epoch. A
// single-level search has no validation images and ends with its last architecture.
func RuleAsCode(method string) SelectionRule {
	if slices.Contains([]string{"darts", "gaea-darts", "gaea-gdas"}, method) {
		return BestEpoch
	}
	return LastEpoch
}

// RuleAsCodeOn is RuleAsCode on any space. On cells with two inputs DARTS is its own authors' program, which returns
// the last architecture; the other methods are that of Li+ 2021, as on NAS-Bench-201.
func RuleAsCodeOn(space, method string) SelectionRule {
	if supernet.CellSpaces[space].Name == "" {
		return RuleAsCode(method)
	}
	if slices.Contains([]string{"gaea-darts", "pc-darts", "gaea-pc-darts"}, method) {
		return BestEpoch
	}
	return LastEpoch
}

// Check says which rules there are, where the name is of none.
func (p SelectionRule) Check() error {
	if SelectionRules[p] != nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(SelectionRules)) {
		names = append(names, string(name))
	}
	return fmt.Errorf("found the rule %q, expected one of %s", string(p), strings.Join(names, ", "))
}
