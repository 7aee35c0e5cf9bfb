package roberts

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Theorem7Params are the parameters of Theorem 7: problems of any number of operations.
type Theorem7Params struct {
	ProblemParams
	Sizes    []int  `validate:"min=1,dive,gte=2"` // numbers h of operations
	Violated int    `validate:"gte=2"`            // h of the problems with violated assumptions
	Space    string // whose arg max is looked at by the largest α, "relu/tanh/sin"
}

// Theorem7Quick and Theorem7Paper differ as those of Theorem 1 do.
var (
	Theorem7Quick = Theorem7Params{quickProblems, []int{2, 3, 4, 5, 6}, 4, "relu/tanh/sin"}
	Theorem7Paper = Theorem7Params{paperProblems, []int{2, 3, 4, 5, 6, 7, 8}, 4, "relu/tanh/sin"}
)

// Theorem7 draws problems of h operations and compares α with the losses: under
// Assumptions 1 to 3, Lᵢ < Lⱼ and Condition 6,
//
//	𝓛(fᵢ, Σ_{k≠i} γ_k f_k) ≥ 𝓛(fⱼ, Σ_{k≠j} γ′_k f_k),
//
// imply αⱼ < αᵢ. The condition for all pairs (1, j) makes arg max
// discretization right, for all pairs the whole ranking.
var Theorem7 = lab.Declare(lab.Entry[Theorem7Params, problems]{
	Of: paper, Name: "theorem7", Kind: lab.Theorem, Source: "Theorem 7", Notebook: "theorem7_ranking",
	Title: "Any number of activations: when α ranks the operations as their losses do",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about three minutes on two cores; precomputed"},
	Quick: Theorem7Quick, Paper: Theorem7Paper,
	Code: problemsCode, Units: problemUnits, Work: problemWork,
	Rules: func(p Theorem7Params, c *study.Checks) {
		p.rules(max(slices.Max(append(p.Sizes, 0)), p.Violated), c)
		names, err := p.operationsOf(p.Space)
		c.Expect(err == nil, "%v", err)
		c.Expect(err != nil || len(names) >= 2, "space %q must have at least 2 operations, got 1", p.Space)
	},
	Trials: func(p Theorem7Params) (gs problemGroups) {
		for _, h := range p.Sizes {
			gs.Add("sizes", p.Seeds, p.base(h))
		}
		gs.Add("space", p.Seeds, p.only(splitSpace(p.Space)))
		for _, h := range p.Sizes {
			if h > 2 {
				zero := p.base(h)
				zero.Violation = mixture.NotInterior
				gs.Add("boundary", p.Seeds, zero)
			}
		}
		gs.Add("violated", p.Seeds, p.violated(p.Violated)...)
		return gs
	},
	Bench: problemBench[Theorem7Params],
	Draw: func(r *theorem7, p *lab.Picture) {
		p.Row(sharesPanel(r), criterionPanel(r))
		p.Row(sparsityPanel(r), violationPanel(r.Part("violated"), r.Confidence))
		p.Say("%s", r.Params.caption())
	},
	Claims: theorem7Claims,
})

type theorem7 = lab.Result[Theorem7Params, problems]

// theorem7Claims judge Theorem 7, its lemma, the identity of its proof and what the
// paper says follows from it, and the exact criteria that are ours.
func theorem7Claims(r *theorem7) []runs.Claim {
	c, sizes := r.Confidence, r.Part("sizes")
	all := countsOf(sizes...)
	ran := all.sum("pairs") > 0
	lemma := identity(r.Claim("[RO011] α_i = (1−α_1)γ_i, γ ∈ int Δ^{h−2}; recursively").From("Lemma 5"),
		max(all.most("factor"), all.most("sticks")), ran, ofNumbers)
	if all.sum("inside") != all.sum("gammas") {
		lemma.Holds, lemma.Note = runs.Fails, "some γ_i is 0 or 1"
	}
	claims := []runs.Claim{
		lemma,
		all.share("condition", "pairs", c).
			Above(r.Claim("[RO012] Condition 6 can be true (share of pairs)").From("Condition 6").Claim, 0),
	}
	for _, g := range sizes {
		claims = append(claims, countsOf(g).share("condition_right", "condition", c).
			Always(r.Claim("[RO013] h = %d, L_i < L_j and Condition 6 ⇒ α_j < α_i", g.Trial.Operations).Claim))
	}
	claims = append(claims,
		identity(r.Claim("[RO014] L_i = (1−α_i)² 𝓛(f_i, f_{Σγ_kσ_k})").From("Theorem 7, proof"),
			all.most("identity"), ran, ofRoots),
		all.share("every_ranking", "every", c).
			Always(r.Claim("[RO015] Condition 6 for all pairs ⇒ α ranks all operations").From("Section 4").Claim),
		all.share("first_argmax", "first", c).
			Always(r.Claim("[RO015] Condition 6 for all pairs (1, j) ⇒ arg max α is the best").From("Section 4").Claim),
		verdict.Share{
			Yes: all.sum("problems") - all.sum("first") - all.sum("argmax") + all.sum("first_argmax"),
			Of:  all.sum("problems") - all.sum("first"), Confidence: c,
		}.Above(r.Claim("[RO016] where the condition fails, arg max α may not be the best (share)").
			From("Section 4").Claim, 0),
	)
	return append(append(claims, ownClaims(r, all)...), violationClaims(r.Part("violated"), c)...)
}

