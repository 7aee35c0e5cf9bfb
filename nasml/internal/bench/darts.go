package bench

import (
	"cmp"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// DartsCase is a network of cells with one kind of step: a bilevel one of a
// supernet, or one of training a genotype's network.
type DartsCase struct {
	Name     string `json:"name"`
	Space    string `json:"space,omitempty"`    // of NAS-Bench-1Shot1, a name of supernet.OneShots; empty: DARTS'
	Genotype string `json:"genotype,omitempty"` // a name of supernet.Published; empty: a search
	Partial  int    `json:"partial"`            // K of PC-DARTS, whose edges have weights in DARTS' space; 1: DARTS
	Cells    int    `json:"cells"`
	Channels int    `json:"channels"`
	Image    int    `json:"image"`
	Batch    int    `json:"batch"`
	Steps    int    `json:"steps"`
	Double   bool   `json:"double"` // in float64

	// How the architecture moves.
	Update        string `json:"update,omitempty"`        // "eg": θ by exponentiated gradient; empty: logits by Adam
	ERM           bool   `json:"erm,omitempty"`           // on the batch of the weights, as on one level
	Hypergradient string `json:"hypergradient,omitempty"` // a name of bilevel.Hypergradients; empty: of first order

	// Forms are the peers' forms that are run; nil: all.
	Forms  []string `json:"-"`
	halved bool     // because peers could not run the larger one
}

// quarter is a case with a quarter of its batch, and JAX.
func (c DartsCase) quarter() DartsCase {
	c.Batch, c.Forms = c.Batch/4, []string{"channels-last", "stock"}
	return c
}

// formsOf are the forms of a peer that are run.
func (c DartsCase) formsOf(o oracle) (forms []string) {
	for _, form := range o.forms {
		if c.Forms == nil || slices.Contains(c.Forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// DartsParams say what is compared and what is timed.
type DartsParams struct {
	Compared []DartsCase
	Timed    []DartsCase
	Rounds   int
	Python   string            // interpreter with Requirements installed; empty: no peers
	Log      func(line string) // progress; nil: none
}

// dartsCompared are small cases of every kind, in float64.
var dartsCompared = []DartsCase{
	{Name: "DARTS", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2, Double: true},
	{Name: "PC-DARTS", Partial: 2, Cells: 3, Channels: 8, Image: 8, Batch: 4, Steps: 2, Double: true},
	{Name: "training", Genotype: "DARTS_V2", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true},
	moved("GAEA DARTS", 1, DartsCase{Update: "eg"}),
	moved("GAEA DARTS (ERM)", 1, DartsCase{Update: "eg", ERM: true}),
	moved("GAEA PC-DARTS", 2, DartsCase{Update: "eg"}),
	moved("DARTS (2nd order)", 1, DartsCase{Hypergradient: "unrolled"}),
	moved("DARTS (2nd order by differences)", 1, DartsCase{Hypergradient: "finite-difference"}),
}

// moved is a small case of a method that moves the architecture in another way: one
// cell, a reduction, which JAX compiles in minutes.
func moved(name string, partial int, c DartsCase) DartsCase {
	c.Name, c.Partial, c.Channels = name, partial, 4*partial
	c.Cells, c.Image, c.Batch, c.Steps, c.Double = 1, 8, 4, 2, true
	c.Forms = []string{"stock", "channels-last"}
	return c
}

// The cases that are timed. JAX with shifted maps compiles for many minutes and
// asks for 30 GB at the paper's size, with stock operations for more than 18 GB, so
// that JAX is run at the quick size, and at the paper's with a quarter of the batch.
var (
	dartsQuickSize    = DartsCase{Name: "DARTS", Partial: 1, Cells: 5, Channels: 8, Image: 16, Batch: 64, Steps: 2}
	dartsPartialQuick = DartsCase{Name: "PC-DARTS", Partial: 4, Cells: 5, Channels: 8, Image: 16, Batch: 256, Steps: 2,
		Forms: []string{"channels-last", "stock"}}
	dartsPaperSize = DartsCase{Name: "DARTS", Partial: 1, Cells: 8, Channels: 16, Image: 32, Batch: 64, Steps: 2,
		Forms: []string{"channels-last"}}
	dartsPartial = DartsCase{Name: "PC-DARTS", Partial: 4, Cells: 8, Channels: 16, Image: 32, Batch: 256, Steps: 2,
		Forms: []string{"channels-last"}}
	dartsTraining = DartsCase{Name: "training", Genotype: "DARTS_V2", Partial: 1, Cells: 8, Channels: 16, Image: 32,
		Batch: 96, Steps: 2, Forms: []string{"channels-last", "stock"}}
)

// oneShotForms are the peers' forms on NAS-Bench-1Shot1. JAX with shifted pools is none
// of them: in float64 its gradients differ from those of all other programs by 1e-9 to
// 1e-7, why is not known.
var oneShotForms = []string{"stock", "channels-last", "contiguous"}

// oneShotCompared are small cases of every space of NAS-Bench-1Shot1, in float64.
var oneShotCompared = []DartsCase{
	{Name: "DARTS on S1", Space: "1shot1-s1", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
	{Name: "DARTS on S2", Space: "1shot1-s2", Partial: 1, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
	{Name: "PC-DARTS on S3", Space: "1shot1-s3", Partial: 4, Cells: 3, Channels: 4, Image: 8, Batch: 4, Steps: 2,
		Double: true, Forms: oneShotForms},
}

// oneShotTimed is a bilevel step of DARTS on a space, at the paper's size or at
// that of the figures' quick scale.
func oneShotTimed(number int, quick bool) DartsCase {
	c := DartsCase{
		Name: fmt.Sprintf("DARTS on S%d", number), Space: fmt.Sprintf("1shot1-s%d", number), Partial: 1,
		Cells: 9, Channels: 16, Image: 32, Batch: 96, Steps: 1, Forms: oneShotForms,
	}
	if quick {
		c.Cells, c.Channels, c.Image, c.Batch, c.Steps = 3, 8, 8, 32, 2
	}
	return c
}

// OneShotFull and OneShotQuick are the same for NAS-Bench-1Shot1's supernets.
var (
	OneShotFull = DartsParams{
		Compared: oneShotCompared, Rounds: 5,
		Timed: []DartsCase{oneShotTimed(1, true), oneShotTimed(1, false), oneShotTimed(2, false),
			oneShotTimed(3, false)},
	}
	OneShotQuick = DartsParams{
		Compared: oneShotCompared[:1], Rounds: 3, Timed: []DartsCase{oneShotTimed(1, true)},
	}
)

// DartsFull is behind the README's claims. DartsQuick only shows that everything
// works.
var (
	DartsFull = DartsParams{
		Compared: dartsCompared, Rounds: 5,
		Timed: []DartsCase{dartsQuickSize, dartsPartialQuick, dartsPaperSize, dartsPaperSize.quarter(), dartsPartial,
			dartsPartial.quarter(), dartsTraining},
	}
	DartsQuick = DartsParams{
		Compared: dartsCompared[:1], Rounds: 3,
		Timed: []DartsCase{{Name: "DARTS", Partial: 1, Cells: 2, Channels: 4, Image: 8, Batch: 8, Steps: 2}},
	}
)

// DartsResult is what [Darts] finds in one case.
type DartsResult struct {
	DartsCase
	Agree   []Agreement `json:"agree,omitempty"` // of all comparisons, in the first result
	Backend string      `json:"backend"`
	Device  string      `json:"device"`
	Threads int         `json:"threads"`
	Entries []Entry     `json:"entries"` // Entries[0] is ours
}

// Agreement is the comparison of losses and gradients with one program's.
type Agreement struct {
	Case    string  `json:"case"`
	Program string  `json:"program"`
	Form    string  `json:"form"`
	NotRun  string  `json:"not_run,omitempty"`
	Numbers int     `json:"numbers"`
	Largest float64 `json:"largest"` // difference, relative to the largest number of an array
}

//go:embed peer.py darts.py darts_jax.py darts_torch.py
var dartsScripts embed.FS

var dartsPeers = []oracle{
	{"JAX", "darts_jax.py", []string{"stock", "shifted"}},
	{"PyTorch", "darts_torch.py", []string{"channels-last", "contiguous"}},
}

// Darts compares losses and gradients of small networks with those of JAX and
// PyTorch, from the same weights on the same batches, and then times larger
// ones beside theirs, in turn, each peer in a process of its own. Memory is that
// of the rounds, without compiling. A peer that cannot run is reported as such. It
// is an error where ctx ends, and where a peer computes something else: no times
// are reported then.
func Darts(ctx context.Context, b compute.Backend, p DartsParams, each func(*DartsResult) error) error {
	var agree []Agreement
	for i, c := range p.Compared {
		if p.Python == "" {
			break
		}
		found, err := p.agree(ctx, b, c, uint64(i))
		if err != nil {
			return err
		}
		agree = append(agree, found...)
	}
	for cases := slices.Clone(p.Timed); len(cases) > 0; cases = cases[1:] {
		c := cases[0]
		r, err := p.time(ctx, b, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.Agree, agree = agree, nil
		if err := each(r); err != nil {
			return err
		}
		if less, ok := c.smaller(outgrown(r.Entries, func(e Entry) (string, string) { return e.Form, e.NotRun })); ok {
			cases = slices.Insert(cases, 1, less)
		}
	}
	return nil
}

// agree compares a case, and a smaller one in the programs for which that is too large.
func (p DartsParams) agree(ctx context.Context, b compute.Backend, c DartsCase, seed uint64) ([]Agreement, error) {
	var all []Agreement
	for fits := true; fits; {
		p.timer().log("darts: losses and gradients of %s in all programs", c.label())
		found, err := p.compareWith(ctx, b, c, seed, dartsPeers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.label(), err)
		}
		all = append(all, found...)
		c, fits = c.smaller(outgrown(found, func(a Agreement) (string, string) { return a.Form, a.NotRun }))
	}
	return all, nil
}

// outgrown are the forms that needed too much memory.
func outgrown[T any](all []T, of func(T) (form, notRun string)) (forms []string) {
	for _, one := range all {
		if form, notRun := of(one); tooLarge(notRun) {
			forms = append(forms, form)
		}
	}
	return forms
}

func (p DartsParams) timer() Params { return Params{Rounds: p.Rounds, Log: p.Log} }

// dartsSettings are what the arrays do not say; ours and the peers'.
type dartsSettings struct {
	DartsCase
	Ops             []string          `json:"ops"`
	Parents         []int             `json:"parents,omitempty"` // of nodes, in NAS-Bench-1Shot1
	Genotype        map[string][2]any `json:"genotype"`          // genes [[op, from]…] and the nodes that are joined
	Weights         []namedDims       `json:"weights"`
	Theta           []namedDims       `json:"theta"`
	LearningRate    float64           `json:"learning_rate"`
	Momentum        float64           `json:"momentum"`
	WeightDecay     float64           `json:"weight_decay"`
	Clip            float64           `json:"clip"`
	ArchRate        float64           `json:"arch_rate"`
	ArchWeightDecay float64           `json:"arch_weight_decay"`
}

// namedDims is ["NAME", [dims…]] in JSON.
type namedDims struct {
	Name string
	Dims []int
}

// MarshalJSON writes the pair.
func (n namedDims) MarshalJSON() ([]byte, error) { return json.Marshal([]any{n.Name, n.Dims}) }

// dartsWork is one case with everything it starts from.
type dartsWork struct {
	dartsSettings
	net    *supernet.CellNet
	arrays map[string]*tensors.Tensor // as writeNPY writes them, float32
}

func newDartsWork(c DartsCase, seed uint64) (*dartsWork, error) {
	s := dartsSettings{
		DartsCase: c, Ops: supernet.DARTS.Ops, LearningRate: 0.025, Momentum: 0.9, WeightDecay: 3e-4, Clip: 5,
		ArchRate: 3e-4, ArchWeightDecay: 1e-3,
	}
	if c.Update == "eg" {
		s.ArchRate, s.ArchWeightDecay = 0.1, 0
	}
	w := &dartsWork{dartsSettings: s, arrays: map[string]*tensors.Tensor{}}
	if err := w.build(supernet.Skeleton{Channels: c.Channels, Cells: c.Cells, Image: c.Image}); err != nil {
		return nil, err
	}
	w.draw(rand.New(rand.NewPCG(seed, 1)))
	return w, nil
}

// build makes the network, and says of it what the peers have to know.
func (w *dartsWork) build(skeleton supernet.Skeleton) (err error) {
	c := w.DartsCase
	switch {
	case c.Space != "":
		space := supernet.OneShots[c.Space]
		w.Ops, w.Parents = space.Ops, space.Parents
		var net *supernet.OneShotNet
		net, err = supernet.NewOneShot(supernet.OneShotConfig{Skeleton: skeleton, Space: space, Partial: c.Partial})
		if err == nil {
			w.net = net.CellNet
		}
	case c.Genotype != "":
		genotype := supernet.Published[c.Genotype].Genotype
		w.Genotype = map[string][2]any{"normal": cellJSON(genotype.Normal), "reduce": cellJSON(genotype.Reduce)}
		w.net, err = supernet.NewDerived(supernet.DerivedConfig{Skeleton: skeleton, Genotype: genotype})
	default:
		w.net, err = supernet.NewSearch(supernet.SearchConfig{
			Skeleton: skeleton, Space: supernet.DARTS, Partial: c.Partial, Edges: c.Partial > 1,
		})
	}
	return err
}

// cellJSON is a cell as the peers read it.
func cellJSON(c supernet.Cell) [2]any {
	genes := make([][2]any, len(c.Genes))
	for i, g := range c.Genes {
		genes[i] = [2]any{g.Op, g.From}
	}
	return [2]any{genes, c.Concat}
}

// draw makes weights, architecture and batches.
func (w *dartsWork) draw(rng *rand.Rand) {
	var weights, theta []float32
	for i, t := range w.net.InitWeights(rng) {
		weights = append(weights, tensors.MustCopyFlatData[float32](t)...)
		w.Weights = append(w.Weights, namedDims{w.net.Weights()[i].Path, t.Shape().Dimensions})
	}
	for _, b := range w.net.Architecture() {
		w.Theta = append(w.Theta, namedDims{b.Name, []int{b.Rows, b.Options}})
		drawn := normals(rng, b.Rows*b.Options)
		if w.Update == "eg" {
			for row := range slices.Chunk(drawn, b.Options) {
				ontoSimplex(row)
			}
		}
		theta = append(theta, drawn...)
	}
	if len(theta) == 0 { // a training has no architecture, and NumPy's files no empty arrays here
		theta = []float32{0}
	}
	flat := func(x []float32, dims ...int) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, dims...) }
	w.arrays["weights"], w.arrays["theta"] = flat(weights, len(weights)), flat(theta, len(theta))
	for _, part := range []string{"train", "valid"} {
		dims := []int{w.Steps, w.Batch, w.Image, w.Image, 3}
		labels := make([]int32, w.Steps*w.Batch)
		for i := range labels {
			labels[i] = rng.Int32N(10)
		}
		w.arrays[part+"_images"] = flat(normals(rng, w.Steps*w.Batch*w.Image*w.Image*3), dims...)
		w.arrays[part+"_labels"] = tensors.FromFlatDataAndDimensions(labels, dims[:2]...)
	}
}

// ontoSimplex takes the softmax of logits in their place.
func ontoSimplex(row []float32) {
	sum := 0.0
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x)))
		sum += float64(row[i])
	}
	for i := range row {
		row[i] = float32(float64(row[i]) / sum)
	}
}

