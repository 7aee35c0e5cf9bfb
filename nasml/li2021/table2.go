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
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Table2Params are the parameters of Table 2.
type Table2Params struct {
	SearchParams
	Rows     []string // middle block: searches on Data
	Direct   []string // bottom block: likewise on CIFAR-100 and ImageNet16-120 where these are there, else "no data"
	Tabular  []string `validate:"unique"`           // top block: names of search.TabularMethods
	Settings string   `validate:"oneof=paper code"` // of the top block
	Variant  []string // names of search.TabularVariants, which take the place of their method's settings
	// Further lines of the top block, with settings that the sources leave open: names of search.TabularVariants, with
	// "+one-trial" if a query also has the noise of a single trial.
	Readings []string `validate:"unique"`
	Runs     int      `validate:"gte=1"` // of each method of the top block
	Budget   float64  `validate:"gte=0"` // simulated seconds of a run; 0: as the settings say
	// The epoch whose architecture counts: a name of search.SelectionRules; empty: "last", and with Preset "code" that
	// of the authors' code.
	Pick     string
	AlsoPick string // a second line for each search, by this rule; empty: none
}

// Table2Quick has the top block at the paper's scale, 2,000 runs in a second, and 35 searches at quick scale, about an
// hour on two cores; all are precomputed. Ten of the top block's twelve means agree with the paper's to their standard
// error; REA with a sample size of 10 is 0.16 points above on CIFAR-10. With the noise of one trial a query, as in the
// authors' code, and REINFORCE at a rate of 0.1 all twelve agree. The searches show none of the paper's comparisons at
// this scale.
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

// Table2Paper has all rows of the paper at its scale. Two seeds of DARTS and GAEA DARTS (bilevel) were run.
var Table2Paper = lab.With(Table2Quick, func(p *Table2Params) {
	p.SearchParams = paperSearch
	p.Rows = []string{"rsps", "darts/benchmark", "setn", "gdas", "darts", "gaea-darts", "darts/erm", "gaea-darts/erm"}
})

// Table2 looks up the architectures found by weight-sharing searches and by methods that query the table of
// NAS-Bench-201. It returns an error if the table cannot be read.
var Table2 = lab.Declare(lab.Entry[Table2Params, found]{
	Of: ofPaper, Name: "table2", Kind: lab.Table, Source: "Table 2", Notebook: "table2_nasbench201",
	Title: "NAS-Bench-201: test accuracy of the architectures that were found",
	Cost: catalog.Cost{
		Quick: "top block, at the paper's scale: a second; searches: " + searchCost.Quick,
		Paper: searchCost.Paper,
	},
	Quick: Table2Quick, Paper: Table2Paper, Settings: table2Settings,
	Code: code.Define("li2021/table", "li2021/internal/tabular"), Note: noteOfSearches,
	Rules:   Table2Params.rules,
	Compute: computeTable2, Draw: drawTable2,
	Questions: []lab.Question[Table2Params, found]{
		{Name: "tabular", Claims: judgeTabular}, {Name: "orders", Claims: judgeOrders},
		{Name: "numbers", Claims: judgeNumbers},
	},
})

// table2 has a group for each line of the top block and each row of searches; its lines are among its facts.
type table2 = lab.Result[Table2Params, found]

func (p Table2Params) rules(c *study.Checks) {
	for _, method := range p.Tabular {
		c.OneOf("Tabular", method, slices.Sorted(maps.Keys(search.TabularMethods))...)
	}
	for _, name := range p.Variant {
		c.OneOf("Variant", name, slices.Sorted(maps.Keys(search.TabularVariants))...)
	}
	for _, name := range p.Readings {
		c.OneOf("Readings", strings.TrimSuffix(name, plusNoise), slices.Sorted(maps.Keys(search.TabularVariants))...)
	}
	for _, rule := range []string{p.Pick, p.AlsoPick} {
		err := search.SelectionRule(rule).Check()
		c.Expect(rule == "" || err == nil, "Pick, AlsoPick: %v", err)
	}
	err := p.tabulated(p.searched())
	c.Expect(err == nil, "%v", err)
	p.SearchParams.rules(p.searched(), c)
}

// searched are the rows searched on Data: those of the middle block, and those of the bottom block, which share its
// first column.
func (p Table2Params) searched() []string {
	return append(slices.Clone(p.Rows), slices.DeleteFunc(slices.Clone(p.Direct), func(w string) bool {
		return slices.Contains(p.Rows, w)
	})...)
}

func computeTable2(ctx context.Context, r *table2) error {
	searches, err := r.Params.plan(r.Params.searched()) // checks before the table is looked for
	if err != nil {
		return err
	}
	table, err := data.LoadNASBench201("")
	if err != nil {
		return err
	}
	var columns [3][]float64 // that the paper reports
	optimal := newLine(referenceBlock, "Optimal", "Optimal")
	for i, q := range data.Reported201 {
		if columns[i], err = table.Column(q); err != nil {
			return err
		}
		optimal.accuracy[i] = []float64{slices.Max(columns[i])} // of all, each data set by itself
	}
	queried, err := runTabular(ctx, r, table, columns)
	if err != nil {
		return err
	}
	below, err := runRows(ctx, r, searches, columns)
	if err != nil {
		return err
	}
	r.Facts["lines"] = append(slices.Concat(queried, below), newLine(referenceBlock, "ResNet", "ResNet"), optimal)
	return nil
}

