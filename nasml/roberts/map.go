package roberts

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// MapParams are the parameters of the map: where Condition 6 and its conclusion
// hold, over spaces of activations, widths, and noise.
type MapParams struct {
	ProblemParams
	Size        int   // operations of a space; all spaces of so many of Activations are looked at
	Widths      []int // d, with operations drawn from the pool
	NoisePoints []int // n of the problems with label noise, for each of Noise
}

// MapQuick and MapPaper differ in the number of problems and their points.
var (
	MapQuick = func() MapParams {
		p := MapParams{quickProblems, 3, []int{1, 2, 8, 32}, []int{16, 64, 256}}
		p.Problems, p.Seeds = 100, 4
		p.Noise, p.WeightErrors, p.AlphaErrors, p.Sign = []float64{0.1, 0.3, 1, 3}, nil, nil, false
		return p
	}()
	MapPaper = func() MapParams {
		p := MapQuick
		p.Points, p.Problems, p.Seeds = 512, 1000, 10
		p.Widths, p.NoisePoints = []int{1, 2, 4, 8, 16, 32, 64, 128}, []int{16, 64, 256, 1024, 4096}
		return p
	}()
)

const (
	mapID    = "roberts/map"
	mapTitle = "Where Condition 6 and arg max discretization hold: activations, width, noise"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: mapID, Paper: "Roberts+", Title: mapTitle, Kind: "theorem",
		Notebook: "notebooks/roberts/map_conditions.ipynb",
		Cost: catalog.Cost{
			Quick: "about ten seconds",
			Paper: "about five minutes on two cores; the project ships its trials",
		},
	}, MapQuick, MapPaper, Map)
}

// MapResult holds a group a space, a width, and a pair of noise and points.
type MapResult struct {
	Params MapParams
	Scale  string // "quick", "paper" or empty for own parameters
	spaces []group
	widths []group
	noise  []group
}

// Map counts, over all spaces of activations of a size, how often Condition 6
// and its conclusions hold; then over the width of the network, and over label
// noise for some numbers of points. See Theorem1 for cancelling and errors.
func Map(ctx context.Context, p MapParams) (*MapResult, error) {
	if err := p.checkMap(); err != nil {
		return nil, err
	}
	var kinds []mixture.Problems
	for names := range subsets(p.Activations, p.Size) {
		kinds = append(kinds, p.only(names))
	}
	spaces := len(kinds)
	for _, d := range p.Widths {
		q := p.base(p.Size)
		q.Width = d
		kinds = append(kinds, q)
	}
	widths := len(kinds)
	for _, n := range p.NoisePoints {
		for _, level := range append([]float64{0}, p.Noise...) {
			q := p.base(p.Size)
			q.Points, q.Level, q.Violation = n, level, mixture.NoisyLabels
			kinds = append(kinds, q)
		}
	}
	groups, err := simulateAll(ctx, mapID, kinds, p.Seeds)
	if err != nil {
		return nil, err
	}
	return &MapResult{p, runs.Scale(ctx), groups[:spaces], groups[spaces:widths], groups[widths:]}, nil
}

func (p MapParams) checkMap() error {
	if err := p.check(max(p.Size, 2)); err != nil {
		return err
	}
	if p.Size < 2 {
		return catalog.Usagef("Size is %d, want at least 2 operations", p.Size)
	}
	for name, values := range map[string][]int{"Widths": p.Widths, "NoisePoints": p.NoisePoints} {
		if len(values) > 0 && slices.Min(values) < 1 {
			return catalog.Usagef("%s are %v, want numbers of at least 1", name, values)
		}
	}
	if len(p.WeightErrors)+len(p.AlphaErrors) > 0 || p.Sign {
		return catalog.Usagef(
			"WeightErrors, AlphaErrors and Sign do nothing here: leave them empty; the theorems have them",
		)
	}
	return nil
}

// subsets yields all subsets of a size, in the order of the names.
func subsets(names []string, size int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		var walk func(chosen []string, from int) bool
		walk = func(chosen []string, from int) bool {
			if len(chosen) == size {
				return yield(slices.Clone(chosen))
			}
			for i := from; i < len(names); i++ {
				if !walk(append(chosen, names[i]), i+1) {
					return false
				}
			}
			return true
		}
		walk(nil, 0)
	}
}

// Records are the keys of the records behind the result.
func (r *MapResult) Records() []string {
	return keysOf(slices.Concat(r.spaces, r.widths, r.noise))
}

