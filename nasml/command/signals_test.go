package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// busyVar makes a test the process that another test interrupts.
const busyVar = "NASML_TEST_BUSY"

// busy is a program that does not look at its context. It ends by itself only so that it
// does not outlive a test that was killed.
func busy() {
	ctx, _ := untilSignal(console{os.Stdout, os.Stderr}, func() bool { return os.Getenv(busyVar) == "compiling" })
	fmt.Println("busy")
	<-ctx.Done()
	fmt.Println("heard")
	time.Sleep(time.Minute)
}

// startBusy starts such a program and returns it with the lines that it prints.
func startBusy(t *testing.T, does string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestASecondSignal$")
	cmd.Env = append(os.Environ(), busyVar+"="+does)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout // in one pipe, so that all is read in its order
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	expectLine(t, lines, "busy")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	expectLine(t, lines, "heard")
	return cmd, lines
}

func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	require.True(t, lines.Scan(), "no line %q", want)
	require.Contains(t, lines.Text(), want)
}

// A program that does not end after its step ends with the second signal, and says what
// is kept.
func TestASecondSignal(t *testing.T) {
	if os.Getenv(busyVar) != "" {
		busy()
	}
	cmd, lines := startBusy(t, "step")
	expectLine(t, lines, "what is under way ends first")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	expectLine(t, lines, "interrupted again, ended at once; "+kept)
	require.Error(t, cmd.Wait())
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
}

// While XLA compiles the first signal is enough.
func TestASignalWhileCompiling(t *testing.T) {
	cmd, lines := startBusy(t, "compiling")
	expectLine(t, lines, "interrupted while XLA compiled, which cannot be stopped: ended at once; "+kept)
	require.Error(t, cmd.Wait())
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
}
