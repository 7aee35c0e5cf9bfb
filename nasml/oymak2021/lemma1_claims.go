package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/lipschitz"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// lemma1Bound is a bound on the Lipschitz constant of a record.
type lemma1Bound func(c lipschitz.Case, record *runs.Record) float64

// perRadius is a value divided by C̄ = 3R: Theorem 1 has C̄L in its logarithm.
func perRadius(name string) lemma1Bound {
	return func(c lipschitz.Case, record *runs.Record) float64 { return record.Values[name] / (3 * c.Radius()) }
}

// judgeLemma1 judges Lemma 1 and the remarks on it.
func judgeLemma1(r *lemma1) []runs.Claim {
	scales := r.Part("scale")
	fixed := r.Groups[:len(r.Groups)-len(scales)]
	derived := func(_ lipschitz.Case, record *runs.Record) float64 { return record.Values["derived"] }
	return append([]runs.Claim{
		within(r.Claim("[lemma1] Lipschitz constant ≤ argument of the logarithm / 3R").
			Noting("Theorem 1 has C̄L in its logarithm, with C̄ = 3R; α in the simplex, λ in [λ_min, λ_max]; %s",
				loose(fixed)), fixed, perRadius("argument")),
		within(r.Claim("own: Lipschitz constant ≤ our bound").Noting("term by term from f = φᵀΦᵀK⁻¹y"),
			r.Groups, derived),
		within(r.Claim("[lemma1] as printed for every R ≥ 1: Δ → cΔ at λ = 0").
			Noting("f_α does not change under α → cα, so that C̄L stays, while R³λ₀⁻² falls like 1/c"),
			scales, perRadius("argument")),
		within(r.Claim("own: with R⁴ in place of R³").
			Noting("R⁴λ₀⁻² does not change under α → cα, and is what Theorem 2 has in M"),
			scales, perRadius("repaired")),
		judgeInvariance(r, scales),
	}, judgeGaps(r)...)
}

// within counts the records whose Lipschitz constant is above a bound.
func within(c lab.Claim, gs mapCases, bound lemma1Bound) runs.Claim {
	over := 0
	for _, g := range gs {
		for _, record := range g.Records {
			if record.Values["lipschitz"] > bound(g.Trial, record) {
				over++
			}
		}
	}
	return verdict.None(c.Claim, over, len(gs.Records()))
}

// loose says by how much the printed argument exceeds the measured constant, and which n_V it needs.
func loose(gs mapCases) string {
	least, heff := math.Inf(1), math.Inf(1)
	for _, g := range gs {
		for _, record := range g.Records {
			least = min(least, perRadius("argument")(g.Trial, record)/record.Values["lipschitz"])
			heff = min(heff, float64(g.Trial.World.Maps+1)*math.Log(record.Values["argument"]))
		}
	}
	return fmt.Sprintf("it exceeds what was measured by %.2g at least; h̄_eff is %.3g at least, which n_V has to "+
		"exceed", least, heff)
}

// judgeInvariance is C̄L at the largest scale over that at the smallest.
func judgeInvariance(r *lemma1, scales mapCases) runs.Claim {
	c := r.Claim("own: c·L is the same for Δ and cΔ at λ = 0")
	if len(scales) > 0 && scales[0].Trial.World.Maps == 1 {
		return c.Says(1).Noting("not decidable with h = 1: f does not change with α at λ = 0, so that L = 0").Claim
	}
	var ratios []float64
	if last := len(scales) - 1; last > 0 {
		constants := scales.Lists("lipschitz")
		for seed, least := range constants[0] {
			ratios = append(ratios, scales[last].Trial.Scale*constants[last][seed]/(scales[0].Trial.Scale*least))
		}
	}
	return c.Noting("largest c against the smallest; λ is fixed at 0").Mean(ratios).Between(1, 1-1e-6, 1+1e-6)
}

