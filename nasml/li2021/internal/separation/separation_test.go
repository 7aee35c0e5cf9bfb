package separation

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
)

// tiny is a comparison that GoMLX's own backend computes in seconds.
func tiny(t *testing.T, change func(*search.Settings)) (compute.Backend, Trial, *data.Images) {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	s, err := search.AsQuick("darts")
	require.NoError(t, err)
	s.Channels, s.Image, s.Batch, s.Epochs, s.EvaluateEvery = 2, 8, 4, 2, 0
	s.Bilevel.Hypergradient, s.ArchRate = "finite-difference", 0.1
	change(&s)
	grey, err := data.SyntheticImages(1, 24, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	require.NoError(t, err)
	colour := *grey
	colour.Channels, colour.Pixels = 3, nil
	for _, p := range grey.Pixels {
		colour.Pixels = append(colour.Pixels, p, 255-p, p/2)
	}
	return b, Trial{Settings: s, Examples: 24, Steps: []int{1, 4}}, &colour
}

// In float64 the difference with a tiny ε is the exact gradient but for its error of
// O(ε²) and of rounding, where no kink is crossed; that of Liu+ 2019 is not.
func TestDistances(t *testing.T) {
	b, trial, set := tiny(t, func(*search.Settings) {})
	steps := 0
	result, err := Run(t.Context(), b, trial, set, 3, func(string) { steps++ })
	require.NoError(t, err)
	require.Equal(t, 4, steps)
	require.Equal(t, []float64{1, 4}, result.Series["step"])
	for i := range trial.Steps {
		require.Less(t, result.Series[Tiny][i], 1e-6)
		require.Greater(t, result.Series[FirstOrder][i], 0.01)
		require.Greater(t, result.Series[Difference][i], 0.1, "kinks of ReLU are crossed")
		require.Less(t, result.Series[Rounded][i], 0.01, "rounding of one gradient")
		require.Greater(t, result.Series[Rounded][i], 1e-9)
	}
	again, err := Run(t.Context(), b, trial, set, 3, func(string) {})
	require.NoError(t, err)
	require.Equal(t, result, again)
}

// Where the weights do not move the exact gradient is that of first order, and so is
// every difference.
func TestWithoutAStepAllAreFirstOrder(t *testing.T) {
	b, trial, set := tiny(t, func(s *search.Settings) { s.LearningRate, s.LearningRateMin = 1e-12, 1e-12 })
	result, err := Run(t.Context(), b, trial, set, 3, func(string) {})
	require.NoError(t, err)
	for _, w := range others {
		for _, off := range result.Series[w.name] {
			require.Less(t, off, 1e-3, w.name)
		}
	}
}

// What is followed is the search that [search.New] makes, in float64.
func TestTheSearchIsTheSearch(t *testing.T) {
	b, trial, set := tiny(t, func(*search.Settings) {})
	runner, err := search.New(b, trial.Settings, set)
	require.NoError(t, err)
	defer runner.Close()
	curve, err := runner.Search(t.Context(), 3, search.Options{})
	require.NoError(t, err)

	f, err := follow(b, trial, set, 3)
	require.NoError(t, err)
	defer f.close()
	for range 2 * f.steps {
		inputs, err := f.inputs()
		require.NoError(t, err)
		require.NoError(t, f.move(inputs))
	}
	program, err := search.NewStep(trial.Settings, mustNet(t, trial), f.steps)
	require.NoError(t, err)
	alpha := floats64(search.Cut(program, f.state).Theta[0])
	require.InDeltaSlice(t, curve.Theta[2], softmax(alpha, f.theta[1]), 1e-3)
	require.Greater(t, farthest(curve.Theta[2], curve.Theta[0]), 0.01, "it has moved")
}

func TestWhatCannotBeCompared(t *testing.T) {
	for want, change := range map[string]func(*Trial){
		`"gaea-darts" has no mixture of operations by logits`: func(x *Trial) { x.Settings.Method = "gaea-darts" },
		`split "random"`:       func(x *Trial) { x.Settings.Split = "random" },
		"ascending, got []":    func(x *Trial) { x.Steps = nil },
		"ascending, got [2 1]": func(x *Trial) { x.Steps = []int{2, 1} },
	} {
		b, trial, set := tiny(t, func(*search.Settings) {})
		change(&trial)
		_, err := Run(t.Context(), b, trial, set, 3, func(string) {})
		require.ErrorContains(t, err, want)
	}
}

func mustNet(t *testing.T, trial Trial) supernet.Network {
	t.Helper()
	space, err := trial.Settings.Open(3)
	require.NoError(t, err)
	return space.Network()
}

func softmax(alpha []float64, options int) []float64 {
	var out []float64
	for row := range slices.Chunk(alpha, options) {
		sum := 0.
		for _, x := range row {
			sum += math.Exp(x)
		}
		for _, x := range row {
			out = append(out, math.Exp(x)/sum)
		}
	}
	return out
}

func farthest(a, b []float64) float64 {
	most := 0.
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}
