package oymak2021

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// figure2Panels is what Figure 2 prints of each panel: its caption and where
// its vertical axis ends, the only numbers of the curves that the paper gives.
var figure2Panels = map[string]struct {
	title   string
	axisEnd float64
}{
	"a": {"(a) input layer, one hidden layer", 1.4},
	"b": {"(b) all weights, four layers", 3.0},
}

// Figure draws the result as the paper does: one curve a Δα over the width,
// with the interval of the mean over the random α, and the end of the paper's
// axis as a reference. Points with fewer seeds than asked for are hollow.
func (r *Figure2Result) Figure() plots.Figure {
	f := plots.Figure{
		Name:    "oymak2021-figure2",
		Caption: r.caption(),
		Style:   plots.ICML.Text(),
		Meta:    map[string]string{"title": figure2Title, "params": r.hash(), "scale": r.scaleName()},
	}
	var row []plots.Panel
	for _, panel := range r.Params.Panels {
		row = append(row, r.panel(panel))
	}
	f.Panels = [][]plots.Panel{row}
	return f
}

func (r *Figure2Result) panel(panel string) plots.Panel {
	info := figure2Panels[panel]
	p := plots.Panel{
		Title: info.title,
		X:     widthAxis(r.Params.widths(panel)),
		Y:     plots.Axis{Label: `normalized distance $\|θ_α − θ_{α+Δα}\|_2/Δα$`, Max: 1.05 * r.top(panel)},
	}
	for _, delta := range r.Params.DeltaAlphas {
		p.Series = append(p.Series, r.series(panel, delta))
	}
	if slices.ContainsFunc(p.Series, func(s plots.Series) bool { return slices.Contains(s.Hollow, true) }) {
		p.Legend.Hollow = fmt.Sprintf("fewer than %d $α$", r.Params.Seeds)
	}
	p.Series = append(p.Series, plots.HLine("end of the paper's axis", info.axisEnd))
	return p
}

// series is the curve of one Δα over the widths that were run.
func (r *Figure2Result) series(panel string, delta float64) plots.Series {
	var widths []float64
	var means []runs.Summary
	var partial []bool
	for _, p := range r.run(panel) {
		if p.Delta == delta {
			widths, means, partial = append(widths, float64(p.Width)), append(means, p.Summary), append(partial, p.Missing > 0)
		}
	}
	s := plots.Bars(fmt.Sprintf("$Δα = %v$", delta), widths, means)
	s.Hollow = partial
	return s
}

// top is the highest end of an interval, or the end of the paper's axis where
// that is higher. Distances start at 0, and so does the axis.
func (r *Figure2Result) top(panel string) float64 {
	top := figure2Panels[panel].axisEnd
	for _, p := range r.run(panel) {
		top = max(top, p.Summary.Mean)
		if p.Summary.Hi.Valid() {
			top = max(top, float64(p.Summary.Hi))
		}
	}
	return top
}

// widthAxis shows all widths, whether they were run or not.
func widthAxis(widths []int) plots.Axis {
	const margin = 1.3 // on a logarithmic axis
	axis := plots.Axis{
		Label: "model width $k$", Scale: plots.Log2,
		Min: float64(slices.Min(widths)) / margin, Max: float64(slices.Max(widths)) * margin,
	}
	for _, k := range widths {
		axis.Ticks = append(axis.Ticks, plots.Tick{Value: float64(k), Label: strconv.Itoa(k)})
	}
	return axis
}

// caption says what the figure shows and at which scale each of its points is.
func (r *Figure2Result) caption() string {
	p := r.Params
	examples := "all examples"
	if p.Examples > 0 {
		examples = fmt.Sprintf("%d examples", p.Examples)
	}
	text := fmt.Sprintf("Mean over random $α$, with %v %% intervals: %d $α$, %d epochs, %s of %s, classes %d and %d.",
		100*p.Confidence, p.Seeds, p.Epochs, examples, p.Data, p.Classes[0], p.Classes[1])
	if p.Data == data.Synthetic {
		text += " SYNTHETIC DATA, not the paper's."
	}
	switch {
	case p.arithmeticOf(Figure2Paper):
		text += " The paper's setting."
	case p.arithmeticOf(Figure2Quick):
		text += " Quick scale, not the paper's setting."
	default:
		text += " Varied parameters, not the paper's setting."
	}
	if missing := r.missing(); missing != "" {
		text += " " + missing
	}
	return text
}

