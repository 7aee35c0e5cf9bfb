package oymak2021

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/oymak2021/internal/sgdsweep"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure2Params are the parameters of Figure 2. Those that the paper leaves
// open say so; the presets list what was chosen.
type Figure2Params struct {
	Panels      []string  // "a": input layer of a one-hidden-layer net, "b": all weights of a four-layer net
	Widths      []int     // k of panel (a)
	DeepWidths  []int     // k of panel (b), multiples of 4
	DeltaAlphas []float64 // Δα > 0
	Seeds       int       // number of random α ∈ [0, 1]; a seed fixes α, initialization and batch order

	Activations  [2]string // σ₀, σ₁ of σ_α = (1−α)σ₀ + ασ₁; names of supernet.Activations
	Optimizer    string    // "sgd", "momentum" or "adam"
	LearningRate float64
	Momentum     float64 // of the optimizer "momentum"
	Batch        int     // examples a step; the last batch of an epoch may be smaller
	Epochs       int

	Data     data.Name
	Classes  [2]int // labels of the two classes; the first has the lower target
	Examples int    // the first so many training examples of these classes; 0: all

	Labels string // targets "0/1" or "±1"; open in the paper (±1 in its Theorem 3)
	Inputs string // "unit-interval" x/255, "standardized" or "unit-norm" (Theorem 3); open in the paper

	// Beside are other readings of Inputs, trained at the widths BesideWidths of panel
	// (a), drawn and judged beside it; empty: none.
	Beside       []string `json:",omitempty"`
	BesideWidths []int    `json:",omitempty"`

	Loss      string  // per batch "mse" (1/|B|)Σ(f−y)² or "half-mse"; open in the paper ("squared loss")
	C0        float64 // panel (a): v = ±√(c₀/k) as in Theorem 3, which leaves c₀ > 0 open
	Output    bool    // panel (b): σ_α after the last layer too; the paper: "for all layers"
	BeyondOne string  // α+Δα > 1: "allow" it, or "reflect" to α−Δα; open in the paper
	Precision string  // "float32" or "float64"

	Confidence float64 // of the intervals
	Together   int     // seeds trained in one graph; 0: all. Bounds memory, changes no trial's key
	StoredOnly bool    // show what the run store has and compute nothing
}

// Figure2Paper is the setting of Section 7a. Chosen where the paper is silent:
// targets 0/1 and inputs x/255 (what loaders of MNIST give), the mean of the
// squared error over a batch, c₀ = 1, no biases, α+Δα > 1 allowed.
//
// All of panel (a) took 3 h 40 min on two cores, half of it for k ≥ 2048, before zeros
// were left out, with which a step takes 0.6 of the time; of panel (b), k = 64 and 128
// take five minutes and the widest ones want a GPU.
// These trials are shipped. Means end at 1.06 in (a), on the paper's axis to 1.4,
// and at 4.0 in (b), beyond its 3.0; over Δα they go like a power of 0.010 ± 0.005 (a)
// and −0.03 ± 0.03 (b), over k of −0.021 ± 0.008 (a), and in (a) small Δα do not have
// the larger ones. Inputs of mean 0 and deviation 1 are the other reading, beside it at
// the widths that two cores can do in a quarter of an hour.
var Figure2Paper = Figure2Params{
	Panels:       []string{"a", "b"},
	Widths:       []int{64, 128, 256, 512, 1024, 2048, 4096},
	DeepWidths:   []int{64, 128, 256, 512, 1024, 2048, 4096},
	DeltaAlphas:  []float64{0.005, 0.01, 0.03, 0.05, 0.07},
	Seeds:        20,
	Activations:  [2]string{"relu", "sigmoid"},
	Optimizer:    "sgd",
	LearningRate: 0.003,
	Momentum:     0.9,
	Batch:        128,
	Epochs:       60,
	Data:         data.MNIST,
	Classes:      [2]int{0, 1},
	Labels:       "0/1",
	Inputs:       "unit-interval",
	Beside:       []string{"standardized"},
	BesideWidths: []int{64, 128},
	Loss:         "mse",
	C0:           1,
	Output:       true,
	BeyondOne:    "allow",
	Precision:    "float32",
	Confidence:   0.95,
}

// Figure2Quick trains the three narrowest nets of (a) and the two narrowest of
// (b) for 4 α and 20 epochs over 4096 examples. It takes half a minute on two
// cores; means end at 0.84 in (a) and at 1.4 in (b), with wide intervals.
var Figure2Quick = func() Figure2Params {
	p := Figure2Paper
	p.Widths = []int{64, 128, 256}
	p.DeepWidths = []int{64, 128}
	p.Beside, p.BesideWidths = nil, nil
	p.Seeds = 4
	p.Epochs = 20
	p.Examples = 4096
	return p
}()

const (
	figure2ID    = "oymak2021/figure2"
	figure2Title = "Lipschitzness of SGD in the activation parameter: ‖θ_α − θ_{α+Δα}‖₂/Δα over the width"
)

