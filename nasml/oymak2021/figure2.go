// Package oymak2021 reproduces the figures, tables and theorems of Oymak, Li,
// Soltanolkotabi, "Generalization Guarantees for Neural Architecture Search
// with Train-Validation Split", ICML 2021 (Oymak+).
package oymak2021

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
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

	Labels    string  // targets "0/1" or "±1"; open in the paper (±1 in its Theorem 3)
	Inputs    string  // "unit-interval" x/255, "standardized" or "unit-norm" (Theorem 3); open in the paper
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
	Loss:         "mse",
	C0:           1,
	Output:       true,
	BeyondOne:    "allow",
	Precision:    "float32",
	Confidence:   0.95,
}

// Figure2Quick is a smaller setting with the same arithmetic: narrower nets,
// fewer α, fewer epochs and a part of the data.
var Figure2Quick = func() Figure2Params {
	p := Figure2Paper
	p.Widths = []int{64, 128, 256}
	p.DeepWidths = []int{64, 128}
	p.Seeds = 4
	p.Epochs = 20
	p.Examples = 4096
	return p
}()

const (
	figure2ID    = "oymak2021/figure2"
	figure2Title = "Lipschitzness of SGD in the activation parameter: ‖θ_α − θ_{α+Δα}‖₂/Δα over the width"
)

func init() {
	catalog.Register(catalog.Entry{
		ID:       figure2ID,
		Paper:    "Oymak+ 2021",
		Title:    figure2Title,
		Kind:     "figure",
		Notebook: "notebooks/oymak2021/figure2_lipschitz.ipynb",
		Cost:     catalog.Cost{Quick: "about a minute on two cores", Paper: "(a) two to five hours on two cores; (b) a day or more: a GPU"},
	}, Figure2Quick, Figure2Paper, Figure2)
}

// Figure2Point is one point of a curve: the mean over the seeds of
// ‖θ_α − θ_{α+Δα}‖₂/Δα for a panel, a width and a Δα.
type Figure2Point struct {
	Panel   string
	Width   int
	Delta   float64
	Seeds   []uint64     // those with a value
	Values  []float64    // the normalized distance of each of them
	Losses  []float64    // mean training loss of α and α+Δα in the last epoch
	Summary runs.Summary // over Values; zero where there is none
	Missing int          // seeds that were not run
	records []*runs.Record
}

// Figure2Result holds the points of Figure 2, panel by panel, Δα by Δα, width
// by width.
type Figure2Result struct {
	Params Figure2Params
	Scale  string // "quick", "paper" or empty for own parameters
	Points []Figure2Point
}

// Records are the keys of the trials behind the points.
func (r *Figure2Result) Records() []string {
	var keys []string
	for _, p := range r.Points {
		for _, record := range p.records {
			keys = append(keys, record.Key)
		}
	}
	return keys
}

//go:embed figure2_train.go figure2_data.go
var figure2Sources embed.FS

// shippedRecords are the trials that the project ships: long runs that nobody
// should have to repeat to see a figure or a theorem.
//
//go:embed records
var shippedRecords embed.FS

var figure2Code = sync.OnceValues(func() (string, error) {
	return runs.CodeVersion(figure2Sources, supernet.Sources)
})

// figure2Trial is what one distance depends on.
type figure2Trial struct {
	network
	DeltaAlpha float64 `json:"delta_alpha"`
}

// Figure2 computes what the run store lacks of Figure 2: the trials of one
// width (of p.Together seeds of it) are trained together in one graph, whole
// epochs at a time where that takes seconds at most. Cancelling ctx ends it within seconds, with the
// finished trials stored and the others at their checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the data cannot be had, and where a training diverges.
func Figure2(ctx context.Context, p Figure2Params) (*Figure2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	run, err := p.prepare(ctx)
	if err != nil {
		return nil, err
	}
	groups := run.groups()
	total := 0
	for _, g := range groups {
		total += run.units(g)
	}
	run.progress.Start(total, figure2ID)
	defer run.progress.Done()
	result := &Figure2Result{Params: p, Scale: runs.Scale(ctx)}
	records := map[pointID][]*runs.Record{}
	for _, g := range groups {
		if err := run.compute(ctx, g, records); err != nil {
			return nil, fmt.Errorf("figure 2 (%s), k = %d: %w", g.net.Panel, g.net.Width, err)
		}
	}
	return result, result.collect(records)
}

