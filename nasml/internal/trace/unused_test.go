package trace

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sampled is a step of GDAS to start from.
func sampled(t *testing.T, unused string) *Trace { return sampledSteps(t, unused, 1) }

func sampledSteps(t *testing.T, unused string, steps int) *Trace {
	t.Helper()
	s := darts(t).Settings
	s.Method, s.Unused, s.Channels, s.Image, s.Steps = "gdas", unused, 1, 4, steps
	trace, err := Random(s, 2, 7)
	require.NoError(t, err)
	return trace
}

// TestUnusedWeights: of the operations that are not sampled, either momentum
// and weight decay go on, or the weights stay. Both ways nothing else differs.
func TestUnusedWeights(t *testing.T) {
	after := map[string]map[string]Array{}
	for _, unused := range []string{unusedZero, unusedSkip} {
		s, err := newSearch(goBackend(t), sampled(t, unused), true)
		require.NoError(t, err)
		state, err := s.start()
		require.NoError(t, err)
		_, after[unused], err = s.observe(state, 0)
		require.NoError(t, err)
		s.Close()
	}
	start := sampled(t, unusedZero)
	stayed := 0
	for name, a := range after[unusedSkip] {
		before := start.Arrays[strings.TrimPrefix(name, "after/")]
		path := strings.TrimPrefix(name, "after/weights/")
		gradient := after[unusedZero]["grad/"+path]
		if path == name || !strings.Contains(path, "<-") ||
			farthest(gradient.Values, make([]float64, len(gradient.Values))) > 0 {
			require.Equal(t, after[unusedZero][name], a, name)
			continue
		}
		require.Equal(t, before.Values, a.Values, name)
		for i, x := range after[unusedZero][name].Values {
			require.InDelta(t, before.Values[i]*(1-0.025*5e-4), x, 6e-8, name)
		}
		stayed++
	}
	require.Greater(t, stayed, 3*6, "each of 3 cells' 6 edges has two convolutions, and at most one is sampled")
}

// TestWeightsFirstLeavesTheUnusedAlone: with the weights first the architecture's pass
// of a step sees the weights that nobody sampled as they were. A step with "skip" then
// is that of "zero" from weights of which momentum and decay moved only the sampled
// ones: its validation loss is that of a trace that starts there and does not move them.
func TestWeightsFirstLeavesTheUnusedAlone(t *testing.T) {
	observe := func(trace *Trace, steps int) (all []map[string]Array) {
		s, err := newSearch(goBackend(t), trace, true)
		require.NoError(t, err)
		defer s.Close()
		state, err := s.start()
		require.NoError(t, err)
		for step := range steps {
			var found map[string]Array
			state, found, err = s.observe(state, step)
			require.NoError(t, err)
			all = append(all, found)
		}
		return all
	}
	first := sampled(t, unusedSkip)
	first.Settings.Order, first.Settings.TrackStats = "weights-first", true
	first.Settings.WeightDecay = 0.5 // what it would do to them shows
	after := observe(first, 1)[0]

	// The weights as they are after the weights' half, and a step that moves nothing.
	resting := *first
	resting.Settings.LearningRate, resting.Settings.Unused = 1e-300, unusedZero
	resting.Arrays = maps.Clone(first.Arrays)
	for name, a := range after {
		if path, ok := strings.CutPrefix(name, "after/weights/"); ok {
			resting.Arrays["weights/"+path] = a
		}
	}
	want := observe(&resting, 1)[0]
	for _, name := range []string{"valid_loss", "valid_logits", "grad/alpha", "after/alpha"} {
		require.InDeltaSlice(t, want[name].Values, after[name].Values, 1e-6, name)
	}
	// What was sampled in the first step and not in the second goes on by momentum, or not.
	// (Decay alone changes nothing: batch norm does not see the size of a kernel.)
	different := map[string][]map[string]Array{}
	for _, unused := range []string{unusedSkip, unusedZero} {
		trace := sampledSteps(t, unused, 8)
		trace.Settings.Order = "weights-first"
		different[unused] = observe(trace, 8)
	}
	differ := func(step int) bool {
		zero, skip := different[unusedZero][step]["valid_loss"], different[unusedSkip][step]["valid_loss"]
		return zero.Values[0] != skip.Values[0]
	}
	require.False(t, differ(0), "momentum is 0 at first")
	require.True(t, slices.ContainsFunc([]int{1, 2, 3, 4, 5, 6, 7}, differ))

	// Statistics see the training batch and then the validation batch, once each.
	first.Settings.WeightDecay, first.Settings.Momentum, first.Settings.LearningRate = 0, 0, 1e-300
	resting.Settings, resting.Arrays = first.Settings, first.Arrays
	resting.Settings.Unused = unusedZero
	skip, zero := observe(first, 1)[0], observe(&resting, 1)[0]
	for name, a := range zero {
		if strings.HasPrefix(name, "after/stats/") {
			require.InDeltaSlice(t, a.Values, skip[name].Values, 1e-5, name)
		}
	}
}

// TestUnusedUntilSampled: what nobody has sampled in either pass stays as it is, and
// decays from its first sampling on.
func TestUnusedUntilSampled(t *testing.T) {
	trace := sampledSteps(t, unusedOnce, 3)
	trace.Settings.WeightDecay, trace.Settings.Momentum = 0.5, 0
	s, err := newSearch(goBackend(t), trace, true)
	require.NoError(t, err)
	defer s.Close()
	state, err := s.start()
	require.NoError(t, err)
	stayed, decayed := 0, 0
	before := map[string]Array{}
	for path := range trace.Arrays {
		if path, ok := strings.CutPrefix(path, "weights/"); ok {
			before[path] = trace.Arrays["weights/"+path]
		}
	}
	for step := range trace.Settings.Steps {
		var found map[string]Array
		state, found, err = s.observe(state, step)
		require.NoError(t, err)
		for path, old := range before {
			parts := strings.Split(path, "/")
			now := found["after/weights/"+path]
			if len(parts) > 4 && strings.Contains(path, "<-") && strings.HasSuffix(path, "/conv") {
				if s.sampled[parts[2]+"/"+parts[3]] {
					require.NotEqual(t, old.Values, now.Values, path)
					decayed++
				} else {
					require.Equal(t, old.Values, now.Values, path)
					stayed++
				}
			}
			before[path] = now
		}
	}
	require.Positive(t, stayed)
	require.Positive(t, decayed)
}
