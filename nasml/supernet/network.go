package supernet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/simplex"
)

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
