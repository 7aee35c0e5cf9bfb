// Package halving has the elimination schedules of hyperparameter search:
// Algorithm 1 of Khodak+ 2020 (one solve with shared weights a round, arms
// halved at the median of their validation scores), its fast variant with a
// growing feature dimension, random search, successive halving and Hyperband.
//
// What an arm is and how it is scored is the caller's: an arm is any type, and
// a score is a number of which the lower is better. The package decides who is
// tried, with what, and who stays. It knows no other package of ours.
package halving

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Rules are the readings of Algorithm 1, of Fast Weight-Sharing and of the
// baselines in which the paper and its authors' code differ, or which the
// paper leaves open. [Differences] lists those of two rules.
type Rules struct {
	// Score is what the caller's solve should return of a validation point:
	// "loss" or "error" (0 or 1).
	Score string `json:"score"`

	// Ties says who stays where scores at the median are equal: "half" keeps
	// ⌈n/2⌉ of the n arms, the tied ones at random; "all" keeps every arm with
	// a score at or below the median; "first-round" keeps them all too, but
	// trims at random to half of the initial arms, which acts in round 1 only.
	Ties string `json:"ties"`

	// Empty is the score of an arm that no validation point was assigned to:
	// "worst" (+∞), or "wrong", that of an arm that is always wrong: 1.
	Empty string `json:"empty"`

	// Full says which shared solve of Fast Weight-Sharing has all d features:
	// the "last-round", or none, so that only the "retraining" of the winner
	// has them.
	Full string `json:"full"`

	// Incumbent says which scores count for the best arm of successive
	// halving and Hyperband: "any" score, at whatever resource it was found,
	// or only those that were "promoted" to the next rung.
	Incumbent string `json:"incumbent"`

	// Tied says which of two arms with the same score a rung of successive
	// halving prefers: the one that came "first" or "last".
	Tied string `json:"tied"`
}

// AsPaper are the rules as Algorithm 1 and Appendix B.1 print them; where they
// leave ties and empty cells open, the reading that ends with one arm.
func AsPaper() Rules {
	return Rules{Score: "loss", Ties: "half", Empty: "worst", Full: "last-round", Incumbent: "any", Tied: "first"}
}

// AsCode are the rules of the authors' code.
func AsCode() Rules {
	return Rules{
		Score: "error", Ties: "first-round", Empty: "wrong", Full: "retraining", Incumbent: "promoted", Tied: "last",
	}
}

// Check returns an error for a rule that is not known.
func (r Rules) Check() error {
	for _, rule := range []struct {
		name, got string
		known     []string
	}{
		{"Score", r.Score, []string{"loss", "error"}},
		{"Ties", r.Ties, []string{"half", "all", "first-round"}},
		{"Empty", r.Empty, []string{"worst", "wrong"}},
		{"Full", r.Full, []string{"last-round", "retraining"}},
		{"Incumbent", r.Incumbent, []string{"any", "promoted"}},
		{"Tied", r.Tied, []string{"first", "last"}},
	} {
		if !slices.Contains(rule.known, rule.got) {
			return fmt.Errorf("rule %s must be one of %q, got %q", rule.name, rule.known, rule.got)
		}
	}
	return nil
}

// Differences lists the rules in which a and b differ: "ties: half, all".
func Differences(a, b Rules) (all []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Field(i).String() != y.Field(i).String() {
			all = append(all, fmt.Sprintf("%s: %v, %v", x.Type().Field(i).Tag.Get("json"), x.Field(i), y.Field(i)))
		}
	}
	slices.Sort(all)
	return all
}

// Rounds is the number of rounds that leave one of n arms, ⌈log₂ n⌉: 0 for one
// arm, 8 for 256.
func Rounds(n int) int {
	rounds := 0
	for left := n; left > 1; left = (left + 1) / 2 {
		rounds++
	}
	return rounds
}

// Dims is the feature dimension of each of so many rounds,
//
//	dₜ = ⌈d·growth^−(rounds−t)⌉,  t = 1 … rounds ,
//
// so that the last one has all d; where full is "retraining" every round has
// one power less, and only the training of the winner has d. Growth 1 is
// Algorithm 1 itself; Fast Weight-Sharing has √2.
func Dims(d, rounds int, growth float64, full string) ([]int, error) {
	switch {
	case d < 1 || rounds < 0:
		return nil, fmt.Errorf("dimension %d over %d rounds, expected at least 1 over at least 0", d, rounds)
	case !(growth >= 1) || math.IsInf(growth, 1):
		return nil, fmt.Errorf("growth must be at least 1, such as √2, got %v", growth)
	case full != "last-round" && full != "retraining":
		return nil, fmt.Errorf("all features must come at last-round or retraining, got %q", full)
	}
	dims := make([]int, rounds)
	for t := range dims {
		power := float64(rounds - 1 - t)
		if full == "retraining" && growth > 1 {
			power++
		}
		// The small number keeps 100000·√2⁻⁸ = 6250 from becoming 6251.
		dims[t] = max(1, int(math.Ceil(float64(d)*math.Pow(growth, -power)-1e-6)))
	}
	return dims, nil
}
