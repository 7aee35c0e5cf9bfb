package roberts

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/runs"
)

// mapClaims judge Theorem 7 on the whole map and what the map shows, which is ours.
func mapClaims(r *mapped) []runs.Claim {
	all := countsOf(slices.Concat(r.Part("spaces"), r.Part("widths"))...)
	return []runs.Claim{
		all.share("condition_right", "condition", r.Confidence).
			Always(r.Claim("[RO013] on all spaces and widths, Condition 6 ⇒ α_j < α_i").Claim),
		all.share("first_argmax", "first", r.Confidence).
			Always(r.Claim("[RO015] on all spaces and widths, Condition 6 for all (1, j) ⇒ arg max α is the best").
				From("Section 4").Claim),
		correlation(r), noiseClaim(r),
	}
}

// correlation is between how unequal the distances of a space are and how often
// arg max is right there, with Fisher's interval.
func correlation(r *mapped) runs.Claim {
	c := ours("the more equal the distances between the operations, the more often arg max is right (correlation " +
		"over the spaces)")
	var x, y []float64
	for _, g := range r.Part("spaces") {
		x, y = append(x, math.Log(countsOf(g).ratio())), append(y, countsOf(g).per("argmax"))
	}
	if len(x) < 4 {
		c.Note = "not run: needs at least 4 spaces"
		return c
	}
	rho := stat.Correlation(x, y, nil)
	half := distuv.UnitNormal.Quantile((1+r.Confidence)/2) / math.Sqrt(float64(len(x)-3))
	c.Ours = runs.Number(rho)
	c.Note = "of the logarithm of the ratio of distances; spaces share operations, so that the interval is too narrow"
	if math.Abs(rho) < 1 {
		c.Lo, c.Hi = runs.Number(math.Tanh(math.Atanh(rho)-half)), runs.Number(math.Tanh(math.Atanh(rho)+half))
		c.Holds = signVerdict(-c.Hi, -c.Lo)
	}
	return c
}

// signVerdict reports whether an interval lies above 0, or below.
func signVerdict(lo, hi runs.Number) runs.Verdict {
	switch {
	case lo > 0:
		return runs.Holds
	case hi < 0:
		return runs.Fails
	}
	return runs.NotKnown
}

// noiseClaim compares the share of right arg max for the most and the fewest
// points at the highest noise, seed by seed: noise that is independent of x adds
// the same to all losses of the population, σ²/2, and misleads a sample only.
func noiseClaim(r *mapped) runs.Claim {
	c := ours("independent label noise misleads samples, not the population: arg max is right more often on more " +
		"points")
	if len(r.Params.NoisePoints) < 2 || len(r.Params.Noise) == 0 {
		c.Note = "not run: needs two numbers of points and a level of noise"
		return c
	}
	level := slices.Max(r.Params.Noise)
	few, many := slices.Min(r.Params.NoisePoints), slices.Max(r.Params.NoisePoints)
	d, err := runs.MeanDiff(lossByNoise(r, few, level), lossByNoise(r, many, level), r.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi, c.Holds = runs.Number(d.Mean), d.Lo, d.Hi, signVerdict(d.Lo, d.Hi)
	c.Note = fmt.Sprintf("ours is how much less the share falls by noise of level %v with %d points than with %d, "+
		"over seeds", level, many, few)
	return c
}

// lossByNoise is by how much noise lowers the share of right arg max, seed by seed.
func lossByNoise(r *mapped, points int, level float64) []float64 {
	right := func(level float64) []float64 {
		gs := r.Part("noise").Where(func(q problems) bool { return q.Points == points && q.Level == level })
		shares := gs.Values("argmax")
		floats.Div(shares, gs.Values("problems"))
		return shares
	}
	without := right(0)
	floats.Sub(without, right(level))
	return without
}
