package li2021

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
)

// Table2Params are the parameters of Table 2.
type Table2Params struct {
	SearchParams
	Rows     []string // middle block: searches on Data
	Direct   []string // bottom block: the same on CIFAR-100 and ImageNet16-120 where these are there, else "no data"
	Tabular  []string // top block: names of search.TabularMethods
	Settings string   // of the top block: "paper" or "code"
	Variant  []string // names of search.TabularVariants, which take the place of their method's settings
	Runs     int      // of each method of the top block
	Budget   float64  // simulated seconds of a run; 0: as the settings say
	Pick     string   // after which epoch the architecture of a search is taken: a name of search.Picks; empty: "last", and with Preset "code" what the authors' code does
	AlsoPick string   // a second line for each search, by this rule; empty: none
}

// Table2Quick has the top block at the paper's scale, and the others at quick
// scale.
var Table2Quick = Table2Params{
	SearchParams: quickSearch,
	Rows:         []string{"rsps", "setn", "gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"},
	Direct:       []string{"gdas", "gaea-gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"},
	Tabular:      []string{"rea", "rs", "reinforce", "bohb"},
	Settings:     "paper",
	Runs:         500,
}

// Table2Paper has all rows of the paper at its scale.
var Table2Paper = func() Table2Params {
	p := Table2Quick
	p.SearchParams = paperSearch
	p.Rows = []string{"rsps", "darts/benchmark", "setn", "gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"}
	return p
}()

const (
	table2ID     = "li2021/table2"
	table2Title  = "NAS-Bench-201: test accuracy of the architectures that were found"
	table2Source = "Li+ 2021, Table 2"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: table2ID, Paper: "Li+ 2021", Title: table2Title, Kind: "table",
		Notebook: "notebooks/li2021/table2_nasbench201.ipynb",
		Cost: catalog.Cost{
			Quick: "top block, at the paper's scale: under a minute; searches: " + searchCost.Quick,
			Paper: searchCost.Paper,
		},
	}, Table2Quick, Table2Paper, Table2)
}

// Table2Result is Table 2.
type Table2Result struct {
	Params  Table2Params
	Scale   string // "quick", "paper" or empty for own parameters
	tabular []line
	middle  []line
	bottom  []line
	direct  map[int][]found // by column: the searches on data sets that are there
	optimal line            // of all architectures of the table, each data set by itself
	all     []found
	records []*runs.Record // of the top block
}

// line is a row of the table: for each data set the looked-up accuracies of all
// runs, in percent, or why there are none.
type line struct {
	name     string // of a tabular method, or a row
	title    string
	accuracy [3][]float64
	missing  [3]string
	paper    table2Row
	printed  bool // the paper has this line
}

