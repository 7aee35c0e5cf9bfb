package bench

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/internal/kernels"
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
	python, err := filepath.Abs("../../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Skip("PyTorch is not installed: `go tool nasml bench --peers --quick` does it")
	}
	p := DartsParams{Timing: Timing{Python: python}}
	for i, c := range slices.Concat(dartsCompared, oneShotCompared) {
		c.Image, c.Batch, c.Steps = 4, 3, 1
		found, err := p.compareWith(t.Context(), goBackend(t), c, uint64(i), dartsPeers[1:])
		require.NoError(t, err)
		require.NotEmpty(t, found)
		for _, a := range found {
			require.Empty(t, a.NotRun, c.Name)
			require.Greater(t, a.Numbers, 1000)
		}
	}
}

// gradientsOf are the losses and gradients of two steps, array by array.
func gradientsOf(t *testing.T, b compute.Backend, c DartsCase) (all [][]float64) {
	t.Helper()
	w, err := newDartsWork(c, 3)
	require.NoError(t, err)
	run, err := newDartsRun(b, w, true)
	require.NoError(t, err)
	defer run.exec.Finalize()
	steps, _, err := run.train(t.Context())
	require.NoError(t, err)
	for _, x := range slices.Concat(steps...) {
		found, err := device.Values(x)
		require.NoError(t, err)
		all = append(all, found)
	}
	return all
}

// mustBeClose compares arrays, by the largest number of each.
func mustBeClose(t *testing.T, want, got [][]float64, tolerance float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		largest, apart := 0.0, 0.0
		for k, x := range want[i] {
			largest, apart = max(largest, math.Abs(x)), max(apart, math.Abs(x-got[i][k]))
		}
		if largest > tolerance { // else a gradient that is 0 but for rounding
			require.LessOrEqual(t, apart/largest, tolerance, "array %d, of numbers up to %g", i, largest)
		}
	}
}

// networkCases are a search of one cell, in which every operation stands with
// both strides, PC-DARTS, and training; and how far numbers may be apart: sums of
// thousands of terms in other orders, through BN of few pixels, the second step
// behind the first.
func networkCases(double bool) ([]DartsCase, float64) {
	cases := []DartsCase{
		{Name: "DARTS", Partial: 1, Cells: 1, Channels: 3, Image: 8, Batch: 6, Steps: 2, Double: double},
		{Name: "PC-DARTS", Partial: 2, Cells: 1, Channels: 4, Image: 8, Batch: 6, Steps: 2, Double: double},
		{Name: "training", Genotype: "DARTS_V2", Partial: 1, Cells: 2, Channels: 4, Image: 8, Batch: 6, Steps: 2,
			Double: double},
		{Name: "GAEA PC-DARTS", Partial: 2, Cells: 1, Channels: 4, Image: 4, Batch: 6, Steps: 2, Double: double,
			Update: "eg"},
	}
	if double {
		return cases, doubleTolerance
	}
	return cases, 2e-3
}

// A whole network computes the same by the kernels and, on GoMLX's own backend,
// by what defines them.
func TestNetworksWithKernelsAndWithout(t *testing.T) {
	xla := testBackend(t)
	for _, double := range []bool{true, false} {
		cases, tolerance := networkCases(double)
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s %v", c.Name, double), func(t *testing.T) {
				mustBeClose(t, gradientsOf(t, goBackend(t), c), gradientsOf(t, xla, c), tolerance)
			})
		}
	}
	if os.Getenv(kernels.Env) == "off" {
		require.Empty(t, backend.Kernels())
		return
	}
	require.Subset(t, backend.Kernels(), []string{"nasml_stage_gradient", "nasml_momentum", "nasml_running"})
}

// The same where XLA compiles the definitions, in a process without kernels:
// training only, which XLA compiles in seconds.
func TestNetworksOfXLAWithoutKernels(t *testing.T) {
	testBackend(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNetworksWithKernelsAndWithout$/^training")
	cmd.Env = append(os.Environ(), kernels.Env+"=off")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NotContains(t, string(said), "no tests to run")
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
