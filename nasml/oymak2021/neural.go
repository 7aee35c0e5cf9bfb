package oymak2021

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// This file has what Theorem 3 and Assumption 3 share: activations, images and curves.

// shippedActivations are spectral's own.
var shippedActivations = maps.Clone(spectral.Activations)

// activationKeys name entries of spectral.Activations, with or without a factor, in the keys of trials: shipped ones by
// their names, custom ones by what they compute. It returns an error if a name is not known or a function is not
// deterministic.
func activationKeys(names []string) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		base, _, _ := strings.Cut(name, "*")
		found, ours := spectral.Activations[base], shippedActivations[base]
		if own.Same(found.Eval, ours.Eval) && found.Slope == ours.Slope && found.Curvature == ours.Curvature {
			keys[i] = name
			continue
		}
		a, err := spectral.NamedActivation(name)
		if err != nil {
			return nil, err
		}
		text := probed(a)
		if probed(a) != text {
			return nil, fmt.Errorf("spectral.Activations[%q] gives other numbers when it is called again: "+
				"no key could speak of it; draw random numbers outside", base)
		}
		keys[i] = own.Text(text)
	}
	return keys, nil
}

// probed are an activation's bounds, values and slopes at fixed points in nine digits, which tell sin(5z) from 5 sin z.
func probed(a spectral.Activation) string {
	text := fmt.Sprintf("%.9g %.9g", a.Slope, a.Curvature)
	points := []float64{0, 1e-9, -1e-9, 1e-3, -1e-3, 12, -12, 40, -40, 1000, -1000}
	for i := range 66 {
		points = append(points, -6.5+float64(i)/5.03)
	}
	for _, z := range points {
		value, slope := a.Eval(z)
		text += fmt.Sprintf(" %.9g %.9g", value, slope)
	}
	return text
}

// checkActivations requires known names.
func checkActivations(c *study.Checks, field string, names []string) []spectral.Activation {
	activations, err := spectral.NamedActivations(names...)
	c.Expect(err == nil, "%s: %v", field, err)
	return activations
}

// digitsBench opens images for trials; of returns a trial's activations and problem instance. Keys say what custom
// activations compute.
func digitsBench[T interface {
	Run(ctx context.Context, seed uint64, im *neural.Images) (trial.Result, error)
}](ctx context.Context, name data.Name, classes [2]int, names []string,
	of func(*T) (activations *[]string, world neural.World)) (b lab.Bench[T], err error) {
	images, err := openDigits(ctx, name, classes)
	if err != nil {
		return b, err
	}
	keys, err := activationKeys(names)
	b.Key = func(t T) any {
		list, _ := of(&t)
		*list = renamed(names, keys, *list)
		return t
	}
	b.Data = func(t T) string {
		_, world := of(&t)
		return images.of(world)
	}
	b.Run = func(ctx context.Context, t T, seed uint64, _ study.Step) (trial.Result, error) {
		_, world := of(&t)
		im, err := images.load(ctx, world)
		if err != nil {
			return trial.Result{}, err
		}
		return t.Run(ctx, seed, im)
	}
	if images.train.Synthetic || images.test.Synthetic {
		b.Note = "SYNTHETIC DIGITS, not real ones."
	}
	return b, err
}

// digits are two classes of both splits of images, opened but not loaded.
type digits struct {
	train, test *data.Opened
	first       uint8
}

func openDigits(ctx context.Context, name data.Name, classes [2]int) (d digits, err error) {
	view := viewOf(name, classes)
	d.first = view.Classes[0]
	if d.train, err = view.Open(ctx); err != nil {
		return d, err
	}
	view.Split = data.Test
	d.test, err = view.Open(ctx)
	return d, err
}

// of is the fingerprint of what a world needs of the images.
func (d digits) of(w neural.World) string {
	if w.Data != neural.Digits {
		return ""
	}
	return d.train.Fingerprint + d.test.Fingerprint
}

// load is what a world needs of the images.
func (d digits) load(ctx context.Context, w neural.World) (*neural.Images, error) {
	if w.Data != neural.Digits {
		return nil, nil
	}
	train, err := d.train.Images(ctx)
	if err != nil {
		return nil, err
	}
	test, err := d.test.Images(ctx)
	if err != nil {
		return nil, err
	}
	return &neural.Images{Train: pixelsOf(train), Test: pixelsOf(test), First: d.first}, nil
}

// sourceNames are the sources' names in pictures.
var sourceNames = map[string]string{
	neural.Cap: "margin", neural.Flipped: "margin, flipped labels", neural.Product: "product", neural.Digits: "digits",
}

// logMean is a mean of logarithms with its interval, as a value on a log axis.
type logMean struct{ y, lo, hi float64 }

// Bounds are the value and the ends of its interval.
func (m logMean) Bounds() (y, lo, hi float64) { return m.y, m.lo, m.hi }

// logMeanOf is an error if a value is not positive.
func logMeanOf(values []float64, confidence float64) (logMean, error) {
	s, err := runs.Summarize(study.Map(values, math.Log), confidence)
	if err != nil {
		return logMean{}, err
	}
	m := logMean{math.Exp(s.Mean), math.NaN(), math.NaN()}
	if s.Lo.Valid() && s.Hi.Valid() {
		m.lo, m.hi = math.Exp(float64(s.Lo)), math.Exp(float64(s.Hi))
	}
	return m, nil
}

// curve is a series of means over seeds, values[i] those at xs[i], of errors, risks and distances: intervals end at 0.
// What has no place on a log axis is left out.
func curve(label string, xs []float64, values [][]float64, scale plots.Scale, confidence float64) plots.Series {
	var at []float64
	var means []logMean
	for i, x := range xs {
		m, err := logMeanOf(values[i], confidence)
		if scale == plots.Linear {
			var s runs.Summary
			s, err = runs.Summarize(values[i], confidence)
			m.y, m.lo, m.hi = s.Within(0, math.Inf(1)).Bounds()
		}
		if err == nil {
			at, means = append(at, x), append(means, m)
		}
	}
	return plots.Bars(label, at, means)
}

// powerLaw is the line through the first point of a series with a slope.
func powerLaw(label string, s plots.Series, slope float64) plots.Series {
	along := func(x float64) float64 { return s.Y[0] * math.Pow(x/s.X[0], slope) }
	return plots.Series{Label: label, Reference: true, X: slices.Clone(s.X), Y: study.Map(s.X, along)}
}

// columns are the values of a series, [place][seed].
func columns(records []*runs.Record, series string) [][]float64 {
	return study.Columns(study.Rows(records, series))
}

// listsOf is a number of every record of groups, [group][seed].
func listsOf[T any](gs lab.Groups[T], of func(*runs.Record) float64) (lists [][]float64) {
	for _, g := range gs {
		lists = append(lists, study.Map(g.Records, of))
	}
	return lists
}

// ticks are marks at whole numbers.
func ticks(at []int) []plots.Tick {
	return study.Map(at, func(n int) plots.Tick { return plots.Tick{Value: float64(n), Label: fmt.Sprint(n)} })
}
