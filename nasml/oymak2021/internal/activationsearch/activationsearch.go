// Package activationsearch computes the trials of Oymak+ 2021, Theorem 3: it trains networks of one hidden layer, and
// their kernels, for every activation σ_α of a finite Δ and selects among them by validation.
package activationsearch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// Part is what a trial depends on, beside its seed. What does not apply stays 0 and changes no key.
type Part struct {
	Part        string        `json:"part"` // "descent", "kernel", "align" or "paired"
	Source      neural.Source `json:"world"`
	Activations []string      `json:"activations"`
	Alphas      int           `json:"alphas,omitempty"`
	Train       int           `json:"train"`
	Pool        int           `json:"pool"`

	Width   int     `json:"width,omitempty"`
	C0      float64 `json:"c0,omitempty"`
	Steps   int     `json:"steps,omitempty"`
	Epsilon float64 `json:"epsilon,omitempty"`

	Validations []int `json:"validations,omitempty"`
	Draws       int   `json:"draws,omitempty"`
	Ranks       []int `json:"ranks,omitempty"`
}

type job struct {
	Part
	neural.Notes
	seed        uint64
	acts        []spectral.Activation
	bound       float64 // B
	train, rest neural.Examples
	tangent     *spectral.Tangent
	own, cross  *spectral.Blocks // K̄ of the training inputs, and of the pool with them
}

// Run computes the numbers of a seed. images may be nil if the problem instance has none.
func (t Part) Run(ctx context.Context, seed uint64, images *neural.Images) (_ trial.Result, err error) {
	c := &job{Part: t, Notes: neural.NewNotes(), seed: seed}
	if c.acts, err = spectral.NamedActivations(t.Activations...); err != nil {
		return c.Result, err
	}
	for _, a := range c.acts {
		c.bound = max(c.bound, a.Bound())
	}
	c.tangent = spectral.NewTangent(c.acts...)
	if c.train, c.rest, err = t.Source.Draw(seed, t.Train, t.Pool, images); err != nil {
		return c.Result, err
	}
	part := map[string]func(context.Context) error{
		"align": c.align, "kernel": c.kernels, "paired": c.onlyTrain, "descent": c.descents,
	}[t.Part]
	return c.Result, part(ctx)
}

// onlyTrain trains every α without K̄, which may be singular. Series over α: train_error. An output of less than 10⁻⁹
// counts as 0, that is as an error: the least squares fit of pairs with f(−x) = −f(x) and one label is f = 0, which
// rounding would give a sign.
func (c *job) onlyTrain(ctx context.Context) error {
	net, err := c.network()
	if err != nil {
		return err
	}
	for _, alpha := range c.alphas() {
		done, err := c.descend(ctx, net, alpha)
		if err != nil {
			return err
		}
		for i, f := range done.Train {
			if math.Abs(f) < 1e-9 {
				done.Train[i] = 0
			}
		}
		c.Note("train_error", errorRate(done.Train, c.train.Y))
	}
	return nil
}

func (c *job) network() (*network, error) {
	_, d := c.train.X.Dims()
	w0 := spectral.Normals(trial.RNG(c.seed, "weights"), c.Width, d)
	return newNetwork(c.train.X, c.rest.X, w0, c.train.Y, c.C0)
}

func (c *job) descend(ctx context.Context, net *network, alpha []float64) (*descent, error) {
	sigma := spectral.NewTable(spectral.Mixture{Activations: c.acts, Alpha: alpha})
	done, err := net.descend(ctx, sigma, c.Steps, c.Epsilon)
	if err != nil {
		return nil, fmt.Errorf("α = %.3v, k = %d, n_T = %d: %w", alpha, c.Width, c.Train, err)
	}
	return done, nil
}

// alphas are the points of Δ: corners, the middle, then random ones.
func (c *job) alphas() [][]float64 {
	h := len(c.acts)
	all := spectral.Corners(h)
	if h > 1 {
		all = append(all, spectral.Middle(h))
	}
	return append(all, neural.RandomPoints(c.seed, h, c.Alphas)...)
}

func (c *job) openKernels() (err error) {
	if c.own, err = c.tangent.Blocks(c.train.X, c.train.X); err != nil {
		return err
	}
	c.cross, err = c.tangent.Blocks(c.rest.X, c.train.X)
	return err
}

