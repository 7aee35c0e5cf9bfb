package oymak2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// of lists the curves of a part that were validated as asked.
func (r *Theorem1Result) of(part string, keep func(thm1Curve) bool) []thm1Curve {
	var out []thm1Curve
	for _, c := range r.Curves {
		if c.Part == part && (keep == nil || keep(c)) {
			out = append(out, c)
		}
	}
	return out
}

// ridge are the curves of feature maps with one λ, trained on true labels.
func (r *Theorem1Result) ridge(lambda float64) []thm1Curve {
	return r.of("ridge", func(c thm1Curve) bool { return c.Lambda == lambda && !c.Bad })
}

// bad are those trained on coin flips.
func (r *Theorem1Result) bad() []thm1Curve {
	return r.of("ridge", func(c thm1Curve) bool { return c.Bad })
}

// Figure draws the suprema over the size of the validation sample, a panel for
// each part that was run.
func (r *Theorem1Result) Figure() plots.Figure {
	p := r.Params
	var panels []plots.Panel
	if curves := r.of("tight", nil); len(curves) > 0 {
		panels = append(panels,
			r.panel("(a) $f_α(x) = ⟨α, g⟩$, exact", "sup of risk gap", "gap", curves),
			r.panel("(b) its gradient, exact", "sup of gradient gap", "gradient", curves))
	}
	if curves := r.ridge(p.Lambdas[0]); len(curves) > 0 {
		panels = append(panels,
			r.panel(fmt.Sprintf("(c) feature maps, $λ = %v$", p.Lambdas[0]), "sup of risk gap", "gap", curves),
			r.panel("(d) their hypergradient", "sup of hypergradient gap", "gradient", curves))
	}
	if curves := r.of("net", nil); len(curves) > 0 {
		panels = append(panels, r.panel(fmt.Sprintf("(e) activation search, %s", p.Data), "sup of risk gap", "gap", curves))
	}
	if curves := r.of("lipschitz", nil); len(curves) > 0 {
		panels = append(panels, r.lipschitzPanel(curves[0]))
	}
	f := plots.Figure{Name: "oymak2021-theorem1", Caption: r.caption(), Style: plots.ICML.Text(), Meta: thm1Meta(theorem1Title, r.Scale, p)}
	if len(panels) == 0 { // only covers
		panels = []plots.Panel{r.coverPanel()}
	}
	for row := range slices.Chunk(panels, 2) {
		f.Panels = append(f.Panels, row)
	}
	return f
}

func (r *Theorem1Result) caption() string {
	text := fmt.Sprintf("Supremum over $α$ of |test − validation|, mean over %d validation samples and %d seeds with %v %% intervals; dashed: slope −1/2.",
		r.Params.Repeats, r.Params.Seeds, 100*r.Params.Confidence)
	if r.Params.Data == data.Synthetic && len(r.of("net", nil)) > 0 {
		text += " (e) on SYNTHETIC DATA."
	}
	if r.Scale == "quick" {
		text += " Quick scale."
	}
	return text
}

