package supernet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
)

// The macro skeleton of NAS-Bench-201 (Dong & Yang 2020, Figure 1): a 3×3
// convolution, three stages of N cells with C, 2C and 4C channels, between them
// a residual block of stride 2, then BN, ReLU, global mean, linear classifier.
const stages = 3

// Config is what a network is made of. Its zero values are NAS-Bench-201's
// search cells as GAEA's authors ran them: 16 channels, 5 cells a stage, 32×32
// images, 10 classes, convolutions without bias, BN in cells without scale and
// shift, batch statistics only.
type Config struct {
	Space      Space // nil edges: NASBench201
	Channels   int   // C of the first stage; 0: 16
	Cells      int   // N per stage; 0: 5
	Image      int   // height and width in pixels, a multiple of 4; 0: 32
	Classes    int   // 0: 10
	Affine     bool  // BN in cells has scale and shift; stem, reductions and last always have
	ConvBias   bool  // convolutions in cells have a bias
	TrackStats bool  // BN keeps running statistics and evaluates by them ("BN=1")

	// TrackOutside is TrackStats of the stem, the residual blocks and the last BN
	// only: cells evaluate by the batch. That is what "BN=0" means in AutoDL-Projects
	// (D-X-Y/AutoDL-Projects@f46486e, search_model_random.py:23,35,57).
	TrackOutside bool
}

func (c Config) withDefaults() Config {
	if c.Space.Edges == nil {
		c.Space = NASBench201
	}
	for value, standard := range map[*int]int{&c.Channels: 16, &c.Cells: 5, &c.Image: 32, &c.Classes: 10} {
		if *value == 0 {
			*value = standard
		}
	}
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

// Net is a network of mixed operations; its weights are given to Forward.
type Net struct {
	Config  Config // with the standard values filled in
	weights []Weight
	stats   []Weight
	index   map[string]int // of a path in weights, or in stats

	inserted map[string]insertion // by path: operations that are not computed together with others
}

// New is the network of a configuration. It returns an error for sizes below 1,
// an image size that two reductions cannot halve, a space that is no cell, and an
// operation that changes the size of a map.
func New(c Config) (*Net, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("supernet: %w", err)
	}
	n := &Net{Config: c, index: map[string]int{}, inserted: map[string]insertion{}}
	n.conv("stem/conv", 3, 3, c.Channels)
	n.bn("stem/bn", c.Channels)
	width, cell := c.Channels, 0
	for stage := range stages {
		if stage > 0 {
			n.reduction(cell, width)
			width, cell = 2*width, cell+1
		}
		for range c.Cells {
			if err := n.cell(cell, width); err != nil {
				return nil, fmt.Errorf("supernet: %w", err)
			}
			cell++
		}
	}
	n.bn("last/bn", width)
	n.add(Weight{"classifier/weight", []int{width, c.Classes}, width, InitUniform})
	n.add(Weight{"classifier/bias", []int{c.Classes}, width, InitUniform})
	return n, nil
}

// Weights are all trained weights in the order in which Forward takes them:
// from the images to the logits, in cells by edge, then operation.
func (n *Net) Weights() []Weight { return n.weights }

// Stats are BN's running means and variances in the order in which Forward
// takes and returns them; empty if they are not tracked.
func (n *Net) Stats() []Weight { return n.stats }

// InitWeights draws float32 weights as PyTorch does by default.
func (n *Net) InitWeights(rng *rand.Rand) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(n.weights))
	for i, w := range n.weights {
		out[i] = w.tensor(rng)
	}
	return out
}

// InitStats are means 0 and variances 1.
func (n *Net) InitStats() []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(n.stats))
	for i, w := range n.stats {
		out[i] = w.tensor(nil)
	}
	return out
}

func (w Weight) tensor(rng *rand.Rand) *tensors.Tensor {
	size := 1
	for _, d := range w.Dims {
		size *= d
	}
	bound := 1 / math.Sqrt(float64(w.FanIn))
	flat := make([]float32, size)
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

func (n *Net) add(w Weight) {
	n.index[w.Path] = len(n.weights)
	n.weights = append(n.weights, w)
}

func (n *Net) addStat(w Weight) {
	n.index[w.Path] = len(n.stats)
	n.stats = append(n.stats, w)
}

func (n *Net) conv(path string, k, in, out int) {
	n.add(Weight{path, []int{k, k, in, out}, k * k * in, InitUniform})
}

// bn adds the weights of a BN outside of cells.
func (n *Net) bn(path string, channels int) {
	n.normal(path, channels, true, n.Config.TrackStats || n.Config.TrackOutside)
}

func (n *Net) normal(path string, channels int, affine, track bool) {
	if affine {
		n.add(Weight{path + "/scale", []int{channels}, 0, InitOnes})
		n.add(Weight{path + "/bias", []int{channels}, 0, InitZeros})
	}
	if track {
		n.addStat(Weight{path + "/mean", []int{channels}, 0, InitZeros})
		n.addStat(Weight{path + "/variance", []int{channels}, 0, InitOnes})
	}
}

// cell adds the weights of one search cell.
func (n *Net) cell(cell, channels int) error {
	for _, edge := range n.Config.Space.Edges {
		for _, op := range n.Config.Space.Ops {
			if _, own := inserted(op); own {
				if err := n.insert(cell, edge, op, channels); err != nil {
					return err
				}
				continue
			}
			k := operations[op].kernel
			if k == 0 {
				continue
			}
			path := opPath(cell, edge, op)
			n.conv(path+"/conv", k, channels, channels)
			if n.Config.ConvBias {
				n.add(Weight{path + "/conv_bias", []int{channels}, k * k * channels, InitUniform})
			}
			n.normal(path+"/bn", channels, n.Config.Affine, n.Config.TrackStats)
		}
	}
	return nil
}

func opPath(cell int, edge Edge, op string) string {
	return fmt.Sprintf("cells/%d/%s/%s", cell, edge, op)
}

// reduction adds the weights of the residual block from channels to 2·channels.
func (n *Net) reduction(cell, channels int) {
	path := fmt.Sprintf("cells/%d/", cell)
	n.conv(path+"conv_a", 3, channels, 2*channels)
	n.bn(path+"conv_a/bn", 2*channels)
	n.conv(path+"conv_b", 3, 2*channels, 2*channels)
	n.bn(path+"conv_b/bn", 2*channels)
	n.conv(path+"downsample", 1, channels, 2*channels)
}
