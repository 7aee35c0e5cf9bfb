package li2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/geometry"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// MirrorParams are the parameters of the comparison of geometries in Sections 3.1 to 3.3: on each edge one operation
// has a mean loss of −Margin, all others 0, and the oracle's entries are ±1.
type MirrorParams struct {
	Edges   int   `validate:"gte=1"`
	Options []int `validate:"min=1,ascending,dive,gte=2"` // |O|
	// "dense": every entry of the gradient is ±1; "sparse": that of the best operation, all others 0.
	Oracles []string  `validate:"min=1,unique,dive,oneof=dense sparse"`
	Gap     float64   `validate:"gt=0"`                      // mean gap of a run, per edge, that counts as reached
	Margin  float64   `validate:"gt=0,lte=1"`                // of the best operation, a mean of ±1
	Rates   []float64 `validate:"min=1,ascending,dive,gt=0"` // step sizes that tuned runs choose from
	// Smaller rates for projected SGD on the dense oracle, whose best step falls like 1/|O|.
	SmallRates []float64 `validate:"ascending,dive,gt=0"`
	Draws      int       `validate:"gte=1"` // random points for the identities and norms
	Seeds      int       `validate:"gte=2"`
	CellENAS   [3]int    `validate:"dive,gte=1"` // h of ENAS' controller, |E| and |O| of DARTS' cell

	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
}

// The presets differ in |O| and in the number of seeds. In both, EG needs at most 0.43 of the steps of its bound.
// Projected SGD's steps over EG's grow as |O|^0.8, those of tuned SGD on logits hardly (|O|^0.07).
var (
	// MirrorQuick goes to |O| = 64: about a second on two cores, since all but the norms are precomputed with
	// MirrorPaper.
	MirrorQuick = MirrorParams{
		Edges: 4, Options: []int{4, 16, 64}, Oracles: []string{"dense", "sparse"}, Gap: 0.1, Margin: 0.5,
		Rates: []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}, SmallRates: []float64{1e-4, 3e-4, 1e-3},
		Draws: 2000, Seeds: 6,
		CellENAS: [3]int{100, 14, 7}, Confidence: 0.95,
	}
	// MirrorPaper goes to |O| = 256: about 8 minutes on two cores, precomputed.
	MirrorPaper = lab.With(MirrorQuick, func(p *MirrorParams) {
		p.Options, p.Draws, p.Seeds = []int{4, 16, 64, 256}, 20000, 8
	})
)

// Mirror counts the steps that exponentiated gradient, projected SGD and SGD on logits need to reach the same mean gap,
// and measures the norms in their bounds.
var Mirror = lab.Declare(lab.Entry[MirrorParams, geometry.Trial]{
	Of: ofPaper, Name: "mirror", Kind: lab.Theorem, Source: "Section 3.3", Notebook: "mirror_geometry",
	Title: "Exponentiated gradient against SGD: iterations and gradient bounds as |O| grows",
	Cost: catalog.Cost{
		Quick: "about a second on two cores; most of its trials are shipped",
		Paper: "about 8 minutes on two cores; precomputed",
	},
	Quick: MirrorQuick, Paper: MirrorPaper,
	Code: code.Define("li2021/mirror", "li2021/internal/geometry"),
	Rules: func(p MirrorParams, c *study.Checks) {
		c.Expect(p.Gap < p.Margin/2, "Gap must be below Margin/2, since it starts at nearly Margin, got %v", p.Gap)
		if n := len(p.SmallRates); n > 0 && len(p.Rates) > 0 {
			c.Expect(p.SmallRates[n-1] < p.Rates[0], "SmallRates must be less than all Rates, got %v", p.SmallRates)
		}
	},
	Trials: MirrorParams.trials,
	Units: func(t geometry.Trial) int {
		if t.Kind == "norms" {
			return 1 + t.Draws*t.Options/100000
		}
		return 1 + t.Edges*t.Options*t.Options/1000
	},
	Draw:   drawMirror,
	Claims: judgeMirror,
})

type mirror = lab.Result[MirrorParams, geometry.Trial]

