package khodak2020

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

const searchID = "khodak2020/search" // the trials of Figures 2 and 3

// lambdaKind is what computes random search that tunes λ.
var lambdaKind = code.Define("khodak2020/lambda", "khodak2020/internal/mapsearch")

var methodTitles = map[string]string{
	mapsearch.WeightSharing: "weight sharing", mapsearch.FastWeightSharing: "fast weight sharing",
	mapsearch.RandomSearch: "random search", mapsearch.RandomSearchLambda: "random search, $λ$ too",
	mapsearch.SuccessiveHalving: "successive halving", mapsearch.Hyperband: "Hyperband",
}

// methodColors keep a method's colour where others are left out.
var methodColors = map[string]string{
	mapsearch.WeightSharing: "#0072B2", mapsearch.FastWeightSharing: "#000000",
	mapsearch.RandomSearch: "#E69F00", mapsearch.RandomSearchLambda: "#CC79A7",
	mapsearch.SuccessiveHalving: "#D55E00", mapsearch.Hyperband: "#009E73",
}

// clockTitles name the axes of Figure 3.
var clockTitles = map[string]string{
	"seconds": "seconds", "seconds_total": "seconds, with evaluations", "madds": "multiply-adds",
}

func (p Figure2Params) check(what string) error {
	c := new(study.Checks)
	p.TaskParams.check(c)
	study.Distinct(c, "Methods", p.Methods, 1)
	for _, m := range p.Methods {
		c.OneOf("Methods", m, mapsearch.WeightSharing, mapsearch.FastWeightSharing, mapsearch.RandomSearch,
			mapsearch.RandomSearchLambda, mapsearch.SuccessiveHalving, mapsearch.Hyperband)
	}
	c.AtLeast("Configs", p.Configs, 1)
	c.AtLeast("ImageDim", p.ImageDim, 1)
	c.AtLeast("ReviewDim", p.ReviewDim, 1)
	c.Expect(p.Growth >= 1 && !math.IsInf(p.Growth, 1), "Growth is %v, want 1 or more, such as √2", p.Growth)
	c.Expect(p.Solves >= 0, "Solves is %d, want 0 (as many as Algorithm 1) or more", p.Solves)
	c.Expect(p.LambdaMin > 0 && p.LambdaMin <= p.LambdaMax && !math.IsInf(p.LambdaMax, 1),
		"LambdaMin is %v and LambdaMax %v, want 0 < LambdaMin ≤ LambdaMax", p.LambdaMin, p.LambdaMax)
	c.OneOf("Clock", p.Clock, "seconds", "seconds_total", "madds")
	for _, task := range p.Tasks {
		for _, method := range p.Methods {
			_, err := p.search(task, method)
			c.Expect(err == nil, "%s on %s: %v", methodTitles[method], task, err)
		}
	}
	return c.Err(what)
}

// dim is d of a task.
func (p Figure2Params) dim(task string) int {
	if task == mapsearch.ImageTask {
		return p.ImageDim
	}
	return p.ReviewDim
}

// solves is how many configurations random search tries.
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

