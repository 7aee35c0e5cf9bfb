package li2021

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure3Params are the parameters of Figure 3, cells that are drawn.
type Figure3Params struct {
	Genotypes []string // names of supernet.Published, or genotypes as the authors' programs print them
	Labels    bool     // operations stand at their edges, too, and not in the legend only

	// Searches of ours, rows of Figure 1 such as "gaea-pc-darts@darts", run as
	// Search says: their cells are drawn, too, where the run store has them.
	Searches []string
	Search   SearchParams

	// The network whose size stands below: "cifar" or "imagenet" (the stem), and
	// C, L, classes. A field at 0 (or empty) is the paper's: of CIFAR-10, or of
	// ImageNet where the genotype was searched there.
	Stem                     string
	Channels, Cells, Classes int
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

const (
	figure3ID     = "li2021/figure3"
	figure3Title  = "The normal and reduction cells that GAEA PC-DARTS found"
	figure3Source = "Li+ 2021, Figure 3"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure3ID, Paper: paper, Title: figure3Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure3_cells.ipynb",
		Cost:     catalog.Cost{Quick: "a second", Paper: "a second"},
	}, Figure3Quick, Figure3Paper, Figure3)
}

// Figure3Result has genotypes and the sizes of their networks.
type Figure3Result struct {
	Params    Figure3Params
	Scale     string // "quick", "paper" or empty for own parameters
	Genotypes []supernet.Genotype
	names     []string
	networks  []*supernet.CellNet
	skeletons []supernet.Skeleton
	records   []*runs.Record // of the searches whose cells are drawn
}

// Figure3 reads the genotypes and plans their networks. It is a
// *catalog.UsageError where one is no genotype, or the network has no such size.
func Figure3(ctx context.Context, p Figure3Params) (*Figure3Result, error) {
	var c study.Checks
	study.Distinct(&c, "Genotypes", p.Genotypes, 1)
	c.OneOf("Stem", p.Stem, "", "cifar", "imagenet")
	c.AtLeast("Channels", p.Channels, 0)
	c.AtLeast("Cells", p.Cells, 0)
	c.AtLeast("Classes", p.Classes, 0)
	if err := c.Err("Figure 3"); err != nil {
		return nil, err
	}
	genotypes, err := parseGenotypes(p.Genotypes)
	if err != nil {
		return nil, err
	}
	p.Search.StoredOnly = true // drawing a cell is no reason to search for it
	ours, records, err := foundBy(ctx, p.Search, figure3Title, p.Searches)
	if err != nil {
		return nil, err
	}
	genotypes = append(genotypes, ours...)
	r := &Figure3Result{Params: p, Scale: runs.Scale(ctx), records: records}
	for _, g := range genotypes {
		skeleton := p.skeleton(g.name)
		net, err := supernet.NewDerived(supernet.DerivedConfig{Skeleton: skeleton, Genotype: g.genotype})
		if err != nil {
			return nil, catalog.Usagef("%s, %v", g.name, err)
		}
		r.Genotypes, r.names = append(r.Genotypes, g.genotype), append(r.names, g.name)
		r.networks, r.skeletons = append(r.networks, net), append(r.skeletons, skeleton)
	}
	return r, nil
}

// skeleton is the network of a genotype in these parameters.
func (p Figure3Params) skeleton(name string) supernet.Skeleton {
	s := supernet.DerivedCIFAR
	if p.Stem == "imagenet" || p.Stem == "" && supernet.Published[name].Searched == "ImageNet" {
		s = supernet.DerivedImageNet
	}
	for value, field := range map[int]*int{p.Channels: &s.Channels, p.Cells: &s.Cells, p.Classes: &s.Classes} {
		if value != 0 {
			*field = value
		}
	}
	return s
}

// Records are the keys of the searches whose cells are drawn.
func (r *Figure3Result) Records() []string { return study.Keys(r.records) }

// Figure draws the cells, a row a genotype: the normal cell and the reduction
// cell.
func (r *Figure3Result) Figure() plots.Figure {
	var rows [][]plots.Panel
	for i, g := range r.Genotypes {
		for _, t := range supernet.CellTypes {
			cell := drawnCell(g.Cell(t), r.operations(), r.Params.Labels)
			legend := plots.Legend{}
			if r.Params.Labels {
				legend.Position = plots.LegendNone
			}
			rows = append(rows, []plots.Panel{{
				Title: fmt.Sprintf("%s: %s cell", r.title(i), titles[t]), Cell: cell, Legend: legend,
			}})
		}
	}
	return plots.Figure{
		Name: "li2021-figure3", Style: plots.ICLR.Text(), Panels: rows, Caption: r.caption(),
		Meta: study.Meta(figure3Title, r.Scale, r.Params),
	}
}

var titles = map[supernet.CellType]string{supernet.Normal: "normal", supernet.Reduce: "reduction"}

// title is how a genotype is called.
func (r *Figure3Result) title(i int) string {
	if p, ok := supernet.Published[r.names[i]]; ok {
		return p.Method + ", " + p.Searched
	}
	return r.names[i]
}

