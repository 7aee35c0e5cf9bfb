package oymak2021

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// theorem4Boundary asks where the estimate fails to find α*.
var theorem4Boundary = lab.Question[Theorem4Params, lowrank.Trial]{
	Name: "boundary", Draw: common(drawBoundary),
	Trials: func(p Theorem4Params) (gs lab.Groups[lowrank.Trial]) {
		ratios, shares := p.mapCentres()
		addLaw(&gs, "map", p.MapSeeds, p.MapExamples, sizesOf(p.MapExamples, ratios), sizesOf(p.MapExamples, shares),
			p.Noise)
		addLaw(&gs, "boundary", p.BoundarySeeds, p.BoundaryExamples, sizesOf(p.BoundaryExamples, p.BoundaryRatios),
			p.BoundaryOperations, p.Noise)
		for _, n := range p.SizeExamples {
			size := sizeOf(n, p.Ratios[0])
			shares := study.Map(p.SizeLevels, // h/n
				func(level float64) float64 { return level * float64(n) / float64(size) })
			addLaw(&gs, "sizes", p.SizeSeeds, n, []int{size}, sizesOf(n, shares), p.Noise)
		}
		return gs
	},
	Claims: func(r *theorem4) []runs.Claim {
		return []runs.Claim{judgeBoundary(r), judgeNecessary(r), judgeLimit(r)}
	},
}

// mapEdges are the ends of the map's cells: p̄ from 1 up and h̄ up to 1, even in the logarithm.
func (p Theorem4Params) mapEdges() (ratios, shares []float64) {
	for i := range p.MapSide + 1 {
		at := float64(i) / float64(p.MapSide)
		ratios = append(ratios, math.Pow(p.MapRatio, at))
		shares = append(shares, math.Pow(2*p.MapRatio, at-1))
	}
	return ratios, shares
}

func (p Theorem4Params) mapCentres() (ratios, shares []float64) {
	x, y := p.mapEdges()
	for i := range p.MapSide {
		ratios = append(ratios, math.Sqrt(x[i]*x[i+1]))
		shares = append(shares, math.Sqrt(y[i]*y[i+1]))
	}
	return ratios, shares
}

func drawBoundary(r *theorem4, f *lab.Picture) {
	p := r.Params
	if p.MapSide > 0 || len(p.BoundaryOperations) > 0 {
		f.Add(mapPanel(r))
		f.Say("Map in law, $n$ = %d, %d seeds; circles: $ρ^2 = 1/2$ at $n$ = %d, with a fitted line.", p.MapExamples,
			p.MapSeeds, p.BoundaryExamples)
	}
	if len(p.SizeExamples)*len(p.SizeLevels) > 0 {
		f.Add(sizesPanel(r))
		f.Say("Over $n$: in law, $p = %v n$; dotted: the limits; bars: %v %% CI of the mean.", p.Ratios[0],
			100*r.Confidence)
	}
}

