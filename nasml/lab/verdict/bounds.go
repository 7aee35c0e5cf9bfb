package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/runs"
)

// Bounded is a mean with the bound that it is to keep to, and what it is of: "n = 50, p = 100, h = 2".
type Bounded struct {
	Of    fmt.Stringer
	Mean  runs.Summary
	Bound float64
}

// Bounds judges that all means lie above their bounds, for sign 1, or below them, for sign −1, by their intervals.
// Ours is the mean closest to its bound.
func Bounds(c runs.Claim, all []Bounded, sign float64) runs.Claim {
	if len(all) == 0 {
		return NotRun(c, "no sizes in the range that it speaks of")
	}
	holds, fails, closest := true, false, all[0]
	gap := func(b Bounded, of float64) float64 { return sign * (of - b.Bound) }
	for _, b := range all {
		lo, hi := gap(b, float64(b.Mean.Lo)), gap(b, float64(b.Mean.Hi))
		holds, fails = holds && math.Min(lo, hi) >= 0, fails || math.Max(lo, hi) < 0
		if gap(b, b.Mean.Mean) < gap(closest, closest.Mean.Mean) {
			closest = b
		}
	}
	c.Paper, c.Ours = runs.Number(closest.Bound), runs.Number(closest.Mean.Mean)
	c.Lo, c.Hi = closest.Mean.Lo, closest.Mean.Hi
	c.Note = joined(fmt.Sprintf("ours is the mean closest to its bound, at %v, of %d points", closest.Of, len(all)),
		c.Note)
	return Decided(c, holds, fails)
}

// LargestAtMost judges the largest of means, which is one of a formula's constants, against the paper's.
func LargestAtMost(c runs.Claim, all []Bounded, paper float64) runs.Claim {
	c.Paper = runs.Number(paper)
	if len(all) == 0 {
		return NotRun(c, "no sizes in the range that it speaks of")
	}
	largest := slices.MaxFunc(all, func(a, b Bounded) int { return cmp.Compare(a.Mean.Mean, b.Mean.Mean) })
	c.Note = joined(fmt.Sprintf("ours is the largest mean, at %v, of %d points", largest.Of, len(all)), c.Note)
	return AtMost(c, largest.Mean, nil, paper)
}

// Decided is a claim with a verdict of several intervals.
func Decided(c runs.Claim, holds, fails bool) runs.Claim {
	switch {
	case fails:
		c.Holds = runs.Fails
	case holds:
		c.Holds = runs.Holds
	default:
		c.Note = joined("inconclusive: the intervals allow both, or there are too few seeds", c.Note)
	}
	return c
}
