package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/runs"
)

// Share is how many of how many, a proportion with an interval.
type Share struct {
	Yes, Of    float64
	Confidence float64
	// Alike is how many cases come from one draw and are not independent of each other; 0 and 1 stand for independent
	// cases. The interval takes those of one draw for one case: it is then wider than it need be.
	Alike float64
}

// Add joins two shares of the same kind.
func (s Share) Add(yes, of float64) Share {
	s.Yes, s.Of = s.Yes+yes, s.Of+of
	return s
}

// Bounds are the share and the interval of Clopper and Pearson (1934), which covers at least at its confidence whatever
// the share is: each end is the share at which so few or so many have half of the remaining probability,
//
//	lo = B⁻¹(α/2; y, n−y+1),   hi = B⁻¹(1−α/2; y+1, n−y) .
//
// All are NaN if there is nothing to share.
func (s Share) Bounds() (y, lo, hi float64) {
	if s.Of == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	tail := (1 - s.Confidence) / 2
	yes, no := s.Yes/max(s.Alike, 1), (s.Of-s.Yes)/max(s.Alike, 1)
	lo, hi = 0, 1
	if yes > 0 {
		lo = distuv.Beta{Alpha: yes, Beta: no + 1}.Quantile(tail)
	}
	if no > 0 {
		hi = distuv.Beta{Alpha: yes + 1, Beta: no}.Quantile(1 - tail)
	}
	return s.Yes / s.Of, lo, hi
}

// Claim puts the share into a claim, without a verdict.
func (s Share) Claim(c runs.Claim) runs.Claim {
	if s.Of == 0 {
		return NotRun(c, "there is no case")
	}
	y, lo, hi := s.Bounds()
	c.Ours, c.Lo, c.Hi = runs.Number(y), runs.Number(lo), runs.Number(hi)
	c.Note = joined(fmt.Sprintf("%.0f of %.0f", s.Yes, s.Of), c.Note)
	return c
}

// Always judges a statement without exception: one counterexample refutes it.
func (s Share) Always(c runs.Claim) runs.Claim {
	c.Paper, c.Tolerance, c.Allowed = 1, 0, "exactly 1"
	c = s.Claim(c)
	if s.Of > 0 {
		c.Holds = runs.Judge(s.Yes == s.Of)
	}
	return c
}

// Above judges that the share is larger than a bound.
func (s Share) Above(c runs.Claim, bound float64) runs.Claim {
	c = s.Claim(c)
	if s.Of == 0 {
		return c
	}
	return opposite(Interval(allowed(c, "above", bound), math.Inf(-1), bound))
}

// AtMost judges that the share is at most a bound, such as the probability that a theorem allows.
func (s Share) AtMost(c runs.Claim, bound float64) runs.Claim {
	c.Paper = runs.Number(bound)
	if s.Of == 0 {
		return NotRun(c, "there is no case")
	}
	return Interval(s.Claim(c), math.Inf(-1), bound)
}

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
