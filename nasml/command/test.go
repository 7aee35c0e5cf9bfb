package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nasml/lab/nasml/data"
)

type testCmd struct {
	Short   bool     `help:"Skip the long tests, the notebooks and the browser."`
	Only    string   `help:"Only the Go tests of that name, and no notebooks; TestBrowser: the browser." name:"run" placeholder:"REGEXP"`
	Package []string `help:"Only the Go tests of these packages, such as ./plots, and no notebooks." arg:"" optional:""`
	Kills   uint     `help:"Instead: kill workers so often, at random moments, and compare what they leave with unbroken runs." placeholder:"N"`

	KillSeed uint64 `help:"Draw the moments from this seed, as such a run names it (default: another each time)." placeholder:"SEED"`
}

// killsEnv is how many workers TestKills kills; killSeedEnv draws the moments again, as such a run names them.
const killsEnv, killSeedEnv = "NASML_TEST_KILLS", "NASML_TEST_KILL_SEED"

// Run runs vet, the Go tests, the notebooks and the browser test. Each runs even if another fails; a summary comes
// last.
func (v *testCmd) Run(ctx context.Context, c console, s *site) error {
	t := &testRun{site: s, console: c}
	defer t.cleanUp()
	if v.Kills > 0 {
		t.env = []string{fmt.Sprintf("%s=%d", killsEnv, v.Kills)}
		if v.KillSeed > 0 {
			t.env = append(t.env, fmt.Sprintf("%s=%d", killSeedEnv, v.KillSeed))
		}
		cmd := t.command(ctx, "go", "test", "./nasml/command", "-run=^TestKills$", "-count=1", "-timeout=0", "-v")
		cmd.Stdout = t.Out
		return cmd.Run()
	}
	if err := s.setup(ctx, c); err != nil {
		return err
	}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	packages := v.Package
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	t.part(ctx, "go vet", func() error {
		cmd := t.command(ctx, "go", append([]string{"vet"}, packages...)...)
		cmd.Stdout = t.Out
		return cmd.Run()
	})
	t.part(ctx, "go test", func() error { return t.goTest(ctx, v.goFlags(packages)) })
	if v.Only == "" && !v.Short && len(v.Package) == 0 {
		t.notebooks(ctx)
	}
	if v.ofBrowser() {
		t.part(ctx, "browser", func() error { return t.browser(ctx, cmp.Or(v.Only, "^"+browserTest+"$")) })
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return t.summary()
}

func (v *testCmd) ofBrowser() bool {
	if v.Only == "" {
		return !v.Short && len(v.Package) == 0
	}
	return strings.Contains(v.Only, browserTest)
}

func (v *testCmd) goFlags(packages []string) []string {
	flags := []string{"-timeout=20m", "-skip=^" + browserTest + "$"} // which has its own part
	if v.Short {
		flags = append(flags, "-short")
	}
	if v.Only != "" {
		flags = append(flags, "-run="+v.Only)
	}
	return append(flags, packages...)
}

// testRun is one run of all tests, with an empty store, so that notebooks compute what they show.
type testRun struct {
	*site
	console
	scratch string   // folder for the store and the copies of the notebooks
	env     []string // settings of every test
	notes   []string // what a reader of the summary has to know
	failed  []string // the parts that failed

	mu                        sync.Mutex // guards what the parts count, and their lines
	passed, failures, skipped int
}

func (t *testRun) prepare(ctx context.Context) (err error) {
	if err = os.MkdirAll(t.path("test"), 0o755); err == nil {
		t.scratch, err = os.MkdirTemp(t.path("test"), "run-")
	}
	if err != nil {
		return fmt.Errorf("making the tests' folder: %w", err)
	}
	t.env = []string{"NASML_STORE=" + filepath.Join(t.scratch, "store")}
	if err := t.findData(ctx); err != nil {
		return err
	}
	if lacking := t.lacking(); len(lacking) > 0 {
		t.notes = append(t.notes, fmt.Sprintf("tests that need %s are skipped: `go tool nasml data` says what is "+
			"missing and fetches it, and makes the run whole", strings.Join(lacking, ", ")))
	}
	return nil
}

func (t *testRun) lacking() []string {
	var names []string
	for _, set := range []data.Name{data.MNIST, data.CIFAR10, data.IMDb, nasbench} {
		if t.has(set) != nil {
			names = append(names, string(set))
		}
	}
	return names
}

func (t *testRun) cleanUp() {
	if err := os.RemoveAll(t.scratch); err != nil {
		t.logf("the tests' folder could not be removed: %v", err)
	}
}

func (t *testRun) part(ctx context.Context, name string, run func() error) {
	if ctx.Err() != nil {
		return
	}
	t.logf("%s …", name)
	begin := time.Now()
	var skip skipped
	err := run()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.As(err, &skip):
		t.skipped++
		t.notes = append(t.notes, fmt.Sprintf("%s: not run: %s", name, skip))
		_, _ = fmt.Fprintf(t.Out, "skip  %s: %s\n", name, skip)
	case err != nil:
		t.failed = append(t.failed, name)
		_, _ = fmt.Fprintf(t.Out, "FAIL  %s: %v\n", name, err)
	default:
		_, _ = fmt.Fprintf(t.Out, "ok    %s  %.1fs\n", name, time.Since(begin).Seconds())
	}
}