// Table2Differences lists the settings in which paper and authors' code differ, for every row: "gaea-darts channels:
// 16, 24".
func Table2Differences(p Table2Params) []string {
	out := search.TabularDifferences()
	for _, name := range p.searched() {
		w := row(name)
		paper, errA := search.AsPaper(w.method())
		code, errB := search.AsCode(w.method())
		if errA != nil || errB != nil {
			continue
		}
		for _, d := range search.Differences(paper, code) {
			out = append(out, name+" "+d)
		}
		if rule := search.RuleAsCode(w.method()); rule != search.LastEpoch && w.variant() == "" {
			out = append(out, fmt.Sprintf("%s architecture: %s, %s", w, search.RuleTitles[search.LastEpoch],
				search.RuleTitles[rule]))
		}
	}
	return out
}

// drawTable2 is the table, with the paper's numbers in grey: mean ± standard deviation over runs, and search times. The
// best of nasml's is bold in the top two blocks and in the bottom one; searches at a reduced scale are marked instead.
func drawTable2(r *table2, f *lab.Picture) {
	p := r.Params
	of := func(block string) []line { return lines(r, block) }
	t := &plots.Table{Columns: []plots.Column{{Header: "method"}}}
	for _, set := range lookupSets {
		t.Columns = append(t.Columns, oursAndPaper(set.title+" (test)")...)
	}
	t.Columns = append(t.Columns, oursAndPaper("search time (s)")...)
	first, direct, reduced := best(append(of(topBlock), of(middleBlock)...)), best(of(bottomBlock)), ""
	if p.reduced() { // what is not comparable is not crowned
		first, direct, reduced = best(of(topBlock)), [3]float64{}, ", * quick scale: not to be compared"
	}
	t.Blocks = slices.DeleteFunc([]plots.Block{
		block(fmt.Sprintf("Hyperparameter optimisation on the table (%d runs, simulated time)", p.Runs), of(topBlock),
			first),
		block("The same, with settings that the sources leave open", of(readingsBlock), [3]float64{}),
		block(fmt.Sprintf("Weight sharing, search on %s%s", strings.ToUpper(string(p.Data)), reduced), of(middleBlock),
			first),
		block("Weight sharing, direct search on each data set"+reduced, of(bottomBlock), direct),
		block("", of(referenceBlock), [3]float64{}),
	}, func(b plots.Block) bool { return len(b.Rows) == 0 })
	f.Row(plots.Panel{Table: t})
	f.Say("Accuracy in percent by the table (NATS-Bench, 200 epochs): mean ± standard deviation over runs; search " +
		"times: ours on the machine of the shipped searches, the paper's on a GPU.")
	if all := searched(r.Groups); len(all) > 0 {
		f.Say("%s", searchCaption(p.SearchParams, all, p))
		sayChanges(f, all)
		if i := slices.IndexFunc(all, found.selects); i >= 0 {
			f.Say("Architectures that are read off $θ$ are of the %s.", search.RuleTitles[all[i].rule])
		}
	}
}

func oursAndPaper(group string) []plots.Column {
	return []plots.Column{{Header: "ours", Group: group}, {Header: "paper", Group: group}}
}

func block(title string, lines []line, best [3]float64) plots.Block {
	rows := study.Map(lines, func(l line) []plots.Entry { return l.entries(best) })
	return plots.Block{Title: title, Rows: rows}
}

func (l line) entries(best [3]float64) []plots.Entry {
	out := []plots.Entry{{Text: l.title}}
	for i := range lookupSets {
		ours, paper := plots.Entry{Text: l.missing[i], Grey: true}, plots.Entry{Grey: true}
		if values := l.accuracy[i]; len(values) > 0 {
			mean, std := moments(values)
			ours = plots.Entry{Text: plusMinus(mean, std) + l.mark, Bold: mean == best[i]}
		}
		if l.block == referenceBlock {
			paper.Text = fmt.Sprintf("%.2f", l.paper.Accuracy[i].Mean)
		} else if l.printed {
			paper.Text = plusMinus(l.paper.Accuracy[i].Mean, l.paper.Accuracy[i].Std)
		}
		out = append(out, ours, paper)
	}
	return append(out, plots.Entry{Text: thousands(mean(l.seconds), l.mark)},
		plots.Entry{Text: thousands(l.paper.Seconds, ""), Grey: true})
}

// thousands is a time in whole seconds with a mark; empty if there is none.
func thousands(seconds float64, mark string) string {
	if !(seconds > 0) {
		return ""
	}
	return fmt.Sprintf("%.0f%s", seconds, mark)
}

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
