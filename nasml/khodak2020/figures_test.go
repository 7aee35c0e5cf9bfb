package khodak2020

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/khodak2020/internal/mapsearch"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

// small are the problems on generated data, on the pure Go backend.
func small(t *testing.T) TaskParams {
	t.Helper()
	if os.Getenv("GOMLX_BACKEND") == "" {
		t.Setenv("GOMLX_BACKEND", "go")
	}
	p := quickTasks
	p.Images, p.Reviews = data.Synthetic, data.Synthetic
	p.ImageTrain, p.ImageValid, p.ImageTest = 96, 64, 64
	p.ReviewTrain, p.ReviewValid, p.ReviewTest = 96, 64, 64
	p.Seeds = 2
	return p
}

func TestSmallFiguresOnGeneratedData(t *testing.T) {
	ctx := isolated(t)
	p1 := Figure1Quick
	p1.TaskParams, p1.Configs, p1.Dims = small(t), 4, []int{8, 16}
	one, err := Figure1(ctx, p1)
	require.NoError(t, err)
	require.NoError(t, one.Figure().Validate())
	require.Contains(t, one.Figure().Caption, "SYNTHETIC")
	require.Len(t, one.Records(), 2*2*2)
	require.NotEmpty(t, one.Check())
	for i, task := range p1.Tasks {
		scattered := slices.Concat(one.Figure().Panels...)[2*i]
		points := 0
		for _, s := range scattered.Series {
			if !s.Reference {
				points += len(s.X)
				first := kindLooks[task][0]
				require.Equal(t, strings.HasPrefix(s.Label, first.label), s.Color == first.color)
			}
		}
		require.Equal(t, p1.Configs, points, "every configuration has a colour and a marker")
	}

	p3 := Figure3Quick
	p3.TaskParams, p3.Configs, p3.ImageDim, p3.ReviewDim = p1.TaskParams, 4, 16, 256
	p3.ImageArms, p3.ImageRungs, p3.ImageEta, p3.ReviewArms, p3.ReviewRungs = 4, 2, 2, 4, 2
	three, err := Figure3(ctx, p3)
	require.NoError(t, err)
	require.NoError(t, three.Figure().Validate())
	for _, c := range three.Check() {
		require.NotContains(t, c.Note, "not run", c.Name)
	}
	p2 := p3
	p2.Methods, p2.StoredOnly = Figure2Quick.Methods, true
	two, err := Figure2(ctx, p2)
	require.NoError(t, err)
	require.NoError(t, two.Figure().Validate())
	require.Subset(t, three.Records(), two.Records(), "the searches are shared")
	require.Len(t, two.Records(), 2*2*2)
	for _, c := range two.Check() {
		if c.Paper == 2 { // log₂ 4 rounds
			require.Equal(t, runs.Holds, c.Holds)
		}
	}
}

// A reader's images take CIFAR-10's place, and the picture says whose they are; more
// classes than the task has are refused.
func TestFiguresTakeOwnImages(t *testing.T) {
	ctx := isolated(t)
	own := func(name data.Name, classes int) Figure1Params {
		for _, split := range []data.Split{data.Train, data.Test} {
			rng := trial.RNG(1, string(split))
			pixels, labels := make([]uint8, 200*6*6), make([]int, 200)
			for i := range pixels {
				pixels[i] = uint8(rng.IntN(256))
			}
			for i := range labels {
				labels[i] = i % classes
			}
			_, err := data.FromArrays(name, split, 6, 6, 1, pixels, labels)
			require.NoError(t, err)
		}
		p := Figure1Quick
		p.TaskParams, p.Configs, p.Dims = small(t), 3, []int{8}
		p.Images, p.Tasks = name, []string{mapsearch.ImageTask}
		p.ImageValid = 40
		return p
	}
	r, err := Figure1(ctx, own("noise", 3))
	require.NoError(t, err)
	require.Contains(t, r.Figure().Caption, "noise: 96 training, 40 validation, 64 test examples, not the paper's data")
	for _, claim := range r.Check() {
		require.NotContains(t, claim.Name, "CIFAR-10")
	}
	_, err = Figure1(ctx, own("many", 12))
	require.ErrorContains(t, err, "class 11: classes must be 0 to 9")
}

