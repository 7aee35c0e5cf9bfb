package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/oymak2021/internal/gap"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure3Params are the parameters of Figure 3 and of Figure 1 (c): searches by
// DARTS with validation parts of several sizes. Every field of search.Settings is one
// of them, p.LearningRate = 0.05, p.Bilevel.Warmup = 2; what is to be 0, false or empty
// is named, p.Zero = []string{"WeightDecay"}.
type Figure3Params struct {
	search.Settings `json:"SearchSettings,omitzero"`
	Zero            []string `json:",omitempty"` // fields of Settings that are 0, false or empty

	Method string // of search.Methods, shipped or own
	Space  string // a name that search.Settings.Space may have
	Preset string // "quick", "paper" or "code": search.AsQuickOn, AsPaperOn, AsCodeOn

	// Fields at 0 leave what the preset says.
	Channels, Cells, Image, Epochs, Batch int

	Data       data.Name // images of its training split, part after part
	Train      int       // n_T
	Validation []int     // n_V, ascending
	Test       int       // images that estimate the test error
	Curves     []int     // of Validation: those of which Figure 1 (c) draws the errors
	At         []int     // epochs at which the gap is drawn over n_V

	Seeds      int
	Confidence float64
}

// Figure3Quick has nine searches of three cells on 500 images of 8×8 pixels.
// Figure3Large, at --scale large, fits into a night on two cores: five cells of 16
// channels on 2,500 images of 16×16 pixels and all of the paper's n_V. It was not run.
// Figure3Paper has Section 7b's 10,000 training images, 50 epochs and five runs;
// batch and rates, which it does not say, are DARTS'; it was not
// run.
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

const (
	figure3ID     = "oymak2021/figure3"
	figure3Title  = "Test and validation error of DARTS' supernet over the number of validation images"
	figure3Source = "Oymak+ 2021, Section 7b and Figure 3"
	figure1CPaper = "Oymak+ 2021, Section 7b and Figure 1 (c)"
)

var figure3Kind = code.Define(figure3ID, "oymak2021/internal/gap")

func init() {
	catalog.Register(catalog.Entry{
		ID: figure3ID, Paper: "Oymak+ 2021", Title: figure3Title, Kind: "figure",
		Notebook: "notebooks/oymak2021/figure3_gap.ipynb",
		Cost: catalog.Cost{
			Quick: "7 minutes on two cores; the project ships its searches",
			Paper: "not measured; hours a search on a GPU",
		},
		Settings: figure3Settings,
	}, Figure3Quick, Figure3Paper, Figure3, catalog.Preset[Figure3Params]{Scale: catalog.Large, Params: Figure3Large})
}

// Figure3Result holds the searches, n_V by n_V, of each all seeds.
type Figure3Result struct {
	Params  Figure3Params
	Scale   string // "quick", "paper" or empty for own parameters
	records [][]*runs.Record
}

// Figure3 runs what the run store lacks of the searches, one after the other.
// Cancelling ctx ends it with the finished searches stored.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError), where
// the data cannot be had, and where a search diverges.
func Figure3(ctx context.Context, p Figure3Params) (*Figure3Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	opened, err := data.View{Name: p.Data, Split: data.Train}.Open(ctx)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, opened.Facts, opened.Images)
}

