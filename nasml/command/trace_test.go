package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/internal/trace"
)

const dartsTrace = "../internal/trace/testdata/darts.npz"

func TestFilesThatAreNoTraces(t *testing.T) {
	broken, err := trace.Read(dartsTrace)
	require.NoError(t, err)
	delete(broken.Arrays, "weights/stem/conv")
	file := filepath.Join(t.TempDir(), "broken.npz")
	require.NoError(t, broken.Write(file))
	for want, args := range map[string][]string{
		"nowhere.npz: there is no such file":                        {"trace", "nowhere.npz"},
		"main.go: expected an .npz file":                            {"trace", "main.go"},
		"broken.npz: weights/stem/conv is missing: expected shape ": {"trace", dartsTrace, file},
		"--tolerance must be more than 0, got -1":                   {"trace", dartsTrace, "--tolerance=-1"},
		"<file>": {"trace"},
	} {
		status, out, err := call(t, args...)
		require.Equal(t, exitUsage, status, err)
		require.Contains(t, err, want)
		require.Empty(t, out)
	}
}

// TestTamperedTraceFails computes on GoMLX's Go backend: XLA takes half a
// minute to compile a search step.
func TestTamperedTraceFails(t *testing.T) {
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	right, err := trace.Read(dartsTrace)
	require.NoError(t, err)
	wrong, err := trace.Read(dartsTrace)
	require.NoError(t, err)
	wrong.Arrays["grad/stem/conv"].Values[3] += 0.01

	var out, progress bytes.Buffer
	c := console{&out, &progress}
	v := &traceCmd{File: []string{"right.npz"}, JSON: true}
	require.Equal(t, exitOK, status(t.Context(), c, v.compare(t.Context(), c, b, []trace.Replayable{right})))
	var object map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &object))
	require.Equal(t, "right.npz", object["file"])
	require.Equal(t, true, object["agrees"])
	arrays := object["arrays"].([]any)
	require.Greater(t, len(arrays), 50)
	for _, field := range []string{"name", "step", "absolute", "relative", "scale", "agrees"} {
		require.Contains(t, arrays[0], field)
	}

	out.Reset()
	v = &traceCmd{File: []string{"wrong.npz"}}
	require.Equal(t, exitFailed, status(t.Context(), c, v.compare(t.Context(), c, b, []trace.Replayable{wrong})))
	require.Regexp(t, `grad/stem/conv +1\.0e-02 .*DIFFERS`, out.String())
	require.Contains(t, progress.String(), "1 of 1 traces differ")
}

// A file that never comes, as on a drive that is gone: a pipe that nobody writes to.
func TestTraceHearsSIGTERMWhileItReads(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.npz")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	// From here on the signal ends the context, not the test.
	ctx, stop := untilSignal(console{t.Output(), t.Output()}, backend.Compiling)
	var out, progress bytes.Buffer
	defer stop()
	ended := make(chan int)
	go func() { ended <- execute(ctx, []string{"trace", pipe}, console{&out, &progress}) }()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	require.Equal(t, exitFailed, <-ended)
	require.Contains(t, progress.String(), "interrupted")
	require.Empty(t, out.String())
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the reader go
	require.NoError(t, err)
	require.NoError(t, writer.Close())
}

// stuck is a replay that does not look at its context, as while XLA compiles.
type stuck struct {
	trace.Replayable
	begun, leave chan struct{}
}

func (s stuck) Replay(context.Context, compute.Backend) ([]trace.Difference, error) {
	close(s.begun)
	<-s.leave
	return nil, nil
}

func TestTraceHearsSIGTERMWhileItWorks(t *testing.T) {
	right, err := trace.Read(dartsTrace)
	require.NoError(t, err)
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	ctx, stop := untilSignal(console{t.Output(), t.Output()}, backend.Compiling)
	defer stop()
	work := stuck{right, make(chan struct{}), make(chan struct{})}
	defer close(work.leave)
	var out, progress bytes.Buffer
	c := console{&out, &progress}
	ended := make(chan int)
	go func() {
		v := &traceCmd{File: []string{"stuck.npz"}}
		ended <- status(ctx, c, v.compare(ctx, c, b, []trace.Replayable{work}))
	}()
	<-work.begun
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	require.Equal(t, exitFailed, <-ended)
	require.Contains(t, progress.String(), "interrupted")
}
