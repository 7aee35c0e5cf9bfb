package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/nasml/lab/nasml/supernet"
)

// Replayable is a trace in one of the formats.
type Replayable interface {
	About() About
	// Replay computes the steps and compares all that the trace holds of them.
	Replay(ctx context.Context, b compute.Backend) ([]Difference, error)
}

// About says what a trace is of.
type About struct {
	Source, Method string
	Steps          int

	// Tolerance is the largest relative difference of an array of the first step that
	// two right programs may have by their rounding, see tolerances.
	Tolerance float64
}

// tolerances are by the type of computation. Sums of some thousand terms in another order, through a deep network,
// differ by 1e-11 in float64 and by 1e-5 in float32.
var tolerances = map[dtypes.DType]float64{dtypes.Float64: 1e-9, dtypes.Float32: 1e-4}

// shareTolerance is that of a share of genotypes or cells that differ: none may.
const shareTolerance = 1e-9

// About is from the settings.
func (t *Trace) About() About {
	return About{t.Settings.Source, t.Settings.Method, t.Settings.Steps, tolerances[t.dtype()]}
}

func (t *Trace) dtype() dtypes.DType { return floatsOf(t.Arrays["weights/stem/conv"]) }

func floatsOf(a Array) dtypes.DType {
	if a.Type == "<f8" {
		return dtypes.Float64
	}
	return dtypes.Float32
}

// Authors is a trace that the authors' own programs left, of networks of cells with two inputs or of
// NAS-Bench-1Shot1's: a search by DARTS, PC-DARTS or GAEA, or the training of a genotype's network. Weights have the
// names of their PyTorch modules; what they are follows from the order, which is that of [supernet.CellNet].
//
//	settings            JSON: see AuthorsSettings; other fields are passed over. "method" is "evaluation", the
//	                    training of a genotype's network; "gaea-…", a search for θ by EG; else for α by Adam
//	start               all of settings.state before the first step, one after the other
//	start/alphas_normal, alphas_reduce    α or θ
//	start/alphas_mixed_op, alphas_output, alphas_inputs.I    the same of NAS-Bench-1Shot1, whose settings have space
//	start/betas_…, edges_…                weights of edges [|E|]: β, or a simplex a node; 1: they stay
//	train_images, train_labels, valid_images, valid_labels    [S, B, 3, H, W], [S, B]; valid_… of a search
//	NAME                [S, places, B], NAME with mask in it: what drop path keeps, 0 or 1, if drop_path_prob is not 0
//
// Compared are, with steps/S/ before them from the second step on,
//
//	valid_loss, valid_logits, grad/alphas_…, after/alphas_…   of the architecture, where it moves
//	loss, logits, main_loss, loss_aux, logits_aux, grad_norm, grad/NAME, after/NAME
//	grad_prints [P, 3], after_prints [N, 3]   Σx, ‖x‖₂, Σ xₖ cos k of every parameter, of all of state
//	eval_logits                               of the training images in evaluation after all steps
//	genotype                                  in the settings: after all steps
//
// A step without valid_loss leaves the architecture as it is (warm-up). In a search of second order running statistics
// see the three training passes of the architecture's step, not the validation pass, as in DARTS' code; on ImageNet
// (state has stem0) the architecture's gradient is clipped, statistics inside operations move twice a pass
// (search.OperationsTwice), and GAEA's weights go first. There and on NAS-Bench-1Shot1 GAEA's weights leave their
// gradient in the architecture's (bilevel.Settings.Uncleared).
//
// Differences are defined as in the package comment; of prints, a row's scale is its largest element, or its largest
// change, but at least a thousandth of the largest row's.
type Authors struct {
	Settings AuthorsSettings
	Arrays   map[string]Array

	net   supernet.Network
	kind  authorsKind
	masks Array    // of drop path, [S, places, B]
	fixed []string // parameters of the architecture that nothing moves
}

