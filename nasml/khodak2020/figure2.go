package khodak2020

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
)

// Figure2Params are the parameters of Figures 2 and 3, which show the same
// searches.
type Figure2Params struct {
	TaskParams
	Methods   []string // "ws", "fast-ws", "rs", "rs-lambda", "sha", "hyperband"
	Configs   int      // |C|
	ImageDim  int      // d of CIFAR-10
	ReviewDim int      // d of IMDb
	Growth    float64  // factor a round of Fast Weight-Sharing's dimension
	Solves    int      // of random search; 0: as many as Algorithm 1 has with the training of its winner

	// Random search that tunes λ, too: the ends of its range. The paper prints
	// none; ours are three decades to both sides.
	LambdaMin, LambdaMax float64

	// Successive halving: arms at the first rung, factor, rungs up to all
	// features. Hyperband has this bracket and the shallower ones.
	ImageArms, ImageEta, ImageRungs    int
	ReviewArms, ReviewEta, ReviewRungs int

	Clock string // axis of Figure 3: "seconds", "seconds_total" (with evaluations) or "madds" (multiply-adds)
}

// Figure3Params are those of Figure 2.
type Figure3Params = Figure2Params

// Figure2Paper is the setting of Appendix B.1: 256 configurations, 100,000
// features, ten trials.
var Figure2Paper = Figure2Params{
	TaskParams: paperTasks, Methods: []string{randomSearch, weightSharing}, Configs: 256, ImageDim: 100000, ReviewDim: 100000, Growth: math.Sqrt2, LambdaMin: 1e-3, LambdaMax: 1e3,
	ImageArms: 64, ImageEta: 4, ImageRungs: 4, ReviewArms: 18, ReviewEta: 2, ReviewRungs: 4, Clock: "seconds",
}

// Figure2Quick has fewer examples, configurations and features.
var Figure2Quick = func() Figure2Params {
	p := Figure2Paper
	p.TaskParams = quickTasks
	p.Configs, p.ImageDim, p.ReviewDim, p.Clock, p.Seeds = 32, 2048, 1<<16, "madds", 10
	p.ImageTrain, p.ImageValid = 2048, 1024
	p.ImageArms, p.ReviewArms = 32, 8
	return p
}()

// Figure3Paper is Figure2Paper with all methods.
var Figure3Paper = withMethods(Figure2Paper, randomSearch, successiveHalving, weightSharing, fastWeightSharing)

// Figure3Quick is Figure2Quick with all methods. Its times are too short to
// compare (compilation, other work of the machine), so that the axis counts
// multiply-adds.
var Figure3Quick = withMethods(Figure2Quick, randomSearch, successiveHalving, weightSharing, fastWeightSharing)

// Figure3Large is what two cores manage on CIFAR-10 in an hour or two: all
// images and configurations of the paper, fewer features. It was computed
// beside other work, so that the axis counts multiply-adds.
var Figure3Large = func() Figure3Params {
	p := Figure3Paper
	p.Tasks, p.ImageDim, p.Clock, p.Seeds = []string{imageTask}, 6250, "madds", 7
	return p
}()

// Figure2Large is Figure3Large with the methods of Figure 2.
var Figure2Large = withMethods(Figure3Large, Figure2Paper.Methods...)

func withMethods(p Figure2Params, methods ...string) Figure2Params {
	p.Methods = methods
	return p
}

const (
	searchID     = "khodak2020/search" // the trials of both figures
	figure2ID    = "khodak2020/figure2"
	figure2Title = "Oracle test error over solver calls"
	figure3ID    = "khodak2020/figure3"
	figure3Title = "Observed test error over time"
)

func init() {
	cost := catalog.Cost{
		Quick: "1 to 3 minutes on two quiet cores; the project ships its trials",
		Paper: "IMDb half an hour to an hour on two cores; CIFAR-10 has 25 TFLOP a pass over its 100,000 features, weeks on two cores: a GPU; with 6,250 (Figure3Large) ten minutes a seed; the project ships this and IMDb; ImageDim, ReviewDim and the splits make it smaller",
	}
	catalog.Register(catalog.Entry{
		ID: figure2ID, Paper: "Khodak+ 2020", Title: figure2Title, Kind: "figure", Notebook: "notebooks/khodak2020/figure2_oracle.ipynb", Cost: cost,
	}, Figure2Quick, Figure2Paper, Figure2)
	catalog.Register(catalog.Entry{
		ID: figure3ID, Paper: "Khodak+ 2020", Title: figure3Title, Kind: "figure", Notebook: "notebooks/khodak2020/figure3_time.ipynb", Cost: cost,
	}, Figure3Quick, Figure3Paper, Figure3)
}

// searchResult has the searches of Figures 2 and 3.
type searchResult struct {
	Params Figure2Params
	Scale  string // "quick", "paper" or empty for own parameters
	tasks  []*opened
	found  map[searchKey][]*runs.Record // one a seed
	all    []*runs.Record
}

