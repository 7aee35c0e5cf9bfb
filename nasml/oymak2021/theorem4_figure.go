package oymak2021

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/spectral"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// theorem4Point is what the seeds found at one set of sizes.
type theorem4Point struct {
	n, p, h    int
	noise      float64
	rho2, risk []float64
	oracle     []float64 // risk of knowing α*; of runs on features only
}

func (q theorem4Point) pBar() float64    { return float64(q.p) / float64(q.n) }
func (q theorem4Point) hBar() float64    { return float64(q.h) / float64(q.n) }
func (q theorem4Point) product() float64 { return q.pBar() * q.hBar() } // p̄h̄ = ph/n²

// limit is the exact limit of ρ².
func (q theorem4Point) limit() float64 { return spectral.CorrelationLimit(q.pBar(), q.hBar(), q.noise) }

// bound11 and bound12 are the right sides of (11) and (12).
func (q theorem4Point) bound11() float64 { return 1 - 64*q.product() }
func (q theorem4Point) bound12() float64 { return 1 - 1/q.pBar() + 200*q.hBar()/(1-1/q.pBar()) }

// excess is the risk beyond 1 − n/p that a direction of squared correlation ρ²
// costs, in the exact mean over 𝒯.
func (q theorem4Point) excess(rho2 float64) float64 {
	return spectral.ExpectedRisk(q.n, q.p, rho2, 0) - spectral.ExpectedRisk(q.n, q.p, 1, 0)
}

func (q theorem4Point) String() string { return fmt.Sprintf("n = %d, p = %d, h = %d", q.n, q.p, q.h) }

// theorem4Points lists what groups found: one in a trial on features, one for every pair of sizes in law.
func theorem4Points(gs lab.Groups[lowrank.Trial]) []theorem4Point {
	var all []theorem4Point
	for i := range gs {
		switch g := gs[i : i+1]; t := gs[i].Trial.(type) {
		case lowrank.Data:
			all = append(all, theorem4Point{
				t.N, t.P, t.H, t.Noise, g.Values("rho2"), g.Values("risk"), g.Values("oracle_risk"),
			})
		case lowrank.Law:
			risk := study.Columns(g.Rows("risk"))
			for at, rho2 := range study.Columns(g.Rows("rho2")) {
				p, h := t.P[at/len(t.H)], t.H[at%len(t.H)]
				all = append(all, theorem4Point{n: t.N, p: p, h: h, noise: t.Noise, rho2: rho2, risk: risk[at]})
			}
		}
	}
	return all
}

// only are the points that are to be kept, of those of a ratio, and mapped the numbers of points.
func only(points []theorem4Point, keep func(theorem4Point) bool) []theorem4Point {
	return slices.DeleteFunc(slices.Clone(points), func(q theorem4Point) bool { return !keep(q) })
}

func ofRatio(points []theorem4Point, ratio float64) []theorem4Point {
	return only(points, func(q theorem4Point) bool { return q.p == sizeOf(q.n, ratio) })
}

func mapped[V any](points []theorem4Point, of func(theorem4Point) V) []V {
	var values []V
	for _, q := range points {
		values = append(values, of(q))
	}
	return values
}

func rho2Of(q theorem4Point) []float64 { return q.rho2 }

// common is the picture of a view with what all of them say.
func common(draw func(*theorem4, *lab.Picture)) func(*theorem4, *lab.Picture) {
	return func(r *theorem4, f *lab.Picture) {
		f.Say("Means with %v %% intervals.", 100*r.Confidence)
		if draw(r, f); r.Params.Noise > 0 {
			f.Say("Label noise $σ$ = %v.", r.Params.Noise)
		}
	}
}

