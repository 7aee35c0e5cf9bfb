package command

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/internal/kernels"
)

//go:embed requirements.txt
var requirements string

//go:embed requirements-cuda.txt
var requirementsCUDA string

//go:embed requirements-browser.txt
var requirementsBrowser string

type setupCmd struct {
	CUDA    bool `name:"cuda" help:"Add the CUDA 13 plugin and NVIDIA's libraries (downloads 2.5 GB, takes 4 GB); needs an NVIDIA GPU with a driver for CUDA 13."`
	Buckets bool `help:"Build the program for stores in buckets, too, which else the first call with such a store builds."`
	Force   bool `help:"With --cuda: install the plugin where no GPU is found, too."`
}

func (v *setupCmd) Run(ctx context.Context, c console, s *site) error {
	if err := s.setup(ctx, c); err != nil {
		return err
	}
	if v.CUDA {
		if err := s.setupCUDA(ctx, c, v.Force); err != nil {
			return err
		}
	}
	if v.Buckets {
		if _, err := s.buildBuckets(ctx, c); err != nil {
			return err
		}
	}
	s.bringCompletion(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.logf("everything is set up in %s", s.path())
	return nil
}

// step is a part of the set-up. It is done if its stamp has the hash of its inputs and its outputs exist. The stamp is
// written last, so that an interrupted step runs again.
type step struct {
	name    string
	what    string   // for the progress line: what is made, how long it takes; empty for a moment's work
	inputs  []string // all that the outputs depend on
	outputs []string // files and folders that have to be there
	needMB  uint64   // room that it takes in .nasml
	run     func(context.Context, *job) error
}

// setup brings .nasml up to date, within milliseconds if nothing is to do.
func (s *site) setup(ctx context.Context, c console) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.bring(ctx, c, s.steps())
}

// steps lists the set-up in order. Inputs include the paths of checkout and set-up, because virtual environments and
// the kernel store absolute paths.
func (s *site) steps() []step {
	sums, _ := os.ReadFile(filepath.Join(s.Root, "go.sum")) // a broken go.sum fails in the build
	goInputs := append(s.places(), string(sums), s.Go.GOVERSION, s.Go.GOROOT, s.Go.CGO_ENABLED)
	return append(s.computing(), []step{
		{
			name: "venv", what: "JupyterLab into .nasml/venv (one to two minutes, downloads 50 MB)", needMB: 350,
			inputs:  append(s.places(), requirements),
			outputs: []string{s.path("venv", "bin", "jupyter-lab")},
			run: func(ctx context.Context, j *job) error {
				return j.install(ctx, "venv", "requirements.txt", requirements)
			},
		}, {
			name: "tools", what: "building GoNB and goimports into .nasml/bin (up to two minutes)",
			inputs:  append(slices.Clone(goInputs), s.goimports(), gonbEdits),
			outputs: []string{s.path("bin", "gonb"), s.path("bin", "goimports")},
			needMB:  60,
			run:     s.buildTools,
		}, {
			name: "warm", what: "building the packages, so that the first cell need not (up to three minutes)",
			inputs:  slices.Concat(goInputs, []string{s.Go.CC, linkInside}),
			outputs: []string{s.path("link")},
			run:     s.warmCache,
		}, {
			name: "kernel",
			inputs: slices.Concat(goInputs, []string{
				s.Go.CC, linkInside, s.kernelspec(""), labPageConfig, labSettings,
			}),
			outputs: []string{s.kernelFile()},
			run: func(context.Context, *job) error {
				config := s.path("jupyter", "config", "labconfig")
				return errors.Join(files.WriteBytes(s.kernelFile(), s.kernelspec(s.cellGoFlags())),
					files.WriteBytes(filepath.Join(config, "page_config.json"), labPageConfig),
					files.WriteBytes(filepath.Join(config, "default_setting_overrides.json"), labSettings))
			},
		},
	}...)
}

