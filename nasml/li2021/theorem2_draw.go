package li2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// over is a case's Δ, one list of runs a problem, over a value of the record.
func (c Theorem2Case) over(value string) [][]float64 {
	var all [][]float64
	for _, record := range c.records {
		var list []float64
		for _, delta := range record.Series["delta"] {
			list = append(list, delta/record.Values[value])
		}
		all = append(all, list)
	}
	return all
}

// find lists the cases that fit.
func (r *Theorem2Result) find(fits func(theorem2Trial) bool) []Theorem2Case {
	var cases []Theorem2Case
	for _, c := range r.Cases {
		if fits(c.theorem2Trial) {
			cases = append(cases, c)
		}
	}
	return cases
}

// Figure draws, on the left, measured stationarity over the bound of Theorem 2
// for each number of blocks; on the right f = xy, where the blocks alone allow
// a γ that is too small, with the bound of Corollary 1 in its safe form.
func (r *Theorem2Result) Figure() plots.Figure {
	left := plots.Panel{
		Title: "small supernet, cut into $b$ blocks",
		X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$E Δ_{1/γ̂}$ / bound", Scale: plots.Log10},
	}
	for _, b := range r.Params.Blocks {
		left.Series = append(left.Series, r.curve(b))
	}
	left.Series = append(left.Series, plots.HLine("the bound", 1))
	return plots.Figure{
		Name: "li2021-theorem2", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{left, r.saddles()}},
		Caption: r.caption(), Meta: meta(theorem2Title, r.Scale, r.Params),
	}
}

// curve is the geometric mean over problems, schedules and γ̂.
func (r *Theorem2Result) curve(b int) plots.Series {
	s := plots.Series{Label: fmt.Sprintf("$b$ = %d", b), Interval: plots.ErrorBars}
	for _, steps := range r.Params.Steps {
		var all []float64
		for _, c := range r.find(func(t theorem2Trial) bool {
			return t.Kind == "net" && t.Blocks == b && t.Steps == steps
		}) {
			all = append(all, means(c.over("bound"))...)
		}
		addGeometric(&s, float64(steps), all, r.Params.Confidence)
	}
	return s
}

// safe is the constant of Corollary 1's bound that follows from Theorem 2 at
// the printed step, in place of the printed 2; see Corollary1.
const safe = 3

// saddles is the right panel: Δ, and the bound that Corollary 1 then claims.
func (r *Theorem2Result) saddles() plots.Panel {
	p := plots.Panel{
		Title: "$f(x, y) = xy$: block-wise $γ$",
		X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10}, Y: plots.Axis{Label: "$E Δ_{1/2γ}$", Scale: plots.Log10},
	}
	for _, sigma := range r.Params.Sigmas {
		for _, gamma := range r.Params.Gammas {
			s := plots.Series{Label: fmt.Sprintf("$γ$ = %v, $σ$ = %v", gamma, sigma)}
			bound := plots.Series{Label: "bound with block-wise $γ$", Reference: true}
			for _, c := range r.find(func(t theorem2Trial) bool { return t.Kind == "xy" && t.Sigma == sigma && t.Gamma == gamma }) {
				m := maxOf([]float64{0, mean(means(c.over("one")))})
				if m > 0 {
					s.X, s.Y = append(s.X, float64(c.Steps)), append(s.Y, m)
				}
				bound.X, bound.Y = append(bound.X, float64(c.Steps)), append(bound.Y, safe*c.records[0].Values["unit"])
			}
			if len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
			if sigma == r.Params.Sigmas[0] && gamma == r.Params.Gammas[0] {
				p.Series = append(p.Series, bound)
			}
		}
	}
	return p
}

func mean(x []float64) float64 { return means([][]float64{x})[0] }

func (r *Theorem2Result) caption() string {
	p := r.Params
	return fmt.Sprintf("Left: geometric mean over %d problems, step schedules and $γ̂$ (%d runs each), %v %% intervals. Right: Algorithm 2 from (0, 0); each block of $f$ is linear, so that Setting 1 allows any $γ$ > 0, but only $γ$ ≥ 1 makes $f + γφ$ convex; there $Δ$ is 0 without noise, and not drawn. The bound is drawn for $γ$ = %v, $σ$ = %v.%s",
		p.Seeds, p.Runs, 100*p.Confidence, p.Gammas[0], p.Sigmas[0], scaleNote(r.Scale))
}

