package li2021

import (
	"errors"
	"sync"

	"github.com/nasml/lab/nasml/data"
)

// opened101 is NAS-Bench-101's table, or the part of it that there is.
type opened101 = data.Opened101[*data.NASBench101]

// table101 opens NAS-Bench-101's table in the folder of the data sets, once for all
// figures; it is read where a trial is to be computed. Where there is none it is nil:
// what has been looked up is drawn without it.
func table101() (*opened101, error) {
	dir, err := data.Dir()
	if err != nil {
		return nil, err
	}
	tables101.Lock()
	defer tables101.Unlock()
	if table, ok := tables101.of[dir]; ok {
		return table, nil
	}
	table, err := data.OpenNASBench101(dir)
	if errors.Is(err, data.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tables101.of[dir] = table
	return table, nil
}

// tables101 are the tables that were opened, by their folders.
var tables101 = struct {
	sync.Mutex
	of map[string]*opened101
}{of: map[string]*opened101{}}

// noTable101 says why a number is missing.
const noTable101 = "the table of NAS-Bench-101 is not there: run \"go tool nasml data nasbench101 --from DIR\" " +
	"with a folder that has the publisher's nasbench_only108.tfrecord, or set NASML_DATA to a folder that has " +
	"nasbench/nb101_108_subset151644.csv.gz"

// noTable101Caption is a note of a picture that lacks what the table has.
const noTable101Caption = "The table of NAS-Bench-101 is not there: what the project does not ship is left out."
