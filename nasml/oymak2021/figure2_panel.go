package oymak2021

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// printed is what Figure 2 prints of each panel: its caption and where
// its vertical axis ends, the only numbers of the curves that the paper gives.
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

// sweepPanel is a panel by one reading of the inputs, with its points: Δα by Δα, width by width.
type sweepPanel struct {
	panel, reading string
	widths         []int // that were asked for
	seeds          int
	points         []sweepPoint
}

// sweepPoint has the distances ‖θ_α − θ_{α+Δα}‖₂/Δα of the seeds that were run, for a width and a Δα.
type sweepPoint struct {
	width   int
	delta   float64
	seeds   []uint64
	values  []float64
	summary runs.Summary // over values; zero if there is none
}

// panelOf is a panel that was asked for, or one without points.
func panelOf(r *figure2, panel, inputs string, widths []int) sweepPanel {
	s := sweepPanel{panel: panel, reading: inputWords[inputs], widths: widths, seeds: r.Params.Seeds}
	for _, g := range r.Part(panel + " " + inputs) {
		p := sweepPoint{width: g.Trial.Width, delta: g.Trial.DeltaAlpha}
		for _, record := range g.Records {
			if record == nil {
				continue
			}
			if v, ok := record.Values["distance"]; ok { // another machine may compute it
				p.seeds, p.values = append(p.seeds, record.Trial.Seed), append(p.values, v)
			}
		}
		if len(p.values) > 0 {
			p.summary = r.Mean(p.values)
		}
		s.points = append(s.points, p)
	}
	return s
}

// byInputs is a panel by the reading that is the figure's own.
func byInputs(r *figure2, panel string) sweepPanel {
	return panelOf(r, panel, r.Params.Inputs, r.Params.widths(panel))
}

// beside are (a) by the other readings.
func beside(r *figure2) (all []sweepPanel) {
	for _, inputs := range r.Params.Beside {
		all = append(all, panelOf(r, "a", inputs, r.Params.BesideWidths))
	}
	return all
}

// drawFigure2 draws the result as the paper does: one curve a Δα over the width,
// with the interval of the mean over the random α, and the end of the paper's
// axis as a reference. Readings stand side by side.
func drawFigure2(r *figure2, f *lab.Picture) {
	p, rest := r.Params, r.Params.Panels
	if others := beside(r); len(others) > 0 && slices.Contains(rest, "a") {
		for _, s := range append([]sweepPanel{byInputs(r, "a")}, others...) {
			f.Add(s.draw(r, "(a), "+s.reading))
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(panel string) bool { return panel == "a" })
		if len(rest) > 0 {
			f.Row()
		}
	}
	for _, panel := range rest {
		f.Add(byInputs(r, panel).draw(r, printed[panel].title))
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
	for _, s := range beside(r) {
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
	bySeeds := map[int][]string{}
	for _, k := range s.widths {
		ran := s.seeds
		for _, p := range s.points {
			if p.width == k {
				ran = min(ran, len(p.values))
			}
		}
		bySeeds[ran] = append(bySeeds[ran], strconv.Itoa(k))
	}
	for _, ran := range slices.Sorted(maps.Keys(bySeeds)) {
		switch widths := fmt.Sprintf("(%s) $k$ = %s", s.panel, strings.Join(bySeeds[ran], ", ")); ran {
		case 0:
			parts = append(parts, widths+" not run")
		case s.seeds:
		default:
			parts = append(parts, fmt.Sprintf("%s for %d of %d $α$ only", widths, ran, s.seeds))
		}
	}
	return parts
}

// draw is the panel. Points with fewer seeds than asked for are hollow.
func (s sweepPanel) draw(r *figure2, title string) plots.Panel {
	points, end := s.paired(r.Confidence), printed[s.panel].axisEnd
	top := end // of the intervals, or the end of the paper's axis; distances start at 0, and so does the axis
	for _, p := range points {
		top = max(top, p.summary.Mean)
		if p.summary.Hi.Valid() {
			top = max(top, float64(p.summary.Hi))
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
	for _, delta := range r.Params.DeltaAlphas {
		panel.Series = append(panel.Series, s.curve(points, delta))
	}
	if slices.ContainsFunc(panel.Series, func(s plots.Series) bool { return slices.Contains(s.Hollow, true) }) {
		panel.Legend.Hollow = fmt.Sprintf("fewer than %d $α$", s.seeds)
	}
	panel.Series = append(panel.Series, plots.HLine("end of the paper's axis", end))
	return panel
}

// curve is that of one Δα over the widths that were run.
func (s sweepPanel) curve(points []sweepPoint, delta float64) plots.Series {
	var widths []float64
	var means []runs.Summary
	var partial []bool
	for _, p := range points {
		if p.delta == delta {
			widths, means = append(widths, float64(p.width)), append(means, p.summary)
			partial = append(partial, len(p.values) < s.seeds)
		}
	}
	curve := plots.Bars(fmt.Sprintf("$Δα = %v$", delta), widths, means)
	curve.Hollow = partial
	return curve
}

// ran are the points that have values.
func (s sweepPanel) ran() []sweepPoint {
	return slices.DeleteFunc(slices.Clone(s.points), func(p sweepPoint) bool { return len(p.values) == 0 })
}

// paired are the points with intervals of their differences: a seed's α
// moves its distances at all points alike, and what it moves them by, its mean over
// the points less that of all seeds, is taken off first (Cousineau 2005, with Morey's
// factor √(J/(J−1)) for J points). Means stay. Points that lack seeds keep their own.
func (s sweepPanel) paired(confidence float64) []sweepPoint {
	points := s.ran()
	offset := map[uint64]float64{}
	whole, total := 0, 0.0
	for _, p := range points {
		if len(p.values) == s.seeds {
			whole++
			for i, seed := range p.seeds {
				offset[seed] += p.values[i]
				total += p.values[i] / float64(s.seeds)
			}
		}
	}
	if whole < 2 {
		return points
	}
	morey := math.Sqrt(float64(whole) / float64(whole-1))
	for j, p := range points {
		if len(p.values) < s.seeds {
			continue
		}
		moved := make([]float64, len(p.values))
		for i, seed := range p.seeds {
			own := p.values[i] - (offset[seed]-total)/float64(whole)
			moved[i] = p.summary.Mean + morey*(own-p.summary.Mean)
		}
		if s, err := runs.Summarize(moved, confidence); err == nil {
			points[j].summary = s
		}
	}
	return points
}
