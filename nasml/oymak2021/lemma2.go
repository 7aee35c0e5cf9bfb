package oymak2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/runs"
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
	Inputs     int       // d, p and n_T of its world, see thm1World
	Features   int
	Train      int
	Decay      float64
	RidgeMaps  int
	Candidates int // random α

	Seeds      int
	Confidence float64
}

// Lemma2Quick takes a few seconds.
var Lemma2Quick = Lemma2Params{
	Maps: []int{1, 3, 8}, Weights: []int{1, 4, 16}, Cases: 50,
	Lambdas: []float64{0.01, 0.1, 1, 10}, Inputs: 20, Features: 30, Train: 10, Decay: 1, RidgeMaps: 4, Candidates: 60,
	Seeds: 5, Confidence: 0.95,
}

// Lemma2Paper has more cases.
var Lemma2Paper = func() Lemma2Params {
	p := Lemma2Quick
	p.Maps, p.Weights, p.Cases, p.Seeds = []int{1, 2, 3, 8, 16}, []int{1, 2, 4, 16, 64}, 400, 10
	p.Lambdas = []float64{0.001, 0.01, 0.1, 1, 10, 100}
	p.Candidates = 500
	return p
}()

const (
	lemma2ID     = "oymak2021/lemma2"
	lemma2Title  = "Lipschitz constant of the minimizer of a strongly convex loss"
	lemma2Source = "Oymak+ 2021, Lemma 2"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: lemma2ID, Paper: "Oymak+ 2021", Title: lemma2Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/lemma2_minimizer.ipynb",
		Cost:     catalog.Cost{Quick: "seconds", Paper: "about a minute on two cores; the project ships its trials"},
	}, Lemma2Quick, Lemma2Paper, Lemma2)
}

//go:embed lemma2_run.go theorem1_world.go
var lem2Sources embed.FS

var lem2Code = sync.OnceValues(func() (string, error) { return runs.CodeVersion(lem2Sources, features.ExactSources) })

// Lemma2Result holds the ratios of measured and claimed Lipschitz constants.
type Lemma2Result struct {
	Params  Lemma2Params
	Scale   string // "quick", "paper" or empty for own parameters
	kinds   map[string][]*runs.Record
	ridge   map[float64][]*runs.Record
	records []*runs.Record
}

// Records are the keys of the trials.
func (r *Lemma2Result) Records() []string { return thm1Keys(r.records) }

// Lemma2 draws the random functions and measures the Lipschitz constant of
// their minimizer. It is an error where a parameter makes no sense (a
// *catalog.UsageError).
func Lemma2(ctx context.Context, p Lemma2Params) (*Lemma2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := lem2Code()
	if err != nil {
		return nil, err
	}
	var list []theoremTrial
	var cases []lem2Case
	add := func(c lem2Case) {
		for _, seed := range runs.Seeds(p.Seeds) {
			cases = append(cases, c)
			list = append(list, theoremTrial{params: c, seed: seed, run: func(ctx context.Context) (runs.Result, error) { return c.run(ctx, seed) }})
		}
	}
	for _, kind := range lem2Kinds {
		add(lem2Case{Kind: kind, Maps: p.Maps, Weights: p.Weights, Cases: p.Cases})
	}
	for _, lambda := range p.Lambdas {
		add(lem2Case{Kind: "ridge", Lambda: lambda, Train: p.Train, Candidates: p.Candidates,
			World: &thm1World{p.Inputs, p.Features, p.RidgeMaps, p.Decay, 0}})
	}
	r := &Lemma2Result{Params: p, Scale: runs.Scale(ctx), kinds: map[string][]*runs.Record{}, ridge: map[float64][]*runs.Record{}}
	if r.records, err = computeTrials(ctx, lemma2ID, code, list); err != nil {
		return nil, err
	}
	for i, c := range cases {
		if c.Kind == "ridge" {
			r.ridge[c.Lambda] = append(r.ridge[c.Lambda], r.records[i])
		} else {
			r.kinds[c.Kind] = append(r.kinds[c.Kind], r.records[i])
		}
	}
	return r, nil
}

func (p Lemma2Params) check() error {
	var c checker
	for name, list := range map[string][]int{"Maps": p.Maps, "Weights": p.Weights} {
		c.expect(len(list) > 0 && distinct(list) && slices.Min(list) >= 1, "%s is %v, want different numbers from 1", name, list)
	}
	c.expect(p.Cases >= 1, "Cases is %d, want at least 1", p.Cases)
	c.expect(len(p.Lambdas) > 0 && distinct(p.Lambdas), "Lambdas is %v, want different penalties", p.Lambdas)
	for _, l := range p.Lambdas {
		c.expect(l > 0 && !math.IsInf(l, 0), "Lambdas has %v, want more than 0: with λ = 0 and p > n_T the loss is not strongly convex, see lemma 1", l)
	}
	c.expect(p.Inputs >= 1 && p.Features >= 1 && p.Train >= 1 && p.RidgeMaps >= 1 && p.Candidates >= 1,
		"Inputs is %d, Features %d, Train %d, RidgeMaps %d and Candidates %d, want at least 1", p.Inputs, p.Features, p.Train, p.RidgeMaps, p.Candidates)
	c.expect(p.Decay >= 0, "Decay is %v, want 0 or more", p.Decay)
	c.expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of lemma 2: %s", strings.Join(c, "; "))
	}
	return nil
}

