package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/differ"
	"github.com/nasml/lab/nasml/internal/images"
	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/simplex"
)

// Settings are all that a weight-sharing search depends on besides data and seed. They are JSON and part of a trial's
// key.
type Settings struct {
	Method  string   `json:"method"`            // a name of Methods
	Space   string   `json:"space"`             // a name of supernet.Spaces, CellSpaces or OneShots
	Without []string `json:"without,omitempty"` // operations that are left out

	// The supernet.
	Channels   int  `json:"channels"`  // C of the first stage
	Cells      int  `json:"cells"`     // NAS-Bench-201: N of each stage; others: all, L
	Image      int  `json:"image"`     // side of the images, pixels; smaller than the data's: 2×2 means
	Affine     bool `json:"affine"`    // batch norm in cells has scale and shift
	ConvBias   bool `json:"conv_bias"` // convolutions in cells have a bias
	TrackStats bool `json:"track_stats"`

	// TrackOutside is TrackStats without the cells: see supernet.Config.
	TrackOutside bool `json:"track_outside,omitempty"`

	// The supernet in other spaces than NAS-Bench-201, where BN always keeps running statistics.
	Partial     int    `json:"partial,omitempty"`      // K of PC-DARTS: operations see 1/K of the channels; 0: all
	EdgeWeights bool   `json:"edge_weights,omitempty"` // edges of cells with two inputs have weights in θ, else 1
	Stem        string `json:"stem,omitempty"`         // of supernet.Stems; empty: that for CIFAR-10
	AddInput    bool   `json:"add_input,omitempty"`    // NAS-Bench-1Shot1: see supernet.OneShotConfig
	Ties        string `json:"ties,omitempty"`         // NAS-Bench-1Shot1: of supernet.TieRules; empty: the first

	// The weights.
	Epochs          int     `json:"epochs"`
	Batch           int     `json:"batch"`
	LearningRate    float64 `json:"learning_rate"`         // at the first epoch
	LearningRateMin float64 `json:"learning_rate_min"`     // at the end of the cosine
	ScheduleEpochs  int     `json:"schedule_epochs"`       // length of the cosine; 0: Epochs
	RateWarmup      int     `json:"rate_warmup,omitempty"` // epochs with LearningRate·(e+1)/RateWarmup instead
	Momentum        float64 `json:"momentum"`
	Nesterov        bool    `json:"nesterov"`
	WeightDecay     float64 `json:"weight_decay"`

	// How weights and architecture take turns.
	Bilevel bilevel.Settings `json:"bilevel"`

	// Running says which passes move the running statistics of batch norm, and how often.
	Running Running `json:"running,omitempty"`

	// The architecture.
	Start           string  `json:"start"`  // "uniform", or "normal": α = 10⁻³·N(0, 1)
	Update          string  `json:"update"` // empty: the method's own
	ArchRate        float64 `json:"arch_rate"`
	EdgeUpdate      string  `json:"edge_update,omitempty"`       // of blocks of θ that weigh edges; empty: as all
	EdgeRate        float64 `json:"edge_rate,omitempty"`         // likewise; 0: ArchRate
	ArchBeta1       float64 `json:"arch_beta1,omitempty"`        // of Adam
	ArchBeta2       float64 `json:"arch_beta2,omitempty"`        // of Adam
	ArchEpsilon     float64 `json:"arch_epsilon,omitempty"`      // of Adam; 0: 1e-8
	ArchWeightDecay float64 `json:"arch_weight_decay,omitempty"` // L2 of α, added to its gradient
	EntropyWeight   float64 `json:"entropy_weight,omitempty"`    // of Σθ log(θ|O|), the distance to the uniform point
	TauFirst        float64 `json:"tau_first,omitempty"`         // temperature of the Gumbel-softmax
	TauLast         float64 `json:"tau_last,omitempty"`
	TauFrom         int     `json:"tau_from,omitempty"`      // epoch at which it begins to fall
	GradientClip    float64 `json:"gradient_clip,omitempty"` // XNAS: bound of an example's gradient

	// The images: Augment for those in memory; Crop for photographs in files, see NewOf.
	Split   string         `json:"split"` // "ordered": first half for weights, second for the architecture; or "random"
	Augment images.Augment `json:"augment"`
	Crop    images.Crop    `json:"crop,omitzero"`

	// Parts, where it is set, takes the place of the two halves.
	Parts Shares `json:"parts,omitzero"`

	// The end.
	Candidates     int `json:"candidates,omitempty"`      // ranked by shared weights
	CandidateBatch int `json:"candidate_batch,omitempty"` // images that each is ranked on
	EvaluateEvery  int `json:"evaluate_every"`            // epochs between two evaluations; 0: one at the end

	// Curvature is the number of products with the Hessian of the validation loss in the architecture that estimate its
	// largest eigenvalue at every evaluation; 0: none.
	Curvature int `json:"curvature,omitempty"`

	// Instruments is likewise the number of products that estimate the convexity of the validation loss in θ, and turns
	// on [Readings]; 0: none.
	Instruments int `json:"instruments,omitempty"`

	Control ControllerSettings `json:"controller,omitzero"` // ENAS only

	// The machine. One device gives the keys that settings had before these.
	Devices    int        `json:"devices,omitempty"`    // of one host that share each batch equally; 0 or 1: one
	Statistics Statistics `json:"statistics,omitempty"` // of batch norm, over several devices
}

