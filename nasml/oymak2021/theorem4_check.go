package oymak2021

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
)

// thm4Point is what the seeds found at one set of sizes.
type thm4Point struct {
	n, p, h    int
	noise      float64
	rho2, risk []float64
	oracle     []float64 // risk of knowing α*; of runs on features only
	residual   []float64
}

func (q thm4Point) pBar() float64    { return float64(q.p) / float64(q.n) }
func (q thm4Point) hBar() float64    { return float64(q.h) / float64(q.n) }
func (q thm4Point) product() float64 { return q.pBar() * q.hBar() } // p̄h̄ = ph/n²

// limit is the exact limit of ρ².
func (q thm4Point) limit() float64 { return spectral.CorrelationLimit(q.pBar(), q.hBar(), q.noise) }

// bound11 and bound12 are the right sides of (11) and (12).
func (q thm4Point) bound11() float64 { return 1 - 64*q.product() }
func (q thm4Point) bound12() float64 { return 1 - 1/q.pBar() + 200*q.hBar()/(1-1/q.pBar()) }

func (q thm4Point) String() string { return fmt.Sprintf("n = %d, p = %d, h = %d", q.n, q.p, q.h) }

// points lists what the groups of a kind found.
func (r *Theorem4Result) points(kind string) []thm4Point {
	var all []thm4Point
	for _, g := range r.groups {
		if g.kind != kind {
			continue
		}
		switch t := g.trial.(type) {
		case thm4Data:
			q := thm4Point{n: t.N, p: t.P, h: t.H, noise: t.Noise}
			q.rho2, q.risk, q.oracle, q.residual = g.values("rho2"), g.values("risk"), g.values("oracle_risk"), g.values("residual")
			all = append(all, q)
		case thm4Law:
			all = append(all, g.lawPoints(t)...)
		}
	}
	return all
}

func (g *thm4Group) lawPoints(t thm4Law) []thm4Point {
	var all []thm4Point
	for i, p := range t.P {
		for j, h := range t.H {
			q := thm4Point{n: t.N, p: p, h: h, noise: t.Noise}
			for _, record := range g.records {
				q.rho2 = append(q.rho2, record.Series["rho2"][i*len(t.H)+j])
				q.risk = append(q.risk, record.Series["risk"][i*len(t.H)+j])
			}
			all = append(all, q)
		}
	}
	return all
}

// values are a value of every seed.
func (g *thm4Group) values(name string) []float64 {
	var all []float64
	for _, record := range g.records {
		all = append(all, record.Values[name])
	}
	return all
}

// mean summarizes finite values of which there is at least one.
func (r *Theorem4Result) mean(values []float64) runs.Summary {
	s, err := runs.Summarize(values, r.Params.Confidence)
	if err != nil {
		panic(err) // records hold finite numbers only
	}
	return s
}

const theorem4Source = "Oymak+ 2021, Theorem 4"

func thm4Claim(id, text, source string) runs.Claim {
	return runs.NewClaim(id+": "+text, source)
}

// Check judges what Section 5 claims of the two-stage algorithm, and marks with
// "ours" what the paper does not say. See each claim's note for how.
func (r *Theorem4Result) Check() []runs.Claim {
	claims := r.checkBounds()
	claims = append(claims, r.checkOracle())
	claims = append(claims, r.checkSlopes()...)
	claims = append(claims, r.checkBoundary(), r.checkNecessary(), r.checkMerged(), r.checkEvery(), r.checkReconstruction())
	claims = append(claims, r.checkLimit(), r.checkGradient())
	return append(claims, r.checkCases()...)
}

