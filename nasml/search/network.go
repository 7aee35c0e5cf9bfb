package search

import (
	"math/rand/v2"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// Network is what a search drives: a function of images to which the weights,
// the running statistics and the architecture are given.
type Network interface {
	Weights() []supernet.Weight    // trained, in the order in which Evaluate takes them
	Stats() []supernet.Weight      // running means and variances, likewise
	Architecture() simplex.Product // the blocks of θ, one tensor each

	InitWeights(rng *rand.Rand) []*tensors.Tensor // as a search starts with them, float32
	InitStats() []*tensors.Tensor

	// Evaluate returns the logits [B, classes] and the running statistics after
	// the batch. It is a graph function: it panics where shapes do not fit.
	Evaluate(e Evaluation) (logits *Node, stats []*Node)
}

// Evaluation is what a network is evaluated on.
type Evaluation struct {
	Images  *Node   // [B, H, W, 3], normalised
	Theta   []*Node // weights of the operations, a matrix for each block, or one for each example, [B, rows, options]
	Chosen  []*Node // nil, or 0/1 matrices like Theta: what a pass has sampled, see supernet.Net.Forward
	Weights []*Node
	Stats   []*Node
	Train   bool // batch norm normalises by the batch and moves the running statistics
}

// Cells is the supernet of NAS-Bench-201 as a Network, with one block: all its
// cells have one architecture.
func Cells(net *supernet.Net) Network { return cells{net} }

type cells struct{ *supernet.Net }

func (c cells) Architecture() simplex.Product {
	s := c.Config.Space
	return simplex.Product{{Name: "operations", Rows: len(s.Edges), Options: len(s.Ops)}}
}

func (c cells) Evaluate(e Evaluation) (logits *Node, stats []*Node) {
	in := supernet.Input{Images: e.Images, Theta: e.Theta[0], Weights: e.Weights, Stats: e.Stats, Train: e.Train}
	if e.Chosen != nil {
		in.Chosen = e.Chosen[0]
	}
	return c.Forward(in)
}
