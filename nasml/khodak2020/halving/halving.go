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
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/nasml/lab/nasml/trial"
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

// Evaluate trains one arm by itself with a resource, such as a number of
// features, and returns its validation score: the lower the better.
type Evaluate[A any] func(ctx context.Context, arm A, resource int) (float64, error)

// Rung is one stage of successive halving: so many arms, each with so much.
type Rung struct {
	Arms     int `json:"arms"`
	Resource int `json:"resource"`
}

// Ladder is the rungs of one bracket of successive halving from n arms with
// the resource r each: ⌊n/ηⁱ⌋ arms with ⌊r·ηⁱ⌋, at most the largest resource,
// while there are arms and resource is left to grow.
func Ladder(n int, r float64, eta, largest int) ([]Rung, error) {
	if n < 1 || !(r >= 1) || eta < 2 || float64(largest) < r {
		return nil, fmt.Errorf(
			"%d arms with %v of %d, factor %d: expected at least one arm, 1 ≤ resource ≤ largest, factor at least 2", n,
			r, largest, eta)
	}
	var rungs []Rung
	const rounding = 1e-9 // of r·ηⁱ
	for arms, at := n, r; arms > 0 && at <= float64(largest)*(1+rounding); arms, at = arms/eta, at*float64(eta) {
		rungs = append(rungs, Rung{arms, min(largest, int(at*(1+rounding)))})
	}
	return rungs, nil
}

// Try is one evaluation of an arm by itself.
type Try struct {
	Arm      int     // by its place in the arms
	Resource int     // what it was trained with
	Score    float64 // the lower the better
	Best     int     // place in the tries of the best one so far, by Rules.Incumbent; −1: none yet
}

// Hyperband runs ladders one after the other, each with arms of its own from the
// front of those that are left (Li et al. 2018, Algorithm 1): the first arms of
// its first rung are evaluated, and the best of each rung go on to the next one.
// One ladder is successive halving, and one of a single rung random search.
//
// It returns an error if rungs want more arms than are left or than the one before
// has, if a score is NaN or evaluate fails, or if ctx ends; the tries before are
// returned.
func Hyperband[A any](
	ctx context.Context, arms []A, ladders [][]Rung, rules Rules, evaluate Evaluate[A],
) (tries []Try, err error) {
	first := 0
	for s, rungs := range ladders {
		if tries, err = climb(ctx, tries, arms, first, rungs, rules, evaluate); err != nil {
			return tries, fmt.Errorf("ladder %d of %d: %w", s+1, len(ladders), err)
		}
		first += rungs[0].Arms
	}
	return tries, nil
}

func climb[A any](
	ctx context.Context, tries []Try, arms []A, first int, rungs []Rung, rules Rules, evaluate Evaluate[A],
) ([]Try, error) {
	if err := checkLadder(len(arms)-first, rungs, rules); err != nil {
		return tries, err
	}
	standing := trial.Indices(first, rungs[0].Arms)
	for i, rung := range rungs {
		from := len(tries)
		for _, arm := range standing {
			if err := ctx.Err(); err != nil {
				return tries, err
			}
			score, err := evaluate(ctx, arms[arm], rung.Resource)
			if err == nil && math.IsNaN(score) {
				err = errors.New("its score is NaN")
			}
			if err != nil {
				return tries, fmt.Errorf("arm %d with %d: %w", arm, rung.Resource, err)
			}
			best := -1
			if len(tries) > 0 {
				best = tries[len(tries)-1].Best
			}
			if rules.Incumbent == "any" && (best < 0 || score < tries[best].Score) {
				best = len(tries)
			}
			tries = append(tries, Try{arm, rung.Resource, score, best})
		}
		next := 0
		if i+1 < len(rungs) {
			next = rungs[i+1].Arms
		}
		standing = promote(tries, from, next, rules)
	}
	return tries, nil
}

// promote takes the best so many tries of a rung that starts at from, and
// makes the best of them the incumbent where the rule waits for that.
func promote(tries []Try, from, next int, rules Rules) []int {
	order := trial.Indices(from, len(tries)-from)
	if rules.Tied == "last" {
		slices.Reverse(order)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tries[a].Score, tries[b].Score) })
	var standing []int
	for _, i := range order[:next] {
		standing = append(standing, tries[i].Arm)
	}
	if last := &tries[len(tries)-1]; rules.Incumbent == "promoted" && next > 0 {
		if last.Best < 0 || tries[order[0]].Score < tries[last.Best].Score {
			last.Best = order[0]
		}
	}
	return standing
}

func checkLadder(arms int, rungs []Rung, rules Rules) error {
	if len(rungs) == 0 {
		return errors.New("at least one rung is needed")
	}
	for i, rung := range rungs {
		if rung.Arms < 1 || rung.Arms > arms || rung.Resource < 1 {
			return fmt.Errorf("rung %d has %d arms with %d each, expected 1 to %d arms with at least 1", i+1, rung.Arms,
				rung.Resource, arms)
		}
		arms = rung.Arms
	}
	return rules.Check()
}
