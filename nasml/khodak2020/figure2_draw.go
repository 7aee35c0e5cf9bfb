package khodak2020

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

var methodTitles = map[string]string{
	weightSharing: "weight sharing", fastWeightSharing: "fast weight sharing",
	randomSearch: "random search", randomSearchLambda: "random search, $λ$ too", successiveHalving: "successive halving", hyperband: "Hyperband",
}

// methodColors keep a method's colour where others are left out.
var methodColors = map[string]string{
	weightSharing: "#0072B2", fastWeightSharing: "#000000", randomSearch: "#E69F00", randomSearchLambda: "#CC79A7", successiveHalving: "#D55E00", hyperband: "#009E73",
}

// atCall is a series after so many solver calls, one a seed; a search that
// ended keeps its last value.
func (r *searchResult) atCall(task, method, series string, call int) []float64 {
	var out []float64
	for _, record := range r.found[searchKey{task, method}] {
		if s := record.Series[series]; len(s) > 0 {
			out = append(out, s[min(call, len(s))-1])
		}
	}
	return out
}

// calls is the largest number of solver calls of a method.
func (r *searchResult) calls(task, method string) int {
	n := 0
	for _, record := range r.found[searchKey{task, method}] {
		n = max(n, len(record.Series["oracle"]))
	}
	return n
}

// Figure draws, a panel a task, the oracle test error over solver calls.
func (r *Figure2Result) Figure() plots.Figure {
	f := plots.Figure{
		Name: "khodak2020-figure2", Style: plots.ICML.Text(), Meta: meta(figure2Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("Mean over %d trials with %v %% bands; %d configurations.", r.Params.Seeds, 100*r.Params.Confidence, r.Params.Configs),
	}
	if r.has(weightSharing) || r.has(fastWeightSharing) {
		f.Caption += " The last call of weight sharing trains its winner."
	}
	f.Caption += r.sourceText()
	var row []plots.Panel
	for _, o := range r.tasks {
		p := plots.Panel{Title: taskTitles[o.task], X: plots.Axis{Label: "solver calls"}}
		if len(row) == 0 {
			p.Y.Label = "oracle test error"
		}
		for _, method := range r.Params.Methods {
			var x []float64
			var means []runs.Summary
			for call := 1; call <= r.calls(o.task, method); call++ {
				if s, err := runs.Summarize(r.atCall(o.task, method, "oracle", call), r.Params.Confidence); err == nil {
					x, means = append(x, float64(call)), append(means, s)
				}
			}
			p.Series = append(p.Series, band(method, x, means))
		}
		p.Y.Min, p.Y.Max = aroundMeans(p.Series)
		row = append(row, p)
	}
	return inRow(f, row)
}

// inRow gives a figure its panels, one a task; one alone takes a column.
func inRow(f plots.Figure, row []plots.Panel) plots.Figure {
	f.Panels = [][]plots.Panel{row}
	if len(row) == 1 {
		f.Style = f.Style.Column()
	}
	return f
}

// aroundMeans are the ends of an error axis: the means, with a fifth of their
// range around them. Bands of few trials, which may reach beyond every
// possible error, are cut off there.
func aroundMeans(series []plots.Series) (low, high float64) {
	low, high = 1, 0
	for _, s := range series {
		for _, y := range s.Y {
			low, high = min(low, y), max(high, y)
		}
	}
	if low > high {
		return 0, 0 // nothing was run
	}
	margin := max(0.2*(high-low), 0.01)
	return max(0, low-margin), min(1.02, high+margin)
}

func band(method string, x []float64, means []runs.Summary) plots.Series {
	s := plots.Band(methodTitles[method], x, means)
	s.Color = methodColors[method]
	return s
}

// clockTitles name the axes of Figure 3.
var clockTitles = map[string]string{"seconds": "seconds", "seconds_total": "seconds, with evaluations", "madds": "multiply-adds"}

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
func (r *Figure3Result) timeCurve(task, method string) (x []float64, means []runs.Summary) {
	const steps = 32
	first, last := 0.0, 0.0
	for _, record := range r.found[searchKey{task, method}] {
		times := record.Series[r.Params.Clock]
		first, last = max(first, times[firstKnown(record)]), max(last, times[len(times)-1])
	}
	if first <= 0 {
		return nil, nil
	}
	for i := range steps + 1 {
		t := first * math.Pow(last/first, float64(i)/steps)
		if i == steps {
			t = last
		}
		var values []float64
		for _, record := range r.found[searchKey{task, method}] {
			v, _ := observedAt(record, r.Params.Clock, t)
			values = append(values, v)
		}
		if s, err := runs.Summarize(values, r.Params.Confidence); err == nil {
			x, means = append(x, t), append(means, s)
		}
	}
	return x, means
}

// firstKnown is the first call after which a search has a best configuration.
func firstKnown(record *runs.Record) int {
	return max(0, slices.IndexFunc(record.Series["best"], func(v float64) bool { return v >= 0 }))
}

// Figure draws, a panel a task, the observed test error over the clock.
func (r *Figure3Result) Figure() plots.Figure {
	f := plots.Figure{
		Name: "khodak2020-figure3", Style: plots.ICML.Text(), Meta: meta(figure3Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("Mean over %d trials with %v %% bands; %d configurations. Curves begin where all trials have a first result and end with the last one.", r.Params.Seeds, 100*r.Params.Confidence, r.Params.Configs) + r.sourceText(),
	}
	var row []plots.Panel
	for _, o := range r.tasks {
		p := plots.Panel{Title: taskTitles[o.task], X: plots.Axis{Label: clockTitles[r.Params.Clock], Scale: plots.Log10}}
		if len(row) == 0 {
			p.Y.Label = "observed test error"
		}
		for _, method := range r.Params.Methods {
			x, means := r.timeCurve(o.task, method)
			s := band(method, x, means)
			s.Marker = plots.NoMarker
			p.Series = append(p.Series, s)
		}
		p.Y.Min, p.Y.Max = aroundMeans(p.Series)
		row = append(row, p)
	}
	return inRow(f, row)
}

// difference judges whether a is above b on average, paired by seed.
func (r *searchResult) difference(c runs.Claim, a, b []float64) runs.Claim {
	c.Paper = 0
	s, err := runs.MeanDiff(a, b, r.Params.Confidence)
	holds, fails := atLeast(0)
	return judged(c, s, err, holds, fails)
}

func (r *searchResult) claim(task, name, place string) runs.Claim {
	return runs.NewClaim(taskTitles[task]+": "+name, "Khodak+ 2020, "+place)
}

// has says whether all of the methods were run.
func (r *searchResult) has(methods ...string) bool {
	return !slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(r.Params.Methods, m) })
}

