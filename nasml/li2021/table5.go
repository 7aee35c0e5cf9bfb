package li2021

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Table5Params are the parameters of Table 5, ImageNet in the mobile setting, whose
// errors are those of Table 1.
type Table5Params struct {
	Genotypes []string // names of supernet.Published, or genotypes as the authors' programs print them

	// The network whose parameters and multiply-adds are counted; what is trained
	// is in TrainParams.
	CountedChannels, CountedCells, CountedClasses, CountedImage int

	// Folder has ILSVRC-2012's photographs in train and val, each with a folder a
	// class; empty: nothing is trained. Examples and TestExamples are of each class.
	Folder string
	TrainParams
}

// Table5Quick counts, and trains nothing. With a Folder it trains small networks
// on small pictures of a few photographs.
var Table5Quick = Table5Params{
	Genotypes: []string{
		"DARTS_V2", "PDARTS", "PC_DARTS_cifar", "PC_DARTS_image", "GAEA_PC_DARTS_cifar", "GAEA_PC_DARTS_image",
	},
	CountedChannels: 48, CountedCells: 14, CountedClasses: 1000, CountedImage: 224,
	TrainParams: TrainParams{Preset: "quick", Examples: 10, TestExamples: 10, Seeds: 1, Confidence: 0.95},
}

// Table5Paper trains as Xu+ 2020 do where Folder is given. It was not run.
var Table5Paper = func() Table5Params {
	p := Table5Quick
	p.TrainParams = TrainParams{Preset: "paper", Seeds: 1, Confidence: 0.95}
	return p
}()

// Table5Large is as much of Folder as two cores train in a night: networks of 16
// channels and 8 cells on 64×64 pixels of 50 photographs of each class. It was not run.
var Table5Large = func() Table5Params {
	p := Table5Quick
	p.Channels, p.Cells, p.Epochs, p.Batch, p.LearningRate, p.Examples = 16, 8, 30, 128, 0.1, 50
	return p
}()

const (
	table5ID     = "li2021/table5"
	table5Title  = "DARTS space, ImageNet: parameters, multiply-adds and test errors of cells that were found"
	table5Source = "Li+ 2021, Table 5"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: table5ID, Paper: paper, Title: table5Title, Kind: "table",
		Notebook: "notebooks/li2021/table5_imagenet.ipynb",
		Cost: catalog.Cost{
			Quick: "a second; errors need ILSVRC-2012's photographs (Folder)",
			Paper: "a second; with Folder six trainings, each 12 days on a GTX 1080 Ti (Liu+ 2019, Appendix A)",
		},
		Settings: table5Settings,
	}, Table5Quick, Table5Paper, Table5, catalog.Preset[Table5Params]{Scale: catalog.Large, Params: Table5Large})
}

// Table5Result is Table 5.
type Table5Result struct {
	Params       Table5Params
	Scale        string // "quick", "paper" or empty for own parameters
	rows         []cellRow
	of           []int   // genotype of each row
	counts       []int   // parameters of each genotype
	multiplyAdds []int64 // likewise
	evaluation   evaluation
	records      [][]*runs.Record // by genotype
}

// Table5 counts, and where there is a folder runs what the run store lacks of the
// trainings. See [Table1] for cancelling and errors.
func Table5(ctx context.Context, p Table5Params) (*Table5Result, error) {
	r := &Table5Result{Params: p, Scale: runs.Scale(ctx)}
	genotypes, err := p.check()
	if err != nil {
		return nil, err
	}
	r.rows, r.of = lines(publishedImageNet, genotypes)
	counted := supernet.Skeleton{
		Stem: "imagenet", Channels: p.CountedChannels, Cells: p.CountedCells, Image: p.CountedImage,
		Classes: p.CountedClasses,
	}
	for _, g := range genotypes {
		net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: counted, Genotype: g.genotype})
		if err != nil {
			return nil, catalog.Usagef("%s, %v", g.name, err)
		}
		r.counts = append(r.counts, net.Parameters())
		r.multiplyAdds = append(r.multiplyAdds, net.MultiplyAdds())
	}
	settings, err := p.settings("imagenet")
	if err != nil {
		return nil, err
	}
	r.evaluation = evaluation{p.TrainParams, table5ID, settings, genotypes, nil, 0}
	if r.evaluation.examples, err = p.photographs(p.Folder); err != nil {
		return nil, err
	}
	r.records, err = r.evaluation.run(ctx)
	return r, err
}

// check looks at the parameters and reads the genotypes.
func (p Table5Params) check() ([]named, error) {
	var c study.Checks
	study.Distinct(&c, "Genotypes", p.Genotypes, 1)
	c.AtLeast("CountedChannels", p.CountedChannels, 2)
	c.AtLeast("CountedCells", p.CountedCells, 1)
	c.AtLeast("CountedClasses", p.CountedClasses, 1)
	c.AtLeast("CountedImage", p.CountedImage, 32)
	p.TrainParams.check(&c)
	if err := c.Err("Table 5"); err != nil {
		return nil, err
	}
	return parseGenotypes(p.Genotypes)
}

// Records are the keys of the trainings.
func (r *Table5Result) Records() []string { return keysOf(r.records) }

// Differences lists where the settings as in the paper and as in the authors'
// code differ.
func (r *Table5Result) Differences() []string {
	return training.Differences(training.AsPaper["imagenet"], training.AsCode["imagenet"])
}

