package supernet

import (
	"cmp"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/simplex"
)

// OneShotConfig is a supernet of NAS-Bench-1Shot1 (Zela+ 2020, Section 3.2). Its zero values are GAEA's search on the
// first space: 9 cells, 16 channels in the first third of them.
type OneShotConfig struct {
	Skeleton         // Cells: 0 is 9; Stem is this network's own
	Space    OneShot // no operations: OneShot1

	// AddInput distinguishes two supernets. A cell also projects its input to its output: with AddInput, to the width
	// of all nodes together, and adds it to them, as the benchmark's authors do since their issue 2
	// (automl/nasbench-1shot1@cb0f0ec); without, to the width of one node, and puts it beside them, as in the program
	// of Li+ 2021 (liamcli/nasbench-1shot1@e369bd7).
	AddInput bool

	// Partial is K of PC-DARTS: the first 1/K of the channels of a node go through the operations, the rest passes by,
	// and the channels are shuffled. 0 or 1: all of them. There are no edge weights beside those of inputs.
	Partial int
}

// OneShotNet is the network of a OneShotConfig. Its architecture has a block of operation weights, a row a node, a
// block of one row for the output, and one for each of the nodes OneShot.Choosing.
//
// Its weights are in the order of the authors' named_parameters: stem; of a cell the operations by node, then the
// projections of its input to the nodes and to the output; postprocess; classifier. Paths read
// cells/2/node_3/conv3x3-bn-relu/conv, cells/2/input_to_3/conv, cells/2/input_to_output/bn/scale.
type OneShotNet struct {
	*CellNet
	Space OneShot
}

// oneShotMomentum is the weight of the new value in a running statistic of every BN but the last: the authors kept the
// benchmark's .997, which weighs the old value in TensorFlow, in PyTorch, where it weighs the new one.
const oneShotMomentum = 0.997

// NewOneShot is the supernet of a configuration. It returns an error for sizes below 1, channels that K does not divide
// and an invalid space.
func NewOneShot(c OneShotConfig) (*OneShotNet, error) {
	c.Cells = cmp.Or(c.Cells, 9)
	c.Skeleton = c.withDefaults()
	if c.Space.Ops == nil && c.Space.Parents == nil {
		c.Space = OneShot1
	}
	c.Partial = max(c.Partial, 1)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n, err := newCellNet(c.Skeleton, true, c.run)
	if err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n.product = c.Space.Product()
	return &OneShotNet{n, c.Space}, nil
}

func (c OneShotConfig) check() error {
	return cmp.Or(c.Skeleton.check(), c.checkPartial(c.Partial), c.Space.Check())
}

// Product is the space of θ: operations [N, |O|], output [1, N+1], and the inputs of each node Choosing, [1, i].
func (s OneShot) Product() simplex.Product {
	n := len(s.Parents)
	p := simplex.Product{{Name: "operations", Rows: n, Options: len(s.Ops)}, {Name: "output", Rows: 1, Options: n + 1}}
	for _, node := range s.Choosing() {
		p = append(p, simplex.Block{Name: fmt.Sprintf("inputs of node %d", node), Rows: 1, Options: node})
	}
	return p
}

// Weights01 are the blocks of Product with 1 for the choices of an architecture and 0 for everything else, as random
// search with weight sharing evaluates it: rows of parents do not add up to 1. Discretize is its inverse by either
// rule. It returns an error if the architecture is not of the space.
func (s OneShot) Weights01(a OneShotArch) ([][][]float64, error) {
	if err := s.CheckArch(a); err != nil {
		return nil, err
	}
	row := func(n int, ones ...int) []float64 {
		w := make([]float64, n)
		for _, i := range ones {
			w[i] = 1
		}
		return w
	}
	var ops [][]float64
	for _, op := range a.Ops {
		ops = append(ops, row(len(s.Ops), op))
	}
	n := len(s.Parents)
	blocks := [][][]float64{ops, {row(n+1, a.Parents[n]...)}}
	for _, node := range s.Choosing() {
		blocks = append(blocks, [][]float64{row(node, a.Parents[node-1]...)})
	}
	return blocks, nil
}

func (c OneShotConfig) run(l Layers) Outcome {
	images := Map{H: c.Image, W: c.Image, C: 3, node: l.walk.pass.Images}
	x := images.convBNReLU([]Layers{l.In("stem")}, 3, c.Channels)[0]
	width := c.Channels
	for i := range c.Cells {
		if c.reduces(i) {
			width *= 2
			x = l.maxPool2Padded(x)
		}
		x = c.cell(l.In(fmt.Sprintf("cells/%d", i)), x, width)
	}
	post := l.In("postprocess")
	x.rectified = true
	x = post.In("bn").bn(x.dense([]Layers{post}, "conv", 1, width)[0], false, momentum)
	return Outcome{Logits: l.In("classifier").classify(x, c.Classes)}
}

// cell is a mixed cell. Node i is
//
//	sᵢ = Σₒ θᵢₒ · opₒ( Σⱼ aᵢⱼ·uⱼ ) , u₀ = projᵢ(x), uⱼ = sⱼ ,
//
// without the weights aᵢ if it does not choose; the output has the weights b of u₀ = proj(x) and of all nodes.
func (c OneShotConfig) cell(l Layers, x Map, width int) Map {
	n := len(c.Space.Parents)
	if l.planning() { // in the order of the authors' parameters
		for i := range n {
			c.node(l, i+1, Map{H: x.H, W: x.W, C: width})
		}
	}
	u := c.projections(l, x, width)
	var states []Map
	if inputs := l.walk.pass.Theta; !l.planning() {
		states = c.states(l, u, inputs[2:])
	}
	return c.output(l, u[n], states)
}

