package li2021

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

const (
	table4ID     = "li2021/table4"
	table4Title  = "CIFAR-10: networks made by hand and by searches, their errors, parameters and costs"
	table4Source = "Li+ 2021, Table 4"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: table4ID, Paper: paper, Title: table4Title, Kind: "table",
		Notebook: "notebooks/li2021/table4_cifar10.ipynb",
		Cost: catalog.Cost{
			Quick: "a second: parameters are counted, and the trainings are Table 1's, which are shipped",
			Paper: "the trainings of Table 1",
		},
	}, Table1Quick, Table1Paper, Table4, catalog.Preset[Table1Params]{Scale: catalog.Large, Params: Table1Large})
}

// otherRow is a line of Table 4 whose network is none of the DARTS space, or whose
// cell is not published in it.
type otherRow struct {
	network    string
	best       float64 // test errors in percent, 0 where none is printed
	average    number
	params     float64 // millions
	cost       string  // GPU days
	comparable string  // whether its search space is DARTS': "Y", "N", or "–" where nothing was searched
	method     string
}

// Lines of Table 4 by its groups.
var (
	manualCIFAR = []otherRow{
		{network: "Shake-Shake (DeVries & Taylor 2017)", average: number{2.56, 0}, params: 26.2, cost: "–",
			comparable: "–", method: "manual"},
		{network: "PyramidNet (Yamada+ 2018)", best: 2.31, params: 26, cost: "–", comparable: "–", method: "manual"},
	}
	trainedCIFAR = []otherRow{
		{network: "NASNet-A (Zoph+ 2018)", average: number{2.65, 0}, params: 3.3, cost: "2000", comparable: "N",
			method: "RL"},
		{network: "AmoebaNet-B (Real+ 2019)", average: number{2.55, 0.05}, params: 2.8, cost: "3150",
			comparable: "N", method: "evolution"},
	}
	sharedCIFAR = []otherRow{
		{network: "ProxylessNAS (Cai+ 2019)", best: 2.08, params: 5.7, cost: "4", comparable: "N",
			method: "gradient"},
		{network: "ENAS (Pham+ 2018)", best: 2.89, params: 4.6, cost: "0.5", comparable: "Y", method: "RL"},
		{network: "ASNG-NAS (Akimoto+ 2019)", average: number{2.83, 0.14}, params: 3.9, cost: "0.1",
			comparable: "Y", method: "gradient"},
		{network: "SNAS (Xie+ 2019)", average: number{2.85, 0.02}, params: 2.8, cost: "1.5", comparable: "Y",
			method: "gradient"},
	}
)

// Table4Result is Table 4.
type Table4Result struct{ *Table1Result }

// Table4 counts parameters and runs what the run store lacks of Table 1's trainings.
// See [Table1] for cancelling and errors.
func Table4(ctx context.Context, p Table1Params) (*Table4Result, error) {
	r, err := p.run(ctx, table4ID)
	if err != nil {
		return nil, err
	}
	return &Table4Result{r}, nil
}

// Figure is the table by its groups, the paper's numbers in grey beside ours. Search
// costs are the paper's: none of its searches was timed on its card.
func (r *Table4Result) Figure() plots.Figure {
	const test, theirs, params = "test error (%)", "the paper's", "parameters (M)"
	ours := test
	if r.Params.reduced("cifar-10") {
		ours += ",\nreduced scale"
	}
	t := &plots.Table{Columns: []plots.Column{
		{Header: "network"}, {Header: "mean", Group: ours}, {Header: "best", Group: theirs},
		{Header: "mean", Group: theirs}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "search\n(GPU days)"}, {Header: "DARTS'\nspace", Align: plots.Center},
		{Header: "search by", Align: plots.Left},
	}}
	t.Blocks = []plots.Block{
		{Title: "made by hand", Rows: otherEntries(manualCIFAR)},
		{Title: "searches that train every network", Rows: otherEntries(trainedCIFAR)},
		{Title: "weight-sharing", Rows: append(otherEntries(sharedCIFAR), r.entries()...)},
	}
	return plots.Figure{
		Name: "li2021-table4", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{{Table: t}}},
		Caption: r.caption() + " Search costs are the paper's, its own on a V100.",
		Meta:    study.Meta(table4Title, r.Scale, r.Params),
	}
}

// otherEntries are rows of which all is the paper's.
func otherEntries(rows []otherRow) (all [][]plots.Entry) {
	grey := func(text string) plots.Entry { return plots.Entry{Text: text, Grey: true} }
	for _, row := range rows {
		mean := printedError(row.average)
		if row.average.mean > 0 && row.average.std == 0 {
			mean = printed("%.2f", row.average.mean)
		}
		all = append(all, []plots.Entry{
			grey(row.network), grey("–"), printed("%.2f", row.best), mean, grey("–"), printed("%g", row.params),
			grey(row.cost), grey(row.comparable), grey(row.method),
		})
	}
	return all
}

// entries are the rows of cells of the DARTS space.
func (r *Table4Result) entries() (all [][]plots.Entry) {
	for i, row := range r.rows {
		count, mean := plots.Entry{Text: "unknown", Grey: true}, plots.Entry{Text: "cell unknown", Grey: true}
		if g := r.of[i]; g >= 0 {
			count = plots.Entry{Text: fmt.Sprintf("%.2f", millions(r.counts[g]))}
			mean, _ = errorEntries(r.records[g], "test_error")
		}
		cost, by := row.cost, "gradient"
		switch {
		case row.extra:
			cost, by = "–", "–"
		case row.genotype == "":
			by = "random"
		}
		all = append(all, []plots.Entry{
			{Text: row.method}, mean, printed("%.2f", row.best), printedError(row.average), count,
			printed("%.1f", row.params), {Text: cost, Grey: true}, {Text: "Y", Grey: true}, {Text: by, Grey: true},
		})
	}
	return all
}

// Check judges the table's numbers of parameters, and its errors at the paper's scale.
func (r *Table4Result) Check() []runs.Claim { return append(r.checkCounts(), r.checkAllErrors()...) }
