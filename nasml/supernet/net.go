package supernet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
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

// run computes the logits. A mixed operation is Σₒ θₒ·opₒ(x). With [Pass].Chosen it is
// GDAS's sampled one,
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
