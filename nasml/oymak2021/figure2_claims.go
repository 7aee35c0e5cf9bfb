package oymak2021

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
// Only the α are independent: a seed's distances share its α and its start. So each statistic is one number a seed, a
// mean over its points, and the interval is over seeds. The paper says "stable", "only mildly changes" and "slightly
// larger" without numbers; the 0.1 is this implementation's.
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

// figure2Readings asks the same of (a) with other readings of the inputs, as claims of ours, and whether one reading
// fits all printed statements.
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

// judgePanel judges the printed statements on a panel; called gives a claim its name. Each claim is made of both
// panels, and of other readings of (a).
func judgePanel(r *figure2, s sweepPanel, called func(row, name string) string) []runs.Claim {
	claim := func(row, name string) lab.Claim {
		return r.Claim("%s", called(row, name)).From("Section 7a and Figure 2(" + s.panel + ")").
			Family(len(printed) + len(r.Params.Beside))
	}
	width := func(d distance) float64 { return float64(d.width) }
	delta := func(d distance) float64 { return d.delta }
	return []runs.Claim{
		s.judgeRange(claim("figure2"+s.panel+"-range", "means on the paper's axis")),
		s.judgeSlope(claim("figure2-stable", "stable over Δα, exponent"), width, delta),
		s.judgeSlope(claim("figure2-stable", "only mildly changing with k, exponent"), delta, width),
		s.judgeSmallDelta(claim("figure2-small-da", "Δα ≤ 0.01 slightly larger than Δα ≥ 0.03")),
	}
}

// noting adds a note, and the widths that a claim was judged on if some requested ones were not run.
func (s sweepPanel) noting(c lab.Claim, note string) lab.Claim {
	ran := slices.DeleteFunc(slices.Clone(s.widths), func(k int) bool {
		return !slices.ContainsFunc(s.distances, func(d distance) bool { return d.width == k })
	})
	limits := ""
	if 0 < len(ran) && len(ran) < len(s.widths) {
		limits = "judged on k = " + listed(ran) + " only, the other widths were not run"
	}
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
	points := s.points(s.distances)
	if len(points) == 0 {
		return c.NotRun("no point of this panel")
	}
	top := slices.MaxFunc(points, func(a, b sweepPoint) int { return cmp.Compare(a.mean.Mean, b.mean.Mean) })
	c = s.noting(c, fmt.Sprintf("ours is the largest mean, at k = %d, Δα = %v; the paper gives the axis 0–%v, "+
		"no values", top.width, top.delta, end))
	c.Ours, c.Lo, c.Hi = runs.Number(top.mean.Mean), top.mean.Lo, top.mean.Hi
	c.Holds = runs.Judge(top.mean.Mean <= end)
	return c.Claim
}

// mildSlope is the largest exponent that counts as stable: over the paper's Δα, from 0.005 to 0.07, and over its
// widths, from 64 to 4096, the distance then changes by a factor of 1.3 and of 1.5.
const mildSlope = 0.1

// judgeSlope judges the exponent of the distance over Δα or the width: for every seed the mean, over the one that is
// fixed, of its slopes on log–log axes.
func (s sweepPanel) judgeSlope(c lab.Claim, fixed, over func(distance) float64) runs.Claim {
	var slopes []float64
	for _, distances := range s.bySeed() {
		var curves []points
		for _, of := range study.By(distances, fixed) {
			var curve points
			for _, d := range of {
				curve.add(over(d), d.value)
			}
			curves = append(curves, curve)
		}
		switch slope, err := meanSlope(curves); {
		case err == nil:
			slopes = append(slopes, slope)
		case !errors.Is(err, errFew):
			return s.noting(c, "").NotRun("%v", err)
		}
	}
	if len(slopes) == 0 {
		return s.noting(c, "").NotRun("needs at least two points to compare")
	}
	return s.noting(c, fmt.Sprintf("the paper gives no number, the ±%v is ours; the interval is over %d α", mildSlope,
		len(slopes))).Mean(slopes).Near(0, mildSlope)
}

// judgeSmallDelta compares small and larger Δα, paired over seeds: for every seed the mean over the widths of the mean
// over the Δα.
func (s sweepPanel) judgeSmallDelta(c lab.Claim) runs.Claim {
	c = c.Says(0)
	var small, large []float64
	for _, distances := range s.bySeed() {
		var a, b []float64
		for _, of := range study.By(distances, func(d distance) int { return d.width }) {
			if below, above := valuesAt(of, 0, 0.01), valuesAt(of, 0.03, 1); len(below) > 0 && len(above) > 0 {
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

// valuesAt are the distances at Δα from lo to hi.
func valuesAt(distances []distance, lo, hi float64) []float64 {
	return values(slices.DeleteFunc(slices.Clone(distances),
		func(d distance) bool { return d.delta < lo || d.delta > hi }))
}

// judgeReadings judges whether a reading of the inputs fits all printed statements on panel (a), at the widths that it
// was run at: it holds if one fits all, and fails if each fails at something.
func judgeReadings(r *figure2, readings []sweepPanel) runs.Claim {
	c := r.Claim("own: (a) statements that the best reading of the inputs fits, of those printed").
		From("Section 7a and Figure 2(a)").Claim
	best, all, open := 0, 0, false
	for _, s := range readings {
		count, said := map[runs.Verdict]int{}, s.reading
		for _, x := range judgePanel(r, s, func(_, name string) string { return name }) {
			count[x.Holds]++
			said += fmt.Sprintf("; %s: %s", x.Name, x.Holds)
		}
		c.Note = joined(said, c.Note)
		best, open = max(best, count[runs.Holds]), open || count[runs.Fails] == 0
		all = count[runs.Holds] + count[runs.Fails] + count[runs.NotKnown]
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
