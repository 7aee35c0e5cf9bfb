package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nasml/lab/nasml/catalog"
	_ "github.com/nasml/lab/nasml/khodak2020" // register their figures
	_ "github.com/nasml/lab/nasml/li2021"     // likewise
	_ "github.com/nasml/lab/nasml/oymak2021"  // likewise
	_ "github.com/nasml/lab/nasml/roberts"    // likewise
	"github.com/nasml/lab/nasml/runs"
	_ "github.com/nasml/lab/nasml/runs/bucket" // stores in buckets
	"github.com/nasml/lab/plots"
)

type listCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the catalog.
func (v *listCmd) Run(c console) error {
	entries := catalog.All()
	if v.JSON {
		return printJSON(c, "  ", append([]catalog.Entry{}, entries...)) // [] and not null where empty
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tPAPER\tTITLE\tQUICK\tPAPER SCALE\tNOTEBOOK")
	for _, e := range entries {
		_, _ = fmt.Fprintf(
			table,
			"%s\t%s\t%s\t%s\t%s\t%s\n",
			e.ID,
			e.Paper,
			e.Title,
			e.Cost.Quick,
			e.Cost.Paper,
			e.Notebook,
		)
	}
	return table.Flush()
}

type runCmd struct {
	ID     []string `arg:"" name:"id" help:"Figures to compute, as the verb list names them, such as oymak2021/figure2."`
	Scale  string   `help:"quick (minutes on two cores; checks signs, orders, slopes), paper (the paper's setting), or large where a figure has one between them." default:"quick" env:"NASML_SCALE"`
	Set    []string `help:"Set a parameter, such as Seeds=10 or Widths=64,256. May be given several times." placeholder:"FIELD=VALUE" sep:"none"`
	Out    string   `help:"Folder for the files (default: figures)." default:"figures" placeholder:"DIR"`
	Format []string `help:"Any of pdf, svg, eps, png, csv (default: the first four)." default:"pdf,svg,eps,png" placeholder:"FORMAT,..."`
	JSON   bool     `name:"json" help:"Print one JSON object a figure, each on a line."`
	Shard  string   `help:"Compute only the I-th of N parts of the trials that are missing, and draw nothing." placeholder:"I/N"`
}

// errClaims is the end of a run in which a claim of the paper did not hold.
var errClaims = errors.New("a claim does not hold")

// Run computes the figures in turn. A figure that fails does not keep the
// others from being computed.
func (v *runCmd) Run(ctx context.Context, c console) error {
	entries, err := v.check()
	if err != nil {
		return err
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		err := v.one(ctx, c, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.ID, err))
		}
	}
	return errors.Join(failed...)
}

// check finds every mistake that can be found before the first trial.
func (v *runCmd) check() ([]catalog.Entry, error) {
	for _, format := range v.Format {
		if !slices.Contains(plots.Formats(), format) {
			return nil, usageError{
				fmt.Errorf("unknown format %q: known are %s", format, strings.Join(plots.Formats(), ", ")),
			}
		}
	}
	if _, err := runs.ParsePart(v.Shard); v.Shard != "" && err != nil {
		return nil, usageError{fmt.Errorf("--shard: %w", err)}
	}
	var entries []catalog.Entry
	for _, id := range v.ID {
		e, err := catalog.Lookup(id)
		if err == nil {
			err = e.Check(v.Scale, v.Set)
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// outcome is what is printed of a figure.
type outcome struct {
	ID      string       `json:"id"`
	Scale   string       `json:"scale"`
	Seconds float64      `json:"seconds"`
	Claims  []runs.Claim `json:"claims"`
	Files   []string     `json:"files"`
	Records []string     `json:"records"`
}

// one computes, draws and judges one figure.
func (v *runCmd) one(ctx context.Context, c console, e catalog.Entry) error {
	if v.Shard != "" {
		return v.shard(ctx, c, e)
	}
	begin := time.Now()
	result, err := e.Run(ctx, v.Scale, v.Set)
	if err != nil {
		return err
	}
	files, err := result.Figure().Save(v.Out, v.Format...)
	if err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	o := outcome{
		ID: e.ID, Scale: v.Scale, Seconds: time.Since(begin).Seconds(),
		Claims:  append([]runs.Claim{}, result.Check()...), // in JSON [] and not null
		Files:   append([]string{}, files...),
		Records: append([]string{}, result.Records()...),
	}
	if err := v.print(c, o); err != nil {
		return err
	}
	if slices.ContainsFunc(o.Claims, func(claim runs.Claim) bool { return claim.Holds == runs.Fails }) {
		return errClaims
	}
	return nil
}

func (v *runCmd) print(c console, o outcome) error {
	if v.JSON {
		for i := range o.Claims {
			o.Claims[i].Note, o.Claims[i].Rows = "", nil // the fields of the contract, and no others
		}
		return printJSON(c, "", o)
	}
	_, err := fmt.Fprintf(c.Out, "%s at %s scale, %.1f s, %d trials\n\n%s\n%s\n", o.ID, o.Scale, o.Seconds,
		len(o.Records), runs.ClaimTable(o.Claims), strings.Join(o.Files, "\n"))
	return err
}

func printJSON(c console, indent string, v any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// isCatalogUsage says whether the catalog calls err a mistake in the call.
func isCatalogUsage(err error) bool {
	var usage *catalog.UsageError
	return errors.As(err, &usage)
}

// ensurePlugin sees to it that XLA's plugin is set up.
func ensurePlugin(ctx context.Context, c console) error {
	if os.Getenv(pluginPathVar) != "" || os.Getenv("GOMLX_BACKEND") == "go" {
		return nil
	}
	s, err := openSite(ctx)
	if err != nil {
		return err
	}
	return s.setup(ctx, c)
}
