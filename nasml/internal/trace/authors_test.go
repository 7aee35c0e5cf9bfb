package trace

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/supernet"
)

// authorsTraces is where the authors' own programs' traces lie, if at all.
func authorsTraces() string {
	if folder := os.Getenv("NASML_TRACES"); folder != "" {
		return folder
	}
	return "../../../../shared/reference/traces_darts"
}

// openAuthors opens one of them, and skips the test if it is not there.
func openAuthors(t *testing.T, name string) Replayable {
	t.Helper()
	file := filepath.Join(authorsTraces(), name+".npz")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("the authors' traces are not part of the repository: %v", err)
	}
	trace, err := Open(file)
	require.NoError(t, err)
	return trace
}

// TestTracesOfTheAuthors replays what their PyTorch code computed, in float64.
func TestTracesOfTheAuthors(t *testing.T) {
	b := goBackend(t)
	for _, name := range []string{
		"darts-1st", "pcdarts", "gaea-pcdarts", "eval-darts-v2", "pcdarts-imagenet", "1shot1-s1-darts",
		"1shot1gaea-s1-edarts",
	} {
		t.Run(name, func(t *testing.T) {
			trace := openAuthors(t, name)
			differences, err := trace.Replay(t.Context(), b)
			require.NoError(t, err)
			for _, d := range differences {
				if d.Relative > 1e-11 {
					t.Logf("%+v", d)
				}
				require.LessOrEqual(t, d.Relative, 1e-9, "%+v", d)
			}
		})
	}
}

