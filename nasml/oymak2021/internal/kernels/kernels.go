// Package kernels computes the trials of Oymak+ 2021, Definition 3, Assumption 3 and the remarks on deeper networks:
// neural feature maps and tangent kernels of activation search.
package kernels

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Part is what a trial depends on, beside its seed. What does not apply stays 0.
type Part struct {
	Part        string        `json:"part"` // "features", "width", "lambda", "singular", "depth" or "deep"
	Source      neural.Source `json:"world"`
	Activations []string      `json:"activations,omitempty"`
	Alphas      int           `json:"alphas,omitempty"`
	Train       int           `json:"train,omitempty"`
	Trains      []int         `json:"trains,omitempty"`
	Widths      []int         `json:"widths,omitempty"`
	C0s         []float64     `json:"c0s,omitempty"`
	Depths      []int         `json:"depths,omitempty"`
	Gain        float64       `json:"gain,omitempty"`
	Ridge       float64       `json:"ridge,omitempty"`
}

type job struct {
	Part
	neural.Notes
	seed   uint64
	acts   []spectral.Activation
	images *neural.Images
}

// Run computes the numbers of a seed. images may be nil if the problem instance has none.
func (t Part) Run(ctx context.Context, seed uint64, images *neural.Images) (trial.Result, error) {
	c := &job{Part: t, Notes: neural.NewNotes(), seed: seed, images: images}
	if t.Part == "singular" {
		return c.Result, c.singular()
	}
	var err error
	if c.acts, err = spectral.NamedActivations(t.Activations...); err != nil {
		return c.Result, err
	}
	part := map[string]func(context.Context) error{
		"features": c.features, "width": c.width, "lambda": c.lambda, "depth": c.depth, "deep": c.deep,
	}[t.Part]
	return c.Result, part(ctx)
}

func (c *job) inputs(n int) (*mat.Dense, error) {
	e, _, err := c.Source.Draw(c.seed, n, 1, c.images)
	return e.X, err
}

// alphas are the middle of the simplex, its corners and random points.
func (c *job) alphas() [][]float64 {
	h := len(c.acts)
	return slices.Concat([][]float64{spectral.Middle(h)}, spectral.Corners(h), neural.RandomPoints(c.seed, h, c.Alphas))
}

// features compares φ_α with Σⱼ αⱼφⱼ and with central differences of the network, at a random α. Values: additive,
// derivative, the largest absolute differences. Series over c₀: smallest and largest, the eigenvalues of ΦΦᵀ.
func (c *job) features(context.Context) error {
	const n, k, step = 8, 32, 1e-5
	x, err := c.inputs(n)
	if err != nil {
		return err
	}
	w := spectral.Normals(trial.RNG(c.seed, "weights"), k, c.Source.Dim)
	alpha := spectral.SimplexPoint(trial.RNG(c.seed, "alpha"), len(c.acts))
	sigma := spectral.Mixture{Activations: c.acts, Alpha: alpha}
	for _, c0 := range c.C0s {
		phi, gram := spectral.Features(sigma.Eval, x, w, neural.OutputWeights(k, c0)), new(mat.Dense)
		gram.Mul(phi, phi.T())
		lo, hi := spectral.EigenRange(spectral.Symmetric(gram))
		c.Note("smallest", lo)
		c.Note("largest", hi)
	}
	v := neural.OutputWeights(k, 1)
	phi, sum := spectral.Features(sigma.Eval, x, w, v), mat.NewDense(n, k*c.Source.Dim, nil)
	for j, a := range c.acts {
		one := spectral.Features(a.Eval, x, w, v)
		one.Scale(alpha[j], one)
		sum.Add(sum, one)
	}
	sum.Sub(sum, phi)
	c.Values["additive"] = max(mat.Max(sum), -mat.Min(sum))
	c.Values["derivative"] = derivativeError(sigma, x, w, v, phi, step)
	return nil
}

// derivativeError compares features with central differences of vᵀσ(Wx): only
// neuron r of the network depends on row r of W.
func derivativeError(sigma spectral.Mixture, x, w *mat.Dense, v []float64, phi *mat.Dense, step float64) float64 {
	n, d := x.Dims()
	var worst float64
	for i := range n {
		for r := range v {
			z := mat.Dot(w.RowView(r), x.RowView(i))
			for col := range d {
				move := step * x.At(i, col)
				up, _ := sigma.Eval(z + move)
				down, _ := sigma.Eval(z - move)
				worst = max(worst, math.Abs(v[r]*(up-down)/(2*step)-phi.At(i, r*d+col)))
			}
		}
	}
	return worst
}

// width measures sup_α ‖K̂_α − K_α‖/c₀ over the widths. Series: sup.
func (c *job) width(ctx context.Context) error {
	x, err := c.inputs(c.Train)
	if err != nil {
		return err
	}
	limit, err := spectral.NewTangent(c.acts...).Blocks(x, x)
	if err != nil {
		return err
	}
	_, d := x.Dims()
	for _, k := range c.Widths {
		if err := ctx.Err(); err != nil {
			return err
		}
		w := spectral.Normals(trial.RNG(c.seed, "weights", fmt.Sprint(k)), k, d)
		wide, sup := spectral.WideBlocks(c.acts, x, x, w), 0.0
		for _, alpha := range c.alphas() {
			gap := new(mat.Dense)
			gap.Sub(wide.At(alpha), limit.At(alpha))
			sup = max(sup, spectral.Norm(spectral.Symmetric(gap)))
		}
		c.Note("sup", sup)
	}
	return nil
}

