package oymak2021

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/runs"
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
	if testBackend(t).Name() != "xla" && os.Getenv("GOMLX_BACKEND") == "" {
		t.Skip("XLA is not set up: run `go tool nasml setup`, or set GOMLX_BACKEND=go")
	}
}

func TestPresetsMakeSense(t *testing.T) {
	require.NoError(t, Figure2Quick.check())
	require.NoError(t, Figure2Paper.check())
	entry, err := catalog.Lookup(figure2ID)
	require.NoError(t, err)
	_, err = os.Stat("../../" + entry.Notebook)
	require.NoError(t, err, "the entry's notebook must be there")
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
	require.Len(t, first.Points, 2*(2+1))
	require.Len(t, first.Records(), 2*2*(2+1))

	again, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Points, again.Points, "an unchanged call reads everything")

	p.DeltaAlphas = []float64{0.01, 0.05, 0.1}
	more, err := Figure2(ctx, p)
	require.NoError(t, err)
	byKey := map[string]bool{}
	for _, key := range first.Records() {
		byKey[key] = true
	}
	for _, point := range more.Points {
		for _, record := range point.records {
			require.Equal(t, point.Delta != 0.1, byKey[record.Key])
			if point.Delta == 0.1 {
				require.Equal(t, p.Seeds, record.Batch, "only the new Δα was trained")
			}
		}
	}
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
	for i := range all.Points {
		require.InEpsilonSlice(t, all.Points[i].Values, single.Points[i].Values, 1e-3, "float32 rounding at most")
	}
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
	require.Contains(t, empty.caption(), "(a) $k$ = 4, 8 not run; (b) $k$ = 4 not run.")

	p.StoredOnly, p.Panels, p.Seeds = false, []string{"a"}, 1
	_, err = Figure2(ctx, p)
	require.NoError(t, err)
	p.StoredOnly, p.Seeds = true, 2
	part, err := Figure2(ctx, p)
	require.NoError(t, err)
	require.Contains(t, part.caption(), "(a) $k$ = 4, 8 for 1 of 2 $α$ only")
	require.True(t, part.Figure().Panels[0][0].Series[0].Hollow[0], "a point with fewer seeds is hollow")
}

// A cancelled run keeps its checkpoint, and the next one ends with the bits
// of a run that nobody disturbed.
func TestCancelledRunGoesOnBitIdentically(t *testing.T) {
	p := tinyParams()
	p.Panels, p.Widths, p.Epochs = []string{"b"}, nil, 12
	calm, err := Figure2(testContext(t), p)
	require.NoError(t, err)

	dir := t.TempDir()
	ctx, cancel := context.WithCancel(storeContext(t, dir))
	stop := &stopper{Progress: runs.Silent, after: 5, cancel: cancel}
	_, err = Figure2(runs.WithProgress(ctx, stop), p)
	require.ErrorIs(t, err, context.Canceled)

	resumed, err := Figure2(storeContext(t, dir), p)
	require.NoError(t, err)
	for i, point := range resumed.Points {
		require.Equal(t, calm.Points[i].Values, point.Values)
		require.Equal(t, calm.Points[i].Losses, point.Losses)
		require.Equal(t, 1, point.records[0].Resumed, "it did go on from the checkpoint")
	}
}

// stopper cancels after some steps of progress.
type stopper struct {
	runs.Progress
	after  int
	cancel func()
}

func (s *stopper) Step(int, string) {
	if s.after--; s.after == 0 {
		s.cancel()
	}
}

// killEnv makes this test binary the process that TestKilledRun kills.
const killEnv = "NASML_TEST_KILLED_RUN"

func killParams() Figure2Params {
	p := tinyParams()
	p.Panels, p.Widths, p.Epochs, p.Optimizer = []string{"a"}, []int{16}, 2000, "momentum"
	return p
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(killEnv); dir != "" {
		checkpointEvery = 0
		store, err := runs.Open(dir)
		if err == nil {
			_, err = Figure2(runs.WithProgress(runs.WithStore(context.Background(), store), runs.Silent), killParams())
		}
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process that is killed in the middle of a real training goes on where its
// last checkpoint stands, with momentum, order of batches and losses, and ends
// with the same bits.
func TestKilledRunGoesOnBitIdentically(t *testing.T) {
	calm, err := Figure2(testContext(t), killParams())
	require.NoError(t, err)

	dir := t.TempDir()
	for kills := range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), killEnv+"="+dir)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		require.True(t, waitForCheckpoint(dir, time.Duration(kills)*150*time.Millisecond))
		require.NoError(t, cmd.Process.Kill())
		require.ErrorContains(t, cmd.Wait(), "killed", "the run must not be over before it is killed")
	}

	resumed, err := Figure2(storeContext(t, dir), killParams())
	require.NoError(t, err)
	for i, point := range resumed.Points {
		require.Equal(t, calm.Points[i].Values, point.Values)
		require.Equal(t, calm.Points[i].Losses, point.Losses)
		require.Positive(t, point.records[0].Resumed)
	}
}

