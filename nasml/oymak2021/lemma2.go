package oymak2021

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/oymak2021/internal/minimizer"
	"github.com/nasml/lab/nasml/oymak2021/internal/world"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Lemma2Params are the parameters of Lemma 2: random quadratics L̄(α, θ) that
// are strongly convex in θ, a log-sum-exp, and the ridge problem of
// Definition 2.
type Lemma2Params struct {
	Maps    []int // h, numbers of hyperparameters
	Weights []int // p, numbers of weights
	Cases   int   // random functions of each kind, pair of sizes and seed

	Lambdas    []float64 // of the ridge problem
	Inputs     int       // d, p and n_T of its maps and training sample
	Features   int
	Train      int
	Decay      float64 // of the singular values of its maps
	RidgeMaps  int
	Candidates int // random α

	Seeds      int
	Confidence float64
}

var (
	// Lemma2Quick takes a second on two cores. Of 2250 quadratics that are convex
	// in θ only, 1460 violate the bound, and all of the ridge problem's trials at
	// large λ; none of the jointly convex functions does.
	Lemma2Quick = Lemma2Params{
		Maps: []int{1, 3, 8}, Weights: []int{1, 4, 16}, Cases: 50,
		Lambdas: []float64{0.01, 0.1, 1, 10}, Inputs: 20, Features: 30, Train: 10, Decay: 1, RidgeMaps: 4,
		Candidates: 60, Seeds: 5, Confidence: 0.95,
	}
	// Lemma2Paper has 100,000 functions of each kind, up to 16 hyperparameters and
	// 64 weights, and takes a minute on two cores; its trials are shipped. 70,400
	// of those that are convex in θ only violate the bound, none of the jointly
	// convex ones.
	Lemma2Paper = func() Lemma2Params {
		p := Lemma2Quick
		p.Maps, p.Weights, p.Cases, p.Seeds = []int{1, 2, 3, 8, 16}, []int{1, 2, 4, 16, 64}, 400, 10
		p.Lambdas = []float64{0.001, 0.01, 0.1, 1, 10, 100}
		p.Candidates = 500
		return p
	}()
)

const (
	lemma2ID     = "oymak2021/lemma2"
	lemma2Title  = "Lipschitz constant of the minimizer of a strongly convex loss"
	lemma2Source = "Oymak+ 2021, Lemma 2"
)

var lemma2Kind = code.Define(lemma2ID, "oymak2021/internal/minimizer")

func init() {
	catalog.Register(catalog.Entry{
		ID: lemma2ID, Paper: "Oymak+ 2021", Title: lemma2Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/lemma2_minimizer.ipynb",
		Cost: catalog.Cost{
			Quick: "seconds", Paper: "about a minute on two cores; the project ships its trials",
		},
	}, Lemma2Quick, Lemma2Paper, Lemma2)
}

// Lemma2Result holds the ratios of measured and claimed Lipschitz constants.
type Lemma2Result struct {
	Params  Lemma2Params
	Scale   string // "quick", "paper" or empty for own parameters
	kinds   map[string][]*runs.Record
	ridge   map[float64][]*runs.Record
	records []*runs.Record
}

// Records are the keys of the trials.
func (r *Lemma2Result) Records() []string { return study.Keys(r.records) }

// Lemma2 draws the random functions and measures the Lipschitz constant of
// their minimizer. It is an error where a parameter makes no sense (a
// *catalog.UsageError).
func Lemma2(ctx context.Context, p Lemma2Params) (*Lemma2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, c := range p.cases() {
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: c, Label: c.Kind,
				Run: func(ctx context.Context, _ study.Step) (trial.Result, error) { return c.Run(ctx, seed) },
			}
		})...)
	}
	records, err := study.Study{ID: lemma2ID, Code: lemma2Kind, Shipped: shippedRecords}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &Lemma2Result{
		Params: p, Scale: runs.Scale(ctx), records: records,
		kinds: map[string][]*runs.Record{}, ridge: map[float64][]*runs.Record{},
	}
	for i, c := range p.cases() {
		of := records[i*p.Seeds : (i+1)*p.Seeds]
		if c.Kind == "ridge" {
			r.ridge[c.Lambda] = of
		} else {
			r.kinds[c.Kind] = of
		}
	}
	return r, nil
}

// cases are one of each kind of function, and one for each λ.
func (p Lemma2Params) cases() []minimizer.Case {
	var all []minimizer.Case
	for _, kind := range minimizer.Kinds {
		all = append(all, minimizer.Case{Kind: kind, Maps: p.Maps, Weights: p.Weights, Cases: p.Cases})
	}
	for _, lambda := range p.Lambdas {
		all = append(all, minimizer.Case{
			Kind: "ridge", Lambda: lambda, Train: p.Train, Candidates: p.Candidates,
			World: &world.World{Inputs: p.Inputs, Features: p.Features, Maps: p.RidgeMaps, Decay: p.Decay},
		})
	}
	return all
}

func (p Lemma2Params) check() error {
	var c study.Checks
	checkLists(&c, map[string][]int{"Maps": p.Maps, "Weights": p.Weights})
	checkNumbers(&c, "Lambdas", p.Lambdas)
	c.Expect(!slices.Contains(p.Lambdas, 0),
		"Lambdas has 0, want more: with λ = 0 and p > n_T the loss is not strongly convex, see lemma 1")
	for name, value := range map[string]int{
		"Cases": p.Cases, "Inputs": p.Inputs, "Features": p.Features, "Train": p.Train,
		"RidgeMaps": p.RidgeMaps, "Candidates": p.Candidates, "Seeds": p.Seeds,
	} {
		c.AtLeast(name, value, 1)
	}
	c.Expect(p.Decay >= 0, "Decay is %v, want 0 or more", p.Decay)
	c.Confidence(p.Confidence)
	return c.Err("lemma 2")
}

