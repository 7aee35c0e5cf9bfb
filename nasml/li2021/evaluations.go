package li2021

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/evaluating"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// TrainParams are the parameters of the trainings from scratch behind a table. A field at 0 keeps the preset's value.
// Settings without a field are varied by data set, "cifar-10" or "imagenet", before the fields apply:
//
//	p.Vary = func(set string, s *training.Settings) { s.DropPath = 0 }
//
// or by --set DropPath=0 on the command line.
type TrainParams struct {
	Preset string // "quick", "paper" or "code": training.AsQuick, AsPaper, AsCode

	// Vary changes the settings that the preset has.
	Vary func(set string, s *training.Settings) `json:"-"`

	Channels, Cells, Image, Epochs, Batch int     `json:",omitempty" validate:"gte=0"`
	LearningRate                          float64 `json:",omitempty" validate:"gte=0"`

	Examples     int     `validate:"gte=0"` // the first so many training images, 0: all; of photographs, of each class
	TestExamples int     `validate:"gte=0"` // likewise
	Seeds        int     `validate:"gte=1"` // trainings of each genotype
	Confidence   float64 `validate:"gt=0.5,lt=1"`
	StoredOnly   bool    // show what the run store has and compute nothing
}

const quickTrainingCost = "a quarter of a minute each on two cores, and as long to compile a cell"

// quickTraining is for two cores: five cells on 16×16 pixels.
var quickTraining = TrainParams{
	Preset: "quick", Epochs: 6, Examples: 1000, TestExamples: 1000, Seeds: 2, Confidence: 0.95,
}

// paperTraining is Appendix C.1.2: ten seeds of 600 epochs. It was not run.
var paperTraining = TrainParams{Preset: "paper", Seeds: 10, Confidence: 0.95}

const evaluationFigure = "li2021/evaluation"

var evaluationKind = code.Define(evaluationFigure, "li2021/internal/evaluating")

var trainPresets = map[string]map[string]training.Settings{
	"quick": training.AsQuick, "paper": training.AsPaper, "code": training.AsCode,
}

