package trace

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/stretchr/testify/require"
)

// goBackend computes small networks without compiling.
func goBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// TestTracesOfTheOracles replays what PyTorch and JAX computed
// (nasml/internal/bench/supernet_traces.py).
func TestTracesOfTheOracles(t *testing.T) {
	b := goBackend(t)
	files, err := filepath.Glob("testdata/*.npz")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			trace, err := Read(file)
			require.NoError(t, err)
			differences, err := trace.Replay(t.Context(), b)
			require.NoError(t, err)
			require.Len(t, differences, len(trace.compared()))
			for _, d := range differences {
				require.True(t, d.Within(1e-4), "%+v", d)
				require.True(t, d.Scale > 0)
			}
		})
	}
}

// darts is a trace of one step with its gradients.
func darts(t *testing.T) *Trace {
	t.Helper()
	trace, err := Read("testdata/darts.npz")
	require.NoError(t, err)
	return trace
}

// wrong are the names of the arrays beyond the tolerance.
func wrong(t *testing.T, trace *Trace) []string {
	t.Helper()
	require.NoError(t, trace.Check())
	differences, err := trace.Replay(t.Context(), goBackend(t))
	require.NoError(t, err)
	var names []string
	for _, d := range differences {
		if !d.Within(1e-4) {
			names = append(names, d.Name)
		}
	}
	return names
}

func TestTamperedArraysDiffer(t *testing.T) {
	trace := darts(t)
	for _, name := range []string{"grad/cells/0/2<-0/nor_conv_3x3/conv", "logits", "valid_loss"} {
		values := trace.Arrays[name].Values
		values[len(values)/2] += 1e-3 * scale(name, trace.Arrays[name], nil)
	}
	require.ElementsMatch(t, []string{"grad/cells/0/2<-0/nor_conv_3x3/conv", "logits", "valid_loss"}, wrong(t, trace))
}

func TestWrongOptimizersDiffer(t *testing.T) {
	trace := darts(t)
	trace.Settings.WeightDecay = 0   // 1e-5 of a scale's size, 1e-3 of its change
	trace.Settings.ArchRate *= 1.001 // 1e-6 of α's size
	names := wrong(t, trace)
	require.Contains(t, names, "after/weights/stem/bn/scale")
	require.Contains(t, names, "after/alpha")
	require.False(t, slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "grad/") }),
		"gradients are before L2: %v", names)
}

