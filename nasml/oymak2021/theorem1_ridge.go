package oymak2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// ridgeTrials are those of feature maps; those of bad labels are at the first λ.
func ridgeTrials(p Theorem1Params) curves {
	var cases []convergence.Case
	for _, h := range p.Maps {
		c := convergence.Case{
			Part: "ridge", Maps: h, Validation: p.Validation, Repeats: p.Repeats, Train: p.Train,
			Instance: &instance.Params{
				Inputs: p.Inputs, Features: p.Features, Maps: h, Decay: p.Decay, Flips: p.Flips,
			},
			Candidates: p.Candidates, Ascent: p.Ascent,
		}
		for i, lambda := range p.Lambdas {
			c.Lambda, c.Bad = lambda, false
			cases = append(cases, c)
			if c.Bad = true; i == 0 && p.BadTrain {
				cases = append(cases, c)
			}
		}
	}
	return p.included("ridge", cases...)
}

// ridges are the curves of feature maps with one λ, trained on true labels.
func ridges(r *theorem1, lambda float64) curves {
	return r.Part("ridge").Where(func(c convergence.Case) bool { return c.Lambda == lambda && !c.Bad })
}

// scaled divides gaps by the bound of the loss, (1 + sup |f|)², and gradient gaps by that of the hypergradient,
// Γ·sup ‖∇_α f‖. Assumptions 1′, 2 and 2′ bound these; they may grow with h.
func scaled(name string) supremum {
	return func(g lab.Group[convergence.Case], seed int) []float64 {
		record := g.Records[seed]
		size := record.Values["slope"] * record.Values["slope"] / 4
		if name == "gradient" {
			size = record.Values["slope"] * record.Values["lipschitz"]
		}
		return study.Map(record.Series[name], func(v float64) float64 { return v / size })
	}
}

func judgeRidge(r *theorem1) []runs.Claim {
	var claims []runs.Claim
	for _, lambda := range r.Params.Lambdas {
		if gs := ridges(r, lambda); len(gs) > 0 {
			claims = append(claims, judgeMaps(r, gs, fmt.Sprintf(" (feature maps, λ = %v)", lambda))...)
			if lambda == 0 {
				claims = append(claims, judgeInterpolation(r, gs))
			}
		}
	}
	if bad := r.Part("ridge").Where(func(c convergence.Case) bool { return c.Bad }); len(bad) > 0 {
		claims = append(claims,
			rate(r, "[thm1-upper-always] training labels are coin flips, excess risk over n_V", ", Section 3.1",
				"log–log slope of L(f_α̂) − min L: the validation phase still finds the best of bad models",
				excessSlope(bad)).Between(-0.5, math.Inf(-1), -0.4),
			judgeSelection(r, "[thm1-upper-always] risk of α̂ ≤ min L + 2 sup gap", bad))
	}
	return claims
}

func judgeMaps(r *theorem1, gs curves, with string) []runs.Claim {
	inf := math.Inf(-1)
	const of = "log–log slope; sup over candidates and uphill steps in the simplex"
	return []runs.Claim{
		rate(r, "[thm1-eq2] gap over n_V"+with, " (2)", of, slopes(gs, stored("gap"), 1)).Between(-0.5, inf, -0.4),
		rate(r, "[thm1-eq2-h] scaled gap over h"+with, " (2)", scaledNote(r, gs, "gap"),
			growth(gs, scaled("gap"), 1)).Between(0.5, inf, 0.7),
		rate(r, "[thm1-eq4] hypergradient gap over n_V"+with, " (4)", of,
			slopes(gs, stored("gradient"), 1)).Between(-0.5, inf, -0.4),
		rate(r, "[thm1-eq4] scaled hypergradient gap over h"+with, " (4)", scaledNote(r, gs, "gradient"),
			growth(gs, scaled("gradient"), 1)).Between(0.5, inf, 0.7),
		judgeSelection(r, "[thm1-eq3] risk of α̂ ≤ min L + 2 sup gap"+with, gs),
		rate(r, "[thm1-eq3] excess risk of α̂ over n_V"+with, " (3)", "log–log slope of L(f_α̂) − min L, mean over h",
			excessSlope(gs)).Between(-0.5, inf, -0.4),
		judgeConstant(r, "[thm1-heff] constant C"+with+" does not grow with n_V", gs),
	}
}

func scaledNote(r *theorem1, gs curves, name string) string {
	note := "log–log slope after division by the size of what is averaged: (1 + sup|f|)² for losses and " +
		"2(1 + sup|f|)·sup‖∇f‖ for hypergradients, which C is absolute for only after"
	if s, err := verdict.OverSeeds(r.Params.Seeds, r.Confidence, growth(gs, stored(name), 1)); err == nil {
		note += fmt.Sprintf("; before it the slope is %.2f", s.Mean)
	}
	return note
}

// excessSlope is the slope in n_V of the excess risk's sum over curves.
func excessSlope(gs curves) perSeed {
	return func(seed int) (float64, error) {
		return slopeOfSums(gs[0].Trial.Validation, ofSeed(gs, seed), "excess")
	}
}

func judgeSelection(r *theorem1, name string, gs curves) runs.Claim {
	violations, cases := 0.0, 0
	for _, g := range gs {
		for _, v := range study.Values(g.Records, "violations") {
			violations += v
			cases += len(g.Trial.Validation) * g.Trial.Repeats
		}
	}
	return verdict.None(r.Claim("%s", name).From("Theorem 1 (3)").
		Noting("follows from (2) for every sample, so that one violation is an error of ours").Claim,
		int(violations), cases)
}

// judgeConstant is the constant that (2) needs, gap²·n_V/(h̄_eff + τ) with
// τ = 3, L and Γ as measured and C̄ = 3 (R = 1), and whether it grows with n_V.
func judgeConstant(r *theorem1, name string, gs curves) runs.Claim {
	const tau = 3
	largest := 0.0
	constants := func(g lab.Group[convergence.Case], seed int) []float64 {
		record, h := g.Records[seed], float64(g.Trial.Maps)
		constants := make([]float64, len(g.Trial.Validation))
		for i, n := range g.Trial.Validation {
			inner := 3 * record.Values["lipschitz"] * record.Values["slope"] * float64(n) / h
			gap := record.Series["gap"][i]
			constants[i] = gap * gap * float64(n) / (h*math.Log(max(inner, 1)) + tau)
			largest = max(largest, constants[i])
		}
		return constants
	}
	slope, err := verdict.OverSeeds(r.Params.Seeds, r.Confidence, slopes(gs, constants, 0))
	return r.Claim("%s", name).From("Theorem 1 (2)").
		Noting("log–log slope of gap²·n_V/(h̄_eff + 3); the largest C of all cells is %.3g "+
			"(the paper has an unknown absolute constant)", largest).
		Of(slope, err).Between(0, math.Inf(-1), 0.2)
}

// judgeInterpolation judges whether the training residual is rounding at every α, while the gap is not.
func judgeInterpolation(r *theorem1, gs curves) runs.Claim {
	train, smallest := slices.Max(gs.Values("train")), slices.Min(slices.Concat(gs.Rows("gap")...))
	c := verdict.Exactly(r.Claim("[oymak2021ext/abstract-best-pair figure1a] the gap stays although the training "+
		"error is zero (feature maps, λ = 0)").From("Theorem 1 and Figure 1(a)").
		Noting("ours is the largest mean squared training residual of any α; the smallest gap of any n_V is %.3g",
			smallest).Claim, train, 0, 1e-12)
	if smallest <= 1e6*train {
		c.Holds = runs.Fails
	}
	return c
}
