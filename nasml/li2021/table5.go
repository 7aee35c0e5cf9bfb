package li2021

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Table5Params are the parameters of Table 5, ImageNet in the mobile setting, whose
// errors are those of Table 1.
type Table5Params struct {
	// Names of supernet.Published, or genotypes as the authors' programs print them.
	Genotypes []string `validate:"min=1,unique"`

	// The network whose parameters and multiply-adds are counted; what is trained
	// is in TrainParams.
	CountedChannels int `validate:"gte=2"`
	CountedCells    int `validate:"gte=1"`
	CountedClasses  int `validate:"gte=1"`
	CountedImage    int `validate:"gte=32"`

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

// Table5 counts, and where there is a folder runs what the run store lacks of the
// trainings.
var Table5 = lab.Declare(lab.Entry[Table5Params, mobileCell]{
	Of: ofPaper, Name: "table5", Kind: lab.Table, Source: "Table 5", Notebook: "table5_imagenet",
	Title: "DARTS space, ImageNet: parameters, multiply-adds and test errors of cells that were found",
	Cost: catalog.Cost{
		Quick: "a second; errors need ILSVRC-2012's photographs (Folder)",
		Paper: "a second; with Folder six trainings, each 12 days on a GTX 1080 Ti (Liu+ 2019, Appendix A)",
	},
	Quick: Table5Quick, Paper: Table5Paper,
	Also:     []catalog.Preset[Table5Params]{{Scale: catalog.Large, Params: Table5Large}},
	Settings: table5Settings,
	Note:     func(any) string { return "" },
	Rules:    func(p Table5Params, c *study.Checks) { p.check(c) },
	Compute:  trainTable5,
	Draw:     drawTable5,
	Claims:   judgeTable5,
})

type table5 = lab.Result[Table5Params, mobileCell]

const table5Source = "Li+ 2021, Table 5"

// mobileCell is a row of the table with its network.
type mobileCell struct {
	cellRow
	planned
}

// table5Evaluation is what the trainings have in common.
const table5Evaluation = "evaluation"

// trainTable5 makes a group of each row.
func trainTable5(ctx context.Context, r *table5) error {
	p := r.Params
	genotypes, err := parseGenotypes(p.Genotypes)
	if err != nil {
		return err
	}
	rows, of := lines(publishedImageNet, genotypes)
	for i, row := range rows {
		c, err := plan(genotypes[of[i]], supernet.Skeleton{
			Stem: "imagenet", Channels: p.CountedChannels, Cells: p.CountedCells, Image: p.CountedImage,
			Classes: p.CountedClasses,
		})
		if err != nil {
			return err
		}
		r.Groups = append(r.Groups, lab.Group[mobileCell]{Part: "training", Seeds: p.Seeds, Trial: mobileCell{row, c}})
	}
	settings, err := p.settings("imagenet")
	if err != nil {
		return err
	}
	e := evaluation{p.TrainParams, "li2021/table5", settings, genotypes, nil, 0}
	if e.examples, err = p.photographs(p.Folder); err != nil {
		return err
	}
	records, err := e.run(ctx)
	if err != nil {
		return err
	}
	for i := range r.Groups {
		r.Groups[i].Records = records[of[i]]
	}
	r.Facts[table5Evaluation] = e
	return nil
}

// drawTable5 is the table, with the paper's numbers in grey beside ours.
func drawTable5(r *table5, f *lab.Picture) {
	const params, one, five = "parameters (M)", "top-1 error (%)", "top-5 error (%)"
	t := &plots.Table{Blocks: make([]plots.Block, 1), Columns: []plots.Column{
		{Header: "cell (searched on)"}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "multiply-\nadds (M)"},
		{Header: "ours", Group: one}, {Header: "paper", Group: one},
		{Header: "ours", Group: five}, {Header: "paper", Group: five},
	}}
	for _, g := range r.Groups {
		top1, _ := errorEntries(g.Records, "test_error")
		top5, _ := errorEntries(g.Records, "test_top5")
		row := g.Trial
		t.Blocks[0].Rows = append(t.Blocks[0].Rows, []plots.Entry{
			{Text: row.method}, {Text: fmt.Sprintf("%.2f", millions(row.network.Parameters()))},
			printed("%.1f", row.params), {Text: fmt.Sprintf("%.0f", float64(row.network.MultiplyAdds())/1e6)},
			top1, printed("%.1f", row.top1), top5, printed("%.1f", row.top5),
		})
	}
	f.Style = plots.ICLR.Text()
	f.Row(plots.Panel{Table: t})
	p, e := r.Params, r.Facts[table5Evaluation].(evaluation)
	f.Say("Parameters and multiply-adds of the network with $C$ = %d, $L$ = %d and %d classes on %d×%d "+
		"pixels, without the auxiliary head.", p.CountedChannels, p.CountedCells, p.CountedClasses, p.CountedImage,
		p.CountedImage)
	if e.examples == nil {
		f.Say("Errors need the photographs of ILSVRC-2012, which are not there.")
		return
	}
	f.Say("%s", e.caption(fmt.Sprintf("%d photographs of %d classes", e.examples.train, e.examples.classes)))
}