var figure2Kind = code.Define(figure2ID, "oymak2021/internal/sgdsweep")

func init() {
	catalog.Register(catalog.Entry{
		ID: figure2ID, Paper: "Oymak+ 2021", Title: figure2Title, Kind: "figure",
		Notebook: "notebooks/oymak2021/figure2_lipschitz.ipynb",
		Cost: catalog.Cost{
			Quick: "half a minute on two cores",
			Paper: "(a) about two hours on two cores; (b) 5 minutes for k = 64 and 128, a day or more for all: " +
				"a GPU; the project ships the trials of (a) and of these two",
		},
		Shipped:  []catalog.Setting{{Scale: catalog.Paper, Set: []string{"StoredOnly=true"}}},
		Settings: figure2Settings,
	}, Figure2Quick, Figure2Paper, Figure2)
}

// figure2Point is one point of a curve: the mean over the seeds of
// ‖θ_α − θ_{α+Δα}‖₂/Δα for a panel, a width and a Δα.
type figure2Point struct {
	panel   string
	width   int
	delta   float64
	records []*runs.Record
	seeds   []uint64     // those with a value
	values  []float64    // the normalized distance of each of them
	summary runs.Summary // over values; zero where there is none
}

// Figure2Result holds the points of Figure 2, panel by panel, Δα by Δα, width
// by width.
type Figure2Result struct {
	Params Figure2Params
	Scale  string // "quick", "paper" or empty for own parameters
	note   string // about the images
	points []figure2Point
	beside []*Figure2Result // one a reading
	asked  int              // how often each claim is made: of both panels, and of other readings of (a)
}

// Records are the keys of the trials behind the points.
func (r *Figure2Result) Records() []string {
	var keys []string
	for _, other := range r.beside {
		keys = append(keys, other.Records()...)
	}
	for _, p := range r.points {
		keys = append(keys, study.Keys(p.records)...)
	}
	return keys
}

// figure2Trial is what one distance depends on.
type figure2Trial struct {
	sgdsweep.Network
	DeltaAlpha float64 `json:"delta_alpha"`
}

// Figure2 computes what the run store lacks of Figure 2: the trials of one
// width (of p.Together seeds of it) are trained together in one graph, whole
// epochs at a time where that takes seconds at most. Cancelling ctx ends it
// within seconds, with the finished trials stored and the others at their
// checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the data cannot be had, and where a training diverges.
func Figure2(ctx context.Context, p Figure2Params) (*Figure2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	r.asked = len(figure2Panels) + len(p.Beside)
	for _, reading := range p.Beside {
		q := p
		q.Panels, q.Widths, q.Inputs, q.Beside = []string{"a"}, p.BesideWidths, reading, nil
		other, err := q.run(ctx)
		if err != nil {
			return nil, err
		}
		other.asked = r.asked
		r.beside = append(r.beside, other)
	}
	return r, nil
}

// run is Figure2 by one reading of the inputs.
func (p Figure2Params) run(ctx context.Context) (*Figure2Result, error) {
	images, err := p.view().Open(ctx)
	if err != nil {
		return nil, err
	}
	keyed, err := p.keyed()
	if err != nil {
		return nil, err
	}
	groups := p.groups()
	cases := make([][]study.Case, len(groups))
	for i, g := range groups {
		cases[i] = g.cases(keyed, images.Facts)
	}
	s := study.Study{
		ID: figure2ID, Code: figure2Kind, Shipped: shippedRecords, StoredOnly: p.StoredOnly, Device: openDevice,
	}
	if images.Note != "" {
		s.Title = figure2ID + ", on the digits that travel with the project"
	}
	records, err := s.Batches(ctx, cases, runs.Options{},
		func(ctx context.Context, i int, job *runs.Job, progress runs.Progress) error {
			return groups[i].train(ctx, images, job, progress)
		})
	if err != nil {
		return nil, err
	}
	result := &Figure2Result{Params: p, Scale: runs.Scale(ctx), note: images.Note}
	return result, result.collect(groups, records)
}

// openDevice opens what GoMLX computes on.
func openDevice() (name, device string, err error) {
	b, err := backend.Open()
	if err != nil {
		return "", "", err
	}
	name, device = backend.Describe(b)
	return name, device, nil
}

// view are the training examples of the two classes.
func (p Figure2Params) view() data.View {
	classes := []uint8{uint8(p.Classes[0]), uint8(p.Classes[1])}
	return data.View{Name: p.Data, Split: data.Train, Classes: classes, First: p.Examples, OrShipped: true}
}

// keyed are the parameters with the activations' names in keys of trials in
// place of those that the graph uses.
func (p Figure2Params) keyed() (Figure2Params, error) {
	for i, name := range p.Activations {
		var err error
		if p.Activations[i], err = supernet.ActivationKey(name); err != nil {
			return p, fmt.Errorf("figure 2: %w", err)
		}
	}
	return p, nil
}

func (p Figure2Params) widths(panel string) []int {
	if panel == "b" {
		return p.DeepWidths
	}
	return p.Widths
}

