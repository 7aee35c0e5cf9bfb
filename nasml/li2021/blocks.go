package li2021

import (
	"context"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021/internal/tabular"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// The blocks of Table 2: methods that query the table, searches on Data, and direct
// searches on the other data sets.

// line is a row of the table: for each data set the looked-up accuracies of all
// runs, in percent, or why there are none.
type line struct {
	name     string // of a tabular method, or a row
	title    string
	accuracy [3][]float64
	missing  [3]string
	paper    table2Row
	printed  bool    // the paper has this line
	seconds  float64 // mean time of a search on Data; 0: unknown
	mark     string  // behind its numbers: "*" where they are of a reduced scale
}

// tabularSettings are those of a method of the top block.
func (p Table2Params) tabularSettings(method string) search.TabularSettings {
	s := search.TabularAsPaper[method]
	if p.Settings == "code" {
		s = search.TabularAsCode[method]
	}
	for _, name := range p.Variant {
		if v := search.TabularVariants[name]; v.Method == method {
			s = v
		}
	}
	if p.Budget > 0 {
		s.Budget = p.Budget
	}
	return s
}

// reported are the columns of the table that the paper reports.
func reported(table *data.NASBench201) (columns [3][]float64, err error) {
	for i, q := range data.Reported201 {
		if columns[i], err = table.Column(q); err != nil {
			return columns, err
		}
	}
	return columns, nil
}

// runTabular runs or reads the top block: one trial is all runs of a method.
func (r *Table2Result) runTabular(ctx context.Context, table *data.NASBench201, columns [3][]float64) error {
	s := study.Study{
		ID: table2ID, Title: table2ID + ", top block", Code: tableKind, Shipped: shippedRecords,
		StoredOnly: r.Params.StoredOnly,
	}
	all, err := r.Params.tabularLines()
	if err != nil {
		return err
	}
	var cases []study.Case
	for _, one := range all {
		method := one.method
		settings, err := keyedTabular(method, one.settings)
		if err != nil {
			return err
		}
		t := tabular.Trial{Settings: settings, Runs: r.Params.Runs}
		cases = append(cases, study.Case{
			Params: t, Data: table.Fingerprint, Label: method, Units: t.Runs,
			Run: func(ctx context.Context, step study.Step) (trial.Result, error) {
				return t.Run(ctx, table, func() { step(1, method) })
			},
		})
	}
	records, err := s.Run(ctx, cases)
	if err != nil {
		return err
	}
	r.records = records
	for i, one := range all {
		l := tabularLine(one.method, records[i], columns)
		if one.reading == "" {
			r.tabular = append(r.tabular, l)
			continue
		}
		l.title += ", " + readingTitle(one.reading)
		r.readings = append(r.readings, l)
	}
	return nil
}

// tabularLine is the line of a method of the top block. Accuracies stand in the
// record; older ones name the architectures only.
func tabularLine(method string, record *runs.Record, columns [3][]float64) line {
	l := line{name: method, title: strings.ToUpper(method), printed: true}
	l.paper = publishedTabular[l.title]
	for i, column := range columns {
		switch {
		case record != nil && record.Series[tabular.Accuracy[i]] != nil:
			l.accuracy[i] = record.Series[tabular.Accuracy[i]]
		case record == nil || record.Series == nil:
			l.missing[i] = "not run"
		default:
			for _, number := range record.Series["architecture"] {
				l.accuracy[i] = append(l.accuracy[i], column[int(number)])
			}
		}
	}
	return l
}

// lookUp fills in the lines of the searches.
func (r *Table2Result) lookUp(columns [3][]float64) error {
	for _, w := range r.Params.Rows {
		l := line{name: w, title: row(w).title()}
		l.paper, l.printed = publishedTransfer[row(w)], publishedTransfer[row(w)] != table2Row{}
		l.seconds, l.mark = r.cost(w)
		lines, err := r.fillAll(l, [3][]found{r.all, r.all, r.all}, columns)
		if err != nil {
			return err
		}
		r.middle = append(r.middle, lines...)
	}
	for _, w := range r.Params.Direct {
		l := line{name: w, title: row(w).title()}
		l.paper, l.printed = publishedDirect[row(w)], publishedDirect[row(w)] != table2Row{}
		l.seconds, l.mark = r.cost(w)
		lines, err := r.fillAll(l, [3][]found{r.all, r.direct[1], r.direct[2]}, columns)
		if err != nil {
			return err
		}
		r.bottom = append(r.bottom, lines...)
	}
	return nil
}

// cost is the mean time of a row's searches on Data, and the mark of its scale.
func (r *Table2Result) cost(name string) (seconds float64, mark string) {
	if r.reduced() {
		mark = "*"
	}
	for _, f := range r.all {
		if ran := f.ran(); string(f.row) == name && len(ran) > 0 {
			for _, record := range ran {
				seconds += record.Seconds / float64(len(ran))
			}
		}
	}
	return seconds, mark
}

// fillAll fills a line from the searches of each column and, where AlsoPick
// asks for it and the method leaves a choice, a second one below it.
func (r *Table2Result) fillAll(l line, searched [3][]found, columns [3][]float64) ([]line, error) {
	second := line{name: l.name, mark: l.mark}
	second.title = l.title + ", " + search.PickTitles[search.Pick(r.Params.AlsoPick)]
	lines := []line{l, second}
	for i, column := range columns {
		also := slices.Clone(searched[i])
		for j := range also {
			also[j].pick = search.Pick(r.Params.AlsoPick)
		}
		for j, all := range [][]found{searched[i], also} {
			if err := lines[j].fill(i, all, column); err != nil {
				return nil, err
			}
			if searched[i] == nil {
				lines[j].missing[i] = "no data"
			}
		}
	}
	if !slices.ContainsFunc(r.all, func(f found) bool {
		f.pick = search.Pick(r.Params.AlsoPick)
		return string(f.row) == l.name && (f.picks() || r.Params.AlsoPick == string(search.LastEpoch))
	}) {
		return lines[:1], nil
	}
	return lines, nil
}

// fill looks the architectures of a line's searches up in one column.
func (l *line) fill(i int, all []found, column []float64) error {
	l.missing[i] = "not run"
	for _, f := range all {
		if string(f.row) != l.name {
			continue
		}
		for _, record := range f.ran() {
			a, err := f.final(record)
			if err != nil {
				return err
			}
			l.accuracy[i] = append(l.accuracy[i], column[a.Number()])
		}
	}
	return nil
}

// directSets are the other data sets that the bottom block searches on, by
// their column. As on CIFAR-10, the training images are split in halves; the
// benchmark's authors used 5,000 test images of CIFAR-100 and 3,000 validation
// images of ImageNet16-120 for the architecture.
var directSets = map[int]data.Name{1: data.CIFAR100, 2: data.ImageNet16}

// runDirect runs the bottom block's searches on the data sets that are there;
// it downloads none.
func (r *Table2Result) runDirect(ctx context.Context) error {
	r.direct = map[int][]found{}
	for column, name := range directSets {
		if len(r.Params.Direct) == 0 || !present(name) {
			continue
		}
		p := r.Params.SearchParams
		p.Data = name
		if name == data.ImageNet16 {
			p.Image = 16 // all that it has
		}
		all, err := p.run(ctx, table2ID+" on "+string(name), r.Params.Direct)
		if err != nil {
			return err
		}
		r.direct[column] = all
	}
	return nil
}

// present says whether a data set is there with all that is needed to train.
func present(name data.Name) bool {
	files, err := data.Status(name)
	if err != nil {
		return false
	}
	for _, f := range files {
		if f.State != data.Present && f.State != data.Incomplete {
			return false
		}
	}
	return true
}
