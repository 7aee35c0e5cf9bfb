package simplex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Space is one part of a product domain: a closed convex set with a mirror map
// φ that is 1-strongly convex with respect to Norm (Li+ 2021, Appendix B).
type Space interface {
	// Step moves x, in place, to arg min_u η⟨grad, u⟩ + D_φ(u‖x).
	Step(x, grad []float64, eta float64)
	// Divergence is D_φ(u‖x), +∞ where it is not defined.
	Divergence(u, x []float64) float64
	// Norm is the norm that D_φ(u‖x) ≥ ½ Norm(u−x)² holds in.
	Norm(x []float64) float64
	// DualNorm is its dual: ⟨g, x⟩ ≤ DualNorm(g)·Norm(x).
	DualNorm(g []float64) float64
}

// flat is what spaces with φ = ½‖·‖₂² have in common.
type flat struct{}

// Divergence is ½‖u−x‖₂².
func (flat) Divergence(u, x []float64) float64 {
	var sum float64
	for i := range u {
		sum += (u[i] - x[i]) * (u[i] - x[i])
	}
	return sum / 2
}

// Norm is ‖x‖₂.
func (flat) Norm(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// DualNorm is ‖g‖₂.
func (f flat) DualNorm(g []float64) float64 { return f.Norm(g) }

// Euclidean is ℝᵏ with φ = ½‖·‖₂²: its step is that of gradient descent (Li+ 2021, eq. 4).
type Euclidean struct{ flat }

// Step is x − η·grad.
func (Euclidean) Step(x, grad []float64, eta float64) {
	for i := range x {
		x[i] -= eta * grad[i]
	}
}

// Box is [Lo, Hi]ᵏ with φ = ½‖·‖₂².
type Box struct {
	Lo, Hi float64
	flat
}

// Step is x − η·grad, cut off at the box.
func (b Box) Step(x, grad []float64, eta float64) {
	for i := range x {
		x[i] = math.Max(b.Lo, math.Min(b.Hi, x[i]-eta*grad[i]))
	}
}

// Entropic is one simplex with φ(θ) = Σ θ log θ: its step is the exponentiated gradient (Li+ 2021, eq. 5). φ is
// 1-strongly convex in ‖·‖₁, by Pinsker's inequality; the dual is ‖·‖_∞.
type Entropic struct{}

// Step is θ ⊙ exp(−η grad), normalised. As in [EG] a weight of 0 stays 0 and a
// positive one positive, at least the smallest normal number.
func (Entropic) Step(theta, grad []float64, eta float64) {
	least := math.Inf(1)
	for o, x := range theta {
		if x > 0 && grad[o] < least {
			least = grad[o]
		}
	}
	total := 0.0
	for o, x := range theta {
		if x == 0 { // whatever its gradient, also where that is infinite
			continue
		}
		theta[o] = x * math.Exp(-eta*(grad[o]-least))
		total += theta[o]
		if theta[o] == 0 {
			theta[o] = 0x1p-1022
		}
	}
	for o := range theta {
		if theta[o] != 0 {
			theta[o] = max(theta[o]/total, 0x1p-1022)
		}
	}
}

// Divergence is Σ u log(u/x) − u + x.
func (Entropic) Divergence(u, x []float64) float64 {
	return BregmanOf([][]float64{u}, [][]float64{x})
}

// Norm is ‖x‖₁.
func (Entropic) Norm(x []float64) float64 { return Norm([][]float64{x}) }

// DualNorm is ‖g‖_∞.
func (Entropic) DualNorm(g []float64) float64 { return largest(g) }

// FlatSimplex is one simplex with φ = ½‖·‖₂²: its step is that of projected gradient descent.
type FlatSimplex struct{ flat }

// Step is the Euclidean projection of θ − η·grad.
func (FlatSimplex) Step(theta, grad []float64, eta float64) {
	for o := range theta {
		theta[o] -= eta * grad[o]
	}
	project(theta)
}

// project moves y, in place, to the nearest point of the simplex,
//
//	max(y − τ, 0)   with τ such that it sums to 1,
//
// by Michelot's algorithm: the support of the result lies in that of each trial τ, so that options are only ever
// dropped. A NaN makes all of y NaN; y must not be empty.
func project(y []float64) {
	most := math.Inf(-1)
	for _, v := range y {
		most = math.Max(most, v)
	}
	// What lies 1 or more below the maximum is out; with the maximum at 0 no sum loses the 1.
	tau, kept := -1.0, 0
	for {
		sum, count := 0.0, 0
		for _, v := range y {
			if v-most > tau {
				sum += v - most
				count++
			}
		}
		if count == 0 || kept > 0 && count >= kept { // more by rounding alone
			break
		}
		kept, tau = count, (sum-1)/float64(count)
	}
	for o, v := range y {
		y[o] = math.Max(v-most-tau, 0)
	}
}

// ProductNorm is (Σᵢ ‖xᵢ‖ᵢ²)^½, the norm that Σᵢ φᵢ is 1-strongly convex in (Li+ 2021, Appendix B.2, Claim 1).
func ProductNorm(spaces []Space, x [][]float64) float64 {
	return rootOfSquares(spaces, x, Space.Norm)
}

func rootOfSquares(spaces []Space, x [][]float64, norm func(Space, []float64) float64) float64 {
	var square float64
	for i, s := range spaces {
		n := norm(s, x[i])
		square += n * n
	}
	return math.Sqrt(square)
}

// ProductDualNorm is (Σᵢ ‖gᵢ‖²_{i,*})^½, the dual of [ProductNorm] (Claim 2). For |E| simplices with the entropic
// mirror map it is (Σ_e ‖g_e‖_∞²)^½ ≤ √|E| ‖g‖_∞, see [DualNorm].
func ProductDualNorm(spaces []Space, g [][]float64) float64 {
	return rootOfSquares(spaces, g, Space.DualNorm)
}

// BlockDescent is block-stochastic mirror descent over a product of spaces (Li+ 2021, Algorithms 1 and 2): every step
// moves one block by a mirror step against its stochastic gradient and leaves all others where they are.
type BlockDescent struct {
	Spaces []Space
	// Blocks lists, for each block, the spaces that a step moves together, each space in one block; nil: every space is
	// a block of its own. Algorithm 1 has the weights in the first and all simplices in the second.
	Blocks [][]int
	// Cyclic takes the blocks in turn, as is done in practice, instead of drawing one uniformly.
	Cyclic bool
}

// Run takes so many steps, in place, from x: in step t = 0, 1, … it draws a block, calls oracle for a stochastic
// gradient at x (to be written into grad; only the block's spaces are read) and moves the block by a mirror step of
// size eta(t). visit, if not nil, is called before each step with what is to be x⁽ᵗ⁺¹⁾ of the paper, which counts from
// 1: the paper's random iterate is one of those visited, the point after the last step is not. An error of oracle or
// visit ends the run.
//
// It returns an error if a block names a space that is not there or is in two
// blocks, and where x or the spaces are not as many.
func (d BlockDescent) Run(x [][]float64, steps int, eta func(t int) float64, rng *rand.Rand,
	oracle func(t int, block []int, x, grad [][]float64) error, visit func(t int, x [][]float64) error) error {
	blocks, err := d.blocks(len(x))
	if err != nil {
		return err
	}
	grad := make([][]float64, len(x))
	for i := range x {
		grad[i] = make([]float64, len(x[i]))
	}
	for t := range steps {
		if visit != nil {
			if err := visit(t, x); err != nil {
				return err
			}
		}
		b := t % len(blocks)
		if !d.Cyclic {
			b = rng.IntN(len(blocks))
		}
		if err := oracle(t, blocks[b], x, grad); err != nil {
			return err
		}
		for _, i := range blocks[b] {
			d.Spaces[i].Step(x[i], grad[i], eta(t))
		}
	}
	return nil
}

func (d BlockDescent) blocks(n int) ([][]int, error) {
	if n != len(d.Spaces) || n == 0 {
		return nil, fmt.Errorf("block descent: the point has %d parts and the domain %d spaces: they must be as "+
			"many, and at least one", n, len(d.Spaces))
	}
	if d.Blocks == nil {
		each := make([][]int, n)
		for i := range each {
			each[i] = []int{i}
		}
		return each, nil
	}
	seen := make([]int, n)
	for b, block := range d.Blocks {
		for _, i := range block {
			if i < 0 || i >= n {
				return nil, fmt.Errorf("block descent: block %d names space %d of %d", b, i, n)
			}
			seen[i]++
		}
	}
	for i, times := range seen {
		if times != 1 {
			return nil, fmt.Errorf("block descent: space %d is in %d blocks, it must be in one", i, times)
		}
	}
	return d.Blocks, nil
}

// Block is a group of simplices of one size, a matrix [Rows, Options].
type Block struct {
	Name    string
	Rows    int
	Options int
}

// Product is a product of simplices of mixed sizes: a list of blocks, each a
// matrix of its own, so that no row is padded or masked. The cell of PC-DARTS:
//
//	Product{
//		{"operations", 14, 8},
//		{"edges into 2", 1, 2}, {"edges into 3", 1, 3}, {"edges into 4", 1, 4}, {"edges into 5", 1, 5},
//	}
//
// The host functions of this package work on all rows of a product at once: EntropyOf(slices.Concat(theta...)).
type Product []Block

// Uniform returns the uniform point, 1/Options everywhere: one matrix a block.
func (p Product) Uniform() [][][]float64 {
	theta := make([][][]float64, len(p))
	for b, block := range p {
		for range block.Rows {
			theta[b] = append(theta[b], slices.Repeat([]float64{1 / float64(block.Options)}, block.Options))
		}
	}
	return theta
}

// Check returns an error, with the block's name, where θ is not a point of the
// product: see Check for what else is wrong.
func (p Product) Check(theta [][][]float64, tolerance float64) error {
	if len(theta) != len(p) {
		return fmt.Errorf("%d matrices of θ for %d blocks", len(theta), len(p))
	}
	want := p.Uniform()
	for b, block := range p {
		if err := sameRows(want[b], theta[b]); err != nil {
			return fmt.Errorf("block %q is [%d, %d]: %w", block.Name, block.Rows, block.Options, err)
		}
		if err := Check(theta[b], tolerance); err != nil {
			return fmt.Errorf("block %q: %w", block.Name, err)
		}
	}
	return nil
}
