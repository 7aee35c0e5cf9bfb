package data

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// The table's files in the data folder: the one ImportNASBench101 makes, and a published part.
const (
	table101File  = "nasbench/nasbench101.csv.gz"
	subset101File = "nasbench/nb101_108_subset151644.csv.gz"
)

// Names of the columns that are no measurement.
const (
	idColumn     = "id"
	edgesColumn  = "adj_upper"
	opsColumn    = "ops"
	weightColumn = "params"
)

// measured101 matches columns: val9984_1 is of 108 epochs, e4_val9984_1 of 4.
var measured101 = regexp.MustCompile(`^(?:e([1-9]\d{0,4})_)?(val9984|test9984|time_s)_([123])$`)

// LoadNASBench101 reads the table from a folder of data sets, Dir's where dir is empty: nasbench/nasbench101.csv.gz,
// which ImportNASBench101 makes of the publisher's file, or else nasbench/nb101_108_subset151644.csv.gz, which has a
// third of the cells. Either may lie there unzipped.
//
// The table has a row a cell and the columns id (a whole number, each once), adj_upper and ops (as ParseCell101 reads
// them), params, and for each length of training and each of three trainings val9984_N and test9984_N, the number of
// 9,984 images that were right, and time_s_N, the seconds it took: N is 1, 2, 3. Names with eN_ before them are of N
// epochs, the others of 108.
//
// An error names the file and, in a broken one, line and column, what was found and what was expected; it wraps
// ErrMissing or ErrBroken. A cell twice, in whatever order of its vertices, is an error; cells that are missing are
// not, see NASBench101.Complete.
func LoadNASBench101(dir string) (*NASBench101, error) {
	dir, err := dirOr(dir)
	if err != nil {
		return nil, err
	}
	f, err := openCSV(dir, table101File)
	if errors.Is(err, ErrMissing) {
		if part, notThere := openCSV(dir, subset101File); notThere == nil || !errors.Is(notThere, ErrMissing) {
			f, err = part, notThere
		}
	}
	if err != nil {
		return nil, withOriginals(err, "nasbench101", dir, patterns101)
	}
	b, _, err := parse101(f)
	return b, err
}

type columns101 struct {
	id, edges, ops, params int
	measured               []column101
}

type column101 struct {
	at       int
	expected string
	add      func(text string) bool // to the table; false for what is not expected
}

// parse101 returns the table and its rows by id.
func parse101(f *csvFile) (*NASBench101, map[int]int, error) {
	fingerprint, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	b := &NASBench101{Fingerprint: fingerprint, path: f.path, rows: map[Cell101]int{}}
	columns, err := b.layOut(f)
	if err != nil {
		return nil, nil, err
	}
	ids := map[int]int{}
	_, err = f.rows(func(row int, fields []string) error {
		id, err := strconv.ParseUint(fields[columns.id], 10, 31)
		if _, twice := ids[int(id)]; err != nil || twice {
			return f.wrong(row+2, idColumn, "found "+strconv.Quote(fields[columns.id]), "a whole number, each once")
		}
		ids[int(id)] = row
		return b.addRow(f, columns, row, fields)
	})
	if err != nil {
		return nil, nil, err
	}
	if len(b.cells) == 0 {
		return nil, nil, f.wrong(2, opsColumn, "found no row", "one a cell")
	}
	return b, ids, nil
}

// layOut reads the column names. A length of training has all its columns or none.
func (b *NASBench101) layOut(f *csvFile) (*columns101, error) {
	cell, err := f.columns(idColumn, edgesColumn, opsColumn, weightColumn)
	if err != nil {
		return nil, err
	}
	c := &columns101{id: cell[0], edges: cell[1], ops: cell[2], params: cell[3]}
	for at, name := range f.names {
		if slices.Contains(cell, at) {
			continue
		}
		m := measured101.FindStringSubmatch(name)
		if m == nil || m[1] == "108" { // which has one name, without it
			return nil, f.wrong(1, name, "found an unknown column",
				"only those that the documentation of data.LoadNASBench101 lists")
		}
		epochs := 108
		if m[1] != "" {
			epochs, _ = strconv.Atoi(m[1]) // the pattern has digits, and few
		}
		c.measured = append(c.measured, b.lengthOf(epochs).column(m[2], int(m[3][0]-'1'), at))
	}
	if n := len(b.lengths); n == 0 || len(c.measured) != 3*Trials101*n {
		return nil, f.wrong(1, f.names[len(f.names)-1],
			fmt.Sprintf("found %d columns of measurements for %d lengths of training", len(c.measured), n),
			"val9984_N, test9984_N and time_s_N with N = 1, 2, 3 for each length")
	}
	return c, nil
}

func (b *NASBench101) lengthOf(epochs int) *length101 {
	l, err := b.length(epochs)
	if err != nil {
		l = &length101{epochs: epochs, hits: map[Split]*hits101{Valid: {}, Test: {}}}
		b.lengths = append(b.lengths, l)
	}
	return l
}

func (l *length101) column(what string, trial, at int) column101 {
	if what == "time_s" {
		return column101{at, "seconds, more than 0", func(text string) bool {
			s, err := strconv.ParseFloat(text, 32)
			l.seconds[trial] = append(l.seconds[trial], float32(s))
			return err == nil && s > 0 && !math.IsInf(s, 0)
		}}
	}
	hits := &l.hits[map[string]Split{"val9984": Valid, "test9984": Test}[what]][trial]
	return column101{at, fmt.Sprintf("a whole number from 0 to %d", images101), func(text string) bool {
		n, err := strconv.ParseUint(text, 10, 16)
		*hits = append(*hits, uint16(n))
		return err == nil && n <= images101
	}}
}

func (b *NASBench101) addRow(f *csvFile, c *columns101, row int, fields []string) error {
	cell, err := parseShort101(fields[c.ops], fields[c.edges])
	if err != nil {
		return f.wrong(row+2, opsColumn, err.Error(), "a cell of NAS-Bench-101")
	}
	key := cell.Canonical()
	if before, twice := b.rows[key]; twice {
		return f.wrong(row+2, opsColumn, fmt.Sprintf("found %s, which is the cell of line %d", cell, before+2),
			"every cell once")
	}
	b.rows[key] = row
	b.cells = append(b.cells, cell)
	params, err := strconv.ParseInt(fields[c.params], 10, 32)
	if err != nil || params <= 0 {
		return f.wrong(row+2, weightColumn, "found "+strconv.Quote(fields[c.params]), "a whole number greater than 0")
	}
	b.params = append(b.params, int32(params))
	for _, m := range c.measured {
		if !m.add(fields[m.at]) {
			return f.wrong(row+2, f.names[m.at], "found "+strconv.Quote(fields[m.at]), m.expected)
		}
	}
	return nil
}

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
