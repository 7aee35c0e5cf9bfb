package data

import "strconv"

// shared101File has accuracies with shared weights, for cells by their ids in subset101File.
const shared101File = "nasbench/weightsharing_proxy.csv.gz"

// Shared101 are accuracies of NAS-Bench-101's cells with the weights of one supernet (Pourchot+ 2020, "To share or not
// to share").
type Shared101 struct {
	Variant  string // of the training and evaluation of the shared weights
	Space    string // of cells that shared them, "full" or a part of the benchmark
	Seed     int
	Cells    []Cell101
	Accuracy []float64 // of validation, in percent, by cell

	Fingerprint string // SHA-256 of the uncompressed file
}

// LoadShared101 reads nasbench/weightsharing_proxy.csv.gz from a data folder (default: Dir): columns variant, space,
// seed, id and proxy_val_acc (a fraction); one result for each variant, space and seed, in the order of the file. The
// ids are those of nasbench/nb101_108_subset151644.csv.gz beside it. Its errors are those of LoadNASBench101.
func LoadShared101(dir string) ([]Shared101, error) {
	dir, err := dirOr(dir)
	if err != nil {
		return nil, err
	}
	subset, err := openCSV(dir, subset101File)
	if err != nil {
		return nil, err
	}
	table, rows, err := parse101(subset)
	if err != nil {
		return nil, err
	}
	f, err := openCSV(dir, shared101File)
	if err != nil {
		return nil, err
	}
	return parseShared101(f, table, rows)
}

func parseShared101(f *csvFile, table *NASBench101, rows map[int]int) ([]Shared101, error) {
	fingerprint, err := f.open()
	if err != nil {
		return nil, err
	}
	at, err := f.columns("variant", "space", "seed", idColumn, "proxy_val_acc")
	if err != nil {
		return nil, err
	}
	type group struct{ variant, space, seed string }
	var all []Shared101
	places := map[group]int{}
	_, err = f.rows(func(row int, fields []string) error {
		g := group{fields[at[0]], fields[at[1]], fields[at[2]]}
		place, seen := places[g]
		if !seen {
			seed, err := strconv.Atoi(g.seed)
			if err != nil {
				return f.wrong(row+2, "seed", "found "+strconv.Quote(g.seed), "a whole number")
			}
			place = len(all)
			places[g] = place
			all = append(all, Shared101{Variant: g.variant, Space: g.space, Seed: seed, Fingerprint: fingerprint})
		}
		id, err := strconv.Atoi(fields[at[3]])
		cell, known := rows[id]
		if err != nil || !known {
			return f.wrong(row+2, idColumn, "found "+strconv.Quote(fields[at[3]]), "an id of "+table.path)
		}
		x, err := strconv.ParseFloat(fields[at[4]], 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return f.wrong(row+2, "proxy_val_acc", "found "+strconv.Quote(fields[at[4]]), "a fraction from 0 to 1")
		}
		all[place].Cells = append(all[place].Cells, table.cells[cell])
		all[place].Accuracy = append(all[place].Accuracy, 100*x)
		return nil
	})
	return all, err
}
