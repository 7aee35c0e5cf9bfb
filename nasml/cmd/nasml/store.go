package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/nasml/lab/nasml/runs"
)

type storeCmd struct {
	Ls     storeLs     `cmd:"" help:"List the finished trials."`
	Show   storeShow   `cmd:"" help:"Print a record."`
	Export storeExport `cmd:"" help:"Print records as JSON lines, to keep them in a repository or to hand them on."`
	Gc     storeGC     `cmd:"" help:"Remove what is of no use: set-aside files, dead locks, old checkpoints. Never a record."`
	Verify storeVerify `cmd:"" help:"Read everything; set aside what is broken, so that it is computed again."`
	Accept storeAccept `cmd:"" help:"Recompute shipped trials whose source has changed, and accept the source where the numbers are the same."`
}

type storeLs struct{}

// Run lists the records.
func (*storeLs) Run(c console) error {
	store, err := runs.Default()
	if err != nil {
		return err
	}
	records, broken, err := store.List()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KEY\tFIGURE\tSCALE\tSEED\tBACKEND\tSTARTED")
	for _, r := range records {
		_, _ = fmt.Fprintf(
			table,
			"%.12s\t%s\t%s\t%d\t%s\t%s\n",
			r.Key,
			r.Trial.Figure,
			r.Scale,
			r.Trial.Seed,
			r.Backend,
			r.Started.Format(time.DateTime),
		)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	c.logf("%d records in %s", len(records), store.Dir())
	if len(broken) > 0 {
		c.logf("%d more are broken: `go tool nasml store verify` sets them aside", len(broken))
	}
	return nil
}

type storeShow struct {
	Key string `arg:"" help:"Key of the trial, or as much of its beginning as is needed."`
}

// Run prints one record as JSON.
func (v *storeShow) Run(c console) error {
	store, err := runs.Default()
	if err != nil {
		return err
	}
	record, err := store.Find(v.Key)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("printing record %s: %w", record.Key, err)
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", text)
	return err
}

type storeExport struct {
	Figure string `help:"Only the trials of this figure, such as oymak2021/figure2." placeholder:"ID"`
	Scale  string `help:"Only those that were computed at this scale." placeholder:"SCALE"`
}

// Run prints records as a package that ships them reads them.
func (v *storeExport) Run(c console) error {
	store, err := runs.Default()
	if err != nil {
		return err
	}
	records, _, err := store.List()
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r *runs.Record) bool {
		return (v.Figure != "" && r.Trial.Figure != v.Figure) || (v.Scale != "" && r.Scale != v.Scale)
	})
	if len(records) == 0 {
		return fmt.Errorf("no such record in %s: `go tool nasml store ls` lists what is there", store.Dir())
	}
	return runs.WriteBundle(c.Out, records)
}

type storeGC struct {
	OlderThan time.Duration `help:"Age from which a checkpoint is old." default:"168h"`
	DryRun    bool          `help:"Only count."`
}

// Run removes what nobody can use.
func (v *storeGC) Run(c console) error {
	store, err := runs.Default()
	if err != nil {
		return err
	}
	removed, err := store.GC(runs.GCOptions{OlderThan: v.OlderThan, DryRun: v.DryRun})
	verb := "removed"
	if v.DryRun {
		verb = "would remove"
	}
	_, _ = fmt.Fprintf(
		c.Out,
		"%s %d files, %.1f MB, from %s\n",
		verb,
		removed.Files,
		float64(removed.Bytes)/1e6,
		store.Dir(),
	)
	return err
}

type storeVerify struct{}

// Run reads the whole store, and fails where something in it is broken.
func (*storeVerify) Run(c console) error {
	store, err := runs.Default()
	if err != nil {
		return err
	}
	report, err := store.Verify()
	_, _ = fmt.Fprintf(c.Out, "%s: %d records and %d checkpoints are whole, %d files are broken\n",
		store.Dir(), report.Records, report.Checkpoints, len(report.Broken))
	for _, b := range report.Broken {
		_, _ = fmt.Fprintln(c.Out, b)
	}
	if err == nil && len(report.Broken) > 0 {
		err = errors.New("broken files were found; what they held is computed again when it is needed")
	}
	return err
}
