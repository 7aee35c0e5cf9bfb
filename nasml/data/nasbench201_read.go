package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nasml/lab/internal/files"
)

// The table's two files in the data folder, zipped or not. The second may be missing.
const (
	table201File  = "nasbench/nasbench201.csv.gz"
	trials201File = "nasbench/nats_per_trial_e200.csv.gz"
)

// Names of columns that are not accuracies.
const (
	indexColumn   = "index"
	archColumn    = "arch"
	isoColumn     = "iso_class"
	trialColumn   = "trial"
	paramsColumn  = "params_m_c10"
	secondsColumn = "train_time_s_e200_c10valid"
)

// means201 are the accuracies of the table, means over trials.
var means201 = map[string]Query201{
	"e200_c10valid_val":   {TaskCIFAR10Valid, Valid, 200, ReleaseNB201, Mean},
	"e200_c10valid_test":  {TaskCIFAR10Valid, Test, 200, ReleaseNB201, Mean},
	"e200_c100_val":       {TaskCIFAR100, Valid, 200, ReleaseNB201, Mean},
	"e200_c100_test":      {TaskCIFAR100, Test, 200, ReleaseNB201, Mean},
	"e200_in16_val":       {TaskImageNet16, Valid, 200, ReleaseNB201, Mean},
	"e200_in16_test":      {TaskImageNet16, Test, 200, ReleaseNB201, Mean},
	"nats_e200_c10_test":  {TaskCIFAR10, Test, 200, ReleaseNATS, Mean},
	"nats_e200_c100_test": {TaskCIFAR100, Test, 200, ReleaseNATS, Mean},
	"nats_e200_in16_test": {TaskImageNet16, Test, 200, ReleaseNATS, Mean},
	"e12_c10valid_val":    {TaskCIFAR10Valid, Valid, 12, ReleaseNB201, Mean},
	"e12_c10_test":        {TaskCIFAR10, Test, 12, ReleaseNB201, Mean},
	"e12_c100_val":        {TaskCIFAR100, Valid, 12, ReleaseNB201, Mean},
	"e12_c100_test":       {TaskCIFAR100, Test, 12, ReleaseNB201, Mean},
	"e12_in16_val":        {TaskImageNet16, Valid, 12, ReleaseNB201, Mean},
	"e12_in16_test":       {TaskImageNet16, Test, 12, ReleaseNB201, Mean},
}

// ofTrials201 are the accuracies of single trials; Trial comes from the row.
var ofTrials201 = map[string]Query201{
	"c10valid_val": {TaskCIFAR10Valid, Valid, 200, ReleaseNATS, Mean},
	"c100_valtest": {TaskCIFAR100, ValidTest, 200, ReleaseNATS, Mean},
	"in16_valtest": {TaskImageNet16, ValidTest, 200, ReleaseNATS, Mean},
}

// maxTrials201 is how often an architecture was trained at most.
const maxTrials201 = 3

// LoadNASBench201 reads the table. If dir is empty it takes the user's own file in the folder of [Dir], or else the one
// that is part of the project, so that there always is one. Otherwise it reads the folder dir:
// nasbench/nasbench201.csv.gz, one row an architecture, and for single trials nasbench/nats_per_trial_e200.csv.gz,
// zipped or not. What it has read once it keeps in the user's cache folder, by the files' SHA-256, so that the table is
// in memory in much less than a tenth of a second.
//
// The table has the column arch and any of index (the original's, 0…15,624; without it the order of the rows),
// iso_class, params_m_c10, train_time_s_e200_c10valid, and accuracies in percent, named by epochs, task and split:
// e200_c10valid_val, e200_c10valid_test, e200_c100_val, e200_c100_test, e200_in16_val, e200_in16_test,
// nats_e200_c10_test, nats_e200_c100_test, nats_e200_in16_test, e12_c10valid_val, e12_c10_test, e12_c100_val,
// e12_c100_test, e12_in16_val, e12_in16_test. The second file has index, trial (0, 1, 2) and any of c10valid_val,
// c100_valtest and in16_valtest, all of 200 epochs of NATS-Bench.
//
// ImportNASBench201 makes the CSV of the benchmark's own files.
//
// An error names the file and, in a broken one, line and column, what was found and what was expected; it wraps
// ErrMissing or ErrBroken. An unknown column, an architecture twice or not at all, and a number that is no number or
// out of range are errors.
func LoadNASBench201(dir string) (*NASBench201, error) {
	means, trials, noTrials, err := open201(dir)
	if err != nil {
		return nil, err
	}
	saved, err := fromCache(means, trials)
	if err != nil {
		if saved, err = parse201(means, trials); err != nil {
			return nil, err
		}
		saved.toCache(means, trials)
	}
	b := &NASBench201{
		Fingerprint: saved.Fingerprint,
		path:        means.path,
		table:       saved.Table,
		archs:       make([]Arch201, Archs201),
		noTrials:    noTrials,
	}
	for n, index := range saved.Table.Index {
		b.archs[int(index)] = Arch201At(n)
	}
	return b, nil
}