// term is 2B√(yᵀK̄⁻¹y/n_T).
func (c *job) term(k *mat.SymDense, y []float64) (float64, error) {
	form, err := spectral.InverseForm(k, y)
	return 2 * c.bound * math.Sqrt(form/float64(len(y))), err
}

// descents trains every α and selects among them.
//
// Series over α: term, train_error, test_error, ntk_error (of the kernel of infinite width), steps (to a training error
// that stays at most ε; −1: never), needed (see descend), movement, gap (of network and linearization on the pool), cap
// (see analyticCap), initial (|f₀|). Series over steps: errors, the largest training error over α. Further those of
// choose.
func (c *job) descents(ctx context.Context) error {
	if err := c.openKernels(); err != nil {
		return err
	}
	net, err := c.network()
	if err != nil {
		return err
	}
	var outputs [][]float64
	worst := make([]float64, c.Steps+1)
	for _, alpha := range c.alphas() {
		done, err := c.descend(ctx, net, alpha)
		if err != nil {
			return err
		}
		for i, e := range done.Errors {
			worst[i] = max(worst[i], e)
		}
		if err := c.describe(alpha, done); err != nil {
			return err
		}
		outputs = append(outputs, done.Pool)
	}
	c.Series["errors"] = worst
	return c.choose(outputs)
}

func (c *job) describe(alpha []float64, done *descent) error {
	k := spectral.Symmetric(c.own.At(alpha))
	term, err := c.term(k, c.train.Y)
	if err != nil {
		return fmt.Errorf("α = %.3v: %w", alpha, err)
	}
	kernel, err := c.predict(k, alpha)
	if err != nil {
		return err
	}
	c.Note("term", term)
	c.Note("cap", c.analyticCap(alpha))
	c.Note("train_error", done.Errors[c.Steps])
	c.Note("test_error", errorRate(done.Pool, c.rest.Y))
	c.Note("ntk_error", errorRate(kernel, c.rest.Y))
	c.Note("steps", float64(done.Reached))
	c.Note("needed", min(done.Needed, math.MaxInt32))
	c.Note("movement", done.Movement)
	c.Note("gap", done.LinearGap)
	c.Note("initial", done.InitialMax)
	return nil
}

// predict is the kernel's interpolant K̄(pool, X)K̄⁻¹y.
func (c *job) predict(k *mat.SymDense, alpha []float64) ([]float64, error) {
	var cholesky mat.Cholesky
	if !cholesky.Factorize(k) {
		return nil, fmt.Errorf("kernel matrix of α = %.3v is not positive definite: "+
			"look for equal or opposite inputs", alpha)
	}
	var coefficients, f mat.VecDense
	if err := cholesky.SolveVecTo(&coefficients, mat.NewVecDense(len(c.train.Y), c.train.Y)); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) { // ill-conditioned is solved, and InverseForm has judged it
			return nil, err
		}
	}
	f.MulVec(c.cross.At(alpha), &coefficients)
	return f.RawVector().Data, nil
}

// analyticCap is an upper bound of the term for labels of the cap, our own finding: there y = ⟨x, e₁⟩/cos φ is linear,
// and linear functions have a small norm in every kernel, so that yᵀK̄⁻¹y ≤ 1/(cos φ Σⱼ αⱼEσⱼ′)². It is 0 for other
// sources.
func (c *job) analyticCap(alpha []float64) float64 {
	if c.Source.Data != neural.Cap {
		return 0
	}
	var slope float64
	for i, a := range alpha {
		for j, b := range alpha {
			slope += a * b * c.tangent.Pair(i, j, 0) // (Σ αⱼEσⱼ′)², as u and v are independent
		}
	}
	return 2 * c.bound / (c.Source.CosPhi * math.Sqrt(slope*float64(c.Train)))
}

func (c *job) kernels(ctx context.Context) error {
	if err := c.openKernels(); err != nil {
		return err
	}
	var outputs [][]float64
	for _, alpha := range c.alphas() {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := c.predict(spectral.Symmetric(c.own.At(alpha)), alpha)
		if err != nil {
			return err
		}
		outputs = append(outputs, f)
	}
	return c.choose(outputs)
}

