package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/internal/kernels"
)

var quiet = console{io.Discard, io.Discard}

// counted is a step that writes one file and counts how often it runs.
func counted(s *site, runs *atomic.Int64, inputs ...string) step {
	return step{
		name: "counted", inputs: inputs, outputs: []string{s.path("made")},
		run: func(context.Context, *job) error {
			runs.Add(1)
			return files.WriteBytes(s.path("made"), "made")
		},
	}
}

func TestBringRunsAStepWhenItHasTo(t *testing.T) {
	s := &site{Root: t.TempDir()}
	var runs atomic.Int64
	bring := func(inputs ...string) {
		require.NoError(t, s.bring(t.Context(), quiet, []step{counted(s, &runs, inputs...)}))
	}
	bring("a")
	require.EqualValues(t, 1, runs.Load())
	bring("a")
	require.EqualValues(t, 1, runs.Load(), "nothing has changed")
	bring("b")
	require.EqualValues(t, 2, runs.Load(), "an input has changed")
	require.NoError(t, os.Remove(s.path("made")))
	bring("b")
	require.EqualValues(t, 3, runs.Load(), "an output is gone")
	require.NoError(t, os.Remove(s.path("made")))
	require.NoError(t, os.Symlink("nowhere", s.path("made")))
	bring("b")
	require.EqualValues(t, 4, runs.Load(), "an output leads nowhere")
}

func TestBringRunsAStepAgainThatBrokeOff(t *testing.T) {
	s := &site{Root: t.TempDir()}
	var runs atomic.Int64
	st := counted(s, &runs, "b")
	require.NoError(t, s.bring(t.Context(), quiet, []step{counted(s, &runs, "a")}))

	st.run = func(context.Context, *job) error { return errors.New("broke off") }
	require.ErrorContains(t, s.bring(t.Context(), quiet, []step{st}), "broke off")
	// The files of "a" are still there, and yet "a" is not done any more:
	// what broke off may have changed them.
	require.False(t, s.done(counted(s, &runs, "a")))
	require.NoError(t, s.bring(t.Context(), quiet, []step{counted(s, &runs, "b")}))
	require.EqualValues(t, 2, runs.Load())
}

func TestBringTakesTurns(t *testing.T) {
	s := &site{Root: t.TempDir()}
	var runs atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := s.bring(t.Context(), quiet, []step{counted(s, &runs, "a")}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 1, runs.Load())
}

