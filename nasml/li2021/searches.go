// Package li2021 reproduces the figures, tables and theorems of Li, Khodak,
// Balcan, Talwalkar, "Geometry-Aware Gradient Algorithms for Neural
// Architecture Search", ICLR 2021 (GAEA, Li+ 2021).
//
// Its figures on NAS-Bench-201 are drawn from the same searches: a search that
// one of them has run is read by the others.
package li2021

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// SearchParams are the parameters of the weight-sharing searches behind a
// figure. A field at 0 leaves what the preset says.
type SearchParams struct {
	Preset string // "quick", "paper" or "code": search.AsQuick, AsPaper, AsCode

	Channels int // C of the first stage
	Cells    int // N of each stage
	Image    int // side of the images, pixels
	Epochs   int
	Batch    int

	Without       []string // operations left out; "" alone: none; empty: the preset's
	Update        string   // of the GAEA methods: a name of simplex.Updates
	Hypergradient string   // of the mixture methods: a name of bilevel.Hypergradients
	ArchRate      float64  // step size of the GAEA methods

	// Several devices of one host, each with its share of every batch. A search
	// on several is a trial of its own, whose numbers are those of one device
	// to rounding, unless Statistics is "device": see package search.
	Devices    int    `json:",omitempty"` // 0 or 1: one
	Statistics string `json:",omitempty"` // of batch norm: "synchronised" (or empty) or "device"

	Data       data.Name // the images that are searched on
	Examples   int       // the first so many training images; 0: all
	Seeds      int
	Confidence float64 // of the intervals
	StoredOnly bool    // show what the run store has and compute nothing
}

// quickSearch is what two cores can show: 4,000 images of CIFAR-10.
var quickSearch = SearchParams{Preset: "quick", Data: data.CIFAR10, Examples: 4000, Seeds: 5, Confidence: 0.95}

// paperSearch is the paper's setting: four runs, all images.
var paperSearch = SearchParams{Preset: "paper", Data: data.CIFAR10, Seeds: 4, Confidence: 0.95}

// row names a search: a method of search.Methods, with "/erm" where weights and
// architecture share all images, or "darts/benchmark" for DARTS as Dong & Yang
// 2020 ran it.
type row string

func (w row) method() string {
	method, _, _ := strings.Cut(string(w), "/")
	return method
}

func (w row) variant() string {
	_, variant, _ := strings.Cut(string(w), "/")
	return variant
}

// title is how tables and legends call a row.
func (w row) title() string {
	title := search.Methods[w.method()].Title
	switch {
	case w.variant() == "erm":
		return title + " (ERM)"
	case w.variant() == "benchmark":
		return title + " (with none)"
	case strings.HasSuffix(w.method(), "darts"):
		return title + " (bilevel)"
	}
	return cmp.Or(title, string(w))
}

// check says what is wrong with a row.
func (w row) check() error {
	if _, ok := search.Methods[w.method()]; !ok {
		return fmt.Errorf("row %q: no search method is called %q", w, w.method())
	}
	if v := w.variant(); v != "" && v != "erm" && (w.method() != "darts" || v != "benchmark") {
		return fmt.Errorf("row %q: want METHOD, METHOD/erm or darts/benchmark", w)
	}
	return nil
}