// waitForCheckpoint waits until the process has saved once, then so long; it
// is false where no checkpoint came within a minute.
func waitForCheckpoint(dir string, pause time.Duration) bool {
	for range 3000 {
		// A file that is still being written has another name.
		whole, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*.ckpt"))
		if err == nil && len(whole) > 0 {
			time.Sleep(pause)
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// made builds a result with the given mean for every point of a panel.
func made(means func(width int, delta float64, seed int) float64) *Figure2Result {
	p := Figure2Paper
	p.Panels, p.Widths, p.Seeds = []string{"a"}, []int{64, 128}, 3
	r := &Figure2Result{Params: p}
	for _, delta := range p.DeltaAlphas {
		for _, k := range p.Widths {
			point := Figure2Point{Panel: "a", Width: k, Delta: delta, Seeds: runs.Seeds(3)}
			for seed := range 3 {
				point.Values = append(point.Values, means(k, delta, seed))
			}
			var err error
			if point.Summary, err = runs.Summarize(point.Values, 0.95); err != nil {
				panic(err)
			}
			r.Points = append(r.Points, point)
		}
	}
	return r
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
		"beyond the axis": {func(_ int, delta float64, seed int) float64 { return 1.5 - delta }, []runs.Verdict{fails, holds, holds, holds}},
		"grows with Δα":   {func(_ int, delta float64, seed int) float64 { return 10 * delta }, []runs.Verdict{holds, fails, holds, fails}},
		"grows with k":    {func(k int, _ float64, seed int) float64 { return float64(k) / 128 * 1.01 }, []runs.Verdict{holds, holds, holds, unknown}},
		"undecided": {func(_ int, delta float64, seed int) float64 {
			return 1 + float64(seed-1)*delta
		}, []runs.Verdict{holds, holds, holds, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			claims := made(c.means).Check()
			require.Len(t, claims, 8)
			require.Equal(t, c.want, verdicts(claims))
			for _, b := range claims[4:] {
				require.Equal(t, unknown, b.Holds, "panel (b) was not run")
			}
		})
	}
	tripled := made(func(k int, _ float64, _ int) float64 { return float64(k*k) / 64 / 128 / 2 })
	require.Equal(t, fails, verdicts(tripled.Check())[2], "a ratio of 4 over the widths is not mild")
}

// A width that was run for fewer α is compared over these α only.
func TestSpreadIsJudgedOverCommonSeeds(t *testing.T) {
	points := []Figure2Point{
		{Seeds: []uint64{0, 1, 2}, Values: []float64{1, 2, 6}},
		{Seeds: []uint64{2, 0}, Values: []float64{8, 2}},
	}
	require.Equal(t, []float64{3.5, 5}, meansOverCommonSeeds(points))
	require.Empty(t, meansOverCommonSeeds(append(points, Figure2Point{Seeds: []uint64{9}, Values: []float64{1}})))
}

// What the project ships was computed by this code: a change of the arithmetic
// makes the records another code's, and they must be computed again.
func TestShippedRecordsAreOfThisCode(t *testing.T) {
	codes := map[string]func() (string, error){
		figure1ID: fig1Code, figure2ID: figure2Code, assumption3ID: assumption3Code, lemma1ID: lem1Code, lemma2ID: lem2Code,
		theorem1ID: thm1Code, theorem2ID: thm2Code, theorem3ID: theorem3Code, theorem4ID: theorem4Code,
	}
	store, err := runs.Open(t.TempDir())
	require.NoError(t, err)
	records, broken, err := store.With(shippedRecords).List()
	require.NoError(t, err)
	require.Empty(t, broken)
	require.NotEmpty(t, records)
	for _, r := range records {
		require.Contains(t, codes, r.Trial.Figure)
		code, err := codes[r.Trial.Figure]()
		require.NoError(t, err)
		require.Equal(t, code, r.Trial.Code, "%s %s: what it was computed with has changed: it has to be computed again", r.Trial.Figure, r.Key[:12])
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
	p.StoredOnly = true
	shipped, err := Figure2(testContext(t), p)
	require.NoError(t, err)
	require.Len(t, shipped.Records(), 1)

	images, err := p.images(t.Context())
	require.NoError(t, err)
	s := &sweep{net: p.network("a", 64), seeds: []uint64{0}, deltas: p.DeltaAlphas}
	require.NoError(t, s.setData(images))
	state := &progress{state: s.initialState()}
	require.NoError(t, s.train(t.Context(), testBackend(t), state, func() error { return nil }))
	distances, err := s.distances(state)
	require.NoError(t, err)
	require.InEpsilon(t, shipped.Points[0].Values[0], distances[0][0]/0.07, 0.01, "float32 on another processor may round otherwise")
}
