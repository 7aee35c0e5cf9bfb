package li2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// find lists the cases that fit.
func (r *MirrorResult) find(fits func(mirrorTrial) bool) []MirrorCase {
	var cases []MirrorCase
	for _, c := range r.Cases {
		if fits(c.mirrorTrial) {
			cases = append(cases, c)
		}
	}
	return cases
}

// of are a case's values, one a seed.
func (c MirrorCase) of(value string) []float64 {
	var out []float64
	for _, record := range c.records {
		out = append(out, record.Values[value])
	}
	return out
}

// steps are the numbers of steps of a method, one a seed: at the step of the
// bound, or at the rate with the least mean. It is nil where no rate reaches
// the gap in every seed.
func (r *MirrorResult) steps(method, oracle string, options int, tuned bool) []float64 {
	kind := "theory"
	if tuned {
		kind = "tuned"
	}
	found := r.find(func(t mirrorTrial) bool {
		return t.Kind == kind && t.Method == method && t.Oracle == oracle && t.Options == options
	})
	if len(found) == 0 {
		return nil
	}
	if !tuned {
		return found[0].of("steps")
	}
	var best []float64
	for i := range r.Params.Rates {
		var steps []float64
		for _, record := range found[0].records {
			steps = append(steps, record.Series["steps"][i])
		}
		if slices.Max(steps) < float64(found[0].cap()) && (best == nil || mean(steps) < mean(best)) {
			best = steps
		}
	}
	return best
}

// Figure draws the numbers of steps over |O|, a panel an oracle, with the
// bounds.
func (r *MirrorResult) Figure() plots.Figure {
	var row []plots.Panel
	for i, oracle := range r.Params.Oracles {
		p := plots.Panel{
			Title: map[string]string{"dense": "entries of $±1$", "sparse": "one entry of $±1$"}[oracle],
			X:     plots.Axis{Label: "operations $|O|$", Scale: plots.Log2}, Y: plots.Axis{Scale: plots.Log10},
		}
		if i == 0 {
			p.Y.Label = fmt.Sprintf("steps to a mean gap of %v", r.Params.Gap)
		}
		for _, tuned := range []bool{false, true} {
			for _, method := range []string{"eg", "projected", "softmax"} {
				if s := r.curve(method, oracle, tuned); len(s.X) > 0 {
					p.Series = append(p.Series, s)
				}
			}
		}
		for _, method := range []string{"eg", "projected"} {
			p.Series = append(p.Series, r.bounds(method, oracle))
		}
		row = append(row, p)
	}
	return plots.Figure{
		Name: "li2021-mirror", Style: plots.ICML.Text(), Panels: [][]plots.Panel{row},
		Caption: fmt.Sprintf("%d edges, the best operation's mean loss %v below the others', geometric mean over %d seeds with %v %% intervals. Tuned: the best of %d step sizes.%s",
			r.Params.Edges, r.Params.Margin, r.Params.Seeds, 100*r.Params.Confidence, len(r.Params.Rates), scaleNote(r.Scale)),
		Meta: meta(mirrorTitle, r.Scale, r.Params),
	}
}

func (r *MirrorResult) curve(method, oracle string, tuned bool) plots.Series {
	label := methodName(method) + ", step of the bound"
	if tuned {
		label = methodName(method) + ", tuned"
	}
	s := plots.Series{Label: label, Interval: plots.ErrorBars}
	for _, options := range r.Params.Options {
		if steps := r.steps(method, oracle, options, tuned); steps != nil {
			addGeometric(&s, float64(options), steps, r.Params.Confidence)
		}
	}
	return s
}

func (r *MirrorResult) bounds(method, oracle string) plots.Series {
	s := plots.Series{Label: "bound: EG", Reference: true, Line: plots.Dotted}
	if method != "eg" {
		s = plots.Series{Label: "bound: projected SGD", Reference: true, Line: plots.Dashed}
	}
	for _, options := range r.Params.Options {
		t := mirrorTrial{Method: method, Oracle: oracle, Options: options, Gap: r.Params.Gap}
		s.X, s.Y = append(s.X, float64(options)), append(s.Y, t.bound())
	}
	return s
}

// Check judges the steps' closed forms (eq. 4 and 5), the norms of Section 3.3,
// the two rates of Section 3.1, the factor |O| between them in bounds and in
// runs, and Appendix B.3.
func (r *MirrorResult) Check() []runs.Claim {
	claims := append(r.checkIdentities(), r.checkNorms()...)
	for _, oracle := range r.Params.Oracles {
		if oracle == "dense" {
			claims = append(claims,
				r.checkBounded("eg", "LI013: EG's steps over 2 ln|O|/ε², the O(log k)/ε² of the paper"),
				r.checkGrowth("eg", "LI013: EG's steps grow with ln|O| at most as", math.Log),
				r.checkBounded("projected", "LI014: projected SGD's steps over (1−1/|O|)|O|/ε², the O(k/ε²) of the paper"),
				r.checkGrowth("projected", "LI014: projected SGD's steps grow with |O|−1 at most as", func(k float64) float64 { return k - 1 }),
				r.checkFactor("projected", false, "dense"), r.checkFactor("projected", true, "dense"), r.checkFactor("softmax", true, "dense"))
		} else {
			claims = append(claims, r.checkFactor("projected", false, "sparse"))
		}
	}
	return append(claims, r.checkENAS()...)
}

