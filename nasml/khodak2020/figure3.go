package khodak2020

import (
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Figure3Params are those of Figure 2.
type Figure3Params = Figure2Params

// figure3Methods are those that Figure 3 compares.
var figure3Methods = []string{
	mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.Hyperband, mapsearch.WeightSharing,
	mapsearch.FastWeightSharing,
}

// figure3Shipped are those that were computed at the larger scales too.
var figure3Shipped = []string{
	mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.WeightSharing, mapsearch.FastWeightSharing,
}

// withoutHyperband are they as a setting.
var withoutHyperband = "Methods=" + strings.Join(figure3Shipped, ",")

// Figure3Paper is [Figure2Paper] with all methods: an hour on two cores on IMDb without
// Hyperband, which was not run there. Fast weight sharing costs about as much as weight sharing
// there, since collisions of hashes hardly make a text shorter.
var Figure3Paper = withMethods(Figure2Paper, figure3Methods...)

// Figure3Quick is [Figure2Quick] with all methods: five minutes on two cores. Its
// times are too short to compare (compilation, other work of the machine), so
// that the axis counts multiply-adds.
var Figure3Quick = withMethods(Figure2Quick, figure3Methods...)

// Figure3Large is CIFAR-10 with all training and validation images and configurations of
// the paper, a sixteenth of its features, and seven trials: 100 minutes on two cores. It
// was computed beside other work, so that the axis counts multiply-adds.
var Figure3Large = func() Figure3Params {
	p := withMethods(Figure2Paper, figure3Shipped...)
	p.Tasks, p.ImageDim, p.ImageTest, p.Clock, p.Seeds = []string{mapsearch.ImageTask}, 6250, 1000, "madds", 7
	return p
}()

// Figure3 is [Figure2] over time.
var Figure3 = lab.Declare(func() lab.Entry[Figure3Params, mapsearch.Search] {
	e := searchEntry("figure3")
	e.Title, e.Source, e.Notebook = "Observed test error over time", "Figure 3 and App. B.1", "figure3_time"
	e.Cost = catalog.Cost{
		Quick: "5 minutes on two cores; precomputed",
		Paper: "IMDb an hour on two cores without Hyperband, shipped; CIFAR-10 has 25 TFLOP a pass over its " +
			"100,000 features, weeks on two cores: a GPU; --scale large, CIFAR-10 with 6,250, 100 minutes on two " +
			"cores, shipped",
	}
	e.Quick, e.Paper = Figure3Quick, Figure3Paper
	e.Also = []catalog.Preset[Figure3Params]{{Scale: catalog.Large, Params: Figure3Large}}
	e.Settings, e.Shipped = figure3Settings, []catalog.Setting{
		// On IMDb seconds are those of a machine with other work.
		{Scale: catalog.Quick}, {Scale: catalog.Large},
		{Scale: catalog.Paper, Set: []string{"Tasks=imdb", "Clock=madds", withoutHyperband}},
	}
	e.Draw, e.Claims = drawTime, judgeFigure3
	return e
}())

// drawTime draws, a panel a task, the observed test error over the clock, by which the
// claims are judged, and over the other one: over seconds and multiply-adds.
func drawTime(r *searches, f *lab.Picture) {
	p := r.Params
	f.Say("Test error against computing time, from the first result that all trials have; %s.",
		r.Interval("band", p.Seeds, "trial"))
	other := "madds"
	if p.Clock == other {
		other = "seconds"
	}
	over := func(clock string) func(task string) plots.Panel {
		return func(task string) plots.Panel {
			panel := plots.Panel{X: plots.Axis{Label: clockTitles[clock], Scale: plots.Log10}}
			for _, method := range p.Methods {
				panel.Series = append(panel.Series, timeCurve(r, task, method, clock))
			}
			return panel
		}
	}
	drawSearches(r, f, "observed test error", over(p.Clock), over(other))
}

// observedAt is the observed test error when a clock shows t: that of the last
// call that ended by then, and false where none did.
func observedAt(record *runs.Record, clock string, t float64) (float64, bool) {
	times := record.Series[clock]
	i, exact := slices.BinarySearch(times, t)
	if !exact {
		i--
	}
	if i < 0 {
		return 1, false
	}
	return record.Series["observed"][i], true
}

// timeCurve is the mean observed error of a method from the moment on at which
// all its searches have a first result, on a logarithmic grid; a search that
// ended keeps its last value.
func timeCurve(r *searches, task, method, clock string) plots.Series {
	const steps = 32
	records, first, end := searchRecords(r, task, method), 0.0, 0.0
	for _, record := range records {
		if record != nil {
			times := record.Series[clock]
			first, end = max(first, times[firstKnown(record)]), max(end, last(times))
		}
	}
	var grid []float64
	if first > 0 {
		for i := range steps {
			grid = append(grid, first*math.Pow(end/first, float64(i)/steps))
		}
		grid = append(grid, end)
	}
	s := errorCurve(r, method, grid, func(i int) []float64 {
		return bySeed(records, func(record *runs.Record) float64 {
			v, _ := observedAt(record, clock, grid[i])
			return v
		})
	})
	s.Marker = plots.NoMarker
	return s
}

// firstKnown is the first call after which a search has a best configuration.
func firstKnown(record *runs.Record) int {
	return max(0, slices.IndexFunc(record.Series["best"], func(v float64) bool { return v >= 0 }))
}

func last(series []float64) float64 { return series[len(series)-1] }
