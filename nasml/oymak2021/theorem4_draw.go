package oymak2021

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
	"github.com/nasml/lab/plots"
)

// thm4Plain is a name without the marks of a formula.
func thm4Plain(name string) string {
	return strings.NewReplacer("$", "", "^2", "²").Replace(name)
}

// Figure draws ρ² over the sizes as a map and along curves, the risk of searching
// with the bounds, the competing searches, what happens at the boundary as n
// grows, and a table of runs with an assumption changed.
func (r *Theorem4Result) Figure() plots.Figure {
	raw, err := json.Marshal(r.Params)
	if err != nil { // a struct of numbers and strings always marshals
		panic(err)
	}
	sum := sha256.Sum256(raw)
	scale := r.Scale
	if scale == "" {
		scale = "own"
	}
	f := plots.Figure{
		Name: "oymak2021-theorem4", Style: plots.ICML.Text(), Caption: r.caption(),
		Meta: map[string]string{"title": theorem4Title, "params": hex.EncodeToString(sum[:8]), "scale": scale},
	}
	for row := range slices.Chunk(r.panels(), 2) {
		f.Panels = append(f.Panels, row)
	}
	if len(r.Params.Cases) > 0 {
		f.Panels = append(f.Panels, []plots.Panel{r.casesPanel()})
	}
	return f
}

// panels are the panels with axes, but for those of parts that were left out.
func (r *Theorem4Result) panels() []plots.Panel {
	p := r.Params
	var all []plots.Panel
	if p.MapSide > 0 || len(p.BoundaryOperations) > 0 {
		all = append(all, r.mapPanel())
	}
	if len(p.Operations) > 0 {
		all = append(all, r.correlationPanel())
	}
	if len(p.Operations)+len(p.LawOperations) > 0 {
		all = append(all, r.excessPanel())
	}
	if len(p.SizeExamples) > 0 && len(p.SizeLevels) > 0 {
		all = append(all, r.sizesPanel())
	}
	if len(p.SearchOperations) > 0 {
		all = append(all, r.searchPanel("rho2", `(e) $ρ^2$ of the searches`, "squared correlation with $α^*$"), r.searchPanel("risk", "(f) their risk", "population risk"))
	}
	return all
}

// caption says what each panel shows, but for those that were left out.
func (r *Theorem4Result) caption() string {
	p := r.Params
	parts := []string{fmt.Sprintf("Means with %v %% intervals.", 100*p.Confidence)}
	add := func(there bool, format string, args ...any) {
		if there {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.MapSide > 0, "(a) in law, $n$ = %d, %d seeds.", p.MapExamples, p.MapSeeds)
	add(len(p.BoundaryOperations) > 0, "(a) circles: $ρ^2 = 1/2$ at $n$ = %d, with a fitted line.", p.BoundaryExamples)
	add(len(p.Operations) > 0, "(b) on features, $n$ = %d, %d seeds; lines: the exact limit.", p.Examples, p.Seeds)
	add(len(p.Operations)+len(p.LawOperations) > 0, "(c) risk above $1 − n/p$: full markers on features, less the oracle's risk; hollow in law, $n$ = %d; the bound for the first $p/n$.", p.LawExamples)
	add(len(p.SizeExamples) > 0 && len(p.SizeLevels) > 0, "(d) in law, $p = %v n$; dotted: the limits.", p.Ratios[0])
	add(len(p.SearchOperations) > 0, "(e), (f) $n$ = %d, $p$ = %d, %d seeds.", p.SearchExamples, thm4Size(p.SearchExamples, p.SearchRatio), p.SearchSeeds)
	add(len(p.Cases) > 0, "(g) %d seeds.", p.CaseSeeds)
	add(p.Noise > 0, "Label noise $σ$ = %v.", p.Noise)
	add(r.Scale == "quick", "Quick scale.")
	return strings.Join(parts, " ")
}

// mapPanel is the map of ρ² with the exact boundary.
func (r *Theorem4Result) mapPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(a) what the spectral estimate finds",
		X:     plots.Axis{Label: "$p/n$", Scale: plots.Log10}, Y: plots.Axis{Label: "$h/n$", Scale: plots.Log10},
	}
	if r.Params.MapSide > 0 {
		x, y := r.Params.mapEdges()
		panel.Heat = &plots.Heat{X: x, Y: y, Min: 0, Max: 1, Label: "$ρ^2$", Values: make([][]float64, r.Params.MapSide)}
		for i, q := range r.points("map") {
			row := i % r.Params.MapSide
			panel.Heat.Values[row] = append(panel.Heat.Values[row], stat.Mean(q.rho2, nil))
		}
	}
	v := 1 + r.Params.Noise*r.Params.Noise
	ends := []float64{1, r.Params.MapRatio}
	boundary := "$ph = n^2$: the limit is 0 beyond"
	if v > 1 {
		boundary = "$ph = n^2/(1 + σ^2)^2$: the limit is 0 beyond"
	}
	panel.Series = append(panel.Series, plots.Series{Label: boundary, X: ends, Y: []float64{1 / (ends[0] * v * v), 1 / (ends[1] * v * v)},
		Color: "#000000", Line: plots.Solid, Marker: plots.NoMarker})
	s := plots.Series{Label: "$ρ^2 = 1/2$ (circles)", Color: "#000000", Line: plots.NoLine, Marker: plots.Circle}
	for _, l := range r.levels(-1) {
		s.X, s.Y, s.Hollow = append(s.X, l.pBar), append(s.Y, l.hBar), append(s.Hollow, true)
	}
	if fit, ok := thm4FitLine(s); ok {
		panel.Series = append(panel.Series, fit)
	}
	panel.Series = append(panel.Series, s)
	return panel
}

