package oymak2021

import (
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/runs"
)

// theorem4Merged asks which labels both sets together fit. It has no picture.
var theorem4Merged = lab.Question[Theorem4Params, lowrank.Trial]{
	Trials: func(p Theorem4Params) (gs lab.Groups[lowrank.Trial]) {
		if p.FitExamples > 0 {
			gs.Add("fit", p.FitSeeds, lowrank.Fit{
				Part: "fit", M: p.FitExamples, H: p.FitOperations, Tries: p.FitTries,
			})
		}
		return gs
	},
	Claims: judgeFit,
}

func judgeFit(r *theorem4) (claims []runs.Claim) {
	for _, one := range []struct {
		says  float64
		judge func(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim
		name  string
	}{
		{0, judgeMerged, "[sec5-merged] with both sets merged and 2n ≤ p, drawn α fit all labels exactly: " +
			"largest residual"},
		{0, judgeEvery, "[sec5-merged] at 2n = p this is so for every α, as the paper says: " +
			"share of the labels that no θ fits"},
		{0.5, judgeLeft, "[sec5-recon] no algorithm reconstructs M* from fewer than about p+h examples: " +
			"squared error left to who knows α*, at p = 4n"},
	} {
		c := r.Claim("%s", one.name).From("Section 5").Says(one.says)
		if g := r.Part("fit"); len(g) > 0 {
			claims = append(claims, one.judge(r, c, g))
		} else {
			claims = append(claims, c.NotRun("FitExamples is 0"))
		}
	}
	return claims
}

func judgeMerged(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	const exact = 1e-6
	largest := slices.Max(slices.Concat(
		g.Values("residual_at"), g.Values("residual_above"), g.Values("residual_double")))
	below := slices.Min(g.Values("residual_below"))
	c.Ours, c.Tolerance = runs.Number(largest), exact
	return verdict.Decided(c.Noting("p = 2n, 2n+h−1 and 4n, %d directions a seed; for p = 3n/2 the smallest of the "+
		"largest residuals is %.2g", r.Params.FitTries, below).Claim,
		largest <= exact && (below > exact || r.Params.FitOperations == 1), largest > exact)
}

func judgeEvery(r *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	var shares []float64
	singular := 0.0
	for _, record := range g.Records() {
		if record.Values["found_at"] == 1 {
			shares = append(shares, record.Values["exceptional_at"])
			singular = max(singular, record.Values["smallest_at"])
		}
	}
	if len(shares) < 2 {
		return c.NotRun("no direction with a singular Z_α was found in two seeds; FitOperations has to be 2 or more")
	}
	return c.Noting("in %d of %d seeds Z_α of α ∝ (1, s, 0, …) is singular (σ_min/σ_max ≤ %.0e) for a real eigenvalue "+
		"−s; such α have measure 0, and there are none for p ≥ 2n+h−1, almost surely", len(shares), r.Params.FitSeeds,
		singular).Mean(shares).AtMost(1e-6)
}

func judgeLeft(_ *theorem4, c lab.Claim, g lab.Groups[lowrank.Trial]) runs.Claim {
	enough := slices.Max(g.Values("error_below"))
	judged := c.Noting("1 − 2n/p is the Bayes risk of θ* given α*; for p = 3n/2 < 2n the largest error is %.0e; "+
		"and h unknowns of α* need 2n ≥ h; max(p, h) ≥ (p+h)/2", enough).
		Mean(g.Values("error_double")).Near(0.5, 0.05)
	if enough > 1e-6 {
		judged.Holds = runs.Fails
	}
	return judged
}