// settings are those of a row.
func (p SearchParams) settings(w row) (search.Settings, error) {
	presets := map[string]func(string) (search.Settings, error){"quick": search.AsQuick, "paper": search.AsPaper, "code": search.AsCode}
	preset, ok := presets[p.Preset]
	if !ok {
		return search.Settings{}, catalog.Usagef("Preset is %q, want quick, paper or code", p.Preset)
	}
	s, err := preset(w.method())
	if err != nil {
		return s, err
	}
	switch w.variant() {
	case "erm":
		s.Bilevel.Level = bilevel.ERM
	case "benchmark":
		if p.Preset != "quick" {
			s = search.AsBenchmark()
		}
		s.Without = nil
	}
	if own, ok := data.Augments["autodl-"+string(p.Data)]; ok { // each set is normalised by its own mean
		s.Augment.Mean, s.Augment.Std = own.Mean, own.Std
	}
	p.vary(&s)
	if err := s.Check(); err != nil {
		return s, catalog.Usagef("settings of %s: %v", w, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s, nil
}

// vary sets what the parameters say.
func (p SearchParams) vary(s *search.Settings) {
	for _, f := range []struct {
		value int
		field *int
	}{{p.Channels, &s.Channels}, {p.Cells, &s.Cells}, {p.Image, &s.Image}, {p.Epochs, &s.Epochs}, {p.Batch, &s.Batch}} {
		if f.value != 0 {
			*f.field = f.value
		}
	}
	if len(p.Without) > 0 {
		s.Without = slices.DeleteFunc(slices.Clone(p.Without), func(op string) bool { return op == "" })
	}
	if p.Devices > 1 { // one device keeps the key that it always had
		s.Devices = p.Devices
		if p.Statistics != "synchronised" {
			s.Statistics = search.Statistics(p.Statistics)
		}
	}
	method := search.Methods[s.Method]
	if _, moves := simplex.Updates[method.Update]; moves {
		s.Update, s.ArchRate = cmp.Or(p.Update, s.Update), cmp.Or(p.ArchRate, s.ArchRate)
	}
	if method.Architecture == search.Mixture && method.Weights == search.Mixture {
		s.Bilevel.Hypergradient = cmp.Or(p.Hypergradient, s.Bilevel.Hypergradient)
	}
}

// check looks at what the settings of a row do not.
func (p SearchParams) check(rows []row) error {
	var wrong []string
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	expect(slices.Contains(append(data.Names(), data.Synthetic), p.Data), "Data is %q, want one of %v", p.Data, append(data.Names(), data.Synthetic))
	expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	expect(p.Examples >= 0, "Examples is %d, want 0 (all) or more", p.Examples)
	expect(p.Devices >= 0, "Devices is %d, want 1 or more", p.Devices)
	expect(p.Statistics == "" || p.Devices > 1, "Statistics is %q with one device: leave it empty, or set Devices to 2 or more", p.Statistics)
	expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	for i, w := range rows {
		err := w.check()
		expect(err == nil, "%v", err)
		expect(!slices.Contains(rows[:i], w), "the row %q is there twice", w)
	}
	if len(wrong) > 0 {
		return catalog.Usagef("%s", strings.Join(wrong, "; "))
	}
	for _, w := range rows {
		if _, err := p.settings(w); err != nil {
			return err
		}
	}
	return nil
}

// searchFigure is the name under which all figures of the paper keep searches.
const searchFigure = "li2021/search"

// searchTrial is what a search depends on besides seed, code and images.
type searchTrial struct {
	Settings search.Settings `json:"settings"`
	Examples int             `json:"examples"`
}

//go:embed records
var shippedRecords embed.FS

// searchCode is the version of all code that a search runs.
var searchCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(search.Sources, supernet.NetSources, bilevel.Sources, simplex.Sources, data.AugmentSources)
})

// devicesCode is the same of a search on several devices.
var devicesCode = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(search.Sources, search.DeviceSources, supernet.NetSources, bilevel.Sources, simplex.Sources, data.AugmentSources)
})

// searches runs searches and keeps them.
type searches struct {
	SearchParams
	images   *data.Images
	store    *runs.Store
	progress runs.Progress
	code     string
	live     *live
}

// searches opens what the searches need.
func (p SearchParams) searches(ctx context.Context) (*searches, error) {
	store, err := runs.FromContextWith(ctx, shippedRecords, "search")
	if err != nil {
		return nil, err
	}
	version := searchCode
	if p.Devices > 1 {
		version = devicesCode
	}
	code, err := version()
	if err != nil {
		return nil, err
	}
	images, err := data.Load(ctx, p.Data, data.Train)
	if err != nil {
		return nil, err
	}
	if p.Examples > 0 {
		if images, err = images.Head(p.Examples); err != nil {
			return nil, err
		}
		images.Pixels = slices.Clone(images.Pixels) // so that the other images can go
	}
	// What reading the images took would lie beside what compiling takes, which
	// is the peak of a search.
	debug.FreeOSMemory()
	return &searches{p, images, store, runs.ProgressFrom(ctx), code, newLive()}, nil
}

// trials of a row, one a seed.
func (s *searches) trials(settings search.Settings) []runs.Trial {
	var trials []runs.Trial
	for _, seed := range runs.Seeds(s.Seeds) {
		trials = append(trials, runs.Trial{
			Figure: searchFigure, Params: searchTrial{settings, s.Examples}, Seed: seed, Code: s.code, Data: s.images.Fingerprint,
		})
	}
	return trials
}

// found is a row with the searches that were run, nil where one was not.
type found struct {
	row      row
	settings search.Settings
	space    supernet.Space
	records  []*runs.Record
	pick     search.Pick // which epoch's architecture counts; empty: the last
}

// run reads or runs the searches of all rows.
func (s *searches) run(ctx context.Context, title string, rows []row) ([]found, error) {
	total := 0
	all := make([]found, len(rows))
	for i, w := range rows {
		settings, err := s.settings(w)
		if err != nil {
			return nil, err
		}
		all[i] = found{row: w, settings: settings, space: supernet.Spaces[settings.Space].Without(settings.Without...)}
		total += s.Seeds * s.units(settings)
	}
	forecast, err := s.forecast(all)
	if err != nil {
		return nil, err
	}
	s.progress.Start(total, title+forecast)
	defer s.progress.Done()
	for i := range all {
		if err := s.compute(ctx, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].row.title(), err)
		}
	}
	return all, nil
}

