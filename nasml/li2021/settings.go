package li2021

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/forecast"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
)

// SearchParams are the parameters of the weight-sharing searches behind a figure. A field at 0 keeps the preset's
// value. Settings without a field are varied row by row, before the fields apply:
//
//	p.Vary = func(row string, s *search.Settings) { s.WeightDecay = 0 }
//
// or for all rows by --set WeightDecay=0 on the command line. Update, ArchRate and Hypergradient apply to some methods
// only; s.ArchRate, or --set Vary.ArchRate=0.1, is the step size of any method.
type SearchParams struct {
	Preset string // "quick", "paper" or "code": search.AsQuick, AsPaper, AsCode; or "imagenet", "imagenet-code"

	// Vary changes the settings that the preset has for a row. The caption says what it changed.
	Vary func(row string, s *search.Settings) `json:"-"`

	Channels int // C of the first stage
	Cells    int // N of each stage
	Image    int // side of the images, pixels
	Epochs   int
	Batch    int

	EvaluateEvery int `json:",omitempty" validate:"gte=0"` // epochs between two evaluations

	Space         string   `json:",omitempty"` // of rows that name none: see search.Settings; empty: NAS-Bench-201's
	Without       []string // operations left out; "" alone: none; empty: the preset's
	Update        string   // of the GAEA methods: a name of simplex.Updates
	Hypergradient string   // of the mixture methods: a name of bilevel.Hypergradients
	ArchRate      float64  // step size of the GAEA methods

	// Several devices of one host share every batch. A search on several is a trial of its own, with the numbers of one
	// device to rounding, unless Statistics is "device": see package search.
	Devices    int    `json:",omitempty" validate:"gte=0"` // 0 or 1: one
	Statistics string `json:",omitempty"`                  // of batch norm: "synchronised" (or empty) or "device"

	// Instruments is the number of products with Hessians that estimate the largest eigenvalue and the convexity of the
	// validation loss at every evaluation, and turns on the other instruments (see search.Readings); 0: none.
	Instruments int `json:",omitempty" validate:"gte=0"`

	Data     data.Name // the images that are searched on
	Examples int       `validate:"gte=0"` // the first training images; 0: all; of photographs, so many at random

	// Folder replaces Data: it has photographs such as ILSVRC-2012's in train, one folder per class. They are cropped
	// by the settings' Crop (that of a search on ImageNet) and split at random.
	Folder string `json:",omitempty"`

	Seeds      int     `validate:"gte=1"`
	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
	StoredOnly bool    // show what the run store has and compute nothing
}

// quickSearch is for two cores: 4,000 images of CIFAR-10 at 16×16, a minute or two a search.
var quickSearch = SearchParams{Preset: "quick", Data: data.CIFAR10, Examples: 4000, Seeds: 5, Confidence: 0.95}

// paperSearch is the paper's setting: four runs, all images. A search takes 2.5 to 6 hours on two cores.
var paperSearch = SearchParams{Preset: "paper", Data: data.CIFAR10, Seeds: 4, Confidence: 0.95}

var searchCost = catalog.Cost{
	Quick: "about 1 to 2 minutes a search on two cores; those of the presets are precomputed",
	Paper: "2.5 to 6 hours a search on two cores (forecast)",
}

// row names a search: a method of search.Methods, with "/erm" for the single level, one of stepVariants, or
// "darts/benchmark" (DARTS as Dong & Yang 2020 ran it); "@" adds a search space, "gaea-pc-darts@darts".
type row string

// stepVariants may follow the method of a row on any space: how a step moves the architecture, whatever the preset
// says.
var stepVariants = map[string]struct {
	title  string
	change func(s *search.Settings)
}{
	// Second order is the central difference of Liu+ 2019 and their code, with ε = 0.01/‖v‖; one with an ε so small
	// that it crosses no kink of ReLU; and the exact gradient that both approximate.
	"second-order": {"second order", func(s *search.Settings) {
		s.Bilevel.Hypergradient = "finite-difference"
	}},
	"second-order-small": {"second order, $ε$ = 0.0001", func(s *search.Settings) {
		s.Bilevel.Hypergradient, s.Bilevel.Epsilon = "finite-difference", 1e-4
	}},
	"unrolled": {"second order, exact", func(s *search.Settings) { s.Bilevel.Hypergradient = "unrolled" }},
	// the program of DARTS has running statistics of its own
	"second-order-code": {"second order by differences", func(s *search.Settings) {
		s.Bilevel.Hypergradient, s.Running = "finite-difference", search.InnerPasses
	}},
	"cleared": {"gradients cleared", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = false, 0
	}},
	"uncleared": {"gradients not cleared", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = true, 0
	}},
	// ten epochs of fifty, as in the program of GAEA PC-DARTS
	"warmup": {"gradients cleared, warm-up", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = false, s.Epochs/5
	}},
	"uncleared-warmup": {"not cleared, warm-up", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = true, s.Epochs/5
	}},
	// A step of GAEA on NAS-Bench-1Shot1 as in the presets "paper" and "code", at the size of the search's preset.
	"as-paper": {"as the paper", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = false, 0
	}},
	"as-code": {"as its program", func(s *search.Settings) {
		s.Bilevel.Uncleared, s.Bilevel.Warmup = true, s.Epochs/5
		s.Update, s.Running = "eg-clamp-normalize", search.OuterTwice
		if s.Method == "gaea-darts" {
			s.Bilevel.Warmup = 0
		}
	}},
}

