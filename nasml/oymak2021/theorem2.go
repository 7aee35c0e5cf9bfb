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

// Theorem2Params are the parameters of Theorem 2 and Proposition 1.
type Theorem2Params struct {
	Maps       []int     // h of Theorem 2; n_T is varied at the first one
	Trains     []int     // n_T; h is varied at the last one
	Validation []int     // n_V ≤ n_T
	Inputs     int       // d
	Features   int       // p ≥ n_T
	Decay      float64   // of the maps' singular values
	Noises     []float64 // standard deviations of label noise; the first one is 0 or small
	Candidates int
	Pool       int // the distribution is that of so many examples

	PropMaps   []int // h of Proposition 1
	Sizes      []int // n_T = n_V of Proposition 1
	FixedTrain int   // n_T where only n_V varies
	PropInputs int   // d > p, so that maps differ in what they can represent
	PropRank   int   // p
	PropFlips  float64

	Repeats    int
	Seeds      int
	Tau        float64 // τ of the bound
	Confidence float64
}

// Theorem2Quick takes a quarter of a minute.
var Theorem2Quick = Theorem2Params{
	Maps: []int{4, 2, 8}, Trains: []int{25, 50, 100}, Validation: []int{5, 10, 20, 50, 100},
	Inputs: 120, Features: 150, Decay: 1, Noises: []float64{0, 0.1}, Candidates: 40, Pool: 3000,
	PropMaps: []int{3, 9}, Sizes: []int{30, 60, 120, 240, 480, 960}, FixedTrain: 120, PropInputs: 12, PropRank: 6, PropFlips: 0.05,
	Repeats: 20, Seeds: 8, Tau: 3, Confidence: 0.95,
}

// Theorem2Paper has larger samples and more candidates.
var Theorem2Paper = func() Theorem2Params {
	p := Theorem2Quick
	p.Maps, p.Trains, p.Validation = []int{4, 2, 8, 16}, []int{50, 100, 200}, []int{5, 10, 20, 50, 100, 200}
	p.Inputs, p.Features, p.Candidates, p.Pool = 250, 300, 150, 10000
	p.PropMaps, p.Sizes = []int{3, 9, 27}, []int{30, 60, 120, 240, 480, 960, 1920, 3840}
	p.Repeats, p.Seeds = 30, 12
	return p
}()

const (
	theorem2ID     = "oymak2021/theorem2"
	theorem2Title  = "Excess risk of feature-map selection, and the train-validation bound of Proposition 1"
	theorem2Source = "Oymak+ 2021, Theorem 2"
	prop1Source    = "Oymak+ 2021, Proposition 1"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem2ID, Paper: "Oymak+ 2021", Title: theorem2Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/theorem2_selection.ipynb",
		Cost:     catalog.Cost{Quick: "a quarter of a minute on two cores", Paper: "about six minutes on two cores; the project ships its trials"},
	}, Theorem2Quick, Theorem2Paper, Theorem2)
}

//go:embed theorem2_run.go theorem1_net.go theorem1_world.go
var thm2Sources embed.FS

var thm2Code = sync.OnceValues(func() (string, error) { return runs.CodeVersion(thm2Sources, features.ExactSources) })

// thm2Point is a case with the records of its seeds.
type thm2Point struct {
	thm2Case
	vary    string // "train", "maps" or "noise"
	records []*runs.Record
}

// Theorem2Result holds the points of Theorem 2 and Proposition 1.
type Theorem2Result struct {
	Params Theorem2Params
	Scale  string // "quick", "paper" or empty for own parameters
	points []thm2Point
	keys   []string
}

// Records are the keys of the trials.
func (r *Theorem2Result) Records() []string { return r.keys }

