package supernet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/simplex"
)

// DerivedConfig is the network of a genotype, trained from scratch.
type DerivedConfig struct {
	Skeleton // zero values: the search's; see DerivedCIFAR and DerivedImageNet
	Genotype Genotype

	// Auxiliary adds logits of a small head behind cell ⌊2L/3⌋ to training passes. A 5×5 mean must make 2×2 pixels of
	// its map: 8 to 10 at stride 3 with the stem "cifar", 7 or 8 at stride 2 with "imagenet", as for images of 32 and
	// 224 pixels.
	Auxiliary bool

	// AuxiliaryBN adds the last BN to the ImageNet head, which DARTS leaves out (quark0/darts@f276dd3, model.py:98-100)
	// and GAEA's code has (liamcli/gaea_release@1604615, model.py:98). On CIFAR both have it.
	AuxiliaryBN bool
}

// Skeletons of the networks that are evaluated (Liu+ 2019, Sections 3.2, 3.3).
var (
	DerivedCIFAR    = Skeleton{Stem: "cifar", Channels: 36, Cells: 20, Image: 32, Classes: 10}
	DerivedImageNet = Skeleton{Stem: "imagenet", Channels: 48, Cells: 14, Image: 224, Classes: 1000}
)

// NewDerived is the network of a genotype. BN has scale and shift everywhere and pools are not followed by one. It
// returns an error for sizes below 1, images too small for the reductions or the auxiliary head, and an invalid
// genotype.
func NewDerived(c DerivedConfig) (*CellNet, error) {
	c.Skeleton = c.withDefaults()
	err := c.check()
	if err == nil {
		err = c.Genotype.Check()
	}
	if err == nil && c.Auxiliary && c.head() == c.Cells-1 {
		err = fmt.Errorf("%d cells: the auxiliary head would sit on the last of them, take 4 or more", c.Cells)
	}
	if err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n, err := newCellNet(c.Skeleton, true, c.run)
	if err != nil {
		return nil, fmt.Errorf("supernet: derived network: %w", err)
	}
	return n, nil
}

func (c DerivedConfig) run(l Layers) (o Outcome) {
	outputs := c.states(l, func(l Layers, t CellType, s0, s1 Map) Map {
		return c.Genotype.Cell(t).run(l, t, s0, s1)
	})
	if c.Auxiliary && (l.planning() || l.walk.pass.Train) {
		o.Auxiliary = c.auxiliary(l.In(auxiliaryPath), outputs[c.head()])
	}
	o.Logits = l.In("classifier").classify(outputs[len(outputs)-1], c.Classes)
	return o
}

// run is a discrete cell: a node is the sum of its two operations, each behind a drop path unless it is the identity.
func (c Cell) run(l Layers, t CellType, s0, s1 Map) Map {
	states := []Map{s0, s1}
	var in []Map // of the node under way
	for i, gene := range c.Genes {
		stride := 1
		if t == Reduce && gene.From < inputs {
			stride = 2
		}
		x := states[gene.From]
		at := l.In(fmt.Sprintf("%d/%s", i, Edge{gene.From, len(states)})).In(gene.Op)
		y := at.zero(x, stride)
		if op := Operations[gene.Op]; op != nil {
			y = op(at, x, stride, false)
		}
		if gene.Op != "skip_connect" || stride > 1 {
			y = at.drop(y)
		}
		if in = append(in, y); len(in) == edgesInto {
			states, in = append(states, l.add(in)), nil
		}
	}
	var outputs []Map
	for _, node := range c.Concat {
		outputs = append(outputs, states[node])
	}
	return l.concat(outputs)
}

// auxiliary is the head: ReLU, 5×5 mean to 2×2 pixels, 1×1 convolution to 128 channels, BN, ReLU, 2×2 convolution to
// 768, BN, ReLU, linear layer.
func (c DerivedConfig) auxiliary(l Layers, x Map) *Node {
	const pool, left, narrow, wide = 5, 2, 128, 768
	stride, size := 3, "8 to 10"
	if c.Stem != "cifar" {
		stride, size = 2, "7 or 8"
	}
	if x.H < pool || (x.H-pool)/stride+1 != left {
		l.fail("the head sits on a map of %d×%d pixels, it needs %s: take other images, or no head", x.H, x.W, size)
	}
	before := l.walk.multiplyAdds
	x = l.once("mean of the head", l.ReLU(x), Map{H: left, W: left, C: x.C}, stride, func(x *Node) *Node {
		return AvgPoolValid(x, pool, stride)
	})
	x = l.ReLU(l.BN("bn_1", l.Conv("conv_1", x, 1, 1, narrow)))
	kernel := Weight{"conv_2", []int{left, left, narrow, wide}, left * left * narrow, InitUniform}
	x = l.Apply(x, Map{H: 1, W: 1, C: wide}, []Weight{kernel}, 0, func(x *Node, w []*Node) *Node {
		y := Dot(Reshape(x, -1, kernel.FanIn), Reshape(w[0], kernel.FanIn, wide)).Product()
		return Reshape(y, -1, 1, 1, wide)
	})
	if c.Stem == "cifar" || c.AuxiliaryBN {
		x = l.BN("bn_2", x)
	}
	logits := l.In("classifier").classify(l.ReLU(x), c.Classes)
	l.walk.multiplyAdds = before // an evaluation does not compute it
	return logits
}

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

// String prints the architecture in one line: the operations of the nodes with their parents, and those of the output.
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

// Edge goes from node From to node To of a cell.
type Edge struct{ From, To int }

// String prints "2<-0" for the edge from node 0 to node 2.
func (e Edge) String() string { return fmt.Sprintf("%d<-%d", e.To, e.From) }

