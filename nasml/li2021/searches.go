package li2021

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/internal/memory"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/searching"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// searchFigure is the name under which all figures of the paper keep searches.
const searchFigure = "li2021/search"

var (
	searchKind        = code.Define(searchFigure, "li2021/internal/searching")
	searchDevicesKind = code.Define("li2021/search-devices", "li2021/internal/searching")
)

// found is a row with the searches that were run, nil where one was not.
type found struct {
	row       row
	settings  search.Settings
	space     supernet.Space  // of NAS-Bench-201's kind, else zero
	blocks    simplex.Product // of θ
	records   []*runs.Record
	images    int         // that are searched on, all of them
	synthetic bool        // no publisher's
	changes   []string    // of the preset's settings, by Vary
	pick      search.Pick // which epoch's architecture counts; empty: the last
}

// base is a row without what an entry adds to it.
func (f found) base() found { return f }

// searched are the rows of an entry.
func searched[T interface{ base() found }](gs lab.Groups[T]) []found {
	return basesOf(gs.Part(searchPart).Trials())
}

func basesOf[T interface{ base() found }](rows []T) (all []found) {
	for _, f := range rows {
		all = append(all, f.base())
	}
	return all
}

// searchPart is the part of an entry that its searches are.
const searchPart = "search"

// searchGroups reads or runs the searches of rows for an entry, whose trial of adds to a row what it needs.
func searchGroups[T any](
	ctx context.Context, p SearchParams, title string, rows []string, of func(found) (T, error),
) (gs lab.Groups[T], err error) {
	all, err := p.run(ctx, title, rows)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		t, err := of(f)
		if err != nil {
			return nil, err
		}
		gs = append(gs, lab.Group[T]{Part: searchPart, Seeds: p.Seeds, Trial: t, Records: f.records})
	}
	return gs, nil
}

// noteOfSearches is empty: their captions say the scale, see [searchCaption].
func noteOfSearches(any) string { return "" }

// run checks parameters and reads or runs the searches of the rows, one after the
// other, each with its own checkpoint and stored as it ends. Images are loaded
// before the first that is missing.
func (p SearchParams) run(ctx context.Context, title string, names []string) ([]found, error) {
	rows := rowsNamed(names)
	if err := p.check(rows); err != nil || len(rows) == 0 {
		return nil, err
	}
	if p.Folder != "" {
		photographs, err := trainingPhotographs(p.Folder)
		if err != nil {
			return nil, err
		}
		facts := data.Facts{Fingerprint: photographs.Fingerprint, Len: photographs.Len()}
		return p.runFrom(ctx, title, rows, facts, inFiles(photographs))
	}
	if side, err := p.syntheticSide(rows); err != nil {
		return nil, err
	} else if side > 0 {
		return p.runOnSynthetic(ctx, title, rows, side)
	}
	images, err := data.View{Name: p.Data, Split: data.Train, First: p.Examples}.Open(ctx)
	if err != nil {
		return nil, err
	}
	return p.runOn(ctx, title, rows, images.Facts, images.Images)
}

// syntheticSide is the side of the synthetic images of which halves have the sides that
// the rows want; 0 where those are another set's or the default ones, of 28 pixels, do.
func (p SearchParams) syntheticSide(rows []row) (int, error) {
	if p.Data != data.Synthetic {
		return 0, nil
	}
	side, default28 := 8, true // at least 8 are drawn
	for _, w := range rows {
		s, err := p.settings(w)
		if err != nil {
			return 0, err
		}
		side, default28 = max(side, s.Image), default28 && (s.Image == 28 || s.Image == 14 || s.Image == 7)
	}
	if default28 {
		return 0, nil
	}
	return side, nil
}

// syntheticLen is how many synthetic images there are where Examples is 0.
const syntheticLen = 10_000

// runOnSynthetic is run on synthetic images of a side, of ten classes.
func (p SearchParams) runOnSynthetic(ctx context.Context, title string, rows []row, side int) ([]found, error) {
	made, err := data.SyntheticImages(1, cmp.Or(p.Examples, syntheticLen), data.ImageSpec{Height: side, Width: side})
	if err != nil {
		return nil, err
	}
	facts := data.Facts{Fingerprint: made.Fingerprint, Len: made.Len(), Synthetic: true}
	return p.runOn(ctx, title, rows, facts, func(context.Context) (*data.Images, error) { return made, nil })
}

// trainingPhotographs are those of a folder with train in it.
func trainingPhotographs(dir string) (*data.PhotoFolder, error) {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil, catalog.Usagef("Folder: %s is not there: want a folder with ILSVRC-2012's photographs in train, "+
			"with a folder a class", dir)
	}
	return data.OpenPhotoFolder(filepath.Join(dir, "train"))
}