func (r *Theorem1Result) panel(title, label, name string, curves []thm1Curve) plots.Panel {
	p := plots.Panel{Title: title, X: plots.Axis{Label: "validation samples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: label, Scale: plots.Log10}}
	for _, c := range curves {
		means, err := thm1Summaries(thm1Rows(c.records, name), r.Params.Confidence)
		if err != nil { // a stored series is finite
			panic(err)
		}
		p.Series = append(p.Series, thm1Band(fmt.Sprintf("$h = %d$", c.Maps), thm1Floats(c.Validation), means))
	}
	p.Series = append(p.Series, thm1Reference(p.Series[len(p.Series)-1], true)...)
	return p
}

// thm1Band is a curve with its interval on a logarithmic axis: a mean that is
// not positive has no place there and is left out, and an end of an interval
// that is not is cut at a hundredth of the mean.
func thm1Band(label string, x []float64, means []runs.Summary) plots.Series {
	var kept []runs.Summary
	var at []float64
	for i, m := range means {
		if m.Mean > 0 {
			at, kept = append(at, x[i]), append(kept, m)
		}
	}
	s := plots.Band(label, at, kept)
	for i := range s.Lo {
		s.Lo[i] = max(s.Lo[i], s.Y[i]/100)
	}
	return s
}

// thm1Reference is a dashed line of slope −1/2 through the first or last point
// of a curve, over its range; nil where the curve has no two points.
func thm1Reference(s plots.Series, last bool) []plots.Series {
	n := len(s.X)
	if n < 2 {
		return nil
	}
	from, to, y := s.X[0], s.X[n-1], s.Y[0]
	if last {
		y = s.Y[n-1] * math.Sqrt(to/from)
	}
	return []plots.Series{{Label: "slope −1/2", X: []float64{from, to}, Y: []float64{y, y * math.Sqrt(from/to)}, Reference: true}}
}

func thm1Column(rows [][]float64, j int) []float64 {
	var out []float64
	for _, row := range rows {
		out = append(out, row[j])
	}
	return out
}

func (r *Theorem1Result) lipschitzPanel(c thm1Curve) plots.Panel {
	p := plots.Panel{Title: "(f) $f_α(x) = \\cos(Lαx)$: only $L$ grows", X: plots.Axis{Label: "Lipschitz constant $L$", Scale: plots.Log10}, Y: plots.Axis{Label: "sup of risk gap"}}
	for _, s := range []struct{ name, label string }{{"gap", fmt.Sprintf("$n_V = %d$", c.Validation[0])}, {"few", "$n_V = 3$: too few"}} {
		means, err := thm1Summaries(thm1Rows(c.records, s.name), r.Params.Confidence)
		if err != nil {
			panic(err)
		}
		p.Series = append(p.Series, plots.Band(s.label, c.Lipschitz, means))
	}
	return p
}

func (r *Theorem1Result) coverPanel() plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: "$1/ε$", Scale: plots.Log10}, Y: plots.Axis{Label: "size of an $ε$-cover", Scale: plots.Log10}}
	var inverse []float64
	for _, eps := range thm1CoverRadii {
		inverse = append(inverse, 1/eps)
	}
	for _, c := range r.of("cover", nil) {
		for _, name := range []string{"ball1", "ball2", "ball3", "circle"} {
			means, err := thm1Summaries(thm1Rows(c.records, name), r.Params.Confidence)
			if err != nil {
				panic(err)
			}
			p.Series = append(p.Series, thm1Band(name, inverse, means))
		}
	}
	return p
}

const theorem1Source = "Oymak+ 2021, Theorem 1"

// Check judges Theorem 1. It is an upper bound: a slope in n_V may be steeper
// than −1/2 and must not be flatter, one in h may be smaller than +1/2; the
// tolerance of 0.1 is ours (0.2 in h for the other parts, where the logarithm
// of h_eff counts). Where the family is one in which the rate is reached
// ("tight") both sides are judged.
func (r *Theorem1Result) Check() []runs.Claim {
	var claims []runs.Claim
	claims = append(claims, r.checkTight()...)
	claims = append(claims, r.checkRidge()...)
	claims = append(claims, r.checkNet()...)
	claims = append(claims, r.checkLipschitz()...)
	claims = append(claims, r.checkCover()...)
	return claims
}

// slopes are, for every seed, the mean over curves of the slope of a series in
// n_V, over n_V of at least so many times h.
func (r *Theorem1Result) slopes(curves []thm1Curve, name string, times int) []float64 {
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		var all []float64
		for _, c := range curves {
			var x, y []float64
			for i, n := range c.Validation {
				if n >= times*c.Maps {
					x, y = append(x, float64(n)), append(y, c.records[s].Series[name][i])
				}
			}
			if len(x) > 1 {
				all = append(all, thm1Slope(x, y))
			}
		}
		if out[s] = math.NaN(); len(all) > 0 {
			out[s] = thm1Mean(all)
		}
	}
	return out
}

