package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

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
				if n > g.Trial.Instance.Maps+1 {
					curves[k].add(float64(n), g.Records[seed].Series["gap"][i])
				}
			}
		}
		return meanSlope(curves)
	}
}

// lastGaps are a seed's gaps at the largest n_V, by ascending λ_min.
func lastGaps(gs mapCases, seed int) []float64 {
	return study.Map(ofSeed(gs, seed), func(one *runs.Record) float64 { return lastOf(one, "gap") })
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
