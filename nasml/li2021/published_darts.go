package li2021

import (
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
)

// cellRow is a line of Tables 1, 4 and 5 whose cell lies in the DARTS space.
type cellRow struct {
	method   string
	genotype string  // a name of supernet.Published; empty: not published
	params   float64 // millions, as printed
	cost     string  // GPU days

	// Test errors in percent, 0 if not printed: best and average with deviation on CIFAR-10, top-1 and top-5 on
	// ImageNet.
	best       float64
	average    number
	top1, top5 float64
	extra      bool // it is not in the paper's table

	ids rowIDs
}

// rowIDs are the ids of the claims about a line, in the form of verdict.Claim. There are none about P-DARTS.
type rowIDs struct{ params, best, average, top1, top5 string }

// listed puts ids before the name of a claim; without ids it is marked as ours.
func listed(ids, name string) string {
	if ids == "" {
		return "own: " + name
	}
	return "[" + ids + "] " + name
}

// publishedCIFAR are the lines of Table 4, whose errors are Table 1's.
var publishedCIFAR = []cellRow{
	{method: "RS-WS", params: 3.8, cost: "0.7", best: 2.71, average: number{2.85, 0.08},
		ids: rowIDs{params: "LI187", best: "LI063 LI185", average: "LI064 LI186"}},
	{method: "DARTS (1st order)", genotype: "DARTS_V1", params: 3.3, cost: "0.4", average: number{3.00, 0.14},
		ids: rowIDs{params: "LI191", average: "LI070 LI190"}},
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 3.3, cost: "1", average: number{2.76, 0.09},
		ids: rowIDs{params: "LI195", average: "LI076 LI194"}},
	{method: "PDARTS", genotype: "PDARTS", params: 3.4, cost: "0.3", best: 2.50},
	{method: "PC-DARTS", genotype: "PC_DARTS_cifar", params: 3.6, cost: "0.1", average: number{2.57, 0.07},
		ids: rowIDs{params: "LI199", average: "LI082 LI198"}},
	{method: "GAEA PC-DARTS", genotype: "GAEA_PC_DARTS_cifar", params: 3.7, cost: "0.1", best: 2.39,
		average: number{2.50, 0.06},
		ids:     rowIDs{params: "LI203", best: "LI087 LI201", average: "LI008 LI088 LI202"}},
}

// publishedImageNet are the lines of Table 5, whose errors are Table 1's.
var publishedImageNet = []cellRow{
	{method: "DARTS (2nd order)", genotype: "DARTS_V2", params: 4.7, cost: "4.0", top1: 26.7, top5: 8.7,
		ids: rowIDs{params: "LI207", top1: "LI078 LI205", top5: "LI079 LI206"}},
	{method: "PDARTS", genotype: "PDARTS", params: 4.9, cost: "0.3", top1: 24.4, top5: 7.4},
	{method: "PC-DARTS (CIFAR-10)", genotype: "PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 25.1, top5: 7.8,
		ids: rowIDs{params: "LI211", top1: "LI093 LI209", top5: "LI094 LI210"}},
	{method: "PC-DARTS (ImageNet)", genotype: "PC_DARTS_image", params: 5.3, cost: "3.8", top1: 24.2, top5: 7.3,
		ids: rowIDs{params: "LI215", top1: "LI048 LI084 LI213", top5: "LI085 LI214"}},
	{method: "GAEA PC-DARTS (CIFAR-10)", genotype: "GAEA_PC_DARTS_cifar", params: 5.3, cost: "0.1", top1: 24.3,
		top5: 7.3, ids: rowIDs{params: "LI219", top1: "LI096 LI217", top5: "LI097 LI218"}},
	{method: "GAEA PC-DARTS (ImageNet)", genotype: "GAEA_PC_DARTS_image", params: 5.6, cost: "3.8", top1: 24.0,
		top5: 7.3, ids: rowIDs{params: "LI223", top1: "LI046 LI090 LI221", top5: "LI091 LI222"}},
}

// cellLine is a row of a table with the trainings of its cell; nil if the cell is unknown.
type cellLine struct {
	cellRow
	cell *lab.Group[cell]
}

func (l cellLine) errors(value string) []float64 {
	if l.cell == nil {
		return nil
	}
	return errorsOf(l.cell.Records, value)
}

// parameters are those of a line's network; 0: its cell is not known.
func (l cellLine) parameters() int {
	if l.cell == nil {
		return 0
	}
	return l.cell.Trial.parameters
}

// linesOf are the rows of a table: the published ones of the given cells in the table's order, then the reader's own.
func linesOf(table []cellRow, cells lab.Groups[cell]) (lines []cellLine) {
	known := map[string]bool{"": true}
	for _, row := range table {
		known[row.genotype] = true
		at := slices.IndexFunc(cells, func(g lab.Group[cell]) bool { return g.Trial.name == row.genotype })
		if at >= 0 {
			lines = append(lines, cellLine{row, &cells[at]})
		} else if row.genotype == "" {
			lines = append(lines, cellLine{row, nil})
		}
	}
	for i, g := range cells {
		name := g.Trial.name
		if known[name] {
			continue
		}
		row := cellRow{method: name, genotype: name, extra: true}
		if p, ok := supernet.Published[name]; ok {
			row.method = p.Method + " (" + p.Searched + ")"
		}
		lines = append(lines, cellLine{row, &cells[i]})
	}
	return lines
}

// paperNumber is a printed number, or none.
func paperNumber(x float64) runs.Number {
	if x == 0 {
		return runs.None
	}
	return runs.Number(x)
}
