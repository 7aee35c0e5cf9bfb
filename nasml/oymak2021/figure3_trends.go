package oymak2021

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/verdict"
)

// Thresholds of Section 7b: the search overfits up to so few validation images, and
// from so many on their error tracks the test error.
const (
	fewValidation    = 100
	enoughValidation = 250
)

// trackedWithin is the largest distance of test and validation error that "almost
// perfectly tracks" allows; it is ours.
const trackedWithin = 0.03

// zeroFrom is the epoch after which the training error is "consistently zero", and
// zeroWithin the largest that is zero, which is ours.
const (
	zeroFrom   = 30
	zeroWithin = 0.01
)

// checkTrends judges over all n_V and all epochs what Section 7b and Figure 1 say of
// them, of which the other claims of Check compare the ends: by one number a seed.
func (r *Figure3Result) checkTrends() []runs.Claim {
	few, enough, last := r.sizes(0, fewValidation), r.sizes(enoughValidation, math.MaxInt), r.epochs()
	mean := func(at []int, of func(i, seed int) float64) perSeed {
		return func(seed int) (float64, error) { return r.meanOver(at, seed, of) }
	}
	return []runs.Claim{
		r.trend(noted("own: the gap falls over all numbers of validation images", figure3Source,
			fmt.Sprintf("slope over log₁₀ n_V of |test − validation error| after %d epochs, all of Validation", last)),
			verdict.Below, 0, r.slopeOverSizes),
		r.trend(noted(fmt.Sprintf("own: the search overfits with all n_V up to %d", fewValidation), figure3Source,
			fmt.Sprintf("test minus validation error after %d epochs, mean over %s", last, r.named(few))),
			verdict.Above, 0, mean(few, r.gapOf)),
		r.trend(noted("own: the gap grows over all epochs", figure3Source,
			"slope over epochs of test minus validation error, mean over all of Validation"),
			verdict.Above, 0, r.slopeOverEpochs),
		r.trend(noted(fmt.Sprintf("own: the test risk is worse with all n_V up to %d than with all from %d on",
			fewValidation, enoughValidation), figure1CPaper, fmt.Sprintf("mean test error over %s less that over %s, "+
			"after %d epochs", r.named(few), r.named(enough), last)),
			verdict.Above, 0, difference(mean(few, r.testOf), mean(enough, r.testOf))),
		r.checkTracks(enough),
		r.checkZero(),
	}
}

// difference is a less b.
func difference(a, b perSeed) perSeed {
	return func(seed int) (float64, error) {
		x, err := a(seed)
		y, other := b(seed)
		return x - y, errors.Join(err, other)
	}
}

// trend judges the mean over seeds of a number against a bound, where all searches
// were run.
func (r *Figure3Result) trend(
	c runs.Claim, judge func(runs.Claim, runs.Summary, error, float64) runs.Claim, bound float64, of perSeed,
) runs.Claim {
	c.Paper = 0
	if err := r.missing(); err != nil {
		return verdict.NotRun(c, err.Error())
	}
	s, err := verdict.OverSeeds(r.Params.Seeds, r.Params.Confidence, of)
	return judge(c, s, err, bound)
}

// checkTracks judges that the validation error tracks the test error with every n_V
// that is enough, by the one that is farthest from it.
func (r *Figure3Result) checkTracks(enough []int) runs.Claim {
	c := noted(fmt.Sprintf("own: validation error tracks test error with every n_V from %d on", enoughValidation),
		figure1CPaper, fmt.Sprintf("the largest mean |test − validation error| of %[2]s after %[1]d epochs, at "+
			"most %[3]v", r.epochs(), r.named(enough), trackedWithin))
	c.Paper = 0
	if err := r.missing(); err != nil {
		return verdict.NotRun(c, err.Error())
	}
	if len(enough) == 0 {
		return verdict.NotRun(c, fmt.Sprintf("Validation is %v", r.Params.Validation))
	}
	var distances [][]float64
	for _, i := range enough {
		distances = append(distances, absolute(r.gaps(i, r.epochs())))
	}
	s, err := verdict.Worst(distances, r.Params.Confidence)
	return verdict.AtMost(c, s, err, trackedWithin)
}