// AuthorsSettings are what is read of the settings.
type AuthorsSettings struct {
	Source          string  `json:"source"`
	Method          string  `json:"method"`
	Genotype        string  `json:"genotype"`
	Channels        int     `json:"channels"`
	Layers          int     `json:"layers"`
	Image           int     `json:"image"`
	Classes         int     `json:"classes"`
	Steps           int     `json:"steps"`
	LearningRate    float64 `json:"learning_rate"`
	Momentum        float64 `json:"momentum"`
	WeightDecay     float64 `json:"weight_decay"`
	Clip            float64 `json:"clip"`
	ArchRate        float64 `json:"arch_rate"`
	EdgeRate        float64 `json:"edge_rate"` // of EG, on NAS-Bench-1Shot1 on edges only; 0: ArchRate
	ArchWeightDecay float64 `json:"arch_weight_decay"`
	Unrolled        bool    `json:"unrolled"` // second order
	AuxiliaryWeight float64 `json:"auxiliary_weight"`
	DropPathProb    float64 `json:"drop_path_prob"`

	Space json.RawMessage `json:"space"` // 1, 2 or 3 of NAS-Bench-1Shot1

	State      []NamedShape `json:"state"`
	Parameters []NamedShape `json:"parameters"`
}

// NamedShape is ["NAME", [dims…]] in JSON.
type NamedShape struct {
	Name string
	Dims []int
}

// MarshalJSON writes the pair.
func (n NamedShape) MarshalJSON() ([]byte, error) { return json.Marshal([]any{n.Name, n.Dims}) }

// UnmarshalJSON reads the pair.
func (n *NamedShape) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&n.Name, &n.Dims})
}

// authorsKind is what tells the programs apart.
type authorsKind struct {
	evaluation bool // of a genotype
	simplex    bool // the architecture is θ, moved by EG; else α, by Adam
	edges      string
	imageNet   bool
	oneShot    bool // a supernet of NAS-Bench-1Shot1
	uncleared  bool // GAEA on ImageNet or NAS-Bench-1Shot1, see bilevel.Settings.Uncleared
}

func newAuthors(arrays map[string]Array, text string) (*Authors, error) {
	t := &Authors{Arrays: arrays}
	if err := json.Unmarshal([]byte(text), &t.Settings); err != nil {
		return nil, fmt.Errorf("settings: found %.60q, expected JSON as in the comment of trace.Authors: %w", text, err)
	}
	if n, states := t.Settings.Layers, len(t.Settings.State); n > states || states == 0 { // no such network is built
		return nil, fmt.Errorf("settings: layers is %d, more than the %d arrays of the state", n, states)
	}
	if err := t.unpack(); err != nil {
		return nil, err
	}
	for name, a := range t.Arrays {
		if strings.Contains(name, "mask") {
			t.masks = a
			delete(t.Arrays, name)
		}
	}
	t.kind = t.kindOf()
	var err error
	if t.net, err = t.build(); err == nil {
		err = t.check()
	}
	return t, err
}

func (t *Authors) kindOf() authorsKind {
	_, oneShot := t.Arrays["start/alphas_mixed_op"]
	k := authorsKind{
		evaluation: strings.HasPrefix(t.Settings.Method, "evaluation"),
		simplex:    strings.HasPrefix(t.Settings.Method, "gaea-"),
		imageNet:   t.has("stem0.0.weight"),
		oneShot:    oneShot,
	}
	k.uncleared = k.simplex && (k.imageNet || k.oneShot)
	for _, name := range []string{"betas", "edges"} {
		edges, ok := t.Arrays["start/"+name+"_normal"]
		if ok && slices.ContainsFunc(edges.Values, func(x float64) bool { return x != 1 }) {
			k.edges = name
		} else if ok { // they weigh 1 and stay so: GAEA's baseline
			t.fixed = []string{name + "_normal", name + "_reduce"}
		}
	}
	return k
}

// About is from the settings.
func (t *Authors) About() About {
	return About{t.Settings.Source, t.Settings.Method, t.Settings.Steps, tolerances[t.dtype()]}
}

func (t *Authors) dtype() dtypes.DType { return floatsOf(t.Arrays["start/"+t.Settings.State[0].Name]) }

