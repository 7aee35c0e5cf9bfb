package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/internal/trace"
)

// tinySupernet compares steps of GAEA DARTS and DARTS, and times one.
func tinySupernet() SupernetParams {
	p := SupernetQuick
	p.Compared, p.CompareBatch = small(2, 8, 2)[:2], 4
	p.Timed, p.Batch, p.Rounds = searchSettings("gaea-darts", 1, 4, 1), 2, 2
	return p
}

// goBackend computes without compiling, which takes longer than such steps.
func goBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

func TestOurSupernetTimes(t *testing.T) {
	r, err := Supernet(t.Context(), goBackend(t), tinySupernet())
	require.NoError(t, err)
	require.Empty(t, r.Oracles)
	require.Len(t, r.Entries, 1)
	require.Len(t, r.Entries[0].Seconds, 2)
	require.Equal(t, Spread{1, 1, 1}, r.Entries[0].Ratio)
	_, err = json.Marshal(r)
	require.NoError(t, err)
	var table strings.Builder
	require.NoError(t, r.WriteTable(&table))
	require.Contains(t, table.String(), "One bilevel step of gaea-darts: C = 1, N = 1, 4×4, batch 2")
	require.NotContains(t, table.String(), "relative")
}

func TestSettingsOfTheSupernetBenchmark(t *testing.T) {
	for _, p := range []SupernetParams{SupernetFull, SupernetQuick, tinySupernet()} {
		require.NoError(t, p.Timed.Check())
		for _, c := range p.Compared {
			require.NoError(t, c.Check(), c.Method)
			require.True(t, c.Double || c.Steps == 1, c.Method)
		}
	}
	require.Equal(t, 10, SupernetFull.Compared[1].Steps)
	require.Equal(
		t,
		[]int{16, 1, 32, 64},
		[]int{SupernetFull.Timed.Channels, SupernetFull.Timed.Cells, SupernetFull.Timed.Image, SupernetFull.Batch},
	)
}

func TestOraclesThatCannotRunAreReported(t *testing.T) {
	for python, reason := range map[string]string{
		filepath.Join(t.TempDir(), "missing"):                                 "no such file",
		fakePython(t, "echo Traceback >&2; echo no module torch >&2; exit 1"): "no module torch",
	} {
		p := tinySupernet()
		p.Python = python
		r, err := Supernet(t.Context(), goBackend(t), p)
		require.NoError(t, err)
		require.Len(t, r.Oracles, 4, "two programs, each a step in float32 and two in float64")
		require.Len(t, r.Entries, 4)
		require.Len(t, r.Entries[0].Seconds, p.Rounds, "ours is timed all the same")
		for i := range 4 {
			require.Contains(t, r.Oracles[i].NotRun, reason)
		}
		for _, e := range r.Entries[1:] {
			require.Contains(t, e.NotRun, reason)
		}
		var table strings.Builder
		require.NoError(t, r.WriteTable(&table))
		require.Contains(t, table.String(), reason)
	}
}

func TestOraclesThatDifferAreNotTimed(t *testing.T) {
	p := tinySupernet()
	p.Compared = p.Compared[:1]
	start, err := trace.Random(p.Compared[0].Settings, p.CompareBatch, 0)
	require.NoError(t, err)
	start.Arrays["loss"] = trace.Float32([]float32{1})
	wrong := filepath.Join(t.TempDir(), "wrong.npz")
	require.NoError(t, start.Write(wrong))
	p.Python = fakePython(t, `[ "$2" = fill ] && cp "`+wrong+`" "$4"`) // SCRIPT fill IN OUT
	r, err := Supernet(t.Context(), goBackend(t), p)
	require.NoError(t, err)
	require.Len(t, r.Entries[0].Seconds, p.Rounds, "ours is timed all the same")
	require.Contains(t, r.Oracles[0].Differs, "loss differs by a part")
	require.Equal(t, r.Oracles[0].Differs, r.Entries[1].NotRun)
	var table strings.Builder
	require.NoError(t, r.WriteTable(&table))
	require.Contains(t, table.String(), "loss differs by a part")
}

// TestOraclesComputeTheSame needs PyTorch. JAX takes half a minute to compile;
// that it computes the same is a trace of package trace, and `bench --peers`.
func TestOraclesComputeTheSame(t *testing.T) {
	python, err := filepath.Abs("../../../.nasml/venv-peers/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(python); err != nil {
		t.Skip("PyTorch is not installed: `go tool nasml bench --peers --quick` does it")
	}
	p := tinySupernet()
	p.Python = python
	found, err := p.compare(t.Context(), goBackend(t), supernetPeers[1:])
	require.NoError(t, err)
	require.Len(t, found, 2)
	for _, o := range found {
		require.Empty(t, o.NotRun)
		require.Greater(t, o.Arrays, 100*o.Steps, "every gradient and every weight after each step")
	}
	require.Less(t, found[0].First, 1e-4)
	require.Less(t, found[1].First, 1e-10)
	require.Less(t, found[1].Later, 1e-9)

	start, err := trace.Random(p.Timed, p.Batch, 0)
	require.NoError(t, err)
	peers, err := p.team(t.Context(), func(dir string) error { return start.Write(filepath.Join(dir, timedFile)) },
		supernetPeers)
	require.NoError(t, err)
	defer peers.stop()
	search, err := trace.NewSearch(goBackend(t), start)
	require.NoError(t, err)
	defer search.Close()
	ours, _, err := search.Train(t.Context())
	require.NoError(t, err)
	for _, r := range peers.runners {
		if r.entry.Program == "PyTorch" {
			theirs, err := r.train(t.Context())
			require.NoError(t, err)
			require.Positive(t, theirs.Seconds)
			require.Regexp(t, `^\d+\.\d+`, theirs.Version)
			require.InEpsilonSlice(t, ours, theirs.Losses, 1e-5)
		}
	}
}

// BenchmarkSupernet reports the time of a bilevel step at C = 16, N = 1, 32×32
// pixels, batch 64.
func BenchmarkSupernet(b *testing.B) {
	p := SupernetFull
	t, err := trace.Random(p.Timed, p.Batch, 0)
	require.NoError(b, err)
	search, err := trace.NewSearch(testBackend(b), t)
	require.NoError(b, err)
	defer search.Close()
	_, _, err = search.Train(b.Context()) // compiles
	require.NoError(b, err)
	seconds := 0.0
	for b.Loop() {
		_, took, err := search.Train(b.Context())
		require.NoError(b, err)
		seconds += took.Seconds()
	}
	b.ReportMetric(seconds*1000/float64(b.N*p.Timed.Steps), "ms/step")
}