// settings are those of a data set, "cifar-10" or "imagenet".
func (p TrainParams) settings(set string) (training.Settings, error) {
	s, ok := trainPresets[p.Preset][set]
	if !ok {
		return s, catalog.Usagef("Preset must be quick, paper or code, got %q", p.Preset)
	}
	if err := study.Vary(p.Vary, set, &s, nil); err != nil {
		return s, err
	}
	s.Channels, s.Cells, s.Image = cmp.Or(p.Channels, s.Channels), cmp.Or(p.Cells, s.Cells), cmp.Or(p.Image, s.Image)
	s.Epochs, s.Batch = cmp.Or(p.Epochs, s.Epochs), cmp.Or(p.Batch, s.Batch)
	s.LearningRate = cmp.Or(p.LearningRate, s.LearningRate)
	if err := s.Check(); err != nil {
		return s, catalog.Usagef("settings of the trainings: %v", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return s, nil
}

// changes are the settings that Vary changed on a data set, "DropPath: 0.3, 0".
func (p TrainParams) changes(set string) []string {
	if p.Vary == nil {
		return nil
	}
	s, _ := p.settings(set)
	p.Vary = nil
	before, _ := p.settings(set)
	return study.Differences(before, s)
}

func (p TrainParams) say(f *lab.Picture, x *examples, images string) {
	f.Say("%s", p.caption(x, images))
	if x != nil {
		lab.Changes(f, []string{x.set}, func(set string) string { return set }, p.changes)
	}
}

func (p TrainParams) reduced(set string) bool {
	s, err := p.settings(set)
	as := func(preset map[string]training.Settings) bool { return len(training.Differences(s, preset[set])) == 0 }
	return err != nil || p.Examples > 0 || p.TestExamples > 0 || !as(training.AsPaper) && !as(training.AsCode)
}

type named struct {
	name     string
	genotype supernet.Genotype
}

// parseGenotypes reads names of supernet.Published and genotypes in the format of the authors' programs, which are
// named own 1, own 2, ….
func parseGenotypes(texts []string) ([]named, error) {
	var all []named
	own := 0
	for _, text := range texts {
		g, err := supernet.ParseGenotype(text)
		if err == nil {
			err = g.Check()
		}
		if err != nil {
			return nil, catalog.Usagef("Genotypes: %v", err)
		}
		name := text
		if _, published := supernet.Published[text]; !published {
			own++
			name = fmt.Sprintf("own %d", own)
		}
		all = append(all, named{name, g})
	}
	return all, nil
}

// foundBy are the genotypes that searches found, of rows such as "gaea-pc-darts@darts", with their records; with
// StoredOnly only those in the store.
func foundBy(ctx context.Context, p SearchParams, title string, rows []string) (
	genotypes []named, records []*runs.Record, err error,
) {
	gs, err := p.run(ctx, title, rows)
	for _, f := range searched(gs) {
		if p.Preset == "code" {
			f.rule = search.RuleAsCodeOn(f.settings.Space, f.row.method())
		}
		for _, r := range f.finished() {
			records = append(records, r)
			arch, err := f.architecture(r)
			if err != nil {
				return nil, nil, fmt.Errorf("search %s: %w", r.Key, err)
			}
			g, err := supernet.ParseGenotype(arch.Text)
			if err != nil {
				return nil, nil, catalog.Usagef("Searches: %s finds no cells with two inputs: %v", f.row, err)
			}
			genotypes = append(genotypes, named{fmt.Sprintf("%s, ours, seed %d", f.row.title(), r.Trial.Seed), g})
		}
	}
	return genotypes, records, err
}

// examples are the training and test images of which only the facts need be known until a training runs.
type examples struct {
	set         string // whose settings there are: "cifar-10" or "imagenet"
	fingerprint string
	synthetic   bool
	train, test int // how many
	classes     int
	open        func(ctx context.Context, s training.Settings) (train, test images.Examples, err error)
}

// inMemory are the images of a set; nil if they are missing and nothing is to be computed.
func (p TrainParams) inMemory(ctx context.Context, name data.Name) (*examples, error) {
	known := data.Known()
	if !slices.Contains(known, name) {
		return nil, catalog.Usagef("Data must be one of %v, got %q", known, name)
	}
	train, err := data.View{Name: name, Split: data.Train, First: p.Examples}.Open(ctx)
	var test *data.Opened
	if err == nil {
		test, err = data.View{Name: name, Split: data.Test, First: p.TestExamples}.Open(ctx)
	}
	if err != nil {
		if p.StoredOnly && (errors.Is(err, data.ErrMissing) || errors.Is(err, data.ErrIncomplete)) {
			return nil, nil
		}
		return nil, err
	}
	open := func(ctx context.Context, s training.Settings) (images.Examples, images.Examples, error) {
		learned, err := train.Images(ctx)
		tested, testErr := test.Images(ctx)
		if err = cmp.Or(err, testErr); err != nil {
			return nil, nil, err
		}
		return s.InMemory(learned, tested)
	}
	return &examples{
		set: "cifar-10", fingerprint: train.Fingerprint + " " + test.Fingerprint, synthetic: train.Synthetic,
		train: train.Len, test: test.Len, open: open,
	}, nil
}

// photographs are those of a folder with train and val in it; nil if dir is empty.
func (p TrainParams) photographs(dir string) (*examples, error) {
	if dir == "" {
		return nil, nil
	}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	var parts [2]*data.PhotoFolder
	for i, part := range []struct {
		name  string
		first int
	}{{"train", p.Examples}, {"val", p.TestExamples}} {
		folder, err := data.OpenPhotoFolder(filepath.Join(dir, part.name))
		if err != nil {
			return nil, err
		}
		parts[i] = folder.First(part.first)
	}
	if !slices.Equal(parts[0].ClassNames, parts[1].ClassNames) {
		return nil, fmt.Errorf("photographs in %s: train has %d classes and val %d: both must have the same folders "+
			"(the publisher's validation archive has none; sort its images by their labels)", dir,
			len(parts[0].ClassNames), len(parts[1].ClassNames))
	}
	return &examples{
		set: "imagenet", fingerprint: parts[0].Fingerprint + " " + parts[1].Fingerprint,
		train: parts[0].Len(), test: parts[1].Len(), classes: len(parts[0].ClassNames),
		open: func(_ context.Context, s training.Settings) (images.Examples, images.Examples, error) {
			return data.Photographs{PhotoFolder: parts[0], Side: s.Image, Crop: s.Crop, Train: true},
				data.Photographs{PhotoFolder: parts[1], Side: s.Image, Crop: s.Crop}, nil
		},
	}, nil
}

type cell struct {
	named
	trial        evaluating.Trial
	parameters   int // of the network that is counted, if one is
	multiplyAdds int64
}

// cells are genotypes as they are trained with the settings of a data set.
func (p TrainParams) cells(set string, genotypes []named) ([]cell, error) {
	s, err := p.settings(set)
	if err != nil {
		return nil, err
	}
	var all []cell
	for _, g := range genotypes {
		if _, err := s.Network(g.genotype, 1); err != nil {
			return nil, catalog.Usagef("%s: %v", g.name, err)
		}
		own, err := ownOperations(g.genotype)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		all = append(all, cell{named: g, trial: evaluating.Trial{
			Settings: s, Genotype: g.genotype, Operations: own, Examples: p.Examples, TestExamples: p.TestExamples,
		}})
	}
	return all, nil
}

// ownOperations maps the operations of a genotype that are not nasml's to what they compute, for the key of a trial.
func ownOperations(g supernet.Genotype) (map[string]string, error) {
	own := map[string]string{}
	for _, op := range operationsOf(g) {
		key, err := supernet.OperationKey(op)
		if err != nil {
			return nil, err
		}
		if key != op {
			own[op] = key
		}
	}
	return own, nil
}

// counted are the cells of genotypes by their texts, with the size of their networks.
func (p TrainParams) counted(set string, texts []string, size supernet.Skeleton) ([]cell, error) {
	genotypes, err := parseGenotypes(texts)
	if err != nil {
		return nil, err
	}
	all, err := p.cells(set, genotypes)
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: size, Genotype: c.genotype})
		if err != nil {
			return nil, catalog.Usagef("%s, %v", c.name, err)
		}
		all[i].parameters, all[i].multiplyAdds = net.Parameters(), net.MultiplyAdds()
	}
	return all, nil
}

