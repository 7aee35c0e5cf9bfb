package smoothnet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// point is the pair (w, θ) as package simplex measures it.
func (n *net) point(at [][]float64) simplex.Point {
	return simplex.Point{W: slices.Concat(at[:n.Edges]...), Theta: at[n.Edges:]}
}

// oracle is ∇f for [simplex.Stationarity].
func (n *net) oracle(p simplex.Point) (simplex.Point, error) {
	at := make([][]float64, 0, 2*n.Edges)
	for e := range n.Edges {
		at = append(at, p.W[e*n.Inputs:(e+1)*n.Inputs])
	}
	at = append(at, p.Theta...)
	grad := n.zeros()
	n.gradient(at, grad)
	return n.point(grad), nil
}

// Stationarity is Δ_{1/(2γ)} at a point, with the Frank–Wolfe gap of θ.
func (n *net) Stationarity(at [][]float64, gamma float64) (*simplex.Measured, error) {
	return simplex.Stationarity{Gamma: gamma, Tolerance: 1e-6}.At(n.oracle, n.point(at))
}

// start is the point of largest Δ among 100 random ones.
func (n *net) start(seed uint64, gamma float64) (at [][]float64, delta float64, err error) {
	rng := trial.RNG(seed, "start")
	for range 100 {
		x := n.draw(rng)
		m, err := n.Stationarity(x, gamma)
		if err != nil {
			return nil, 0, err
		}
		if m.Delta > delta {
			at, delta = x, m.Delta
		}
	}
	return at, delta, nil
}

// Problem is a problem with its start, which all cases share.
type Problem struct {
	*net
	Constants
	At             [][]float64
	Delta, AtStart float64 // Δ_{1/(2γ)} and f at the start
	Weakness       float64 // largest γ that any of 100 random points needs
}

// Problems computes each problem's start once; the seed names the problem. It returns an error if all points tried are
// stationary.
func Problems(p Params) func(seed uint64) (*Problem, error) {
	var mu sync.Mutex
	memo := map[uint64]func() (*Problem, error){}
	return func(seed uint64) (*Problem, error) {
		mu.Lock()
		if memo[seed] == nil {
			memo[seed] = sync.OnceValues(func() (*Problem, error) { return start(p, seed) })
		}
		once := memo[seed]
		mu.Unlock()
		return once()
	}
}

func start(p Params, seed uint64) (*Problem, error) {
	n := newNet(p, seed)
	s := &Problem{net: n, Constants: n.constants()}
	var err error
	if s.At, s.Delta, err = n.start(seed, s.Gamma); err != nil {
		return nil, err
	}
	if s.Delta == 0 {
		return nil, fmt.Errorf("every one of 100 random points is stationary: there is nothing to reach")
	}
	s.AtStart = n.Value(s.At)
	rng := trial.RNG(seed, "weakness")
	for range 100 {
		weak, err := n.weakness(n.draw(rng))
		if err != nil {
			return nil, err
		}
		s.Weakness = math.Max(s.Weakness, weak)
	}
	return s, nil
}

// Moments are E‖∇̃_w‖₂² and E Σ_e ‖∇̃_{θ_e}‖_∞² over single examples.
func (n *net) Moments(at [][]float64) (gw, gt float64) {
	spaces, share := n.Spaces(), 1/float64(len(n.x))
	for i := range n.x {
		grad := n.zeros()
		n.addGradient(at, i, 1, grad)
		w := simplex.ProductDualNorm(spaces[:n.Edges], grad[:n.Edges])
		theta := simplex.ProductDualNorm(spaces[n.Edges:], grad[n.Edges:])
		gw, gt = gw+share*w*w, gt+share*theta*theta
	}
	return gw, gt
}

// Constants are those of Assumption 1 and Setting 1, proved for the whole domain: see (*net).constants.
type Constants struct {
	Gamma  float64 // γ, joint
	Gw, Gt float64 // G_w², G_θ² (in the dual of the norm of |E| simplices)
	Flat   float64 // G_θ² in ‖·‖₂, which projected SGD needs
}

// constants bounds γ, G_w and G_θ. With R = max_o B₀ + |yₙ| ≥ |rₙ| and ‖xₙ‖ = 1,
//
//	‖∇_w‖₂² ≤ R² B₁²/|E| ,  Σ_e ‖∇_{θ_e}‖_∞² ≤ R² B₀²/|E| ,  ‖∇_θ‖₂² ≤ R² Σ_o B₀ₒ²/|E| .
//
// The Hessian of ½r² is ∇r∇rᵀ + r∇²r, and in the coordinates (u, v/√θ) of edge e the second term is a form
// (r/|E|)(Σθσ″⟨u,x⟩² + 2⟨u,x⟩ Σ vₒσ′ₒ) of size at most (R/|E|)(B₂‖u‖² + 2B₁‖u‖‖v/√θ‖), so that
//
//	γ = (1/N) Σₙ (Rₙ/|E|) (B₂ + √(B₂² + 4B₁²))/2
//
// makes f + γ(½‖w‖² + φ(θ)) convex, jointly in w and θ. All are means over the examples, which minibatches keep.
func (n *net) constants() Constants {
	var b [3]float64
	squares := 0.0
	for _, op := range n.ops {
		for i := range b {
			b[i] = math.Max(b[i], op.bounds[i])
		}
		squares += op.bounds[0] * op.bounds[0]
	}
	var c Constants
	edges, share := float64(n.Edges), 1/float64(len(n.y))
	for _, y := range n.y {
		r := b[0] + math.Abs(y)
		c.Gamma += share * r / edges * (b[2] + math.Sqrt(b[2]*b[2]+4*b[1]*b[1])) / 2
		c.Gw += share * r * r * b[1] * b[1] / edges
		c.Gt += share * r * r * b[0] * b[0] / edges
		c.Flat += share * r * r * squares / edges
	}
	return c
}