// checkBounds judges (11) and (12) at every point that the theorem speaks of.
func (r *Theorem4Result) checkBounds() []runs.Claim {
	inside := func(q thm4Point) bool { return q.product() <= 1.0/6 }
	telling := func(q thm4Point) bool { return q.product() < 1.0/64 }
	features := thm4Filter(r.points("data"), inside)
	law := thm4Filter(r.points("law"), inside)
	low := func(q thm4Point) ([]float64, float64, float64) { return q.rho2, q.bound11(), 1 }
	high := func(q thm4Point) ([]float64, float64, float64) { return q.risk, q.bound12(), -1 }
	cond := r.checkBound(thm4Claim("thm4-cond", "ρ² ≥ 1 − 64p̄h̄ wherever p̄h̄ ≤ 1/6", theorem4Source+" (11)"), append(features, law...), low)
	cond.Note += "; for p̄h̄ ≥ 1/64 the bound is not above 0 and says nothing"
	eq12 := r.checkBound(thm4Claim("thm4-eq12", "risk ≤ 1 − 1/p̄ + 200h̄/(1 − 1/p̄), on features", theorem4Source+" (12)"), features, high)
	eq12.Note += "; the paper's small constant c is not given, so that all p̄h̄ ≤ 1/6 were taken"
	eq12Law := r.checkBound(thm4Claim("thm4-eq12", "risk ≤ 1 − 1/p̄ + 200h̄/(1 − 1/p̄), in law at large n", theorem4Source+" (12)"), law, high)
	return []runs.Claim{
		cond,
		r.checkBound(thm4Claim("thm4-eq11", "ρ² ≥ 1 − 64p̄h̄ where it says something, p̄h̄ < 1/64", theorem4Source+" (11)"), thm4Filter(append(features, law...), telling), low),
		r.checkConstant(thm4Claim("ours", "the constant that (11) needs, max (1 − ρ²)/p̄h̄", "not in the paper; the exact limit gives 2"), append(features, law...), 64, 2,
			func(q thm4Point, rho2 float64) float64 { return (1 - rho2) / q.product() }),
		eq12, eq12Law,
		r.checkConstant(thm4Claim("ours", "the constant that (12) needs, max excess·(1 − 1/p̄)/h̄", "not in the paper; the exact limit gives 2.25"), law, 200, 2.25,
			func(q thm4Point, rho2 float64) float64 { return q.excess(rho2) * (1 - 1/q.pBar()) / q.hBar() }),
	}
}

// excess is the risk beyond 1 − n/p that a direction of squared correlation ρ²
// costs, in the exact mean over 𝒯.
func (q thm4Point) excess(rho2 float64) float64 {
	return spectral.ExpectedRisk(q.n, q.p, rho2, 0) - spectral.ExpectedRisk(q.n, q.p, 1, 0)
}

func thm4Filter(points []thm4Point, keep func(thm4Point) bool) []thm4Point {
	return slices.DeleteFunc(slices.Clone(points), func(q thm4Point) bool { return !keep(q) })
}

// checkBound judges that means keep to one side of a bound, above it for sign 1
// and below it for sign −1: it holds where the interval of every mean does, and
// fails where all of one interval lies on the other side.
func (r *Theorem4Result) checkBound(c runs.Claim, points []thm4Point, of func(thm4Point) (values []float64, bound, sign float64)) runs.Claim {
	closest, holds, fails := math.Inf(1), true, false
	for _, q := range points {
		values, bound, sign := of(q)
		s := r.mean(values)
		inner, outer := sign*(float64(s.Lo)-bound), sign*(float64(s.Hi)-bound)
		if sign < 0 {
			inner, outer = outer, inner
		}
		holds, fails = holds && inner >= 0, fails || outer < 0
		if gap := sign * (s.Mean - bound); gap < closest {
			closest = gap
			c.Paper, c.Ours, c.Lo, c.Hi = runs.Number(bound), runs.Number(s.Mean), s.Lo, s.Hi
			c.Note = fmt.Sprintf("ours is the mean closest to its bound, at %v, of %d points", q, len(points))
		}
	}
	return thm4Verdict(c, len(points) > 0, holds, fails, "no sizes in the range that it speaks of")
}

func thm4Verdict(c runs.Claim, ran, holds, fails bool, missing string) runs.Claim {
	switch {
	case !ran:
		c.Note = "not run: " + missing
	case fails:
		c.Holds = runs.Fails
	case holds:
		c.Holds = runs.Holds
	default:
		c.Note += "; undecided: the intervals allow both, or there are too few seeds"
	}
	return c
}

// checkConstant finds the largest ratio over the points and judges it against
// the paper's constant; sharp is the largest one in the limit.
func (r *Theorem4Result) checkConstant(c runs.Claim, points []thm4Point, paper, sharp float64, ratio func(thm4Point, float64) float64) runs.Claim {
	c.Paper = runs.Number(paper)
	for _, q := range points {
		var ratios []float64
		for _, rho2 := range q.rho2 {
			ratios = append(ratios, ratio(q, rho2))
		}
		if s := r.mean(ratios); !c.Ours.Valid() || runs.Number(s.Mean) > c.Ours {
			c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
			c.Note = fmt.Sprintf("largest mean, at %v, of %d points; the paper's constant holds with a factor %.0f to spare in the limit", q, len(points), paper/sharp)
		}
	}
	return thm4Verdict(c, len(points) > 0, float64(c.Hi) <= paper, float64(c.Lo) > paper, "no sizes with p̄h̄ ≤ 1/6")
}

