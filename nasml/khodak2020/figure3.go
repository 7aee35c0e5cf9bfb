package khodak2020

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
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

// Figure3Paper is [Figure2Paper] with all methods: an hour on two cores on IMDb
// without Hyperband, which was not run there. In multiply-adds fast weight sharing
// ends 0.010 ± 0.013 below random search and 0.043 ± 0.021 below successive halving;
// over the whole axis random search is 0.05 ± 0.04 below it. It costs 1.2 ± 0.3 times as much as
// weight sharing, since collisions of hashes hardly make a text shorter.
var Figure3Paper = withMethods(Figure2Paper, figure3Methods...)

// Figure3Quick is [Figure2Quick] with all methods: five minutes on two cores. Its
// times are too short to compare (compilation, other work of the machine), so
// that the axis counts multiply-adds. On CIFAR-10 fast weight sharing ends
// 0.016 ± 0.018 below successive halving and 0.041 ± 0.029 below weight sharing.
var Figure3Quick = withMethods(Figure2Quick, figure3Methods...)

// Figure3Large is CIFAR-10 with all training and validation images and
// configurations of the paper, a sixteenth of its features, and seven trials:
// 100 minutes on two cores. It was computed beside other work, so that the axis
// counts multiply-adds. Fast weight sharing takes 0.466 ± 0.002 of weight sharing's
// and ends 0.056 ± 0.039 below random search; of successive halving it is not told
// apart.
var Figure3Large = func() Figure3Params {
	p := withMethods(Figure2Paper, figure3Shipped...)
	p.Tasks, p.ImageDim, p.ImageTest, p.Clock, p.Seeds = []string{mapsearch.ImageTask}, 6250, 1000, "madds", 7
	return p
}()

const (
	figure3ID    = "khodak2020/figure3"
	figure3Title = "Observed test error over time"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure3ID, Paper: "Khodak+ 2020", Title: figure3Title, Kind: "figure",
		Notebook: "notebooks/khodak2020/figure3_time.ipynb",
		Cost: catalog.Cost{
			Quick: "5 minutes on two cores; the project ships its trials",
			Paper: "IMDb an hour on two cores without Hyperband, shipped; CIFAR-10 has 25 TFLOP a pass over its " +
				"100,000 features, weeks on two cores: a GPU; --scale large, CIFAR-10 with 6,250, 100 minutes on two " +
				"cores, shipped",
		},
		Settings: figure3Settings,
		Shipped: []catalog.Setting{ // on IMDb seconds are those of a machine with other work
			{Scale: catalog.Quick}, {Scale: catalog.Large},
			{Scale: catalog.Paper, Set: []string{"Tasks=imdb", "Clock=madds", withoutHyperband}},
		},
	}, Figure3Quick, Figure3Paper, Figure3, catalog.Preset[Figure3Params]{Scale: catalog.Large, Params: Figure3Large})
}

// Figure3Result is Figure 3.
type Figure3Result struct{ searchResult }

// Figure3 is [Figure2] over time.
func Figure3(ctx context.Context, p Figure3Params) (*Figure3Result, error) {
	r, err := searches(ctx, "Figure 3", p)
	if err != nil {
		return nil, err
	}
	return &Figure3Result{*r}, nil
}

// Figure draws, a panel a task, the observed test error over the clock, by which the
// claims are judged, and over the other one: over seconds and multiply-adds.
func (r *Figure3Result) Figure() plots.Figure {
	caption := fmt.Sprintf("Mean over %s with %v %% bands; %d configurations. Curves begin where all trials "+
		"have a first result and end with the last one. Seconds are those of the machine that computed the trials, "+
		"beside other work where they are shipped.",
		study.Counted(r.Params.Seeds, "trial"), 100*r.Params.Confidence, r.Params.Configs)
	other := "madds"
	if r.Params.Clock == other {
		other = "seconds"
	}
	var panels []func(e *examples) plots.Panel
	for _, clock := range []string{r.Params.Clock, other} {
		panels = append(panels, func(e *examples) plots.Panel { return r.panel(e.task, clock) })
	}
	return r.draw("khodak2020-figure3", figure3Title, caption, "observed test error", panels...)
}