// loader gives the images of a search when they are needed.
type loader func(ctx context.Context) (*data.Images, error)

// source makes the searcher of a row of what is searched on.
type source func(ctx context.Context, b compute.Backend, s search.Settings) (*search.Runner, error)

// inMemory are images that are loaded at the first call. They are copied where they
// are a part of a set, so that the others can go.
func inMemory(load loader, part bool) source {
	return func(ctx context.Context, b compute.Backend, s search.Settings) (*search.Runner, error) {
		images, err := load(ctx)
		if err != nil {
			return nil, err
		}
		if part {
			images.Pixels, part = slices.Clone(images.Pixels), false
		}
		// What reading the images took would lie beside what compiling takes, which
		// is the peak of a search.
		debug.FreeOSMemory()
		return search.New(b, s, images)
	}
}

// inFiles are photographs.
func inFiles(folder *data.PhotoFolder) source {
	return func(_ context.Context, b compute.Backend, s search.Settings) (*search.Runner, error) {
		return search.NewOf(b, s, data.Photographs{PhotoFolder: folder, Side: s.Image, Crop: s.Crop, Train: true})
	}
}

// runOn is run on images of which the facts are known.
func (p SearchParams) runOn(
	ctx context.Context, title string, rows []row, facts data.Facts, images loader,
) (all []found, err error) {
	return p.runFrom(ctx, title, rows, facts, inMemory(images, p.Examples > 0))
}

// runFrom is the same from any source.
func (p SearchParams) runFrom(
	ctx context.Context, title string, rows []row, facts data.Facts, from source,
) (all []found, err error) {
	var cases []study.Case
	for _, w := range rows {
		f, err := p.find(w)
		if err != nil {
			return nil, err
		}
		of, err := p.cases(f, facts)
		if err != nil {
			return nil, err
		}
		f.images, f.synthetic = facts.Len, p.synthetic()
		all, cases = append(all, f), append(cases, of...)
	}
	records, err := p.searches(ctx, title, all, cases, facts.Len, from)
	if err != nil {
		return nil, err
	}
	for i, row := range rowsOf(records, p.Seeds) {
		all[i].records = row
	}
	return all, nil
}

// find is a row before its searches are looked for.
func (p SearchParams) find(w row) (found, error) {
	s, err := p.settings(w)
	if err != nil {
		return found{}, err
	}
	space, err := s.Open(10)
	if err != nil {
		return found{}, err
	}
	changes, err := p.changes(w, s)
	if err != nil {
		return found{}, err
	}
	return found{
		row: w, settings: s, changes: changes, space: supernet.Spaces[s.Space].Without(s.Without...),
		blocks: space.Network().Architecture(),
	}, nil
}

// cases of a row, one a seed. What a reader added goes by what it computes.
func (p SearchParams) cases(f found, images data.Facts) ([]study.Case, error) {
	key, err := f.settings.Key()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.row.named(), err)
	}
	seconds := sync.OnceValue(func() float64 { // of all seeds
		return forecast.Search(f.settings, images.Len).Seconds
	})
	return study.Each(p.Seeds, func(uint64) study.Case {
		return study.Case{
			Params: searching.Trial{Settings: key, Examples: p.Examples}, Data: images.Fingerprint,
			Label: f.row.named(), Units: forecast.Units(f.settings, images.Len), Forecast: seconds,
		}
	}), nil
}

// searches reads or runs the searches of all rows.
func (p SearchParams) searches(
	ctx context.Context, title string, all []found, cases []study.Case, examples int, from source,
) ([]*runs.Record, error) {
	s := study.Study{
		ID: searchFigure, Title: title, Code: searchKind, Shipped: shippedRecords, StoredOnly: p.StoredOnly,
		Amount: func(params json.RawMessage) float64 {
			var t searching.Trial
			if err := json.Unmarshal(params, &t); err != nil {
				return 0
			}
			return forecast.Search(t.Settings, cmp.Or(t.Examples, examples)).Seconds
		},
	}
	if p.Devices > 1 {
		s.Code = searchDevicesKind
	}
	return p.searchesOf(ctx, s, plainSearch, all, cases, examples, from)
}

// searchRun runs one search of a row.
type searchRun func(
	ctx context.Context, f *found, r *search.Runner, seed uint64, o search.Options,
) (trial.Result, error)

func plainSearch(
	ctx context.Context, f *found, r *search.Runner, seed uint64, o search.Options,
) (trial.Result, error) {
	return searching.Run(ctx, r, f.blocks, seed, o)
}

