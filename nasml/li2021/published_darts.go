package li2021

import (
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// cellRow is a line of Tables 1, 4 and 5 of the paper whose cells lie in the
// DARTS space.
type cellRow struct {
	method   string
	genotype string  // a name of supernet.Published; empty: not published
	params   float64 // millions, as printed
	cost     string  // GPU days

	// Test errors in percent, 0 where none is printed: on CIFAR-10 the best and
	// the average with its deviation, on ImageNet top-1 and top-5.
	best       float64
	average    number
	top1, top5 float64
	extra      bool // it is not in the paper's table
}

// publishedCIFAR are the lines of Table 4, whose errors are Table 1's.
var publishedCIFAR = []cellRow{
	{method: "RS-WS", params: 3.8, cost: "0.7", best: 2.71, average: number{2.85, 0.08}},
	{method: "DARTS (1st order)", genotype: "DARTS_V1", params: 3.3, cost: "0.4", average: number{3.00, 0.14}},
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 3.3, cost: "1", average: number{2.76, 0.09}},
	{method: "PDARTS", genotype: "PDARTS", params: 3.4, cost: "0.3", best: 2.50},
	{method: "PC-DARTS", genotype: "PC_DARTS_cifar", params: 3.6, cost: "0.1", average: number{2.57, 0.07}},
	{method: "GAEA PC-DARTS", genotype: "GAEA_PC_DARTS_cifar", params: 3.7, cost: "0.1", best: 2.39,
		average: number{2.50, 0.06}},
}

// publishedImageNet are the lines of Table 5, whose errors are Table 1's.
var publishedImageNet = []cellRow{
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 4.7, cost: "4.0", top1: 26.7, top5: 8.7},
	{method: "PDARTS", genotype: "PDARTS", params: 4.9, cost: "0.3", top1: 24.4, top5: 7.4},
	{method: "PC-DARTS (CIFAR-10)", genotype: "PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 25.1, top5: 7.8},
	{method: "PC-DARTS (ImageNet)", genotype: "PC_DARTS_image", params: 5.3, cost: "3.8", top1: 24.2, top5: 7.3},
	{method: "GAEA PC-DARTS (CIFAR-10)", genotype: "GAEA_PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 24.3,
		top5: 7.3},
	{method: "GAEA PC-DARTS (ImageNet)", genotype: "GAEA_PC_DARTS_image", params: 5.6, cost: "3.8", top1: 24.0,
		top5: 7.3},
}

// lines are the rows of a table: the published ones of the given genotypes, in the
// table's order, then the reader's own.
func lines(table []cellRow, genotypes []named) (rows []cellRow, of []int) {
	at := map[string]int{}
	for i, g := range genotypes {
		at[g.name] = i
	}
	listed := map[string]bool{}
	for _, row := range table {
		if i, chosen := at[row.genotype]; chosen {
			rows, of = append(rows, row), append(of, i)
			listed[row.genotype] = true
		} else if row.genotype == "" {
			rows, of = append(rows, row), append(of, -1)
		}
	}
	for i, g := range genotypes {
		if !listed[g.name] {
			row := cellRow{method: g.name, genotype: g.name, extra: true}
			if p, ok := supernet.Published[g.name]; ok {
				row.method = p.Method + " (" + p.Searched + ")"
			}
			rows, of = append(rows, row), append(of, i)
		}
	}
	return rows, of
}

// paperNumber is a printed number, or none.
func paperNumber(x float64) runs.Number {
	if x == 0 {
		return runs.None
	}
	return runs.Number(x)
}