// trials are random points for the norms; projected SGD and EG at the step of their bounds; and all methods at every
// rate.
func (p MirrorParams) trials() (gs lab.Groups[geometry.Trial]) {
	for _, options := range p.Options {
		gs.Add("norms", p.Seeds, geometry.Trial{Kind: "norms", Edges: p.Edges, Options: options, Draws: p.Draws})
		for _, oracle := range p.Oracles {
			for _, method := range mirrorMethods {
				add := func(kind string, rates []float64) {
					gs.Add(kind, p.Seeds, geometry.Trial{
						Kind: kind, Method: method, Oracle: oracle, Edges: p.Edges, Options: options, Gap: p.Gap,
						Margin: p.Margin, Rates: rates,
					})
				}
				if method != "softmax" { // no bound names its step
					add("theory", nil)
				}
				add("tuned", p.Rates)
				if method == "projected" && oracle == "dense" && len(p.SmallRates) > 0 {
					add("tuned", p.SmallRates)
				}
			}
		}
	}
	return gs
}

var mirrorMethods = []string{"eg", "projected", "softmax"}

func methodName(method string) string {
	return strings.NewReplacer("eg", "EG", "projected", "projected SGD", "softmax", "SGD on logits").Replace(method)
}

// mirrorOf is a method on an oracle, in the part "theory" or "tuned".
func mirrorOf(r *mirror, part, method, oracle string, options int) lab.Groups[geometry.Trial] {
	return r.Part(part).Where(func(t geometry.Trial) bool {
		return t.Method == method && t.Oracle == oracle && t.Options == options
	})
}

// mirrorSteps are the numbers of steps of a method for each |O|, one per seed: at the step of the bound, or at the rate
// with the least mean. A list is empty if no rate reaches the gap in every seed.
func mirrorSteps(r *mirror, part, method, oracle string) (lists [][]float64) {
	for _, options := range r.Params.Options {
		gs := mirrorOf(r, part, method, oracle, options)
		steps := gs.Values("steps")
		if part == "tuned" {
			steps, _ = bestRate(gs)
		}
		lists = append(lists, steps)
	}
	return lists
}

// bestRate are the numbers of steps, one per seed, at the rate of all groups with the least mean, and that rate; nil if
// none reaches the gap in every seed.
func bestRate(gs lab.Groups[geometry.Trial]) (best []float64, rate float64) {
	for _, g := range gs {
		for i, steps := range study.Columns(study.Rows(g.Records, "steps")) {
			if slices.Max(steps) < float64(g.Trial.Cap()) && (best == nil || mean(steps) < mean(best)) {
				best, rate = steps, g.Trial.Rates[i]
			}
		}
	}
	return best, rate
}

func lowest(gs lab.Groups[geometry.Trial]) float64 {
	return slices.Min(gs.X(func(t geometry.Trial) float64 { return slices.Min(t.Rates) }))
}

func drawMirror(r *mirror, f *lab.Picture) {
	p := r.Params
	for i, oracle := range p.Oracles {
		panel := plots.Panel{
			Title: map[string]string{"dense": "entries of $±1$", "sparse": "one entry of $±1$"}[oracle],
			X:     plots.Axis{Label: "operations $|O|$", Scale: plots.Log2}, Y: plots.Axis{Scale: plots.Log10},
		}
		if i == 0 {
			panel.Y.Label = fmt.Sprintf("steps to a mean gap of %v", p.Gap)
		}
		for _, part := range []string{"theory", "tuned"} {
			for _, method := range mirrorMethods {
				label := map[string]string{"theory": "%s, step of the bound", "tuned": "%s, tuned"}[part]
				s := geometric(fmt.Sprintf(label, methodName(method)), study.Floats(p.Options),
					mirrorSteps(r, part, method, oracle), r.Confidence)
				if len(s.X) > 0 {
					panel.Series = append(panel.Series, s)
				}
			}
		}
		panel.Series = append(panel.Series, mirrorBound(p, "eg", oracle, plots.Dotted),
			mirrorBound(p, "projected", oracle, plots.Dashed))
		f.Add(panel)
	}
	f.Say("%d edges, the best operation's mean loss %v below the others'; tuned: the best of %d step sizes; "+
		"%s (geometric).", p.Edges, p.Margin, len(p.SmallRates)+len(p.Rates), r.Interval("bars", p.Seeds, "seed"))
}

func mirrorBound(p MirrorParams, method, oracle string, line plots.Line) plots.Series {
	return plots.Reference("bound: "+methodName(method), line, study.Floats(p.Options), func(options float64) float64 {
		return geometry.Trial{Method: method, Oracle: oracle, Options: int(options), Gap: p.Gap}.Bound()
	})
}

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
