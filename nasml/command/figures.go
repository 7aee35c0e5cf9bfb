package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/catalog"
	_ "github.com/nasml/lab/nasml/catalog/papers" // register their figures
	"github.com/nasml/lab/nasml/internal/claims"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// chosen are the figures that a verb is about, with their parameters.
type chosen struct {
	ID    []string `arg:"" name:"id" complete:"figure" help:"Figures, as the verb list names them, such as oymak2021/figure2."`
	Scale string   `complete:"scale" help:"quick (minutes on two cores; checks signs, orders, slopes), paper (the paper's setting), or large where a figure has one between them." default:"${scale}" env:"NASML_SCALE"`
	Set   []string `complete:"setting" help:"Set a parameter, such as Seeds=10 or Widths=64,256. May be given several times." placeholder:"FIELD=VALUE" sep:"none"`
}

type runCmd struct {
	chosen    `set:"scale=quick"`
	Out       string            `help:"Folder for the files (default: figures, or one in the user's cache folder where this one is only readable)." placeholder:"DIR"`
	Format    []string          `complete:"format" help:"Any of ${formats} (default: the first four); tex has tables with booktabs." enum:"${formats}" default:"pdf,svg,eps,png" placeholder:"FORMAT,..."`
	Style     string            `complete:"style" help:"Set figures for a venue (icml, iclr, neurips, jmlr, tmlr, aaai, cvpr, with /column or /text) or a width, with a panel's height over its width: width=3.25in,height=0.6." placeholder:"STYLE"`
	Caption   bool              `help:"Set the caption below the picture too; it is always beside it, as .txt and .caption.tex."`
	Published bool              `help:"Draw published curves, bounds and reference lines; --no-published leaves them out." default:"true" negatable:""`
	Rename    map[string]string `help:"Call a curve, a row or a column another name; may be given several times." placeholder:"NAME=OTHER"`
	Outlines  bool              `help:"Write text as outlines. Otherwise PDF and EPS have it as text with embedded fonts, and SVG in a font of the machine that shows it."`
	Overwrite bool              `help:"Overwrite pictures of other parameters; otherwise they are kept, and the new files have the parameters' hash in their names."`
	JSON      bool              `name:"json" help:"Print one JSON object a figure, each on a line."`
	Shard     *runs.Part        `help:"Compute only the I-th of N parts of the trials that are missing, and draw nothing." placeholder:"I/N"`
	Force     bool              `help:"Compute even what needs more memory than the machine has, by the forecast." env:"NASML_FORCE"`
	Strict    bool              `help:"Exit with 1 and not with 3 where all ran and a claim does not hold."`
}

var errClaims = errors.New("a claim does not hold")

// claimsError says that everything ran and only claims failed: exit status 3.
type claimsError struct{ error }

// Run computes the figures one by one. If one fails, the others still run.
func (v *runCmd) Run(ctx context.Context, c console) error {
	if v.Force { // told to what this process starts, too
		if err := os.Setenv(catalog.ForceEnv, "1"); err != nil {
			return err
		}
	}
	entries, err := v.check()
	if err != nil {
		return err
	}
	if v.Shard == nil { // a part draws nothing
		if v.Out, err = outFolder(c, v.Out, "figures"); err != nil {
			return err
		}
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	var failed []error
	onlyClaims := true
	for _, e := range entries {
		err := v.one(ctx, c, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, named(e, err))
			onlyClaims = onlyClaims && errors.Is(err, errClaims)
		}
	}
	if len(failed) > 0 && onlyClaims && !v.Strict {
		return claimsError{errors.Join(failed...)}
	}
	return errors.Join(failed...)
}