func TestLockLastsAsLongAsTheProgramsThatHaveIt(t *testing.T) {
	s := &site{Root: t.TempDir()}
	lock, err := s.lock(t.Context(), quiet)
	require.NoError(t, err)
	orphan := exec.Command("sleep", "600")
	orphan.ExtraFiles = []*os.File{lock}
	require.NoError(t, orphan.Start())
	t.Cleanup(func() { _ = orphan.Process.Kill() })
	require.NoError(t, lock.Close()) // as if this process had been killed

	other, err := os.Open(s.path("lock"))
	require.NoError(t, err)
	defer other.Close()
	require.ErrorIs(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	require.NoError(t, orphan.Process.Kill())
	require.Error(t, orphan.Wait(), "killed")
	lock, err = s.lock(t.Context(), quiet)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func TestExplain(t *testing.T) {
	for name, test := range map[string]struct{ output, want string }{
		"disk": {"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
			"the disk is full"},
		"network": {"WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(': Failed " +
			"to establish a new connection: [Errno -3] Temporary failure in name resolution')': " +
			"/simple/anyio/\nERROR: No matching distribution found for anyio==4.16.0\n", "no network"},
		"go proxy": {"main.go:4:2: example.org/x@v1.0.0: Get \"https://proxy.example.org/x\": dial tcp: lookup " +
			"proxy.example.org: no such host\n", "no network"},
		"hash": {"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n", "not the pinned one"},
		"platform": {"ERROR: No matching distribution found for pyzmq==27.3.0\n",
			"no build for this Python or machine"},
		"venv": {"The virtual environment was not created successfully because ensurepip is not\navailable.\n",
			"apt install python3-venv"},
		"C library": {"_cgo_export.c:3:10: fatal error: stdlib.h: No such file or directory\n",
			"apt install gcc libc6-dev"},
		"certificate": {"SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify " +
			"failed'))\n", "PIP_CERT"},
	} {
		t.Run(name, func(t *testing.T) {
			err := explain(
				&commandError{err: errors.New("exit status 1"), output: "first\n" + test.output, log: "setup.log"},
			)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
	unknown := explain(
		&commandError{err: errors.New("exit status 1"), line: "pip install", output: "a\nwonder\n", log: "setup.log"},
	)
	require.ErrorContains(t, unknown, "wonder", "what cannot be explained is shown")
	require.ErrorContains(t, explain(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), "the disk is full")
}

func TestCommandFailsWithItsOutput(t *testing.T) {
	s := &site{Root: t.TempDir()}
	lock, err := s.lock(t.Context(), quiet)
	require.NoError(t, err)
	defer lock.Close()
	j := &job{site: s, console: quiet, lock: lock}
	err = j.command(t.Context(), s.Root, os.Environ(), "sh", "-c", "echo some words; exit 3")
	require.ErrorContains(t, err, "some words")
	require.ErrorContains(t, err, "exit status 3")
	require.Contains(t, read(t, s.path("setup.log")), "some words")
}

func TestFindPythonSaysWhatItLacks(t *testing.T) {
	fake := func(script string) string {
		path := filepath.Join(t.TempDir(), "python")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		return path
	}
	for name, test := range map[string]struct{ script, want string }{
		"too old":  {"printf '3 8\\n/usr/bin/python3.8\\n\\n'", "3.10 or newer is needed"},
		"no venv":  {"printf '3 12\\n/usr/bin/python3.12\\nensurepip\\n'", "apt install python3-venv"},
		"strange":  {"echo hello", "does not answer like a Python"},
		"breaking": {"exit 1", "asking"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NASML_PYTHON", fake(test.script))
			_, err := findPython(t.Context(), 10)
			require.ErrorContains(t, err, test.want)
		})
	}
	t.Setenv("NASML_PYTHON", fake("printf '3 10\\n/usr/bin/python3.10\\n\\n'"))
	path, err := findPython(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, "/usr/bin/python3.10", path)

	t.Setenv("NASML_PYTHON", "")
	t.Setenv("PATH", t.TempDir())
	_, err = findPython(t.Context(), 10)
	require.ErrorContains(t, err, "no python3 found")
}

func TestSetupInAFolderOfItsOwn(t *testing.T) {
	root, made := t.TempDir(), filepath.Join(t.TempDir(), "made")
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+modulePath+"\n"), 0o644))
	t.Chdir(root)
	t.Setenv(setupVar, made)
	s, err := openSite(t.Context())
	require.NoError(t, err)
	var runs atomic.Int64
	st := counted(s, &runs, s.places()...)
	require.NoError(t, s.bring(t.Context(), quiet, []step{st}))
	require.FileExists(t, filepath.Join(made, "made"))
	require.NoDirExists(t, filepath.Join(root, ".nasml"))
	require.Contains(t, s.kernelspec(kernelGoFlags), filepath.Join(made, "bin", "gonb"))
	require.Contains(t, s.env(), "JUPYTER_PATH="+filepath.Join(made, "share", "jupyter"))

	t.Setenv(setupVar, made+"2")
	other, err := openSite(t.Context())
	require.NoError(t, err)
	for i, st := range other.steps() {
		if st.name != "kernel" { // whose input is all that it makes
			require.NotEqual(t, s.steps()[i].hash(), st.hash(), "%s holds the set-up's path", st.name)
		}
	}

	for _, spelled := range []string{filepath.Join(root, ".nasml"), ".nasml", root + "/./.nasml/"} {
		t.Setenv(setupVar, spelled)
		same, err := openSite(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{same.Root}, same.places(), "the default, spelled out, is no other place")
	}

	t.Setenv(setupVar, "")
	usual, err := openSite(t.Context())
	require.NoError(t, err)
	require.Equal(t, filepath.Join(usual.Root, ".nasml", "venv"), usual.path("venv"))
}

func TestKernelspecKeepsDollars(t *testing.T) {
	s := &site{Root: "/home/a$b", Go: goFacts{GOROOT: "/usr/local/go"}}
	require.Contains(t, s.kernelspec(kernelGoFlags),
		`"PATH": "/home/a$$b/.nasml/bin:/home/a$$b/.nasml/gopls:/usr/local/go/bin:${PATH}"`)
}

func TestSetupBuildsTheKernels(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is a CPU plugin for Linux only")
	}
	s := &site{Root: t.TempDir(), Go: goFacts{CGO_ENABLED: "1"}}
	var said bytes.Buffer
	j := &job{site: s, console: console{io.Discard, &said}}
	compiler := func(script string) {
		file := filepath.Join(t.TempDir(), "cc")
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755))
		t.Setenv("CC", file)
	}
	compiler(`while [ $# -gt 0 ]; do if [ "$1" = -o ]; then : > "$2"; fi; shift; done`)
	require.NoError(t, s.buildKernels(t.Context(), j))
	require.FileExists(t, s.path("kernels", kernels.FileName()))
	require.Empty(t, said.String())

	compiler("echo no such vectors; exit 1")
	require.NoError(t, s.buildKernels(t.Context(), j), "XLA's own operations do")
	require.Contains(t, said.String(), "no kernels, XLA's own operations are used")
	require.Contains(t, said.String(), "no such vectors")
	require.NoFileExists(t, s.path("kernels", kernels.FileName()), "old ones are gone")
}

// What a figure needs to be computed has neither JupyterLab nor GoNB, and what
// the notebooks need comes into the same environment.
func TestComputingNeedsNoNotebooks(t *testing.T) {
	s := &site{Root: t.TempDir(), Go: goFacts{CGO_ENABLED: "1"}}
	xla := pinned(requirements, "xla-cpu-pjrt")
	require.Regexp(t, `^xla-cpu-pjrt==\S+ ;[^\n]*\\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+$`, xla)
	require.Contains(t, requirements, xla)
	require.Empty(t, pinned(requirements, "xla-cpu"), "a whole name")
	var names []string
	for _, st := range s.computing() {
		names = append(names, st.name)
		for _, path := range st.outputs {
			require.NotContains(t, path, "jupyter")
		}
	}
	require.Equal(t, []string{"xla", "plugin", "c-kernels"}, names)
	for i, st := range s.steps()[:len(names)] {
		require.Equal(t, s.computing()[i].hash(), st.hash(), "the set-up of all does no step twice")
	}
}
