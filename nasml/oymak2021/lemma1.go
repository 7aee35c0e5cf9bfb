package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/oymak2021/internal/lipschitz"
	"github.com/nasml/lab/nasml/oymak2021/internal/world"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
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

var (
	// Lemma1Quick takes two seconds on two cores. The measured Lipschitz constant
	// is below the lemma's in every case but Δ → cΔ with a large c, which R³ does
	// not cover and R⁴ does.
	Lemma1Quick = Lemma1Params{
		Lambdas: []float64{0.1, 0, 0.001, 0.01, 1}, Trains: []int{20, 10, 30}, Decays: []float64{1, 0, 2},
		Maps: []int{4, 2, 8}, Scales: []float64{1, 1e4, 1e8, 1e12},
		Range: 0.5, Inputs: 40, Features: 60, Flips: 0.05, Candidates: 100, Pool: 3000,
		Validation: []int{4, 25, 100, 400, 1600}, Repeats: 10, Seeds: 5, Confidence: 0.95,
	}
	// Lemma1Paper has n_T up to 160 in 200 dimensions, 16 maps and λ from 1e-4 to
	// 10, and takes eight minutes on two cores; its trials are shipped. One claim
	// fails that holds in Lemma1Quick: over the smaller λ₀ the gap grows like
	// λ₀^−0.15, more than the bound's logarithm.
	Lemma1Paper = func() Lemma1Params {
		p := Lemma1Quick
		p.Lambdas = []float64{0.1, 0, 1e-4, 0.001, 0.01, 1, 10}
		p.Trains, p.Maps = []int{40, 10, 20, 80, 160}, []int{4, 2, 8, 16}
		p.Inputs, p.Features, p.Candidates, p.Pool = 200, 300, 400, 20000
		p.Validation, p.Repeats, p.Seeds = []int{4, 25, 100, 400, 1600, 6400}, 30, 10
		return p
	}()
)

const (
	lemma1ID     = "oymak2021/lemma1"
	lemma1Title  = "Lipschitz constant and effective dimension of feature-map selection"
	lemma1Source = "Oymak+ 2021, Lemma 1"
)

var lemma1Kind = code.Define(lemma1ID, "oymak2021/internal/lipschitz")

func init() {
	catalog.Register(catalog.Entry{
		ID: lemma1ID, Paper: "Oymak+ 2021", Title: lemma1Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/lemma1_feature_maps.ipynb",
		Cost: catalog.Cost{
			Quick: "seconds", Paper: "about eight minutes on two cores; the project ships its trials",
		},
	}, Lemma1Quick, Lemma1Paper, Lemma1)
}

// lemma1Point is a case with the records of its seeds.
type lemma1Point struct {
	lipschitz.Case
	vary    string // the list that it belongs to
	records []*runs.Record
}

// Lemma1Result holds the points of Lemma 1.
type Lemma1Result struct {
	Params Lemma1Params
	Scale  string // "quick", "paper" or empty for own parameters
	points []lemma1Point
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
	r := &Lemma1Result{Params: p, Scale: runs.Scale(ctx), points: p.points()}
	var cases []study.Case
	for _, point := range r.points {
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{Params: point.Case, Run: func(ctx context.Context, _ study.Step) (trial.Result, error) {
				return point.Run(ctx, seed)
			}}
		})...)
	}
	records, err := study.Study{ID: lemma1ID, Code: lemma1Kind, Shipped: shippedRecords}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	for i := range r.points {
		r.points[i].records = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	r.keys = study.Keys(records)
	return r, nil
}

// points lists the cases of every list.
func (p Lemma1Params) points() []lemma1Point {
	base := lipschitz.Case{
		World: world.World{Inputs: p.Inputs, Features: p.Features, Maps: p.Maps[0], Decay: p.Decays[0], Flips: p.Flips},
		Train: p.Trains[0], Lambda: p.Lambdas[0], Range: p.Range, Scale: 1,
		Candidates: p.Candidates, Pool: p.Pool, Validation: p.Validation, Repeats: p.Repeats,
	}
	var all []lemma1Point
	add := func(vary string, c lipschitz.Case) { all = append(all, lemma1Point{Case: c, vary: vary}) }
	c := base
	for _, c.Lambda = range slices.Sorted(slices.Values(p.Lambdas)) {
		add("lambda", c)
	}
	c = base
	for _, c.Train = range slices.Sorted(slices.Values(p.Trains)) {
		add("train", c)
	}
	c = base
	for _, c.World.Decay = range slices.Sorted(slices.Values(p.Decays)) {
		add("decay", c)
	}
	c = base
	for _, c.World.Maps = range slices.Sorted(slices.Values(p.Maps)) {
		add("maps", c)
	}
	c = base
	c.Lambda, c.Range = 0, 0
	for _, c.Scale = range slices.Sorted(slices.Values(p.Scales)) {
		add("scale", c)
	}
	return all
}

