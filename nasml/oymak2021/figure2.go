package oymak2021

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
	"github.com/nasml/lab/nasml/oymak2021/internal/sgdsweep"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// Figure2Params are the parameters of Figure 2. Comments say which of them the paper leaves open.
type Figure2Params struct {
	// Panels are "a", the input layer of a one-hidden-layer net, and "b", all weights of a four-layer net. A seed fixes
	// α ∈ [0, 1], initialization and batch order.
	Panels      []string  `validate:"min=1,unique,dive,oneof=a b"`
	Widths      []int     `validate:"unique,dive,gte=2,multiple=2"` // k of panel (a)
	DeepWidths  []int     `validate:"unique,dive,gte=4,multiple=4"` // k of panel (b)
	DeltaAlphas []float64 `validate:"min=1,unique,dive,gt=0,lte=1"` // Δα
	Seeds       int       `validate:"gte=1"`                        // number of random α

	Activations  [2]string // σ₀, σ₁ of σ_α = (1−α)σ₀ + ασ₁; names of supernet.Activations
	Optimizer    string    `validate:"oneof=sgd momentum adam"`
	LearningRate float64   `validate:"positive"`
	Momentum     float64   `validate:"gte=0,lt=1"` // of the optimizer "momentum"
	Batch        int       `validate:"gte=1"`      // examples a step; the last batch of an epoch may be smaller
	Epochs       int       `validate:"gte=1"`

	Data     data.Name
	Classes  [2]int `validate:"unique,dive,gte=0,lte=255"` // labels of the two classes; the first has the lower target
	Examples int    `validate:"gte=0"`                     // the first so many of these classes; 0: all

	// Targets, and inputs: x/255, of mean 0 and deviation 1, or of norm 1. Both are open in the paper; its Theorem 3
	// has ±1 and unit-norm.
	Labels string `validate:"oneof=0/1 ±1"`
	Inputs string `validate:"oneof=unit-interval standardized unit-norm"`

	// Beside are other readings of Inputs, trained at the widths BesideWidths of panel
	// (a), drawn and judged beside it; empty: none.
	Beside       []string `json:",omitempty" validate:"unique,dive,oneof=unit-interval standardized unit-norm"`
	BesideWidths []int    `json:",omitempty" validate:"unique,dive,gte=2,multiple=2"`

	Loss      string  `validate:"oneof=mse half-mse"` // per batch (1/|B|)Σ(f−y)², or half; the paper: "squared loss"
	C0        float64 `validate:"positive"`           // panel (a): v = ±√(c₀/k) as in Theorem 3, which leaves c₀ open
	Output    bool    // panel (b): σ_α after the last layer too; the paper: "for all layers"
	BeyondOne string  `validate:"oneof=allow reflect"` // what α+Δα > 1 becomes: itself, or α−Δα; open in the paper
	Precision string  `validate:"oneof=float32 float64"`

	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
	Together   int     `validate:"gte=0"`       // seeds in one graph, 0: all; changes no key
	StoredOnly bool    // show what the run store has and compute nothing
}

// Figure2Paper is the setting of Section 7a. Chosen where the paper is silent: targets 0/1 and inputs x/255 (what
// loaders of MNIST give), the mean of the squared error over a batch, c₀ = 1, no biases, α+Δα > 1 allowed.
//
// Panel (a) takes about two hours on two cores; of (b), k = 64 to 512 take 35 minutes and the widest ones need a
// GPU. The precomputed means end at 1.06 in (a), on the paper's axis to 1.4, and at 4.0 in (b), beyond its 3.0.
// Over Δα they go like a power of 0.010 ± 0.006 (a) and −0.02 ± 0.04 (b), over k of −0.021 ± 0.010 (a) and −0.04 ± 0.09
// (b); in (a) small Δα do not have the larger ones. Inputs of mean 0 and deviation 1 are the other reading, beside it
// at the widths that take two cores twenty minutes.
var Figure2Paper = Figure2Params{
	Panels:      []string{"a", "b"},
	Widths:      []int{64, 128, 256, 512, 1024, 2048, 4096},
	DeepWidths:  []int{64, 128, 256, 512, 1024, 2048, 4096},
	DeltaAlphas: []float64{0.005, 0.01, 0.03, 0.05, 0.07}, Seeds: 20,
	Activations: [2]string{"relu", "sigmoid"}, Optimizer: "sgd", LearningRate: 0.003, Momentum: 0.9,
	Batch: 128, Epochs: 60, Data: data.MNIST, Classes: [2]int{0, 1}, Labels: "0/1", Inputs: "unit-interval",
	Beside: []string{"standardized"}, BesideWidths: []int{64, 128, 256},
	Loss: "mse", C0: 1, Output: true, BeyondOne: "allow", Precision: "float32", Confidence: 0.95,
}