// growth are, for every seed, the mean over n_V of the slope of a series in h,
// over n_V of at least so many times the largest h.
func (r *Theorem1Result) growth(curves []thm1Curve, name string, times int) []float64 {
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		out[s] = math.NaN()
		if len(curves) < 2 {
			continue
		}
		var all []float64
		for i, n := range curves[0].Validation {
			var x, y []float64
			for _, c := range curves {
				x, y = append(x, float64(c.Maps)), append(y, c.records[s].Series[name][i])
			}
			if float64(n) >= float64(times)*slices.Max(x) {
				all = append(all, thm1Slope(x, y))
			}
		}
		if len(all) > 0 {
			out[s] = thm1Mean(all)
		}
	}
	return out
}

func (r *Theorem1Result) claim(name, source string, paper, lo, hi float64, values []float64, note string) runs.Claim {
	return thm1Claim(name, theorem1Source+source, paper, lo, hi, values, r.Params.Confidence, note)
}

func (r *Theorem1Result) checkTight() []runs.Claim {
	curves := r.of("tight", nil)
	if len(curves) == 0 {
		return nil
	}
	inf := math.Inf(-1)
	larger := slices.DeleteFunc(slices.Clone(curves), func(c thm1Curve) bool { return c.Maps < 8 })
	if len(larger) == 0 {
		larger = curves
	}
	const of = "slope on log–log axes where n_V ≥ 8h; exact suprema over the unit ball"
	claims := []runs.Claim{
		r.claim("thm1-eq2: exact family, gap over n_V", " (2)", -0.5, -0.6, -0.4, r.slopes(larger, "gap", 8), of+", h ≥ 8"),
		r.claim("thm1-eq2-h: exact family, gap over h", " (2)", 0.5, 0.4, 0.6, r.growth(curves, "gap", 8), of),
		r.claim("thm1-eq4: exact family, gradient gap over n_V", " (4)", -0.5, -0.6, -0.4, r.slopes(larger, "gradient", 8), of+", h ≥ 8"),
		r.claim("thm1-eq4: exact family, gradient gap over h", " (4)", 0.5, inf, 0.7, r.growth(curves, "gradient", 8), of+"; at most √(h + h̄_eff), with a logarithm"),
		r.claim("thm1-heff: Δ of dimension 2 in R^h, gap over h", " (2)", 0, -0.1, 0.1, r.growth(curves, "gap2", 8), "h_eff = 2 whatever h: the gap must not grow"),
		r.claim("thm1-grad-ambient: Δ of dimension 2 in R^h, gradient gap over h", ", Section 3.1", 0.5, 0.3, 0.7, r.growth(curves, "gradient2", 8), "the gradient needs the ambient dimension: it grows although h_eff = 2"),
		r.claim("own: cost of the supremum, sup / one fixed α, over h", "", 0.5, 0.2, 0.8, r.ratioGrowth(curves), "without it the checks above would say nothing about uniformity"),
	}
	return append(claims, r.checkTooFew(curves))
}

// ratioGrowth is the slope over h of sup gap / gap at one α.
func (r *Theorem1Result) ratioGrowth(curves []thm1Curve) []float64 {
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		var x, y []float64
		for _, c := range curves {
			x = append(x, float64(c.Maps))
			y = append(y, thm1Mean(c.records[s].Series["gap"])/thm1Mean(c.records[s].Series["fixed"]))
		}
		out[s] = thm1Slope(x, y)
	}
	return out
}