// Space is a cell search space as data: nodes, edges, candidate operations. Node 0 is the cell's input; node j is the
// sum of the mixed operations of the edges into it; the last node is the cell's output.
type Space struct {
	Name  string
	Nodes int      // of a cell, input included
	Edges []Edge   // in the original's order
	Ops   []string // candidate operations of every edge, in the original's order: NAS-Bench-201's, or of Operations
}

// NASBench201 is the space of Dong & Yang 2020 (https://arxiv.org/abs/2001.00326): four nodes, each connected to all
// before it, five operations an edge; 5⁶ = 15,625 architectures.
var NASBench201 = Space{
	Name:  "nasbench201",
	Nodes: 4,
	Edges: []Edge{{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}},
	Ops:   []string{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"},
}

// Spaces are the known cell spaces by name. Add a custom one with Spaces["mine"] = Space{…}.
var Spaces = map[string]Space{NASBench201.Name: NASBench201}

// Without is the space without the named operations, such as "none". It ignores names that the space lacks.
func (s Space) Without(ops ...string) Space {
	s.Ops = without(s.Ops, ops)
	return s
}

func without(all, names []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(op string) bool { return slices.Contains(names, op) })
}

// With is the space with more operations, behind those that it has.
func (s Space) With(ops ...string) Space {
	s.Ops = append(slices.Clone(s.Ops), ops...)
	return s
}

// Check returns an error if the space is not a cell: an edge that does not go from an earlier node to a later one, an
// edge twice, a node after the first that no edge enters, an operation unknown or twice.
func (s Space) Check() error {
	if s.Nodes < 2 || len(s.Ops) == 0 {
		return fmt.Errorf("space %q has %d nodes and %d operations: a cell needs at least 2 nodes and 1 operation",
			s.Name, s.Nodes, len(s.Ops))
	}
	seen, entered := map[Edge]bool{}, map[int]bool{}
	for _, e := range s.Edges {
		if e.From < 0 || e.From >= e.To || e.To >= s.Nodes || seen[e] {
			return fmt.Errorf("space %q: edge %s must go once from an earlier node to a later one, 0 ≤ from < to < %d",
				s.Name, e, s.Nodes)
		}
		seen[e], entered[e.To] = true, true
	}
	for j := 1; j < s.Nodes; j++ {
		if !entered[j] {
			return fmt.Errorf("space %q: no edge enters node %d", s.Name, j)
		}
	}
	for i, op := range s.Ops {
		_, own := inserted(op)
		if _, ok := operations[op]; !ok && !own || slices.Contains(s.Ops[:i], op) {
			return fmt.Errorf("space %q: operation %q is unknown or named twice: take each of %s at most once, or add "+
				"your own to supernet.Operations", s.Name, op, strings.Join(operationNames(), ", "))
		}
	}
	return nil
}

// operationNames are the operations of cells, with those of a reader.
func operationNames() []string {
	names := slices.Concat(slices.Collect(maps.Keys(operations)), slices.Collect(maps.Keys(Operations)))
	slices.Sort(names)
	return slices.Compact(names)
}

// Argmax is the discretisation of θ [|E|, |O|]: the operation of the largest weight on each edge, the first of equals,
// as in PyTorch on CPU (a uniform θ is a tie on every edge, not an architecture).
func (s Space) Argmax(theta [][]float64) []int {
	choice := make([]int, len(theta))
	for e, row := range theta {
		for o := range row {
			if row[o] > row[choice[e]] {
				choice[e] = o
			}
		}
	}
	return choice
}

// Arch prints the operations of all edges as NAS-Bench-201 does, the nodes after the input joined by "+":
//
//	|nor_conv_3x3~0|+|skip_connect~0|none~1|+|avg_pool_3x3~0|…~1|…~2|
func (s Space) Arch(choice []int) string {
	var nodes []string
	for j := 1; j < s.Nodes; j++ {
		node := "|"
		for e, edge := range s.Edges {
			if edge.To == j {
				node += fmt.Sprintf("%s~%d|", s.Ops[choice[e]], edge.From)
			}
		}
		nodes = append(nodes, node)
	}
	return strings.Join(nodes, "+")
}

// Parse is the inverse of Arch: the operation of each edge in the space's order. It returns an error for a string that
// Arch does not print.
func (s Space) Parse(arch string) ([]int, error) {
	nodes := strings.Split(arch, "+")
	if len(nodes) != s.Nodes-1 {
		return nil, fmt.Errorf("architecture %q has %d nodes after the input, the space %q has %d", arch, len(nodes),
			s.Name, s.Nodes-1)
	}
	choice := make([]int, len(s.Edges))
	for e, edge := range s.Edges {
		choice[e] = -1
		for _, part := range strings.Split(nodes[edge.To-1], "|") {
			if op, from, _ := strings.Cut(part, "~"); from == fmt.Sprint(edge.From) {
				choice[e] = slices.Index(s.Ops, op)
			}
		}
		if choice[e] < 0 {
			return nil, fmt.Errorf("architecture %q has none of %s on edge %s", arch, strings.Join(s.Ops, ", "), edge)
		}
	}
	if again := s.Arch(choice); again != arch {
		return nil, fmt.Errorf("architecture %q is not as the space %q prints it, %q", arch, s.Name, again)
	}
	return choice, nil
}

// OneHot is θ [|E|, |O|] of a discrete architecture.
func (s Space) OneHot(choice []int) [][]float64 {
	theta := make([][]float64, len(choice))
	for e, o := range choice {
		theta[e] = make([]float64, len(s.Ops))
		theta[e][o] = 1
	}
	return theta
}