func (r *Figure3Result) panel(task, clock string) plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: clockTitles[clock], Scale: plots.Log10}}
	for _, method := range r.Params.Methods {
		x, means := r.timeCurve(task, method, clock)
		s := band(method, x, means)
		s.Marker = plots.NoMarker
		p.Series = append(p.Series, s)
	}
	return p
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
func (r *Figure3Result) timeCurve(task, method, clock string) (x []float64, means []runs.Summary) {
	const steps = 32
	first, end := 0.0, 0.0
	for _, record := range r.found[searchKey{task, method}] {
		if record != nil {
			times := record.Series[clock]
			first, end = max(first, times[firstKnown(record)]), max(end, last(times))
		}
	}
	if first <= 0 {
		return nil, nil
	}
	for i := range steps + 1 {
		t := first * math.Pow(end/first, float64(i)/steps)
		if i == steps {
			t = end
		}
		values := r.column(task, method, func(record *runs.Record) float64 {
			v, _ := observedAt(record, clock, t)
			return v
		})
		if s, err := runs.Summarize(known(values), r.Params.Confidence); err == nil {
			x, means = append(x, t), append(means, s.Within(0, 1))
		}
	}
	return x, means
}

// firstKnown is the first call after which a search has a best configuration.
func firstKnown(record *runs.Record) int {
	return max(0, slices.IndexFunc(record.Series["best"], func(v float64) bool { return v >= 0 }))
}

// ends is what the clock shows at the end of a search.
func (r *Figure3Result) ends(record *runs.Record) float64 { return last(record.Series[r.Params.Clock]) }

func last(series []float64) float64 { return series[len(series)-1] }

// baselines are the methods that Fast Weight-Sharing is compared with.
func (r *Figure3Result) baselines() []string {
	return slices.DeleteFunc([]string{
		mapsearch.RandomSearch, mapsearch.SuccessiveHalving, mapsearch.Hyperband, mapsearch.WeightSharing,
	}, func(baseline string) bool { return !r.has(mapsearch.FastWeightSharing, baseline) })
}

// confidence is that of each comparison: a statement is made of every baseline on
// every task, and its intervals hold together.
func (r *Figure3Result) confidence() float64 {
	return verdict.Family(r.Params.Confidence, len(r.baselines())*len(r.tasks))
}

// Check judges what the paper says of Figure 3: Fast Weight-Sharing against
// every baseline, over the whole axis, at the moment when it ends and when all have
// ended, by the clock of the figure.
func (r *Figure3Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, e := range r.tasks {
		for _, baseline := range r.baselines() {
			claims = append(claims, r.checkMoment(e.task, baseline))
			claims = append(claims, r.checkAxis(e.task, baseline)...)
			if baseline != mapsearch.WeightSharing {
				claims = append(claims, r.checkEnd(e.task, baseline))
			}
		}
		if r.has(mapsearch.WeightSharing, mapsearch.FastWeightSharing) {
			claims = append(claims, r.checkSpeed(e.task))
		}
	}
	return claims
}

