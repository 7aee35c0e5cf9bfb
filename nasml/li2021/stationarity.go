package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/proximal"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// StationarityParams are the parameters of what Bregman stationarity means (Section 3.2, Definitions 5 and 6).
type StationarityParams struct {
	Options   int       `validate:"gte=2"`                          // |O| of the linear functions
	Weights   int       `validate:"gte=1"`                          // dimension of w in the quadratic ones
	Lambdas   []float64 `validate:"min=2,ascending,dive,gt=0"`      // λ
	Distances []float64 `validate:"min=2,ascending,dive,gt=0,lt=1"` // δ of θ = (1−δ, δ) from the worst vertex of f = θ₁
	Seeds     int       `validate:"gte=2"`

	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
}

// StationarityQuick and StationarityPaper have 20 and 200 problems, in a tenth of a second on two cores; the latter are
// precomputed. Closed forms agree to 1e-10, ‖∇f‖² is at most 2.2 Δ, and the worst vertex of the simplex is a fixed
// point of the proximal map with a gap of 1.
var (
	StationarityQuick = StationarityParams{
		Options: 6, Weights: 4, Lambdas: []float64{1e-4, 1e-3, 1e-2, 0.1, 0.5, 2},
		Distances: []float64{1e-9, 1e-7, 1e-5, 1e-3, 0.1, 0.5}, Seeds: 20, Confidence: 0.95,
	}
	StationarityPaper = lab.With(StationarityQuick, func(p *StationarityParams) { p.Seeds = 200 })
)

// StationarityOf measures Δ_λ on random problems with known closed forms (linear functions on a simplex, quadratic ones
// of w, non-convex ones of both) and near the worst vertex of a simplex.
var StationarityOf = lab.Declare(lab.Entry[StationarityParams, proximal.Trial]{
	Of: ofPaper, Name: "stationarity", Kind: lab.Theorem, Source: "Section 3.2 and eq. 7",
	Notebook: "stationarity_meaning", Title: "What Bregman stationarity measures, and where it is blind",
	Cost:  catalog.Cost{Quick: "under a second", Paper: "under a second; precomputed"},
	Quick: StationarityQuick, Paper: StationarityPaper,
	Code: code.Define("li2021/stationarity", "li2021/internal/proximal"),
	Trials: func(p StationarityParams) (gs lab.Groups[proximal.Trial]) {
		gs.Add("", p.Seeds, proximal.Trial{
			Options: p.Options, Weights: p.Weights, Lambdas: p.Lambdas, Distances: p.Distances,
		})
		return gs
	},
	Bench: func(context.Context, StationarityParams, string) (lab.Bench[proximal.Trial], error) {
		return lab.Bench[proximal.Trial]{
			Run: func(_ context.Context, t proximal.Trial, seed uint64, _ study.Step) (trial.Result, error) {
				return t.Run(seed)
			},
		}, nil
	},
	Draw:   drawStationarity,
	Claims: judgeStationarity,
})

type stationarity = lab.Result[StationarityParams, proximal.Trial]

// drawStationarity draws the numeric Δ of a linear function over λ on its closed form, and Δ with the Frank–Wolfe gap
// near the worst vertex.
func drawStationarity(r *stationarity, f *lab.Picture) {
	first := r.Groups.Records()[0]
	left := plots.Panel{
		Title: "a linear function on the simplex",
		X:     plots.Axis{Label: "$λ$", Scale: plots.Log10}, Y: plots.Axis{Label: "$Δ_λ$"},
		Series: []plots.Series{
			{Label: "closed form", X: r.Params.Lambdas, Y: first.Series["closed"], Reference: true},
			{Label: "proximal map, numeric", X: r.Params.Lambdas, Y: first.Series["numeric"], Line: plots.NoLine},
			plots.HLine("$λ → 0$: variance of the gradient", first.Values["variance"]),
		},
	}
	right := plots.Panel{
		Title: "near the worst vertex",
		X:     plots.Axis{Label: "distance $δ$", Scale: plots.Log10}, Y: plots.Axis{Scale: plots.Log10},
		Series: []plots.Series{
			{Label: "$Δ_{1/2}$, entropy", X: r.Params.Distances, Y: first.Series["vertex_delta"]},
			{Label: "$Δ_{1/2}$, Euclidean", X: r.Params.Distances, Y: first.Series["vertex_flat"]},
			{Label: "Frank–Wolfe gap", X: r.Params.Distances, Y: first.Series["vertex_gap"]},
		},
	}
	f.Row(left, right)
	f.Say("Left: one random $f = ⟨c, θ⟩$. Right: $f = θ_1$ at $θ = (1−δ, δ)$: every vertex is a fixed point " +
		"of the entropic proximal map, also the worst.")
}

// judgeStationarity judges the closed forms, O(ε) in the smooth unconstrained case, and that fixed points of the
// proximal map have no direction of descent.
func judgeStationarity(r *stationarity) []runs.Claim {
	each := func(value func(*runs.Record) float64) []float64 { return study.Map(r.Groups.Records(), value) }
	exactly := func(c lab.Claim, errors []float64, tolerance float64) runs.Claim {
		return verdict.Exactly(c.Claim, slices.Max(errors), 0, tolerance)
	}
	smallest := r.Params.Lambdas[0]
	return []runs.Claim{
		exactly(r.Claim("own: eq. 7: Δ of a linear function is ⟨c, θ−p⟩/λ, relative error").Noting(
			"the proximal map solved numerically against its closed form, the largest of all λ"),
			each(numericError), 1e-6),
		exactly(r.Claim("own: eq. 7: the two forms of Δ agree at the proximal point of a non-convex f, relative error"),
			r.Groups.Values("two_forms"), 1e-5),
		exactly(r.Claim("ours: Δ_λ → Var_{o∼θ}(∇_o f) as λ → 0, relative error").From("ours, from eq. 7").Noting(
			"at λ = %v; the error is of the order of λ", smallest), each(func(x *runs.Record) float64 {
			return math.Abs(x.Series["numeric"][0]/x.Values["variance"] - 1)
		}), 10*smallest),
		verdict.Every(r.Claim("[LI018] ‖∇f‖² over Δ, smooth, Euclidean, unconstrained").From("Section 3.2").Noting(
			"the paper says O(ε); (1+λγ)² = 9/4 at λ = 1/(2γ) is ours; random quadratics").Claim,
			r.Groups.Values("gradient_over_delta"), 9./4),
		judgeFixed(r),
	}
}

func numericError(x *runs.Record) float64 {
	most := 0.0
	for i, closed := range x.Series["closed"] {
		most = math.Max(most, math.Abs(x.Series["numeric"][i]/closed-1))
	}
	return most
}

// judgeFixed judges the gap at the worst vertex; all seeds have the same one.
func judgeFixed(r *stationarity) runs.Claim {
	first := r.Groups.Records()[0]
	c := r.Claim("own: fixed points of prox have no feasible descent direction: the gap at the vertex where Δ = 0").
		From("Section 3.2").Claim
	c.Paper, c.Ours = 0, runs.Number(first.Values["vertex_gap"])
	c.Holds = runs.Judge(first.Values["vertex_delta"] > 0 || c.Ours <= 0)
	c.Note = fmt.Sprintf("our finding: with the entropy it holds in the interior only. At the worst vertex Δ = %v; "+
		"at δ = %v from it Δ = %.2g and the gap %.3g: report the gap beside Δ",
		first.Values["vertex_delta"], r.Params.Distances[0],
		first.Series["vertex_delta"][0], first.Series["vertex_gap"][0])
	return c
}
