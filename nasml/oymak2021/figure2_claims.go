package oymak2021

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// figure2Panel asks of a panel what Section 7a says of it:
//
//   - range: every mean lies on the paper's axis, from 0 to 1.4 (a) or 3.0 (b);
//   - stable over Δα: the distance goes like Δα to a power within ±0.1;
//   - mild over k: likewise over the width;
//   - small Δα: the mean over Δα ≤ 0.01 exceeds that over Δα ≥ 0.03.
//
// The α are what is drawn independently: a seed's distances share its α and its
// start, so that each statistic is one number a seed, a mean over all that the seed
// was run at, and its interval is over seeds. The paper says "stable", "only mildly
// changes" and "slightly larger" without numbers; the 0.1 is ours. A claim is known
// only where points were run that it speaks of.
func figure2Panel(panel string) lab.Question[Figure2Params, sweepTrial] {
	return lab.Question[Figure2Params, sweepTrial]{
		Name: "(" + panel + ")",
		Trials: func(p Figure2Params) lab.Groups[sweepTrial] {
			if !slices.Contains(p.Panels, panel) {
				return nil
			}
			return p.sweep(panel, p.Inputs, p.widths(panel))
		},
		Claims: func(r *figure2) []runs.Claim {
			return judgePanel(r, byInputs(r, panel), func(row, name string) string {
				return fmt.Sprintf("[%s] (%s) %s", row, panel, name)
			})
		},
	}
}

// figure2Readings asks the same of (a) by other readings of the inputs, as claims of ours, and whether any reading
// fits all that is printed of it.
var figure2Readings = lab.Question[Figure2Params, sweepTrial]{
	Name: "readings",
	Trials: func(p Figure2Params) (gs lab.Groups[sweepTrial]) {
		for _, inputs := range p.Beside {
			gs = append(gs, p.sweep("a", inputs, p.BesideWidths)...)
		}
		return gs
	},
	Claims: func(r *figure2) (claims []runs.Claim) {
		others := beside(r)
		for _, s := range others {
			claims = append(claims, judgePanel(r, s, func(_, name string) string {
				return fmt.Sprintf("own: (a), %s: %s", s.reading, name)
			})...)
		}
		if len(others) > 0 {
			claims = append(claims, judgeReadings(r, append([]sweepPanel{byInputs(r, "a")}, others...)))
		}
		return claims
	},
}

// judgePanel judges what is printed of a panel; called gives a claim its name. Each claim is made of both panels,
// and of other readings of (a).
func judgePanel(r *figure2, s sweepPanel, called func(row, name string) string) []runs.Claim {
	claim := func(row, name string) lab.Claim {
		return r.Claim("%s", called(row, name)).From("Section 7a and Figure 2(" + s.panel + ")").
			Family(len(printed) + len(r.Params.Beside))
	}
	width := func(p sweepPoint) float64 { return float64(p.width) }
	delta := func(p sweepPoint) float64 { return p.delta }
	return []runs.Claim{
		s.judgeRange(claim("figure2"+s.panel+"-range", "means on the paper's axis")),
		s.judgeSlope(claim("figure2-stable", "stable over Δα, exponent"), width, delta),
		s.judgeSlope(claim("figure2-stable", "only mildly changing with k, exponent"), delta, width),
		s.judgeSmallDelta(claim("figure2-small-da", "Δα ≤ 0.01 slightly larger than Δα ≥ 0.03")),
	}
}

// noting is a note and which widths a panel's claims were judged on, where some of
// those asked for were not run.
func (s sweepPanel) noting(c lab.Claim, note string) lab.Claim {
	var ran []string
	for _, k := range s.widths {
		if slices.ContainsFunc(s.ran(), func(p sweepPoint) bool { return p.width == k }) {
			ran = append(ran, strconv.Itoa(k))
		}
	}
	if len(ran) == 0 || len(ran) == len(s.widths) {
		return c.Noting("%s", note)
	}
	limits := "judged on k = " + strings.Join(ran, ", ") + " only, the other widths were not run"
	return c.Noting("%s", joined(note, limits))
}

// joined are two notes, of which one may be empty.
func joined(note, limits string) string {
	if note == "" || limits == "" {
		return note + limits
	}
	return note + "; " + limits
}

// judgeRange judges the largest mean.
func (s sweepPanel) judgeRange(c lab.Claim) runs.Claim {
	end := printed[s.panel].axisEnd
	c = c.Says(end)
	c.Tolerance, c.Allowed = 0, fmt.Sprintf("every mean at most %v", end)
	if len(s.ran()) == 0 {
		return s.noting(c, "").NotRun("no point of this panel")
	}
	top := slices.MaxFunc(s.ran(), func(a, b sweepPoint) int { return cmp.Compare(a.summary.Mean, b.summary.Mean) })
	c = s.noting(c, fmt.Sprintf("ours is the largest mean, at k = %d, Δα = %v; the paper gives the axis 0–%v, "+
		"no values", top.width, top.delta, end))
	c.Ours, c.Lo, c.Hi = runs.Number(top.summary.Mean), top.summary.Lo, top.summary.Hi
	c.Holds = runs.Judge(top.summary.Mean <= end)
	return c.Claim
}