type searchKey struct{ task, method string }

// Figure2Result is Figure 2.
type Figure2Result struct{ searchResult }

// Figure3Result is Figure 3.
type Figure3Result struct{ searchResult }

// Figure2 runs what the run store lacks of the searches, one trial a task,
// method and seed. Cancelling ctx ends it, with the finished trials stored. It
// is a *catalog.UsageError where a parameter makes no sense, and an error where
// the data cannot be had.
func Figure2(ctx context.Context, p Figure2Params) (*Figure2Result, error) {
	r, err := searches(ctx, figure2ID, p)
	if err != nil {
		return nil, err
	}
	return &Figure2Result{*r}, nil
}

// Figure3 is Figure2 over time.
func Figure3(ctx context.Context, p Figure3Params) (*Figure3Result, error) {
	r, err := searches(ctx, figure3ID, p)
	if err != nil {
		return nil, err
	}
	return &Figure3Result{*r}, nil
}

func searches(ctx context.Context, id string, p Figure2Params) (*searchResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &searchResult{Params: p, Scale: runs.Scale(ctx), found: map[searchKey][]*runs.Record{}}
	for _, task := range p.Tasks {
		o, err := p.open(ctx, task)
		if err != nil {
			return nil, err
		}
		defer o.close()
		if err := r.compute(ctx, id, o); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", id, taskTitles[task], err)
		}
	}
	return r, nil
}

// check is an error for the first parameter that makes no sense.
func (p Figure2Params) check() error {
	c := &checker{}
	p.TaskParams.check(c)
	known := []string{weightSharing, fastWeightSharing, randomSearch, randomSearchLambda, successiveHalving, hyperband}
	c.expect(len(p.Methods) > 0, "Methods is empty, want some of %v", known)
	for i, m := range p.Methods {
		c.expect(slices.Contains(known, m) && !slices.Contains(p.Methods[:i], m), "Methods has %q, want each of %v at most once", m, known)
	}
	c.expect(p.Configs >= 1, "Configs is %d, want at least 1", p.Configs)
	c.expect(p.ImageDim >= 1 && p.ReviewDim >= 1, "ImageDim is %d and ReviewDim %d, want at least 1", p.ImageDim, p.ReviewDim)
	c.expect(p.Growth >= 1 && !math.IsInf(p.Growth, 1), "Growth is %v, want 1 or more, such as √2", p.Growth)
	c.expect(p.Solves >= 0, "Solves is %d, want 0 (as many as Algorithm 1) or more", p.Solves)
	c.expect(p.LambdaMin > 0 && p.LambdaMin <= p.LambdaMax && !math.IsInf(p.LambdaMax, 1), "LambdaMin is %v and LambdaMax %v, want 0 < LambdaMin ≤ LambdaMax", p.LambdaMin, p.LambdaMax)
	c.expect(slices.Contains([]string{"seconds", "seconds_total", "madds"}, p.Clock), "Clock is %q, want seconds, seconds_total or madds", p.Clock)
	for _, task := range p.Tasks {
		for _, method := range p.Methods {
			_, err := p.searchTrial(task, method)
			c.expect(err == nil, "%s on %s: %v", methodTitles[method], task, err)
		}
	}
	if c.err != nil {
		return catalog.Usagef("%v", c.err)
	}
	return nil
}

// dim is d of a task.
func (p Figure2Params) dim(task string) int {
	if task == imageTask {
		return p.ImageDim
	}
	return p.ReviewDim
}