// drawBounds asks how close ρ² and the risk come to (11) and (12).
func drawBounds(r *theorem4, f *lab.Picture) {
	p := r.Params
	looks := plots.Looks(slices.Concat(p.Ratios, p.LawRatios)...)
	if len(p.Operations) > 0 {
		f.Add(correlationPanel(r, looks))
		f.Say("Left: on features, $n$ = %d, %d seeds; lines: the exact limit.", p.Examples, p.Seeds)
	}
	if len(p.Operations)+len(p.LawOperations) > 0 {
		f.Add(excessPanel(r, looks))
		f.Say("Risk above $1 − n/p$: full markers on features, less the oracle's risk; hollow in law, $n$ = %d; the "+
			"bound for the first $p/n$.", p.LawExamples)
	}
}

// correlationPanel is ρ² over ph/n² on features, with the limit and (11).
func correlationPanel(r *theorem4, looks map[float64]plots.Look) plots.Panel {
	panel := plots.Panel{
		Title: "correlation on features", X: plots.Axis{Label: "$ph/n^2$", Scale: plots.Log10}, Y: rho2Axis,
	}
	data := theorem4Points(r.Part("data"))
	products := mapped(data, theorem4Point.product)
	low, high := slices.Min(products)/1.3, max(1.5, 1.3*slices.Max(products))
	for _, ratio := range r.Params.Ratios {
		of := ofRatio(data, ratio)
		panel.Series = append(panel.Series,
			looks[ratio].AsLine(plots.Graph(plots.LogGrid(low, high), func(at float64) float64 {
				return spectral.CorrelationLimit(ratio, at/ratio, r.Params.Noise)
			})),
			looks[ratio].AsPoints(r.Curve(fmt.Sprintf("$p/n = %v$", ratio), mapped(of, theorem4Point.product),
				mapped(of, rho2Of))))
	}
	panel.Series = append(panel.Series, plots.Reference("", plots.Dashed, plots.LogGrid(low, 1.0/64), // named beside it
		func(at float64) float64 { return 1 - 64*at }))
	return panel
}

var rho2Axis = plots.Axis{Label: "$ρ^2$", Min: -0.02, Max: 1.05}

// excessPanel is what searching costs in risk, over h/n.
func excessPanel(r *theorem4, looks map[float64]plots.Look) plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: "risk of searching", X: plots.Axis{Label: "$h/n$", Scale: plots.Log10},
		Y: plots.Axis{Label: "risk above $1 − n/p$", Scale: plots.Log10},
	}
	law, data := theorem4Points(r.Part("law")), theorem4Points(r.Part("data"))
	all := mapped(slices.Concat(law, data), theorem4Point.hBar)
	low, high := slices.Min(all), slices.Max(all)
	for _, ratio := range p.Ratios {
		limit := func(at float64) float64 {
			rho2 := spectral.CorrelationLimit(ratio, at, p.Noise)
			return spectral.RiskLimit(ratio, rho2, 0) - spectral.RiskLimit(ratio, 1, 0)
		}
		inLaw := lawExcess(ofRatio(law, ratio))
		if len(p.Operations) == 0 { // there is no left panel with the legend
			inLaw.Label = fmt.Sprintf("$p/n = %v$", ratio)
		}
		panel.Series = append(panel.Series, looks[ratio].AsLine(plots.Graph(plots.LogGrid(low, high), limit)),
			looks[ratio].AsPoints(inLaw), looks[ratio].AsPoints(featureExcess(r, ofRatio(data, ratio))))
	}
	ends, first := []float64{low, high}, p.Ratios[0]
	panel.Series = append(panel.Series,
		plots.Reference("the paper's bounds (11), (12)", plots.Dashed, ends,
			func(at float64) float64 { return 200 * at / (1 - 1/first) }),
		plots.Reference(`$\sqrt{h/n}$, the rate of Theorem 1`, plots.Dotted, ends, math.Sqrt))
	return panel
}

