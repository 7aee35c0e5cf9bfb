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

// Lemma1Params are the parameters of Lemma 1. Around a base case (the first
// value of each list) one list is varied at a time.
type Lemma1Params struct {
	Lambdas []float64 // λ_min; 0: the interpolant of minimum norm, needs n_T ≤ min(d, p)
	Trains  []int     // n_T
	Decays  []float64 // of the maps' singular values: how badly conditioned they are
	Maps    []int     // h
	Scales  []float64 // c of Δ → cΔ with λ = 0, which changes no f_α

	Range      float64 // λ_max − λ_min
	Inputs     int     // d
	Features   int     // p
	Flips      float64 // share of wrong labels
	Candidates int     // random (α, λ)
	Pool       int     // the distribution is that of so many examples
	Validation []int   // n_V
	Repeats    int     // validation samples a seed

	Seeds      int
	Confidence float64
}

// Lemma1Quick takes some seconds.
var Lemma1Quick = Lemma1Params{
	Lambdas: []float64{0.1, 0, 0.001, 0.01, 1}, Trains: []int{20, 10, 30}, Decays: []float64{1, 0, 2}, Maps: []int{4, 2, 8},
	Scales: []float64{1, 1e4, 1e8, 1e12},
	Range:  0.5, Inputs: 40, Features: 60, Flips: 0.05, Candidates: 100, Pool: 3000,
	Validation: []int{4, 25, 100, 400, 1600}, Repeats: 10, Seeds: 5, Confidence: 0.95,
}

// Lemma1Paper has more of everything.
var Lemma1Paper = func() Lemma1Params {
	p := Lemma1Quick
	p.Lambdas = []float64{0.1, 0, 1e-4, 0.001, 0.01, 1, 10}
	p.Trains, p.Maps = []int{40, 10, 20, 80, 160}, []int{4, 2, 8, 16}
	p.Inputs, p.Features = 200, 300
	p.Candidates, p.Pool, p.Validation, p.Repeats, p.Seeds = 400, 20000, []int{4, 25, 100, 400, 1600, 6400}, 30, 10
	return p
}()

const (
	lemma1ID     = "oymak2021/lemma1"
	lemma1Title  = "Lipschitz constant and effective dimension of feature-map selection"
	lemma1Source = "Oymak+ 2021, Lemma 1"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: lemma1ID, Paper: "Oymak+ 2021", Title: lemma1Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/lemma1_feature_maps.ipynb",
		Cost:     catalog.Cost{Quick: "some seconds on two cores", Paper: "about five minutes on two cores; the project ships its trials"},
	}, Lemma1Quick, Lemma1Paper, Lemma1)
}

//go:embed lemma1_run.go theorem1_net.go theorem1_world.go
var lem1Sources embed.FS

var lem1Code = sync.OnceValues(func() (string, error) { return runs.CodeVersion(lem1Sources, features.ExactSources) })

// lem1Point is a case with the records of its seeds.
type lem1Point struct {
	lem1Case
	vary    string // the list that it belongs to
	records []*runs.Record
}

// Lemma1Result holds the points of Lemma 1.
type Lemma1Result struct {
	Params Lemma1Params
	Scale  string // "quick", "paper" or empty for own parameters
	points []lem1Point
	keys   []string
}

// Records are the keys of the trials.
func (r *Lemma1Result) Records() []string { return r.keys }