// open201 opens the two files. If the second is missing, trials is nil and noTrials says why.
func open201(dir string) (means, trials *csvFile, noTrials, err error) {
	shipped := dir == ""
	if shipped {
		if dir, err = Dir(); err != nil {
			return nil, nil, nil, err
		}
	}
	means, err = openCSV(dir, table201File)
	switch {
	case shipped && errors.Is(err, ErrMissing):
		if means, err = shippedCSV(table201File); err == nil {
			trials, err = shippedCSV(trials201File)
		}
		return means, trials, nil, err
	case err != nil:
		return nil, nil, nil, withOriginals(err, "nasbench201", dir, patterns201)
	}
	trials, noTrials = openCSV(dir, trials201File)
	if noTrials != nil && !errors.Is(noTrials, ErrMissing) {
		return nil, nil, nil, noTrials
	}
	return means, trials, noTrials, nil
}

func shippedCSV(file string) (*csvFile, error) {
	name := "shipped/" + path.Base(file)
	raw, err := shippedFiles.ReadFile(name)
	return &csvFile{path: name, raw: raw}, err
}

func parse201(means, trials *csvFile) (*saved201, error) {
	h := sha256.New()
	t := &table201{}
	for _, f := range []*csvFile{means, trials} {
		if f == nil {
			continue
		}
		fingerprint, err := f.open()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "%s\n", fingerprint)
		if f == means {
			err = t.readMeans(f)
		} else {
			err = t.readTrials(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return &saved201{Fingerprint: fmt.Sprintf("%x", h.Sum(nil)), Table: t}, nil
}

func (t *table201) readMeans(f *csvFile) error {
	columns, arch, err := t.layOut(f)
	if err != nil {
		return err
	}
	order := slices.Repeat([]float64{-1}, Archs201) // of the rows, by Number
	rows, err := f.rows(func(row int, fields []string) error {
		a, err := ParseArch201(fields[arch])
		if err != nil {
			return f.wrong(row+2, archColumn, err.Error(), "the original's form")
		}
		n := a.Number()
		if order[n] >= 0 {
			return f.wrong(row+2, archColumn, "found "+a.String()+" again", "every architecture once")
		}
		order[n] = float64(row)
		for c, column := range columns {
			if c != arch {
				if column[n], err = f.number(row+2, f.names[c], fields[c]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rows != Archs201 {
		return fmt.Errorf(
			"%s: found %d rows after the first line: %w, expected %d, one an architecture; put the whole file in "+
				"its place", f.path, rows, ErrBroken, Archs201)
	}
	if t.Index == nil {
		t.Index = order
	}
	return t.checkIndex(f)
}

func (t *table201) layOut(f *csvFile) (columns [][]float64, arch int, err error) {
	arch = -1
	for c, name := range f.names {
		column := make([]float64, Archs201)
		columns = append(columns, column)
		q, known := means201[name]
		switch name {
		case archColumn:
			arch = c
		case indexColumn:
			t.Index = column
		case isoColumn:
			t.IsoClass = column
		case paramsColumn:
			t.Params = column
		case secondsColumn:
			t.Seconds = column
		default:
			if !known {
				return nil, 0, f.unknown(name)
			}
			t.Queries, t.Accuracy = append(t.Queries, q), append(t.Accuracy, column)
		}
	}
	if arch < 0 {
		return nil, 0, f.wrong(1, archColumn, "found no such column", "one with the architecture strings")
	}
	return columns, arch, nil
}

func (t *table201) checkIndex(f *csvFile) error {
	var taken [Archs201]bool
	for n, index := range t.Index {
		i := int(index)
		if i >= Archs201 || taken[i] {
			return fmt.Errorf(
				"%s, column %s: found %d for %s: %w, expected each of 0 to %d once; put an intact file in its place",
				f.path, indexColumn, i, Arch201At(n), ErrBroken, Archs201-1)
		}
		taken[i] = true
	}
	return nil
}

// readTrials reads the table of single trials, after readMeans.
func (t *table201) readTrials(f *csvFile) error {
	at, err := f.columns(indexColumn, trialColumn)
	if err != nil {
		return err
	}
	index, trial := at[0], at[1]
	columns, err := t.layOutTrials(f)
	if err != nil {
		return err
	}
	number := make([]int, Archs201) // by index
	for n, i := range t.Index {
		number[int(i)] = n
	}
	var seen [Archs201]int // trials, by index
	_, err = f.rows(func(row int, fields []string) error {
		i, err := strconv.Atoi(fields[index])
		if err != nil || i < 0 || i >= Archs201 {
			return f.wrong(row+2, indexColumn, "found "+strconv.Quote(fields[index]), "0 to 15624")
		}
		at := seen[i]
		if at == maxTrials201 || fields[trial] != strconv.Itoa(at) {
			return f.wrong(row+2, trialColumn, "found "+strconv.Quote(fields[trial]),
				fmt.Sprintf("the trials of an index numbered 0, 1, 2 in this order, and %d of them came before", at))
		}
		seen[i]++
		for c, column := range columns {
			if column[at] != nil {
				if column[at][number[i]], err = f.number(row+2, f.names[c], fields[c]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return err
}

func (t *table201) layOutTrials(f *csvFile) ([][maxTrials201][]float64, error) {
	columns := make([][maxTrials201][]float64, len(f.names))
	for c, name := range f.names {
		if name == indexColumn || name == trialColumn {
			continue
		}
		q, known := ofTrials201[name]
		if !known {
			return nil, f.unknown(name)
		}
		for i := range columns[c] {
			columns[c][i] = slices.Repeat([]float64{math.NaN()}, Archs201)
			q.Trial = i + 1
			t.Queries, t.Accuracy = append(t.Queries, q), append(t.Accuracy, columns[c][i])
		}
	}
	return columns, nil
}

// saved201 is a parsed table as it is kept in the user's cache folder.
type saved201 struct {
	Fingerprint string
	Table       *table201
}

// cachePath is the cached form's file. Its name depends on both files' checksums.
func cachePath(means, trials *csvFile) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "1 %x", sha256.Sum256(means.raw)) // 1: the form of saved201
	if trials != nil {
		fmt.Fprintf(h, " %x", sha256.Sum256(trials.raw))
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "nasml", fmt.Sprintf("nasbench201-%x.gob", h.Sum(nil)[:12])), err
}

func fromCache(means, trials *csvFile) (*saved201, error) {
	path, err := cachePath(means, trials)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) < sha256.Size || sha256.Sum256(raw[sha256.Size:]) != [sha256.Size]byte(raw) {
		return nil, fmt.Errorf("%s: %w", path, ErrBroken)
	}
	var s saved201
	return &s, gob.NewDecoder(bytes.NewReader(raw[sha256.Size:])).Decode(&s)
}

// toCache saves the parsed form. A failure only makes the next load slower.
func (s *saved201) toCache(means, trials *csvFile) {
	path, err := cachePath(means, trials)
	if err != nil {
		return
	}
	var body bytes.Buffer
	if gob.NewEncoder(&body).Encode(s) != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	sum := sha256.Sum256(body.Bytes())
	_ = files.Write(path, 0o600, func(f *os.File) error { // a cache that cannot be kept is no error
		_, err1 := f.Write(sum[:])
		_, err2 := f.Write(body.Bytes())
		return errors.Join(err1, err2)
	})
}
