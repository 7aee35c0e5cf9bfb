// Package selection measures both sides of Oymak+ 2021, Theorem 2, the excess risk of feature-map selection, and of
// Proposition 1.
package selection

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/trial"
)

// Case is what a trial depends on but its seed. Part "select" is Theorem 2, "prop1" is Proposition 1.
type Case struct {
	Part       string          `json:"part"`
	Instance   instance.Params `json:"world"`
	Train      int             `json:"train,omitempty"`
	Noise      float64         `json:"noise,omitempty"`
	Validation []int           `json:"validation"` // prop1: n_T = n_V
	Fixed      int             `json:"fixed,omitempty"`
	Candidates int             `json:"candidates"`
	Pool       int             `json:"pool,omitempty"`
	Repeats    int             `json:"repeats"`
}

// Run computes one seed, see runSelection and runProposition. It returns an error if ctx is cancelled or some Φ_α is
// singular, so that (8) does not hold.
func (c Case) Run(ctx context.Context, seed uint64) (trial.Result, error) {
	if c.Part == "prop1" {
		return c.runProposition(ctx, seed)
	}
	return c.runSelection(ctx, seed)
}

// clipped is the loss min(1, |y − f|): 1-Lipschitz, bounded, 0 where y = f.
func clipped(y, f float64) float64 { return min(1, math.Abs(y-f)) }

// runSelection fits every candidate α, α* among them, by the interpolant of minimum norm. Its values are the parts of
// the bound: "term", yᵀK_α⁻¹y at its least and at α*; its series over n_V the risk of α̂ and the uniform gap.
func (c Case) runSelection(ctx context.Context, seed uint64) (trial.Result, error) {
	t := instance.NewTeacher(seed, c.Instance)
	x, y := t.LinearSample(trial.RNG(seed, "train"), c.Train, c.Noise)
	train, err := t.Mixture(x, y)
	if err != nil {
		return trial.Result{}, err
	}
	pool, labels := t.LinearSample(trial.RNG(seed, "pool"), c.Pool, c.Noise)
	random := instance.Candidates(trial.RNG(seed, "candidates"), c.Instance.Maps, c.Candidates)
	candidates := append([][]float64{t.Best}, random...)
	complexity, sigma, residual := math.Inf(1), math.Inf(1), 0.0
	var each [][]float64
	var risks []float64
	values := map[string]float64{}
	for i, alpha := range candidates {
		if err := ctx.Err(); err != nil {
			return trial.Result{}, err
		}
		fit, err := train.Fit(alpha, 0)
		if err != nil {
			return trial.Result{}, err
		}
		norm := floats.Dot(fit.Theta, fit.Theta) // yᵀK⁻¹y = ‖θ_α‖², θ_α of minimum norm
		if i == 0 {
			values["star"] = norm
		}
		complexity, residual = min(complexity, norm), max(residual, floats.Norm(fit.Residual, 2))
		least, err := train.MinSingular(alpha)
		if err != nil {
			return trial.Result{}, err
		}
		sigma = min(sigma, least)
		losses := validation.Losses(pool, labels, t.Weights(fit), clipped)
		each, risks = append(each, losses), append(risks, floats.Sum(losses)/float64(c.Pool))
	}
	series, err := c.choose(ctx, seed, each, risks)
	values["complexity"], values["term"] = complexity, 2*math.Sqrt(complexity/float64(c.Train))
	values["residual"], values["lambda0"] = residual, sigma*sigma
	values["labels"] = floats.Norm(y, 2)
	values["best"], values["average"] = slices.Min(risks), floats.Sum(risks)/float64(len(risks))
	return trial.Result{Series: series, Values: values}, err
}

// choose draws validation samples from the pool: mean risk of α̂ ("risk"), mean uniform gap ("gap") and the largest
// risk ("worst").
func (c Case) choose(ctx context.Context, seed uint64, each [][]float64, risks []float64) (
	map[string][]float64, error) {
	worst := make([]float64, len(c.Validation))
	series, err := validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		index := validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Pool, n)
		gap, chosen := validation.Choose(each, risks, index)
		sums["risk"] += chosen
		sums["gap"] += gap
		at := slices.Index(c.Validation, n)
		worst[at] = max(worst[at], chosen)
		return nil
	})
	if err == nil {
		series["worst"] = worst
	}
	return series, err
}

// runProposition has means over repeats: for n = n_T = n_V "end" is L(f_α̂^𝒯) − min L(f_α^𝒟), "train" is L(f_α^𝒯) −
// L(f_α^𝒟) at the centre (eq. 5), "gap" is the uniform gap; and for a fixed n_T "extra" is L(f_α̂^𝒯) − min L(f_α^𝒯)
// over n_V. "violations" counts L(f_α̂^𝒯) > min (L(f_α^𝒟) + C_α^𝒯/√n_T) + 2 gap with the smallest C_α^𝒯 ≥ 0 that (5)
// allows.
func (c Case) runProposition(ctx context.Context, seed uint64) (trial.Result, error) {
	t := instance.NewTeacher(seed, c.Instance)
	candidates := instance.Candidates(trial.RNG(seed, "candidates"), c.Instance.Maps, c.Candidates)
	var limits []float64
	for _, alpha := range candidates {
		w, err := t.Limit(alpha)
		if err != nil {
			return trial.Result{}, err
		}
		limits = append(limits, t.Risk(w))
	}
	centre, violations := min(c.Instance.Maps, len(candidates)-1), 0.0
	series, err := validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		one, err := c.propose(t, candidates, trial.RNG(seed, "prop1", fmt.Sprint(n, rep)), n, n)
		if err != nil {
			return err
		}
		fixed, err := c.propose(t, candidates, trial.RNG(seed, "fixed", fmt.Sprint(n, rep)), c.Fixed, n)
		if err != nil {
			return err
		}
		bound := math.Inf(1)
		for i, limit := range limits {
			bound = min(bound, limit+max(0, one.risks[i]-limit))
		}
		if one.chosen > (bound+2*one.gap)*(1+1e-12) {
			violations++
		}
		sums["end"] = sums["end"] + one.chosen - slices.Min(limits) // in this order of rounding
		sums["gap"] += one.gap
		sums["train"] += one.risks[centre] - limits[centre]
		sums["extra"] += fixed.chosen - slices.Min(fixed.risks)
		return nil
	})
	return trial.Result{Series: series, Values: map[string]float64{"violations": violations}}, err
}

type choice struct {
	risks       []float64 // L(f_α^𝒯) of every candidate
	chosen, gap float64
}

// propose fits every candidate on one training sample and chooses by one validation sample.
func (c Case) propose(t *instance.Teacher, candidates [][]float64, rng *rand.Rand, nTrain, nVal int) (choice, error) {
	x, y := t.Sample(rng, nTrain)
	train, err := t.Mixture(x, y)
	if err != nil {
		return choice{}, err
	}
	dev := t.Deviation(rng, nVal)
	out, least := choice{}, math.Inf(1)
	for _, alpha := range candidates {
		fit, err := train.Fit(alpha, 0)
		if err != nil {
			return choice{}, err
		}
		w := t.Weights(fit)
		gap, _ := dev.Gap(w)
		risk := t.Risk(w)
		out.risks, out.gap = append(out.risks, risk), max(out.gap, math.Abs(gap))
		if risk+gap < least {
			least, out.chosen = risk+gap, risk
		}
	}
	return out, nil
}
