package roberts

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/plots"
)

// drawSearches draws the identity's error over what the search has left, α's error
// and whether arg max is right, over the noise.
func drawSearches(r *searches, f *lab.Picture) {
	p := r.Params
	recovery := plots.Panel{
		Title: "weights found", X: noiseAxis(r), Y: plots.Axis{Label: "$\\max_i |α_i − α_i^*|$"},
	}
	right := plots.Panel{
		Title: "arg max $α$ is the best", X: noiseAxis(r),
		Y: plots.Axis{Label: "share of searches", Min: -0.02, Max: 1.05},
	}
	for i, space := range p.Spaces {
		var errs [][]float64
		var best []verdict.Share
		for _, noise := range p.Noise {
			gs := r.Part(space).Where(func(t teaching) bool { return t.Noise == noise })
			errs = append(errs, gs.Values("alpha_error"))
			best = append(best, counts{records: gs.Records()}.share("argmax", "problems", r.Confidence))
		}
		label := spaceLabel(space)
		recovery.Series = append(recovery.Series, spaceLook(i).On(r.Curve(label, p.Noise, errs)))
		right.Series = append(right.Series, spaceLook(i).On(plots.Bars(label, p.Noise, best)))
	}
	f.Row(identityPanel(r), recovery, right)
	f.Say("%d searches a point, all settings ours: $α$ by %s on %d validation examples, $W$ by Adam on %d training "+
		"examples, %d steps; teacher $α^*$ ∝ %v, $k = %d$, $d = %d$, student $d = %d$; bars: %v %% CI.",
		p.Seeds*len(p.Starts), strings.Replace(p.Update, "eg", "EG", 1), p.Valid, p.Train, p.Steps,
		strings.NewReplacer("[", "(", "]", ")", " ", ", ").Replace(fmt.Sprint(p.Teacher)), p.Inputs, p.Width, p.Student,
		100*p.Confidence)
}

// markers tell spaces apart. A marker of its own also keeps a cloud of points
// from being thinned out.
var markers = []plots.Marker{
	plots.Circle, plots.Square, plots.TriangleUp, plots.Diamond, plots.TriangleDown, plots.Pentagon, plots.Hexagon,
}

// spaceLook is the look of a space by its place.
func spaceLook(i int) plots.Look {
	return plots.Look{Marker: markers[i%len(markers)], Color: plots.ICML.Palette[i%len(plots.ICML.Palette)]}
}

// spaceLabel is a space in a legend.
func spaceLabel(space string) string {
	names := splitSpace(space)
	for i, name := range names {
		names[i] = shortName(name)
	}
	return strings.Join(names, ", ")
}

func noiseAxis(r *searches) plots.Axis {
	most := max(slices.Max(r.Params.Noise), 0.01)
	return plots.Axis{Label: "label noise, sd of the signal", Min: -0.07 * most, Max: 1.07 * most}
}

// identityPanel has a point a search.
func identityPanel(r *searches) plots.Panel {
	p := plots.Panel{
		Title:  "the identity after a search",
		X:      plots.Axis{Label: "residual, $\\sqrt{R/L_1}$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "relative error", Scale: plots.Log10},
		Legend: plots.Legend{Position: plots.LegendInside},
	}
	low, high := math.Inf(1), 0.0
	for i, space := range r.Params.Spaces {
		s := spaceLook(i).AsPoints(plots.Series{}) // without a label: the other panels explain the same signs
		for _, record := range r.Part(space).Records() {
			v := record.Values
			x, y := math.Sqrt(v["mixture"]/v["best_loss"]), v["root_error"]
			if v["best_loss"] > 0 && x > 0 && y > 0 {
				s.X, s.Y = append(s.X, x), append(s.Y, y)
				low, high = min(low, x), max(high, x)
			}
		}
		p.Series = append(p.Series, s)
	}
	if low < high {
		ends := []float64{low, high}
		p.Series = append(p.Series, plots.Series{Label: "our bound", Reference: true, X: ends, Y: ends})
	}
	return p
}