// searchesOf reads or runs the searches of a study whose results run makes.
func (p SearchParams) searchesOf(
	ctx context.Context, s study.Study, run searchRun, all []found, cases []study.Case, examples int, from source,
) ([]*runs.Record, error) {
	title, storedOnly := s.Title, s.StoredOnly
	s.Title, s.StoredOnly = "", true
	stored, err := s.Run(ctx, cases)
	if err != nil || storedOnly {
		return stored, err
	}
	if !runs.Looks(ctx) {
		if title, err = p.withCost(ctx, s, title, all, cases, stored, examples); err != nil {
			return nil, err
		}
	}
	s.StoredOnly, s.Title = false, title
	s.Device = onDevices(p.Devices)
	searches := &searchLab{from: from, live: newLive(), run: run}
	defer searches.close()
	return s.Batch(ctx, cases, runs.Options{MaxBatch: 1}, func(
		ctx context.Context, job *runs.Job, progress runs.Progress,
	) error {
		at := job.Index[0]
		return searches.search(ctx, &all[at/p.Seeds], job, progress, cases[at].Units)
	})
}

// onDevices opens what searches and trainings are computed on, which a study names.
func onDevices(n int) func() (name, device string, err error) {
	return func() (name, device string, err error) {
		b, err := backend.OpenDevices(n)
		if err != nil {
			return "", "", err
		}
		name, device = backend.Describe(b)
		return name, device, nil
	}
}

// withCost is a title that says what the missing searches will cost, where that
// is more than some minutes: ", about 31 h and 2.7 GB (forecast)". Its time is what
// `nasml status` shows too.
func (p SearchParams) withCost(
	ctx context.Context, s study.Study, title string, all []found, cases []study.Case, stored []*runs.Record,
	images int,
) (string, error) {
	store, err := s.Store(ctx)
	if err != nil {
		return "", err
	}
	seconds := s.Forecasts(store, cases)
	var sum forecast.Cost
	for i, r := range stored {
		if r == nil {
			cost := forecast.Search(all[i/p.Seeds].settings, images)
			cost.Seconds = seconds(cases[i])
			sum = sum.Then(cost)
		}
	}
	return title + sum.String(), nil
}

// searchLab runs one search after the other. It compiles once for all seeds of a row.
type searchLab struct {
	from   source
	live   *live
	of     *found // whose searcher is open; nil: none
	runner *search.Runner
	run    searchRun
}

func (l *searchLab) close() {
	if l.runner != nil {
		l.runner.Close()
	}
	l.of, l.runner = nil, nil
}

// open makes the searcher of a row.
func (l *searchLab) open(ctx context.Context, f *found) error {
	if l.of == f {
		return nil
	}
	l.close()
	b, err := backend.OpenDevices(f.settings.Devices)
	if err != nil {
		return err
	}
	if l.runner, err = l.from(ctx, b, f.settings); err != nil {
		return err
	}
	l.of = f
	return nil
}

// search runs the one search of a job and stores it.
func (l *searchLab) search(
	ctx context.Context, f *found, job *runs.Job, progress runs.Progress, total int,
) error {
	seed := job.Trials[0].Seed
	named := func(err error) error { return fmt.Errorf("%s, seed %d: %w", f.row.named(), seed, err) }
	if l.of != f {
		progress.Step(0, f.row.title()+", compiling")
	}
	if err := l.open(ctx, f); err != nil {
		return named(err)
	}
	pace, memory := lab.Pace{Progress: progress, Units: total}, ""
	observe := func(m search.Moment) {
		if memory == "" && m.Step >= 3 { // all that a search needs has been taken by then
			memory = peakMemory()
		}
		pace.At(m.Epoch, m.Epochs, m.Step, m.Steps, fmt.Sprintf("%s, seed %d, epoch %d/%d%s",
			f.row.named(), seed, min(m.Epoch+1, m.Epochs), m.Epochs, memory))
		l.live.show(f, seed, m)
	}
	l.live.begin(f, seed)
	result, err := l.run(ctx, f, l.runner, seed, search.Options{
		Load: job.LoadTelling(progress), Save: job.Save, SaveEvery: checkpointEvery, Observe: observe,
	})
	if err == nil {
		err = job.Done(0, result)
	}
	if err != nil {
		return named(err)
	}
	pace.End("")
	return nil
}

// peakMemory is the most memory that this process has had, as a note to its
// progress, ", 1.4 GB"; empty where the system does not tell.
func peakMemory() string {
	if bytes := memory.Peak("self"); bytes > 0 {
		return fmt.Sprintf(", %.1f GB", bytes/1e9)
	}
	return ""
}

// checkpointEvery bounds what a killed search loses.
var checkpointEvery = runs.Interval(20 * time.Second)