// thm4FitLine is the line through the points with p̄ ≥ 4 on log–log axes.
func thm4FitLine(s plots.Series) (plots.Series, bool) {
	var x, y []float64
	for i, p := range s.X {
		if p >= 4 {
			x, y = append(x, math.Log(p)), append(y, math.Log(s.Y[i]))
		}
	}
	if len(x) < 3 {
		return plots.Series{}, false
	}
	a, b := stat.LinearRegression(x, y, nil, false)
	line := plots.Series{Label: fmt.Sprintf(`fit: $h/n ∝ (p/n)^{%.2f}$`, b), Color: "#009E73", Line: plots.Dashed, Marker: plots.NoMarker}
	for _, at := range []float64{x[0], x[len(x)-1]} {
		line.X, line.Y = append(line.X, math.Exp(at)), append(line.Y, math.Exp(a+b*at))
	}
	return line, true
}

// thm4Colors are the colours of the ratios p̄, as they come.
var thm4Colors = []string{"#0072B2", "#D55E00", "#000000", "#CC79A7", "#009E73", "#E69F00", "#56B4E9"}

var thm4Markers = []plots.Marker{plots.Circle, plots.Square, plots.TriangleUp, plots.Diamond, plots.TriangleDown, plots.Pentagon, plots.Hexagon}

var thm4Lines = []plots.Line{plots.Solid, plots.LongDash, plots.DashDot, plots.Dashed, plots.Dotted}

// look gives a ratio its colour, the same in all panels.
func (r *Theorem4Result) look(s plots.Series, ratio float64) plots.Series {
	i := slices.Index(append(slices.Clone(r.Params.Ratios), slices.DeleteFunc(slices.Clone(r.Params.LawRatios), func(x float64) bool { return slices.Contains(r.Params.Ratios, x) })...), ratio)
	s.Color, s.Marker = thm4Colors[i%len(thm4Colors)], thm4Markers[i%len(thm4Markers)]
	return s
}

// correlationPanel is ρ² over ph/n² on features, with the limit and (11).
func (r *Theorem4Result) correlationPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(b) correlation on features", Legend: plots.Legend{Position: plots.LegendInside},
		X: plots.Axis{Label: "$ph/n^2$", Scale: plots.Log10},
		Y: plots.Axis{Label: "$ρ^2$", Min: -0.02, Max: 1.05},
	}
	points := r.points("data")
	low, high := math.Inf(1), 1.5
	for _, q := range points {
		low, high = min(low, q.product()/1.3), max(high, 1.3*q.product())
	}
	for i, ratio := range r.Params.Ratios {
		per := len(r.Params.Operations)
		var x []float64
		var means []runs.Summary
		for _, q := range points[i*per : (i+1)*per] {
			x, means = append(x, q.product()), append(means, r.mean(q.rho2))
		}
		bars := r.look(plots.Bars(fmt.Sprintf("$p/n = %v$", ratio), x, means), ratio)
		bars.Line = plots.NoLine
		limit := r.look(plots.Series{Line: thm4Lines[i%len(thm4Lines)]}, ratio)
		limit.Marker = plots.NoMarker
		for _, at := range thm4Grid(low, high) {
			limit.X, limit.Y = append(limit.X, at), append(limit.Y, spectral.CorrelationLimit(ratio, at/ratio, r.Params.Noise))
		}
		panel.Series = append(panel.Series, limit, bars)
	}
	bound := plots.Series{Reference: true, Line: plots.Dashed} // named in (c)
	for _, at := range thm4Grid(low, 1.0/64) {
		bound.X, bound.Y = append(bound.X, at), append(bound.Y, 1-64*at)
	}
	panel.Series = append(panel.Series, bound)
	return panel
}

