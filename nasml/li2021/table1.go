package li2021

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Table1Params are the parameters of Table 1's part on CIFAR-10, with Table 4,
// which has the number of parameters besides.
type Table1Params struct {
	Genotypes []string // names of supernet.Published, or genotypes as the authors' programs print them

	// The network whose parameters are counted; what is trained is in TrainParams.
	CountedChannels, CountedCells, CountedClasses int

	TrainParams
	Data data.Name // the images that are trained on
}

// Table1Quick counts at the paper's size and trains five cells twice at a reduced
// scale. The project ships these trainings.
var Table1Quick = Table1Params{
	Genotypes:       []string{"DARTS_V1", "DARTS_V2", "PDARTS", "PC_DARTS_cifar", "GAEA_PC_DARTS_cifar"},
	CountedChannels: 36, CountedCells: 20, CountedClasses: 10,
	TrainParams: quickTraining, Data: data.CIFAR10,
}

// Table1Paper trains as the paper does. It was not run.
var Table1Paper = func() Table1Params {
	p := Table1Quick
	p.TrainParams = paperTraining
	return p
}()

// Table1Large is as much as two cores train in a night: networks of 16 channels and
// 8 cells on 32×32 pixels, with the auxiliary head. It was not run.
var Table1Large = func() Table1Params {
	p := Table1Paper
	p.Channels, p.Cells, p.Epochs, p.Examples, p.TestExamples, p.Seeds = 16, 8, 15, 10000, 1000, 2
	return p
}()

const (
	table1ID     = "li2021/table1"
	table1Title  = "DARTS space, CIFAR-10: parameters and test errors of cells that were found"
	table1Source = "Li+ 2021, Table 1"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: table1ID, Paper: paper, Title: table1Title, Kind: "table",
		Notebook: "notebooks/li2021/table1_cifar10.ipynb",
		Cost: catalog.Cost{
			Quick: "parameters a second; ten trainings at a reduced scale: " + quickTrainingCost + "; they are shipped",
			Paper: "50 trainings, each 1.5 days on a GTX 1080 Ti (Liu+ 2019, Appendix A), 80 on two cores",
		},
		Settings: table1Settings,
	}, Table1Quick, Table1Paper, Table1, catalog.Preset[Table1Params]{Scale: catalog.Large, Params: Table1Large})
}

// Table1Result is Table 1 on CIFAR-10.
type Table1Result struct {
	Params     Table1Params
	Scale      string // "quick", "paper" or empty for own parameters
	rows       []cellRow
	of         []int // genotype of each row, −1 for none
	counts     []int // parameters of each genotype
	evaluation evaluation
	records    [][]*runs.Record // by genotype
}

// Table1 counts parameters and runs what the run store lacks of the trainings.
// Cancelling ctx ends it with finished trainings stored and the one under way at
// its checkpoint. It is a *catalog.UsageError where a parameter or genotype makes
// no sense, and an error where images cannot be had or a training diverges.
func Table1(ctx context.Context, p Table1Params) (*Table1Result, error) { return p.run(ctx, table1ID) }

// run is Table1 under a title.
func (p Table1Params) run(ctx context.Context, title string) (*Table1Result, error) {
	r := &Table1Result{Params: p, Scale: runs.Scale(ctx)}
	genotypes, err := p.check()
	if err != nil {
		return nil, err
	}
	r.rows, r.of = lines(publishedCIFAR, genotypes)
	counted := supernet.Skeleton{
		Stem: "cifar", Channels: p.CountedChannels, Cells: p.CountedCells, Classes: p.CountedClasses,
	}
	for _, g := range genotypes {
		net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: counted, Genotype: g.genotype})
		if err != nil {
			return nil, catalog.Usagef("%s, %v", g.name, err)
		}
		r.counts = append(r.counts, net.Parameters())
	}
	settings, err := p.settings("cifar-10")
	if err != nil {
		return nil, err
	}
	r.evaluation = evaluation{p.TrainParams, title, settings, genotypes, nil, 0}
	if r.evaluation.examples, err = p.inMemory(ctx, p.Data); err != nil {
		return nil, err
	}
	r.records, err = r.evaluation.run(ctx)
	return r, err
}

// check looks at the parameters and reads the genotypes.
func (p Table1Params) check() ([]named, error) {
	var c study.Checks
	study.Distinct(&c, "Genotypes", p.Genotypes, 1)
	c.AtLeast("CountedChannels", p.CountedChannels, 1)
	c.AtLeast("CountedCells", p.CountedCells, 1)
	c.AtLeast("CountedClasses", p.CountedClasses, 1)
	p.TrainParams.check(&c)
	if err := c.Err("Table 1"); err != nil {
		return nil, err
	}
	return parseGenotypes(p.Genotypes)
}