// projections are the input of a cell as every node takes it, and as the output does.
func (c OneShotConfig) projections(l Layers, x Map, width int) []Map {
	n := len(c.Space.Parents)
	var to []Layers
	for i := range n {
		to = append(to, l.In(fmt.Sprintf("input_to_%d", i+1)))
	}
	output := []Layers{l.In("input_to_output")}
	if c.AddInput {
		return append(x.convBNReLU(to, 1, width), x.convBNReLU(output, 1, n*width)...)
	}
	return x.convBNReLU(append(to, output...), 1, width)
}

// states are the nodes of a cell with the weights a of their inputs.
func (c OneShotConfig) states(l Layers, projected []Map, inputs []*Node) (states []Map) {
	for i, parents := range c.Space.Parents {
		u := append([]Map{projected[i]}, states...)
		into := u[0]
		if parents > i { // it reads all
			into = l.add(u)
		} else {
			into = Map{H: into.H, W: into.W, C: into.C, node: l.mixed(into, u, rowOf(inputs[0]), count(len(u)))}
			inputs = inputs[1:]
		}
		states = append(states, c.node(l, i+1, into))
	}
	return states
}

func nodesOf(maps []Map) []*Node {
	nodes := make([]*Node, len(maps))
	for i, m := range maps {
		nodes[i] = m.node
	}
	return nodes
}

// rowOf is a block of one row, [1, n] or [B, 1, n], as MixedSum takes weights.
func rowOf(block *Node) *Node { return Reshape(block, -1, block.Shape().Dim(-1)) }

// node is the mixed operation of a node, from 1.
func (c OneShotConfig) node(l Layers, node int, x Map) Map {
	l = l.In(fmt.Sprintf("node_%d", node))
	through, rest := x, Map{}
	if c.Partial > 1 {
		through, rest = l.apart(x, c.Partial)
	}
	var terms []Map
	for _, op := range c.Space.Ops {
		terms = append(terms, l.oneShotOp(op, through))
	}
	if l.planning() {
		return x
	}
	o := len(c.Space.Ops)
	weights := Reshape(l.walk.pass.Theta[0], -1, len(c.Space.Parents)*o)
	y := l.mixed(through, terms, weights, count(node * o)[(node-1)*o:])
	if c.Partial > 1 {
		y = Shuffled(beside(y, rest.node), c.Partial)
	}
	x.node = y
	return x
}

// oneShotOp is an operation of a node: the space's own, or one of Operations.
func (l Layers) oneShotOp(name string, x Map) Map {
	if op, ok := oneShotOps[name]; ok {
		return op(l.In(name), x)
	}
	return Operations[name](l.In(name), x, 1, true)
}

// oneShotOps are the space's own by name.
var oneShotOps = map[string]func(l Layers, x Map) Map{
	"maxpool3x3":      func(l Layers, x Map) Map { return l.MaxPool(x, 1) },
	"conv3x3-bn-relu": func(l Layers, x Map) Map { return x.convBNReLU([]Layers{l}, 3, x.C)[0] },
	"conv1x1-bn-relu": func(l Layers, x Map) Map { return x.convBNReLU([]Layers{l}, 1, x.C)[0] },
}

// output joins the input, projected, and the nodes.
func (c OneShotConfig) output(l Layers, u Map, states []Map) Map {
	out := u
	if !c.AddInput {
		out.C = (len(c.Space.Parents) + 1) * u.C
	}
	if l.planning() {
		return out
	}
	out = Map{H: out.H, W: out.W, C: out.C}
	weights := rowOf(l.walk.pass.Theta[1])
	var maps []*Node
	for i, m := range append([]Map{u}, states...) {
		maps = append(maps, l.mixed(m, []Map{m}, weights, []int{i}))
	}
	if c.AddInput {
		out.node = kept(Add(maps[0], join(maps[1:])))
	} else {
		out.node = join(maps)
	}
	return out
}

// convBNReLU are convolutions of one map, each followed by BN with scale and shift and ReLU.
func (x Map) convBNReLU(to []Layers, k, out int) (all []Map) {
	if len(to) > 1 && to[0].planning() { // the weights of one stand together
		for i := range to {
			all = append(all, x.convBNReLU(to[i:i+1], k, out)...)
		}
		return all
	}
	all = x.dense(to, "conv", k, out)
	for i, l := range to {
		all[i] = l.In("bn").bn(all[i], true, oneShotMomentum)
		all[i].rectified = true
	}
	return all
}

// maxPool2Padded is the largest of 2×2 pixels at a stride of 2, with one row and column of padding at every side: 32
// pixels become 17, and these 9.
func (l Layers) maxPool2Padded(x Map) Map {
	out := Map{H: x.H/2 + 1, W: x.W/2 + 1, C: x.C}
	return l.once("padded max2", x, out, 2, func(x *Node) *Node {
		for _, axis := range []int{2, 1} {
			n := x.Shape().Dim(axis)
			at := func(offset int) *Node {
				y := strided(x, cut{axis, offset, 2, n/2 + 1})
				return Where(insideAxis(y, axis, offset, 2, n), y, BroadcastToShape(lowest(x), y.Shape()))
			}
			x = larger(at(-1), at(0))
		}
		return x
	})
}
