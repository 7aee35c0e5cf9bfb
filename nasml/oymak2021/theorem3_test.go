package oymak2021

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// tinyTheorem3 runs in a second.
func tinyTheorem3() Theorem3Params {
	p := Theorem3Quick
	p.Images = data.Synthetic
	p.Alphas, p.Seeds, p.Steps = 0, 2, 20
	p.Activations = []string{"tanh", "softplus"}
	p.Widths, p.WidthTrain = []int{2, 64, 128}, 6
	p.Trains, p.Width = []int{6, 8}, 32
	p.Validations, p.Pool, p.Draws = []int{8, 32}, 50, 3
	p.Sizes, p.SizeTrain, p.SizeAlphas = []int{2, 3}, 8, 3
	p.Ranks, p.RankPool = []int{1, 5}, 20
	return p
}

func TestTheorem3IsReadBack(t *testing.T) {
	ctx, p := emptyStore(t), tinyTheorem3()
	first, err := Theorem3(ctx, p)
	require.NoError(t, err)
	again, err := Theorem3(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Records(), again.Records())
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(again.Check()))
	for _, first.Params.View = range Theorem3Views {
		require.NoError(t, first.Figure().Validate())
		require.Contains(t, first.Figure().Caption, "SYNTHETIC")
	}

	other, err := Theorem3(emptyStore(t), p) // another store, other goroutines
	require.NoError(t, err)
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(other.Check()))

	p.Seed = 1
	shifted, err := Theorem3(ctx, p)
	require.NoError(t, err)
	margin := func(r *theorem3) []*runs.Record { return ofSource(r, neural.Cap)[0].Records }
	require.Equal(t, margin(first)[1].Key, margin(shifted)[0].Key, "seed 1 is seed 1")
}

func TestTheorem3WrongParameters(t *testing.T) {
	p := Theorem3Quick
	p.Activations = []string{"relu", "tanh"}
	p.Widths = []int{3, 64}
	p.Trains = []int{10}
	p.Epsilon = 0
	p.Sizes = []int{2, 40}
	p.RankWorld = []string{"moon"}
	p.Seeds = 0
	_, err := Theorem3(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{"relu", "multiple of 2", "Trains", "Epsilon", "40", "moon", "Seeds"} {
		require.ErrorContains(t, err, part)
	}
}

// changed3 is a result with invented numbers: the verdicts follow from them.
func changed3(t *testing.T, change func(r *theorem3)) map[string]runs.Claim {
	t.Helper()
	r, err := Theorem3(emptyStore(t), tinyTheorem3())
	require.NoError(t, err)
	change(r)
	claims := map[string]runs.Claim{}
	for _, c := range r.Check() {
		claims[c.Name] = c
	}
	return claims
}

func TestTheorem3ClaimsFollowTheNumbers(t *testing.T) {
	const slope = "sup |L − L̂_V| falls as n_V^(−1/2)"
	const iters = "steps to ε over those that suffice for the kernel"
	const bound = "0-1 risk of α̂ within the bound, C = 1"
	set := func(sup func(n int) float64, steps, selected float64) func(r *theorem3) {
		return func(r *theorem3) {
			for _, g := range r.Part("kernel") {
				for seed, record := range g.Records {
					for i, n := range r.Params.Validations {
						record.Series["sup"][i] = sup(n) * (1 + 0.01*float64(seed))
					}
				}
			}
			for _, record := range r.Groups.Records() {
				for i := range record.Series["steps"] {
					record.Series["steps"][i], record.Series["needed"][i], record.Series["term"][i] = steps, 10, 0.1
				}
				for i := range record.Series["selected_max"] {
					record.Series["selected_max"][i] = selected
				}
			}
		}
	}
	good := changed3(t, set(func(n int) float64 { return 1 / math.Sqrt(float64(n)) }, 5, 0.1))
	require.Equal(t, runs.Holds, good[slope].Holds)
	require.Equal(t, runs.Holds, good[iters].Holds)
	require.Equal(t, runs.Holds, good[bound].Holds)
	bad := changed3(t, set(func(int) float64 { return 1 }, 11, 0.99))
	require.Equal(t, runs.Fails, bad[slope].Holds)
	require.Equal(t, runs.Fails, bad[iters].Holds)
	require.Equal(t, runs.Fails, bad[bound].Holds)
	never := changed3(t, set(func(int) float64 { return 1 }, -1, 0))
	require.Equal(t, runs.Fails, never[iters].Holds, "20 steps were more than the 10 that suffice")
}

// What has no place on a log axis is left out of a curve.
func TestCurveLeavesOutWhatHasNoLogarithm(t *testing.T) {
	values := [][]float64{{1, 4}, {0, 1}, {9, 9}}
	s := curve("c", []float64{1, 2, 3}, values, plots.Log10, 0.95)
	require.Equal(t, []float64{1, 3}, s.X)
	require.InDeltaSlice(t, []float64{2, 9}, s.Y, 1e-12)
	s = curve("c", []float64{1, 2, 3}, values, plots.Linear, 0.95)
	require.Equal(t, []float64{2.5, 0.5, 9}, s.Y)
}

// A reader's activation is known by what it computes: an edited body under the
// same name is recomputed, a new name reads, and so with a factor.
func TestAnOwnActivationIsKnownByWhatItComputes(t *testing.T) {
	put := func(name string, eval func(z float64) (float64, float64)) {
		spectral.Activations[name] = spectral.Activation{Eval: eval, Slope: 5, Curvature: 25}
		t.Cleanup(func() { delete(spectral.Activations, name) })
	}
	ctx := emptyStore(t)
	run := func(names ...string) (records []string) {
		p := tinyTheorem3()
		p.Activations, p.Odd = append([]string{"softplus"}, names...), []string{"tanh", "sin"}
		r, err := Theorem3(ctx, p)
		require.NoError(t, err)
		return study.Keys(r.Part("widths")[0].Records)
	}
	fast := func(z float64) (float64, float64) { return math.Sin(5 * z), 5 * math.Cos(5*z) }
	put("mine", fast)
	first := run("mine")
	require.Equal(t, first, run("mine"))
	stretched := run("mine*0.5")
	require.NotEqual(t, first, stretched)
	put("mine", func(z float64) (float64, float64) { return 5 * math.Sin(z), 5 * math.Cos(z) })
	require.NotEqual(t, first, run("mine"), "5 sin z is not sin 5z")
	put("renamed", func(z float64) (float64, float64) { s, c := math.Sincos(5 * z); return s, 5 * c })
	require.Equal(t, first, run("renamed"), "the same in other words and under another name")
	require.Equal(t, stretched, run("renamed*0.5"))

	calls := 0.0
	put("random", func(z float64) (float64, float64) { calls++; return z + calls, 1 })
	p := tinyTheorem3()
	p.Activations = []string{"tanh", "random"}
	_, err := Theorem3(emptyStore(t), p)
	require.ErrorContains(t, err, "other numbers when it is called again")

	keys, err := activationKeys([]string{"tanh", "tanh*2", "relu"})
	require.NoError(t, err)
	require.Equal(t, []string{"tanh", "tanh*2", "relu"}, keys, "shipped ones go by their names")
	shipped := spectral.Activations["tanh"]
	t.Cleanup(func() { spectral.Activations["tanh"] = shipped })
	spectral.Activations["tanh"] = spectral.Activation{Eval: fast, Slope: 5, Curvature: 25}
	keys, err = activationKeys([]string{"tanh"})
	require.NoError(t, err)
	require.NotEqual(t, []string{"tanh"}, keys, "another body under a shipped name")
}