func ownClaims(r *theorem7, all counts) []runs.Claim {
	c := r.Confidence
	boundary := countsOf(r.Part("boundary")...)
	claims := []runs.Claim{
		all.without("criterion_wrong", "compared", c).Always(ours("α_j < α_i ⇔ A_i/A_j > L_i/L_j")),
		all.without("threshold_wrong", "compared", c).Always(ours("L_i < L_j ⇔ α_i − α_j > Σ_k α_k(D_ik − D_jk)/D_ij")),
		all.share("prior_right", "prior", c).
			Always(ours("D_ik ≥ D_jk for all k and L_i < L_j ⇒ α_j < α_i, whatever α")),
		boundary.share("condition_right", "condition", c).
			Always(ours("Assumption 2 is not needed: some α_k = 0, Condition 6 ⇒ α_j < α_i")),
		all.share("sparse_argmax", "sparse", c).
			Always(ours("2(1−α_i) max√D_ik + 2√R < min√D_ik ⇒ operation i is the best")),
	}
	larger := r.Part("sizes").Where(func(q problems) bool { return q.Operations > 2 })
	each := verdict.Family(c, len(larger))
	for _, g := range larger {
		name := fmt.Sprintf("h = %d, most pairs with α_j < α_i are without Condition 6", g.Trial.Operations)
		claims = append(claims, countsOf(g).without("condition_right", "right", each).Above(ours(name), 0.5))
	}
	return claims
}

func sharesPanel(r *theorem7) plots.Panel {
	p := plots.Panel{
		Title: "Condition 6 and what it is for",
		X: plots.Axis{
			Label: "operations $h$", Min: float64(slices.Min(r.Params.Sizes)) - 0.5,
			Max: float64(slices.Max(r.Params.Sizes)) + 0.5,
		},
		Y: plots.Axis{Label: "share of problems or pairs", Max: 1.05},
	}
	for _, h := range r.Params.Sizes {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: float64(h), Label: fmt.Sprint(h)})
	}
	operations := func(q problems) float64 { return float64(q.Operations) }
	for _, curve := range []struct{ label, yes, all string }{
		{"pairs with $α_j < α_i$", "right", "pairs"},
		{"pairs with Condition 6", "condition", "pairs"},
		{"pairs with $D_{ik} ≥ D_{jk}$", "prior", "pairs"},
		{"arg max $α$ is the best", "argmax", "problems"},
		{"Condition 6 for all $(1, j)$", "first", "problems"},
		{"whole ranking right", "ranking", "problems"},
	} {
		p.Series = append(p.Series,
			sharesOver(curve.label, r.Part("sizes"), operations, curve.yes, curve.all, r.Confidence))
	}
	return p
}

func criterionPanel(r *theorem7) plots.Panel {
	const most = 150
	sizes := r.Part("sizes")
	g := sizes[max(0, slices.IndexFunc(sizes, func(g lab.Group[problems]) bool { return g.Trial.Operations > 2 }))]
	p := plots.Panel{
		Title: fmt.Sprintf("the exact criterion, $h = %d$", g.Trial.Operations),
		X:     plots.Axis{Label: "$L_i/L_j$", Scale: plots.Log10, Min: 1e-3, Max: 1.3},
		Y:     plots.Axis{Label: "$A_i/A_j$", Scale: plots.Log10, Min: 1e-3, Max: 100},
	}
	right := plots.Series{Label: "$α_j < α_i$", Line: plots.NoLine, Marker: plots.Circle, Color: "#0072B2"}
	wrong := plots.Series{Label: "$α_j > α_i$", Line: plots.NoLine, Marker: plots.TriangleUp, Color: "#D55E00"}
	of := countsOf(g)
	x, y, ok := of.series("losses"), of.series("far"), of.series("points")
	for k := range min(most, len(x)) {
		s := &right
		if ok[k] == 0 {
			s = &wrong
		}
		s.X, s.Y = append(s.X, x[k]), append(s.Y, y[k])
	}
	ends := []float64{1e-3, 1}
	diagonal := plots.Series{Label: "$A_i/A_j = L_i/L_j$", Reference: true, X: ends, Y: ends}
	p.Series = []plots.Series{right, wrong, diagonal, plots.HLine("Condition 6: above", 1)}
	p.Legend.Position = plots.LegendInside
	return p
}

func sparsityPanel(r *theorem7) plots.Panel {
	p := plots.Panel{
		Title: study.Title(spaceLabel(r.Params.Space)),
		X:     plots.Axis{Label: "largest weight, $\\max_i α_i$", Min: 0, Max: 1},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
	}
	space := countsOf(r.Part("space")...)
	all := space.sumSeries("bin_problems")
	for _, curve := range []struct{ label, name string }{
		{"arg max $α$ is the best", "bin_right"},
		{"Condition 6 for all $(1, j)$", "bin_condition"},
		{"so sparse that it must be", "bin_sparse"},
	} {
		var x []float64
		var y []verdict.Share
		for bin, yes := range space.sumSeries(curve.name) {
			x = append(x, (float64(bin)+0.5)/mixture.Bins)
			y = append(y, verdict.Share{Yes: yes, Of: all[bin], Confidence: r.Confidence})
		}
		s := shares(curve.label, x, y)
		if curve.name == "bin_sparse" { // the only curve that the panel above does not have
			s.Color, s.Marker, s.Line = "#CC79A7", plots.Hexagon, plots.Dotted
		}
		p.Series = append(p.Series, s)
	}
	return p
}
