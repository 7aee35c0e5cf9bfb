package smoothnet

import (
	"fmt"
	"math"
	"slices"
	"sync"

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
