// Package trial is what the arithmetic of one trial knows of the house around
// it: the random streams that its seed names, and the form of its result. What
// stores, schedules and draws stays outside, so that changing that leaves the
// version of the arithmetic as it is.
package trial

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Result is what the computation of one trial found. All numbers are finite.
type Result struct {
	Values map[string]float64   // numbers by name, "distance"
	Series map[string][]float64 // optional curves by name, "loss" (one value an epoch)
}

// Check is an error that names the first number that is not finite: a NaN in a
// mean would make the whole figure silently wrong.
func (r Result) Check() error {
	if len(r.Values) == 0 && len(r.Series) == 0 {
		return errors.New("result has neither values nor series")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if !finite(r.Values[name]) {
			return fmt.Errorf("value %q must be finite, got %v: the trial diverged or divides by zero", name,
				r.Values[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Series)) {
		if i := slices.IndexFunc(r.Series[name], func(x float64) bool { return !finite(x) }); i >= 0 {
			return fmt.Errorf(
				"series %q must be finite, got %v at position %d: the trial diverged or divides by zero", name,
				r.Series[name][i], i)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
