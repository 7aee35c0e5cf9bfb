package khodak2020

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// searchEntry is what Figures 2 and 3 have in common, which show the same searches.
func searchEntry(name string) lab.Entry[Figure2Params, mapsearch.Search] {
	return lab.Entry[Figure2Params, mapsearch.Search]{
		Of: paper, Name: name, Kind: lab.Figure, Note: study.SettingNote,
		Rules: Figure2Params.rules,
		Trials: func(p Figure2Params) (gs lab.Groups[mapsearch.Search]) {
			for _, task := range p.Tasks {
				for _, method := range p.Methods {
					t, _ := p.search(task, method) // the rules have seen that it can be made
					gs.Add(task, p.Seeds, t)
				}
			}
			return gs
		},
		By: taskOf[mapsearch.Search],
		Bench: func(ctx context.Context, p Figure2Params, task string) (lab.Bench[mapsearch.Search], error) {
			title := func(t mapsearch.Search) string { return methodTitles[t.Method] }
			b, err := taskBench(ctx, p.TaskParams, task, title)
			b.ID = "khodak2020/search"
			b.Kind = func(t mapsearch.Search) *code.Kind {
				if t.Method == mapsearch.RandomSearchLambda {
					return lambdaCode
				}
				return b.Code
			}
			return b, err
		},
	}
}

type searches = lab.Result[Figure2Params, mapsearch.Search]

// lambdaCode is what computes random search that tunes λ.
var lambdaCode = code.Define("khodak2020/lambda", "khodak2020/internal/mapsearch")

var methodTitles = map[string]string{
	mapsearch.WeightSharing: "weight sharing", mapsearch.FastWeightSharing: "fast weight sharing",
	mapsearch.RandomSearch: "random search", mapsearch.RandomSearchLambda: "random search, $λ$ too",
	mapsearch.SuccessiveHalving: "successive halving", mapsearch.Hyperband: "Hyperband",
}

// methodColors give a method the same colour in every picture.
var methodColors = map[string]string{
	mapsearch.WeightSharing: "#0072B2", mapsearch.FastWeightSharing: "#000000",
	mapsearch.RandomSearch: "#E69F00", mapsearch.RandomSearchLambda: "#CC79A7",
	mapsearch.SuccessiveHalving: "#D55E00", mapsearch.Hyperband: "#009E73",
}

var clockTitles = map[string]string{
	"seconds": "seconds", "seconds_total": "seconds, with evaluations", "madds": "multiply-adds",
}

// rules reports parameters that no search can be made of.
func (p Figure2Params) rules(c *study.Checks) {
	p.TaskParams.rules(c)
	c.Expect(p.LambdaMin <= p.LambdaMax, "LambdaMin must be at most LambdaMax, got %v and %v", p.LambdaMin,
		p.LambdaMax)
	for _, task := range p.Tasks {
		for _, method := range p.Methods {
			_, err := p.search(task, method)
			c.Expect(err == nil, "%s on %s: %v", methodTitles[method], task, err)
		}
	}
}

func (p Figure2Params) dim(task string) int {
	if task == mapsearch.ImageTask {
		return p.ImageDim
	}
	return p.ReviewDim
}

func (p Figure2Params) solves() int {
	if p.Solves > 0 {
		return p.Solves
	}
	return halving.Rounds(p.Configs) + 1
}

// ladder are the arms of the first rung, the factor and the rungs of a task.
func (p Figure2Params) ladder(task string) (arms, eta, rungs int) {
	if task == mapsearch.ImageTask {
		return p.ImageArms, p.ImageEta, p.ImageRungs
	}
	return p.ReviewArms, p.ReviewEta, p.ReviewRungs
}

