package halving

import (
	"cmp"
	"context"
	"errors"
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

// climb goes up one ladder with the arms from first on and appends its tries.
func climb[A any](
	ctx context.Context, tries []Try, arms []A, first int, rungs []Rung, rules Rules, evaluate Evaluate[A],
) ([]Try, error) {
	if err := checkLadder(len(arms)-first, rungs, rules); err != nil {
		return tries, err
	}
	standing := places(first, rungs[0].Arms)
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

// places are n numbers from the first on.
func places(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// promote takes the best so many tries of a rung that starts at from, and
// makes the best of them the incumbent where the rule waits for that.
func promote(tries []Try, from, next int, rules Rules) []int {
	order := places(from, len(tries)-from)
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
