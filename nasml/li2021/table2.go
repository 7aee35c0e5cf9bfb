package li2021

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Table2Params are the parameters of Table 2.
type Table2Params struct {
	SearchParams
	Rows     []string // middle block: searches on Data
	Direct   []string // bottom block: likewise on CIFAR-100 and ImageNet16-120 where these are there, else "no data"
	Tabular  []string // top block: names of search.TabularMethods
	Settings string   // of the top block: "paper" or "code"
	Variant  []string // names of search.TabularVariants, which take the place of their method's settings
	// Further lines of the top block, with settings that the sources leave open or choose
	// from: names of search.TabularVariants, with "+one-trial" for a query that also has
	// the noise of a single trial.
	Readings []string
	Runs     int     // of each method of the top block
	Budget   float64 // simulated seconds of a run; 0: as the settings say
	// After which epoch the architecture of a search is taken: a name of
	// search.Picks; empty: "last", and with Preset "code" what the authors' code does.
	Pick     string
	AlsoPick string // a second line for each search, by this rule; empty: none
}

// Table2Quick has the top block at the paper's scale, 2,000 runs in a second, and
// the others at quick scale, 35 searches in about an hour on two cores; all are
// shipped. Ten of the top block's twelve means are the paper's to their standard
// error; REA with a sample size of 10 is 0.16 points above on CIFAR-10. With the
// noise of one trial a query, which the authors' code has and the table of means
// lacks, all twelve are, REINFORCE at a rate of 0.1. Of the searches none of the
// paper's comparisons is seen at this scale.
var Table2Quick = Table2Params{
	SearchParams: quickSearch,
	Rows:         []string{"rsps", "setn", "gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"},
	Direct:       []string{"gdas", "gaea-gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"},
	Tabular:      []string{"rea", "rs", "reinforce", "bohb"},
	Settings:     "paper",
	Readings: []string{
		"rea/sample-3", "rea/one-trial", "rs/one-trial", "bohb/one-trial", "reinforce/rate-0.05", "reinforce/rate-0.1",
		"reinforce/rate-0.1+one-trial", "reinforce/rate-0.5",
	},
	Runs: 500,
}

// Table2Paper has all rows of the paper at its scale. Its searches were not run.
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

var tableKind = code.Define("li2021/table", "li2021/internal/tabular")

func init() {
	catalog.Register(catalog.Entry{
		ID: table2ID, Paper: paper, Title: table2Title, Kind: "table",
		Notebook: "notebooks/li2021/table2_nasbench201.ipynb",
		Cost: catalog.Cost{
			Quick: "top block, at the paper's scale: a second; searches: " + searchCost.Quick,
			Paper: searchCost.Paper,
		},
		Settings: table2Settings,
	}, Table2Quick, Table2Paper, Table2)
}

// Table2Result is Table 2.
type Table2Result struct {
	Params  Table2Params
	Scale   string // "quick", "paper" or empty for own parameters
	tabular []line
	// the top block with other readings of its settings
	readings []line
	middle   []line
	bottom   []line
	direct   map[int][]found // by column: the searches on data sets that are there
	optimal  line            // of all architectures of the table, each data set by itself
	all      []found
	records  []*runs.Record // of the top block
}

// Table2 runs what the run store lacks of Table 2. See Figure1 for cancelling.
// It returns an error if the table of NAS-Bench-201 cannot be read.
func Table2(ctx context.Context, p Table2Params) (*Table2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	table, err := data.LoadNASBench201("")
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
	if r.all, err = p.run(ctx, table2ID, p.searched()); err != nil {
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
	var c study.Checks
	c.AtLeast("Runs", p.Runs, 1)
	c.Expect(p.Budget >= 0, "Budget is %v, want 0 (as the settings say) or more", p.Budget)
	c.OneOf("Settings", p.Settings, "paper", "code")
	for i, m := range p.Tabular {
		c.Expect(search.TabularMethods[m] != nil && !slices.Contains(p.Tabular[:i], m),
			"Tabular has %q, want each of %v at most once", m, slices.Sorted(maps.Keys(search.TabularMethods)))
	}
	for _, v := range p.Variant {
		c.OneOf("Variant", v, slices.Sorted(maps.Keys(search.TabularVariants))...)
	}
	for i, name := range p.Readings {
		_, err := reading(name)
		c.Expect(err == nil && !slices.Contains(p.Readings[:i], name), "Readings has %q, want each of %s at most "+
			"once, with or without %s", name, slices.Sorted(maps.Keys(search.TabularVariants)), plusNoise)
	}
	for _, rule := range []string{p.Pick, p.AlsoPick} {
		err := search.Pick(rule).Check()
		c.Expect(rule == "" || err == nil, "Pick, AlsoPick: %v", err)
	}
	if err := c.Err("Table 2"); err != nil {
		return err
	}
	if err := p.tabulated(rowsNamed(p.searched())); err != nil {
		return err
	}
	return p.SearchParams.check(rowsNamed(p.searched()))
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

// Records are the keys of all runs.
func (r *Table2Result) Records() []string {
	out := append(study.Keys(r.records), keys(r.all)...)
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
			out = append(out, fmt.Sprintf("%s architecture: %s, %s",
				w, search.PickTitles[search.LastEpoch], search.PickTitles[rule]))
		}
	}
	return out
}

