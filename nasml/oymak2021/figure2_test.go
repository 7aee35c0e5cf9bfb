package oymak2021

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/oymak2021/internal/sgdsweep"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// tinyParams run in a second on any backend, on synthetic images.
func tinyParams() Figure2Params {
	p := Figure2Quick
	p.Data, p.Examples, p.Batch = data.Synthetic, 300, 64
	p.Widths, p.DeepWidths = []int{4, 8}, []int{4}
	p.DeltaAlphas = []float64{0.01, 0.05}
	p.Seeds, p.Epochs = 2, 3
	return p
}

// testContext has an empty store of its own and shows no progress.
func testContext(t *testing.T) context.Context {
	t.Helper()
	return storeContext(t, t.TempDir())
}

func storeContext(t *testing.T, dir string) context.Context {
	t.Helper()
	testBackendEnv(t)
	store, err := runs.Open(dir)
	require.NoError(t, err)
	return runs.WithProgress(runs.WithStore(t.Context(), store), runs.Silent)
}

// testBackendEnv lets Figure2 use the pure-Go backend where XLA is not set up.
func testBackendEnv(t *testing.T) {
	t.Helper()
	if _, err := backend.Open(); err != nil {
		t.Skip("XLA is not set up: run `go tool nasml setup`, or set GOMLX_BACKEND=go")
	}
}

func TestWrongParametersAreAllNamed(t *testing.T) {
	p := Figure2Quick
	p.Panels = []string{"c"}
	p.Widths = []int{63}
	p.DeltaAlphas = []float64{0}
	p.Activations[1] = "sigmoit"
	p.Labels = "yes/no"
	p.Classes = [2]int{1, 1}
	_, err := Figure2(t.Context(), p)
	for _, part := range []string{"Panels", `"c"`, "63", "DeltaAlphas", "sigmoit", "tanh", "Labels", "Classes"} {
		require.ErrorContains(t, err, part)
	}
}

func TestOnlyNewTrialsAreComputed(t *testing.T) {
	ctx, p := testContext(t), tinyParams()
	first, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Len(t, first.Groups, 2*(2+1))
	require.Len(t, first.Records(), 2*2*(2+1))

	again, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Groups, again.Groups, "an unchanged call reads everything")

	p.DeltaAlphas = []float64{0.01, 0.05, 0.1}
	more, err := Figure2(ctx, p)
	require.NoError(t, err)
	byKey := map[string]bool{}
	for _, key := range first.Records() {
		byKey[key] = true
	}
	for _, g := range more.Groups {
		for _, record := range g.Records {
			require.Equal(t, g.Trial.DeltaAlpha != 0.1, byKey[record.Key])
			if g.Trial.DeltaAlpha == 0.1 {
				require.Equal(t, p.Seeds, record.Batch, "only the new Δα was trained")
			}
		}
	}
}

// Another reading of the inputs has trials of its own, those that it has as the only
// one, is drawn beside and judged by the same statements.
func TestReadingsSideBySide(t *testing.T) {
	ctx, p := testContext(t), tinyParams()
	p.Beside, p.BesideWidths = []string{"standardized"}, p.Widths[:1]
	both, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Len(t, beside(both), 1)
	alone := p
	alone.Panels, alone.Widths, alone.Inputs, alone.Beside = []string{"a"}, p.BesideWidths, "standardized", nil
	single, err := Figure2(ctx, alone)
	require.NoError(t, err)
	require.Equal(t, byInputs(single, "a").distances, beside(both)[0].distances)
	require.Subset(t, both.Records(), single.Records())
	require.NotEqual(t, byInputs(both, "a").distances[0].value, beside(both)[0].distances[0].value)

	panels := both.Figure().Panels
	require.NoError(t, both.Figure().Validate())
	require.Equal(t, []int{2, 1}, []int{len(panels[0]), len(panels[1])})
	require.Equal(t, "(a), inputs x/255", panels[0][0].Title)
	require.Equal(t, "(a), standardized inputs", panels[0][1].Title)

	claims := both.Check()
	require.Len(t, claims, 4+4+4+1)
	last := claims[len(claims)-1]
	require.Contains(t, last.Note, "standardized inputs; means on the paper's axis: ")
	most := 0
	for _, part := range [][]runs.Claim{claims[:4], claims[8:12]} {
		fits := 0
		for _, c := range part {
			if c.Holds == runs.Holds {
				fits++
			}
		}
		most = max(most, fits)
	}
	require.InDelta(t, most, float64(last.Ours), 0)
	require.Empty(t, claims[8].Rows, "the paper's rows are judged by one reading")

	p.Beside = []string{p.Inputs}
	_, err = Figure2(ctx, p)
	require.ErrorContains(t, err, "Beside")
}