func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// write writes the scripts, the settings and the arrays.
func (w *dartsWork) write(dir string) error {
	if err := os.CopyFS(dir, dartsScripts); err != nil {
		return fmt.Errorf("writing the peers' scripts: %w", err)
	}
	for name, t := range w.arrays {
		if err := writeNPY(filepath.Join(dir, name+".npy"), t); err != nil {
			return err
		}
	}
	text, err := json.Marshal(w.dartsSettings)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "settings.json"), text, 0o644)
}

// dartsRun is our program on a case.
type dartsRun struct {
	work    *dartsWork
	backend compute.Backend
	exec    *Exec
	full    bool // the step gives its gradients, too

	foreseen func() // ends the loading of programs of the cache
}

func (r *dartsRun) close() {
	r.exec.Finalize()
	r.foreseen()
}

func newDartsRun(b compute.Backend, w *dartsWork, full bool) (*dartsRun, error) {
	r := &dartsRun{work: w, backend: b, full: full, foreseen: backend.Foresee(b, []any{w.DartsCase, full})}
	var err error
	if r.exec, err = NewExec(b, func(in []*Node) []*Node { return r.step(in) }); err != nil {
		r.foreseen()
		return nil, fmt.Errorf("building the step: %w", err)
	}
	return r, nil
}

