package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
)

// thm1Case is a curve over n_V: what a trial depends on but its seed.
type thm1Case struct {
	Part       string     `json:"part"`
	Maps       int        `json:"maps,omitempty"` // h
	Validation []int      `json:"validation"`
	Repeats    int        `json:"repeats"`
	World      *thm1World `json:"world,omitempty"`
	Train      int        `json:"train,omitempty"`
	Lambda     float64    `json:"lambda"`
	Bad        bool       `json:"bad,omitempty"`
	Candidates int        `json:"candidates,omitempty"`
	Ascent     int        `json:"ascent,omitempty"`
	Net        *thm1Net   `json:"net,omitempty"`
	Loss       string     `json:"loss,omitempty"`
	Lipschitz  []float64  `json:"lipschitz,omitempty"`
}

func (c thm1Case) run(ctx context.Context, seed uint64, images *data.Images) (runs.Result, error) {
	switch c.Part {
	case "tight":
		return c.runTight(ctx, seed)
	case "ridge":
		return c.runRidge(ctx, seed)
	case "net":
		return c.runNet(ctx, seed, images)
	case "lipschitz":
		return c.runLipschitz(seed), nil
	}
	return thm1RunCover(seed), nil
}

// runTight has for every n_V the means over validation samples of the suprema
// over the ball of R^h ("gap", "gradient") and over its two-dimensional part
// ("gap2", "gradient2"), and of the gap at one α ("fixed").
func (c thm1Case) runTight(ctx context.Context, seed uint64) (runs.Result, error) {
	series := map[string][]float64{}
	for _, n := range c.Validation {
		if err := ctx.Err(); err != nil {
			return runs.Result{}, err
		}
		sums := map[string]float64{}
		for rep := range c.Repeats {
			t := newThm1Tight(runs.RNG(seed, "tight", fmt.Sprint(c.Maps, n, rep)), c.Maps, n)
			gap, gradient, err := t.gaps(c.Maps)
			if err != nil {
				return runs.Result{}, err
			}
			gap2, gradient2, err := t.gaps(min(2, c.Maps))
			if err != nil {
				return runs.Result{}, err
			}
			for name, v := range map[string]float64{"gap": gap, "gradient": gradient, "gap2": gap2, "gradient2": gradient2, "fixed": t.fixed()} {
				sums[name] += v
			}
		}
		for name, sum := range sums {
			series[name] = append(series[name], sum/float64(c.Repeats))
		}
	}
	return runs.Result{Series: series}, nil
}

// thm1Fitted is a candidate α with what its risk and hypergradient need.
type thm1Fitted struct {
	alpha []float64
	w     []float64
	jac   []([]float64) // rows ∂w/∂αᵢ, [h][d]
	risk  float64
	train float64 // mean squared training residual
}

// runRidge fits every candidate once and then draws validation samples: for
// every n_V "gap" and "gradient" are means of the suprema over α, "fixed" of the
// gap at the centre of Δ, "excess" of L(f_α̂) − min L.
func (c thm1Case) runRidge(ctx context.Context, seed uint64) (runs.Result, error) {
	t := newThm1Teacher(seed, *c.World)
	train, err := c.trainingSample(t, seed)
	if err != nil {
		return runs.Result{}, err
	}
	var fits []thm1Fitted
	for _, alpha := range thm1Candidates(runs.RNG(seed, "candidates"), c.Maps, c.Candidates) {
		fit, err := c.fit(t, train, alpha)
		if err != nil {
			return runs.Result{}, err
		}
		fits = append(fits, fit)
	}
	best, worst, trainMax, lipschitz, slope := math.Inf(1), 0.0, 0.0, 0.0, 0.0
	for _, f := range fits {
		best, worst, trainMax = min(best, f.risk), max(worst, f.risk), max(trainMax, f.train)
		lipschitz, slope = max(lipschitz, thm1Largest(f.jac)), max(slope, 2*(1+thm1Norm(f.w)))
	}
	series := map[string][]float64{}
	violations := 0.0
	for _, n := range c.Validation {
		var gap, gradient, fixed, excess float64
		for rep := range c.Repeats {
			if err := ctx.Err(); err != nil {
				return runs.Result{}, err
			}
			one, err := c.validate(t, train, fits, t.deviation(runs.RNG(seed, "validation", fmt.Sprint(n, rep)), n))
			if err != nil {
				return runs.Result{}, err
			}
			gap, gradient, fixed, excess = gap+one.gap, gradient+one.gradient, fixed+one.fixed, excess+one.chosen-best
			if one.chosen-best > 2*one.gap*(1+1e-12) {
				violations++
			}
		}
		for name, sum := range map[string]float64{"gap": gap, "gradient": gradient, "fixed": fixed, "excess": excess} {
			series[name] = append(series[name], sum/float64(c.Repeats))
		}
	}
	return runs.Result{Series: series, Values: map[string]float64{
		"best": best, "worst": worst, "train": trainMax, "violations": violations, "lipschitz": lipschitz, "slope": slope}}, nil
}

// trainingSample has coin flips for labels where c.Bad says so.
func (c thm1Case) trainingSample(t *thm1Teacher, seed uint64) (*features.Mixture, error) {
	rng := runs.RNG(seed, "train")
	x, y := t.sample(rng, c.Train)
	if c.Bad {
		for i := range y {
			y[i] = 1 - 2*float64(rng.IntN(2))
		}
	}
	return t.mixture(x, y)
}