func (p Lemma1Params) check() error {
	var c study.Checks
	checkNumbers(&c, "Lambdas", p.Lambdas)
	checkNumbers(&c, "Decays", p.Decays)
	checkLists(&c, map[string][]int{"Trains": p.Trains, "Maps": p.Maps, "Validation": p.Validation})
	for _, s := range p.Scales {
		c.Expect(s > 0 && s <= 1e12, "Scales has %v, want more than 0 and at most 1e12", s)
	}
	for name, value := range map[string]int{
		"Inputs": p.Inputs, "Features": p.Features, "Candidates": p.Candidates, "Repeats": p.Repeats, "Seeds": p.Seeds,
	} {
		c.AtLeast(name, value, 1)
	}
	c.AtLeast("Pool", p.Pool, 2)
	if len(p.Trains) > 0 && (len(p.Scales) > 0 || slices.Contains(p.Lambdas, 0)) {
		most := min(p.Inputs, p.Features)
		c.Expect(p.Trains[0] <= most, "λ = 0 with n_T = %d: the interpolant needs n_T ≤ min(d, p) = %d; "+
			"leave 0 out of Lambdas and Scales empty, or set Trains lower", p.Trains[0], most)
	}
	c.Expect(p.Range >= 0 && !math.IsInf(p.Range, 0), "Range is %v, want 0 or more", p.Range)
	c.Expect(p.Flips >= 0 && p.Flips <= 0.5, "Flips is %v, want 0 to 0.5", p.Flips)
	c.Confidence(p.Confidence)
	return c.Err("lemma 1")
}

func (r *Lemma1Result) of(vary string) []lemma1Point {
	return slices.DeleteFunc(slices.Clone(r.points), func(p lemma1Point) bool { return p.vary != vary })
}

// Figure draws the Lipschitz constant with its bounds, the gap and the excess
// risk of choosing α and λ together.
func (r *Lemma1Result) Figure() plots.Figure {
	a := r.constants("(a) over $λ_0$", `$λ_0 = λ_{\min} + \inf σ^2_{\min}$`, r.of("lambda"),
		func(p lemma1Point) float64 {
			return meanOf(study.Values(p.records, "lambda0"), r.Params.Confidence).Mean
		})
	b := r.constants("(b) over $n_T$", "training samples $n_T$", r.of("train"),
		func(p lemma1Point) float64 { return float64(p.Train) })
	c := plots.Panel{Title: "(c) uniform gap", X: logAxis("validation samples $n_V$"), Y: logAxis("sup of risk gap")}
	d := plots.Panel{
		Title: "(d) $α$ and $λ$ chosen together",
		X:     logAxis("validation samples $n_V$"), Y: plots.Axis{Label: "excess risk"},
	}
	lambdas := r.of("lambda")
	for i := 0; i < len(lambdas); i += (len(lambdas) + 3) / 4 { // at most four curves
		p := lambdas[i]
		label, x := fmt.Sprintf(`$λ_{\min} = %v$`, p.Lambda), study.Floats(p.Validation)
		c.Series = append(c.Series, logBand(label, x, meansOf(p.records, "gap", r.Params.Confidence)))
		d.Series = append(d.Series, plots.Band(label, x, meansOf(p.records, "excess", r.Params.Confidence)))
	}
	d.Series = append(d.Series, plots.VLine("$n_V = h + 1$", float64(r.Params.Maps[0]+1)))
	return plots.Figure{
		Name: "oymak2021-lemma1", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{a, b}, {c, d}},
		Meta: study.Meta(lemma1Title, r.Scale, r.Params),
		Caption: fmt.Sprintf("Feature-map selection with $h = %d$ maps, $B = 1$; mean over %d seeds with %v %% "+
			"intervals. "+
			"The argument of the logarithm in Lemma 1 is divided by $3R$.",
			r.Params.Maps[0], r.Params.Seeds, 100*r.Params.Confidence) + study.ScaleNote(r.Params),
	}
}