// Figure is the table, with the paper's numbers in grey beside ours.
func (r *Table5Result) Figure() plots.Figure {
	const params, one, five = "parameters (M)", "top-1 error (%)", "top-5 error (%)"
	t := &plots.Table{Columns: []plots.Column{
		{Header: "cell (searched on)"}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "multiply-\nadds (M)"},
		{Header: "ours", Group: one}, {Header: "paper", Group: one},
		{Header: "ours", Group: five}, {Header: "paper", Group: five},
	}}
	var block plots.Block
	for i, row := range r.rows {
		g := r.of[i]
		top1, _ := errorEntries(r.records[g], "test_error")
		top5, _ := errorEntries(r.records[g], "test_top5")
		block.Rows = append(block.Rows, []plots.Entry{
			{Text: row.method}, {Text: fmt.Sprintf("%.2f", millions(r.counts[g]))}, printed("%.1f", row.params),
			{Text: fmt.Sprintf("%.0f", float64(r.multiplyAdds[g])/1e6)},
			top1, printed("%.1f", row.top1), top5, printed("%.1f", row.top5),
		})
	}
	t.Blocks = []plots.Block{block}
	return plots.Figure{
		Name: "li2021-table5", Style: plots.ICLR.Text(), Panels: [][]plots.Panel{{{Table: t}}},
		Caption: r.caption(), Meta: study.Meta(table5Title, r.Scale, r.Params),
	}
}

func (r *Table5Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("Parameters and multiply-adds of the network with $C$ = %d, $L$ = %d and %d classes on %d×%d "+
		"pixels, without the auxiliary head.", p.CountedChannels, p.CountedCells, p.CountedClasses, p.CountedImage,
		p.CountedImage)
	if r.evaluation.examples == nil {
		return text + " Errors need the photographs of ILSVRC-2012, which are not there."
	}
	of := r.evaluation.examples
	return text + " " + r.evaluation.caption(fmt.Sprintf("%d photographs of %d classes", of.train, of.classes))
}

// mobileMultiplyAdds bounds the mobile setting (Liu+ 2019, Section 3.3).
const mobileMultiplyAdds = 600

// Check judges the numbers of parameters that Table 5 prints, that multiply-adds
// are fewer than 600 M, and the errors at the paper's scale.
func (r *Table5Result) Check() []runs.Claim {
	var claims []runs.Claim
	for i, row := range r.rows {
		if row.params > 0 {
			claims = append(claims, checkParams(row, r.counts[r.of[i]], table5Source, r.standard()))
		}
	}
	for i, row := range r.rows {
		claims = append(claims, r.checkMobile(row, r.multiplyAdds[r.of[i]]))
	}
	for i, row := range r.rows {
		if !row.extra {
			claims = append(claims,
				r.checkError(row.ids.top1, row, r.of[i], "top-1", row.top1, "test_error"),
				r.checkError(row.ids.top5, row, r.of[i], "top-5", row.top5, "test_top5"))
		}
		if row.genotype == "GAEA_PC_DARTS_cifar" { // of which the text says another number than the tables
			claims = append(claims, r.checkError("LI047", row, r.of[i], "top-1, by Section 4.2,", 24.2, "test_error"))
		}
	}
	return claims
}

// standard says what keeps the counts from being the paper's.
func (r *Table5Result) standard() string {
	p, quick := r.Params, Table5Quick
	if p.CountedChannels == quick.CountedChannels && p.CountedCells == quick.CountedCells &&
		p.CountedClasses == quick.CountedClasses && p.CountedImage == quick.CountedImage {
		return ""
	}
	return "counted in another network than the paper's of 48 channels, 14 cells and 1000 classes on 224×224 pixels"
}

// checkMobile judges that a network is in the mobile setting.
func (r *Table5Result) checkMobile(row cellRow, count int64) runs.Claim {
	c := verdict.Claim("own: "+row.method+": multiply-adds in the mobile setting, M",
		"Li+ 2021, Section 4.2 (under 600 M: Liu+ 2019, Section 3.3)")
	if why := r.standard(); why != "" {
		return verdict.NotRun(c, why)
	}
	c.Paper, c.Ours, c.Tolerance = mobileMultiplyAdds, runs.Number(float64(count)/1e6), 0
	c.Holds = runs.Judge(count < mobileMultiplyAdds*1e6)
	c.Note = "multiplications of an example in convolutions and the classifier, without the auxiliary head"
	if row.genotype == "GAEA_PC_DARTS_image" {
		c.Note += "; the first author gave this cell away with a later port; its 5.6 M parameters are the paper's"
	}
	return c
}

// checkError judges a test error at the paper's scale.
func (r *Table5Result) checkError(ids string, row cellRow, genotype int, what string, paper float64,
	value string) runs.Claim {
	c := verdict.Claim(listed(ids, fmt.Sprintf("%s: ImageNet %s test error, %%", row.method, what)), table5Source)
	c.Paper, c.Tolerance = runs.Number(paper), 0.05
	ours := errorsOf(r.records[genotype], value)
	switch {
	case r.evaluation.examples == nil:
		return verdict.NotRun(c, "the photographs of ILSVRC-2012 are not there: set Folder")
	case r.Params.reduced("imagenet"):
		return verdict.NotRun(c, "errors at a reduced scale are not the paper's; --scale paper has its 250 epochs")
	case len(ours) < r.Params.Seeds:
		return verdict.NotRun(c, fmt.Sprintf("%d of %d trainings", len(ours), r.Params.Seeds))
	}
	// of every row, top-1 and top-5
	s, err := runs.Summarize(ours, verdict.Family(r.Params.Confidence, 2*len(r.rows)))
	if len(ours) == 1 { // as in the paper, which has one, too
		return verdict.Exactly(c, ours[0], paper, 0.05)
	}
	return verdict.Near(c, s, err, paper, 0.05)
}
