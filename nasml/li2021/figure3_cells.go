package li2021

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// operationsOf are all that cells have, in the order of the space, then others by name:
// an operation has one colour in all cells.
func operationsOf(all []planned) []string {
	used := map[string]bool{}
	for _, c := range all {
		for _, t := range supernet.CellTypes {
			for _, gene := range c.genotype.Cell(t).Genes {
				used[gene.Op] = true
			}
		}
	}
	var ops []string
	for _, op := range supernet.DARTS.Ops {
		if used[op] {
			ops = append(ops, op)
		}
		delete(used, op)
	}
	return append(ops, slices.Sorted(maps.Keys(used))...)
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
