package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/study"
	"github.com/schollz/progressbar/v3"
)

type dataCmd struct {
	Name []string `arg:"" optional:"" complete:"data" help:"Data sets to download: mnist, fashion-mnist, cifar-10, cifar-100; or nasbench101 or nasbench201, with --from. Without any: list all."`
	From string   `help:"Take the files from this folder instead of the network; they are checked and copied. For nasbench201: the folder that has NATS-tss-…-simple, NAS-Bench-201-….pth or both, of which the table is made; for nasbench101: the one that has nasbench_full.tfrecord or nasbench_only108.tfrecord." placeholder:"DIR"`
	JSON bool     `name:"json" help:"Print JSON."`
}

// table is a benchmark's table, which is made of its authors' files and not downloaded.
type table struct {
	file    string // that is made
	authors string // what it is made of
	make    func(ctx context.Context, c console, from string, advance func(path string, done, total int64)) error
	load    func() error
}

var tables = map[string]table{
	"nasbench101": {
		"nasbench/nasbench101.csv.gz", "nasbench_full.tfrecord or nasbench_only108.tfrecord", makeNASBench101,
		func() error { _, err := data.LoadNASBench101(""); return err },
	},
	"nasbench201": {
		"nasbench/nasbench201.csv.gz", "NATS-tss-…-simple, NAS-Bench-201-….pth or both",
		func(ctx context.Context, _ console, from string, advance func(path string, done, total int64)) error {
			return data.ImportNASBench201(ctx, from, advance)
		},
		func() error { _, err := data.LoadNASBench201(""); return err },
	},
}

// makeNASBench101 reports how much of the benchmark the table has.
func makeNASBench101(ctx context.Context, c console, from string, advance func(path string, done, total int64)) error {
	made, err := data.ImportNASBench101(ctx, from, advance)
	if err != nil {
		return err
	}
	c.logf("nasbench101: %d of the benchmark's %d cells, trainings of %v epochs", made.Len(), data.Cells101,
		made.Epochs())
	return nil
}

func (v *dataCmd) Run(ctx context.Context, c console) error {
	for _, name := range v.Name {
		if _, ok := tables[name]; ok {
			return v.makeTable(ctx, c, name)
		}
	}
	names := study.Map(v.Name, func(name string) data.Name { return data.Name(name) })
	if _, err := data.Status(names...); err != nil {
		return catalog.Usagef("%v", err)
	}
	if v.From != "" {
		if err := data.Import(v.From, names...); err != nil {
			return err
		}
		return listData(c, v.JSON, names)
	}
	for _, name := range names {
		if err := fetch(ctx, c, name); err != nil {
			return err
		}
	}
	return listData(c, v.JSON, names)
}

func (v *dataCmd) makeTable(ctx context.Context, c console, name string) error {
	t := tables[name]
	switch {
	case len(v.Name) > 1:
		return catalog.Usagef("found %v, expected %s alone: it is not downloaded but made", v.Name, name)
	case v.From == "":
		return catalog.Usagef("%s has no address to download it from, expected --from DIR with its authors' %s", name,
			t.authors)
	}
	bar := progress{c: c}
	err := t.make(ctx, c, v.From, bar.set)
	bar.finish()
	if err != nil {
		return err
	}
	return listData(c, v.JSON, nil)
}

// fetch downloads missing files, with a progress bar in a terminal.
func fetch(ctx context.Context, c console, name data.Name) error {
	c.logf("%s: checking files, downloading missing ones", name)
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
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.c.Err),
			progressbar.OptionSetVisibility(isTerminal(p.c.Err)), progressbar.OptionShowBytes(p.bytes),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetDescription(filepath.Base(what)),
			progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

type listedFile struct {
	Set   string     `json:"set"`
	File  string     `json:"file"`  // below the folder of the data
	Bytes *int64     `json:"bytes"` // of the publisher's file; null where that is not known
	State data.State `json:"state"`
	What  string     `json:"problem"` // and what to do; empty where it is present
}

func fileOf(set, file string, state data.State, problem error) listedFile {
	one := listedFile{Set: set, File: file, State: state}
	if problem != nil {
		one.What = problem.Error()
	}
	return one
}

// listData prints every file's state, and fails if one is broken.
func listData(c console, asJSON bool, names []data.Name) error {
	files, err := data.Status(names...)
	if err != nil {
		return err
	}
	dir, err := data.Dir()
	if err != nil {
		return err
	}
	list := []listedFile{}
	var broken []error
	for _, f := range files {
		one := fileOf(string(f.Name), f.File.Path, f.State, f.Problem)
		if f.File.Size > 0 {
			one.Bytes = &f.File.Size
		}
		list = append(list, one)
		switch f.State {
		case data.Broken:
			broken = append(broken, f.Problem)
		case data.Incomplete:
			c.logf("%v", f.Problem)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if len(names) == 0 {
			problem := tables[name].load()
			state, err := tableState(problem, filepath.Join(dir, filepath.FromSlash(tables[name].file)))
			list, broken = append(list, fileOf(name, tables[name].file, state, problem)), append(broken, err)
		}
	}
	return errors.Join(append([]error{printData(c, asJSON, dir, list)}, broken...)...)
}

func printData(c console, asJSON bool, dir string, list []listedFile) error {
	if asJSON {
		return printJSON(c, "  ", map[string]any{"folder": dir, "files": list})
	}
	_, _ = fmt.Fprintf(c.Out, "data in %s\n", dir)
	rows := [][]string{{"SET", "FILE", "SIZE", "STATE"}}
	for _, f := range list {
		size := "?"
		if f.Bytes != nil {
			size = fmt.Sprintf("%.2f MB", float64(*f.Bytes)/1e6)
		}
		rows = append(rows, []string{f.Set, f.File, size, string(f.State)})
	}
	return c.table(rows)
}

// shipped is the state of a shipped table that the data folder does not replace.
const shipped data.State = "shipped"

// tableState is a table's state by the error of loading it. path is where the user's own would be.
func tableState(err error, path string) (data.State, error) {
	switch {
	case err == nil:
		if exists(path) || exists(strings.TrimSuffix(path, ".gz")) {
			return data.Present, nil
		}
		return shipped, nil
	case errors.Is(err, data.ErrMissing):
		return data.Missing, nil
	}
	return data.Broken, err
}
