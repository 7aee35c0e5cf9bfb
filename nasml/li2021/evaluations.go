package li2021

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/images"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/li2021/internal/evaluating"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/plots"
)

// TrainParams are the parameters of the trainings from scratch behind a table. A field at 0
// leaves what the preset says. What has no field is varied, on the set "cifar-10" or "imagenet":
//
//	p.Vary = func(set string, s *training.Settings) { s.DropPath = 0 }
//
// or --set DropPath=0 on the command line. The fields come after that.
type TrainParams struct {
	Preset string // "quick", "paper" or "code": training.AsQuick, AsPaper, AsCode

	// Vary changes the settings that the preset has.
	Vary func(set string, s *training.Settings) `json:"-"`

	Channels, Cells, Image, Epochs, Batch int     `json:",omitempty" validate:"gte=0"`
	LearningRate                          float64 `json:",omitempty" validate:"gte=0"`

	Examples     int // the first so many training images, 0: all; of photographs, of each class
	TestExamples int // likewise
	Seeds        int // trainings of each genotype
	Confidence   float64
	StoredOnly   bool // show what the run store has and compute nothing
}

// quickTrainingCost is what the quick trainings of a table cost.
const quickTrainingCost = "a quarter of a minute each on two cores, and as long to compile a cell"

// quickTraining is what two cores can show: five cells on 16×16 pixels.
var quickTraining = TrainParams{
	Preset: "quick", Epochs: 6,
	Examples: 1000, TestExamples: 1000, Seeds: 2, Confidence: 0.95,
}

// paperTraining is Appendix C.1.2: ten seeds of 600 epochs. It was not run.
var paperTraining = TrainParams{Preset: "paper", Seeds: 10, Confidence: 0.95}

// evaluationFigure is the name under which all tables of the paper keep
// trainings.
const evaluationFigure = "li2021/evaluation"

var evaluationKind = code.Define(evaluationFigure, "li2021/internal/evaluating")

// trainPresets are the settings by preset and data set.
var trainPresets = map[string]map[string]training.Settings{
	"quick": training.AsQuick, "paper": training.AsPaper, "code": training.AsCode,
}

