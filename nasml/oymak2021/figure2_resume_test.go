package oymak2021

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

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
	requireSameBits(t, calm, resumed)
	require.Equal(t, 1, resumed.Groups[0].Records[0].Resumed, "it did go on from the checkpoint")
}

func requireSameBits(t *testing.T, a, b *figure2) {
	t.Helper()
	for i, record := range a.Groups.Records() {
		require.Equal(t, record.Values, b.Groups.Records()[i].Values)
	}
}

// A checkpoint in a layout of another version is no reason to fail: the trials
// are recomputed.
func TestACheckpointInAnotherLayoutIsLeftAside(t *testing.T) {
	p := tinyParams()
	p.Panels, p.Widths = []string{"a"}, []int{4}
	calm, err := Figure2(testContext(t), p)
	require.NoError(t, err)

	dir := t.TempDir()
	ctx, cancel := context.WithCancel(storeContext(t, dir))
	_, err = Figure2(runs.WithProgress(ctx, &stopper{Progress: runs.Silent, after: 3, cancel: cancel}), p)
	require.ErrorIs(t, err, context.Canceled)
	saved, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*.ckpt"))
	require.NoError(t, err)
	require.Len(t, saved, 1)
	require.NoError(t, os.WriteFile(saved[0], []byte("what another version wrote"), 0o600))
	anew, err := Figure2(storeContext(t, dir), p)
	require.NoError(t, err)
	requireSameBits(t, calm, anew)
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

// A process that is killed in the middle of a real training resumes from its
// last checkpoint, with momentum, order of batches and losses, and ends
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
	requireSameBits(t, calm, resumed)
	require.Positive(t, resumed.Groups[0].Records[0].Resumed)
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