// Shares are numbers of images, one part after another: those that train the weights, move the architecture, and are
// only evaluated.
type Shares struct {
	Train      int `json:"train"`
	Validation int `json:"validation"`
	Test       int `json:"test,omitempty"` // 0: there are none, and accuracies on training images are not recorded
}

// Running says which passes of a step move running statistics, besides that of the weights.
type Running string

// OuterPass is the validation pass whose gradient is taken. InnerPasses are the training passes of an unrolled step,
// one after another, and not the validation pass, which DARTS' code makes on a copy of the network
// (quark0/darts@f276dd3, architect.py). OuterTwice is the validation pass, made twice, as in GAEA's code on
// NAS-Bench-1Shot1 (liamcli/nasbench-1shot1@e369bd7, optimizers/edarts/architect.py:117-118). OperationsTwice is as
// OuterPass, but every pass, that of the weights too, moves the statistics inside operations twice: the programs for
// ImageNet call each mixed operation a second time to ask on which device its output is (yuhuixu1993/PC-DARTS@b74702f,
// model_search_imagenet.py:93; liamcli/PC-DARTS@dc3cfe0, model_search_imagenet_edarts.py:94).
const (
	OuterPass       Running = ""
	InnerPasses     Running = "inner"
	OuterTwice      Running = "twice"
	OperationsTwice Running = "operations-twice"
)

// ControllerSettings are those of ENAS's controller.
type ControllerSettings struct {
	Hidden        int     `json:"hidden"`         // units of a layer of the LSTM, which has two
	Rate          float64 `json:"rate"`           // of Adam
	Steps         int     `json:"steps"`          // updates after each epoch
	Samples       int     `json:"samples"`        // architectures of an update
	EntropyWeight float64 `json:"entropy_weight"` // of the reward
	BaselineDecay float64 `json:"baseline_decay"`
	Temperature   float64 `json:"temperature"` // logits are Tanh·tanh(z/Temperature)
	Tanh          float64 `json:"tanh"`
}

// Plan is what checked settings come to: forecasts and searches are made of it.
type Plan struct {
	Settings
	Opened Space // the search space; nil if it cannot be opened
}

// Check returns every invalid setting.
func (s Settings) Check() error {
	_, err := s.Plan(10)
	return err
}

