package li2021

import (
	"fmt"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/li2021/internal/algorithm2"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// safe is the constant of Corollary 1's bound that follows from Theorem 2 at the printed step, instead of the printed
// 2.
const safe = 3

// Of the curves of f = xy colour and marker are γ, and the line is σ.
var (
	gammaMarkers = []plots.Marker{plots.Circle, plots.Square, plots.TriangleUp, plots.Diamond, plots.TriangleDown}
	sigmaLines   = []struct {
		line plots.Line
		name string
	}{{plots.Solid, "solid"}, {plots.Dashed, "dashed"}, {plots.Dotted, "dotted"}, {plots.DashDot, "dash-dotted"}}
)

// theorem2Saddles is Δ on f = xy, where the blocks alone allow too small a γ, with Corollary 1's bound in its safe
// form.
func theorem2Saddles(r *theorem2) plots.Panel {
	panel := plots.Panel{
		Title: "$f(x, y) = xy$: block-wise $γ$",
		X:     plots.Axis{Label: "steps $T$", Scale: plots.Log10},
		Y:     plots.Axis{Label: "$𝔼 Δ_{1/2γ}$", Scale: plots.Log10},
	}
	named := map[float64]bool{}
	for i, sigma := range r.Params.Sigmas {
		for j, gamma := range r.Params.Gammas {
			s := theorem2SaddleCurve(theorem2Saddle(r, gamma, sigma))
			s.Label, s.Entry = fmt.Sprintf("$γ$ = %v, $σ$ = %v", gamma, sigma), plots.NoEntry
			s.Line, s.Color = sigmaLines[i%len(sigmaLines)].line, plots.ICML.Palette[j%len(plots.ICML.Palette)]
			s.Marker = gammaMarkers[j%len(gammaMarkers)]
			if !named[gamma] {
				s.Entry = fmt.Sprintf("$γ$ = %v", gamma)
			}
			if len(s.X) > 0 {
				panel.Series, named[gamma] = append(panel.Series, s), true
			}
			if i == 0 && j == 0 {
				panel.Series = append(panel.Series, theorem2SaddleBound(theorem2Saddle(r, gamma, sigma)))
			}
		}
	}
	return panel
}

// theorem2SaddleCurve is the mean Δ over T, without zeros.
func theorem2SaddleCurve(gs lab.Groups[algorithm2.Trial]) (s plots.Series) {
	for _, g := range gs {
		if m := mean(means(study.Rows(g.Records, "delta"))); m > 0 {
			s.X, s.Y = append(s.X, theorem2Steps(g.Trial)), append(s.Y, m)
		}
	}
	return s
}

func theorem2SaddleBound(gs lab.Groups[algorithm2.Trial]) plots.Series {
	s := plots.Series{Label: "bound with block-wise $γ$", Reference: true, X: gs.X(theorem2Steps)}
	for _, units := range gs.Lists("unit") {
		s.Y = append(s.Y, safe*units[0])
	}
	return s
}