func TestTogetherChangesNoKeyAndHardlyANumber(t *testing.T) {
	p := tinyParams()
	p.Seeds = 3
	all, err := Figure2(testContext(t), p)
	require.NoError(t, err)
	p.Together = 1
	single, err := Figure2(testContext(t), p)
	require.NoError(t, err)
	require.Equal(t, all.Records(), single.Records())
	require.InEpsilonSlice(t, all.Groups.Values("distance"), single.Groups.Values("distance"), 1e-3,
		"float32 rounding at most")
}

func TestStoredOnlyComputesNothing(t *testing.T) {
	ctx, p := testContext(t), tinyParams()
	p.StoredOnly = true
	empty, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Empty(t, empty.Records())
	for _, c := range empty.Check() {
		require.Equal(t, runs.NotKnown, c.Holds)
		require.Contains(t, c.Note, "not run")
	}
	require.NoError(t, empty.Figure().Validate())
	require.Contains(t, empty.Figure().Caption, "(a) $k$ = 4, 8 not run; (b) $k$ = 4 not run.")

	p.StoredOnly, p.Panels, p.Seeds = false, []string{"a"}, 1
	_, err = Figure2(ctx, p)
	require.NoError(t, err)
	p.StoredOnly, p.Seeds = true, 2
	part, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Contains(t, part.Figure().Caption, "(a) $k$ = 4, 8 for 1 of 2 $α$ only")
	require.True(t, part.Figure().Panels[0][0].Series[0].Hollow[0], "a point with fewer seeds is hollow")
}

// Under a part, whose other trials another machine computes, points without a
// value are no error.
func TestFigure2UnderAPartThatComputesNothing(t *testing.T) {
	part := new(runs.Part)
	r, err := Figure2(runs.WithPart(testContext(t), part), tinyParams())
	require.NoError(t, err)
	require.NoError(t, part.Err())
	require.Equal(t, 2*2*(2+1), part.Summary().Elsewhere)
	for _, c := range r.Check() {
		require.Equal(t, runs.NotKnown, c.Holds, c.Name)
	}
}

// README's own example. A reader's activation is known by what it computes: an
// edited body under the same name is recomputed, a new name or other words
// for the same function read.
func TestAnEditedActivationIsComputedAnew(t *testing.T) {
	put := func(name string, sigma func(z *Node) *Node) {
		t.Cleanup(func() { delete(supernet.Activations, name) })
		supernet.Activations[name] = sigma
	}
	ctx, p := testContext(t), tinyParams()
	p.Panels, p.Widths, p.Seeds, p.DeltaAlphas, p.Epochs = []string{"a"}, []int{4}, 1, []float64{0.05}, 2
	run := func(name string) []*runs.Record {
		p.Activations = [2]string{"relu", name}
		r, err := Figure2(ctx, p)
		require.NoError(t, err)
		require.Contains(t, r.Figure().Caption, "Varied parameters")
		return r.Groups[0].Records
	}
	put("mine", func(z *Node) *Node { return Sin(MulScalar(z, 5)) })
	first := run("mine")
	require.Equal(t, first, run("mine"), "an unchanged body reads")

	put("mine", func(z *Node) *Node { return MulScalar(Sin(z), 5) })
	edited := run("mine")
	require.NotEqual(t, study.Keys(first), study.Keys(edited))
	require.NotEqual(t, first[0].Values, edited[0].Values, "the numbers are those of the edited body")

	put("renamed", func(z *Node) *Node {
		five := Scalar(z.Graph(), z.DType(), 5)
		return Sin(Mul(five, z))
	})
	require.Equal(t, first, run("renamed"), "the same function under another name reads")

	relu := supernet.Activations["relu"]
	t.Cleanup(func() { supernet.Activations["relu"] = relu })
	put("shipped", relu)
	delete(supernet.Activations, "relu")
	supernet.Activations["relu"] = func(z *Node) *Node { return MulScalar(Max(z, ZerosLike(z)), 2) }
	p.Activations = Figure2Quick.Activations
	r, err := Figure2(ctx, p)
	require.NoError(t, err)
	params, err := json.Marshal(r.Groups[0].Records[0].Trial.Params)
	require.NoError(t, err)
	require.Contains(t, string(params), `"activations":["own:`, "another body under a shipped name is no shipped one")
	require.Contains(t, string(params), `,"sigmoid"]`)
	require.False(t, Figure2Paper.computes(Figure2Paper), "and its figure is not the paper's")
}

