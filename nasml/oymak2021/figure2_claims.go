package oymak2021

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
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
	ran := only(s.widths, func(k int) bool {
		return slices.ContainsFunc(s.distances, func(d distance) bool { return d.width == k })
	})
	limits := ""
	if 0 < len(ran) && len(ran) < len(s.widths) {
		limits = "judged on k = " + listed(ran) + " only, the other widths were not run"
	}
	return c.Noting("%s", joined(note, limits))
}

func joined(note, limits string) string {
	if note == "" || limits == "" {
		return note + limits
	}
	return note + "; " + limits
}

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

func valuesAt(distances []distance, lo, hi float64) []float64 {
	return values(only(distances, func(d distance) bool { return lo <= d.delta && d.delta <= hi }))
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

// printed is what Figure 2 prints of each panel: its caption and the end of its vertical axis, the only number of the
// curves that the paper gives.
var printed = map[string]struct {
	title   string
	axisEnd float64
}{"a": {"(a) input layer, one hidden layer", 1.4}, "b": {"(b) all weights, four layers", 3.0}}

var inputWords = map[string]string{
	"unit-interval": "inputs x/255", "standardized": "standardized inputs", "unit-norm": "inputs of norm 1",
}

// distance is ‖θ_α − θ_{α+Δα}‖₂/Δα of a seed, at a width and a Δα.
type distance struct {
	width int
	delta float64
	seed  uint64
	value float64
}

// sweepPanel is a panel with one reading of the inputs. Its distances are ordered by Δα, width and seed.
type sweepPanel struct {
	*figure2
	panel, reading string
	widths         []int // requested
	distances      []distance
}

func panelOf(r *figure2, panel, inputs string, widths []int) sweepPanel {
	s := sweepPanel{r, panel, inputWords[inputs], widths, nil}
	for _, g := range r.Part(panel + " " + inputs) {
		for _, record := range g.Records {
			if record == nil {
				continue
			}
			if v, ok := record.Values["distance"]; ok { // another machine may compute it
				s.distances = append(s.distances, distance{g.Trial.Width, g.Trial.DeltaAlpha, record.Trial.Seed, v})
			}
		}
	}
	return s
}

func byInputs(r *figure2, panel string) sweepPanel {
	return panelOf(r, panel, r.Params.Inputs, r.Params.widths(panel))
}

func beside(r *figure2) []sweepPanel {
	return study.Map(r.Params.Beside, func(inputs string) sweepPanel {
		return panelOf(r, "a", inputs, r.Params.BesideWidths)
	})
}

type sweepPoint struct {
	width, seeds int
	delta        float64
	mean         runs.Summary
}

func (s sweepPanel) points(distances []distance) []sweepPoint {
	return study.Map(byPoint(distances), func(of []distance) sweepPoint {
		return sweepPoint{of[0].width, len(of), of[0].delta, s.Mean(values(of))}
	})
}

func byPoint(distances []distance) [][]distance {
	return study.By(distances, func(d distance) [2]float64 { return [2]float64{float64(d.width), d.delta} })
}

func values(distances []distance) []float64 {
	return study.Map(distances, func(d distance) float64 { return d.value })
}

// drawFigure2 draws one curve for each Δα over the width, with the interval of the mean over the random α, and the end
// of the paper's axis as a reference. Readings are side by side.
func drawFigure2(r *figure2, f *lab.Picture) {
	p, rest, others := r.Params, slices.Clone(r.Params.Panels), beside(r)
	if len(others) > 0 && slices.Contains(rest, "a") {
		for _, s := range append([]sweepPanel{byInputs(r, "a")}, others...) {
			f.Add(s.draw("(a), " + s.reading))
		}
		if rest = slices.DeleteFunc(rest, func(panel string) bool { return panel == "a" }); len(rest) > 0 {
			f.Row()
		}
	}
	for _, panel := range rest {
		f.Add(byInputs(r, panel).draw(printed[panel].title))
	}
	examples := "all examples"
	if p.Examples > 0 {
		examples = fmt.Sprintf("%d examples", p.Examples)
	}
	f.Say("Mean over %d random $α$; bars: %v %% CI of differences between points, without the spread that an $α$ has "+
		"at all of them; %d epochs, %s of %s, classes %d and %d.", p.Seeds, 100*r.Confidence, p.Epochs, examples,
		strings.ToUpper(string(p.Data)), p.Classes[0], p.Classes[1])
	if p.Data == data.Synthetic {
		f.Say("SYNTHETIC DATA, not the paper's.")
	}
	f.Say("%s", figure2Note(p))
	say := func(of string, missing []string) {
		if len(missing) > 0 {
			f.Say("%s%s.", of, strings.Join(missing, "; "))
		}
	}
	missing := study.Map(p.Panels, func(panel string) []string { return byInputs(r, panel).missing() })
	say("", slices.Concat(missing...))
	for _, s := range others {
		say("With "+s.reading+": ", s.missing())
	}
}

func (s sweepPanel) missing() (parts []string) {
	bySeeds := map[int][]int{}
	for _, k := range s.widths {
		ran := s.Params.Seeds
		for _, delta := range s.Params.DeltaAlphas {
			ran = min(ran, len(only(s.distances, func(d distance) bool { return d.width == k && d.delta == delta })))
		}
		bySeeds[ran] = append(bySeeds[ran], k)
	}
	for _, ran := range slices.Sorted(maps.Keys(bySeeds)) {
		switch widths := fmt.Sprintf("(%s) $k$ = %s", s.panel, listed(bySeeds[ran])); ran {
		case 0:
			parts = append(parts, widths+" not run")
		case s.Params.Seeds:
		default:
			parts = append(parts, fmt.Sprintf("%s for %d of %d $α$ only", widths, ran, s.Params.Seeds))
		}
	}
	return parts
}

// draw is the panel. Points with fewer seeds than requested are hollow.
func (s sweepPanel) draw(title string) plots.Panel {
	points, end := s.points(s.paired()), printed[s.panel].axisEnd
	top := end // of the intervals, or the end of the paper's axis; distances start at 0, and so does the axis
	for _, p := range points {
		top = max(top, p.mean.Mean)
		if p.mean.Hi.Valid() {
			top = max(top, float64(p.mean.Hi))
		}
	}
	const margin = 1.3 // on a logarithmic axis, which shows all widths, whether they were run or not
	panel := plots.Panel{
		Title: title,
		X: plots.Axis{
			Label: "model width $k$", Scale: plots.Log2, Ticks: ticks(s.widths),
			Min: float64(slices.Min(s.widths)) / margin, Max: float64(slices.Max(s.widths)) * margin,
		},
		Y: plots.Axis{Label: `normalized distance $\|θ_α − θ_{α+Δα}\|_2/Δα$`, Max: 1.05 * top},
	}
	for _, delta := range s.Params.DeltaAlphas {
		var widths []float64
		var means []runs.Summary
		var partial []bool
		for _, p := range points {
			if p.delta == delta {
				widths, means = append(widths, float64(p.width)), append(means, p.mean)
				partial = append(partial, p.seeds < s.Params.Seeds)
			}
		}
		curve := plots.Bars(fmt.Sprintf("$Δα = %v$", delta), widths, means)
		if curve.Hollow = partial; slices.Contains(partial, true) {
			panel.Legend.Hollow = fmt.Sprintf("fewer than %d $α$", s.Params.Seeds)
		}
		panel.Series = append(panel.Series, curve)
	}
	panel.Series = append(panel.Series, plots.HLine("end of the paper's axis", end))
	return panel
}

// paired are the distances with intervals of their differences: a seed's α moves its distances at all points alike.
// This shift, its mean over the points less that of all seeds, is subtracted (Cousineau 2005, with Morey's factor
// √(J/(J−1)) for J points). Means stay. Points that lack seeds keep their distances.
func (s sweepPanel) paired() (moved []distance) {
	seeds, offset := s.Params.Seeds, map[uint64]float64{}
	whole, total := 0, 0.0
	for _, of := range byPoint(s.distances) {
		if len(of) == seeds {
			whole++
			for _, d := range of {
				offset[d.seed] += d.value
				total += d.value / float64(seeds)
			}
		}
	}
	if whole < 2 {
		return s.distances
	}
	morey := math.Sqrt(float64(whole) / float64(whole-1))
	for _, of := range byPoint(s.distances) {
		mean := s.Mean(values(of)).Mean
		for _, d := range of {
			if len(of) == seeds {
				d.value = mean + morey*(d.value-(offset[d.seed]-total)/float64(whole)-mean)
			}
			moved = append(moved, d)
		}
	}
	return moved
}

func (s sweepPanel) bySeed() [][]distance {
	sorted := slices.SortedStableFunc(slices.Values(s.distances),
		func(a, b distance) int { return cmp.Compare(a.seed, b.seed) })
	return study.By(sorted, func(d distance) uint64 { return d.seed })
}

// figure2Settings are the settings of Section 7a as the preset of the paper's scale has them.
func figure2Settings() []runs.Claim {
	const source = "Oymak+ 2021, Section 7a"
	p := Figure2Paper
	claims := []runs.Claim{
		verdict.Setting("[figure2-widths] widths of panel (a)", "Oymak+ 2021, Figure 2", p.Widths,
			[]int{64, 128, 256, 512, 1024, 2048, 4096}),
		verdict.Setting("[figure2-widths] widths of panel (b)", "Oymak+ 2021, Figure 2", p.DeepWidths,
			[]int{64, 128, 256, 512, 1024, 2048, 4096}),
		verdict.Setting("[figure2-dalpha] perturbations Δα", "Oymak+ 2021, Figure 2", p.DeltaAlphas,
			[]float64{0.005, 0.01, 0.03, 0.05, 0.07}),
		verdict.Setting("[figure2-activation] activations that are mixed", source, p.Activations,
			[2]string{"relu", "sigmoid"}),
		verdict.Setting("[figure2-data] images", source, p.Data, data.MNIST),
		verdict.Setting("[figure2-data] classes", source, p.Classes, [2]int{0, 1}),
		verdict.Setting("[figure2-epochs] epochs", source, p.Epochs, 60),
		verdict.Setting("[figure2-batch] batch", source, p.Batch, 128),
		verdict.Setting("[figure2-lr] optimizer", source, p.Optimizer, "sgd"),
		verdict.Setting("[figure2-lr] learning rate", source, p.LearningRate, 0.003),
		verdict.Setting("[figure2-reps] runs that are averaged, each at an α of its own", source, p.Seeds, 20),
	}
	const inputs = 28 * 28
	for _, k := range p.Widths {
		shallow, deep := p.network("a", k), p.network("b", k)
		claims = append(claims,
			verdict.Setting(fmt.Sprintf("[figure2a-net] trained weights of the input layer, k = %d", k), source,
				shallow.Weights(inputs), k*784),
			verdict.Setting(fmt.Sprintf("[figure2b-net] trained weights of layers of k, k/2, k/4 and 1, k = %d", k),
				source, deep.Weights(inputs), k*784+k/2*k+k/4*(k/2)+k/4))
	}
	return claims
}