// checkOracle compares the risk that knowing α* gives with 1 − n/p.
func (r *Theorem4Result) checkOracle() runs.Claim {
	c := thm4Claim("thm4-oracle", "ERM that knows α* has risk 1 − n/p", "Oymak+ 2021, Section 5")
	c.Paper, c.Tolerance = 0, 0.02
	var differences []float64
	for _, q := range r.points("data") {
		for _, risk := range q.oracle {
			differences = append(differences, risk-spectral.ExpectedRisk(q.n, q.p, 1, q.noise))
		}
	}
	return r.checkEqual(c, thm4One(differences), "ours is the mean difference from 1 − n/p (with label noise: from its exact mean) over seeds and sizes")
}

// checkEqual judges that every group's mean is within the tolerance of c.Paper:
// it holds where all intervals lie inside, and fails where one lies outside.
func (r *Theorem4Result) checkEqual(c runs.Claim, groups map[int][]float64, note string) runs.Claim {
	holds, fails, farthest := true, false, -1.0
	for _, key := range slices.Sorted(thm4Keys(groups)) {
		s := r.mean(groups[key])
		lo, hi := float64(s.Lo-c.Paper), float64(s.Hi-c.Paper)
		tolerance := float64(c.Tolerance)
		holds = holds && -tolerance <= lo && hi <= tolerance
		fails = fails || lo > tolerance || hi < -tolerance
		if away := math.Abs(s.Mean - float64(c.Paper)); away > farthest {
			farthest = away
			c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
		}
	}
	c.Note = note
	return thm4Verdict(c, len(groups) > 0, holds, fails, "too few sizes to compare")
}

func thm4Keys[V any](m map[int]V) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// checkSlopes fits the exponents of the errors on log–log axes.
func (r *Theorem4Result) checkSlopes() []runs.Claim {
	const few = 16 // 1 − ρ² is proportional to h − 1, which bends the line for small h
	points := thm4Filter(r.points("law"), func(q thm4Point) bool { return q.h >= few && q.product() <= 1.0/6 })
	wide := thm4Filter(points, func(q thm4Point) bool { return q.pBar() >= 20 })
	lost := func(_ thm4Point, rho2 float64) float64 { return 1 - rho2 }
	inH := r.slopes(points, func(q thm4Point) int { return q.p }, thm4Point.hBar, lost)
	inP := r.slopes(wide, func(q thm4Point) int { return q.h }, thm4Point.pBar, lost)
	risk := r.slopes(points, func(q thm4Point) int { return q.p }, thm4Point.hBar, thm4Point.excess)
	source := "Oymak+ 2021, Section 5"
	h := thm4Claim("thm4-err-scale", "1 − ρ² grows like ph/n², exponent in h", source)
	p := thm4Claim("thm4-err-scale", "1 − ρ² grows like ph/n², exponent in p for p ≥ 20n", source)
	e := thm4Claim("thm4-risk-scale", "the risk of searching α* is proportional to h/n, exponent", source)
	h.Paper, h.Tolerance, p.Paper, p.Tolerance, e.Paper, e.Tolerance = 1, 0.05, 1, 0.1, 1, 0.05
	refined := thm4Claim("thm4-refined", "the rate h/n is better than √(h/n): the exponent is above 1/2", source)
	refined.Paper = 0.5
	if len(risk) > 0 {
		s := r.mean(risk)
		refined.Ours, refined.Lo, refined.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	}
	refined = thm4Verdict(refined, len(risk) > 0, refined.Lo > refined.Paper, refined.Hi <= refined.Paper, "needs two of LawOperations from 16 on")
	return []runs.Claim{
		r.checkEqual(h, thm4One(inH), "slope in h, h ≥ 16, pooled over p/n, interval by the jackknife over seeds; 1/(1+h̄), and h−1 for h, bend it by less than the tolerance"),
		r.checkEqual(p, thm4One(inP), "the exact limit is h̄(1+p̄)/(1+h̄): proportional to p only for p ≫ n, hence p ≥ 20n and the tolerance"),
		r.checkEqual(e, thm4One(risk), "of the exact mean risk given ρ², less 1 − n/p"),
		refined,
	}
}

func thm4One(values []float64) map[int][]float64 {
	if len(values) == 0 {
		return nil
	}
	return map[int][]float64{0: values}
}

