package smoothnet

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/li2021/internal/descent"
)

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
