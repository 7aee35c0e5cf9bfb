package oymak2021

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
	"github.com/nasml/lab/nasml/oymak2021/internal/lipschitz"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Lemma1Params are the parameters of Lemma 1. One list at a time is varied around the first value of each.
type Lemma1Params struct {
	Lambdas []float64 `validate:"min=1,unique,dive,gte=0,lt=Inf"` // λ_min; 0: interpolates, needs n_T ≤ min(d, p)
	Trains  []int     `validate:"min=1,unique,dive,gte=1"`        // n_T
	Decays  []float64 `validate:"min=1,unique,dive,gte=0,lt=Inf"` // of the maps' singular values
	Maps    []int     `validate:"min=1,unique,dive,gte=1"`        // h
	Scales  []float64 `validate:"dive,gt=0,lte=1e12"`             // c of Δ → cΔ with λ = 0, which changes no f_α

	Range      float64 `validate:"gte=0,lt=Inf"`            // λ_max − λ_min
	Inputs     int     `validate:"gte=1"`                   // d
	Features   int     `validate:"gte=1"`                   // p
	Flips      float64 `validate:"gte=0,lte=0.5"`           // share of wrong labels
	Candidates int     `validate:"gte=1"`                   // random (α, λ)
	Pool       int     `validate:"gte=2"`                   // the distribution is that of so many examples
	Validation []int   `validate:"min=1,unique,dive,gte=1"` // n_V
	Repeats    int     `validate:"gte=1"`                   // validation samples a seed

	Seeds      int     `validate:"gte=1"`
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

var (
	// Lemma1Quick is small: the measured Lipschitz constant is below the lemma's in every case but Δ → cΔ with a large
	// c, which R³ does not cover and R⁴ does.
	Lemma1Quick = Lemma1Params{
		Lambdas: []float64{0.1, 0, 0.001, 0.01, 1}, Trains: []int{20, 10, 30}, Decays: []float64{1, 0, 2},
		Maps: []int{4, 2, 8}, Scales: []float64{1, 1e4, 1e8, 1e12},
		Range: 0.5, Inputs: 40, Features: 60, Flips: 0.05, Candidates: 100, Pool: 3000,
		Validation: []int{4, 25, 100, 400, 1600}, Repeats: 10, Seeds: 5, Confidence: 0.95,
	}
	// Lemma1Paper has n_T up to 160 in 200 dimensions, 16 maps and λ from 1e-4 to 10. One claim fails that holds in
	// Lemma1Quick: over the smaller λ₀ the gap grows like λ₀^−0.15, more than the bound's logarithm.
	Lemma1Paper = func() Lemma1Params {
		p := Lemma1Quick
		p.Lambdas = []float64{0.1, 0, 1e-4, 0.001, 0.01, 1, 10}
		p.Trains, p.Maps = []int{40, 10, 20, 80, 160}, []int{4, 2, 8, 16}
		p.Inputs, p.Features, p.Candidates, p.Pool = 200, 300, 400, 20000
		p.Validation, p.Repeats, p.Seeds = []int{4, 25, 100, 400, 1600, 6400}, 30, 10
		return p
	}()
)

// Lemma1 measures the Lipschitz constant of feature-map selection and the uniform gap. It returns an error if some Φ_α
// is singular at λ = 0.
var Lemma1 = lab.Declare(lab.Entry[Lemma1Params, lipschitz.Case]{
	Of: ofPaper, Name: "lemma1", Kind: lab.Theorem, Source: "Lemma 1", Notebook: "lemma1_feature_maps",
	Title: "Lipschitz constant and effective dimension of feature-map selection",
	Cost:  catalog.Cost{Quick: "seconds", Paper: "about five minutes on two cores (forecast); precomputed"},
	Quick: Lemma1Quick, Paper: Lemma1Paper,
	Code:    code.Define("oymak2021/lemma1", "oymak2021/internal/lipschitz"),
	Seconds: lipschitzSeconds,
	Rules: func(p Lemma1Params, c *study.Checks) {
		if len(p.Trains) > 0 && (len(p.Scales) > 0 || slices.Contains(p.Lambdas, 0)) {
			most := min(p.Inputs, p.Features)
			c.Expect(p.Trains[0] <= most, "λ = 0 with n_T = %d: the interpolant needs n_T ≤ min(d, p) = %d; "+
				"leave 0 out of Lambdas and Scales empty, or set Trains lower", p.Trains[0], most)
		}
	},
	Trials: Lemma1Params.trials,
	Draw:   drawLemma1,
	Claims: judgeLemma1,
})

type (
	lemma1   = lab.Result[Lemma1Params, lipschitz.Case]
	mapCases = lab.Groups[lipschitz.Case]
)

func (p Lemma1Params) trials() (gs mapCases) {
	base := lipschitz.Case{
		Instance: instance.Params{
			Inputs: p.Inputs, Features: p.Features, Maps: p.Maps[0], Decay: p.Decays[0], Flips: p.Flips,
		},
		Train: p.Trains[0], Lambda: p.Lambdas[0], Range: p.Range, Scale: 1,
		Candidates: p.Candidates, Pool: p.Pool, Validation: p.Validation, Repeats: p.Repeats,
	}
	interpolating := base
	interpolating.Lambda, interpolating.Range = 0, 0
	vary(&gs, "lambda", p.Seeds, base, p.Lambdas, func(c *lipschitz.Case) *float64 { return &c.Lambda })
	vary(&gs, "train", p.Seeds, base, p.Trains, func(c *lipschitz.Case) *int { return &c.Train })
	vary(&gs, "decay", p.Seeds, base, p.Decays, func(c *lipschitz.Case) *float64 { return &c.Instance.Decay })
	vary(&gs, "maps", p.Seeds, base, p.Maps, func(c *lipschitz.Case) *int { return &c.Instance.Maps })
	vary(&gs, "scale", p.Seeds, interpolating, p.Scales, func(c *lipschitz.Case) *float64 { return &c.Scale })
	return gs
}

// vary adds a case with each of the values of a field, in ascending order.
func vary[V cmp.Ordered](gs *mapCases, part string, seeds int, c lipschitz.Case, values []V,
	field func(*lipschitz.Case) *V) {
	for _, *field(&c) = range slices.Sorted(slices.Values(values)) {
		gs.Add(part, seeds, c)
	}
}

func drawLemma1(r *lemma1, f *lab.Picture) {
	lambdas := r.Part("lambda")
	lambda0 := study.Map(lambdas.Lists("lambda0"), func(values []float64) float64 { return r.Mean(values).Mean })
	f.Row(constantPanel(r, "(a) over $λ_0$", `$λ_0 = λ_{\min} + \inf σ^2_{\min}$`, "lambda", lambda0),
		constantPanel(r, "(b) over $n_T$", "training samples $n_T$", "train",
			r.Part("train").X(func(c lipschitz.Case) float64 { return float64(c.Train) })))
	x := study.Floats(r.Params.Validation)
	c := logLog("(c) uniform gap", "validation samples $n_V$", "sup of risk gap")
	d := plots.Panel{
		Title: "(d) $α$ and $λ$ chosen together",
		X:     logAxis("validation samples $n_V$"), Y: plots.Axis{Label: "excess risk"},
	}
	for i := 0; i < len(lambdas); i += (len(lambdas) + 3) / 4 { // at most four curves
		label := fmt.Sprintf(`$λ_{\min} = %v$`, lambdas[i].Trial.Lambda)
		c.Series = append(c.Series, logBand(label, x, columns(lambdas[i].Records, "gap"), r.Confidence))
		d.Series = append(d.Series, band(label, x, columns(lambdas[i].Records, "excess"), r.Confidence))
	}
	d.Series = append(d.Series, plots.VLine("$n_V = h + 1$", float64(r.Params.Maps[0]+1)))
	f.Row(c, d)
	f.Say("Feature-map selection with $h = %d$ maps, $B = 1$; %s. "+
		"The argument of the logarithm in Lemma 1 is divided by $3R$.",
		r.Params.Maps[0], r.Interval("band", r.Params.Seeds, "seed"))
}

func constantPanel(r *lemma1, title, label, part string, xs []float64) plots.Panel {
	p := logLog(title, label, "Lipschitz constant of $f_α$")
	for _, s := range []struct{ name, label string }{
		{"argument", "Lemma 1"}, {"derived", "own bound"}, {"lipschitz", "measured"},
	} {
		lists := r.Part(part).Lists(s.name)
		if s.name == "argument" {
			for i, g := range r.Part(part) {
				lists[i] = study.Map(g.Records, func(x *runs.Record) float64 { return perRadius(s.name)(g.Trial, x) })
			}
		}
		p.Series = append(p.Series, logBand(s.label, xs, lists, r.Confidence))
	}
	return p
}

type lemma1Bound func(c lipschitz.Case, record *runs.Record) float64

// perRadius is a value divided by C̄ = 3R: Theorem 1 has C̄L in its logarithm.
func perRadius(name string) lemma1Bound {
	return func(c lipschitz.Case, record *runs.Record) float64 { return record.Values[name] / (3 * c.Radius()) }
}

func judgeLemma1(r *lemma1) []runs.Claim {
	scales := r.Part("scale")
	fixed := r.Groups[:len(r.Groups)-len(scales)]
	derived := func(_ lipschitz.Case, record *runs.Record) float64 { return record.Values["derived"] }
	return append([]runs.Claim{
		within(r.Claim("[lemma1] Lipschitz constant ≤ argument of the logarithm / 3R").
			Noting("Theorem 1 has C̄L in its logarithm, with C̄ = 3R; α in the simplex, λ in [λ_min, λ_max]; %s",
				loose(fixed)), fixed, perRadius("argument")),
		within(r.Claim("own: Lipschitz constant ≤ our bound").Noting("term by term from f = φᵀΦᵀK⁻¹y"),
			r.Groups, derived),
		within(r.Claim("[lemma1] as printed for every R ≥ 1: Δ → cΔ at λ = 0").
			Noting("f_α does not change under α → cα, so that C̄L stays, while R³λ₀⁻² falls like 1/c"),
			scales, perRadius("argument")),
		within(r.Claim("own: with R⁴ in place of R³").
			Noting("R⁴λ₀⁻² does not change under α → cα, and is what Theorem 2 has in M"),
			scales, perRadius("repaired")),
		judgeInvariance(r, scales),
	}, judgeGaps(r)...)
}

func within(c lab.Claim, gs mapCases, bound lemma1Bound) runs.Claim {
	over := 0
	for _, g := range gs {
		for _, record := range g.Records {
			if record.Values["lipschitz"] > bound(g.Trial, record) {
				over++
			}
		}
	}
	return verdict.None(c.Claim, over, len(gs.Records()))
}

// loose says by how much the printed argument exceeds the measured constant, and which n_V it needs.
func loose(gs mapCases) string {
	least, heff := math.Inf(1), math.Inf(1)
	for _, g := range gs {
		for _, record := range g.Records {
			least = min(least, perRadius("argument")(g.Trial, record)/record.Values["lipschitz"])
			heff = min(heff, float64(g.Trial.Instance.Maps+1)*math.Log(record.Values["argument"]))
		}
	}
	return fmt.Sprintf("it exceeds what was measured by %.2g at least; h̄_eff is %.3g at least, which n_V has to "+
		"exceed", least, heff)
}

// judgeInvariance is C̄L at the largest scale over that at the smallest.
func judgeInvariance(r *lemma1, scales mapCases) runs.Claim {
	c := r.Claim("own: c·L is the same for Δ and cΔ at λ = 0")
	if len(scales) > 0 && scales[0].Trial.Instance.Maps == 1 {
		return c.Says(1).Noting("not decidable with h = 1: f does not change with α at λ = 0, so that L = 0").Claim
	}
	var ratios []float64
	if last := len(scales) - 1; last > 0 {
		constants := scales.Lists("lipschitz")
		for seed, least := range constants[0] {
			ratios = append(ratios, scales[last].Trial.Scale*constants[last][seed]/(scales[0].Trial.Scale*least))
		}
	}
	return c.Noting("largest c against the smallest; λ is fixed at 0").Mean(ratios).Between(1, 1-1e-6, 1+1e-6)
}
