package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nasml/lab/nasml/catalog"
)

//go:embed runner.py
var runner string

type notebooksCmd struct {
	File    []string      `arg:"" optional:"" help:"Notebooks to execute. Without any: all in notebooks/."`
	Scale   string        `complete:"scale" help:"Scale of the figures, quick or paper (large is for run), for notebooks that do not set their own." env:"NASML_SCALE"`
	Timeout time.Duration `help:"Longest time for one cell, such as 30m. Without it: no limit."`
}

func (v *notebooksCmd) Run(ctx context.Context, c console, s *site) error {
	if err := checkScale(v.Scale); err != nil {
		return err
	}
	files, err := s.chooseNotebooks(v.File)
	if err != nil {
		return err
	}
	if err := s.setup(ctx, c); err != nil {
		return err
	}
	failed := 0
	for _, file := range files {
		err := s.runNotebook(ctx, c, file,
			notebookRun{write: true, timeout: v.Timeout, env: []string{"NASML_SCALE=" + v.Scale}})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed++
			c.logf("%v; the file is left as it was", err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d notebooks failed", failed, len(files))
	}
	return nil
}

func checkScale(scale string) error {
	if scale != "" && scale != "quick" && scale != "paper" {
		return catalog.Usagef("unknown scale %q (--scale or NASML_SCALE): a notebook takes quick or paper, "+
			"and large is for run, where a figure has it", scale)
	}
	return nil
}

func (s *site) chooseNotebooks(named []string) ([]string, error) {
	for _, file := range named {
		if info, err := os.Stat(file); err != nil {
			return nil, catalog.Usagef("no notebook %s: %v", file, err)
		} else if info.IsDir() || filepath.Ext(file) != ".ipynb" {
			return nil, catalog.Usagef("%s must be a notebook, a file that ends in .ipynb", file)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	var found []string
	err := filepath.WalkDir(filepath.Join(s.Root, "notebooks"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."): // .ipynb_checkpoints
			return fs.SkipDir
		case filepath.Ext(path) == ".ipynb" && d.Name() != "index.ipynb": // which has no code
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for notebooks: %w", err)
	}
	return found, nil
}

type notebookRun struct {
	write   bool          // outputs into the file
	timeout time.Duration // for a cell; 0: none
	env     []string      // settings, besides those of the set-up
}

// runNotebook executes a notebook with a fresh kernel. Failing cells, failing shell lines and unknown magics are
// errors, which name the notebook and the cell.
func (s *site) runNotebook(ctx context.Context, c console, file string, r notebookRun) error {
	name := s.relative(file)
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	if err := os.MkdirAll(s.path("jupyter"), 0o755); err != nil {
		return fmt.Errorf("making the folder of the kernel's log: %w", err)
	}
	log, err := os.Create(s.path("jupyter", "kernel.log"))
	if err != nil {
		return fmt.Errorf("making the kernel's log: %w", err)
	}
	defer log.Close()
	cmd := s.guarded(ctx, "-c", runner, file,
		strconv.FormatFloat(r.timeout.Seconds(), 'f', -1, 64), map[bool]string{true: "1", false: "0"}[r.write])
	report := &reportWriter{console: c, name: name}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Dir(file), s.env(r.env...), report, log
	begin := time.Now()
	if err := runGuarded(cmd); err != nil {
		return fmt.Errorf("%s failed: %s (the kernel's log: %s)", name, report.end(err), s.relative(log.Name()))
	}
	c.logf("%s: done in %s, its cells in %s s", name, time.Since(begin).Round(time.Second/10), report.took())
	return nil
}

// reportWriter shows which cell runs, and keeps the runner's output.
type reportWriter struct {
	console
	name string
	text strings.Builder
}

func (w *reportWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if strings.HasPrefix(line, "cell ") && !strings.Contains(line, ":") {
			w.logf("%s: %s", w.name, strings.TrimSpace(line))
		}
	}
	return w.text.Write(p)
}

func (w *reportWriter) took() string {
	_, seconds, _ := strings.Cut(w.text.String(), "\ntook ")
	return strings.Join(strings.Fields(seconds), ", ")
}

func (w *reportWriter) end(err error) string {
	lines := strings.Split(strings.TrimSpace(w.text.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

//go:embed guard.py
var guard string

// guarded is a Python program that leaves nothing behind, however it or this process ends: neither processes, such as
// kernels in sessions of their own, nor temporary folders. It is in a session of its own, where neither a terminal's
// Ctrl-C nor its end reaches it: it gets SIGTERM when the context ends, and some seconds to stop cleanly.
func (s *site) guarded(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.python("venv"), append([]string{"-c", guard}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	return cmd
}

// runGuarded runs it. The pipe that is its stdin closes when this process ends, even by SIGKILL, which ends it.
func runGuarded(cmd *exec.Cmd) (err error) {
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, alive.Close())
	}
	return cmd.Wait() // which closes alive
}
