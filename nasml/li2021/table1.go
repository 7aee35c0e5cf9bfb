package li2021

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/plots"
)

// Table1Params are the parameters of Table 1 on CIFAR-10, and of Table 4, which adds the numbers of parameters.
type Table1Params struct {
	// Names of supernet.Published, or genotypes as the authors' programs print them.
	Genotypes []string `validate:"min=1,unique"`

	// The network whose parameters are counted; what is trained is in TrainParams.
	CountedChannels, CountedCells, CountedClasses int `validate:"gte=1"`

	TrainParams
	Data data.Name // the images that are trained on
}

// Table1Quick counts at the paper's size and trains five cells twice at a reduced scale, precomputed.
var Table1Quick = Table1Params{
	Genotypes:       []string{"DARTS_V1", "DARTS_V2", "PDARTS", "PC_DARTS_cifar", "GAEA_PC_DARTS_cifar"},
	CountedChannels: 36, CountedCells: 20, CountedClasses: 10,
	TrainParams: quickTraining, Data: data.CIFAR10,
}

// Table1Paper trains as the paper does. It was not run.
var Table1Paper = lab.With(Table1Quick, func(p *Table1Params) { p.TrainParams = paperTraining })

// Table1Large takes two cores a night: networks of 16 channels and 8 cells on 32×32 pixels, with the auxiliary head. It
// was not run.
var Table1Large = lab.With(Table1Paper, func(p *Table1Params) {
	p.Channels, p.Cells, p.Epochs, p.Examples, p.TestExamples, p.Seeds = 16, 8, 15, 10000, 1000, 2
})

// Table1 counts the parameters of cells and trains them.
var Table1 = lab.Declare(cifarTable(lab.Entry[Table1Params, cell]{
	Name: "table1", Source: "Table 1", Notebook: "table1_cifar10",
	Title: "DARTS space, CIFAR-10: parameters and test errors of cells that were found",
	Cost: catalog.Cost{
		Quick: "parameters a second; ten trainings at a reduced scale: " + quickTrainingCost + "; they are shipped",
		Paper: "50 trainings, each 1.5 days on a GTX 1080 Ti (Liu+ 2019, Appendix A), 80 on two cores",
	},
	Settings: table1Settings, Draw: drawTable1, Claims: judgeTable1,
}))

type table1 = lab.Result[Table1Params, cell]

// cifarTable adds what Tables 1 and 4 share.
func cifarTable(e lab.Entry[Table1Params, cell]) lab.Entry[Table1Params, cell] {
	e.Of, e.Kind, e.Quick, e.Paper, e.Note = ofPaper, lab.Table, Table1Quick, Table1Paper, noteOfSearches
	e.Also = []catalog.Preset[Table1Params]{{Scale: catalog.Large, Params: Table1Large}}
	e.Rules = func(p Table1Params, c *study.Checks) {
		if len(*c) == 0 {
			_, err := p.cells()
			c.Expect(err == nil, "%v", err)
		}
	}
	e.Trials = func(p Table1Params) (gs lab.Groups[cell]) {
		cells, _ := p.cells() // whose error is one of the rules'
		gs.Add("training", p.Seeds, cells...)
		return gs
	}
	e.Bench = func(ctx context.Context, p Table1Params, _ string) (lab.Bench[cell], error) {
		x, err := p.inMemory(ctx, p.Data)
		return p.bench(ofPaper.ID+"/"+e.Name, x), err
	}
	return e
}

func (p Table1Params) cells() ([]cell, error) {
	return p.counted("cifar-10", p.Genotypes, supernet.Skeleton{
		Stem: "cifar", Channels: p.CountedChannels, Cells: p.CountedCells, Classes: p.CountedClasses,
	})
}

// Table1Differences lists the settings in which paper and authors' code differ: "batch: 128, 96".
func Table1Differences() []string {
	return training.Differences(training.AsPaper["cifar-10"], training.AsCode["cifar-10"])
}

func drawTable1(r *table1, f *lab.Picture) {
	const params, test, theirs = "parameters (M)", "test error (%)", "the paper's"
	t := &plots.Table{Columns: []plots.Column{
		{Header: "cell"}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "mean", Group: test}, {Header: "best", Group: test},
		{Header: "mean", Group: theirs}, {Header: "best", Group: theirs},
	}}
	var block plots.Block
	for _, l := range linesOf(publishedCIFAR, r.Groups) {
		count, mean, best := l.entries()
		block.Rows = append(block.Rows, []plots.Entry{
			{Text: l.method}, count, printed("%.1f", l.params), mean, best, printedError(l.average),
			printed("%.2f", l.best),
		})
	}
	t.Blocks = []plots.Block{block}
	showCIFARTable(r, f, t, 3, 4)
}

// showCIFARTable shows Table 1 or 4 with nasml's test errors in some columns. Errors of smaller networks than the
// paper's do not estimate the paper's: they move to columns of their own.
func showCIFARTable(r *table1, f *lab.Picture, t *plots.Table, errors ...int) {
	if r.Params.reduced("cifar-10") {
		for _, column := range errors {
			moveToEnd(t, column, "small networks (%)")
		}
	}
	f.Style = plots.ICLR.Text()
	f.Row(plots.Panel{Table: t})
	sayTable1(r, f)
}

// moveToEnd moves the numbers of a column into a new one at the end, with a group; "not run" is left in their place.
func moveToEnd(t *plots.Table, column int, group string) {
	t.Columns = append(t.Columns, plots.Column{Header: t.Columns[column].Header, Group: group})
	for _, block := range t.Blocks {
		for i, row := range block.Rows {
			moved := plots.Entry{}
			if !row[column].Grey && row[column].Text != "" {
				moved, row[column] = row[column], missing
			}
			block.Rows[i] = append(row, moved)
		}
	}
}

// entries are the parameters of a line's cell, and mean and best of its test errors.
func (l cellLine) entries() (count, mean, best plots.Entry) {
	if l.cell == nil {
		return plots.Entry{Text: "unknown", Grey: true}, plots.Entry{Text: "cell unknown", Grey: true}, plots.Entry{}
	}
	mean, best = errorEntries(l.cell.Records, "test_error")
	return plots.Entry{Text: fmt.Sprintf("%.2f", millions(l.cell.Trial.parameters))}, mean, best
}

func sayTable1(r *table1, f *lab.Picture) {
	p := r.Params
	f.Say("Errors: mean ± standard deviation over seeds; parameters: at $C$ = %d, $L$ = %d and %d classes, without "+
		"the auxiliary head; the paper's numbers: its Tables 1 and 4.", p.CountedChannels, p.CountedCells,
		p.CountedClasses)
	p.say(f, examplesOf(r), p.imagesOf(p.Data))
}

// examplesOf are the examples of trainings; nil if nothing was trained.
func examplesOf[P, T any](r *lab.Result[P, T]) *examples {
	x, _ := r.Facts[""].(*examples)
	return x
}