// thm4Grid is even on a log axis; empty where low ≥ high.
func thm4Grid(low, high float64) []float64 {
	if low >= high {
		return nil
	}
	const n = 80
	grid := make([]float64, n+1)
	for i := range grid {
		grid[i] = low * math.Pow(high/low, float64(i)/n)
	}
	return grid
}

// excessPanel is what searching costs in risk, over h/n.
func (r *Theorem4Result) excessPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(c) risk of searching",
		X:     plots.Axis{Label: "$h/n$", Scale: plots.Log10},
		Y:     plots.Axis{Label: "risk above $1 − n/p$", Scale: plots.Log10},
	}
	law, data := r.points("law"), r.points("data")
	low, high := math.Inf(1), 0.0
	for _, q := range append(slices.Clone(law), data...) {
		low, high = min(low, q.hBar()), max(high, q.hBar())
	}
	for i, ratio := range r.Params.Ratios {
		per := len(r.Params.Operations)
		limit := r.look(plots.Series{Line: thm4Lines[i%len(thm4Lines)]}, ratio)
		limit.Marker = plots.NoMarker
		for _, at := range thm4Grid(low, high) {
			rho2 := spectral.CorrelationLimit(ratio, at, r.Params.Noise)
			limit.X, limit.Y = append(limit.X, at), append(limit.Y, spectral.RiskLimit(ratio, rho2, 0)-spectral.RiskLimit(ratio, 1, 0))
		}
		panel.Series = append(panel.Series, limit, r.lawExcess(law, ratio), r.featureExcess(data[i*per:(i+1)*per], ratio))
	}
	ratio := r.Params.Ratios[0]
	bound := plots.Series{Label: "the paper's bounds (11), (12)", Reference: true, Line: plots.Dashed}
	root := plots.Series{Label: `$\sqrt{h/n}$, the rate of Theorem 1`, Reference: true, Line: plots.Dotted}
	for _, at := range []float64{low, high} {
		bound.X, bound.Y = append(bound.X, at), append(bound.Y, 200*at/(1-1/ratio))
		root.X, root.Y = append(root.X, at), append(root.Y, math.Sqrt(at))
	}
	panel.Series = append(panel.Series, bound, root)
	return panel
}

// lawExcess is the exact mean risk given each drawn ρ², at large n.
func (r *Theorem4Result) lawExcess(law []thm4Point, ratio float64) plots.Series {
	s := plots.Series{Line: plots.NoLine}
	if len(r.Params.Operations) == 0 { // there is no (b) with the legend
		s.Label = fmt.Sprintf("$p/n = %v$", ratio)
	}
	s = r.look(s, ratio)
	for _, q := range law {
		if q.p != thm4Size(q.n, ratio) || q.h < 2 {
			continue
		}
		excess := 0.0
		for _, rho2 := range q.rho2 {
			excess += q.excess(rho2) / float64(len(q.rho2))
		}
		s.X, s.Y, s.Hollow = append(s.X, q.hBar()), append(s.Y, excess), append(s.Hollow, true)
	}
	return s
}

// featureExcess is the risk less that of the oracle on the same examples. On a
// log axis only means above 0 have a place, and intervals end at a tenth of
// them.
func (r *Theorem4Result) featureExcess(points []thm4Point, ratio float64) plots.Series {
	s := plots.Series{Line: plots.NoLine, Interval: plots.ErrorBars} // (b) has the legend
	s = r.look(s, ratio)
	for _, q := range points {
		d, err := runs.MeanDiff(q.risk, q.oracle, r.Params.Confidence)
		if err != nil || d.Mean <= 1e-9 {
			continue
		}
		lo, hi := d.Mean, d.Mean
		if d.Lo.Valid() {
			lo, hi = max(float64(d.Lo), d.Mean/10), float64(d.Hi)
		}
		s.X, s.Y, s.Lo, s.Hi = append(s.X, q.hBar()), append(s.Y, d.Mean), append(s.Lo, lo), append(s.Hi, hi)
	}
	return s
}

// sizesPanel is ρ² over n below, at and beyond the boundary.
func (r *Theorem4Result) sizesPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(d) sharper with size", Legend: plots.Legend{Position: plots.LegendInside},
		X: plots.Axis{Label: "$n$", Scale: plots.Log2},
		Y: plots.Axis{Label: "$ρ^2$", Min: -0.02, Max: 1.05},
	}
	points := r.points("sizes")
	for k, level := range r.Params.SizeLevels {
		var x []float64
		var means []runs.Summary
		limit := plots.Series{Color: thm4Colors[k%len(thm4Colors)], Line: plots.Dotted, Marker: plots.NoMarker}
		for i, n := range r.Params.SizeExamples {
			q := points[i*len(r.Params.SizeLevels)+k]
			x, means = append(x, float64(n)), append(means, r.mean(q.rho2))
			limit.X, limit.Y = append(limit.X, float64(n)), append(limit.Y, q.limit())
		}
		bars := plots.Bars(fmt.Sprintf("$ph/n^2 = %v$", level), x, means)
		bars.Color, bars.Marker, bars.Line = thm4Colors[k%len(thm4Colors)], thm4Markers[len(thm4Markers)-1-k%len(thm4Markers)], thm4Lines[k%len(thm4Lines)]
		panel.Series = append(panel.Series, limit, bars)
	}
	return panel
}