// slopes are the jackknife's pseudo-values of the common slope of log y over
// log x within groups of points, y by the mean over seeds; none where no group
// has two points. (The slope of one seed alone is too steep: the mean of the
// logarithm of a sum of h squares is below the logarithm of its mean.)
func (r *Theorem4Result) slopes(points []thm4Point, group func(thm4Point) int, x func(thm4Point) float64, y func(thm4Point, float64) float64) []float64 {
	return thm4Jackknife(r.Params.LawSeeds, func(without int) (float64, bool) {
		xs, ys := map[int][]float64{}, map[int][]float64{}
		for _, q := range points {
			g := group(q)
			xs[g], ys[g] = append(xs[g], math.Log(x(q))), append(ys[g], math.Log(y(q, q.meanWithout(without))))
		}
		var sxy, sxx float64
		for _, g := range slices.Sorted(thm4Keys(xs)) {
			mx, my := stat.Mean(xs[g], nil), stat.Mean(ys[g], nil)
			for i := range xs[g] {
				sxy += (xs[g][i] - mx) * (ys[g][i] - my)
				sxx += (xs[g][i] - mx) * (xs[g][i] - mx)
			}
		}
		return sxy / sxx, sxx > 0
	})
}

// meanWithout is the mean of ρ² over all seeds but one; −1: over all.
func (q thm4Point) meanWithout(seed int) float64 {
	sum, n := floats.Sum(q.rho2), len(q.rho2)
	if seed >= 0 {
		sum, n = sum-q.rho2[seed], n-1
	}
	return sum / float64(n)
}

// thm4Jackknife are the pseudo-values n·f − (n−1)·f₋ᵢ of a number f of all seeds,
// whose mean has about the interval of f; none for one seed or where f is not
// defined.
func thm4Jackknife(seeds int, f func(without int) (float64, bool)) []float64 {
	all, ok := f(-1)
	if !ok || seeds < 2 {
		return nil
	}
	var pseudo []float64
	for seed := range seeds {
		if part, ok := f(seed); ok {
			pseudo = append(pseudo, float64(seeds)*all-float64(seeds-1)*part)
		}
	}
	return pseudo
}

// checkBoundary fits the exponent of h̄ where the mean ρ² falls through 1/2 over
// p̄, with an interval by the jackknife over seeds.
func (r *Theorem4Result) checkBoundary() runs.Claim {
	c := thm4Claim("intro-ph-bound", "the algorithm works as long as hp ≲ (n_T+n_V)²: exponent of h̄ = h/n over p̄ = p/n at ρ² = 1/2", "Oymak+ 2021, Sections 1 and 5")
	c.Paper, c.Tolerance = -1, 0.1
	pseudo := thm4Jackknife(r.Params.BoundarySeeds, func(without int) (float64, bool) { return thm4Exponent(r.levels(without)) })
	return r.checkEqual(c, thm4One(pseudo), "p/n ≥ 4 with the same h for every p; the limit of ρ² is 0 from ph = n² = (n_T+n_V)²/4 on")
}

// thm4Exponent is the slope of log h̄ over log p̄ where p̄ ≥ 4.
func thm4Exponent(levels []thm4Level) (slope float64, ok bool) {
	var x, y []float64
	for _, l := range levels {
		if l.pBar >= 4 {
			x, y = append(x, math.Log(l.pBar)), append(y, math.Log(l.hBar))
		}
	}
	if len(x) < 3 {
		return 0, false
	}
	_, slope = stat.LinearRegression(x, y, nil, false)
	return slope, true
}

// thm4Level is where ρ² falls through 1/2 at a ratio p̄.
type thm4Level struct{ pBar, hBar float64 }

// levels are those places for the mean over all seeds but one (−1: over all), by
// interpolation in log h̄. A ratio without such a place is left out.
func (r *Theorem4Result) levels(without int) []thm4Level {
	points := r.points("boundary")
	per := len(r.Params.BoundaryOperations)
	var all []thm4Level
	for row := range slices.Chunk(points, max(1, per)) {
		for k := 1; k < per; k++ {
			a, b := row[k-1].meanWithout(without), row[k].meanWithout(without)
			if a >= 0.5 && b < 0.5 {
				share := (a - 0.5) / (a - b)
				h := math.Exp((1-share)*math.Log(row[k-1].hBar()) + share*math.Log(row[k].hBar()))
				all = append(all, thm4Level{row[k].pBar(), h})
				break
			}
		}
	}
	return all
}

