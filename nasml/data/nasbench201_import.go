package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// accuracies201 are the columns that the table gets, in this order.
var accuracies201 = []string{
	"e200_c10valid_val", "e200_c10valid_test", "e200_c100_val", "e200_c100_test", "e200_in16_val", "e200_in16_test",
	"nats_e200_c10_test", "nats_e200_c100_test", "nats_e200_in16_test",
	"e12_c10valid_val", "e12_c10_test", "e12_c100_val", "e12_c100_test", "e12_in16_val", "e12_in16_test",
}

// ImportNASBench201 makes the two files of LoadNASBench201 of the benchmark's own, which a user has in the folder from:
//
//	NATS-tss-v1_0-3ffb9-simple/            of NATS-Bench, one zipped pickle an architecture (or the
//	NATS-tss-v1_0-3ffb9.pickle.pbz2        same in one file)
//	NAS-Bench-201-v1_1-096897.pth          of NAS-Bench-201 (or v1_0-e61699)
//
// from may also be that folder or file itself. The columns are those that the files have numbers for: e200_… of
// NAS-Bench-201, nats_e200_… and the single trials (by seed) of NATS-Bench, e12_… of NAS-Bench-201 and where it is not
// there of NATS-Bench, and the mean training time and the number of weights of either. Columns of one release are never
// filled from the other. There is no column iso_class.
//
// Pickles are read as data and never executed: anything but numbers, texts and containers is an error. All of a file
// passes through once, and what the columns do not need is dropped as it passes.
//
// An error says what was found where and what was expected; it wraps ErrMissing or ErrBroken. A table that is there
// already is not touched. advance, which may be nil, hears of every file how much of it was read.
func ImportNASBench201(ctx context.Context, from string, advance func(path string, done, total int64)) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	if err := notYet(dir, table201File, trials201File); err != nil {
		return err
	}
	paths, err := originals201(from)
	if err != nil {
		return err
	}
	var sources []*original201
	for _, path := range paths {
		o, err := readOriginal201(ctx, path, heard(advance, path))
		if err != nil {
			return err
		}
		if err := o.complete(); err != nil {
			return err
		}
		if len(sources) > 0 && !slices.Equal(o.archs, sources[0].archs) {
			return fmt.Errorf("%s: found architectures in another order than in %s: %w, expected the same", path,
				sources[0].path, ErrBroken)
		}
		sources = append(sources, o)
	}
	return install201(dir, sources)
}

