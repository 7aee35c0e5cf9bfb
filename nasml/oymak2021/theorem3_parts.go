package oymak2021

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// thm3Part is what a record depends on, beside its seed. What does not apply
// stays 0, so that it changes no key.
type thm3Part struct {
	Part        string    `json:"part"` // "descent", "kernel", "align" or "paired"
	World       thm3World `json:"world"`
	Activations []string  `json:"activations"`
	Alphas      int       `json:"alphas,omitempty"`
	Train       int       `json:"train"`
	Pool        int       `json:"pool"`

	Width   int     `json:"width,omitempty"`
	C0      float64 `json:"c0,omitempty"`
	Steps   int     `json:"steps,omitempty"`
	Epsilon float64 `json:"epsilon,omitempty"`

	Validations []int `json:"validations,omitempty"`
	Draws       int   `json:"draws,omitempty"`
	Ranks       []int `json:"ranks,omitempty"`
}

// thm3Case is a part with its examples and kernels.
type thm3Case struct {
	thm3Part
	seed        uint64
	acts        []spectral.Activation
	bound       float64 // B
	train, rest thm3Examples
	tangent     *spectral.Tangent
	own, cross  *spectral.Blocks // K̄ of the training inputs, and of the pool with them
	result      runs.Result
}

func (t thm3Part) run(ctx context.Context, seed uint64, images *thm3ImageSet) (runs.Result, error) {
	c := &thm3Case{thm3Part: t, seed: seed, result: runs.Result{Values: map[string]float64{}, Series: map[string][]float64{}}}
	var err error
	if c.acts, err = spectral.NamedActivations(t.Activations...); err != nil {
		return c.result, err
	}
	for _, a := range c.acts {
		c.bound = max(c.bound, a.Bound())
	}
	if c.tangent, err = spectral.NewTangent(c.acts...); err != nil {
		return c.result, err
	}
	if c.train, c.rest, err = t.World.draw(seed, t.Train, t.Pool, images); err != nil {
		return c.result, err
	}
	switch t.Part {
	case "align":
		err = c.align()
	case "kernel":
		err = c.kernels(ctx)
	case "paired":
		err = c.onlyTrain(ctx)
	default:
		err = c.descents(ctx)
	}
	return c.result, err
}

// onlyTrain trains every α without a look at K̄, which may be singular. Series
// over α: train_error, where an output of less than 10⁻⁹ counts as 0, that is as
// an error: the least squares fit of pairs with f(−x) = −f(x) and one label is
// f = 0, of which rounding would make a sign.
func (c *thm3Case) onlyTrain(ctx context.Context) error {
	_, d := c.train.x.Dims()
	net, err := newThm3Network(c.train.x, c.rest.x, spectral.Normals(runs.RNG(c.seed, "weights"), c.Width, d), c.train.y, c.C0)
	if err != nil {
		return err
	}
	for _, alpha := range c.alphas() {
		done, err := net.descend(ctx, spectral.NewTable(spectral.Mixture{Activations: c.acts, Alpha: alpha}), c.Steps, c.Epsilon)
		if err != nil {
			return fmt.Errorf("α = %.3v, k = %d, n_T = %d: %w", alpha, c.Width, c.Train, err)
		}
		for i, f := range done.Train {
			if math.Abs(f) < 1e-9 {
				done.Train[i] = 0
			}
		}
		c.note("train_error", thm3Error(done.Train, c.train.y))
	}
	return nil
}

// alphas are the points of Δ: corners, the middle, then random ones.
func (c *thm3Case) alphas() [][]float64 {
	h := len(c.acts)
	var all [][]float64
	for j := range h {
		corner := make([]float64, h)
		corner[j] = 1
		all = append(all, corner)
	}
	if h > 1 {
		all = append(all, middle(h))
	}
	rng := runs.RNG(c.seed, "alphas")
	for range c.Alphas {
		all = append(all, spectral.SimplexPoint(rng, h))
	}
	return all
}

func middle(h int) []float64 {
	alpha := make([]float64, h)
	for j := range alpha {
		alpha[j] = 1 / float64(h)
	}
	return alpha
}

func (c *thm3Case) openKernels() error {
	var err error
	if c.own, err = c.tangent.Blocks(c.train.x, c.train.x); err != nil {
		return err
	}
	c.cross, err = c.tangent.Blocks(c.rest.x, c.train.x)
	return err
}

