package li2021

import (
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Table4 counts the parameters of cells and has the trainings of [Table1] beside what others print.
var Table4 = lab.Declare(cifarTable(lab.Entry[Table1Params, cell]{
	Name: "table4", Source: "Table 4", Notebook: "table4_cifar10",
	Title: "CIFAR-10: networks made by hand and by searches, their errors, parameters and costs",
	Cost: catalog.Cost{
		Quick: "a second: parameters are counted, and the trainings are Table 1's, which are shipped",
		Paper: "the trainings of Table 1",
	},
	Draw:   drawTable4,
	Claims: func(r *table1) []runs.Claim { return append(judgeCounts(r), judgeErrors(r)...) },
}))

// otherRow is a line of Table 4 whose network is not of the DARTS space, or whose cell is not published.
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

// drawTable4 is the table by its groups, the paper's numbers in grey. Search costs are the paper's: none of its
// searches was timed on its GPU.
func drawTable4(r *table1, f *lab.Picture) {
	const test, theirs, params = "test error (%)", "the paper's", "parameters (M)"
	t := &plots.Table{Columns: []plots.Column{
		{Header: "network"}, {Header: "mean", Group: test}, {Header: "best", Group: theirs},
		{Header: "mean", Group: theirs}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "search\n(GPU days)"}, {Header: "DARTS'\nspace", Align: plots.Center},
		{Header: "search by", Align: plots.Left},
	}}
	t.Blocks = []plots.Block{
		{Title: "made by hand", Rows: otherEntries(manualCIFAR)},
		{Title: "searches that train every network", Rows: otherEntries(trainedCIFAR)},
		{Title: "weight-sharing", Rows: append(otherEntries(sharedCIFAR), sharedEntries(r)...)},
	}
	showCIFARTable(r, f, t, 1)
	f.Say("Search costs are the paper's, on a V100.")
}

// otherEntries are rows with the paper's numbers only.
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

func sharedEntries(r *table1) (all [][]plots.Entry) {
	for _, l := range linesOf(publishedCIFAR, r.Groups) {
		count, mean, _ := l.entries()
		cost, by := l.cost, "gradient"
		switch {
		case l.extra:
			cost, by = "–", "–"
		case l.genotype == "":
			by = "random"
		}
		all = append(all, []plots.Entry{
			{Text: l.method}, mean, printed("%.2f", l.best), printedError(l.average), count,
			printed("%.1f", l.params), {Text: cost, Grey: true}, {Text: "Y", Grey: true}, {Text: by, Grey: true},
		})
	}
	return all
}