// notYet returns an error if one of the files exists, zipped or not.
func notYet(dir string, files ...string) error {
	for _, file := range files {
		for _, at := range places(filepath.Join(dir, filepath.FromSlash(file))) {
			if exists(at) {
				return fmt.Errorf("%s is there already; move it away to make it anew", at)
			}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// heard tells advance of one file; of nil, nobody.
func heard(advance func(path string, done, total int64), path string) func(done, total int64) {
	if advance == nil {
		return func(int64, int64) {}
	}
	return func(done, total int64) { advance(path, done, total) }
}

// patterns201 are the publishers' files of either release.
var patterns201 = [][]string{{"NAS-Bench-201-*.pth"}, {"NATS-tss-*-simple", "NATS-tss-*.pickle.pbz2"}}

func originals201(from string) ([]string, error) {
	if exists(filepath.Join(from, "meta.pickle.pbz2")) {
		return []string{from}, nil
	}
	return originals(from, patterns201)
}

// originals finds publishers' files in a folder, or in nasbench below it: of every list those of the first pattern that
// fits, and of these the last, which is the latest version. from may also be a file itself.
func originals(from string, lists [][]string) ([]string, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("found no folder to import from: %w", err)
	}
	if !info.IsDir() {
		return []string{from}, nil
	}
	var paths []string
	for _, patterns := range lists {
		for _, pattern := range patterns {
			here, _ := filepath.Glob(filepath.Join(from, pattern)) // the pattern is well-formed
			below, _ := filepath.Glob(filepath.Join(from, "nasbench", pattern))
			if found := append(here, below...); len(found) > 0 {
				paths = append(paths, found[len(found)-1])
				break
			}
		}
	}
	if paths == nil {
		return nil, fmt.Errorf("%s: %w: found neither %s, expected one as its authors publish it, unpacked if it is "+
			"a .tar", from, ErrMissing, strings.Join(slices.Concat(lists...), " nor "))
	}
	return paths, nil
}

// withOriginals adds to the error of a missing table how to make it of the publisher's files.
func withOriginals(err error, name, dir string, lists [][]string) error {
	if !errors.Is(err, ErrMissing) {
		return err
	}
	found, notThere := originals(dir, lists)
	if notThere != nil {
		return fmt.Errorf("%w; or run \"go tool nasml data %s --from DIR\" with the publisher's files (%w)", err, name,
			notThere)
	}
	return fmt.Errorf("%w. Found %s: run \"go tool nasml data %s --from %s\", which makes the table of it", err,
		found[0], name, dir)
}

func (o *original201) complete() error {
	if len(o.archs) == Archs201 && len(o.results) == Archs201 {
		return nil
	}
	if len(o.archs) != Archs201 {
		return fmt.Errorf("%s: found %d architectures: %w, expected %d; put the whole benchmark in its place", o.path,
			len(o.archs), ErrBroken, Archs201)
	}
	first := 0
	for ; o.results[first] != nil; first++ {
	}
	return fmt.Errorf(
		"%s: found results of %d architectures, and none of architecture %d: %w, expected those of all %d; put the "+
			"whole benchmark in its place", o.path, len(o.results), first, ErrBroken, Archs201)
}

func install201(dir string, sources []*original201) error {
	means, err := means201CSV(sources)
	if err != nil {
		return err
	}
	var tables []table
	if last := sources[len(sources)-1]; last.release == ReleaseNATS {
		tables = append(tables, table{trials201File, last.trialsCSV()})
	}
	tables = append(tables, table{table201File, means}) // last: it says that all is there
	return explain(installTables(dir, sources[0].path, tables, func(made string) error {
		_, err := LoadNASBench201(made)
		return err
	}), File{})
}

type table struct {
	file string
	text []byte
}

// installTables writes zipped tables to a temporary folder, reads them as users do, and then moves them to their places
// in order.
func installTables(dir, original string, tables []table, load func(made string) error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(dir, ".nasbench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	for _, t := range tables {
		if err := writeZipped(filepath.Join(made, filepath.FromSlash(t.file)), t.text); err != nil {
			return err
		}
	}
	if err := load(made); err != nil {
		return fmt.Errorf("what was made of %s: %w", original, err)
	}
	for _, t := range tables {
		from, to := filepath.Join(made, filepath.FromSlash(t.file)), filepath.Join(dir, filepath.FromSlash(t.file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return nil
}

func writeZipped(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	if _, err := io.Copy(z, bytes.NewReader(text)); err != nil {
		return err
	}
	return errors.Join(z.Close(), f.Sync())
}

func means201CSV(sources []*original201) ([]byte, error) {
	names := []string{indexColumn, archColumn}
	columns := [][]float64{nil, nil}
	for _, name := range append(slices.Clone(accuracies201), paramsColumn, secondsColumn) {
		column, err := column201(sources, name)
		if err != nil {
			return nil, err
		}
		if column != nil {
			names, columns = append(names, name), append(columns, column)
		}
	}
	var out bytes.Buffer
	out.WriteString(strings.Join(names, ",") + "\n")
	for i, arch := range sources[0].archs {
		out.WriteString(strconv.Itoa(i) + "," + arch)
		for _, column := range columns[2:] {
			out.WriteString("," + strconv.FormatFloat(column[i], 'g', -1, 64))
		}
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// column201 returns a column, by the original's index, of the first source that has it; nil if none has.
func column201(sources []*original201, name string) ([]float64, error) {
	for _, o := range sources {
		column, has := make([]float64, len(o.archs)), 0
		missing := 0
		for i := range column {
			x, ok := o.number(i, name)
			if column[i] = x; ok {
				has++
			} else if missing == 0 {
				missing = i
			}
		}
		switch {
		case has == len(column):
			return column, nil
		case has > 0 && name != secondsColumn: // times were not measured in every training
			return nil, fmt.Errorf(
				"%s: found numbers for column %s for %d architectures and none for architecture %d: %w, expected "+
					"them for all or none", o.path, name, has, missing, ErrBroken)
		}
	}
	return nil, nil
}

func (o *original201) number(index int, name string) (float64, bool) {
	q, isAccuracy := means201[name]
	half := func(t trial201) bool { return t.task == TaskCIFAR10Valid }
	switch {
	case name == paramsColumn:
		return mean201(o.results[index][200], func(t trial201) (float64, bool) { return t.params, half(t) })
	case name == secondsColumn:
		return mean201(o.results[index][200],
			func(t trial201) (float64, bool) { return t.seconds, half(t) && t.seconds > 0 })
	case !isAccuracy || q.Epochs == 200 && q.Release != o.release:
		return 0, false
	}
	return mean201(o.results[index][q.Epochs], func(t trial201) (float64, bool) {
		x, ok := t.accuracy[set201(q)]
		return x, ok && t.task == q.Task
	})
}

func set201(q Query201) string {
	switch {
	case q.Split == Valid:
		return xValid
	case q.Split == Test && (q.Task == TaskCIFAR100 || q.Task == TaskImageNet16):
		return xTest
	}
	return oriTest
}

func mean201(trials []trial201, number func(trial201) (float64, bool)) (float64, bool) {
	sum, n := 0.0, 0
	for _, t := range trials {
		if x, ok := number(t); ok {
			sum, n = sum+x, n+1
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

func (o *original201) trialsCSV() []byte {
	names := []string{"c10valid_val", "c100_valtest", "in16_valtest"}
	var out bytes.Buffer
	out.WriteString(indexColumn + "," + trialColumn + "," + strings.Join(names, ",") + "\n")
	for i := range o.archs {
		bySeed := map[int]map[string]float64{}
		var seeds []int
		for _, t := range o.results[i][200] {
			for _, name := range names {
				q := ofTrials201[name]
				x, ok := t.accuracy[set201(q)]
				if !ok || t.task != q.Task {
					continue
				}
				if bySeed[t.seed] == nil {
					bySeed[t.seed] = map[string]float64{}
				}
				if bySeed[t.seed][name] = x; len(bySeed[t.seed]) == len(names) {
					seeds = append(seeds, t.seed)
				}
			}
		}
		slices.Sort(seeds)
		for trial, seed := range seeds[:min(len(seeds), maxTrials201)] {
			fmt.Fprintf(&out, "%d,%d", i, trial)
			for _, name := range names {
				out.WriteString("," + strconv.FormatFloat(bySeed[seed][name], 'g', -1, 64))
			}
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