// pointID names a point of the figure.
type pointID struct {
	panel string
	width int
	delta float64
}

// figure2Run is a call of Figure2: parameters with all that was opened for them.
type figure2Run struct {
	params   Figure2Params
	images   *data.Images
	store    *runs.Store
	progress runs.Progress
	code     string
}

func (p Figure2Params) prepare(ctx context.Context) (*figure2Run, error) {
	store, err := runs.FromContextWith(ctx, shippedRecords, "figure2")
	if err != nil {
		return nil, err
	}
	code, err := figure2Code()
	if err != nil {
		return nil, err
	}
	images, err := p.images(ctx)
	if err != nil {
		return nil, err
	}
	progress := runs.ProgressFrom(ctx)
	return &figure2Run{p, images, store, progress, code}, nil
}

// images are the training examples of the two classes.
func (p Figure2Params) images(ctx context.Context) (*data.Images, error) {
	im, err := data.Load(ctx, p.Data, data.Train)
	if err != nil {
		return nil, err
	}
	im, err = im.Classes(uint8(p.Classes[0]), uint8(p.Classes[1]))
	if err != nil || p.Examples == 0 {
		return im, err
	}
	return im.Head(p.Examples)
}

// group is what is trained in one graph: some seeds of one network.
type group struct {
	net   network
	seeds []uint64
}

// groups lists the graphs to run, the cheap ones first.
func (r *figure2Run) groups() []group {
	var all []group
	for _, panel := range r.params.Panels {
		for _, k := range r.params.widths(panel) {
			seeds := runs.Seeds(r.params.Seeds)
			size := r.params.Together
			if size == 0 {
				size = len(seeds)
			}
			for part := range slices.Chunk(seeds, size) {
				all = append(all, group{r.params.network(panel, k), part})
			}
		}
	}
	return all
}

func (p Figure2Params) widths(panel string) []int {
	if panel == "b" {
		return p.DeepWidths
	}
	return p.Widths
}