// checkZero judges that the training error is zero with every n_V after every epoch
// from some on.
func (r *Figure3Result) checkZero() runs.Claim {
	c := noted(fmt.Sprintf("own: training error zero with every n_V after every epoch from %d on", zeroFrom),
		figure1CPaper, fmt.Sprintf("a seed's largest of all n_V and epochs, at most %v", zeroWithin))
	if last := r.epochs(); last < zeroFrom {
		return verdict.NotRun(c, fmt.Sprintf("the searches have %d epochs, want %d", last, zeroFrom))
	}
	return r.trend(c, verdict.AtMost, zeroWithin, func(seed int) (float64, error) {
		most := 0.
		for i := range r.records {
			most = max(most, slices.Max(r.records[i][seed].Series["train"][zeroFrom-1:]))
		}
		return most, nil
	})
}

// missing is an error where not all searches were run to their end.
func (r *Figure3Result) missing() error {
	ran, all := 0, 0
	for _, record := range slices.Concat(r.records...) {
		all++
		if record != nil && len(record.Series["test"]) == r.epochs() {
			ran++
		}
	}
	if ran < all || r.epochs() == 0 {
		return fmt.Errorf("%d of %d searches", ran, all)
	}
	return nil
}

// sizes are the places in Validation of those from lo to hi.
func (r *Figure3Result) sizes(lo, hi int) (at []int) {
	for i, n := range r.Params.Validation {
		if lo <= n && n <= hi {
			at = append(at, i)
		}
	}
	return at
}

// named are places in Validation in words, "n_V = 20, 100".
func (r *Figure3Result) named(at []int) string {
	text := "no n_V"
	for k, i := range at {
		if k == 0 {
			text = fmt.Sprintf("n_V = %d", r.Params.Validation[i])
		} else {
			text += fmt.Sprintf(", %d", r.Params.Validation[i])
		}
	}
	return text
}

// testOf is the test error after the last epoch of the search with the i-th n_V.
func (r *Figure3Result) testOf(i, seed int) float64 {
	test := r.records[i][seed].Series["test"]
	return test[len(test)-1]
}

// gapOf is that error less the validation error.
func (r *Figure3Result) gapOf(i, seed int) float64 {
	validation := r.records[i][seed].Series["validation"]
	return r.testOf(i, seed) - validation[len(validation)-1]
}

// meanOver is a seed's mean of a number over places in Validation.
func (r *Figure3Result) meanOver(at []int, seed int, of func(i, seed int) float64) (float64, error) {
	if len(at) == 0 {
		return 0, fmt.Errorf("validation sizes are %v, want some up to %d and some from %d on", r.Params.Validation,
			fewValidation, enoughValidation)
	}
	sum := 0.
	for _, i := range at {
		sum += of(i, seed)
	}
	return sum / float64(len(at)), nil
}

// slopeOverSizes is the slope of a seed's |gap| after the last epoch over log₁₀ n_V, by
// least squares.
func (r *Figure3Result) slopeOverSizes(seed int) (float64, error) {
	var x, y []float64
	for i, n := range r.Params.Validation {
		x, y = append(x, math.Log10(float64(n))), append(y, math.Abs(r.gapOf(i, seed)))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return slope, nil
}

// slopeOverEpochs is the slope of a seed's gap over the epochs, mean over all n_V.
func (r *Figure3Result) slopeOverEpochs(seed int) (float64, error) {
	if r.epochs() < 2 {
		return 0, errors.New("one epoch has no slope")
	}
	x, y := make([]float64, r.epochs()), make([]float64, r.epochs())
	for i := range r.records {
		series := r.records[i][seed].Series
		floats.Add(y, series["test"])
		floats.Sub(y, series["validation"])
	}
	for e := range x {
		x[e] = float64(e + 1)
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return slope / float64(len(r.records)), nil
}