// Random search that tunes λ is random search where the range is one number,
// and another search where it is not.
func TestRandomSearchTunesLambda(t *testing.T) {
	ctx := isolated(t)
	p := Figure2Quick
	p.TaskParams, p.Configs, p.ImageDim, p.ReviewDim = small(t), 4, 16, 256
	p.Methods = []string{mapsearch.RandomSearch, mapsearch.RandomSearchLambda}
	ran := map[float64]*searches{}
	for _, highest := range []float64{p.Lambda, 1e4} {
		p.LambdaMin, p.LambdaMax = p.Lambda, highest
		r, err := Figure2(ctx, p)
		require.NoError(t, err)
		require.NoError(t, r.Figure().Validate())
		require.Len(t, r.Check(), 2)
		for _, c := range r.Check() {
			require.Contains(t, c.Rows, "lambda-search")
			require.NotContains(t, c.Note, "not run")
		}
		ran[highest] = r
	}
	for _, task := range p.Tasks {
		for seed, plain := range searchRecords(ran[p.Lambda], task, mapsearch.RandomSearch) {
			of := func(highest float64) *runs.Record {
				return searchRecords(ran[highest], task, mapsearch.RandomSearchLambda)[seed]
			}
			for _, series := range []string{"observed", "oracle", "score", "best"} {
				require.Equal(t, plain.Series[series], of(p.Lambda).Series[series], "%s, %s", task, series)
			}
			require.NotEqual(t, plain.Series["score"], of(1e4).Series["score"], task)
		}
	}
}

// One configuration, one feature, one seed: no round, no interval, no panic.
func TestFigure2AtTheEdges(t *testing.T) {
	p := Figure2Quick
	p.TaskParams, p.Configs, p.ImageDim, p.ReviewDim = small(t), 1, 1, 1
	p.Seeds = 1
	r, err := Figure2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	for _, c := range r.Check() {
		require.NotEqual(t, runs.Fails, c.Holds, c.Name)
	}
	p.StoredOnly = true
	empty, err := Figure2(isolated(t), p)
	require.NoError(t, err)
	require.NoError(t, empty.Figure().Validate())
	require.NotEmpty(t, empty.Check())
}

// With nothing in the store the figures say so and judge nothing.
func TestNothingStoredIsNothingJudged(t *testing.T) {
	ctx := isolated(t)
	p := Figure3Quick
	p.TaskParams = small(t)
	p.StoredOnly = true
	three, err := Figure3(ctx, p)
	require.NoError(t, err)
	one, err := Figure1(ctx, Figure1Params{p.TaskParams, 8, []int{16}})
	require.NoError(t, err)
	q := tiny31()
	q.StoredOnly, q.Lipschitz = true, []float64{1, 5} // otherwise that part is the shipped one
	theorem, err := Corollary31(ctx, q)
	require.NoError(t, err)
	for _, r := range []catalog.Result{three, one, theorem} {
		require.NoError(t, r.Figure().Validate())
		require.Empty(t, r.Records())
		for _, c := range r.Check() {
			require.True(t, c.Holds == runs.NotKnown || slices.Contains(c.Rows, "nas-configs"), c.Name)
		}
	}
}

func TestFiguresRefuseWhatMakesNoSense(t *testing.T) {
	t.Setenv(catalog.ForceEnv, "1") // what a machine lacks is not the question
	var usage *catalog.UsageError
	for want, change := range map[string]func(*Figure3Params){
		`value of Tasks must`:       func(p *Figure3Params) { p.Tasks = []string{"mnist"} },
		"Tasks must":                func(p *Figure3Params) { p.Tasks = []string{} },
		`value of Fresh must`:       func(p *Figure3Params) { p.Fresh = []string{"hash"} },
		"Images must be one of":     func(p *Figure3Params) { p.Images = "unknown" },
		"Reviews must":              func(p *Figure3Params) { p.Reviews = "unknown" },
		"ImageTest must":            func(p *Figure3Params) { p.ImageTest = 10001 },
		`value of Methods must`:     func(p *Figure3Params) { p.Methods = []string{"grid"} },
		"Methods must":              func(p *Figure3Params) { p.Methods = []string{"rs", "rs"} },
		"LambdaMin must be at most": func(p *Figure3Params) { p.LambdaMin, p.LambdaMax = 1, 0.1 },
		"0 rungs":                   func(p *Figure3Params) { p.ImageRungs = 0 },
		"Hyperband on cifar":        func(p *Figure3Params) { p.ImageDim, p.ImageRungs = 3, 5 },
		"Lambda must":               func(p *Figure3Params) { p.Lambda = 0 },
		`Clock must`:                func(p *Figure3Params) { p.Clock = "days" },
		`Reading must`:              func(p *Figure3Params) { p.Reading = "slides" },
		"1073741824 training ": func(p *Figure3Params) {
			p.Images, p.Tasks, p.ImageTrain = data.Synthetic, []string{mapsearch.ImageTask}, 1<<30
		},
	} {
		p := Figure3Quick
		change(&p)
		_, err := Figure3(isolated(t), p)
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
	}
	_, err := Figure1(isolated(t), Figure1Params{quickTasks, 1, []int{8}})
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "Configs must")
}

