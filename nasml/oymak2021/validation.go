package oymak2021

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// What the entries on train-validation splits have in common: Figure 1,
// Theorems 1 and 2, Lemmas 1 and 2.

// estimate is a mean over seeds with its interval, or why there is none.
type estimate struct {
	runs.Summary
	err error
}

// overSeeds is the mean of a statistic that every seed has one of.
func overSeeds(seeds int, confidence float64, of func(seed int) (float64, error)) estimate {
	s, err := verdict.OverSeeds(seeds, confidence, of)
	return estimate{s, err}
}

func overValues(values []float64, confidence float64) estimate {
	s, err := runs.Summarize(values, confidence)
	return estimate{s, err}
}

// judged is a claim that holds where the whole interval lies in [lo, hi].
func judged(name, source string, paper, lo, hi float64, e estimate, note string) runs.Claim {
	c := verdict.Claim(name, source)
	c.Note = note
	return verdict.Between(c, e.Summary, e.err, paper, lo, hi)
}

// none is a claim without exception.
func none(name, source string, violations, cases int, note string) runs.Claim {
	c := verdict.Claim(name, source)
	c.Note = note
	return verdict.None(c, violations, cases)
}

// zero is a claim that a number without noise is 0 up to rounding.
func zero(name, source string, ours, rounding float64, note string) runs.Claim {
	c := verdict.Claim(name, source)
	c.Note = note
	return verdict.Exactly(c, ours, 0, rounding)
}

// meansOf are the means of a series of stored records, whose numbers are finite
// and not negative: losses, errors and distances.
func meansOf(records []*runs.Record, name string, confidence float64) []runs.Summary {
	means, err := study.Means(records, name, confidence)
	if err != nil {
		panic(err)
	}
	for i := range means {
		means[i] = means[i].Within(0, math.Inf(1))
	}
	return means
}

// meanOf is the mean of such values.
func meanOf(values []float64, confidence float64) runs.Summary {
	mean, err := runs.Summarize(values, confidence)
	if err != nil {
		panic(err)
	}
	return mean.Within(0, math.Inf(1))
}

// logBand is a curve with its interval on a logarithmic axis: a mean that is not
// positive has no place there and is left out, and an end of an interval that is
// not is cut at a hundredth of the mean.
func logBand(label string, x []float64, means []runs.Summary) plots.Series {
	var kept []runs.Summary
	var at []float64
	for i, m := range means {
		if m.Mean > 0 {
			at, kept = append(at, x[i]), append(kept, m)
		}
	}
	s := plots.Band(label, at, kept)
	for i := range s.Lo {
		s.Lo[i] = max(s.Lo[i], s.Y[i]/100)
	}
	return s
}

// halfRate is a dashed line of slope −1/2 through the first or last point of a
// curve, over its range, which the caption names; nil where the curve has no two points.
func halfRate(s plots.Series, last bool) []plots.Series {
	n := len(s.X)
	if n < 2 {
		return nil
	}
	from, to, y := s.X[0], s.X[n-1], s.Y[0]
	if last {
		y = s.Y[n-1] * math.Sqrt(to/from)
	}
	return []plots.Series{{
		X: []float64{from, to}, Y: []float64{y, y * math.Sqrt(from/to)}, Reference: true, Line: plots.Dashed,
	}}
}

func logAxis(label string) plots.Axis { return plots.Axis{Label: label, Scale: plots.Log10} }

// openImages finds out about the publisher's training images of two classes.
func openImages(ctx context.Context, name data.Name, classes [2]int) (*data.Opened, error) {
	view := data.View{Name: name, Split: data.Train, Classes: []uint8{uint8(classes[0]), uint8(classes[1])}}
	return view.Open(ctx)
}

// imagesOf loads them.
func imagesOf(ctx context.Context, opened *data.Opened) (activation.Images, error) {
	im, err := opened.Images(ctx)
	if err != nil {
		return activation.Images{}, err
	}
	return activation.Images{Pixels: im.Image, Labels: im.Labels}, nil
}

// checkNet looks at networks, the loss that they are judged by and their data.
func checkNet(c *study.Checks, n activation.Net, loss string, set data.Name) {
	study.Distinct(c, "Activations", n.Activations, 1)
	for _, name := range n.Activations {
		err := activation.Check(name)
		c.Expect(err == nil, "Activations: %v", err)
	}
	c.Expect(n.Train >= 2 && n.Pool >= 2, "n_T is %d and the pool %d, want at least 2", n.Train, n.Pool)
	c.Expect(n.Width >= 2 && n.Width%2 == 0, "Width is %d, want an even number from 2", n.Width)
	c.AtLeast("Steps", n.Steps, 1)
	c.Positive("C0", n.C0)
	c.Expect(n.Rate > 0 && n.Rate < 2, "Rate is %v, want between 0 and 2", n.Rate)
	for _, class := range n.Classes {
		c.Expect(class >= 0 && class <= 255, "Classes has %d, want labels from 0 to 255", class)
	}
	c.Expect(n.Classes[0] != n.Classes[1], "Classes is %v, want two different labels", n.Classes)
	c.OneOf("Loss", loss, activation.LossNames()...)
	sets := data.Known()
	c.Expect(slices.Contains(sets, set), "Data is %q, want one of %v", set, sets)
}

// netKeys name the activations of networks in the keys of trials: those that have
// always been there by their names, others as [activationKeys] does.
func netKeys(names []string) ([]string, error) {
	keys := slices.Clone(names)
	for i, name := range names {
		if slices.Contains(activation.Names(), name) {
			continue
		}
		key, err := activationKeys([]string{name})
		if err != nil {
			return nil, err
		}
		keys[i] = key[0]
	}
	return keys, nil
}

// checkLists wants lists of different whole numbers from 1.
func checkLists(c *study.Checks, lists map[string][]int) {
	for name, list := range lists {
		study.Distinct(c, name, list, 1)
		c.Expect(len(list) == 0 || slices.Min(list) >= 1, "%s is %v, want numbers from 1", name, list)
	}
}

// checkNumbers wants different finite numbers from 0.
func checkNumbers(c *study.Checks, name string, list []float64) {
	study.Distinct(c, name, list, 1)
	for _, v := range list {
		c.Expect(v >= 0 && !math.IsInf(v, 1), "%s has %v, want 0 or more", name, v)
	}
}

// points are those of a curve whose slope is asked for.
type points struct{ x, y []float64 }

func (p *points) add(x, y float64) { p.x, p.y = append(p.x, x), append(p.y, y) }

func (p *points) slope() (float64, error) { return verdict.Slope(p.x, p.y) }

// meanSlope is the mean of the slopes of all curves that have two points or more.
func meanSlope(curves []points) (float64, error) {
	var slopes []float64
	for _, p := range curves {
		if len(p.x) < 2 {
			continue
		}
		slope, err := p.slope()
		if err != nil {
			return 0, err
		}
		slopes = append(slopes, slope)
	}
	if len(slopes) == 0 {
		return 0, errors.New("there are too few points for a slope")
	}
	return stat.Mean(slopes, nil), nil
}

// slopeOfSums is the slope over n of the sum of a series over some records, an
// entry for each n.
func slopeOfSums(sizes []int, records []*runs.Record, name string) (float64, error) {
	var sums points
	for i, n := range sizes {
		sums.add(float64(n), floats.Sum(study.Column(study.Rows(records, name), i)))
	}
	return sums.slope()
}
