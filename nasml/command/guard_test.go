package command

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ends are the ways in which the command ends from outside: Ctrl-C, kill, a closed terminal, and kill -9.
var ends = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}

// marked are the processes that have a mark in their environment, as what they start has.
func marked(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// requireNothingLeft waits for the end of all that is marked and of the temporary files.
func requireNothingLeft(t *testing.T, mark, temporary string) {
	t.Helper()
	left := func() (names []string) {
		_ = filepath.WalkDir(temporary, func(path string, _ os.DirEntry, _ error) error {
			if path != temporary {
				names = append(names, path)
			}
			return nil
		})
		for _, pid := range marked(mark) {
			line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			names = append(names, "process "+pid+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
		return names
	}
	nothing := func(c *assert.CollectT) { assert.Empty(c, left()) }
	require.EventuallyWithT(t, nothing, 40*time.Second, 50*time.Millisecond)
}

// start starts a command with a mark and a folder for temporary files of its own.
func start(t *testing.T, cmd *exec.Cmd) (mark, temporary string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("looks for processes in /proc")
	}
	temporary, err := os.MkdirTemp("", "nasml-test-") // short, for sockets
	require.NoError(t, err)
	mark = "NASML_TEST_MARK=" + filepath.Base(temporary)
	cmd.Env = append(cmd.Environ(), mark, "TMPDIR="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for _, pid := range marked(mark) {
			n, _ := strconv.Atoi(pid)
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
		_ = os.RemoveAll(temporary)
	})
	return mark, temporary
}

// restless leaves a file, and processes in a session of their own that are deaf to signals, one without its parent.
const restless = `import os, subprocess, tempfile, time
open(os.path.join(tempfile.mkdtemp(prefix="gonb_"), "file"), "w")
deaf = "trap '' TERM HUP INT; (sh -c 'sleep 1000; true' & ) ; sleep 1000; true"
subprocess.Popen(["sh", "-c", deaf], start_new_session=True)
time.sleep(1000)
`

// A guarded program leaves nothing at any end: not what it started in sessions of its own, not what lost its parent.
func TestGuardLeavesNothing(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	for _, end := range ends {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(end) { // by nohup, and so by all that it starts
				t.Skipf("the signal %v is ignored here", end)
			}
			cmd := exec.Command(python, "-c", guard, "-c", restless)
			alive, err := cmd.StdinPipe()
			require.NoError(t, err)
			mark, temporary := start(t, cmd)
			require.Eventually(t, func() bool { return len(marked(mark)) >= 5 }, 20*time.Second, 20*time.Millisecond)
			if end == syscall.SIGKILL { // of the process that holds the pipe
				require.NoError(t, alive.Close())
			} else {
				require.NoError(t, cmd.Process.Signal(end))
			}
			go func() { _ = cmd.Wait() }()
			requireNothingLeft(t, mark, temporary)
		})
	}
}

// The lab, with a kernel, leaves nothing either.
func TestLabLeavesNothing(t *testing.T) {
	s := readySite(t)
	program := filepath.Join(t.TempDir(), "nasml")
	out, err := exec.Command("go", "build", "-o", program, "../cmd/nasml").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, end := range ends {
		t.Run(end.String(), func(t *testing.T) {
			port, err := choosePort(localhost, 0)
			require.NoError(t, err)
			cmd := exec.Command(program, "lab", "--no-browser", "--port", strconv.Itoa(port))
			cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
			mark, temporary := start(t, cmd)
			startKernel(t, s, port)
			require.Eventually(t, func() bool {
				made, _ := filepath.Glob(filepath.Join(temporary, "nasml-*", "gonb_*"))
				return len(made) > 0
			}, time.Minute, 50*time.Millisecond, "no kernel")
			require.NoError(t, cmd.Process.Signal(end))
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				require.NoError(t, err)
			}
			requireNothingLeft(t, mark, temporary)
		})
	}
}

// startKernel asks a lab for a kernel when it is up.
func startKernel(t *testing.T, s *site, port int) {
	t.Helper()
	for range 1200 {
		if token, ok := labToken(t, s, port); ok {
			address := fmt.Sprintf("http://127.0.0.1:%d/api/kernels?token=%s", port, url.QueryEscape(token))
			kernel := bytes.NewBufferString(`{"name": "gonb"}`)
			if answer, err := http.Post(address, "application/json", kernel); err == nil {
				require.NoError(t, answer.Body.Close())
				require.Equal(t, http.StatusCreated, answer.StatusCode)
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("JupyterLab was not up after two minutes")
}
