package mapsearch

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/khodak2020/halving"
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
		Search: Search{
			Method: method, Configs: len(p.quality), Dim: 64, Growth: math.Sqrt2, Solves: 3,
			Ladders: [][]halving.Rung{{{Arms: 8, Resource: 16}, {Arms: 4, Resource: 32}, {Arms: 2, Resource: 64}}},
		},
		p: p, rules: halving.AsPaper(), step: func(string) {},
	}
}

var eight = []float64{0.5, 0.3, 0.7, 0.2, 0.6, 0.4, 0.1, 0.8}

func TestWeightSharingSearchByHand(t *testing.T) {
	p := &fake{quality: eight}
	r, err := fakeSearch(p, WeightSharing).run(context.Background())
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
	fast, err := fakeSearch(q, FastWeightSharing).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int{32, 46, 64}, q.trained[:3])
	require.Equal(t, []float64{32, 46, 64, 64}, fast.Series["dim"])
}

func TestBaselineSearchesByHand(t *testing.T) {
	p := &fake{quality: eight}
	r, err := fakeSearch(p, RandomSearch).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 1}, r.Series["best"])
	require.Len(t, p.trained, 3, "its own training is the oracle")
	require.Equal(t, r.Series["observed"], r.Series["oracle"])
	require.Equal(t, []float64{64, 128, 192}, r.Series["madds"])

	p = &fake{quality: eight}
	r, err = fakeSearch(p, SuccessiveHalving).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 6, 6, 6, 6}, r.Series["best"])
	require.InDelta(t, 0.1+1.0/16, r.Series["observed"][7], 1e-12, "as good as at the dimension it was tried with")
	require.InDelta(t, 0.1+1.0/64, r.Series["oracle"][7], 1e-12)
	require.InDelta(t, 0.1+1.0/64, r.Series["observed"][13], 1e-12)
	require.Equal(t, float64(8*16+4*32+2*64), r.Values["madds"])

	s := fakeSearch(&fake{quality: eight}, SuccessiveHalving)
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
	s := fakeSearch(&fake{quality: []float64{0.5, 0.25}}, SuccessiveHalving)
	r, err := s.run(context.Background())
	require.NoError(t, err)
	require.Equal(t, 1.0, r.Series["best"][13])
	p := &fake{quality: []float64{0.5}}
	r, err = fakeSearch(p, WeightSharing).run(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float64{0}, r.Series["best"])
	require.Len(t, p.trained, 2, "the winner and its oracle")
}

