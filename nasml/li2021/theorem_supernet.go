package li2021

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/simplex"
)

// smoothOp is an operation σ with its first two derivatives and bounds B₀, B₁,
// B₂ on |σ|, |σ′|, |σ″|.
type smoothOp struct {
	at     func(z float64) (value, first, second float64)
	bounds [3]float64
}

// smoothOps are the operations of the small supernet: bounded with bounded
// derivatives, so that Assumption 1 holds with constants that can be proved.
var smoothOps = map[string]smoothOp{
	"zero": {func(float64) (float64, float64, float64) { return 0, 0, 0 }, [3]float64{0, 0, 0}},
	"sin":  {func(z float64) (float64, float64, float64) { s, c := math.Sincos(z); return s, c, -s }, [3]float64{1, 1, 1}},
	"cos":  {func(z float64) (float64, float64, float64) { s, c := math.Sincos(z); return c, -s, -c }, [3]float64{1, 1, 1}},
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

// NetParams describe the small supernet of Theorems 1 and 2, a regression
//
//	f(w, θ) = (1/N) Σₙ ½ rₙ² ,   rₙ = (1/|E|) Σ_e Σ_o θ_eo σ_o(⟨w_e, xₙ⟩) − yₙ ,
//
// with ‖xₙ‖ = 1 and targets of a discrete teacher plus a sign of size Noise.
type NetParams struct {
	Edges    int      `json:"edges"`
	Inputs   int      `json:"inputs"`
	Ops      []string `json:"ops"`
	Examples int      `json:"examples"`
	Noise    float64  `json:"noise"`
	Batch    int      `json:"batch"`
}

func (p NetParams) check(c *checks) {
	c.expect(p.Edges >= 1 && p.Inputs >= 1 && p.Examples >= 1 && p.Batch >= 1,
		"Edges, Inputs, Examples and Batch are %d, %d, %d and %d, want at least 1", p.Edges, p.Inputs, p.Examples, p.Batch)
	c.expect(p.Noise >= 0 && !math.IsInf(p.Noise, 0), "Noise is %v, want 0 or more", p.Noise)
	c.expect(len(p.Ops) >= 2, "Ops is %v, want at least two: on one operation there is nothing to search", p.Ops)
	c.expect(slices.ContainsFunc(p.Ops, func(op string) bool { return op != "zero" }), "Ops is %v: f would be constant, want an operation other than zero", p.Ops)
	for _, op := range p.Ops {
		_, ok := smoothOps[op]
		c.expect(ok, "Ops has %q, want some of %s", op, strings.Join(slices.Sorted(maps.Keys(smoothOps)), ", "))
	}
}

// net is a small supernet. Its points have 2|E| parts: w_e ∈ ℝᵏ, then the
// simplices θ_e.
type net struct {
	NetParams
	ops []smoothOp
	x   [][]float64
	y   []float64
}

// newNet draws the data of a problem: the seed is the problem's name.
func newNet(p NetParams, seed uint64) *net {
	n := &net{NetParams: p}
	for _, name := range p.Ops {
		n.ops = append(n.ops, smoothOps[name])
	}
	rng := runs.RNG(seed, "supernet")
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
		z := inner(at[e], x)
		for o, op := range n.ops {
			value, _, _ := op.at(z)
			out += at[n.Edges+e][o] * value
		}
	}
	return out / float64(n.Edges)
}

