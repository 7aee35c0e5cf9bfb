package roberts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// MapParams are the parameters of the map: where Condition 6 and its conclusion
// hold, over spaces of activations, widths, and noise.
type MapParams struct {
	ProblemParams
	Size        int   `validate:"gte=2"`      // operations of a space: every subset of Activations of this size
	Widths      []int `validate:"dive,gte=1"` // d, with operations drawn from the pool
	NoisePoints []int `validate:"dive,gte=1"` // n of the problems with label noise, for each of Noise
}

// MapQuick and MapPaper differ in the number of problems and their points.
var (
	MapQuick = lab.With(MapParams{quickProblems, 3, []int{1, 2, 8, 32}, []int{16, 64, 256}}, func(p *MapParams) {
		p.Problems, p.Seeds = 100, 4
		p.Noise, p.WeightErrors, p.AlphaErrors, p.Sign = []float64{0.1, 0.3, 1, 3}, nil, nil, false
	})
	MapPaper = lab.With(MapQuick, func(p *MapParams) {
		p.Points, p.Problems, p.Seeds = 512, 1000, 10
		p.Widths, p.NoisePoints = []int{1, 2, 4, 8, 16, 32, 64, 128}, []int{16, 64, 256, 1024, 4096}
	})
)

// Map counts, over all spaces of activations of a size, how often Condition 6 and its conclusions hold; then over the
// width of the network, and over label noise for some numbers of points.
var Map = lab.Declare(lab.Entry[MapParams, problems]{
	Of: paper, Name: "map", Kind: lab.Theorem, Source: "Theorem 7", Notebook: "map_conditions",
	Title: "Where Condition 6 and arg max discretization hold: activations, width, noise",
	Cost:  catalog.Cost{Quick: "about ten seconds", Paper: "about five minutes on two cores; precomputed"},
	Quick: MapQuick, Paper: MapPaper,
	Code: problemsCode, Units: problemUnits,
	Rules: func(p MapParams, c *study.Checks) {
		p.rules(p.Size, c)
		c.Expect(len(p.WeightErrors)+len(p.AlphaErrors) == 0 && !p.Sign,
			"WeightErrors, AlphaErrors and Sign do nothing here: leave them empty; the theorems have them")
	},
	Trials: func(p MapParams) (gs problemGroups) {
		for subsets := combin.NewCombinationGenerator(len(p.Activations), p.Size); subsets.Next(); {
			names := study.Map(subsets.Combination(nil), func(at int) string { return p.Activations[at] })
			gs.Add("spaces", p.Seeds, p.only(names))
		}
		for _, d := range p.Widths {
			q := p.base(p.Size)
			q.Width = d
			gs.Add("widths", p.Seeds, q)
		}
		for _, n := range p.NoisePoints {
			for _, level := range append([]float64{0}, p.Noise...) {
				q := p.base(p.Size)
				q.Points, q.Level, q.Violation = n, level, mixture.NoisyLabels
				gs.Add("noise", p.Seeds, q)
			}
		}
		return gs
	},
	Bench: problemBench[MapParams],
	Draw: func(r *mapped, p *lab.Picture) {
		p.Row(spacesPanel(r), widthPanel(r), noisePanel(r))
		p.Row(spacesTable(r))
		p.Say("%s", r.Params.caption())
		p.Say("A panel that varies one of them says so.")
	},
	Claims: mapClaims,
})

type mapped = lab.Result[MapParams, problems]

// ratio is the geometric mean over the problems of how much farther the two
// operations farthest from each other are than the two nearest, as √D.
func (c counts) ratio() float64 { return math.Exp(c.per("unequal")) }

func mapClaims(r *mapped) []runs.Claim {
	all := countsOf(slices.Concat(r.Part("spaces"), r.Part("widths"))...)
	return []runs.Claim{
		all.share("condition_right", "condition", r.Confidence).
			Always(r.Claim("[RO013] on all spaces and widths, Condition 6 ⇒ α_j < α_i").Claim),
		all.share("first_argmax", "first", r.Confidence).
			Always(r.Claim("[RO015] on all spaces and widths, Condition 6 for all (1, j) ⇒ arg max α is the best").
				From("Section 4").Claim),
		correlation(r), noiseClaim(r),
	}
}

// correlation is between how unequal the distances of a space are and how often
// arg max is right there, with Fisher's interval.
func correlation(r *mapped) runs.Claim {
	c := ours("the more equal the distances between the operations, the more often arg max is right (correlation " +
		"over the spaces)")
	var x, y []float64
	for _, g := range r.Part("spaces") {
		x, y = append(x, math.Log(countsOf(g).ratio())), append(y, countsOf(g).per("argmax"))
	}
	if len(x) < 4 {
		c.Note = "not run: needs at least 4 spaces"
		return c
	}
	rho := stat.Correlation(x, y, nil)
	half := distuv.UnitNormal.Quantile((1+r.Confidence)/2) / math.Sqrt(float64(len(x)-3))
	c.Ours = runs.Number(rho)
	c.Note = "of the logarithm of the ratio of distances; spaces share operations, so that the interval is too narrow"
	if math.Abs(rho) < 1 {
		c.Lo, c.Hi = runs.Number(math.Tanh(math.Atanh(rho)-half)), runs.Number(math.Tanh(math.Atanh(rho)+half))
		c.Holds = signVerdict(-c.Hi, -c.Lo)
	}
	return c
}

// signVerdict reports whether an interval lies above 0, or below.
func signVerdict(lo, hi runs.Number) runs.Verdict {
	switch {
	case lo > 0:
		return runs.Holds
	case hi < 0:
		return runs.Fails
	}
	return runs.NotKnown
}

