package li2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// theorem1Variants are the curves: what is run, and which iterate is returned.
var theorem1Variants = []struct {
	order, series string
	short         bool
	label         string
}{
	{"random", "random", false, "random block, random iterate (Algorithm 1)"},
	{"random", "last", false, "random block, last iterate"},
	{"cyclic", "random", false, "blocks in turn, random iterate"},
	{"cyclic", "last", false, "blocks in turn, last iterate (practice)"},
	{"random", "random", true, "Algorithm 1, $T$ too short (control)"},
}

// of is a case's values of a series, one list of runs a problem, over a value
// of the record.
func (c Theorem1Case) of(series, over string) [][]float64 {
	var all [][]float64
	for _, record := range c.records {
		var values []float64
		for _, v := range record.Series[series] {
			values = append(values, v/record.Values[over])
		}
		all = append(all, values)
	}
	return all
}

// find lists the cases of an order, in the order of ε.
func (r *Theorem1Result) find(order string, short bool) []Theorem1Case {
	var cases []Theorem1Case
	for _, c := range r.Cases {
		if c.Order == order && (c.Constant < theorem1Constant) == short {
			cases = append(cases, c)
		}
	}
	return cases
}

// means are the means of lists.
func means(lists [][]float64) []float64 {
	var out []float64
	for _, list := range lists {
		sum := 0.0
		for _, v := range list {
			sum += v / float64(len(list))
		}
		out = append(out, sum)
	}
	return out
}

// Figure draws, on the left, the stationarity that was reached over the one
// asked for, both over that of the start, with the theorem's bound; on the
// right Algorithm 1 on every problem over the number of steps.
func (r *Theorem1Result) Figure() plots.Figure {
	left := plots.Panel{
		Title: "reached against asked for",
		X:     plots.Axis{Label: "$ε$ / $Δ$ at the start", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$E Δ_{1/2γ}$ / $Δ$ at the start", Scale: plots.Log10},
	}
	for _, v := range theorem1Variants {
		s := plots.Series{Label: v.label, Interval: plots.ErrorBars}
		for _, c := range r.find(v.order, v.short) {
			addGeometric(&s, c.Target, means(c.of(v.series, "delta_start")), r.Params.Confidence)
		}
		if len(s.X) > 0 {
			left.Series = append(left.Series, s)
		}
	}
	ends := []float64{r.Params.Targets[0], r.Params.Targets[len(r.Params.Targets)-1]}
	left.Series = append(left.Series, plots.Series{Label: "Theorem 1: at most $ε$", X: ends, Y: ends, Reference: true})
	return plots.Figure{
		Name: "li2021-theorem1", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{left, r.steps()}},
		Caption: r.caption(), Meta: meta(theorem1Title, r.Scale, r.Params),
	}
}

// steps is the right panel.
func (r *Theorem1Result) steps() plots.Panel {
	p := plots.Panel{
		Title: "Algorithm 1, each problem",
		X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10}, Y: plots.Axis{Label: "$E Δ_{1/2γ}$", Scale: plots.Log10},
	}
	cases := r.find("random", false)
	for problem := range r.Params.Seeds {
		s := plots.Series{Label: theorem1Variants[0].label, Faint: problem > 0}
		bound := plots.Series{Label: "Theorem 1: at most $ε$", Reference: true}
		for _, c := range cases {
			record := c.records[problem]
			s.X, s.Y = append(s.X, record.Values["steps"]), append(s.Y, means(c.of("random", "one"))[problem])
			bound.X, bound.Y = append(bound.X, record.Values["steps"]), append(bound.Y, record.Values["epsilon"])
		}
		p.Series = append(p.Series, s, bound)
	}
	return p
}

