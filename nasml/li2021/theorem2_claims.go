package li2021

import (
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/algorithm2"
	"github.com/nasml/lab/nasml/runs"
)

// judgeTheorem2 judges:
//
//   - Theorem 2's bound for every b, on the worst schedule, γ̂, T and problem, at the confidence of a family;
//   - Claims 1 and 2 on the product norm, on random points;
//   - Setting 1 on f = xy with block-wise γ, from which the proof's joint γ-RWC does not follow, and with the joint γ.
func judgeTheorem2(r *theorem2) []runs.Claim {
	p := r.Params
	var claims []runs.Claim
	for _, b := range p.Blocks {
		gs := r.Part("net").Where(func(t algorithm2.Trial) bool { return t.Blocks == b })
		lists := seriesOver(gs.Records(), "delta", "bound")
		claims = append(claims, r.Claim("[LI023] E Δ over Theorem 2's bound, b = %d", b).Says(1).Noting(
			"the worst of %d combinations of schedule, γ̂, T and problem, over %d runs each", len(lists), p.Runs).
			Of(verdict.Worst(lists, verdict.Family(r.Confidence, len(p.Blocks)))).AtMost(1))
	}
	claims = append(claims, judgeProductNorms(r)...)
	for _, gamma := range p.Gammas {
		claims = append(claims, judgeSetting1(r, gamma))
	}
	return claims
}

// judgeProductNorms judges Claims 1 and 2, up to rounding.
func judgeProductNorms(r *theorem2) []runs.Claim {
	largest := func(name, source, value, note string) runs.Claim {
		return everyRounding(r.Claim("%s", name).From(source).Noting("%s", note), r.Part("norms").Values(value), 1e-12)
	}
	return []runs.Claim{
		largest("[LI027] ‖x+y‖ − ‖x‖ − ‖y‖, relative, at most 0", "Claim 1", "triangle",
			"over random x, y in a product of ‖·‖₂ and ‖·‖₁"),
		largest("[LI028] ⟨u, x⟩ − ½‖x‖² above ½‖u‖_*², relative, at most 0", "Claim 2", "above", "over random u, x"),
		largest("[LI028] ½‖u‖_*² is attained, relative error", "Claim 2", "attained", "at the x that the proof names"),
	}
}

// judgeSetting1 judges Corollary 1's bound, with the safe constant, on f = xy without noise at the largest T.
func judgeSetting1(r *theorem2, gamma float64) runs.Claim {
	gs := theorem2Saddle(r, gamma, r.Params.Sigmas[0])
	last := gs[len(gs)-1]
	kind, note := "block-wise",
		"; our finding: γ-RWC of each block does not make f γ-RWC, as the proof takes it to be; "+
			"f + γφ must be convex jointly, here γ ≥ 1"
	if gamma >= 1 {
		kind, note = "joint", ""
	}
	c := r.Claim("[LI023] Setting 1 with γ = %v (%s) on f = xy: E Δ over the bound", gamma, kind).
		From("Setting 1 and proof of Theorem 2").Says(1).
		Noting("T = %d, σ = %v, bound %d·L√(2bγ(f¹−f*)/T)%s", last.Trial.Steps, last.Trial.Sigma, safe, note)
	ratio := mean(means(seriesOver(last.Records, "delta", "unit"))) / safe
	c.Ours, c.Holds = runs.Number(ratio), runs.Judge(ratio <= 1)
	return c.Claim
}