// computing are the steps that running figures needs, without notebooks. Both use one virtual environment, so that
// nothing is downloaded twice.
func (s *site) computing() []step {
	xla := pinned(requirements, "xla-cpu-pjrt")
	xlaStep := s.venvStep("venv", "XLA's CPU plugin into .nasml/venv (a minute, downloads 80 MB)", xla, 10, 350)
	xlaStep.name = "xla"
	xlaStep.inputs = append(s.places(), requirements) // changed ones begin with an empty environment
	return []step{
		xlaStep, {
			name:    "plugin",
			inputs:  append(s.places(), requirements),
			outputs: []string{s.cpuPlugin()},
			run:     s.linkCPUPlugin,
		}, {
			name: "c-kernels", what: "building the C kernels into .nasml/kernels (half a minute)",
			inputs: append(s.places(), kernels.FileName(), s.Go.CGO_ENABLED, s.Go.CC),
			run:    s.buildKernels,
		},
	}
}

// pinned are the lines of a lock file for one package.
func pinned(locked, name string) string {
	var out strings.Builder
	within := false
	for line := range strings.Lines(locked) {
		if !strings.HasPrefix(line, " ") {
			within = strings.HasPrefix(line, name+"==")
		}
		if within {
			out.WriteString(line)
		}
	}
	return out.String()
}