// A function of which no key could speak is refused.
func TestARandomActivationIsRefused(t *testing.T) {
	calls := 0
	supernet.Activations["random"] = func(z *Node) *Node { calls++; return AddScalar(z, float64(calls)) }
	t.Cleanup(func() { delete(supernet.Activations, "random") })
	p := tinyParams()
	p.Activations = [2]string{"relu", "random"}
	_, err := Figure2(testContext(t), p)
	require.ErrorContains(t, err, "other numbers when it is called again")
}

// made is panel (a) with the given distances.
func made(seeds int, distance func(width int, delta float64, seed int) float64) *figure2 {
	p := Figure2Paper
	p.Panels, p.Widths, p.Seeds, p.Beside = []string{"a"}, []int{64, 128}, seeds, nil
	r := &figure2{Params: p, Confidence: p.Confidence, Groups: p.sweep("a", p.Inputs, p.Widths)}
	for i, g := range r.Groups {
		for seed := range seeds {
			r.Groups[i].Records = append(r.Groups[i].Records, &runs.Record{
				Trial:  runs.Trial{Seed: uint64(seed)},
				Values: map[string]float64{"distance": distance(g.Trial.Width, g.Trial.DeltaAlpha, seed)},
			})
		}
	}
	return r
}

func judged(r *figure2) []runs.Claim {
	return slices.Concat(figure2Panel("a").Claims(r), figure2Panel("b").Claims(r))
}

func verdicts(claims []runs.Claim) []runs.Verdict {
	var v []runs.Verdict
	for _, c := range claims[:4] {
		v = append(v, c.Holds)
	}
	return v
}

func TestClaims(t *testing.T) {
	const holds, fails, unknown = runs.Holds, runs.Fails, runs.NotKnown
	for name, c := range map[string]struct {
		means func(width int, delta float64, seed int) float64
		want  []runs.Verdict // range, stable, mild, small Δα
	}{
		"as the paper says": {func(_ int, delta float64, seed int) float64 {
			return 1 + 0.01*float64(seed) - delta + 0.001*float64(seed)*delta
		}, []runs.Verdict{holds, holds, holds, holds}},
		"beyond the axis": {func(_ int, delta float64, seed int) float64 {
			return 1.5 - delta
		}, []runs.Verdict{fails, holds, holds, holds}},
		"grows with Δα": {func(_ int, delta float64, seed int) float64 {
			return 10 * delta
		}, []runs.Verdict{holds, fails, holds, fails}},
		"grows with k": {func(k int, _ float64, seed int) float64 {
			return float64(k) / 128 * 1.01
		}, []runs.Verdict{holds, holds, fails, fails}}, // over Δα it is equal, which is not larger
		"grows with k, noisy": {func(k int, delta float64, seed int) float64 {
			return float64(k)/128*1.01 + 0.001*delta*float64(seed-1)
		}, []runs.Verdict{holds, holds, fails, unknown}},
		"undecided": {func(_ int, delta float64, seed int) float64 {
			return 1 + float64(seed-1)*delta
		}, []runs.Verdict{holds, holds, holds, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			claims := judged(made(3, c.means))
			require.Len(t, claims, 8)
			require.Equal(t, c.want, verdicts(claims))
			for _, b := range claims[4:] {
				require.Equal(t, unknown, b.Holds, "panel (b) was not run")
			}
		})
	}
	quarter := made(3, func(k int, _ float64, seed int) float64 {
		return math.Pow(float64(k), 0.15+0.01*float64(seed))
	})
	claim := judged(quarter)[2]
	require.Equal(t, fails, claim.Holds, "a factor below 2 over the widths is not mild for that")
	require.InDelta(t, 0.16, float64(claim.Ours), 1e-9)
	require.InDelta(t, 0.16-6.205347*0.01/math.Sqrt(3), float64(claim.Lo), 1e-6, "over seeds, not points")
}

// What an α does to its distances at all points is no noise of their differences: the
// intervals shrink to what is left, and the means stay.
func TestIntervalsAreOfDifferences(t *testing.T) {
	r := made(3, func(k int, delta float64, seed int) float64 {
		return 1 + float64(seed) + delta + 1e-3*float64(seed*k%7)
	})
	s := byInputs(r, "a")
	before := s.points(s.distances)
	for i, p := range s.points(s.paired()) {
		require.InDelta(t, before[i].mean.Mean, p.mean.Mean, 1e-12)
		require.Less(t, float64(p.mean.Std), 0.01)
		require.Greater(t, float64(before[i].mean.Std), 0.9)
	}
	r.Groups = r.Groups[:1]
	s = byInputs(r, "a")
	require.Equal(t, s.distances, s.paired(), "one point has no difference")
}

