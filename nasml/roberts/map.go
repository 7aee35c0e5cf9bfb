package roberts

import (
	"math"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/roberts/internal/mixture"
	"github.com/nasml/lab/nasml/study"
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

// Map counts, over all spaces of activations of a size, how often Condition 6
// and its conclusions hold; then over the width of the network, and over label
// noise for some numbers of points.
var Map = lab.Declare(lab.Entry[MapParams, problems]{
	Of: paper, Name: "map", Kind: lab.Theorem, Source: "Theorem 7", Notebook: "map_conditions",
	Title: "Where Condition 6 and arg max discretization hold: activations, width, noise",
	Cost: catalog.Cost{
		Quick: "about ten seconds",
		Paper: "about five minutes on two cores; precomputed",
	},
	Quick: MapQuick, Paper: MapPaper,
	Code: problemsKind, Units: problemUnits,
	Rules: func(p MapParams, c *study.Checks) {
		p.rules(p.Size, c)
		c.Expect(len(p.WeightErrors)+len(p.AlphaErrors) == 0 && !p.Sign,
			"WeightErrors, AlphaErrors and Sign do nothing here: leave them empty; the theorems have them")
	},
	Trials: func(p MapParams) (gs problemGroups) {
		for subsets := combin.NewCombinationGenerator(len(p.Activations), p.Size); subsets.Next(); {
			var names []string
			for _, at := range subsets.Combination(nil) {
				names = append(names, p.Activations[at])
			}
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