// term is 2B√(yᵀK̄⁻¹y/n_T).
func (c *thm3Case) term(k *mat.SymDense, y []float64) (float64, error) {
	form, err := spectral.InverseForm(k, y)
	return 2 * c.bound * math.Sqrt(form/float64(len(y))), err
}

// descents trains every α and selects among them.
//
// Series over α: term, train_error, test_error, ntk_error (of the kernel of
// infinite width), steps (to a training error that stays at most ε; −1:
// never), needed (see descend), movement, gap (of network and linearization
// on the pool), cap (see analyticCap), initial (|f₀|). Series over steps:
// errors, the largest training error over α. Further those of choose.
func (c *thm3Case) descents(ctx context.Context) error {
	if err := c.openKernels(); err != nil {
		return err
	}
	_, d := c.train.x.Dims()
	net, err := newThm3Network(c.train.x, c.rest.x, spectral.Normals(runs.RNG(c.seed, "weights"), c.Width, d), c.train.y, c.C0)
	if err != nil {
		return err
	}
	var outputs [][]float64
	worst := make([]float64, c.Steps+1)
	for _, alpha := range c.alphas() {
		done, err := net.descend(ctx, spectral.NewTable(spectral.Mixture{Activations: c.acts, Alpha: alpha}), c.Steps, c.Epsilon)
		if err != nil {
			return fmt.Errorf("α = %.3v, k = %d, n_T = %d: %w", alpha, c.Width, c.Train, err)
		}
		for i, e := range done.Errors {
			worst[i] = max(worst[i], e)
		}
		k := spectral.Symmetric(c.own.At(alpha))
		term, err := c.term(k, c.train.y)
		if err != nil {
			return fmt.Errorf("α = %.3v: %w", alpha, err)
		}
		kernel, err := c.predict(k, alpha)
		if err != nil {
			return err
		}
		c.note("term", term)
		c.note("cap", c.analyticCap(alpha))
		c.note("train_error", done.Errors[c.Steps])
		c.note("test_error", thm3Error(done.Pool, c.rest.y))
		c.note("ntk_error", thm3Error(kernel, c.rest.y))
		c.note("steps", float64(done.Reached))
		c.note("needed", min(done.Needed, math.MaxInt32))
		c.note("movement", done.Movement)
		c.note("gap", done.LinearGap)
		c.note("initial", done.InitialMax)
		outputs = append(outputs, done.Pool)
	}
	c.result.Series["errors"] = worst
	return c.choose(outputs)
}

func (c *thm3Case) note(name string, value float64) {
	c.result.Series[name] = append(c.result.Series[name], value)
}

// predict is the kernel's interpolant K̄(pool, X)K̄⁻¹y.
func (c *thm3Case) predict(k *mat.SymDense, alpha []float64) ([]float64, error) {
	var cholesky mat.Cholesky
	if !cholesky.Factorize(k) {
		return nil, fmt.Errorf("kernel matrix of α = %.3v is not positive definite: look for equal or opposite inputs", alpha)
	}
	var coefficients, f mat.VecDense
	if err := cholesky.SolveVecTo(&coefficients, mat.NewVecDense(len(c.train.y), c.train.y)); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) { // ill-conditioned is solved, and InverseForm has judged it
			return nil, err
		}
	}
	f.MulVec(c.cross.At(alpha), &coefficients)
	return f.RawVector().Data, nil
}

// analyticCap is an upper bound of the term for labels of the cap, our own
// finding: there y = ⟨x, e₁⟩/cos φ is linear, and linear functions have a small
// norm in every kernel, so that yᵀK̄⁻¹y ≤ 1/(cos φ Σⱼ αⱼEσⱼ′)². 0 for other
// sources, to which it does not apply.
func (c *thm3Case) analyticCap(alpha []float64) float64 {
	if c.World.Data != thm3Cap {
		return 0
	}
	var slope float64
	for i, a := range alpha {
		for j, b := range alpha {
			slope += a * b * c.tangent.Pair(i, j, 0) // (Σ αⱼEσⱼ′)², as u and v are independent
		}
	}
	return 2 * c.bound / (c.World.CosPhi * math.Sqrt(slope*float64(c.Train)))
}