// ladders are the brackets of successive halving, its own one only, and of
// Hyperband: bracket s begins with dim/ηˢ features.
func (p Figure2Params) ladders(task, method string) ([][]halving.Rung, error) {
	arms, eta, rungs := p.ladder(task)
	if rungs < 1 || eta < 2 || arms < 1 {
		return nil, fmt.Errorf("%d arms, factor %d, %d rungs: want at least 1 arm, factor 2 and 1 rung",
			arms, eta, rungs)
	}
	last := rungs - 1
	if method == mapsearch.Hyperband {
		last = 0
	}
	var all [][]halving.Rung
	for s := rungs - 1; s >= last; s-- {
		n := arms
		if s < rungs-1 { // as many as make the bracket cost the same, as Hyperband's
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

// search is a trial of a method.
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

// cases are the trials of a method on a task.
func (p Figure2Params) cases(e *examples, method string) ([]study.Case, error) {
	search, err := p.search(e.task, method)
	if err != nil {
		return nil, err
	}
	var kind *code.Kind // nil: the task's
	if method == mapsearch.RandomSearchLambda {
		kind = lambdaKind
	}
	return study.Each(p.Seeds, func(seed uint64) study.Case {
		return study.Case{
			Params: search, Data: e.fingerprint, Code: kind, Units: search.Calls(),
			Label: e.title() + ", " + methodTitles[method],
			Run: func(ctx context.Context, step study.Step) (trial.Result, error) {
				maps, err := e.load()
				if err != nil {
					return trial.Result{}, err
				}
				return search.Run(ctx, maps, seed, func(note string) { step(1, note) })
			},
		}
	}), nil
}

// searchResult has the searches of Figures 2 and 3.
type searchResult struct {
	Params Figure2Params
	Scale  string // "quick", "paper", "large" or empty for own parameters
	tasks  []*examples
	found  map[searchKey][]*runs.Record // one a seed, nil where there is none
	all    []*runs.Record
}

type searchKey struct{ task, method string }

// searches reads or runs the searches of all tasks.
func searches(ctx context.Context, what string, p Figure2Params) (*searchResult, error) {
	if err := p.check(what); err != nil {
		return nil, err
	}
	r := &searchResult{Params: p, Scale: runs.Scale(ctx), found: map[searchKey][]*runs.Record{}}
	for _, task := range p.Tasks {
		e, err := p.open(ctx, task)
		if err != nil {
			return nil, err
		}
		defer e.close()
		if err := r.compute(ctx, e); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// compute reads or runs the searches of a task.
func (r *searchResult) compute(ctx context.Context, e *examples) error {
	var all []study.Case
	for _, method := range r.Params.Methods {
		cases, err := r.Params.cases(e, method)
		if err != nil {
			return err
		}
		all = append(all, cases...)
	}
	records, err := e.study(searchID).Run(ctx, all)
	if err != nil {
		return err
	}
	for i, method := range r.Params.Methods {
		r.found[searchKey{e.task, method}] = records[i*r.Params.Seeds : (i+1)*r.Params.Seeds]
	}
	r.tasks, r.all = append(r.tasks, e), append(r.all, records...)
	return nil
}

// Records are the keys of the searches.
func (r *searchResult) Records() []string { return study.Keys(r.all) }

// has says whether all of the methods were run.
func (r *searchResult) has(methods ...string) bool {
	return !slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(r.Params.Methods, m) })
}

// column is a number of every search of a method, by seed.
func (r *searchResult) column(task, method string, of func(*runs.Record) float64) []float64 {
	return bySeed(r.found[searchKey{task, method}], of)
}

// atCall is a series after so many solver calls, by seed; a search that ended
// keeps its last value.
func (r *searchResult) atCall(task, method, series string, call int) []float64 {
	return r.column(task, method, func(record *runs.Record) float64 {
		s := record.Series[series]
		return s[min(call, len(s))-1]
	})
}

// atEnd is what was observed after all calls, by seed.
func (r *searchResult) atEnd(task, method string) []float64 {
	return r.atCall(task, method, "observed", math.MaxInt)
}

// claim begins a claim about a task.
func (r *searchResult) claim(task, name, place string) runs.Claim {
	return ofTask(r.Params.title(task), verdict.Claim(name, "Khodak+ 2020, "+place))
}

// ofTask says in a claim's name which task it is about.
func ofTask(title string, c runs.Claim) runs.Claim {
	c.Name = title + ": " + c.Name
	return c
}

// overTasks is the confidence of a claim that is made of every task.
func (r *searchResult) overTasks() float64 { return verdict.Family(r.Params.Confidence, len(r.tasks)) }

// greater judges of every task whether column a is above b, paired by seed.
func (r *searchResult) greater(c runs.Claim, a, b []float64) runs.Claim {
	a, b = pairs(a, b)
	return verdict.Greater(c, a, b, r.overTasks())
}

// draw makes a figure of a row of panels for each function, one panel a task; a
// single panel takes a column.
func (r *searchResult) draw(
	name, title, caption, label string, panels ...func(e *examples) plots.Panel,
) plots.Figure {
	f := plots.Figure{
		Name: name, Style: plots.ICML.Text(), Meta: study.Meta(title, r.Scale, r.Params), Caption: caption,
	}
	for _, panel := range panels {
		var row []plots.Panel
		for _, e := range r.tasks {
			p := panel(e)
			p.Title = e.title()
			if len(row) == 0 {
				p.Y.Label = label
			}
			p.Y.Min, p.Y.Max = aroundMeans(p.Series)
			row = append(row, p)
		}
		f.Panels = append(f.Panels, row)
	}
	for _, e := range r.tasks {
		d := r.Params.dim(e.task)
		f.Caption += e.caption(fmt.Sprintf(", $d = %d$", d), d, Figure2Paper.dim(e.task))
	}
	if r.Params.Configs != Figure2Paper.Configs {
		f.Caption += fmt.Sprintf(" The paper has %d configurations.", Figure2Paper.Configs)
	}
	f.Caption += study.SettingNote(r.Params)
	if len(r.tasks) == 1 && len(panels) > 1 { // one task: what is compared stands side by side
		f.Panels = [][]plots.Panel{slices.Concat(f.Panels...)}
	}
	if len(r.tasks) == 1 && len(panels) == 1 {
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