// Plan checks the settings and opens their space for a number of classes. It returns every invalid setting.
func (s Settings) Plan(classes int) (Plan, error) {
	p := Plan{Settings: s}
	m, err := lookup(s.Method)
	e := expectation{err}
	e = append(e, s.Bilevel.Check())
	sizes := s.Channels >= 1 && s.Cells >= 1 && s.Image >= 1 && s.Partial >= 0
	e.that(sizes, "Channels, Cells and Image must be at least 1, got %d, %d and %d, and Partial at least 0, got %d",
		s.Channels, s.Cells, s.Image, s.Partial)
	if sizes { // zeros would be read as the standard ones
		p.Opened, err = s.checkSpace(m, classes)
		e = append(e, err)
	}
	e.that(s.Epochs >= 1 && s.Batch >= 2,
		"Epochs must be at least 1, got %d, and Batch at least 2 for batch norm, got %d", s.Epochs, s.Batch)
	e.that(s.LearningRate > 0 && s.LearningRateMin >= 0,
		"LearningRate must be positive, got %v, and LearningRateMin at least 0, got %v",
		s.LearningRate, s.LearningRateMin)
	e.that(s.ScheduleEpochs >= 0 && s.EvaluateEvery >= 0 && s.Curvature >= 0 && s.RateWarmup >= 0 &&
		s.Instruments >= 0,
		"ScheduleEpochs, EvaluateEvery, Curvature, Instruments and RateWarmup must be at least 0, got %d, %d, %d, "+
			"%d and %d",
		s.ScheduleEpochs, s.EvaluateEvery, s.Curvature, s.Instruments, s.RateWarmup)
	e.that(s.Momentum >= 0 && s.Momentum < 1 && s.WeightDecay >= 0,
		"Momentum must be at least 0 and less than 1, got %v, and WeightDecay at least 0, got %v", s.Momentum,
		s.WeightDecay)
	e.that(s.Split == "ordered" || s.Split == "random", "Split must be ordered or random, got %q", s.Split)
	e = append(e, s.checkParts(), s.Augment.Check(), s.Crop.Check(), s.checkDevices(m))
	return p, errors.Join(append(e, s.checkArchitecture(m))...)
}

func (s Settings) checkParts() error {
	if p := s.Parts; p != (Shares{}) &&
		(p.Train < 2 || p.Validation < 2 || p.Test < 0 || s.Bilevel.Level != bilevel.Bilevel) {
		return fmt.Errorf("Parts must have at least 2 images for training and for validation at the level %q, "+
			"got %+v at the level %q", bilevel.Bilevel, p, s.Bilevel.Level)
	}
	return nil
}

// expectation collects what is wrong.
type expectation []error

func (e *expectation) that(ok bool, format string, args ...any) {
	if !ok {
		*e = append(*e, fmt.Errorf(format, args...))
	}
}

// checkDevices checks that several devices can share a search.
func (s Settings) checkDevices(m Method) error {
	var e expectation
	e.that(s.Devices >= 0, "Devices must be at least 0, got %d", s.Devices)
	e.that(s.Statistics == Synchronised || s.Statistics == PerDevice, "Statistics must be %q (synchronised) or %q, "+
		"got %q",
		Synchronised, PerDevice, s.Statistics)
	e.that(s.Statistics == Synchronised || s.Devices > 1,
		"Statistics must be empty with one device, got %q: leave it empty, or set Devices to 2 or more", s.Statistics)
	if s.Devices > 1 {
		e.that(s.Batch%s.Devices == 0, "Batch must be a multiple of Devices, %d, got %d", s.Devices, s.Batch)
		e.that(s.Statistics != PerDevice || s.Batch/s.Devices >= 2,
			"Batch must be at least %d, two for batch norm on each of %d devices, got %d", 2*s.Devices, s.Devices,
			s.Batch)
		e.that(s.Statistics != PerDevice || m.Architecture != PerExample,
			"Statistics must be empty for %s, which takes a gradient of every example of the batch, got %q", m.Title,
			s.Statistics)
	}
	return errors.Join(e...)
}