// kernels selects among the interpolants of infinite width.
func (c *thm3Case) kernels(ctx context.Context) error {
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

// choose draws validation sets of every size n_V, with replacement, from the
// pool, which stands for 𝒟, and minimizes the hinge loss over Δ. Series over
// n_V, means over the draws: sup (of |L − L̂_V| over Δ), excess (L(f_α̂) − min L,
// hinge), selected (0-1 risk of α̂), selected_max (its largest). Values: best,
// worst (0-1 risks over Δ).
func (c *thm3Case) choose(outputs [][]float64) error {
	y := c.rest.y
	losses, risks := make([][]float64, len(outputs)), make([]float64, len(outputs))
	hinge := make([]float64, len(outputs))
	for a, f := range outputs {
		losses[a] = make([]float64, len(f))
		for i := range f {
			losses[a][i] = max(0, 1-y[i]*f[i])
			hinge[a] += losses[a][i] / float64(len(f))
		}
		risks[a] = thm3Error(f, y)
	}
	c.result.Values["best"], c.result.Values["worst"] = minOf(risks), -minOf(negated(risks))
	rng := runs.RNG(c.seed, "validation")
	for _, n := range c.Validations {
		var sum thm3Choice
		for range c.Draws {
			one := chooseOnce(rng, losses, hinge, n)
			sum.sup += one.sup
			sum.excess += one.excess
			sum.risk += risks[one.alpha]
			sum.most = max(sum.most, risks[one.alpha])
		}
		draws := float64(c.Draws)
		c.note("sup", sum.sup/draws)
		c.note("excess", sum.excess/draws)
		c.note("selected", sum.risk/draws)
		c.note("selected_max", sum.most)
	}
	return nil
}

// thm3Choice is what a validation set gave.
type thm3Choice struct {
	alpha                   int
	sup, excess, risk, most float64
}

func chooseOnce(rng *rand.Rand, losses [][]float64, means []float64, n int) thm3Choice {
	drawn := make([]int, n)
	for i := range drawn {
		drawn[i] = rng.IntN(len(losses[0]))
	}
	best := math.Inf(1)
	var choice thm3Choice
	for a, loss := range losses {
		var sum float64
		for _, i := range drawn {
			sum += loss[i]
		}
		sum /= float64(n)
		choice.sup = max(choice.sup, math.Abs(sum-means[a]))
		if sum < best {
			best, choice.alpha = sum, a
		}
	}
	choice.excess = means[choice.alpha] - minOf(means)
	return choice
}

func minOf(xs []float64) float64 {
	least := math.Inf(1)
	for _, x := range xs {
		least = min(least, x)
	}
	return least
}

func negated(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = -x
	}
	return out
}

// align labels a pool of inputs by the signs of the eigenvectors of its kernel
// K̄ at the middle of the simplex, and at random, trains the kernel on one half
// and tests on the other. Series over the ranks: term, error; values:
// random_term, random_error.
func (c *thm3Case) align() error {
	alpha := middle(len(c.acts))
	blocks, err := c.tangent.Blocks(c.rest.x, c.rest.x)
	if err != nil {
		return err
	}
	whole := spectral.Symmetric(blocks.At(alpha))
	_, vectors, err := spectral.Eigen(whole)
	if err != nil {
		return err
	}
	rng := runs.RNG(c.seed, "halves")
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
		c.note("term", term)
		c.note("error", wrong)
	}
	for i := range labels {
		labels[i] = float64(2*rng.IntN(2) - 1)
	}
	c.result.Values["random_term"], c.result.Values["random_error"], err = c.half(whole, order, labels)
	return err
}

// half trains on the first c.Train inputs of order and tests on the others.
func (c *thm3Case) half(whole *mat.SymDense, order []int, labels []float64) (term, wrong float64, err error) {
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
	values, vectors, err := spectral.Eigen(own)
	if err != nil {
		return 0, 0, err
	}
	var inEigen, coefficients, f mat.VecDense
	inEigen.MulVec(vectors.T(), mat.NewVecDense(n, y))
	for j, value := range values {
		inEigen.SetVec(j, inEigen.AtVec(j)/value)
	}
	coefficients.MulVec(vectors, &inEigen)
	f.MulVec(cross, &coefficients)
	return term, thm3Error(f.RawVector().Data, truth), nil
}