type skipped string

func (s skipped) Error() string { return string(s) }

func (t *testRun) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.Root, t.site.env(t.env...), t.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	return cmd
}

func (t *testRun) goTest(ctx context.Context, args []string) error {
	cmd := t.command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	t.count(events)
	return cmd.Wait()
}

// testEvent is a line of `go test -json` (see go doc test2json).
type testEvent struct{ Action, Package, Test, Output string }

// count prints the lines of packages, and those of tests that fail.
func (t *testRun) count(events io.Reader) {
	output := map[string]*strings.Builder{} // of a test, until it ends
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20) // a test may print much on one line
	for lines.Scan() {
		var e testEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			_, _ = fmt.Fprintln(t.Out, lines.Text()) // not test2json's
			continue
		}
		name := e.Package + "." + e.Test
		if output[name] == nil {
			output[name] = &strings.Builder{}
		}
		switch e.Action {
		case "output":
			if e.Test != "" {
				output[name].WriteString(e.Output)
			} else if e.Output != "PASS\n" { // go test drops it, too, where it is not verbose
				_, _ = fmt.Fprint(t.Out, e.Output)
			}
		case "build-output":
			_, _ = fmt.Fprint(t.Out, e.Output)
		case "pass", "fail", "skip":
			t.end(e, output[name].String())
			delete(output, name)
		}
	}
}

func (t *testRun) end(e testEvent, output string) {
	if e.Test == "" {
		return // a package: its line has been printed
	}
	switch e.Action {
	case "pass":
		t.passed++
	case "fail":
		t.failures++
		_, _ = fmt.Fprint(t.Out, output)
	case "skip":
		t.skipped++
		_, _ = fmt.Fprintf(t.Out, "skip  %s.%s: %s\n", strings.TrimPrefix(e.Package, modulePath+"/"), e.Test,
			skipReason(output))
	}
}

func skipReason(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			reason = line
		}
	}
	return reason
}

func (t *testRun) notebooks(ctx context.Context) {
	copied := os.CopyFS(filepath.Join(t.scratch, "notebooks"), os.DirFS(filepath.Join(t.Root, "notebooks")))
	files, err := t.chooseNotebooks(nil)
	if err := errors.Join(copied, err); err != nil {
		t.part(ctx, "notebooks", func() error { return err })
		return
	}
	var group errgroup.Group
	group.SetLimit(notebooksTogether)
	for _, file := range files {
		group.Go(func() error {
			t.notebook(ctx, file)
			return nil
		})
	}
	_ = group.Wait() // each part has told its own
}

const notebooksTogether = 2