// checkTooFew breaks the condition n_V ≥ h̄_eff + τ: there the gap exceeds what
// the rate √(h/n_V) extrapolates from n_V ≥ 8h.
func (r *Theorem1Result) checkTooFew(curves []thm1Curve) runs.Claim {
	var ratios []float64
	for s := range r.Params.Seeds {
		for _, c := range curves {
			low, high := math.NaN(), 0.0
			for i, n := range c.Validation {
				scaled := c.records[s].Series["gap"][i] * math.Sqrt(float64(n)/float64(c.Maps))
				if 4*n <= c.Maps {
					low = scaled
				}
				if n >= 8*c.Maps {
					high = max(high, scaled)
				}
			}
			if !math.IsNaN(low) && high > 0 {
				ratios = append(ratios, low/high)
			}
		}
	}
	return r.claim("own: condition violated on purpose, n_V ≤ h/4", "", 1, 1, math.Inf(1), ratios,
		"ours is sup·√(n_V/h) at n_V ≤ h/4 over its largest value at n_V ≥ 8h: above 1 the rate does not hold without n_V ≥ h̄_eff")
}

func (r *Theorem1Result) checkRidge() []runs.Claim {
	var claims []runs.Claim
	inf := math.Inf(-1)
	for _, lambda := range r.Params.Lambdas {
		curves := r.ridge(lambda)
		if len(curves) == 0 {
			continue
		}
		with := fmt.Sprintf(" (feature maps, λ = %v)", lambda)
		const (
			of     = "log–log slope; sup over candidates and uphill steps in the simplex"
			scaled = "log–log slope after division by the size of what is averaged: (1 + sup|f|)² for losses and 2(1 + sup|f|)·sup‖∇f‖ for hypergradients, which C is absolute for only after"
		)
		claims = append(claims,
			r.claim("thm1-eq2: gap over n_V"+with, " (2)", -0.5, inf, -0.4, r.slopes(curves, "gap", 1), of),
			r.claim("thm1-eq2-h: scaled gap over h"+with, " (2)", 0.5, inf, 0.7, r.growth(thm1Scaled(curves), "gap", 1), scaled+r.raw(curves, "gap")),
			r.claim("thm1-eq4: hypergradient gap over n_V"+with, " (4)", -0.5, inf, -0.4, r.slopes(curves, "gradient", 1), of),
			r.claim("thm1-eq4: scaled hypergradient gap over h"+with, " (4)", 0.5, inf, 0.7, r.growth(thm1Scaled(curves), "gradient", 1), scaled+r.raw(curves, "gradient")),
			r.checkSelection("thm1-eq3: risk of α̂ ≤ min L + 2 sup gap"+with, curves),
			r.claim("thm1-eq3: excess risk of α̂ over n_V"+with, " (3)", -0.5, inf, -0.4, r.excess(curves), "log–log slope of L(f_α̂) − min L, mean over h"),
			r.checkConstant("thm1-heff: constant C"+with, curves))
		if lambda == 0 {
			claims = append(claims, r.checkInterpolation("thm1: the gap stays although the training error is zero"+with, curves))
		}
	}
	if bad := r.bad(); len(bad) > 0 {
		claims = append(claims,
			r.claim("thm1-upper-always: training labels are coin flips, excess risk over n_V", ", Section 3.1", -0.5, inf, -0.4, r.excess(bad), "log–log slope of L(f_α̂) − min L: the validation phase still finds the best of bad models"),
			r.checkSelection("thm1-upper-always: risk of α̂ ≤ min L + 2 sup gap", bad))
	}
	return claims
}

// thm1Scaled divide gaps by the bound of the loss, (1 + sup |f|)², and
// gradient gaps by that of the hypergradient, Γ·sup ‖∇_α f‖. Assumptions 1′, 2
// and 2′ call these bounded; the maps of a larger h may make them larger.
func thm1Scaled(curves []thm1Curve) []thm1Curve {
	out := slices.Clone(curves)
	for i, c := range curves {
		out[i].records = nil
		for _, record := range c.records {
			by := map[string]float64{
				"gap":      record.Values["slope"] * record.Values["slope"] / 4,
				"gradient": record.Values["slope"] * record.Values["lipschitz"],
			}
			series := map[string][]float64{}
			for name, size := range by {
				for _, v := range record.Series[name] {
					series[name] = append(series[name], v/size)
				}
			}
			out[i].records = append(out[i].records, &runs.Record{Series: series, Values: record.Values})
		}
	}
	return out
}

