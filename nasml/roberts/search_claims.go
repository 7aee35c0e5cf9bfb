package roberts

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

const (
	reached = 1e-3 // a search reaches the teacher where R is at most this part of the best operation's loss
	far     = 0.05 // from where on α counts as another than α*
)

// searchClaims judge the paper's assumptions on what searches find, and the theorems
// with our gap instead of Assumption 3.
func searchClaims(r *searches) []runs.Claim {
	all, c := searchCounts(r.Groups), r.Confidence
	bounds := all.without("bound_wrong", "bounds", c)
	bounds.Alike = float64(all.operations)
	claims := []runs.Claim{
		all.share("interior", "problems", c).
			Always(r.Claim("[RO005] Assumption 2 (realistic): a search leaves all α_i > 0").From("Assumption 2").Claim),
		all.without("realized", "problems", c).
			Above(r.Claim("[RO006] Assumption 3 (unrealistic): most searches do not find y = f_σα exactly").
				From("Assumption 3").Claim, 0.5),
		all.share("guaranteed_right", "guaranteed", c).
			Always(ours("after a search, Condition 6 and L_j − L_i > 2√(D_ij R) ⇒ α_j < α_i")),
		all.share("sparse_argmax", "sparse", c).
			Always(ours("after a search, 2(1−α_i) max√D_ik + 2√R < min√D_ik ⇒ operation i is the best")),
		bounds.Always(ours("|√L_i − (1−α_i)√A_i| ≤ √R")),
	}
	for _, space := range r.Params.Spaces {
		if len(splitSpace(space)) == 2 {
			claims = append(claims, reachTeacher(r.Part(space)).share("argmax", "problems", c).
				Always(r.Claim("[RO001] %s: a search that reaches the teacher has the better operation at arg max",
					spaceLabel(space)).From("Theorem 1").Claim))
		}
	}
	many := reachTeacher(r.Groups.Where(func(t teaching) bool { return len(t.Activations) > 2 }))
	return append(claims, many.without("argmax", "problems", c).
		Above(r.Claim("[RO016] h > 2: a search that reaches the teacher may have another operation at arg max (share)").
			Claim, 0), dependentClaim(r))
}

// dependentClaim says that α is not identified where many α give the same mixture.
func dependentClaim(r *searches) runs.Claim {
	hull := reachTeacher(r.Groups.Where(func(t teaching) bool { return r.Facts[""].(dependence)[spaceOf(t)] }))
	missed := verdict.Share{Of: hull.sum("problems"), Confidence: r.Confidence}
	for _, record := range hull.records {
		if record.Values["alpha_error"] > far {
			missed.Yes++
		}
	}
	return missed.Above(ours(fmt.Sprintf("linearly dependent operations: a search that reaches the teacher is mostly "+
		"off its α by more than %v", far)), 0.5)
}

// searchCounts are the counts of searches.
func searchCounts(gs lab.Groups[teaching]) counts {
	all := counts{records: gs.Records()}
	for _, g := range gs {
		all.operations = max(all.operations, len(g.Trial.Activations))
	}
	return all
}

// reachTeacher are the counts of searches that reach the teacher.
func reachTeacher(gs lab.Groups[teaching]) counts {
	all := searchCounts(gs)
	all.records = slices.DeleteFunc(all.records, func(r *runs.Record) bool {
		return !(r.Values["mixture"] <= reached*r.Values["best_loss"])
	})
	return all
}
