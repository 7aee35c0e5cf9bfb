package command

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/internal/trace"
)

type traceCmd struct {
	File      []string `arg:"" help:"Traces: .npz files as the comment of package nasml/internal/trace describes them, or of the authors' own programs (its type Authors)."`
	Tolerance *float64 `help:"Largest relative difference of an array of the first step; ten times that after it (default: 1e-9 for a trace in float64, 1e-4 for one in float32)."`
	JSON      bool     `help:"Print one JSON object a trace, each on a line." name:"json"`
}

type replayed struct {
	File      string     `json:"file"`
	Source    string     `json:"source"`
	Method    string     `json:"method"`
	Backend   string     `json:"backend"`
	Steps     int        `json:"steps"`
	Tolerance float64    `json:"tolerance"` // of the first step
	Agrees    bool       `json:"agrees"`
	Arrays    []compared `json:"arrays"`
}

type compared struct {
	trace.Difference
	Agrees bool `json:"agrees"`
}

// Run replays the traces and prints the difference of each array. A file that is not a trace is a usage error.
func (v *traceCmd) Run(ctx context.Context, c console) error {
	if v.Tolerance != nil && !(*v.Tolerance > 0) {
		return catalog.Usagef("--tolerance must be more than 0, got %v", *v.Tolerance)
	}
	traces := make([]trace.Replayable, len(v.File))
	for i, file := range v.File {
		var err error
		traces[i], err = unless(ctx, func() (trace.Replayable, error) { return trace.Open(file) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return catalog.Usagef("%v", err)
		}
	}
	b, err := v.open(ctx, c, traces)
	if err != nil {
		return err
	}
	return v.compare(ctx, c, b, traces)
}

// unless returns f's result, or ctx's error if that ends first; f is then abandoned. It is for calls that cannot be
// interrupted, such as XLA's compiler.
func unless[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}

// open returns the process's backend. For the authors' small traces the default is GoMLX's pure-Go backend, which is
// done before XLA has compiled.
func (v *traceCmd) open(ctx context.Context, c console, traces []trace.Replayable) (compute.Backend, error) {
	small := !slices.ContainsFunc(traces, func(t trace.Replayable) bool { _, big := t.(*trace.Trace); return big })
	if small && os.Getenv(compute.ConfigEnvVar) == "" {
		return compute.NewWithConfig("go")
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return nil, err
	}
	return backend.Open()
}

func (v *traceCmd) compare(ctx context.Context, c console, b compute.Backend, traces []trace.Replayable) error {
	differ := 0
	for i, file := range v.File {
		r, err := v.replay(ctx, b, file, traces[i])
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := v.print(c, r); err != nil {
			return err
		}
		if !r.Agrees {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d traces differ from what is computed here", differ, len(v.File))
	}
	return nil
}

func (v *traceCmd) replay(ctx context.Context, b compute.Backend, file string, t trace.Replayable) (replayed, error) {
	about := t.About()
	r := replayed{File: file, Source: about.Source, Method: about.Method, Backend: b.Name(), Steps: about.Steps,
		Tolerance: about.Tolerance, Agrees: true}
	if v.Tolerance != nil {
		r.Tolerance = *v.Tolerance
	}
	differences, err := unless(ctx, func() ([]trace.Difference, error) { return t.Replay(ctx, b) })
	for _, d := range differences {
		agrees := d.Within(r.Tolerance)
		r.Agrees = r.Agrees && agrees
		r.Arrays = append(r.Arrays, compared{d, agrees})
	}
	return r, err
}

func (v *traceCmd) print(c console, r replayed) error {
	if v.JSON {
		return printJSON(c, "", r)
	}
	_, _ = fmt.Fprintf(c.Out, "%s: %s, %d steps, %s; computed on %s\n", r.File, r.Method, r.Steps, r.Source, r.Backend)
	rows := [][]string{{"array", "absolute", "relative", "of", ""}}
	worst := 0.0
	for _, a := range r.Arrays {
		row := []string{a.Name}
		for _, x := range []float64{a.Absolute, a.Relative, a.Scale} {
			row = append(row, fmt.Sprintf("%.1e", x))
		}
		worst = max(worst, a.Relative)
		rows = append(rows, append(row, map[bool]string{false: "DIFFERS"}[a.Agrees]))
	}
	return c.table(rows, fmt.Sprintf(
		"%d arrays, largest relative difference %.1e, tolerance %.0e in the first step and %.0e after it: %s\n\n",
		len(r.Arrays), worst, r.Tolerance, 10*r.Tolerance, map[bool]string{true: "agrees", false: "DIFFERS"}[r.Agrees]))
}