// network is the part of the parameters that a trial of a panel depends on; a
// field that does not apply stays zero, so that it changes no key.
func (p Figure2Params) network(panel string, k int) sgdsweep.Network {
	n := sgdsweep.Network{
		Panel: panel, Width: k, Activations: p.Activations,
		Optimizer: p.Optimizer, LearningRate: p.LearningRate,
		Batch: p.Batch, Epochs: p.Epochs, Classes: p.Classes[:], Examples: p.Examples,
		Labels: p.Labels, Inputs: p.Inputs, Loss: p.Loss, BeyondOne: p.BeyondOne, Precision: p.Precision,
	}
	if panel == "a" {
		n.C0 = p.C0
	} else {
		n.Output = p.Output
	}
	if p.Optimizer == "momentum" {
		n.Momentum = p.Momentum
	}
	return n
}

// figure2Group is what is trained in one graph: all Δα for some seeds of one
// network.
type figure2Group struct {
	net   sgdsweep.Network
	pairs []sgdsweep.Pair
}

// groups lists the graphs to run, the cheap ones first.
func (p Figure2Params) groups() []figure2Group {
	var all []figure2Group
	for _, panel := range p.Panels {
		for _, k := range p.widths(panel) {
			for seeds := range slices.Chunk(trial.Seeds(p.Seeds), cmp.Or(p.Together, p.Seeds)) {
				all = append(all, figure2Group{p.network(panel, k), p.pairs(seeds)})
			}
		}
	}
	return all
}

func (p Figure2Params) pairs(seeds []uint64) []sgdsweep.Pair {
	var pairs []sgdsweep.Pair
	for _, seed := range seeds {
		for _, delta := range p.DeltaAlphas {
			pairs = append(pairs, sgdsweep.Pair{Seed: seed, DeltaAlpha: delta})
		}
	}
	return pairs
}

// cases are the trials of a group's pairs.
func (g figure2Group) cases(keyed Figure2Params, images data.Facts) []study.Case {
	steps := (images.Len + g.net.Batch - 1) / g.net.Batch
	var cases []study.Case
	for _, pair := range g.pairs {
		cases = append(cases, study.Case{
			Params: figure2Trial{keyed.network(g.net.Panel, g.net.Width), pair.DeltaAlpha},
			Seed:   pair.Seed, Data: images.Fingerprint, Units: g.units() * g.net.Epochs * steps,
		})
	}
	return cases
}

// units is the cost of a batch for one pair in units of about equal time: its
// weights.
func (g figure2Group) units() int {
	const inputs, unit = 784, 1 << 12
	return 1 + g.net.Weights(inputs)/unit
}

// checkpointEvery bounds what a killed run loses. A sweep may hold gigabytes,
// so saving after every epoch could cost more than it saves.
var checkpointEvery = time.Minute

// train runs the sweep that a job's trials need and stores their results.
func (g figure2Group) train(ctx context.Context, images *data.Opened, job *runs.Job, progress runs.Progress) error {
	b, err := backend.Open()
	if err != nil {
		return err
	}
	im, err := images.Images(ctx)
	if err != nil {
		return err
	}
	pairs := make([]sgdsweep.Pair, len(job.Index))
	for i, at := range job.Index {
		pairs[i] = g.pairs[at]
	}
	s, err := sgdsweep.New(g.net, pixelsOf(im), pairs)
	if err != nil {
		return err
	}
	p, err := figure2Resume(s, job)
	if err != nil {
		return err
	}
	unit, done := g.units()*len(pairs), s.Done(p)
	progress.Skip(unit * done)
	err = s.Train(ctx, b, p, func() error {
		before := done
		done = s.Done(p)
		progress.Step(unit*(done-before), fmt.Sprintf("%v, epoch %d/%d", g, p.Epoch, g.net.Epochs))
		_, err := job.SaveEvery(checkpointEvery, p.Save)
		return err
	})
	if err != nil {
		return fmt.Errorf("%v: %w", g, errors.Join(err, figure2SaveCancelled(ctx, s, job, p)))
	}
	results, err := s.Results(pairs, p)
	if err != nil {
		return fmt.Errorf("%v: %w", g, err)
	}
	return job.DoneAll(results)
}

func (g figure2Group) String() string { return fmt.Sprintf("(%s) k = %d", g.net.Panel, g.net.Width) }