// step is a step as a graph: the new state, the losses and, in full, the
// gradients of weights and architecture.
func (r *dartsRun) step(in []*Node) []*Node {
	w, all := r.work, in[5:]
	take := func(n int) []*Node {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	weights, blocks := len(w.Weights), len(w.Theta)
	state := bilevel.State{W: take(weights), Velocity: take(weights), Aux: take(len(w.net.Stats()))}
	state.Theta, state.Slots = take(blocks), take(2*blocks)
	loss := func(images, labels *Node) func(aux []*Node) bilevel.Loss {
		return func(aux []*Node) bilevel.Loss {
			return func(weights, alpha []*Node) (*Node, []*Node) {
				theta := slices.Clone(alpha)
				for i := range alpha {
					if w.Update == "" {
						theta[i] = Softmax(alpha[i], -1)
					}
				}
				o := w.net.Evaluate(supernet.Pass{
					Images: images, Theta: theta, Weights: weights, Stats: aux, Train: true,
				})
				_, loss := supernet.Score(o.Logits, labels)
				return loss, o.Stats
			}
		}
	}
	outer := in[3:5]
	if w.ERM {
		outer = in[1:3]
	}
	search := bilevel.Search{
		Settings: bilevel.Settings{
			Order: bilevel.ArchitectureFirst, Clip: w.Clip, Hypergradient: cmp.Or(w.Hypergradient, "first-order"),
		},
		SGD: bilevel.SGD{Momentum: w.Momentum, WeightDecay: w.WeightDecay, Together: true},
		Problem: func(aux []*Node) bilevel.Problem {
			return bilevel.Problem{Inner: loss(in[1], in[2])(aux), Outer: loss(outer[0], outer[1])(aux)}
		},
	}
	if blocks > 0 {
		search.Architecture, search.Done = slices.Repeat([]bilevel.Rule{w.rule()}, blocks), in[0]
	}
	next, seen := search.Step(state, Scalar(in[0].Graph(), in[0].DType(), w.LearningRate), nil)
	out := slices.Concat(next.W, next.Velocity, next.Aux, next.Theta, next.Slots, []*Node{seen.Train})
	if blocks > 0 {
		out = append(out, seen.Validation)
	}
	if r.full {
		out = slices.Concat(out, seen.GradW, seen.GradTheta)
	}
	return out
}

// rule is how the architecture moves. It keeps two slots, also where it reads none.
func (w *dartsWork) rule() bilevel.Rule {
	update := simplex.Updates[w.Update]
	if update == nil {
		return bilevel.DARTSAdam.Rule().At(w.ArchRate)
	}
	return bilevel.Each(2, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
		return update(theta, grad, w.ArchRate), own
	})
}

