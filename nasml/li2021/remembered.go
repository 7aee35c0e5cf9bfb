package li2021

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nasml/lab/internal/files"
	"github.com/nasml/lab/nasml/data"
)

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

// open101 opens the first of the files that exists.
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

// firstThere is the path of the first of the files, zipped or not, that is there;
// empty: none is.
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
