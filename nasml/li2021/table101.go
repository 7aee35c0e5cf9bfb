package li2021

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
)

// table101 opens NAS-Bench-101's table in the data folder, once for all figures; trials read it when they are computed.
// It is nil if the table is missing: figures are then drawn from stored look-ups.
func table101() (*opened101[*data.NASBench101], error) {
	dir, err := data.Dir()
	if err != nil {
		return nil, err
	}
	tables101.Lock()
	defer tables101.Unlock()
	if table, ok := tables101.of[dir]; ok {
		return table, nil
	}
	table, err := openNASBench101(dir)
	if errors.Is(err, data.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tables101.of[dir] = table
	return table, nil
}

var tables101 = struct {
	sync.Mutex
	of map[string]*opened101[*data.NASBench101]
}{of: map[string]*opened101[*data.NASBench101]{}}

// oneShotTable is [table101] for cells of some spaces of NAS-Bench-1Shot1. Without a table it is the shipped part,
// which agrees with the published subset on these cells and has its fingerprint. A custom space has other cells;
// without a table the result is nil.
func oneShotTable(spaces []string) (*opened101[*data.NASBench101], string, error) {
	table, err := table101()
	if err != nil {
		return nil, "", err
	}
	if table != nil {
		return table, table.fingerprint, nil
	}
	for _, name := range spaces {
		if !reflect.DeepEqual(supernet.OneShots[name], benchmarkOneShots[name]) {
			return nil, data.NASBench101Fingerprint, nil
		}
	}
	return shipped101, shipped101.fingerprint, nil
}

// benchmarkOneShots are the spaces of the benchmark, without a reader's.
var benchmarkOneShots = maps.Clone(supernet.OneShots)

var shipped101 = &opened101[*data.NASBench101]{
	fingerprint: data.NASBench101Fingerprint,
	read:        data.OneShot101,
	of:          func(*data.NASBench101) string { return data.NASBench101Fingerprint },
}

const noTable101 = "the table of NAS-Bench-101 is not there: run \"go tool nasml data nasbench101 --from DIR\" " +
	"with a folder that has the publisher's nasbench_only108.tfrecord, or set NASML_DATA to a folder that has " +
	"nasbench/nb101_108_subset151644.csv.gz"

const noTable101Caption = "The table of NAS-Bench-101 is not there: what the project does not ship is left out."

// The files of NAS-Bench-101 below the folder of the data sets, as package data reads
// them: the table, a published part of it, and what is ranked beside it.
const (
	table101File  = "nasbench/nasbench101.csv.gz"
	subset101File = "nasbench/nb101_108_subset151644.csv.gz"
	shared101File = "nasbench/weightsharing_proxy.csv.gz"
)

// opened101 is a file of NAS-Bench-101 of which only the fingerprint need be known:
// a figure whose trials are all stored is drawn without its content.
type opened101[T any] struct {
	path        string
	fingerprint string
	read        func() (T, error)
	of          func(T) string // the fingerprint of what was read
}

// openNASBench101 opens the table that [data.LoadNASBench101] reads. A file that has not changed since it was read is
// not read again.
func openNASBench101(dir string) (*opened101[*data.NASBench101], error) {
	names := []string{table101File, subset101File}
	return open101(dir, names, data.LoadNASBench101, func(t *data.NASBench101) string { return t.Fingerprint })
}

// openShared101 is openNASBench101 for what [data.LoadShared101] reads.
func openShared101(dir string) (*opened101[[]data.Shared101], error) {
	return open101(dir, []string{shared101File}, func(dir string) ([]data.Shared101, error) {
		all, err := data.LoadShared101(dir)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("%s: found no row, expected one a cell: %w", shared101File, data.ErrBroken)
		}
		return all, err
	}, func(all []data.Shared101) string { return all[0].Fingerprint })
}

func open101[T any](
	dir string, names []string, load func(dir string) (T, error), of func(T) string,
) (o *opened101[T], err error) {
	if dir == "" {
		if dir, err = data.Dir(); err != nil {
			return nil, err
		}
	}
	o = &opened101[T]{path: firstThere(dir, names), of: of}
	o.read = sync.OnceValues(func() (T, error) { return load(dir) })
	o.fingerprint, err = files.Remembered(o.path, "fingerprint", func() (string, error) {
		file, err := o.read()
		if err != nil {
			return "", err
		}
		return of(file), nil
	})
	return o, err
}

// content is the content of the file, read at the first call. It returns an error if the fingerprint is another's,
// which is then no longer remembered.
func (o *opened101[T]) content() (T, error) {
	file, err := o.read()
	if err == nil && o.of(file) != o.fingerprint {
		files.Forget(o.path, "fingerprint")
		err = fmt.Errorf("found a file of NAS-Bench-101 with fingerprint %s, expected %s: it has changed since it was "+
			"opened; run again", o.of(file), o.fingerprint)
	}
	return file, err
}

// firstThere is the path of the first of the files, zipped or not, that is there; empty: none is.
func firstThere(dir string, names []string) string {
	for _, name := range names {
		zipped := filepath.Join(dir, filepath.FromSlash(name))
		for _, path := range []string{zipped, strings.TrimSuffix(zipped, ".gz")} {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}
