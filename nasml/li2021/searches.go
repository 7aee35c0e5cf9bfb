package li2021

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

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

// searchFigure is the name under which all figures keep their searches.
const searchFigure = "li2021/search"

var (
	searchKind        = code.Define(searchFigure, "li2021/internal/searching")
	searchDevicesKind = code.Define("li2021/search-devices", "li2021/internal/searching")
)

// found is a row with the records of its searches, nil if not run.
type found struct {
	row       row
	settings  search.Settings
	key       searching.Trial
	cost      func() forecast.Cost // of a search
	opened    search.Space         // for ten classes, on which no architecture depends
	space     supernet.Space       // of NAS-Bench-201's kind, else zero
	oneShot   supernet.OneShot     // of NAS-Bench-1Shot1's kind, else zero
	blocks    simplex.Product      // of θ
	records   []*runs.Record
	images    int                  // that are searched on, all of them
	synthetic bool                 // no publisher's
	changes   []string             // of the preset's settings, by Vary
	rule      search.SelectionRule // which epoch's architecture counts; empty: the last

	lookups []*runs.Record               // what the table of NAS-Bench-101 says of each search; nil where it does not
	curves  map[data.Task201][][]float64 // and that of NAS-Bench-201, after each epoch from the first on
}

const searchPart = "search"

func searched(gs lab.Groups[found]) []found { return gs.Part(searchPart).Trials() }

func rowIn(all []found, w row) (found, bool) {
	if i := slices.IndexFunc(all, func(f found) bool { return f.row == w }); i >= 0 {
		return all[i], true
	}
	return found{}, false
}

// noteOfSearches is empty, since their captions state the scale, see [searchCaption].
func noteOfSearches(any) string { return "" }

// run checks parameters and reads or runs the searches of the rows, one after another, each with its own checkpoint and
// stored at its end.
func (p SearchParams) run(ctx context.Context, title string, names []string) (lab.Groups[found], error) {
	gs, err := p.plan(names)
	if err != nil {
		return nil, err
	}
	return gs, p.search(ctx, title, gs)
}

func (p SearchParams) plan(names []string) (gs lab.Groups[found], err error) {
	if len(names) == 0 {
		return nil, nil
	}
	var c study.Checks
	c.Limits(p)
	p.rules(names, &c)
	if err := c.Err("the searches"); err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := p.find(row(name))
		if err != nil {
			return nil, err
		}
		gs.Add(searchPart, p.Seeds, f)
	}
	return gs, nil
}

func (p SearchParams) search(ctx context.Context, title string, gs lab.Groups[found]) error {
	if len(gs) == 0 {
		return nil
	}
	images, err := p.open(ctx, gs.Trials())
	if err != nil {
		return err
	}
	return runSearches(ctx, p.bench(title, images, runPlain), gs, images.Len)
}

func runSearches(ctx context.Context, b lab.Bench[found], gs lab.Groups[found], images int) error {
	for i := range gs {
		gs[i].Trial = gs[i].Trial.on(images)
	}
	err := b.Compute(ctx, gs)
	for i := range gs {
		gs[i].Trial.records = gs[i].Records
	}
	return err
}

func (f found) on(images int) found {
	f.images = images
	f.cost = sync.OnceValue(func() forecast.Cost { return forecast.Search(f.settings, images) })
	return f
}

// find prepares a row. A reader's additions are keyed by what they compute.
func (p SearchParams) find(w row) (found, error) {
	s, err := p.settings(w)
	if err != nil {
		return found{}, err
	}
	opened, err := s.Open(10)
	if err != nil {
		return found{}, err
	}
	changes, err := p.changes(w, s)
	if err != nil {
		return found{}, err
	}
	key, err := s.Key()
	if err != nil {
		return found{}, fmt.Errorf("%s: %w", w.named(), err)
	}
	return found{
		row: w, settings: s, key: searching.Trial{Settings: key, Examples: p.Examples}, changes: changes,
		opened: opened, space: supernet.Spaces[s.Space].Without(s.Without...), oneShot: supernet.OneShots[s.Space],
		blocks: opened.Network().Architecture(), synthetic: p.synthetic(),
	}, nil
}

// searchImages are the images of a search, loaded before the first missing search.
type searchImages struct {
	data.Facts
	open func(ctx context.Context, b compute.Backend, s search.Settings) (*search.Runner, error)
}

// open finds the images of rows: photographs in Folder, synthetic images of the side that the rows need, or those of
// Data.
func (p SearchParams) open(ctx context.Context, rows []found) (searchImages, error) {
	side := p.syntheticSide(rows)
	switch {
	case p.Folder != "":
		return photographsIn(p.Folder)
	case side > 0:
		size := data.ImageSpec{Height: side, Width: side}
		made, err := data.SyntheticImages(1, cmp.Or(p.Examples, syntheticLen), size)
		if err != nil {
			return searchImages{}, err
		}
		facts := data.Facts{Fingerprint: made.Fingerprint, Len: made.Len(), Synthetic: true}
		return p.loaded(facts, func(context.Context) (*data.Images, error) { return made, nil }), nil
	}
	images, err := data.View{Name: p.Data, Split: data.Train, First: p.Examples}.Open(ctx)
	if err != nil {
		return searchImages{}, err
	}
	return p.loaded(images.Facts, images.Images), nil
}