// The code's reading has NLTK's tokenizer and says the factor of its ladders;
// the paper's has what it had, or its trials would not be found.
func TestReadingsHaveTheirOwnTrials(t *testing.T) {
	p := Figure3Paper
	text := func(task, method string) string {
		search, err := p.search(task, method)
		require.NoError(t, err)
		return marshal(t, search)
	}
	for _, method := range []string{mapsearch.SuccessiveHalving, mapsearch.RandomSearch} {
		require.NotContains(t, text(mapsearch.ReviewTask, method), "tokenizer")
		require.NotContains(t, text(mapsearch.ReviewTask, method), `"eta"`)
	}
	p.Reading = "code"
	require.Contains(t, text(mapsearch.ReviewTask, mapsearch.SuccessiveHalving), `"tokenizer":"nltk"`)
	require.Contains(t, text(mapsearch.ReviewTask, mapsearch.SuccessiveHalving), `"eta":2`)
	require.Contains(t, text(mapsearch.ImageTask, mapsearch.SuccessiveHalving), `"eta":4`)
	require.NotContains(t, text(mapsearch.ImageTask, mapsearch.RandomSearch), "tokenizer")

	q := Figure2Quick
	q.TaskParams, q.Configs, q.ReviewDim = small(t), 4, 256
	q.Tasks, q.Reading, q.Methods = []string{mapsearch.ReviewTask}, "code", []string{mapsearch.RandomSearch}
	r, err := Figure2(isolated(t), q)
	require.NoError(t, err)
	for _, v := range atCall(r, mapsearch.ReviewTask, mapsearch.RandomSearch, "best", 1) {
		require.GreaterOrEqual(t, v, 0.0)
	}
}

func marshal(t *testing.T, params any) string {
	t.Helper()
	text, err := json.Marshal(params)
	require.NoError(t, err)
	return string(text)
}

// Hyperband's brackets at the authors' settings begin with what they ran.
func TestLaddersAreTheAuthors(t *testing.T) {
	p := Figure3Paper
	p.ReviewDim = 1 << 24
	images, err := p.ladders(mapsearch.ImageTask, mapsearch.SuccessiveHalving)
	require.NoError(t, err)
	require.Equal(t, [][]halving.Rung{{
		{Arms: 64, Resource: 1562}, {Arms: 16, Resource: 6250}, {Arms: 4, Resource: 25000}, {Arms: 1, Resource: 100000},
	}}, images)
	reviews, err := p.ladders(mapsearch.ReviewTask, mapsearch.Hyperband)
	require.NoError(t, err)
	require.Len(t, reviews, 4)
	require.Equal(t, []halving.Rung{
		{Arms: 18, Resource: 1 << 21}, {Arms: 9, Resource: 1 << 22},
		{Arms: 4, Resource: 1 << 23}, {Arms: 2, Resource: 1 << 24},
	}, reviews[0])
	require.Equal(t, []halving.Rung{{Arms: 4, Resource: 1 << 24}}, reviews[3])
	require.Equal(t, 9, p.solves())
}

// Worked by hand: ours falls to 0.2 at 2 and ends at 4, the other is at 0.4 from 1 on
// and ends at 0.1 at 8; before a first result both guess, 0.5.
func TestLeadOverTheWholeAxis(t *testing.T) {
	record := func(clock, observed []float64) *runs.Record {
		return &runs.Record{Series: map[string][]float64{"madds": clock, "observed": observed}}
	}
	ours := record([]float64{2, 4}, []float64{0.2, 0.2})
	other := record([]float64{1, 8}, []float64{0.4, 0.1})
	area, share := lead(ours, other, "madds", 0.5)
	// [0, 1): equal; [1, 2): 0.4 − 0.5; [2, 8): 0.4 − 0.2
	require.InDelta(t, (-0.1+6*0.2)/8, area, 1e-12)
	require.InDelta(t, (0.5+6)/8, share, 1e-12)
	back, rest := lead(other, ours, "madds", 0.5)
	require.InDelta(t, -area, back, 1e-12)
	require.InDelta(t, 1-share, rest, 1e-12)
}
