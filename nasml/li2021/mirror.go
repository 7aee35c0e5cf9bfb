package li2021

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/geometry"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// MirrorParams are the parameters of the comparison of geometries in Sections 3.1 to 3.3: on each edge one operation
// has a mean loss of −Margin, all others 0, and the oracle's entries are ±1.
type MirrorParams struct {
	Edges   int   `validate:"gte=1"`
	Options []int `validate:"min=1,ascending,dive,gte=2"` // |O|
	// "dense": every entry of the gradient is ±1; "sparse": that of the best operation, all others 0.
	Oracles []string  `validate:"min=1,unique,dive,oneof=dense sparse"`
	Gap     float64   `validate:"gt=0"`                      // mean gap of a run, per edge, that counts as reached
	Margin  float64   `validate:"gt=0,lte=1"`                // of the best operation, a mean of ±1
	Rates   []float64 `validate:"min=1,ascending,dive,gt=0"` // step sizes that tuned runs choose from
	// Smaller rates for projected SGD on the dense oracle, whose best step falls like 1/|O|.
	SmallRates []float64 `validate:"ascending,dive,gt=0"`
	Draws      int       `validate:"gte=1"` // random points for the identities and norms
	Seeds      int       `validate:"gte=2"`
	CellENAS   [3]int    `validate:"dive,gte=1"` // h of ENAS' controller, |E| and |O| of DARTS' cell

	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
}

// The presets differ in |O| and in the number of seeds. In both, EG needs at most 0.43 of the steps of its bound.
// Projected SGD's steps over EG's grow as |O|^0.8, those of tuned SGD on logits hardly (|O|^0.07).
var (
	// MirrorQuick goes to |O| = 64: about a second on two cores, since all but the norms are precomputed with
	// MirrorPaper.
	MirrorQuick = MirrorParams{
		Edges: 4, Options: []int{4, 16, 64}, Oracles: []string{"dense", "sparse"}, Gap: 0.1, Margin: 0.5,
		Rates: []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}, SmallRates: []float64{1e-4, 3e-4, 1e-3},
		Draws: 2000, Seeds: 6,
		CellENAS: [3]int{100, 14, 7}, Confidence: 0.95,
	}
	// MirrorPaper goes to |O| = 256: about 8 minutes on two cores, precomputed.
	MirrorPaper = lab.With(MirrorQuick, func(p *MirrorParams) {
		p.Options, p.Draws, p.Seeds = []int{4, 16, 64, 256}, 20000, 8
	})
)

// Mirror counts the steps that exponentiated gradient, projected SGD and SGD on logits need to reach the same mean gap,
// and measures the norms in their bounds.
var Mirror = lab.Declare(lab.Entry[MirrorParams, geometry.Trial]{
	Of: ofPaper, Name: "mirror", Kind: lab.Theorem, Source: "Section 3.3", Notebook: "mirror_geometry",
	Title: "Exponentiated gradient against SGD: iterations and gradient bounds as |O| grows",
	Cost: catalog.Cost{
		Quick: "about a second on two cores; most of its trials are shipped",
		Paper: "about 8 minutes on two cores; precomputed",
	},
	Quick: MirrorQuick, Paper: MirrorPaper,
	Code: code.Define("li2021/mirror", "li2021/internal/geometry"),
	Rules: func(p MirrorParams, c *study.Checks) {
		c.Expect(p.Gap < p.Margin/2, "Gap must be below Margin/2, since it starts at nearly Margin, got %v", p.Gap)
		if n := len(p.SmallRates); n > 0 && len(p.Rates) > 0 {
			c.Expect(p.SmallRates[n-1] < p.Rates[0], "SmallRates must be less than all Rates, got %v", p.SmallRates)
		}
	},
	Trials: MirrorParams.trials,
	Units: func(t geometry.Trial) int {
		if t.Kind == "norms" {
			return 1 + t.Draws*t.Options/100000
		}
		return 1 + t.Edges*t.Options*t.Options/1000
	},
	Draw:   drawMirror,
	Claims: judgeMirror,
})

type mirror = lab.Result[MirrorParams, geometry.Trial]