// bench trains cells one after another, each with its own checkpoint. Its Facts are the examples; without them it only
// reads the store.
func (p TrainParams) bench(title string, x *examples) lab.Bench[cell] {
	b := lab.Bench[cell]{
		Study: study.Study{
			ID: evaluationFigure, Title: title, Code: evaluationKind, Shipped: shippedRecords,
			StoredOnly: p.StoredOnly || x == nil, Device: backend.Opener(1),
		},
		Facts: x,
		Key:   func(c cell) any { return c.trial },
		Label: func(c cell) string { return c.name },
		Close: func() {}, // without data no trainer is opened
	}
	if x == nil {
		return b
	}
	b.Data = func(cell) string { return x.fingerprint }
	b.Units = func(c cell) int { return max(1, c.trial.Settings.Epochs*x.train/1000) }
	b.Seconds = func(c cell) float64 { return x.cost(c).Seconds }
	b.Cost = forecast.Title(x.cost)
	b.Amount = lab.Amount(func(t evaluating.Trial) float64 {
		train, test := cmp.Or(t.Examples, x.train), cmp.Or(t.TestExamples, x.test)
		return forecast.Training(t.Settings, t.Genotype, train, test, x.classes).Seconds
	})
	lab.Each(&b, x.trainer, train)
	return b
}

func (x *examples) cost(c cell) forecast.Cost {
	return forecast.Training(c.trial.Settings, c.genotype, x.train, x.test, x.classes)
}

// trainer compiles for all seeds of a cell.
func (x *examples) trainer(ctx context.Context, s lab.Seed[cell]) (*training.Trainer, error) {
	b, err := backend.Open()
	if err != nil {
		return nil, err
	}
	settings := s.Trial.trial.Settings
	train, test, err := x.open(ctx, settings)
	if err != nil {
		return nil, err
	}
	return training.New(b, settings, s.Trial.genotype, train, test)
}

func train(ctx context.Context, t *training.Trainer, s lab.Seed[cell]) (trial.Result, error) {
	return evaluating.Run(ctx, t, s.Seed, training.Options{
		Load: s.Load, Save: s.Save, SaveEvery: s.SaveEvery, Observe: func(m training.Snapshot) {
			note := fmt.Sprintf("%s, seed %d, epoch %d/%d", s.Trial.name, s.Seed, min(m.Epoch+1, m.Epochs), m.Epochs)
			if n := len(m.Curve.TestError); n > 0 {
				note += fmt.Sprintf(", test error %.1f%%", 100*m.Curve.TestError[n-1])
			}
			s.Pace.At(m.Epoch, m.Epochs, m.Step, m.Steps, note)
		},
	})
}

func errorsOf(records []*runs.Record, value string) []float64 {
	return percents(study.Values(records, value))
}

func (p TrainParams) caption(x *examples, images string) string {
	if x == nil {
		return "Nothing was trained: the images are not there."
	}
	s, err := p.settings(x.set)
	if err != nil {
		return err.Error() // which the rules would have said
	}
	text := fmt.Sprintf("Trainings on %s: $C$ = %d, $L$ = %d, %d×%d pixels, batch %d, %s, %s", images, s.Channels,
		s.Cells, s.Image, s.Image, s.Batch, study.Counted(s.Epochs, "epoch"), study.Counted(p.Seeds, "seed"))
	if x.synthetic {
		text += "; SYNTHETIC DATA, not the paper's"
	}
	switch {
	case p.Preset == "quick":
		text += "; quick scale, not the paper's setting"
	case p.reduced("cifar-10") && p.reduced("imagenet"):
		text += "; reduced, not the paper's setting"
	case p.Preset == "code":
		text += "; settings of the authors' code"
	}
	return text + "."
}

// imagesOf says how many images of a set there are: "4000 images of CIFAR-10".
func imagesOf(examples int, set string) string {
	if examples > 0 {
		return fmt.Sprintf("%d images of %s", examples, set)
	}
	return "all training images of " + set
}

// missing stands for a number that was not computed.
var missing = plots.Entry{Text: "not run", Grey: true}

func errorEntries(records []*runs.Record, value string) (mean, best plots.Entry) {
	values := errorsOf(records, value)
	if len(values) == 0 {
		return missing, missing
	}
	m, std := moments(values)
	return plots.Entry{Text: plusMinus(m, std)}, plots.Entry{Text: fmt.Sprintf("%.2f", slices.Min(values))}
}

func printed(format string, x float64) plots.Entry {
	if x == 0 {
		return plots.Entry{Text: "–", Grey: true}
	}
	return plots.Entry{Text: fmt.Sprintf(format, x), Grey: true}
}

func printedError(n number) plots.Entry {
	if n.Mean == 0 {
		return printed("", 0)
	}
	return plots.Entry{Text: plusMinus(n.Mean, n.Std), Grey: true}
}
