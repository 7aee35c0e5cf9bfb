package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/nasml/lab/internal/files"
)

// job is a running step of the set-up. It shows progress and keeps its programs' output in case one fails.
type job struct {
	site *site
	console
	title string
	lock  *os.File // the set-up's

	mu   sync.Mutex
	last string // what the running program does now
}

// do runs the step and stamps it. Its programs print to .nasml/setup.log.
func (j *job) do(ctx context.Context, st step) error {
	if err := j.checkRoom(st.needMB); err != nil {
		return err
	}
	_ = os.Remove(j.site.stamp(st))
	begin := time.Now()
	stop := j.show(begin)
	err := st.run(ctx, j)
	if err == nil {
		err = files.WriteBytes(j.site.stamp(st), st.hash())
	}
	stop()
	if err != nil {
		return explain(err)
	}
	if j.title != "" {
		j.logf("set-up: done in %s", time.Since(begin).Round(time.Second/10))
	}
	return nil
}

// show prints the step's title and, in a terminal, the elapsed time.
func (j *job) show(begin time.Time) (stop func()) {
	if j.title == "" {
		return func() {}
	}
	j.logf("set-up: %s", j.title)
	if !isTerminal(j.Err) {
		return func() {}
	}
	f := j.Err.(*os.File)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			j.mu.Lock()
			line := fmt.Sprintf("nasml: %s %s", time.Since(begin).Round(time.Second), j.last)
			j.mu.Unlock()
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && len(line) >= width && width > 0 {
				line = line[:width-1]
			}
			_, _ = fmt.Fprintf(f, "\r\x1b[K%s", line)
			select {
			case <-quit:
				_, _ = fmt.Fprint(f, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// Write takes a program's output for the progress line.
func (j *job) Write(p []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(p)), "\n")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = "(" + strings.TrimSpace(lines[len(lines)-1]) + ")"
	return len(p), nil
}

// command runs a program without input. On failure the error has what it printed.
func (j *job) command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return j.run(cmd, (*exec.Cmd).Run, name, args)
}

func (j *job) guarded(ctx context.Context, dir string, env []string, name string, args ...string) error {
	const execute = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
	cmd := j.site.guarded(ctx, append([]string{"-c", execute, name}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	return j.run(cmd, runGuarded, name, args)
}

func (j *job) run(cmd *exec.Cmd, run func(*exec.Cmd) error, name string, args []string) error {
	log, err := os.OpenFile(j.site.path("setup.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the set-up's log: %w", err)
	}
	defer log.Close()
	_, _ = fmt.Fprintf(log, "\n$ %s %s\n", name, strings.Join(args, " "))
	var output bytes.Buffer
	cmd.Stdout = io.MultiWriter(&output, log, j)
	cmd.Stderr = cmd.Stdout
	// A program that outlives a killed set-up keeps the next one waiting.
	cmd.ExtraFiles = []*os.File{j.lock}
	if err := run(cmd); err != nil {
		return &commandError{err: err, output: output.String(), log: j.site.relative(log.Name()),
			line: filepath.Base(name) + " " + strings.Join(args[:min(3, len(args))], " ")}
	}
	return nil
}

type commandError struct {
	err       error
	line      string // the command, shortened
	output    string
	log       string
	diagnosis string
}

func (e *commandError) Unwrap() error { return e.err }

// Error is the diagnosis, or else the end of what the program printed.
func (e *commandError) Error() string {
	if e.diagnosis != "" {
		return e.diagnosis
	}
	lines := strings.Split(strings.TrimSpace(e.output), "\n")
	return fmt.Sprintf("%s failed (%v), all of it is in %s:\n%s", e.line, e.err, e.log,
		strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

// room says what the set-up takes, for a message about a full disk.
const room = "the set-up takes about 1 GB in .nasml, 2 GB in Go's caches (go env GOCACHE GOMODCACHE) and 0.5 GB in " +
	"pip's cache and the temporary folder"

// diagnoses are the failures that a user can fix, by what pip, go or the C compiler print. The first match counts.
var diagnoses = []struct {
	pattern *regexp.Regexp
	advice  string
}{
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`),
		"the disk is full (%s): " + room + "; make room and run the command again"},
	{regexp.MustCompile(`DO NOT MATCH THE HASHES`),
		"a downloaded package is not the pinned one (%s): run `.nasml/venv/bin/python -m pip cache purge` and the " +
			"command again; if it stays so, the package index is not to be trusted"},
	{regexp.MustCompile(`(?i)failed to establish a new connection|name resolution|network is unreachable|` +
		`no such host|connection refused|connection timed out|ProxyError|read timed out|i/o timeout|` +
		`ConnectionResetError|Max retries exceeded`),
		"no network (%s): the set-up downloads packages from PyPI and Go's module proxy; connect, or set " +
			"HTTPS_PROXY, PIP_INDEX_URL or GOPROXY, and run the command again"},
	{regexp.MustCompile(`(?i)CERTIFICATE_VERIFY_FAILED|certificate signed by unknown authority`),
		"a server's certificate is not known here (%s): set PIP_CERT and SSL_CERT_FILE to your network's " +
			"certificates and run the command again"},
	{regexp.MustCompile(`(?i)ensurepip is not|No module named '?(venv|ensurepip)`), noVenv + " (%s)"},
	{regexp.MustCompile(`(?i)no matching distribution found.*|is not a supported wheel.*`),
		"a package has no build for this Python or machine (%s): the set-up is tried with CPython 3.10 to 3.13 on " +
			"Linux with glibc"},
	{regexp.MustCompile(`(?i)C compiler .* not found|stdlib\.h: No such file|cannot find -lc\b`),
		"no C compiler with its headers (%s): install one (Debian: apt install gcc libc6-dev) and " +
			"run the command again"},
	{regexp.MustCompile(`go\.mod requires go >= .*`),
		"Go is too old (%s): install the version that go.mod names from https://go.dev/dl, or unset GOTOOLCHAIN"},
}

// explain turns a known failure into one line that says what to do.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf(diagnoses[0].advice, err)
	}
	failed, ok := errors.AsType[*commandError](err)
	if !ok {
		return err
	}
	for line := range strings.Lines(failed.output) {
		for _, d := range diagnoses {
			if d.pattern.MatchString(line) {
				failed.diagnosis = fmt.Sprintf(d.advice, ending(strings.TrimSpace(line)))
				return failed
			}
		}
	}
	return failed
}

// ending keeps the end of a long line, which has the cause.
func ending(line string) string {
	const most = 150
	if len(line) <= most {
		return line
	}
	return "… " + strings.ToValidUTF8(line[len(line)-most:], "")
}

func (j *job) checkRoom(needMB uint64) error {
	var disk syscall.Statfs_t
	if needMB == 0 || syscall.Statfs(j.site.path(), &disk) != nil {
		return nil
	}
	free := uint64(disk.Bavail) * uint64(disk.Bsize) >> 20 //nolint:unconvert // their types differ between systems
	if free < needMB {
		return fmt.Errorf(
			"the disk that holds %s has %d MB free, and this step takes %d MB there: %s; make room and run the "+
				"command again", j.site.path(), free, needMB, room)
	}
	return nil
}
