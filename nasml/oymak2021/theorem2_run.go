package oymak2021

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
)

// thm2Case is what a trial depends on but its seed. Part "select" is Theorem 2,
// "prop1" is Proposition 1.
type thm2Case struct {
	Part       string    `json:"part"`
	World      thm1World `json:"world"`
	Train      int       `json:"train,omitempty"`
	Noise      float64   `json:"noise,omitempty"`
	Validation []int     `json:"validation"` // prop1: n_T = n_V
	Fixed      int       `json:"fixed,omitempty"`
	Candidates int       `json:"candidates"`
	Pool       int       `json:"pool,omitempty"`
	Repeats    int       `json:"repeats"`
}

func (c thm2Case) run(ctx context.Context, seed uint64) (runs.Result, error) {
	if c.Part == "prop1" {
		return c.runProposition(ctx, seed)
	}
	return c.runSelection(ctx, seed)
}

// thm2Clipped is the loss min(1, |y − f|): 1-Lipschitz, bounded, 0 where y = f.
func thm2Clipped(y, f float64) float64 { return min(1, math.Abs(y-f)) }

// thm2Linear labels a sample by y = φ_{α*}(x)ᵀθ* + noise·ε with ‖θ*‖ = 1.
func thm2Linear(t *thm1Teacher, rng *rand.Rand, n int, noise float64) (*mat.Dense, []float64) {
	x, _ := t.sample(rng, n)
	p := t.at(t.best)
	var theta, w, y mat.VecDense
	theta.MulVec(p, mat.NewVecDense(len(t.star), t.star))
	theta.ScaleVec(1/mat.Norm(&theta, 2), &theta)
	w.MulVec(p.T(), &theta)
	y.MulVec(x, &w)
	out := y.RawVector().Data
	for i := range out {
		out[i] += noise * rng.NormFloat64()
	}
	return x, out
}

// runSelection fits every candidate α, α* among them, by the interpolant of
// minimum norm. Its values are the parts of the bound: "term", yᵀK_α⁻¹y at its
// least and at α*; its series over n_V the risk of α̂ and the uniform gap.
func (c thm2Case) runSelection(ctx context.Context, seed uint64) (runs.Result, error) {
	t := newThm1Teacher(seed, c.World)
	x, y := thm2Linear(t, runs.RNG(seed, "train"), c.Train, c.Noise)
	train, err := t.mixture(x, y)
	if err != nil {
		return runs.Result{}, err
	}
	pool, labels := thm2Linear(t, runs.RNG(seed, "pool"), c.Pool, c.Noise)
	candidates := append([][]float64{t.best}, thm1Candidates(runs.RNG(seed, "candidates"), c.World.Maps, c.Candidates)...)
	complexity, sigma, residual := math.Inf(1), math.Inf(1), 0.0
	var each [][]float64
	var risks []float64
	values := map[string]float64{}
	for i, alpha := range candidates {
		if err := ctx.Err(); err != nil {
			return runs.Result{}, err
		}
		fit, err := train.Fit(alpha, 0)
		if err != nil {
			return runs.Result{}, err
		}
		norm := floats.Dot(fit.Theta, fit.Theta) // yᵀK⁻¹y = ‖θ_α‖² for the interpolant of minimum norm
		if i == 0 {
			values["star"] = norm
		}
		complexity, residual = min(complexity, norm), max(residual, floats.Norm(fit.Residual, 2))
		least, err := train.MinSingular(alpha)
		if err != nil {
			return runs.Result{}, err
		}
		sigma = min(sigma, least)
		losses, err := thm2Losses(t, fit, pool, labels)
		if err != nil {
			return runs.Result{}, err
		}
		each, risks = append(each, losses), append(risks, floats.Sum(losses)/float64(c.Pool))
	}
	result := c.choose(seed, each, risks)
	n := float64(c.Train)
	values["complexity"], values["term"] = complexity, 2*math.Sqrt(complexity/n)
	values["residual"], values["lambda0"] = residual, sigma*sigma
	values["labels"] = floats.Norm(y, 2)
	values["best"], values["average"] = slices.Min(risks), floats.Sum(risks)/float64(len(risks))
	result.Values = values
	return result, nil
}

// thm2Losses are the losses of f_α on every example of the pool.
func thm2Losses(t *thm1Teacher, fit *features.MixtureFit, pool *mat.Dense, labels []float64) ([]float64, error) {
	w, _, err := t.weights(fit, false)
	if err != nil {
		return nil, err
	}
	var outputs mat.VecDense
	outputs.MulVec(pool, mat.NewVecDense(len(w), w))
	losses := make([]float64, len(labels))
	for k := range losses {
		losses[k] = thm2Clipped(labels[k], outputs.AtVec(k))
	}
	return losses, nil
}