// checkMoment compares errors when Fast Weight-Sharing ends. A baseline
// without a result by then counts as always wrong, and the note says how often.
func (r *Figure3Result) checkMoment(task, baseline string) runs.Claim {
	c := r.claim(task, fmt.Sprintf("[figure3-fast] when fast weight sharing ends its test error is below that of "+
		"%s (%s)", methodTitles[baseline], clockTitles[r.Params.Clock]), "Figure 3 and App. B.1")
	if baseline == mapsearch.WeightSharing {
		c.Source = "Khodak+ 2020, Figure 3 (not claimed in words)"
	}
	var ours, theirs []float64
	none := 0
	fast := r.found[searchKey{task, mapsearch.FastWeightSharing}]
	for seed, other := range r.found[searchKey{task, baseline}] {
		if fast[seed] == nil || other == nil {
			continue
		}
		v, known := observedAt(other, r.Params.Clock, r.ends(fast[seed]))
		if !known {
			none++
		}
		ours, theirs = append(ours, last(fast[seed].Series["observed"])), append(theirs, v)
	}
	c.Note = fmt.Sprintf("ours is the other's error less that of fast weight sharing, paired by seed; %d of %d had no "+
		"result by then and count as 1; the interval is at %.4g %%, for all baselines and tasks together",
		none, len(ours), 100*r.confidence())
	return verdict.Greater(c, theirs, ours, r.confidence())
}

// checkAxis compares a baseline with Fast Weight-Sharing over the whole axis: by the
// area between their curves and by the share of the axis on which the other's error
// is the larger one.
func (r *Figure3Result) checkAxis(task, baseline string) []runs.Claim {
	what := fmt.Sprintf(" fast weight sharing's test error is below that of %s (%s)", methodTitles[baseline],
		clockTitles[r.Params.Clock])
	area := r.claim(task, "own: on average over the axis"+what, "Figure 3 and App. B.1")
	share := r.claim(task, "own: on more than half of the axis"+what, "Figure 3 and App. B.1")
	var areas, shares []float64
	fast := r.found[searchKey{task, mapsearch.FastWeightSharing}]
	for seed, other := range r.found[searchKey{task, baseline}] {
		if fast[seed] == nil || other == nil {
			continue
		}
		a, s := lead(fast[seed], other, r.Params.Clock, 1-1/classes[task])
		areas, shares = append(areas, a), append(shares, s)
	}
	const note = "from 0 to the end of both, evenly in the clock; a method without a result counts as guessing"
	area.Note = "ours is the mean of the other's error less that of fast weight sharing; " + note
	area.Paper, share.Paper = 0, 0.5
	share.Note = "ours is the share of the axis, equal errors half; " + note
	s, err := runs.Summarize(areas, r.confidence())
	t, also := runs.Summarize(shares, r.confidence())
	return []runs.Claim{verdict.Above(area, s, err, 0), verdict.Above(share, t.Within(0, 1), also, 0.5)}
}

// lead compares two searches over the clock from 0 until both have ended: the mean
// of the other's observed error less ours, and the share of the time in which ours
// is the smaller one, equal ones half. Curves are steps; before its first result a
// search has the error of guessing, after its end its last one.
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

// checkEnd compares errors when all have ended.
func (r *Figure3Result) checkEnd(task, baseline string) runs.Claim {
	c := r.claim(task, "[sec2-beats-hb] fast weight sharing's final test error below that of "+methodTitles[baseline],
		"Sec. 2 and Figure 3")
	c.Note = "ours is the baseline's error less that of fast weight sharing, paired by seed; each has ended by its " +
		"own time"
	theirs, ours := pairs(r.atEnd(task, baseline), r.atEnd(task, mapsearch.FastWeightSharing))
	return verdict.Greater(c, theirs, ours, r.confidence())
}

// checkSpeed compares what the two weight-sharing searches cost.
func (r *Figure3Result) checkSpeed(task string) runs.Claim {
	c := r.claim(task, "own: fast weight sharing costs less than weight sharing, ratio of "+
		clockTitles[r.Params.Clock], "App. B.1")
	c.Paper = 1
	var ratios []float64
	fast, plain := pairs(
		r.column(task, mapsearch.FastWeightSharing, r.ends), r.column(task, mapsearch.WeightSharing, r.ends))
	for i := range fast {
		ratios = append(ratios, fast[i]/plain[i])
	}
	s, err := verdict.Ratios(ratios, r.overTasks())
	return verdict.AtMost(c, s, err, 1)
}