// floats is a tensor in the type of the computation.
func (r *dartsRun) floats(values []float32, dims ...int) *tensors.Tensor {
	if !r.work.Double {
		return tensors.FromFlatDataAndDimensions(values, dims...)
	}
	double := make([]float64, len(values))
	for i, x := range values {
		double[i] = float64(x)
	}
	return tensors.FromFlatDataAndDimensions(double, dims...)
}

// start is the state before the first step.
func (r *dartsRun) start() (state []*tensors.Tensor) {
	cut := func(name string, list []namedDims, copies int) (own, zero []*tensors.Tensor) {
		flat := tensors.MustCopyFlatData[float32](r.work.arrays[name])
		for _, n := range list {
			size := 1
			for _, d := range n.Dims {
				size *= d
			}
			own = append(own, r.floats(slices.Clone(flat[:size]), n.Dims...))
			flat = flat[size:]
		}
		for _, t := range own {
			for range copies {
				zero = append(zero, tensors.FromShape(t.Shape()))
			}
		}
		return own, zero
	}
	weights, zeros := cut("weights", r.work.Weights, 1)
	state = slices.Concat(weights, zeros)
	for _, s := range r.work.net.InitStats() {
		state = append(state, r.floats(tensors.MustCopyFlatData[float32](s), s.Shape().Dimensions...))
	}
	theta, zeros := cut("theta", r.work.Theta, 2)
	return slices.Concat(state, theta, zeros)
}