func (t *Authors) unpack() error {
	all := t.Arrays["start"]
	delete(t.Arrays, "start")
	rest := all.Values
	for _, s := range t.Settings.State {
		n := size(s.Dims)
		if n < 0 || n > len(rest) {
			return fmt.Errorf("start: found %d elements, expected all of settings.state, which are more",
				len(all.Values))
		}
		t.Arrays["start/"+s.Name] = Array{Type: all.Type, Dims: s.Dims, Values: rest[:n]}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("start: found %d elements, expected the %d of settings.state", len(all.Values),
			len(all.Values)-len(rest))
	}
	return nil
}

func (t *Authors) has(name string) bool {
	return slices.ContainsFunc(t.Settings.State, func(s NamedShape) bool { return s.Name == name })
}

func (t *Authors) build() (supernet.Network, error) {
	if t.kind.oneShot {
		return t.oneShot()
	}
	s := t.Settings
	skeleton := supernet.Skeleton{
		Stem: "cifar", Channels: s.Channels, Cells: s.Layers, Image: s.Image, Classes: s.Classes,
	}
	if !t.kind.evaluation {
		return t.search(skeleton)
	}
	if t.kind.imageNet {
		skeleton.Stem = "imagenet"
	}
	genotype, err := supernet.ParseGenotype(cmp.Or(aliases[s.Genotype], s.Genotype))
	if err != nil {
		return nil, err
	}
	return supernet.NewDerived(supernet.DerivedConfig{
		Skeleton: skeleton, Genotype: genotype,
		Auxiliary:   t.has("auxiliary_head.classifier.weight"),
		AuxiliaryBN: t.has("auxiliary_head.features.6.running_var"),
	})
}

// aliases are the authors' own second names of published genotypes.
var aliases = map[string]string{"PCDARTS": "PC_DARTS_cifar", "DARTS": "DARTS_V2"}

func (t *Authors) search(skeleton supernet.Skeleton) (supernet.Network, error) {
	if t.kind.imageNet {
		skeleton.Stem = "imagenet-search"
	}
	c := supernet.SearchConfig{Skeleton: skeleton, Space: supernet.DARTS, Edges: t.kind.edges != ""}
	if alphas := t.Arrays["start/alphas_normal"].Dims; len(alphas) == 2 {
		for c.Space.Nodes = 1; len(c.Space.Edges()) < alphas[0]; {
			c.Space.Nodes++
		}
	}
	width := t.channels("cells.0.preprocess1.", func([]int) bool { return true })
	depthwise := t.channels("cells.0._ops.0._ops.", func(d []int) bool { return d[1] == 1 && d[2] > 1 })
	if depthwise > 0 {
		c.Partial = width / depthwise
	}
	return supernet.NewSearch(c)
}

// channels is the output width of the first convolution with the prefix and shape; 0 if there is none.
func (t *Authors) channels(prefix string, like func(dims []int) bool) int {
	for _, s := range t.Settings.State {
		if strings.HasPrefix(s.Name, prefix) && len(s.Dims) == 4 && like(s.Dims) {
			return s.Dims[0]
		}
	}
	return 0
}

func (t *Authors) stats() []NamedShape {
	return slices.DeleteFunc(slices.Clone(t.Settings.State), func(s NamedShape) bool {
		return !strings.HasSuffix(s.Name, ".running_mean") && !strings.HasSuffix(s.Name, ".running_var")
	})
}

// authorsParameter is one of the authors' parameters of the architecture.
type authorsParameter struct {
	name   string
	blocks []int // of Network.Architecture, that it holds one after the other
	flat   bool  // it is a vector, a weight an edge
}

func (t *Authors) architecture() []authorsParameter {
	blocks := t.net.Architecture()
	switch {
	case len(blocks) == 0:
		return nil
	case t.kind.oneShot:
		return oneShotArchitecture(len(blocks))
	}
	types := []string{"normal", "reduce"}
	out := []authorsParameter{{name: "alphas_normal", blocks: []int{0}}, {name: "alphas_reduce", blocks: []int{1}}}
	per := (len(blocks) - len(types)) / len(types) // blocks of edges of one type
	for i, kind := range types {
		edges := authorsParameter{name: t.kind.edges + "_" + kind, flat: true}
		for j := range per {
			edges.blocks = append(edges.blocks, len(types)+i*per+j)
		}
		if per > 0 {
			out = append(out, edges)
		}
	}
	return out
}