// choose draws validation samples from the pool: mean risk of α̂ ("risk"), mean
// uniform gap ("gap") and the largest risk ("worst").
func (c thm2Case) choose(seed uint64, each [][]float64, risks []float64) runs.Result {
	series := map[string][]float64{}
	for _, n := range c.Validation {
		var risk, gap float64
		worst := 0.0
		for rep := range c.Repeats {
			index := thm1Draw(runs.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Pool, n)
			sup, least, chosen := 0.0, math.Inf(1), 0.0
			for i, losses := range each {
				value := thm1MeanAt(losses, index)
				sup = max(sup, math.Abs(value-risks[i]))
				if value < least {
					least, chosen = value, risks[i]
				}
			}
			risk, gap, worst = risk+chosen, gap+sup, max(worst, chosen)
		}
		series["risk"] = append(series["risk"], risk/float64(c.Repeats))
		series["gap"] = append(series["gap"], gap/float64(c.Repeats))
		series["worst"] = append(series["worst"], worst)
	}
	return runs.Result{Series: series}
}

// thm2Population is w of f_α^𝒟, the limit n_T → ∞ with λ = 0: the best predictor in
// the row space of P_α, the projection of d·c·u* onto it.
func thm2Population(t *thm1Teacher, alpha []float64) ([]float64, error) {
	p := t.at(alpha)
	target := mat.NewVecDense(t.Inputs, floats.ScaleTo(make([]float64, t.Inputs), float64(t.Inputs)*t.correlation(), t.star))
	var theta, w mat.VecDense
	if err := theta.SolveVec(p.T(), target); err != nil {
		return nil, fmt.Errorf("proposition 1: P_α at α = %.4g: %w", alpha, err)
	}
	w.MulVec(p.T(), &theta)
	return w.RawVector().Data, nil
}

// runProposition has means over repeats: for n = n_T = n_V "end" is
// L(f_α̂^𝒯) − min L(f_α^𝒟), "train" is L(f_α^𝒯) − L(f_α^𝒟) at the centre (eq. 5),
// "gap" is the uniform gap; and for a fixed n_T "extra" is
// L(f_α̂^𝒯) − min L(f_α^𝒯) over n_V. "violations" counts
// L(f_α̂^𝒯) > min (L(f_α^𝒟) + C_α^𝒯/√n_T) + 2 gap with the smallest C_α^𝒯 ≥ 0 that
// (5) allows.
func (c thm2Case) runProposition(ctx context.Context, seed uint64) (runs.Result, error) {
	t := newThm1Teacher(seed, c.World)
	candidates := thm1Candidates(runs.RNG(seed, "candidates"), c.World.Maps, c.Candidates)
	var limits []float64
	for _, alpha := range candidates {
		w, err := thm2Population(t, alpha)
		if err != nil {
			return runs.Result{}, err
		}
		limits = append(limits, t.risk(w))
	}
	series, violations := map[string][]float64{}, 0.0
	for _, n := range c.Validation {
		var end, train, gap, extra float64
		for rep := range c.Repeats {
			if err := ctx.Err(); err != nil {
				return runs.Result{}, err
			}
			one, err := c.propose(t, candidates, runs.RNG(seed, "prop1", fmt.Sprint(n, rep)), n, n)
			if err != nil {
				return runs.Result{}, err
			}
			end, gap = end+one.chosen-slices.Min(limits), gap+one.gap
			train += one.risks[min(c.World.Maps, len(candidates)-1)] - limits[min(c.World.Maps, len(candidates)-1)]
			bound := math.Inf(1)
			for i, limit := range limits {
				bound = min(bound, limit+max(0, one.risks[i]-limit))
			}
			if one.chosen > (bound+2*one.gap)*(1+1e-12) {
				violations++
			}
			fixed, err := c.propose(t, candidates, runs.RNG(seed, "fixed", fmt.Sprint(n, rep)), c.Fixed, n)
			if err != nil {
				return runs.Result{}, err
			}
			extra += fixed.chosen - slices.Min(fixed.risks)
		}
		for name, sum := range map[string]float64{"end": end, "train": train, "gap": gap, "extra": extra} {
			series[name] = append(series[name], sum/float64(c.Repeats))
		}
	}
	return runs.Result{Series: series, Values: map[string]float64{"violations": violations}}, nil
}

// thm2Chosen is one train-validation run.
type thm2Chosen struct {
	risks       []float64 // L(f_α^𝒯) of every candidate
	chosen, gap float64
}

func (c thm2Case) propose(t *thm1Teacher, candidates [][]float64, rng *rand.Rand, nTrain, nVal int) (thm2Chosen, error) {
	x, y := t.sample(rng, nTrain)
	train, err := t.mixture(x, y)
	if err != nil {
		return thm2Chosen{}, err
	}
	dev := t.deviation(rng, nVal)
	out, least := thm2Chosen{}, math.Inf(1)
	for _, alpha := range candidates {
		w, err := thm2Weights(t, train, alpha)
		if err != nil {
			return thm2Chosen{}, err
		}
		gap, _ := dev.gap(w)
		risk := t.risk(w)
		out.risks, out.gap = append(out.risks, risk), max(out.gap, math.Abs(gap))
		if risk+gap < least {
			least, out.chosen = risk+gap, risk
		}
	}
	return out, nil
}

func thm2Weights(t *thm1Teacher, train *features.Mixture, alpha []float64) ([]float64, error) {
	fit, err := train.Fit(alpha, 0)
	if err != nil {
		return nil, err
	}
	w, _, err := t.weights(fit, false)
	return w, err
}
