package oymak2021

import (
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

var theorem4Searches = lab.Question[Theorem4Params, lowrank.Trial]{
	Name: "searches", Draw: common(drawSearches),
	Trials: func(p Theorem4Params) (gs lab.Groups[lowrank.Trial]) {
		for _, h := range p.SearchOperations {
			gs.Add("search", p.SearchSeeds, lowrank.Search{
				Part: "search", N: p.SearchExamples, P: sizeOf(p.SearchExamples, p.SearchRatio), H: h, Ridge: p.Ridge,
				Steps: p.SearchSteps, Noise: p.Noise,
			})
		}
		return gs
	},
	Claims: func(r *theorem4) []runs.Claim { return []runs.Claim{judgeGradient(r)} },
}

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
	f.Say("$n$ = %d, $p$ = %d; %s.", p.SearchExamples, size, r.Interval("bars", p.SearchSeeds, "seed"))
}

// judgeGradient compares the search by exact hypergradient with the spectral estimate on the same data.
func judgeGradient(r *theorem4) runs.Claim {
	gs := r.Part("search").Where(func(t lowrank.Trial) bool {
		s := t.(lowrank.Search)
		return s.H > 1 && float64(s.P)*float64(s.H) <= float64(s.N)*float64(s.N)/4
	})
	gradient, estimate := gs.Values("rho2_gradient"), gs.Values("rho2_spectral")
	c := r.Claim("ours: the gradient from a random start finds α* better than the spectral estimate, ph ≤ n²/4: " +
		"mean difference of ρ²").From(notInPaper).Says(0)
	if len(gradient) < 2 {
		return c.NotRun("needs two searches with h ≥ 2 and ph ≤ n²/4")
	}
	return c.Noting("paired over %d pairs of (h, seed)", len(gradient)).Difference(gradient, estimate).Above(0)
}
