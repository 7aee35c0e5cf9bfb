package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/trace"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

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

// step is the graph of a step: new state, losses and, if full, the gradients of weights and architecture.
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

// rule updates the architecture. It always has two slots.
func (w *dartsWork) rule() bilevel.Rule {
	update := simplex.Updates[w.Update]
	if update == nil {
		return bilevel.DARTSAdam.Rule().At(w.ArchRate)
	}
	return bilevel.Each(2, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
		return update(theta, grad, w.ArchRate), own
	})
}

func (r *dartsRun) floats(values []float32, dims ...int) *tensors.Tensor {
	if !r.work.Double {
		return tensors.FromFlatDataAndDimensions(values, dims...)
	}
	return tensors.FromFlatDataAndDimensions(trace.Converted[float64](values), dims...)
}

func (r *dartsRun) start() (state []*tensors.Tensor) {
	cut := func(name string, list []trace.NamedShape, copies int) (own, zero []*tensors.Tensor) {
		flat := tensors.MustCopyFlatData[float32](r.work.arrays[name])
		for _, n := range list {
			size := shapes.Make(dtypes.Float32, n.Dims...).Size()
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

// train computes all steps and returns what each gave besides its state, and the time, see [trace.Timed].
func (r *dartsRun) train(ctx context.Context) (out [][]*tensors.Tensor, took time.Duration, err error) {
	return trace.Timed(ctx, r.backend, r.exec, r.feeds(), r.start())
}

func (r *dartsRun) losses(ctx context.Context) (t training, err error) {
	out, took, err := r.train(ctx)
	t.Seconds = took.Seconds()
	for _, step := range out {
		loss, readErr := device.Values(step[0])
		err = errors.Join(err, readErr)
		t.Losses = append(t.Losses, loss...)
	}
	return t, err
}

// DartsCase is a network of cells with one type of step: bilevel search or training of a genotype.
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

// quarter has a quarter of the batch, and JAX.
func (c DartsCase) quarter() DartsCase {
	c.Batch, c.Forms = c.Batch/4, []string{"channels-last", "stock"}
	return c
}

// smaller has half the batch, for the forms that could not run; false if it cannot be halved.
func (c DartsCase) smaller(forms []string) (DartsCase, bool) {
	if len(forms) == 0 || c.Batch < 2 {
		return c, false
	}
	c.Batch, c.Forms, c.halved = c.Batch/2, forms, true
	return c, true
}

func (c DartsCase) label() string {
	if !c.halved {
		return c.Name
	}
	return fmt.Sprintf("%s, batch %d", c.Name, c.Batch)
}

func (c DartsCase) peers(all []program) []program {
	out := slices.Clone(all)
	for i, p := range out {
		out[i].forms = slices.DeleteFunc(slices.Clone(p.forms), func(form string) bool {
			return c.Forms != nil && !slices.Contains(c.Forms, form)
		})
	}
	return out
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

// moved is a small case of another architecture update: one reduction cell, which JAX compiles in minutes.
func moved(name string, partial int, c DartsCase) DartsCase {
	c.Name, c.Partial, c.Channels = name, partial, 4*partial
	c.Cells, c.Image, c.Batch, c.Steps, c.Double = 1, 8, 4, 2, true
	c.Forms = []string{"stock", "channels-last"}
	return c
}

// The timed cases. At the paper's size JAX needs 30 GB with shifted maps and over 18 GB with stock operations, so it
// runs at quick size, and at the paper's with a quarter of the batch.
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

// oneShotForms are the peers' forms on NAS-Bench-1Shot1, without JAX's shifted pools: their float64 gradients differ
// from all others by 1e-9 to 1e-7, for unknown reasons.
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

// oneShotTimed is a bilevel DARTS step at the paper's size or that of quick scale.
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
		Timing: Timing{Rounds: 5}, Compared: oneShotCompared,
		Timed: []DartsCase{oneShotTimed(1, true), oneShotTimed(1, false), oneShotTimed(2, false),
			oneShotTimed(3, false)},
	}
	OneShotQuick = DartsParams{
		Timing: Timing{Rounds: 3}, Compared: oneShotCompared[:1], Timed: []DartsCase{oneShotTimed(1, true)},
	}
)

// DartsFull is behind the README's claims. DartsQuick only shows that everything works.
var (
	DartsFull = DartsParams{
		Timing: Timing{Rounds: 5}, Compared: dartsCompared,
		Timed: []DartsCase{dartsQuickSize, dartsPartialQuick, dartsPaperSize, dartsPaperSize.quarter(), dartsPartial,
			dartsPartial.quarter(), dartsTraining},
	}
	DartsQuick = DartsParams{
		Timing: Timing{Rounds: 3}, Compared: dartsCompared[:1],
		Timed: []DartsCase{{Name: "DARTS", Partial: 1, Cells: 2, Channels: 4, Image: 8, Batch: 8, Steps: 2}},
	}
)

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
