package supernet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/simplex"
)

// Skeleton is what networks of cells with two inputs share (Liu+ 2019, Appendix A): a stem, cells of which those at
// ⌊L/3⌋ and ⌊2L/3⌋ halve the size and double the channels, global mean, linear classifier. Zero values are the search
// on CIFAR-10.
type Skeleton struct {
	Stem     string // a name of Stems; "": "cifar"
	Channels int    // C of the first cells; 0: 16
	Cells    int    // L; 0: 8
	Image    int    // height and width in pixels; 0: 32
	Classes  int    // 0: 10
}

func (s Skeleton) withDefaults() Skeleton {
	s.Stem = cmp.Or(s.Stem, "cifar")
	s.Channels, s.Cells = cmp.Or(s.Channels, 16), cmp.Or(s.Cells, 8)
	s.Image, s.Classes = cmp.Or(s.Image, 32), cmp.Or(s.Classes, 10)
	return s
}

func (s Skeleton) check() error {
	if _, ok := Stems[s.Stem]; !ok {
		return fmt.Errorf("stem %q is unknown: take one of %v", s.Stem, slices.Sorted(maps.Keys(Stems)))
	}
	if s.Channels < 1 || s.Cells < 1 || s.Classes < 1 || s.Image < 1 {
		return fmt.Errorf("channels %d, cells %d, classes %d, image %d: all must be at least 1",
			s.Channels, s.Cells, s.Classes, s.Image)
	}
	return nil
}

// checkPartial returns an error if 1/k of the channels are not a whole number.
func (s Skeleton) checkPartial(k int) error {
	if s.Channels%k != 0 {
		return fmt.Errorf("%d channels of which 1/K, K = %d, go through the operations: K must divide them",
			s.Channels, k)
	}
	return nil
}

func (s Skeleton) reduces(cell int) bool { return cell == s.Cells/3 || cell == 2*s.Cells/3 }

// head is the cell behind which the auxiliary head sits.
func (s Skeleton) head() int { return 2 * s.Cells / 3 }

// Stem turns the images into the inputs of the first cell for C channels. halved says that the second has half the size
// of the first.
type Stem func(l Layers, images Map, channels int) (s0, s1 Map, halved bool)

// Stems are the known stems by name. Their BN always has scale and shift.
var Stems = map[string]Stem{"cifar": stemCIFAR, "imagenet": stemImageNet(1), "imagenet-search": stemImageNet(3)}

// stemCIFAR is a 3×3 convolution to 3C channels and BN.
func stemCIFAR(l Layers, images Map, channels int) (s0, s1 Map, halved bool) {
	x := l.In("bn").bn(l.Conv("conv", images, 3, 1, 3*channels), true, momentum)
	return x, x, false
}

// stemImageNet halves the size three times, to wide·C channels: C in networks that are evaluated (quark0/darts@f276dd3,
// model.py:165-183), 3C in a search (yuhuixu1993/PC-DARTS@643a4cb, model_search_imagenet.py).
func stemImageNet(wide int) Stem {
	return func(l Layers, images Map, channels int) (s0, s1 Map, halved bool) {
		out := wide * channels
		x := l.In("bn_0").bn(l.Conv("conv_0", images, 3, 2, out/2), true, momentum)
		s0 = l.In("bn_1").bn(l.Conv("conv_1", l.ReLU(x), 3, 2, out), true, momentum)
		s1 = l.In("bn_2").bn(l.Conv("conv_2", l.ReLU(s0), 3, 2, out), true, momentum)
		return s0, s1, true
	}
}

// CellNet is a network of cells with two inputs: the supernet of a search, or that of one genotype.
//
// Its weights are in the order of the authors' named_parameters, from the images to the logits: stem; of a cell
// preprocess0, preprocess1, then by edge and by operation what the operation declares; auxiliary head; classifier.
// Paths read cells/2/preprocess0/conv, cells/2/3<-0/sep_conv_3x3/depthwise_1.
type CellNet struct {
	skeleton Skeleton
	space    CellSpace // of a search
	product  simplex.Product
	plan     *walk
	run      func(l Layers) Outcome
	samples  bool // takes Pass.Chosen
}