// checkArchitecture checks how θ is parameterized and moved, and how the final architecture is picked.
func (s Settings) checkArchitecture(m Method) error {
	var e expectation
	if m.Hold != Nothing && m.Hold != "" {
		s.checkUpdate(m, &e)
	}
	e.that(slices.Contains([]Running{OuterPass, InnerPasses, OuterTwice, OperationsTwice}, s.Running),
		"Running must be %q, %q, %q or %q, got %q", OuterPass, InnerPasses, OuterTwice, OperationsTwice, s.Running)
	kind, _, _ := s.kind()
	e.that(s.Running != OperationsTwice || kind == "cells",
		"Running %q needs a space of cells with two inputs, got %q", s.Running, s.Space)
	e.that(s.Running != InnerPasses || s.Bilevel.Hypergradient != "first-order",
		"Running must not be %q with the first-order hypergradient, which has no inner passes", s.Running)
	if m.Weights == Gumbel || m.Architecture == Gumbel {
		e.that(s.TauFirst > 0 && s.TauLast > 0, "TauFirst and TauLast must be positive, got %v and %v", s.TauFirst,
			s.TauLast)
	}
	if m.Final != ByArgmax {
		e.that(s.Candidates >= 1 && s.CandidateBatch >= 2,
			"Candidates must be at least 1, got %d, and CandidateBatch at least 2, got %d", s.Candidates,
			s.CandidateBatch)
	}
	if c := s.Control; m.Weights == Controller {
		e.that(c.Hidden >= 1 && c.Steps >= 1 && c.Samples >= 1 && c.Rate > 0 && c.Temperature > 0,
			"Hidden, Steps, Samples, Rate and Temperature of Control must be positive, got %+v", c)
	}
	return errors.Join(e...)
}

// checkUpdate checks that the update fits the parameterization.
func (s Settings) checkUpdate(m Method, e *expectation) {
	update := s.checkMoves("Update", s.updateName(m), m, e)
	if s.EdgeUpdate != "" {
		s.checkMoves("EdgeUpdate", s.EdgeUpdate, m, e)
	}
	e.that(s.ArchRate > 0 || s.ArchRate == 0 && update.OwnRate, "ArchRate must be positive, got %v", s.ArchRate)
	e.that(s.EdgeRate >= 0, "EdgeRate must be at least 0 (0: as ArchRate), got %v", s.EdgeRate)
	e.that(s.Start == "uniform" || s.Start == "normal", "Start must be uniform or normal, got %q", s.Start)
	e.that(s.Start == "uniform" || m.Hold != OnSimplex, "Start must be uniform on the simplex, got %q", s.Start)
}

// checkMoves checks that an update moves a method's parameterization.
func (s Settings) checkMoves(field, name string, m Method, e *expectation) Update {
	update, err := lookupUpdate(name)
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", field, err))
		return update
	}
	e.that(update.Moves == m.Hold, "%s must move %s, which %s holds: one of %v, got %q, which moves %s",
		field, held[m.Hold], m.Title, updateNames(m.Hold), name, held[update.Moves])
	e.that(update.PerExample == (m.Architecture == PerExample),
		"%s is %q: an update by per-example gradients needs a method that computes them, and such a method needs such "+
			"an update", field, name)
	return update
}

// held names the parameterizations in words.
var held = map[Parameterization]string{Logits: "logits", OnSimplex: "points of a simplex", Nothing: "nothing"}

// Differences lists the fields in which two settings differ, such as those of paper and authors' code: "epochs: 25,
// 50".
func Differences(a, b Settings) []string { return differ.Fields(a, b) }

// The entries that are this package's own.
var (
	shippedMethods = maps.Clone(Methods)
	shippedUpdates = maps.Clone(Updates)
)

// Key is the settings as the key of a trial has them: a reader's entries of Methods, Updates, simplex.Updates,
// bilevel.Hypergradients and maps of spaces are keyed by what they compute and not by name. Settings without such
// entries are their own key. It returns an error if an entry is missing, or cannot be known by what it computes because
// it is random or has a state.
func (s Settings) Key() (Settings, error) {
	var err error
	if s.Method, err = methodKey(s.Method); err != nil {
		return s, err
	}
	for _, name := range []*string{&s.Update, &s.EdgeUpdate} {
		if *name, err = updateKey(*name); err != nil {
			return s, err
		}
	}
	if s.Bilevel.Hypergradient != "" {
		if s.Bilevel.Hypergradient, err = bilevel.HypergradientKey(s.Bilevel.Hypergradient); err != nil {
			return s, err
		}
	}
	_, kind, err := s.kind()
	if err != nil {
		return s, err
	}
	s.Space, err = kind.Key(s.Space)
	return s, err
}

// methodKey is the name of a method of this package; a reader's is keyed by its fields except title and source.
func methodKey(name string) (string, error) {
	m, err := lookup(name)
	if err != nil {
		return "", err
	}
	if ours, ok := shippedMethods[name]; ok && ours == m {
		return name, nil
	}
	m.Title, m.Source = "", ""
	if m.Update, err = updateKey(m.Update); err != nil {
		return "", err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("method %q: %w", name, err)
	}
	return own.Text(string(text)), nil
}

