// Package command is the command nasml. A module of one's own makes one that has the
// figures of its own besides, by one import:
//
//	package main
//
//	import (
//		_ "example.com/mine/mypaper" // registers its figures, see package catalog
//		"github.com/nasml/lab/nasml/command"
//	)
//
//	func main() { command.Main() }
//
// Results go to stdout, progress to stderr. The exit status is 0 where all went well, 1 where something failed, 2 for a
// mistake in the call, and 3 where all ran and a claim of a paper does not hold.
//
// Outside a checkout, list, show, run, status, claims, gallery, data, store and cache
// work; run needs XLA's plugin, or GOMLX_BACKEND=go.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// The exit statuses of the command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitClaims = 3 // all ran, and a claim of a paper does not hold
)

// cli is the command line: a field a verb.
type cli struct {
	Version versionFlag `help:"Print the versions of this program and of what computes with it, as records name them."`

	Lab        labCmd        `cmd:"" help:"Set up nasml if necessary and open JupyterLab on notebooks/."`
	Test       testCmd       `cmd:"" help:"Set up nasml if necessary and run every test: go vet, go test, every notebook at quick scale."`
	Setup      setupCmd      `cmd:"" help:"Only set up: Python packages, XLA plugin, GoNB and its kernel, all in .nasml. Run again, it does nothing."`
	List       listCmd       `cmd:"" help:"List every figure, table and theorem with its cost."`
	Show       showCmd       `cmd:"" help:"Show all of a figure: its parameters with defaults and meaning, its claims and its records."`
	Run        runCmd        `cmd:"" help:"Compute figures, draw them and check the paper's claims."`
	Claims     claimsCmd     `cmd:"" help:"Print the ledger: every claim of the papers with its check, ours and the verdict."`
	Status     statusCmd     `cmd:"" help:"Show how many trials of figures are done, running, failed, lost or open, and the time left."`
	Slurm      slurmCmd      `cmd:"" help:"Write a Slurm array script that computes figures in parts, and submit it where asked."`
	Kubernetes kubernetesCmd `cmd:"" help:"Print the manifest of an Indexed Job that computes figures in parts."`
	Gallery    galleryCmd    `cmd:"" help:"Write static pages of every figure, table and theorem from the shipped trials."`
	Notebooks  notebooksCmd  `cmd:"" help:"Execute notebooks headless, in place."`
	Data       dataCmd       `cmd:"" help:"List data sets, download them with checksum, or take over local files."`
	Store      storeCmd      `cmd:"" help:"Look at the run store: finished trials and checkpoints."`
	Cache      cacheCmd      `cmd:"" help:"Look at the cache of compiled programs, or clear it."`
	Bench      benchCmd      `cmd:"" help:"Run the benchmark suite."`
	Completion completionCmd `cmd:"" help:"Print the script that makes a shell complete verbs, figures and settings: bash, zsh or fish."`
	Complete   completeCmd   `cmd:"" hidden:""`
	Strings    stringsCmd    `cmd:"" hidden:""`
	Trace      traceCmd      `cmd:"" help:"Replay search steps that another program computed, and compare."`
}

const description = `Reproduces, varies and extends the figures of four papers on weight-sharing neural ` +
	`architecture search.

Settings come from a flag, then from the environment, then a default:
  NASML_DATA     folder of the data sets (default: the user's cache folder)
  NASML_STORE    folder of finished trials (default: the user's cache folder)
  NASML_SCALE    quick, paper or large
  GOMLX_BACKEND  xla:cpu, xla:cuda or go`

// console is where the verbs write: results to Out, progress to Err.
type console struct{ Out, Err io.Writer }

func (c console) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Err, "nasml: "+format+"\n", args...)
}

// Main runs the command line of the process and ends it with the exit status.
func Main() {
	askForLargePages()
	c := console{os.Stdout, os.Stderr}
	ctx, _ := untilSignal(c, backend.Compiling)
	os.Exit(execute(ctx, os.Args[1:], c))
}

func programName() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == modulePath || info.Main.Path == "" {
		return "go tool nasml"
	}
	return filepath.Base(os.Args[0])
}

// flagValues are the values of flags that other packages know.
var flagValues = kong.Vars{"formats": strings.Join(plots.Formats(), ", ")}

func execute(ctx context.Context, args []string, c console) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var commands cli
	parser := kong.Must(&commands, kong.Name(programName()), kong.Description(description),
		kong.Writers(c.Out, c.Err), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(c), kong.BindToProvider(openSite),
		kong.BindToProvider(runs.Default), kong.BindToProvider(programs.Default), flagValues)
	call, err := parser.Parse(args)
	if errors.Is(err, errVersion) {
		_, _ = fmt.Fprint(c.Out, versionText())
		return exitOK
	}
	if err != nil {
		c.logf("%s", mistaken(err))
		return exitUsage
	}
	if handOver(call.Command()) {
		return status(ctx, c, runWithBuckets(ctx, c, args))
	}
	return status(ctx, c, call.Run())
}