// value is f.
func (n *net) value(at [][]float64) float64 {
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
		z, theta, slope := inner(at[e], x), at[edges+e], 0.0
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

// minibatch writes the gradient over Batch examples drawn with replacement, an
// unbiased one.
func (n *net) minibatch(at, grad [][]float64, rng *rand.Rand) {
	for _, g := range grad {
		clear(g)
	}
	for range n.Batch {
		n.addGradient(at, rng.IntN(len(n.x)), 1/float64(n.Batch), grad)
	}
}

// spaces are the parts' spaces in GAEA's geometry.
func (n *net) spaces() []simplex.Space {
	var s []simplex.Space
	for range n.Edges {
		s = append(s, simplex.Euclidean{})
	}
	for range n.Edges {
		s = append(s, simplex.Entropic{})
	}
	return s
}

// blocks groups the parts: 1 is all of them, 2 is Algorithm 1's {w, θ}, and
// 2|E| is every part on its own.
func (n *net) blocks(b int) ([][]int, error) {
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

// constants are those of Assumption 1 and Setting 1, proved for the whole
// domain: see (*net).constants.
type constants struct {
	gamma  float64 // γ, joint
	gw, gt float64 // G_w², G_θ² (in the dual of the norm of |E| simplices)
	flat   float64 // G_θ² in ‖·‖₂, which projected SGD needs
}

// constants bounds γ, G_w and G_θ. With R = max_o B₀ + |yₙ| ≥ |rₙ| and ‖xₙ‖ = 1,
//
//	‖∇_w‖₂² ≤ R² B₁²/|E| ,  Σ_e ‖∇_{θ_e}‖_∞² ≤ R² B₀²/|E| ,  ‖∇_θ‖₂² ≤ R² Σ_o B₀ₒ²/|E| .
//
// The Hessian of ½r² is ∇r∇rᵀ + r∇²r, and in the coordinates (u, v/√θ) of edge
// e the second term is a form (r/|E|)(Σθσ″⟨u,x⟩² + 2⟨u,x⟩ Σ vₒσ′ₒ) of size at
// most (R/|E|)(B₂‖u‖² + 2B₁‖u‖‖v/√θ‖), so that
//
//	γ = (1/N) Σₙ (Rₙ/|E|) (B₂ + √(B₂² + 4B₁²))/2
//
// makes f + γ(½‖w‖² + φ(θ)) convex, jointly in w and θ. All are means over the
// examples, which minibatches keep.
func (n *net) constants() constants {
	var b [3]float64
	squares := 0.0
	for _, op := range n.ops {
		for i := range b {
			b[i] = math.Max(b[i], op.bounds[i])
		}
		squares += op.bounds[0] * op.bounds[0]
	}
	var c constants
	edges, share := float64(n.Edges), 1/float64(len(n.y))
	for _, y := range n.y {
		r := b[0] + math.Abs(y)
		c.gamma += share * r / edges * (b[2] + math.Sqrt(b[2]*b[2]+4*b[1]*b[1])) / 2
		c.gw += share * r * r * b[1] * b[1] / edges
		c.gt += share * r * r * b[0] * b[0] / edges
		c.flat += share * r * r * squares / edges
	}
	return c
}

// weakness is the least γ that the Hessian at a point allows,
// max(0, −λ_min(S ∇²f S)) with S = diag(I, √θ).
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

// scaledEdge adds r∇²r of one edge and example to h and writes the edge's part
// of ∇r.
func (n *net) scaledEdge(h *mat.SymDense, jac []float64, at [][]float64, e int, r float64, x []float64) {
	k, edges, share := n.Inputs, float64(n.Edges), 1/float64(len(n.x))
	theta, from := at[n.Edges+e], e*(n.Inputs+len(n.ops))
	z, slope, bend := inner(at[e], x), 0.0, 0.0
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

// stationarity is Δ_{1/(2γ)} at a point, with the Frank–Wolfe gap of θ.
func (n *net) stationarity(at [][]float64, gamma float64) (*simplex.Measured, error) {
	return simplex.Stationarity{Gamma: gamma, Tolerance: 1e-6}.At(n.oracle, n.point(at))
}

// start is the point of largest Δ among 100 random ones, so that there is
// something to show.
func (n *net) start(seed uint64, gamma float64) (at [][]float64, delta float64, err error) {
	rng := runs.RNG(seed, "start")
	for range 100 {
		x := n.draw(rng)
		m, err := n.stationarity(x, gamma)
		if err != nil {
			return nil, 0, err
		}
		if m.Delta > delta {
			at, delta = x, m.Delta
		}
	}
	return at, delta, nil
}

// started is a problem with its start, which all cases share.
type started struct {
	*net
	constants
	at             [][]float64
	delta, atStart float64 // Δ_{1/(2γ)} and f at the start
	weakness       float64 // largest γ that any of 100 random points needs
}

// startsOf computes each problem's start once.
func startsOf(p NetParams) func(seed uint64) (*started, error) {
	var mu sync.Mutex
	memo := map[uint64]func() (*started, error){}
	return func(seed uint64) (*started, error) {
		mu.Lock()
		if memo[seed] == nil {
			memo[seed] = sync.OnceValues(func() (*started, error) { return start(p, seed) })
		}
		once := memo[seed]
		mu.Unlock()
		return once()
	}
}

func start(p NetParams, seed uint64) (*started, error) {
	n := newNet(p, seed)
	s := &started{net: n, constants: n.constants()}
	var err error
	if s.at, s.delta, err = n.start(seed, s.gamma); err != nil {
		return nil, err
	}
	if s.delta == 0 {
		return nil, fmt.Errorf("every one of 100 random points is stationary: there is nothing to reach")
	}
	s.atStart = n.value(s.at)
	rng := runs.RNG(seed, "weakness")
	for range 100 {
		weak, err := n.weakness(n.draw(rng))
		if err != nil {
			return nil, err
		}
		s.weakness = math.Max(s.weakness, weak)
	}
	return s, nil
}

// moments are E‖∇̃_w‖₂² and E Σ_e ‖∇̃_{θ_e}‖_∞² over single examples.
func (n *net) moments(at [][]float64) (gw, gt float64) {
	spaces, share := n.spaces(), 1/float64(len(n.x))
	for i := range n.x {
		grad := n.zeros()
		n.addGradient(at, i, 1, grad)
		w := simplex.ProductDualNorm(spaces[:n.Edges], grad[:n.Edges])
		theta := simplex.ProductDualNorm(spaces[n.Edges:], grad[n.Edges:])
		gw, gt = gw+share*w*w, gt+share*theta*theta
	}
	return gw, gt
}

// timed is a step with its weight in a mean over all steps.
type timed struct {
	step   int
	weight float64
}

// drawTimes draws so many of the steps 0, …, steps−1, in ascending order, such
// that Σ weight·g(step) is without bias the mean of any g over the steps, taken
// with probability eta(t)/Σ eta, or uniformly where eta is nil: the expectation
// at the random iterate of Algorithm 2. The early steps, where Δ is large, are
// drawn more often: with one u in each of count equal parts of [0, 1), the step
// at the quantile u² has weight 2u.
func drawTimes(rng *rand.Rand, steps, count int, eta func(t int) float64) []timed {
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
	times := make([]timed, count)
	for i := range times {
		u := (float64(i) + rng.Float64()) / float64(count)
		times[i] = timed{min(quantile(u*u), steps-1), 2 * u / float64(count)}
	}
	return times
}
