// Package trace replays search steps that another program computed, to find out whether both do the same arithmetic.
//
// A trace is one .npz file of NumPy (numpy.savez, numpy.savez_compressed): all that a search of some steps starts from,
// the settings, and what the other program got. [Read] reads it, [Trace.Replay] rebuilds the supernet, computes the
// same steps and compares. Any framework can write one; what it has to know stands here, and
// nasml/internal/bench/supernet_torch.py is a program that does.
//
// [Open] reads three formats more: steps of the authors' own programs on the DARTS space and NAS-Bench-1Shot1,
// [Authors], and their genotypes and the cells that they looked up, [Cells].
//
// # Arrays
//
// Floats are float32 or float64, labels int32, int64 or uint8, little-endian, in C or Fortran order. The replay
// computes in the type of weights/stem/conv. Everything is finite. An array of another name is an error, so that no
// misspelt one goes uncompared. Layouts are PyTorch's. With B examples, S steps, |E| edges and |O| operations:
//
//	settings                        the JSON below: a string ('<U', '|S') or its bytes (uint8)
//	weights/PATH                    before the first step, every weight
//	alpha or theta   [|E|, |O|]     before the first step: logits α, or θ on the simplex, as the method has it
//	train_images     [B, 3, H, W]   batch of the weights' pass, normalised; [S, B, 3, H, W] for one a step
//	train_labels     [B]            or [S, B]
//	valid_images, valid_labels      the same for the architecture's pass
//	noise/train      [|E|, |O|]     or [S, |E|, |O|]: Gumbel noise of the weights' pass, where the method samples
//	noise/valid                     the same for the architecture's pass
//	stats/PATH                      running statistics before the first step, where tracked; if missing, 0 and 1
//
// These are compared. At least one is there; a trace need not hold all:
//
//	logits           [B, classes]   of the weights' pass
//	loss             scalar         of the weights' pass: mean cross entropy
//	valid_logits, valid_loss        of the architecture's pass
//	grad/alpha or grad/theta        gradient that moves the architecture, before L2 is added: of valid_loss
//	grad/PATH                       gradient of loss by a weight, before clipping and L2
//	after/alpha or after/theta      after the step
//	after/weights/PATH
//	after/stats/PATH
//
// They are of the first step. Those of step s, from 1, have steps/s/ before
// their names: steps/10/after/weights/stem/conv.
//
// # Weights
//
// Convolutions are [out, in, height, width], classifier/weight is [classes, features], everything else is a vector.
// NAS-Bench-201's paths, with cells counted from 0 through all stages and reductions (for N = 1 cells 1 and 3 are
// reductions), an edge as 2<-0 for the one from node 0 to node 2, and op one of nor_conv_1x1 and nor_conv_3x3:
//
//	stem/conv                       3×3, no bias
//	cells/0/2<-0/op/conv            ReLU, convolution, BN
//	cells/0/2<-0/op/conv_bias       if conv_bias
//	cells/1/conv_a, conv_b          3×3 with stride 2, 3×3: ReLU, convolution, BN
//	cells/1/downsample              1×1, after a 2×2 mean
//	classifier/weight, classifier/bias
//	BN/scale, BN/bias               BN is stem/bn, last/bn, cells/1/conv_a/bn, conv_b/bn,
//	                                and, if affine, cells/0/2<-0/op/bn
//	BN/mean, BN/variance            as stats; of every BN, or of those outside of cells
//
// # Settings
//
//	{
//	 "source": "PyTorch 2.15",           // who made it; free text
//	 "space": "nasbench201",             // a name of supernet.Spaces; this is the default
//	 "ops": ["none", …],                 // operations of θ's columns, in order; default: all of the space
//	 "channels": 16, "cells": 1,         // C, and N a stage
//	 "image": 32, "classes": 10,
//	 "affine": false,                    // BN in cells has scale and bias
//	 "conv_bias": false,                 // convolutions in cells have a bias
//	 "track_stats": false,               // BN keeps running statistics (training normalises by the batch anyway)
//	 "track_outside": false,             // likewise, but BN in cells: BN=0 of AutoDL-Projects
//	 "method": "darts",                  // see below
//	 "order": "architecture-first",      // default; or "weights-first"
//	 "hypergradient": "first-order",     // default; or "unrolled", "finite-difference" (package bilevel)
//	 "steps": 1,                         // S; default 1
//	 "learning_rate": 0.025,             // of the weights, the same in all steps: SGD as PyTorch's
//	 "momentum": 0.9, "weight_decay": 5e-4, "nesterov": false,
//	 "clip": 5,                          // largest norm of all weights' gradients; 0: any
//	 "clip_covers": "weights",           // default; or "weights+architecture", with the norm of the architecture's
//	                                     // last gradient plus that of loss
//	 "unused": "zero-once-sampled",      // weights of operations that were not sampled in the weights' pass. The
//	                                     // default is as PyTorch before 2.0: left alone until an operation is
//	                                     // sampled for the first time, in either pass, then of gradient 0, so that
//	                                     // momentum and decay act. "zero": of gradient 0 from the start, as where
//	                                     // one program computes all choices; "skip": always left alone
//	 "update": "adam",                   // of the architecture: "adam" or "sgd" on α; on θ a name of simplex.Updates
//	 "arch_rate": 3e-4, "arch_beta1": 0.5, "arch_beta2": 0.999, "arch_epsilon": 1e-8,
//	 "arch_weight_decay": 1e-3,          // L2, added to the gradient; of adam and sgd
//	 "entropy_weight": 0.01,             // c of the regulariser c·Σ θ log(θ|O|), whose gradient c·log θ is added
//	                                     // to grad/theta in the move; of methods with θ
//	 "tau": 10                           // temperature, where the method samples; default 1
//	}
//
// Unknown names are an error. Numbers without a default above are 0, false or
// missing, except arch_epsilon, 1e-8. The methods:
//
//	darts        Σ_o softmax(α)_o · o(x) on an edge
//	gaea-darts   Σ_o θ_o · o(x)
//	gdas         p = softmax((log softmax(α) + noise)/τ), the largest o* of an edge chosen,
//	             w = onehot(o*) − p (detached) + p; the edge is w_o* · o*(x) + Σ_{o≠o*} w_o,
//	             the last sum a scalar added to the feature map, 0 in value
//	gaea-gdas    the same with log θ for log softmax(α)
//
// Adam's moments and SGD's momentum are 0 before the first step. The second
// update of a step sees what the first has changed.
//
// # Differences
//
// The absolute difference of an array is the largest |ours − theirs|. The
// relative one is that divided by the array's scale:
//
//	logits, losses, gradients       largest |theirs|
//	after/…                         largest |theirs − before the first step|: a wrong optimizer shows in
//	                                the change, not beside the weights' size. What storing a number can
//	                                round, ε·largest |theirs| with ε = 2⁻²³ (float32) or 2⁻⁵² (float64),
//	                                is first taken off the difference.
//	grad/PATH, after/weights/PATH   but at least a tenth of the largest such scale among all weights, and
//	after/stats/PATH                among all statistics: behind batch norm some gradients are 0 but for
//	                                rounding, such as that of conv_bias
//	grad/alpha, grad/theta          but at least a thousandth of the largest grad/PATH: where what an edge gives
//	                                has no effect, such as behind "none", it is 0 but for rounding
//
// Where it is 0, the scale is 1.
//
// # Write float64
//
// In float32 two right programs agree to about 10⁻⁶ until a number before a ReLU is so close to 0 that rounding puts it
// on different sides. The gradient of that one pixel then passes or does not, which moves the gradient of a kernel that
// sums over n pixels by about 1/√n of it, and from there the searches part. PyTorch against itself in float64: at 4
// channels, 16×16 pixels and batch 16 no such pixel in a first step and one within ten steps in three of four methods;
// at 16 channels, 32×32 and batch 64 one in the first step, which moved a gradient by 2·10⁻⁴. In float64 none is to be
// expected. So a trace in float32 should be small or short, and one of many steps in float64.
package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nasml/lab/nasml/supernet"
)