// With noise of its own at every point an interval of differences is that of the points.
func TestIntervalsOfIndependentPointsStay(t *testing.T) {
	rng := trial.RNG(1, "paired")
	s := byInputs(made(400, func(int, float64, int) float64 { return 1 + rng.NormFloat64() }), "a")
	for i, p := range s.points(s.paired()) {
		require.InEpsilon(t, float64(s.points(s.distances)[i].mean.Std), float64(p.mean.Std), 0.15)
	}
}

// What the project ships was computed by this code: a change of the arithmetic
// makes the records another code's, and they must be computed again.
func TestShippedRecordsAreOfThisCode(t *testing.T) {
	kinds := map[string]*code.Kind{}
	for _, k := range code.Kinds() {
		kinds[k.Name()] = k
	}
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	records, broken, err := store.With(shippedRecords).List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.NotEmpty(t, records)
	for _, r := range records {
		require.Contains(t, kinds, r.Trial.Figure)
		version, err := kinds[r.Trial.Figure].Version()
		require.NoError(t, err)
		require.Equal(t, version, r.Trial.Code,
			"%s %s: what it was computed with has changed: it has to be computed again", r.Trial.Figure, r.Key[:12])
	}
}

// The paper's scale draws them.
func TestFigure2DrawsWhatIsShipped(t *testing.T) {
	p := Figure2Paper
	p.StoredOnly = true
	datatest.Dir(t)
	r, err := Figure2(testContext(t), p)
	require.NoError(t, err)
	require.NotEmpty(t, r.Records(), "the paper's setting has shipped records")
}

// A shipped record is what this code computes, on this machine's CPU: the
// cheapest trial is trained again in full.
func TestShippedRecordCanBeReproduced(t *testing.T) {
	if testing.Short() {
		t.Skip("trains 60 epochs")
	}
	datatest.Dir(t)
	p := Figure2Paper
	p.Panels, p.Widths, p.Seeds, p.DeltaAlphas = []string{"a"}, []int{64}, 1, []float64{0.07}
	p.Beside, p.StoredOnly = nil, true
	shipped, err := Figure2(testContext(t), p)
	require.NoError(t, err)
	require.Len(t, shipped.Records(), 1)

	opened, err := p.view().Open(t.Context())
	require.NoError(t, err)
	images, err := opened.Images(t.Context())
	require.NoError(t, err)
	pairs := []sgdsweep.Pair{{DeltaAlpha: 0.07}}
	s, err := sgdsweep.New(p.network("a", 64), pixelsOf(images), pairs)
	require.NoError(t, err)
	b, err := backend.Open()
	require.NoError(t, err)
	progress := s.Start()
	require.NoError(t, s.Train(t.Context(), b, progress, func() error { return nil }))
	results, err := s.Results(pairs, progress)
	require.NoError(t, err)
	require.InEpsilon(t, shipped.Groups.Values("distance")[0], results[0].Values["distance"], 0.01,
		"float32 on another processor may round otherwise")
}

// A reader's arrays are a data set of the figure, known by what is in them.
func TestFigure2TakesOwnArrays(t *testing.T) {
	ctx, p := testContext(t), tinyParams()
	pixels, labels := make([]uint8, 40*6*6), make([]int, 40)
	for i := range pixels {
		pixels[i] = uint8((37 * i) % 251)
	}
	for i := range labels {
		labels[i] = 7 + i%2
	}
	p.Data, p.Classes, p.Examples = "stripes", [2]int{7, 8}, 0
	run := func() []string {
		_, err := data.FromArrays(p.Data, data.Train, 6, 6, 1, pixels, labels)
		require.NoError(t, err)
		r, err := Figure2(ctx, p)
		require.NoError(t, err)
		require.NoError(t, r.Figure().Validate())
		return r.Records()
	}
	first := run()
	require.Equal(t, first, run())
	pixels[0]++
	require.NotEqual(t, first, run())
}

// Without the publisher's files the digits that are part of the project are taken, and the
// picture says so.
func TestFigure2SaysOnWhichDigits(t *testing.T) {
	t.Setenv("NASML_DATA", t.TempDir())
	b, err := figure2Bench(testContext(t), Figure2Quick, "")
	require.NoError(t, err)
	require.Contains(t, b.Note, "travels with the project")
	require.Contains(t, b.Title, "the digits that travel with the project")
}
