package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/nasml/lab/nasml/internal/steady"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021"
)

// testBackend skips if there is no XLA: GoMLX v0.28's Go backend lacks
// DynamicSlice, which the training's loop needs.
func testBackend(t testing.TB) compute.Backend {
	t.Helper()
	b, err := backend.Open()
	if err != nil || b.Name() != "xla" {
		t.Skip("no XLA: run `go tool nasml setup`, and do not set GOMLX_BACKEND=go")
	}
	return b
}

// tiny are both panels on a little synthetic data.
func tiny() Params {
	p := Quick
	p.Cases, p.Rounds = []Case{{"a", 6}, {"b", 8}}, 3
	p.Sweep.Data, p.Sweep.Examples, p.Sweep.Batch, p.Sweep.LearningRate = data.Synthetic, 50, 16, 0.05
	return p
}

// figure2 are the results of a benchmark.
func figure2(t *testing.T, p Params) (results []*Result) {
	t.Helper()
	keep := func(r *Result) error { results = append(results, r); return nil }
	require.NoError(t, Figure2(t.Context(), testBackend(t), p, keep))
	return results
}

func TestOurTimes(t *testing.T) {
	results := figure2(t, tiny())
	require.Len(t, results, 2)
	for _, r := range results {
		require.Equal(t, 12, r.Models, "2 seeds × (α and 5 Δα)")
		require.Equal(t, 8, r.Steps, "2 epochs of ⌈50/16⌉ batches")
		require.Len(t, r.Entries, 1)
		e := r.Entries[0]
		require.Len(t, e.Seconds, 3)
		require.Equal(t, Spread{1, 1, 1}, e.Ratio)
		require.Positive(t, e.StepSeconds)
	}
	_, err := json.Marshal(results)
	require.NoError(t, err)
}

func TestEveryTrainingStartsFromTheSameWeights(t *testing.T) {
	work, err := oymak2021.NewFigure2Work(t.Context(), testBackend(t), tiny().Sweep, "a", 6)
	require.NoError(t, err)
	defer work.Close()
	first, _, err := work.Train(t.Context())
	require.NoError(t, err)
	second, _, err := work.Train(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Less(t, first[1][0], first[0][0], "the second epoch goes on from the first")
}

func TestCancelledBenchmarkEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Figure2(ctx, testBackend(t), tiny(), nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestDifferentLossesAreAnError(t *testing.T) {
	d, err := difference([]float64{1, 2}, []float64{1, 2.00002})
	require.NoError(t, err)
	require.InDelta(t, 1e-5, d, 1e-12)
	for _, theirs := range [][]float64{{1, 2.01}, {1, math.NaN()}, {1, math.Inf(1)}, {1}, {1, 2, 3}} {
		_, err := difference([]float64{1, 2}, theirs)
		require.Error(t, err, "%v", theirs)
	}
}

func TestSpreadIsMedianAndRange(t *testing.T) {
	require.Equal(t, Spread{2, 1, 9}, spread([]float64{9, 1, 2}))
	require.Equal(t, Spread{1.5, 1, 9}, spread([]float64{9, 1, 2, 1}))
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 9).Draw(t, "times")
		require.Equal(t, Spread{1, 1, 1}, ratio(xs, xs))
		s := spread(xs)
		require.LessOrEqual(t, s.Min, s.Median)
		require.LessOrEqual(t, s.Median, s.Max)
	})
}

func TestEntriesMarkTheFasterForm(t *testing.T) {
	timed := func(program, form string, first float64, seconds ...float64) *runner {
		return &runner{
			entry: Entry{Program: program, Form: form, Seconds: seconds},
			peak:  func() float64 { return 1 }, first: training{Seconds: first},
		}
	}
	failed := timed("PyTorch", "vmap", 0)
	failed.entry.NotRun = "no PyTorch"
	out := entries(
		[]*runner{timed("nasml", "", 3, 1, 2), timed("JAX", "x", 9, 4, 4), timed("JAX", "y", 9, 2, 2), failed},
		10,
	)
	require.Equal(t, []bool{true, false, true, false}, []bool{out[0].Best, out[1].Best, out[2].Best, out[3].Best})
	require.Equal(t, Spread{1.5, 1, 2}, out[2].Ratio, "2/1 and 2/2")
	require.Equal(t, 0.2, out[2].StepSeconds)
	require.Equal(t, 7.0, out[2].CompileSeconds)

	var table strings.Builder
	require.NoError(t, (&Result{Case: Case{"a", 64}, Entries: out}).WriteTable(&table))
	require.Contains(t, table.String(), "JAX y *")
	require.NotContains(t, table.String(), "JAX x *")
	require.Contains(t, table.String(), "PyTorch vmap was not run: no PyTorch")
}