// figure2Resume starts from the job's checkpoint, or from the initial weights
// where there is none, or one in another layout.
func figure2Resume(s *sgdsweep.Sweep, job *runs.Job) (*sgdsweep.Progress, error) {
	r, err := job.Load()
	if errors.Is(err, runs.ErrNotFound) {
		return s.Start(), nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := s.Start()
	if err := p.Load(r); errors.Is(err, checkpoint.ErrOther) {
		return s.Start(), nil
	} else if err != nil {
		return nil, err
	}
	return p, nil
}

// figure2SaveCancelled keeps what a cancelled sweep has reached, if that is
// quick: a notebook's cell is killed five seconds after it was stopped.
func figure2SaveCancelled(ctx context.Context, s *sgdsweep.Sweep, job *runs.Job, p *sgdsweep.Progress) error {
	const atMost = 1 << 29 // bytes
	if ctx.Err() == nil || s.Done(p) == 0 || p.Bytes() > atMost {
		return nil
	}
	return job.Save(p.Save)
}

// Figure2Work is the training behind one width of Figure 2, all its seeds and
// Δα in one graph, to be run again and again from the same start: what a
// benchmark times. It is the code that Figure2 runs.
type Figure2Work = sgdsweep.Work

// NewFigure2Work prepares the training of width k of a panel, "a" or "b". It
// is an error where p makes no sense and where the data cannot be had.
func NewFigure2Work(ctx context.Context, b compute.Backend, p Figure2Params, panel string, k int) (
	*Figure2Work, error) {
	p.Panels, p.Widths, p.DeepWidths = []string{panel}, []int{k}, nil
	if panel == "b" {
		p.Widths, p.DeepWidths = nil, []int{k}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	opened, err := p.view().Open(ctx)
	if err != nil {
		return nil, err
	}
	images, err := opened.Images(ctx)
	if err != nil {
		return nil, err
	}
	s, err := sgdsweep.New(p.network(panel, k), pixelsOf(images), p.pairs(trial.Seeds(p.Seeds)))
	if err != nil {
		return nil, err
	}
	return s.Work(b)
}

// collect turns records into points with their statistics.
func (r *Figure2Result) collect(groups []figure2Group, records [][]*runs.Record) error {
	type place struct {
		panel string
		width int
		delta float64
	}
	found := map[place][]*runs.Record{}
	for i, g := range groups {
		for j, record := range records[i] {
			if record != nil {
				at := place{g.net.Panel, g.net.Width, g.pairs[j].DeltaAlpha}
				found[at] = append(found[at], record)
			}
		}
	}
	for _, panel := range r.Params.Panels {
		for _, delta := range r.Params.DeltaAlphas {
			for _, k := range r.Params.widths(panel) {
				p := figure2Point{panel: panel, width: k, delta: delta, records: found[place{panel, k, delta}]}
				if err := p.summarize(r.Params.Confidence); err != nil {
					return fmt.Errorf("figure 2 (%s), k = %d, Δα = %v: %w", panel, k, delta, err)
				}
				r.points = append(r.points, p)
			}
		}
	}
	return nil
}

// summarize leaves out records without a value, which stand for trials that
// another machine computes.
func (p *figure2Point) summarize(confidence float64) error {
	for _, record := range p.records {
		if v, ok := record.Values["distance"]; ok {
			p.seeds, p.values = append(p.seeds, record.Trial.Seed), append(p.values, v)
		}
	}
	if len(p.values) == 0 {
		return nil
	}
	var err error
	p.summary, err = runs.Summarize(p.values, confidence)
	return err
}

// check says what is wrong with the parameters, all of it at once.
func (p Figure2Params) check() error {
	var c study.Checks
	p.checkSweep(&c)
	p.checkTraining(&c)
	p.checkData(&c)
	return c.Err("figure 2")
}

// checkSweep looks at what is varied.
func (p Figure2Params) checkSweep(c *study.Checks) {
	study.Distinct(c, "Panels", p.Panels, 1)
	for _, panel := range p.Panels {
		c.OneOf("Panels", panel, "a", "b")
		c.Expect(len(p.widths(panel)) > 0, "there is no width for panel %q", panel)
	}
	study.Distinct(c, "Widths", p.Widths, 0)
	for _, k := range append(slices.Clone(p.Widths), p.BesideWidths...) {
		c.Expect(k >= 2 && k%2 == 0, "Widths or BesideWidths has %d, want even numbers from 2", k)
	}
	study.Distinct(c, "DeepWidths", p.DeepWidths, 0)
	for _, k := range p.DeepWidths {
		c.Expect(k >= 4 && k%4 == 0, "DeepWidths has %d, want multiples of 4", k)
	}
	study.Distinct(c, "DeltaAlphas", p.DeltaAlphas, 1)
	for _, delta := range p.DeltaAlphas {
		c.Expect(delta > 0 && delta <= 1, "DeltaAlphas has %v, want 0 < Δα ≤ 1", delta)
	}
	c.AtLeast("Seeds", p.Seeds, 1)
	c.Expect(p.Together >= 0, "Together is %d, want 0 (all) or more", p.Together)
	c.Confidence(p.Confidence)
}

// checkTraining looks at the networks and how they are trained.
func (p Figure2Params) checkTraining(c *study.Checks) {
	for _, name := range p.Activations {
		err := supernet.CheckActivation(name)
		c.Expect(err == nil, "%v", err)
	}
	c.OneOf("Optimizer", p.Optimizer, "sgd", "momentum", "adam")
	c.Positive("LearningRate", p.LearningRate)
	c.Expect(p.Momentum >= 0 && p.Momentum < 1, "Momentum is %v, want 0 ≤ μ < 1", p.Momentum)
	c.AtLeast("Batch", p.Batch, 1)
	c.AtLeast("Epochs", p.Epochs, 1)
	c.Positive("C0", p.C0)
	c.OneOf("Loss", p.Loss, "mse", "half-mse")
	c.OneOf("BeyondOne", p.BeyondOne, "allow", "reflect")
	c.OneOf("Precision", p.Precision, "float32", "float64")
}

// checkData looks at the examples.
func (p Figure2Params) checkData(c *study.Checks) {
	checkClasses(c, "Data", p.Data, p.Classes)
	c.Expect(p.Examples >= 0, "Examples is %d, want 0 (all) or more", p.Examples)
	c.OneOf("Labels", p.Labels, "0/1", "±1")
	for _, reading := range append([]string{p.Inputs}, p.Beside...) {
		c.OneOf("Inputs and Beside", reading, slices.Sorted(maps.Keys(inputWords))...)
	}
	study.Distinct(c, "Beside", append([]string{p.Inputs}, p.Beside...), 1)
	c.Expect(len(p.Beside) == 0 || len(p.BesideWidths) > 0, "BesideWidths is empty, want widths of (a) for Beside")
}

// checkClasses wants a set of images and two of its labels.
func checkClasses(c *study.Checks, field string, set data.Name, classes [2]int) {
	sets := data.Known()
	c.Expect(slices.Contains(sets, set), "%s is %q, want one of %v", field, set, sets)
	for _, class := range classes {
		c.Expect(class >= 0 && class <= 255, "Classes has %d, want labels from 0 to 255", class)
	}
	c.Expect(classes[0] != classes[1], "Classes is %v, want two different labels", classes)
}

// figure2Panels is what Figure 2 prints of each panel: its caption and where
// its vertical axis ends, the only numbers of the curves that the paper gives.
var figure2Panels = map[string]struct {
	title   string
	axisEnd float64
}{
	"a": {"(a) input layer, one hidden layer", 1.4},
	"b": {"(b) all weights, four layers", 3.0},
}

// Figure draws the result as the paper does: one curve a Δα over the width,
// with the interval of the mean over the random α, and the end of the paper's
// axis as a reference. Points with fewer seeds than asked for are hollow.
func (r *Figure2Result) Figure() plots.Figure {
	panels := [][]plots.Panel{nil}
	for _, panel := range r.Params.Panels {
		row := []plots.Panel{r.panel(panel)}
		for _, other := range r.beside {
			if panel == "a" {
				beside := other.panel(panel)
				beside.Title, row[0].Title = "(a), "+other.reading(), "(a), "+r.reading()
				row = append(row, beside)
			}
		}
		if len(row) > 1 { // readings side by side
			panels = append(panels, row)
		} else {
			panels[0] = append(panels[0], row...)
		}
	}
	panels = slices.DeleteFunc(panels, func(row []plots.Panel) bool { return len(row) == 0 })
	slices.Reverse(panels)
	return plots.Figure{
		Name: "oymak2021-figure2", Caption: r.caption(), Style: plots.ICML.Text(),
		Meta: study.Meta(figure2Title, r.Scale, r.Params), Panels: panels,
	}
}

func (r *Figure2Result) panel(panel string) plots.Panel {
	info := figure2Panels[panel]
	p := plots.Panel{
		Title: info.title, X: widthAxis(r.Params.widths(panel)),
		Y: plots.Axis{Label: `normalized distance $\|θ_α − θ_{α+Δα}\|_2/Δα$`, Max: 1.05 * r.top(panel)},
	}
	for _, delta := range r.Params.DeltaAlphas {
		p.Series = append(p.Series, r.series(panel, delta))
	}
	if slices.ContainsFunc(p.Series, func(s plots.Series) bool { return slices.Contains(s.Hollow, true) }) {
		p.Legend.Hollow = fmt.Sprintf("fewer than %d $α$", r.Params.Seeds)
	}
	p.Series = append(p.Series, plots.HLine("end of the paper's axis", info.axisEnd))
	return p
}

// series is the curve of one Δα over the widths that were run.
func (r *Figure2Result) series(panel string, delta float64) plots.Series {
	var widths []float64
	var means []runs.Summary
	var partial []bool
	for _, p := range r.paired(panel) {
		if p.delta == delta {
			widths, means = append(widths, float64(p.width)), append(means, p.summary)
			partial = append(partial, len(p.values) < r.Params.Seeds)
		}
	}
	s := plots.Bars(fmt.Sprintf("$Δα = %v$", delta), widths, means)
	s.Hollow = partial
	return s
}

// paired are the points of a panel with intervals of their differences: a seed's α
// moves its distances at all points alike, and what it moves them by, its mean over
// the points less that of all seeds, is taken off first (Cousineau 2005, with Morey's
// factor √(J/(J−1)) for J points). Means stay. Points that lack seeds keep their own.
func (r *Figure2Result) paired(panel string) []figure2Point {
	points := r.ran(panel)
	offset := map[uint64]float64{}
	whole, total := 0, 0.0
	for _, p := range points {
		if len(p.values) == r.Params.Seeds {
			whole++
			for i, seed := range p.seeds {
				offset[seed] += p.values[i]
				total += p.values[i] / float64(r.Params.Seeds)
			}
		}
	}
	if whole < 2 {
		return points
	}
	morey := math.Sqrt(float64(whole) / float64(whole-1))
	for j, p := range points {
		if len(p.values) < r.Params.Seeds {
			continue
		}
		moved := make([]float64, len(p.values))
		for i, seed := range p.seeds {
			own := p.values[i] - (offset[seed]-total)/float64(whole)
			moved[i] = p.summary.Mean + morey*(own-p.summary.Mean)
		}
		if s, err := runs.Summarize(moved, r.Params.Confidence); err == nil {
			points[j].summary = s
		}
	}
	return points
}

// top is the highest end of an interval, or the end of the paper's axis where
// that is higher. Distances start at 0, and so does the axis.
func (r *Figure2Result) top(panel string) float64 {
	top := figure2Panels[panel].axisEnd
	for _, p := range r.paired(panel) {
		top = max(top, p.summary.Mean)
		if p.summary.Hi.Valid() {
			top = max(top, float64(p.summary.Hi))
		}
	}
	return top
}

// widthAxis shows all widths, whether they were run or not.
func widthAxis(widths []int) plots.Axis {
	const margin = 1.3 // on a logarithmic axis
	axis := plots.Axis{
		Label: "model width $k$", Scale: plots.Log2,
		Min: float64(slices.Min(widths)) / margin, Max: float64(slices.Max(widths)) * margin,
	}
	for _, k := range widths {
		axis.Ticks = append(axis.Ticks, plots.Tick{Value: float64(k), Label: strconv.Itoa(k)})
	}
	return axis
}

// caption says what the figure shows and at which scale each of its points is.
func (r *Figure2Result) caption() string {
	p := r.Params
	examples := "all examples"
	if p.Examples > 0 {
		examples = fmt.Sprintf("%d examples", p.Examples)
	}
	text := fmt.Sprintf("Mean over random $α$, with %v %% intervals of the differences between points, the spread "+
		"that an $α$ has at all of them taken off: %d $α$, %d epochs, %s of %s, classes %d and %d.",
		100*p.Confidence, p.Seeds, p.Epochs, examples, strings.ToUpper(string(p.Data)), p.Classes[0],
		p.Classes[1])
	if p.Data == data.Synthetic {
		text += " SYNTHETIC DATA, not the paper's."
	}
	if r.note != "" {
		text += " " + r.note
	}
	switch {
	case p.computes(Figure2Paper):
		text += " The paper's setting."
	case p.computes(Figure2Quick):
		text += " Quick scale, not the paper's setting."
	default:
		text += " Varied parameters, not the paper's setting."
	}
	for _, one := range append([]*Figure2Result{r}, r.beside...) {
		if missing := one.missing(); missing != "" && one != r {
			text += " With " + one.reading() + ": " + missing
		} else if missing != "" {
			text += " " + missing
		}
	}
	return text
}

// inputWords are the readings of Inputs in words.
var inputWords = map[string]string{
	"unit-interval": "inputs x/255", "standardized": "standardized inputs", "unit-norm": "inputs of norm 1",
}

func (r *Figure2Result) reading() string { return inputWords[r.Params.Inputs] }

// computes says whether a trial of p is the same number as one of a preset: the
// widths, Δα and seeds that are run may differ, and an activation of a reader's
// under a name of the preset's is another.
func (p Figure2Params) computes(preset Figure2Params) bool {
	keyed, err := p.keyed()
	same := err == nil && p.Data == preset.Data
	for panel := range figure2Panels {
		a, errA := json.Marshal(keyed.network(panel, 4))
		b, errB := json.Marshal(preset.network(panel, 4))
		same = same && errA == nil && errB == nil && string(a) == string(b)
	}
	return same
}

// missing lists the widths that were not run, or not for every seed.
func (r *Figure2Result) missing() string {
	var parts []string
	for _, panel := range r.Params.Panels {
		bySeeds := map[int][]string{}
		for _, k := range r.Params.widths(panel) {
			ran := r.fewestSeeds(panel, k)
			bySeeds[ran] = append(bySeeds[ran], strconv.Itoa(k))
		}
		for _, ran := range slices.Sorted(maps.Keys(bySeeds)) {
			widths := fmt.Sprintf("(%s) $k$ = %s", panel, strings.Join(bySeeds[ran], ", "))
			switch ran {
			case 0:
				parts = append(parts, widths+" not run")
			case r.Params.Seeds:
			default:
				parts = append(parts, fmt.Sprintf("%s for %d of %d $α$ only", widths, ran, r.Params.Seeds))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

// fewestSeeds is the smallest number of seeds among a width's points.
func (r *Figure2Result) fewestSeeds(panel string, k int) int {
	fewest := r.Params.Seeds
	for _, p := range r.points {
		if p.panel == panel && p.width == k {
			fewest = min(fewest, len(p.values))
		}
	}
	return fewest
}

// Check judges the claims of Section 7a, panel by panel:
//
//   - range: every mean lies on the paper's axis, from 0 to 1.4 (a) or 3.0 (b);
//   - stable over Δα: the distance goes like Δα to a power within ±0.1;
//   - mild over k: likewise over the width;
//   - small Δα: the mean over Δα ≤ 0.01 exceeds that over Δα ≥ 0.03.
//
// The α are what is drawn independently: a seed's distances share its α and its
// start, so that each statistic is one number a seed, a mean over all that the seed
// was run at, and its interval is over seeds. The paper says "stable", "only mildly
// changes" and "slightly larger" without numbers; the 0.1 is ours. A claim is known
// only where points were run that it speaks of.
//
// Other readings of the inputs are asked the same, as claims of ours, and one claim
// says whether any reading fits all that is printed of (a).
func (r *Figure2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, panel := range []string{"a", "b"} {
		claims = append(claims, r.checkPanel(panel, func(row, name string) string {
			return fmt.Sprintf("[%s] (%s) %s", row, panel, name)
		})...)
	}
	for _, other := range r.beside {
		claims = append(claims, other.checkPanel("a", func(_, name string) string {
			return fmt.Sprintf("own: (a), %s: %s", other.reading(), name)
		})...)
	}
	if len(r.beside) > 0 {
		claims = append(claims, r.checkReadings())
	}
	return claims
}

// checkPanel judges what is printed of a panel; called gives a claim its name.
func (r *Figure2Result) checkPanel(panel string, called func(row, name string) string) []runs.Claim {
	claim := func(row, name string) runs.Claim {
		c := verdict.Claim(called(row, name), "Oymak+ 2021, Section 7a and Figure 2("+panel+")")
		c.Note = r.partial(panel)
		return c
	}
	ran := r.ran(panel)
	return []runs.Claim{
		checkRange(claim("figure2"+panel+"-range", "means on the paper's axis"), ran, figure2Panels[panel].axisEnd),
		r.checkSlope(claim("figure2-stable", "stable over Δα, exponent"), ran,
			func(p figure2Point) (fixed, over float64) { return float64(p.width), p.delta }),
		r.checkSlope(claim("figure2-stable", "only mildly changing with k, exponent"), ran,
			func(p figure2Point) (fixed, over float64) { return p.delta, float64(p.width) }),
		checkSmallDelta(claim("figure2-small-da", "Δα ≤ 0.01 slightly larger than Δα ≥ 0.03"), ran, r.confidence()),
	}
}

// checkReadings judges whether a reading of the inputs fits all that is printed of
// panel (a), by the widths that each was run at: it takes one that fits all, and
// fails where each fails at something.
func (r *Figure2Result) checkReadings() runs.Claim {
	c := verdict.Claim("own: (a) statements that the best reading of the inputs fits, of those printed",
		"Oymak+ 2021, Section 7a and Figure 2(a)")
	best, printed, open := 0, 0, false
	for _, one := range append([]*Figure2Result{r}, r.beside...) {
		fits, fails := 0, 0
		said := ""
		claims := one.checkPanel("a", func(_, name string) string { return name })
		for _, x := range claims {
			word := "inconclusive"
			switch x.Holds {
			case runs.Holds:
				word, fits = "holds", fits+1
			case runs.Fails:
				word, fails = "does not hold", fails+1
			case runs.NotKnown:
			}
			said += fmt.Sprintf("; %s: %s", x.Name, word)
		}
		c.Note = joined(one.reading()+said, c.Note)
		best, printed, open = max(best, fits), len(claims), open || fails == 0
	}
	c.Paper, c.Ours, c.Tolerance = runs.Number(printed), runs.Number(best), 0
	switch {
	case best == printed:
		c.Holds = runs.Holds
	case !open:
		c.Holds = runs.Fails
	}
	return c
}

// confidence is that of each claim.
func (r *Figure2Result) confidence() float64 { return verdict.Family(r.Params.Confidence, r.asked) }

// partial says which widths a panel's claims were judged on, where some of
// those asked for were not run.
func (r *Figure2Result) partial(panel string) string {
	var ran []string
	for _, k := range r.Params.widths(panel) {
		if slices.ContainsFunc(r.ran(panel), func(p figure2Point) bool { return p.width == k }) {
			ran = append(ran, strconv.Itoa(k))
		}
	}
	if len(ran) == 0 || len(ran) == len(r.Params.widths(panel)) {
		return ""
	}
	return "judged on k = " + strings.Join(ran, ", ") + " only, the other widths were not run"
}

// ran lists the points of a panel that have values.
func (r *Figure2Result) ran(panel string) []figure2Point {
	return slices.DeleteFunc(slices.Clone(r.points), func(p figure2Point) bool {
		return p.panel != panel || len(p.values) == 0
	})
}

// checkRange judges the largest mean.
func checkRange(c runs.Claim, points []figure2Point, end float64) runs.Claim {
	c.Paper, c.Tolerance, c.Allowed = runs.Number(end), 0, fmt.Sprintf("every mean at most %v", end)
	if len(points) == 0 {
		return verdict.NotRun(c, "no point of this panel")
	}
	top := slices.MaxFunc(points, func(a, b figure2Point) int { return cmp.Compare(a.summary.Mean, b.summary.Mean) })
	c.Ours, c.Lo, c.Hi = runs.Number(top.summary.Mean), top.summary.Lo, top.summary.Hi
	c.Holds = runs.Judge(top.summary.Mean <= end)
	c.Note = joined(fmt.Sprintf("ours is the largest mean, at k = %d, Δα = %v; the paper gives the axis 0–%v, "+
		"no values", top.width, top.delta, end), c.Note)
	return c
}

// joined is a note with what limits it, if anything does.
func joined(note, limits string) string {
	if limits == "" {
		return note
	}
	return note + "; " + limits
}

// mildSlope is the largest exponent that we call stable: over the paper's Δα, from
// 0.005 to 0.07, and over its widths, from 64 to 4096, the distance then changes by a
// factor of 1.3 and of 1.5.
const mildSlope = 0.1

// checkSlope judges the exponent of the distance over Δα or the width: of every seed
// the mean, over what is fixed, of its slopes on log–log axes, with an interval over
// seeds.
func (r *Figure2Result) checkSlope(
	c runs.Claim, points []figure2Point, of func(figure2Point) (fixed, over float64),
) runs.Claim {
	type curve struct{ x, y []float64 }
	curves := map[uint64]map[float64]*curve{}
	for _, p := range points {
		fixed, over := of(p)
		for i, seed := range p.seeds {
			if curves[seed] == nil {
				curves[seed] = map[float64]*curve{}
			}
			if curves[seed][fixed] == nil {
				curves[seed][fixed] = new(curve)
			}
			at := curves[seed][fixed]
			at.x, at.y = append(at.x, over), append(at.y, p.values[i])
		}
	}
	var slopes []float64
	for _, seed := range slices.Sorted(maps.Keys(curves)) {
		var own []float64
		for _, fixed := range slices.Sorted(maps.Keys(curves[seed])) {
			if at := curves[seed][fixed]; len(at.x) > 1 {
				slope, err := verdict.Slope(at.x, at.y)
				if err != nil {
					return verdict.NotRun(c, err.Error())
				}
				own = append(own, slope)
			}
		}
		if len(own) > 0 {
			slopes = append(slopes, stat.Mean(own, nil))
		}
	}
	if len(slopes) == 0 {
		return verdict.NotRun(c, "needs at least two points to compare")
	}
	c.Note = joined(fmt.Sprintf("the paper gives no number, the ±%v is ours; the interval is over %d α", mildSlope,
		len(slopes)), c.Note)
	s, err := runs.Summarize(slopes, r.confidence())
	return verdict.Near(c, s, err, 0, mildSlope)
}

// checkSmallDelta compares small and larger Δα, paired over seeds: of every seed the
// mean over the widths.
func checkSmallDelta(c runs.Claim, points []figure2Point, confidence float64) runs.Claim {
	c.Paper = 0
	small, large := pairedMeans(points)
	if len(small) < 2 {
		return verdict.NotRun(c, "needs Δα on both sides and at least two pairs")
	}
	c.Note = joined(fmt.Sprintf("ours is the mean difference over %d α, of each the mean over the widths; larger "+
		"means above 0", len(small)), c.Note)
	return verdict.Greater(c, small, large, confidence)
}

// pairedMeans are, for every seed, the mean distances over the small and over the
// larger Δα: the mean over the widths of the mean over the Δα.
func pairedMeans(points []figure2Point) (small, large []float64) {
	sides := map[uint64]map[int]*[2][]float64{} // by seed and width
	for _, p := range points {
		side := 0
		switch {
		case p.delta >= 0.03:
			side = 1
		case p.delta > 0.01:
			continue
		}
		for i, seed := range p.seeds {
			if sides[seed] == nil {
				sides[seed] = map[int]*[2][]float64{}
			}
			if sides[seed][p.width] == nil {
				sides[seed][p.width] = new([2][]float64)
			}
			sides[seed][p.width][side] = append(sides[seed][p.width][side], p.values[i])
		}
	}
	for _, seed := range slices.Sorted(maps.Keys(sides)) {
		var a, b []float64
		for _, width := range slices.Sorted(maps.Keys(sides[seed])) {
			if s := sides[seed][width]; len(s[0]) > 0 && len(s[1]) > 0 {
				a, b = append(a, stat.Mean(s[0], nil)), append(b, stat.Mean(s[1], nil))
			}
		}
		if len(a) > 0 {
			small, large = append(small, stat.Mean(a, nil)), append(large, stat.Mean(b, nil))
		}
	}
	return small, large
}