// Lemma1 measures the Lipschitz constant of feature-map selection and the
// uniform gap. It is an error where a parameter makes no sense (a
// *catalog.UsageError) or some Φ_α is singular at λ = 0.
func Lemma1(ctx context.Context, p Lemma1Params) (*Lemma1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := lem1Code()
	if err != nil {
		return nil, err
	}
	r := &Lemma1Result{Params: p, Scale: runs.Scale(ctx), points: p.points()}
	var list []theoremTrial
	for _, point := range r.points {
		c := point.lem1Case
		for _, seed := range runs.Seeds(p.Seeds) {
			list = append(list, theoremTrial{params: c, seed: seed, run: func(ctx context.Context) (runs.Result, error) { return c.run(ctx, seed) }})
		}
	}
	records, err := computeTrials(ctx, lemma1ID, code, list)
	if err != nil {
		return nil, err
	}
	for i := range r.points {
		r.points[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	r.keys = thm1Keys(records)
	return r, nil
}

// points lists the cases of every list.
func (p Lemma1Params) points() []lem1Point {
	base := lem1Case{
		World: thm1World{p.Inputs, p.Features, p.Maps[0], p.Decays[0], p.Flips}, Train: p.Trains[0], Lambda: p.Lambdas[0], Range: p.Range,
		Scale: 1, Candidates: p.Candidates, Pool: p.Pool, Validation: p.Validation, Repeats: p.Repeats,
	}
	var all []lem1Point
	add := func(vary string, change func(*lem1Case)) {
		c := base
		change(&c)
		all = append(all, lem1Point{lem1Case: c, vary: vary})
	}
	for _, lambda := range slices.Sorted(slices.Values(p.Lambdas)) {
		add("lambda", func(c *lem1Case) { c.Lambda = lambda })
	}
	for _, n := range slices.Sorted(slices.Values(p.Trains)) {
		add("train", func(c *lem1Case) { c.Train = n })
	}
	for _, decay := range slices.Sorted(slices.Values(p.Decays)) {
		add("decay", func(c *lem1Case) { c.World.Decay = decay })
	}
	for _, h := range slices.Sorted(slices.Values(p.Maps)) {
		add("maps", func(c *lem1Case) { c.World.Maps = h })
	}
	for _, scale := range slices.Sorted(slices.Values(p.Scales)) {
		add("scale", func(c *lem1Case) { c.Scale, c.Lambda, c.Range = scale, 0, 0 })
	}
	return all
}

func (p Lemma1Params) check() error {
	var c checker
	c.expect(len(p.Lambdas) > 0 && distinct(p.Lambdas) && slices.Min(p.Lambdas) >= 0, "Lambdas is %v, want different numbers from 0", p.Lambdas)
	c.expect(len(p.Decays) > 0 && distinct(p.Decays) && slices.Min(p.Decays) >= 0, "Decays is %v, want different numbers from 0", p.Decays)
	for name, list := range map[string][]int{"Trains": p.Trains, "Maps": p.Maps, "Validation": p.Validation} {
		c.expect(len(list) > 0 && distinct(list) && slices.Min(list) >= 1, "%s is %v, want different numbers from 1", name, list)
	}
	for _, s := range p.Scales {
		c.expect(s > 0 && s <= 1e12, "Scales has %v, want more than 0 and at most 1e12", s)
	}
	p.checkSizes(&c)
	if len(c) > 0 {
		return catalog.Usagef("parameters of lemma 1: %s", strings.Join(c, "; "))
	}
	return nil
}

// checkSizes looks at all but the lists.
func (p Lemma1Params) checkSizes(c *checker) {
	c.expect(p.Inputs >= 1 && p.Features >= 1, "Inputs is %d and Features %d, want at least 1", p.Inputs, p.Features)
	if len(p.Trains) > 0 && (len(p.Scales) > 0 || slices.Contains(p.Lambdas, 0)) {
		c.expect(p.Trains[0] <= min(p.Inputs, p.Features), "λ = 0 with n_T = %d: the interpolant needs n_T ≤ min(d, p) = %d; leave 0 out of Lambdas and Scales empty, or set Trains lower", p.Trains[0], min(p.Inputs, p.Features))
	}
	c.expect(p.Range >= 0 && !math.IsInf(p.Range, 0), "Range is %v, want 0 or more", p.Range)
	c.expect(p.Flips >= 0 && p.Flips <= 0.5, "Flips is %v, want 0 to 0.5", p.Flips)
	c.expect(p.Candidates >= 1 && p.Pool >= 2 && p.Repeats >= 1, "Candidates is %d, Pool %d and Repeats %d, want at least 1, 2 and 1", p.Candidates, p.Pool, p.Repeats)
	c.expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
}

func (r *Lemma1Result) of(vary string) []lem1Point {
	var out []lem1Point
	for _, p := range r.points {
		if p.vary == vary {
			out = append(out, p)
		}
	}
	return out
}

// Figure draws the Lipschitz constant with its bounds, the gap and the excess
// risk of choosing α and λ together.
func (r *Lemma1Result) Figure() plots.Figure {
	a := r.constants("(a) over $λ_0$", `$λ_0 = λ_{\min} + \inf σ^2_{\min}$`, r.of("lambda"), func(p lem1Point) float64 { return thm1Mean(thm1Values(p.records, "lambda0")) })
	b := r.constants("(b) over $n_T$", "training samples $n_T$", r.of("train"), func(p lem1Point) float64 { return float64(p.Train) })
	c := plots.Panel{Title: "(c) uniform gap", X: plots.Axis{Label: "validation samples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "sup of risk gap", Scale: plots.Log10}}
	d := plots.Panel{Title: "(d) $α$ and $λ$ chosen together", X: plots.Axis{Label: "validation samples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "excess risk"}}
	lambdas := r.of("lambda")
	for i := 0; i < len(lambdas); i += (len(lambdas) + 3) / 4 { // at most four curves
		p := lambdas[i]
		label := fmt.Sprintf(`$λ_{\min} = %v$`, p.Lambda)
		c.Series = append(c.Series, thm1Band(label, thm1Floats(p.Validation), r.means(p, "gap")))
		d.Series = append(d.Series, plots.Band(label, thm1Floats(p.Validation), r.means(p, "excess")))
	}
	d.Series = append(d.Series, plots.VLine("$n_V = h + 1$", float64(r.Params.Maps[0]+1)))
	return plots.Figure{Name: "oymak2021-lemma1", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{a, b}, {c, d}}, Meta: thm1Meta(lemma1Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("Feature-map selection with $h = %d$ maps, $B = 1$; mean over %d seeds with %v %% intervals. The argument of the logarithm in Lemma 1 is divided by $3R$.", r.Params.Maps[0], r.Params.Seeds, 100*r.Params.Confidence)}
}

func (r *Lemma1Result) means(p lem1Point, name string) []runs.Summary {
	means, err := thm1Summaries(thm1Rows(p.records, name), r.Params.Confidence)
	if err != nil { // a stored series is finite
		panic(err)
	}
	return means
}

// constants is a panel of the measured Lipschitz constant and its bounds.
func (r *Lemma1Result) constants(title, label string, points []lem1Point, at func(lem1Point) float64) plots.Panel {
	p := plots.Panel{Title: title, X: plots.Axis{Label: label, Scale: plots.Log10}, Y: plots.Axis{Label: "Lipschitz constant of $f_α$", Scale: plots.Log10}}
	for _, s := range []struct{ name, label string }{{"argument", "Lemma 1"}, {"derived", "own bound"}, {"lipschitz", "measured"}} {
		var x []float64
		var means []runs.Summary
		for _, point := range points {
			values := thm1Values(point.records, s.name)
			if s.name == "argument" {
				for i := range values {
					values[i] /= 3 * point.radius()
				}
			}
			m, err := runs.Summarize(values, r.Params.Confidence)
			if err != nil {
				panic(err)
			}
			x, means = append(x, at(point)), append(means, m)
		}
		p.Series = append(p.Series, thm1Band(s.label, x, means))
	}
	return p
}

// over counts the records whose Lipschitz constant is above a bound.
func lem1Over(points []lem1Point, bound func(lem1Point, *runs.Record) float64) (over, cases int) {
	for _, p := range points {
		for _, record := range p.records {
			cases++
			if record.Values["lipschitz"] > bound(p, record) {
				over++
			}
		}
	}
	return over, cases
}

// Check judges Lemma 1 and the remarks on it.
func (r *Lemma1Result) Check() []runs.Claim {
	fixed := slices.DeleteFunc(slices.Clone(r.points), func(p lem1Point) bool { return p.vary == "scale" })
	printed := func(p lem1Point, record *runs.Record) float64 { return record.Values["argument"] / (3 * p.radius()) }
	repaired := func(p lem1Point, record *runs.Record) float64 { return record.Values["repaired"] / (3 * p.radius()) }
	derived := func(_ lem1Point, record *runs.Record) float64 { return record.Values["derived"] }
	count := func(name string, points []lem1Point, bound func(lem1Point, *runs.Record) float64, note string) runs.Claim {
		over, cases := lem1Over(points, bound)
		return thm1None(name, lemma1Source, over, cases, note)
	}
	claims := []runs.Claim{
		count("lemma1: Lipschitz constant ≤ argument of the logarithm / 3R", fixed, printed, "Theorem 1 has C̄L in its logarithm, with C̄ = 3R; α in the simplex, λ in [λ_min, λ_max]; "+r.loose(fixed)),
		count("own: Lipschitz constant ≤ our bound", r.points, derived, "term by term from f = φᵀΦᵀK⁻¹y"),
		count("lemma1 as printed for every R ≥ 1: Δ → cΔ at λ = 0", r.of("scale"), printed, "f_α does not change under α → cα, so that C̄L stays, while R³λ₀⁻² falls like 1/c"),
		count("own: with R⁴ in place of R³", r.of("scale"), repaired, "R⁴λ₀⁻² does not change under α → cα, and is what Theorem 2 has in M"),
		r.checkInvariance(),
	}
	return append(claims, r.checkGaps()...)
}

// loose says by how much the printed argument exceeds what was measured, and
// which n_V it asks for.
func (r *Lemma1Result) loose(points []lem1Point) string {
	least, heff := math.Inf(1), math.Inf(1)
	for _, p := range points {
		for _, record := range p.records {
			least = min(least, record.Values["argument"]/(3*p.radius())/record.Values["lipschitz"])
			heff = min(heff, float64(p.World.Maps+1)*math.Log(record.Values["argument"]))
		}
	}
	return fmt.Sprintf("it exceeds what was measured by %.2g at least; h̄_eff is %.3g at least, which n_V has to exceed", least, heff)
}

// checkInvariance is C̄L at the largest scale over that at the smallest.
func (r *Lemma1Result) checkInvariance() runs.Claim {
	points := r.of("scale")
	var values []float64
	if len(points) > 1 {
		first, last := points[0], points[len(points)-1]
		for s := range first.records {
			values = append(values, last.Scale*last.records[s].Values["lipschitz"]/(first.Scale*first.records[s].Values["lipschitz"]))
		}
	}
	const name = "own: c·L is the same for Δ and cΔ at λ = 0"
	if len(points) > 0 && points[0].World.Maps == 1 {
		c := thm1NewClaim(name, lemma1Source)
		c.Paper, c.Note = 1, "not decidable with h = 1: f does not change with α at λ = 0, so that L = 0"
		return c
	}
	return thm1Claim(name, lemma1Source, 1, 1-1e-6, 1+1e-6, values, r.Params.Confidence,
		"largest c against the smallest; λ is fixed at 0")
}

func (r *Lemma1Result) checkGaps() []runs.Claim {
	inf := math.Inf(-1)
	claim := func(name, source string, paper, lo, hi float64, values []float64, note string) runs.Claim {
		return thm1Claim(name, lemma1Source+source, paper, lo, hi, values, r.Params.Confidence, note)
	}
	points := r.of("lambda")
	seeds := r.Params.Seeds
	decay, growth, excess, few, order := make([]float64, seeds), make([]float64, seeds), make([]float64, seeds), make([]float64, seeds), make([]float64, seeds)
	whole, bound := make([]float64, seeds), make([]float64, seeds)
	last := len(r.Params.Validation) - 1
	for s := range seeds {
		var slopes, l0, gaps, drop, logs []float64
		var mean, early float64
		for _, p := range points {
			record := p.records[s]
			var x, y []float64
			for i, n := range p.Validation {
				if n > p.World.Maps+1 {
					x, y = append(x, float64(n)), append(y, record.Series["gap"][i])
				}
			}
			slopes = append(slopes, thm1Slope(x, y))
			l0, gaps = append(l0, 1/record.Values["lambda0"]), append(gaps, record.Series["gap"][last])
			logs = append(logs, math.Sqrt(math.Log(record.Values["argument"]))) // the bound is √h̄_eff times what λ₀ does not change
			early, mean = early+record.Series["excess"][0], mean+record.Series["excess"][last]
			drop = append(drop, record.Series["gap"][last])
		}
		small := (len(l0) + 1) / 2 // λ₀ → 0; a large λ shrinks f_α and with it what the gap is a mean of
		decay[s], growth[s], whole[s] = thm1Mean(slopes), thm1Slope(l0[:small], gaps[:small]), thm1Slope(l0, gaps)
		bound[s] = thm1Slope(l0[:small], logs[:small])
		few[s], excess[s] = early/float64(len(points)), mean/float64(len(points))
		order[s] = drop[0] - drop[len(drop)-1]
	}
	drops := make([]float64, seeds)
	for s := range drops {
		drops[s] = few[s] - excess[s]
	}
	return []runs.Claim{
		claim("lemma1: gap over n_V", "", -0.5, inf, -0.4, decay, "log–log slope for n_V > h+1, mean over λ_min; ramp loss, bounded and 1-Lipschitz"),
		claim("lemma1-lambda0: gap over 1/λ₀", ", Section 4.1", 0, inf, 0.1, growth,
			fmt.Sprintf("log–log slope at the largest n_V over the smaller half of λ_min, where the bound's own is %.2g; over all of them, where a large λ also shrinks f_α and its loss's variance, it is %.2g", thm1Mean(bound), thm1Mean(whole))),
		claim("lemma1-joint: excess risk of choosing α and λ together", ", Section 4.1", 0, inf, 0.05, excess, fmt.Sprintf("at n_V = %d", r.Params.Validation[last])),
		claim(fmt.Sprintf("lemma1-joint: it was larger at n_V = %d", r.Params.Validation[0]), ", Section 4.1", 0, 0, math.Inf(1), drops, "difference of the excess risks; h + 1 hyperparameters need n_V > h + 1"),
		claim("lemma1-ridge-order: smaller ridge, larger gap", ", Section 7b", 0, 0, math.Inf(1), order, "gap at the smallest λ_min minus that at the largest, largest n_V"),
	}
}
