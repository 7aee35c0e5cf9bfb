package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/li2021/internal/proximal"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// StationarityParams are the parameters of what Bregman stationarity means
// (Section 3.2, Definitions 5 and 6).
type StationarityParams struct {
	Options   int       // |O| of the linear functions
	Weights   int       // dimension of w in the quadratic ones
	Lambdas   []float64 // λ
	Distances []float64 // δ: how far θ = (1−δ, δ) is from the worst vertex of f = θ₁
	Seeds     int

	Confidence float64 // of the intervals
}

// StationarityQuick and StationarityPaper have 20 and 200 problems, in a tenth of a
// second on two cores; those of StationarityPaper are shipped. At both the closed
// forms agree to 1e-10, ‖∇f‖² is 2.2 times Δ at most, and the worst vertex of the
// simplex is a fixed point of the proximal map with a gap of 1.
var (
	StationarityQuick = StationarityParams{
		Options: 6, Weights: 4, Lambdas: []float64{1e-4, 1e-3, 1e-2, 0.1, 0.5, 2},
		Distances: []float64{1e-9, 1e-7, 1e-5, 1e-3, 0.1, 0.5}, Seeds: 20, Confidence: 0.95,
	}
	StationarityPaper = func() StationarityParams {
		p := StationarityQuick
		p.Seeds = 200
		return p
	}()
)

const (
	stationarityID     = "li2021/stationarity"
	stationarityTitle  = "What Bregman stationarity measures, and where it is blind"
	stationaritySource = "Li+ 2021, Section 3.2 and eq. 7"
)

var stationarityStudy = study.Study{
	ID: stationarityID, Title: stationarityTitle, Shipped: shippedRecords,
	Code: code.Define(stationarityID, "li2021/internal/proximal"),
}

func init() {
	catalog.Register(catalog.Entry{
		ID: stationarityID, Paper: paper, Title: stationarityTitle, Kind: "theorem",
		Notebook: "notebooks/li2021/stationarity_meaning.ipynb",
		Cost:     catalog.Cost{Quick: "under a second", Paper: "under a second; the project ships its trials"},
	}, StationarityQuick, StationarityPaper, StationarityOf)
}

// StationarityResult holds one record a seed.
type StationarityResult struct {
	Params  StationarityParams
	Scale   string // "quick", "paper" or empty for own parameters
	records []*runs.Record
}

// StationarityOf measures Δ_λ where closed forms are known, on random problems:
// linear functions on a simplex, quadratic ones of w, non-convex ones of both;
// and near the worst vertex of a simplex.
func StationarityOf(ctx context.Context, p StationarityParams) (*StationarityResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	t := proximal.Trial{Options: p.Options, Weights: p.Weights, Lambdas: p.Lambdas, Distances: p.Distances}
	records, err := stationarityStudy.Run(ctx, study.Each(p.Seeds, func(seed uint64) study.Case {
		return study.Case{
			Params: t, Run: func(context.Context, study.Step) (trial.Result, error) { return t.Run(seed) },
		}
	}))
	if err != nil {
		return nil, err
	}
	return &StationarityResult{p, runs.Scale(ctx), records}, nil
}

func (p StationarityParams) check() error {
	var c study.Checks
	c.AtLeast("Options", p.Options, 2)
	c.AtLeast("Weights", p.Weights, 1)
	study.Ascending(&c, "Lambdas", p.Lambdas, 2, 0)
	study.Ascending(&c, "Distances", p.Distances, 2, 0)
	for _, d := range p.Distances {
		c.Expect(d < 1, "Distances has %v, want below 1", d)
	}
	checkCommon(&c, p.Seeds, p.Confidence)
	return c.Err("stationarity")
}

// Records are the keys of the trials.
func (r *StationarityResult) Records() []string { return study.Keys(r.records) }

// Figure draws Δ over λ for a linear function, numeric on the closed form, and
// Δ with the Frank–Wolfe gap near the worst vertex.
func (r *StationarityResult) Figure() plots.Figure {
	first := r.records[0]
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
	return plots.Figure{
		Name: "li2021-stationarity", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{left, right}},
		Caption: "Left: one random $f = ⟨c, θ⟩$. Right: $f = θ_1$ at $θ = (1−δ, δ)$: every vertex is a fixed point " +
			"of the entropic proximal map, also the worst." + study.ScaleNote(r.Params),
		Meta: study.Meta(stationarityTitle, r.Scale, r.Params),
	}
}

// each is a number of every record.
func (r *StationarityResult) each(value func(*runs.Record) float64) []float64 {
	var out []float64
	for _, record := range r.records {
		out = append(out, value(record))
	}
	return out
}

// Check judges the closed forms, O(ε) in the smooth unconstrained case, and that
// fixed points of the proximal map have no direction of descent.
func (r *StationarityResult) Check() []runs.Claim {
	identity := func(name, source, note string, errors []float64, tolerance float64) runs.Claim {
		c := verdict.Exactly(verdict.Claim(name, source), slices.Max(errors), 0, tolerance)
		c.Note = note
		return c
	}
	smallest := r.Params.Lambdas[0]
	smooth := verdict.Claim("[LI018] ‖∇f‖² over Δ, smooth, Euclidean, unconstrained", "Li+ 2021, Section 3.2")
	smooth.Note = "the paper says O(ε); (1+λγ)² = 9/4 at λ = 1/(2γ) is ours; random quadratics"
	return []runs.Claim{
		identity("own: eq. 7: Δ of a linear function is ⟨c, θ−p⟩/λ, relative error", stationaritySource,
			"the proximal map solved numerically against its closed form, the largest of all λ",
			r.each(numericError), 1e-6),
		identity("own: eq. 7: the two forms of Δ agree at the proximal point of a non-convex f, relative error",
			stationaritySource, "", study.Values(r.records, "two_forms"), 1e-5),
		identity("ours: Δ_λ → Var_{o∼θ}(∇_o f) as λ → 0, relative error", "ours, from eq. 7",
			fmt.Sprintf("at λ = %v; the error is of the order of λ", smallest), r.each(func(x *runs.Record) float64 {
				return math.Abs(x.Series["numeric"][0]/x.Values["variance"] - 1)
			}), 10*smallest),
		verdict.Every(smooth, study.Values(r.records, "gradient_over_delta"), 9./4),
		r.checkFixed(),
	}
}

// numericError is how far the numeric Δ of a linear function is from the closed
// form.
func numericError(x *runs.Record) float64 {
	most := 0.0
	for i, closed := range x.Series["closed"] {
		most = math.Max(most, math.Abs(x.Series["numeric"][i]/closed-1))
	}
	return most
}

// checkFixed judges the gap at the worst vertex; all seeds have the same one.
func (r *StationarityResult) checkFixed() runs.Claim {
	first := r.records[0]
	c := verdict.Claim("own: fixed points of prox have no feasible descent direction: the gap at the vertex "+
		"where Δ = 0",
		"Li+ 2021, Section 3.2")
	c.Paper, c.Ours = 0, runs.Number(first.Values["vertex_gap"])
	c.Holds = runs.Judge(first.Values["vertex_delta"] > 0 || c.Ours <= 0)
	c.Note = fmt.Sprintf("our finding: with the entropy it holds in the interior only. At the worst vertex Δ = %v; "+
		"at δ = %v from it Δ = %.2g and the gap %.3g: report the gap beside Δ",
		first.Values["vertex_delta"], r.Params.Distances[0],
		first.Series["vertex_delta"][0], first.Series["vertex_gap"][0])
	return c
}
