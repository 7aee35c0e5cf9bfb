package runs

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process is killed again and again at random moments; what comes out in
// the end is bit for bit what one process computes that nobody disturbs.
func TestKilledProcessesResume(t *testing.T) {
	for _, how := range []string{"in step", "staggered"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			calm, disturbed := t.TempDir(), t.TempDir()
			cmd, in, out := startChild(t, "toy", calm, how)
			for out.Scan() {
				goOn(t, in)
			}
			require.NoError(t, cmd.Wait())

			kills := 0
			for killOnce(t, disturbed, how) {
				kills++
			}
			require.GreaterOrEqual(t, kills, 3)
			log := readLog(t, disturbed)
			require.Positive(t, log["resumed"])
			for line, times := range log {
				require.False(t, strings.HasPrefix(line, "again"), line)
				require.True(t, times == 1 || line == "resumed", "%s: %d times", line, times)
			}
			requireSameSums(t, calm, disturbed)
		})
	}
}

// killOnce starts a toy process and kills it some time after one of its first
// checkpoints. It reports whether the process was killed: else it came to its end.
func killOnce(t *testing.T, dir, how string) bool {
	cmd, in, out := startChild(t, "toy", dir, how)
	for range 1 + rand.IntN(5) {
		if !out.Scan() {
			require.NoError(t, cmd.Wait())
			return false
		}
		require.Equal(t, "saved", out.Text())
		goOn(t, in)
	}
	time.Sleep(rand.N(3 * time.Millisecond)) // anywhere in the steps to the next checkpoint
	require.NoError(t, cmd.Process.Kill())
	return cmd.Wait() != nil
}

// goOn lets a toy process compute up to its next checkpoint.
func goOn(t *testing.T, in io.Writer) {
	t.Helper()
	_, err := in.Write([]byte{'\n'})
	require.NoError(t, err)
}

func requireSameSums(t *testing.T, calm, disturbed string) {
	t.Helper()
	sums := func(dir string) (bits []uint64) {
		s, err := Open(filepath.Join(dir, "store"))
		require.NoError(t, err)
		records, err := s.Compute(t.Context(), toyTrials(0, 4), Options{}, mustNotCompute)
		require.NoError(t, err)
		for _, r := range records {
			bits = append(bits, math.Float64bits(r.Values["sum"]))
		}
		return bits
	}
	require.Equal(t, sums(calm), sums(disturbed))
}

func TestTwoWritersComputeEachTrialOnce(t *testing.T) {
	dir := t.TempDir()
	type child struct {
		wait  func() error
		start io.Closer
	}
	var all []child
	for _, from := range []string{"0", "10", "0"} {
		cmd, in, _ := startChild(t, "work", dir, from)
		all = append(all, child{cmd.Wait, in})
	}
	for _, c := range all {
		require.NoError(t, c.start.Close()) // all begin together
	}
	for _, c := range all {
		require.NoError(t, c.wait())
	}
	log := readLog(t, dir)
	require.Len(t, log, 30)
	for line, times := range log {
		require.Equal(t, 1, times, line)
	}
}

// waiting is a progress that tells once when a process waits for another.
type waiting struct {
	silent
	told chan struct{}
}

func (w waiting) Step(_ int, note string) {
	if strings.Contains(note, "waiting for another process") {
		select {
		case w.told <- struct{}{}:
		default:
		}
	}
}

func TestDeadProcessFreesItsTrials(t *testing.T) {
	dir := t.TempDir()
	cmd, _, out := startChild(t, "hold", dir, "")
	require.True(t, out.Scan())
	require.Equal(t, "holding", out.Text())

	s, err := Open(filepath.Join(dir, "store"))
	require.NoError(t, err)
	told := make(chan struct{}, 1)
	ctx := WithProgress(t.Context(), waiting{told: told})
	var killed atomic.Bool
	go func() { // kill the holder once we wait for it
		<-told
		killed.Store(true)
		_ = cmd.Process.Kill()
	}()
	computed := 0
	_, err = s.Compute(ctx, toyTrials(0, 2), Options{Wait: time.Millisecond}, func(_ context.Context, job *Job) error {
		computed += len(job.Trials) // one at a time where the kernel has freed only one of the locks yet
		results := make([]Result, len(job.Trials))
		for i, trial := range job.Trials {
			results[i] = seedResult(trial)
		}
		return job.DoneAll(results)
	})
	require.NoError(t, err)
	require.True(t, killed.Load(), "its trials were taken while it lived")
	require.Error(t, cmd.Wait())
	require.Equal(t, 2, computed)
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	s, ctx := testStore(t)
	key, err := toyTrials(0, 1)[0].Key()
	require.NoError(t, err)
	lock, err := tryLock(s.medium.Where(lockName(key)))
	require.NoError(t, err)
	defer lock.Remove()
	told := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(WithProgress(ctx, waiting{told: told}))
	go func() {
		<-told
		cancel()
	}()
	_, err = s.Compute(ctx, toyTrials(0, 1), Options{Wait: time.Hour}, mustNotCompute)
	require.ErrorIs(t, err, context.Canceled)
}
