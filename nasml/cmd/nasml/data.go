package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/nasml/lab/nasml/data"
	"github.com/schollz/progressbar/v3"
)

type dataCmd struct {
	Name []string `arg:"" optional:"" help:"Data sets to download: mnist, fashion-mnist, cifar-10, cifar-100; or nasbench201, with --from. Without any: list all."`
	From string   `help:"Take the files from this folder instead of the network; they are checked and copied. For nasbench201: the folder that has NATS-tss-…-simple, NAS-Bench-201-….pth or both, of which the table is made." placeholder:"DIR"`
}

// nasbench201 is the name by which the table of NAS-Bench-201 is made: it is no
// set of images.
const nasbench201 = "nasbench201"

// Run lists, takes over or downloads data sets.
func (v *dataCmd) Run(ctx context.Context, c console) error {
	if slices.Contains(v.Name, nasbench201) {
		return v.makeTable(ctx, c)
	}
	names, err := v.names()
	if err != nil {
		return err
	}
	switch {
	case v.From != "":
		if err := data.Import(v.From, names...); err != nil {
			return err
		}
	default:
		for _, name := range names {
			if err := fetch(ctx, c, name); err != nil {
				return err
			}
		}
	}
	return listData(c, names)
}

// makeTable makes the table of NAS-Bench-201 of its authors' files, and lists
// all.
func (v *dataCmd) makeTable(ctx context.Context, c console) error {
	switch {
	case len(v.Name) > 1:
		return usageError{fmt.Errorf("found %v, expected %s alone: it is not downloaded but made", v.Name, nasbench201)}
	case v.From == "":
		return usageError{fmt.Errorf("%s has no address to download it from, expected --from DIR with its authors' NATS-tss-…-simple, NAS-Bench-201-….pth or both", nasbench201)}
	}
	bar := progress{c: c}
	err := data.ImportNASBench201(ctx, v.From, bar.set)
	bar.finish()
	if err != nil {
		return err
	}
	return listData(c, nil)
}

// names are the named sets; an unknown one is a mistake in the call.
func (v *dataCmd) names() ([]data.Name, error) {
	var names []data.Name
	for _, name := range v.Name {
		if _, err := data.Status(data.Name(name)); err != nil {
			return nil, usageError{err}
		}
		names = append(names, data.Name(name))
	}
	return names, nil
}

// fetch downloads what is missing of a set, with a bar or, without a
// terminal, a line at the beginning.
func fetch(ctx context.Context, c console, name data.Name) error {
	c.logf("%s: checking, and downloading what is missing", name)
	bar := progress{c: c, bytes: true}
	defer bar.finish()
	return data.Fetch(ctx, name, func(done, total int64) { bar.set(string(name), done, total) })
}

// progress draws a bar for one thing after the other.
type progress struct {
	c     console
	bytes bool // are counted, and are to be shown as such
	what  string
	bar   *progressbar.ProgressBar
}

func (p *progress) set(what string, done, total int64) {
	if p.bar == nil || what != p.what {
		p.finish()
		p.what = what
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.c.Err), progressbar.OptionSetVisibility(isTerminal(p.c.Err)),
			progressbar.OptionShowBytes(p.bytes), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription(filepath.Base(what)), progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

// listData prints the state of every file, and fails where one is broken.
func listData(c console, names []data.Name) error {
	files, err := data.Status(names...)
	if err != nil {
		return err
	}
	dir, err := data.Dir()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.Out, "data in %s\n", dir)
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SET\tFILE\tSIZE\tSTATE")
	var broken []error
	for _, f := range files {
		size := "?"
		if f.File.Size > 0 {
			size = fmt.Sprintf("%.2f MB", float64(f.File.Size)/1e6)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Name, f.File.Path, size, f.State)
		switch f.State {
		case data.Broken:
			broken = append(broken, f.Problem)
		case data.Incomplete:
			c.logf("%v", f.Problem)
		}
	}
	if len(names) == 0 {
		state, err := tableState()
		_, _ = fmt.Fprintf(table, "%s\tnasbench/nasbench201.csv.gz\t?\t%s\n", nasbench, state)
		broken = append(broken, err)
	}
	return errors.Join(append([]error{table.Flush()}, broken...)...)
}

// tableState is the state of the table of NAS-Bench-201, which no publisher
// has as this file, with what is wrong where it is broken.
func tableState() (data.State, error) {
	switch _, err := data.LoadNASBench201(""); {
	case err == nil:
		return data.Present, nil
	case errors.Is(err, data.ErrMissing):
		return data.Missing, nil
	default:
		return data.Broken, err
	}
}
