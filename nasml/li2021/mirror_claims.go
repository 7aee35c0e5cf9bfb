package li2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/geometry"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// judgeMirror judges the closed forms of the steps (eq. 4 and 5), the norms of Section 3.3, the two rates of Section
// 3.1, the factor |O| between them in bounds and in runs, and Appendix B.3.
func judgeMirror(r *mirror) []runs.Claim {
	claims := append(judgeIdentities(r), judgeNorms(r)...)
	for _, oracle := range r.Params.Oracles {
		if oracle == "sparse" {
			claims = append(claims, judgeFactor(r, "theory", "projected", oracle))
			continue
		}
		claims = append(claims,
			judgeBounded(r, "eg", "[LI013] EG's steps over 2 ln|O|/ε², the O(log k)/ε² of the paper"),
			judgeExponent(r, "eg", "[LI013] EG's steps grow with ln|O| at most as", math.Log),
			judgeBounded(r, "projected",
				"[LI014] projected SGD's steps over (1−1/|O|)|O|/ε², the O(k/ε²) of the paper"),
			judgeExponent(r, "projected", "[LI014] projected SGD's steps grow with |O|−1 at most as",
				func(k float64) float64 { return k - 1 }),
			judgeFactor(r, "theory", "projected", oracle), judgeFactor(r, "tuned", "projected", oracle),
			judgeFactor(r, "tuned", "softmax", oracle))
	}
	return append(claims, judgeENAS(r)...)
}

// largestNorms are those with the largest |O|.
func largestNorms(r *mirror) (geometry.Trial, lab.Groups[geometry.Trial]) {
	gs := r.Part("norms")
	return gs[len(gs)-1].Trial, gs[len(gs)-1:]
}

func judgeIdentities(r *mirror) []runs.Claim {
	identity := func(equation, name, value, note string) runs.Claim {
		c := r.Claim("%s", name).From(equation).Noting("%s", note)
		return everyRounding(c, r.Part("norms").Values(value), 1e-11)
	}
	const note = "the error of the objective at the step against its closed form, at random points and gradients"
	return []runs.Claim{
		identity("eq. 4", "[LI011] the SGD step minimizes eq. 4, value −η²‖g‖²/2", "step", note),
		identity("eq. 5", "[LI012] the EG step minimizes eq. 5, value −Σ log Z", "eg_step", note),
		identity("eq. 5", "[LI012] no random feasible point is better than the EG step", "better",
			"the amount by which one is"),
	}
}

func judgeNorms(r *mirror) []runs.Claim {
	norms := r.Part("norms")
	convex := r.Claim("[LI020] D_φ(x‖y) over ‖x−y‖₁²/|E| is at least ½").Says(0.5).
		Noting("the least over random pairs").Claim
	convex.Ours = runs.Number(slices.Min(norms.Values("convex")))
	convex.Holds = runs.Judge(float64(convex.Ours) >= 0.5*(1-1e-9))
	t, last := largestNorms(r)
	k, of := float64(t.Options), func(value string) float64 { return mean(last.Values(value)) }
	return []runs.Claim{
		convex,
		verdict.Every(r.Claim("[LI020] ⟨g, x⟩ over √|E|‖g‖_∞·‖x‖₁/√|E| is at most 1").Noting("random pairs").Claim,
			norms.Values("dual"), 1),
		verdict.Exactly(r.Claim("[LI020] ⟨g, x⟩ = √|E|‖g‖_∞·‖x‖₁/√|E| is attained").Claim,
			slices.Min(norms.Values("attained")), 1, 1e-12),
		verdict.Exactly(r.Claim("[LI019] ‖g‖₂/‖g‖_∞ of a gradient with entries ±1, |O| = %d", t.Options).
			From("Section 3.2").Noting("up to √k: attained").Claim, math.Sqrt(of("ratio_dense")), math.Sqrt(k), 1e-9),
		verdict.Exactly(r.Claim("[LI021 LI022] the bounds' G_θ² of SGD over that of EG, entries ±1, |O| = %d",
			t.Options).Noting("up to |O|: attained, |E||O| against |E|; for entries of a sine it is %.4g, and %.4g "+
			"where one entry is not 0", of("ratio_sine"), of("ratio_sparse")).Claim, of("ratio_dense"), k, 1e-9),
	}
}

// judgeBounded judges the steps at the bound's rate against the bound, on the worst |O|.
func judgeBounded(r *mirror, method, name string) runs.Claim {
	lists := mirrorSteps(r, "theory", method, "dense")
	for i, options := range r.Params.Options {
		bound := mirrorOf(r, "theory", method, "dense", options)[0].Trial.Bound()
		for j := range lists[i] {
			lists[i][j] /= bound
		}
	}
	return r.Claim("%s", name).From("Section 3.1").Says(1).
		Noting("on the worst of %d values of |O|; T is on a grid of 2^¼", len(lists)).
		Of(verdict.Worst(lists, r.Confidence)).AtMost(math.Pow(2, 0.25))
}

