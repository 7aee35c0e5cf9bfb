package oymak2021

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

func judgeAssumption3(r *assumption3) []runs.Claim {
	p := r.Params
	claims := []runs.Claim{
		verdict.Every(r.Claim("[def3-additive] φ_α = Σⱼ αⱼφⱼ, an identity").From("Definition 3").
			Noting("the difference of an entry; rounding allows about 1e-16").Claim,
			r.Part("features").Values("additive"), 1e-14),
		verdict.Every(r.Claim("[def3-additive] φ_α is the derivative of the network by W").From("Definition 3 (10)").
			Noting("the difference from a central difference of step 1e-5").Claim,
			r.Part("features").Values("derivative"), 1e-8),
		judgeRate(r, "[asm3-scaling] λ₀ scales linearly with c₀", "ours is the exponent of λ_min(K̂_α) in c₀",
			p.C0s, r.Part("features"), "smallest", 1, 1e-6),
		judgeRate(r, "[asm3-scaling] K_α scales linearly with c₀", "ours is the exponent of λ_max(K̂_α) in c₀",
			p.C0s, r.Part("features"), "largest", 1, 1e-6),
		judgeRate(r, "[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2)",
			"inputs on the sphere; the rate is that of a mean of k neurons",
			study.Floats(p.Widths), withInputs(r, "width", onSphere), "sup", -0.5, 0.1),
		judgeRate(r, "[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2) on digits", "unit-norm images",
			study.Floats(p.Widths), withInputs(r, "width", neural.Digits), "sup", -0.5, 0.1),
	}
	return slices.Concat(claims, judgePositive(r, onSphere, "sphere"), judgePositive(r, neural.Digits, "digits"),
		judgeSingular(r), judgeDeep(r))
}

// judgeRate judges the exponent of a series over xs. Each rate is judged twice: of the smallest and of the largest
// eigenvalue, of inputs on the sphere and of digits.
func judgeRate(r *assumption3, name, note string, xs []float64, gs lab.Groups[kernels.Part], series string,
	paper, tolerance float64) runs.Claim {
	c := r.Claim("%s", name).Noting("%s", note).Family(2)
	return c.Of(verdict.Slopes(xs, gs.Rows(series), c.Confidence)).Near(paper, tolerance)
}

// judgePositive judges λ₀ > 0, above rounding, over the simplex by search and over ‖α‖₁ = 1 by the lower bound.
func judgePositive(r *assumption3, source, name string) []runs.Claim {
	judge := func(series, words string) runs.Claim {
		c := r.Claim("own: %s is positive, %s inputs", words, name)
		return judgeLeast(r, c, withInputs(r, "lambda", source), series)
	}
	return []runs.Claim{
		judge("simplex", "smallest λ_min(K̄_α) found on the simplex"),
		judge("certified", "λ_min(𝒦)/h, which no α with ‖α‖₁ = 1 is below"),
	}
}

// judgeLeast judges the smallest value at the largest n_T against the rounding of an eigenvalue, n_T·h·ε·λ_max.
func judgeLeast(r *assumption3, claim lab.Claim, gs lab.Groups[kernels.Part], series string) runs.Claim {
	last := len(r.Params.Trains) - 1
	n := r.Params.Trains[last]
	least := slices.Min(study.Column(gs.Rows(series), last))
	largest := slices.Max(study.Column(gs.Rows("norm"), last))
	rounding := float64(n*len(r.Params.Activations)) * 0x1p-52 * largest
	c := claim.Says(0).Noting("ours is the smallest of %d seeds at n_T = %d; the tolerance is the rounding of an "+
		"eigenvalue", r.Params.Seeds, n).Claim
	c.Ours, c.Tolerance = runs.Number(least), runs.Number(rounding)
	switch {
	case least > rounding:
		c.Holds = runs.Holds
	case least < -rounding:
		c.Holds = runs.Fails
	default:
		c.Note += "; inconclusive: within rounding of 0"
	}
	return c
}