// mildSlope is the largest exponent that we call stable: over the paper's Δα, from
// 0.005 to 0.07, and over its widths, from 64 to 4096, the distance then changes by a
// factor of 1.3 and of 1.5.
const mildSlope = 0.1

// judgeSlope judges the exponent of the distance over Δα or the width: of every seed
// the mean, over what is fixed, of its slopes on log–log axes.
func (s sweepPanel) judgeSlope(c lab.Claim, fixed, over func(sweepPoint) float64) runs.Claim {
	var slopes []float64
	for _, seed := range s.ranSeeds() {
		var curves []points
		for _, of := range study.By(s.ran(), fixed) {
			var curve points
			for _, p := range of {
				if i := slices.Index(p.seeds, seed); i >= 0 {
					curve.add(over(p), p.values[i])
				}
			}
			if len(curve.x) > 1 {
				curves = append(curves, curve)
			}
		}
		if len(curves) > 0 {
			slope, err := meanSlope(curves)
			if err != nil {
				return s.noting(c, "").NotRun("%v", err)
			}
			slopes = append(slopes, slope)
		}
	}
	if len(slopes) == 0 {
		return s.noting(c, "").NotRun("needs at least two points to compare")
	}
	return s.noting(c, fmt.Sprintf("the paper gives no number, the ±%v is ours; the interval is over %d α", mildSlope,
		len(slopes))).Mean(slopes).Near(0, mildSlope)
}

// ranSeeds are the seeds that have a value anywhere.
func (s sweepPanel) ranSeeds() []uint64 {
	var seeds []uint64
	for _, p := range s.points {
		seeds = append(seeds, p.seeds...)
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

// judgeSmallDelta compares small and larger Δα, paired over seeds: of every seed the
// mean over the widths of the mean over the Δα.
func (s sweepPanel) judgeSmallDelta(c lab.Claim) runs.Claim {
	c = c.Says(0)
	var small, large []float64
	for _, seed := range s.ranSeeds() {
		var a, b []float64
		for _, of := range study.By(s.ran(), func(p sweepPoint) int { return p.width }) {
			below, above := valuesOf(of, seed, 0, 0.01), valuesOf(of, seed, 0.03, 1)
			if len(below) > 0 && len(above) > 0 {
				a, b = append(a, stat.Mean(below, nil)), append(b, stat.Mean(above, nil))
			}
		}
		if len(a) > 0 {
			small, large = append(small, stat.Mean(a, nil)), append(large, stat.Mean(b, nil))
		}
	}
	if len(small) < 2 {
		return s.noting(c, "").NotRun("needs Δα on both sides and at least two pairs")
	}
	return s.noting(c, fmt.Sprintf("ours is the mean difference over %d α, of each the mean over the widths; larger "+
		"means above 0", len(small))).Difference(small, large).Above(0)
}

// valuesOf are a seed's distances at Δα from lo to hi.
func valuesOf(points []sweepPoint, seed uint64, lo, hi float64) (values []float64) {
	for _, p := range points {
		if i := slices.Index(p.seeds, seed); i >= 0 && lo <= p.delta && p.delta <= hi {
			values = append(values, p.values[i])
		}
	}
	return values
}

// judgeReadings judges whether a reading of the inputs fits all that is printed of
// panel (a), by the widths that each was run at: it takes one that fits all, and
// fails where each fails at something.
func judgeReadings(r *figure2, readings []sweepPanel) runs.Claim {
	c := r.Claim("own: (a) statements that the best reading of the inputs fits, of those printed").
		From("Section 7a and Figure 2(a)").Claim
	best, all, open := 0, 0, false
	for _, s := range readings {
		fits, fails, said := 0, 0, s.reading
		claims := judgePanel(r, s, func(_, name string) string { return name })
		for _, x := range claims {
			word := "inconclusive"
			switch x.Holds {
			case runs.Holds:
				word, fits = "holds", fits+1
			case runs.Fails:
				word, fails = "does not hold", fails+1
			case runs.NotKnown:
			}
			said += fmt.Sprintf("; %s: %s", x.Name, word)
		}
		c.Note = joined(said, c.Note)
		best, all, open = max(best, fits), len(claims), open || fails == 0
	}
	c.Paper, c.Ours, c.Tolerance = runs.Number(all), runs.Number(best), 0
	switch {
	case best == all:
		c.Holds = runs.Holds
	case !open:
		c.Holds = runs.Fails
	}
	return c
}
