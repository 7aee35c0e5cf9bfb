package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/backend/programs"
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/internal/accept"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

type storeCmd struct {
	Ls     storeLs     `cmd:"" help:"List the finished trials, each with its method and the settings that tell it apart."`
	Show   storeShow   `cmd:"" help:"Print a record."`
	Export storeExport `cmd:"" help:"Print records as JSON lines, to keep them in a repository or to hand them on."`
	Gc     storeGC     `cmd:"" help:"Delete stale files (locks, old checkpoints). Results are never deleted."`
	Verify storeVerify `cmd:"" help:"Read everything; set aside what is broken, so that it is computed again."`
	Rm     storeRm     `cmd:"" help:"Remove records, so that their trials are computed again. What the project ships stays."`
	Accept storeAccept `cmd:"" help:"Recompute shipped trials whose source has changed, and accept the source where the numbers are the same."`
}

type recordFilter struct {
	Figure string `complete:"figure" help:"Only the trials of this figure, such as oymak2021/figure2, or of this paper, such as oymak2021." placeholder:"ID"`
	Scale  string `complete:"scale" help:"Only those that were computed at this scale." placeholder:"SCALE"`
}

func (f recordFilter) passes(r *runs.Record) bool {
	of := r.Trial.Figure == f.Figure || strings.HasPrefix(r.Trial.Figure, f.Figure+"/")
	return (f.Figure == "" || of) && (f.Scale == "" || r.Scale == f.Scale)
}

func (f recordFilter) choose(store *runs.Store) (records []*runs.Record, broken int, err error) {
	all, bad, err := store.List()
	if err != nil {
		return nil, 0, err
	}
	return slices.DeleteFunc(all, func(r *runs.Record) bool { return !f.passes(r) }), len(bad), nil
}

type storeLs struct {
	recordFilter
	JSON bool `name:"json" help:"Print JSON."`
}

