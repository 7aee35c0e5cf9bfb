package supernet

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// This file puts operations of Operations onto the edges of a cell of
// NAS-Bench-201's kind, besides the five that Net computes together.

// insertion is an operation on an edge of a cell: its own small network, with the
// places of its weights and statistics in the whole one.
type insertion struct {
	*CellNet
	weights, stats int // of its first
}

// inserted finds the operation of a name that Net does not compute by itself: what a
// reader added, or put in the place of a shipped one, and those of DARTS.
func inserted(name string) (Operation, bool) {
	op := Operations[name]
	if _, ours := operations[name]; ours && own.Same(op, shippedOperations[name]) {
		return nil, false
	}
	return op, op != nil
}

// insert plans an operation at stride 1 on a map. It returns an error if it does not
// make a map of the same size.
func insert(name string, x Map, affine bool) (*CellNet, error) {
	op, _ := inserted(name)
	n := &CellNet{plan: &walk{affine: affine, index: map[string]int{}}}
	n.run = func(l Layers) Outcome {
		x.node = l.walk.pass.Images
		y := op(l.In(name), x, 1, true)
		if y.H != x.H || y.W != x.W || y.C != x.C {
			l.In(name).fail("makes a map of %d×%d pixels and %d channels of one of %d×%d and %d at stride 1: want "+
				"the same size", y.H, y.W, y.C, x.H, x.W, x.C)
		}
		return Outcome{Logits: l.plain(y).node}
	}
	n.run(Layers{walk: n.plan})
	return n, n.plan.err
}

// insert adds an operation's weights and statistics to those of the network.
func (n *Net) insert(cell int, edge Edge, op string, channels int) error {
	side := n.Config.Image * n.Config.Channels / channels
	part, err := insert(op, Map{H: side, W: side, C: channels}, n.Config.Affine)
	if err != nil {
		return err
	}
	path := opPath(cell, edge, op)
	n.inserted[path] = insertion{part, len(n.weights), len(n.stats)}
	edgePath := fmt.Sprintf("cells/%d/%s/", cell, edge)
	for _, w := range part.plan.weights {
		w.Path = edgePath + w.Path
		n.add(w)
	}
	for _, s := range part.plan.stats {
		if s.Path = edgePath + s.Path; n.Config.TrackStats {
			n.addStat(s)
		}
	}
	return nil
}

// MultiplyAdds are those of the inserted operations for an image.
func (n *Net) MultiplyAdds() int64 {
	var sum int64
	for _, part := range n.inserted {
		sum += part.plan.multiplyAdds
	}
	return sum
}

// insertion computes an inserted operation. Statistics of one that is not chosen stay.
func (f *pass) insertion(path string, entry int, x *Node) *Node {
	part := f.net.inserted[path]
	p := Pass{Images: x, Weights: f.in.Weights[part.weights:][:len(part.plan.weights)], Train: f.in.Train}
	track := f.net.Config.TrackStats
	if track {
		p.Stats = f.in.Stats[part.stats:][:len(part.plan.stats)]
	} else { // normalised by the batch, always
		p.Train = true
		for _, s := range part.plan.stats {
			p.Stats = append(p.Stats, Zeros(x.Graph(), shapes.Make(x.DType(), s.Dims...)))
		}
	}
	w := part.walk(p)
	y := part.run(Layers{walk: w}).Logits
	if track && f.in.Train {
		for i, next := range w.mixed() {
			f.stats[part.stats+i] = f.ifChosen(entry, next, p.Stats[i])
		}
	}
	return y
}

// ifChosen is next where an operation is chosen, or none is sampled, else old.
func (f *pass) ifChosen(entry int, next, old *Node) *Node {
	if f.chosen == nil {
		return next
	}
	c := StopGradient(f.chosen.row(ExpandAxes(next, 0), entry))
	c = Reshape(c, next.Shape().Dimensions...)
	return Add(Mul(c, next), Mul(OneMinus(c), old))
}
