package khodak2020

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/halving"
	"github.com/nasml/lab/nasml/runs"
)

// fake is a problem of which every number is known: configuration c has the
// error quality[c] by itself, plus 1/d, on every example.
type fake struct {
	quality []float64
	trained []int // dimension of every training
	fail    int   // the training that fails, from 1
}

func (p *fake) points(s split) int { return []int{7, 640, 5}[s] }

func (p *fake) train(_ context.Context, _ []int, d int, _ uint64, _ bool) (model, cost, error) {
	p.trained = append(p.trained, d)
	if len(p.trained) == p.fail {
		return nil, cost{}, errors.New("singular")
	}
	return &fakeModel{p, d}, cost{seconds: 1, madds: float64(d)}, nil
}

type fakeModel struct {
	p *fake
	d int
}

func (m *fakeModel) values(_ context.Context, s split, of []int) (losses, errs []float64, err error) {
	for _, c := range broadcast(of, m.p.points(s)) {
		losses, errs = append(losses, 2*m.p.quality[c]+1/float64(m.d)), append(errs, m.p.quality[c]+1/float64(m.d))
	}
	return losses, errs, nil
}

func fakeSearch(p *fake, method string) *search {
	return &search{
		p: p, method: method, n: len(p.quality), d: 64, rules: halving.AsPaper(), growth: math.Sqrt2, solves: 3,
		ladders: [][]halving.Rung{{{Arms: 8, Resource: 16}, {Arms: 4, Resource: 32}, {Arms: 2, Resource: 64}}}, step: func(string) {},
	}
}

var eight = []float64{0.5, 0.3, 0.7, 0.2, 0.6, 0.4, 0.1, 0.8}

func TestWeightSharingSearchByHand(t *testing.T) {
	p := &fake{quality: eight}
	r, err := fakeSearch(p, weightSharing).run(context.Background())
	require.NoError(t, err)
	// Three shared solves, the winner's, and one oracle, which is kept; all at d.
	require.Equal(t, []int{64, 64, 64, 64, 64}, p.trained)
	require.Equal(t, []float64{6, 6, 6, 6}, r.Series["best"])
	for _, v := range append(r.Series["oracle"], r.Series["observed"]...) {
		require.InDelta(t, 0.1+1.0/64, v, 1e-12)
	}
	require.Equal(t, []float64{64, 128, 192, 256}, r.Series["madds"])
	require.InDelta(t, 0.2+1.0/64, r.Series["score"][0], 1e-12, "the loss, as the paper has it")
	require.Equal(t, 4.0, r.Values["calls"])
	for i := range 3 {
		require.Less(t, r.Series["seconds"][i], r.Series["seconds"][i+1])
		require.GreaterOrEqual(t, r.Series["seconds_total"][i], r.Series["seconds"][i])
	}
	q := &fake{quality: eight}
	fast, err := fakeSearch(q, fastWeightSharing).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int{32, 46, 64}, q.trained[:3])
	require.Equal(t, []float64{32, 46, 64, 64}, fast.Series["dim"])
}

func TestBaselineSearchesByHand(t *testing.T) {
	p := &fake{quality: eight}
	r, err := fakeSearch(p, randomSearch).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 1}, r.Series["best"])
	require.Len(t, p.trained, 3, "its own training is the oracle")
	require.Equal(t, r.Series["observed"], r.Series["oracle"])
	require.Equal(t, []float64{64, 128, 192}, r.Series["madds"])

	p = &fake{quality: eight}
	r, err = fakeSearch(p, successiveHalving).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 6, 6, 6, 6}, r.Series["best"])
	require.InDelta(t, 0.1+1.0/16, r.Series["observed"][7], 1e-12, "as good as at the dimension it was tried with")
	require.InDelta(t, 0.1+1.0/64, r.Series["oracle"][7], 1e-12)
	require.InDelta(t, 0.1+1.0/64, r.Series["observed"][13], 1e-12)
	require.Equal(t, float64(8*16+4*32+2*64), r.Values["madds"])

	s := fakeSearch(&fake{quality: eight}, successiveHalving)
	s.rules = halving.AsCode()
	r, err = s.run(context.Background())
	require.NoError(t, err)
	require.Equal(t, -1.0, r.Series["best"][0], "nothing is promoted before the rung ends")
	require.Equal(t, 1.0, r.Series["oracle"][0])
	require.InDelta(t, 0.1+1.0/16, r.Series["score"][7], 1e-12, "the error, as the code has it")
}