func TestSearchesReportErrors(t *testing.T) {
	for _, method := range []string{WeightSharing, FastWeightSharing, RandomSearch, SuccessiveHalving} {
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
}

func TestConfigurationsAreOfTheSpace(t *testing.T) {
	for i, c := range imageConfigs(64, 3) {
		require.NoError(t, c.Check())
		require.True(t, c.Gamma >= 1e-5 && c.Gamma <= 10)
		require.Equal(t, c, imageConfigs(i+1, 3)[i], "the first ones are the same whatever n is")
	}
	tokenizers, hashes := map[string]bool{}, map[uint32]bool{}
	for _, c := range reviewConfigs(64, 3, Setting{Reading: "code", Tokenizer: "nltk", Fresh: true}) {
		require.NoError(t, c.Check())
		require.True(t, c.Alpha >= 1e-5 && c.Alpha <= 10 && c.Order >= 1 && c.Order <= 3)
		tokenizers[c.Tokenizer], hashes[c.HashSeed] = true, true
	}
	require.Equal(t, map[string]bool{"simple": true, "custom": true, "nltk": true}, tokenizers)
	require.Len(t, hashes, 64)
	shared := reviewConfigs(64, 3, Setting{Reading: "paper"})
	clear(tokenizers)
	for _, c := range shared {
		require.Equal(t, shared[0].HashSeed, c.HashSeed)
		tokenizers[c.Tokenizer] = true
	}
	require.Equal(t, map[string]bool{"whitespace": true, "custom": true, "treebank": true}, tokenizers)
}

// As the code has it, the last rung counts where it keeps arms, and random
// search always has an incumbent.
func TestRulesOfTheBaselines(t *testing.T) {
	ladder := func(last int) [][]halving.Rung { return [][]halving.Rung{{{Arms: 18}, {Arms: last}}} }
	for _, want := range []struct {
		search    Search
		incumbent string
	}{
		{Search{Method: SuccessiveHalving, Ladders: ladder(1), Eta: 4}, "promoted"}, // CIFAR-10's ends with one arm
		{Search{Method: SuccessiveHalving, Ladders: ladder(2), Eta: 2}, "any"},      // IMDb's ends with two
		{Search{Method: Hyperband, Ladders: append(ladder(1), ladder(2)...), Eta: 2}, "any"},
		{Search{Method: RandomSearch}, "any"},
		{Search{Method: RandomSearchLambda}, "any"},
		{Search{Method: WeightSharing}, "promoted"},
	} {
		want.search.Reading = "code"
		require.Equal(t, want.incumbent, want.search.rules().Incumbent, want.search)
		want.search.Reading = "paper"
		require.Equal(t, halving.AsPaper(), want.search.rules())
	}
}

func TestCalls(t *testing.T) {
	require.Equal(t, 9, Search{Configs: 256, Method: WeightSharing}.Calls())
	require.Equal(t, 5, Search{Configs: 256, Solves: 5}.Calls())
	require.Equal(t, 7, Search{Ladders: [][]halving.Rung{{{Arms: 4}, {Arms: 2}}, {{Arms: 1}}}}.Calls())
}

func TestValidationImagesBeginAtFortyThousand(t *testing.T) {
	require.Equal(t, 40000, ValidFrom(50000))
	require.Equal(t, 80, ValidFrom(100))
}

// small are generated images and reviews, a few of each split, with the images'
// features on the pure Go backend.
func small(t *testing.T) map[string]Data {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	engine := features.NewEngine(b)
	t.Cleanup(engine.Close)
	sizes := [3]int{96, 64, 64}
	im, err := data.SyntheticImages(1, 224, data.ImageSpec{})
	require.NoError(t, err)
	texts, err := data.SyntheticReviews(1, 224, data.ReviewSpec{})
	require.NoError(t, err)
	var images [3]Images
	var reviews [3]Reviews
	from := 0
	for s, n := range sizes {
		at := from
		images[s] = Images{im.Labels[at : at+n], func(i int) []uint8 { return im.Image(at + i) }}
		reviews[s] = Reviews{texts.Texts[at : at+n], texts.Signs()[at : at+n]}
		from += n
	}
	all, err := NewImages(engine, images, 1<<30)
	require.NoError(t, err)
	return map[string]Data{ImageTask: all, ReviewTask: NewReviews(reviews)}
}

func smallSetting(task string) Setting {
	return Setting{Task: task, Reading: "paper", Lambda: 0.5, Tol: 1e-3, Epochs: 100}
}

// A figure tells apart the configurations that a trial of the seed trains.
func TestMapsAreThoseThatAreTrained(t *testing.T) {
	for task, examples := range small(t) {
		signal := Signal{Setting: smallSetting(task), Configs: 6, Dim: 8}
		maps := signal.Maps(3)
		require.Len(t, maps, 6)
		for i, m := range maps {
			switch p := examples.problem(signal.Setting, 6, 3).(type) {
			case *imageProblem:
				require.Equal(t, Map{string(p.configs[i].Kernel), p.configs[i].Gamma}, m)
			case *reviewProblem:
				require.Equal(t, Map{p.configs[i].Weighting, p.configs[i].Alpha}, m)
			}
		}
	}
}

// Pixels become numbers in [0, 1] in their order, and every split has its own.
func TestImagesAreRowsOfTheirSplit(t *testing.T) {
	pixels := [][]uint8{{0, 255}, {51, 102}}
	table, labels := Images{[]uint8{7, 3}, func(i int) []uint8 { return pixels[i] }}.table()
	require.Equal(t, []float32{0, 1, 0.2, 0.4}, table.Data)
	require.Equal(t, []int{2, 2}, []int{table.Rows, table.Cols})
	require.Equal(t, []int{7, 3}, labels)
	reviews := NewReviews([3]Reviews{{[]string{"a", "b"}, []int8{1, -1}}, {[]string{"c"}, []int8{-1}}, {}})
	p := reviews.problem(Setting{Lambda: 1}, 1, 0)
	require.Equal(t, []int{2, 1, 0}, []int{p.points(trainSplit), p.points(validSplit), p.points(testSplit)})
	require.Equal(t, []int8{-1}, p.(*reviewProblem).signs[validSplit])
}

// Sharing among equal configurations is training one of them: the assignment
// must make no difference, on both problems.
func TestSharingOneConfigurationIsTrainingIt(t *testing.T) {
	for task, examples := range small(t) {
		q := examples.problem(smallSetting(task), 4, 0)
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