// lambda looks for the smallest λ_min(K̄_α) over the simplex, over all signs of α with ‖α‖₁ = 1, and for the lower
// bound of all α. Series over n: simplex, sphere, certified, norm (λ_max at the middle of the simplex), and for the
// largest n over the activations: corner, λ_min of each alone.
func (c *job) lambda(ctx context.Context) error {
	tangent := spectral.NewTangent(c.acts...)
	for _, n := range c.Trains {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := c.inputs(n)
		if err != nil {
			return err
		}
		b, err := tangent.Blocks(x, x)
		if err != nil {
			return err
		}
		c.smallest(b)
		if n != slices.Max(c.Trains) {
			continue
		}
		for _, alpha := range spectral.Corners(len(c.acts)) {
			lo, _ := spectral.EigenRange(spectral.Symmetric(b.At(alpha)))
			c.Note("corner", lo)
		}
	}
	return nil
}

func (c *job) smallest(b *spectral.Blocks) {
	h := len(c.acts)
	sphere := math.Inf(1)
	for pattern := range 1 << (h - 1) { // K_{−α} = K_α
		signs := make([]float64, h)
		for j := range signs {
			signs[j] = 1 - 2*float64(pattern>>j&1)
		}
		found, _ := b.Signed(signs).SmallestOverSimplex(c.alphas()[:1+h]...)
		if pattern == 0 {
			c.Note("simplex", found)
		}
		sphere = min(sphere, found)
	}
	_, norm := spectral.EigenRange(spectral.Symmetric(b.At(spectral.Middle(h))))
	c.Note("sphere", sphere)
	c.Note("certified", b.CertifiedSmallest())
	c.Note("norm", norm)
}

// singular measures λ_min/λ_max of K̄_α at the middle of a simplex in cases that satisfy the conditions for a positive
// definite kernel, or break one. Values: fine (no two inputs are parallel), copies (two equal inputs), opposite and
// opposite_mixed (x and −x), polynomial (more inputs than the features have dimensions).
func (c *job) singular() error {
	const n, d = 20, 4 // the polynomial features have 4 + 10 dimensions
	x := spectral.SpherePoints(trial.RNG(c.seed, "singular"), n, d)
	copies, opposite := mat.DenseCopyOf(x), mat.DenseCopyOf(x)
	copies.SetRow(n-1, x.RawRowView(0))
	for col, v := range x.RawRowView(0) {
		opposite.Set(n-1, col, -v)
	}
	for name, one := range map[string]struct {
		x     *mat.Dense
		names []string
	}{
		"fine":           {x, []string{"tanh", "softplus"}},
		"copies":         {copies, []string{"tanh", "softplus"}},
		"opposite":       {opposite, []string{"tanh", "sin"}},
		"opposite_mixed": {opposite, []string{"tanh", "softplus"}},
		"polynomial":     {x, []string{"identity", "square"}},
	} {
		acts, err := spectral.NamedActivations(one.names...)
		if err != nil {
			return err
		}
		b, err := spectral.NewTangent(acts...).Blocks(one.x, one.x)
		if err != nil {
			return err
		}
		lo, hi := spectral.EigenRange(spectral.Symmetric(b.At(spectral.Middle(2))))
		c.Values[name] = lo / hi
	}
	return nil
}

// alongSimplex is the norm of a gradient [j][depth][row] less its mean over j.
func alongSimplex(gradient [][][]float64, d, i int) float64 {
	h := len(gradient)
	var mean, square float64
	for j := range h {
		mean += gradient[j][d][i] / float64(h)
	}
	for j := range h {
		square += (gradient[j][d][i] - mean) * (gradient[j][d][i] - mean)
	}
	return math.Sqrt(square)
}

// ridgePredictors are f of the depths 1…D on all rows of rho [m, n], of which the first n are the training inputs.
func ridgePredictors(net spectral.Deep, alpha []float64, rho *mat.Dense, y []float64, ridge float64) (
	[][]float64, error) {
	kernels, err := net.Kernels(alpha, rho)
	if err != nil {
		return nil, err
	}
	_, n := rho.Dims()
	var all [][]float64
	for _, k := range kernels {
		own := spectral.Symmetric(k.Slice(0, n, 0, n))
		lambda := ridge * mat.Trace(own) / float64(n)
		for i := range n {
			own.SetSym(i, i, own.At(i, i)+lambda)
		}
		var cholesky mat.Cholesky
		if !cholesky.Factorize(own) {
			return nil, fmt.Errorf("kernel with ridge %.3g is not positive definite: take a larger Ridge", lambda)
		}
		var coefficients, f mat.VecDense
		if err := cholesky.SolveVecTo(&coefficients, mat.NewVecDense(n, y)); err != nil {
			return nil, err
		}
		f.MulVec(k, &coefficients)
		all = append(all, f.RawVector().Data)
	}
	return all, nil
}

// depth measures the Lipschitz constant in α of the linearized network of infinite width with a ridge,
//
//	f_α(x) = K_α(x, X)(K_α + λI)⁻¹y,   λ = Ridge·tr(K_α)/n,
//
// as the largest norm over Δ and a pool of inputs of its gradient along the simplex, by central differences. Series
// over D: lipschitz.
func (c *job) depth(ctx context.Context) error {
	const pool, step = 40, 1e-4
	train, rest, err := c.Source.Draw(c.seed, c.Train, pool, c.images)
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
		weights := []*mat.Dense{spectral.Normals(rng, k, c.Source.Dim)}
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