// ratio is the geometric mean over the problems of how much farther the two
// operations farthest from each other are than the two nearest, as √D.
func (g group) ratio() float64 { return math.Exp(g.sum("unequal") / g.sum("problems")) }

// Figure draws a point a space, curves over width and noise, and the spaces at
// both ends as a table.
func (r *MapResult) Figure() plots.Figure {
	return plots.Figure{
		Name: "roberts-map", Style: plots.ICML.Text(),
		Caption: r.Params.caption() + scaleNote(r.Params) +
			" Where a panel varies the width or the points, they are as it says.",
		Panels: [][]plots.Panel{{r.spacesPanel(), r.widthPanel(), r.noisePanel()}, {{Table: r.table()}}},
		Meta:   study.Meta(mapTitle, r.Scale, r.Params),
	}
}

const (
	labelRight     = "arg max $α$ is the best"
	labelCondition = "Condition 6 for all $(1, j)$"
)

func (r *MapResult) spacesPanel() plots.Panel {
	p := plots.Panel{
		Title: fmt.Sprintf("%d spaces of %d operations", len(r.spaces), r.Params.Size),
		X:     plots.Axis{Label: "largest over smallest distance", Scale: plots.Log10},
		Y:     plots.Axis{Label: "share of problems", Max: 1.05},
		// The next panel explains the same two colours.
		Legend: plots.Legend{Position: plots.LegendNone},
	}
	for _, x := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		p.X.Ticks = append(p.X.Ticks, plots.Tick{Value: x, Label: fmt.Sprint(x)})
	}
	for i, curve := range []struct{ label, name string }{{labelRight, "argmax"}, {labelCondition, "first"}} {
		s := plots.Series{Label: curve.label, Line: plots.NoLine, Marker: markers[i]}
		for _, g := range r.spaces {
			s.X, s.Y = append(s.X, g.ratio()), append(s.Y, g.sum(curve.name)/g.sum("problems"))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

func (r *MapResult) widthPanel() plots.Panel {
	p := plots.Panel{
		Title: "width",
		X:     plots.Axis{Label: "hidden units $d$", Scale: plots.Log2},
		Y:     plots.Axis{Max: 1.05},
	}
	for i, curve := range []struct{ label, name string }{{labelRight, "argmax"}, {labelCondition, "first"}} {
		var x []float64
		var y []verdict.Share
		for _, g := range r.widths {
			x, y = append(x, float64(g.Width)), append(y, g.share(curve.name, "problems", r.Params.Confidence))
		}
		s := shares(curve.label, x, y)
		s.Marker = markers[i]
		p.Series = append(p.Series, s)
	}
	return p
}

// noisePanel has a curve a number of points: how often arg max is right beside
// the level of the noise.
func (r *MapResult) noisePanel() plots.Panel {
	p := plots.Panel{
		Title: "label noise",
		X:     plots.Axis{Label: "noise, sd of the signal", Scale: plots.Log10},
		Y:     plots.Axis{Max: 1.05},
	}
	for _, n := range r.Params.NoisePoints {
		var x []float64
		var y []verdict.Share
		for _, g := range r.noise {
			if g.Points == n && g.Level > 0 {
				x, y = append(x, g.Level), append(y, g.share("argmax", "problems", r.Params.Confidence))
			}
		}
		p.Series = append(p.Series, shares(fmt.Sprintf("arg max, $n = %d$", n), x, y))
	}
	if at := slices.IndexFunc(r.noise, func(g group) bool { return g.Level == 0 }); at >= 0 {
		y, _, _ := r.noise[at].share("argmax", "problems", r.Params.Confidence).Bounds()
		p.Series = append(p.Series, plots.HLine("without noise", y))
	}
	return p
}

// table lists the spaces where arg max is right most and least often.
func (r *MapResult) table() *plots.Table {
	const each = 4
	order := slices.SortedFunc(slices.Values(r.spaces), func(a, b group) int {
		return cmp.Compare(b.sum("argmax")/b.sum("problems"), a.sum("argmax")/a.sum("problems"))
	})
	t := &plots.Table{Columns: []plots.Column{
		{Header: "operations"}, {Header: "distances: largest/smallest"}, {Header: "arg max right"},
		{Header: "Condition 6 for all (1, j)"}, {Header: "whole ranking right"},
	}}
	rows := func(groups []group) (rows [][]plots.Entry) {
		for _, g := range groups {
			var names []string
			for _, name := range g.Only {
				names = append(names, shortName(name))
			}
			row := []plots.Entry{{Text: strings.Join(names, ", ")}, {Text: fmt.Sprintf("%.1f", g.ratio())}}
			for _, name := range []string{"argmax", "first", "ranking"} {
				row = append(row, plots.Entry{Text: fmt.Sprintf("%.2f", g.sum(name)/g.sum("problems"))})
			}
			rows = append(rows, row)
		}
		return rows
	}
	if len(order) <= 2*each {
		t.Blocks = []plots.Block{{Rows: rows(order)}}
		return t
	}
	t.Blocks = []plots.Block{{Rows: rows(order[:each])}, {Rows: rows(order[len(order)-each:])}}
	t.Note = fmt.Sprintf("The %d spaces at each end, of %d.", each, len(order))
	return t
}

// Check judges Theorem 7 on the whole map and what the map shows, which is ours.
func (r *MapResult) Check() []runs.Claim {
	c := r.Params.Confidence
	all := pool7(slices.Concat(r.spaces, r.widths))
	return []runs.Claim{
		all.share("condition_right", "condition", c).
			Always(runs.NewClaim("[RO013] on all spaces and widths, Condition 6 ⇒ α_j < α_i", "Roberts+, Theorem 7")),
		all.share("first_argmax", "first", c).
			Always(runs.NewClaim("[RO015] on all spaces and widths, Condition 6 for all (1, j) ⇒ arg max α is the best",
				"Roberts+, Section 4")),
		r.correlation(), r.noiseClaim(),
	}
}

// correlation is between how unequal the distances of a space are and how often
// arg max is right there, with Fisher's interval.
func (r *MapResult) correlation() runs.Claim {
	claim := runs.NewClaim(
		"own: the more equal the distances between the operations, the more often arg max is right (correlation over "+
			"the spaces)",
		own,
	)
	if len(r.spaces) < 4 {
		claim.Note = "not run: needs at least 4 spaces"
		return claim
	}
	var x, y []float64
	for _, g := range r.spaces {
		x, y = append(x, math.Log(g.ratio())), append(y, g.sum("argmax")/g.sum("problems"))
	}
	rho := stat.Correlation(x, y, nil)
	half := distuv.UnitNormal.Quantile((1+r.Params.Confidence)/2) / math.Sqrt(float64(len(x)-3))
	claim.Ours = runs.Number(rho)
	claim.Note = "of the logarithm of the ratio of distances; spaces share operations, so that the interval is " +
		"too narrow"
	if math.Abs(rho) < 1 {
		claim.Lo, claim.Hi = runs.Number(math.Tanh(math.Atanh(rho)-half)), runs.Number(math.Tanh(math.Atanh(rho)+half))
		switch {
		case claim.Hi < 0:
			claim.Holds = runs.Holds
		case claim.Lo > 0:
			claim.Holds = runs.Fails
		}
	}
	return claim
}

// noiseClaim compares the share of right arg max for the most and the fewest
// points at the highest noise, seed by seed: noise that is independent of x adds
// the same to all losses of the population, σ²/2, and misleads a sample only.
func (r *MapResult) noiseClaim() runs.Claim {
	claim := runs.NewClaim(
		"own: independent label noise misleads samples, not the population: arg max is right more often on more points",
		own,
	)
	if len(r.Params.NoisePoints) < 2 || len(r.Params.Noise) == 0 {
		claim.Note = "not run: needs two numbers of points and a level of noise"
		return claim
	}
	level := slices.Max(r.Params.Noise)
	lost := func(points int) []float64 {
		var with, without []float64
		for _, g := range r.noise {
			for _, record := range g.records {
				share := record.Values["argmax"] / record.Values["problems"]
				switch {
				case g.Points == points && g.Level == level:
					with = append(with, share)
				case g.Points == points && g.Level == 0:
					without = append(without, share)
				}
			}
		}
		for i := range without {
			without[i] -= with[i]
		}
		return without
	}
	few, many := slices.Min(r.Params.NoisePoints), slices.Max(r.Params.NoisePoints)
	d, err := runs.MeanDiff(lost(few), lost(many), r.Params.Confidence)
	if err != nil {
		claim.Note = "not run: " + err.Error()
		return claim
	}
	claim.Ours, claim.Lo, claim.Hi = runs.Number(d.Mean), d.Lo, d.Hi
	switch {
	case d.Lo > 0:
		claim.Holds = runs.Holds
	case d.Hi < 0:
		claim.Holds = runs.Fails
	}
	claim.Note = fmt.Sprintf(
		"ours is how much less the share falls by noise of level %v with %d points than with %d, over seeds",
		level,
		many,
		few,
	)
	return claim
}