// feeds are what every step is given.
func (r *dartsRun) feeds() (all [][]*tensors.Tensor) {
	w := r.work
	for step := range w.Steps {
		feed := []*tensors.Tensor{r.floats([]float32{float32(step)})} // a scalar
		for _, part := range []string{"train", "valid"} {
			images := tensors.MustCopyFlatData[float32](w.arrays[part+"_images"])
			labels := tensors.MustCopyFlatData[int32](w.arrays[part+"_labels"])
			n := len(images) / w.Steps
			feed = append(feed, r.floats(images[step*n:(step+1)*n], w.Batch, w.Image, w.Image, 3),
				tensors.FromFlatDataAndDimensions(labels[step*w.Batch:(step+1)*w.Batch], w.Batch))
		}
		all = append(all, feed)
	}
	return all
}

// train computes all steps from the start, and returns what each gave behind its
// state, and the time from a state and batches on the device to the last result
// in memory.
func (r *dartsRun) train(ctx context.Context) (out [][]*tensors.Tensor, took time.Duration, err error) {
	state, feeds := r.start(), r.feeds()
	for _, t := range slices.Concat(append(feeds, state)...) {
		if err := t.MaterializeOnDevice(r.backend, false, 0); err != nil {
			return nil, 0, fmt.Errorf("copying to the device: %w", err)
		}
	}
	begin := time.Now()
	for _, feed := range feeds {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		var args []any
		for _, t := range feed {
			args = append(args, t)
		}
		for _, t := range state {
			donated, err := DonateTensorBuffer(t, r.backend, 0)
			if err != nil {
				return nil, 0, fmt.Errorf("donating the state: %w", err)
			}
			args = append(args, donated)
		}
		all, err := r.exec.Call(args...)
		if err != nil {
			return nil, 0, err
		}
		n := len(state)
		state, out = all[:n:n], append(out, all[n:])
		if _, err := numbers(all[n]); err != nil { // as a program that prints its loss
			return nil, 0, fmt.Errorf("reading the loss: %w", err)
		}
	}
	took = time.Since(begin)
	for _, t := range slices.Concat(append(feeds, state)...) {
		if err := t.FinalizeAll(); err != nil {
			return nil, 0, fmt.Errorf("freeing the state: %w", err)
		}
	}
	return out, took, nil
}

