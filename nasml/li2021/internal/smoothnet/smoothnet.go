// Package smoothnet is the small supernet of Theorems 1 and 2 of Li+ 2021, smooth enough to prove the constants of
// Assumption 1.
package smoothnet

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// smoothOp is an operation σ with its first two derivatives and bounds B₀, B₁, B₂ on |σ|, |σ′|, |σ″|.
type smoothOp struct {
	at     func(z float64) (value, first, second float64)
	bounds [3]float64
}

// operations are bounded with bounded derivatives, so that the constants of Assumption 1 can be proved.
var operations = map[string]smoothOp{
	"zero": {func(float64) (float64, float64, float64) { return 0, 0, 0 }, [3]float64{0, 0, 0}},
	"sin": {func(z float64) (float64, float64, float64) {
		s, c := math.Sincos(z)
		return s, c, -s
	}, [3]float64{1, 1, 1}},
	"cos": {func(z float64) (float64, float64, float64) {
		s, c := math.Sincos(z)
		return c, -s, -c
	}, [3]float64{1, 1, 1}},
	"tanh": {func(z float64) (float64, float64, float64) {
		t := math.Tanh(z)
		return t, 1 - t*t, -2 * t * (1 - t*t)
	}, [3]float64{1, 1, 0.7699}}, // 4/(3√3)
	"bump": {func(z float64) (float64, float64, float64) {
		b := math.Exp(-z * z / 2)
		return b, -z * b, (z*z - 1) * b
	}, [3]float64{1, 0.6066, 1}}, // e^{−1/2}
	"wave": {func(z float64) (float64, float64, float64) { // the bump's slope
		b := math.Exp(-z * z / 2)
		return z * b, (1 - z*z) * b, z * (z*z - 3) * b
	}, [3]float64{0.6066, 1, 1.3802}},
}

// Operations are the names of the operations that there are, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

// Params describe the small supernet of Theorems 1 and 2, a regression
//
//	f(w, θ) = (1/N) Σₙ ½ rₙ² ,   rₙ = (1/|E|) Σ_e Σ_o θ_eo σ_o(⟨w_e, xₙ⟩) − yₙ ,
//
// with ‖xₙ‖ = 1 and targets of a discrete teacher plus a sign of size Noise.
type Params struct {
	Edges    int      `json:"edges"`
	Inputs   int      `json:"inputs"`
	Ops      []string `json:"ops"`
	Examples int      `json:"examples"`
	Noise    float64  `json:"noise"`
	Batch    int      `json:"batch"`
}

// net is a small supernet. Its points have 2|E| parts: w_e ∈ ℝᵏ, then the simplices θ_e.
type net struct {
	Params
	ops []smoothOp
	x   [][]float64
	y   []float64
}

// newNet draws the data of a problem: the seed is the problem's name.
func newNet(p Params, seed uint64) *net {
	n := &net{Params: p}
	for _, name := range p.Ops {
		n.ops = append(n.ops, operations[name])
	}
	rng := trial.RNG(seed, "supernet")
	teacher := n.draw(rng)
	for e := range p.Edges {
		theta := teacher[p.Edges+e]
		clear(theta)
		theta[rng.IntN(len(theta))] = 1
	}
	n.y = make([]float64, p.Examples)
	for i := range p.Examples {
		x := make([]float64, p.Inputs)
		for length := 0.0; length == 0; {
			for j := range x {
				x[j] = rng.NormFloat64()
				length += x[j] * x[j]
			}
			for j := range x {
				x[j] /= math.Sqrt(length)
			}
		}
		n.x = append(n.x, x)
		n.y[i] = n.output(teacher, x) + p.Noise*float64(2*rng.IntN(2)-1)
	}
	return n
}

// draw is a random point: w_e ∼ N(0, 4 I), θ_e uniform on its simplex.
func (n *net) draw(rng *rand.Rand) [][]float64 {
	x := n.zeros()
	for e := range n.Edges {
		for j := range x[e] {
			x[e][j] = 2 * rng.NormFloat64()
		}
		theta, total := x[n.Edges+e], 0.0
		for o := range theta {
			theta[o] = rng.ExpFloat64()
			total += theta[o]
		}
		for o := range theta {
			theta[o] /= total
		}
	}
	return x
}

func (n *net) zeros() [][]float64 {
	x := make([][]float64, 2*n.Edges)
	for e := range n.Edges {
		x[e], x[n.Edges+e] = make([]float64, n.Inputs), make([]float64, len(n.ops))
	}
	return x
}

func (n *net) output(at [][]float64, x []float64) float64 {
	var out float64
	for e := range n.Edges {
		z := descent.Inner(at[e], x)
		for o, op := range n.ops {
			value, _, _ := op.at(z)
			out += at[n.Edges+e][o] * value
		}
	}
	return out / float64(n.Edges)
}

// Value is f.
func (n *net) Value(at [][]float64) float64 {
	var sum float64
	for i, x := range n.x {
		r := n.output(at, x) - n.y[i]
		sum += r * r / 2
	}
	return sum / float64(len(n.x))
}

// addGradient adds the gradient of ½ rᵢ², times a weight, to grad.
func (n *net) addGradient(at [][]float64, i int, weight float64, grad [][]float64) {
	x, edges := n.x[i], n.Edges
	var values, firsts [64]float64 // 64 ≥ |E||O| mostly; append grows where not
	value, first := values[:0], firsts[:0]
	r := 0.0
	for e := range edges {
		z, theta, slope := descent.Inner(at[e], x), at[edges+e], 0.0
		for o := range n.ops {
			v, d, _ := n.ops[o].at(z)
			value = append(value, v)
			r += theta[o] * v
			slope += theta[o] * d
		}
		first = append(first, slope)
	}
	r = weight * (r/float64(edges) - n.y[i]) / float64(edges)
	for e := range edges {
		for j := range x {
			grad[e][j] += r * first[e] * x[j]
		}
		for o := range n.ops {
			grad[edges+e][o] += r * value[e*len(n.ops)+o]
		}
	}
}

// gradient writes ∇f.
func (n *net) gradient(at, grad [][]float64) {
	for _, g := range grad {
		clear(g)
	}
	for i := range n.x {
		n.addGradient(at, i, 1/float64(len(n.x)), grad)
	}
}

// Minibatch writes an unbiased gradient, over Batch examples drawn with replacement.
func (n *net) Minibatch(at, grad [][]float64, rng *rand.Rand) {
	for _, g := range grad {
		clear(g)
	}
	for range n.Batch {
		n.addGradient(at, rng.IntN(len(n.x)), 1/float64(n.Batch), grad)
	}
}

// Spaces are the parts' spaces in GAEA's geometry.
func (n *net) Spaces() []simplex.Space {
	var s []simplex.Space
	for range n.Edges {
		s = append(s, simplex.Euclidean{})
	}
	for range n.Edges {
		s = append(s, simplex.Entropic{})
	}
	return s
}

// Blocks groups the parts: 1 is all of them, 2 is Algorithm 1's {w, θ}, and 2|E| is every part on its own.
func (n *net) Blocks(b int) ([][]int, error) {
	all := make([]int, 2*n.Edges)
	for i := range all {
		all[i] = i
	}
	switch b {
	case 1:
		return [][]int{all}, nil
	case 2:
		return [][]int{all[:n.Edges], all[n.Edges:]}, nil
	case 2 * n.Edges:
		return nil, nil
	}
	return nil, fmt.Errorf("%d blocks: the supernet of %d edges can be cut into 1, 2 or %d", b, n.Edges, 2*n.Edges)
}