// Trace is the content of a file that has passed [Trace.Check].
type Trace struct {
	Settings Settings
	Arrays   map[string]Array // all but the settings
}

// Open reads a trace of any format: this package's, [Authors] (settings have "state"), or [Cells] ("genotypes" or
// "specs"). The error names an array that is missing, unexpected, misshapen or not finite.
func Open(file string) (Replayable, error) {
	var read func(arrays map[string]Array, settings string) (Replayable, error)
	arrays, text, err := readNPZ(file, func(text string, shapes map[string]Array) (err error) {
		var has struct{ State, Genotypes, Specs json.RawMessage }
		_ = json.Unmarshal([]byte(text), &has) // what is no JSON is refused by newTrace
		switch {
		case has.State != nil:
			read = func(a map[string]Array, s string) (Replayable, error) { return newAuthors(a, s) }
		case has.Genotypes != nil:
			read = newGenotypes
		case has.Specs != nil:
			read = newLookups
		default:
			read = newTrace
			_, err = newTrace(shapes, text) // all but the elements
		}
		return err
	})
	var t Replayable
	if err == nil {
		t, err = read(arrays, text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Read is [Open] of a trace in the format of the package comment.
func Read(file string) (*Trace, error) {
	t, err := Open(file)
	if err != nil {
		return nil, err
	}
	own, ok := t.(*Trace)
	if !ok {
		return nil, fmt.Errorf("%s: found a %T, expected a trace as in the comment of package trace", file, t)
	}
	return own, nil
}

func newTrace(arrays map[string]Array, text string) (Replayable, error) {
	settings, err := parse(text)
	if err != nil {
		return nil, err
	}
	t := &Trace{settings, arrays}
	if err := t.Check(); err != nil {
		return nil, err
	}
	if len(t.compared()) == 0 {
		return nil, errors.New("there is nothing to compare: expected at least one of logits, loss, grad/…, after/…")
	}
	return t, nil
}

// Write writes the trace to a file.
func (t *Trace) Write(file string) error {
	text, err := json.Marshal(t.Settings)
	if err != nil {
		return fmt.Errorf("%s: settings: %w", file, err)
	}
	if err := writeNPZ(file, t.Arrays, text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Check compares names and shapes with what the settings ask for.
func (t *Trace) Check() error {
	if err := t.Settings.Check(); err != nil {
		return err
	}
	batch, err := t.batch()
	if err != nil {
		return err
	}
	if cells := t.Settings.Cells; cells > len(t.Arrays) { // each has weights: no such network is built
		return fmt.Errorf("settings: cells is %d, more than the %d arrays of the trace", cells, len(t.Arrays))
	}
	net, err := t.Settings.net()
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	want := t.Settings.inputs(net, batch)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, want[name].check(name, t.Arrays))
	}
	outputs := t.Settings.outputs(net, batch)
	for _, name := range slices.Sorted(maps.Keys(t.Arrays)) {
		if _, ok := want[name]; ok {
			continue
		}
		_, plain, err := splitStep(name, t.Settings.Steps)
		w, ok := outputs[plain]
		if err == nil && !ok {
			err = fmt.Errorf("%s: no array is called this with these settings (see the comment of package trace)", name)
		}
		if err == nil {
			err = w.check(name, t.Arrays)
		}
		errs = append(errs, err)
	}
	return firstFew(errs)
}

// firstFew joins the first errors in one line.
func firstFew(errs []error) error {
	var texts []string
	for _, err := range errs {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if n := len(texts); n > 5 {
		texts = append(texts[:4], fmt.Sprintf("and %d more like these", n-4))
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

func (t *Trace) batch() (int, error) {
	const name = "train_images"
	a, ok := t.Arrays[name]
	switch {
	case !ok:
		return 0, fmt.Errorf("%s is missing", name)
	case len(a.Dims) < 4 || len(a.Dims) > 5:
		return 0, fmt.Errorf("%s: found shape %v, expected [B, 3, H, W] or [S, B, 3, H, W]", name, a.Dims)
	}
	return a.Dims[len(a.Dims)-4], nil
}

// wanted is the shape that an array has to have.
type wanted struct {
	dims     []int
	steps    int  // if not 0, this may be a further, leading axis
	optional bool // it may be missing
	classes  int  // if not 0, these are labels below it
}

func (w wanted) check(name string, arrays map[string]Array) error {
	a, ok := arrays[name]
	if !ok {
		if w.optional {
			return nil
		}
		return fmt.Errorf("%s is missing: expected shape %v", name, w.dims)
	}
	perStep := append([]int{w.steps}, w.dims...)
	if !slices.Equal(a.Dims, w.dims) && (w.steps == 0 || !slices.Equal(a.Dims, perStep)) {
		expected := fmt.Sprint(w.dims)
		if w.steps > 0 {
			expected += fmt.Sprintf(" or %v", perStep)
		}
		return fmt.Errorf("%s: found shape %v, expected %s", name, a.Dims, expected)
	}
	isLabel := w.classes > 0
	if isFloat := strings.HasPrefix(a.Type, "<f"); isFloat == isLabel {
		return fmt.Errorf("%s: found elements of type %s, expected %s", name, a.Type,
			map[bool]string{true: "integers", false: "floats"}[isLabel])
	}
	for i, x := range a.Values {
		if notFinite(x) || isLabel && (x < 0 || x >= float64(w.classes)) {
			return fmt.Errorf("%s: element %d is %v, expected a finite number, and of labels one from 0 to classes−1",
				name, i, x)
		}
	}
	return nil
}

func (s Settings) inputs(net *supernet.Net, batch int) map[string]wanted {
	m := methods[s.Method]
	theta := []int{len(net.Config.Space.Edges), len(s.Ops)}
	want := map[string]wanted{m.parameter: {dims: theta}}
	for _, w := range net.Weights() {
		want["weights/"+w.Path] = wanted{dims: foreign(w.Dims)}
	}
	for _, w := range net.Stats() {
		want["stats/"+w.Path] = wanted{dims: w.Dims, optional: true}
	}
	for _, part := range []string{"train", "valid"} {
		want[part+"_images"] = wanted{dims: []int{batch, 3, s.Image, s.Image}, steps: s.Steps}
		want[part+"_labels"] = wanted{dims: []int{batch}, steps: s.Steps, classes: s.Classes}
		if m.sampled {
			want["noise/"+part] = wanted{dims: theta, steps: s.Steps}
		}
	}
	return want
}

func (s Settings) outputs(net *supernet.Net, batch int) map[string]wanted {
	m := methods[s.Method]
	theta := wanted{dims: []int{len(net.Config.Space.Edges), len(s.Ops)}}
	logits := wanted{dims: []int{batch, s.Classes}}
	out := map[string]wanted{
		"logits": logits, "valid_logits": logits, "loss": {dims: []int{}}, "valid_loss": {dims: []int{}},
		"grad/" + m.parameter: theta, "after/" + m.parameter: theta,
	}
	for _, w := range net.Weights() {
		out["grad/"+w.Path] = wanted{dims: foreign(w.Dims)}
		out["after/weights/"+w.Path] = wanted{dims: foreign(w.Dims)}
	}
	for _, w := range net.Stats() {
		out["after/stats/"+w.Path] = wanted{dims: w.Dims}
	}
	return out
}

func (t *Trace) compared() []string {
	var names []string
	for name := range t.Arrays {
		_, plain, _ := splitStep(name, t.Settings.Steps)
		if plain != name || isOutput(name) {
			names = append(names, name)
		}
	}
	sortBySteps(names, t.Settings.Steps)
	return names
}

func sortBySteps(names []string, steps int) {
	slices.SortFunc(names, func(a, b string) int {
		stepA, plainA, _ := splitStep(a, steps)
		stepB, plainB, _ := splitStep(b, steps)
		return cmp.Or(cmp.Compare(stepA, stepB), cmp.Compare(plainA, plainB))
	})
}

func isOutput(name string) bool {
	return strings.HasSuffix(name, "logits") || strings.HasSuffix(name, "loss") ||
		strings.HasPrefix(name, "grad/") || strings.HasPrefix(name, "after/")
}

// splitStep splits off the step, from 1.
func splitStep(name string, steps int) (step int, plain string, err error) {
	rest, ok := strings.CutPrefix(name, "steps/")
	if !ok {
		return 1, name, nil
	}
	number, plain, _ := strings.Cut(rest, "/")
	step, err = strconv.Atoi(number)
	if err != nil || step < 1 || step > steps || strconv.Itoa(step) != number {
		return 0, "", fmt.Errorf("%s: found step %q, expected a number from 1 to %d as the settings say", name, number,
			steps)
	}
	return step, plain, nil
}