// numbers are those of a tensor of either type.
func numbers(t *tensors.Tensor) ([]float64, error) {
	if t.DType() == dtypes.Float64 {
		return tensors.CopyFlatData[float64](t)
	}
	single, err := tensors.CopyFlatData[float32](t)
	out := make([]float64, len(single))
	for i, x := range single {
		out[i] = float64(x)
	}
	return out, err
}

// compareWith computes a small case in our program and in peers.
func (p DartsParams) compareWith(
	ctx context.Context, b compute.Backend, c DartsCase, seed uint64, peers []oracle,
) ([]Agreement, error) {
	work, dir, err := p.prepare(c, seed)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	run, err := newDartsRun(b, work, true)
	if err != nil {
		return nil, err
	}
	defer run.close()
	steps, _, err := run.train(ctx)
	if err != nil {
		return nil, err
	}
	var ours [][]float64
	for _, t := range slices.Concat(steps...) {
		values, err := numbers(t)
		if err != nil {
			return nil, err
		}
		ours = append(ours, values)
	}
	var out []Agreement
	for _, o := range peers {
		for _, form := range c.formsOf(o) {
			a := Agreement{Case: c.label(), Program: o.program, Form: form}
			file := filepath.Join(dir, o.program+"-"+form)
			a.NotRun = finish(ctx, p.Python, []string{filepath.Join(dir, o.script), "fill", dir, form, file})
			if err := ctx.Err(); err != nil {
				return out, err
			}
			if a.NotRun == "" {
				if err := a.compare(ours, file); err != nil {
					return out, fmt.Errorf("%s %s: %w", o.program, form, err)
				}
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// prepare makes a case and a folder for the peers that holds it.
func (p DartsParams) prepare(c DartsCase, seed uint64) (*dartsWork, string, error) {
	work, err := newDartsWork(c, seed)
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "nasml-bench-")
	if err != nil {
		return nil, "", fmt.Errorf("making a folder for the peers' inputs: %w", err)
	}
	if err := work.write(dir); err != nil {
		_ = os.RemoveAll(dir)
		return nil, "", err
	}
	return work, dir, nil
}

// doubleTolerance is how far numbers in float64 may be apart, relative to the
// largest of their array: sums of some thousand terms, in other orders, through
// a network in depth.
const doubleTolerance = 1e-9

// compare reads a peer's numbers. It is an error where one is beyond the
// tolerance.
func (a *Agreement) compare(ours [][]float64, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	theirs := make([]float64, len(data)/8)
	if _, err := binary.Decode(data, binary.LittleEndian, theirs); err != nil {
		return err
	}
	for i, values := range ours {
		if len(theirs) < len(values) {
			return fmt.Errorf("found %d numbers, expected more: array %d is missing", len(data)/8, i)
		}
		largest, apart := 0.0, 0.0
		for k, x := range values {
			largest, apart = max(largest, math.Abs(x)), max(apart, math.Abs(x-theirs[k]))
		}
		if largest < 1e-12 { // a gradient that is 0 but for rounding
			largest = 1
		}
		if a.Largest = max(a.Largest, apart/largest); !(apart/largest <= doubleTolerance) {
			return fmt.Errorf("array %d differs by a part %.1e, at most %v expected: the programs do not compute the "+
				"same, so they are not timed", i, apart/largest, doubleTolerance)
		}
		a.Numbers += len(values)
		theirs = theirs[len(values):]
	}
	if len(theirs) > 0 {
		return fmt.Errorf("found %d numbers more than expected", len(theirs))
	}
	return nil
}

// time runs everyone on a case.
func (p DartsParams) time(ctx context.Context, b compute.Backend, c DartsCase) (*DartsResult, error) {
	work, dir, err := p.prepare(c, 0)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p.timer().log("darts: %s, compiling", c)
	own, err := newDartsRun(b, work, false)
	if err != nil {
		return nil, err
	}
	defer own.close()
	runners := []*runner{{
		entry: Entry{Program: oursName}, peak: func() float64 { return peakMB("self") }, train: own.losses,
	}}
	peers, stop := p.startPeers(ctx, c, dir)
	defer stop()
	runners = append(runners, peers...)
	if err := p.timer().warmUp(ctx, runners); err != nil {
		return nil, err
	}
	resetPeak()
	if err := p.timer().time(ctx, runners); err != nil {
		return nil, err
	}
	r := &DartsResult{DartsCase: c, Threads: runtime.NumCPU(), Entries: entries(runners, c.Steps)}
	r.Backend, r.Device = backend.Describe(b)
	own.foreseen()
	again, err := newDartsRun(b, work, false) // its program is in the cache
	if err != nil {
		return nil, err
	}
	defer again.close()
	first, err := again.losses(ctx)
	r.Entries[0].CachedSeconds = max(0, first.Seconds-r.Entries[0].StepSeconds*float64(c.Steps))
	return r, err
}

// losses is one training, as the clock sees it.
func (r *dartsRun) losses(ctx context.Context) (t training, err error) {
	out, took, err := r.train(ctx)
	t.Seconds = took.Seconds()
	for _, step := range out {
		loss, readErr := numbers(step[0])
		err = errors.Join(err, readErr)
		t.Losses = append(t.Losses, loss...)
	}
	return t, err
}

// startPeers starts the forms of every peer that a case has; stop ends them.
func (p DartsParams) startPeers(ctx context.Context, c DartsCase, dir string) (runners []*runner, stop func()) {
	var started []*peer
	for _, o := range dartsPeers {
		for _, form := range c.formsOf(o) {
			if p.Python == "" {
				continue
			}
			r := &runner{entry: Entry{Program: o.program, Form: form}}
			s, err := startPeer(ctx, p.Python, filepath.Join(dir, o.script), "serve", dir, form)
			if err != nil {
				r.train = func(context.Context) (training, error) { return training{}, err }
			} else {
				started = append(started, s)
				r.train, r.peak = s.train, s.peakMB
			}
			runners = append(runners, r)
		}
	}
	return runners, func() {
		for _, s := range started {
			s.stop()
		}
	}
}

// String says what is computed.
func (c DartsCase) String() string {
	kind := "one bilevel step of " + c.Name
	if c.Genotype != "" {
		kind = "one step of training " + c.Genotype
	}
	if c.Partial > 1 {
		kind += fmt.Sprintf(", K = %d", c.Partial)
	}
	return fmt.Sprintf("%s: %d cells, C = %d, %d×%d, batch %d", kind, c.Cells, c.Channels, c.Image, c.Image, c.Batch)
}

// WriteTable writes the result for people.
func (r *DartsResult) WriteTable(w io.Writer) error {
	if len(r.Agree) > 0 {
		_, _ = fmt.Fprintln(w,
			"Networks of cells: largest relative differences of losses and gradients, float64")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		_, _ = fmt.Fprintln(t, "program\tcase\tnumbers\tdiffer by\t")
		for _, a := range r.Agree {
			found := fmt.Sprintf("%d\t%.1e", a.Numbers, a.Largest)
			if a.NotRun != "" {
				found = "not run: " + a.NotRun + "\t"
			}
			_, _ = fmt.Fprintf(t, "%s %s\t%s\t%s\t\n", a.Program, a.Form, a.Case, found)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w)
	}
	head := r.String()
	_, _ = fmt.Fprintf(w, "%s%s, %s (%s), %d threads\n", strings.ToUpper(head[:1]), head[1:], r.Backend, r.Device,
		r.Threads)
	if err := writeEntries(w, r.Entries); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w,
		"From the cache of compiled programs the first call takes %.1f s more than another one.\n\n",
		r.Entries[0].CachedSeconds)
	return err
}