// searchPanel compares the methods over h/n.
func (r *Theorem4Result) searchPanel(value, title, label string) plots.Panel {
	panel := plots.Panel{Title: title, X: plots.Axis{Label: "$ph/n^2$", Scale: plots.Log10}, Y: plots.Axis{Label: label}}
	named := value == "rho2" // (e) has the legend
	const margin = 1.5       // curves with bars stand beside each other
	unit := float64(thm4Size(r.Params.SearchExamples, r.Params.SearchRatio)) / math.Pow(float64(r.Params.SearchExamples), 2)
	panel.X.Min, panel.X.Max = unit*float64(slices.Min(r.Params.SearchOperations))/margin, unit*float64(slices.Max(r.Params.SearchOperations))*margin
	for i, method := range thm4Methods {
		var x []float64
		var means []runs.Summary
		for _, g := range r.groups {
			if t, ok := g.trial.(thm4Search); ok {
				x = append(x, float64(t.P)*float64(t.H)/float64(t.N)/float64(t.N))
				means = append(means, r.mean(g.values(value+"_"+method.key)))
			}
		}
		s := plots.Bars(method.label, x, means)
		s.Color, s.Line, s.Marker = thm4Colors[(i+2)%len(thm4Colors)], thm4Lines[i%len(thm4Lines)], thm4Markers[i%len(thm4Markers)]
		if !named {
			s.Label = ""
		}
		panel.Series = append(panel.Series, s)
	}
	if value == "rho2" {
		panel.Y.Min, panel.Y.Max = -0.05, 1.05
		return panel
	}
	ratio := float64(thm4Size(r.Params.SearchExamples, r.Params.SearchRatio)) / float64(r.Params.SearchExamples)
	noise := r.Params.Noise * r.Params.Noise
	panel.Series = append(panel.Series,
		plots.Series{Label: "knowing $α^*$: $1 − n/p$", Y: []float64{spectral.RiskLimit(ratio, 1, r.Params.Noise)}, Reference: true, Line: plots.DashDot},
		plots.Series{Label: "predicting 0", Y: []float64{1 + noise}, Reference: true, Line: plots.LongDash})
	return panel
}

// casesPanel is the table of runs with an assumption changed.
func (r *Theorem4Result) casesPanel() plots.Panel {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "(g) assumption changed"}, {Header: "$n, p, h$"}, {Header: "$ph/n^2$"},
		{Header: "$ρ^2$"}, {Header: "limit", Group: ""}, {Header: "(11)"}, {Header: "risk"}, {Header: "oracle"}, {Header: "(12)"},
	}}
	var rows [][]plots.Entry
	for i, q := range r.points("case") {
		k := r.Params.Cases[i]
		limit := plots.Entry{Text: "–", Grey: true}
		if k.Features != "correlated" && k.Features != "heavy" && !k.Same {
			limit = plots.Entry{Text: fmt.Sprintf("%.2f", q.limit())}
		}
		rows = append(rows, []plots.Entry{
			{Text: k.Name}, {Text: fmt.Sprintf("%d, %d, %d", q.n, q.p, q.h)}, {Text: fmt.Sprintf("%.3g", q.product())},
			{Text: thm4PlusMinus(r.mean(q.rho2))}, limit, thm4Bound(q.bound11(), q.noise, q.bound11() > 0),
			{Text: thm4PlusMinus(r.mean(q.risk))}, {Text: thm4PlusMinus(r.mean(q.oracle))}, thm4Bound(q.bound12(), q.noise, true),
		})
	}
	t.Blocks = []plots.Block{{Rows: rows}}
	return plots.Panel{Table: t}
}

// thm4PlusMinus is a mean with half of its interval.
func thm4PlusMinus(s runs.Summary) string {
	if !s.Hi.Valid() {
		return fmt.Sprintf("%.2f", s.Mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", s.Mean, float64(s.Hi)-s.Mean)
}

// thm4Bound is a bound of the paper, which has no label noise, where it says
// something.
func thm4Bound(bound, noise float64, telling bool) plots.Entry {
	switch {
	case noise > 0:
		return plots.Entry{Text: "–", Grey: true}
	case !telling:
		return plots.Entry{Text: "below 0", Grey: true}
	}
	return plots.Entry{Text: fmt.Sprintf("%.2f", bound), Grey: true}
}