// Differences lists where the settings as in the paper and as in the authors'
// code differ, for every row: "gaea-darts channels: 16, 24".
func (r *Table2Result) Differences() []string {
	return append(search.TabularDifferences(), r.Params.settingsNote()...)
}

// Figure is the table, with the paper's numbers in grey beside ours: mean ±
// standard deviation over runs, and the time of a search. The best of ours in the top
// two blocks and in the bottom one is bold; searches at a reduced scale are marked
// and not among them.
func (r *Table2Result) Figure() plots.Figure {
	t := &plots.Table{Columns: []plots.Column{{Header: "method"}}}
	for _, set := range lookupSets {
		group := set.title + " (test)"
		t.Columns = append(t.Columns,
			plots.Column{Header: "ours", Group: group}, plots.Column{Header: "paper", Group: group})
	}
	t.Columns = append(t.Columns,
		plots.Column{Header: "ours", Group: "search time (s)"}, plots.Column{Header: "paper", Group: "search time (s)"})
	top, direct, reduced := best(append(slices.Clone(r.tabular), r.middle...)), best(r.bottom), ""
	if r.reduced() { // what is not comparable is not crowned
		top, direct, reduced = best(r.tabular), [3]float64{}, ", * quick scale: not to be compared"
	}
	t.Blocks = []plots.Block{
		r.block(fmt.Sprintf("Hyperparameter optimisation on the table (%d runs, simulated time)", r.Params.Runs),
			r.tabular, top),
		r.block("The same, with settings that the sources leave open", r.readings, [3]float64{}),
		r.block(fmt.Sprintf("Weight sharing, search on %s%s", strings.ToUpper(string(r.Params.Data)), reduced),
			r.middle, top),
		r.block("Weight sharing, direct search on each data set"+reduced, r.bottom, direct),
	}
	t.Blocks = slices.DeleteFunc(t.Blocks, func(b plots.Block) bool { return len(b.Rows) == 0 })
	resNet := line{title: "ResNet", paper: publishedReference["ResNet"], printed: true}
	t.Blocks = append(t.Blocks, r.block("", []line{resNet, r.optimal}, [3]float64{}))
	return plots.Figure{
		Name: "li2021-table2", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{{Table: t}}},
		Caption: r.caption(), Meta: study.Meta(table2Title, r.Scale, r.Params),
	}
}

func (r *Table2Result) caption() string {
	parts := []string{"Accuracy in percent from the table (NATS-Bench, 200 epochs, mean over its trials); " +
		"mean ± standard deviation (divisor n−1) over runs."}
	if len(r.all) > 0 {
		parts = append(parts, searchCaption(r.Params.SearchParams, r.all, r.Params), r.pickNote())
	}
	text := strings.TrimSpace(strings.Join(parts, " "))
	if len(r.all) > 0 {
		text += " Search times: ours are of the machine that computed the shipped searches, the paper's of a GPU."
	}
	return text
}

// pickNote says of which epoch the architectures are, where it is not the last.
func (r *Table2Result) pickNote() string {
	for _, f := range r.all {
		if f.picks() {
			return fmt.Sprintf("Architectures that are read off $θ$ are of the %s.", search.PickTitles[f.pick])
		}
	}
	return ""
}

func (r *Table2Result) block(title string, lines []line, best [3]float64) plots.Block {
	b := plots.Block{Title: title}
	for _, l := range lines {
		b.Rows = append(b.Rows, r.entries(l, best))
	}
	return b
}