// judgeGaps judges the uniform gap and the excess risk of all λ_min.
func judgeGaps(r *lemma1) []runs.Claim {
	gs, sizes, inf := r.Part("lambda"), r.Params.Validation, math.Inf(1)
	first, last := sizes[0], sizes[len(sizes)-1]
	claim := func(name, place, note string, of perSeed) lab.Statistic {
		return r.Claim("%s", name).From("Lemma 1"+place).Noting("%s", note).OverSeeds(r.Params.Seeds, of)
	}
	excess := func(at int) perSeed {
		return func(seed int) (sum float64, err error) {
			for _, one := range ofSeed(gs, seed) {
				sum += one.Series["excess"][at]
			}
			return sum / float64(len(gs)), nil
		}
	}
	order := func(seed int) (float64, error) {
		gaps := lastGaps(gs, seed)
		return gaps[0] - gaps[len(gaps)-1], nil
	}
	return []runs.Claim{
		claim("[lemma1] gap over n_V", "", "log–log slope for n_V > h+1, mean over λ_min; ramp loss, bounded and "+
			"1-Lipschitz", gapDecay(gs)).Between(-0.5, -inf, -0.4),
		claim("[lemma1-lambda0] gap over 1/λ₀", ", Section 4.1", growthNote(r, gs),
			gapGrowth(gs, lastGaps, true)).Between(0, -inf, 0.1),
		claim("[lemma1-joint] excess risk of choosing α and λ together", ", Section 4.1",
			fmt.Sprintf("at n_V = %d", last), excess(len(sizes)-1)).Between(0, -inf, 0.05),
		claim(fmt.Sprintf("[lemma1-joint] it was larger at n_V = %d", first), ", Section 4.1",
			"difference of the excess risks; h + 1 hyperparameters need n_V > h + 1",
			difference(excess(0), excess(len(sizes)-1))).Between(0, 0, inf),
		claim("[lemma1-ridge-order] smaller ridge, larger gap", ", Section 7b",
			"gap at the smallest λ_min minus that at the largest, largest n_V", order).Between(0, 0, inf),
	}
}

// growthNote says how the bound grows, and the gap over all λ_min.
func growthNote(r *lemma1, gs mapCases) string {
	note := "log–log slope at the largest n_V over the smaller half of λ_min"
	if s, err := verdict.OverSeeds(r.Params.Seeds, r.Confidence, gapGrowth(gs, boundRoots, true)); err == nil {
		note += fmt.Sprintf(", where the bound's own is %.2g", s.Mean)
	}
	if s, err := verdict.OverSeeds(r.Params.Seeds, r.Confidence, gapGrowth(gs, lastGaps, false)); err == nil {
		note += fmt.Sprintf("; over all of them, where a large λ also shrinks f_α and its loss's variance, it is %.2g",
			s.Mean)
	}
	return note
}

// gapDecay is the slope of the gap in n_V > h + 1, mean over λ_min.
func gapDecay(gs mapCases) perSeed {
	return func(seed int) (float64, error) {
		curves := make([]points, len(gs))
		for k, g := range gs {
			for i, n := range g.Trial.Validation {
				if n > g.Trial.World.Maps+1 {
					curves[k].add(float64(n), g.Records[seed].Series["gap"][i])
				}
			}
		}
		return meanSlope(curves)
	}
}

// lastGaps are a seed's gaps at the largest n_V, by ascending λ_min.
func lastGaps(gs mapCases, seed int) []float64 {
	return study.Map(ofSeed(gs, seed), func(one *runs.Record) float64 {
		gap := one.Series["gap"]
		return gap[len(gap)-1]
	})
}

// boundRoots are what the bound has in it of λ₀, √log: it is √h̄_eff times a constant.
func boundRoots(gs mapCases, seed int) []float64 {
	return study.Map(ofSeed(gs, seed),
		func(one *runs.Record) float64 { return math.Sqrt(math.Log(one.Values["argument"])) })
}

// gapGrowth is the slope of such a number in 1/λ₀ over all λ_min, or over the smaller half: a large λ shrinks f_α and
// with it the losses.
func gapGrowth(gs mapCases, of func(gs mapCases, seed int) []float64, half bool) perSeed {
	if half {
		gs = gs[:(len(gs)+1)/2]
	}
	return func(seed int) (float64, error) {
		inverse := study.Map(ofSeed(gs, seed), func(one *runs.Record) float64 { return 1 / one.Values["lambda0"] })
		return verdict.Slope(inverse, of(gs, seed))
	}
}
