package supernet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/simplex"
)

// The macro skeleton of NAS-Bench-201 (Dong & Yang 2020, Figure 1): a 3×3 convolution, three stages of N cells with C,
// 2C and 4C channels with residual blocks of stride 2 between them, then BN, ReLU, global mean, linear classifier.
const stages = 3

// Config describes a network. Its zero values are NAS-Bench-201's search cells as GAEA's authors ran them: 16 channels,
// 5 cells a stage, 32×32 images, 10 classes, convolutions without bias, BN in cells without scale and shift, batch
// statistics only.
type Config struct {
	Space      Space // nil edges: NASBench201
	Channels   int   // C of the first stage; 0: 16
	Cells      int   // N per stage; 0: 5
	Image      int   // height and width in pixels, a multiple of 4; 0: 32
	Classes    int   // 0: 10
	Affine     bool  // BN in cells has scale and shift; stem, reductions and last always have
	ConvBias   bool  // convolutions in cells have a bias
	TrackStats bool  // BN keeps running statistics and evaluates by them ("BN=1")

	// TrackOutside is TrackStats of the stem, the residual blocks and the last BN only; cells evaluate by the batch.
	// This is "BN=0" in AutoDL-Projects (D-X-Y/AutoDL-Projects@f46486e, search_model_random.py:23,35,57).
	TrackOutside bool
}

func (c Config) withDefaults() Config {
	if c.Space.Edges == nil {
		c.Space = NASBench201
	}
	c.Channels, c.Cells = cmp.Or(c.Channels, 16), cmp.Or(c.Cells, 5)
	c.Image, c.Classes = cmp.Or(c.Image, 32), cmp.Or(c.Classes, 10)
	return c
}

func (c Config) check() error {
	if c.Channels < 1 || c.Cells < 1 || c.Classes < 1 {
		return fmt.Errorf("channels %d, cells per stage %d, classes %d: all must be at least 1", c.Channels, c.Cells,
			c.Classes)
	}
	if c.TrackStats && c.TrackOutside {
		return errors.New("TrackStats and TrackOutside are both set: the first tracks all running statistics, the " +
			"second those outside of cells; set one")
	}
	if c.Image < 4 || c.Image%4 != 0 {
		return fmt.Errorf("image size %d: it must be a positive multiple of 4, because two reductions halve it",
			c.Image)
	}
	return c.Space.Check()
}

// Net is a network of mixed operations.
type Net struct {
	*CellNet
	Config   Config // with the standard values filled in
	inserted int64  // multiply-adds of an example in operations that Net does not compute by itself
}

// New is the network of a configuration. It returns an error for sizes below 1, an image size that two reductions
// cannot halve, an invalid space, and an operation that changes the size of a map.
func New(c Config) (*Net, error) {
	n := &Net{Config: c.withDefaults()}
	err := n.Config.check()
	if err == nil {
		n.CellNet, err = newCellNet(Skeleton{Image: n.Config.Image}, c.Affine, n.run)
	}
	if err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n.product, n.samples = n.Config.Space.Product(), true
	return n, nil
}

// MultiplyAdds are those of the inserted operations for an image.
func (n *Net) MultiplyAdds() int64 { return n.inserted }

// run computes the logits. A mixed operation is Σₒ θₒ·opₒ(x). With [Pass].Chosen it is GDAS's sampled one,
//
//	Σₒ cₒ·θₒ·opₒ(x) + (1−cₒ)·θₒ ,
//
// where the θₒ of an operation that is not chosen is a scalar added to every element of the map, so that its gradient
// is the sum of the upstream one; the running statistics of such an operation do not move. With a one-hot θ = Chosen it
// is the discrete network.
func (n *Net) run(l Layers) Outcome {
	c := n.Config
	l.untracked = !c.TrackStats && !c.TrackOutside
	x := Map{H: c.Image, W: c.Image, C: 3, node: l.walk.pass.Images}
	x = l.In("stem/bn").bn(l.In("stem").Conv("conv", x, 3, 1, c.Channels), true, momentum)
	sampled, cell := c.sampled(l), 0
	for stage := range stages {
		if stage > 0 {
			x = l.In(fmt.Sprintf("cells/%d", cell)).reduction(x)
			cell++
		}
		for range c.Cells {
			x = n.cell(l.In(fmt.Sprintf("cells/%d", cell)), sampled, l.plain(x))
			cell++
		}
	}
	return Outcome{Logits: l.In("classifier").classify(l.ReLU(l.In("last/bn").bn(x, true, momentum)), c.Classes)}
}