// operations are all that the genotypes have, in the order of the space, then
// others by name: an operation has one colour in all cells.
func (r *Figure3Result) operations() []string {
	used := map[string]bool{}
	for _, g := range r.Genotypes {
		for _, t := range supernet.CellTypes {
			for _, gene := range g.Cell(t).Genes {
				used[gene.Op] = true
			}
		}
	}
	var ops, others []string
	for op := range used {
		if !slices.Contains(supernet.DARTS.Ops, op) {
			others = append(others, op)
		}
	}
	for _, op := range supernet.DARTS.Ops {
		if used[op] {
			ops = append(ops, op)
		}
	}
	slices.Sort(others)
	return append(ops, others...)
}

// shortNames are what edges are labelled with.
var shortNames = map[string]string{
	"max_pool_3x3": "max 3×3", "avg_pool_3x3": "mean 3×3", "skip_connect": "skip", "sep_conv_3x3": "sep 3×3",
	"sep_conv_5x5": "sep 5×5", "sep_conv_7x7": "sep 7×7", "dil_conv_3x3": "dil 3×3", "dil_conv_5x5": "dil 5×5",
}

// drawnCell is a discrete cell as a graph: the two inputs, the nodes, and the
// concatenation that is its output. Two operations between the same states are
// drawn beside each other.
func drawnCell(c supernet.Cell, ops []string, labels bool) *plots.Cell {
	const inputs = 2
	nodes := len(c.Genes) / 2
	cell := &plots.Cell{Nodes: []string{"$c_{k-2}$", "$c_{k-1}$"}, Width: 1.6}
	for i := range nodes {
		cell.Nodes = append(cell.Nodes, fmt.Sprint(i))
	}
	cell.Nodes = append(cell.Nodes, "$c_k$")
	for _, op := range ops {
		cell.Ops = append(cell.Ops, plots.Op{Label: op, None: op == "none"})
	}
	at := map[[2]int]int{}
	for i, gene := range c.Genes {
		ends := [2]int{gene.From, inputs + i/2}
		if _, drawn := at[ends]; !drawn {
			at[ends] = len(cell.Edges)
			cell.Edges = append(cell.Edges, plots.Edge{From: ends[0], To: ends[1], Weights: make([]float64, len(ops))})
		}
		edge := &cell.Edges[at[ends]]
		edge.Weights[slices.Index(ops, gene.Op)] = 1
		if short := shortName(gene.Op); labels && !slices.Contains(strings.Split(edge.Label, "\n"), short) {
			edge.Label = strings.TrimPrefix(edge.Label+"\n"+short, "\n")
		}
	}
	for _, node := range c.Concat {
		cell.Edges = append(cell.Edges, plots.Edge{From: node, To: inputs + nodes})
	}
	return cell
}

func shortName(op string) string {
	if short, ok := shortNames[op]; ok {
		return short
	}
	return op
}

func (r *Figure3Result) caption() string {
	parts := []string{"$c_{k-2}$ and $c_{k-1}$ are the outputs of the two cells before; a node is the sum of its two " +
		"operations, $c_k$ the concatenation of the nodes (grey)."}
	if r.Params.Labels {
		parts = append(parts, "sep: separable, dil: dilated convolution, max, mean: pools.")
	}
	for i, net := range r.networks {
		s := r.skeletons[i]
		parts = append(parts, fmt.Sprintf("%s: %.2f M parameters with $C$ = %d, $L$ = %d and %d classes.", r.title(i),
			millions(net.Parameters()), s.Channels, s.Cells, s.Classes))
	}
	return strings.Join(parts, " ")
}

// Check judges that the cells are what Appendix C.1 says a cell is, and that
// their networks have the parameters that Tables 4 and 5 print.
func (r *Figure3Result) Check() []runs.Claim {
	var all []named
	for i, g := range r.Genotypes {
		all = append(all, named{r.names[i], g})
	}
	claims := checkSpace(all)
	for i, g := range r.Genotypes {
		claims = append(claims, checkNodes(r.title(i), g))
	}
	standard := ""
	if p := r.Params; p.Stem != "" || p.Channels+p.Cells+p.Classes > 0 {
		standard = "the network below has another size than the paper's"
	}
	for i, name := range r.names {
		for _, row := range append(slices.Clone(publishedCIFAR), publishedImageNet...) {
			imageNet := row.top1 > 0
			if row.genotype == name && imageNet == (r.skeletons[i].Stem == "imagenet") {
				source := map[bool]string{false: table4Source, true: table5Source}[imageNet]
				claims = append(claims, checkParams(row, r.networks[i].Parameters(), source, standard))
			}
		}
	}
	return claims
}

// checkNodes judges that every one of four nodes has two edges, and that all of
// them are concatenated.
func checkNodes(title string, g supernet.Genotype) runs.Claim {
	c := verdict.Claim("own: "+title+": nodes of both cells with two edges, concatenated", "Li+ 2021, Appendix C.1")
	nodes := 0
	for _, t := range supernet.CellTypes {
		cell := g.Cell(t)
		for node := range len(cell.Genes) / 2 {
			if cell.Genes[2*node].From != cell.Genes[2*node+1].From && slices.Contains(cell.Concat, 2+node) {
				nodes++
			}
		}
	}
	return verdict.Exactly(c, float64(nodes), float64(len(supernet.CellTypes)*supernet.DARTS.Nodes), 0)
}