// TestNPY checks a file against the description of format 2.0.
func TestNPY(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.npy")
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(t, "dims")
		size := 1
		for _, d := range dims {
			size *= d
		}
		flat := rapid.SliceOfN(rapid.Int32(), size, size).Draw(t, "values")
		require.NoError(t, writeNPY(file, tensors.FromFlatDataAndDimensions(flat, dims...)))
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "\x93NUMPY\x02\x00", string(raw[:8]))
		begin := 12 + int(binary.LittleEndian.Uint32(raw[8:]))
		require.Equal(t, byte('\n'), raw[begin-1])
		require.Contains(t, string(raw[12:begin]), "'descr': '<i4', 'fortran_order': False")
		shape := strings.NewReplacer("[", "(", "]", ")", " ", ", ").Replace(fmt.Sprint(dims))
		if len(dims) == 1 {
			shape = strings.Replace(shape, ")", ",)", 1)
		}
		require.Contains(t, string(raw[12:begin]), "'shape': "+shape)
		got := make([]int32, size)
		require.NoError(t, binary.Read(bytes.NewReader(raw[begin:]), binary.LittleEndian, got))
		require.Equal(t, flat, got)
	})
	require.ErrorContains(t, writeNPY(file, tensors.FromValue(1.5)), "expected float32 or int32")
}

// fakePython is a program that takes the peers' arguments and runs a line of
// shell instead.
func fakePython(t *testing.T, line string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+line+"\n"), 0o755))
	return file
}

func TestPeersThatCannotRunAreReported(t *testing.T) {
	for python, reason := range map[string]string{
		filepath.Join(t.TempDir(), "missing"):                               "no such file",
		fakePython(t, "echo Traceback >&2; echo no module jax >&2; exit 1"): "no module jax",
		fakePython(t, "read line; echo hello; cat > /dev/null"):             "expected JSON",
	} {
		p := tiny()
		p.Cases, p.Python = p.Cases[:1], python
		results := figure2(t, p)
		require.Len(t, results[0].Entries, 5)
		require.Len(t, results[0].Entries[0].Seconds, p.Rounds, "ours is timed all the same")
		for _, e := range results[0].Entries[1:] {
			require.Contains(t, e.NotRun, reason)
			require.Empty(t, e.Seconds)
		}
	}
}

func TestPeersWithOtherLossesAreNotTimed(t *testing.T) {
	p := tiny()
	p.Cases = p.Cases[:1]
	p.Python = fakePython(t, `while read line; do echo '{"seconds": 1, "losses": [1, 2]}'; done`)
	entries := figure2(t, p)[0].Entries
	require.Len(t, entries[0].Seconds, p.Rounds, "ours is timed all the same")
	for _, e := range entries[1:] {
		require.Contains(t, e.NotRun, "found 2 losses")
		require.Empty(t, e.Seconds)
	}
}

// TestPeersComputeTheSame needs the peers themselves.
func TestPeersComputeTheSame(t *testing.T) {
	python, err := filepath.Abs("../../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Skip("JAX and PyTorch are not installed: `go tool nasml bench --peers --quick` does it")
	}
	p := tiny()
	p.Rounds, p.Python = 1, python
	for _, r := range figure2(t, p) {
		for _, e := range r.Entries {
			require.Empty(t, e.NotRun, e.name())
			require.Less(t, e.LossDifference, 1e-5, e.name())
			require.Positive(t, e.StepSeconds, e.name())
		}
	}
}

// BenchmarkFigure2 reports the time of a step of 24 networks.
func BenchmarkFigure2(b *testing.B) {
	for _, c := range Full.Cases {
		b.Run(fmt.Sprintf("%s/k=%d", c.Panel, c.Width), func(b *testing.B) {
			p := Full.Sweep
			p.Data = data.Synthetic // no network
			work, err := oymak2021.NewFigure2Work(b.Context(), testBackend(b), p, c.Panel, c.Width)
			require.NoError(b, err)
			defer work.Close()
			_, _, err = work.Train(b.Context()) // compiles
			require.NoError(b, err)
			var total time.Duration
			for b.Loop() {
				_, took, err := work.Train(b.Context())
				require.NoError(b, err)
				total += took
			}
			b.ReportMetric(total.Seconds()*1000/float64(b.N*work.Steps()), "ms/step")
		})
	}
}
