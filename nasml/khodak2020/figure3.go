package khodak2020

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Figure3Params are those of Figure 2.
type Figure3Params = Figure2Params

var figure3Methods = []string{
	mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.Hyperband, mapsearch.WeightSharing,
	mapsearch.FastWeightSharing,
}

// figure3Shipped are those that were computed at the larger scales too.
var figure3Shipped = []string{
	mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.WeightSharing, mapsearch.FastWeightSharing,
}

var withoutHyperband = "Methods=" + strings.Join(figure3Shipped, ",")

// Figure3Paper is [Figure2Paper] with all methods: an hour on two cores on IMDb without
// Hyperband, which was not run there. Fast weight sharing costs about as much as weight sharing
// there, since collisions of hashes hardly make a text shorter.
var Figure3Paper = withMethods(Figure2Paper, figure3Methods...)

// Figure3Quick is [Figure2Quick] with all methods: five minutes on two cores. Its times are too short to compare
// (compilation, other work of the machine), so that the axis counts multiply-adds.
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
		Paper: "without Hyperband IMDb an hour on two cores, shipped, CIFAR-10 38 (forecast) with KeepGB=16 and 20 " +
			"GiB of memory; --scale large, CIFAR-10 with 6,250 features, 100 minutes on two cores, shipped",
	}
	e.Quick, e.Paper = Figure3Quick, Figure3Paper
	e.Also = []catalog.Preset[Figure3Params]{{Scale: catalog.Large, Params: Figure3Large}}
	e.Settings, e.Shipped = figure3Settings, []catalog.Setting{
		// On IMDb seconds are those of a machine with other work.
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
			return plots.Panel{
				X:      plots.Axis{Label: clockTitles[clock], Scale: plots.Log10},
				Series: study.Map(p.Methods, func(m string) plots.Series { return timeCurve(r, task, m, clock) }),
			}
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

// timeCurve is the mean observed error of a method from the moment on at which all its searches have a first result, on
// a logarithmic grid; a search that ended keeps its last value.
func timeCurve(r *searches, task, method, clock string) plots.Series {
	const steps = 32
	records, first, end := searchRecords(r, task, method), 0.0, 0.0
	for _, record := range records {
		if record != nil {
			times := record.Series[clock]
			known := slices.IndexFunc(record.Series["best"], func(v float64) bool { return v >= 0 })
			first, end = max(first, times[max(0, known)]), max(end, last(times))
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

func last(series []float64) float64 { return series[len(series)-1] }

// judgeFigure3 judges what the paper says of Figure 3: Fast Weight-Sharing against every baseline, over the whole axis,
// at the moment when it ends and when all have ended, by the clock of the figure.
func judgeFigure3(r *searches) []runs.Claim {
	var claims []runs.Claim
	for _, task := range r.Params.Tasks {
		for _, baseline := range r.Params.baselines() {
			claims = append(claims, judgeMoment(r, task, baseline))
			claims = append(claims, judgeAxis(r, task, baseline)...)
			if baseline != mapsearch.WeightSharing {
				claims = append(claims, judgeEnd(r, task, baseline))
			}
		}
		if r.Params.has(mapsearch.WeightSharing, mapsearch.FastWeightSharing) {
			claims = append(claims, judgeSpeed(r, task))
		}
	}
	return claims
}

func (p Figure3Params) baselines() []string {
	return slices.DeleteFunc([]string{
		mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.Hyperband, mapsearch.WeightSharing,
	}, func(baseline string) bool { return !p.has(mapsearch.FastWeightSharing, baseline) })
}

// baselineClaim is a claim about a baseline on a task: it is made of every baseline on every task, and the intervals
// hold together.
func baselineClaim(r *searches, task, format string, args ...any) lab.Claim {
	return r.Params.ofTask(task, r.Claim(format, args...), len(r.Params.baselines())*len(r.Params.Tasks))
}

func pairedRecords(r *searches, task, baseline string) (fast, other []*runs.Record) {
	all := searchRecords(r, task, mapsearch.FastWeightSharing)
	for seed, record := range searchRecords(r, task, baseline) {
		if all[seed] != nil && record != nil {
			fast, other = append(fast, all[seed]), append(other, record)
		}
	}
	return fast, other
}

func (p Figure3Params) ends(records []*runs.Record) []float64 {
	return bySeed(records, func(record *runs.Record) float64 { return last(record.Series[p.Clock]) })
}

// judgeMoment compares errors when Fast Weight-Sharing ends. A baseline
// without a result by then counts as always wrong, and the note says how often.
func judgeMoment(r *searches, task, baseline string) runs.Claim {
	c := baselineClaim(r, task, "[figure3-fast] when fast weight sharing ends its test error is below that of %s (%s)",
		methodTitles[baseline], clockTitles[r.Params.Clock])
	if baseline == mapsearch.WeightSharing {
		c = c.From("Figure 3 (not claimed in words)")
	}
	fast, others := pairedRecords(r, task, baseline)
	ends, none := r.Params.ends(fast), 0
	var ours, theirs []float64
	for i, other := range others {
		v, known := observedAt(other, r.Params.Clock, ends[i])
		if !known {
			none++
		}
		ours, theirs = append(ours, last(fast[i].Series["observed"])), append(theirs, v)
	}
	return greater(c.Noting("ours is the other's error less that of fast weight sharing, paired by seed; %d of %d had "+
		"no result by then and count as 1; the interval is at %.4g %%, for all baselines and tasks together",
		none, len(ours), 100*c.Confidence), theirs, ours)
}

// judgeAxis compares a baseline with Fast Weight-Sharing over the whole axis: by the area between their curves and by
// the share of the axis on which the other's error is the larger one.
func judgeAxis(r *searches, task, baseline string) []runs.Claim {
	var areas, shares []float64
	fast, others := pairedRecords(r, task, baseline)
	for i, other := range others {
		a, s := lead(fast[i], other, r.Params.Clock, 1-1/classes[task])
		areas, shares = append(areas, a), append(shares, s)
	}
	about := func(where, ours string) lab.Claim {
		const below = "own: on %s the axis fast weight sharing's test error is below that of %s (%s)"
		return baselineClaim(r, task, below, where, methodTitles[baseline], clockTitles[r.Params.Clock]).
			Noting("ours is %s from 0 to the end of both, evenly in the clock; a method without a result counts as "+
				"guessing", ours)
	}
	area := about("average over", "the mean of the other's error less that of fast weight sharing;")
	share := about("more than half of", "the share of the axis, equal errors half;")
	t, err := runs.Summarize(shares, share.Confidence)
	return []runs.Claim{
		area.Says(0).Of(runs.Summarize(areas, area.Confidence)).Above(0),
		share.Says(0.5).Of(t.Within(0, 1), err).Above(0.5),
	}
}

// lead compares two searches over the clock from 0 until both have ended: the mean of the other's observed error less
// ours, and the share of the time in which ours is the smaller one, equal ones half. Curves are steps; before its first
// result a search has the error of guessing, after its end its last one.
func lead(ours, other *runs.Record, clock string, guess float64) (area, share float64) {
	times := slices.Concat([]float64{0}, ours.Series[clock], other.Series[clock])
	slices.Sort(times)
	at := func(record *runs.Record, t float64) float64 {
		if v, known := observedAt(record, clock, t); known {
			return v
		}
		return guess
	}
	end := times[len(times)-1]
	for i, t := range times[:len(times)-1] {
		width := (times[i+1] - t) / end
		d := at(other, t) - at(ours, t)
		area += width * d
		switch {
		case d > 0:
			share += width
		case d == 0:
			share += width / 2
		}
	}
	return area, share
}

func judgeEnd(r *searches, task, baseline string) runs.Claim {
	return greater(baselineClaim(r, task, "[sec2-beats-hb] fast weight sharing's final test error below that of %s",
		methodTitles[baseline]).From("Sec. 2 and Figure 3").Noting("ours is the baseline's error less that of fast "+
		"weight sharing, paired by seed; each has ended by its own time"),
		atEnd(r, task, baseline), atEnd(r, task, mapsearch.FastWeightSharing))
}

func judgeSpeed(r *searches, task string) runs.Claim {
	fast, plain := pairedRecords(r, task, mapsearch.WeightSharing)
	ratios := r.Params.ends(fast)
	floats.Div(ratios, r.Params.ends(plain))
	c := taskClaim(r, task, "own: fast weight sharing costs less than weight sharing, ratio of %s",
		clockTitles[r.Params.Clock]).From("App. B.1").Says(1)
	return c.Of(verdict.Ratios(ratios, c.Confidence)).AtMost(1)
}