// missing lists the widths that were not run, or not for every seed.
func (r *Figure2Result) missing() string {
	var parts []string
	for _, panel := range r.Params.Panels {
		bySeeds := map[int][]string{}
		for _, k := range r.Params.widths(panel) {
			ran := r.fewestSeeds(panel, k)
			bySeeds[ran] = append(bySeeds[ran], strconv.Itoa(k))
		}
		for _, ran := range slices.Sorted(maps.Keys(bySeeds)) {
			widths := fmt.Sprintf("(%s) $k$ = %s", panel, strings.Join(bySeeds[ran], ", "))
			switch ran {
			case 0:
				parts = append(parts, widths+" not run")
			case r.Params.Seeds:
			default:
				parts = append(parts, fmt.Sprintf("%s for %d of %d $α$ only", widths, ran, r.Params.Seeds))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

// fewestSeeds is the smallest number of seeds among a width's points.
func (r *Figure2Result) fewestSeeds(panel string, k int) int {
	fewest := r.Params.Seeds
	for _, p := range r.Points {
		if p.Panel == panel && p.Width == k {
			fewest = min(fewest, len(p.Values))
		}
	}
	return fewest
}

// arithmeticOf says whether a trial of p is the same number as one of q: the
// widths, Δα and seeds that are run may differ.
func (p Figure2Params) arithmeticOf(q Figure2Params) bool {
	same := p.Data == q.Data && p.Examples == q.Examples
	for _, panel := range []string{"a", "b"} {
		a, errA := json.Marshal(p.network(panel, 4))
		b, errB := json.Marshal(q.network(panel, 4))
		same = same && errA == nil && errB == nil && string(a) == string(b)
	}
	return same
}

func (r *Figure2Result) scaleName() string {
	if r.Scale != "" {
		return r.Scale
	}
	return "own"
}

// hash names the parameters of the picture.
func (r *Figure2Result) hash() string {
	data, err := json.Marshal(r.Params)
	if err != nil { // a struct of numbers and strings always marshals
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// figure2Source is where the claims stand.
const figure2Source = "Oymak+ 2021, Section 7a and Figure 2"

// Check judges the claims of Section 7a, panel by panel:
//
//   - range: every mean lies on the paper's axis, from 0 to 1.4 (a) or 3.0 (b);
//   - stable over Δα: at every width the largest mean is at most twice the
//     smallest one;
//   - mild over k: for every Δα, likewise over the widths;
//   - small Δα: the mean over Δα ≤ 0.01 exceeds that over Δα ≥ 0.03, paired
//     over seeds and widths; undecided where the interval of the difference
//     holds 0.
//
// The paper says "stable", "only mildly changes" and "slightly larger" without
// numbers; the factor of two is ours, and Ours says how large the ratio is. A
// claim is known only where points were run that it speaks of.
func (r *Figure2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, panel := range []string{"a", "b"} {
		of := []runs.Claim{
			r.checkRange(panel), r.checkSpread(panel, "stable over Δα", widthOf),
			r.checkSpread(panel, "only mildly changing with k", deltaOf), r.checkSmallDelta(panel),
		}
		if partial := r.partial(panel); partial != "" {
			for i := range of {
				of[i].Note += partial
			}
		}
		claims = append(claims, of...)
	}
	return claims
}

// partial says which widths a panel's claims were judged on, where some of
// those asked for were not run.
func (r *Figure2Result) partial(panel string) string {
	var ran []string
	for _, k := range r.Params.widths(panel) {
		if slices.ContainsFunc(r.run(panel), func(p Figure2Point) bool { return p.Width == k }) {
			ran = append(ran, strconv.Itoa(k))
		}
	}
	if len(ran) == 0 || len(ran) == len(r.Params.widths(panel)) {
		return ""
	}
	return "; judged on k = " + strings.Join(ran, ", ") + " only, the other widths were not run"
}

func widthOf(p Figure2Point) float64 { return float64(p.Width) }
func deltaOf(p Figure2Point) float64 { return p.Delta }

// run lists the points of a panel that have values.
func (r *Figure2Result) run(panel string) []Figure2Point {
	var points []Figure2Point
	for _, p := range r.Points {
		if p.Panel == panel && len(p.Values) > 0 {
			points = append(points, p)
		}
	}
	return points
}

func newClaim(panel, name string) runs.Claim {
	return runs.NewClaim(fmt.Sprintf("(%s) %s", panel, name), figure2Source+"("+panel+")")
}

func (r *Figure2Result) checkRange(panel string) runs.Claim {
	end := figure2Panels[panel].axisEnd
	c := newClaim(panel, "means on the paper's axis")
	c.Paper, c.Tolerance = runs.Number(end), 0
	points := r.run(panel)
	if len(points) == 0 {
		c.Note = "not run: no point of this panel"
		return c
	}
	top := slices.MaxFunc(points, func(a, b Figure2Point) int { return cmp.Compare(a.Summary.Mean, b.Summary.Mean) })
	c.Ours, c.Lo, c.Hi = runs.Number(top.Summary.Mean), top.Summary.Lo, top.Summary.Hi
	c.Holds = runs.Judge(top.Summary.Mean <= end)
	c.Note = fmt.Sprintf("ours is the largest mean, at k = %d, Δα = %v; the paper gives the axis 0–%v, no values", top.Width, top.Delta, end)
	return c
}

// checkSpread judges the largest ratio of two means that share the value of
// fixed: those that differ in Δα only, or in the width only. The means are over
// the seeds that all of them have, because the distance depends on α.
func (r *Figure2Result) checkSpread(panel, name string, fixed func(Figure2Point) float64) runs.Claim {
	const most = 2
	c := newClaim(panel, name)
	c.Tolerance = most
	groups := map[float64][]Figure2Point{}
	for _, p := range r.run(panel) {
		groups[fixed(p)] = append(groups[fixed(p)], p)
	}
	ratio := 0.0
	for _, group := range groups {
		if means := meansOverCommonSeeds(group); len(means) > 1 {
			ratio = max(ratio, slices.Max(means)/slices.Min(means))
		}
	}
	if ratio == 0 {
		c.Note = "not run: needs at least two points to compare"
		return c
	}
	c.Ours, c.Holds = runs.Number(ratio), runs.Judge(ratio <= most)
	c.Note = "ours is the largest ratio of two means; the paper gives no number, the bound of 2 is ours"
	return c
}

// meansOverCommonSeeds is the mean of every point over the seeds that all the
// points have; none where there is no such seed.
func meansOverCommonSeeds(points []Figure2Point) []float64 {
	count := map[uint64]int{}
	for _, p := range points {
		for _, seed := range p.Seeds {
			count[seed]++
		}
	}
	var means []float64
	for _, p := range points {
		var common []float64
		for i, seed := range p.Seeds {
			if count[seed] == len(points) {
				common = append(common, p.Values[i])
			}
		}
		if len(common) > 0 {
			means = append(means, stat.Mean(common, nil))
		}
	}
	return means
}

// checkSmallDelta compares small and larger Δα, paired over (width, seed).
func (r *Figure2Result) checkSmallDelta(panel string) runs.Claim {
	c := newClaim(panel, "Δα ≤ 0.01 slightly larger than Δα ≥ 0.03")
	c.Paper = 0
	small, large := r.pairedMeans(panel)
	if len(small) < 2 {
		c.Note = "not run: needs Δα on both sides and at least two pairs"
		return c
	}
	diff, err := runs.MeanDiff(small, large, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi = runs.Number(diff.Mean), diff.Lo, diff.Hi
	c.Note = fmt.Sprintf("ours is the mean difference over %d pairs of (width, seed); larger means above 0", diff.N)
	switch {
	case !diff.Lo.Valid() || !diff.Hi.Valid() || (diff.Lo <= 0 && diff.Hi >= 0):
		c.Note += "; undecided: the interval holds 0"
	default:
		c.Holds = runs.Judge(diff.Lo > 0)
	}
	return c
}

// pairedMeans are, for every (width, seed), the mean distances over the small
// and over the larger Δα.
func (r *Figure2Result) pairedMeans(panel string) (small, large []float64) {
	type pair struct {
		width int
		seed  uint64
	}
	sums := map[pair]*[2][]float64{}
	var order []pair
	for _, p := range r.run(panel) {
		side := 0
		switch {
		case p.Delta >= 0.03:
			side = 1
		case p.Delta > 0.01:
			continue
		}
		for i, seed := range p.Seeds {
			id := pair{p.Width, seed}
			if sums[id] == nil {
				sums[id] = &[2][]float64{}
				order = append(order, id)
			}
			sums[id][side] = append(sums[id][side], p.Values[i])
		}
	}
	for _, id := range order {
		if s := sums[id]; len(s[0]) > 0 && len(s[1]) > 0 {
			small, large = append(small, stat.Mean(s[0], nil)), append(large, stat.Mean(s[1], nil))
		}
	}
	return small, large
}
