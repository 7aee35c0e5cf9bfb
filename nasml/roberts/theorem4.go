package roberts

import (
	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Theorem4Params are the parameters of Theorem 4: problems of three operations,
// and the spaces whose whole simplex is drawn.
type Theorem4Params struct {
	ProblemParams
	Spaces []string // each three of Activations, "relu/tanh/sin"
	Grid   int      `validate:"gte=2,lte=200"` // points along an edge of the simplex
}

// Theorem4Quick and Theorem4Paper differ as those of Theorem 1 do. In the first
// space arg max discretization often fails; in the second, the leaky ReLU is a
// mixture of the other two.
var (
	Theorem4Quick = Theorem4Params{quickProblems, []string{"relu/tanh/sin", "relu/identity/0.8*relu+0.2*identity"}, 28}
	Theorem4Paper = Theorem4Params{paperProblems, Theorem4Quick.Spaces, 28}
)

// Theorem4 draws problems of three operations and compares α with the losses:
// under Assumptions 1 to 3, L₁ < L₂ and Condition 3,
//
//	𝓛(f₁, f_{β₁σ₂+(1−β₁)σ₃}) ≥ 𝓛(f₂, f_{β₂σ₁+(1−β₂)σ₃}),
//
// imply α₂ < α₁; the same for every other pair, by symmetry. Of one network a
// space it also classifies every α of the simplex.
var Theorem4 = lab.Declare(lab.Entry[Theorem4Params, problems]{
	Of: paper, Name: "theorem4", Kind: lab.Theorem, Source: "Theorem 4", Notebook: "theorem4_three",
	Title: "Three activations: a sufficient condition for the better one to have the larger α",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about two minutes on two cores; precomputed"},
	Quick: Theorem4Quick, Paper: Theorem4Paper,
	Code: problemsKind, Units: problemUnits,
	Rules: func(p Theorem4Params, c *study.Checks) {
		p.rules(3, c)
		for _, space := range p.Spaces {
			names, err := p.operationsOf(space)
			c.Expect(err == nil, "%v", err)
			c.Expect(err != nil || len(names) == 3, "space %q must have 3 operations, got %d", space, len(names))
		}
	},
	Trials: func(p Theorem4Params) (gs problemGroups) {
		gs.Add("assumed", p.Seeds, p.base(3))
		for _, space := range p.Spaces {
			gs.Add("space", p.Seeds, p.only(splitSpace(space)))
		}
		gs.Add("violated", p.Seeds, p.violated(3)...)
		return gs
	},
	Bench: problemBench[Theorem4Params],
	Draw: func(r *theorem4, p *lab.Picture) {
		p.Style.Aspect = 0.88
		var row []plots.Panel
		for _, m := range simplexMaps(r) {
			row = append(row, m.panel())
		}
		p.Row(append(row, violationPanel(r.Part("violated"), r.Confidence))...)
		p.Say("Triangles: every $α ∈ Δ^2$ for one network, $y = f_{σ_α}(x; W)$; at a corner all weight is on one "+
			"operation. Right: %s", r.Params.caption())
	},
	Claims: func(r *theorem4) []runs.Claim {
		claims := theorem4Claims(r, countsOf(r.Part("assumed")...))
		for _, m := range simplexMaps(r) {
			claims = append(claims, m.claim())
		}
		return append(claims, violationClaims(r.Part("violated"), r.Confidence)...)
	},
})

type theorem4 = lab.Result[Theorem4Params, problems]

// theorem4Claims judge Theorem 4, its lemma and the identity of its proof.
func theorem4Claims(r *theorem4, base counts) []runs.Claim {
	ran, c := base.sum("pairs") > 0, r.Confidence
	lemma := identity(r.Claim("[RO007] α_2 = (1−α_1)β, α_3 = (1−α_1)(1−β), β ∈ (0,1)").From("Lemma 2"),
		base.most("factor"), ran, ofNumbers)
	if base.sum("inside") != base.sum("gammas") {
		lemma.Holds, lemma.Note = runs.Fails, "some β is 0 or 1"
	}
	return []runs.Claim{
		lemma,
		base.share("condition", "pairs", c).
			Above(r.Claim("[RO008] Condition 3 can be true (share of pairs)").From("Condition 3").Claim, 0),
		base.share("condition_right", "condition", c).
			Always(r.Claim("[RO009] h = 3, L_1 < L_2 and Condition 3 ⇒ α_2 < α_1").Claim),
		identity(r.Claim("[RO010] L_1 = (1−α_1)² 𝓛(f_1, f_{β_1σ_2+(1−β_1)σ_3})").From("Theorem 4, proof"),
			base.most("identity"), ran, ofRoots),
		base.without("condition_right", "right", c).
			Above(ours("most pairs with α_2 < α_1 are without Condition 3"), 0.5),
	}
}

// simplexMaps are those of the spaces whose records are there.
func simplexMaps(r *theorem4) []simplexMap {
	var maps []simplexMap
	for _, g := range r.Part("space") {
		d := g.Records[0].Series["between"]
		if len(d) == 3 { // else the record is elsewhere, see runs.Part
			between := [][]float64{{0, d[0], d[1]}, {d[0], 0, d[2]}, {d[1], d[2], 0}}
			maps = append(maps, newSimplexMap(g.Trial.Only, between, r.Params.Grid))
		}
	}
	return maps
}