func (t *testRun) notebook(ctx context.Context, file string) {
	name := t.relative(file)
	t.part(ctx, name, func() error {
		if err := t.lacks(file); err != nil {
			return err
		}
		err := t.runNotebook(ctx, t.console, filepath.Join(t.scratch, name),
			notebookRun{timeout: 15 * time.Minute, env: append(slices.Clone(t.env), "NASML_SCALE=quick")})
		t.tally(err)
		return err
	})
}

// lacks is a reason to skip a notebook: data that a test must not, or cannot, download.
func (t *testRun) lacks(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var notebook struct {
		Metadata struct {
			NASML struct{ Data []data.Name } `json:"nasml"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &notebook); err != nil {
		return fmt.Errorf("%s is not a notebook: %w", t.relative(file), err)
	}
	for _, set := range notebook.Metadata.NASML.Data {
		if err := t.has(set); err != nil {
			return skipped(fmt.Sprintf("needs %s: %v", set, err))
		}
	}
	return nil
}

// nasbench is how notebooks call the table of NAS-Bench-201.
const nasbench = "nasbench"

func (t *testRun) has(set data.Name) error {
	if set == nasbench {
		_, err := data.LoadNASBench201("")
		return err
	}
	files, err := data.Status(set)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.State != data.Present && f.State != data.Incomplete {
			return f.Problem
		}
	}
	return nil
}

func (t *testRun) tally(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failures++
	} else {
		t.passed++
	}
}

// browser runs JupyterLab in Chromium, if it is installed. It runs after the notebooks and uses their trials.
func (t *testRun) browser(ctx context.Context, test string) error {
	if chromium() == "" {
		return skipped("no Chromium in PATH (Debian: apt install chromium)")
	}
	const what = "Playwright into .nasml/venv-browser, for the browser test (half a minute, downloads 50 MB)"
	playwright := t.venvStep("venv-browser", what, requirementsBrowser, 10, 200)
	if err := t.bring(ctx, t.console, []step{playwright}); err != nil {
		return err
	}
	t.env = append(t.env, browserVar+"=1", "NASML_SCALE=quick")
	return t.goTest(ctx, []string{"-count=1", "-timeout=20m", "-run=" + test, "./nasml/command"})
}

// browserVar enables the browser test, which needs what only this command sets up.
const browserVar = "NASML_TEST_BROWSER"

const browserTest = "TestBrowser"

func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// findData finds real data for the tests, for this process and its children: the user's, else a copy beside the
// checkout, else a download. If there is none, the figures run on synthetic data, and the summary says so.
func (t *testRun) findData(ctx context.Context) error {
	if os.Getenv("NASML_DATA") != "" || t.has(data.MNIST) == nil {
		return nil
	}
	if unpack := filepath.Join(t.Root, "..", "shared", "data", "unpack.go"); exists(unpack) {
		dir := t.path("data")
		err := t.bring(ctx, t.console, []step{{
			name: "data", what: "unpacking ../shared/data into .nasml/data (10 seconds)",
			inputs: []string{dir}, outputs: []string{filepath.Join(dir, "mnist")}, needMB: 250,
			run: func(ctx context.Context, j *job) error {
				return j.command(ctx, t.Root, t.site.env(), "go", "run", unpack, dir)
			},
		}})
		return errors.Join(err, os.Setenv("NASML_DATA", dir))
	}
	t.logf("downloading MNIST (12 MB)")
	if err := data.Fetch(ctx, data.MNIST, nil); err != nil {
		t.env = append(t.env, "NASML_OFFLINE_DATA=synthetic")
		t.notes = append(t.notes, fmt.Sprintf("the notebooks ran on SYNTHETIC data: downloading MNIST: %v", err))
	}
	return ctx.Err()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (t *testRun) summary() error {
	for _, note := range t.notes {
		_, _ = fmt.Fprintf(t.Out, "note: %s\n", note)
	}
	_, _ = fmt.Fprintf(t.Out, "%d passed, %d failed, %d skipped\n", t.passed, t.failures, t.skipped)
	if len(t.failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(t.failed, ", "))
	}
	return nil
}