// run is Figure3 on images of which the facts are known.
func (p Figure3Params) run(
	ctx context.Context, facts data.Facts, images func(context.Context) (*data.Images, error),
) (*Figure3Result, error) {
	var cases []study.Case
	var err error
	settings := make([]search.Settings, len(p.Validation))
	for i, n := range p.Validation {
		s, err := p.settings(n)
		if err != nil {
			return nil, err
		}
		key, err := s.Key()
		if err != nil {
			return nil, err
		}
		settings[i] = s
		seconds := sync.OnceValue(func() float64 { return forecast.Search(s, p.Train+n+p.Test).Seconds })
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Forecast: seconds,
				Params:   gap.Trial{Settings: key}, Data: facts.Fingerprint, Units: s.Epochs,
				Label: fmt.Sprintf("n_V = %d, seed %d", n, seed),
			}
		})...)
	}
	st := study.Study{ID: figure3ID, Code: figure3Kind, Shipped: shippedRecords}
	st.Device = func() (string, string, error) {
		b, err := backend.Open()
		if err != nil {
			return "", "", err
		}
		name, device := backend.Describe(b)
		return name, device, nil
	}
	if st.Title, err = p.forecast(ctx, st, cases); err != nil {
		return nil, err
	}
	records, err := st.Batch(ctx, cases, runs.Options{MaxBatch: 1}, func(
		ctx context.Context, job *runs.Job, progress runs.Progress,
	) error {
		at := job.Index[0]
		err := searchGap(ctx, job, settings[at/p.Seeds], images, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", cases[at].Label, err)
		}
		progress.Step(0, cases[at].Label)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Figure3Result{p, runs.Scale(ctx), slices.Collect(slices.Chunk(records, p.Seeds))}, nil
}

// searchGap runs the one search of a job from where its last checkpoint stands, and
// stores it.
func searchGap(
	ctx context.Context, job *runs.Job, s search.Settings, images func(context.Context) (*data.Images, error),
	progress runs.Progress,
) error {
	set, err := images(ctx)
	if err != nil {
		return err
	}
	b, err := backend.Open()
	if err != nil {
		return err
	}
	done := -1
	observe := func(m search.Moment) {
		if done < 0 { // what a checkpoint brought along says nothing about the pace
			progress.Skip(m.Epoch)
			done = m.Epoch
		}
		progress.Step(m.Epoch-done, "")
		done = m.Epoch
	}
	result, err := gap.Run(ctx, b, s, set, job.Trials[0].Seed, search.Options{
		Load: job.LoadTelling(progress), Save: job.Save, SaveEvery: checkpointEvery, Observe: observe,
	})
	if err != nil {
		return err
	}
	progress.Step(s.Epochs-max(0, done), "")
	return job.Done(0, result)
}

// forecast is the title of the searches with what those that the store lacks will
// cost, where that is more than some minutes.
func (p Figure3Params) forecast(ctx context.Context, st study.Study, cases []study.Case) (string, error) {
	st.StoredOnly = true
	stored, err := st.Run(ctx, cases)
	if err != nil {
		return "", err
	}
	var sum forecast.Cost
	for i, r := range stored {
		if r == nil {
			n := p.Validation[i/p.Seeds]
			s, err := p.settings(n)
			if err != nil {
				return "", err
			}
			sum = sum.Then(forecast.Search(s, p.Train+n+p.Test))
		}
	}
	return figure3ID + sum.String(), nil
}

// settings are those of the searches with so many validation images.
func (p Figure3Params) settings(validation int) (search.Settings, error) {
	of, ok := map[string]func(space, method string) (search.Settings, error){
		"quick": search.AsQuickOn, "paper": search.AsPaperOn, "code": search.AsCodeOn,
	}[p.Preset]
	if !ok {
		return search.Settings{}, catalog.Usagef("Preset is %q, want quick, paper or code", p.Preset)
	}
	s, err := of(p.Space, p.Method)
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
	// An architecture's batch may be smaller than the weights'; these have parts
	// that they divide, or a last batch that is smaller.
	s.Split, s.EvaluateEvery, s.Bilevel.KeepLast = "random", 1, true
	if err := study.Overlay(&s, p.Settings, p.Zero); err != nil {
		return s, err
	}
	s.Parts = search.Shares{Train: p.Train, Validation: validation, Test: p.Test}
	if err := s.Check(); err != nil {
		return s, catalog.Usagef("searches with %d validation images: %s", validation,
			strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s, nil
}

// SetZero notes that a field of Settings is to be 0, false or empty, which without
// this means that it is the preset's.
func (p *Figure3Params) SetZero(field string) { p.Zero = study.NoteZero(p.Zero, *p, field) }

func (p Figure3Params) check() error {
	var c study.Checks
	for _, field := range append(study.SetFields(p.Settings), p.Zero...) {
		name, _, _ := strings.Cut(field, ".")
		c.Expect(!slices.Contains([]string{"Method", "Space", "Parts", "EvaluateEvery"}, name),
			"Settings.%s is set, which the figure's own parameters say: leave it", field)
	}
	study.Ascending(&c, "Validation", p.Validation, 2, 1)
	c.AtLeast("Train", p.Train, 2)
	c.AtLeast("Test", p.Test, 2)
	c.AtLeast("Seeds", p.Seeds, 2)
	c.Confidence(p.Confidence)
	for _, n := range p.Curves {
		c.Expect(slices.Contains(p.Validation, n), "Curves has %d, want some of Validation, %v", n, p.Validation)
	}
	for _, e := range p.At {
		c.Expect(e >= 1 && (p.Epochs == 0 || e <= p.Epochs), "At has %d, want epochs from 1 to %d", e, p.Epochs)
	}
	return c.Err("figure 3")
}

// Records are the keys of the searches.
func (r *Figure3Result) Records() []string { return study.Keys(slices.Concat(r.records...)) }

// at are the errors on a part after an epoch, from 1, of the searches that were run
// with the i-th n_V.
func (r *Figure3Result) at(i int, part string, epoch int) []float64 {
	var out []float64
	for _, record := range r.records[i] {
		if record != nil && epoch <= len(record.Series[part]) {
			out = append(out, record.Series[part][epoch-1])
		}
	}
	return out
}

// gaps are test minus validation error.
func (r *Figure3Result) gaps(i, epoch int) []float64 {
	out := r.at(i, "test", epoch)
	for k, v := range r.at(i, "validation", epoch) {
		out[k] -= v
	}
	return out
}

// epochs is the number of epochs of the searches.
func (r *Figure3Result) epochs() int {
	for _, record := range slices.Concat(r.records...) {
		if record != nil {
			return int(record.Values["epochs"])
		}
	}
	return 0
}

// Figure draws the errors over the epochs, a panel for each of Curves as in Figure 1
// (c), and the gap over the epochs and over n_V as in Figure 3.
func (r *Figure3Result) Figure() plots.Figure {
	var errors []plots.Panel
	for _, n := range r.Params.Curves {
		panel := plots.Panel{
			Title: fmt.Sprintf("$n_V$ = %d", n), X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "error"},
		}
		for _, part := range []string{"train", "validation", "test"} {
			i := slices.Index(r.Params.Validation, n)
			of := func(e int) []float64 { return r.at(i, part, e) }
			panel.Series = append(panel.Series, r.overEpochs(part, 0, of))
		}
		errors = append(errors, panel)
	}
	over := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "test − validation error"}}
	for i, n := range r.Params.Validation {
		over.Series = append(over.Series,
			r.overEpochs(fmt.Sprintf("$n_V$ = %d", n), -1, func(e int) []float64 { return r.gaps(i, e) }))
	}
	sizes := plots.Panel{
		X: plots.Axis{Label: "$n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "test − validation error"},
	}
	for _, e := range r.Params.At {
		var x []float64
		var means []runs.Summary
		for i, n := range r.Params.Validation {
			if s, err := runs.Summarize(r.gaps(i, e), r.Params.Confidence); err == nil {
				x, means = append(x, float64(n)), append(means, s)
			}
		}
		sizes.Series = append(sizes.Series, plots.Band(fmt.Sprintf("after epoch %d", e), x, means))
	}
	return plots.Figure{
		Name: "oymak2021-figure3", Style: plots.ICML, Panels: [][]plots.Panel{errors, {over, sizes}},
		Caption: r.caption(), Meta: study.Meta(figure3Title, r.Scale, r.Params),
	}
}

// overEpochs is the mean over the searches after every epoch, with its interval
// from least, the end of the quantity, to 1.
func (r *Figure3Result) overEpochs(label string, least float64, of func(epoch int) []float64) plots.Series {
	var x []float64
	var means []runs.Summary
	for e := 1; e <= r.epochs(); e++ {
		if s, err := runs.Summarize(of(e), r.Params.Confidence); err == nil {
			x, means = append(x, float64(e)), append(means, s.Within(least, 1))
		}
	}
	return plots.Band(label, x, means)
}

func (r *Figure3Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("Searches by %s on %s, %d training images of %s, %d seeds; the test error is that "+
		"on %d further images of the training split. Bands: interval of the mean over seeds.",
		search.Methods[p.Method].Title, study.SpaceTitle(p.Space), p.Train, strings.ToUpper(string(p.Data)), p.Seeds,
		p.Test)
	return text + study.SettingNote(p)
}

// Check judges the claims of Section 7b: that the gap between test and validation
// error falls with n_V, that few validation images are overfitted, that the gap
// grows with the epochs, that validation tracks test with the most images, and that
// the training error goes to 0. These compare the ends of Validation and of the epochs;
// claims of ours behind them take all that lies between.
func (r *Figure3Result) Check() []runs.Claim {
	last, most := r.epochs(), len(r.Params.Validation)-1
	few, many := r.Params.Validation[0], r.Params.Validation[most]
	end := r.gaps(0, last)
	h := verdict.Claim("[figure1c-h] hyperparameters of the supernet", figure1CPaper)
	if s, err := r.Params.settings(few); err == nil {
		if space, err := s.Open(10); err == nil {
			numbers := 0
			for _, b := range space.Network().Architecture() {
				numbers += b.Rows * b.Options
			}
			h = verdict.Exactly(h, float64(numbers), 224, 0)
		}
	}
	claims := []runs.Claim{
		h,
		r.greater("[figure3-decrease] the gap falls with the number of validation images",
			fmt.Sprintf("|test − validation error| with n_V = %d less that with %d, the ends of Validation, after %d "+
				"epochs", few, many, last),
			absolute(end), absolute(r.gaps(most, last))),
		r.greater("[figure3-overfit] the search overfits few validation images",
			fmt.Sprintf("test minus validation error with the fewest, n_V = %d, after %d epochs", few, last),
			end, make([]float64, len(end))),
		r.greater("[figure3-epochs-gap] the gap grows with the epochs",
			fmt.Sprintf("test minus validation error with n_V = %d after %d epochs less that after one", few, last),
			end, r.gaps(0, 1)),
		r.greater("[figure1c-overfit] the test risk is worse with few validation images",
			fmt.Sprintf("test error with n_V = %d less that with %d, the ends of Validation, after %d epochs",
				few, many, last),
			r.at(0, "test", last), r.at(most, "test", last)),
	}
	tracks := verdict.Claim("[figure1c-val-tracks] validation error tracks test error with the most samples",
		figure1CPaper)
	s, err := runs.Summarize(absolute(r.gaps(most, last)), r.Params.Confidence)
	tracks.Note = fmt.Sprintf("mean |test − validation error| with n_V = %d after %d epochs, at most %v", many, last,
		trackedWithin)
	claims = append(claims, verdict.AtMost(tracks, s, err, trackedWithin))
	return append(append(claims, r.checkTrainZero(most, last)), r.checkTrends()...)
}

// checkTrainZero judges the training error of the searches with the most validation
// images.
func (r *Figure3Result) checkTrainZero(most, last int) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[figure1c-train-zero] training error zero after %d epochs", zeroFrom),
		figure1CPaper)
	c.Note = fmt.Sprintf("with the most validation images, n_V = %d, after epoch %d: at most %v",
		r.Params.Validation[most], zeroFrom, zeroWithin)
	if last < zeroFrom {
		return verdict.NotRun(c, fmt.Sprintf("the searches have %d epochs, want %d", last, zeroFrom))
	}
	s, err := runs.Summarize(r.at(most, "train", zeroFrom), r.Params.Confidence)
	return verdict.Between(c, s, err, 0, 0, zeroWithin)
}

// greater judges that a is above b over the seeds, where both have all.
func (r *Figure3Result) greater(name, note string, a, b []float64) runs.Claim {
	c := verdict.Claim(name, figure3Source)
	if strings.HasPrefix(name, "[figure1c") {
		c.Source = figure1CPaper
	}
	c.Paper, c.Note = 0, note
	if len(a) < r.Params.Seeds || len(b) < r.Params.Seeds {
		return verdict.NotRun(c, fmt.Sprintf("%d and %d of %d searches", len(a), len(b), r.Params.Seeds))
	}
	return verdict.Greater(c, a, b, r.Params.Confidence)
}

func absolute(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Abs(v)
	}
	return out
}
