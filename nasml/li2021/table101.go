package li2021

import (
	"errors"
	"maps"
	"reflect"
	"sync"

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

// tables101 are the tables that were opened, by their folders.
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

// shipped101 is the part that nasml ships.
var shipped101 = &opened101[*data.NASBench101]{
	fingerprint: data.NASBench101Fingerprint,
	read:        data.OneShot101,
	of:          func(*data.NASBench101) string { return data.NASBench101Fingerprint },
}

// noTable101 says why a number is missing.
const noTable101 = "the table of NAS-Bench-101 is not there: run \"go tool nasml data nasbench101 --from DIR\" " +
	"with a folder that has the publisher's nasbench_only108.tfrecord, or set NASML_DATA to a folder that has " +
	"nasbench/nb101_108_subset151644.csv.gz"

const noTable101Caption = "The table of NAS-Bench-101 is not there: what the project does not ship is left out."
