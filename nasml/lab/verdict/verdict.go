// Package verdict judges claims of papers by numbers: whether a mean, a slope, a share or a difference is where a paper
// says it is. A claim holds if its whole confidence interval is there, fails if none of it is, and is inconclusive
// otherwise. A claim without numbers says why it was not run.
//
// # Several claims of one kind
//
// A figure that asks one question of several cases (data sets, spaces, methods, sizes) makes
// a claim of each. They are a family: each of n claims is judged at [Family] of the
// parameters' confidence, so that at that confidence no interval of the family is wrong.
//
//   - n counts the cases that the parameters ask for, run or not: no verdict depends on
//     what was run;
//   - a claim about the worst of n cases ([Worst], [Descending]) has the intervals of a
//     family of n, which is one more factor if the claim is itself one of a family;
//   - another question is another family, also one of nasml's own claims;
//   - [Setting], [Exactly], [Every], [None] and [Share.Always] judge no interval;
//   - bands and bars, and intervals of claims without a verdict, are at the confidence itself.
package verdict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/runs"
)

// Claim begins a claim of which nothing is known yet; its name may begin with the rows of the papers' claims that it
// judges, see [runs.NewClaim]. A name that begins with one of ownMarks is a claim of ours about what the source says.
func Claim(name, source string) runs.Claim {
	mark, _, _ := strings.Cut(name, ":")
	if slices.Contains(ownMarks, mark) && !strings.HasPrefix(source, "ours") {
		source = "ours, on " + source
	}
	return runs.NewClaim(name, source)
}

// ownMarks are the beginnings of names, before a colon, of what no paper says: what
// follows from a paper's words, or what should come out the other way.
var ownMarks = []string{"own", "own check", "own finding", "ours", "control", "violation", "practice"}

// NotRun says why a claim has no numbers.
func NotRun(c runs.Claim, why string) runs.Claim {
	c.Note = joined("not run: "+why, c.Note)
	return c
}

// joined are two notes, of which one may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// Within judges that a mean lies in [lo, hi], one end of which may be infinite, by the summary's interval. A number
// that is equal for every seed is judged without one. err is that of the summary.
func Within(c runs.Claim, s runs.Summary, err error, lo, hi float64) runs.Claim {
	if err != nil {
		return NotRun(allow(c, lo, hi), err.Error())
	}
	c = Measured(c, s)
	if s.N > 1 && s.Std == 0 {
		c.Lo, c.Hi = c.Ours, c.Ours
	}
	if !c.Lo.Valid() || !c.Hi.Valid() {
		c.Note = joined("inconclusive: one value has no interval", c.Note)
		return allow(c, lo, hi)
	}
	return Interval(c, lo, hi)
}

// Measured puts a summary's mean and interval into a claim, and what the summary
// warns of into its note, without a verdict.
func Measured(c runs.Claim, s runs.Summary) runs.Claim {
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	for _, warning := range s.Warnings {
		c.Note = joined(c.Note, warning)
	}
	return c
}

// allow says in a claim where the number has to be, unless that is said already:
// on one side or on both, in the number's own unit.
func allow(c runs.Claim, lo, hi float64) runs.Claim {
	below, above := math.IsInf(lo, -1), math.IsInf(hi, 1)
	switch {
	case c.Allowed != "" || below && above:
	case below:
		c.Allowed = fmt.Sprintf("at most %.6g", hi)
	case above:
		c.Allowed = fmt.Sprintf("at least %.6g", lo)
	default:
		c.Allowed = fmt.Sprintf("CI from %.6g to %.6g", lo, hi)
	}
	return c
}

// Interval judges the interval that a claim has against [lo, hi].
func Interval(c runs.Claim, lo, hi float64) runs.Claim {
	c = allow(c, lo, hi)
	switch from, to := float64(c.Lo), float64(c.Hi); {
	case from >= lo && to <= hi:
		c.Holds = runs.Holds
	case to < lo || from > hi:
		c.Holds = runs.Fails
	default:
		c.Note = joined("inconclusive: the confidence interval contains the threshold", c.Note)
	}
	return c
}

// AtMost is [Within] (−∞, bound].
func AtMost(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return Within(c, s, err, math.Inf(-1), bound)
}

// AtLeast is [Within] [bound, ∞).
func AtLeast(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return Within(c, s, err, bound, math.Inf(1))
}

// Near is [Within] paper ± tolerance, and says both in the claim.
func Near(c runs.Claim, s runs.Summary, err error, paper, tolerance float64) runs.Claim {
	c.Paper, c.Tolerance = runs.Number(paper), runs.Number(tolerance)
	c.Allowed = "CI " + runs.WithinOf(paper, tolerance)
	return Within(c, s, err, paper-tolerance, paper+tolerance)
}

// Between is [Within] for a number of the paper's: the claim says the number
// and, as its tolerance, how far away from it the farther of the finite ends is.
func Between(c runs.Claim, s runs.Summary, err error, paper, lo, hi float64) runs.Claim {
	c.Paper = runs.Number(paper)
	for _, far := range []float64{paper - lo, hi - paper} {
		if !math.IsInf(far, 1) && !(float64(c.Tolerance) > far) {
			c.Tolerance = runs.Number(far)
		}
	}
	return Within(c, s, err, lo, hi)
}