// Check judges what the paper says of Figure 2 and of Algorithm 1, task by
// task.
func (r *Figure2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, o := range r.tasks {
		if r.has(randomSearch, randomSearchLambda) {
			claims = append(claims, r.checkLambda(o.task))
		}
		if r.has(weightSharing) {
			claims = append(claims, r.checkRounds(o.task))
		}
		if !r.has(weightSharing, randomSearch) {
			continue
		}
		rounds := max(1, halving.Rounds(r.Params.Configs)) // one configuration has no round
		half := r.claim(o.task, fmt.Sprintf("figure2-better: weight sharing's oracle error after %d calls below random search's after %d", (rounds+1)/2, rounds), "Figure 2 and Sec. 2")
		half.Note = "fewer calls; ours is random search's error less weight sharing's, paired by seed"
		claims = append(claims, r.difference(half, r.atCall(o.task, randomSearch, "oracle", rounds), r.atCall(o.task, weightSharing, "oracle", (rounds+1)/2)))
		same := r.claim(o.task, fmt.Sprintf("figure2-better: weight sharing's oracle error below random search's after %d calls", rounds), "Figure 2 and Sec. 2")
		same.Note = "ours is random search's error less weight sharing's, paired by seed"
		claims = append(claims, r.difference(same, r.atCall(o.task, randomSearch, "oracle", rounds), r.atCall(o.task, weightSharing, "oracle", rounds)))
		end := r.claim(o.task, fmt.Sprintf("abstract-outperforms: the winner of weight sharing below random search's best after %d calls, test error", rounds+1), "Abstract and Sec. 2")
		claims = append(claims, r.difference(end, r.atCall(o.task, randomSearch, "observed", rounds+1), r.atCall(o.task, weightSharing, "observed", rounds+1)))
	}
	return claims
}

