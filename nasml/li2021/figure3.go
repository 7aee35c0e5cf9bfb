package li2021

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// Figure3Params are the parameters of Figure 3, cells that are drawn.
type Figure3Params struct {
	// Names of supernet.Published, or genotypes as the authors' programs print them.
	Genotypes []string `validate:"min=1,unique"`
	Labels    bool     // operations stand at their edges, too, and not in the legend only

	// Searches are rows of Figure 1 such as "gaea-pc-darts@darts", run as Search says: their cells are drawn, too, if
	// they are in the store.
	Searches []string
	Search   SearchParams `validate:"-"`

	// The network whose size the caption gives: its stem, "cifar" or "imagenet", and C, L, classes. A field at 0 (or
	// empty) is the paper's, of ImageNet if the genotype was searched there, else of CIFAR-10.
	Stem     string `validate:"omitempty,oneof=cifar imagenet"`
	Channels int    `validate:"gte=0"`
	Cells    int    `validate:"gte=0,lte=1000"`
	Classes  int    `validate:"gte=0"`
}

// Figure3Quick has the paper's two pairs of cells, and the pairs that our searches of Figure 1 (left) found at the
// paper's setting.
var Figure3Quick = Figure3Params{
	Genotypes: []string{"GAEA_PC_DARTS_cifar", "GAEA_PC_DARTS_image"}, Labels: true,
	Searches: []string{"gaea-pc-darts@darts", "pc-darts@darts"}, Search: publishedDARTS.SearchParams,
}

// Figure3Paper has the paper's alone, which fit a page.
var Figure3Paper = lab.With(Figure3Quick, func(p *Figure3Params) { p.Searches = nil })

// Figure3 draws cells that were published, and of searches of ours those that the run store has.
var Figure3 = lab.Declare(lab.Entry[Figure3Params, drawnNet]{
	Of: ofPaper, Name: "figure3", Kind: lab.Figure, Source: "Figure 3", Notebook: "figure3_cells",
	Title: "The normal and reduction cells that GAEA PC-DARTS found",
	Cost:  catalog.Cost{Quick: "a second", Paper: "a second"},
	Quick: Figure3Quick, Paper: Figure3Paper, Note: noteOfSearches,
	Compute: computeFigure3, Draw: drawFigure3, Claims: judgeFigure3,
})

// figure3 has a group for each pair of cells, with the record of the search that found it, if any.
type figure3 = lab.Result[Figure3Params, drawnNet]

type drawnNet struct {
	named
	skeleton supernet.Skeleton
	net      *supernet.CellNet
}

func computeFigure3(ctx context.Context, r *figure3) error {
	r.Params.Search.StoredOnly = true // drawing a cell is no reason to search for it
	p := r.Params
	genotypes, err := parseGenotypes(p.Genotypes)
	if err != nil {
		return err
	}
	ours, records, err := foundBy(ctx, p.Search, "li2021/figure3", p.Searches)
	if err != nil {
		return err
	}
	for i, g := range append(genotypes, ours...) {
		skeleton := p.skeleton(g.name)
		net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: skeleton, Genotype: g.genotype})
		if err != nil {
			return catalog.Usagef("%s, %v", g.name, err)
		}
		r.Groups.Add("cells", 0, drawnNet{g, skeleton, net})
		if i >= len(genotypes) {
			r.Groups[i].Records = records[i-len(genotypes) : i-len(genotypes)+1]
		}
	}
	return nil
}

func (p Figure3Params) skeleton(name string) supernet.Skeleton {
	s := supernet.DerivedCIFAR
	if p.Stem == "imagenet" || p.Stem == "" && supernet.Published[name].Searched == "ImageNet" {
		s = supernet.DerivedImageNet
	}
	s.Channels, s.Cells = cmp.Or(p.Channels, s.Channels), cmp.Or(p.Cells, s.Cells)
	s.Classes = cmp.Or(p.Classes, s.Classes)
	return s
}

func drawFigure3(r *figure3, f *lab.Picture) {
	f.Style = plots.ICLR.Text()
	f.Say("$c_{k-2}$ and $c_{k-1}$ are the outputs of the two cells before, $c_k$ the concatenation of the nodes " +
		"(grey), each the sum of its two operations.")
	var legend plots.Legend
	var sizes []string
	if r.Params.Labels {
		f.Say("Operations: separable (sep) and dilated (dil) convolutions; max and mean pools.")
		legend.Position = plots.LegendNone
	}
	ops := operations(r.Groups.Trials())
	for _, d := range r.Groups.Trials() {
		for _, t := range supernet.CellTypes {
			f.Row(plots.Panel{
				Title:  fmt.Sprintf("%s: %s cell", d.title(), cellTitles[t]),
				Cell:   drawnCell(d.genotype.Cell(t), ops, r.Params.Labels),
				Legend: legend,
			})
		}
		sizes = append(sizes, fmt.Sprintf("%s: %.2f M ($C$ = %d, $L$ = %d, %d classes)", d.title(),
			millions(d.net.Parameters()), d.skeleton.Channels, d.skeleton.Cells, d.skeleton.Classes))
	}
	f.Say("Parameters: %s.", strings.Join(sizes, "; "))
}