// ladders are the brackets of successive halving, its own one only, and of Hyperband
// (Li et al. 2018, Algorithm 1): bracket s begins with dim/ηˢ features, and every one
// but the first with ⌈rungs/(s+1)·ηˢ⌉ arms, so that all cost about the same.
func (p Figure2Params) ladders(task, method string) ([][]halving.Rung, error) {
	arms, eta, rungs := p.ladder(task)
	if rungs < 1 || eta < 2 || arms < 1 {
		return nil, fmt.Errorf("%d arms, factor %d and %d rungs: need at least 1 arm, factor 2 and 1 rung",
			arms, eta, rungs)
	}
	last := rungs - 1
	if method == mapsearch.Hyperband {
		last = 0
	}
	var all [][]halving.Rung
	for s := rungs - 1; s >= last; s-- {
		n := arms
		if s < rungs-1 {
			n = int(math.Ceil(float64(rungs) / float64(s+1) * math.Pow(float64(eta), float64(s))))
		}
		ladder, err := halving.Ladder(n, float64(p.dim(task))/math.Pow(float64(eta), float64(s)), eta, p.dim(task))
		if err != nil {
			return nil, err
		}
		all = append(all, ladder)
	}
	return all, nil
}

func (p Figure2Params) search(task, method string) (mapsearch.Search, error) {
	t := mapsearch.Search{Setting: p.setting(task), Method: method, Configs: p.Configs, Dim: p.dim(task)}
	var err error
	switch method {
	case mapsearch.FastWeightSharing:
		t.Growth = p.Growth
	case mapsearch.RandomSearch:
		t.Solves = p.solves()
	case mapsearch.RandomSearchLambda:
		t.Solves, t.Lambda, t.Lambdas = p.solves(), 0, []float64{p.LambdaMin, p.LambdaMax}
	case mapsearch.SuccessiveHalving, mapsearch.Hyperband:
		t.Ladders, err = p.ladders(task, method)
		if p.Reading == "code" {
			_, t.Eta, _ = p.ladder(task)
		}
	}
	return t, err
}

func (p Figure2Params) has(methods ...string) bool {
	return !slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(p.Methods, m) })
}

func searchRecords(r *searches, task, method string) []*runs.Record {
	return r.Part(task).Where(func(t mapsearch.Search) bool { return t.Method == method }).Records()
}

// atCall is a series after a number of solver calls, by seed; a search that has stopped keeps its last value.
func atCall(r *searches, task, method, series string, call int) []float64 {
	return bySeed(searchRecords(r, task, method), func(record *runs.Record) float64 {
		s := record.Series[series]
		return s[min(call, len(s))-1]
	})
}

func atEnd(r *searches, task, method string) []float64 {
	return atCall(r, task, method, "observed", math.MaxInt)
}

// drawSearches adds a row of panels for each function, one panel a task; a single panel takes a column.
func drawSearches(r *searches, f *lab.Picture, label string, panels ...func(task string) plots.Panel) {
	p := r.Params
	for i, panel := range panels {
		if i == 0 || len(p.Tasks) > 1 { // of one task, what is compared stands side by side
			f.Row()
		}
		for j, task := range p.Tasks {
			panel := panel(task)
			panel.Title = p.title(task)
			if j == 0 {
				panel.Y.Label = label
			}
			panel.Y.Min, panel.Y.Max = aroundMeans(panel.Series)
			f.Add(panel)
		}
	}
	setting := []string{fmt.Sprintf("%d configurations", p.Configs)}
	if p.Configs != Figure2Paper.Configs {
		setting[0] += fmt.Sprintf(" (paper: %d)", Figure2Paper.Configs)
	}
	for _, task := range p.Tasks {
		d := p.dim(task)
		setting = append(setting, examplesOf(r, task).caption(fmt.Sprintf("$d = %d$", d), d, Figure2Paper.dim(task)))
	}
	f.Say("%s.", strings.Join(setting, "; "))
	if len(p.Tasks) == 1 && len(panels) == 1 {
		f.Style = f.Style.Column()
	}
}

// aroundMeans are the ends of an error axis: the means, with a fifth of their range around them. Bands of few trials,
// which may reach beyond every possible error, are cut off there.
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

// errorCurve is the mean error of a method over xs, in [0, 1], from the errors at each of them by seed.
func errorCurve(r *searches, method string, xs []float64, of func(i int) []float64) plots.Series {
	at, all := means(xs, func(i int) (runs.Summary, error) {
		s, err := runs.Summarize(present(of(i)), r.Confidence)
		return s.Within(0, 1), err
	})
	s := plots.Band(methodTitles[method], at, all)
	s.Color = methodColors[method]
	return s
}
