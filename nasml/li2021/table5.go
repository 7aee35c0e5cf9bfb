package li2021

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/plots"
)

// Table5Params are the parameters of Table 5, ImageNet in the mobile setting; its errors are those of Table 1.
type Table5Params struct {
	// Names of supernet.Published, or genotypes as the authors' programs print them.
	Genotypes []string `validate:"min=1,unique"`

	// The network whose parameters and multiply-adds are counted; TrainParams has the one that is trained.
	CountedChannels              int `validate:"gte=2"`
	CountedCells, CountedClasses int `validate:"gte=1"`
	CountedImage                 int `validate:"gte=32"`

	// Folder has ILSVRC-2012's photographs in train and val, one folder per class; empty: nothing is trained. Examples
	// and TestExamples are per class.
	Folder string
	TrainParams
}

// Table5Quick counts and trains nothing; with a Folder it trains small networks on a few small photographs.
var Table5Quick = Table5Params{
	Genotypes: []string{
		"DARTS_V2", "PDARTS", "PC_DARTS_cifar", "PC_DARTS_image", "GAEA_PC_DARTS_cifar", "GAEA_PC_DARTS_image",
	},
	CountedChannels: 48, CountedCells: 14, CountedClasses: 1000, CountedImage: 224,
	TrainParams: TrainParams{Preset: "quick", Examples: 10, TestExamples: 10, Seeds: 1, Confidence: 0.95},
}

// Table5Paper trains as Xu+ 2020 do where Folder is given. It was not run.
var Table5Paper = lab.With(Table5Quick, func(p *Table5Params) {
	p.TrainParams = TrainParams{Preset: "paper", Seeds: 1, Confidence: 0.95}
})

// Table5Large takes two cores a night with a Folder: networks of 16 channels and 8 cells on 64×64 pixels of 50
// photographs of each class. It was not run.
var Table5Large = lab.With(Table5Quick, func(p *Table5Params) {
	p.Channels, p.Cells, p.Epochs, p.Batch, p.LearningRate, p.Examples = 16, 8, 30, 128, 0.1, 50
})

// Table5 counts, and if there is a folder trains.
var Table5 = lab.Declare(lab.Entry[Table5Params, cell]{
	Of: ofPaper, Name: "table5", Kind: lab.Table, Source: "Table 5", Notebook: "table5_imagenet",
	Title: "DARTS space, ImageNet: parameters, multiply-adds and test errors of cells that were found",
	Cost: catalog.Cost{
		Quick: "a second; errors need ILSVRC-2012's photographs (Folder)",
		Paper: "a second; with Folder six trainings, each 12 days on a GTX 1080 Ti (Liu+ 2019, Appendix A)",
	},
	Quick: Table5Quick, Paper: Table5Paper, Settings: table5Settings, Note: noteOfSearches,
	Also:  []catalog.Preset[Table5Params]{{Scale: catalog.Large, Params: Table5Large}},
	Rules: expectCells[Table5Params],
	Trials: func(p Table5Params) (gs lab.Groups[cell]) {
		cells, _ := p.cells() // whose error is one of the rules'
		gs.Add("training", p.Seeds, cells...)
		return gs
	},
	Bench: func(_ context.Context, p Table5Params, _ string) (lab.Bench[cell], error) {
		x, err := p.photographs(p.Folder)
		return p.bench("li2021/table5", x), err
	},
	Draw: drawTable5, Claims: judgeTable5,
})

type table5 = lab.Result[Table5Params, cell]

func (p Table5Params) cells() ([]cell, error) {
	return p.counted("imagenet", p.Genotypes, supernet.Skeleton{
		Stem: "imagenet", Channels: p.CountedChannels, Cells: p.CountedCells, Image: p.CountedImage,
		Classes: p.CountedClasses,
	})
}

// Table5Differences lists the settings in which paper and authors' code differ.
func Table5Differences() []string {
	return training.Differences(training.AsPaper["imagenet"], training.AsCode["imagenet"])
}

