package oymak2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// errorsAt are the errors on a part after an epoch, from 1, of the finished searches with the i-th n_V.
func errorsAt(r *figure3, i int, part string, epoch int) []float64 {
	return study.Column(r.Groups[i:i+1].Rows(part), epoch-1)
}

func gaps(r *figure3, i, epoch int) []float64 {
	out := errorsAt(r, i, "test", epoch)
	floats.Sub(out, errorsAt(r, i, "validation", epoch))
	return out
}

func epochs(r *figure3) int {
	for _, n := range r.Groups.Values("epochs") {
		return int(n)
	}
	return 0
}

// drawFigure3 draws the errors over the epochs, a panel for each of Curves as in Figure 1 (c), and the gap over the
// epochs and over n_V as in Figure 3.
func drawFigure3(r *figure3, f *lab.Picture) {
	p, gap := r.Params, plots.Axis{Label: "test − validation error"}
	f.Style = plots.ICML
	f.Row()
	for _, n := range p.Curves {
		i := slices.Index(p.Validation, n)
		panel := plots.Panel{Title: called(n), X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "error"}}
		for _, part := range []string{"train", "validation", "test"} {
			panel.Series = append(panel.Series,
				overEpochs(r, part, 0, func(e int) []float64 { return errorsAt(r, i, part, e) }))
		}
		f.Add(panel)
	}
	over := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: gap}
	for i, n := range p.Validation {
		over.Series = append(over.Series, overEpochs(r, called(n), -1, func(e int) []float64 { return gaps(r, i, e) }))
	}
	sizes := plots.Panel{X: logAxis("$n_V$"), Y: gap}
	for _, e := range p.At {
		lists := study.Map(trial.Indices(0, len(p.Validation)), func(i int) []float64 { return gaps(r, i, e) })
		sizes.Series = append(sizes.Series, r.Band(fmt.Sprintf("after epoch %d", e), study.Floats(p.Validation), lists))
	}
	f.Row(over, sizes)
	f.Say("Searches by %s on %s, %d training images of %s; test error: on %d further images of the training split; %s.",
		search.Methods[p.Method].Title, study.SpaceTitle(p.Space), p.Train, strings.ToUpper(string(p.Data)), p.Test,
		r.Interval("band", p.Seeds, "seed"))
	lab.Changes(f, p.Validation, called, p.changes)
}

func called(validation int) string { return fmt.Sprintf("$n_V$ = %d", validation) }

// overEpochs is the mean over the searches after every epoch, with its interval between least and 1.
func overEpochs(r *figure3, label string, least float64, of func(epoch int) []float64) plots.Series {
	var x []float64
	var means []runs.Summary
	for e := 1; e <= epochs(r); e++ {
		if values := of(e); len(values) > 0 {
			x, means = append(x, float64(e)), append(means, r.Mean(values).Within(least, 1))
		}
	}
	return plots.Band(label, x, means)
}

func onFigure1C(r *figure3, format string, args ...any) lab.Claim {
	return r.Claim(format, args...).From("Section 7b and Figure 1 (c)")
}

// judgeEnds judges the claims of Section 7b at the ends of Validation and of the epochs; judgeTrends takes all of them.
func judgeEnds(r *figure3) []runs.Claim {
	last, most := epochs(r), len(r.Params.Validation)-1
	few, many := r.Params.Validation[0], r.Params.Validation[most]
	end, wide := gaps(r, 0, last), study.Map(gaps(r, most, last), math.Abs)
	return []runs.Claim{
		larger(r, r.Claim("[figure3-decrease] the gap falls with the number of validation images").
			Noting("|test − validation error| with n_V = %d less that with %d, the ends of Validation, after %d epochs",
				few, many, last), study.Map(end, math.Abs), wide),
		larger(r, r.Claim("[figure3-overfit] the search overfits few validation images").
			Noting("test minus validation error with the fewest, n_V = %d, after %d epochs", few, last),
			end, make([]float64, len(end))),
		larger(r, r.Claim("[figure3-epochs-gap] the gap grows with the epochs").
			Noting("test minus validation error with n_V = %d after %d epochs less that after one", few, last),
			end, gaps(r, 0, 1)),
		larger(r, onFigure1C(r, "[figure1c-overfit] the test risk is worse with few validation images").
			Noting("test error with n_V = %d less that with %d, the ends of Validation, after %d epochs",
				few, many, last),
			errorsAt(r, 0, "test", last), errorsAt(r, most, "test", last)),
		onFigure1C(r, "[figure1c-val-tracks] validation error tracks test error with the most samples").
			Noting("mean |test − validation error| with n_V = %d after %d epochs, at most %v", many, last,
				trackedWithin).Mean(wide).AtMost(trackedWithin),
		judgeTrainZero(r, most, last),
	}
}

func judgeTrainZero(r *figure3, most, last int) runs.Claim {
	c := onFigure1C(r, "[figure1c-train-zero] training error zero after %d epochs", zeroFrom).
		Noting("with the most validation images, n_V = %d, after epoch %d: at most %v",
			r.Params.Validation[most], zeroFrom, zeroWithin)
	if last < zeroFrom {
		return c.NotRun("the searches need %d epochs, they have %d", zeroFrom, last)
	}
	return c.Mean(errorsAt(r, most, "train", zeroFrom)).Between(0, 0, zeroWithin)
}

// larger judges whether a is above b over the seeds, if both have all.
func larger(r *figure3, c lab.Claim, a, b []float64) runs.Claim {
	if c = c.Says(0); len(a) < r.Params.Seeds || len(b) < r.Params.Seeds {
		return c.NotRun("%d and %d of %d searches", len(a), len(b), r.Params.Seeds)
	}
	return c.Difference(a, b).Above(0)
}

// Thresholds of Section 7b: the search overfits up to fewValidation images, and from enoughValidation on their error
// tracks the test error. The training error is "consistently zero" after epoch zeroFrom.
const (
	fewValidation    = 100
	enoughValidation = 250
	zeroFrom         = 30
)

// These two are ours: the largest distance of test and validation error that "almost perfectly tracks" allows, and the
// largest training error that is zero.
const (
	trackedWithin = 0.03
	zeroWithin    = 0.01
)
