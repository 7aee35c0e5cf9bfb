package li2021

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
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

func cifarTable(e lab.Entry[Table1Params, cell]) lab.Entry[Table1Params, cell] {
	e.Of, e.Kind, e.Quick, e.Paper, e.Note = ofPaper, lab.Table, Table1Quick, Table1Paper, noteOfSearches
	e.Also = []catalog.Preset[Table1Params]{{Scale: catalog.Large, Params: Table1Large}}
	e.Rules = expectCells[Table1Params]
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

// expectCells requires that the genotypes of a table can be counted, if their network has a size.
func expectCells[P interface{ cells() ([]cell, error) }](p P, c *study.Checks) {
	if len(*c) == 0 {
		_, err := p.cells()
		c.Expect(err == nil, "%v", err)
	}
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
	for _, l := range linesOf(publishedTables().CIFAR, r.Groups) {
		count, mean, best := l.entries()
		block.Rows = append(block.Rows, []plots.Entry{
			{Text: l.Method}, count, printed("%.1f", l.Params), mean, best, printedError(l.Average),
			printed("%.2f", l.Best),
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
	p.say(f, examplesOf(r), imagesOf(p.Examples, strings.ToUpper(string(p.Data))))
}

func examplesOf[P, T any](r *lab.Result[P, T]) *examples {
	x, _ := r.Facts[""].(*examples)
	return x
}

func judgeTable1(r *table1) []runs.Claim {
	genotypes := study.Map(r.Groups.Trials(), func(c cell) named { return c.named })
	claims := slices.Concat(judgeCounts(r), judgeSpace(claimsFrom(r, "Appendix C.1"), genotypes), judgeErrors(r))
	for _, base := range table1Rivals {
		claims = append(claims, judgeRival(r, "GAEA PC-DARTS", base))
	}
	return claims
}

var table1Rivals = []string{"PC-DARTS", "DARTS (2nd order)", "DARTS (1st order)"}

func judgeCounts(r *table1) (claims []runs.Claim) {
	p, quick, why := r.Params, Table1Quick, ""
	if p.CountedChannels != quick.CountedChannels || p.CountedCells != quick.CountedCells ||
		p.CountedClasses != quick.CountedClasses {
		why = "counted in another network than the paper's of 36 channels, 20 cells and 10 classes"
	}
	for _, l := range linesOf(publishedTables().CIFAR, r.Groups) {
		claims = append(claims, l.judgeParameters(claimsFrom(r, "Table 4"), l.parameters(), why)...)
	}
	return claims
}

func claimsFrom[P, T any](r *lab.Result[P, T], source string) func(name string) lab.Claim {
	return func(name string) lab.Claim { return r.Claim("%s", name).From(source) }
}

// judgeParameters judges a printed number of parameters to its last digit; 0 means that it is unknown.
func (row cellRow) judgeParameters(claim func(name string) lab.Claim, parameters int, why string) []runs.Claim {
	if row.Params == 0 {
		return nil
	}
	c := claim(listed(row.IDs.Params, row.Method+": parameters, M")).Says(row.Params)
	c.Tolerance = 0.05
	if parameters == 0 {
		why = "the paper does not say which cell it is"
	}
	if why != "" {
		return []runs.Claim{c.NotRun("%s", why)}
	}
	c = c.Noting("the tolerance is half of the last printed digit")
	if row.Genotype == "DARTS_V1" {
		c.Note += "; Liu+ 2019 gave this cell away as their result of first order, and print 3.3 M for it"
	}
	return []runs.Claim{verdict.Exactly(c.Claim, millions(parameters), row.Params, 0.05)}
}

func millions(count int) float64 { return float64(count) / 1e6 }

// The DARTS space in Appendix C.1 and in Liu+ 2019, Section 2.3.
const (
	dartsEdges      = 14
	dartsOperations = 8
	dartsMagnitude  = 18 // of the number of architectures
)

func judgeSpace(claim func(name string) lab.Claim, genotypes []named) []runs.Claim {
	space := supernet.DARTS
	count, _ := new(big.Float).SetInt(space.Architectures()).Float64()
	outside := 0
	for _, g := range genotypes {
		if space.CheckGenotype(g.genotype) != nil {
			outside++
		}
	}
	return []runs.Claim{
		verdict.Exactly(claim("[LI225] edges of a cell of the space").Claim, float64(len(space.Edges())),
			dartsEdges, 0),
		verdict.Exactly(claim("[LI226] operations of an edge, with zero").Claim, float64(space.Options()),
			dartsOperations, 0),
		verdict.Exactly(claim("own: architectures of the space, power of ten").
			From("ours, on Liu+ 2019, Section 2.3").Noting("the logarithm, with tolerance ½").Claim,
			math.Log10(count), dartsMagnitude, 0.5),
		verdict.None(claim("own: cells that lie outside of the space").Claim, outside, len(genotypes)),
	}
}

func judgeErrors(r *table1) (claims []runs.Claim) {
	lines := linesOf(publishedTables().CIFAR, r.Groups)
	for _, l := range lines {
		claim := func(ids, which string) lab.Claim {
			name := fmt.Sprintf("%s: %s test error on CIFAR-10, %%", l.Method, which)
			c := claimsFrom(r, "Table 1")(listed(ids, name))
			if l.Average.Std > 0 {
				c.Tolerance = runs.Number(l.Average.Std)
			}
			return c
		}
		average, best := claim(l.IDs.Average, "average").Says(l.Average.Mean), claim(l.IDs.Best, "best").Says(l.Best)
		judged := []runs.Claim{average.Claim, best.Claim}
		if why := whyNotJudged(r, l); why != "" {
			judged = []runs.Claim{average.NotRun("%s", why), best.NotRun("%s", why)}
		} else {
			errors := l.errors("test_error")
			judged[0] = average.Family(len(lines)).Mean(errors).Near(l.Average.Mean, l.Average.Std)
			judged[1] = verdict.Exactly(best.Claim, slices.Min(errors), l.Best, max(l.Average.Std, 0.005))
		}
		for i, printed := range []float64{l.Average.Mean, l.Best} {
			if !l.extra && printed > 0 {
				claims = append(claims, judged[i])
			}
		}
	}
	return claims
}

func whyNotJudged(r *table1, l cellLine) string {
	switch {
	case l.cell == nil:
		return "the paper does not say which cell it is"
	case r.Params.Data != data.CIFAR10:
		return fmt.Sprintf("errors are on %s", r.Params.Data)
	case r.Params.reduced("cifar-10"):
		return "errors at a reduced scale are not the paper's; --scale paper has its 600 epochs"
	case slices.Contains(r.Groups.Records(), nil):
		return "not all trainings were run"
	}
	return ""
}

func judgeRival(r *table1, better, worse string) runs.Claim {
	c := r.Claim("[LI004] %s: lower average test error than %s", better, worse).From("Table 1").
		Family(len(table1Rivals))
	find := func(method string) (cellLine, []float64) {
		for _, l := range linesOf(publishedTables().CIFAR, r.Groups) {
			if l.Method == method && l.cell != nil {
				return l, l.errors("test_error")
			}
		}
		return cellLine{}, nil
	}
	a, ours := find(better)
	b, theirs := find(worse)
	if a.cell == nil || b.cell == nil {
		return c.NotRun("one of the two is not among Genotypes")
	}
	c = c.Says(a.Average.Mean - b.Average.Mean)
	if len(ours) != r.Params.Seeds || len(theirs) != r.Params.Seeds {
		return c.NotRun("%d and %d of %d seeds", len(ours), len(theirs), r.Params.Seeds)
	}
	if r.Params.reduced("cifar-10") {
		c = c.Noting("at a reduced scale, of which only the sign is judged")
	}
	return c.Difference(ours, theirs).Below(0)
}

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
	others := publishedTables().Others
	t.Blocks = []plots.Block{
		{Title: "made by hand", Rows: otherEntries(others.Manual)},
		{Title: "searches that train every network", Rows: otherEntries(others.Trained)},
		{Title: "weight-sharing", Rows: append(otherEntries(others.Shared), sharedEntries(r)...)},
	}
	showCIFARTable(r, f, t, 1)
	f.Say("Search costs are the paper's, on a V100.")
}

func otherEntries(rows []otherRow) (all [][]plots.Entry) {
	grey := func(text string) plots.Entry { return plots.Entry{Text: text, Grey: true} }
	for _, row := range rows {
		mean := printedError(row.Average)
		if row.Average.Mean > 0 && row.Average.Std == 0 {
			mean = printed("%.2f", row.Average.Mean)
		}
		all = append(all, []plots.Entry{
			grey(row.Network), grey("–"), printed("%.2f", row.Best), mean, grey("–"), printed("%g", row.Params),
			grey(row.Cost), grey(row.Comparable), grey(row.Method),
		})
	}
	return all
}

func sharedEntries(r *table1) (all [][]plots.Entry) {
	for _, l := range linesOf(publishedTables().CIFAR, r.Groups) {
		count, mean, _ := l.entries()
		cost, by := l.Cost, "gradient"
		switch {
		case l.extra:
			cost, by = "–", "–"
		case l.Genotype == "":
			by = "random"
		}
		all = append(all, []plots.Entry{
			{Text: l.Method}, mean, printed("%.2f", l.Best), printedError(l.Average), count,
			printed("%.1f", l.Params), {Text: cost, Grey: true}, {Text: "Y", Grey: true}, {Text: by, Grey: true},
		})
	}
	return all
}

// TrainingCurves are what the trainings behind a table have done, epoch by epoch.
type TrainingCurves struct{ of *table1 }

// Table1Curves are the errors of the table's trainings over epochs.
func Table1Curves(r *table1) *TrainingCurves { return &TrainingCurves{r} }

// Figure draws the errors of every epoch's training passes, with cutout and drop path, and on the test images, in
// percent: means over seeds.
func (c *TrainingCurves) Figure() plots.Figure {
	training := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "training error (%)"}}
	test := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "test error (%)"}}
	for _, g := range c.of.Groups {
		ran, name := finishedOf(g.Records), candidateTitle(g.Trial.name)
		if len(ran) == 0 {
			continue
		}
		passed := epochsFrom(1, len(ran[0].Series["train_error"]))
		training.Series = append(training.Series, c.mean(name, passed, ran, "train_error"))
		test.Series = append(test.Series, c.mean(name, ran[0].Series["evaluated"], ran, "test_error"))
	}
	p := c.of.Params.TrainParams
	f := plots.Figure{
		Name: "li2021-training-curves", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{training, test}},
		Caption: c.caption(p),
		Meta: study.Meta("DARTS space, CIFAR-10: parameters and test errors of cells that were found, over epochs",
			c.of.Scale, p),
	}
	if len(test.Series) == 0 {
		f.Panels = [][]plots.Panel{{{Table: &plots.Table{Columns: []plots.Column{{Header: "no training was run"}}}}}}
	}
	return f
}

func (c *TrainingCurves) mean(label string, x []float64, ran []*runs.Record, series string) plots.Series {
	return plots.Band(label, x, study.Map(study.Columns(study.Rows(ran, series)), func(values []float64) runs.Summary {
		return c.of.Mean(values).Percent().Within(0, 100)
	}))
}

func (c *TrainingCurves) caption(p TrainParams) string {
	set := "the images"
	if p.Examples > 0 {
		set = fmt.Sprintf("%d images", p.Examples)
	}
	return "Training errors are of the passes of an epoch, with cutout and drop path; " +
		c.of.Interval("band", p.Seeds, "seed") + ". " + p.caption(examplesOf(c.of), set)
}

// Check judges nothing: what is claimed of errors is about the last epoch.
func (c *TrainingCurves) Check() []runs.Claim { return nil }

// Records are the keys of the trainings.
func (c *TrainingCurves) Records() []string { return c.of.Records() }
