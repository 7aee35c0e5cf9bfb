package supernet

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/internal/own"
)

// CellSpace is a search space of cells with two inputs as data, as in DARTS (Liu+ 2019,
// https://arxiv.org/abs/1806.09055): states 0 and 1 are the outputs of the two cells before, every further state (node)
// sums the edges from all states before it, and the cell's output is the concatenation of the nodes. Cells that keep
// the size and cells that halve it are searched apart.
type CellSpace struct {
	Name  string
	Nodes int      // states after the two inputs; a genotype keeps two edges into each
	Ops   []string // candidate operations of an edge, names of Operations, in the original's order

	// EdgeOps, if it has a type of cell, names the candidates of each of its edges instead, as many for all.
	EdgeOps map[CellType][][]string
}

// CellType tells the two cells of a CellSpace apart.
type CellType string

// The types of cells.
const (
	Normal CellType = "normal"
	Reduce CellType = "reduce" // what leaves the inputs has stride 2
)

// CellTypes are both types in the order of the architecture's parameters.
var CellTypes = []CellType{Normal, Reduce}

const (
	inputs    = 2 // of a cell
	edgesInto = 2 // edges into a node of a genotype
)

// DARTS is the space of Liu+ 2019, of PC-DARTS (Xu+ 2020) and of Li+ 2021, Section 4.2: four nodes, 14 edges, eight
// operations.
var DARTS = CellSpace{
	Name: "darts", Nodes: 4,
	Ops: []string{
		"none", "max_pool_3x3", "avg_pool_3x3", "skip_connect",
		"sep_conv_3x3", "sep_conv_5x5", "dil_conv_3x3", "dil_conv_5x5",
	},
}

// CellSpaces are the known spaces of cells with two inputs by name. Add a custom one with CellSpaces["mine"] =
// CellSpace{…}. DARTS fails on S1 to S4 (Zela+ 2020, https://arxiv.org/abs/1909.09656, Section 3; candidates from
// automl/RobustDARTS@07f54ba, src/spaces.py).
var CellSpaces = map[string]CellSpace{
	DARTS.Name: DARTS,
	"darts-s1": {Name: "darts-s1", Nodes: 4, EdgeOps: map[CellType][][]string{
		Normal: pairs("sd3 sd5 sd5 ss3 sd3 ms ss3 ss3 sd3 ss3 ms sd3 d3d5 d3d5"),
		Reduce: pairs("ma md3 ma ma sd5 ma ms3 sd3 sd5 ma ma sd5 sd5 sd5"),
	}},
	"darts-s2": {Name: "darts-s2", Nodes: 4, Ops: []string{"skip_connect", "sep_conv_3x3"}},
	"darts-s3": {Name: "darts-s3", Nodes: 4, Ops: []string{"none", "skip_connect", "sep_conv_3x3"}},
	"darts-s4": {Name: "darts-s4", Nodes: 4, Ops: []string{"noise", "sep_conv_3x3"}},
}

// pairs spells out the two candidates of every edge.
func pairs(edges string) [][]string {
	const skip, max, mean = "skip_connect", "max_pool_3x3", "avg_pool_3x3"
	const sep3, dil3, dil5 = "sep_conv_3x3", "dil_conv_3x3", "dil_conv_5x5"
	words := map[string][]string{
		"sd3": {skip, dil3}, "sd5": {skip, dil5}, "ss3": {skip, sep3}, "ms": {max, skip}, "d3d5": {dil3, dil5},
		"ma": {max, mean}, "md3": {max, dil3}, "ms3": {max, sep3},
	}
	var out [][]string
	for word := range strings.FieldsSeq(edges) {
		out = append(out, words[word])
	}
	return out
}

// Without is the space without the named operations, such as "none". It ignores names that the space lacks.
func (s CellSpace) Without(ops ...string) CellSpace {
	s.Ops = without(s.Ops, ops)
	return s
}

// With is the space with more operations, behind those that it has.
func (s CellSpace) With(ops ...string) CellSpace {
	s.Ops = append(slices.Clone(s.Ops), ops...)
	return s
}

// Edges are the edges of a cell, by node, then by origin: 2<-0, 2<-1, 3<-0, …
func (s CellSpace) Edges() []Edge {
	var edges []Edge
	for to := inputs; to < inputs+s.Nodes; to++ {
		for from := range to {
			edges = append(edges, Edge{from, to})
		}
	}
	return edges
}

// Candidates are the operations of an edge, given by its place in Edges.
func (s CellSpace) Candidates(cell CellType, edge int) []string {
	if own := s.EdgeOps[cell]; own != nil {
		return own[edge]
	}
	return s.Ops
}

// Options is the number of candidates of an edge.
func (s CellSpace) Options() int { return len(s.Candidates(Normal, 0)) }

// Check returns an error if the space is invalid: fewer than one node, an operation unknown or twice on an edge, edges
// without candidates or with different numbers of them.
func (s CellSpace) Check() error {
	if s.Nodes < 1 {
		return fmt.Errorf("space %q must have at least 1 node, got %d", s.Name, s.Nodes)
	}
	edges := s.Edges()
	for _, cell := range CellTypes {
		if own := s.EdgeOps[cell]; own != nil && len(own) != len(edges) {
			return fmt.Errorf("space %q names the operations of %d edges of the %s cell, which has %d",
				s.Name, len(own), cell, len(edges))
		}
		for e := range edges {
			if err := s.checkOps(s.Candidates(cell, e)); err != nil {
				return fmt.Errorf("space %q, edge %s of the %s cell: %w", s.Name, edges[e], cell, err)
			}
		}
	}
	return nil
}

func (s CellSpace) checkOps(ops []string) error {
	if len(ops) == 0 || len(ops) != s.Options() {
		return fmt.Errorf("it must have at least 1 operation and as many as every edge, %d, got %d", s.Options(),
			len(ops))
	}
	for i, op := range ops {
		if err := knownOperation(op); err != nil {
			return err
		}
		if slices.Contains(ops[:i], op) {
			return fmt.Errorf("operation %q is named twice", op)
		}
	}
	return nil
}

// knownOperation returns an error that lists Operations if op is not one.
func knownOperation(op string) error {
	if _, ok := Operations[op]; !ok {
		return own.Unknown("operation", op, Operations, "supernet.Operations")
	}
	return nil
}

// Architectures is the number of genotypes: two of the edges into each node,
// and on each one of its operations but none (Liu+ 2019, Section 2.3),
//
//	∏_types ∏_nodes Σ_{e<f} |Oₑ|·|O_f|  =  (∏_{k=1..n} (k+1)k/2 · 7²)² for DARTS, about 10¹⁸.
//
// Cells that only differ in the names of their nodes are counted apart.
func (s CellSpace) Architectures() *big.Int {
	total := big.NewInt(1)
	for _, cell := range CellTypes {
		into := make([]int64, s.Nodes) // Σ_{e<f} |Oₑ|·|O_f| of the edges so far
		sizes := make([]int64, s.Nodes)
		for e, edge := range s.Edges() {
			node, size := edge.To-inputs, int64(len(some(s.Candidates(cell, e))))
			into[node] += size * sizes[node]
			sizes[node] += size
		}
		for _, pairs := range into {
			total.Mul(total, big.NewInt(pairs))
		}
	}
	return total
}

// some are the operations but none.
func some(ops []string) []string { return without(ops, []string{none}) }
