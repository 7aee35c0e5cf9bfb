package supernet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/simplex"
)

// OnEdges reports whether a block of a network's architecture weighs edges or the inputs of a node instead of
// operations.
func OnEdges(b simplex.Block) bool {
	return b.Name == "output" || strings.HasPrefix(b.Name, "inputs of ") || strings.Contains(b.Name, "edges into ")
}

// Product is the space of θ: one block of operation weights, a row an edge.
func (s Space) Product() simplex.Product {
	return simplex.Product{{Name: "operations", Rows: len(s.Edges), Options: len(s.Ops)}}
}

// Weights01 are the blocks of Architecture with 1 for the edges and operations of a genotype and 0 for everything else:
// rows of other edges are 0, and two edges into a node weigh 1 each. Discretize is its inverse up to the order of a
// node's edges. It returns an error if the genotype is not of the network's space.
func (n *CellNet) Weights01(g Genotype) ([][][]float64, error) {
	theta := n.product.Uniform()
	for _, block := range theta {
		for _, row := range block {
			clear(row)
		}
	}
	if err := n.space.CheckGenotype(g); err != nil {
		return nil, err
	}
	all := n.space.Edges()
	for i, t := range CellTypes {
		for k, gene := range g.Cell(t).Genes {
			node := k / edgesInto
			e := slices.Index(all, Edge{gene.From, inputs + node})
			theta[i][e][slices.Index(n.space.Candidates(t, e), gene.Op)] = 1
			if len(theta) > len(CellTypes) {
				theta[len(CellTypes)+i*n.space.Nodes+node][0][gene.From] = 1
			}
		}
	}
	return theta, nil
}

// CheckGenotype returns an error if a genotype is not of the space: as [Genotype.Check], and if a cell has other nodes,
// an edge twice, an operation that its edge lacks, or not all of its nodes as output.
func (s CellSpace) CheckGenotype(g Genotype) error {
	if err := g.Check(); err != nil {
		return err
	}
	all := s.Edges()
	for _, t := range CellTypes {
		c := g.Cell(t)
		if c.nodes() != s.Nodes || len(c.Concat) != s.Nodes {
			return fmt.Errorf("%s cell: found %d nodes of which %d are the output, expected %d, all of them, in the "+
				"space %q", t, c.nodes(), len(c.Concat), s.Nodes, s.Name)
		}
		for k, gene := range c.Genes {
			edge := Edge{gene.From, inputs + k/edgesInto}
			if ops := s.Candidates(t, slices.Index(all, edge)); gene.Op == none || !slices.Contains(ops, gene.Op) {
				return fmt.Errorf("%s cell, edge %s: found %s, expected one of %v", t, edge, gene.Op, some(ops))
			}
			if k%edgesInto > 0 && c.Genes[k-1].From == gene.From {
				return fmt.Errorf("%s cell: the edge %s is there twice, expected two edges into each node", t, edge)
			}
		}
	}
	return nil
}

// Random draws a genotype uniformly: two edges into every node, and on each an operation but none.
func (s CellSpace) Random(rng *rand.Rand) Genotype {
	cells := map[CellType]Cell{}
	for _, t := range CellTypes {
		var c Cell
		first := 0 // edge into the node
		for node := inputs; node < inputs+s.Nodes; node++ {
			from := rng.Perm(node)[:edgesInto]
			slices.Sort(from)
			for _, f := range from {
				ops := some(s.Candidates(t, first+f))
				c.Genes = append(c.Genes, Gene{ops[rng.IntN(len(ops))], f})
			}
			c.Concat = append(c.Concat, node)
			first += node
		}
		cells[t] = c
	}
	return Genotype{cells[Normal], cells[Reduce]}
}

// Random draws an architecture uniformly: an operation of every node and the parents of every node and the output.
func (s OneShot) Random(rng *rand.Rand) OneShotArch {
	var a OneShotArch
	for range s.Parents {
		a.Ops = append(a.Ops, rng.IntN(len(s.Ops)))
	}
	for i, k := range s.numbers() {
		parents := rng.Perm(i + 1)[:k]
		slices.Sort(parents)
		a.Parents = append(a.Parents, parents)
	}
	return a
}

// String prints the architecture in one line: the operations of the nodes with
// their parents, and those of the output.
//
//	1: conv3x3-bn-relu(0), 2: maxpool3x3(0, 1), …, output(1, 4)
func (s OneShot) String(a OneShotArch) string {
	var nodes []string
	for i, set := range a.Parents {
		name := "output"
		if i < len(a.Ops) {
			name = fmt.Sprintf("%d: %s", i+1, s.Ops[a.Ops[i]])
		}
		parents := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(set)), ", "), "[]")
		nodes = append(nodes, fmt.Sprintf("%s(%s)", name, parents))
	}
	return strings.Join(nodes, ", ")
}