// mistaken formats a usage error with a hint: the command's help, or how ids and parameters are given.
func mistaken(err error) string {
	help, figures := programName(), false
	if at, ok := errors.AsType[*kong.ParseError](err); ok && at.Context != nil && at.Context.Selected() != nil {
		command := at.Context.Selected()
		help = command.FullPath()
		figures = slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "set" })
	}
	text, hint := err.Error(), ""
	switch {
	case strings.HasPrefix(text, `expected "<id>`):
		hint = `; "nasml list" shows every id`
	case figures && strings.HasPrefix(text, "unknown flag --") && !strings.Contains(text, "did you mean"):
		hint = "; parameters of a figure are set by --set NAME=VALUE"
	}
	return fmt.Sprintf("%s%s (see `%s --help`)", text, hint, help)
}

func status(ctx context.Context, c console, err error) int {
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		c.logf("interrupted; %s", kept)
		return exitFailed
	}
	c.logf("%v", err)
	switch {
	case errors.As(err, new(*catalog.UsageError)):
		return exitUsage
	case errors.As(err, new(claimsError)):
		return exitClaims
	}
	return exitFailed
}

// versionFlag ends the parsing of the command line, so that nothing is run.
type versionFlag bool

var errVersion = errors.New("version")

// BeforeReset is called where the flag is given.
func (versionFlag) BeforeReset() error { return errVersion }

func versionText() string {
	all := runs.Versions()
	maps.Copy(all, code.Modules())
	lines := []string{modulePath + " " + all[modulePath]}
	delete(all, modulePath)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+" "+all[name])
	}
	return fmt.Sprintln(strings.Join(lines, "\n"))
}

// XLA allocates a step's memory, often gigabytes, at every call. With pages of 4 kB that takes a sixth of the step's
// time. These options of the C library (glibc 2.35) ask for large pages, and keep freed memory for the next step. It
// reads them when a program starts.
const (
	tunables   = "GLIBC_TUNABLES"
	largePages = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:" +
		"glibc.malloc.arena_max=1"
	largePagesFile = "/sys/kernel/mm/transparent_hugepage/enabled"
)

// withLargePages adds the option to an environment; ok reports whether it was useful and missing.
func withLargePages(env []string, state string) (_ []string, ok bool) {
	set := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, tunables+"=") })
	if set || !strings.Contains(state, "[madvise]") {
		return env, false
	}
	return append(env, tunables+"="+largePages), true
}

// askForLargePages restarts this program in this process with the option, if it can.
func askForLargePages() {
	state, _ := os.ReadFile(largePagesFile) // on Linux only
	env, ok := withLargePages(os.Environ(), string(state))
	self, err := os.Executable()
	if ok && err == nil {
		_ = syscall.Exec(self, os.Args, env)
	}
}

const kept = "finished trials and checkpoints are kept, the same command goes on from there"

// samePress is the time within which a second signal is the same Ctrl-C: go tool passes on what the terminal has sent
// here, too.
const samePress = 500 * time.Millisecond

// grace is how long work may take to end by itself and save its checkpoint.
const grace = 3 * time.Second

// untilSignal returns a context that ends with Ctrl-C, SIGTERM or a closed terminal (unless under nohup). A second
// signal ends the program at once; so does the first one if XLA is still compiling after grace, because that takes
// minutes and cannot be interrupted. stop ends the watching.
func untilSignal(c console, compiling func() bool) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-signals
		cancel()
		endAtLast(c, signals, compiling)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
	}
}

// endAtLast waits for the program to end, and ends it on a second signal or if it cannot end by itself.
func endAtLast(c console, signals <-chan os.Signal, compiling func() bool) {
	if isTerminal(c.Err) { // whose last line may be the progress
		c.Err = lineBreaker{c.Err}
	}
	first := time.Now()
	look := time.NewTicker(grace)
	defer look.Stop()
	for said := false; ; {
		select {
		case _, more := <-signals:
			switch {
			case !more:
				return
			case time.Since(first) < samePress:
				continue
			}
			c.logf("interrupted again, ended at once; %s", kept)
			os.Exit(exitFailed)
		case <-look.C:
			if compiling() {
				c.logf("interrupted while XLA compiled, which cannot be stopped: ended at once; %s", kept)
				os.Exit(exitFailed)
			}
			if !said {
				said = true
				c.logf("what is under way ends first; Ctrl-C once more ends it at once")
			}
		}
	}
}

type lineBreaker struct{ io.Writer }

func (b lineBreaker) Write(text []byte) (int, error) {
	if _, err := b.Writer.Write([]byte("\n")); err != nil {
		return 0, err
	}
	return b.Writer.Write(text)
}