// raw says how a gap grows in h before it is scaled.
func (r *Theorem1Result) raw(curves []thm1Curve, name string) string {
	if slope := thm1Mean(r.growth(curves, name, 1)); !math.IsNaN(slope) {
		return fmt.Sprintf("; before it the slope is %.2f", slope)
	}
	return ""
}

// excess are the slopes in n_V of the excess risk's mean over curves, for every
// seed; a mean of 0 has no logarithm and is left out with what follows it.
func (r *Theorem1Result) excess(curves []thm1Curve) []float64 {
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		var x, y []float64
		for i, n := range curves[0].Validation {
			sum := 0.0
			for _, c := range curves {
				sum += c.records[s].Series["excess"][i]
			}
			if sum <= 0 {
				break
			}
			x, y = append(x, float64(n)), append(y, sum)
		}
		out[s] = thm1Slope(x, y)
	}
	return out
}

func (r *Theorem1Result) checkSelection(name string, curves []thm1Curve) runs.Claim {
	violations, cases := 0.0, 0
	for _, c := range curves {
		for _, record := range c.records {
			violations += record.Values["violations"]
			cases += len(c.Validation) * c.Repeats
		}
	}
	return thm1None(name, theorem1Source+" (3)", int(violations), cases, "follows from (2) for every sample, so that one violation is an error of ours")
}

// checkConstant is the constant that (2) needs, gap²·n_V/(h̄_eff + τ) with
// τ = 3, L and Γ as measured and C̄ = 3 (R = 1), and whether it grows with n_V.
func (r *Theorem1Result) checkConstant(name string, curves []thm1Curve) runs.Claim {
	const tau = 3
	most := 0.0
	slopes := make([]float64, r.Params.Seeds)
	for s := range slopes {
		var all []float64
		for _, c := range curves {
			record, h := c.records[s], float64(c.Maps)
			constants := make([]float64, len(c.Validation))
			for i, n := range c.Validation {
				inner := 3 * record.Values["lipschitz"] * record.Values["slope"] * float64(n) / h
				gap := record.Series["gap"][i]
				constants[i] = gap * gap * float64(n) / (h*math.Log(max(inner, 1)) + tau)
				most = max(most, constants[i])
			}
			all = append(all, thm1Slope(thm1Floats(c.Validation), constants))
		}
		slopes[s] = thm1Mean(all)
	}
	return r.claim(name+" does not grow with n_V", " (2)", 0, math.Inf(-1), 0.2, slopes,
		fmt.Sprintf("log–log slope of gap²·n_V/(h̄_eff + 3); the largest C of all cells is %.3g (the paper has an unknown absolute constant)", most))
}

// checkInterpolation: the training residual is rounding at every α, while test
// risks differ and the gap at the largest n_V is not 0.
func (r *Theorem1Result) checkInterpolation(name string, curves []thm1Curve) runs.Claim {
	train, smallest := 0.0, math.Inf(1)
	for _, c := range curves {
		for _, record := range c.records {
			train = max(train, record.Values["train"])
			smallest = min(smallest, slices.Min(record.Series["gap"]))
		}
	}
	claim := runs.NewClaim(name, theorem1Source+" and Figure 1(a)")
	claim.Paper, claim.Ours, claim.Tolerance = 0, runs.Number(train), 1e-12
	claim.Holds = runs.Judge(train <= 1e-12 && smallest > 1e6*train)
	claim.Note = fmt.Sprintf("ours is the largest mean squared training residual of any α; the smallest gap of any n_V is %.3g", smallest)
	return claim
}