// entries are a line's texts.
func (r *Table2Result) entries(l line, best [3]float64) []plots.Entry {
	out := []plots.Entry{{Text: l.title}}
	for i := range lookupSets {
		ours := plots.Entry{Text: l.missing[i], Grey: true}
		if values := l.accuracy[i]; len(values) > 0 {
			mean, std := moments(values)
			ours = plots.Entry{Text: plusMinus(mean, std) + l.mark, Bold: mean == best[i]}
		}
		paper := plots.Entry{Grey: true}
		if l.printed {
			paper.Text = plusMinus(l.paper.accuracy[i].mean, l.paper.accuracy[i].std)
			if publishedReference[l.title] != (table2Row{}) {
				paper.Text = fmt.Sprintf("%.2f", l.paper.accuracy[i].mean)
			}
		}
		out = append(out, ours, paper)
	}
	return append(out, plots.Entry{Text: thousands(l.seconds, l.mark)},
		plots.Entry{Text: thousands(l.paper.seconds, ""), Grey: true})
}

// thousands is a time in whole seconds with a mark; none is empty.
func thousands(seconds float64, mark string) string {
	if !(seconds > 0) {
		return ""
	}
	return fmt.Sprintf("%.0f%s", seconds, mark)
}

// reduced says whether the searches are smaller than the paper's.
func (r *Table2Result) reduced() bool { return r.Params.reduced() }

func plusMinus(mean, std float64) string {
	if math.IsNaN(std) {
		return fmt.Sprintf("%.2f", mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// moments are mean and standard deviation (divisor n−1), NaN for one value.
func moments(values []float64) (mean, std float64) {
	s, err := runs.Summarize(values, 0.95)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return s.Mean, float64(s.Std)
}

// best are the highest means of lines.
func best(lines []line) [3]float64 {
	var out [3]float64
	for _, l := range lines {
		for i := range out {
			if len(l.accuracy[i]) > 0 {
				mean, _ := moments(l.accuracy[i])
				out[i] = max(out[i], mean)
			}
		}
	}
	return out
}

// Check judges Table 2: that each method of the top block has the paper's mean, by
// the standard error of the difference, and the paper's order; which readings of
// the settings have it; that ERM finds better architectures than the bilevel
// problem and GAEA better ones than DARTS; and, at the paper's scale only, that
// each line of searches has the paper's mean.
func (r *Table2Result) Check() []runs.Claim {
	claims := r.checkNumbers(r.tabular, tabularRuns)
	claims = append(claims, r.checkOrder()...)
	claims = append(claims, r.checkReadings()...)
	for _, pair := range [][3]string{
		{"darts/erm", "darts", "LI062"}, {"gaea-darts/erm", "gaea-darts", "LI250"},
		{"gaea-darts", "darts", "RO019"}, {"gaea-darts/erm", "darts/erm", "RO019"},
	} {
		for i, set := range lookupSets {
			c := r.checkPair(pair[0], pair[1], i, set.title)
			c.Rows = pair[2:]
			claims = append(claims, c)
		}
	}
	claims = append(append(claims, r.checkOptimal()...), r.checkComparisons()...)
	if r.Params.Preset != "quick" {
		searched := append(slices.Clone(r.middle), directly(r.bottom)...)
		claims = append(append(claims, r.checkNumbers(searched, searchRuns)...), r.checkTimes()...)
	}
	return claims
}

// whyMissing says in full what the table's cell says in two words.
func whyMissing(cell string) string {
	switch cell {
	case "not run":
		return "the run store lacks it"
	}
	return cell
}

// checkPair compares two rows of searches.
func (r *Table2Result) checkPair(better, worse string, i int, title string) runs.Claim {
	c := verdict.Claim(
		fmt.Sprintf("%s: %s above %s, percentage points", title, row(better).title(), row(worse).title()),
		table2Source+" and Section 4.4")
	c.Paper = runs.Number(
		publishedTransfer[row(better)].accuracy[i].mean - publishedTransfer[row(worse)].accuracy[i].mean)
	c.Note = "ours is the difference of the looked-up accuracies over seeds; only its sign is judged"
	family := r.Params.among(4 * len(lookupSets)) // four pairs in three columns
	c = family.above(c, r.find(better).accuracy[i], r.find(worse).accuracy[i])
	if r.Params.Preset == "quick" && c.Ours.Valid() && c.Holds != runs.Holds {
		c.Note += "; not shown at quick scale"
	}
	return c
}

// find is the line of a row that was searched.
func (r *Table2Result) find(name string) line {
	for _, l := range append(slices.Clone(r.middle), r.bottom...) {
		if l.name == name {
			return l
		}
	}
	return line{}
}