// network is the part of the parameters that a trial of a panel depends on; a
// field that does not apply stays zero, so that it changes no key.
func (p Figure2Params) network(panel string, k int) network {
	n := network{
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

// units is the cost of one batch in units of about equal time: the models
// times the weights of each.
func (n network) units(seeds, deltas int) int {
	const inputs, unit = 784, 1 << 12
	weights := 0
	for _, l := range n.layers(inputs) {
		weights += l[0] * l[1]
	}
	return 1 + seeds*(1+deltas)*weights/unit
}

// units is the cost of all that a group may have to compute.
func (r *figure2Run) units(g group) int {
	steps := (r.images.Len() + g.net.Batch - 1) / g.net.Batch
	return g.net.units(len(g.seeds), len(r.params.DeltaAlphas)) * g.net.Epochs * steps
}

// compute reads or runs the trials of a group and files them by point.
func (r *figure2Run) compute(ctx context.Context, g group, out map[pointID][]*runs.Record) error {
	trials := r.trials(g)
	planned := r.units(g)
	var found []*runs.Record
	if r.params.StoredOnly {
		var err error
		if found, err = r.store.Stored(trials); err != nil {
			return err
		}
	} else {
		var err error
		found, err = r.store.Compute(ctx, trials, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
			units, err := r.train(ctx, g, job)
			planned -= units
			return err
		})
		if err != nil {
			return err
		}
	}
	r.progress.Skip(max(0, planned))
	for i, record := range found {
		if record != nil {
			id := pointID{g.net.Panel, g.net.Width, trials[i].Params.(figure2Trial).DeltaAlpha}
			out[id] = append(out[id], record)
		}
	}
	return nil
}

// trials lists the trials of a group.
func (r *figure2Run) trials(g group) []runs.Trial {
	var trials []runs.Trial
	for _, seed := range g.seeds {
		for _, delta := range r.params.DeltaAlphas {
			trials = append(trials, runs.Trial{
				Figure: figure2ID, Params: figure2Trial{g.net, delta}, Seed: seed,
				Code: r.code, Data: r.images.Fingerprint,
			})
		}
	}
	return trials
}

// checkpointEvery bounds what a killed run loses. A sweep may hold gigabytes,
// so saving after every epoch could cost more than it saves.
var checkpointEvery = time.Minute

// train runs the sweep that a job's trials need and stores their results. It
// returns the units of progress that it counted.
func (r *figure2Run) train(ctx context.Context, g group, job *runs.Job) (int, error) {
	b, err := backend.Open()
	if err != nil {
		return 0, err
	}
	job.Backend, job.Device = backend.Describe(b)
	s := newSweep(g.net, job.Trials)
	if err := s.setData(r.images); err != nil {
		return 0, err
	}
	p, err := s.resume(job)
	if err != nil {
		return 0, err
	}
	unit, done := g.net.units(len(s.seeds), len(s.deltas)), p.Epoch*s.steps()+p.Step
	r.progress.Skip(unit * done)
	err = s.train(ctx, b, p, func() error {
		before := done
		done = p.Epoch*s.steps() + p.Step
		r.progress.Step(unit*(done-before), fmt.Sprintf("(%s) k = %d, epoch %d/%d", g.net.Panel, g.net.Width, p.Epoch, g.net.Epochs))
		_, err := job.SaveEvery(checkpointEvery, p.save)
		return err
	})
	if err != nil {
		return 0, errors.Join(err, s.saveCancelled(ctx, job, p))
	}
	results, err := s.results(job.Trials, p)
	if err != nil {
		return 0, err
	}
	return unit * g.net.Epochs * s.steps(), job.DoneAll(results)
}

// newSweep is the smallest rectangle of seeds × Δα that holds the trials.
func newSweep(net network, trials []runs.Trial) *sweep {
	s := &sweep{net: net}
	for _, t := range trials {
		if !slices.Contains(s.seeds, t.Seed) {
			s.seeds = append(s.seeds, t.Seed)
		}
		if delta := t.Params.(figure2Trial).DeltaAlpha; !slices.Contains(s.deltas, delta) {
			s.deltas = append(s.deltas, delta)
		}
	}
	return s
}

// resume starts from the job's checkpoint where there is one, else from the
// initial weights.
func (s *sweep) resume(job *runs.Job) (*progress, error) {
	p := &progress{state: s.initialState()}
	r, err := job.Load()
	if errors.Is(err, runs.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return p, p.load(r)
}

// saveCancelled keeps what a cancelled sweep has reached, if that is quick: a
// notebook's cell is killed five seconds after it was stopped.
func (s *sweep) saveCancelled(ctx context.Context, job *runs.Job, p *progress) error {
	const atMost = 1 << 29 // bytes
	var size int64
	for _, t := range p.state {
		size += t.ByteSize()
	}
	if ctx.Err() == nil || p.Epoch+p.Step == 0 || size > atMost {
		return nil
	}
	return job.Save(p.save)
}

// results are the finished numbers of each trial.
func (s *sweep) results(trials []runs.Trial, p *progress) ([]runs.Result, error) {
	distances, err := s.distances(p)
	if err != nil {
		return nil, err
	}
	variants := 1 + len(s.deltas)
	results := make([]runs.Result, len(trials))
	for i, t := range trials {
		delta := t.Params.(figure2Trial).DeltaAlpha
		j, v := slices.Index(s.seeds, t.Seed), slices.Index(s.deltas, delta)
		last := p.Losses[len(p.Losses)-1]
		results[i] = runs.Result{Values: map[string]float64{
			"alpha":          alphaOf(t.Seed),
			"distance":       distances[j][v] / delta,
			"loss":           last[j*variants],
			"loss_perturbed": last[j*variants+v+1],
		}}
	}
	return results, nil
}

// collect turns records into points with their statistics.
func (r *Figure2Result) collect(records map[pointID][]*runs.Record) error {
	for _, panel := range r.Params.Panels {
		for _, delta := range r.Params.DeltaAlphas {
			for _, k := range r.Params.widths(panel) {
				point, err := r.point(panel, k, delta, records[pointID{panel, k, delta}])
				if err != nil {
					return fmt.Errorf("figure 2 (%s), k = %d, Δα = %v: %w", panel, k, delta, err)
				}
				r.Points = append(r.Points, point)
			}
		}
	}
	return nil
}

func (r *Figure2Result) point(panel string, k int, delta float64, records []*runs.Record) (Figure2Point, error) {
	p := Figure2Point{Panel: panel, Width: k, Delta: delta, Missing: r.Params.Seeds - len(records), records: records}
	for _, record := range records {
		p.Seeds = append(p.Seeds, record.Trial.Seed)
		p.Values = append(p.Values, record.Values["distance"])
		p.Losses = append(p.Losses, (record.Values["loss"]+record.Values["loss_perturbed"])/2)
	}
	if len(records) == 0 {
		return p, nil
	}
	var err error
	p.Summary, err = runs.Summarize(p.Values, r.Params.Confidence)
	return p, err
}

// check says what is wrong with the parameters, all of it at once.
func (p Figure2Params) check() error {
	var c checker
	p.checkSweep(&c)
	p.checkTraining(&c)
	p.checkData(&c)
	if len(c) > 0 {
		return catalog.Usagef("parameters of figure 2: %s", strings.Join(c, "; "))
	}
	return nil
}

// checker collects what is wrong.
type checker []string

func (c *checker) expect(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

func (c *checker) oneOf(field, value string, allowed ...string) {
	c.expect(slices.Contains(allowed, value), "%s is %q, want one of %s", field, value, strings.Join(allowed, ", "))
}

// checkSweep looks at what is varied.
func (p Figure2Params) checkSweep(c *checker) {
	c.expect(len(p.Panels) > 0, "Panels is empty, want a, b or both")
	for _, panel := range p.Panels {
		c.oneOf("Panels", panel, "a", "b")
		c.expect(len(p.widths(panel)) > 0, "there is no width for panel %q", panel)
	}
	for _, k := range p.Widths {
		c.expect(k >= 2 && k%2 == 0, "Widths has %d, want even numbers from 2", k)
	}
	for _, k := range p.DeepWidths {
		c.expect(k >= 4 && k%4 == 0, "DeepWidths has %d, want multiples of 4", k)
	}
	c.expect(len(p.DeltaAlphas) > 0, "DeltaAlphas is empty")
	for _, delta := range p.DeltaAlphas {
		c.expect(delta > 0 && delta <= 1, "DeltaAlphas has %v, want 0 < Δα ≤ 1", delta)
	}
	c.expect(distinct(p.Panels) && distinct(p.Widths) && distinct(p.DeepWidths) && distinct(p.DeltaAlphas),
		"Panels, Widths, DeepWidths and DeltaAlphas must not repeat a value")
	c.expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	c.expect(p.Together >= 0, "Together is %d, want 0 (all) or more", p.Together)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
}

// checkTraining looks at the networks and how they are trained.
func (p Figure2Params) checkTraining(c *checker) {
	for _, name := range p.Activations {
		err := supernet.CheckActivation(name)
		c.expect(err == nil, "%v", err)
	}
	c.oneOf("Optimizer", p.Optimizer, "sgd", "momentum", "adam")
	c.expect(p.LearningRate > 0, "LearningRate is %v, want more than 0", p.LearningRate)
	c.expect(p.Momentum >= 0 && p.Momentum < 1, "Momentum is %v, want 0 ≤ μ < 1", p.Momentum)
	c.expect(p.Batch >= 1 && p.Epochs >= 1, "Batch is %d and Epochs %d, want at least 1", p.Batch, p.Epochs)
	c.expect(p.C0 > 0, "C0 is %v, want more than 0", p.C0)
	c.oneOf("Loss", p.Loss, "mse", "half-mse")
	c.oneOf("BeyondOne", p.BeyondOne, "allow", "reflect")
	c.oneOf("Precision", p.Precision, "float32", "float64")
}

// checkData looks at the examples.
func (p Figure2Params) checkData(c *checker) {
	sets := append(data.Names(), data.Synthetic)
	c.expect(slices.Contains(sets, p.Data), "Data is %q, want one of %v", p.Data, sets)
	for _, class := range p.Classes {
		c.expect(class >= 0 && class <= 255, "Classes has %d, want labels from 0 to 255", class)
	}
	c.expect(p.Classes[0] != p.Classes[1], "Classes is %v, want two different labels", p.Classes)
	c.expect(p.Examples >= 0, "Examples is %d, want 0 (all) or more", p.Examples)
	c.oneOf("Labels", p.Labels, "0/1", "±1")
	c.oneOf("Inputs", p.Inputs, "unit-interval", "standardized", "unit-norm")
}

func distinct[T comparable](xs []T) bool {
	seen := map[T]bool{}
	for _, x := range xs {
		if seen[x] {
			return false
		}
		seen[x] = true
	}
	return true
}