// reduction is the residual block of stride 2 between two stages, with twice the channels:
// BN(conv(ReLU(BN(conv(ReLU(x)))))) + conv1×1(mean2×2(x)).
func (l Layers) reduction(x Map) Map {
	b := l.In("conv_a/bn").bn(l.Conv("conv_a", l.ReLU(x), 3, 2, 2*x.C), true, momentum)
	b.rectified = true
	b = l.In("conv_b/bn").bn(b.dense([]Layers{l}, "conv_b", 3, 2*x.C)[0], true, momentum)
	half := l.once("halved", x, Map{H: x.H / 2, W: x.W / 2, C: x.C}, 2, halved)
	return l.add([]Map{b, l.Conv("downsample", half, 1, 1, 2*x.C)})
}

// cell is a search cell: it plans weights by edge, then operation; in a graph it goes node by node. Only convolutions
// write the map of a single operation.
func (n *Net) cell(l Layers, m sampled, x Map) Map {
	l.untracked = !n.Config.TrackStats
	s := n.Config.Space
	if l.planning() {
		for _, edge := range s.Edges {
			for o := range s.Ops {
				n.candidate(l, m, edge, o, x)
			}
		}
		return x
	}
	maps, entries := make([][]Map, s.Nodes), make([][]int, s.Nodes) // that arrive at a node, and by which weights
	for i := range s.Nodes {
		if i > 0 {
			x = Map{H: x.H, W: x.W, C: x.C, node: l.mixed(x, maps[i], m.factors.entries, entries[i])}
			if shift := m.shift(s, i, x); shift != nil {
				x.node = Add(x.node, spread(shift, x.node.Shape()))
			}
		}
		for o := range s.Ops {
			for e, edge := range s.Edges {
				if edge.From != i {
					continue
				}
				if y, ok := n.candidate(l, m, edge, o, x); ok {
					maps[edge.To], entries[edge.To] = append(maps[edge.To], y), append(entries[edge.To], e*len(s.Ops)+o)
				}
			}
		}
	}
	return x
}

// candidate is an operation on an edge, false if it is none, which is 0 with gradient 0.
func (n *Net) candidate(l Layers, m sampled, edge Edge, o int, x Map) (Map, bool) {
	s := n.Config.Space
	name := s.Ops[o]
	if m.chosen != nil {
		entry := slices.Index(s.Edges, edge)*len(s.Ops) + o
		l.chosen = func(x *Node) *Node { return m.chosen.row(x, entry) }
	}
	l = l.In(edge.String()).In(name)
	op, own := inserted(name)
	switch of := operations[name]; {
	case own:
		before := l.walk.multiplyAdds
		y := op(l, x, 1, true)
		if y.H != x.H || y.W != x.W || y.C != x.C {
			l.fail("makes a map of %d×%d pixels and %d channels of one of %d×%d and %d at stride 1; it must keep "+
				"the size", y.H, y.W, y.C, x.H, x.W, x.C)
		}
		if l.planning() {
			n.inserted += l.walk.multiplyAdds - before
		}
		return l.plain(y), true
	case of.kernel > 0:
		return n.convolved(l, x, of.kernel), true
	case of.pool:
		return l.AvgPool(x, 1), true
	default:
		return x, of.skip
	}
}

// convolved is ReLU, a convolution and BN.
func (n *Net) convolved(l Layers, x Map, k int) Map {
	c := x.C
	x.rectified = true
	y := x.dense([]Layers{l}, "conv", k, c)[0]
	if n.Config.ConvBias {
		bias := l.weight(Weight{"conv_bias", []int{c}, k * k * c, InitUniform})
		if !l.planning() {
			y.node = Add(y.node, spread(ExpandAxes(bias, 0), y.node.Shape()))
		}
	}
	return l.BN("bn", y)
}

// Network is what a search or a training drives: a function of images, given weights, running statistics and
// architecture. A network of one architecture has an empty Architecture.
type Network interface {
	Weights() []Weight             // trained, in the order in which Evaluate takes them
	Stats() []Weight               // running means and variances, in the order of Pass.Stats
	Architecture() simplex.Product // operation weights, and those of edges, as matrices of simplices
	Evaluate(p Pass) Outcome       // a graph function: panics if shapes do not fit

	InitWeights(rng *rand.Rand) []*tensors.Tensor // float32, as PyTorch draws them by default
	InitStats() []*tensors.Tensor                 // means 0, variances 1
}