// Table2 runs what the run store lacks of Table 2. See Figure1 for cancelling;
// it is also an error where the table of NAS-Bench-201 cannot be read.
func Table2(ctx context.Context, p Table2Params) (*Table2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	table, err := loadTable()
	if err != nil {
		return nil, err
	}
	r := &Table2Result{Params: p, Scale: runs.Scale(ctx)}
	columns, err := reported(table)
	if err != nil {
		return nil, err
	}
	r.optimal = line{title: "Optimal", paper: publishedReference["Optimal"], printed: true}
	for i, column := range columns {
		r.optimal.accuracy[i] = []float64{slices.Max(column)}
	}
	if err := r.runTabular(ctx, table, columns); err != nil {
		return nil, err
	}
	if r.all, err = runRows(ctx, table2ID, p.SearchParams, p.searched()); err != nil {
		return nil, err
	}
	if err := r.runDirect(ctx); err != nil {
		return nil, err
	}
	for _, all := range append([][]found{r.all}, slices.Collect(maps.Values(r.direct))...) {
		for i := range all {
			all[i].pick = p.pick(all[i].row)
		}
	}
	return r, r.lookUp(columns)
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
		all, err := runRows(ctx, table2ID+" on "+string(name), p, r.Params.Direct)
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

// searched are the rows that are searched on Data: those of the middle block,
// and of the bottom block, whose first column is the same search.
func (p Table2Params) searched() []string {
	rows := slices.Clone(p.Rows)
	for _, w := range p.Direct {
		if !slices.Contains(rows, w) {
			rows = append(rows, w)
		}
	}
	return rows
}

// check says what is wrong with the parameters, before anything is run.
func (p Table2Params) check() error {
	var wrong []string
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	expect(p.Runs >= 1, "Runs is %d, want at least 1", p.Runs)
	expect(p.Budget >= 0, "Budget is %v, want 0 (as the settings say) or more", p.Budget)
	expect(p.Settings == "paper" || p.Settings == "code", "Settings is %q, want paper or code", p.Settings)
	for i, m := range p.Tabular {
		expect(search.TabularMethods[m] != nil && !slices.Contains(p.Tabular[:i], m), "Tabular has %q, want each of %v at most once", m, slices.Sorted(maps.Keys(search.TabularMethods)))
	}
	for _, v := range p.Variant {
		_, ok := search.TabularVariants[v]
		expect(ok, "Variant has %q, want some of %v", v, slices.Sorted(maps.Keys(search.TabularVariants)))
	}
	for _, rule := range []string{p.Pick, p.AlsoPick} {
		err := search.Pick(rule).Check()
		expect(rule == "" || err == nil, "Pick, AlsoPick: %v", err)
	}
	if len(wrong) > 0 {
		return catalog.Usagef("parameters of Table 2: %s", strings.Join(wrong, "; "))
	}
	return p.SearchParams.check(rowsOf(p.searched()))
}

// pick is the rule of a row.
func (p Table2Params) pick(w row) search.Pick {
	switch {
	case p.Pick != "":
		return search.Pick(p.Pick)
	case p.Preset == "code" && w.variant() != "benchmark":
		return search.PickAsCode(w.method())
	}
	return search.LastEpoch
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

// tabularTrial is what all runs of a tabular method depend on.
type tabularTrial struct {
	Settings search.TabularSettings `json:"settings"`
	Runs     int                    `json:"runs"`
}

// runTabular runs or reads the top block: one trial is all runs of a method.
func (r *Table2Result) runTabular(ctx context.Context, table *data.NASBench201, columns [3][]float64) error {
	store, err := runs.FromContext(ctx)
	if err != nil {
		return err
	}
	code, err := runs.CodeVersion(search.TabularSources)
	if err != nil {
		return err
	}
	progress := runs.ProgressFrom(ctx)
	progress.Start(r.Params.Runs*len(r.Params.Tabular), table2ID+", top block")
	defer progress.Done()
	for _, method := range r.Params.Tabular {
		trial := runs.Trial{Figure: table2ID, Params: tabularTrial{r.Params.tabularSettings(method), r.Params.Runs}, Code: code, Data: table.Fingerprint}
		record, err := r.tabularRecord(ctx, store, table, trial, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		l := line{name: method, title: strings.ToUpper(method), missing: [3]string{"not run", "not run", "not run"}}
		l.paper, l.printed = publishedTabular[l.title], true
		if record != nil {
			r.records = append(r.records, record)
			for i, column := range columns {
				for _, number := range record.Series["architecture"] {
					l.accuracy[i] = append(l.accuracy[i], column[int(number)])
				}
			}
		}
		r.tabular = append(r.tabular, l)
	}
	return nil
}

// tabularRecord reads or makes the runs of one method; nil where they are not
// in the store and nothing is to be computed.
func (r *Table2Result) tabularRecord(ctx context.Context, store *runs.Store, table *data.NASBench201, trial runs.Trial, progress runs.Progress) (*runs.Record, error) {
	if r.Params.StoredOnly {
		progress.Skip(r.Params.Runs)
		records, err := store.Stored([]runs.Trial{trial})
		if err != nil {
			return nil, err
		}
		return records[0], nil
	}
	ran := false
	records, err := store.Compute(ctx, []runs.Trial{trial}, runs.Options{}, func(ctx context.Context, job *runs.Job) error {
		ran = true
		result, err := r.repeat(ctx, table, trial.Params.(tabularTrial), progress)
		if err != nil {
			return err
		}
		job.Backend, job.Device = "host", "cpu"
		return job.Done(0, result)
	})
	if err != nil {
		return nil, err
	}
	if !ran {
		progress.Skip(r.Params.Runs)
	}
	return records[0], nil
}

// repeat makes the runs of one method; run i has the seed i.
func (r *Table2Result) repeat(ctx context.Context, table *data.NASBench201, t tabularTrial, progress runs.Progress) (runs.Result, error) {
	bench, err := search.NewNASBench201(table, t.Settings)
	if err != nil {
		return runs.Result{}, err
	}
	out := runs.Result{Series: map[string][]float64{}}
	for seed := range uint64(t.Runs) {
		trajectory, err := search.RunTabular(ctx, bench, t.Settings, runs.RNG(seed, "tabular", t.Settings.Method))
		if err != nil {
			return out, err
		}
		a, err := data.NewArch201(trajectory.Final)
		if err != nil {
			return out, err
		}
		out.Series["architecture"] = append(out.Series["architecture"], float64(a.Number()))
		out.Series["queries"] = append(out.Series["queries"], float64(len(trajectory.Steps)))
		progress.Step(1, t.Settings.Method)
	}
	return out, nil
}

// lookUp fills in the lines of the searches.
func (r *Table2Result) lookUp(columns [3][]float64) error {
	for _, w := range r.Params.Rows {
		l := line{name: w, title: row(w).title()}
		l.paper, l.printed = publishedTransfer[row(w)], publishedTransfer[row(w)] != table2Row{}
		lines, err := r.fillAll(l, [3][]found{r.all, r.all, r.all}, columns)
		if err != nil {
			return err
		}
		r.middle = append(r.middle, lines...)
	}
	for _, w := range r.Params.Direct {
		l := line{name: w, title: row(w).title()}
		l.paper, l.printed = publishedDirect[row(w)], publishedDirect[row(w)] != table2Row{}
		lines, err := r.fillAll(l, [3][]found{r.all, r.direct[1], r.direct[2]}, columns)
		if err != nil {
			return err
		}
		r.bottom = append(r.bottom, lines...)
	}
	return nil
}

// fillAll fills a line from the searches of each column and, where AlsoPick
// asks for it and the method leaves a choice, a second one below it.
func (r *Table2Result) fillAll(l line, searched [3][]found, columns [3][]float64) ([]line, error) {
	second := line{name: l.name, title: l.title + ", " + search.PickTitles[search.Pick(r.Params.AlsoPick)]}
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
	if len(l.accuracy[i]) == 0 {
		l.missing[i] = "not run"
	}
	return nil
}

// Records are the keys of all runs.
func (r *Table2Result) Records() []string {
	var out []string
	for _, record := range r.records {
		out = append(out, record.Key)
	}
	out = append(out, keys(r.all)...)
	for _, column := range slices.Sorted(maps.Keys(r.direct)) {
		out = append(out, keys(r.direct[column])...)
	}
	return out
}

// settingsNote lists where the settings of paper and code differ, for the rows.
func (p Table2Params) settingsNote() []string {
	var out []string
	for _, w := range p.searched() {
		paper, errA := search.AsPaper(row(w).method())
		code, errB := search.AsCode(row(w).method())
		if errA != nil || errB != nil {
			continue
		}
		for _, d := range search.Differences(paper, code) {
			out = append(out, w+" "+d)
		}
		if rule := search.PickAsCode(row(w).method()); rule != search.LastEpoch && row(w).variant() == "" {
			out = append(out, fmt.Sprintf("%s architecture: %s, %s", w, search.PickTitles[search.LastEpoch], search.PickTitles[rule]))
		}
	}
	return out
}

// Differences lists where the settings as in the paper and as in the authors'
// code differ, for every row: "gaea-darts channels: 16, 24".
func (r *Table2Result) Differences() []string {
	return append(search.TabularDifferences(), r.Params.settingsNote()...)
}
