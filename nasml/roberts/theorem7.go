package roberts

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Theorem7Params are the parameters of Theorem 7: problems of any number of
// operations.
type Theorem7Params struct {
	ProblemParams
	Sizes    []int  // numbers h of operations
	Violated int    // h of the problems with violated assumptions
	Space    string // whose arg max is looked at by the largest α, "relu/tanh/sin"
}

// Theorem7Quick and Theorem7Paper differ as those of Theorem 1 do.
var (
	Theorem7Quick = Theorem7Params{quickProblems, []int{2, 3, 4, 5, 6}, 4, "relu/tanh/sin"}
	Theorem7Paper = Theorem7Params{paperProblems, []int{2, 3, 4, 5, 6, 7, 8}, 4, "relu/tanh/sin"}
)

const (
	theorem7ID     = "roberts/theorem7"
	theorem7Title  = "Any number of activations: when α ranks the operations as their losses do"
	theorem7Source = "Roberts+, Theorem 7"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem7ID, Paper: "Roberts+", Title: theorem7Title, Kind: "theorem",
		Notebook: "notebooks/roberts/theorem7_ranking.ipynb",
		Cost: catalog.Cost{
			Quick: "seconds",
			Paper: "about three minutes on two cores; the project ships its trials",
		},
	}, Theorem7Quick, Theorem7Paper, Theorem7)
}

// Theorem7Result holds the problems of Theorem 7: a group a size under the
// assumptions, then the space, then α on the boundary, then the violated ones.
type Theorem7Result struct {
	Params   Theorem7Params
	Scale    string // "quick", "paper" or empty for own parameters
	sizes    []group
	space    group
	boundary []group
	violated []group
}

// Theorem7 draws problems of h operations and compares α with the losses: under
// Assumptions 1 to 3, Lᵢ < Lⱼ and Condition 6,
//
//	𝓛(fᵢ, Σ_{k≠i} γ_k f_k) ≥ 𝓛(fⱼ, Σ_{k≠j} γ′_k f_k),
//
// imply αⱼ < αᵢ. The condition for all pairs (1, j) makes arg max
// discretization right, for all pairs the whole ranking. See Theorem1 for
// cancelling and errors.
func Theorem7(ctx context.Context, p Theorem7Params) (*Theorem7Result, error) {
	if len(p.Sizes) == 0 || slices.Min(p.Sizes) < 2 || p.Violated < 2 {
		return nil, catalog.Usagef("Sizes are %v and Violated is %d: a theorem about pairs needs at least 2 operations",
			p.Sizes, p.Violated)
	}
	if err := p.check(max(slices.Max(p.Sizes), p.Violated)); err != nil {
		return nil, err
	}
	names, err := p.operationsOf(p.Space)
	if err != nil {
		return nil, err
	}
	if len(names) < 2 {
		return nil, catalog.Usagef("space %q has one operation, want at least 2", p.Space)
	}
	var kinds []mixture.Problems
	for _, h := range p.Sizes {
		kinds = append(kinds, p.base(h))
	}
	kinds = append(kinds, p.only(names))
	for _, h := range p.Sizes {
		if h > 2 {
			zero := p.base(h)
			zero.Violation = mixture.NotInterior
			kinds = append(kinds, zero)
		}
	}
	regular := len(kinds)
	groups, err := simulateAll(ctx, theorem7ID, append(kinds, p.violated(p.Violated)...), p.Seeds)
	if err != nil {
		return nil, err
	}
	n := len(p.Sizes)
	return &Theorem7Result{p, runs.Scale(ctx), groups[:n], groups[n], groups[n+1 : regular], groups[regular:]}, nil
}

// Records are the keys of the records behind the result.
func (r *Theorem7Result) Records() []string {
	return keysOf(slices.Concat(r.sizes, []group{r.space}, r.boundary, r.violated))
}

// Figure draws how often conditions and conclusions are true over h, the exact
// criterion, the role of sparsity, and what violations do.
func (r *Theorem7Result) Figure() plots.Figure {
	return plots.Figure{
		Name: "roberts-theorem7", Style: plots.ICML.Text(), Caption: r.Params.caption() + scaleNote(r.Params),
		Panels: [][]plots.Panel{
			{r.sharesPanel(), r.criterionPanel()},
			{r.sparsityPanel(), violationPanel(r.violated, r.Params.Confidence)},
		},
		Meta: study.Meta(theorem7Title, r.Scale, r.Params),
	}
}