// Pass is what a network is evaluated on. All floats have one type.
type Pass struct {
	Images  *Node   // [B, H, W, 3], normalised
	Theta   []*Node // a point of Architecture, one matrix a block
	Chosen  []*Node // nil, or 0/1 matrices as Theta, where a method samples: see Net
	Weights []*Node // as Network.Weights
	Stats   []*Node // as Network.Stats
	Train   bool    // BN normalises by the batch and moves the statistics, else by the statistics

	// Drop holds the drop path of a training pass, nil for none: [B, n] for the n drop places of a CellNet, 0 if the
	// example loses the path, else 1/(1−p).
	Drop *Node
}

// Outcome is what a pass gives.
type Outcome struct {
	Logits    *Node   // [B, classes]
	Auxiliary *Node   // logits of the auxiliary head, nil where the pass has none
	Stats     []*Node // running statistics after the batch
}

var (
	_ Network = (*Net)(nil)
	_ Network = (*CellNet)(nil)
)

// Init says how a weight begins.
type Init int

// PyTorch's defaults.
const (
	InitUniform Init = iota // U(−1/√fan_in, 1/√fan_in): convolutions, the linear layer, their biases
	InitOnes                // scale of BN, running variance
	InitZeros               // shift of BN, running mean
)

// Weight describes one weight, or one running statistic, of a network.
type Weight struct {
	Path  string // "cells/0/1<-0/nor_conv_3x3/conv"
	Dims  []int  // convolutions [height, width, in, out], the classifier [in, classes]
	FanIn int    // inputs of one output: height·width·in
	Init  Init
}