// syntheticSide is the side of the synthetic images that the rows need; 0 if they search on another set or on halves of
// the default 28 pixels.
func (p SearchParams) syntheticSide(rows []found) int {
	if p.Data != data.Synthetic {
		return 0
	}
	side, default28 := 8, true // at least 8 are drawn
	for _, f := range rows {
		image := f.settings.Image
		side, default28 = max(side, image), default28 && (image == 28 || image == 14 || image == 7)
	}
	if default28 {
		return 0
	}
	return side
}

const syntheticLen = 10_000

func checkFolder(dir string) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return catalog.Usagef("Folder: %s does not exist; it must hold ILSVRC-2012's photographs in train, and for "+
			"trainings in val, one folder for each class", dir)
	}
	return nil
}

func photographsIn(dir string) (searchImages, error) {
	if err := checkFolder(dir); err != nil {
		return searchImages{}, err
	}
	folder, err := data.OpenPhotoFolder(filepath.Join(dir, "train"))
	if err != nil {
		return searchImages{}, err
	}
	facts := data.Facts{Fingerprint: folder.Fingerprint, Len: folder.Len()}
	return searchImages{facts, func(_ context.Context, b compute.Backend, s search.Settings) (*search.Runner, error) {
		return search.NewOf(b, s, data.Photographs{PhotoFolder: folder, Side: s.Image, Crop: s.Crop, Train: true})
	}}, nil
}

// loaded are images that are loaded at the first search. A part of a set is copied, so that the rest can be freed.
func (p SearchParams) loaded(facts data.Facts, load func(context.Context) (*data.Images, error)) searchImages {
	part := p.Examples > 0
	return searchImages{facts, func(ctx context.Context, b compute.Backend, s search.Settings) (*search.Runner, error) {
		images, err := load(ctx)
		if err != nil {
			return nil, err
		}
		if part {
			images.Pixels, part = slices.Clone(images.Pixels), false
		}
		// The memory that reading took would add to the peak of a search, which is compiling.
		debug.FreeOSMemory()
		return search.New(b, s, images)
	}}
}

type searchRun func(ctx context.Context, f found, r *search.Runner, seed uint64, o search.Options) (trial.Result, error)

func runPlain(
	ctx context.Context, f found, r *search.Runner, seed uint64, o search.Options,
) (trial.Result, error) {
	return searching.Run(ctx, r, f.blocks, seed, o)
}

func (p SearchParams) bench(title string, images searchImages, run searchRun) lab.Bench[found] {
	b := lab.Bench[found]{
		Study: study.Study{
			ID: searchFigure, Title: title, Code: searchKind, Shipped: shippedRecords, StoredOnly: p.StoredOnly,
			Device: backend.Opener(p.Devices), Amount: lab.Amount(func(t searching.Trial) float64 {
				return forecast.Search(t.Settings, cmp.Or(t.Examples, images.Len)).Seconds
			}),
		},
		Key:     func(f found) any { return f.key },
		Data:    func(found) string { return images.Fingerprint },
		Label:   func(f found) string { return f.row.named() },
		Units:   func(f found) int { return forecast.Units(f.settings, images.Len) },
		Seconds: func(f found) float64 { return f.cost().Seconds },
		Cost:    forecast.Title(func(f found) forecast.Cost { return f.cost() }),
	}
	if p.Devices > 1 {
		b.Code = searchDevicesKind
	}
	view := new(live)
	lab.Each(&b, func(ctx context.Context, s lab.Seed[found]) (*search.Runner, error) {
		s.Pace.Progress.Step(0, s.Trial.row.title()+", compiling")
		devices, err := backend.OpenDevices(s.Trial.settings.Devices)
		if err != nil {
			return nil, err
		}
		return images.open(ctx, devices, s.Trial.settings)
	}, func(ctx context.Context, r *search.Runner, s lab.Seed[found]) (trial.Result, error) {
		return run(ctx, s.Trial, r, s.Seed, view.watch(s))
	})
	return b
}

func (l *live) watch(s lab.Seed[found]) search.Options {
	f := &s.Trial
	l.begin(f, s.Seed)
	return search.Options{
		Load: s.Load, Save: s.Save, SaveEvery: s.SaveEvery, Observe: func(m search.Snapshot) {
			s.Pace.At(m.Epoch, m.Epochs, m.Step, m.Steps, fmt.Sprintf("%s, seed %d, epoch %d/%d%s",
				f.row.named(), s.Seed, min(m.Epoch+1, m.Epochs), m.Epochs, peakMemory()))
			l.show(f, s.Seed, m)
		},
	}
}

// peakMemory is this process's peak memory as a note for its progress, ", 1.4 GB"; empty if unknown.
func peakMemory() string {
	if bytes := memory.Peak("self"); bytes > 0 {
		return fmt.Sprintf(", %.1f GB", bytes/1e9)
	}
	return ""
}
