package oymak2021

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// printed is what Figure 2 prints of each panel: its caption and the end of its vertical axis, the only number of the
// curves that the paper gives.
var printed = map[string]struct {
	title   string
	axisEnd float64
}{
	"a": {"(a) input layer, one hidden layer", 1.4},
	"b": {"(b) all weights, four layers", 3.0},
}

// inputWords are the readings of Inputs in words.
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

// byInputs is a panel with the figure's own reading.
func byInputs(r *figure2, panel string) sweepPanel {
	return panelOf(r, panel, r.Params.Inputs, r.Params.widths(panel))
}

// beside are (a) with the other readings.
func beside(r *figure2) (all []sweepPanel) {
	for _, inputs := range r.Params.Beside {
		all = append(all, panelOf(r, "a", inputs, r.Params.BesideWidths))
	}
	return all
}

// sweepPoint is the mean over the seeds that were run at a width and a Δα.
type sweepPoint struct {
	width, seeds int
	delta        float64
	mean         runs.Summary
}

// points summarizes distances at each width and Δα.
func (s sweepPanel) points(distances []distance) (points []sweepPoint) {
	for _, of := range byPoint(distances) {
		points = append(points, sweepPoint{of[0].width, len(of), of[0].delta, s.Mean(values(of))})
	}
	return points
}

func byPoint(distances []distance) [][]distance {
	type point struct {
		width int
		delta float64
	}
	return study.By(distances, func(d distance) point { return point{d.width, d.delta} })
}

func values(distances []distance) (all []float64) {
	for _, d := range distances {
		all = append(all, d.value)
	}
	return all
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
	var missing []string
	for _, panel := range p.Panels {
		missing = append(missing, byInputs(r, panel).missing()...)
	}
	sayMissing(f, "", missing)
	for _, s := range others {
		sayMissing(f, "With "+s.reading+": ", s.missing())
	}
}

// sayMissing lists what was not run.
func sayMissing(f *lab.Picture, of string, missing []string) {
	if len(missing) > 0 {
		f.Say("%s%s.", of, strings.Join(missing, "; "))
	}
}

// missing lists the widths that were not run, or not for every seed.
func (s sweepPanel) missing() (parts []string) {
	bySeeds := map[int][]int{}
	for _, k := range s.widths {
		ran := s.Params.Seeds
		for _, delta := range s.Params.DeltaAlphas {
			ran = min(ran, len(s.where(func(d distance) bool { return d.width == k && d.delta == delta })))
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

func (s sweepPanel) where(fits func(distance) bool) []distance {
	return slices.DeleteFunc(slices.Clone(s.distances), func(d distance) bool { return !fits(d) })
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

// bySeed are the distances of each seed.
func (s sweepPanel) bySeed() [][]distance {
	sorted := slices.SortedStableFunc(slices.Values(s.distances),
		func(a, b distance) int { return cmp.Compare(a.seed, b.seed) })
	return study.By(sorted, func(d distance) uint64 { return d.seed })
}