func newCellNet(s Skeleton, affine bool, run func(l Layers) Outcome) (*CellNet, error) {
	n := &CellNet{skeleton: s, run: run, plan: &walk{affine: affine, index: map[string]int{}}}
	run(Layers{walk: n.plan})
	if n.plan.err != nil {
		return nil, n.plan.err
	}
	return n, nil
}

// Weights are all trained weights.
func (n *CellNet) Weights() []Weight { return n.plan.weights }

// Stats are BN's running means and variances.
func (n *CellNet) Stats() []Weight { return n.plan.stats }

// Architecture are the blocks of operation weights of both types of cells, and of edge weights if the network has them:
// one row per node, with the edges into it.
func (n *CellNet) Architecture() simplex.Product { return n.product }

// Discretize is the genotype of operation and edge weights, the blocks of Architecture: see [CellSpace.Discretize].
func (n *CellNet) Discretize(theta [][][]float64) (Genotype, error) {
	if err := n.product.Check(theta, math.Inf(1)); err != nil {
		return Genotype{}, fmt.Errorf("genotype: %w", err)
	}
	m := Mixture{Operations: map[CellType][][]float64{}, Edges: map[CellType][]float64{}}
	for i, t := range CellTypes {
		m.Operations[t] = theta[i]
		if len(theta) > len(CellTypes) {
			first := len(CellTypes) + i*n.space.Nodes
			for _, rows := range theta[first : first+n.space.Nodes] {
				m.Edges[t] = append(m.Edges[t], rows[0]...)
			}
		}
	}
	return n.space.Discretize(m)
}

// DropPlaces is the number of places of drop path, the columns of Pass.Drop: every operation of a derived network but
// identities, in the order of the cells and their edges.
func (n *CellNet) DropPlaces() int { return n.plan.dropped }

// auxiliaryPath names the weights of the auxiliary head.
const auxiliaryPath = "auxiliary"

// Parameters is the number of weights without those of the auxiliary head, as the authors count (quark0/darts@f276dd3,
// utils.py, count_parameters_in_MB).
func (n *CellNet) Parameters() int {
	total := 0
	for _, w := range n.plan.weights {
		if !strings.HasPrefix(w.Path, auxiliaryPath) {
			total += size(w.Dims)
		}
	}
	return total
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// MultiplyAdds is the number of multiplications of an example in convolutions and the classifier, without the auxiliary
// head, which an evaluation does not compute.
func (n *CellNet) MultiplyAdds() int64 { return n.plan.multiplyAdds }

// InitWeights draws float32 weights as PyTorch does by default.
func (n *CellNet) InitWeights(rng *rand.Rand) []*tensors.Tensor {
	return initialized(n.plan.weights, rng)
}

// InitStats are means 0 and variances 1.
func (n *CellNet) InitStats() []*tensors.Tensor { return initialized(n.plan.stats, nil) }

func initialized(weights []Weight, rng *rand.Rand) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(weights))
	for i, w := range weights {
		out[i] = w.tensor(rng)
	}
	return out
}

// states walks through all cells and returns their outputs; cell computes one from its preprocessed inputs.
func (s Skeleton) states(l Layers, cell func(l Layers, t CellType, s0, s1 Map) Map) []Map {
	s0, s1, halved := Stems[s.Stem](l.In("stem"), Map{H: s.Image, W: s.Image, C: 3, node: l.walk.pass.Images},
		s.Channels)
	width := s.Channels
	var outputs []Map
	for i := range s.Cells {
		at, t := l.In(fmt.Sprintf("cells/%d", i)), Normal
		if s.reduces(i) {
			width, t = 2*width, Reduce
			if s1.H%2 != 0 || s1.H < 2 {
				at.fail("halves a map of %d×%d pixels: the size must be even; take larger images", s1.H, s1.W)
			}
		}
		p0 := at.In("preprocess0").preprocess(s0, width, halved)
		p1 := at.In("preprocess1").preprocess(s1, width, false)
		s0, s1, halved = s1, cell(at, t, p0, p1), t == Reduce
		outputs = append(outputs, s1)
	}
	return outputs
}

// preprocess brings an input of a cell to its width and size: ReLU, 1×1 convolution, BN, or a FactorizedReduce.
func (l Layers) preprocess(x Map, width int, halve bool) Map {
	if halve {
		return l.FactorizedReduce(x, width)
	}
	return l.BN("bn", l.Conv("conv", l.ReLU(x), 1, 1, width))
}