// lawExcess is the exact mean risk given each drawn ρ², at large n.
func lawExcess(law []theorem4Point) (s plots.Series) {
	for _, q := range law {
		if q.h < 2 {
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
func featureExcess(r *theorem4, points []theorem4Point) plots.Series {
	s := plots.Series{Interval: plots.ErrorBars} // the left panel has the legend
	for _, q := range points {
		d, err := runs.MeanDiff(q.risk, q.oracle, r.Confidence)
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

// drawBoundary asks where the estimate stops to find α*.
func drawBoundary(r *theorem4, f *lab.Picture) {
	p := r.Params
	if p.MapSide > 0 || len(p.BoundaryOperations) > 0 {
		f.Add(mapPanel(r))
		f.Say("Map in law, $n$ = %d, %d seeds; circles: $ρ^2 = 1/2$ at $n$ = %d, with a fitted line.", p.MapExamples,
			p.MapSeeds, p.BoundaryExamples)
	}
	if len(p.SizeExamples)*len(p.SizeLevels) > 0 {
		f.Add(sizesPanel(r))
		f.Say("Over $n$: in law, $p = %v n$; dotted: the limits.", p.Ratios[0])
	}
}

// mapPanel is the map of ρ² with the exact boundary ph = n²/(1 + σ²)², and where ρ² = 1/2.
func mapPanel(r *theorem4) plots.Panel {
	p, v := r.Params, 1+r.Params.Noise*r.Params.Noise
	panel := plots.Panel{
		Title: "what the spectral estimate finds",
		X:     plots.Axis{Label: "$p/n$", Scale: plots.Log10}, Y: plots.Axis{Label: "$h/n$", Scale: plots.Log10},
	}
	if p.MapSide > 0 {
		x, y := p.mapEdges()
		means := mapped(theorem4Points(r.Part("map")), func(q theorem4Point) float64 { return stat.Mean(q.rho2, nil) })
		panel.Heat = &plots.Heat{
			X: x, Y: y, Min: 0, Max: 1, Label: "$ρ^2$",
			Values: study.Columns(slices.Collect(slices.Chunk(means, p.MapSide))),
		}
	}
	boundary := plots.Look{Color: "#000000", Line: plots.Solid}.AsLine(
		plots.Graph([]float64{1, p.MapRatio}, func(at float64) float64 { return 1 / (at * v * v) }))
	if boundary.Label = "$ph = n^2$: the limit is 0 beyond"; v > 1 {
		boundary.Label = "$ph = n^2/(1 + σ^2)^2$: the limit is 0 beyond"
	}
	panel.Series = append(panel.Series, boundary)
	points := theorem4Points(r.Part("boundary"))
	half := plots.Series{Label: "$ρ^2 = 1/2$ (circles)", Color: "#000000", Line: plots.NoLine, Marker: plots.Circle}
	half.X, half.Y = halves(points, mapped(points, func(q theorem4Point) float64 { return floats.Sum(q.rho2) / float64(len(q.rho2)) }))
	half.Hollow = slices.Repeat([]bool{true}, len(half.X))
	if a, b, err := fitFrom4(half.X, half.Y); err == nil {
		x, _ := from4(half.X, half.Y)
		fit := plots.Graph([]float64{x[0], x[len(x)-1]}, func(at float64) float64 { return math.Exp(a + b*math.Log(at)) })
		fit.Label, fit.Color, fit.Line = fmt.Sprintf(`fit: $h/n ∝ (p/n)^{%.2f}$`, b), "#009E73", plots.Dashed
		panel.Series = append(panel.Series, fit)
	}
	panel.Series = append(panel.Series, half)
	return panel
}

// halves are the places (p̄, h̄) where the means of ρ² over seeds fall through 1/2,
// by interpolation in log h̄. A ratio without such a place is left out.
func halves(points []theorem4Point, means []float64) (pBar, hBar []float64) {
	for k := 1; k < len(points); k++ {
		before, q := points[k-1], points[k]
		a, b := means[k-1], means[k]
		if found := len(pBar) > 0 && pBar[len(pBar)-1] == q.pBar(); before.p == q.p && a >= 0.5 && b < 0.5 && !found {
			share := (a - 0.5) / (a - b)
			h := math.Exp((1-share)*math.Log(before.hBar()) + share*math.Log(q.hBar()))
			pBar, hBar = append(pBar, q.pBar()), append(hBar, h)
		}
	}
	return pBar, hBar
}

// from4 are the points with p̄ ≥ 4.
func from4(pBar, hBar []float64) (x, y []float64) {
	for i, p := range pBar {
		if p >= 4 {
			x, y = append(x, p), append(y, hBar[i])
		}
	}
	return x, y
}

// fitFrom4 is the line log h̄ = a + b log p̄ through the points with p̄ ≥ 4.
func fitFrom4(pBar, hBar []float64) (a, b float64, err error) {
	x, y := from4(pBar, hBar)
	if len(x) < 3 {
		return 0, 0, errors.New("ρ² falls through 1/2 for fewer than three p/n ≥ 4")
	}
	for i := range x {
		x[i], y[i] = math.Log(x[i]), math.Log(y[i])
	}
	a, b = stat.LinearRegression(x, y, nil, false)
	return a, b, nil
}

// sizesPanel is ρ² over n below, at and beyond the boundary, a curve a level of ph/n².
func sizesPanel(r *theorem4) plots.Panel {
	panel := plots.Panel{
		Title: "sharper with size", Legend: plots.Legend{Position: plots.LegendInside},
		X: plots.Axis{Label: "$n$", Scale: plots.Log2}, Y: rho2Axis,
	}
	levels, points := r.Params.SizeLevels, theorem4Points(r.Part("sizes"))
	looks, markers := plots.Looks(levels...), []plots.Marker{plots.Hexagon, plots.Pentagon, plots.TriangleDown}
	for k, level := range levels {
		var of []theorem4Point
		for at := k; at < len(points); at += len(levels) {
			of = append(of, points[at])
		}
		ns := mapped(of, func(q theorem4Point) float64 { return float64(q.n) })
		look := looks[level]
		look.Marker = markers[k%len(markers)] // not those of the ratios
		limit := plots.Series{X: ns, Y: mapped(of, theorem4Point.limit)}
		panel.Series = append(panel.Series, plots.Look{Color: look.Color, Line: plots.Dotted}.AsLine(limit),
			look.On(r.Curve(fmt.Sprintf("$ph/n^2 = %v$", level), ns, mapped(of, rho2Of))))
	}
	return panel
}

// theorem4Methods are the searches in the order of the legend.
var theorem4Methods = []struct {
	key, label string
	look       plots.Look
}{
	{"spectral", "spectral on $V$ (paper)", plots.Look{Color: "#000000", Marker: plots.Circle, Line: plots.Solid}},
	{"both", "spectral on $T ∪ V$", plots.Look{Color: "#CC79A7", Marker: plots.Square, Line: plots.LongDash}},
	{"gradient", "gradient, random start", plots.Look{Color: "#009E73", Marker: plots.TriangleUp, Line: plots.DashDot}},
	{"refined", "gradient, spectral start", plots.Look{Color: "#E69F00", Marker: plots.Diamond, Line: plots.Dashed}},
	{"ridge", "gradient, ridge", plots.Look{Color: "#56B4E9", Marker: plots.TriangleDown, Line: plots.Dotted}},
	{"alternate", "alternating", plots.Look{Color: "#0072B2", Marker: plots.Pentagon, Line: plots.Solid}},
}

// drawSearches asks whether other searches find α*: their ρ² and their risk over ph/n².
func drawSearches(r *theorem4, f *lab.Picture) {
	p, gs := r.Params, r.Part("search")
	if len(gs) == 0 {
		return
	}
	x := gs.X(func(t lowrank.Trial) float64 {
		s := t.(lowrank.Search)
		return float64(s.P) * float64(s.H) / float64(s.N) / float64(s.N)
	})
	const margin = 1.5 // room for the bars' ends
	axis := plots.Axis{Label: "$ph/n^2$", Scale: plots.Log10, Min: slices.Min(x) / margin, Max: slices.Max(x) * margin}
	found := plots.Panel{Title: "what the searches find", X: axis}
	found.Y = plots.Axis{Label: "squared correlation with $α^*$", Min: -0.05, Max: 1.05}
	risk := plots.Panel{Title: "their risk", X: axis, Y: plots.Axis{Label: "population risk"}}
	for _, m := range theorem4Methods {
		correlation := r.Curve(m.label, x, gs.Lists("rho2_"+m.key))
		for i := range correlation.Lo {
			correlation.Lo[i], correlation.Hi[i] = max(correlation.Lo[i], 0), min(correlation.Hi[i], 1)
		}
		found.Series = append(found.Series, m.look.On(correlation))
		risk.Series = append(risk.Series, m.look.On(r.Curve("", x, gs.Lists("risk_"+m.key)))) // left: the legend
	}
	size := sizeOf(p.SearchExamples, p.SearchRatio)
	oracle := spectral.RiskLimit(float64(size)/float64(p.SearchExamples), 1, p.Noise)
	knowing, zero := plots.HLine("knowing $α^*$: $1 − n/p$", oracle), plots.HLine("predicting 0", 1+p.Noise*p.Noise)
	knowing.Line, zero.Line = plots.DashDot, plots.LongDash
	risk.Series = append(risk.Series, knowing, zero)
	f.Row(found, risk)
	f.Say("$n$ = %d, $p$ = %d, %d seeds.", p.SearchExamples, size, p.SearchSeeds)
}

// drawCases asks what becomes of the estimate where an assumption is changed, a row each.
func drawCases(r *theorem4, f *lab.Picture) {
	var rows [][]plots.Entry
	for i, q := range theorem4Points(r.Part("case")) {
		k := r.Params.Cases[i]
		limit := fmt.Sprintf("%.2f", q.limit())
		known := k.Features != "correlated" && k.Features != "heavy" && !k.Same
		row := []plots.Entry{
			{Text: k.Name}, {Text: fmt.Sprintf("%d, %d, %d", q.n, q.p, q.h)}, {Text: fmt.Sprintf("%.3g", q.product())},
			plusMinus(r.Mean(q.rho2)), {Text: limit}, boundEntry(q.bound11(), q.noise, q.bound11() > 0),
			plusMinus(r.Mean(q.risk)), plusMinus(r.Mean(q.oracle)), boundEntry(q.bound12(), q.noise, true),
		}
		if !known {
			row[4] = plots.Entry{Text: "–", Grey: true}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return
	}
	f.Row(plots.Panel{Table: &plots.Table{
		Columns: []plots.Column{
			{Header: "assumption changed"}, {Header: "$n, p, h$"}, {Header: "$ph/n^2$"}, {Header: "$ρ^2$"},
			{Header: "limit"}, {Header: "(11)"}, {Header: "risk"}, {Header: "oracle"}, {Header: "(12)"},
		},
		Blocks: []plots.Block{{Rows: rows}},
	}})
	f.Say("%d seeds; the first row breaks no assumption.", r.Params.CaseSeeds)
}

// plusMinus is a mean with half of its interval.
func plusMinus(s runs.Summary) plots.Entry {
	if !s.Hi.Valid() {
		return plots.Entry{Text: fmt.Sprintf("%.2f", s.Mean)}
	}
	return plots.Entry{Text: fmt.Sprintf("%.2f ± %.2f", s.Mean, float64(s.Hi)-s.Mean)}
}

// boundEntry is a bound of the paper, which has no label noise, where it says
// something.
func boundEntry(bound, noise float64, telling bool) plots.Entry {
	switch {
	case noise > 0:
		return plots.Entry{Text: "–", Grey: true}
	case !telling:
		return plots.Entry{Text: "below 0", Grey: true}
	}
	return plots.Entry{Text: fmt.Sprintf("%.2f", bound), Grey: true}
}
