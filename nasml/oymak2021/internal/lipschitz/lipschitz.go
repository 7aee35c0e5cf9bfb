// Package lipschitz measures the Lipschitz constant of feature-map selection, the bound of Lemma 1 of Oymak+ 2021, and
// the uniform gap.
package lipschitz

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/trial"
)

// Case is what a trial depends on but its seed: Δ is the simplex times Scale, with λ in [Lambda, Lambda + Range].
type Case struct {
	Instance   instance.Params `json:"world"`
	Train      int             `json:"train"`
	Lambda     float64         `json:"lambda"`
	Range      float64         `json:"range"`
	Scale      float64         `json:"scale"`
	Candidates int             `json:"candidates"`
	Pool       int             `json:"pool"`
	Validation []int           `json:"validation"`
	Repeats    int             `json:"repeats"`
}

// Radius is R, the ℓ₁ radius of Δ with λ as its last coordinate, at least 1.
func (c Case) Radius() float64 { return max(1, c.Scale+c.Lambda+c.Range) }

// argument is that of Lemma 1's logarithm, 20R³Bn_T²λ₀⁻²(Bn_T + 1) with B = 1 and R to a power: 3 as printed.
func (c Case) argument(lambda0, power float64) float64 {
	n := float64(c.Train)
	return 20 * math.Pow(c.Radius(), power) * n * n / (lambda0 * lambda0) * (n + 1)
}

// derived is a Lipschitz constant of (α, λ) ↦ f_α that follows from
// differentiating f = φ_αᵀΦ_αᵀK⁻¹y term by term, K ⪰ λ₀I, B = 1:
//
//	|∂ᵢf| ≤ 2R√n‖y‖/λ₀ + 2R³n^{3/2}‖y‖/λ₀² ,   |∂_λf| ≤ R²√n‖y‖/λ₀² .
func (c Case) derived(lambda0, y float64) float64 {
	n, r := float64(c.Train), c.Scale // φ_α is bounded by the ℓ₁ norm of α alone
	first := 2*r*math.Sqrt(n)*y/lambda0 + 2*r*r*r*math.Pow(n, 1.5)*y/(lambda0*lambda0)
	last := r * r * math.Sqrt(n) * y / (lambda0 * lambda0)
	return math.Sqrt(float64(c.Instance.Maps)*first*first + last*last)
}

// ramp is the loss min(1, max(0, 1 − yf)): bounded by 1 and 1-Lipschitz in f, as Lemma 1 requires.
func ramp(y, f float64) float64 { return min(1, max(0, 1-y*f)) }

// Run measures the Lipschitz constant of f_α in the norm sup over the unit sphere, σ_max(∂w/∂(α, λ)), over candidates
// of Δ ("lipschitz"), the bounds on it ("argument", "repaired" with R⁴, "derived") with their λ₀, and the suprema of
// the gap, see gaps. It returns an error if ctx is cancelled or some Φ_α is singular at λ = 0.
func (c Case) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	t := instance.NewTeacher(seed, c.Instance)
	x, y := t.Sample(trial.RNG(seed, "train"), c.Train)
	train, err := t.Mixture(x, y)
	if err != nil {
		return trial.Result{}, err
	}
	pool, labels := t.Sample(trial.RNG(seed, "pool"), c.Pool)
	lipschitz, sigma := 0.0, math.Inf(1)
	var each [][]float64
	rng := trial.RNG(seed, "candidates")
	for i, alpha := range instance.Candidates(rng, c.Instance.Maps, c.Candidates) {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		lambda := c.Lambda
		if i%2 == 1 {
			lambda += c.Range * rng.Float64()
		}
		floats.Scale(c.Scale, alpha)
		w, slope, err := fit(t, train, alpha, lambda, c.Range > 0)
		if err != nil {
			return trial.Result{}, err
		}
		lipschitz = max(lipschitz, slope)
		least, err := train.MinSingular(alpha)
		if err != nil {
			return trial.Result{}, err
		}
		sigma = min(sigma, least)
		each = append(each, validation.Losses(pool, labels, w, ramp))
	}
	if c.Train > min(c.Instance.Inputs, c.Instance.Features) {
		sigma = 0 // Φ_α cannot have n_T singular values that are not 0
	}
	lambda0 := c.Lambda + sigma*sigma
	series, err := c.gaps(ctx, seed, each)
	return trial.Result{Series: series, Values: map[string]float64{
		"lipschitz": lipschitz, "lambda0": lambda0,
		"argument": c.argument(lambda0, 3), "repaired": c.argument(lambda0, 4),
		"derived": c.derived(lambda0, floats.Norm(y, 2)),
	}}, err
}

// fit is w_α with the largest singular value of ∂w/∂(α, λ), or of ∂w/∂α if λ does not vary.
func fit(t *instance.Teacher, train *features.Mixture, alpha []float64, lambda float64, varies bool) (
	w []float64, slope float64, err error) {
	fitted, err := train.Fit(alpha, lambda)
	if err != nil {
		return nil, 0, err
	}
	jacobian, err := t.Jacobian(fitted)
	if err != nil {
		return nil, 0, err
	}
	_, columns := jacobian.Dims()
	if !varies {
		columns--
	}
	rows := make([][]float64, columns)
	for j := range rows {
		rows[j] = mat.Col(nil, j, jacobian)
	}
	return t.Weights(fitted), instance.Largest(rows), nil
}

// gaps draws validation samples from the pool: for every n_V the mean supremum of |L̂_V − L| ("gap") and the mean
// excess risk of the minimizer of L̂_V over all (α, λ) ("excess").
func (c Case) gaps(ctx context.Context, seed uint64, each [][]float64) (map[string][]float64, error) {
	var risks []float64
	for _, losses := range each {
		risks = append(risks, floats.Sum(losses)/float64(len(losses)))
	}
	best := slices.Min(risks)
	return validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		index := validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Pool, n)
		gap, chosen := validation.Choose(each, risks, index)
		sums["gap"] += gap
		sums["excess"] = sums["excess"] + chosen - best // in this order of rounding
		return nil
	})
}