// checkLambda is the paper's remark that λ in the space did not help random
// search.
func (r *Figure2Result) checkLambda(task string) runs.Claim {
	c := r.claim(task, fmt.Sprintf("lambda-search: λ in the space does not help random search after %d calls, test error", r.Params.solves()), "App. B.2")
	c.Note = fmt.Sprintf("ours is the error with λ in [%g, %g] less that with λ = %g, paired by seed: the same configurations and features; the paper prints neither range nor error", r.Params.LambdaMin, r.Params.LambdaMax, r.Params.Lambda)
	return r.difference(c, r.atCall(task, randomSearchLambda, "observed", math.MaxInt), r.atCall(task, randomSearch, "observed", math.MaxInt))
}

// checkRounds counts Algorithm 1's solves.
func (r *Figure2Result) checkRounds(task string) runs.Claim {
	c := r.claim(task, "alg1-rounds: shared solves until one configuration is left", "Algorithm 1")
	c.Paper, c.Tolerance = runs.Number(math.Log2(float64(r.Params.Configs))), 0
	calls := r.calls(task, weightSharing)
	if calls == 0 {
		c.Note = "not run"
		return c
	}
	c.Ours, c.Holds = runs.Number(calls-1), runs.Judge(calls-1 == int(math.Ceil(float64(c.Paper)-1e-9)))
	c.Note = "log₂|C|, rounded up"
	return c
}

// Check judges what the paper says of Figure 3: Fast Weight-Sharing against
// every baseline, at the moment when it ends and when all have ended, by the
// clock of the figure.
func (r *Figure3Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, o := range r.tasks {
		for _, baseline := range []string{randomSearch, successiveHalving, hyperband, weightSharing} {
			if !r.has(fastWeightSharing, baseline) {
				continue
			}
			claims = append(claims, r.checkMoment(o.task, baseline))
			if baseline != weightSharing {
				end := r.claim(o.task, "sec2-beats-hb: fast weight sharing's final test error below that of "+methodTitles[baseline], "Sec. 2 and Figure 3")
				end.Note = "ours is the baseline's error less that of fast weight sharing, paired by seed; each has ended by its own time"
				claims = append(claims, r.difference(end, r.atCall(o.task, baseline, "observed", math.MaxInt), r.atCall(o.task, fastWeightSharing, "observed", math.MaxInt)))
			}
		}
		if r.has(weightSharing, fastWeightSharing) {
			claims = append(claims, r.checkSpeed(o.task))
		}
	}
	return claims
}

// checkMoment compares errors when Fast Weight-Sharing ends. A baseline
// without a result by then counts as always wrong, and the note says how often.
func (r *Figure3Result) checkMoment(task, baseline string) runs.Claim {
	c := r.claim(task, fmt.Sprintf("figure3-fast: when fast weight sharing ends its test error is below that of %s (%s)", methodTitles[baseline], clockTitles[r.Params.Clock]), "Figure 3 and App. B.1")
	if baseline == weightSharing {
		c.Source = "Khodak+ 2020, Figure 3 (not claimed in words)"
	}
	fast, other := r.found[searchKey{task, fastWeightSharing}], r.found[searchKey{task, baseline}]
	var a, b []float64
	none := 0
	for i := range min(len(fast), len(other)) {
		times := fast[i].Series[r.Params.Clock]
		v, known := observedAt(other[i], r.Params.Clock, times[len(times)-1])
		if !known {
			none++
		}
		a, b = append(a, v), append(b, fast[i].Series["observed"][len(times)-1])
	}
	c.Note = fmt.Sprintf("ours is the other's error less that of fast weight sharing, paired by seed; %d of %d had no result by then and count as 1", none, len(a))
	return r.difference(c, a, b)
}

// checkSpeed compares what the two weight-sharing searches cost.
func (r *Figure3Result) checkSpeed(task string) runs.Claim {
	c := r.claim(task, "fastws-growth: fast weight sharing costs less than weight sharing, ratio of "+clockTitles[r.Params.Clock], "App. B.1")
	c.Paper = 1
	var ratios []float64
	fast, plain := r.found[searchKey{task, fastWeightSharing}], r.found[searchKey{task, weightSharing}]
	for i := range min(len(fast), len(plain)) {
		f, p := fast[i].Series[r.Params.Clock], plain[i].Series[r.Params.Clock]
		ratios = append(ratios, f[len(f)-1]/p[len(p)-1])
	}
	s, err := runs.Summarize(ratios, r.Params.Confidence)
	holds, fails := atMost(1)
	return judged(c, s, err, holds, fails)
}
