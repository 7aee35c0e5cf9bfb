package data

import "sync"

// OneShot101 is the shipped part of NAS-Bench-101: the rows of its published subset (see [LoadNASBench101]) with cells
// of NAS-Bench-1Shot1's spaces. See shipped/README.md.
var OneShot101 = sync.OnceValues(func() (*NASBench101, error) {
	f, err := shippedCSV("nasbench101_1shot1.csv.gz")
	if err != nil {
		return nil, err
	}
	b, _, err := parse101(f)
	return b, err
})
