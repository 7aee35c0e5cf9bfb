package verdict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/runs"
)

// Printed is a mean as a paper prints it: with its standard deviation over so many
// runs, and the unit of its last digit.
type Printed struct {
	Mean, Std float64
	Runs      int
	Digit     float64
}

// summary is the printed mean as a summary.
func (p Printed) summary() runs.Summary {
	return runs.Summary{N: p.Runs, Mean: p.Mean, Std: runs.Number(p.Std), Divisor: runs.DivisorSample, Of: "mean"}
}

// SameMean judges that the mean of our runs is the one that a paper prints. The
// difference of two means over runs is known to its standard error and no better,
//
//	|x̄ − X̄| ≤ t_{ν,(1+c)/2} · √(s²/n + S²/N) + digit/2 ,
//
// with Welch's ν: beyond it the claim fails. Within it the claim holds where that
// bound is below the deviation of single runs, the paper's or else ours; where it is
// not, too few runs were made to tell anything, and the claim is inconclusive.
func SameMean(c runs.Claim, ours runs.Summary, err error, paper Printed, confidence float64) runs.Claim {
	c.Paper = runs.Number(paper.Mean)
	if err != nil {
		return NotRun(c, err.Error())
	}
	c = Measured(c, ours)
	d, err := ours.Minus(paper.summary(), confidence)
	if err != nil {
		c.Note = joined("inconclusive: "+err.Error(), c.Note)
		return c
	}
	bound := (float64(d.Hi)-float64(d.Lo))/2 + paper.Digit/2
	c.Tolerance = runs.Number(bound)
	c.Allowed = fmt.Sprintf("mean %s, the %.3g %% CI of the difference", runs.WithinOf(paper.Mean, bound),
		100*confidence)
	c.Note = joined(fmt.Sprintf("%d runs, standard deviation %v; the paper's is %v over %d", ours.N, ours.Std,
		paper.Std, paper.Runs), c.Note)
	if d.Std > 0 {
		c.Note += fmt.Sprintf("; %.1f standard errors apart", math.Abs(d.Mean)/float64(d.Std))
	}
	switch single := max(paper.Std, float64(ours.Std), paper.Digit); {
	case math.Abs(d.Mean) > bound:
		c.Holds = runs.Fails
	case bound <= single:
		c.Holds = runs.Holds
	default:
		c.Note = joined("inconclusive: too few runs to tell the means apart", c.Note)
	}
	return c
}

// Apart is how many standard errors our mean and a printed one lie apart, and the
// number that n such comparisons together do not exceed at a confidence where all
// means are the same.
func Apart(ours runs.Summary, paper Printed, confidence float64, n int) (errors, most float64, err error) {
	d, err := ours.Minus(paper.summary(), confidence)
	if err != nil {
		return 0, 0, err
	}
	if !(d.Std > 0) {
		return 0, 0, fmt.Errorf("neither ours nor the paper's runs differ, so there is no standard error")
	}
	beyond := max(0, math.Abs(d.Mean)-paper.Digit/2)
	return beyond / float64(d.Std), distuv.UnitNormal.Quantile((1 + Family(confidence, n)) / 2), nil
}

// Descending judges that the means of independent samples fall from one to the next, as a
// table's order says: the lowest interval of the steps, at the confidence of a [Family] of
// them, has to lie above 0.
func Descending(c runs.Claim, names []string, samples [][]float64, confidence float64) runs.Claim {
	c.Paper = 0
	if len(samples) < 2 || len(names) != len(samples) {
		return NotRun(c, fmt.Sprintf("%d samples, expected two or more", len(samples)))
	}
	var least runs.Summary
	steps := ""
	for i := range samples[1:] {
		s, err := runs.WelchDiff(samples[i], samples[i+1], Family(confidence, len(samples)-1))
		if err != nil {
			return NotRun(c, fmt.Sprintf("%s and %s: %v", names[i], names[i+1], err))
		}
		steps = joined(steps, fmt.Sprintf("%s less %s %.3g [%.3g, %.3g]", names[i], names[i+1], s.Mean, s.Lo, s.Hi))
		if i == 0 || s.Lo < least.Lo {
			least = s
		}
	}
	c.Note = joined("ours is the step with the lowest interval; "+steps, c.Note)
	return Above(c, least, nil, 0)
}