// noiseClaim compares the share of right arg max for the most and the fewest points at the highest noise, seed by seed:
// noise that is independent of x adds the same to all losses of the population, σ²/2, and misleads a sample only.
func noiseClaim(r *mapped) runs.Claim {
	c := ours("independent label noise misleads samples, not the population: arg max is right more often on more " +
		"points")
	if len(r.Params.NoisePoints) < 2 || len(r.Params.Noise) == 0 {
		c.Note = "not run: needs two numbers of points and a level of noise"
		return c
	}
	level := slices.Max(r.Params.Noise)
	few, many := slices.Min(r.Params.NoisePoints), slices.Max(r.Params.NoisePoints)
	d, err := runs.MeanDiff(lossByNoise(r, few, level), lossByNoise(r, many, level), r.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi, c.Holds = runs.Number(d.Mean), d.Lo, d.Hi, signVerdict(d.Lo, d.Hi)
	c.Note = fmt.Sprintf("ours is how much less the share falls by noise of level %v with %d points than with %d, "+
		"over seeds", level, many, few)
	return c
}

// lossByNoise is by how much noise lowers the share of right arg max, seed by seed.
func lossByNoise(r *mapped, points int, level float64) []float64 {
	right := func(level float64) []float64 {
		gs := r.Part("noise").Where(func(q problems) bool { return q.Points == points && q.Level == level })
		shares := gs.Values("argmax")
		floats.Div(shares, gs.Values("problems"))
		return shares
	}
	without := right(0)
	floats.Sub(without, right(level))
	return without
}

var mapCurves = []struct{ label, name string }{
	{"arg max $α$ is the best", "argmax"}, {"Condition 6 for all $(1, j)$", "first"},
}

func spacesPanel(r *mapped) plots.Panel {
	spaces := r.Part("spaces")
	p := plots.Panel{
		Title: fmt.Sprintf("%d spaces of %d operations", len(spaces), r.Params.Size),
		X:     plots.Axis{Label: "largest over smallest distance", Scale: plots.Log10},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
		// The next panel explains the same two colours.
		Legend: plots.Legend{Position: plots.LegendNone},
	}
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: x, Label: fmt.Sprint(x)})
	}
	for i, curve := range mapCurves {
		s := plots.Series{Label: curve.label, Line: plots.NoLine, Marker: markers[i]}
		for _, g := range spaces {
			s.X, s.Y = append(s.X, countsOf(g).ratio()), append(s.Y, countsOf(g).per(curve.name))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func widthPanel(r *mapped) plots.Panel {
	p := plots.Panel{
		Title: "width", X: plots.Axis{Label: "hidden units $d$", Scale: plots.Log2}, Y: plots.Axis{Max: 1.05},
	}
	for i, curve := range mapCurves {
		width := func(q problems) float64 { return float64(q.Width) }
		s := sharesOver(curve.label, r.Part("widths"), width, curve.name, "problems", r.Confidence)
		s.Marker = markers[i]
		p.Series = append(p.Series, s)
	}
	return p
}

// noisePanel has a curve a number of points: how often arg max is right beside the level of the noise.
func noisePanel(r *mapped) plots.Panel {
	p := plots.Panel{
		Title: "arg max under label noise",
		X:     plots.Axis{Label: "noise, sd of the signal", Scale: plots.Log10},
		Y:     plots.Axis{Max: 1.05},
	}
	noise := r.Part("noise")
	for _, n := range r.Params.NoisePoints {
		of := noise.Where(func(q problems) bool { return q.Points == n && q.Level > 0 })
		p.Series = append(p.Series,
			sharesOver(fmt.Sprintf("$n = %d$", n), of, levelOf, "argmax", "problems", r.Confidence))
	}
	if len(noise) > 0 { // which begins with a group without noise
		p.Series = append(p.Series, plots.HLine("without noise", countsOf(noise[0]).per("argmax")))
	}
	return p
}

// spacesTable lists the spaces where arg max is right most and least often.
func spacesTable(r *mapped) plots.Panel {
	const each = 4
	order := slices.SortedFunc(slices.Values(r.Part("spaces")), func(a, b lab.Group[problems]) int {
		return cmp.Compare(countsOf(b).per("argmax"), countsOf(a).per("argmax"))
	})
	t := &plots.Table{Columns: []plots.Column{
		{Header: "operations"}, {Header: "distances: largest/smallest"}, {Header: "arg max right"},
		{Header: "Condition 6 for all (1, j)"}, {Header: "whole ranking right"},
	}}
	if len(order) <= 2*each {
		t.Blocks = []plots.Block{{Rows: spaceRows(order)}}
	} else {
		t.Blocks = []plots.Block{{Rows: spaceRows(order[:each])}, {Rows: spaceRows(order[len(order)-each:])}}
		t.Note = fmt.Sprintf("The %d spaces at each end, of %d.", each, len(order))
	}
	return plots.Panel{Table: t}
}

func spaceRows(spaces problemGroups) (rows [][]plots.Entry) {
	for _, g := range spaces {
		of := countsOf(g)
		row := []plots.Entry{
			{Text: spaceLabel(strings.Join(g.Trial.Only, "/"))}, {Text: fmt.Sprintf("%.1f", of.ratio())},
		}
		for _, name := range []string{"argmax", "first", "ranking"} {
			row = append(row, plots.Entry{Text: fmt.Sprintf("%.2f", of.per(name))})
		}
		rows = append(rows, row)
	}
	return rows
}