// constants is a panel of the measured Lipschitz constant and its bounds.
func (r *Lemma1Result) constants(title, label string, points []lemma1Point, at func(lemma1Point) float64) plots.Panel {
	p := plots.Panel{Title: title, X: logAxis(label), Y: logAxis("Lipschitz constant of $f_α$")}
	for _, s := range []struct{ name, label string }{
		{"argument", "Lemma 1"}, {"derived", "own bound"}, {"lipschitz", "measured"},
	} {
		var x []float64
		var means []runs.Summary
		for _, point := range points {
			values := study.Values(point.records, s.name)
			if s.name == "argument" {
				for i := range values {
					values[i] /= 3 * point.Radius()
				}
			}
			x, means = append(x, at(point)), append(means, meanOf(values, r.Params.Confidence))
		}
		p.Series = append(p.Series, logBand(s.label, x, means))
	}
	return p
}

// lemma1Bound is what a record's Lipschitz constant should not exceed.
type lemma1Bound func(p lemma1Point, record *runs.Record) float64

// perRadius is a value divided by C̄ = 3R: Theorem 1 has C̄L in its logarithm.
func perRadius(name string) lemma1Bound {
	return func(p lemma1Point, record *runs.Record) float64 { return record.Values[name] / (3 * p.Radius()) }
}

// Check judges Lemma 1 and the remarks on it.
func (r *Lemma1Result) Check() []runs.Claim {
	fixed := slices.DeleteFunc(slices.Clone(r.points), func(p lemma1Point) bool { return p.vary == "scale" })
	derived := func(_ lemma1Point, record *runs.Record) float64 { return record.Values["derived"] }
	return append([]runs.Claim{
		bounded("[lemma1] Lipschitz constant ≤ argument of the logarithm / 3R", fixed, perRadius("argument"),
			"Theorem 1 has C̄L in its logarithm, with C̄ = 3R; α in the simplex, λ in [λ_min, λ_max]; "+loose(fixed)),
		bounded("own: Lipschitz constant ≤ our bound", r.points, derived, "term by term from f = φᵀΦᵀK⁻¹y"),
		bounded("[lemma1] as printed for every R ≥ 1: Δ → cΔ at λ = 0", r.of("scale"), perRadius("argument"),
			"f_α does not change under α → cα, so that C̄L stays, while R³λ₀⁻² falls like 1/c"),
		bounded("own: with R⁴ in place of R³", r.of("scale"), perRadius("repaired"),
			"R⁴λ₀⁻² does not change under α → cα, and is what Theorem 2 has in M"),
		r.checkInvariance(),
	}, r.checkGaps()...)
}

// bounded counts the records whose Lipschitz constant is above a bound.
func bounded(name string, points []lemma1Point, bound lemma1Bound, note string) runs.Claim {
	over, cases := 0, 0
	for _, p := range points {
		for _, record := range p.records {
			cases++
			if record.Values["lipschitz"] > bound(p, record) {
				over++
			}
		}
	}
	return none(name, lemma1Source, over, cases, note)
}

// loose says by how much the printed argument exceeds what was measured, and
// which n_V it asks for.
func loose(points []lemma1Point) string {
	least, heff := math.Inf(1), math.Inf(1)
	for _, p := range points {
		for _, record := range p.records {
			least = min(least, perRadius("argument")(p, record)/record.Values["lipschitz"])
			heff = min(heff, float64(p.World.Maps+1)*math.Log(record.Values["argument"]))
		}
	}
	return fmt.Sprintf("it exceeds what was measured by %.2g at least; h̄_eff is %.3g at least, which n_V has to "+
		"exceed", least, heff)
}

// checkInvariance is C̄L at the largest scale over that at the smallest.
func (r *Lemma1Result) checkInvariance() runs.Claim {
	const name = "own: c·L is the same for Δ and cΔ at λ = 0"
	points := r.of("scale")
	var values []float64
	if len(points) > 1 {
		first, last := points[0], points[len(points)-1]
		for s := range first.records {
			least := first.Scale * first.records[s].Values["lipschitz"]
			values = append(values, last.Scale*last.records[s].Values["lipschitz"]/least)
		}
	}
	if len(points) > 0 && points[0].World.Maps == 1 {
		c := verdict.Claim(name, lemma1Source)
		c.Paper, c.Note = 1, "not decidable with h = 1: f does not change with α at λ = 0, so that L = 0"
		return c
	}
	return judged(name, lemma1Source, 1, 1-1e-6, 1+1e-6, overValues(values, r.Params.Confidence),
		"largest c against the smallest; λ is fixed at 0")
}