// checkNecessary looks beyond the boundary: there ρ² has to vanish as n grows.
func (r *Theorem4Result) checkNecessary() runs.Claim {
	const most = 0.1
	c := thm4Claim("thm4-necessary", "ph ≲ n² is necessary: ρ² vanishes beyond, at the largest ph/n²", "Oymak+ 2021, Section 5 (experiments of an appendix that is not available)")
	c.Paper, c.Tolerance = 0, most
	levels := r.Params.SizeLevels
	if len(levels) == 0 || slices.Max(levels) < 1.5 || len(r.Params.SizeExamples) < 2 {
		return thm4Verdict(c, false, false, false, "needs one of SizeLevels from 1.5 on and two SizeExamples")
	}
	points := r.points("sizes")
	at := floats.MaxIdx(levels)
	smallest, largest := slices.Index(r.Params.SizeExamples, slices.Min(r.Params.SizeExamples)), slices.Index(r.Params.SizeExamples, slices.Max(r.Params.SizeExamples))
	first, last := r.mean(points[smallest*len(levels)+at].rho2), r.mean(points[largest*len(levels)+at].rho2)
	c.Ours, c.Lo, c.Hi = runs.Number(last.Mean), last.Lo, last.Hi
	c.Note = fmt.Sprintf("at ph = %v n²: n = %d, after a mean of %.3f at n = %d; of this algorithm, other searches see more", levels[at], slices.Max(r.Params.SizeExamples), first.Mean, slices.Min(r.Params.SizeExamples))
	return thm4Verdict(c, true, last.Hi <= most && last.Hi < first.Lo, last.Lo > most, "")
}

// fit is the group of the merged sets, nil where they were left out.
func (r *Theorem4Result) fit() *thm4Group {
	for _, g := range r.groups {
		if g.kind == "fit" {
			return g
		}
	}
	return nil
}

// checkMerged judges that directions that know nothing of the labels fit them.
func (r *Theorem4Result) checkMerged() runs.Claim {
	const exact = 1e-6
	c := thm4Claim("sec5-merged", "with both sets merged and 2n ≤ p, drawn α fit all labels exactly: largest residual", "Oymak+ 2021, Section 5")
	c.Paper, c.Tolerance = 0, exact
	g := r.fit()
	if g == nil {
		return thm4Verdict(c, false, false, false, "FitExamples is 0")
	}
	largest := max(slices.Max(g.values("residual_at")), slices.Max(g.values("residual_above")), slices.Max(g.values("residual_double")))
	below := slices.Min(g.values("residual_below"))
	c.Ours = runs.Number(largest)
	c.Note = fmt.Sprintf("p = 2n, 2n+h−1 and 4n, %d directions a seed; for p = 3n/2 the smallest of the largest residuals is %.2g", r.Params.FitTries, below)
	return thm4Verdict(c, true, largest <= exact && (below > exact || r.Params.FitOperations == 1), largest > exact, "")
}

// checkEvery looks for directions that do not fit.
func (r *Theorem4Result) checkEvery() runs.Claim {
	c := thm4Claim("sec5-merged", "at 2n = p this is so for every α, as the paper says: share of the labels that no θ fits", "Oymak+ 2021, Section 5")
	c.Paper = 0
	g := r.fit()
	if g == nil {
		return thm4Verdict(c, false, false, false, "FitExamples is 0")
	}
	var shares []float64
	singular := 0.0
	for i, found := range g.values("found_at") {
		if found == 1 {
			shares = append(shares, g.values("exceptional_at")[i])
			singular = max(singular, g.values("smallest_at")[i])
		}
	}
	if len(shares) < 2 {
		return thm4Verdict(c, false, false, false, "no direction with a singular Z_α was found in two seeds; FitOperations has to be 2 or more")
	}
	s := r.mean(shares)
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	c.Note = fmt.Sprintf("in %d of %d seeds Z_α of α ∝ (1, s, 0, …) is singular (σ_min/σ_max ≤ %.0e) for a real eigenvalue −s; such α have measure 0, and there are none for p ≥ 2n+h−1, almost surely",
		len(shares), g.seeds, singular)
	return thm4Verdict(c, true, false, s.Lo > 1e-6, "")
}

