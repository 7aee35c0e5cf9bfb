package oymak2021

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/minimizer"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Lemma2Params are the parameters of Lemma 2: random quadratics L̄(α, θ) that are strongly convex in θ, a log-sum-exp,
// and the ridge problem of Definition 2.
type Lemma2Params struct {
	Maps    []int `validate:"min=1,unique,dive,gte=1"` // h, numbers of hyperparameters
	Weights []int `validate:"min=1,unique,dive,gte=1"` // p, numbers of weights
	Cases   int   `validate:"gte=1"`                   // random functions of each kind, pair of sizes and seed

	Lambdas    []float64 `validate:"min=1,unique,dive,gte=0,lt=Inf"` // of the ridge problem
	Inputs     int       `validate:"gte=1"`                          // d, p and n_T of its maps and training sample
	Features   int       `validate:"gte=1"`
	Train      int       `validate:"gte=1"`
	Decay      float64   `validate:"gte=0"` // of the singular values of its maps
	RidgeMaps  int       `validate:"gte=1"`
	Candidates int       `validate:"gte=1"` // random α

	Seeds      int     `validate:"gte=1"`
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

var (
	// Lemma2Quick is small: of 2,250 quadratics that are convex in θ only, 1,460 violate the bound, and all of the
	// ridge problem's trials at large λ; none of the jointly convex functions does.
	Lemma2Quick = Lemma2Params{
		Maps: []int{1, 3, 8}, Weights: []int{1, 4, 16}, Cases: 50,
		Lambdas: []float64{0.01, 0.1, 1, 10}, Inputs: 20, Features: 30, Train: 10, Decay: 1, RidgeMaps: 4,
		Candidates: 60, Seeds: 5, Confidence: 0.95,
	}
	// Lemma2Paper has 100,000 functions of each kind, up to 16 hyperparameters and 64 weights. 70,400 of those that are
	// convex in θ only violate the bound, none of the jointly convex ones.
	Lemma2Paper = func() Lemma2Params {
		p := Lemma2Quick
		p.Maps, p.Weights, p.Cases, p.Seeds = []int{1, 2, 3, 8, 16}, []int{1, 2, 4, 16, 64}, 400, 10
		p.Lambdas, p.Candidates = []float64{0.001, 0.01, 0.1, 1, 10, 100}, 500
		return p
	}()
)

// Lemma2 draws the random functions and measures the Lipschitz constant of their minimizer.
var Lemma2 = lab.Declare(lab.Entry[Lemma2Params, minimizer.Case]{
	Of: ofPaper, Name: "lemma2", Kind: lab.Theorem, Source: "Lemma 2", Notebook: "lemma2_minimizer",
	Title: "Lipschitz constant of the minimizer of a strongly convex loss",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about 1.5 minutes on two cores; precomputed"},
	Quick: Lemma2Quick, Paper: Lemma2Paper,
	Code:    code.Define("oymak2021/lemma2", "oymak2021/internal/minimizer"),
	Seconds: minimizerSeconds,
	Rules: func(p Lemma2Params, c *study.Checks) {
		c.Expect(!slices.Contains(p.Lambdas, 0),
			"Lambdas must be above 0, got 0: with λ = 0 and p > n_T the loss is not strongly convex, see lemma 1")
	},
	Trials: Lemma2Params.trials,
	Draw: func(r *lemma2, f *lab.Picture) {
		p := r.Params
		f.Row(lemma2Functions(r), lemma2Ridge(r))
		f.Say("(a) Sorted over %d random functions a seed, mean over %d seeds; above the dashed line Lemma 2 is "+
			"violated.", p.Cases*len(p.Maps)*len(p.Weights), p.Seeds)
		f.Say("(b) Definition 2, which is not jointly convex.")
	},
	Claims: func(r *lemma2) []runs.Claim { return append(lemma2Claims(r), lemma2RidgeClaims(r)...) },
})

type lemma2 = lab.Result[Lemma2Params, minimizer.Case]

func (p Lemma2Params) trials() (gs lab.Groups[minimizer.Case]) {
	for _, kind := range minimizer.Kinds {
		gs.Add(kind, p.Seeds, minimizer.Case{Kind: kind, Maps: p.Maps, Weights: p.Weights, Cases: p.Cases})
	}
	for _, lambda := range p.Lambdas {
		gs.Add("ridge", p.Seeds, minimizer.Case{
			Kind: "ridge", Lambda: lambda, Train: p.Train, Candidates: p.Candidates,
			Instance: &instance.Params{Inputs: p.Inputs, Features: p.Features, Maps: p.RidgeMaps, Decay: p.Decay},
		})
	}
	return gs
}

// lemma2Functions is the ratio of the Lipschitz constant to √(L̄/μ), sorted.
func lemma2Functions(r *lemma2) plots.Panel {
	a := plots.Panel{
		Title: "(a) random functions",
		X:     plots.Axis{Label: "share of the cases"}, Y: logAxis("Lipschitz constant over $\\sqrt{L/μ}$"),
	}
	for _, s := range []struct{ kind, name, label string }{
		{"joint", "smooth", "jointly convex"},
		{"log-sum-exp", "smooth", "log-sum-exp, jointly convex"},
		{"separate", "smooth", "convex in θ only"},
		{"separate", "joint", "the same, $L$ of $(α, θ)$"},
	} {
		a.Series = append(a.Series,
			logBand(s.label, minimizer.Shares, study.Columns(r.Part(s.kind).Rows(s.name)), r.Confidence))
	}
	a.Series = append(a.Series, plots.HLine("bound", 1))
	return a
}

func lemma2Ridge(r *lemma2) plots.Panel {
	b := logLog("(b) ridge regression (6)", "$λ$", "Lipschitz constant of $θ_α$")
	gs := r.Part("ridge")
	slices.SortFunc(gs, func(a, b lab.Group[minimizer.Case]) int { return cmp.Compare(a.Trial.Lambda, b.Trial.Lambda) })
	lambdas := gs.X(func(c minimizer.Case) float64 { return c.Lambda })
	for _, s := range []struct{ name, label string }{
		{"lipschitz", "measured"}, {"smooth", "$\\sqrt{L/μ}$, Lemma 2"}, {"cross", "$\\|H_{θα}\\|/μ$"},
	} {
		b.Series = append(b.Series, logBand(s.label, lambdas, gs.Lists(s.name), r.Confidence))
	}
	return b
}

// lemma2Claims judge Lemma 2 as printed (μ-strongly convex in θ, L̄-smooth in α), and with joint convexity.
func lemma2Claims(r *lemma2) []runs.Claim {
	return []runs.Claim{
		lemma2Without(r, "[lemma2] jointly convex quadratics", "joint", "over_smooth",
			"Lipschitz constant above √(L̄/μ) with L̄ = ‖H_αα‖; by the Schur complement there can be none"),
		lemma2Without(r, "[lemma2] jointly convex log-sum-exp", "log-sum-exp", "over_smooth",
			"on random pairs, L̄ = ‖A_α‖²/2"),
		r.Claim("[lemma2] the bound is tight where jointly convex").Noting("largest ratio of a seed").
			Mean(r.Part("joint").Values("largest")).Between(1, 0.9, 1+1e-9),
		lemma2Without(r, "[lemma2] as printed: convex in θ only, L̄ of α", "separate", "over_smooth",
			"the lemma lacks an assumption: joint convexity"),
		lemma2Without(r, "[lemma2] as printed: convex in θ only, L̄ of (α, θ)", "separate", "over_joint",
			"the more generous reading of smooth, L̄ = ‖H‖"),
		counterexample(r),
		lemma2Without(r, "own: ‖H_θα‖/μ without joint convexity", "separate", "over_cross",
			"always valid: ∂θ_α = −H_θθ⁻¹H_θα"),
	}
}

func lemma2Without(r *lemma2, name, kind, over, note string) runs.Claim {
	gs := r.Part(kind)
	return verdict.None(r.Claim("%s", name).Noting("%s", note).Claim,
		int(floats.Sum(gs.Values(over))), int(floats.Sum(gs.Values("cases"))))
}

// counterexample is a function that is convex in θ only and violates the lemma.
func counterexample(r *lemma2) runs.Claim {
	example := minimizer.Example(3, 2)
	c := r.Claim("[lemma2] as printed: L̄ = (μ/2)θ² − kμαθ").Claim
	c.Paper, c.Ours = runs.Number(example.Smooth), runs.Number(example.Lipschitz)
	c.Holds = runs.Judge(example.Lipschitz <= example.Smooth)
	c.Note = "with k = 3, μ = 2: H_αα = 0, so that the bound √(L̄/μ) is 0, while θ_α = kα"
	return c
}

func lemma2RidgeClaims(r *lemma2) []runs.Claim {
	records := r.Part("ridge").Records()
	over := func(bound string) (seeds int) {
		for _, record := range records {
			if record.Values["lipschitz"] > record.Values[bound]*(1+1e-9) {
				seeds++
			}
		}
		return seeds
	}
	return []runs.Claim{
		verdict.None(r.Claim("[lemma2] applied to ridge regression (6)").
			Noting("θ_α of Definition 2 against √(L̄/μ), L̄ = sup ‖H_αα‖ over Δ at the minimizers, "+
				"μ = 2(λ + inf σ²_min), 0 for σ where p > n_T; not jointly convex").Claim,
			over("smooth"), len(records)),
		verdict.None(r.Claim("own: ridge regression (6) against sup ‖H_θα‖/μ").Noting("always valid").Claim,
			over("cross"), len(records)),
	}
}
