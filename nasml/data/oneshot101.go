package data

import "sync"

// OneShot101 is the part of NAS-Bench-101 that is part of the project: the rows of its
// published subset (see [LoadNASBench101]) whose cells are in a space of
// NAS-Bench-1Shot1. For a cell of S1, S2 or S3 it says what the subset says. See
// shipped/README.md.
var OneShot101 = sync.OnceValues(func() (*NASBench101, error) {
	f, err := shippedCSV("nasbench101_1shot1.csv.gz")
	if err != nil {
		return nil, err
	}
	b, _, err := parse101(f)
	return b, err
})