// weakness is the least γ that the Hessian at a point allows, max(0, −λ_min(S ∇²f S)) with S = diag(I, √θ).
func (n *net) weakness(at [][]float64) (float64, error) {
	k, o := n.Inputs, len(n.ops)
	size := n.Edges * (k + o)
	h := mat.NewSymDense(size, nil)
	jac := make([]float64, size) // of r, in the scaled coordinates: edge by edge, w then θ
	for i, x := range n.x {
		r := n.output(at, x) - n.y[i]
		for e := range n.Edges {
			n.scaledEdge(h, jac, at, e, r, x)
		}
		h.SymRankOne(h, 1/float64(len(n.x)), mat.NewVecDense(size, jac))
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(h, false) {
		return 0, fmt.Errorf("the Hessian of the supernet has no eigenvalues at %v", at)
	}
	return math.Max(0, -eigen.Values(nil)[0]), nil
}

// scaledEdge adds r∇²r of one edge and example to h and writes the edge's part of ∇r.
func (n *net) scaledEdge(h *mat.SymDense, jac []float64, at [][]float64, e int, r float64, x []float64) {
	k, edges, share := n.Inputs, float64(n.Edges), 1/float64(len(n.x))
	theta, from := at[n.Edges+e], e*(n.Inputs+len(n.ops))
	z, slope, bend := descent.Inner(at[e], x), 0.0, 0.0
	for o, op := range n.ops {
		value, first, second := op.at(z)
		slope += theta[o] * first
		bend += theta[o] * second
		root := math.Sqrt(theta[o])
		jac[from+k+o] = root * value / edges
		for j := range x {
			at := h.At(from+j, from+k+o)
			h.SetSym(from+j, from+k+o, at+share*r*root*first*x[j]/edges)
		}
	}
	for j := range x {
		jac[from+j] = slope * x[j] / edges
		for l := range j + 1 {
			h.SetSym(from+l, from+j, h.At(from+l, from+j)+share*r*bend*x[j]*x[l]/edges)
		}
	}
}

// Time is a step with its weight in a mean over all steps.
type Time struct {
	Step   int
	Weight float64
}

// DrawTimes draws count of the steps 0, …, steps−1, in ascending order, with weights such that Σ weight·g(step) is an
// unbiased mean of any g over the steps, taken with probability eta(t)/Σ eta, or uniformly if eta is nil: the
// expectation at the random iterate of Algorithm 2. Early steps, where Δ is large, are drawn more often: with one u in
// each of count equal parts of [0, 1), the step at the quantile u² has weight 2u.
func DrawTimes(rng *rand.Rand, steps, count int, eta func(t int) float64) []Time {
	quantile := func(q float64) int { return int(float64(steps) * q) }
	if eta != nil {
		sums, total := make([]float64, steps), 0.0
		for t := range sums {
			total += eta(t)
			sums[t] = total
		}
		quantile = func(q float64) int {
			at, _ := slices.BinarySearch(sums, q*total)
			return at
		}
	}
	times := make([]Time, count)
	for i := range times {
		u := (float64(i) + rng.Float64()) / float64(count)
		times[i] = Time{min(quantile(u*u), steps-1), 2 * u / float64(count)}
	}
	return times
}

// Run is how [Problem.Descend] goes from the start.
type Run struct {
	Blocks int // as (*net).Blocks takes them
	Cyclic bool
	Steps  int
	Eta    func(step int) float64
	Times  []Time // at which it measures
}

// Descend runs block-stochastic mirror descent on minibatches, whose random streams have the name, and calls measure
// with the iterate at each of the times and its weight. It returns the last iterate.
func (s *Problem) Descend(
	ctx context.Context, r Run, seed uint64, name string, measure func(x [][]float64, weight float64) error,
) ([][]float64, error) {
	blocks, err := s.Blocks(r.Blocks)
	if err != nil {
		return nil, err
	}
	d := simplex.BlockDescent{Spaces: s.Spaces(), Blocks: blocks, Cyclic: r.Cyclic}
	at, examples, take := descent.Clone(s.At), trial.RNG(seed, "examples", name), r.Times
	return at, d.Run(at, r.Steps, r.Eta, trial.RNG(seed, "blocks", name),
		func(_ int, _ []int, x, grad [][]float64) error {
			s.Minibatch(x, grad, examples)
			return nil
		}, func(step int, x [][]float64) error {
			for ; len(take) > 0 && take[0].Step == step; take = take[1:] {
				if err := measure(x, take[0].Weight); err != nil {
					return err
				}
			}
			return descent.EverySo(ctx, step)
		})
}
