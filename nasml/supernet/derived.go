package supernet

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
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