// ownSearch is a trace of one node a cell in the authors' format, without
// outputs: two cells, four channels, of which K = 2 lets one half pass.
func ownSearch(t *testing.T, change func(s map[string]any), edges string) (arrays map[string]Array, settings string) {
	t.Helper()
	space := supernet.DARTS
	space.Nodes = 1
	net, err := supernet.NewSearch(supernet.SearchConfig{
		Skeleton: supernet.Skeleton{Channels: 4, Cells: 2, Image: 4, Classes: 3},
		Space:    space, Partial: 2, Edges: edges != "",
	})
	require.NoError(t, err)
	s := map[string]any{
		"method": "pc-darts", "source": "this test", "channels": 4, "layers": 2, "image": 4, "classes": 3, "steps": 2,
		"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 3e-4, "clip": 5.0,
		"arch_rate": 6e-4, "arch_weight_decay": 1e-3,
	}
	change(s)
	arrays = ownState(net, s)
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(dims ...int) Array {
		a := Array{Type: "<f8", Dims: dims, Values: make([]float64, size(dims))}
		for i := range a.Values {
			a.Values[i] = 0.5 * rng.NormFloat64()
		}
		if s["method"] == "gaea-pcdarts" && len(dims) < 4 {
			softmax(a.Values, dims[len(dims)-1])
		}
		return a
	}
	for _, kind := range []string{"normal", "reduce"} {
		arrays["start/alphas_"+kind] = draw(2, space.Options())
		if edges != "" {
			arrays["start/"+edges+"_"+kind] = draw(2)
		}
	}
	for _, part := range []string{"train", "valid"} {
		arrays[part+"_images"] = draw(2, 2, 3, 4, 4)
		arrays[part+"_labels"] = Array{Type: "<i8", Dims: []int{2, 2}, Values: []float64{0, 1, 2, 0}}
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return arrays, string(text)
}

// ownState draws the state of a network, and names it in the settings.
func ownState(net *supernet.CellNet, settings map[string]any) map[string]Array {
	rng := rand.New(rand.NewPCG(3, 4))
	start := Array{Type: "<f8"}
	var state, parameters [][2]any
	for i, w := range slices.Concat(net.Weights(), net.Stats()) {
		name := strings.ReplaceAll(strings.Replace(w.Path, "cells/0/2<-0/", "cells.0._ops.0._ops.", 1), "/", ".")
		name = strings.NewReplacer(".mean", ".running_mean", ".variance", ".running_var").Replace(name)
		dims := foreign(w.Dims)
		for range size(dims) {
			x := rng.NormFloat64() / math.Sqrt(float64(max(w.FanIn, 1)))
			if w.Init == supernet.InitOnes {
				x = 0.5 + rng.Float64()
			}
			start.Values = append(start.Values, x)
		}
		state = append(state, [2]any{name, dims})
		if i < len(net.Weights()) {
			parameters = append(parameters, [2]any{name, dims})
		}
	}
	start.Dims = []int{len(start.Values)}
	settings["state"], settings["parameters"] = state, parameters
	return map[string]Array{"start": start}
}

// observed are all outputs of both steps, in which the architecture moves.
func observed(t *testing.T, arrays map[string]Array, settings string) (*Authors, []map[string]Array) {
	t.Helper()
	trace, err := newAuthors(maps.Clone(arrays), settings)
	require.NoError(t, err)
	for step := range 2 {
		trace.Arrays[stepName(step+1, "valid_loss")] = Array{Type: "<f8", Values: []float64{0}}
	}
	run, err := newAuthorsRun(goBackend(t), trace)
	require.NoError(t, err)
	defer run.close()
	var out []map[string]Array
	for step := range 2 {
		found, err := run.observe(step)
		require.NoError(t, err)
		out = append(out, found)
	}
	return trace, out
}

// TestOwnTraceInTheAuthorsFormat writes what a search gave, reads and replays
// it; what is tampered with, and other settings, differ.
func TestOwnTraceInTheAuthorsFormat(t *testing.T) {
	arrays, settings := ownSearch(t, func(map[string]any) {}, "betas")
	_, found := observed(t, arrays, settings)
	for step, outputs := range found {
		for plain, a := range outputs {
			arrays[stepName(step+1, plain)] = a
		}
	}
	replay := func(arrays map[string]Array, settings string) map[string]float64 {
		file := filepath.Join(t.TempDir(), "own.npz")
		require.NoError(t, writeNPZ(file, arrays, []byte(settings)))
		trace, err := Open(file)
		require.NoError(t, err)
		require.Equal(t, About{"this test", "pc-darts", 2, 1e-9}, trace.About())
		differences, err := trace.Replay(t.Context(), goBackend(t))
		require.NoError(t, err)
		require.Len(t, differences, 2*len(found[0]))
		off := map[string]float64{}
		for _, d := range differences {
			if d.Relative > 1e-10 {
				off[d.Name] = d.Relative
			}
		}
		return off
	}
	require.Empty(t, replay(arrays, settings))

	tampered := maps.Clone(arrays)
	prints := tampered["grad_prints"]
	prints.Values = slices.Clone(prints.Values)
	prints.Values[4] *= 1.001
	tampered["grad_prints"] = prints
	require.Equal(t, []string{"grad_prints"}, slices.Collect(maps.Keys(replay(tampered, settings))))

	for _, c := range []struct{ old, by, wrong string }{
		{`"arch_weight_decay":0.001`, `"arch_weight_decay":0`, "after/alphas_normal"},
		{`"momentum":0.9`, `"momentum":0.8`, "steps/2/after/classifier.weight"},
		{`"clip":5`, `"clip":0.1`, "after/classifier.weight"},
	} {
		require.Contains(t, settings, c.old)
		require.Contains(t, replay(arrays, strings.Replace(settings, c.old, c.by, 1)), c.wrong)
	}
}

// TestMasksOfDropPath: a step is given its factors by example and place; masks of
// another number of values are none of the network's.
func TestMasksOfDropPath(t *testing.T) {
	genotype, err := supernet.ParseGenotype("DARTS_V2")
	require.NoError(t, err)
	net, err := supernet.NewDerived(supernet.DerivedConfig{
		Skeleton: supernet.Skeleton{Channels: 2, Cells: 1, Image: 4, Classes: 3}, Genotype: genotype,
	})
	require.NoError(t, err)
	s := map[string]any{
		"method": "evaluation", "genotype": "DARTS_V2", "channels": 2, "layers": 1, "image": 4, "classes": 3,
		"steps": 2, "learning_rate": 0.1, "drop_path_prob": 0.75,
	}
	arrays := ownState(net, s)
	places := net.DropPlaces()
	arrays["train_images"] = filled(0.5, 2, 2, 3, 4, 4)
	arrays["train_labels"] = Array{Type: "<i8", Dims: []int{2, 2}, Values: []float64{0, 1, 2, 0}}
	masks := filled(0, 2, places, 2, 1)
	masks.Values[2*places+3] = 1 // the second step's second place, of the second example
	arrays["drop_masks"] = masks
	text, err := json.Marshal(s)
	require.NoError(t, err)
	trace, err := newAuthors(maps.Clone(arrays), string(text))
	require.NoError(t, err)
	run, err := newAuthorsRun(goBackend(t), trace)
	require.NoError(t, err)
	defer run.close()
	factors, err := arrayOf(run.feed(1)[3])
	require.NoError(t, err)
	want := filled(0, 2, places)
	want.Values[places+1] = 4
	require.Equal(t, want, factors)

	arrays["drop_masks"] = filled(1, 2, places+1, 2)
	_, err = newAuthors(arrays, string(text))
	require.ErrorContains(t, err, "drop path: found ")
}

// TestStepOfTheAuthorsByHand: what follows from the gradients of a step, in
// plain arithmetic.
func TestStepOfTheAuthorsByHand(t *testing.T) {
	arrays, settings := ownSearch(t, func(s map[string]any) { s["clip"] = 0.5 }, "betas")
	trace, found := observed(t, arrays, settings)
	norm, name := 0.0, "classifier.weight"
	for _, p := range trace.Settings.Parameters {
		for _, g := range found[0]["grad/"+p.Name].Values {
			norm += g * g
		}
	}
	norm = math.Sqrt(norm)
	require.InDelta(t, norm, found[0]["grad_norm"].Values[0], 1e-12)
	require.Greater(t, norm, 0.5, "it is clipped")
	factor := 0.5 / (norm + 1e-6)
	before := trace.Arrays["start/"+name].Values
	for i, g := range found[0]["grad/"+name].Values {
		velocity := factor*g + 3e-4*before[i]
		require.InDelta(t, before[i]-0.1*velocity, found[0]["after/"+name].Values[i], 1e-13)
		first := found[0]["after/"+name].Values[i]
		second := found[1]["grad/"+name].Values[i]*min(1, 0.5/(found[1]["grad_norm"].Values[0]+1e-6)) + 3e-4*first
		require.InDelta(t, first-0.1*(0.9*velocity+second), found[1]["after/"+name].Values[i], 1e-13)
	}
	for _, name := range []string{"alphas_reduce", "betas_normal"} {
		for i, x := range trace.Arrays["start/"+name].Values {
			g := found[0]["grad/"+name].Values[i] + 1e-3*x // Adam's first step is one of its sign
			require.InDelta(t, x-6e-4*g/(math.Abs(g)+1e-8), found[0]["after/"+name].Values[i], 1e-13)
		}
	}
}

// TestGAEAStepOfTheAuthorsByHand: operations are clamped and normalised, edges
// normalised; on ImageNet the gradient is clipped and has that of the weights'
// pass in it, which goes first.
func TestGAEAStepOfTheAuthorsByHand(t *testing.T) {
	arrays, settings := ownSearch(t, func(s map[string]any) {
		s["method"], s["edge_rate"] = "gaea-pcdarts", 0.1
	}, "edges")
	trace, found := observed(t, arrays, settings)
	for _, name := range []string{"alphas_reduce", "edges_reduce"} {
		theta, n := trace.Arrays["start/"+name].Values, map[string]int{"alphas_reduce": 8, "edges_reduce": 2}[name]
		u, sum := make([]float64, n), 0.0
		for i := range u {
			u[i] = theta[i] * math.Exp(-0.1*found[0]["grad/"+name].Values[i])
			if n == 8 {
				u[i] = max(u[i], 1e-5)
			}
			sum += u[i]
		}
		for i := range u {
			require.InDelta(t, u[i]/sum, found[0]["after/"+name].Values[i], 1e-14)
		}
	}
	require.Zero(t, found[0]["grad/alphas_reduce"].Values[0], "none has no gradient")

	trace.kind.uncleared, trace.kind.imageNet = true, true
	trace.Settings.Clip = 1e6
	run, err := newAuthorsRun(goBackend(t), trace)
	require.NoError(t, err)
	defer run.close()
	delete(trace.Arrays, "valid_loss") // the first step is a warm-up, which leaves its gradient
	first, err := run.observe(0)
	require.NoError(t, err)
	require.NotContains(t, first, "grad/alphas_reduce")
	require.Equal(t, trace.Arrays["start/alphas_reduce"].Values, first["after/alphas_reduce"].Values)
	left, err := arrayOf(run.state[len(run.state)-3]) // of the block "reduce": with two cells there is no other
	require.NoError(t, err)
	require.Greater(t, farthest(left.Values, make([]float64, len(left.Values))), 1e-4)
	second, err := run.observe(1)
	require.NoError(t, err)
	require.NotEqual(t, second["grad/alphas_reduce"].Values, found[1]["grad/alphas_reduce"].Values)
	left, err = arrayOf(run.state[len(run.state)-3])
	require.NoError(t, err)
	require.Zero(t, farthest(left.Values, make([]float64, len(left.Values))), "a step of the architecture takes it")
}

// TestSecondOrderStatistics: in DARTS' code the running statistics see the three
// training passes of the architecture's step, and then that of the weights.
func TestSecondOrderStatistics(t *testing.T) {
	const name = "stem.bn.running_mean" // of the images' convolution, which the architecture does not move
	mean := map[bool]float64{}
	var start float64
	for _, unrolled := range []bool{false, true} {
		arrays, settings := ownSearch(t, func(s map[string]any) {
			s["unrolled"], s["learning_rate"] = unrolled, 1e-9
		}, "")
		trace, found := observed(t, arrays, settings)
		start, mean[unrolled] = trace.Arrays["start/"+name].Values[0], found[0]["after/"+name].Values[0]
		if unrolled {
			arrays["valid_images"] = arrays["train_images"]
			_, same := observed(t, arrays, settings)
			require.NotEqual(t, found[0]["valid_loss"], same[0]["valid_loss"])
			require.InDelta(t, mean[true], same[0]["after/"+name].Values[0], 1e-4, "the validation pass is not seen")
		}
	}
	arrays, settings := ownSearch(t, func(s map[string]any) { s["learning_rate"] = 1e-9 }, "")
	arrays["valid_images"] = arrays["train_images"]
	_, found := observed(t, arrays, settings)
	batch := (found[0]["after/"+name].Values[0] - 0.81*start) / 0.19 // two passes of one batch
	decay := math.Pow(0.9, 4)
	require.InDelta(t, decay*start+(1-decay)*batch, mean[true], 2e-3*math.Abs(batch-start), "±ε moves the weights "+
		"a little")
	require.Greater(t, math.Abs(mean[true]-mean[false]), 1e-2*math.Abs(batch-start))
}

func TestBadTracesOfTheAuthors(t *testing.T) {
	for _, c := range []struct {
		says   string
		change func(arrays map[string]Array, settings *string)
	}{
		{"start: found 0 elements", func(a map[string]Array, _ *string) { delete(a, "start") }},
		{"start: found 3 elements", func(a map[string]Array, _ *string) {
			a["start"] = Array{Type: "<f8", Dims: []int{3}, Values: []float64{1, 2, 3}}
		}},
		{"train_images", func(a map[string]Array, _ *string) { delete(a, "train_images") }},
		{"start/betas_normal: found shape [3], expected [2]", func(a map[string]Array, _ *string) {
			a["start/betas_normal"] = Array{Type: "<f8", Dims: []int{3}, Values: []float64{1, 2, 3}}
		}},
		{"valid_images: element 0 is NaN", func(a map[string]Array, _ *string) {
			x := a["valid_images"]
			x.Values = slices.Clone(x.Values)
			x.Values[0] = math.NaN()
			a["valid_images"] = x
		}},
		{"learning_rate more than 0, got 2 and 0", func(_ map[string]Array, s *string) {
			*s = strings.Replace(*s, `"learning_rate":0.1`, `"learning_rate":0`, 1)
		}},
	} {
		arrays, settings := ownSearch(t, func(map[string]any) {}, "betas")
		c.change(arrays, &settings)
		_, err := newAuthors(arrays, settings)
		require.ErrorContains(t, err, c.says)
		require.NotContains(t, err.Error(), "\n")
	}
	arrays, settings := ownSearch(t, func(map[string]any) {}, "betas")
	arrays["after/misspelt"] = Array{Type: "<f8", Dims: []int{1}, Values: []float64{1}}
	trace, err := newAuthors(arrays, settings)
	require.NoError(t, err)
	_, err = trace.Replay(t.Context(), goBackend(t))
	require.ErrorContains(t, err, "after/misspelt: found shape [1], here it has []: no array is called this")
}