// extreme is the largest value over all |O| and seeds, or the smallest.
func (r *MirrorResult) extreme(value string, least bool) float64 {
	out := math.Inf(-1)
	for _, c := range r.find(func(t mirrorTrial) bool { return t.Kind == "norms" }) {
		for _, v := range c.of(value) {
			if least {
				v = -v
			}
			out = math.Max(out, v)
		}
	}
	if least {
		return -out
	}
	return out
}

func (r *MirrorResult) checkIdentities() []runs.Claim {
	const rounding = 1e-11
	note := "the largest error of the objective at the step against its closed form, at random points and gradients"
	sgd := exactly(runs.NewClaim("LI011: the SGD step minimizes eq. 4, value −η²‖g‖²/2", "Li+ 2021, eq. 4"), 0, r.extreme("step", false), rounding)
	eg := exactly(runs.NewClaim("LI012: the EG step minimizes eq. 5, value −Σ log Z", "Li+ 2021, eq. 5"), 0, r.extreme("eg_step", false), rounding)
	sgd.Note, eg.Note = note, note
	better := runs.NewClaim("LI012: no random feasible point is better than the EG step", "Li+ 2021, eq. 5")
	better.Paper, better.Ours, better.Tolerance = 0, runs.Number(r.extreme("better", false)), rounding
	better.Holds = runs.Judge(float64(better.Ours) <= rounding)
	better.Note = "the largest amount by which one is"
	return []runs.Claim{sgd, eg, better}
}

func (r *MirrorResult) checkNorms() []runs.Claim {
	const source = "Li+ 2021, Section 3.3"
	convex := runs.NewClaim("LI020: D_φ(x‖y) over ‖x−y‖₁²/|E| is at least ½", source)
	convex.Paper, convex.Ours = 0.5, runs.Number(r.extreme("convex", true))
	convex.Holds = runs.Judge(float64(convex.Ours) >= 0.5*(1-1e-9))
	convex.Note = "the least over random pairs"
	dual := runs.NewClaim("LI020: ⟨g, x⟩ over √|E|‖g‖_∞·‖x‖₁/√|E| is at most 1", source)
	dual.Paper, dual.Ours = 1, runs.Number(r.extreme("dual", false))
	dual.Holds = runs.Judge(float64(dual.Ours) <= 1)
	dual.Note = "the largest over random pairs"
	attained := exactly(runs.NewClaim("LI020: and 1 is attained", source), 1, r.extreme("attained", true), 1e-12)
	claims := []runs.Claim{convex, dual, attained}
	last := r.find(func(t mirrorTrial) bool { return t.Kind == "norms" })
	c := last[len(last)-1]
	k := float64(c.Options)
	factor := exactly(runs.NewClaim(fmt.Sprintf("LI019: ‖g‖₂/‖g‖_∞ of a gradient with entries ±1, |O| = %d", c.Options), "Li+ 2021, Section 3.2"),
		math.Sqrt(k), math.Sqrt(mean(c.of("ratio_dense"))), 1e-9)
	factor.Note = "up to √k: attained"
	bounds := exactly(runs.NewClaim(fmt.Sprintf("LI021, LI022: the bounds' G_θ² of SGD over that of EG, entries ±1, |O| = %d", c.Options), source), k, mean(c.of("ratio_dense")), 1e-9)
	bounds.Note = fmt.Sprintf("up to |O|: attained, |E||O| against |E|; for entries of a sine it is %.4g, and %.4g where one entry is not 0", mean(c.of("ratio_sine")), mean(c.of("ratio_sparse")))
	return append(claims, factor, bounds)
}