func (w Weight) tensor(rng *rand.Rand) *tensors.Tensor {
	bound := 1 / math.Sqrt(float64(w.FanIn))
	flat := make([]float32, size(w.Dims))
	for i := range flat {
		switch w.Init {
		case InitUniform:
			flat[i] = float32(bound * (2*rng.Float64() - 1))
		case InitOnes:
			flat[i] = 1
		case InitZeros:
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, w.Dims...)
}

func mustFit(what string, got []*Node, want []Weight) {
	if len(got) != len(want) {
		panic(fmt.Errorf("supernet: got %d %s, the network has %d", len(got), what, len(want)))
	}
	for i, w := range want {
		mustBe(w.Path, got[i], w.Dims...)
	}
}

func mustBe(what string, x *Node, dims ...int) {
	if !slices.Equal(x.Shape().Dimensions, dims) {
		panic(fmt.Errorf("supernet: %s must have shape %v, got %s", what, dims, x.Shape()))
	}
}

// BN's constants, PyTorch's defaults.
const (
	epsilon  = 1e-5
	momentum = 0.1 // the weight of the new value in a running statistic
)

// mustVary panics if BN would divide 0 by 0.
func mustVary(path string, z *Node) {
	if z.Shape().Size() == z.Shape().Dim(-1) {
		panic(fmt.Errorf("supernet: %s normalises shape %s, one value a channel: take more examples or larger images",
			path, z.Shape()))
	}
}

// Score is the number of examples whose largest logit (the first of equals) is right, int32, and the mean cross
// entropy, −log softmax of the label's logit. logits are [B, classes], labels [B] integers.
func Score(logits, labels *Node) (correct, loss *Node) {
	logp := LogSoftmax(logits)
	hot := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	loss = Neg(ReduceAllMean(ReduceSum(Mul(hot, logp), -1)))
	correct = ReduceAllSum(ConvertDType(Equal(ArgMax(logits, -1, labels.DType()), labels), labels.DType()))
	return correct, loss
}

// check panics if a pass does not fit the network.
func (n *CellNet) check(p Pass) {
	batch := p.Images.Shape().Dim(0)
	mustBe("the images", p.Images, batch, n.skeleton.Image, n.skeleton.Image, 3)
	blocks := n.Architecture()
	if len(p.Theta) != len(blocks) || len(p.Chosen) > 0 && (len(p.Chosen) != len(blocks) || !n.samples) {
		panic(fmt.Errorf("supernet: got %d matrices of θ, %d of chosen operations; the network has %d, samples: %v",
			len(p.Theta), len(p.Chosen), len(blocks), n.samples))
	}
	for i, b := range blocks {
		if x := p.Theta[i]; x.Rank() == 3 {
			mustBe("θ, "+b.Name, x, batch, b.Rows, b.Options)
		} else {
			mustBe("θ, "+b.Name, x, b.Rows, b.Options)
		}
	}
	for i, x := range p.Chosen {
		mustBe("the chosen operations", x, blocks[i].Rows, blocks[i].Options)
	}
	mustFit("weights", p.Weights, n.plan.weights)
	mustFit("running statistics", p.Stats, n.plan.stats)
	if p.Drop != nil {
		mustBe("drop path", p.Drop, batch, n.plan.dropped)
	}
}

// Evaluate computes the network; see Network.
func (n *CellNet) Evaluate(p Pass) Outcome {
	n.check(p)
	w := n.walk(p)
	o := n.run(Layers{walk: w})
	o.Stats = w.mixed()
	return o
}

// walk is a pass at its start.
func (n *CellNet) walk(p Pass) *walk {
	return &walk{
		affine: n.plan.affine, net: n, pass: p, next: slices.Clone(p.Stats), batches: map[float64][]runningBatch{},
		memo: map[memory]*Node{}, normal: map[*Node]batchNorm{},
	}
}

// operation is a candidate operation as data.
type operation struct {
	kernel int  // of a ReLU–convolution–BN, else 0
	skip   bool // identity
	pool   bool // 3×3 mean
}

// operations are those of NAS-Bench-201 by name, computed together for all edges that leave a node. All others are in
// Operations.
var operations = map[string]operation{
	"none":         {},
	"skip_connect": {skip: true},
	"nor_conv_1x1": {kernel: 1},
	"nor_conv_3x3": {kernel: 3},
	"avg_pool_3x3": {pool: true},
}

// inserted finds an operation that Net does not compute by itself: a reader's, or one of DARTS'.
func inserted(name string) (Operation, bool) {
	op := Operations[name]
	if _, ours := operations[name]; ours && own.Same(op, shippedOperations[name]) {
		return nil, false
	}
	return op, op != nil
}

// sampled are the weights of operations in a pass.
type sampled struct {
	factors *table // θ, or chosen·θ
	scalars *table // (1−chosen)·θ; nil without Chosen
	chosen  *table // nil without Chosen
}

func (c Config) sampled(l Layers) (m sampled) {
	if l.planning() {
		return m
	}
	entries, in := len(c.Space.Edges)*len(c.Space.Ops), l.walk.pass
	theta := Reshape(in.Theta[0], -1, entries)
	if len(in.Chosen) == 0 {
		return sampled{factors: &table{entries: theta}}
	}
	row := Reshape(in.Chosen[0], 1, entries)
	chosen := BroadcastToShape(row, theta.Shape())
	return sampled{
		chosen: &table{entries: row}, factors: &table{entries: Mul(chosen, theta)},
		scalars: &table{entries: Mul(OneMinus(chosen), theta)},
	}
}

// table is a number for each operation on each edge, [1, |E|·|O|], or [B, |E|·|O|] for one table an example.
type table struct {
	entries *Node
	rows    map[int][]*Node // by the number of channels
}

// row is entry i, once for each channel of x: [1, C] or [B, C].
func (t *table) row(x *Node, i int) *Node {
	c := x.Shape().Dim(-1)
	if t.rows[c] == nil {
		r, n := t.entries.Shape().Dim(0), t.entries.Shape().Dim(1)
		ones := Ones(x.Graph(), shapes.Make(x.DType(), 1, c))
		wide := Dot(Reshape(t.entries, r*n, 1), ones).Product()
		if t.rows == nil {
			t.rows = map[int][]*Node{}
		}
		t.rows[c] = split(Reshape(wide, r, n*c), n)
	}
	return t.rows[c][i]
}

// shift is the sum of the scalars of the operations into a node that are not chosen, [1, C] or [B, C]; nil if none is
// sampled.
func (m sampled) shift(s Space, node int, x Map) (shift *Node) {
	if m.scalars == nil {
		return nil
	}
	for e, edge := range s.Edges {
		for o := range s.Ops {
			if edge.To != node {
				continue
			}
			if row := m.scalars.row(x.node, e*len(s.Ops)+o); shift == nil {
				shift = row
			} else {
				shift = Add(shift, row)
			}
		}
	}
	return shift
}