// checkReconstruction measures what is left of θ* to who knows α*.
func (r *Theorem4Result) checkReconstruction() runs.Claim {
	c := thm4Claim("sec5-recon", "no algorithm reconstructs M* from fewer than about p+h examples: squared error left to who knows α*, at p = 4n", "Oymak+ 2021, Section 5")
	c.Paper, c.Tolerance = 0.5, 0.05
	g := r.fit()
	if g == nil {
		return thm4Verdict(c, false, false, false, "FitExamples is 0")
	}
	enough := slices.Max(g.values("error_below"))
	c = r.checkEqual(c, thm4One(g.values("error_double")), fmt.Sprintf("1 − 2n/p is the Bayes risk of θ* given α*; for p = 3n/2 < 2n the largest error is %.0e; and h unknowns of α* need 2n ≥ h; max(p, h) ≥ (p+h)/2", enough))
	if enough > 1e-6 {
		c.Holds = runs.Fails
	}
	return c
}

// thm4Large is from which n on a limit may be looked for.
const thm4Large = 1000

// checkLimit compares ρ² at large n with the exact limit, where the boundary is
// not near.
func (r *Theorem4Result) checkLimit() runs.Claim {
	c := thm4Claim("ours", "ρ² → (1 − p̄h̄)₊/(1 + h̄): mean difference where ph ≤ n²/2", "not in the paper; derived in the notebook")
	c.Paper, c.Tolerance = 0, 0.03
	if r.Params.BoundaryExamples < thm4Large {
		return thm4Verdict(c, false, false, false, fmt.Sprintf("needs BoundaryExamples from %d on", thm4Large))
	}
	var differences []float64
	for _, q := range r.points("boundary") {
		for _, rho2 := range q.rho2 {
			if q.product() <= 0.5 {
				differences = append(differences, rho2-q.limit())
			}
		}
	}
	return r.checkEqual(c, thm4One(differences), fmt.Sprintf("n = %d, over p, h and seeds", r.Params.BoundaryExamples))
}

// checkGradient compares the search by exact hypergradient with the spectral
// estimate on the same data.
func (r *Theorem4Result) checkGradient() runs.Claim {
	c := thm4Claim("ours", "the gradient from a random start finds α* better than the spectral estimate, ph ≤ n²/4: mean difference of ρ²", "not in the paper")
	c.Paper = 0
	var gradient, estimate []float64
	for _, g := range r.groups {
		t, ok := g.trial.(thm4Search)
		if ok && t.H > 1 && float64(t.P)*float64(t.H) <= float64(t.N)*float64(t.N)/4 {
			gradient, estimate = append(gradient, g.values("rho2_gradient")...), append(estimate, g.values("rho2_spectral")...)
		}
	}
	if len(gradient) < 2 {
		return thm4Verdict(c, false, false, false, "needs two searches with h ≥ 2 and ph ≤ n²/4")
	}
	verdict, d, err := runs.Greater(gradient, estimate, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi, c.Holds = runs.Number(d.Mean), d.Lo, d.Hi, verdict
	c.Note = fmt.Sprintf("paired over %d pairs of (h, seed)", d.N)
	return c
}

// checkCases shows that the conclusion may fail where an assumption does.
func (r *Theorem4Result) checkCases() []runs.Claim {
	var claims []runs.Claim
	points := r.points("case")
	for i, k := range r.Params.Cases {
		q := points[i]
		rho2, risk := r.mean(q.rho2), r.mean(q.risk)
		switch {
		case k.Features == "correlated" && !k.Whiten && k.H > 1:
			c := thm4Claim("ours", "without independent operations (11) may fail: ρ² of "+thm4Plain(k.Name)+" is below 1 − 64p̄h̄", "not in the paper")
			c.Paper, c.Ours, c.Lo, c.Hi = runs.Number(q.bound11()), runs.Number(rho2.Mean), rho2.Lo, rho2.Hi
			c.Note = fmt.Sprintf("correlation %v between two operations, α* = e₁, %v", thm4Correlation, q)
			claims = append(claims, thm4Verdict(c, c.Paper > 0, c.Hi < c.Paper, c.Lo >= c.Paper, "the bound is not above 0"))
		case q.product() > 1 && q.noise == 0:
			c := thm4Claim("ours", "beyond ph = n² the algorithm may be worse than predicting 0: risk at "+thm4Plain(k.Name), "not in the paper")
			c.Paper, c.Ours, c.Lo, c.Hi = 1, runs.Number(risk.Mean), risk.Lo, risk.Hi
			claims = append(claims, thm4Verdict(c, true, risk.Lo > 1, risk.Hi <= 1, ""))
		}
	}
	return claims
}