// Figure2Quick trains the three narrowest nets of (a) and the two narrowest of (b) for 4 α and 20 epochs over 4,096
// examples. Means end at 0.84 in (a) and at 1.4 in (b), with wide intervals.
var Figure2Quick = func() Figure2Params {
	p := Figure2Paper
	p.Widths, p.DeepWidths, p.Beside, p.BesideWidths = []int{64, 128, 256}, []int{64, 128}, nil, nil
	p.Seeds, p.Epochs, p.Examples = 4, 20, 4096
	return p
}()

// Figure2 trains networks with the activations σ_α and σ_{α+Δα} and measures how far apart their weights end. It
// returns an error if a training diverges.
var Figure2 = lab.Declare(lab.Entry[Figure2Params, sweepTrial]{
	Of: ofPaper, Name: "figure2", Kind: lab.Figure, Source: "Section 7a and Figure 2", Notebook: "figure2_lipschitz",
	Title: "Lipschitzness of SGD in the activation parameter: ‖θ_α − θ_{α+Δα}‖₂/Δα over the width",
	Cost: catalog.Cost{
		Quick: "a quarter of a minute on two cores",
		Paper: "(a) about two hours on two cores; (b) 35 minutes for k = 64 to 512, a day or more for all: a GPU; " +
			"the project ships the trials of (a) and of these four",
	},
	Quick: Figure2Quick, Paper: Figure2Paper,
	Shipped:   []catalog.Setting{{Scale: catalog.Paper, Set: []string{"StoredOnly=true"}}},
	Settings:  figure2Settings,
	Code:      code.Define("oymak2021/figure2", "oymak2021/internal/sgdsweep"),
	Note:      figure2Note,
	Rules:     Figure2Params.rules,
	Bench:     figure2Bench,
	Draw:      drawFigure2,
	Questions: []lab.Question[Figure2Params, sweepTrial]{figure2Panel("a"), figure2Panel("b"), figure2Readings},
})

type figure2 = lab.Result[Figure2Params, sweepTrial]

func (p Figure2Params) rules(c *study.Checks) {
	for _, panel := range p.Panels {
		c.Expect(len(p.widths(panel)) > 0, "there is no width for panel %q", panel)
	}
	for _, name := range p.Activations {
		err := supernet.CheckActivation(name)
		c.Expect(err == nil, "%v", err)
	}
	checkSet(c, "Data", p.Data)
	c.Expect(!slices.Contains(p.Beside, p.Inputs), "Beside has %q, which Inputs is", p.Inputs)
	c.Expect(len(p.Beside) == 0 || len(p.BesideWidths) > 0, "BesideWidths must have widths of (a) for Beside")
}

func (p Figure2Params) widths(panel string) []int {
	if panel == "b" {
		return p.DeepWidths
	}
	return p.Widths
}

type sweepTrial struct {
	sgdsweep.Network
	DeltaAlpha float64 `json:"delta_alpha"`
}

func (t sweepTrial) String() string { return fmt.Sprintf("(%s) k = %d", t.Panel, t.Width) }

func (p Figure2Params) sweep(panel, inputs string, widths []int) (gs lab.Groups[sweepTrial]) {
	p.Inputs = inputs
	for _, delta := range p.DeltaAlphas {
		for _, k := range widths {
			gs.Add(panel+" "+inputs, p.Seeds, sweepTrial{p.network(panel, k), delta})
		}
	}
	return gs
}