func (w row) method() string { return strings.Split(w.search(), "/")[0] }

func (w row) variant() string {
	_, variant, _ := strings.Cut(w.search(), "/")
	return variant
}

func (w row) search() string { return strings.Split(string(w), "@")[0] }

func (w row) space() string {
	_, space, _ := strings.Cut(string(w), "@")
	return space
}

func (w row) on(search string) row {
	if w.space() == "" {
		return row(search)
	}
	return row(search + "@" + w.space())
}

// published is the row whose published curves w is compared with. Those of GAEA on NAS-Bench-1Shot1 are of a
// program that does not clear gradients; searches that clear them and those that do not are both compared with it.
func (w row) published() row {
	switch _, oneShot := supernet.OneShots[w.space()]; {
	case w.space() == supernet.NASBench201.Name:
		return row(w.search())
	case oneShot && (w.variant() == "cleared" || w.variant() == "uncleared"):
		return w.on(w.method())
	}
	return w
}

func (w row) title() string {
	title := cmp.Or(search.Methods[w.method()].Title, w.method())
	step, varied := stepVariants[w.variant()]
	switch {
	case varied:
		return title + " (" + step.title + ")"
	case w.variant() == "erm":
		return title + " (ERM)"
	case w.variant() == "benchmark":
		return title + " (with none)"
	case strings.HasSuffix(w.method(), "darts") && !strings.HasSuffix(w.method(), "pc-darts"):
		return title + " (bilevel)"
	}
	return title
}

func (w row) named() string {
	if w.space() == "" {
		return w.title()
	}
	return w.title() + ", " + study.SpaceTitle(w.space())
}

func (w row) check() error {
	if _, ok := search.Methods[w.method()]; !ok {
		return fmt.Errorf("row %q: the search method must be one of %s, got %q", w,
			strings.Join(slices.Sorted(maps.Keys(search.Methods)), ", "), w.method())
	}
	if _, ok := stepVariants[w.variant()]; ok {
		return nil
	}
	v, own := w.variant(), supernet.Spaces[w.space()].Ops == nil && w.space() != ""
	if v != "" && v != "erm" && (w.method() != "darts" || v != "benchmark" || own) {
		return fmt.Errorf("row %q must be METHOD, METHOD/erm, METHOD/ and one of %s, or darts/benchmark; all but the "+
			"last may end in @SPACE", w, strings.Join(slices.Sorted(maps.Keys(stepVariants)), ", "))
	}
	return nil
}