func named(e catalog.Entry, err error) error {
	if strings.HasPrefix(err.Error(), e.ID+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", e.ID, err)
}

// check finds the mistakes that can be found before the first trial.
func (v chosen) check() ([]catalog.Entry, error) {
	if err := backend.Check(); err != nil {
		return nil, catalog.Usagef("%v", err)
	}
	var entries []catalog.Entry
	for _, id := range v.ID {
		e, err := catalog.Lookup(id)
		if err != nil {
			return nil, err
		}
		params, err := e.Params(v.Scale, v.Set)
		if err == nil {
			err = catalog.Fits(e.ID, params)
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Validate finds a style that there is not.
func (v *runCmd) Validate() error {
	if _, err := plots.StyleNamed(v.Style); v.Style != "" && err != nil {
		return fmt.Errorf("--style: %w", err)
	}
	return nil
}

// outFolder is the folder for files: the user's choice, else the usual one in the working directory or, if that is
// read-only, in the user's cache folder.
func outFolder(c console, named, usual string) (string, error) {
	if named != "" {
		return named, tryFolder(named)
	}
	err := tryFolder(usual)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return usual, err
	}
	cache, cacheErr := os.UserCacheDir()
	if cacheErr != nil {
		return usual, err
	}
	other := filepath.Join(cache, "nasml", usual)
	c.logf("%s cannot be written to here: the files go to %s", usual, other)
	return other, tryFolder(other)
}

// tryFolder writes into a folder before anything is computed.
func tryFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the folder for the files: %w; take another with --out", err)
	}
	f, err := os.CreateTemp(dir, ".nasml-*")
	if err != nil {
		return fmt.Errorf("the folder for the files cannot be written to: %w; take another with --out", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

type outcome struct {
	ID      string       `json:"id"`
	Scale   string       `json:"scale"`
	Seconds float64      `json:"seconds"`
	Claims  []runs.Claim `json:"claims"`
	Files   []string     `json:"files"`
	Records []string     `json:"records"`
	drawn   plots.Exported
}

func (v *runCmd) one(ctx context.Context, c console, e catalog.Entry) error {
	if v.Shard != nil {
		return v.shard(ctx, c, e)
	}
	begin := time.Now()
	result, err := e.Run(ctx, v.Scale, v.Set)
	if err != nil {
		return err
	}
	_, scale, _ := catalog.Of(result) // of varied parameters, none is the paper's
	drawn, err := v.draw(result.Figure())
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	o := outcome{
		ID: e.ID, Scale: v.Scale, Seconds: time.Since(begin).Seconds(),
		Claims:  append([]runs.Claim{}, claims.Judged(e.ID, scale, result.Check())...), // in JSON [] and not null
		Files:   append([]string{}, drawn.Files...),
		Records: append([]string{}, result.Records()...),
		drawn:   drawn,
	}
	if err := v.print(c, o); err != nil {
		return err
	}
	if slices.ContainsFunc(o.Claims, func(claim runs.Claim) bool { return claim.Holds == runs.Fails }) {
		return errClaims
	}
	return nil
}

func (v *runCmd) draw(f plots.Figure) (plots.Exported, error) {
	with := plots.Export{Formats: v.Format, Caption: v.Caption, NoReferences: !v.Published, Rename: v.Rename,
		Outlines: v.Outlines, Overwrite: v.Overwrite}
	if v.Style != "" {
		with.Style, _ = plots.StyleNamed(v.Style) // which Validate has seen
	}
	return f.Export(v.Out, with)
}

func (v *runCmd) print(c console, o outcome) error {
	if v.JSON {
		if o.drawn.Kept != "" {
			c.logf("%s shows other parameters and was kept", o.drawn.Kept)
		}
		for i := range o.Claims {
			o.Claims[i].Note, o.Claims[i].Rows = "", nil // the fields of the contract, and no others
		}
		return printJSON(c, "", o)
	}
	_, err := fmt.Fprintf(c.Out, "%s at %s scale, %.1f s, %s%s\n\n%s\n%s\n", o.ID, o.Scale, o.Seconds,
		study.Counted(len(o.Records), "trial"), parts(o.ID), runs.ClaimTable(o.Claims), o.drawn)
	return err
}

// parts names the entries that are other panels of the same figure, such as figure1-left.
func parts(id string) string {
	var others []string
	for _, e := range catalog.All() {
		if strings.HasPrefix(e.ID, id+"-") {
			others = append(others, e.ID)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "; other panels: " + strings.Join(others, ", ")
}

func printJSON(c console, indent string, v any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// ensurePlugin sets up XLA's plugin and the C kernels if necessary, and nothing that only notebooks need.
func ensurePlugin(ctx context.Context, c console) error {
	if os.Getenv(pluginPathVar) != "" || os.Getenv("GOMLX_BACKEND") == "go" {
		return nil
	}
	if _, err := findRoot(); err != nil {
		return nil // a program of another module: a figure that needs XLA says what to do
	}
	s, err := openSite(ctx)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	return s.bring(ctx, c, s.computing())
}

// readWithoutXLA uses GoMLX's own backend for trial keys if XLA is not set up, since reading results should need no
// set-up. The process is short, so garbage is collected less often.
func readWithoutXLA(ctx context.Context) {
	debug.SetGCPercent(400)
	if os.Getenv("GOMLX_BACKEND") != "" || os.Getenv(pluginPathVar) != "" {
		return
	}
	if s, err := openSite(ctx); err == nil && exists(s.path("pjrt")) {
		return
	}
	_ = os.Setenv("GOMLX_BACKEND", "go")
}