// SearchConfig is the supernet of a search.
type SearchConfig struct {
	Skeleton
	Space CellSpace // nil operations: DARTS

	// Partial is K of PC-DARTS (Xu+ 2020): the first 1/K of the channels go through the operations, the rest passes by,
	// and the channels are shuffled. 0 or 1: all of them.
	Partial int

	// Edges says that edges have weights of their own (edge normalisation of PC-DARTS); else they weigh 1.
	Edges bool
}

// NewSearch is the supernet of a search: every edge is the mixture of its candidates, Σₒ θₒ·opₒ(x), BN in cells has
// neither scale nor shift, and pools are followed by a BN. It returns an error for sizes below 1, images too small for
// the reductions, channels that K does not divide, and an invalid space.
func NewSearch(c SearchConfig) (*CellNet, error) {
	c.Skeleton = c.withDefaults()
	if c.Space.Ops == nil && c.Space.EdgeOps == nil {
		c.Space = DARTS
	}
	c.Partial = max(c.Partial, 1)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n, err := newCellNet(c.Skeleton, false, c.run)
	if err != nil {
		return nil, fmt.Errorf("supernet: search network: %w", err)
	}
	n.space, n.product = c.Space, c.product()
	return n, nil
}

func (c SearchConfig) check() error {
	return cmp.Or(c.Skeleton.check(), c.checkPartial(c.Partial), c.Space.Check())
}

func (c SearchConfig) product() simplex.Product {
	var p simplex.Product
	for _, t := range CellTypes {
		p = append(p, simplex.Block{Name: string(t), Rows: len(c.Space.Edges()), Options: c.Space.Options()})
	}
	if !c.Edges {
		return p
	}
	for _, t := range CellTypes {
		for node := range c.Space.Nodes {
			name := fmt.Sprintf("%s edges into %d", t, inputs+node)
			p = append(p, simplex.Block{Name: name, Rows: 1, Options: inputs + node})
		}
	}
	return p
}

func (c SearchConfig) run(l Layers) Outcome {
	mixtures := map[CellType]mixture{}
	for i, t := range CellTypes {
		mixtures[t] = c.mixture(l, i)
	}
	outputs := c.states(l, func(l Layers, t CellType, s0, s1 Map) Map {
		return c.cell(l, t, mixtures[t], s0, s1)
	})
	return Outcome{Logits: l.In("classifier").classify(outputs[len(outputs)-1], c.Classes)}
}

// mixture are the weights of one type of cell in a graph.
type mixture struct {
	edges      *Node // [1, |E|], or [B, |E|]
	operations *Node // weight of the edge times that of the operation, [1, |E|·|O|], or [B, |E|·|O|]
}

// mixture takes the weights of type i from θ.
func (c SearchConfig) mixture(l Layers, i int) mixture {
	if l.planning() {
		return mixture{}
	}
	theta := l.walk.pass.Theta
	e, o := len(c.Space.Edges()), c.Space.Options()
	ops := Reshape(theta[i], -1, e, o)
	edges := Ones(ops.Graph(), shapes.Make(ops.DType(), ops.Shape().Dim(0), e))
	if c.Edges {
		first := len(CellTypes) + i*c.Space.Nodes
		edges = spliced(theta[first : first+c.Space.Nodes])
		edges = BroadcastToDims(edges, max(edges.Shape().Dim(0), ops.Shape().Dim(0)), e)
	}
	wide := BroadcastToDims(ExpandAxes(edges, -1), edges.Shape().Dim(0), e, o)
	return mixture{edges, Reshape(Mul(wide, BroadcastToShape(ops, wide.Shape())), -1, e*o)}
}

// spliced puts rows [1, n] or [B, 1, n] of any lengths side by side, as products with parts of the identity: slices
// would have no second gradient.
func spliced(rows []*Node) *Node {
	total := 0
	for _, r := range rows {
		total += r.Shape().Dim(-1)
	}
	var y *Node
	at := 0
	for _, r := range rows {
		n := r.Shape().Dim(-1)
		part := Dot(Reshape(r, -1, n), TransposeAllAxes(selection(r, total, count(at + n)[at:]), 1, 0)).Product()
		if y == nil {
			y = part
		} else {
			y = Add(y, part)
		}
		at += n
	}
	return y
}