var cellTitles = map[supernet.CellType]string{supernet.Normal: "normal", supernet.Reduce: "reduction"}

func (n named) title() string {
	if p, ok := supernet.Published[n.name]; ok {
		return p.Method + ", " + p.Searched
	}
	return n.name
}

// operations are those of all genotypes, in the order of the space, then others by name, so that an operation has the
// same colour in all cells.
func operations(of []drawnNet) (ops []string) {
	for _, d := range of {
		ops = append(ops, operationsOf(d.genotype)...)
	}
	slices.SortFunc(ops, func(a, b string) int {
		place := func(op string) uint { return uint(slices.Index(supernet.DARTS.Ops, op)) } // others are last
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
	return slices.Compact(ops)
}

func operationsOf(g supernet.Genotype) (ops []string) {
	for _, t := range supernet.CellTypes {
		for _, gene := range g.Cell(t).Genes {
			ops = append(ops, gene.Op)
		}
	}
	return ops
}

var shortNames = map[string]string{
	"max_pool_3x3": "max 3×3", "avg_pool_3x3": "mean 3×3", "skip_connect": "skip", "sep_conv_3x3": "sep 3×3",
	"sep_conv_5x5": "sep 5×5", "sep_conv_7x7": "sep 7×7", "dil_conv_3x3": "dil 3×3", "dil_conv_5x5": "dil 5×5",
}

// drawnCell is a discrete cell as a graph: two inputs, nodes, and the concatenation that is its output. Two operations
// between the same states are drawn side by side.
func drawnCell(c supernet.Cell, ops []string, labels bool) *plots.Cell {
	const inputs = 2
	nodes := len(c.Genes) / 2
	cell := &plots.Cell{Nodes: []string{"$c_{k-2}$", "$c_{k-1}$"}, Ops: study.Map(ops, study.Op), Width: 1.6}
	for i := range nodes {
		cell.Nodes = append(cell.Nodes, fmt.Sprint(i))
	}
	cell.Nodes = append(cell.Nodes, "$c_k$")
	at := map[[2]int]int{}
	for i, gene := range c.Genes {
		ends := [2]int{gene.From, inputs + i/2}
		if _, drawn := at[ends]; !drawn {
			at[ends] = len(cell.Edges)
			cell.Edges = append(cell.Edges, plots.Edge{From: ends[0], To: ends[1], Weights: make([]float64, len(ops))})
		}
		edge := &cell.Edges[at[ends]]
		edge.Weights[slices.Index(ops, gene.Op)] = 1
		if short := cmp.Or(shortNames[gene.Op], gene.Op); labels && !slices.Contains(strings.Split(edge.Label, "\n"),
			short) {
			edge.Label = strings.TrimPrefix(edge.Label+"\n"+short, "\n")
		}
	}
	for _, node := range c.Concat {
		cell.Edges = append(cell.Edges, plots.Edge{From: node, To: inputs + nodes})
	}
	return cell
}

func judgeFigure3(r *figure3) []runs.Claim {
	all, why := r.Groups.Trials(), ""
	if p := r.Params; p.Stem != "" || p.Channels+p.Cells+p.Classes > 0 {
		why = "the network below has another size than the paper's"
	}
	var genotypes []named
	var nodes, parameters []runs.Claim
	for _, d := range all {
		genotypes, nodes = append(genotypes, d.named), append(nodes, judgeNodes(r, d.named))
		for _, row := range slices.Concat(publishedTables().CIFAR, publishedTables().ImageNet) {
			imageNet, source := row.Top1 > 0, "Table 4"
			if imageNet {
				source = "Table 5"
			}
			if row.Genotype == d.name && imageNet == (d.skeleton.Stem == "imagenet") {
				parameters = append(parameters, row.judgeParameters(claimsFrom(r, source), d.net.Parameters(), why)...)
			}
		}
	}
	return slices.Concat(judgeSpace(claimsFrom(r, "Appendix C.1"), genotypes), nodes, parameters)
}

func judgeNodes(r *figure3, g named) runs.Claim {
	nodes := 0
	for _, t := range supernet.CellTypes {
		cell := g.genotype.Cell(t)
		for node := range len(cell.Genes) / 2 {
			if cell.Genes[2*node].From != cell.Genes[2*node+1].From && slices.Contains(cell.Concat, 2+node) {
				nodes++
			}
		}
	}
	return verdict.Exactly(r.Claim("own: %s: nodes of both cells with two edges, concatenated", g.title()).
		From("Appendix C.1").Claim, float64(nodes), float64(len(supernet.CellTypes)*supernet.DARTS.Nodes), 0)
}