// judgeExponent judges the exponent of the steps over ln |O|, or over |O|−1, as in the bounds.
func judgeExponent(r *mirror, method, name string, of func(float64) float64) runs.Claim {
	const tolerance = 0.15 // T is on a grid, |O| finite
	c := r.Claim("%s a power of 1", name).From("Section 3.1").Says(1).
		Noting("slope on log–log axes, mean over the seeds")
	c.Tolerance = tolerance
	return c.Of(exponent(r, mirrorSteps(r, "theory", method, "dense"), of)).AtMost(1 + tolerance)
}

// exponent is the slope over |O| of values, one a seed for each |O|.
func exponent(r *mirror, lists [][]float64, of func(float64) float64) (runs.Summary, error) {
	var x []float64
	for i, options := range r.Params.Options {
		if len(lists[i]) == 0 {
			return runs.Summary{}, fmt.Errorf("no step size reaches the gap at |O| = %d", options)
		}
		x = append(x, of(float64(options)))
	}
	return verdict.Slopes(x, study.Columns(lists), r.Confidence)
}

// judgeFactor judges how the steps of a method over those of EG grow with |O|: like |O| if the exponent is 1. On the
// sparse oracle, where both norms of the gradient are equal, EG should have no advantage.
func judgeFactor(r *mirror, part, method, oracle string) runs.Claim {
	how := map[string]string{"theory": "at the bounds' steps", "tuned": "tuned"}[part]
	c := r.Claim("[LI022] %s over EG, %s, grows like |O|: exponent", methodName(method), how)
	if oracle == "sparse" {
		c = r.Claim("control: %s over EG on gradients with one entry, %s: no growth, exponent",
			methodName(method), how)
	}
	ratios, eg := mirrorSteps(r, part, method, oracle), mirrorSteps(r, part, "eg", oracle)
	for i := range ratios {
		ratios[i] = ratiosOf(ratios[i], eg[i])
	}
	s, err := exponent(r, ratios, func(k float64) float64 { return k })
	if err != nil {
		return c.NotRun("%v", err)
	}
	last := len(ratios) - 1
	note := fmt.Sprintf("the ratio is %.3g at |O| = %d", mean(ratios[last]), r.Params.Options[last]) +
		tuning(r, part, method, oracle)
	if oracle == "sparse" {
		return c.Says(0).Noting("%s; EG is then the slower one by its ln|O|", note).Of(s, nil).AtMost(0)
	}
	return c.Says(1).Noting("%s; the paper says up to |O|, of the bounds; above ½ counts as growing like |O|", note).
		Of(s, nil).Above(0.5)
}

// ratiosOf are a over b; nil if b is empty.
func ratiosOf(a, b []float64) []float64 {
	if len(b) == 0 {
		return nil
	}
	for i := range a {
		a[i] /= b[i]
	}
	return a
}

// tuning lists the rates of a tuned method, from the fewest operations to the most, and says if one is the least that
// was tried.
func tuning(r *mirror, part, method, oracle string) string {
	if part != "tuned" {
		return ""
	}
	note, edge := "; its best steps are", ""
	for _, options := range r.Params.Options {
		gs := mirrorOf(r, part, method, oracle, options)
		_, rate := bestRate(gs)
		note += fmt.Sprintf(" %g", rate)
		if rate == lowest(gs) {
			edge = ", of which the least is the end of what was tried"
		}
	}
	return note + edge
}

func judgeENAS(r *mirror) []runs.Claim {
	claim := func(name string) lab.Claim { return r.Claim("%s", name).From("Appendix B.3") }
	cell := r.Params.CellENAS
	h, entries := float64(cell[0]), float64(cell[1]*cell[2])
	t, last := largestNorms(r)
	return []runs.Claim{
		verdict.Exactly(claim("[LI029] G² of ENAS with entries bounded by 1: the dimension h²").Noting(
			"arithmetic: ‖g‖₂² ≤ dimension·‖g‖_∞²; O(·) leaves the constant open").Claim, h*h, 1e4, 0),
		verdict.Exactly(claim("[LI030] G² of DARTS with entries bounded by 1: |E||O|").Noting(
			"arithmetic; |O| = 7 leaves the zero operation out, and one of the two cells is counted").Claim,
			entries, 98, 0),
		claim("[LI031] Monte-Carlo gradients have a larger second moment than exact ones").Says(1).
			Noting("E‖ĝ‖²/‖g‖² of the score-function gradient without a baseline over the exact one, "+
				"|E| = %d, |O| = %d, losses U(0, 1); that iterations follow is the theorem's bound, the searches of "+
				"ENAS and DARTS themselves are left out", t.Edges, t.Options).
			Mean(last.Values("monte_carlo")).Above(1),
	}
}
