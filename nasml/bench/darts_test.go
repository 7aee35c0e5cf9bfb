package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tinyDarts compares and times the smallest networks that have every kind of
// edge.
func tinyDarts() DartsParams {
	p := DartsQuick
	p.Timed = []DartsCase{{Name: "DARTS", Partial: 1, Cells: 1, Channels: 2, Image: 4, Batch: 2, Steps: 2}}
	p.Rounds = 2
	return p
}

func TestOurDartsTimes(t *testing.T) {
	var found []*DartsResult
	keep := func(r *DartsResult) error { found = append(found, r); return nil }
	require.NoError(t, Darts(t.Context(), goBackend(t), tinyDarts(), keep))
	require.Len(t, found, 1)
	require.Empty(t, found[0].Agree)
	require.Len(t, found[0].Entries, 1)
	require.Len(t, found[0].Entries[0].Seconds, 2)
	var table strings.Builder
	require.NoError(t, found[0].WriteTable(&table))
	require.Contains(t, table.String(), "One bilevel step of DARTS: 1 cells, C = 2, 4×4, batch 2")
}

func TestDartsPeersThatCannotRunAreReported(t *testing.T) {
	p := tinyDarts()
	p.Compared = []DartsCase{{
		Name: "DARTS", Partial: 1, Cells: 1, Channels: 2, Image: 4, Batch: 2, Steps: 1, Double: true,
	}}
	p.Python = filepath.Join(t.TempDir(), "missing")
	var found []*DartsResult
	keep := func(r *DartsResult) error { found = append(found, r); return nil }
	require.NoError(t, Darts(t.Context(), goBackend(t), p, keep))
	require.Len(t, found[0].Agree, 4)
	require.Len(t, found[0].Entries, 5)
	for i := range 4 {
		require.Contains(t, found[0].Agree[i].NotRun, "no such file")
		require.Contains(t, found[0].Entries[1+i].NotRun, "no such file")
	}
}

// A peer whose numbers are others stops the benchmark.
func TestDartsPeersThatDifferStopTheBenchmark(t *testing.T) {
	p := tinyDarts()
	p.Compared = []DartsCase{{
		Name: "DARTS", Partial: 1, Cells: 1, Channels: 2, Image: 4, Batch: 2, Steps: 1, Double: true,
	}}
	p.Python = fakePython(t, `head -c 8 /dev/zero > "$5"`) // SCRIPT fill FOLDER FORM OUT
	err := Darts(t.Context(), goBackend(t), p, func(*DartsResult) error { return nil })
	require.ErrorContains(t, err, "DARTS: JAX stock: array 0 differs by a part 1.0e+00")
}

// TestDartsPeersComputeTheSame needs PyTorch; JAX compiles for minutes, and is
// compared by `bench --peers`.
func TestDartsPeersComputeTheSame(t *testing.T) {
	python, err := filepath.Abs("../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Skip("PyTorch is not installed: `go tool nasml bench --peers --quick` does it")
	}
	p := DartsParams{Python: python}
	for i, c := range slices.Concat(dartsCompared, oneShotCompared) {
		c.Image, c.Batch, c.Steps = 4, 3, 1
		found, err := p.compareWith(t.Context(), goBackend(t), c, uint64(i), dartsPeers[1:])
		require.NoError(t, err)
		require.Len(t, found, 2)
		for _, a := range found {
			require.Empty(t, a.NotRun, c.Name)
			require.Greater(t, a.Numbers, 2000)
		}
	}
}

// BenchmarkDarts reports the time of a bilevel step, and of its first call.
func BenchmarkDarts(b *testing.B) {
	for _, c := range []DartsCase{dartsQuickSize, dartsPaperSize, dartsPartial, dartsTraining, oneShotTimed(1, true),
		oneShotTimed(1, false)} {
		b.Run(strings.ReplaceAll(c.String(), " ", "-"), func(b *testing.B) {
			w, err := newDartsWork(c, 0)
			require.NoError(b, err)
			run, err := newDartsRun(testBackend(b), w, false)
			require.NoError(b, err)
			defer run.exec.Finalize()
			first, err := run.losses(b.Context())
			require.NoError(b, err)
			resetPeak()
			seconds := 0.0
			for b.Loop() {
				again, err := run.losses(b.Context())
				require.NoError(b, err)
				require.Equal(b, first.Losses, again.Losses)
				seconds += again.Seconds
			}
			b.ReportMetric(seconds*1000/float64(b.N*c.Steps), "ms/step")
			b.ReportMetric(first.Seconds, "s-first")
			b.ReportMetric(peakMB("self"), "MB")
		})
	}
}