func (c thm1Case) fit(t *thm1Teacher, train *features.Mixture, alpha []float64) (thm1Fitted, error) {
	fit, err := train.Fit(alpha, c.Lambda)
	if err != nil {
		return thm1Fitted{}, err
	}
	w, jac, err := t.weights(fit, true)
	if err != nil {
		return thm1Fitted{}, err
	}
	out := thm1Fitted{alpha: alpha, w: w, risk: t.risk(w), train: thm1Norm(fit.Residual) * thm1Norm(fit.Residual) / float64(len(fit.Residual))}
	for i := range alpha {
		row := make([]float64, len(w))
		for k := range row {
			row[k] = jac.At(k, i)
		}
		out.jac = append(out.jac, row)
	}
	return out, nil
}

// thm1Validated is what one validation sample gives.
type thm1Validated struct {
	gap, gradient, fixed, chosen float64
}

// validate takes the suprema over the candidates and goes uphill from the
// largest gap: a lower bound of the supremum over the simplex.
func (c thm1Case) validate(t *thm1Teacher, train *features.Mixture, fits []thm1Fitted, dev thm1Deviation) (thm1Validated, error) {
	out := thm1Validated{}
	least, at := math.Inf(1), 0
	for i, f := range fits {
		gap, grad := dev.gap(f.w)
		if math.Abs(gap) > out.gap {
			out.gap, at = math.Abs(gap), i
		}
		out.gradient = max(out.gradient, thm1Norm(thm1Times(f.jac, grad)))
		if i == min(c.Maps, len(fits)-1) { // the centre
			out.fixed = math.Abs(gap)
		}
		if f.risk+gap < least { // α̂ has the least L̂_V = L + (L̂_V − L)
			least, out.chosen = f.risk+gap, f.risk
		}
	}
	f, eta := fits[at], 1.0
	for range c.Ascent {
		gap, grad := dev.gap(f.w)
		up := thm1Times(f.jac, grad)
		for i := range up {
			up[i] *= math.Copysign(eta, gap)
		}
		next, err := c.fit(t, train, thm1Multiplied(f.alpha, up))
		if err != nil {
			return out, err
		}
		moved, movedGrad := dev.gap(next.w)
		out.gradient = max(out.gradient, thm1Norm(thm1Times(next.jac, movedGrad)))
		if math.Abs(moved) <= math.Abs(gap) {
			eta /= 4
			continue
		}
		f, eta, out.gap = next, 2*eta, max(out.gap, math.Abs(moved))
	}
	return out, nil
}

// thm1Multiplied is one exponentiated step in the simplex; every coordinate is
// first lifted a little, so that a vertex can be left.
func thm1Multiplied(alpha, up []float64) []float64 {
	most := thm1Norm(up)
	out, sum := make([]float64, len(alpha)), 0.0
	for i, a := range alpha {
		out[i] = (0.99*a + 0.01/float64(len(alpha))) * math.Exp(up[i]/max(most, 1))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func thm1Times(rows [][]float64, v []float64) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		for k, x := range row {
			out[i] += x * v[k]
		}
	}
	return out
}

func thm1Norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// runNet trains a network for every candidate and draws validation samples from
// the pool: series as in runRidge, without the gradient.
func (c thm1Case) runNet(ctx context.Context, seed uint64, images *data.Images) (runs.Result, error) {
	task, err := newThm1Task(images, *c.Net, seed)
	if err != nil {
		return runs.Result{}, err
	}
	var each [][]float64
	var risks []float64
	trainError, trainLoss := 0.0, 0.0
	for _, alpha := range thm1Candidates(runs.RNG(seed, "candidates"), c.Maps, c.Candidates) {
		train, pool, err := task.train(ctx, alpha)
		if err != nil {
			return runs.Result{}, err
		}
		losses := thm1Each(c.Loss, task.yPool, pool)
		each, risks = append(each, losses), append(risks, thm1Mean(losses))
		trainError = max(trainError, thm1Mean(thm1Each("error", task.y, train)))
		trainLoss = max(trainLoss, thm1Mean(thm1Each("squared", task.y, train)))
	}
	best, series, violations := slices.Min(risks), map[string][]float64{}, 0.0
	for _, n := range c.Validation {
		var gap, fixed, excess float64
		for rep := range c.Repeats {
			index := thm1Draw(runs.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Net.Pool, n)
			least, chosen, sup := math.Inf(1), 0.0, 0.0
			for i, losses := range each {
				value := thm1MeanAt(losses, index)
				sup = max(sup, math.Abs(value-risks[i]))
				if i == min(c.Maps, len(each)-1) {
					fixed += math.Abs(value - risks[i])
				}
				if value < least {
					least, chosen = value, risks[i]
				}
			}
			gap, excess = gap+sup, excess+chosen-best
			if chosen-best > 2*sup*(1+1e-12) {
				violations++
			}
		}
		for name, sum := range map[string]float64{"gap": gap, "fixed": fixed, "excess": excess} {
			series[name] = append(series[name], sum/float64(c.Repeats))
		}
	}
	return runs.Result{Series: series, Values: map[string]float64{
		"best": best, "worst": slices.Max(risks), "train": trainError, "train_loss": trainLoss, "violations": violations}}, nil
}

func thm1Mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// runLipschitz has the mean supremum for every L, and for three samples only
// ("few"), where no bound on L is harmless.
func (c thm1Case) runLipschitz(seed uint64) runs.Result {
	const step = 0.1
	gap, few := make([]float64, len(c.Lipschitz)), make([]float64, len(c.Lipschitz))
	for rep := range c.Repeats {
		for i, v := range thm1Cosines(runs.RNG(seed, "cosines", fmt.Sprint(rep)), c.Validation[0], c.Lipschitz, step) {
			gap[i] += v / float64(c.Repeats)
		}
		for i, v := range thm1Cosines(runs.RNG(seed, "few cosines", fmt.Sprint(rep)), 3, c.Lipschitz, step) {
			few[i] += v / float64(c.Repeats)
		}
	}
	return runs.Result{Series: map[string][]float64{"gap": gap, "few": few}}
}