// checkGaps judges the uniform gap and the excess risk of all λ_min.
func (r *Lemma1Result) checkGaps() []runs.Claim {
	inf := math.Inf(1)
	sizes := r.Params.Validation
	first, last := sizes[0], sizes[len(sizes)-1]
	over := func(of func(seed int) (float64, error)) estimate {
		return overSeeds(r.Params.Seeds, r.Params.Confidence, of)
	}
	return []runs.Claim{
		judged("[lemma1] gap over n_V", lemma1Source, -0.5, -inf, -0.4, over(r.decay),
			"log–log slope for n_V > h+1, mean over λ_min; ramp loss, bounded and 1-Lipschitz"),
		judged("[lemma1-lambda0] gap over 1/λ₀", lemma1Source+", Section 4.1", 0, -inf, 0.1, over(r.growth),
			growthNote(over(r.boundsGrowth), over(r.wholeGrowth))),
		judged("[lemma1-joint] excess risk of choosing α and λ together", lemma1Source+", Section 4.1",
			0, -inf, 0.05, over(func(seed int) (float64, error) { return r.excess(seed, len(sizes)-1), nil }),
			fmt.Sprintf("at n_V = %d", last)),
		judged(fmt.Sprintf("[lemma1-joint] it was larger at n_V = %d", first), lemma1Source+", Section 4.1", 0, 0, inf,
			over(func(seed int) (float64, error) { return r.excess(seed, 0) - r.excess(seed, len(sizes)-1), nil }),
			"difference of the excess risks; h + 1 hyperparameters need n_V > h + 1"),
		judged("[lemma1-ridge-order] smaller ridge, larger gap", lemma1Source+", Section 7b", 0, 0, inf,
			over(r.order), "gap at the smallest λ_min minus that at the largest, largest n_V"),
	}
}

func growthNote(bound, whole estimate) string {
	note := "log–log slope at the largest n_V over the smaller half of λ_min"
	if bound.err == nil {
		note += fmt.Sprintf(", where the bound's own is %.2g", bound.Mean)
	}
	if whole.err == nil {
		note += fmt.Sprintf("; over all of them, where a large λ also shrinks f_α and its loss's variance, it is %.2g",
			whole.Mean)
	}
	return note
}

// decay is the slope of the gap in n_V > h + 1, mean over λ_min.
func (r *Lemma1Result) decay(seed int) (float64, error) {
	var curves []points
	for _, p := range r.of("lambda") {
		var curve points
		for i, n := range p.Validation {
			if n > p.World.Maps+1 {
				curve.add(float64(n), p.records[seed].Series["gap"][i])
			}
		}
		curves = append(curves, curve)
	}
	return meanSlope(curves)
}

// excess is the excess risk at one n_V, mean over λ_min.
func (r *Lemma1Result) excess(seed, at int) float64 {
	points, sum := r.of("lambda"), 0.0
	for _, p := range points {
		sum += p.records[seed].Series["excess"][at]
	}
	return sum / float64(len(points))
}

// order is the gap at the smallest λ_min minus that at the largest.
func (r *Lemma1Result) order(seed int) (float64, error) {
	_, gaps, _ := r.overLambda0(seed)
	return gaps[0] - gaps[len(gaps)-1], nil
}

// overLambda0 are 1/λ₀ by ascending λ_min, the gap at the largest n_V, and what
// the bound has in it of λ₀, √log: the bound is √h̄_eff times a constant.
func (r *Lemma1Result) overLambda0(seed int) (inverse, gaps, bounds []float64) {
	for _, p := range r.of("lambda") {
		record := p.records[seed]
		gap := record.Series["gap"]
		inverse, gaps = append(inverse, 1/record.Values["lambda0"]), append(gaps, gap[len(gap)-1])
		bounds = append(bounds, math.Sqrt(math.Log(record.Values["argument"])))
	}
	return inverse, gaps, bounds
}

// growth is the slope of the gap in 1/λ₀ over the smaller half of λ_min, λ₀ → 0:
// a large λ shrinks f_α and with it what the gap is a mean of.
func (r *Lemma1Result) growth(seed int) (float64, error) {
	inverse, gaps, _ := r.overLambda0(seed)
	small := (len(inverse) + 1) / 2
	return verdict.Slope(inverse[:small], gaps[:small])
}

// boundsGrowth is that of the bound.
func (r *Lemma1Result) boundsGrowth(seed int) (float64, error) {
	inverse, _, bounds := r.overLambda0(seed)
	small := (len(inverse) + 1) / 2
	return verdict.Slope(inverse[:small], bounds[:small])
}

// wholeGrowth is the slope of the gap in 1/λ₀ over all λ_min.
func (r *Lemma1Result) wholeGrowth(seed int) (float64, error) {
	inverse, gaps, _ := r.overLambda0(seed)
	return verdict.Slope(inverse, gaps)
}
