package supernet

import (
	"fmt"
	"math/rand/v2"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/simplex"
)

// Network is what a search or a training drives: a function of images whose
// weights, running statistics and architecture are given to it. A network of
// one architecture has an empty one.
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
	Chosen  []*Node // nil, or 0/1 matrices as Theta, where a method samples: see Net.Forward
	Weights []*Node // as Network.Weights
	Stats   []*Node // as Network.Stats
	Train   bool    // BN normalises by the batch and moves the statistics, else by the statistics

	// Drop holds the drop path of a training pass, nil for none: [B, n] for the
	// n drop places of a CellNet, 0 where the example loses the path, else
	// 1/(1−p).
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

// Architecture is the one block of operation weights.
func (n *Net) Architecture() simplex.Product { return n.Config.Space.Product() }

// Evaluate is Forward as a Network does it.
func (n *Net) Evaluate(p Pass) Outcome {
	if len(p.Theta) != 1 || len(p.Chosen) > 1 || p.Drop != nil {
		panic(fmt.Errorf("supernet: got %d matrices of θ, %d of chosen operations, drop path %v; "+
			"NAS-Bench-201 has one and no drop path", len(p.Theta), len(p.Chosen), p.Drop != nil))
	}
	in := Input{Images: p.Images, Theta: p.Theta[0], Weights: p.Weights, Stats: p.Stats, Train: p.Train}
	if len(p.Chosen) == 1 {
		in.Chosen = p.Chosen[0]
	}
	logits, stats := n.Forward(in)
	return Outcome{Logits: logits, Stats: stats}
}