// judgeSingular shows that each condition for K_α ≻ 0 is needed.
func judgeSingular(r *assumption3) []runs.Claim {
	const zero = 1e-12 // of λ_max
	negative := func(name string) []float64 {
		return study.Map(r.Part("singular").Values(name), func(x float64) float64 { return -x })
	}
	singular := func(name, value string) runs.Claim {
		return verdict.Every(r.Claim("%s", name).Noting("the number is |λ_min|/λ_max").Claim,
			study.Map(r.Part("singular").Values(value), math.Abs), zero)
	}
	return []runs.Claim{
		verdict.Every(r.Claim("own: K_α ≻ 0 where no two inputs are parallel and σ_α is analytic, not a polynomial").
			Noting("the number is −λ_min/λ_max; tanh and softplus, 20 inputs in R⁴").Claim,
			negative("fine"), -zero),
		verdict.Every(r.Claim("own finding: opposite inputs leave K_α ≻ 0 where an activation is not odd up to a "+
			"constant").From(notInPaper).Noting("the number is −λ_min/λ_max; tanh and softplus with x and −x: "+
			"'not parallel' is more than is needed").Claim, negative("opposite_mixed"), -zero),
		singular("violation: equal inputs make K_α singular", "copies"),
		singular("violation: opposite inputs and odd activations make K_α singular", "opposite"),
		singular("violation: polynomial activations make K_α singular", "polynomial"),
	}
}

// judgeDeep judges the cost of depth. In the log-corrected effective dimension h log(C̄LΓn_V/h) of Theorem 1, with C̄ =
// 3, Γ = 1 and n_V = 1000, "at most a factor D" is log(cL_D) ≤ D log(cL₁) with c = 3000/h. Our own stricter check is
// whether the growth of log L a layer rises with the depth; for an exponential it does not.
func judgeDeep(r *assumption3) []runs.Claim {
	p := r.Params
	const margin = 0.1
	var claims []runs.Claim
	for i, gain := range p.Gains {
		costs, rises, factors := p.growth(r.Part("depth")[i : i+1].Rows("lipschitz"))
		trend := r.Claim("own check: growth of log L a layer does not rise with the depth, gain %v", gain).
			From(notInPaper).Says(0).Family(len(p.Gains)).
			Noting("ours is the growth over the later half of the depths less that over the earlier half, " +
				"positive for anything faster than an exponential, but also where a slow start comes first; " +
				"the margin of 0.1 is ours")
		trend.Tolerance = margin
		claims = append(claims, verdict.Every(
			r.Claim("[deep-L] depth costs at most a factor D of validation examples, gain %v", gain).
				From("Section 4.2, extensions").
				Noting("the number is log(cL_D)/(D log(cL₁)) for D above the first; L changes by a factor of %.3g to "+
					"%.3g a layer", slices.Min(factors), slices.Max(factors)).Claim, costs, 1),
			trend.Mean(rises).AtMost(margin))
	}
	width := r.Claim("[deep-width] sup_α ‖K̂_α − K_α‖/‖K_α‖ of deep networks falls with k").Says(-0.5).
		Noting("D = %d; the paper says that it concentrates and gives no rate; -1/2 is that of one layer", p.DeepDepth)
	width.Tolerance = 0.5
	return append(claims,
		width.Of(verdict.Slopes(study.Floats(p.DeepWidths), r.Part("deep").Rows("sup"), r.Confidence)).AtMost(0))
}

// growth has, of curves of L over the depths, one a seed: the costs log(cL_D)/(D log(cL₁)), by how much the growth of
// log L a layer rises from the earlier half of the depths to the later one, and its factor a layer.
func (p Assumption3Params) growth(curves [][]float64) (costs, rises, factors []float64) {
	c := 3000 / float64(len(p.DeepActivations))
	mid, last := len(p.Depths)/2, len(p.Depths)-1
	for _, l := range curves {
		for d, depth := range p.Depths[1:] { // 1 by definition for the first
			costs = append(costs, math.Log(c*l[d+1])/(float64(depth)/float64(p.Depths[0])*math.Log(c*l[0])))
		}
		between := func(from, to int) float64 {
			return math.Log(l[to]/l[from]) / float64(p.Depths[to]-p.Depths[from])
		}
		rises = append(rises, between(mid, last)-between(0, mid))
		factors = append(factors, math.Exp(between(0, last)))
	}
	return costs, rises, factors
}
