package convergence

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/trial"
)

type ridge struct {
	Case
	teacher *instance.Teacher
	train   *features.Mixture
	fits    []fitted // the candidates
	best    float64  // least risk of a candidate
}

type fitted struct {
	alpha []float64
	w     []float64
	jac   [][]float64 // rows ∂w/∂αᵢ, [h][d]
	risk  float64
	train float64 // mean squared training residual
}

// runRidge fits every candidate once and then draws validation samples: for every n_V "gap" and "gradient" are means of
// the suprema over α, "fixed" of the gap at the centre of Δ, "excess" of L(f_α̂) − min L; "violations" counts how often
// the risk of α̂ exceeds min L + 2 sup |L̂_V − L|.
func (c Case) runRidge(ctx context.Context, seed uint64) (trial.Result, error) {
	r, err := c.newRidge(seed)
	if err != nil {
		return trial.Result{}, err
	}
	violations := 0.0
	series, err := validation.Over(ctx, r.Validation, r.Repeats, func(n, rep int, sums map[string]float64) error {
		one, err := r.validate(r.teacher.Deviation(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), n))
		if err != nil {
			return err
		}
		if one.chosen-r.best > 2*one.gap*(1+1e-12) {
			violations++
		}
		sums["gap"] += one.gap
		sums["gradient"] += one.gradient
		sums["fixed"] += one.fixed
		sums["excess"] = sums["excess"] + one.chosen - r.best // in this order of rounding
		return nil
	})
	worst, train, lipschitz, slope := 0.0, 0.0, 0.0, 0.0
	for _, f := range r.fits {
		worst, train = max(worst, f.risk), max(train, f.train)
		lipschitz, slope = max(lipschitz, instance.Largest(f.jac)), max(slope, 2*(1+norm(f.w)))
	}
	return trial.Result{Series: series, Values: map[string]float64{
		"best": r.best, "worst": worst, "train": train, "lipschitz": lipschitz, "slope": slope,
		"violations": violations,
	}}, err
}

// newRidge draws a training sample, with coin flips for labels if c.Bad, and fits the candidates.
func (c Case) newRidge(seed uint64) (*ridge, error) {
	r := &ridge{Case: c, teacher: instance.NewTeacher(seed, *c.Instance), best: math.Inf(1)}
	rng := trial.RNG(seed, "train")
	x, y := r.teacher.Sample(rng, c.Train)
	if c.Bad {
		for i := range y {
			y[i] = 1 - 2*float64(rng.IntN(2))
		}
	}
	var err error
	if r.train, err = r.teacher.Mixture(x, y); err != nil {
		return nil, err
	}
	for _, alpha := range instance.Candidates(trial.RNG(seed, "candidates"), c.Maps, c.Candidates) {
		f, err := r.fit(alpha)
		if err != nil {
			return nil, err
		}
		r.fits, r.best = append(r.fits, f), min(r.best, f.risk)
	}
	return r, nil
}

func (r *ridge) fit(alpha []float64) (fitted, error) {
	fit, err := r.train.Fit(alpha, r.Lambda)
	if err != nil {
		return fitted{}, err
	}
	jac, err := r.teacher.Jacobian(fit)
	if err != nil {
		return fitted{}, err
	}
	w := r.teacher.Weights(fit)
	out := fitted{
		alpha: alpha, w: w, risk: r.teacher.Risk(w),
		train: norm(fit.Residual) * norm(fit.Residual) / float64(len(fit.Residual)),
	}
	for i := range alpha {
		out.jac = append(out.jac, mat.Col(nil, i, jac))
	}
	return out, nil
}

type validated struct {
	gap, gradient, fixed, chosen float64
}

// validate takes the suprema over the candidates and uphill from the largest gap: a lower bound of those over the
// simplex.
func (r *ridge) validate(dev instance.Deviation) (validated, error) {
	out := validated{}
	least, at := math.Inf(1), 0
	for i, f := range r.fits {
		gap, grad := dev.Gap(f.w)
		if math.Abs(gap) > out.gap {
			out.gap, at = math.Abs(gap), i
		}
		out.gradient = max(out.gradient, norm(times(f.jac, grad)))
		if i == min(r.Maps, len(r.fits)-1) { // the centre
			out.fixed = math.Abs(gap)
		}
		if f.risk+gap < least { // α̂ has the least L̂_V = L + (L̂_V − L)
			least, out.chosen = f.risk+gap, f.risk
		}
	}
	err := r.ascend(dev, r.fits[at], &out)
	return out, err
}

// ascend goes uphill from a fit by exponentiated steps that grow and shrink, and raises the suprema.
func (r *ridge) ascend(dev instance.Deviation, f fitted, out *validated) error {
	eta := 1.0
	for range r.Ascent {
		gap, grad := dev.Gap(f.w)
		up := times(f.jac, grad)
		for i := range up {
			up[i] *= math.Copysign(eta, gap)
		}
		next, err := r.fit(multiplied(f.alpha, up))
		if err != nil {
			return err
		}
		moved, movedGrad := dev.Gap(next.w)
		out.gradient = max(out.gradient, norm(times(next.jac, movedGrad)))
		if math.Abs(moved) <= math.Abs(gap) {
			eta /= 4
			continue
		}
		f, eta, out.gap = next, 2*eta, max(out.gap, math.Abs(moved))
	}
	return nil
}

// multiplied is one exponentiated step in the simplex. Every coordinate is first raised a little, to leave a vertex.
func multiplied(alpha, up []float64) []float64 {
	most := norm(up)
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

func times(rows [][]float64, v []float64) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		for k, x := range row {
			out[i] += x * v[k]
		}
	}
	return out
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
