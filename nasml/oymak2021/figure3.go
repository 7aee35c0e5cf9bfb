package oymak2021

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// Figure3Quick has nine searches of three cells on 500 images of 8×8 pixels. Figure3Large, at --scale large, took two
// cores 7.6 hours beside other work: five cells of 16 channels on 2,500 images of 16×16 pixels and all of the paper's
// n_V. Figure3Paper has Section 7b's 10,000 training images, 50 epochs and five runs; it does not say batch and rates,
// which are DARTS'. It was not run.
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
		Paper: "about 11 days on two cores (forecast); a GPU",
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
		verdict.Setting("[figure1c-h] hyperparameters of the supernet", source, p.hyperparameters(), 224),
		verdict.Setting("[figure3-setup] training images", source, p.Train, 10000),
		verdict.Setting("[figure3-epochs] epochs", source, p.Epochs, 50),
		verdict.Setting("[figure3-ops] operations of an edge", source, supernet.CellSpaces[p.Space].Options(), 8),
		verdict.Setting("[figure3-runs] runs", source, p.Seeds, 5),
		verdict.Setting("[figure3-nv-range] fewest validation images", source, slices.Min(p.Validation), 20),
		verdict.Setting("[figure3-nv-range] most validation images", source, slices.Max(p.Validation), 1000),
	}
}

// hyperparameters is h, the number of architecture parameters, 0 where the space does not open.
func (p Figure3Params) hyperparameters() (h int) {
	s, err := p.settings(p.Validation[0])
	space, also := s.Open(10)
	if errors.Join(err, also) != nil {
		return 0
	}
	for _, b := range space.Network().Architecture() {
		h += b.Rows * b.Options
	}
	return h
}
