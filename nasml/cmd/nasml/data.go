package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/nasml/lab/nasml/data"
	"github.com/schollz/progressbar/v3"
)

type dataCmd struct {
	Name []string `arg:"" optional:"" help:"Data sets to download: mnist, fashion-mnist, cifar-10, cifar-100. Without any: list all."`
	From string   `help:"Take the files from this folder instead of the network; they are checked and copied." placeholder:"DIR"`
}

// Run lists, takes over or downloads data sets.
func (v *dataCmd) Run(ctx context.Context, c console) error {
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
	var bar *progressbar.ProgressBar
	err := data.Fetch(ctx, name, func(done, total int64) {
		if bar == nil {
			bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(c.Err), progressbar.OptionSetVisibility(isTerminal(c.Err)),
				progressbar.OptionShowBytes(true), progressbar.OptionSetDescription(string(name)), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set64(done) // a bar that cannot be drawn is no reason to stop
	})
	if bar != nil {
		_ = bar.Finish()
	}
	return err
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