// checkBounded judges the steps at the bound's own rate against the bound, on
// the worst |O|.
func (r *MirrorResult) checkBounded(method, name string) runs.Claim {
	c := runs.NewClaim(name, "Li+ 2021, Section 3.1")
	c.Paper = 1
	var lists [][]float64
	for _, one := range r.find(func(t mirrorTrial) bool { return t.Kind == "theory" && t.Method == method && t.Oracle == "dense" }) {
		var ratios []float64
		for _, steps := range one.of("steps") {
			ratios = append(ratios, steps/one.bound())
		}
		lists = append(lists, ratios)
	}
	s, err := worst(lists, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Note = fmt.Sprintf("on the worst of %d values of |O|; T is on a grid of 2^¼", len(lists))
	return atMost(c, s, math.Pow(2, 0.25))
}

// checkGrowth judges the exponent of the steps over ln |O|, or over |O|−1, as
// the bounds have it.
func (r *MirrorResult) checkGrowth(method, name string, of func(float64) float64) runs.Claim {
	const tolerance = 0.15 // T is on a grid, |O| finite
	c := runs.NewClaim(name+" a power of 1", "Li+ 2021, Section 3.1")
	c.Paper, c.Tolerance = 1, tolerance
	s, err := r.exponent(func(options int) []float64 { return r.steps(method, "dense", options, false) }, of)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Note = "slope on log–log axes, mean over the seeds"
	return atMost(c, s, 1+tolerance)
}

// exponent is the slope over |O| of values, one a seed.
func (r *MirrorResult) exponent(values func(options int) []float64, of func(float64) float64) (runs.Summary, error) {
	var x []float64
	curves := make([][]float64, r.Params.Seeds)
	for _, options := range r.Params.Options {
		y := values(options)
		if y == nil {
			return runs.Summary{}, fmt.Errorf("no step size reaches the gap at |O| = %d", options)
		}
		x = append(x, of(float64(options)))
		for seed := range curves {
			curves[seed] = append(curves[seed], y[seed])
		}
	}
	return slopes(x, curves, r.Params.Confidence)
}

// checkFactor judges how the steps of a method over those of EG grow with |O|:
// like |O| where the exponent is 1. On the sparse oracle, where both norms of
// the gradient are the same, EG should have no advantage.
func (r *MirrorResult) checkFactor(method string, tuned bool, oracle string) runs.Claim {
	how := "at the bounds' steps"
	if tuned {
		how = "tuned"
	}
	c := runs.NewClaim(fmt.Sprintf("LI022: %s over EG, %s, grows like |O|: exponent", methodName(method), how), "Li+ 2021, Section 3.3")
	if oracle == "sparse" {
		c.Name = fmt.Sprintf("control: %s over EG on gradients with one entry, %s: no growth, exponent", methodName(method), how)
	}
	values := func(options int) []float64 {
		a, b := r.steps(method, oracle, options, tuned), r.steps("eg", oracle, options, tuned)
		if a == nil || b == nil {
			return nil
		}
		var out []float64
		for i := range a {
			out = append(out, a[i]/b[i])
		}
		return out
	}
	s, err := r.exponent(values, func(k float64) float64 { return k })
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	largest := r.Params.Options[len(r.Params.Options)-1]
	note := fmt.Sprintf("the ratio is %.3g at |O| = %d", mean(values(largest)), largest)
	if oracle == "sparse" {
		c.Paper, c.Note = 0, note+"; EG is then the slower one by its ln|O|"
		return atMost(c, s, 0)
	}
	c.Paper, c.Note = 1, note+"; the paper says up to |O|, of the bounds; above ½ counts as growing like |O|"
	return opposite(atMost(c, s, 0.5))
}

func (r *MirrorResult) checkENAS() []runs.Claim {
	const source = "Li+ 2021, Appendix B.3"
	h, edges, options := float64(r.Params.CellENAS[0]), float64(r.Params.CellENAS[1]), float64(r.Params.CellENAS[2])
	enas := exactly(runs.NewClaim("LI029: G² of ENAS with entries bounded by 1: the dimension h²", source), 1e4, h*h, 0)
	enas.Note = "arithmetic: ‖g‖₂² ≤ dimension·‖g‖_∞²; O(·) leaves the constant open"
	darts := exactly(runs.NewClaim("LI030: G² of DARTS with entries bounded by 1: |E||O|", source), 98, edges*options, 0)
	darts.Note = "arithmetic; |O| = 7 leaves the zero operation out, and one of the two cells is counted"
	ordinal := runs.NewClaim("LI031: Monte-Carlo gradients have a larger second moment than exact ones", source)
	ordinal.Paper = 1
	last := r.find(func(t mirrorTrial) bool { return t.Kind == "norms" })
	c := last[len(last)-1]
	s, err := runs.Summarize(c.of("monte_carlo"), r.Params.Confidence)
	if err != nil {
		ordinal.Note = "not run: " + err.Error()
		return []runs.Claim{enas, darts, ordinal}
	}
	ordinal.Note = fmt.Sprintf("E‖ĝ‖²/‖g‖² of the score-function gradient without a baseline over the exact one, |E| = %d, |O| = %d, losses U(0, 1); that iterations follow is the theorem's bound, the searches of ENAS and DARTS themselves are left out", c.Edges, c.Options)
	return []runs.Claim{enas, darts, opposite(atMost(ordinal, s, 1))}
}