// choose draws validation sets of every size n_V, with replacement, from the pool, which stands for 𝒟, and minimizes
// the hinge loss over Δ. Series over n_V, means over the draws: sup (of |L − L̂_V| over Δ), excess (L(f_α̂) − min L,
// hinge), selected (0-1 risk of α̂), selected_max (its largest). Values: best, worst (0-1 risks over Δ).
func (c *job) choose(outputs [][]float64) error {
	y := c.rest.Y
	losses, risks := make([][]float64, len(outputs)), make([]float64, len(outputs))
	hinge := make([]float64, len(outputs))
	for a, f := range outputs {
		losses[a] = make([]float64, len(f))
		for i := range f {
			losses[a][i] = max(0, 1-y[i]*f[i])
			hinge[a] += losses[a][i] / float64(len(f))
		}
		risks[a] = errorRate(f, y)
	}
	c.Values["best"], c.Values["worst"] = slices.Min(risks), slices.Max(risks)
	rng := trial.RNG(c.seed, "validation")
	for _, n := range c.Validations {
		var sup, excess, risk, most float64
		for range c.Draws {
			alpha, gap := chooseOnce(rng, losses, hinge, n)
			sup += gap
			excess += hinge[alpha] - slices.Min(hinge)
			risk += risks[alpha]
			most = max(most, risks[alpha])
		}
		draws := float64(c.Draws)
		c.Note("sup", sup/draws)
		c.Note("excess", excess/draws)
		c.Note("selected", risk/draws)
		c.Note("selected_max", most)
	}
	return nil
}

// chooseOnce is the α̂ of a validation set, of several the first, with sup |L − L̂_V|.
func chooseOnce(rng *rand.Rand, losses [][]float64, means []float64, n int) (alpha int, sup float64) {
	drawn, best := validation.Draw(rng, len(losses[0]), n), math.Inf(1)
	for a, loss := range losses {
		value := validation.MeanAt(loss, drawn)
		if sup = max(sup, math.Abs(value-means[a])); value < best {
			best, alpha = value, a
		}
	}
	return alpha, sup
}

// align labels a pool of inputs by the signs of the eigenvectors of its kernel K̄ at the middle of the simplex, and at
// random, trains the kernel on one half and tests on the other. Series over the ranks: term, error; values:
// random_term, random_error.
func (c *job) align(context.Context) error {
	alpha := spectral.Middle(len(c.acts))
	blocks, err := c.tangent.Blocks(c.rest.X, c.rest.X)
	if err != nil {
		return err
	}
	whole := spectral.Symmetric(blocks.At(alpha))
	_, vectors := spectral.Eigen(whole)
	rng := trial.RNG(c.seed, "halves")
	order := rng.Perm(c.Pool)
	labels := make([]float64, c.Pool)
	for _, rank := range c.Ranks {
		for i := range labels {
			labels[i] = math.Copysign(1, vectors.At(i, rank-1))
		}
		term, wrong, err := c.half(whole, order, labels)
		if err != nil {
			return err
		}
		c.Note("term", term)
		c.Note("error", wrong)
	}
	c.Values["random_term"], c.Values["random_error"], err = c.half(whole, order, trial.Signs(rng, c.Pool))
	return err
}

// half trains on the first c.Train inputs of order and tests on the others.
func (c *job) half(whole *mat.SymDense, order []int, labels []float64) (term, wrong float64, err error) {
	n, m := c.Train, len(order)-c.Train
	own, cross := mat.NewSymDense(n, nil), mat.NewDense(m, n, nil)
	y, truth := make([]float64, n), make([]float64, m)
	for i, at := range order {
		for j, with := range order[:n] {
			switch {
			case i < n && j >= i:
				own.SetSym(i, j, whole.At(at, with))
			case i >= n:
				cross.Set(i-n, j, whole.At(at, with))
			}
		}
		if i < n {
			y[i] = labels[at]
		} else {
			truth[i-n] = labels[at]
		}
	}
	if term, err = c.term(own, y); err != nil {
		return 0, 0, err
	}
	values, vectors := spectral.Eigen(own)
	var inEigen, coefficients, f mat.VecDense
	inEigen.MulVec(vectors.T(), mat.NewVecDense(n, y))
	for j, value := range values {
		inEigen.SetVec(j, inEigen.AtVec(j)/value)
	}
	coefficients.MulVec(vectors, &inEigen)
	f.MulVec(cross, &coefficients)
	return term, errorRate(f.RawVector().Data, truth), nil
}