// OverSeeds summarizes a statistic that every seed 0, …, n−1 has one of. It is an error if a seed has none.
func OverSeeds(n int, confidence float64, of func(seed int) (float64, error)) (runs.Summary, error) {
	values := make([]float64, n)
	for seed := range values {
		var err error
		if values[seed], err = of(seed); err != nil {
			return runs.Summary{}, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return runs.Summarize(values, confidence)
}

// Greater judges that a exceeds b on average over pairs, aᵢ and bᵢ of one seed, by Student's
// interval of the mean difference, see [Above]. Pairs without any difference are not greater.
func Greater(c runs.Claim, a, b []float64, confidence float64) runs.Claim {
	if len(a) == 0 {
		return NotRun(c, "there is no pair")
	}
	if !c.Paper.Valid() {
		c.Paper = 0
	}
	s, err := runs.MeanDiff(a, b, confidence)
	return Above(c, s, err, 0)
}

// Family is the confidence of each of n claims that one statement or one figure makes, so that all n intervals cover
// together at the confidence asked for: 1 − (1−c)/n (Bonferroni).
func Family(confidence float64, n int) float64 { return 1 - (1-confidence)/float64(max(n, 1)) }

// None judges a statement without exception by its violations in so many cases: one refutes it.
func None(c runs.Claim, violations, cases int) runs.Claim {
	c.Paper, c.Tolerance, c.Allowed = 0, 0, "exactly 0"
	if cases == 0 {
		return NotRun(c, "there is no case")
	}
	c.Note = joined(fmt.Sprintf("violated in %d of %d cases", violations, cases), c.Note)
	c.Ours, c.Holds = runs.Number(violations), runs.Judge(violations == 0)
	return c
}

// Every judges a bound on every case by the largest value.
func Every(c runs.Claim, values []float64, most float64) runs.Claim {
	c.Paper, c.Tolerance, c.Allowed = runs.Number(most), 0, fmt.Sprintf("every case at most %.6g", most)
	if len(values) == 0 {
		return NotRun(c, "there is no case")
	}
	worst := slices.Max(values)
	if slices.ContainsFunc(values, math.IsNaN) {
		return NotRun(c, "a value is NaN")
	}
	c.Note = joined(fmt.Sprintf("ours is the largest of %d cases", len(values)), c.Note)
	c.Ours, c.Holds = runs.Number(worst), runs.Judge(worst <= most)
	return c
}

// Exactly judges a number without noise: ours is the paper's within a tolerance, which is rounding.
func Exactly(c runs.Claim, ours, paper, tolerance float64) runs.Claim {
	c.Paper, c.Ours, c.Tolerance = runs.Number(paper), runs.Number(ours), runs.Number(tolerance)
	if c.Allowed == "" {
		c.Allowed = runs.WithinOf(paper, tolerance)
	}
	c.Holds = runs.Judge(math.Abs(ours-paper) <= tolerance)
	return c
}

var errFew = errors.New("needs two seeds or more")

// Above judges that a mean is larger than a bound, the opposite of [AtMost]: a mean that
// equals the bound is not above it.
func Above(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtMost(allowed(c, "above", bound), s, err, bound))
}

// Below judges that a mean is smaller than a bound, the opposite of [AtLeast].
func Below(c runs.Claim, s runs.Summary, err error, bound float64) runs.Claim {
	return opposite(AtLeast(allowed(c, "below", bound), s, err, bound))
}

func allowed(c runs.Claim, side string, bound float64) runs.Claim {
	c.Allowed = fmt.Sprintf("%s %.6g", side, bound)
	return c
}

func opposite(c runs.Claim) runs.Claim {
	if c.Holds != runs.NotKnown {
		c.Holds = runs.Judge(c.Holds == runs.Fails)
	}
	return c
}

// Worst summarizes the list with the largest mean, for a statement about every list, at the confidence of a [Family] of
// them. It returns an error if there is no list, or if one cannot be summarized.
func Worst(lists [][]float64, confidence float64) (runs.Summary, error) {
	if len(lists) == 0 {
		return runs.Summary{}, errFew
	}
	each := Family(confidence, len(lists))
	var most runs.Summary
	for i, list := range lists {
		s, err := runs.Summarize(list, each)
		if err != nil {
			return s, err
		}
		if i == 0 || s.Mean > most.Mean {
			most = s
		}
	}
	return most, nil
}

// Setting judges that a preset has a setting as the paper prints it: a number, a
// word, or a list of them. It needs no run.
func Setting[T any](name, source string, ours, paper T) runs.Claim {
	c := Claim(name, source)
	c.Paper, c.Ours = number(reflect.ValueOf(paper)), number(reflect.ValueOf(ours))
	c.Holds = runs.Judge(reflect.DeepEqual(ours, paper))
	c.Note = "a setting of the paper's scale"
	if !c.Ours.Valid() {
		c.Note += fmt.Sprintf(": %v; the paper has %v", ours, paper)
	}
	return c
}

// number is a value that is a number; any other does not apply.
func number(v reflect.Value) runs.Number {
	switch {
	case v.CanInt():
		return runs.Number(v.Int())
	case v.CanFloat():
		return runs.Number(v.Float())
	}
	return runs.None
}