func drawTable5(r *table5, f *lab.Picture) {
	const params, one, five = "parameters (M)", "top-1 error (%)", "top-5 error (%)"
	t := &plots.Table{Columns: []plots.Column{
		{Header: "cell (searched on)"}, {Header: "ours", Group: params}, {Header: "paper", Group: params},
		{Header: "multiply-\nadds (M)"}, {Header: "ours", Group: one}, {Header: "paper", Group: one},
		{Header: "ours", Group: five}, {Header: "paper", Group: five},
	}}
	var block plots.Block
	for _, l := range linesOf(publishedTables().ImageNet, r.Groups) {
		count, top1, _ := l.entries()
		top5, _ := errorEntries(l.cell.Records, "test_top5")
		block.Rows = append(block.Rows, []plots.Entry{
			{Text: l.Method}, count, printed("%.1f", l.Params),
			{Text: fmt.Sprintf("%.0f", float64(l.cell.Trial.multiplyAdds)/1e6)},
			top1, printed("%.1f", l.Top1), top5, printed("%.1f", l.Top5),
		})
	}
	t.Blocks = []plots.Block{block}
	f.Style = plots.ICLR.Text()
	f.Row(plots.Panel{Table: t})
	p, x := r.Params, examplesOf(r)
	f.Say("Parameters and multiply-adds of the network with $C$ = %d, $L$ = %d and %d classes on %d×%d pixels, "+
		"without the auxiliary head.", p.CountedChannels, p.CountedCells, p.CountedClasses, p.CountedImage,
		p.CountedImage)
	if x == nil {
		f.Say("Errors are not run: they need ImageNet (ILSVRC-2012).")
		return
	}
	p.say(f, x, fmt.Sprintf("%d photographs of %d classes", x.train, x.classes))
}

func judgeTable5(r *table5) []runs.Claim {
	p, quick, why := r.Params, Table5Quick, ""
	if p.CountedChannels != quick.CountedChannels || p.CountedCells != quick.CountedCells ||
		p.CountedClasses != quick.CountedClasses || p.CountedImage != quick.CountedImage {
		why = "counted in another network than the paper's of 48 channels, 14 cells and 1000 classes on 224×224 pixels"
	}
	var counts, adds, errors []runs.Claim
	for _, l := range linesOf(publishedTables().ImageNet, r.Groups) {
		counts = append(counts, l.judgeParameters(claimsFrom(r, "Table 5"), l.parameters(), why)...)
		adds = append(adds, judgeMobile(r, l, why))
		if !l.extra {
			errors = append(errors, judgeTop(r, l.IDs.Top1, l, "top-1", l.Top1, "test_error"),
				judgeTop(r, l.IDs.Top5, l, "top-5", l.Top5, "test_top5"))
		}
		if l.Genotype == "GAEA_PC_DARTS_cifar" { // of which the text says another number than the tables
			errors = append(errors, judgeTop(r, "LI047", l, "top-1, by Section 4.2,", 24.2, "test_error"))
		}
	}
	return slices.Concat(counts, adds, errors)
}

// mobileMultiplyAdds bounds the mobile setting (Liu+ 2019, Section 3.3).
const mobileMultiplyAdds = 600

func judgeMobile(r *table5, l cellLine, why string) runs.Claim {
	c := r.Claim("own: %s: multiply-adds in the mobile setting, M", l.Method).
		From("Section 4.2 (under 600 M: Liu+ 2019, Section 3.3)")
	if why != "" {
		return c.NotRun("%s", why)
	}
	c = c.Says(mobileMultiplyAdds).
		Noting("multiplications of an example in convolutions and the classifier, without the auxiliary head")
	count := l.cell.Trial.multiplyAdds
	c.Ours, c.Tolerance = runs.Number(float64(count)/1e6), 0
	c.Holds = runs.Judge(count < mobileMultiplyAdds*1e6)
	if l.Genotype == "GAEA_PC_DARTS_image" {
		c.Note += "; the first author gave this cell away with a later port; its 5.6 M parameters are the paper's"
	}
	return c.Claim
}

func judgeTop(r *table5, ids string, l cellLine, what string, paper float64, value string) runs.Claim {
	c := r.Claim("%s", listed(ids, fmt.Sprintf("%s: ImageNet %s test error, %%", l.Method, what))).Says(paper).
		Family(2 * len(linesOf(publishedTables().ImageNet, r.Groups))) // of every row, top-1 and top-5
	c.Tolerance = 0.05
	ours := l.errors(value)
	switch {
	case examplesOf(r) == nil:
		return c.NotRun("the photographs of ILSVRC-2012 are not there: set Folder")
	case r.Params.reduced("imagenet"):
		return c.NotRun("errors at a reduced scale are not the paper's; --scale paper has its 250 epochs")
	case len(ours) < r.Params.Seeds:
		return c.NotRun("%d of %d trainings", len(ours), r.Params.Seeds)
	case len(ours) == 1: // as in the paper, which has one, too
		return verdict.Exactly(c.Claim, ours[0], paper, 0.05)
	}
	return c.Mean(ours).Near(paper, 0.05)
}