// Theorem2 measures both sides of Theorem 2 and of Proposition 1. It is an
// error where a parameter makes no sense (a *catalog.UsageError) or (8) does
// not hold, because some Φ_α is singular.
func Theorem2(ctx context.Context, p Theorem2Params) (*Theorem2Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := thm2Code()
	if err != nil {
		return nil, err
	}
	r := &Theorem2Result{Params: p, Scale: runs.Scale(ctx), points: p.points()}
	var list []theoremTrial
	for _, point := range r.points {
		c := point.thm2Case
		for _, seed := range runs.Seeds(p.Seeds) {
			list = append(list, theoremTrial{params: c, seed: seed, run: func(ctx context.Context) (runs.Result, error) { return c.run(ctx, seed) }})
		}
	}
	records, err := computeTrials(ctx, theorem2ID, code, list)
	if err != nil {
		return nil, err
	}
	for i := range r.points {
		r.points[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	r.keys = thm1Keys(records)
	return r, nil
}

func (p Theorem2Params) points() []thm2Point {
	selection := func(vary string, h, n int, noise float64) thm2Point {
		validation := slices.DeleteFunc(slices.Clone(p.Validation), func(v int) bool { return v > n })
		return thm2Point{vary: vary, thm2Case: thm2Case{Part: "select", World: thm1World{p.Inputs, p.Features, h, p.Decay, 0}, Train: n, Noise: noise,
			Validation: validation, Candidates: p.Candidates, Pool: p.Pool, Repeats: p.Repeats}}
	}
	var all []thm2Point
	last := p.Trains[len(p.Trains)-1]
	for _, n := range p.Trains {
		all = append(all, selection("train", p.Maps[0], n, p.Noises[0]))
	}
	for _, h := range slices.Sorted(slices.Values(p.Maps)) {
		all = append(all, selection("maps", h, last, p.Noises[0]))
	}
	for _, noise := range p.Noises[1:] {
		for _, n := range p.Trains {
			all = append(all, selection("noise", p.Maps[0], n, noise))
		}
	}
	for _, h := range p.PropMaps {
		all = append(all, thm2Point{vary: "prop1", thm2Case: thm2Case{Part: "prop1", World: thm1World{p.PropInputs, p.PropRank, h, 0, p.PropFlips},
			Validation: p.Sizes, Fixed: p.FixedTrain, Candidates: p.Candidates, Repeats: p.Repeats}})
	}
	return all
}

func (p Theorem2Params) check() error {
	var c checker
	for name, list := range map[string][]int{"Maps": p.Maps, "Trains": p.Trains, "Validation": p.Validation, "PropMaps": p.PropMaps, "Sizes": p.Sizes} {
		c.expect(len(list) > 0 && distinct(list) && slices.Min(list) >= 1, "%s is %v, want different numbers from 1", name, list)
	}
	if len(p.Trains) > 0 && len(p.Validation) > 0 {
		most := slices.Max(p.Trains)
		c.expect(slices.IsSorted(p.Trains), "Trains is %v, want ascending numbers", p.Trains)
		c.expect(most <= min(p.Inputs, p.Features), "Trains has %d, want at most min(Inputs, Features) = %d, or no Φ_α has full rank and (8) does not hold", most, min(p.Inputs, p.Features))
		c.expect(slices.IsSorted(p.Validation) && slices.Min(p.Validation) <= slices.Min(p.Trains), "Validation is %v, want ascending numbers, one of at most n_T = %d", p.Validation, slices.Min(p.Trains))
	}
	p.checkProp(&c)
	c.expect(len(p.Noises) > 0 && distinct(p.Noises) && slices.Min(p.Noises) >= 0, "Noises is %v, want different numbers from 0", p.Noises)
	c.expect(p.Candidates >= 1 && p.Pool >= 2 && p.Repeats >= 1 && p.Seeds >= 1, "Candidates is %d, Pool %d, Repeats %d and Seeds %d, want at least 1, 2, 1 and 1", p.Candidates, p.Pool, p.Repeats, p.Seeds)
	c.expect(p.Tau > 0, "Tau is %v, want more than 0", p.Tau)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of theorem 2: %s", strings.Join(c, "; "))
	}
	return nil
}

// checkProp looks at Proposition 1.
func (p Theorem2Params) checkProp(c *checker) {
	if len(p.Sizes) > 0 {
		c.expect(slices.Min(p.Sizes) > p.PropRank && p.FixedTrain > p.PropRank, "Sizes is %v and FixedTrain %d, want more than PropRank = %d, or least squares has no unique solution", p.Sizes, p.FixedTrain, p.PropRank)
	}
	c.expect(p.PropRank >= 1 && p.PropRank <= p.PropInputs, "PropRank is %d and PropInputs %d, want 1 ≤ rank ≤ inputs", p.PropRank, p.PropInputs)
	c.expect(p.Decay >= 0 && p.PropFlips >= 0 && p.PropFlips <= 0.5, "Decay is %v and PropFlips %v, want 0 or more, and 0 to 0.5", p.Decay, p.PropFlips)
}

func (r *Theorem2Result) of(vary string) []thm2Point {
	var out []thm2Point
	for _, p := range r.points {
		if p.vary == vary {
			out = append(out, p)
		}
	}
	return out
}

// logM is log M of Theorem 2 with B = Γ = R = 1; M = 30 λ₀⁻²(n_T² + n_V²)‖y‖, or
// 30 λ₀⁻²(n_T + n_V)‖y‖², the two readings of the print.
func (p thm2Point) logM(record *runs.Record, n int, squares bool) float64 {
	nT, nV, y, l := float64(p.Train), float64(n), record.Values["labels"], record.Values["lambda0"]
	if squares {
		return math.Log(30 * (nT*nT + nV*nV) * y / (l * l))
	}
	return math.Log(30 * (nT + nV) * y * y / (l * l))
}

// Figure draws risk and bound over n_T, the choice over n_V, and Proposition 1.
func (r *Theorem2Result) Figure() plots.Figure {
	a := plots.Panel{Title: fmt.Sprintf("(a) Theorem 2, $h = %d$", r.Params.Maps[0]), X: plots.Axis{Label: "training samples $n_T$", Scale: plots.Log10}, Y: plots.Axis{Label: "test risk", Scale: plots.Log10}}
	for _, s := range []struct {
		label string
		vary  string
		value func(*runs.Record) float64
	}{
		{"first term", "train", func(record *runs.Record) float64 { return record.Values["term"] }},
		{"risk of the chosen $α$", "train", thm2LastRisk},
		{"first term, noise", "noise", func(record *runs.Record) float64 { return record.Values["term"] }},
		{"the same, noise", "noise", thm2LastRisk},
	} {
		var x []float64
		var means []runs.Summary
		for _, p := range r.of(s.vary) {
			if s.vary == "noise" && p.Noise != r.Params.Noises[len(r.Params.Noises)-1] {
				continue
			}
			var values []float64
			for _, record := range p.records {
				values = append(values, s.value(record))
			}
			x, means = append(x, float64(p.Train)), append(means, r.summary(values))
		}
		a.Series = append(a.Series, thm1Band(s.label, x, means))
	}
	b := plots.Panel{Title: "(b) choosing among $h$ maps", X: plots.Axis{Label: "validation samples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "risk / least risk"}}
	for _, p := range r.of("maps") {
		rows := thm1Rows(p.records, "risk")
		for i := range rows {
			rows[i] = slices.Clone(rows[i])
			for j := range rows[i] {
				rows[i][j] /= p.records[i].Values["best"]
			}
		}
		means, err := thm1Summaries(rows, r.Params.Confidence)
		if err != nil { // a stored series is finite
			panic(err)
		}
		b.Series = append(b.Series, plots.Band(fmt.Sprintf("$h = %d$", p.World.Maps), thm1Floats(p.Validation), means))
	}
	panels := [][]plots.Panel{{a, b}, r.propositionPanels()}
	for _, row := range panels {
		for i := range row {
			row[i].Legend.Position = plots.LegendInside
		}
	}
	return plots.Figure{Name: "oymak2021-theorem2", Style: plots.ICML.Text(), Panels: panels, Meta: thm1Meta(theorem2Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("Mean over %d seeds with %v %% intervals. First term: $2\\min_α (y^T K_α^{-1} y/n_T)^{1/2}$; noise: standard deviation %v. Dashed: slope −1/2.", r.Params.Seeds, 100*r.Params.Confidence, r.Params.Noises[len(r.Params.Noises)-1])}
}

// thm2LastRisk is the risk of α̂ at the largest n_V ≤ n_T.
func thm2LastRisk(record *runs.Record) float64 {
	risks := record.Series["risk"]
	return risks[len(risks)-1]
}

func (r *Theorem2Result) summary(values []float64) runs.Summary {
	m, err := runs.Summarize(values, r.Params.Confidence)
	if err != nil { // a stored value is finite
		panic(err)
	}
	return m
}

func (r *Theorem2Result) propositionPanels() []plots.Panel {
	points := r.of("prop1")
	first := points[0]
	c := plots.Panel{Title: fmt.Sprintf("(c) Proposition 1, $h = %d$", first.World.Maps), X: plots.Axis{Label: "$n_T = n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "risk above $\\min_α L(f_α^D)$", Scale: plots.Log10}}
	for _, s := range []struct{ name, label string }{{"end", "the chosen $α$"}, {"train", "one fixed $α$, eq. (5)"}, {"gap", "uniform gap"}} {
		c.Series = append(c.Series, r.curve(first, s.name, s.label))
	}
	d := plots.Panel{Title: fmt.Sprintf("(d) loss by choosing, $n_T = %d$", r.Params.FixedTrain), X: plots.Axis{Label: "validation samples $n_V$", Scale: plots.Log10}, Y: plots.Axis{Label: "risk above $\\min_α L(f_α)$", Scale: plots.Log10}}
	for _, p := range points {
		d.Series = append(d.Series, r.curve(p, "extra", fmt.Sprintf("$h = %d$", p.World.Maps)))
	}
	c.Series = append(c.Series, thm1Reference(c.Series[0], false)...)
	d.Series = append(d.Series, thm1Reference(d.Series[0], false)...)
	return []plots.Panel{c, d}
}

func (r *Theorem2Result) curve(p thm2Point, name, label string) plots.Series {
	var means []runs.Summary
	for i := range p.Validation {
		means = append(means, r.summary(thm1Column(thm1Rows(p.records, name), i)))
	}
	return thm1Band(label, thm1Floats(p.Validation), means)
}

func (r *Theorem2Result) claim(name, source string, paper, lo, hi float64, values []float64, note string) runs.Claim {
	return thm1Claim(name, source, paper, lo, hi, values, r.Params.Confidence, note)
}

// Check judges Theorem 2, then Proposition 1.
func (r *Theorem2Result) Check() []runs.Claim {
	return append(r.checkTheorem(), r.checkProposition()...)
}

func (r *Theorem2Result) checkTheorem() []runs.Claim {
	clean := append(r.of("train"), r.of("maps")...)
	over, stars, cases, selections := 0, 0, 0, 0
	constant, residual, need := 0.0, 0.0, 0.0
	var ratios []float64
	for _, p := range append(slices.Clone(clean), r.of("noise")...) {
		for _, record := range p.records {
			v := record.Values
			residual = max(residual, v["residual"]/v["labels"])
			if p.Noise == 0 {
				if cases++; v["star"] > 1+1e-6 {
					stars++
				}
			}
			for i, n := range p.Validation {
				selections++
				if record.Series["worst"][i] > v["term"] && p.Noise == 0 {
					over++
				}
				squares := float64(p.World.Maps)*p.logM(record, n, true) + r.Params.Tau
				constant = max(constant, (record.Series["worst"][i]-v["term"])/math.Sqrt(squares/float64(n)))
				need = max(need, squares)
				ratios = append(ratios, p.logM(record, n, true)/p.logM(record, n, false))
			}
		}
	}
	bound := runs.NewClaim("thm2: constant C that the data need", theorem2Source)
	bound.Ours, bound.Tolerance, bound.Holds = runs.Number(max(0, constant)), 1, runs.Judge(constant <= 1)
	bound.Note = fmt.Sprintf("largest (L(f_α̂) − first term)/√((h log M + τ)/n_V) of %d cases, with and without noise; C is unknown in the paper, 1 is ours; h log M + τ is up to %.3g, so that the theorem asks for n_V of that size", selections, need)
	interpolates := runs.NewClaim("thm2: every α interpolates the training labels", theorem2Source)
	interpolates.Paper, interpolates.Ours, interpolates.Tolerance, interpolates.Holds = 0, runs.Number(residual), 1e-8, runs.Judge(residual <= 1e-8)
	interpolates.Note = "largest ‖y − Φ_αθ_α‖/‖y‖ of any α"
	claims := []runs.Claim{
		thm1None("thm2: risk of α̂ ≤ first term alone (labels without noise)", theorem2Source, over, selections-r.noisy(), "worst of the validation samples; the theorem adds C√((h log M + τ)/n_V)"),
		bound, interpolates,
		thm1None("thm2: yᵀK⁻¹y at α* ≤ ‖θ*‖² = 1", theorem2Source, stars, cases, "labels without noise; K_α = Φ_αΦ_αᵀ"),
		r.claim("thm2-M: log M in one reading over the other", theorem2Source, 1, 0.5, 2, ratios, "(n_T² + n_V²)‖y‖ against (n_T + n_V)‖y‖²: the print is ambiguous"),
	}
	return append(claims, r.checkPar()...)
}

// noisy counts the selections with label noise.
func (r *Theorem2Result) noisy() int {
	count := 0
	for _, p := range r.points {
		if p.Part == "select" && p.Noise != 0 {
			count += len(p.records) * len(p.Validation)
		}
	}
	return count
}

func (r *Theorem2Result) checkPar() []runs.Claim {
	var par, random, few, vacuous, noisy []float64
	for _, p := range r.of("maps") {
		for _, record := range p.records {
			risks, best := record.Series["risk"], record.Values["best"]
			par = append(par, risks[len(risks)-1]/best-1)
			random = append(random, record.Values["average"]/best-risks[len(risks)-1]/best)
			few = append(few, (risks[0]-risks[len(risks)-1])/best)
		}
	}
	for _, p := range r.of("noise") {
		if p.Train == r.Params.Trains[len(r.Params.Trains)-1] {
			vacuous = append(vacuous, thm1Values(p.records, "term")...)
			for _, record := range p.records {
				noisy = append(noisy, thm2LastRisk(record)/record.Values["best"]-1)
			}
		}
	}
	claims := []runs.Claim{
		r.claim("thm2: excess of the chosen α times √n_V does not grow", theorem2Source, 0, math.Inf(-1), 0, r.scaledExcess(), "(L(f_α̂) − min L)·√n_V at the largest n_V minus that at the smallest, mean over h: the second term falls like n_V^(−1/2)"),
		r.claim("thm2-par: risk of α̂ above the least risk, relative", theorem2Source+", Section 4.1", 0, math.Inf(-1), 0.05, par, fmt.Sprintf("n_V = n_T = %d > h", r.Params.Trains[len(r.Params.Trains)-1])),
		r.claim("thm2-par: an average α has more risk than α̂", theorem2Source+", Section 4.1", 0, 0, math.Inf(1), random, "difference over the least risk: the choice matters"),
		r.claim("thm2-par: α̂ of the fewest validation samples has more risk", theorem2Source+", Section 4.1", 0, 0, math.Inf(1), few, fmt.Sprintf("n_V = %d against the most, over the least risk", r.Params.Validation[0])),
	}
	if len(vacuous) > 0 {
		claims = append(claims,
			r.claim("own: with label noise the first term exceeds the loss's range", theorem2Source, 1, 1, math.Inf(1), vacuous, "bounded loss ≤ 1: the bound says nothing"),
			r.claim("own: with label noise α̂ is still on par", theorem2Source, 0, math.Inf(-1), 0.05, noisy, "risk of α̂ above the least risk, relative, at the largest n_V"))
	}
	return claims
}

// scaledExcess is, for every seed, (L(f_α̂) − min L)·√n_V at the largest n_V minus
// that at the smallest, mean over h. A slope would need logarithms of an excess
// that is often exactly 0.
func (r *Theorem2Result) scaledExcess() []float64 {
	points := r.of("maps")
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		for _, p := range points {
			record, last := p.records[s], len(p.Validation)-1
			at := func(i int) float64 {
				return (record.Series["risk"][i] - record.Values["best"]) * math.Sqrt(float64(p.Validation[i]))
			}
			out[s] += (at(last) - at(0)) / float64(len(points))
		}
	}
	return out
}

// slopes are the slopes over n of a series, one for each seed, mean over points.
func (r *Theorem2Result) slopes(points []thm2Point, name string) []float64 {
	out := make([]float64, r.Params.Seeds)
	for s := range out {
		var x, y []float64
		for i, n := range points[0].Validation {
			sum := 0.0
			for _, p := range points {
				sum += p.records[s].Series[name][i]
			}
			if sum <= 0 {
				break
			}
			x, y = append(x, float64(n)), append(y, sum)
		}
		out[s] = thm1Slope(x, y)
	}
	return out
}

func (r *Theorem2Result) checkProposition() []runs.Claim {
	points := r.of("prop1")
	violations, cases := 0.0, 0
	growth := make([]float64, r.Params.Seeds)
	for s := range growth {
		var x, y []float64
		for _, p := range points {
			x, y = append(x, float64(p.World.Maps)), append(y, thm1Mean(p.records[s].Series["extra"]))
			violations += p.records[s].Values["violations"]
			cases += len(p.Validation) * p.Repeats
		}
		growth[s] = thm1Slope(x, y)
	}
	inf := math.Inf(-1)
	return []runs.Claim{
		r.claim("eq5: L(f_α^T) − L(f_α^D) over n_T, one α", "Oymak+ 2021, eq. (5)", -0.5, inf, -0.4, r.slopes(points, "train"), "log–log slope; squared loss is faster than the bound, about −1"),
		r.claim("prop1: risk of α̂ − min L(f_α^D) over n_T = n_V", prop1Source, -0.5, inf, -0.4, r.slopes(points, "end"), "log–log slope; squared loss is faster than the bound"),
		r.claim("prop1: uniform gap over n_V", prop1Source, -0.5, inf, -0.4, r.slopes(points, "gap"), "log–log slope; n_T grows with n_V, and f_α settles"),
		thm1None("prop1: risk of α̂ ≤ min (L(f_α^D) + C_α/√n_T) + 2 sup gap", prop1Source, int(violations), cases, "C_α the smallest that (5) allows; follows from (3), so that one violation is an error of ours"),
		r.claim("prop1-extra: loss by choosing α over n_V", prop1Source+", Section 3.2", -0.5, inf, -0.4, r.slopes(points, "extra"), fmt.Sprintf("log–log slope of L(f_α̂^T) − min L(f_α^T) at n_T = %d", r.Params.FixedTrain)),
		r.claim("prop1-extra: loss by choosing α over h", prop1Source+", Section 3.2", 0.5, inf, 0.7, growth, "log–log slope of the mean over n_V"),
	}
}
