package halving

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

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

// Bracket is the ladder of bracket s of Hyperband (Li et al. 2018, Algorithm
// 1) with resources from smallest to largest:
//
//	s_max = ⌊log_η(largest/smallest)⌋,  n = ⌈(s_max+1)/(s+1)·η^s⌉,  r = largest·η^−s .
//
// Bracket 0 is random search with n = s_max+1 arms; bracket s_max halves most.
func Bracket(s, smallest, largest, eta int) ([]Rung, error) {
	most, err := Brackets(smallest, largest, eta)
	if err != nil {
		return nil, err
	}
	if s < 0 || s > most {
		return nil, fmt.Errorf("bracket %d, expected 0 to %d", s, most)
	}
	power := math.Pow(float64(eta), float64(s))
	n := int(math.Ceil(float64(most+1)/float64(s+1)*power - 1e-9))
	return Ladder(n, float64(largest)/power, eta, largest)
}

// Brackets is s_max, the number of Hyperband's brackets less one.
func Brackets(smallest, largest, eta int) (int, error) {
	if smallest < 1 || largest < smallest || eta < 2 {
		return 0, fmt.Errorf("resources %d to %d, factor %d: expected 1 ≤ smallest ≤ largest, factor at least 2",
			smallest, largest, eta)
	}
	most := 0
	for at := largest / eta; at >= smallest; at /= eta {
		most++
	}
	return most, nil
}

// Try is one evaluation of an arm by itself.
type Try struct {
	Arm      int     // by its place in the arms
	Resource int     // what it was trained with
	Score    float64 // the lower the better
	Best     int     // place in the tries of the best one so far, by Rules.Incumbent; −1: none yet
}

// RandomSearch evaluates the arms in their order, each with the whole
// resource. Cancelling ctx ends it between two; the tries before are returned.
func RandomSearch[A any](ctx context.Context, arms []A, resource int, evaluate Evaluate[A]) ([]Try, error) {
	return SuccessiveHalving(ctx, arms, []Rung{{len(arms), resource}}, AsPaper(), evaluate)
}

// SuccessiveHalving evaluates the first arms of the first rung and takes the
// best of each rung to the next one. It returns an error if the rungs want more
// arms than there are or than the one before has, where a score is NaN, and
// where evaluate fails; the tries before it are returned.
func SuccessiveHalving[A any](
	ctx context.Context,
	arms []A,
	rungs []Rung,
	rules Rules,
	evaluate Evaluate[A],
) ([]Try, error) {
	return climb(ctx, nil, arms, 0, rungs, rules, evaluate)
}

// Hyperband runs the ladders one after the other, each with arms of its own
// from the front of those that are left.
func Hyperband[A any](
	ctx context.Context,
	arms []A,
	ladders [][]Rung,
	rules Rules,
	evaluate Evaluate[A],
) ([]Try, error) {
	var tries []Try
	first := 0
	for s, rungs := range ladders {
		var err error
		if tries, err = climb(ctx, tries, arms, first, rungs, rules, evaluate); err != nil {
			return tries, fmt.Errorf("ladder %d of %d: %w", s+1, len(ladders), err)
		}
		first += rungs[0].Arms
	}
	return tries, nil
}

// climb goes up one ladder with the arms from first on and appends its tries.
func climb[A any](
	ctx context.Context,
	tries []Try,
	arms []A,
	first int,
	rungs []Rung,
	rules Rules,
	evaluate Evaluate[A],
) ([]Try, error) {
	if err := checkLadder(len(arms)-first, rungs, rules); err != nil {
		return tries, err
	}
	var standing []int
	for i := range rungs[0].Arms {
		standing = append(standing, first+i)
	}
	for i, rung := range rungs {
		from := len(tries)
		for _, arm := range standing {
			if err := ctx.Err(); err != nil {
				return tries, err
			}
			score, err := evaluate(ctx, arms[arm], rung.Resource)
			if err == nil && math.IsNaN(score) {
				err = fmt.Errorf("its score is NaN, expected a number")
			}
			if err != nil {
				return tries, fmt.Errorf("arm %d with %d: %w", arm, rung.Resource, err)
			}
			best := incumbent(tries)
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
	order := make([]int, len(tries)-from)
	for i := range order {
		order[i] = from + i
	}
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

// incumbent is the best try so far, −1 if there is none.
func incumbent(tries []Try) int {
	if len(tries) == 0 {
		return -1
	}
	return tries[len(tries)-1].Best
}

func checkLadder(arms int, rungs []Rung, rules Rules) error {
	if len(rungs) == 0 {
		return fmt.Errorf("there are no rungs, expected at least one")
	}
	have := arms
	for i, rung := range rungs {
		if rung.Arms < 1 || rung.Arms > have || rung.Resource < 1 {
			return fmt.Errorf("rung %d has %d arms with %d each, expected 1 to %d arms with at least 1", i+1, rung.Arms,
				rung.Resource, have)
		}
		have = rung.Arms
	}
	return rules.Check()
}
