package li2021

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure3Params are the parameters of Figure 3, cells that are drawn.
type Figure3Params struct {
	// Names of supernet.Published, or genotypes as the authors' programs print them.
	Genotypes []string `validate:"min=1,unique"`
	Labels    bool     // operations stand at their edges, too, and not in the legend only

	// Searches of ours, rows of Figure 1 such as "gaea-pc-darts@darts", run as
	// Search says: their cells are drawn, too, where the run store has them.
	Searches []string
	Search   SearchParams `validate:"-"` // looked at where there are Searches

	// The network whose size stands below: its stem, and C, L, classes. A field at 0
	// (or empty) is the paper's: of CIFAR-10, or of ImageNet where the genotype was
	// searched there.
	Stem     string `validate:"omitempty,oneof=cifar imagenet"`
	Channels int    `validate:"gte=0"`
	Cells    int    `validate:"gte=0"`
	Classes  int    `validate:"gte=0"`
}

// Figure3Quick are the paper's two pairs of cells, and one pair that each method's
// first search of Figure 1, left, has found at its quick scale.
var Figure3Quick = Figure3Params{
	Genotypes: []string{"GAEA_PC_DARTS_cifar", "GAEA_PC_DARTS_image"}, Labels: true,
	Searches: []string{"gaea-pc-darts@darts", "pc-darts@darts"}, Search: firstSearch,
}

// firstSearch is one quick search a row.
var firstSearch = func() SearchParams {
	p := quickSearch
	p.Seeds = 1
	return p
}()

// Figure3Paper has the paper's alone.
var Figure3Paper = func() Figure3Params {
	p := Figure3Quick
	p.Searches = nil
	return p
}()

// Figure3 reads the genotypes and plans their networks. It is a
// *catalog.UsageError where one is no genotype, or the network has no such size.
var Figure3 = lab.Declare(lab.Entry[Figure3Params, planned]{
	Of: ofPaper, Name: "figure3", Kind: lab.Figure, Source: "Figure 3", Notebook: "figure3_cells",
	Title: "The normal and reduction cells that GAEA PC-DARTS found",
	Cost:  catalog.Cost{Quick: "a second", Paper: "a second"},
	Quick: Figure3Quick, Paper: Figure3Paper,
	Note:    func(any) string { return "" },
	Compute: planFigure3,
	Draw:    drawFigure3,
	Claims:  judgeFigure3,
})

type figure3 = lab.Result[Figure3Params, planned]

// planned is a genotype with its network.
type planned struct {
	named
	skeleton supernet.Skeleton
	network  *supernet.CellNet
}

// plan is a *catalog.UsageError where the network has no such size.
func plan(g named, s supernet.Skeleton) (planned, error) {
	net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: s, Genotype: g.genotype})
	if err != nil {
		return planned{}, catalog.Usagef("%s, %v", g.name, err)
	}
	return planned{g, s, net}, nil
}

// title is how a genotype is called.
func (c planned) title() string {
	if p, ok := supernet.Published[c.name]; ok {
		return p.Method + ", " + p.Searched
	}
	return c.name
}

func planFigure3(ctx context.Context, r *figure3) error {
	genotypes, err := parseGenotypes(r.Params.Genotypes)
	if err != nil {
		return err
	}
	r.Params.Search.StoredOnly = true // drawing a cell is no reason to search for it
	ours, records, err := foundBy(ctx, r.Params.Search, "li2021/figure3", r.Params.Searches)
	if err != nil {
		return err
	}
	for i, g := range append(genotypes, ours...) {
		c, err := plan(g, r.Params.skeleton(g.name))
		if err != nil {
			return err
		}
		group := lab.Group[planned]{Part: "published", Trial: c}
		if at := i - len(genotypes); at >= 0 {
			group.Part, group.Records = "ours", records[at:at+1]
		}
		r.Groups = append(r.Groups, group)
	}
	return nil
}

// skeleton is the network of a genotype in these parameters.
func (p Figure3Params) skeleton(name string) supernet.Skeleton {
	s := supernet.DerivedCIFAR
	if p.Stem == "imagenet" || p.Stem == "" && supernet.Published[name].Searched == "ImageNet" {
		s = supernet.DerivedImageNet
	}
	s.Channels, s.Cells = cmp.Or(p.Channels, s.Channels), cmp.Or(p.Cells, s.Cells)
	s.Classes = cmp.Or(p.Classes, s.Classes)
	return s
}

// drawFigure3 draws the cells, a row a cell: of each genotype the normal cell and the
// reduction cell.
func drawFigure3(r *figure3, f *lab.Picture) {
	f.Style = plots.ICLR.Text()
	f.Say("$c_{k-2}$ and $c_{k-1}$ are the outputs of the two cells before; a node is the sum of its two " +
		"operations, $c_k$ the concatenation of the nodes (grey).")
	var legend plots.Legend
	if r.Params.Labels {
		legend.Position = plots.LegendNone
		f.Say("sep: separable, dil: dilated convolution, max, mean: pools.")
	}
	ops := operationsOf(r.Groups.Trials())
	for _, c := range r.Groups.Trials() {
		for _, t := range supernet.CellTypes {
			f.Row(plots.Panel{
				Title: fmt.Sprintf("%s: %s cell", c.title(), cellTitles[t]),
				Cell:  drawnCell(c.genotype.Cell(t), ops, r.Params.Labels), Legend: legend,
			})
		}
		s := c.skeleton
		f.Say("%s: %.2f M parameters with $C$ = %d, $L$ = %d and %d classes.", c.title(),
			millions(c.network.Parameters()), s.Channels, s.Cells, s.Classes)
	}
}

var cellTitles = map[supernet.CellType]string{supernet.Normal: "normal", supernet.Reduce: "reduction"}

// judgeFigure3 judges that the cells are what Appendix C.1 says a cell is, and that
// their networks have the parameters that Tables 4 and 5 print.
func judgeFigure3(r *figure3) []runs.Claim {
	var all []named
	for _, c := range r.Groups.Trials() {
		all = append(all, c.named)
	}
	claims := checkSpace(all)
	for _, c := range r.Groups.Trials() {
		claims = append(claims, judgeNodes(r, c))
	}
	standard := ""
	if p := r.Params; p.Stem != "" || p.Channels+p.Cells+p.Classes > 0 {
		standard = "the network below has another size than the paper's"
	}
	for _, c := range r.Groups.Trials() {
		for _, row := range append(slices.Clone(publishedCIFAR), publishedImageNet...) {
			imageNet := row.top1 > 0
			if row.genotype == c.name && imageNet == (c.skeleton.Stem == "imagenet") {
				source := map[bool]string{false: table4Source, true: table5Source}[imageNet]
				claims = append(claims, checkParams(row, c.network.Parameters(), source, standard))
			}
		}
	}
	return claims
}

// judgeNodes judges that every one of four nodes has two edges, and that all of
// them are concatenated.
func judgeNodes(r *figure3, c planned) runs.Claim {
	nodes := 0
	for _, t := range supernet.CellTypes {
		cell := c.genotype.Cell(t)
		for node := range len(cell.Genes) / 2 {
			if cell.Genes[2*node].From != cell.Genes[2*node+1].From && slices.Contains(cell.Concat, 2+node) {
				nodes++
			}
		}
	}
	return verdict.Exactly(r.Claim("own: %s: nodes of both cells with two edges, concatenated", c.title()).
		From("Appendix C.1").Claim, float64(nodes), float64(len(supernet.CellTypes)*supernet.DARTS.Nodes), 0)
}