// ladders are the brackets of successive halving, its own one only, and of
// Hyperband: bracket s begins with dim/ηˢ features.
func (p Figure2Params) ladders(task, method string) ([][]halving.Rung, error) {
	arms, eta, rungs := p.ImageArms, p.ImageEta, p.ImageRungs
	if task == reviewTask {
		arms, eta, rungs = p.ReviewArms, p.ReviewEta, p.ReviewRungs
	}
	if rungs < 1 || eta < 2 || arms < 1 {
		return nil, fmt.Errorf("%d arms, factor %d, %d rungs: want at least 1 arm, factor 2 and 1 rung", arms, eta, rungs)
	}
	last := rungs - 1
	if method == hyperband {
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

// solves is how many configurations random search tries.
func (p Figure2Params) solves() int {
	if p.Solves > 0 {
		return p.Solves
	}
	return halving.Rounds(p.Configs) + 1
}

// searchTrial is what a search depends on besides its seed; a field that does
// not apply to the method stays zero, so that it changes no key.
type searchTrial struct {
	taskTrial
	Method  string           `json:"method"`
	Configs int              `json:"configs"`
	Dim     int              `json:"dim"`
	Growth  float64          `json:"growth,omitempty"`
	Solves  int              `json:"solves,omitempty"`
	Ladders [][]halving.Rung `json:"ladders,omitempty"`
	Lambdas []float64        `json:"lambdas,omitempty"` // ends of the range
}

func (p Figure2Params) searchTrial(task, method string) (searchTrial, error) {
	t := searchTrial{taskTrial: p.trial(task), Method: method, Configs: p.Configs, Dim: p.dim(task)}
	var err error
	switch method {
	case fastWeightSharing:
		t.Growth = p.Growth
	case randomSearch:
		t.Solves = p.solves()
	case randomSearchLambda:
		t.Solves, t.Lambda, t.Lambdas = p.solves(), 0, []float64{p.LambdaMin, p.LambdaMax}
	case successiveHalving, hyperband:
		t.Ladders, err = p.ladders(task, method)
	}
	return t, err
}

// calls is about how many solver calls a method makes.
func (t searchTrial) calls() int {
	n := t.Solves
	for _, rungs := range t.Ladders {
		for _, rung := range rungs {
			n += rung.Arms
		}
	}
	if n == 0 {
		n = halving.Rounds(t.Configs) + 1
	}
	return n
}

// rules are those of the reading. The authors' code takes the incumbent from
// the ⌊n/η⌋ arms that a rung of n keeps, also of the last one: where that is
// none, as for one arm, its score never counts; where it is some, and in random
// search, which is one rung, the last scores count as the paper has it.
func (p Figure2Params) rules(task, method string) (halving.Rules, error) {
	rules, err := halving.RulesNamed(p.Reading)
	if err != nil || method == weightSharing || method == fastWeightSharing {
		return rules, err
	}
	if method == randomSearch || method == randomSearchLambda {
		rules.Incumbent = "any"
		return rules, nil
	}
	eta := p.ImageEta
	if task == reviewTask {
		eta = p.ReviewEta
	}
	ladders, err := p.ladders(task, method)
	if err != nil {
		return rules, err
	}
	last := ladders[len(ladders)-1]
	if last[len(last)-1].Arms >= eta {
		rules.Incumbent = "any"
	}
	return rules, nil
}

// compute reads or runs the searches of a task.
func (r *searchResult) compute(ctx context.Context, id string, o *opened) error {
	for _, method := range r.Params.Methods {
		version := o.code
		if method == randomSearchLambda {
			version = lambdaCode
		}
		code, err := version()
		if err != nil {
			return err
		}
		params, err := r.Params.searchTrial(o.task, method)
		if err != nil {
			return err
		}
		rules, err := r.Params.rules(o.task, method)
		if err != nil {
			return err
		}
		var trials []runs.Trial
		for _, seed := range runs.Seeds(r.Params.Seeds) {
			trials = append(trials, runs.Trial{Figure: searchID, Params: params, Seed: seed, Code: code, Data: o.fingerprint})
		}
		records, err := o.sweepOf(id+" "+o.task, trials, params.calls(),
			func(ctx context.Context, t runs.Trial, step func(string)) (runs.Result, error) {
				return o.search(params, rules, t.Seed, step).run(ctx)
			}).compute(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", methodTitles[method], err)
		}
		r.all = append(r.all, records...)
		r.found[searchKey{o.task, method}] = slices.DeleteFunc(slices.Clone(records), func(r *runs.Record) bool { return r == nil })
	}
	r.tasks = append(r.tasks, o)
	return nil
}

// search is that of a trial.
func (o *opened) search(t searchTrial, rules halving.Rules, seed uint64, step func(string)) *search {
	s := &search{
		p: o.problem(t.Configs, seed), method: t.Method, n: t.Configs, d: t.Dim, rules: rules,
		growth: t.Growth, solves: t.Solves, ladders: t.Ladders, seed: seed, step: step,
	}
	if t.Method == randomSearchLambda {
		s.method, s.step = randomSearch, func(note string) { step("λ too: " + note) }
		s.p = withLambdas(func(lambda float64) problem { return o.withLambda(lambda).problem(t.Configs, seed) }, t.Configs, t.Lambdas[0], t.Lambdas[1], seed)
	}
	return s
}

// Records are the keys of the searches.
func (r *searchResult) Records() []string { return keysOf(r.all) }

// sourceOf says which data a figure's picture is of.
func (r *searchResult) sourceText() string {
	text := ""
	for _, o := range r.tasks {
		text += fmt.Sprintf(" %s, $d = %d$.", o.sizesText(), r.Params.dim(o.task)) + r.Params.paperText(o, r.Params.dim(o.task), Figure2Paper.dim(o.task))
	}
	if r.Params.Configs != Figure2Paper.Configs {
		text += fmt.Sprintf(" The paper has %d configurations.", Figure2Paper.Configs)
	}
	if r.Params.Images == data.Synthetic || r.Params.Reviews == data.Synthetic {
		text += " Synthetic data where it says so."
	}
	return text
}
