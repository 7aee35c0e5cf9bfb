package khodak2020

import (
	"math"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Figure2Params are the parameters of Figures 2 and 3, which show the same searches.
type Figure2Params struct {
	TaskParams
	Methods   []string `validate:"min=1,unique,dive,oneof=ws fast-ws rs rs-lambda sha hyperband"`
	Configs   int      `validate:"gte=1"`         // |C|
	ImageDim  int      `validate:"gte=1"`         // d of CIFAR-10
	ReviewDim int      `validate:"gte=1"`         // d of IMDb
	Growth    float64  `validate:"gte=1,lte=1e9"` // factor a round of Fast Weight-Sharing's dimension, such as √2
	// Solves of random search; 0: as many as Algorithm 1 has with the training of its winner
	Solves int `validate:"gte=0"`

	// Random search that tunes λ, too: the ends of its range. The paper prints
	// none; ours are three decades to both sides.
	LambdaMin, LambdaMax float64 `validate:"positive"`

	// Successive halving: arms at the first rung, factor, rungs up to all
	// features. Hyperband has this bracket and the shallower ones.
	ImageArms, ImageEta, ImageRungs    int
	ReviewArms, ReviewEta, ReviewRungs int

	// Axis of Figure 3: "seconds", "seconds_total" (with evaluations) or "madds" (multiply-adds)
	Clock string `validate:"oneof=seconds seconds_total madds"`
}

// Figure2Paper is the setting of Appendix B.1: 256 configurations, 100,000 features, ten trials. IMDb takes half an
// hour on two cores. CIFAR-10 was not run: where KeepGB has no room for its features, a pass over them is 25 TFLOP.
var Figure2Paper = Figure2Params{
	TaskParams: paperTasks, Methods: []string{mapsearch.RandomSearch, mapsearch.WeightSharing},
	Configs: 256, ImageDim: 100000, ReviewDim: 100000, Growth: math.Sqrt2, LambdaMin: 1e-3, LambdaMax: 1e3,
	ImageArms: 64, ImageEta: 4, ImageRungs: 4, ReviewArms: 18, ReviewEta: 2, ReviewRungs: 4, Clock: "seconds",
}

// Figure2Quick has 32 configurations, about 3,000 training examples, and 2,048
// features of images or 65,536 of reviews: less than a minute on two cores.
var Figure2Quick = func() Figure2Params {
	p := Figure2Paper
	p.TaskParams = quickTasks
	p.Configs, p.ImageDim, p.ReviewDim, p.Clock, p.Seeds = 32, 2048, 1<<16, "madds", 10
	p.ImageTrain, p.ImageValid = 2048, 1024
	p.ImageArms, p.ReviewArms = 32, 8
	return p
}()

// Figure2Large is [Figure3Large] with the methods of Figure 2: an hour on two cores.
var Figure2Large = withMethods(Figure3Large, Figure2Paper.Methods...)

func withMethods(p Figure2Params, methods ...string) Figure2Params {
	p.Methods = methods
	return p
}

// Figure2 runs searches over feature maps: one trial a task, method and seed.
var Figure2 = lab.Declare(func() lab.Entry[Figure2Params, mapsearch.Search] {
	e := searchEntry("figure2")
	e.Title, e.Source, e.Notebook = "Oracle test error over solver calls", "Figure 2 and Sec. 2", "figure2_oracle"
	e.Cost = catalog.Cost{
		Quick: "less than a minute on two cores; precomputed",
		Paper: "IMDb half an hour on two cores, shipped; CIFAR-10 20 hours (forecast) with KeepGB=16 and 20 GiB of " +
			"memory; --scale large, CIFAR-10 with 6,250 features, an hour on two cores, shipped",
	}
	e.Quick, e.Paper = Figure2Quick, Figure2Paper
	e.Also = []catalog.Preset[Figure2Params]{{Scale: catalog.Large, Params: Figure2Large}}
	e.Settings, e.Shipped = figure2Settings, []catalog.Setting{
		{Scale: catalog.Quick, Set: []string{"Methods=rs,rs-lambda"}},
		{Scale: catalog.Paper, Set: []string{"Tasks=imdb"}},
	}
	e.Draw, e.Claims = drawOracle, judgeFigure2
	return e
}())

func calls(r *searches, task, method string) int {
	n := 0
	for _, record := range searchRecords(r, task, method) {
		if record != nil {
			n = max(n, len(record.Series["oracle"]))
		}
	}
	return n
}

func drawOracle(r *searches, f *lab.Picture) {
	p := r.Params
	winner := ""
	if p.has(mapsearch.WeightSharing) || p.has(mapsearch.FastWeightSharing) {
		winner = ", of which weight sharing spends the last on its winner"
	}
	f.Say("Test error against solver calls%s; %s.", winner, r.Interval("band", p.Seeds, "trial"))
	drawSearches(r, f, "oracle test error", func(task string) plots.Panel {
		curves := study.Map(p.Methods, func(method string) plots.Series { return callCurve(r, task, method) })
		return plots.Panel{X: plots.Axis{Label: "solver calls"}, Series: curves}
	})
}

func callCurve(r *searches, task, method string) plots.Series {
	xs := study.Floats(trial.Indices(1, calls(r, task, method)))
	return errorCurve(r, method, xs, func(i int) []float64 { return atCall(r, task, method, "oracle", i+1) })
}

// judgeFigure2 judges what the paper says of Algorithm 1 and, task by task, of Figure 2.
func judgeFigure2(r *searches) []runs.Claim {
	var claims []runs.Claim
	if r.Params.has(mapsearch.WeightSharing) {
		claims = append(claims, judgeRounds(r))
	}
	for _, task := range r.Params.Tasks {
		if r.Params.has(mapsearch.RandomSearch, mapsearch.RandomSearchLambda) {
			claims = append(claims, judgeLambdas(r, task))
		}
		if r.Params.has(mapsearch.WeightSharing, mapsearch.RandomSearch) {
			claims = append(claims, judgeErrors(r, task)...)
		}
	}
	return claims
}

// judgeErrors compares weight sharing with random search: after half as many calls, after as many, and at its end.
func judgeErrors(r *searches, task string) []runs.Claim {
	rounds := max(1, halving.Rounds(r.Params.Configs)) // one configuration has no round
	less := func(c lab.Claim, series string, random, sharing int) runs.Claim {
		return greater(c, atCall(r, task, mapsearch.RandomSearch, series, random),
			atCall(r, task, mapsearch.WeightSharing, series, sharing))
	}
	const note = "ours is random search's error less weight sharing's, paired by seed"
	return []runs.Claim{
		less(taskClaim(r, task, "[figure2-better] weight sharing's oracle error after %d calls below random search's "+
			"after %d", (rounds+1)/2, rounds).Noting("fewer calls; %s", note), "oracle", rounds, (rounds+1)/2),
		less(taskClaim(r, task, "[figure2-better] weight sharing's oracle error below random search's after %d calls",
			rounds).Noting(note), "oracle", rounds, rounds),
		less(taskClaim(r, task, "[abstract-outperforms] the winner of weight sharing below random search's best after "+
			"%d calls, test error", rounds+1).From("Abstract and Sec. 2"), "observed", rounds+1, rounds+1),
	}
}

// judgeLambdas is the paper's remark that λ in the space did not help random search.
func judgeLambdas(r *searches, task string) runs.Claim {
	p := r.Params
	tuned, fixed := completePairs(atEnd(r, task, mapsearch.RandomSearchLambda), atEnd(r, task, mapsearch.RandomSearch))
	c := taskClaim(r, task, "[lambda-search] λ in the space does not help random search after %d calls, test error",
		p.solves()).From("App. B.2").Says(0).Noting("ours is the error with λ in [%g, %g] less that with λ = %g, "+
		"paired by seed: the same configurations and features; the paper prints neither range nor error",
		p.LambdaMin, p.LambdaMax, p.Lambda)
	return c.Of(runs.MeanDiff(tuned, fixed, c.Confidence)).AtLeast(0)
}

// judgeRounds counts the solves of every task that has a trial: Algorithm 1 makes as many on any examples.
func judgeRounds(r *searches) runs.Claim {
	c := r.Claim("[alg1-rounds alg1-singleton figure2-x start-rounds] shared solves until one configuration is left").
		From("Algorithm 1").Says(math.Ceil(math.Log2(float64(r.Params.Configs))))
	claim, counted := c.NotRun("there is no trial"), []string(nil)
	for _, task := range r.Params.Tasks {
		if made := calls(r, task, mapsearch.WeightSharing) - 1; made >= 0 && claim.Holds != runs.Fails {
			counted = append(counted, r.Params.title(task))
			noted := c.Noting("log₂|C|, rounded up; counted on %s", strings.Join(counted, " and "))
			claim = verdict.Exactly(noted.Claim, float64(made), float64(c.Paper), 0)
		}
	}
	return claim
}
