package li2021

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/algorithm1"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// judgeTheorem1 judges Theorem 1 on each problem, because it speaks of each:
//
//   - Assumption 1 with the proved constants, at the points that were visited;
//   - at every ε, E Δ ≤ ε after T(ε) steps, on the worst problem, at the confidence of a family;
//   - E Δ falls as T^{−1/2} within 0.1 of the exponent, which is O(1/ε²) steps;
//   - the same for what is done in practice, which the theorem does not cover;
//   - as a control, that the conclusion fails after far fewer steps.
func judgeTheorem1(r *theorem1) []runs.Claim {
	claims := judgeAssumption(r)
	for _, g := range r.Part("random") {
		c := r.Claim("[LI016] E Δ ≤ ε after T(ε) steps, ε = %v Δ(start)", g.Trial.Target)
		claims = append(claims, judgeReached(r, g, "random", c))
	}
	claims = append(claims, judgeRate(r)...)
	for _, g := range r.Part("cyclic") {
		c := r.Claim("practice: blocks in turn, last iterate: Δ ≤ ε = %v Δ(start)", g.Trial.Target).
			From("Section 3.2 (not covered by Theorem 1)")
		claims = append(claims, judgeReached(r, g, "last", c))
	}
	if short := r.Part("short"); len(short) > 0 {
		claims = append(claims, judgeConstant(r), judgeShort(r, short[0]))
	}
	return claims
}

// judgeAssumption judges Assumption 1 with the proved constants, and the step size, on the records of Algorithm 1.
func judgeAssumption(r *theorem1) []runs.Claim {
	const visited = "at the points at which Δ was measured"
	every := func(c lab.Claim, note string, most float64, value func(*runs.Record) float64) runs.Claim {
		return verdict.Every(c.Noting("%s", note).Claim, study.Map(r.Part("random").Records(), value), most)
	}
	assumed := func(name string) lab.Claim { return r.Claim("[LI015] %s", name).From("Assumption 1") }
	largest := func(name string) func(*runs.Record) float64 {
		return func(x *runs.Record) float64 { return slices.Max(x.Series[name]) / x.Values[name] }
	}
	return []runs.Claim{
		every(r.Claim("[LI017] the step size is √(4F/(γ(G_w²+G_θ²)T)), relative error"),
			"the step that the runs took, whose T is Theorem 1's", 1e-12, stepError),
		every(assumed("γ needed by the Hessian over the proved γ"),
			"the largest need of 100 random points of each problem, jointly in w and θ, with γ(½‖w‖² + φ(θ)); "+
				"γφ(θ) alone, as printed, would ask for a convex f(·, θ)", 1,
			func(x *runs.Record) float64 { return x.Values["weakness"] / x.Values["gamma"] }),
		every(assumed("E‖∇_w‖² over the proved G_w²"), visited, 1, largest("gw")),
		every(assumed("E‖∇_θ‖_*² over the proved G_θ²"), visited, 1, largest("gt")),
	}
}

func stepError(x *runs.Record) float64 {
	v := x.Values
	return math.Abs(v["eta"]/math.Sqrt(4*v["f_start"]/(v["gamma"]*(v["gw"]+v["gt"])*v["steps"])) - 1)
}

func judgeReached(r *theorem1, g lab.Group[algorithm1.Trial], iterate string, c lab.Claim) runs.Claim {
	targets := len(r.Params.Targets)
	s, err := verdict.Worst(seriesOver(g.Records, iterate, "epsilon"), verdict.Family(r.Confidence, targets))
	return c.Says(1).Noting("ours is the mean of Δ/ε on the worst of %d problems, over %d runs; the interval is at "+
		"%.4g %% for that choice and for all %d ε together", len(g.Records), s.N, 100*s.Confidence, targets).
		Of(s, err).AtMost(1)
}

// judgeRate judges that E Δ over T has the bound's slope of −½, within 0.1, on log–log axes, by one line per problem:
// over all ε, and over the smaller half, since O(1/ε²) is about ε → 0 and the start still helps at large ε.
func judgeRate(r *theorem1) []runs.Claim {
	const (
		name = "[LI016] E Δ falls as T^−½: O(1/ε²) steps, "
		note = "slope on log–log axes over %d ε, mean over the problems"
	)
	all := len(r.Params.Targets)
	judge := func(c lab.Claim, smallest int) runs.Claim {
		steps, delta := theorem1Problems(r)
		return c.Of(verdict.OverSeeds(r.Params.Seeds, r.Confidence, func(problem int) (float64, error) {
			return verdict.Slope(steps[problem][:smallest], delta[problem][:smallest])
		})).Near(-0.5, 0.1)
	}
	claims := []runs.Claim{judge(r.Claim(name+"all ε").Noting(note, all), all)}
	if half := max(2, (all+1)/2); half < all {
		claims = append(claims, judge(r.Claim(name+"the smaller half of the ε").
			Noting(note+": the start no longer helps there", half), half))
	}
	return claims
}

// judgeConstant measures the constant in T that the problems need: if E Δ = c·ε with 16 and E Δ falls as T^−½, 16c² is
// enough.
func judgeConstant(r *theorem1) runs.Claim {
	c := r.Claim("ours: the constant in T that the problems need").Says(theorem1Constant)
	s, err := verdict.Worst(seriesOver(r.Part("random")[0].Records, "random", "epsilon"), r.Confidence)
	if err != nil {
		return c.NotRun("%v", err)
	}
	square := func(x float64) runs.Number { return runs.Number(theorem1Constant * x * x) }
	c.Ours, c.Lo, c.Hi = square(s.Mean), square(math.Max(0, float64(s.Lo))), square(float64(s.Hi))
	c.Holds = runs.Judge(c.Ours <= c.Paper)
	return c.Noting("16 (mean Δ/ε)² on the worst problem at the smallest ε; " +
		"with the proved γ, G_w, G_θ, which are themselves above what is needed").Claim
}

func judgeShort(r *theorem1, g lab.Group[algorithm1.Trial]) runs.Claim {
	return r.Claim("control: with %v in place of 16 in T, E Δ > ε = %v Δ(start)", g.Trial.Constant, g.Trial.Target).
		From("ours: the conclusion can fail").Says(1).Noting("ours is the mean of Δ/ε over the problems").
		Mean(means(seriesOver(g.Records, "random", "epsilon"))).Above(1)
}