// selection is the matrix [n, k] that picks places from a row of n.
func selection(like *Node, n int, places []int) *Node {
	pick := make([][]float64, n)
	for i := range pick {
		pick[i] = make([]float64, len(places))
	}
	for k, place := range places {
		pick[place][k] = 1
	}
	return ConstAsDType(like.Graph(), like.DType(), pick)
}

// picked are some places of a row [1, n] or [B, n].
func picked(row *Node, places []int) *Node {
	return Dot(row, selection(row, row.Shape().Dim(1), places)).Product()
}

// cell is a mixed cell. A node is the shuffled pair of the sum over its edges of all operations and the sum of the
// channels that pass by.
func (c SearchConfig) cell(l Layers, t CellType, m mixture, s0, s1 Map) Map {
	states := []Map{s0, s1}
	at := 0 // edge
	for range c.Space.Nodes {
		node := mixedNode{SearchConfig: c, weights: m}
		for from, x := range states {
			stride := 1
			if t == Reduce && from < inputs {
				stride = 2
			}
			edge := Edge{from, len(states)}
			node.enter(l.In(edge.String()), t, at, x, stride)
			at++
		}
		states = append(states, node.sum(l))
	}
	return l.concat(states[inputs:])
}

// mixedNode collects what comes into a node.
type mixedNode struct {
	SearchConfig
	weights             mixture
	terms, beside       []Map
	operations, passing []int // places of the terms' weights
	out                 Map
}

// enter adds the candidates of an edge, given by its place, on a state x.
func (n *mixedNode) enter(l Layers, t CellType, edge int, x Map, stride int) {
	n.out = x.strided(stride)
	if n.Partial > 1 {
		var rest Map
		x, rest = l.apart(x, n.Partial)
		if stride == 2 {
			half := Map{H: rest.H / 2, W: rest.W / 2, C: rest.C}
			rest = l.once("max2", rest, half, 2, MaxPool2x2)
		}
		n.beside, n.passing = append(n.beside, rest), append(n.passing, edge)
	}
	for o, name := range n.Space.Candidates(t, edge) {
		op := Operations[name]
		if op == nil { // none: 0, with gradient 0
			continue
		}
		y := op(l.In(name), x, stride, true)
		if y.H != n.out.H || y.W != n.out.W || y.C != x.C {
			l.In(name).fail("at stride %d it must make %d×%d×%d of %d×%d×%d, got %d×%d×%d",
				stride, n.out.H, n.out.W, x.C, x.H, x.W, x.C, y.H, y.W, y.C)
		}
		n.terms, n.operations = append(n.terms, y), append(n.operations, edge*n.Space.Options()+o)
	}
}

// apart are the first 1/k of the channels, and the rest.
func (l Layers) apart(x Map, k int) (first, rest Map) {
	first, rest = x, x
	first.C = x.C / k
	rest.C = x.C - first.C
	first = l.once("first channels", x, first, k, func(x *Node) *Node { return strided(x, cut{3, 0, 1, first.C}) })
	rest = l.once("other channels", x, rest, k, func(x *Node) *Node { return strided(x, cut{3, first.C, 1, rest.C}) })
	return first, rest
}

func (n *mixedNode) sum(l Layers) Map {
	out := n.out
	if l.planning() {
		return out
	}
	out.C /= n.Partial
	y := l.mixed(out, n.terms, n.weights.operations, n.operations)
	if n.Partial > 1 {
		out.C = n.out.C - out.C
		rest := l.mixed(out, n.beside, n.weights.edges, n.passing)
		y = Shuffled(beside(y, rest), n.Partial)
	}
	n.out.node = y
	return n.out
}

// mixed is the mixed sum of maps with some weights of a row; 0 of the size out without maps.
func (l Layers) mixed(out Map, maps []Map, weights *Node, places []int) *Node {
	if len(maps) == 0 {
		images := l.walk.pass.Images
		return Zeros(images.Graph(), shapes.Make(images.DType(), images.Shape().Dim(0), out.H, out.W, out.C))
	}
	weights = picked(weights, places)
	if weights.Shape().Dim(0) == 1 {
		return l.weighted(maps, weights)
	}
	for i, m := range maps { // every example has its own
		maps[i] = l.plain(m)
	}
	return MixedSum(nodesOf(maps), weights)
}