// A pool smaller than the arms is gone through again; one configuration wins
// without a shared solve.
func TestSmallPools(t *testing.T) {
	s := fakeSearch(&fake{quality: []float64{0.5, 0.25}}, successiveHalving)
	r, err := s.run(context.Background())
	require.NoError(t, err)
	require.Equal(t, 1.0, r.Series["best"][13])
	p := &fake{quality: []float64{0.5}}
	r, err = fakeSearch(p, weightSharing).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0}, r.Series["best"])
	require.Len(t, p.trained, 2, "the winner and its oracle")
}

func TestSearchesReportErrors(t *testing.T) {
	for _, method := range []string{weightSharing, fastWeightSharing, randomSearch, successiveHalving} {
		for fail := 1; fail <= 2; fail++ {
			_, err := fakeSearch(&fake{quality: eight, fail: fail}, method).run(context.Background())
			require.ErrorContains(t, err, "singular", method)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := fakeSearch(&fake{quality: eight}, method).run(ctx)
		require.ErrorIs(t, err, context.Canceled, method)
	}
}

func TestSignalOfAKnownProblem(t *testing.T) {
	r, err := signal(context.Background(), &fake{quality: eight}, 8, 64, 1, func(string) {})
	require.NoError(t, err)
	for _, series := range []string{"shared", "alone", "cell"} {
		for c, v := range r.Series[series] {
			require.InDelta(t, 1-eight[c]-1.0/64, v, 1e-12, series)
		}
	}
	require.InDelta(t, 1, spearman(r.Series["shared"], r.Series["alone"]), 1e-12)
}

func TestSpearman(t *testing.T) {
	require.Equal(t, []float64{0, 2.5, 1, 2.5}, ranks([]float64{1, 7, 2, 7}))
	require.InDelta(t, -1, spearman([]float64{1, 2, 3}, []float64{9, 4, 1}), 1e-12)
	require.True(t, math.IsNaN(spearman([]float64{1, 1}, []float64{1, 2})), "a constant has no rank")
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfNDistinct(rapid.IntRange(-50, 50), 3, 20, rapid.ID).Draw(t, "x")
		x, y := make([]float64, len(draw)), make([]float64, len(draw))
		for i, v := range draw {
			x[i], y[i] = float64(v), math.Exp(float64(v)/10)
		}
		require.InDelta(t, 1, spearman(x, y), 1e-9, "a monotone map changes no rank")
	})
}

func TestSpreadKeepsBothClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 300).Draw(t, "of")
		n := rapid.IntRange(1, of).Draw(t, "n")
		places := spread(n, of)
		require.Len(t, places, n)
		for i, at := range places {
			require.True(t, at >= 0 && at < of && (i == 0 || at > places[i-1]), "%v", places)
		}
		if n >= 8 { // both halves, and both parities
			require.InDelta(t, 0.5, float64(len(slices.DeleteFunc(slices.Clone(places), func(v int) bool { return 2*v >= of })))/float64(n), 0.13)
			odd := len(slices.DeleteFunc(slices.Clone(places), func(v int) bool { return v%2 == 0 }))
			require.True(t, odd >= n/8, "%d odd places of %v", odd, places)
		}
	})
}

func TestConfigurationsAreOfTheSpace(t *testing.T) {
	for i, c := range imageConfigs(64, 3) {
		require.NoError(t, c.Check())
		require.True(t, c.Gamma >= 1e-5 && c.Gamma <= 10)
		require.Equal(t, c, imageConfigs(i+1, 3)[i], "the first ones are the same whatever n is")
	}
	tokenizers, hashes := map[string]bool{}, map[uint32]bool{}
	for _, c := range reviewConfigs(64, 3, "code", true) {
		require.NoError(t, c.Check())
		require.True(t, c.Alpha >= 1e-5 && c.Alpha <= 10 && c.Order >= 1 && c.Order <= 3)
		tokenizers[c.Tokenizer], hashes[c.HashSeed] = true, true
	}
	require.Equal(t, map[string]bool{"simple": true, "custom": true, "treebank": true}, tokenizers)
	require.Len(t, hashes, 64)
	shared := reviewConfigs(64, 3, "paper", false)
	for _, c := range shared {
		require.Equal(t, shared[0].HashSeed, c.HashSeed)
		require.NotEqual(t, "simple", c.Tokenizer)
	}
}

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