func (r *Theorem7Result) sharesPanel() plots.Panel {
	p := plots.Panel{
		Title: "Condition 6 and what it is for",
		X: plots.Axis{
			Label: "operations $h$",
			Min:   float64(slices.Min(r.Params.Sizes)) - 0.5,
			Max:   float64(slices.Max(r.Params.Sizes)) + 0.5,
		},
		Y: plots.Axis{Label: "share of problems or pairs", Max: 1.05},
	}
	for _, h := range r.Params.Sizes {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: float64(h), Label: fmt.Sprint(h)})
	}
	for _, curve := range []struct{ label, yes, all string }{
		{"pairs with $α_j < α_i$", "right", "pairs"},
		{"pairs with Condition 6", "condition", "pairs"},
		{"pairs with $D_{ik} ≥ D_{jk}$", "prior", "pairs"},
		{"arg max $α$ is the best", "argmax", "problems"},
		{"Condition 6 for all $(1, j)$", "first", "problems"},
		{"whole ranking right", "ranking", "problems"},
	} {
		var x []float64
		var y []verdict.Share
		for _, g := range r.sizes {
			x, y = append(x, float64(g.Operations)), append(y, g.share(curve.yes, curve.all, r.Params.Confidence))
		}
		p.Series = append(p.Series, shares(curve.label, x, y))
	}
	return p
}

// criterionPanel shows pairs of the first size with more than two operations.
func (r *Theorem7Result) criterionPanel() plots.Panel {
	const most = 150
	i := max(0, slices.IndexFunc(r.sizes, func(g group) bool { return g.Operations > 2 }))
	g := r.sizes[i]
	p := plots.Panel{
		Title: fmt.Sprintf("the exact criterion, $h = %d$", g.Operations),
		X:     plots.Axis{Label: "$L_i/L_j$", Scale: plots.Log10, Min: 1e-3, Max: 1.3},
		Y:     plots.Axis{Label: "$A_i/A_j$", Scale: plots.Log10, Min: 1e-3, Max: 100},
	}
	right := plots.Series{Label: "$α_j < α_i$", Line: plots.NoLine, Marker: plots.Circle, Color: "#0072B2"}
	wrong := plots.Series{Label: "$α_j > α_i$", Line: plots.NoLine, Marker: plots.TriangleUp, Color: "#D55E00"}
	x, y, ok := g.series("losses"), g.series("far"), g.series("points")
	for k := range min(most, len(x)) {
		s := &right
		if ok[k] == 0 {
			s = &wrong
		}
		s.X, s.Y = append(s.X, x[k]), append(s.Y, y[k])
	}
	diagonal := plots.Series{
		Label:     "$A_i/A_j = L_i/L_j$",
		Reference: true,
		X:         []float64{1e-3, 1},
		Y:         []float64{1e-3, 1},
	}
	p.Series = []plots.Series{right, wrong, diagonal, plots.HLine("Condition 6: above", 1)}
	p.Legend.Position = plots.LegendInside
	return p
}

