package li2021

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
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

// Table2Paper has all rows of the paper at its scale. Its searches were not run.
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

// rules checks names.
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
	for _, w := range rowsNamed(p.searched()) {
		paper, errA := search.AsPaper(w.method())
		code, errB := search.AsCode(w.method())
		if errA != nil || errB != nil {
			continue
		}
		for _, d := range search.Differences(paper, code) {
			out = append(out, string(w)+" "+d)
		}
		if rule := search.RuleAsCode(w.method()); rule != search.LastEpoch && w.variant() == "" {
			out = append(out, fmt.Sprintf("%s architecture: %s, %s", w, search.RuleTitles[search.LastEpoch],
				search.RuleTitles[rule]))
		}
	}
	return out
}
