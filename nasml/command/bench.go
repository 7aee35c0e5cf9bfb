package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/bench"
)

type benchCmd struct {
	Peers bool   `help:"The same arithmetic in JAX and PyTorch beside ours, in one run. Installs both into .nasml/venv-peers: downloads 3 GB, takes 6 GB."`
	Quick bool   `help:"A small benchmark that only shows that everything works."`
	Only  string `help:"figure2: the sweep of Oymak+ 2021. supernet: the bilevel step of NAS-Bench-201's supernet. darts: steps of DARTS, PC-DARTS and of training on the DARTS space. oneshot: steps of DARTS on the spaces of NAS-Bench-1Shot1. features: ridge regression on random Fourier features and a linear SVM, as in Khodak+ 2020; ridge or svm: one of them. text: hashed n-grams of its reviews. Default: all." enum:"figure2,supernet,darts,oneshot,features,ridge,svm,text,all" default:"all"`
	JSON  bool   `help:"Print one JSON object a case, each on a line." name:"json"`
}

// Run runs the benchmarks. If the peers cannot be installed, it says why and times nasml alone.
func (v *benchCmd) Run(ctx context.Context, c console) error {
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	sweep, supernet, linear, text := bench.Full, bench.SupernetFull, bench.FeaturesFull, bench.TextFull
	cells, oneShot := bench.DartsFull, bench.OneShotFull
	if v.Quick {
		sweep, supernet, linear, text = bench.Quick, bench.SupernetQuick, bench.FeaturesQuick, bench.TextQuick
		cells, oneShot = bench.DartsQuick, bench.OneShotQuick
	}
	python := ""
	if v.Peers {
		var err error
		if python, err = setupPeers(ctx, c); err != nil {
			return err
		}
	}
	for _, t := range []*bench.Timing{
		&sweep.Timing, &supernet.Timing, &linear.Timing, &text.Timing, &cells.Timing, &oneShot.Timing,
	} {
		t.Python, t.Log = python, func(line string) { c.logf("%s", line) }
	}
	restore, err := v.ownCache()
	if err != nil {
		return err
	}
	defer restore()
	b, err := backend.Open()
	if err != nil {
		return err
	}
	if v.Only == "ridge" || v.Only == "svm" {
		linear.Only = v.Only
	}
	done := func(r *bench.DartsResult) error { return v.print(c, r, nil) } // a case when it is done
	for _, suite := range []struct {
		asked bool
		run   func() error
	}{
		{v.wants("figure2"), func() error { return v.figure2(ctx, c, b, sweep) }},
		{v.wants("supernet"), func() error { r, err := bench.Supernet(ctx, b, supernet); return v.print(c, r, err) }},
		{v.wants("darts"), func() error { return bench.Darts(ctx, b, cells, done) }},
		{v.wants("oneshot"), func() error { return bench.Darts(ctx, b, oneShot, done) }},
		{v.wants("features") || linear.Only != "", func() error {
			r, err := bench.Features(ctx, b, linear)
			return v.print(c, r, err)
		}},
		{v.wants("text"), func() error { r, err := bench.Text(ctx, text); return v.print(c, r, err) }},
	} {
		if !suite.asked {
			continue
		}
		if err := suite.run(); err != nil {
			return err
		}
	}
	return nil
}

// ownCache compiles into a folder of this run, because compile time is measured; a folder that the user set stays.
func (v *benchCmd) ownCache() (restore func(), err error) {
	if os.Getenv(programs.Env) != "" || !v.wants("darts") && !v.wants("oneshot") {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "nasml-programs-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for compiled programs: %w", err)
	}
	return func() { _ = errors.Join(os.Unsetenv(programs.Env), os.RemoveAll(dir)) }, os.Setenv(programs.Env, dir)
}

func (v *benchCmd) wants(name string) bool { return v.Only == name || v.Only == "all" }

func (v *benchCmd) print(c console, r interface{ WriteTable(io.Writer) error }, err error) error {
	switch {
	case err != nil:
		return err
	case v.JSON:
		return printJSON(c, "", r)
	}
	return r.WriteTable(c.Out)
}

func (v *benchCmd) figure2(ctx context.Context, c console, b compute.Backend, p bench.Params) error {
	if _, err := data.Load(ctx, p.Sweep.Data, data.Train); errors.Is(err, data.ErrMissing) {
		c.logf("on synthetic images: %v", err)
		p.Sweep.Data = data.Synthetic
	} else if err != nil {
		return err
	}
	return bench.Figure2(ctx, b, p, func(r *bench.Result) error { return v.print(c, r, nil) })
}

// setupPeers installs the peers if necessary and returns their Python, "" on failure. All compute on the CPU.
func setupPeers(ctx context.Context, c console) (python string, err error) {
	if os.Getenv("GOMLX_BACKEND") == "" {
		if err := os.Setenv("GOMLX_BACKEND", "xla:cpu"); err != nil {
			return "", fmt.Errorf("choosing the backend: %w", err)
		}
	}
	s, err := openSite(ctx)
	if err != nil {
		return "", err
	}
	const what = "JAX, PyTorch and scikit-learn into .nasml/venv-peers (several minutes, downloads 3 GB, takes " +
		"6 GB on the disk)"
	err = s.bring(ctx, c, []step{s.venvStep("venv-peers", what, bench.Requirements, 11, 7000)})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		c.logf("the peers are not run: %v", err)
		return "", nil
	}
	return s.python("venv-peers"), nil
}