// updateKey is the name of a shipped update, or what a reader's computes.
func updateKey(name string) (string, error) {
	if name == "" {
		return name, nil
	}
	update, err := lookupUpdate(name)
	if err != nil {
		return "", err
	}
	keeps, ok := Updates[name]
	if !ok {
		return simplex.UpdateKey(name)
	}
	if ours, ok := shippedUpdates[name]; ok && own.Same(keeps.Rule, ours.Rule) && sameFields(keeps, ours) {
		return name, nil
	}
	var probes []own.Probe
	for _, s := range probeSettings {
		for _, inputs := range probeMoves(update) {
			probes = append(probes, own.Probe{Of: threeMoves(update, s), Inputs: inputs})
		}
	}
	return own.Name("search.Updates[\""+name+"\"]", probes...)
}

func sameFields(a, b Update) bool {
	return a.Moves == b.Moves && a.PerExample == b.PerExample && a.OwnRate == b.OwnRate
}

// threeMoves are the block and the slots after each of three moves in a row: the first sees slots of 0, the others what
// was kept.
func threeMoves(u Update, s Settings) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		rule := u.Rule(Setup{Rate: s.ArchRate, Total: s.Epochs, Settings: s})
		theta, slots := in[:1], []*Node(nil)
		for range rule.Slots {
			slots = append(slots, ZerosLike(theta[0]))
		}
		var out []*Node
		for i, grad := range in[1:] {
			theta, slots = rule.Step("update", bilevel.Move{
				Params: theta, Grads: []*Node{grad}, Slots: slots, Done: Const(grad.Graph(), float64(i)),
			})
			out = append(append(out, theta...), slots...)
		}
		return out
	}
}

// probeSettings differ in all that a rule may read, and in no round numbers.
var probeSettings = []Settings{
	{
		Epochs: 5, ArchRate: 0.13, ArchBeta1: 0.37, ArchBeta2: 0.91, ArchEpsilon: 1e-3, ArchWeightDecay: 0.021,
		EntropyWeight: 0.17, TauFirst: 7.1, TauLast: 0.23, GradientClip: 0.83, LearningRate: 0.029, Momentum: 0.71,
	},
	{
		Epochs: 400, ArchRate: 1.7, ArchBeta1: 0.83, ArchBeta2: 0.997, ArchEpsilon: 1e-5, ArchWeightDecay: 0.3,
		EntropyWeight: 0.01, TauFirst: 3.3, TauLast: 1.1, GradientClip: 2.9, LearningRate: 0.31, Momentum: 0.13,
	},
}

// probeMoves are blocks of three and four options, each with three gradients of both signs and several sizes.
func probeMoves(u Update) [][]any {
	blocks := [][][]float64{{{0.2, 0.5, 0.3}, {0.98, 0.015, 0.005}}, {{0.25, 0.25, 0.25, 0.25}}}
	if u.Moves == Logits {
		blocks = [][][]float64{{{0.3, -1.2, 0.7}, {4, 0, -2}}, {{0, 1e-3, -2e-3, 5e-4}}}
	}
	grads := [][][][]float64{
		{{{0.4, -1.1, 0.05}, {2, 0, -0.3}}, {{-0.2, 0.6, 1.3}, {-1, 0.01, 7}}, {{0.9, -0.4, -0.8}, {0.5, 0.2, -6}}},
		{{{1, -2, 0.3, 0.07}}, {{-0.1, 0.4, -3, 0.2}}, {{0.6, -0.02, 0.8, -1}}},
	}
	var all [][]any
	for i, block := range blocks {
		inputs := []any{block}
		for _, grad := range grads[i] {
			if !u.PerExample {
				inputs = append(inputs, grad)
				continue
			}
			half := make([][]float64, len(grad))
			for r, row := range grad {
				for _, g := range row {
					half[r] = append(half[r], -0.3*g*g)
				}
			}
			inputs = append(inputs, [][][]float64{grad, half})
		}
		all = append(all, inputs)
	}
	return all
}