// settings are those of a data set, "cifar-10" or "imagenet".
func (p TrainParams) settings(set string) (training.Settings, error) {
	s, ok := trainPresets[p.Preset][set]
	if !ok {
		return s, catalog.Usagef("Preset is %q, want quick, paper or code", p.Preset)
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

// changes are what Vary changed of the preset's settings, "DropPath: 0.3, 0".
func (e evaluation) changes() []string {
	preset := e.TrainParams
	preset.Vary = nil
	for set := range trainPresets[e.Preset] {
		before, _ := preset.settings(set)
		if s, err := e.TrainParams.settings(set); err == nil && s == e.settings {
			return study.Differences(before, s)
		}
	}
	return nil
}

func (p TrainParams) check(c *study.Checks) {
	c.AtLeast("Seeds", p.Seeds, 1)
	c.AtLeast("Examples", p.Examples, 0)
	c.AtLeast("TestExamples", p.TestExamples, 0)
	c.Confidence(p.Confidence)
}

// reduced says whether trainings are not the paper's.
func (p TrainParams) reduced(set string) bool {
	s, err := p.settings(set)
	as := func(preset map[string]training.Settings) bool { return len(training.Differences(s, preset[set])) == 0 }
	return err != nil || p.Examples > 0 || p.TestExamples > 0 || !as(training.AsPaper) && !as(training.AsCode)
}

// named is a genotype with what it is called.
type named struct {
	name     string
	genotype supernet.Genotype
}

// parseGenotypes reads names of supernet.Published and genotypes as the authors'
// programs print them, which are called own 1, own 2, ….
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

// foundBy are the genotypes that searches have found, of rows such as
// "gaea-pc-darts@darts", and the records of these; with StoredOnly of those that the
// run store has.
func foundBy(ctx context.Context, p SearchParams, title string, rows []string) (
	genotypes []named, records []*runs.Record, err error,
) {
	if len(rows) == 0 {
		return nil, nil, nil
	}
	all, err := p.run(ctx, title, rows)
	for _, f := range all {
		if p.Preset == "code" {
			f.pick = search.PickAsCodeOn(f.settings.Space, f.row.method())
		}
		space, err := f.settings.Open(10) // what an architecture is does not depend on the classes
		if err != nil {
			return nil, nil, err
		}
		for _, r := range f.ran() {
			records = append(records, r)
			arch, err := f.architecture(space, r)
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

// examples are what trainings learn from and are tested on, of which only the
// facts need be there.
type examples struct {
	fingerprint string
	synthetic   bool
	train, test int // how many
	classes     int
	open        func(ctx context.Context, s training.Settings) (train, test images.Examples, err error)
}

// inMemory are the images of a set; nil where they are not there and nothing is to
// be computed.
func (p TrainParams) inMemory(ctx context.Context, name data.Name) (*examples, error) {
	known := data.Known()
	if !slices.Contains(known, name) {
		return nil, catalog.Usagef("Data is %q, want one of %v", name, known)
	}
	x, err := p.opened(ctx, name)
	if p.StoredOnly && (errors.Is(err, data.ErrMissing) || errors.Is(err, data.ErrIncomplete)) {
		return nil, nil
	}
	return x, err
}

// opened are the images of a set, of which only the facts need be there.
func (p TrainParams) opened(ctx context.Context, name data.Name) (*examples, error) {
	train, err := data.View{Name: name, Split: data.Train, First: p.Examples}.Open(ctx)
	if err != nil {
		return nil, err
	}
	test, err := data.View{Name: name, Split: data.Test, First: p.TestExamples}.Open(ctx)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, s training.Settings) (images.Examples, images.Examples, error) {
		learned, err := train.Images(ctx)
		if err != nil {
			return nil, nil, err
		}
		tested, err := test.Images(ctx)
		if err != nil {
			return nil, nil, err
		}
		return s.InMemory(learned, tested)
	}
	return &examples{
		fingerprint: train.Fingerprint + " " + test.Fingerprint, synthetic: train.Synthetic,
		train: train.Len, test: test.Len, open: open,
	}, nil
}

// photographs are those of a folder with train and val in it; nil where none is
// named.
func (p TrainParams) photographs(dir string) (*examples, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil, catalog.Usagef("Folder: %s is not there: want a folder with ILSVRC-2012's photographs in train "+
			"and val, each with a folder a class", dir)
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
		return nil, fmt.Errorf("photographs in %s: train has %d classes and val %d, or others: expected the same "+
			"folders in both; the publisher's validation archive has none, its labels say which", dir,
			len(parts[0].ClassNames), len(parts[1].ClassNames))
	}
	return &examples{
		fingerprint: parts[0].Fingerprint + " " + parts[1].Fingerprint,
		train:       parts[0].Len(), test: parts[1].Len(), classes: len(parts[0].ClassNames),
		open: func(_ context.Context, s training.Settings) (images.Examples, images.Examples, error) {
			return data.Photographs{PhotoFolder: parts[0], Side: s.Image, Crop: s.Crop, Train: true},
				data.Photographs{PhotoFolder: parts[1], Side: s.Image, Crop: s.Crop}, nil
		},
	}, nil
}

// evaluation is what trainings of several genotypes have in common.
type evaluation struct {
	TrainParams
	title     string
	settings  training.Settings
	genotypes []named
	examples  *examples
	from      int // the first of the Seeds
}

// run reads or runs the trainings of all genotypes: rows of one a seed, nil where
// one was not run.
func (e evaluation) run(ctx context.Context) ([][]*runs.Record, error) {
	if e.examples == nil {
		return rowsOf(make([]*runs.Record, len(e.genotypes)*e.Seeds), e.Seeds), nil
	}
	var cases []study.Case
	for _, g := range e.genotypes {
		if _, err := e.settings.Network(g.genotype, max(1, e.examples.classes)); err != nil {
			return nil, catalog.Usagef("%s: %v", g.name, err)
		}
		of, err := e.cases(g)
		if err != nil {
			return nil, err
		}
		cases = append(cases, of...)
	}
	s := study.Study{ID: evaluationFigure, Code: evaluationKind, Shipped: shippedRecords, StoredOnly: true}
	stored, err := s.Run(ctx, cases)
	if err != nil || e.StoredOnly {
		return rowsOf(stored, e.Seeds), err
	}
	s.StoredOnly, s.Title = false, e.title
	if !runs.Looks(ctx) {
		s.Title += e.forecast(stored)
	}
	s.Device = func() (string, string, error) {
		b, err := backend.Open()
		if err != nil {
			return "", "", err
		}
		name, device := backend.Describe(b)
		return name, device, nil
	}
	lab := &trainLab{evaluation: e}
	defer lab.close()
	records, err := s.Batch(ctx, cases, runs.Options{MaxBatch: 1}, func(
		ctx context.Context, job *runs.Job, progress runs.Progress,
	) error {
		at := job.Index[0]
		return lab.train(ctx, at/e.Seeds, job, progress, cases[at].Units)
	})
	return rowsOf(records, e.Seeds), err
}

// cases are the trainings of a genotype, one a seed.
func (e evaluation) cases(g named) ([]study.Case, error) {
	own, err := ownOperations(g.genotype)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	seconds := sync.OnceValue(func() float64 { return e.cost(g).Seconds })
	return study.Each(e.from+e.Seeds, func(uint64) study.Case {
		return study.Case{
			Forecast: seconds,
			Params: evaluating.Trial{
				Settings: e.settings, Genotype: g.genotype, Operations: own,
				Examples: e.Examples, TestExamples: e.TestExamples,
			},
			Data: e.examples.fingerprint, Label: g.name, Units: max(1, e.settings.Epochs*e.examples.train/1000),
		}
	})[e.from:], nil
}

// trainLab runs one training after the other. It compiles once for all seeds of a
// genotype.
type trainLab struct {
	evaluation
	of      int // genotype of the trainer
	trainer *training.Trainer
}

func (l *trainLab) close() {
	if l.trainer != nil {
		l.trainer.Close()
	}
	l.trainer = nil
}

func (l *trainLab) open(ctx context.Context, genotype int) error {
	if l.trainer != nil && l.of == genotype {
		return nil
	}
	l.close()
	b, err := backend.Open()
	if err != nil {
		return err
	}
	train, test, err := l.examples.open(ctx, l.settings)
	if err != nil {
		return err
	}
	l.of = genotype
	l.trainer, err = training.New(b, l.settings, l.genotypes[genotype].genotype, train, test)
	return err
}

// train runs the one training of a job and stores it.
func (l *trainLab) train(
	ctx context.Context, genotype int, job *runs.Job, progress runs.Progress, total int,
) error {
	seed, name := job.Trials[0].Seed, l.genotypes[genotype].name
	wrong := func(err error) error { return fmt.Errorf("%s: %w", name, err) }
	if err := l.open(ctx, genotype); err != nil {
		return wrong(err)
	}
	booked := -1
	observe := func(m training.Moment) {
		now := int(float64(total) * (float64(m.Epoch) + float64(m.Step)/float64(m.Steps)) / float64(m.Epochs))
		if booked < 0 { // what a checkpoint brought along says nothing about the pace
			booked = max(0, now-max(1, total/m.Epochs/m.Steps))
			progress.Skip(booked)
		}
		note := fmt.Sprintf("%s, seed %d, epoch %d/%d", name, seed, min(m.Epoch+1, m.Epochs), m.Epochs)
		if n := len(m.Curve.TestError); n > 0 {
			note += fmt.Sprintf(", test error %.1f%%", 100*m.Curve.TestError[n-1])
		}
		progress.Step(max(0, now-booked), note)
		booked = max(booked, now)
	}
	result, err := evaluating.Run(ctx, l.trainer, seed, training.Options{
		Load: job.LoadTelling(progress), Save: job.Save, SaveEvery: checkpointEvery, Observe: observe,
	})
	if err == nil {
		err = job.Done(0, result)
	}
	if err != nil {
		return wrong(err)
	}
	progress.Step(total-max(0, booked), "")
	return nil
}

// forecast says what the trainings that the store lacks will cost on this
// machine's processors, where that is more than some minutes.
func (e evaluation) forecast(stored []*runs.Record) string {
	var sum forecast.Cost
	for i, r := range stored {
		if r == nil {
			sum = sum.Then(e.cost(e.genotypes[i/e.Seeds]))
		}
	}
	return sum.String()
}

// cost is that of one training of a genotype.
func (e evaluation) cost(g named) forecast.Cost {
	return forecast.Training(e.settings, g.genotype, e.examples.train, e.examples.test, e.examples.classes)
}

// errorsOf are the test errors of trainings that were run, in percent.
func errorsOf(records []*runs.Record, value string) []float64 {
	var out []float64
	for _, v := range study.Values(records, value) {
		out = append(out, 100*v)
	}
	return out
}

// imagesOf says what of a set is trained on.
func (e evaluation) imagesOf(set data.Name) string {
	images := "all training images"
	if e.Examples > 0 {
		images = fmt.Sprintf("%d images", e.Examples)
	}
	return images + " of " + strings.ToUpper(string(set))
}

// caption says at which scale trainings were run, on which images.
func (e evaluation) caption(images string) string {
	if e.examples == nil {
		return "Nothing was trained: the images are not there."
	}
	s := e.settings
	text := fmt.Sprintf("Trainings on %s: $C$ = %d, $L$ = %d, %d×%d pixels, batch %d, %d epochs, seeds: %d.",
		images, s.Channels, s.Cells, s.Image, s.Image, s.Batch, s.Epochs, e.Seeds)
	if e.examples.synthetic {
		text += " SYNTHETIC DATA, not the paper's."
	}
	if changes := e.changes(); len(changes) > 0 {
		text += fmt.Sprintf(" Changed settings (preset, here): %s.", strings.Join(changes, "; "))
	}
	switch {
	case e.Preset == "quick":
		text += " Quick scale, not the paper's setting: errors are not the paper's."
	case e.reduced("cifar-10") && e.reduced("imagenet"):
		text += " A reduced scale: errors are not the paper's."
	case e.Preset == "code":
		text += " Settings of the authors' code."
	}
	return text
}

// keysOf are the records of all rows.
func keysOf(rows [][]*runs.Record) []string { return study.Keys(slices.Concat(rows...)) }

// missing stands for an error that was not computed.
var missing = plots.Entry{Text: "not run", Grey: true}

// errorEntries are mean and best of the test errors of a cell, in percent.
func errorEntries(records []*runs.Record, value string) (mean, best plots.Entry) {
	values := errorsOf(records, value)
	if len(values) == 0 {
		return missing, missing
	}
	m, std := moments(values)
	return plots.Entry{Text: plusMinus(m, std)}, plots.Entry{Text: fmt.Sprintf("%.2f", slices.Min(values))}
}

// printed is a number of the paper's, empty where it is 0.
func printed(format string, x float64) plots.Entry {
	if x == 0 {
		return plots.Entry{Text: "–", Grey: true}
	}
	return plots.Entry{Text: fmt.Sprintf(format, x), Grey: true}
}

// printedError is a mean of the paper's with its deviation.
func printedError(n number) plots.Entry {
	if n.mean == 0 {
		return printed("", 0)
	}
	return plots.Entry{Text: plusMinus(n.mean, n.std), Grey: true}
}