// trials are random points for the norms; projected SGD and EG at the step of their bounds; and all methods at every
// rate.
func (p MirrorParams) trials() (gs lab.Groups[geometry.Trial]) {
	for _, options := range p.Options {
		gs.Add("norms", p.Seeds, geometry.Trial{Kind: "norms", Edges: p.Edges, Options: options, Draws: p.Draws})
		for _, oracle := range p.Oracles {
			for _, method := range mirrorMethods {
				add := func(kind string, rates []float64) {
					gs.Add(kind, p.Seeds, geometry.Trial{
						Kind: kind, Method: method, Oracle: oracle, Edges: p.Edges, Options: options, Gap: p.Gap,
						Margin: p.Margin, Rates: rates,
					})
				}
				if method != "softmax" { // no bound names its step
					add("theory", nil)
				}
				add("tuned", p.Rates)
				if method == "projected" && oracle == "dense" && len(p.SmallRates) > 0 {
					add("tuned", p.SmallRates)
				}
			}
		}
	}
	return gs
}

// mirrorMethods are exponentiated gradient, projected SGD and SGD on logits.
var mirrorMethods = []string{"eg", "projected", "softmax"}

// methodName is a method's name in pictures.
func methodName(method string) string {
	return strings.NewReplacer("eg", "EG", "projected", "projected SGD", "softmax", "SGD on logits").Replace(method)
}

// mirrorOf is a method on an oracle, in the part "theory" or "tuned".
func mirrorOf(r *mirror, part, method, oracle string, options int) lab.Groups[geometry.Trial] {
	return r.Part(part).Where(func(t geometry.Trial) bool {
		return t.Method == method && t.Oracle == oracle && t.Options == options
	})
}

// mirrorSteps are the numbers of steps of a method for each |O|, one per seed: at the step of the bound, or at the rate
// with the least mean. A list is empty if no rate reaches the gap in every seed.
func mirrorSteps(r *mirror, part, method, oracle string) (lists [][]float64) {
	for _, options := range r.Params.Options {
		gs := mirrorOf(r, part, method, oracle, options)
		steps := gs.Values("steps")
		if part == "tuned" {
			steps, _ = bestRate(gs)
		}
		lists = append(lists, steps)
	}
	return lists
}

// bestRate are the numbers of steps, one per seed, at the rate of all groups with the least mean, and that rate; nil if
// none reaches the gap in every seed.
func bestRate(gs lab.Groups[geometry.Trial]) (best []float64, rate float64) {
	for _, g := range gs {
		for i, steps := range study.Columns(study.Rows(g.Records, "steps")) {
			if slices.Max(steps) < float64(g.Trial.Cap()) && (best == nil || mean(steps) < mean(best)) {
				best, rate = steps, g.Trial.Rates[i]
			}
		}
	}
	return best, rate
}

// lowest is the least rate of groups.
func lowest(gs lab.Groups[geometry.Trial]) float64 {
	return slices.Min(gs.X(func(t geometry.Trial) float64 { return slices.Min(t.Rates) }))
}

func drawMirror(r *mirror, f *lab.Picture) {
	p := r.Params
	for i, oracle := range p.Oracles {
		panel := plots.Panel{
			Title: map[string]string{"dense": "entries of $±1$", "sparse": "one entry of $±1$"}[oracle],
			X:     plots.Axis{Label: "operations $|O|$", Scale: plots.Log2}, Y: plots.Axis{Scale: plots.Log10},
		}
		if i == 0 {
			panel.Y.Label = fmt.Sprintf("steps to a mean gap of %v", p.Gap)
		}
		for _, part := range []string{"theory", "tuned"} {
			for _, method := range mirrorMethods {
				label := map[string]string{"theory": "%s, step of the bound", "tuned": "%s, tuned"}[part]
				s := geometric(fmt.Sprintf(label, methodName(method)), study.Floats(p.Options),
					mirrorSteps(r, part, method, oracle), r.Confidence)
				if len(s.X) > 0 {
					panel.Series = append(panel.Series, s)
				}
			}
		}
		panel.Series = append(panel.Series, mirrorBound(p, "eg", oracle, plots.Dotted),
			mirrorBound(p, "projected", oracle, plots.Dashed))
		f.Add(panel)
	}
	f.Say("%d edges, the best operation's mean loss %v below the others'; tuned: the best of %d step sizes; "+
		"%s (geometric).", p.Edges, p.Margin, len(p.SmallRates)+len(p.Rates), r.Interval("bars", p.Seeds, "seed"))
}

func mirrorBound(p MirrorParams, method, oracle string, line plots.Line) plots.Series {
	return plots.Reference("bound: "+methodName(method), line, study.Floats(p.Options), func(options float64) float64 {
		return geometry.Trial{Method: method, Oracle: oracle, Options: int(options), Gap: p.Gap}.Bound()
	})
}
