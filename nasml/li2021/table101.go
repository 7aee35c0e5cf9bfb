package li2021

import (
	"errors"

	"github.com/nasml/lab/nasml/data"
)

// table101 reads NAS-Bench-101's table, or the part of it that there is, from the
// folder of the data sets. Where there is none it is nil: what has been looked up
// is drawn without it.
func table101() (*data.NASBench101, error) {
	table, err := data.LoadNASBench101("")
	if errors.Is(err, data.ErrMissing) {
		return nil, nil
	}
	return table, err
}

// noTable101 says why a number is missing.
const noTable101 = "the table of NAS-Bench-101 is not there: run \"go tool nasml data nasbench101 --from DIR\" " +
	"with a folder that has the publisher's nasbench_only108.tfrecord, or set NASML_DATA to a folder that has " +
	"nasbench/nb101_108_subset151644.csv.gz"

// noTable101Caption is a note of a picture that lacks what the table has.
const noTable101Caption = "The table of NAS-Bench-101 is not there: what the project does not ship is left out."
