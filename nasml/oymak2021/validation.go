package oymak2021

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// This file has what the entries on train-validation splits share: Figure 1, Theorems 1 and 2, Lemmas 1 and 2.

// perSeed is a number of every seed, or why it has none.
type perSeed func(seed int) (float64, error)

// band is a curve of means of lists, one at each x, with a band for the interval. The numbers are finite and not
// negative: losses, errors and distances.
func band(label string, x []float64, lists [][]float64, confidence float64) plots.Series {
	return plots.Band(label, x, study.Map(lists, func(list []float64) runs.Summary { return meanOf(list, confidence) }))
}

// meanOf is the mean of such numbers.
func meanOf(values []float64, confidence float64) runs.Summary {
	mean, err := runs.Summarize(values, confidence)
	if err != nil {
		panic(err)
	}
	return mean.Within(0, math.Inf(1))
}

// logBand is a band on a logarithmic axis. Means that are not positive are left out; intervals are cut at a hundredth
// of the mean.
func logBand(label string, x []float64, lists [][]float64, confidence float64) plots.Series {
	var at []float64
	var kept [][]float64
	for i, list := range lists {
		if meanOf(list, confidence).Mean > 0 {
			at, kept = append(at, x[i]), append(kept, list)
		}
	}
	s := band(label, at, kept, confidence)
	for i := range s.Lo {
		s.Lo[i] = max(s.Lo[i], s.Y[i]/100)
	}
	return s
}

// ofSeed is the record of a seed of each group.
func ofSeed[T any](gs lab.Groups[T], seed int) (records []*runs.Record) {
	for _, g := range gs {
		records = append(records, g.Records[seed])
	}
	return records
}

// halfRate is a dashed line of slope −1/2 through the first or last point of a curve; nil if the curve has no two
// points.
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

// logLog is a panel with two logarithmic axes.
func logLog(title, x, y string, series ...plots.Series) plots.Panel {
	return plots.Panel{Title: title, X: logAxis(x), Y: logAxis(y), Series: series}
}

func logAxis(label string) plots.Axis { return plots.Axis{Label: label, Scale: plots.Log10} }

// viewOf are the training images of two classes.
func viewOf(name data.Name, classes [2]int) data.View {
	return data.View{Name: name, Split: data.Train, Classes: []uint8{uint8(classes[0]), uint8(classes[1])}}
}

// netBench opens images for trials with networks; netOf is the network of a copy of a trial, nil if it has none. Keys
// say what custom activations compute. Without names it opens nothing.
func netBench[T interface {
	Run(ctx context.Context, seed uint64, images activation.Images) (trial.Result, error)
}](ctx context.Context, name data.Name, classes [2]int, names []string, netOf func(*T) *activation.Net) (
	b lab.Bench[T], err error) {
	opened := new(data.Opened)
	if len(names) > 0 {
		if opened, err = viewOf(name, classes).Open(ctx); err != nil {
			return b, err
		}
	}
	keys, err := netKeys(names)
	b.Key = func(t T) any {
		if net := netOf(&t); net != nil {
			net.Activations = renamed(names, keys, net.Activations)
		}
		return t
	}
	b.Data = func(t T) string {
		if netOf(&t) == nil {
			return ""
		}
		return opened.Fingerprint
	}
	b.Run = func(ctx context.Context, t T, seed uint64, _ study.Step) (trial.Result, error) {
		var images activation.Images
		if netOf(&t) != nil {
			im, err := opened.Images(ctx)
			if err != nil {
				return trial.Result{}, err
			}
			images = activation.Images{Pixels: im.Image, Labels: im.Labels}
		}
		return t.Run(ctx, seed, images)
	}
	return b, err
}

// renamed are some of names by the keys of all.
func renamed(names, keys, some []string) []string {
	return study.Map(some, func(name string) string { return keys[slices.Index(names, name)] })
}

// checkNet requires known activations and a known set of images.
func checkNet(c *study.Checks, activations []string, set data.Name) {
	for _, name := range activations {
		err := activation.Check(name)
		c.Expect(err == nil, "%v", err)
	}
	checkSet(c, "Data", set)
}

func checkSet(c *study.Checks, field string, set data.Name) {
	sets := data.Known()
	c.Expect(slices.Contains(sets, set), "%s must be one of %v, got %q", field, sets, set)
}

// netKeys name the activations of networks in the keys of trials: activation's own by their names, others as
// [activationKeys] does.
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

// points are those of a curve whose slope is asked for.
type points struct{ x, y []float64 }

func (p *points) add(x, y float64) { p.x, p.y = append(p.x, x), append(p.y, y) }

func (p *points) slope() (float64, error) { return verdict.Slope(p.x, p.y) }

var errFew = errors.New("there are too few points for a slope")

// meanSlope is the mean of the slopes of all curves that have two points or more; without one it returns errFew.
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
		return 0, errFew
	}
	return stat.Mean(slopes, nil), nil
}

// slopeOfSums is the slope over n of the sum over records of a series, which has an entry for each n.
func slopeOfSums(sizes []int, records []*runs.Record, name string) (float64, error) {
	var sums points
	for i, n := range sizes {
		sums.add(float64(n), floats.Sum(study.Column(study.Rows(records, name), i)))
	}
	return sums.slope()
}

// listed are whole numbers in words: "64, 128".
func listed(numbers []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(numbers), "[]")), ", ")
}