// Records are the keys of the trainings.
func (r *Table1Result) Records() []string { return keysOf(r.records) }

// Differences lists where the settings as in the paper and as in the authors'
// code differ: "batch: 128, 96".
func (r *Table1Result) Differences() []string {
	return training.Differences(training.AsPaper["cifar-10"], training.AsCode["cifar-10"])
}

// Figure is the table, with the paper's numbers in grey beside ours.
func (r *Table1Result) Figure() plots.Figure {
	const params, theirs = "parameters (M)", "the paper's"
	test := "test error (%)"
	if r.Params.reduced("cifar-10") {
		test += ", reduced scale"
	}
	t := &plots.Table{Columns: []plots.Column{
		{Header: "cell"}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "mean", Group: test}, {Header: "best", Group: test},
		{Header: "mean", Group: theirs}, {Header: "best", Group: theirs},
	}}
	var block plots.Block
	for i, row := range r.rows {
		ours := plots.Entry{Text: "unknown", Grey: true}
		mean, best := plots.Entry{Text: "cell unknown", Grey: true}, plots.Entry{}
		if g := r.of[i]; g >= 0 {
			ours = plots.Entry{Text: fmt.Sprintf("%.2f", millions(r.counts[g]))}
			mean, best = errorEntries(r.records[g], "test_error")
		}
		block.Rows = append(block.Rows, []plots.Entry{
			{Text: row.method}, ours, printed("%.1f", row.params), mean, best, printedError(row.average),
			printed("%.2f", row.best),
		})
	}
	t.Blocks = []plots.Block{block}
	return plots.Figure{
		Name: "li2021-table1", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{{Table: t}}},
		Caption: r.caption(), Meta: study.Meta(table1Title, r.Scale, r.Params),
	}
}

func (r *Table1Result) caption() string {
	p := r.Params
	counted := fmt.Sprintf("Parameters of the network with $C$ = %d, $L$ = %d and %d classes, without the auxiliary "+
		"head.", p.CountedChannels, p.CountedCells, p.CountedClasses)
	return counted + " " + r.evaluation.caption(r.evaluation.imagesOf(p.Data)) +
		" Mean ± standard deviation over seeds. The paper's numbers are those of its Tables 1 and 4."
}

// Check judges the numbers of parameters that Table 4 prints, the size of the
// space (Appendix C.1), and the errors of Table 1 at the paper's scale. Which
// cell is better is judged at every scale.
func (r *Table1Result) Check() []runs.Claim {
	claims := slices.Concat(r.checkCounts(), checkSpace(r.evaluation.genotypes), r.checkAllErrors())
	for _, base := range table1Rivals {
		claims = append(claims, r.checkBetter("GAEA PC-DARTS", base))
	}
	return claims
}

// checkCounts judges all numbers of parameters.
func (r *Table1Result) checkCounts() (claims []runs.Claim) {
	for i, row := range r.rows {
		if row.params > 0 {
			claims = append(claims, checkParams(row, r.count(i), table4Source, r.standard()))
		}
	}
	return claims
}

// checkAllErrors judges the errors of all rows of the paper's.
func (r *Table1Result) checkAllErrors() (claims []runs.Claim) {
	for i, row := range r.rows {
		if row.extra {
			continue
		}
		var records []*runs.Record
		if r.of[i] >= 0 {
			records = r.records[r.of[i]]
		}
		claims = append(claims, r.checkErrors(row, records)...)
	}
	return claims
}

// table1Rivals are the cells that GAEA PC-DARTS' is compared with.
var table1Rivals = []string{"PC-DARTS", "DARTS (2nd order)", "DARTS (1st order)"}

// count is the number of parameters of a row's cell, 0 where that is not known.
func (r *Table1Result) count(row int) int {
	if r.of[row] < 0 {
		return 0
	}
	return r.counts[r.of[row]]
}

// standard says what keeps the counts from being the paper's.
func (r *Table1Result) standard() string {
	p, quick := r.Params, Table1Quick
	if p.CountedChannels == quick.CountedChannels && p.CountedCells == quick.CountedCells &&
		p.CountedClasses == quick.CountedClasses {
		return ""
	}
	return "counted in another network than the paper's of 36 channels, 20 cells and 10 classes"
}

// checkParams judges a number of parameters to the printed digit.
func checkParams(row cellRow, count int, source, why string) runs.Claim {
	c := verdict.Claim(listed(row.ids.params, row.method+": parameters, M"), source)
	c.Paper, c.Tolerance = runs.Number(row.params), 0.05
	if count == 0 {
		why = "the paper does not say which cell it is"
	}
	if why != "" {
		return verdict.NotRun(c, why)
	}
	c.Note = "the tolerance is half of the last printed digit"
	if row.genotype == "DARTS_V1" {
		c.Note += "; Liu+ 2019 gave this cell away as their result of first order, and print 3.3 M for it"
	}
	return verdict.Exactly(c, millions(count), row.params, 0.05)
}