type storedRecord struct {
	Key     string    `json:"key"`
	Figure  string    `json:"figure"`
	Scale   string    `json:"scale"`
	Params  any       `json:"params"`
	Seed    uint64    `json:"seed"`
	Backend string    `json:"backend"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	runs.Use
}

func (v *storeLs) Run(c console, store *runs.Store) error {
	records, broken, err := v.choose(store)
	if err != nil {
		return err
	}
	if v.JSON {
		list := make([]storedRecord, len(records)) // [] and not null where empty
		for i, r := range records {
			list[i] = storedRecord{
				r.Key, r.Trial.Figure, r.Scale, r.Trial.Params, r.Trial.Seed, r.Backend, r.Started, r.Seconds, r.Use,
			}
		}
		return printJSON(c, "  ", list)
	}
	rows := [][]string{{"KEY", "FIGURE", "SCALE", "SEED", "BACKEND", "STARTED", "SETTINGS"}}
	for i, words := range runs.InWords(records) {
		r := records[i]
		rows = append(rows, []string{r.Key[:12], r.Trial.Figure, r.Scale, fmt.Sprint(r.Trial.Seed), r.Backend,
			r.Started.Format(time.DateTime), words})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	c.logf("%d records in %s", len(records), store.Dir())
	if broken > 0 {
		c.logf("%d more are broken: `go tool nasml store verify` sets them aside", broken)
	}
	return nil
}

// removed is what is said of a removal that did happen, or of a dry run.
var removed = map[bool]string{false: "removed", true: "would remove"}

type storeRm struct {
	recordFilter
	Key    []string `arg:"" complete:"none" optional:"" help:"Keys of records, or as much of their beginnings as is needed. Without any: those that the filter chooses."`
	DryRun bool     `help:"Only count."`
}

// Run removes the named or chosen records. Without either, all would go, so that is a usage error.
func (v *storeRm) Run(c console, store *runs.Store) error {
	if len(v.Key) == 0 && v.recordFilter == (recordFilter{}) {
		return catalog.Usagef("which records? Name their keys, or choose them by --figure or --scale")
	}
	keys, err := v.keys(store)
	if err != nil {
		return err
	}
	if !v.DryRun {
		if err := store.Remove(keys...); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.Out, "%s %d records from %s\n", removed[v.DryRun], len(keys), store.Dir())
	return err
}

func (v *storeRm) keys(store *runs.Store) ([]string, error) {
	if len(v.Key) == 0 {
		records, _, err := v.choose(store)
		return study.Map(records, func(r *runs.Record) string { return r.Key }), err
	}
	var keys []string
	for _, prefix := range v.Key {
		r, err := store.Find(prefix)
		if err != nil {
			return nil, err
		}
		if !v.passes(r) {
			return nil, fmt.Errorf("%.12s is a trial of %s at scale %q, which the filter leaves out",
				r.Key, r.Trial.Figure, r.Scale)
		}
		keys = append(keys, r.Key)
	}
	return keys, nil
}

type storeShow struct {
	Key string `arg:"" complete:"none" help:"Key of the trial, or as much of its beginning as is needed."`
}

func (v *storeShow) Run(c console, store *runs.Store) error {
	record, err := store.Find(v.Key)
	if err != nil {
		return err
	}
	return printJSON(c, "  ", record)
}

type storeExport struct{ recordFilter }

func (v *storeExport) Run(c console, store *runs.Store) error {
	records, _, err := v.choose(store)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return fmt.Errorf("no such record in %s: `go tool nasml store ls` lists what is there", store.Dir())
	}
	return runs.WriteBundle(c.Out, records)
}

type storeGC struct {
	OlderThan time.Duration `help:"Age from which a checkpoint is old." default:"168h"`
	DryRun    bool          `help:"Only count."`
}

func (v *storeGC) Run(c console, store *runs.Store) error {
	stale, err := store.GC(runs.GCOptions{OlderThan: v.OlderThan, DryRun: v.DryRun})
	_, _ = fmt.Fprintf(c.Out, "%s %d files, %.1f MB, from %s\n", removed[v.DryRun], stale.Files,
		float64(stale.Bytes)/1e6, store.Dir())
	return err
}

type storeVerify struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run reads the whole store, and fails if something is broken.
func (v *storeVerify) Run(c console, store *runs.Store) error {
	report, err := store.Verify()
	if err = cmp.Or(err, v.print(c, store.Dir(), report)); err == nil && len(report.Broken) > 0 {
		err = errors.New("broken files were found; what they held is computed again when it is needed")
	}
	return err
}

func (v *storeVerify) print(c console, dir string, report runs.Report) error {
	if v.JSON {
		return printJSON(c, "  ", map[string]any{
			"store": dir, "records": report.Records, "checkpoints": report.Checkpoints,
			"broken": append([]*runs.Broken{}, report.Broken...), // [] and not null where empty
		})
	}
	_, err := fmt.Fprintf(c.Out, "%s: %d records and %d checkpoints are whole, %d files are broken\n",
		dir, report.Records, report.Checkpoints, len(report.Broken))
	for _, b := range report.Broken {
		_, _ = fmt.Fprintln(c.Out, b)
	}
	return err
}

type cacheCmd struct {
	Show  cacheShow  `cmd:"" default:"1" help:"Say where the compiled programs are and how much they take."`
	Clear cacheClear `cmd:"" help:"Remove them; they are compiled again when they are needed."`
}

type cacheShow struct{}

// Run counts the compiled programs.
func (*cacheShow) Run(c console, cache *programs.Cache) error {
	if cache == nil {
		_, err := fmt.Fprintf(c.Out, "compiled programs are not kept: %s is off\n", programs.Env)
		return err
	}
	n, size, err := cache.Usage()
	if err != nil {
		return fmt.Errorf("counting the compiled programs: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "%d compiled programs, %.1f of %.0f MB, in %s\n", n, float64(size)/1e6,
		float64(cache.Limit)/1e6, cache.Dir)
	return err
}

type cacheClear struct{}

// Run removes the compiled programs, and nothing else.
func (*cacheClear) Run(c console, cache *programs.Cache) error {
	if cache == nil {
		return catalog.Usagef("no cache to clear: %s is off", programs.Env)
	}
	n, size, err := cache.Usage()
	if err == nil {
		err = cache.Clear()
	}
	if err != nil {
		return fmt.Errorf("clearing the compiled programs: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "removed %d compiled programs, %.1f MB, from %s\n", n, float64(size)/1e6, cache.Dir)
	return err
}

type storeAccept struct {
	Kind    []string      `arg:"" complete:"none" optional:"" help:"Kinds of trials, such as li2021/search (default: all whose source is not accepted)."`
	Longest time.Duration `help:"Longest time that a trial may have taken to be computed again." default:"5m"`
	Unshown bool          `help:"Accept kinds of which nothing can be compared: no trial is shipped, or only those of machines of another kind."`
	DryRun  bool          `help:"Only say what would be computed."`
}

var errMoved = errors.New(
	"not accepted: the source computes other numbers, so its trials are recomputed under a new version")

var errElsewhere = errors.New(
	"not accepted: these trials ran on a machine of another kind, or one that their records do not name, and " +
		"training amplifies its rounding: compare the source before the change with this one on one machine, as " +
		"CONTRIBUTING.md says, and give --unshown")

// Run recomputes shipped trials of changed code and accepts the code if the numbers agree.
func (v *storeAccept) Run(ctx context.Context, c console, s *site) error {
	open, err := accept.Open(v.Kind)
	if err != nil {
		return catalog.Usagef("%v", err)
	}
	if len(open) == 0 {
		_, err := fmt.Fprintln(c.Out, "all sources are accepted")
		return err
	}
	if err := ensurePlugin(ctx, c); err != nil {
		return err
	}
	for _, k := range open { // before the first key is made
		k.Assume()
	}
	shipped, notes, err := accept.Shipped(ctx)
	if err != nil {
		return err
	}
	for _, note := range notes {
		c.logf("%s", note)
	}
	var failed []error
	for _, k := range open {
		err := v.one(ctx, c, k, shipped, filepath.Join(s.Root, filepath.FromSlash(code.LedgerFile)))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", k.Name(), err))
		}
	}
	return errors.Join(failed...)
}

func (v *storeAccept) one(ctx context.Context, c console, k *code.Kind, shipped accept.ByVersion, ledger string) error {
	version, err := k.Version()
	if err != nil {
		return err
	}
	source, err := k.Source()
	if err != nil {
		return err
	}
	picked, left := accept.Pick(shipped[version], source, v.Longest.Seconds())
	_, _ = fmt.Fprintf(c.Out, "%s: %d of %d shipped trials, about %.0f s\n", k.Name(), len(picked),
		len(shipped[version]), accept.Seconds(picked))
	for _, branch := range left {
		_, _ = fmt.Fprintf(c.Out, "  not computed: %s\n", branch)
	}
	if v.DryRun {
		return nil
	}
	if len(picked) == 0 && !v.Unshown {
		return errors.New(
			"no shipped trial was found that could show a difference: ship one, set NASML_DATA to a folder with the " +
				"data, or give --unshown")
	}
	moved, largest, err := accept.Recompute(ctx, picked, func(text string) { c.logf("%s", text) })
	if err != nil {
		return err
	}
	for _, d := range moved {
		_, _ = fmt.Fprintf(c.Out, "  %v\n", d)
	}
	switch {
	case slices.ContainsFunc(moved, accept.Difference.Counts):
		return errMoved
	case len(moved) > 0 && !v.Unshown:
		return errElsewhere
	case len(picked) == 0:
		_, _ = fmt.Fprintln(c.Out, "  accepted: no trial is shipped that could show a difference")
	case len(moved) > 0:
		_, _ = fmt.Fprintln(c.Out, "  accepted, although these numbers show nothing")
	case largest == 0:
		_, _ = fmt.Fprintln(c.Out, "  accepted: all numbers are the same bit for bit")
	default:
		_, _ = fmt.Fprintf(c.Out, "  accepted: the largest relative difference is %.2g, %.2g is allowed in float32\n",
			largest, accept.Tolerance)
	}
	return addToLedger(ledger, k.Name(), source)
}

func addToLedger(file, kind, source string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := code.ParseLedger(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	l.Accept(kind, source)
	if text, err = l.Text(); err != nil {
		return err
	}
	return files.WriteBytes(file, string(text))
}