// Figure draws the ratio of the Lipschitz constant to √(L̄/μ), sorted, and the
// ridge problem over λ.
func (r *Lemma2Result) Figure() plots.Figure {
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
		means := meansOf(r.kinds[s.kind], s.name, r.Params.Confidence)
		a.Series = append(a.Series, logBand(s.label, minimizer.Shares, means))
	}
	a.Series = append(a.Series, plots.HLine("bound", 1))
	b := plots.Panel{Title: "(b) ridge regression (6)", X: logAxis("$λ$"), Y: logAxis("Lipschitz constant of $θ_α$")}
	lambdas := slices.Sorted(slices.Values(r.Params.Lambdas))
	for _, s := range []struct{ name, label string }{
		{"lipschitz", "measured"}, {"smooth", "$\\sqrt{L/μ}$, Lemma 2"}, {"cross", "$\\|H_{θα}\\|/μ$"},
	} {
		var means []runs.Summary
		for _, lambda := range lambdas {
			means = append(means, meanOf(study.Values(r.ridge[lambda], s.name), r.Params.Confidence))
		}
		b.Series = append(b.Series, logBand(s.label, lambdas, means))
	}
	return plots.Figure{
		Name: "oymak2021-lemma2", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{a, b}},
		Meta: study.Meta(lemma2Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("(a) Sorted over %d random functions a seed, mean over %d seeds; above the dashed line "+
			"Lemma 2's bound is violated. (b) Definition 2, which is not jointly convex.",
			r.Params.Cases*len(r.Params.Maps)*len(r.Params.Weights), r.Params.Seeds) + study.ScaleNote(r.Params),
	}
}

// Check judges Lemma 2 as printed (μ-strongly convex in θ, L̄-smooth in α), and
// with joint convexity.
func (r *Lemma2Result) Check() []runs.Claim {
	tight := overValues(study.Values(r.kinds["joint"], "largest"), r.Params.Confidence)
	return append([]runs.Claim{
		r.without("[lemma2] jointly convex quadratics", "joint", "over_smooth",
			"Lipschitz constant above √(L̄/μ) with L̄ = ‖H_αα‖; by the Schur complement there can be none"),
		r.without("[lemma2] jointly convex log-sum-exp", "log-sum-exp", "over_smooth",
			"on random pairs, L̄ = ‖A_α‖²/2"),
		judged("[lemma2] the bound is tight where jointly convex", lemma2Source, 1, 0.9, 1+1e-9, tight,
			"largest ratio of a seed"),
		r.without("[lemma2] as printed: convex in θ only, L̄ of α", "separate", "over_smooth",
			"the lemma lacks an assumption: joint convexity"),
		r.without("[lemma2] as printed: convex in θ only, L̄ of (α, θ)", "separate", "over_joint",
			"the more generous reading of smooth, L̄ = ‖H‖"),
		counterexample(),
		r.without("own: ‖H_θα‖/μ without joint convexity", "separate", "over_cross",
			"always valid: ∂θ_α = −H_θθ⁻¹H_θα"),
	}, r.checkRidge()...)
}

// without counts the random functions of a kind that violate a bound.
func (r *Lemma2Result) without(name, kind, over, note string) runs.Claim {
	violations, cases := 0, 0
	for _, record := range r.kinds[kind] {
		violations += int(record.Values[over])
		cases += int(record.Values["cases"])
	}
	return none(name, lemma2Source, violations, cases, note)
}

// counterexample is a function that is convex in θ only and violates the lemma.
func counterexample() runs.Claim {
	example := minimizer.Example(3, 2)
	c := verdict.Claim("[lemma2] as printed: L̄ = (μ/2)θ² − kμαθ", lemma2Source)
	c.Paper, c.Ours = runs.Number(example.Smooth), runs.Number(example.Lipschitz)
	c.Holds = runs.Judge(example.Lipschitz <= example.Smooth)
	c.Note = "with k = 3, μ = 2: H_αα = 0, so that the bound √(L̄/μ) is 0, while θ_α = kα"
	return c
}

// checkRidge counts the seeds and λ at which a bound is violated beyond
// rounding.
func (r *Lemma2Result) checkRidge() []runs.Claim {
	over := map[string]int{}
	cases := 0
	for _, records := range r.ridge {
		for _, record := range records {
			cases++
			for _, bound := range []string{"smooth", "cross"} {
				if record.Values["lipschitz"] > record.Values[bound]*(1+1e-9) {
					over[bound]++
				}
			}
		}
	}
	return []runs.Claim{
		none("[lemma2] applied to ridge regression (6)", lemma2Source, over["smooth"], cases,
			"θ_α of Definition 2 against √(L̄/μ), L̄ = sup ‖H_αα‖ over Δ at the minimizers, "+
				"μ = 2(λ + inf σ²_min), 0 for σ where p > n_T; not jointly convex"),
		none("own: ridge regression (6) against sup ‖H_θα‖/μ", lemma2Source, over["cross"], cases, "always valid"),
	}
}