// forecast says what the searches that the store lacks will cost, where that is
// more than some minutes: ", about 31 h and 2.7 GB (forecast)". Of a GPU nothing
// is known before its first step.
func (s *searches) forecast(all []found) (string, error) {
	var work, memory float64
	for _, f := range all {
		records, err := s.store.Stored(s.trials(f.settings))
		if err != nil || s.StoredOnly {
			return "", err
		}
		missing := 0
		for _, r := range records {
			if r == nil {
				missing++
			}
		}
		if missing > 0 {
			one := f.settings.Forecast(s.images.Len())
			work += float64(missing) * one.Wall(runtime.NumCPU())
			memory = max(memory, one.Bytes)
		}
	}
	if work < 300 || strings.Contains(os.Getenv("GOMLX_BACKEND"), "cuda") {
		return "", nil
	}
	return fmt.Sprintf(", about %s and %.1f GB on this machine's processors (forecast)", roughly(work), memory/1e9), nil
}

// roughly is a time with as many digits as a forecast has.
func roughly(seconds float64) string {
	switch {
	case seconds < 5400:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

// units is the cost of a search in image passes.
func (s *searches) units(settings search.Settings) int {
	images, passes := s.images.Len()/2, 1
	if settings.Bilevel.Level == bilevel.ERM {
		images = s.images.Len()
	}
	if search.Methods[settings.Method].Architecture != search.NoPass {
		passes = 2
	}
	return max(1, settings.Epochs*images*passes/1000)
}

// compute reads or runs the searches of a row.
func (s *searches) compute(ctx context.Context, f *found) error {
	trials := s.trials(f.settings)
	if s.StoredOnly {
		var err error
		f.records, err = s.store.Stored(trials)
		s.progress.Skip(s.Seeds * s.units(f.settings))
		return err
	}
	var searcher search.Runner
	ran := 0
	defer func() {
		if searcher != nil {
			searcher.Close()
		}
	}()
	var err error
	for _, trial := range trials { // one after the other, each with its own checkpoint, stored as it ends
		var records []*runs.Record
		records, err = s.store.Compute(ctx, []runs.Trial{trial}, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
			ran++
			if searcher == nil {
				b, err := backend.OpenDevices(f.settings.Devices)
				if err != nil {
					return err
				}
				if searcher, err = search.New(b, f.settings, s.images); err != nil {
					return err
				}
			}
			return s.search(ctx, f, searcher, job)
		})
		if err != nil {
			return err
		}
		f.records = append(f.records, records...)
	}
	s.progress.Skip((s.Seeds - ran) * s.units(f.settings))
	return nil
}

// search runs the one search of a job and stores it.
func (s *searches) search(ctx context.Context, f *found, searcher search.Runner, job *runs.Job) error {
	b, err := backend.OpenDevices(f.settings.Devices)
	if err != nil {
		return err
	}
	job.Backend, job.Device = backend.Describe(b)
	seed, total := job.Trials[0].Seed, s.units(f.settings)
	booked := -1
	memory := ""
	observe := func(m search.Moment) {
		now := int(float64(total) * (float64(m.Epoch) + float64(m.Step)/float64(m.Steps)) / float64(m.Epochs))
		if booked < 0 { // what a checkpoint brought along says nothing about the pace
			booked = now - max(1, total/m.Epochs/m.Steps)
			booked = max(0, booked)
			s.progress.Skip(booked)
		}
		if memory == "" && m.Step >= 3 { // all that a search needs has been taken by then
			memory = peakMemory()
		}
		s.progress.Step(max(0, now-booked), fmt.Sprintf("%s, seed %d, epoch %d/%d%s", f.row.title(), seed, min(m.Epoch+1, m.Epochs), m.Epochs, memory))
		booked = max(booked, now)
		s.live.show(f, seed, m)
	}
	s.live.begin(f, seed)
	curve, err := searcher.Search(ctx, seed, search.Options{Load: job.Load, Save: job.Save, SaveEvery: checkpointEvery, Observe: observe})
	if err != nil {
		return err
	}
	return job.Done(0, result(curve, f.space))
}

// peakMemory is the most memory that this process has had, as a note to its
// progress, ", 1.4 GB"; empty where the system does not tell.
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	var kilobytes float64
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			return fmt.Sprintf(", %.1f GB", kilobytes/1e6)
		}
	}
	return ""
}

// checkpointEvery bounds what a killed search loses.
var checkpointEvery = 20 * time.Second

// result is a search as a record.
func result(c *search.Curve, space supernet.Space) runs.Result {
	var theta, final []float64
	for _, t := range c.Theta {
		theta = append(theta, t...)
	}
	for _, o := range c.Final {
		final = append(final, float64(o))
	}
	series := map[string][]float64{"theta": theta, "final": final, "entropy": c.Entropy(len(space.Ops))}
	for name, curve := range map[string][]float64{
		"train_loss": c.TrainLoss, "train_accuracy": c.TrainAccuracy, "valid_loss": c.ValidLoss, "valid_accuracy": c.ValidAccuracy,
		"evaluated": c.Evaluated, "supernet": c.Supernet, "discrete": c.Discrete,
	} {
		if len(curve) > 0 {
			series[name] = curve
		}
	}
	return runs.Result{Values: map[string]float64{"epochs": float64(len(c.TrainLoss))}, Series: series}
}

// searchCost says what the searches of a figure cost.
var searchCost = catalog.Cost{
	Quick: "about 1 to 2 minutes a search on two cores; the project ships those of the presets",
	Paper: "hours a search on a GPU, days on two cores",
}