// Sharing among equal configurations is training one of them: the assignment
// must make no difference, on both problems.
func TestSharingOneConfigurationIsTrainingIt(t *testing.T) {
	p := small(t)
	for _, task := range p.Tasks {
		o, err := p.open(t.Context(), task)
		require.NoError(t, err)
		_, _, err = o.device()
		require.NoError(t, err)
		defer o.close()
		q := o.problem(4, 0)
		n := q.points(trainSplit)
		together, spent, err := q.train(t.Context(), broadcast([]int{2}, n), 32, 5, false)
		require.NoError(t, err)
		require.Positive(t, spent.madds)
		alone, _, err := q.train(t.Context(), []int{2}, 32, 5, true)
		require.NoError(t, err)
		a, _, err := together.values(t.Context(), testSplit, []int{2})
		require.NoError(t, err)
		b, _, err := alone.values(t.Context(), testSplit, broadcast([]int{2}, q.points(testSplit)))
		require.NoError(t, err)
		require.InDeltaSlice(t, a, b, 1e-4, task)
		mixed, _, err := q.train(t.Context(), append([]int{0}, broadcast([]int{2}, n-1)...), 32, 5, false)
		require.NoError(t, err)
		c, _, err := mixed.values(t.Context(), testSplit, []int{2})
		require.NoError(t, err)
		require.NotEqual(t, a, c, "one example under another map must count")
	}
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

	p3 := Figure3Quick
	p3.TaskParams, p3.Configs, p3.ImageDim, p3.ReviewDim = p1.TaskParams, 4, 16, 256
	p3.ImageArms, p3.ImageRungs, p3.ImageEta, p3.ReviewArms, p3.ReviewRungs = 4, 2, 2, 4, 2
	p3.Methods = append(slices.Clone(p3.Methods), hyperband)
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

// Random search that tunes λ is random search where the range is one number,
// and another search where it is not.
func TestRandomSearchTunesLambda(t *testing.T) {
	ctx := isolated(t)
	p := Figure2Quick
	p.TaskParams, p.Configs, p.ImageDim, p.ReviewDim = small(t), 4, 16, 256
	p.Methods = []string{randomSearch, randomSearchLambda}
	found := map[float64]*Figure2Result{}
	for _, highest := range []float64{p.Lambda, 1e4} {
		p.LambdaMin, p.LambdaMax = p.Lambda, highest
		r, err := Figure2(ctx, p)
		require.NoError(t, err)
		require.NoError(t, r.Figure().Validate())
		require.Len(t, r.Check(), 2)
		for _, c := range r.Check() {
			require.Contains(t, c.Name, "lambda-search")
			require.NotContains(t, c.Note, "not run")
		}
		found[highest] = r
	}
	for _, task := range p.Tasks {
		for seed, plain := range found[p.Lambda].found[searchKey{task, randomSearch}] {
			of := func(highest float64) *runs.Record {
				return found[highest].found[searchKey{task, randomSearchLambda}][seed]
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
	p.StoredOnly, p.Methods = true, append(slices.Clone(p.Methods), hyperband)
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
			require.True(t, c.Holds == runs.NotKnown || c.Name == checkNASCount().Name, c.Name)
		}
	}
}

func TestFiguresRefuseWhatMakesNoSense(t *testing.T) {
	var usage *catalog.UsageError
	for name, change := range map[string]func(*Figure3Params){
		"task":    func(p *Figure3Params) { p.Tasks = []string{"mnist"} },
		"none":    func(p *Figure3Params) { p.Tasks = nil },
		"fresh":   func(p *Figure3Params) { p.Fresh = []string{"hash"} },
		"method":  func(p *Figure3Params) { p.Methods = []string{"grid"} },
		"twice":   func(p *Figure3Params) { p.Methods = []string{"rs", "rs"} },
		"configs": func(p *Figure3Params) { p.Configs = 0 },
		"dim":     func(p *Figure3Params) { p.ReviewDim = 0 },
		"growth":  func(p *Figure3Params) { p.Growth = 0.5 },
		"ladder":  func(p *Figure3Params) { p.ImageRungs = 0 },
		"steep":   func(p *Figure3Params) { p.ImageDim, p.ImageRungs = 3, 5 },
		"clock":   func(p *Figure3Params) { p.Clock = "days" },
		"reading": func(p *Figure3Params) { p.Reading = "slides" },
		"lambda":  func(p *Figure3Params) { p.Lambda = 0 },
		"lambdas": func(p *Figure3Params) { p.LambdaMin, p.LambdaMax = 1, 0.1 },
		"seeds":   func(p *Figure3Params) { p.Seeds = 0 },
		"train":   func(p *Figure3Params) { p.Images, p.Tasks, p.ImageTrain = data.Synthetic, []string{imageTask}, 1<<30 },
	} {
		p := Figure3Quick
		change(&p)
		_, err := Figure3(isolated(t), p)
		require.ErrorAs(t, err, &usage, name)
	}
	_, err := Figure1(isolated(t), Figure1Params{quickTasks, 1, []int{8}})
	require.ErrorAs(t, err, &usage)
	_, err = Figure1(isolated(t), Figure1Params{quickTasks, 4, []int{8, 8}})
	require.ErrorAs(t, err, &usage)
}

// As the code has it, the last rung counts where it keeps arms, and random
// search always has an incumbent.
func TestRulesOfTheBaselines(t *testing.T) {
	p := Figure3Paper
	p.Reading = "code"
	for _, want := range []struct{ task, method, incumbent string }{
		{imageTask, successiveHalving, "promoted"}, // ends with one arm, η = 4
		{reviewTask, successiveHalving, "any"},     // ends with two, η = 2
		{imageTask, randomSearch, "any"},
	} {
		rules, err := p.rules(want.task, want.method)
		require.NoError(t, err)
		require.Equal(t, want.incumbent, rules.Incumbent, want)
	}
	q := Figure2Quick
	q.TaskParams, q.Configs, q.ReviewDim = small(t), 4, 256
	q.Tasks, q.Reading, q.Methods = []string{reviewTask}, "code", []string{randomSearch}
	r, err := Figure2(isolated(t), q)
	require.NoError(t, err)
	for _, v := range r.atCall(reviewTask, randomSearch, "best", 1) {
		require.GreaterOrEqual(t, v, 0.0)
	}
}

// Hyperband's brackets at the authors' settings begin with what they ran.
func TestLaddersAreTheAuthors(t *testing.T) {
	p := Figure3Paper
	p.ReviewDim = 1 << 24
	images, err := p.ladders(imageTask, successiveHalving)
	require.NoError(t, err)
	require.Equal(t, [][]halving.Rung{{{Arms: 64, Resource: 1562}, {Arms: 16, Resource: 6250}, {Arms: 4, Resource: 25000}, {Arms: 1, Resource: 100000}}}, images)
	reviews, err := p.ladders(reviewTask, hyperband)
	require.NoError(t, err)
	require.Len(t, reviews, 4)
	require.Equal(t, []halving.Rung{{Arms: 18, Resource: 1 << 21}, {Arms: 9, Resource: 1 << 22}, {Arms: 4, Resource: 1 << 23}, {Arms: 2, Resource: 1 << 24}}, reviews[0])
	require.Equal(t, []halving.Rung{{Arms: 4, Resource: 1 << 24}}, reviews[3])
	require.Equal(t, 9, p.solves())
}

// What the notebooks show with StoredOnly is there, all of it.
func TestLargeScalesAreShipped(t *testing.T) {
	canonical := func(params any, seed uint64) string {
		var plain any
		raw, err := json.Marshal(params)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &plain))
		raw, err = json.Marshal(plain) // sorts the keys
		require.NoError(t, err)
		return fmt.Sprint(string(raw), seed)
	}
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	all, _, err := store.With(shippedRecords).List()
	require.NoError(t, err)
	shipped := map[string]bool{}
	for _, r := range all {
		shipped[canonical(r.Trial.Params, r.Trial.Seed)] = true
	}
	one := Figure1Large
	for _, seed := range runs.Seeds(one.Seeds) {
		for _, d := range one.Dims {
			require.True(t, shipped[canonical(signalTrial{one.trial(imageTask), one.Configs, d}, seed)], "Figure 1, d = %d, seed %d", d, seed)
		}
	}
	reviews := Figure3Paper
	reviews.Tasks = []string{reviewTask}
	for _, p := range []Figure2Params{Figure2Large, Figure3Large, reviews} {
		for _, method := range p.Methods {
			trial, err := p.searchTrial(p.Tasks[0], method)
			require.NoError(t, err)
			for _, seed := range runs.Seeds(p.Seeds) {
				require.True(t, shipped[canonical(trial, seed)], "%s, %s, seed %d", p.Tasks, method, seed)
			}
		}
	}
}