// network are the parameters that a trial of a panel depends on. Fields that do not apply stay zero and change no key.
func (p Figure2Params) network(panel string, k int) sgdsweep.Network {
	n := sgdsweep.Network{
		Panel: panel, Width: k, Activations: p.Activations, Optimizer: p.Optimizer, LearningRate: p.LearningRate,
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

func figure2Note(params any) string {
	switch p := params.(Figure2Params); {
	case p.computes(Figure2Paper):
		return "The paper's setting."
	case p.computes(Figure2Quick):
		return "Quick scale, not the paper's setting."
	}
	return "Varied parameters, not the paper's setting."
}

// computes reports whether the trials of p are those of a preset, up to widths, Δα and seeds. A custom activation under
// a name of the preset's differs.
func (p Figure2Params) computes(preset Figure2Params) bool {
	keys, err := p.activationKeys()
	p.Activations = keys
	same := func(panel string) bool { return reflect.DeepEqual(p.network(panel, 4), preset.network(panel, 4)) }
	return err == nil && p.Data == preset.Data && same("a") && same("b")
}

func (p Figure2Params) activationKeys() (keys [2]string, err error) {
	for i, name := range p.Activations {
		if keys[i], err = supernet.ActivationKey(name); err != nil {
			return keys, err
		}
	}
	return keys, nil
}

// figure2Bench trains all trials of a width (of p.Together seeds) in one graph, whole epochs at a time if that takes at
// most seconds. Cancelled, it stops within seconds; finished trials and the checkpoint of the others are kept.
func figure2Bench(ctx context.Context, p Figure2Params, _ string) (b lab.Bench[sweepTrial], err error) {
	images, err := p.view().Open(ctx)
	if err != nil {
		return b, err
	}
	keys, err := p.activationKeys()
	if err != nil {
		return b, err
	}
	if images.Note != "" {
		b.Title = "oymak2021/figure2, on the digits that travel with the project"
	}
	b.Device, b.Note = backend.Opener(1), images.Note
	b.Key = func(t sweepTrial) any {
		t.Activations = keys
		return t
	}
	b.Data = func(sweepTrial) string { return images.Fingerprint }
	steps := func(t sweepTrial) int { // 0: a record's, of data of another size
		examples := t.Examples
		if examples == p.Examples {
			examples = images.Len
		}
		return t.Epochs * ((examples + t.Batch - 1) / t.Batch)
	}
	b.Units = func(t sweepTrial) int { return t.units() * steps(t) }
	b.Seconds = func(t sweepTrial) float64 { return t.seconds(steps(t)) / float64(runtime.NumCPU()) }
	b.Together = func(t sweepTrial, seed uint64) any {
		type graph struct {
			panel, inputs string
			width         int
			seeds         uint64
		}
		return graph{t.Panel, t.Inputs, t.Width, seed / uint64(cmp.Or(p.Together, p.Seeds))}
	}
	b.Batch = func(ctx context.Context, job lab.Job[sweepTrial]) error {
		im, err := images.Images(ctx)
		if err != nil {
			return err
		}
		return trainSweep(ctx, job, pixelsOf(im))
	}
	return b, nil
}

func (p Figure2Params) view() data.View {
	view := viewOf(p.Data, p.Classes)
	view.First, view.OrShipped = p.Examples, true
	return view
}

func (t sweepTrial) units() int {
	const unit = 1 << 12
	return 1 + t.Weights(digitPixels)/unit
}

// seconds is what so many steps take a core, fitted to k = 64 to 4,096 in (a) and 64 to 256 in (b). Most pixels are 0,
// which the first layer leaves out.
func (t sweepTrial) seconds(steps int) float64 {
	first, activations := float64(digitPixels*t.Width), float64(t.Width)
	if t.Panel == "b" {
		activations *= 1.75 // k, k/2 and k/4
	}
	dense, pixel := float64(t.Weights(digitPixels))-first, 26.
	if t.Inputs != "unit-interval" {
		pixel = 54
	}
	return float64(steps*t.Batch) * (pixel*first + 54*dense + 1e4*activations) * 1e-12
}

// checkpointEvery bounds what a killed run loses. A sweep may hold gigabytes, so saving after every epoch could cost
// more than it saves.
var checkpointEvery = runs.Interval(time.Minute)

func trainSweep(ctx context.Context, job lab.Job[sweepTrial], images *pixels.Images) error {
	b, err := backend.Open()
	if err != nil {
		return err
	}
	first := job.Of[0]
	pairs := study.Map(trial.Indices(0, len(job.Of)), func(i int) sgdsweep.Pair {
		return sgdsweep.Pair{Seed: job.Trials[i].Seed, DeltaAlpha: job.Of[i].DeltaAlpha}
	})
	s, err := sgdsweep.New(first.Network, images, pairs)
	if err != nil {
		return err
	}
	p, err := resumeSweep(s, job)
	if err != nil {
		return err
	}
	unit, done := first.units()*len(pairs), s.Done(p)
	job.Progress.Skip(unit * done)
	err = s.Train(ctx, b, p, func() error {
		before := done
		done = s.Done(p)
		job.Progress.Step(unit*(done-before), fmt.Sprintf("%v, epoch %d/%d", first, p.Epoch, first.Epochs))
		_, err := job.SaveEvery(checkpointEvery, p.Save)
		return err
	})
	if err != nil {
		return errors.Join(err, saveCancelled(ctx, s, job, p))
	}
	results, err := s.Results(pairs, p)
	if err != nil {
		return err
	}
	return job.DoneAll(results)
}

// resumeSweep starts from the job's checkpoint, or from the initial weights if there is none, or one in another layout.
func resumeSweep(s *sgdsweep.Sweep, job lab.Job[sweepTrial]) (*sgdsweep.Progress, error) {
	r, err := job.Load()
	if err == nil {
		defer r.Close()
		p := s.Start()
		if err = p.Load(r); err == nil {
			return p, nil
		}
	}
	if errors.Is(err, runs.ErrNotFound) || errors.Is(err, checkpoint.ErrOther) {
		return s.Start(), nil
	}
	return nil, err
}

// saveCancelled saves the state of a cancelled sweep if that is quick: a notebook's cell is killed five seconds after
// it was stopped.
func saveCancelled(ctx context.Context, s *sgdsweep.Sweep, job lab.Job[sweepTrial], p *sgdsweep.Progress) error {
	const atMost = 1 << 29 // bytes
	if ctx.Err() == nil || s.Done(p) == 0 || p.Bytes() > atMost {
		return nil
	}
	return job.Save(p.Save)
}

// Figure2Work is the training of one width of Figure 2, all its seeds and Δα in one graph, which a benchmark runs again
// and again from the same start. It is the code that Figure2 runs.
type Figure2Work = sgdsweep.Work

// NewFigure2Work prepares the training of width k of a panel, "a" or "b". It returns an error if p is invalid or the
// data are not available.
func NewFigure2Work(ctx context.Context, b compute.Backend, p Figure2Params, panel string, k int) (
	*Figure2Work, error) {
	p.Panels, p.Widths, p.DeepWidths = []string{panel}, []int{k}, nil
	if panel == "b" {
		p.Widths, p.DeepWidths = nil, []int{k}
	}
	var c study.Checks
	c.Limits(p)
	p.rules(&c)
	if err := c.Err("figure 2"); err != nil {
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
	var pairs []sgdsweep.Pair
	for _, seed := range trial.Seeds(p.Seeds) {
		for _, delta := range p.DeltaAlphas {
			pairs = append(pairs, sgdsweep.Pair{Seed: seed, DeltaAlpha: delta})
		}
	}
	s, err := sgdsweep.New(p.network(panel, k), pixelsOf(images), pairs)
	if err != nil {
		return nil, err
	}
	return s.Work(b)
}