func (p SearchParams) settings(w row) (search.Settings, error) {
	space := cmp.Or(w.space(), p.Space, supernet.NASBench201.Name)
	s, err := search.Preset(space, w.method(), p.Preset)
	if err != nil {
		return s, catalog.Usagef("settings of %s: %v", w, err)
	}
	switch w.variant() {
	case "erm":
		s.Bilevel.Level = bilevel.ERM
	case "benchmark":
		if p.Preset != "quick" {
			s = search.AsBenchmark()
			s.Space = space
		}
		s.Without = nil
	}
	// Each set is normalised by its own mean.
	if own, ok := data.Augments["autodl-"+string(p.Data)]; ok {
		s.Augment.Mean, s.Augment.Std = own.Mean, own.Std
	}
	if err := study.Vary(p.Vary, string(w), &s, elsewhere); err != nil {
		return s, err
	}
	p.fields(&s)
	if step, ok := stepVariants[w.variant()]; ok {
		step.change(&s)
	}
	if err := s.Check(); err != nil {
		return s, catalog.Usagef("settings of %s: %v", w, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if p.Folder != "" && p.Examples > 0 && s.Parts == (search.Shares{}) {
		return s, catalog.Usagef("settings of %s: Examples must be 0 with a Folder, got %d: a single-level search "+
			"takes all photographs", w, p.Examples)
	}
	return s, nil
}

// elsewhere are the settings with a parameter of their own.
var elsewhere = map[string]string{
	"Method": "name methods in the rows", "Space": "set SearchParams.Space, or name it in the rows",
	"Devices": "set SearchParams.Devices", "Statistics": "set SearchParams.Statistics",
}

// changes are the settings of a row that Vary changed, "WeightDecay: 0.0003, 0".
func (p SearchParams) changes(w row, s search.Settings) ([]string, error) {
	if p.Vary == nil {
		return nil, nil
	}
	p.Vary = nil
	before, err := p.settings(w)
	return study.Differences(before, s), err
}

func (p SearchParams) reduced() bool {
	return p.Preset == "quick" || p.Examples > 0 || p.Channels+p.Cells+p.Image+p.Epochs+p.Batch > 0
}

func (p SearchParams) fields(s *search.Settings) {
	s.Channels, s.Cells, s.Image = cmp.Or(p.Channels, s.Channels), cmp.Or(p.Cells, s.Cells), cmp.Or(p.Image, s.Image)
	s.Epochs, s.Batch = cmp.Or(p.Epochs, s.Epochs), cmp.Or(p.Batch, s.Batch)
	s.EvaluateEvery = cmp.Or(p.EvaluateEvery, s.EvaluateEvery)
	if space, ok := supernet.Spaces[s.Space]; ok {
		s.Without = slices.DeleteFunc(slices.Clone(s.Without), func(op string) bool {
			return !slices.Contains(space.Ops, op) // it lacks it anyway
		})
	}
	if len(p.Without) > 0 {
		s.Without = slices.DeleteFunc(slices.Clone(p.Without), func(op string) bool { return op == "" })
	}
	if p.Instruments > 0 {
		s.Curvature, s.Instruments = p.Instruments, p.Instruments
	}
	if p.Devices > 1 { // one device keeps the key that it always had
		s.Devices = p.Devices
		if p.Statistics != "synchronised" {
			s.Statistics = search.Statistics(p.Statistics)
		}
	}
	p.divide(s)
	method := search.Methods[s.Method]
	if onSimplex(method.Update) {
		if s.ArchRate = cmp.Or(p.ArchRate, s.ArchRate); p.Update != "" {
			s.Update, s.EdgeUpdate = p.Update, ""
		}
	}
	if method.Architecture == search.Mixture && method.Weights == search.Mixture {
		s.Bilevel.Hypergradient = cmp.Or(p.Hypergradient, s.Bilevel.Hypergradient)
	}
}

// onSimplex reports whether an update is a step on the simplex at ArchRate: one of simplex.Updates, or a reader's in
// search.Updates, which keeps a state.
func onSimplex(update string) bool {
	_, plain := simplex.Updates[update]
	keeps, ok := search.Updates[update]
	return plain || ok && keeps.Moves == search.OnSimplex && !keeps.OwnRate
}

func (p SearchParams) divide(s *search.Settings) {
	if p.Folder != "" {
		s.Split, s.Augment = "random", images.Augment{}
		if s.Crop == (images.Crop{}) {
			s.Crop = images.ImageNetCrop
			s.Crop.Resize = s.Image * s.Crop.Resize / ilsvrcSide
		}
		if s.Parts == (search.Shares{}) && s.Bilevel.Level == bilevel.Bilevel && p.Examples > 0 {
			s.Parts = search.Shares{Train: 1, Validation: 1}
		}
	}
	if parts := s.Parts.Train + s.Parts.Validation; parts > 0 && p.Examples > 0 { // as many to one as there
		valid := p.Examples * s.Parts.Validation / parts
		s.Parts.Train, s.Parts.Validation = p.Examples-valid, valid
	}
}

// ilsvrcSide is the side of the images for which ImageNet's crop makes the shorter side 256 pixels.
const ilsvrcSide = 224

// rules has the rules that neither tags nor the settings of a row have.
func (p SearchParams) rules(rows []string, c *study.Checks) {
	known := data.Known()
	c.Expect(slices.Contains(known, p.Data), "Data must be one of %v, got %q", known, p.Data)
	c.Expect(p.Statistics == "" || p.Devices > 1,
		"Statistics must be empty with one device, got %q: leave it empty, or set Devices to 2 or more", p.Statistics)
	for i, w := range rows {
		err := row(w).check()
		c.Expect(err == nil, "%v", err)
		c.Expect(!slices.Contains(rows[:i], w), "row %q appears twice", w)
	}
}

// someImages stand for all images of a set that is not read for a forecast.
const someImages = 50000

// Memory is a forecast of the peak of a search by DARTS, bytes; 0 where the settings are none.
func (p SearchParams) Memory() float64 {
	s, err := p.settings("darts")
	if err != nil {
		return 0
	}
	return forecast.Search(s, cmp.Or(p.Examples, someImages)).Bytes
}

// Memory is a forecast of the peak of a training of DARTS' second-order cell, bytes; 0 where the settings are none.
func (p TrainParams) Memory() float64 {
	s, err := p.settings("cifar-10")
	if err != nil {
		return 0
	}
	return forecast.Training(s, supernet.Published["DARTS_V2"].Genotype, someImages, p.TestExamples, 10).Bytes
}