func (r *Theorem7Result) sparsityPanel() plots.Panel {
	p := plots.Panel{
		Title: r.Params.Space,
		X:     plots.Axis{Label: "largest weight, $\\max_i α_i$", Min: 0, Max: 1},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
	}
	all := r.space.sumSeries("bin_problems")
	for _, curve := range []struct{ label, name string }{
		{"arg max $α$ is the best", "bin_right"},
		{"Condition 6 for all $(1, j)$", "bin_condition"},
		{"so sparse that it must be", "bin_sparse"},
	} {
		var x []float64
		var y []verdict.Share
		for bin, yes := range r.space.sumSeries(curve.name) {
			x = append(x, (float64(bin)+0.5)/mixture.Bins)
			y = append(y, verdict.Share{Yes: yes, Of: all[bin], Confidence: r.Params.Confidence})
		}
		s := shares(curve.label, x, y)
		if curve.name == "bin_sparse" { // the only curve that the panel above does not have
			s.Color, s.Marker, s.Line = "#CC79A7", plots.Hexagon, plots.Dotted
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// Check judges Theorem 7, its lemma, the identity of its proof and what the
// paper says follows from it, and the exact criteria that are ours.
func (r *Theorem7Result) Check() []runs.Claim {
	c := r.Params.Confidence
	all := pool7(r.sizes)
	ran := all.sum("pairs") > 0
	lemma := identity(runs.NewClaim("[RO011] α_i = (1−α_1)γ_i, γ ∈ int Δ^{h−2}; recursively", "Roberts+, Lemma 5"),
		max(all.most("factor"), all.most("sticks")), ran)
	if all.sum("inside") != all.sum("gammas") {
		lemma.Holds, lemma.Note = runs.Fails, "some γ_i is 0 or 1"
	}
	claims := []runs.Claim{
		lemma,
		all.share("condition", "pairs", c).
			Above(runs.NewClaim("[RO012] Condition 6 can be true (share of pairs)", "Roberts+, Condition 6"), 0),
	}
	for _, g := range r.sizes {
		name := fmt.Sprintf("[RO013] h = %d, L_i < L_j and Condition 6 ⇒ α_j < α_i", g.Operations)
		claims = append(claims, g.share("condition_right", "condition", c).
			Always(runs.NewClaim(name, theorem7Source)))
	}
	claims = append(
		claims,
		lossIdentity(runs.NewClaim("[RO014] L_i = (1−α_i)² 𝓛(f_i, f_{Σγ_kσ_k})", theorem7Source+", proof"),
			all.most("identity"), ran),
		all.share("every_ranking", "every", c).
			Always(runs.NewClaim("[RO015] Condition 6 for all pairs ⇒ α ranks all operations", "Roberts+, Section 4")),
		all.share("first_argmax", "first", c).
			Always(runs.NewClaim("[RO015] Condition 6 for all pairs (1, j) ⇒ arg max α is the best",
				"Roberts+, Section 4")),
		verdict.Share{
			Yes:        all.sum("problems") - all.sum("first") - all.sum("argmax") + all.sum("first_argmax"),
			Of:         all.sum("problems") - all.sum("first"),
			Confidence: c,
		}.Above(runs.NewClaim("[RO016] where the condition fails, arg max α may not be the best (share)",
			"Roberts+, Section 4"), 0),
	)
	return append(append(claims, r.ownClaims(all)...), violationClaims(r.violated, c)...)
}

// ownClaims are those that are not in the paper.
func (r *Theorem7Result) ownClaims(all group) []runs.Claim {
	c := r.Params.Confidence
	boundary := pool7(r.boundary)
	criterion := func(wrong string) verdict.Share {
		return verdict.Share{
			Yes:        all.sum("compared") - all.sum(wrong),
			Of:         all.sum("compared"),
			Confidence: c,
			Alike:      all.pairs(),
		}
	}
	claims := []runs.Claim{
		criterion("criterion_wrong").Always(runs.NewClaim("own: α_j < α_i ⇔ A_i/A_j > L_i/L_j", own)),
		criterion("threshold_wrong").
			Always(runs.NewClaim("own: L_i < L_j ⇔ α_i − α_j > Σ_k α_k(D_ik − D_jk)/D_ij", own)),
		all.share("prior_right", "prior", c).
			Always(runs.NewClaim("own: D_ik ≥ D_jk for all k and L_i < L_j ⇒ α_j < α_i, whatever α", own)),
		boundary.share("condition_right", "condition", c).
			Always(runs.NewClaim("own: Assumption 2 is not needed: some α_k = 0, Condition 6 ⇒ α_j < α_i", own)),
		all.share("sparse_argmax", "sparse", c).
			Always(runs.NewClaim("own: 2(1−α_i) max√D_ik + 2√R < min√D_ik ⇒ operation i is the best", own)),
	}
	larger := slices.DeleteFunc(slices.Clone(r.sizes), func(g group) bool { return g.Operations <= 2 })
	each := verdict.Family(c, len(larger))
	for _, g := range larger {
		name := fmt.Sprintf("own: h = %d, most pairs with α_j < α_i are without Condition 6", g.Operations)
		claims = append(claims, unforeseen(g, each).Above(runs.NewClaim(name, own), 0.5))
	}
	return claims
}

// pool7 joins groups of several sizes.
func pool7(groups []group) group {
	var all group
	for _, g := range groups {
		all.records = append(all.records, g.records...)
		all.Operations = max(all.Operations, g.Operations)
	}
	return all
}
