package kernels

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// depth measures the Lipschitz constant in α of the linearized network of infinite width with a ridge,
//
//	f_α(x) = K_α(x, X)(K_α + λI)⁻¹y,   λ = Ridge·tr(K_α)/n,
//
// as the largest norm over Δ and a pool of inputs of its gradient along the simplex, by central differences. Series
// over D: lipschitz.
func (c *job) depth(ctx context.Context) error {
	const pool, step = 40, 1e-4
	train, rest, err := c.World.Draw(c.seed, c.Train, pool, c.images)
	if err != nil {
		return err
	}
	both, rho := new(mat.Dense), new(mat.Dense)
	both.Stack(train.X, rest.X)
	rho.Mul(both, train.X.T())
	net := spectral.Deep{Activations: c.acts, Depth: slices.Max(c.Depths), Gain: c.Gain}
	lipschitz := make([]float64, net.Depth)
	for _, alpha := range c.alphas() {
		if err := ctx.Err(); err != nil {
			return err
		}
		steepest, err := c.steepest(net, alpha, rho, train.Y, step)
		if err != nil {
			return fmt.Errorf("gain %v, α = %.3v: %w", c.Gain, alpha, err)
		}
		for d, s := range steepest {
			lipschitz[d] = max(lipschitz[d], s)
		}
	}
	for _, depth := range c.Depths {
		c.Note("lipschitz", lipschitz[depth-1])
	}
	return nil
}

// steepest is max_x ‖∇_α f_α(x)‖₂ along the simplex, for the depths 1…D.
func (c *job) steepest(net spectral.Deep, alpha []float64, rho *mat.Dense, y []float64, step float64) (
	[]float64, error) {
	rows, n := rho.Dims()
	h := len(alpha)
	gradient := make([][][]float64, h) // [j][depth][row]
	for j := range h {
		up, down := slices.Clone(alpha), slices.Clone(alpha)
		up[j] += step
		down[j] -= step
		above, err := ridgePredictors(net, up, rho, y, c.Ridge)
		if err != nil {
			return nil, err
		}
		below, err := ridgePredictors(net, down, rho, y, c.Ridge)
		if err != nil {
			return nil, err
		}
		for d := range above {
			for i := range above[d] {
				above[d][i] = (above[d][i] - below[d][i]) / (2 * step)
			}
		}
		gradient[j] = above
	}
	steepest := make([]float64, net.Depth)
	for d := range steepest {
		for i := n; i < rows; i++ {
			steepest[d] = max(steepest[d], alongSimplex(gradient, d, i))
		}
	}
	return steepest, nil
}

// deep measures sup_α ‖K̂_α − K_α‖/‖K_α‖ of deep networks over the widths. Series: sup.
func (c *job) deep(ctx context.Context) error {
	x, err := c.inputs(c.Train)
	if err != nil {
		return err
	}
	rho := new(mat.Dense)
	rho.Mul(x, x.T())
	net := spectral.Deep{Activations: c.acts, Depth: c.Depths[0], Gain: c.Gain}
	for _, k := range c.Widths {
		rng := trial.RNG(c.seed, "weights", fmt.Sprint(k))
		weights := []*mat.Dense{spectral.Normals(rng, k, c.World.Dim)}
		for range net.Depth - 1 {
			weights = append(weights, spectral.Normals(rng, k, k))
		}
		signs, sup := neural.OutputWeights(k, float64(k)), 0.0
		for _, alpha := range c.alphas() {
			if err := ctx.Err(); err != nil {
				return err
			}
			limit, err := net.Kernel(alpha, rho)
			if err != nil {
				return err
			}
			scale := spectral.Norm(spectral.Symmetric(limit))
			limit.Sub(limit, net.WideKernel(alpha, x, weights, signs))
			sup = max(sup, spectral.Norm(spectral.Symmetric(limit))/scale)
		}
		c.Note("sup", sup)
	}
	return nil
}