// mapPanel is the map of ρ² with the exact boundary ph = n²/(1 + σ²)², and where ρ² = 1/2.
func mapPanel(r *theorem4) plots.Panel {
	p, v := r.Params, 1+r.Params.Noise*r.Params.Noise
	panel := logLog("what the spectral estimate finds", "$p/n$", "$h/n$")
	if p.MapSide > 0 {
		x, y := p.mapEdges()
		means := study.Map(theorem4Points(r, "map"), func(q theorem4Point) float64 { return stat.Mean(q.rho2, nil) })
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
	points := theorem4Points(r, "boundary")
	half := plots.Series{Label: "$ρ^2 = 1/2$ (circles)", Color: "#000000", Line: plots.NoLine, Marker: plots.Circle}
	half.X, half.Y = halves(points, study.Map(points, func(q theorem4Point) float64 {
		return floats.Sum(q.rho2) / float64(len(q.rho2))
	}))
	half.Hollow = slices.Repeat([]bool{true}, len(half.X))
	if x, a, b, err := fitFrom4(half.X, half.Y); err == nil {
		line := func(at float64) float64 { return math.Exp(a + b*math.Log(at)) }
		fit := plots.Graph([]float64{x[0], x[len(x)-1]}, line)
		fit.Label, fit.Color, fit.Line = fmt.Sprintf(`fit: $h/n ∝ (p/n)^{%.2f}$`, b), "#009E73", plots.Dashed
		panel.Series = append(panel.Series, fit)
	}
	panel.Series = append(panel.Series, half)
	return panel
}

// halves are the places (p̄, h̄) where the means of ρ² over seeds fall through 1/2, by interpolation in log h̄. A ratio
// without such a place is left out.
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

// fitFrom4 is the line log h̄ = a + b log p̄ through the points with p̄ ≥ 4, which it returns as x.
func fitFrom4(pBar, hBar []float64) (x []float64, a, b float64, err error) {
	var logX, logY []float64
	for i, p := range pBar {
		if p >= 4 {
			x, logX, logY = append(x, p), append(logX, math.Log(p)), append(logY, math.Log(hBar[i]))
		}
	}
	if len(x) < 3 {
		return nil, 0, 0, errors.New("ρ² falls through 1/2 for fewer than three p/n ≥ 4")
	}
	a, b = stat.LinearRegression(logX, logY, nil, false)
	return x, a, b, nil
}

// sizesPanel is ρ² over n below, at and beyond the boundary, a curve a level of ph/n².
func sizesPanel(r *theorem4) plots.Panel {
	panel := plots.Panel{
		Title: "sharper with size", Legend: plots.Legend{Position: plots.LegendInside},
		X: plots.Axis{Label: "$n$", Scale: plots.Log2}, Y: rho2Axis,
	}
	levels, points := r.Params.SizeLevels, theorem4Points(r, "sizes")
	looks, markers := plots.Looks(levels...), []plots.Marker{plots.Hexagon, plots.Pentagon, plots.TriangleDown}
	for k, level := range levels {
		var of []theorem4Point
		for at := k; at < len(points); at += len(levels) {
			of = append(of, points[at])
		}
		ns := study.Map(of, func(q theorem4Point) float64 { return float64(q.n) })
		look := looks[level]
		look.Marker = markers[k%len(markers)] // not those of the ratios
		limit := plots.Series{X: ns, Y: study.Map(of, theorem4Point.limit)}
		panel.Series = append(panel.Series, plots.Look{Color: look.Color, Line: plots.Dotted}.AsLine(limit),
			look.On(r.Curve(fmt.Sprintf("$ph/n^2 = %v$", level), ns, study.Map(of, rho2Of))))
	}
	return panel
}

// judgeBoundary fits the exponent of h̄ where the mean ρ² falls through 1/2 over p̄ ≥ 4, with an interval by the
// jackknife over seeds.
func judgeBoundary(r *theorem4) runs.Claim {
	points := theorem4Points(r, "boundary")
	c := r.Claim("[intro-ph-bound] the algorithm works as long as hp ≲ (n_T+n_V)²: exponent of h̄ = h/n over " +
		"p̄ = p/n at ρ² = 1/2").From("Sections 1 and 5").
		Noting("p/n ≥ 4 with the same h for every p; the limit of ρ² is 0 from ph = n² = (n_T+n_V)²/4 on")
	return jackknife(c, points, func(means []float64) (float64, error) {
		_, _, b, err := fitFrom4(halves(points, means))
		return b, err
	}).Near(-1, 0.1)
}

// judgeNecessary looks beyond the boundary: there ρ² has to vanish as n grows.
func judgeNecessary(r *theorem4) runs.Claim {
	const most = 0.1
	c := r.Claim("[thm4-necessary] ph ≲ n² is necessary: ρ² vanishes beyond, at the largest ph/n²").
		From("Section 5 (experiments of an appendix that is not available)").Says(0)
	c.Tolerance = most
	levels, sizes := r.Params.SizeLevels, r.Params.SizeExamples
	if len(levels) == 0 || slices.Max(levels) < 1.5 || len(sizes) < 2 {
		return c.NotRun("needs one of SizeLevels from 1.5 on and two SizeExamples")
	}
	at := floats.MaxIdx(levels)
	mean := func(n int) runs.Summary {
		return r.Mean(theorem4Points(r, "sizes")[slices.Index(sizes, n)*len(levels)+at].rho2)
	}
	smallest, largest := slices.Min(sizes), slices.Max(sizes)
	first, last := mean(smallest), mean(largest)
	c.Ours, c.Lo, c.Hi = runs.Number(last.Mean), last.Lo, last.Hi
	return verdict.Decided(c.Noting("at ph = %v n²: n = %d, after a mean of %.3f at n = %d; of this algorithm, other "+
		"searches see more", levels[at], largest, first.Mean, smallest).Claim,
		last.Hi <= most && last.Hi < first.Lo, last.Lo > most)
}

// judgeLimit compares ρ² at large n with the exact limit, away from the boundary.
func judgeLimit(r *theorem4) runs.Claim {
	const large = 1000
	c := r.Claim("ours: ρ² → (1 − p̄h̄)₊/(1 + h̄): mean difference where ph ≤ n²/2").
		From(notInPaper+"; derived in the notebook").
		Noting("n = %d, over p, h and seeds", r.Params.BoundaryExamples)
	if r.Params.BoundaryExamples < large {
		c = c.Says(0)
		c.Tolerance = 0.03
		return c.NotRun("needs BoundaryExamples from %d on", large)
	}
	var differences []float64
	for _, q := range theorem4Points(r, "boundary") {
		for _, rho2 := range q.rho2 {
			if q.product() <= 0.5 {
				differences = append(differences, rho2-q.limit())
			}
		}
	}
	return c.Mean(differences).Near(0, 0.03)
}