// check checks names, shapes, and that all numbers are finite.
func (t *Authors) check() error {
	s := t.Settings
	var errs []error
	match := func(what string, theirs []NamedShape, ours []supernet.Weight) {
		if len(theirs) != len(ours) {
			errs = append(errs, fmt.Errorf("settings: found %d %s, the network has %d", len(theirs), what, len(ours)))
			return
		}
		for i, w := range ours {
			if dims := t.Arrays["start/"+theirs[i].Name].Dims; !slices.Equal(dims, foreign(w.Dims)) {
				errs = append(errs, fmt.Errorf("%s: found shape %v in the state, expected %v, of %s", theirs[i].Name,
					dims, foreign(w.Dims), w.Path))
			}
		}
	}
	match("parameters", s.Parameters, t.net.Weights())
	match("running statistics", t.stats(), t.net.Stats())
	if s.Steps < 1 || !(s.LearningRate > 0) {
		errs = append(errs, fmt.Errorf("settings: steps must be at least 1, learning_rate more than 0, got %d and %v",
			s.Steps, s.LearningRate))
	}
	inputs := t.inputs()
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		errs = append(errs, inputs[name].check(name, t.Arrays))
	}
	if net, ok := t.net.(*supernet.CellNet); ok && s.DropPathProb != 0 {
		found := len(t.masks.Values)
		t.masks.Dims = []int{s.Steps, net.DropPlaces(), inputs["train_labels"].dims[1]}
		if found != size(t.masks.Dims) {
			errs = append(errs, fmt.Errorf("drop path: found %d values in an array with mask in its name, expected "+
				"those of [steps, places, examples], %v", found, t.masks.Dims))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Arrays)) {
		values := t.Arrays[name].Values
		if i := slices.IndexFunc(values, notFinite); i >= 0 {
			errs = append(errs, fmt.Errorf("%s: element %d is %v, expected a finite number", name, i, values[i]))
		}
	}
	return firstFew(errs)
}

func notFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func slice3(x []float64, r int) []float64 { return x[3*r : 3*r+3] }

// From here on: traces of NAS-Bench-1Shot1, what tells its supernets apart, and the names of their architecture.

// oneShotSpaces are the spaces by the authors' numbers.
var oneShotSpaces = map[string]supernet.OneShot{"1": supernet.OneShot1, "2": supernet.OneShot2, "3": supernet.OneShot3}

// oneShot is the settings' supernet. The shapes of the first cell tell how cells join their input and how many channels
// the operations get.
func (t *Authors) oneShot() (supernet.Network, error) {
	s := t.Settings
	c := supernet.OneShotConfig{
		Skeleton: supernet.Skeleton{Channels: s.Channels, Cells: s.Layers, Image: s.Image, Classes: s.Classes},
		Space:    oneShotSpaces[string(s.Space)],
	}
	if c.Space.Ops == nil {
		return nil, fmt.Errorf("settings: space must be 1, 2 or 3 of NAS-Bench-1Shot1, got %s", s.Space)
	}
	nodes := len(c.Space.Parents)
	all := func([]int) bool { return true }
	width := t.channels("cells.0._input_projections.0.", all)
	c.AddInput = t.channels(fmt.Sprintf("cells.0._input_projections.%d.", nodes), all) > width
	if through := t.channels("cells.0._choice_blocks.0.", all); through > 0 {
		c.Partial = width / through
	}
	return supernet.NewOneShot(c)
}

func oneShotArchitecture(blocks int) []authorsParameter {
	out := []authorsParameter{{name: "alphas_mixed_op", blocks: []int{0}}, {name: "alphas_output", blocks: []int{1}}}
	for i := 2; i < blocks; i++ {
		out = append(out, authorsParameter{name: fmt.Sprintf("alphas_inputs.%d", i-2), blocks: []int{i}})
	}
	return out
}