func (r *Theorem1Result) checkNet() []runs.Claim {
	curves := r.of("net", nil)
	if len(curves) == 0 {
		return nil
	}
	inf := math.Inf(-1)
	train := runs.NewClaim("thm1: training 0-1 error is zero at every α (activation search)", theorem1Source+" and Figure 1(a)")
	train.Paper, train.Tolerance, train.Ours = 0, 0, 0
	loss := 0.0
	for _, c := range curves {
		train.Ours = max(train.Ours, runs.Number(slices.Max(thm1Values(c.records, "train"))))
		loss = max(loss, slices.Max(thm1Values(c.records, "train_loss")))
	}
	train.Holds = runs.Judge(train.Ours == 0)
	train.Note = fmt.Sprintf("the largest of all networks; the largest mean squared training loss is %.2g", loss)
	const of = "log–log slope; sup over trained candidates; 𝒟 is the empirical distribution of the pool"
	return []runs.Claim{
		r.claim("thm1-eq2: gap over n_V (activation search)", " (2)", -0.5, inf, -0.4, r.slopes(curves, "gap", 1), of),
		r.claim("thm1-eq2-h: gap over h (activation search)", " (2)", 0.5, inf, 0.7, r.growth(curves, "gap", 1), of),
		r.checkSelection("thm1-eq3: risk of α̂ ≤ min L + 2 sup gap (activation search)", curves),
		train,
	}
}

func (r *Theorem1Result) checkLipschitz() []runs.Claim {
	curves := r.of("lipschitz", nil)
	if len(curves) == 0 {
		return nil
	}
	c := curves[0]
	var slopes, falls, last []float64
	middle := len(c.Lipschitz) / 2
	for _, record := range c.records {
		gap, few := record.Series["gap"], record.Series["few"]
		upper := thm1Slope(c.Lipschitz[middle:], gap[middle:])
		slopes = append(slopes, upper)
		falls = append(falls, thm1Slope(c.Lipschitz[:middle+1], gap[:middle+1])-upper)
		last = append(last, few[len(few)-1])
	}
	of := fmt.Sprintf("log–log slope for L from %v on; √log L has (1/2)/log L, about 0.1 here, and √L would have 1/2", c.Lipschitz[middle])
	return []runs.Claim{
		r.claim("intro-log-L: gap over the Lipschitz constant", ", Section 1", 0, math.Inf(-1), 0.2, slopes, of),
		r.claim("intro-log-L: that slope falls as L grows", ", Section 1", 0, 0, math.Inf(1), falls, "slope at small L minus slope at large L: a power of L would have none"),
		r.claim("own: condition violated on purpose, n_V = 3 < h̄_eff", "", 1, 0.9, math.Inf(1), last, "ours is the gap at the largest L: three samples do not bound it"),
	}
}

func (r *Theorem1Result) checkCover() []runs.Claim {
	curves := r.of("cover", nil)
	if len(curves) == 0 {
		return nil
	}
	var claims []runs.Claim
	var inverse []float64
	for _, eps := range thm1CoverRadii {
		inverse = append(inverse, 1/eps)
	}
	violations, cases := 0, 0
	slopes := map[string][]float64{}
	for _, record := range curves[0].records {
		for h := 1; h <= 3; h++ {
			for i, n := range record.Series[fmt.Sprintf("ball%d", h)] {
				if cases++; n > math.Pow(3*inverse[i], float64(h)) {
					violations++
				}
			}
		}
		for name, sizes := range record.Series {
			slopes[name] = append(slopes[name], thm1Slope(inverse, sizes))
		}
	}
	const source = "Oymak+ 2021, Definition 1"
	claims = append(claims, thm1None("def1-ball: size of a cover ≤ (3R/ε)^h", source, violations, cases, "unit balls of R¹, R², R³ and ε ≤ R; for ε > 3R the bound is below 1, so that ε ≤ R has to be read"))
	for h := 1; h <= 3; h++ {
		claims = append(claims, thm1Claim(fmt.Sprintf("def1-ball: h_eff of the ball of R^%d", h), source, float64(h), float64(h)-0.6, float64(h)+0.05, slopes[fmt.Sprintf("ball%d", h)], r.Params.Confidence, "log–log slope of the greedy cover; it reaches h for small ε only"))
	}
	return append(claims, thm1Claim("def1-ball: h_eff of a circle in R^10", source, 1, 0.85, 1.1, slopes["circle"], r.Params.Confidence, "h_eff is smaller than the number of hyperparameters"))
}
