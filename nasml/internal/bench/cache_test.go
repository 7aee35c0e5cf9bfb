package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/internal/trace"
)

// stepEnv tells this test's own program, started once more, which steps to
// compute, and to print what it took and a sum of all results.
const stepEnv = "NASML_TEST_STEP"

type stepAsked struct {
	Method                 string
	Channels, Image, Batch int
}

type stepTook struct {
	First float64 // seconds until the first step's results
	MB    float64 // peak memory
	Sum   string  // of every array of every step
}

func init() {
	if text := os.Getenv(stepEnv); text != "" {
		if err := stepAlone(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func stepAlone(text string) error {
	var p stepAsked
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	t, err := trace.Random(searchSettings(p.Method, p.Channels, p.Image, 2), p.Batch, 0)
	if err != nil {
		return err
	}
	b, err := backend.Open()
	if err != nil {
		return err
	}
	start := time.Now()
	arrays, err := t.Compute(context.Background(), b, 2)
	if err != nil {
		return err
	}
	took := stepTook{First: time.Since(start).Seconds()}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		_, _ = fmt.Fprintf(h, "%s %v\n", name, arrays[name])
	}
	took.Sum = fmt.Sprintf("%x", h.Sum(nil))
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	took.MB = float64(usage.Maxrss) / 1000
	return json.NewEncoder(os.Stdout).Encode(took)
}

// stepElsewhere computes steps in a process of its own.
func stepElsewhere(t testing.TB, cache string, p stepAsked) stepTook {
	text, err := json.Marshal(p)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stepEnv+"="+string(text), programs.Env+"="+cache)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var took stepTook
	require.NoError(t, json.Unmarshal(out, &took))
	return took
}

// A bilevel step has the same bits in every array whether it was compiled or
// comes from the cache, also where two processes ask for it at once.
func TestStepsFromTheCacheAreTheSame(t *testing.T) {
	testBackend(t) // or skip
	if testing.Short() {
		t.Skip("compiles a supernet twice, half a minute")
	}
	p := stepAsked{Method: "gaea-darts", Channels: 2, Image: 8, Batch: 4}
	dir := filepath.Join(t.TempDir(), "xla")
	want := stepElsewhere(t, "off", p).Sum
	var both [2]stepTook
	var wait sync.WaitGroup
	for i := range both {
		wait.Go(func() { both[i] = stepElsewhere(t, dir, p) })
	}
	wait.Wait()
	require.Equal(t, want, both[0].Sum, "two at once")
	require.Equal(t, want, both[1].Sum, "two at once")
	require.Equal(t, want, stepElsewhere(t, dir, p).Sum, "loaded")
	files, err := filepath.Glob(filepath.Join(dir, "*.program"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
}

// BenchmarkFirstStep is what the first cell of a search waits for: a bilevel
// step at C = 16, N = 1, 32×32 pixels, batch 64 in a new process.
func BenchmarkFirstStep(b *testing.B) {
	testBackend(b)
	dir := filepath.Join(b.TempDir(), "xla")
	p := stepAsked{Method: "gaea-darts", Channels: 16, Image: 32, Batch: 64}
	for _, mode := range []string{"compiled", "kept", "loaded"} {
		b.Run(mode, func(b *testing.B) {
			first, mb := 0.0, 0.0
			for b.Loop() {
				cache := dir
				switch mode {
				case "compiled":
					cache = "off"
				case "kept":
					require.NoError(b, os.RemoveAll(dir))
				}
				took := stepElsewhere(b, cache, p)
				first, mb = first+took.First, max(mb, took.MB)
			}
			b.ReportMetric(first/float64(b.N), "s/first")
			b.ReportMetric(mb, "MB")
		})
	}
}