func (r *Theorem1Result) caption() string {
	p := r.Params
	return fmt.Sprintf("%d problems, %d runs each: a supernet of %d edges × %d smooth operations, weights in $R^{%d}$, single examples of %d; $γ$, $G_w$, $G_θ$ proved. Left: geometric mean over the problems with %v %% intervals.%s",
		p.Seeds, p.Runs, p.Edges, len(p.Ops), p.Edges*p.Inputs, p.Examples, 100*p.Confidence, scaleNote(r.Scale))
}

// Check judges Theorem 1, on each problem, because it speaks of each:
//
//   - Assumption 1 with the proved constants, at the points that were visited;
//   - at every ε, E Δ ≤ ε after T(ε) steps; judged on the worst problem, at a
//     confidence that allows for their number;
//   - E Δ falls at least as T^{−1/2}, which is O(1/ε²) steps;
//   - the same for what is done in practice, which the theorem does not cover;
//   - as a control, that the conclusion fails after far fewer steps: a check
//     that can only pass shows nothing.
func (r *Theorem1Result) Check() []runs.Claim {
	claims := r.checkAssumption()
	for _, c := range r.find("random", false) {
		claims = append(claims, r.checkReached(c, "random", fmt.Sprintf("LI016: E Δ ≤ ε after T(ε) steps, ε = %v Δ(start)", c.Target), theorem1Source))
	}
	claims = append(claims, r.checkRate())
	for _, c := range r.find("cyclic", false) {
		claims = append(claims, r.checkReached(c, "last", fmt.Sprintf("practice: blocks in turn, last iterate: Δ ≤ ε = %v Δ(start)", c.Target), "Li+ 2021, Section 3.2 (not covered by Theorem 1)"))
	}
	if short := r.find("random", true); len(short) > 0 {
		claims = append(claims, r.checkConstant(), r.checkShort(short[0]))
	}
	return claims
}

// largestOf is the largest of value(record) over Algorithm 1's records.
func (r *Theorem1Result) largestOf(value func(*runs.Record) float64) float64 {
	most := 0.0
	for _, c := range r.find("random", false) {
		for _, record := range c.records {
			most = math.Max(most, value(record))
		}
	}
	return most
}

func maxOf(x []float64) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		most = math.Max(most, v)
	}
	return most
}

func (r *Theorem1Result) checkAssumption() []runs.Claim {
	const source = "Li+ 2021, Assumption 1"
	gamma := runs.NewClaim("LI015: γ needed by the Hessian over the proved γ", source)
	gamma.Note = "the largest need of 100 random points of each problem, jointly in w and θ, with γ(½‖w‖² + φ(θ)); γφ(θ) alone, as printed, would ask for a convex f(·, θ)"
	weights := runs.NewClaim("LI015: E‖∇_w‖² over the proved G_w²", source)
	theta := runs.NewClaim("LI015: E‖∇_θ‖_*² over the proved G_θ²", source)
	weights.Note = "the largest at the points at which Δ was measured"
	theta.Note = weights.Note
	ratios := []float64{
		r.largestOf(func(x *runs.Record) float64 { return x.Values["weakness"] / x.Values["gamma"] }),
		r.largestOf(func(x *runs.Record) float64 { return maxOf(x.Series["gw"]) / x.Values["gw"] }),
		r.largestOf(func(x *runs.Record) float64 { return maxOf(x.Series["gt"]) / x.Values["gt"] }),
	}
	claims := []runs.Claim{gamma, weights, theta}
	for i := range claims {
		claims[i].Paper, claims[i].Ours = 1, runs.Number(ratios[i])
		claims[i].Holds = runs.Judge(ratios[i] <= 1)
	}
	return claims
}

