package oymak2021

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// judgeTrends judges the statements of Section 7b and Figure 1 over all n_V and all epochs, by one number a seed.
func judgeTrends(r *figure3) []runs.Claim {
	few, enough, last := sizesBetween(r, 0, fewValidation), sizesBetween(r, enoughValidation, math.MaxInt), epochs(r)
	mean := func(of []int, value func(*runs.Record) float64) perSeed {
		return func(seed int) (float64, error) {
			if len(of) == 0 {
				return 0, fmt.Errorf("the sizes of Validation must include some up to %d and some from %d on, got %v",
					fewValidation, enoughValidation, r.Params.Validation)
			}
			sum := 0.
			for _, i := range of {
				sum += value(r.Groups[i].Records[seed])
			}
			return sum / float64(len(of)), nil
		}
	}
	return []runs.Claim{
		trend(r, r.Claim("own: the gap falls over all numbers of validation images").
			Noting("slope over log₁₀ n_V of |test − validation error| after %d epochs, all of Validation", last),
			slopeOverSizes(r)).Below(0),
		trend(r, r.Claim("own: the search overfits with all n_V up to %d", fewValidation).
			Noting("test minus validation error after %d epochs, mean over %s", last, named(r, few)),
			mean(few, gapOf)).Above(0),
		trend(r, r.Claim("own: the gap grows over all epochs").
			Noting("slope over epochs of test minus validation error, mean over all of Validation"),
			slopeOverEpochs(r)).Above(0),
		trend(r, onFigure1C(r, "own: the test risk is worse with all n_V up to %d than with all from %d on",
			fewValidation, enoughValidation).
			Noting("mean test error over %s less that over %s, after %d epochs", named(r, few), named(r, enough), last),
			difference(mean(few, testOf), mean(enough, testOf))).Above(0),
		judgeTracks(r, enough),
		judgeZero(r),
	}
}

func difference(a, b perSeed) perSeed {
	return func(seed int) (float64, error) {
		x, err := a(seed)
		y, other := b(seed)
		return x - y, errors.Join(err, other)
	}
}

func trend(r *figure3, c lab.Claim, of perSeed) lab.Statistic {
	if c = c.Says(0); missing(r) != nil {
		return c.Of(runs.Summary{}, missing(r))
	}
	return c.OverSeeds(r.Params.Seeds, of)
}

// judgeTracks judges whether the validation error tracks the test error with every n_V that is enough, by the farthest.
func judgeTracks(r *figure3, enough []int) runs.Claim {
	c := onFigure1C(r, "own: validation error tracks test error with every n_V from %d on", enoughValidation).Says(0).
		Noting("the largest mean |test − validation error| of %s after %d epochs, at most %v", named(r, enough),
			epochs(r), trackedWithin)
	if err := missing(r); err != nil {
		return c.NotRun("%v", err)
	}
	if len(enough) == 0 {
		return c.NotRun("Validation is %v", r.Params.Validation)
	}
	distances := study.Map(enough, func(i int) []float64 { return study.Map(gaps(r, i, epochs(r)), math.Abs) })
	return c.Of(verdict.Worst(distances, r.Confidence)).AtMost(trackedWithin)
}

// judgeZero judges whether the training error is zero with every n_V after every epoch from zeroFrom on.
func judgeZero(r *figure3) runs.Claim {
	c := onFigure1C(r, "own: training error zero with every n_V after every epoch from %d on", zeroFrom).
		Noting("a seed's largest of all n_V and epochs, at most %v", zeroWithin)
	if last := epochs(r); last < zeroFrom {
		return c.NotRun("the searches need %d epochs, they have %d", zeroFrom, last)
	}
	return trend(r, c, func(seed int) (float64, error) {
		return slices.Max(study.Map(ofSeed(r.Groups, seed), func(record *runs.Record) float64 {
			return max(0, slices.Max(record.Series["train"][zeroFrom-1:]))
		})), nil
	}).AtMost(zeroWithin)
}

func missing(r *figure3) error {
	all := r.Groups.Records()
	ran := len(only(all, func(record *runs.Record) bool {
		return record != nil && len(record.Series["test"]) >= epochs(r)
	}))
	if ran < len(all) || epochs(r) == 0 {
		return fmt.Errorf("%d of %d searches", ran, len(all))
	}
	return nil
}

func sizesBetween(r *figure3, lo, hi int) []int {
	return only(trial.Indices(0, len(r.Params.Validation)), func(i int) bool {
		return lo <= r.Params.Validation[i] && r.Params.Validation[i] <= hi
	})
}

// named are places in Validation in words, "n_V = 20, 100".
func named(r *figure3, at []int) string {
	if len(at) == 0 {
		return "no n_V"
	}
	return "n_V = " + listed(study.Map(at, func(i int) int { return r.Params.Validation[i] }))
}

// lastOf is the last entry of a series.
func lastOf(record *runs.Record, series string) float64 {
	return record.Series[series][len(record.Series[series])-1]
}

// testOf is the test error after the last epoch, gapOf that less the validation error.
func testOf(record *runs.Record) float64 { return lastOf(record, "test") }

func gapOf(record *runs.Record) float64 { return testOf(record) - lastOf(record, "validation") }

// slopeOverSizes is the slope of a seed's |gap| after the last epoch over log₁₀ n_V, by least squares.
func slopeOverSizes(r *figure3) perSeed {
	x := r.Groups.X(func(n int) float64 { return math.Log10(float64(n)) })
	return func(seed int) (float64, error) {
		y := study.Map(ofSeed(r.Groups, seed), func(record *runs.Record) float64 { return math.Abs(gapOf(record)) })
		_, slope := stat.LinearRegression(x, y, nil, false)
		return slope, nil
	}
}

// slopeOverEpochs is the slope of a seed's gap over the epochs, mean over all n_V.
func slopeOverEpochs(r *figure3) perSeed {
	return func(seed int) (float64, error) {
		if epochs(r) < 2 {
			return 0, errors.New("one epoch has no slope")
		}
		x, y := study.Floats(trial.Indices(1, epochs(r))), make([]float64, epochs(r))
		for _, record := range ofSeed(r.Groups, seed) {
			floats.Add(y, record.Series["test"])
			floats.Sub(y, record.Series["validation"])
		}
		_, slope := stat.LinearRegression(x, y, nil, false)
		return slope / float64(len(r.Groups)), nil
	}
}