// bring runs the steps that are not done. Concurrent set-ups of a checkout take turns.
func (s *site) bring(ctx context.Context, c console, steps []step) error {
	missing := func() []step { return slices.DeleteFunc(slices.Clone(steps), s.done) }
	if len(missing()) == 0 {
		return nil
	}
	lock, err := s.lock(ctx, c)
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, st := range missing() { // again: another process may have done it meanwhile
		j := &job{site: s, console: c, title: st.what, lock: lock}
		if err := j.do(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) done(st step) bool {
	stamp, err := os.ReadFile(s.stamp(st))
	return err == nil && string(stamp) == st.hash() && // a link that leads nowhere does not exist
		!slices.ContainsFunc(st.outputs, func(path string) bool { return !exists(path) })
}

func (s *site) stamp(st step) string { return s.path("stamps", st.name) }

func (st step) hash() string {
	data, _ := json.Marshal([]any{st.name, st.inputs}) // strings always marshal
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// lock takes the set-up's lock, which is held until this process and its children have closed the file.
func (s *site) lock(ctx context.Context, c console) (*os.File, error) {
	if err := os.MkdirAll(s.path("stamps"), 0o755); err != nil {
		return nil, fmt.Errorf("making the set-up's folder: %w; the checkout has to be writable", err)
	}
	f, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the set-up's lock: %w", err)
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
		}
		if !said {
			c.logf("another set-up of this checkout is running: waiting for it")
		}
		if err := files.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// check reports what prevents a set-up. The command builds without a C compiler, XLA does not.
func (s *site) check() error {
	if s.Go.CGO_ENABLED != "1" && os.Getenv("GOMLX_BACKEND") != "go" {
		return fmt.Errorf(
			"no C compiler %q found (or CGO_ENABLED=0), which XLA needs: install one (Debian: apt install gcc "+
				"libc6-dev), or set GOMLX_BACKEND=go for the slow pure-Go backend", s.Go.CC)
	}
	for _, place := range s.places() {
		if strings.ContainsAny(place, ",:") {
			return fmt.Errorf(
				"the path of the checkout or of its set-up, %s, has a comma or a colon, which stands between paths "+
					"for GoNB and Python: move it to another folder", place)
		}
	}
	return nil
}

// venvStep makes a virtual environment of the locked packages with Python 3.minor or newer.
func (s *site) venvStep(name, what, locked string, minor int, needMB uint64) step {
	return step{
		name: name, what: what, needMB: needMB,
		inputs:  append(s.places(), locked),
		outputs: []string{s.python(name)},
		run: func(ctx context.Context, j *job) error {
			python, err := findPython(ctx, minor)
			if err != nil {
				return err
			}
			if err := os.RemoveAll(s.path(name)); err != nil { // half a one, or an old one
				return fmt.Errorf("removing the old virtual environment: %w", err)
			}
			if err := j.command(ctx, s.Root, s.env(), python, "-m", "venv", s.path(name)); err != nil {
				return err
			}
			return j.install(ctx, name, "requirements.txt", locked)
		},
	}
}

func (j *job) install(ctx context.Context, venv, name, locked string) error {
	file := j.site.path(venv, name)
	if err := files.WriteBytes(file, locked); err != nil {
		return err
	}
	return j.command(ctx, j.site.Root, j.site.env(), j.site.python(venv), "-m", "pip", "install",
		"--require-hashes", "--only-binary=:all:", "--no-input", "--disable-pip-version-check",
		"--progress-bar=off", "--retries=2", "--requirement", file)
}

// cpuPlugin is where go-xla looks for the CPU plugin. PyPI has one for Linux only.
func (s *site) cpuPlugin() string {
	if runtime.GOOS != "linux" {
		return s.path("pjrt")
	}
	return s.path("pjrt", "pjrt_c_api_cpu_plugin.so")
}

// goimportsSource is the folder of the goimports that the kernel calls, below the checkout.
const goimportsSource = "nasml/cmd/goimports"

func (s *site) goimports() string {
	text, _ := os.ReadFile(filepath.Join(s.Root, goimportsSource, "main.go")) // a missing one fails in the build
	return string(text)
}

// buildTools builds the kernel and its tools at the versions of go.mod.
func (s *site) buildTools(ctx context.Context, j *job) error {
	fresh := s.path("bin.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	source := s.path("gonb.new")
	defer os.RemoveAll(source)
	if err := os.RemoveAll(source); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	modfile, err := s.editedGoNB(ctx, source)
	if err != nil {
		return err
	}
	if err := j.command(ctx, s.Root, append(s.env(), "GOFLAGS="+kernelGoFlags),
		"go", "build", modfile, "-o", fresh+"/", gonbModule, "./"+goimportsSource); err != nil {
		return err
	}
	if err := os.RemoveAll(s.path("bin")); err != nil {
		return fmt.Errorf("removing the old tools: %w", err)
	}
	return os.Rename(fresh, s.path("bin"))
}

// buildKernels builds the C kernels. Without them XLA's own, slower operations are used.
func (s *site) buildKernels(ctx context.Context, j *job) error {
	if s.Go.CGO_ENABLED != "1" || runtime.GOOS != "linux" { // no XLA, no kernels
		return nil
	}
	if err := os.RemoveAll(s.path("kernels")); err != nil {
		return fmt.Errorf("removing the old kernels: %w", err)
	}
	if err := kernels.Build(ctx, s.path("kernels", kernels.FileName())); err != nil {
		if ctx.Err() != nil {
			return err
		}
		j.logf("no kernels, XLA's own operations are used: %v", err)
	}
	return nil
}

// warmCache builds what a cell builds, so that the first cell need not, and finds out whether Go's own linker can link
// it.
func (s *site) warmCache(ctx context.Context, j *job) error {
	return s.inCell(ctx, s.path("warm"), func(dir string, env []string) error {
		if err := j.command(ctx, dir, env, "go", "build", "-o", "warm", "."); err != nil {
			return err
		}
		link := ""
		if s.linksInside(ctx, dir, append(env, "GOFLAGS="+withLink(linkInside))) {
			link = linkInside
		}
		return errors.Join(ctx.Err(), files.WriteBytes(s.path("link"), link))
	}, j)
}

// inCell calls do in a folder that is set up like a cell's, with a program that imports all libraries, and removes it
// afterwards.
func (s *site) inCell(ctx context.Context, dir string, do func(dir string, env []string) error, j *job) error {
	list, err := s.libraries(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	defer os.RemoveAll(dir)
	program := "package main\n\nimport (\n\t_ \"" + strings.Join(list, "\"\n\t_ \"") + "\"\n\t\"" +
		modulePath + "/nasml/backend\"\n)\n\n" + warmMain
	if err := files.WriteBytes(filepath.Join(dir, "main.go"), program); err != nil {
		return err
	}
	env := append(s.env(), "GOFLAGS="+kernelGoFlags, "GOWORK=", "GOTOOLCHAIN=local")
	for _, args := range [][]string{{"mod", "init", "warm"}, {"work", "init", ".", s.Root}} {
		if err := j.command(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	return do(dir, env)
}

// warmMain opens the backend, which loads XLA's plugin and calls it.
const warmMain = `func main() {
	if _, err := backend.Open(); err != nil {
		panic(err)
	}
}
`

// labPageConfig disables JupyterLab's question about news, which also uses the network.
const labPageConfig = `{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}
`

// labSettings shows a page of the guide as it reads: a link to it would open an editor.
const labSettings = `{"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}}
`

func (s *site) kernelFile() string {
	return s.path("share", "jupyter", "kernels", "gonb", "kernel.json")
}

// kernelGoFlags strip cells, which halves linking time, and skip version control, which fails in another user's
// checkout.
const kernelGoFlags = "-buildvcs=false '-ldflags=-s -w'"

// kernelspec tells Jupyter how to start GoNB. Cells use the checkout through a go.work file. GOPROXY=off keeps GoNB
// from looking up unknown imports on the network.
func (s *site) kernelspec(goFlags string) string {
	spec := map[string]any{
		"display_name": "Go (gonb)",
		"language":     "go",
		"argv": []string{s.path("bin", "gonb"), "-raw_error=true", "-go_work=" + s.Root,
			// Not into the terminal: GoNB reports a missing gopls, which comes later, as an error.
			"-logtostderr=false", "-stderrthreshold=FATAL", "-log_file=" + s.path("jupyter", "gonb.log"),
			"--kernel", "{connection_file}"},
		"interrupt_mode": "message",
		"env": map[string]string{
			"PATH":                  jupyterLiteral(s.toolPath()) + ":${PATH}",
			"GOFLAGS":               goFlags,
			"GOPROXY":               "off",
			"GOWORK":                "",
			"GOTOOLCHAIN":           "local",
			"GOMLX_NO_AUTO_INSTALL": "1",
			tunables:                largePages,
			pluginPathVar:           jupyterLiteral(s.path("pjrt")),
		},
	}
	data, _ := json.MarshalIndent(spec, "", "  ") // strings always marshal
	return string(data) + "\n"
}

// jupyterLiteral escapes a path, because Jupyter expands $NAME in a kernel's environment.
func jupyterLiteral(path string) string { return strings.ReplaceAll(path, "$", "$$") }

const noVenv = "Python's venv module is missing: install it (Debian and Ubuntu: apt install python3-venv) and run " +
	"the command again"

// probe prints a Python's version, its resolved path, and missing modules of virtual environments.
const probe = `import sys, os, importlib.util as u
print(sys.version_info[0], sys.version_info[1])
print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
print(*[m for m in ("venv", "ensurepip") if u.find_spec(m) is None])`

// findPython returns a Python 3.minor or newer that can make virtual environments: $NASML_PYTHON or the first in PATH.
// The error says what the first one found lacks.
func findPython(ctx context.Context, minor int) (string, error) {
	names := []string{"python3", "python3.13", "python3.12", "python3.11", "python3.10"}
	if own := os.Getenv("NASML_PYTHON"); own != "" {
		names = []string{own}
	}
	var problem error
	for _, name := range names {
		path, err := checkPython(ctx, name, minor)
		if err == nil {
			return path, nil
		}
		if problem == nil && !errors.Is(err, exec.ErrNotFound) {
			problem = err
		}
	}
	if problem == nil {
		problem = fmt.Errorf(
			"no python3 found: install Python 3.%d or newer (Debian: apt install python3 python3-venv) and run the "+
				"command again", minor)
	}
	return "", problem
}

func checkPython(ctx context.Context, name string, minor int) (string, error) {
	out, err := exec.CommandContext(ctx, name, "-c", probe).Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", name, err)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 3 {
		return "", fmt.Errorf("%s does not answer like a Python: %q", name, out)
	}
	version := strings.ReplaceAll(lines[0], " ", ".")
	if n, err := strconv.Atoi(strings.TrimPrefix(version, "3.")); err != nil || n < minor {
		return "", fmt.Errorf("%s is Python %s, and 3.%d or newer is needed: install one, or name it with NASML_PYTHON",
			lines[1], version, minor)
	}
	if lines[2] != "" {
		return "", fmt.Errorf("%s (%s lacks %s)", noVenv, lines[1], strings.ReplaceAll(lines[2], " ", ", "))
	}
	return lines[1], nil
}
