package oymak2021

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/gap"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Figure3Params are the parameters of Figure 3 and of Figure 1 (c): searches by DARTS with several n_V.
type Figure3Params struct {
	// Vary changes the settings of the searches with n_V validation images, after the fields below. The same for all
	// is --set WeightDecay=0 on the command line.
	Vary func(validation string, s *search.Settings) `json:"-"`

	Method string // of search.Methods, shipped or own
	Space  string // a name that search.Settings.Space may have
	Preset string `validate:"oneof=quick paper code"` // search.AsQuickOn, AsPaperOn, AsCodeOn

	// Fields at 0 leave what the preset says.
	Channels, Cells, Image, Epochs, Batch int

	Data       data.Name // images of its training split, part after part
	Train      int       `validate:"gte=2"`                      // n_T
	Validation []int     `validate:"min=2,ascending,dive,gte=2"` // n_V, ascending
	Test       int       `validate:"gte=2"`                      // images that estimate the test error
	Curves     []int     // of Validation: those of which Figure 1 (c) draws the errors
	At         []int     `validate:"dive,gte=1"` // epochs at which the gap is drawn over n_V

	Seeds      int     `validate:"gte=2"`
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

// Figure3Quick has nine searches of three cells on 500 images of 8×8 pixels. Figure3Large, at --scale large, takes a
// night on two cores: five cells of 16 channels on 2,500 images of 16×16 pixels and all of the paper's n_V.
// Figure3Paper has Section 7b's 10,000 training images, 50 epochs and five runs; it does not say batch and rates, which
// are DARTS'. It was not run.
var (
	Figure3Quick = Figure3Params{
		Method: "darts", Space: "darts", Preset: "quick", Epochs: 6, Batch: 10,
		Data: data.CIFAR10, Train: 500, Validation: []int{20, 100, 500}, Test: 1000,
		Curves: []int{20, 500}, At: []int{1, 6}, Seeds: 3, Confidence: 0.95,
	}
	Figure3Large = func() Figure3Params {
		p := Figure3Quick
		p.Channels, p.Cells, p.Image, p.Epochs, p.Batch, p.Train = 16, 5, 16, 20, 64, 2500
		p.Validation, p.Curves, p.At = []int{20, 50, 100, 250, 500, 1000}, []int{20, 100, 250, 1000}, []int{5, 10, 20}
		return p
	}()
	Figure3Paper = func() Figure3Params {
		p := Figure3Quick
		p.Preset, p.Epochs, p.Batch, p.Train, p.Test = "paper", 50, 0, 10000, 10000
		p.Validation, p.Curves = []int{20, 50, 100, 250, 500, 1000}, []int{20, 100, 250, 1000}
		p.At, p.Seeds = []int{10, 30, 50}, 5
		return p
	}()
)

// Figure3 runs searches with several n_V, one after the other. It returns an error if a search diverges.
var Figure3 = lab.Declare(lab.Entry[Figure3Params, int]{ // n_V
	Of: ofPaper, Name: "figure3", Kind: lab.Figure, Source: "Section 7b and Figure 3", Notebook: "figure3_gap",
	Title: "Test and validation error of DARTS' supernet over the number of validation images",
	Cost: catalog.Cost{
		Quick: "7 minutes on two cores; its searches are precomputed",
		Paper: "not measured; hours a search on a GPU",
	},
	Quick: Figure3Quick, Paper: Figure3Paper,
	Also:     []catalog.Preset[Figure3Params]{{Scale: catalog.Large, Params: Figure3Large}},
	Settings: figure3Settings,
	Code:     code.Define("oymak2021/figure3", "oymak2021/internal/gap"),
	Note:     study.SettingNote,
	Rules:    Figure3Params.rules,
	Trials: func(p Figure3Params) (gs lab.Groups[int]) {
		gs.Add("searches", p.Seeds, p.Validation...)
		return gs
	},
	Bench: figure3Bench,
	Draw:  drawFigure3,
	Questions: []lab.Question[Figure3Params, int]{
		{Name: "ends", Claims: judgeEnds}, {Name: "trends", Claims: judgeTrends},
	},
})

type figure3 = lab.Result[Figure3Params, int]

func (p Figure3Params) rules(c *study.Checks) {
	for _, n := range p.Curves {
		c.Expect(slices.Contains(p.Validation, n), "Curves must be among Validation, %v, got %d", p.Validation, n)
	}
	for _, e := range p.At {
		c.Expect(p.Epochs == 0 || e <= p.Epochs, "At must have epochs from 1 to %d, got %d", p.Epochs, e)
	}
}

func figure3Bench(ctx context.Context, p Figure3Params, _ string) (b lab.Bench[int], err error) {
	settings, keys, costs := map[int]search.Settings{}, map[int]any{}, map[int]func() forecast.Cost{}
	for _, n := range p.Validation {
		s, err := p.settings(n)
		if err != nil {
			return b, err
		}
		key, err := s.Key()
		if err != nil {
			return b, err
		}
		settings[n], keys[n] = s, gap.Trial{Settings: key}
		costs[n] = sync.OnceValue(func() forecast.Cost { return forecast.Search(s, p.Train+n+p.Test) })
	}
	images, err := data.View{Name: p.Data, Split: data.Train}.Open(ctx)
	if err != nil {
		return b, err
	}
	b = lab.Bench[int]{
		Study: study.Study{Device: backend.Opener(1), Amount: lab.Amount(func(t gap.Trial) float64 {
			of := t.Settings.Parts
			return forecast.Search(t.Settings, of.Train+of.Validation+of.Test).Seconds
		})},
		Key:     func(n int) any { return keys[n] },
		Data:    func(int) string { return images.Fingerprint },
		Label:   func(n int) string { return fmt.Sprintf("n_V = %d", n) },
		Units:   func(n int) int { return settings[n].Epochs },
		Seconds: func(n int) float64 { return costs[n]().Seconds },
		Cost:    forecast.Title(func(n int) forecast.Cost { return costs[n]() }),
	}
	lab.Each(&b, func(ctx context.Context, s lab.Seed[int]) (*search.Runner, error) {
		set, err := images.Images(ctx)
		if err != nil {
			return nil, err
		}
		device, err := backend.Open()
		if err != nil {
			return nil, err
		}
		return search.New(device, settings[s.Trial], set)
	}, func(ctx context.Context, r *search.Runner, s lab.Seed[int]) (trial.Result, error) {
		return gap.Run(ctx, r, s.Seed, search.Options{
			Load: s.Load, Save: s.Save, SaveEvery: s.SaveEvery,
			Observe: func(m search.Snapshot) { s.Pace.At(m.Epoch, m.Epochs, m.Step, m.Steps, "") },
		})
	})
	return b, nil
}

func (p Figure3Params) settings(validation int) (search.Settings, error) {
	s, err := map[string]func(space, method string) (search.Settings, error){
		"quick": search.AsQuickOn, "paper": search.AsPaperOn, "code": search.AsCodeOn,
	}[p.Preset](p.Space, p.Method)
	if err != nil {
		return s, catalog.Usagef("%v", err)
	}
	for field, value := range map[*int]int{
		&s.Channels: p.Channels, &s.Cells: p.Cells, &s.Image: p.Image, &s.Epochs: p.Epochs, &s.Batch: p.Batch,
	} {
		if value != 0 {
			*field = value
		}
	}
	// The last batch of an epoch may be smaller: n_V need not be a multiple of it.
	s.Split, s.EvaluateEvery, s.Bilevel.KeepLast = "random", 1, true
	if err := study.Vary(p.Vary, strconv.Itoa(validation), &s, elsewhere); err != nil {
		return s, err
	}
	s.Parts = search.Shares{Train: p.Train, Validation: validation, Test: p.Test}
	if err := s.Check(); err != nil {
		return s, catalog.Usagef("searches with %d validation images: %s", validation,
			strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s, nil
}

// elsewhere are the settings that are parameters.
var elsewhere = map[string]string{
	"Method": "set Method", "Space": "set Space", "Parts": "set Train, Validation and Test",
	"EvaluateEvery": "every epoch is drawn",
}

func (p Figure3Params) changes(validation int) []string {
	if p.Vary == nil {
		return nil
	}
	plain := p
	plain.Vary = nil
	before, _ := plain.settings(validation)
	after, _ := p.settings(validation)
	return study.Differences(before, after)
}

func figure3Settings() []runs.Claim {
	const source = "Oymak+ 2021, Section 7b and Figure 3"
	p := Figure3Paper
	return []runs.Claim{
		verdict.Setting("[figure3-setup] training images", source, p.Train, 10000),
		verdict.Setting("[figure3-epochs] epochs", source, p.Epochs, 50),
		verdict.Setting("[figure3-ops] operations of an edge", source, supernet.CellSpaces[p.Space].Options(), 8),
		verdict.Setting("[figure3-runs] runs", source, p.Seeds, 5),
		verdict.Setting("[figure3-nv-range] fewest validation images", source, slices.Min(p.Validation), 20),
		verdict.Setting("[figure3-nv-range] most validation images", source, slices.Max(p.Validation), 1000),
	}
}

// errorsAt are the errors on a part after an epoch, from 1, of the finished searches with the i-th n_V.
func errorsAt(r *figure3, i int, part string, epoch int) []float64 {
	return study.Column(r.Groups[i:i+1].Rows(part), epoch-1)
}

func gaps(r *figure3, i, epoch int) []float64 {
	out := errorsAt(r, i, "test", epoch)
	floats.Sub(out, errorsAt(r, i, "validation", epoch))
	return out
}

func epochs(r *figure3) int {
	for _, n := range r.Groups.Values("epochs") {
		return int(n)
	}
	return 0
}

// drawFigure3 draws the errors over the epochs, a panel for each of Curves as in Figure 1 (c), and the gap over the
// epochs and over n_V as in Figure 3.
func drawFigure3(r *figure3, f *lab.Picture) {
	p, gap := r.Params, plots.Axis{Label: "test − validation error"}
	f.Style = plots.ICML
	f.Row()
	for _, n := range p.Curves {
		i := slices.Index(p.Validation, n)
		panel := plots.Panel{Title: called(n), X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "error"}}
		for _, part := range []string{"train", "validation", "test"} {
			panel.Series = append(panel.Series,
				overEpochs(r, part, 0, func(e int) []float64 { return errorsAt(r, i, part, e) }))
		}
		f.Add(panel)
	}
	over := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: gap}
	for i, n := range p.Validation {
		over.Series = append(over.Series, overEpochs(r, called(n), -1, func(e int) []float64 { return gaps(r, i, e) }))
	}
	sizes := plots.Panel{X: logAxis("$n_V$"), Y: gap}
	for _, e := range p.At {
		lists := study.Map(trial.Indices(0, len(p.Validation)), func(i int) []float64 { return gaps(r, i, e) })
		sizes.Series = append(sizes.Series, r.Band(fmt.Sprintf("after epoch %d", e), study.Floats(p.Validation), lists))
	}
	f.Row(over, sizes)
	f.Say("Searches by %s on %s, %d training images of %s; test error: on %d further images of the training split; %s.",
		search.Methods[p.Method].Title, study.SpaceTitle(p.Space), p.Train, strings.ToUpper(string(p.Data)), p.Test,
		r.Interval("band", p.Seeds, "seed"))
	lab.Changes(f, p.Validation, called, p.changes)
}

func called(validation int) string { return fmt.Sprintf("$n_V$ = %d", validation) }

// overEpochs is the mean over the searches after every epoch, with its interval between least and 1.
func overEpochs(r *figure3, label string, least float64, of func(epoch int) []float64) plots.Series {
	var x []float64
	var means []runs.Summary
	for e := 1; e <= epochs(r); e++ {
		if values := of(e); len(values) > 0 {
			x, means = append(x, float64(e)), append(means, r.Mean(values).Within(least, 1))
		}
	}
	return plots.Band(label, x, means)
}

func onFigure1C(r *figure3, format string, args ...any) lab.Claim {
	return r.Claim(format, args...).From("Section 7b and Figure 1 (c)")
}

// judgeEnds judges the claims of Section 7b at the ends of Validation and of the epochs; judgeTrends takes all of them.
func judgeEnds(r *figure3) []runs.Claim {
	last, most := epochs(r), len(r.Params.Validation)-1
	few, many := r.Params.Validation[0], r.Params.Validation[most]
	end, wide := gaps(r, 0, last), study.Map(gaps(r, most, last), math.Abs)
	return []runs.Claim{
		judgeSupernet(r),
		larger(r, r.Claim("[figure3-decrease] the gap falls with the number of validation images").
			Noting("|test − validation error| with n_V = %d less that with %d, the ends of Validation, after %d epochs",
				few, many, last), study.Map(end, math.Abs), wide),
		larger(r, r.Claim("[figure3-overfit] the search overfits few validation images").
			Noting("test minus validation error with the fewest, n_V = %d, after %d epochs", few, last),
			end, make([]float64, len(end))),
		larger(r, r.Claim("[figure3-epochs-gap] the gap grows with the epochs").
			Noting("test minus validation error with n_V = %d after %d epochs less that after one", few, last),
			end, gaps(r, 0, 1)),
		larger(r, onFigure1C(r, "[figure1c-overfit] the test risk is worse with few validation images").
			Noting("test error with n_V = %d less that with %d, the ends of Validation, after %d epochs",
				few, many, last),
			errorsAt(r, 0, "test", last), errorsAt(r, most, "test", last)),
		onFigure1C(r, "[figure1c-val-tracks] validation error tracks test error with the most samples").
			Noting("mean |test − validation error| with n_V = %d after %d epochs, at most %v", many, last,
				trackedWithin).Mean(wide).AtMost(trackedWithin),
		judgeTrainZero(r, most, last),
	}
}

func judgeSupernet(r *figure3) runs.Claim {
	c := onFigure1C(r, "[figure1c-h] hyperparameters of the supernet").Claim
	s, err := r.Params.settings(r.Params.Validation[0])
	if err != nil {
		return c
	}
	space, err := s.Open(10)
	if err != nil {
		return c
	}
	numbers := 0
	for _, b := range space.Network().Architecture() {
		numbers += b.Rows * b.Options
	}
	return verdict.Exactly(c, float64(numbers), 224, 0)
}

func judgeTrainZero(r *figure3, most, last int) runs.Claim {
	c := onFigure1C(r, "[figure1c-train-zero] training error zero after %d epochs", zeroFrom).
		Noting("with the most validation images, n_V = %d, after epoch %d: at most %v",
			r.Params.Validation[most], zeroFrom, zeroWithin)
	if last < zeroFrom {
		return c.NotRun("the searches need %d epochs, they have %d", zeroFrom, last)
	}
	return c.Mean(errorsAt(r, most, "train", zeroFrom)).Between(0, 0, zeroWithin)
}

// larger judges whether a is above b over the seeds, if both have all.
func larger(r *figure3, c lab.Claim, a, b []float64) runs.Claim {
	if c = c.Says(0); len(a) < r.Params.Seeds || len(b) < r.Params.Seeds {
		return c.NotRun("%d and %d of %d searches", len(a), len(b), r.Params.Seeds)
	}
	return c.Difference(a, b).Above(0)
}

// Thresholds of Section 7b: the search overfits up to fewValidation images, and from enoughValidation on their error
// tracks the test error. The training error is "consistently zero" after epoch zeroFrom.
const (
	fewValidation    = 100
	enoughValidation = 250
	zeroFrom         = 30
)

// These two are ours: the largest distance of test and validation error that "almost perfectly tracks" allows, and the
// largest training error that is zero.
const (
	trackedWithin = 0.03
	zeroWithin    = 0.01
)

// judgeTrends judges the statements of Section 7b and Figure 1 over all n_V and all epochs, by one number a seed.
func judgeTrends(r *figure3) []runs.Claim {
	few, enough, last := sizesBetween(r, 0, fewValidation), sizesBetween(r, enoughValidation, math.MaxInt), epochs(r)
	mean := func(of []int, value func(*runs.Record) float64) perSeed {
		return func(seed int) (float64, error) {
			if len(of) == 0 {
				return 0, fmt.Errorf("the sizes of Validation must include some up to %d and some from %d on, got %v",
					fewValidation, enoughValidation, r.Params.Validation)
			}
			sum := 0.
			for _, i := range of {
				sum += value(r.Groups[i].Records[seed])
			}
			return sum / float64(len(of)), nil
		}
	}
	return []runs.Claim{
		trend(r, r.Claim("own: the gap falls over all numbers of validation images").
			Noting("slope over log₁₀ n_V of |test − validation error| after %d epochs, all of Validation", last),
			slopeOverSizes(r)).Below(0),
		trend(r, r.Claim("own: the search overfits with all n_V up to %d", fewValidation).
			Noting("test minus validation error after %d epochs, mean over %s", last, named(r, few)),
			mean(few, gapOf)).Above(0),
		trend(r, r.Claim("own: the gap grows over all epochs").
			Noting("slope over epochs of test minus validation error, mean over all of Validation"),
			slopeOverEpochs(r)).Above(0),
		trend(r, onFigure1C(r, "own: the test risk is worse with all n_V up to %d than with all from %d on",
			fewValidation, enoughValidation).
			Noting("mean test error over %s less that over %s, after %d epochs", named(r, few), named(r, enough), last),
			difference(mean(few, testOf), mean(enough, testOf))).Above(0),
		judgeTracks(r, enough),
		judgeZero(r),
	}
}

func trend(r *figure3, c lab.Claim, of perSeed) lab.Statistic {
	if c = c.Says(0); missing(r) != nil {
		return c.Of(runs.Summary{}, missing(r))
	}
	return c.OverSeeds(r.Params.Seeds, of)
}

// judgeTracks judges whether the validation error tracks the test error with every n_V that is enough, by the farthest.
func judgeTracks(r *figure3, enough []int) runs.Claim {
	c := onFigure1C(r, "own: validation error tracks test error with every n_V from %d on", enoughValidation).Says(0).
		Noting("the largest mean |test − validation error| of %s after %d epochs, at most %v", named(r, enough),
			epochs(r), trackedWithin)
	if err := missing(r); err != nil {
		return c.NotRun("%v", err)
	}
	if len(enough) == 0 {
		return c.NotRun("Validation is %v", r.Params.Validation)
	}
	distances := study.Map(enough, func(i int) []float64 { return study.Map(gaps(r, i, epochs(r)), math.Abs) })
	return c.Of(verdict.Worst(distances, r.Confidence)).AtMost(trackedWithin)
}

// judgeZero judges whether the training error is zero with every n_V after every epoch from zeroFrom on.
func judgeZero(r *figure3) runs.Claim {
	c := onFigure1C(r, "own: training error zero with every n_V after every epoch from %d on", zeroFrom).
		Noting("a seed's largest of all n_V and epochs, at most %v", zeroWithin)
	if last := epochs(r); last < zeroFrom {
		return c.NotRun("the searches need %d epochs, they have %d", zeroFrom, last)
	}
	return trend(r, c, func(seed int) (float64, error) {
		return slices.Max(study.Map(ofSeed(r.Groups, seed), func(record *runs.Record) float64 {
			return max(0, slices.Max(record.Series["train"][zeroFrom-1:]))
		})), nil
	}).AtMost(zeroWithin)
}

func missing(r *figure3) error {
	all := r.Groups.Records()
	ran := len(only(all, func(record *runs.Record) bool {
		return record != nil && len(record.Series["test"]) >= epochs(r)
	}))
	if ran < len(all) || epochs(r) == 0 {
		return fmt.Errorf("%d of %d searches", ran, len(all))
	}
	return nil
}

func sizesBetween(r *figure3, lo, hi int) []int {
	return only(trial.Indices(0, len(r.Params.Validation)), func(i int) bool {
		return lo <= r.Params.Validation[i] && r.Params.Validation[i] <= hi
	})
}

// named are places in Validation in words, "n_V = 20, 100".
func named(r *figure3, at []int) string {
	if len(at) == 0 {
		return "no n_V"
	}
	return "n_V = " + listed(study.Map(at, func(i int) int { return r.Params.Validation[i] }))
}

// testOf is the test error after the last epoch, gapOf that less the validation error.
func testOf(record *runs.Record) float64 { return lastOf(record, "test") }

func gapOf(record *runs.Record) float64 { return testOf(record) - lastOf(record, "validation") }

// slopeOverSizes is the slope of a seed's |gap| after the last epoch over log₁₀ n_V, by least squares.
func slopeOverSizes(r *figure3) perSeed {
	x := r.Groups.X(func(n int) float64 { return math.Log10(float64(n)) })
	return func(seed int) (float64, error) {
		y := study.Map(ofSeed(r.Groups, seed), func(record *runs.Record) float64 { return math.Abs(gapOf(record)) })
		_, slope := stat.LinearRegression(x, y, nil, false)
		return slope, nil
	}
}

// slopeOverEpochs is the slope of a seed's gap over the epochs, mean over all n_V.
func slopeOverEpochs(r *figure3) perSeed {
	return func(seed int) (float64, error) {
		if epochs(r) < 2 {
			return 0, errors.New("one epoch has no slope")
		}
		x, y := study.Floats(trial.Indices(1, epochs(r))), make([]float64, epochs(r))
		for _, record := range ofSeed(r.Groups, seed) {
			floats.Add(y, record.Series["test"])
			floats.Sub(y, record.Series["validation"])
		}
		_, slope := stat.LinearRegression(x, y, nil, false)
		return slope / float64(len(r.Groups)), nil
	}
}