func TestOperationsInAnotherOrderDiffer(t *testing.T) {
	trace := darts(t)
	trace.Settings.Ops = []string{"skip_connect", "none", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"}
	require.Contains(t, wrong(t, trace), "logits")
}

func TestFloat64(t *testing.T) {
	trace := darts(t)
	trace.Double()
	require.Equal(t, "<f8", trace.Arrays["alpha"].Type)
	require.Equal(t, "<i4", trace.Arrays["train_labels"].Type)
	require.Empty(t, wrong(t, trace), "the trace's own rounding is below the tolerance")
}

func TestTrainGivesTheLossesOfTheReplay(t *testing.T) {
	trace, err := Read("testdata/gaea-gdas-jax.npz")
	require.NoError(t, err)
	s, err := NewSearch(goBackend(t), trace)
	require.NoError(t, err)
	defer s.Close()
	losses, took, err := s.Train(t.Context())
	require.NoError(t, err)
	require.Positive(t, took)
	for i, name := range []string{"loss", "steps/2/loss", "steps/3/loss"} {
		require.InEpsilon(t, trace.Arrays[name].Values[0], losses[i], 1e-4)
	}
	again, _, err := s.Train(t.Context())
	require.NoError(t, err)
	require.Equal(t, losses, again)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Train(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = trace.Replay(ctx, goBackend(t))
	require.ErrorIs(t, err, context.Canceled)
}

func TestDivergingSearchIsAnError(t *testing.T) {
	trace := sampled(t, unusedZero)
	trace.Settings.Tau = 1e-300 // logits of ±∞
	trace.Arrays["loss"] = Float32([]float32{1})
	_, err := trace.Replay(t.Context(), goBackend(t))
	require.ErrorContains(t, err, "step 1: our ")
}

// TestDifference is the definition in the package comment, by hand.
func TestDifference(t *testing.T) {
	array := func(x ...float64) Array { return Array{Type: "<f4", Dims: []int{len(x)}, Values: x} }
	before := map[string]Array{"after/weights/a": array(1, 2)}
	ours := map[string]Array{"after/weights/a": array(1.5, 2), "grad/a": array(10), "grad/b": array(0.001)}
	least := map[string]float64{}
	for name, a := range ours {
		raise(least, name, a, before)
	}
	require.Equal(t, map[string]float64{"after/weights/": 0.05, "grad/": 1, ofArchitecture: 0.01}, least)

	d := difference("after/weights/a", ours["after/weights/a"], array(1.25, 2), before, least)
	require.Equal(t, 0.25, d.Absolute)
	require.Equal(t, 0.25, d.Scale, "the change from 1 to 1.25")
	require.InDelta(t, 1-2*0x1p-23/0.25, d.Relative, 1e-12, "less what float32 rounds at 2")

	d = difference("grad/b", ours["grad/b"], array(0.002), before, least)
	require.InDelta(t, 0.001, d.Relative, 1e-12, "of a tenth of the largest gradient")
	d = difference("grad/alpha", array(0.1), array(0.2), before, least)
	require.InDelta(t, 0.5, d.Relative, 1e-12, "of itself")
	d = difference("grad/theta", array(1e-15), array(0), before, least)
	require.InDelta(t, 1e-13, d.Relative, 1e-25, "rounding beside a thousandth of the largest gradient")
	d = difference("loss", array(0), array(0), before, least)
	require.Zero(t, d.Relative)

	require.True(t, Difference{Step: 1, Relative: 1e-4}.Within(1e-4))
	require.False(t, Difference{Step: 1, Relative: 2e-4}.Within(1e-4))
	require.True(t, Difference{Step: 2, Relative: 1e-3}.Within(1e-4))
	require.False(t, Difference{Step: 1, Relative: math.NaN()}.Within(1e-4))
}

// TestWrongContent: each error names the array, what was found and what was
// expected.
func TestWrongContent(t *testing.T) {
	set := func(name string, a Array) func(*Trace) { return func(t *Trace) { t.Arrays[name] = a } }
	drop := func(name string) func(*Trace) { return func(t *Trace) { delete(t.Arrays, name) } }
	change := func(f func(*Settings)) func(*Trace) { return func(t *Trace) { f(&t.Settings) } }
	for want, spoil := range map[string]func(*Trace){
		"weights/stem/conv is missing: expected shape [2 3 3 3]": drop("weights/stem/conv"),
		"alpha is missing: expected shape [6 5]":                 drop("alpha"),
		"train_images is missing":                                drop("train_images"),
		"valid_labels is missing: expected shape [4]":            drop("valid_labels"),
		"grad/stem/conv: found shape [54], expected [2 3 3 3]": set("grad/stem/conv",
			Float32(make([]float32, 54), 54)),
		"train_labels: found shape [3], expected [4] or [1 4]": set("train_labels",
			int32s(make([]int32, 3), 3)),
		"train_labels: found elements of type <f4, expected integers": set("train_labels",
			Float32(make([]float32, 4), 4)),
		"train_labels: element 0 is 10, expected": set("train_labels",
			int32s([]int32{10, 0, 0, 0}, 4)),
		"alpha: found elements of type <i4, expected floats": set("alpha",
			int32s(make([]int32, 30), 6, 5)),
		"loss: element 0 is NaN, expected a finite number": set("loss",
			Float32([]float32{float32(math.NaN())})),
		"theta: no array is called this": set("theta",
			Float32(make([]float32, 30), 6, 5)),
		"noise/train: no array is called this": set("noise/train",
			Float32(make([]float32, 30), 6, 5)),
		"grad/stem/cnv: no array is called this": set("grad/stem/cnv",
			Float32(make([]float32, 1))),
		`steps/2/loss: found step "2", expected a number from 1 to 1`: set("steps/2/loss",
			Float32(make([]float32, 1))),
		`steps/01/loss: found step "01"`: set("steps/01/loss",
			Float32(make([]float32, 1))),
		"train_images: found shape [1 4 3 8 8], expected [4 3 16 16] or [1 4 3 ": change(
			func(s *Settings) { s.Image = 16 }),

		"cells is 100000000, more than the ": change(func(s *Settings) { s.Cells = 1e8 }),

		"image must be at least 4, got 2":           change(func(s *Settings) { s.Image = 2 }),
		"image size 10":                             change(func(s *Settings) { s.Image = 10 }),
		`method must be one of darts, gaea-darts`:   change(func(s *Settings) { s.Method = "dart" }),
		`update must be one of adam, sgd, got "eg"`: change(func(s *Settings) { s.Update = "eg" }),
		"learning_rate must be more than 0":         change(func(s *Settings) { s.LearningRate = 0 }),
		`operation "max_pool" is unknown`:           change(func(s *Settings) { s.Ops[0] = "max_pool" }),
		"track_stats or track_outside with hypergradient": change(func(s *Settings) {
			s.TrackStats, s.Hypergradient = true, "unrolled"
		}),
		"and ": change(func(s *Settings) { s.Affine = true }),
	} {
		trace := darts(t)
		spoil(trace)
		require.ErrorContains(t, trace.Check(), want)
		require.NotContains(t, trace.Check().Error(), "\n")
	}
}

// The regulariser c·Σ θ log(θ|O|) has the gradient c·log θ, but for a constant that
// the normalisation takes out; grad/theta is without it. After a step of exponentiated
// gradient θ′ ∝ θ·exp(−η(g + c·log θ)).
func TestEntropyWeight(t *testing.T) {
	const rate, c = 0.5, 0.3
	after := func(weight float64) (theta, found map[string]Array) {
		settings := darts(t).Settings
		settings.Method, settings.Update, settings.ArchRate, settings.EntropyWeight = "gaea-darts", "eg", rate, weight
		settings.Channels, settings.Image, settings.Steps = 1, 4, 1
		trace, err := Random(settings, 2, 7)
		require.NoError(t, err)
		trace.Double()
		found, err = trace.Compute(t.Context(), goBackend(t), 1)
		require.NoError(t, err)
		return trace.Arrays, found
	}
	start, plain := after(0)
	_, regular := after(c)
	require.Equal(t, plain["grad/theta"], regular["grad/theta"])
	theta, grad := start["theta"], plain["grad/theta"].Values
	options := theta.Dims[1]
	for from := 0; from < len(theta.Values); from += options {
		want, sum := make([]float64, options), 0.
		for o := range options {
			x := theta.Values[from+o]
			want[o] = x * math.Exp(-rate*(grad[from+o]+c*math.Log(x)))
			sum += want[o]
		}
		for o := range options {
			want[o] /= sum
		}
		require.InDeltaSlice(t, want, regular["after/theta"].Values[from:from+options], 1e-12)
		require.NotEqual(t, plain["after/theta"].Values[from], regular["after/theta"].Values[from])
	}
}

// ending is a context that has ended after it was asked so many times.
type ending struct {
	context.Context
	asked, after int
}

func (e *ending) Err() error {
	if e.asked++; e.asked > e.after {
		return context.Canceled
	}
	return nil
}

// A replay ends after the step under way.
func TestReplayHearsTheEnd(t *testing.T) {
	trace := sampledSteps(t, unusedZero, 5)
	ctx := &ending{Context: t.Context(), after: 2}
	_, err := trace.Compute(ctx, goBackend(t), 5)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, ctx.asked, "before each step")
}

func TestSettingsFromJSON(t *testing.T) {
	least := `{"channels": 2, "cells": 1, "image": 8, "classes": 10, "method": "darts", ` +
		`"learning_rate": 0.1, "update": "sgd", "arch_rate": 0.1`
	s, err := parse(least + "}")
	require.NoError(t, err)
	require.Equal(t, "nasbench201", s.Space)
	require.Len(t, s.Ops, 5)
	require.Equal(t, 1, s.Steps)
	require.Equal(t, "first-order", s.Hypergradient)
	for text, want := range map[string]string{
		least + `, "momentun": 0.9}`:        "momentun",
		least + `, "steps": "two"}`:         "steps",
		least + `} and more`:                `found "and more" after the JSON`,
		least + `}{"steps": 2}`:             "after the JSON",
		least + `, "entropy_weight": 0.01}`: "entropy_weight must be 0 with method darts",
		least:                               "expected JSON",
		"{}":                                "method must be",
		`{"space": "imagenet"}`:             "space must be one of",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want)
	}
}