// checkReached judges Δ/ε ≤ 1 on the problem with the largest mean.
func (r *Theorem1Result) checkReached(c Theorem1Case, series, name, source string) runs.Claim {
	claim := runs.NewClaim(name, source)
	claim.Paper = 1
	s, err := worst(c.of(series, "epsilon"), r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	claim.Note = fmt.Sprintf("ours is the mean of Δ/ε on the worst of %d problems, over %d runs; the interval is at %.4g %% for that choice", len(c.records), s.N, 100*s.Confidence)
	return atMost(claim, s, 1)
}

// worst summarizes the list with the largest mean, at a confidence that holds
// for all lists together (Bonferroni).
func worst(lists [][]float64, confidence float64) (runs.Summary, error) {
	each := 1 - (1-confidence)/float64(max(1, len(lists)))
	var most runs.Summary
	for i, list := range lists {
		s, err := runs.Summarize(list, each)
		if err != nil {
			return s, err
		}
		if i == 0 || s.Mean > most.Mean {
			most = s
		}
	}
	return most, nil
}

// checkRate judges the slope of E Δ over T, a line for each problem, over the
// smaller half of the ε: O(1/ε²) speaks of ε → 0, and at large ε the start still
// helps, so that E Δ/ε rises before it is constant.
func (r *Theorem1Result) checkRate() runs.Claim {
	claim := runs.NewClaim("LI016: E Δ falls at least as T^−½: O(1/ε²) steps", theorem1Source)
	claim.Paper = -0.5
	var each, whole []float64
	cases := r.find("random", false) // the smallest ε first
	small := max(2, (len(cases)+1)/2)
	for problem := range r.Params.Seeds {
		var x, y []float64
		for _, c := range cases {
			x = append(x, c.records[problem].Values["steps"])
			y = append(y, means(c.of("random", "one"))[problem])
		}
		if len(x) < small {
			break // one ε has no slope
		}
		each, whole = append(each, slopeOf(x[:small], y[:small])), append(whole, slopeOf(x, y))
	}
	s, err := runs.Summarize(each, r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	over, err := runs.Summarize(whole, r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	claim.Note = fmt.Sprintf("slope on log–log axes over the %d smallest ε, mean over the problems; the theorem's own rate is exactly −½, so that where the problems are at that rate the interval holds it; over all %d ε it is %.3f [%.3f, %.3f]", small, len(cases), over.Mean, over.Lo, over.Hi)
	return atMost(claim, s, -0.5)
}

// checkConstant says which constant in T the problems need: where E Δ = c·ε
// with 16 and E Δ falls as T^−½, 16c² is enough.
func (r *Theorem1Result) checkConstant() runs.Claim {
	claim := runs.NewClaim("ours: the constant in T that the problems need", theorem1Source)
	claim.Paper = theorem1Constant
	cases := r.find("random", false)
	s, err := worst(cases[0].of("random", "epsilon"), r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	square := func(x float64) runs.Number { return runs.Number(theorem1Constant * x * x) }
	claim.Ours, claim.Lo, claim.Hi = square(s.Mean), square(math.Max(0, float64(s.Lo))), square(float64(s.Hi))
	claim.Holds = runs.Judge(claim.Ours <= claim.Paper)
	claim.Note = "16 (mean Δ/ε)² on the worst problem at the smallest ε; with the proved γ, G_w, G_θ, which are themselves above what is needed"
	return claim
}

// checkShort judges that Δ > ε after too few steps, at the smallest ε.
func (r *Theorem1Result) checkShort(c Theorem1Case) runs.Claim {
	claim := runs.NewClaim(fmt.Sprintf("control: with %v in place of 16 in T, E Δ > ε = %v Δ(start)", c.Constant, c.Target), "ours: the conclusion can fail")
	claim.Paper = 1
	s, err := runs.Summarize(means(c.of("random", "epsilon")), r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	claim.Note = "ours is the mean of Δ/ε over the problems"
	return opposite(atMost(claim, s, 1))
}

// opposite turns a claim's verdict over.
func opposite(c runs.Claim) runs.Claim {
	switch c.Holds {
	case runs.Holds:
		c.Holds = runs.Fails
	case runs.Fails:
		c.Holds = runs.Holds
	}
	return c
}