// Figure draws the ratio of the Lipschitz constant to √(L̄/μ), sorted, and the
// ridge problem over λ.
func (r *Lemma2Result) Figure() plots.Figure {
	a := plots.Panel{Title: "(a) random functions", X: plots.Axis{Label: "share of the cases"}, Y: plots.Axis{Label: "Lipschitz constant over $(L/μ)^{1/2}$", Scale: plots.Log10}}
	for _, s := range []struct{ kind, name, label string }{
		{"joint", "smooth", "jointly convex"},
		{"log-sum-exp", "smooth", "log-sum-exp, jointly convex"},
		{"separate", "smooth", "convex in θ only"},
		{"separate", "joint", "the same, $L$ of $(α, θ)$"},
	} {
		means, err := thm1Summaries(thm1Rows(r.kinds[s.kind], s.name), r.Params.Confidence)
		if err != nil { // a stored series is finite
			panic(err)
		}
		a.Series = append(a.Series, thm1Band(s.label, lem2Shares, means))
	}
	a.Series = append(a.Series, plots.HLine("bound", 1))
	b := plots.Panel{Title: "(b) ridge regression (6)", X: plots.Axis{Label: "$λ$", Scale: plots.Log10}, Y: plots.Axis{Label: "Lipschitz constant of $θ_α$", Scale: plots.Log10}}
	for _, s := range []struct{ name, label string }{{"lipschitz", "measured"}, {"smooth", "$(L/μ)^{1/2}$, Lemma 2"}, {"cross", "$\\|H_{θα}\\|/μ$"}} {
		var x []float64
		var means []runs.Summary
		for _, lambda := range slices.Sorted(slices.Values(r.Params.Lambdas)) {
			m, err := runs.Summarize(thm1Values(r.ridge[lambda], s.name), r.Params.Confidence)
			if err != nil {
				panic(err)
			}
			x, means = append(x, lambda), append(means, m)
		}
		b.Series = append(b.Series, thm1Band(s.label, x, means))
	}
	return plots.Figure{Name: "oymak2021-lemma2", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{a, b}}, Meta: thm1Meta(lemma2Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("(a) Sorted over %d random functions a seed, mean over %d seeds; above the dashed line Lemma 2's bound is violated. (b) Definition 2, which is not jointly convex.",
			r.Params.Cases*len(r.Params.Maps)*len(r.Params.Weights), r.Params.Seeds)}
}

// Check judges Lemma 2 as printed (μ-strongly convex in θ, L̄-smooth in α), and
// with joint convexity.
func (r *Lemma2Result) Check() []runs.Claim {
	count := func(kind, name string) (violations, cases int) {
		for _, record := range r.kinds[kind] {
			violations += int(record.Values[name])
			cases += int(record.Values["cases"])
		}
		return violations, cases
	}
	none := func(name, kind, value, note string) runs.Claim {
		violations, cases := count(kind, value)
		return thm1None(name, lemma2Source, violations, cases, note)
	}
	example := lem2Example(3, 2)
	counter := runs.NewClaim("lemma2 as printed: L̄ = (μ/2)θ² − kμαθ", lemma2Source)
	counter.Paper, counter.Ours = runs.Number(example.smooth), runs.Number(example.lipschitz)
	counter.Holds = runs.Judge(example.lipschitz <= example.smooth)
	counter.Note = "with k = 3, μ = 2: H_αα = 0, so that the bound √(L̄/μ) is 0, while θ_α = kα"
	var tight []float64
	for _, record := range r.kinds["joint"] {
		tight = append(tight, record.Values["largest"])
	}
	claims := []runs.Claim{
		none("lemma2: jointly convex quadratics", "joint", "over_smooth", "Lipschitz constant above √(L̄/μ) with L̄ = ‖H_αα‖; by the Schur complement there can be none"),
		none("lemma2: jointly convex log-sum-exp", "log-sum-exp", "over_smooth", "on random pairs, L̄ = ‖A_α‖²/2"),
		thm1Claim("lemma2: the bound is tight where jointly convex", lemma2Source, 1, 0.9, 1+1e-9, tight, r.Params.Confidence, "largest ratio of a seed"),
		none("lemma2 as printed: convex in θ only, L̄ of α", "separate", "over_smooth", "the lemma lacks an assumption: joint convexity"),
		none("lemma2 as printed: convex in θ only, L̄ of (α, θ)", "separate", "over_joint", "the more generous reading of smooth, L̄ = ‖H‖"),
		counter,
		none("own: ‖H_θα‖/μ without joint convexity", "separate", "over_cross", "always valid: ∂θ_α = −H_θθ⁻¹H_θα"),
	}
	return append(claims, r.checkRidge()...)
}

func (r *Lemma2Result) checkRidge() []runs.Claim {
	over, cross, cases := 0, 0, 0
	for _, records := range r.ridge {
		for _, record := range records {
			cases++
			v := record.Values
			if v["lipschitz"] > v["smooth"]*(1+1e-9) {
				over++
			}
			if v["lipschitz"] > v["cross"]*(1+1e-9) {
				cross++
			}
		}
	}
	return []runs.Claim{
		thm1None("lemma2 applied to ridge regression (6)", lemma2Source, over, cases, "θ_α of Definition 2 against √(L̄/μ), L̄ = sup ‖H_αα‖ over Δ at the minimizers, μ = 2(λ + inf σ²_min), 0 for σ where p > n_T; not jointly convex"),
		thm1None("own: ridge regression (6) against sup ‖H_θα‖/μ", lemma2Source, cross, cases, "always valid"),
	}
}