func TestWriteAndReadAgain(t *testing.T) {
	trace := darts(t)
	file := filepath.Join(t.TempDir(), "copy.npz")
	require.NoError(t, trace.Write(file))
	again, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, trace, again)

	for name := range maps.Clone(trace.Arrays) {
		if isOutput(name) {
			delete(trace.Arrays, name)
		}
	}
	require.NoError(t, trace.Write(file))
	_, err = Read(file)
	require.ErrorContains(t, err, "copy.npz: there is nothing to compare")
}

func TestRandomIsBySeed(t *testing.T) {
	s := darts(t).Settings
	s.Steps = 2
	a, err := Random(s, 3, 1)
	require.NoError(t, err)
	b, err := Random(s, 3, 1)
	require.NoError(t, err)
	require.Equal(t, a, b)
	c, err := Random(s, 3, 2)
	require.NoError(t, err)
	require.NotEqual(t, a, c)
	require.Equal(t, []int{2, 3, 3, 8, 8}, a.Arrays["train_images"].Dims)

	s.Method, s.Update = "gaea-gdas", "eg"
	a, err = Random(s, 3, 1)
	require.NoError(t, err)
	sum := 0.0
	for _, x := range a.Arrays["theta"].Values[:5] {
		sum += x
	}
	require.InDelta(t, 1, sum, 1e-6)
	_, err = Random(Settings{}, 3, 1)
	require.Error(t, err)
}

// int32s is an array of int32 values.
func int32s(values []int32, dims ...int) Array {
	a := Array{Type: "<i4", Dims: dims, Values: make([]float64, len(values))}
	for i, x := range values {
		a.Values[i] = float64(x)
	}
	return a
}