// Check judges:
//
//   - Theorem 2's bound for every b, on the worst of all schedules, γ̂, T and
//     problems, at a confidence that allows for their number;
//   - Claims 1 and 2 on the product norm, on random points;
//   - Setting 1 with block-wise γ on f = xy: the theorem's proof takes f to be
//     γ-RWC jointly, which does not follow; and with the joint γ.
func (r *Theorem2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, b := range r.Params.Blocks {
		claims = append(claims, r.checkBound(b))
	}
	claims = append(claims, r.checkNorms()...)
	for _, gamma := range r.Params.Gammas {
		claims = append(claims, r.checkSetting(gamma))
	}
	return claims
}

func (r *Theorem2Result) checkBound(b int) runs.Claim {
	c := runs.NewClaim(fmt.Sprintf("LI023: E Δ over Theorem 2's bound, b = %d", b), theorem2Source)
	c.Paper = 1
	var lists [][]float64
	for _, one := range r.find(func(t theorem2Trial) bool { return t.Kind == "net" && t.Blocks == b }) {
		lists = append(lists, one.over("bound")...)
	}
	s, err := worst(lists, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Note = fmt.Sprintf("the worst of %d combinations of schedule, γ̂, T and problem, over %d runs each", len(lists), r.Params.Runs)
	return atMost(c, s, 1)
}

func (r *Theorem2Result) checkNorms() []runs.Claim {
	most := map[string]float64{"triangle": math.Inf(-1), "above": math.Inf(-1), "attained": 0}
	for _, c := range r.find(func(t theorem2Trial) bool { return t.Kind == "norms" }) {
		for _, record := range c.records {
			for name := range most {
				most[name] = math.Max(most[name], record.Values[name])
			}
		}
	}
	const rounding = 1e-12
	triangle := runs.NewClaim("LI027: ‖x+y‖ − ‖x‖ − ‖y‖, relative, at most 0", "Li+ 2021, Claim 1")
	triangle.Paper, triangle.Ours, triangle.Tolerance = 0, runs.Number(most["triangle"]), rounding
	triangle.Holds = runs.Judge(most["triangle"] <= rounding)
	triangle.Note = "the largest over random x, y in a product of ‖·‖₂ and ‖·‖₁"
	above := runs.NewClaim("LI028: ⟨u, x⟩ − ½‖x‖² above ½‖u‖_*², relative, at most 0", "Li+ 2021, Claim 2")
	above.Paper, above.Ours, above.Tolerance = 0, runs.Number(most["above"]), rounding
	above.Holds = runs.Judge(most["above"] <= rounding)
	above.Note = "the largest over random u, x"
	attained := exactly(runs.NewClaim("LI028: ½‖u‖_*² is attained, relative error", "Li+ 2021, Claim 2"), 0, most["attained"], rounding)
	attained.Note = "at the x that the proof names"
	return []runs.Claim{triangle, above, attained}
}

// checkSetting judges Corollary 1's bound, with the safe constant, on f = xy
// without noise at the largest T.
func (r *Theorem2Result) checkSetting(gamma float64) runs.Claim {
	kind := "block-wise"
	if gamma >= 1 {
		kind = "joint"
	}
	c := runs.NewClaim(fmt.Sprintf("Setting 1 with γ = %v (%s) on f = xy: E Δ over the bound", gamma, kind), "Li+ 2021, Setting 1 and proof of Theorem 2")
	c.Paper = 1
	cases := r.find(func(t theorem2Trial) bool {
		return t.Kind == "xy" && t.Gamma == gamma && t.Sigma == r.Params.Sigmas[0]
	})
	last := cases[len(cases)-1]
	ratio := mean(means(last.over("unit"))) / safe
	c.Ours, c.Holds = runs.Number(ratio), runs.Judge(ratio <= 1)
	c.Note = fmt.Sprintf("T = %d, σ = %v, bound %d·L√(2bγ(f¹−f*)/T)", last.Steps, last.Sigma, safe)
	if gamma < 1 {
		c.Note += "; our finding: γ-RWC of each block does not make f γ-RWC, as the proof takes it to be; f + γφ must be convex jointly, here γ ≥ 1"
	}
	return c
}