func millions(count int) float64 { return float64(count) / 1e6 }

// The DARTS space in Appendix C.1 and in Liu+ 2019, Section 2.3.
const (
	dartsEdges      = 14
	dartsOperations = 8
	dartsMagnitude  = 18 // of the number of architectures
)

// checkSpace judges what is said of the space, and that the cells lie in it.
func checkSpace(genotypes []named) []runs.Claim {
	space := supernet.DARTS
	count, _ := new(big.Float).SetInt(space.Architectures()).Float64()
	claims := []runs.Claim{
		verdict.Exactly(verdict.Claim("[LI225] edges of a cell of the space", "Li+ 2021, Appendix C.1"),
			float64(len(space.Edges())), dartsEdges, 0),
		verdict.Exactly(verdict.Claim("[LI226] operations of an edge, with zero", "Li+ 2021, Appendix C.1"),
			float64(space.Options()), dartsOperations, 0),
	}
	size := verdict.Claim("own: architectures of the space, power of ten", "Liu+ 2019, Section 2.3")
	size.Note = "the logarithm, with tolerance ½"
	claims = append(claims, verdict.Exactly(size, math.Log10(count), dartsMagnitude, 0.5))
	outside := 0
	for _, g := range genotypes {
		if space.CheckGenotype(g.genotype) != nil {
			outside++
		}
	}
	inside := verdict.Claim("own: cells that lie outside of the space", "Li+ 2021, Appendix C.1")
	return append(claims, verdict.None(inside, outside, len(genotypes)))
}

// checkErrors judges the average and the best test error of a row.
func (r *Table1Result) checkErrors(row cellRow, records []*runs.Record) []runs.Claim {
	average := verdict.Claim(listed(row.ids.average, row.method+": average test error on CIFAR-10, %"), table1Source)
	average.Paper, average.Tolerance = paperNumber(row.average.mean), paperNumber(row.average.std)
	best := verdict.Claim(listed(row.ids.best, row.method+": best test error on CIFAR-10, %"), table1Source)
	best.Paper, best.Tolerance = paperNumber(row.best), paperNumber(row.average.std)
	why := r.whyNotJudged(len(records))
	ours := errorsOf(records, "test_error")
	var claims []runs.Claim
	if row.average.mean > 0 {
		if why == "" {
			s, err := runs.Summarize(ours, verdict.Family(r.Params.Confidence, len(r.rows)))
			average = verdict.Near(average, s, err, row.average.mean, row.average.std)
		} else {
			average = verdict.NotRun(average, why)
		}
		claims = append(claims, average)
	}
	if row.best > 0 {
		if why == "" {
			best = verdict.Exactly(best, slices.Min(ours), row.best, max(row.average.std, 0.005))
		} else {
			best = verdict.NotRun(best, why)
		}
		claims = append(claims, best)
	}
	return claims
}

// whyNotJudged says why errors of so many trainings are not held against the
// paper's.
func (r *Table1Result) whyNotJudged(trainings int) string {
	switch {
	case trainings == 0:
		return "the paper does not say which cell it is"
	case r.Params.Data != data.CIFAR10:
		return fmt.Sprintf("errors are on %s", r.Params.Data)
	case r.Params.reduced("cifar-10"):
		return "errors at a reduced scale are not the paper's; --scale paper has its 600 epochs"
	}
	for _, row := range r.records {
		for _, record := range row {
			if record == nil {
				return "not all trainings were run"
			}
		}
	}
	return ""
}

// checkBetter judges that one cell has a lower error than another, seed by seed.
func (r *Table1Result) checkBetter(better, worse string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[LI004] %s: lower average test error than %s", better, worse), table1Source)
	find := func(method string) (cellRow, []float64) {
		for i, row := range r.rows {
			if row.method == method && r.of[i] >= 0 {
				return row, errorsOf(r.records[r.of[i]], "test_error")
			}
		}
		return cellRow{}, nil
	}
	a, ours := find(better)
	b, theirs := find(worse)
	if a.method == "" || b.method == "" {
		return verdict.NotRun(c, "one of the two is not among Genotypes")
	}
	c.Paper = runs.Number(a.average.mean - b.average.mean)
	if len(ours) != r.Params.Seeds || len(theirs) != r.Params.Seeds {
		return verdict.NotRun(c, fmt.Sprintf("%d and %d of %d seeds", len(ours), len(theirs), r.Params.Seeds))
	}
	if r.Params.reduced("cifar-10") {
		c.Note = "at a reduced scale, of which only the sign is judged"
	}
	s, err := runs.MeanDiff(ours, theirs, verdict.Family(r.Params.Confidence, len(table1Rivals)))
	return verdict.Below(c, s, err, 0)
}
