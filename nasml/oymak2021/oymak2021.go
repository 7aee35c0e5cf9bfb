// Package oymak2021 reproduces the figures, tables and theorems of Oymak, Li, Soltanolkotabi, "Generalization
// Guarantees for Neural Architecture Search with Train-Validation Split", ICML 2021 (Oymak+).
package oymak2021

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

var ofPaper = lab.Paper{ID: "oymak2021", Name: "Oymak+ 2021", Shipped: shippedRecords}

// shippedRecords are the trials that are shipped: long runs that nobody
// should have to repeat to see a figure or a theorem.
//
//go:embed records
var shippedRecords embed.FS

func pixelsOf(im *data.Images) *pixels.Images {
	return &pixels.Images{
		Name: fmt.Sprintf("%s %s", im.Name, im.Split), Size: im.Height * im.Width * im.Channels,
		Pixels: im.Pixels, Labels: im.Labels,
	}
}

// What the entries on train-validation splits share: Figure 1, Theorems 1 and 2, Lemmas 1 and 2.

// perSeed is a number of every seed, or why it has none.
type perSeed func(seed int) (float64, error)

// band is a curve of means of lists, one at each x, with a band for the interval. The numbers are finite and not
// negative: losses, errors and distances.
func band(label string, x []float64, lists [][]float64, confidence float64) plots.Series {
	return plots.Band(label, x, study.Map(lists, func(list []float64) runs.Summary { return meanOf(list, confidence) }))
}

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
func ofSeed[T any](gs lab.Groups[T], seed int) []*runs.Record {
	return study.Map(gs, func(g lab.Group[T]) *runs.Record { return g.Records[seed] })
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

func logLog(title, x, y string, series ...plots.Series) plots.Panel {
	return plots.Panel{Title: title, X: logAxis(x), Y: logAxis(y), Series: series}
}

func logAxis(label string) plots.Axis { return plots.Axis{Label: label, Scale: plots.Log10} }

func viewOf(name data.Name, classes [2]int) data.View {
	return data.View{Name: name, Split: data.Train, Classes: []uint8{uint8(classes[0]), uint8(classes[1])}}
}

// imageBench computes trials with activations, and with images that load reads if a trial needs them: of says both of a
// copy of a trial. Keys have the keys of activations in the place of their names.
func imageBench[I any, T interface {
	Run(ctx context.Context, seed uint64, images I) (trial.Result, error)
}](names, keys []string, fingerprint string, load func(context.Context) (I, error),
	of func(*T) (activations *[]string, needsImages bool)) lab.Bench[T] {
	return lab.Bench[T]{
		Key: func(t T) any {
			list, _ := of(&t)
			*list = study.Map(*list, func(name string) string { return keys[slices.Index(names, name)] })
			return t
		},
		Data: func(t T) string {
			if _, needs := of(&t); !needs {
				return ""
			}
			return fingerprint
		},
		Run: func(ctx context.Context, t T, seed uint64, _ study.Step) (result trial.Result, err error) {
			var images I
			if _, needs := of(&t); needs {
				if images, err = load(ctx); err != nil {
					return result, err
				}
			}
			return t.Run(ctx, seed, images)
		},
	}
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
	load := func(ctx context.Context) (images activation.Images, err error) {
		im, err := opened.Images(ctx)
		if err == nil {
			images = activation.Images{Pixels: im.Image, Labels: im.Labels}
		}
		return images, err
	}
	return imageBench(names, keys, opened.Fingerprint, load, func(t *T) (*[]string, bool) {
		if net := netOf(t); net != nil {
			return &net.Activations, true
		}
		return new([]string), false
	}), err
}

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

// What Theorem 3 and Assumption 3 share: activations, images and curves.

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

func checkActivations(c *study.Checks, field string, names []string) []spectral.Activation {
	activations, err := spectral.NamedActivations(names...)
	c.Expect(err == nil, "%s: %v", field, err)
	return activations
}

// digitsBench opens images for trials; of returns a trial's activations and the source of its examples. Keys say what
// custom activations compute.
func digitsBench[T interface {
	Run(ctx context.Context, seed uint64, im *neural.Images) (trial.Result, error)
}](ctx context.Context, name data.Name, classes [2]int, names []string,
	of func(*T) (activations *[]string, source neural.Source)) (b lab.Bench[T], err error) {
	images, err := openDigits(ctx, name, classes)
	if err != nil {
		return b, err
	}
	keys, err := activationKeys(names)
	b = imageBench(names, keys, images.train.Fingerprint+images.test.Fingerprint, images.load,
		func(t *T) (*[]string, bool) {
			list, source := of(t)
			return list, source.Data == neural.Digits
		})
	if images.train.Synthetic || images.test.Synthetic {
		b.Note = "SYNTHETIC DIGITS, not real ones."
	}
	return b, err
}

// digitPixels are those of a digit of MNIST.
const digitPixels = 28 * 28

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

func (d digits) load(ctx context.Context) (*neural.Images, error) {
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

var sourceNames = map[string]string{
	neural.Cap: "margin", neural.Flipped: "margin, flipped labels", neural.Product: "product", neural.Digits: "digits",
}

// logMean is the geometric mean with the interval of the mean logarithm, an error if a value is not positive.
func logMean(values []float64, confidence float64) (runs.Summary, error) {
	s, err := runs.Summarize(study.Map(values, math.Log), confidence)
	return s.Exp(), err
}

// curve is a series of means over seeds, values[i] those at xs[i], of errors, risks and distances: intervals end at 0.
// What has no place on a log axis is left out.
func curve(label string, xs []float64, values [][]float64, scale plots.Scale, confidence float64) plots.Series {
	var at []float64
	var means []runs.Summary
	for i, x := range xs {
		m, err := logMean(values[i], confidence)
		if scale == plots.Linear {
			m, err = runs.Summarize(values[i], confidence)
			m = m.Within(0, math.Inf(1))
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
func listsOf[T any](gs lab.Groups[T], of func(*runs.Record) float64) [][]float64 {
	return study.Map(gs, func(g lab.Group[T]) []float64 { return study.Map(g.Records, of) })
}

func ticks(at []int) []plots.Tick {
	return study.Map(at, func(n int) plots.Tick { return plots.Tick{Value: float64(n), Label: fmt.Sprint(n)} })
}

func only[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !keep(x) })
}