// judgeTable5 judges the numbers of parameters that Table 5 prints, that multiply-adds
// are fewer than 600 M, and the errors at the paper's scale.
func judgeTable5(r *table5) []runs.Claim {
	var claims []runs.Claim
	for _, row := range r.Groups.Trials() {
		if row.params > 0 {
			claims = append(claims,
				checkParams(row.cellRow, row.network.Parameters(), table5Source, r.Params.standard()))
		}
	}
	for _, row := range r.Groups.Trials() {
		claims = append(claims, judgeMobile(r, row))
	}
	for _, g := range r.Groups {
		row := g.Trial
		if !row.extra {
			claims = append(claims,
				judgeImageNet(r, g, row.ids.top1, "top-1", row.top1, "test_error"),
				judgeImageNet(r, g, row.ids.top5, "top-5", row.top5, "test_top5"))
		}
		if row.genotype == "GAEA_PC_DARTS_cifar" { // of which the text says another number than the tables
			claims = append(claims, judgeImageNet(r, g, "LI047", "top-1, by Section 4.2,", 24.2, "test_error"))
		}
	}
	return claims
}

// standard says what keeps the counts from being the paper's.
func (p Table5Params) standard() string {
	quick := Table5Quick
	if p.CountedChannels == quick.CountedChannels && p.CountedCells == quick.CountedCells &&
		p.CountedClasses == quick.CountedClasses && p.CountedImage == quick.CountedImage {
		return ""
	}
	return "counted in another network than the paper's of 48 channels, 14 cells and 1000 classes on 224×224 pixels"
}

// judgeMobile judges that a network is in the mobile setting.
func judgeMobile(r *table5, row mobileCell) runs.Claim {
	const most = 600 // M
	c := r.Claim("own: %s: multiply-adds in the mobile setting, M", row.method).
		From("Section 4.2 (under 600 M: Liu+ 2019, Section 3.3)")
	if why := r.Params.standard(); why != "" {
		return c.NotRun("%s", why)
	}
	note := "multiplications of an example in convolutions and the classifier, without the auxiliary head"
	if row.genotype == "GAEA_PC_DARTS_image" {
		note += "; the first author gave this cell away with a later port; its 5.6 M parameters are the paper's"
	}
	c = c.Says(most).Noting("%s", note)
	count := row.network.MultiplyAdds()
	c.Ours, c.Tolerance, c.Holds = runs.Number(float64(count)/1e6), 0, runs.Judge(count < most*1e6)
	return c.Claim
}

// judgeImageNet judges a test error at the paper's scale, one of every row's top-1 and
// top-5.
func judgeImageNet(r *table5, g lab.Group[mobileCell], ids, what string, paper float64, value string) runs.Claim {
	const tolerance = 0.05
	c := r.Claim("%s", listed(ids, fmt.Sprintf("%s: ImageNet %s test error, %%", g.Trial.method, what))).Says(paper).
		Family(2 * len(r.Groups))
	c.Tolerance = tolerance
	ours := errorsOf(g.Records, value)
	switch {
	case r.Facts[table5Evaluation].(evaluation).examples == nil:
		return c.NotRun("the photographs of ILSVRC-2012 are not there: set Folder")
	case r.Params.reduced("imagenet"):
		return c.NotRun("errors at a reduced scale are not the paper's; --scale paper has its 250 epochs")
	case len(ours) < r.Params.Seeds:
		return c.NotRun("%d of %d trainings", len(ours), r.Params.Seeds)
	case len(ours) == 1: // as in the paper, which has one, too
		return verdict.Exactly(c.Claim, ours[0], paper, tolerance)
	}
	return c.Of(runs.Summarize(ours, c.Confidence)).Near(paper, tolerance)
}
