package li2021

import (
	"context"

	"github.com/nasml/lab/nasml/catalog"
)

// Figure5Params are the parameters of Figure 5 (XNAS), those of Figure 4.
type Figure5Params = Figure4Params

// Figure5Quick are XNAS' searches on little data: three of 100 epochs on 2,000
// images, about ten minutes on two cores; they are shipped. They end at 4.7 skip
// connections of 6 on average.
var Figure5Quick = func() Figure5Params {
	p := Figure4Quick
	p.Rows = []string{"xnas"}
	return p
}()

// Figure5Paper is XNAS with what Appendix C.4 says. It was not run.
var Figure5Paper = Figure5Params{paperSearch, []string{"xnas"}, lookUpAll, "test"}

const (
	figure5ID     = "li2021/figure5"
	figure5Title  = "NAS-Bench-201 learning curves of XNAS"
	figure5Source = "Li+ 2021, Figure 5 and Appendix C.4"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure5ID, Paper: paper, Title: figure5Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure5_xnas.ipynb", Cost: searchCost,
	}, Figure5Quick, Figure5Paper, Figure5)
}

var figure5Entry = learningEntry{
	figure5ID, figure5Title, figure5Source, "the paper's searches",
	" The axis of their CIFAR-10 page was fitted to the accuracy at which it ends, 54.30, and is not verified otherwise.",
	"LI253", "xnas",
	func() map[string][][]float64 { return publishedCurves().XNAS },
}

// Figure5 is Figure4 for XNAS.
func Figure5(ctx context.Context, p Figure5Params) (*Figure4Result, error) {
	return learningCurves(ctx, figure5Entry, p)
}
