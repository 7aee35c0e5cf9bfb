package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Assumption3Params are the parameters of Definition 3, Assumption 3 and the
// remarks on deeper networks: what the kernels of activation search are.
type Assumption3Params struct {
	Activations []string // candidates σ₁…σ_h, see spectral.NamedActivation
	Alphas      int      // random points of Δ beside the h corners and the middle
	Seeds       int      // a seed fixes inputs, weights and Δ
	Seed        int      // the first of them

	Dim     int       // d of the inputs on the sphere
	Images  data.Name // unit-norm images of two classes
	Classes [2]int

	Train  int       // n of the width sweep
	Widths []int     // k
	C0s    []float64 // c₀ of the initialization
	Trains []int     // n of λ₀

	DeepActivations []string  // candidates of the deep networks; bounded, so that variances stay small
	Depths          []int     // D
	Gains           []float64 // standard deviation of the deep weights, times √k
	Ridge           float64   // of the deep kernels, as a share of tr(K)/n
	DeepTrain       int       // their n
	DeepDepth       int       // depth of the width sweep of deep networks
	DeepWidths      []int

	Confidence float64
}

// Assumption3Paper goes up to k = 16384, n = 80 and depth 12 for 20 seeds, two
// minutes on two cores; its trials are shipped. The paper prints no experiment
// here, so that all sizes are ours. Kernels of finite width approach theirs as
// k^(−0.50), λ_min stays above 1.4·10⁻⁴ on the simplex, and depth costs less than
// a factor of 0.58·D.
var Assumption3Paper = Assumption3Params{
	Activations: []string{"tanh", "sigmoid", "softplus", "sin"},
	Alphas:      30, Seeds: 20,
	Dim: 10, Images: data.MNIST, Classes: [2]int{0, 1},
	Train: 30, Widths: []int{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
	C0s: []float64{0.01, 0.1, 1, 10, 100}, Trains: []int{5, 10, 20, 40, 80},
	DeepActivations: []string{"tanh", "sigmoid", "sin"},
	Depths:          []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Gains: []float64{1, 2, 3}, Ridge: 0.01,
	DeepTrain: 40, DeepDepth: 3, DeepWidths: []int{64, 128, 256, 512, 1024},
	Confidence: 0.95,
}

// Assumption3Quick has 8 seeds, k up to 4096 and depth up to 8, about 5 seconds on
// two cores; all claims come out as at the paper's scale.
var Assumption3Quick = func() Assumption3Params {
	p := Assumption3Paper
	p.Alphas, p.Seeds = 8, 8
	p.Train, p.Widths = 20, []int{32, 64, 128, 256, 512, 1024, 2048, 4096}
	p.Trains = []int{5, 10, 20, 40}
	p.Depths, p.DeepTrain = []int{1, 2, 3, 4, 5, 6, 7, 8}, 20
	p.DeepWidths = []int{32, 64, 128, 256}
	return p
}()

const (
	assumption3ID     = "oymak2021/assumption3"
	assumption3Title  = "Neural feature maps and kernels of activation search, shallow and deep"
	assumption3Source = "Oymak+ 2021, Definition 3 and Assumption 3"
)

var assumption3Kind = code.Define(assumption3ID, "oymak2021/internal/kernels")

func init() {
	catalog.Register(catalog.Entry{
		ID: assumption3ID, Paper: "Oymak+ 2021", Title: assumption3Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/assumption3_kernels.ipynb",
		Cost: catalog.Cost{
			Quick: "about 5 seconds on two cores",
			Paper: "about two minutes on two cores; the project ships its trials",
		},
	}, Assumption3Quick, Assumption3Paper, Assumption3)
}

// Assumption3Result holds the records, part by part.
type Assumption3Result struct {
	Params Assumption3Params
	Scale  string // "quick", "paper" or empty for own parameters

	features  []*runs.Record            // [seed]
	widths    map[string][]*runs.Record // [source][seed]
	lambdas   map[string][]*runs.Record // [source][seed]
	singular  []*runs.Record            // [seed]
	depths    [][]*runs.Record          // [gain][seed]
	deep      []*runs.Record            // [seed]
	all       []*runs.Record
	synthetic bool
}

// Records are the keys of the trials.
func (r *Assumption3Result) Records() []string { return study.Keys(r.all) }

// onSphere are inputs that are uniform on the sphere; the labels, where there is
// need of any, are neural.Product's.
const onSphere = neural.Product

// Assumption3 computes the kernels of activation search: whether the feature
// maps add up (Definition 3), how fast K̂_α approaches K_α in the width, for all
// α at once, how small its eigenvalues are over Δ and beyond, what happens
// where the assumption is violated, and how the Lipschitz constant of the
// linearized network grows with its depth. Cancelling ctx loses no finished
// trial. It is an error where a parameter makes no sense (a
// *catalog.UsageError) and where images cannot be had.
func Assumption3(ctx context.Context, p Assumption3Params) (*Assumption3Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	images, err := openDigits(ctx, p.Images, p.Classes)
	if err != nil {
		return nil, err
	}
	parts := p.parts()
	var cases []study.Case
	for _, part := range parts {
		more, err := p.cases(part.Part, images)
		if err != nil {
			return nil, fmt.Errorf("assumption 3: %w", err)
		}
		cases = append(cases, more...)
	}
	records, err := study.Study{ID: assumption3ID, Code: assumption3Kind, Shipped: shippedRecords}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &Assumption3Result{
		Params: p, Scale: runs.Scale(ctx), all: records, synthetic: images.synthetic(),
		widths: map[string][]*runs.Record{}, lambdas: map[string][]*runs.Record{},
	}
	for i, part := range parts {
		part.file(r, records[i*p.Seeds:(i+1)*p.Seeds])
	}
	return r, nil
}

// assumption3Part is a part with the place of its records in a result.
type assumption3Part struct {
	kernels.Part
	file func(r *Assumption3Result, records []*runs.Record)
}

// parts lists all that is to be computed.
func (p Assumption3Params) parts() []assumption3Part {
	sphere := neural.World{Data: onSphere, Dim: p.Dim}
	all := []assumption3Part{
		{
			kernels.Part{Part: "features", World: sphere, Activations: p.Activations, C0s: p.C0s},
			func(r *Assumption3Result, f []*runs.Record) { r.features = f },
		},
		{
			kernels.Part{Part: "singular", World: sphere},
			func(r *Assumption3Result, f []*runs.Record) { r.singular = f },
		},
		{p.deep(sphere, "deep", 1), func(r *Assumption3Result, f []*runs.Record) { r.deep = f }},
	}
	for _, gain := range p.Gains {
		all = append(all, assumption3Part{
			p.deep(sphere, "depth", gain),
			func(r *Assumption3Result, f []*runs.Record) { r.depths = append(r.depths, f) },
		})
	}
	for _, world := range []neural.World{sphere, {Data: neural.Digits}} {
		width := kernels.Part{Part: "width", World: world, Activations: p.Activations, Alphas: p.Alphas}
		width.Train, width.Widths = p.Train, p.Widths
		lambda := kernels.Part{Part: "lambda", World: world, Activations: p.Activations, Alphas: p.Alphas}
		lambda.Trains = p.Trains
		all = append(all,
			assumption3Part{width, func(r *Assumption3Result, f []*runs.Record) { r.widths[world.Data] = f }},
			assumption3Part{lambda, func(r *Assumption3Result, f []*runs.Record) { r.lambdas[world.Data] = f }})
	}
	return all
}

// deep is a part on deep networks: over the widths ("deep") or depths ("depth").
func (p Assumption3Params) deep(world neural.World, part string, gain float64) kernels.Part {
	t := kernels.Part{
		Part: part, World: world, Activations: p.DeepActivations, Alphas: p.Alphas, Train: p.DeepTrain, Gain: gain,
	}
	if part == "deep" {
		t.Widths, t.Depths = p.DeepWidths, []int{p.DeepDepth}
	} else {
		t.Depths, t.Ridge = p.Depths, p.Ridge
	}
	return t
}

// cases are the seeds of a part.
func (p Assumption3Params) cases(t kernels.Part, images *digits) ([]study.Case, error) {
	keyed := t
	var err error
	if len(t.Activations) > 0 {
		keyed.Activations, err = activationKeys(t.Activations)
	}
	var cases []study.Case
	for _, seed := range seedsFrom(p.Seed, p.Seeds) {
		cases = append(cases, study.Case{
			Params: keyed, Seed: seed, Data: images.of(t.World),
			Label: fmt.Sprintf("%s, %s", t.Part, sourceNames[t.World.Data]),
			Run: func(ctx context.Context, _ study.Step) (trial.Result, error) {
				im, err := images.load(ctx, t.World)
				if err != nil {
					return trial.Result{}, err
				}
				return t.Run(ctx, seed, im)
			},
		})
	}
	return cases, err
}

// check says what is wrong with the parameters, all of it at once.
func (p Assumption3Params) check() error {
	var c study.Checks
	checkActivations(&c, "Activations", p.Activations)
	checkActivations(&c, "DeepActivations", p.DeepActivations)
	c.Expect(len(p.Activations) <= 8,
		"Activations has %d names, want at most 8: all signs of α are tried", len(p.Activations))
	c.AtLeast("Alphas", p.Alphas, 0)
	c.AtLeast("Seeds", p.Seeds, 1)
	c.AtLeast("Seed", p.Seed, 0)
	c.AtLeast("Dim", p.Dim, 2)
	for field, sizes := range map[string][]int{"Widths": p.Widths, "Trains": p.Trains, "DeepWidths": p.DeepWidths} {
		study.Ascending(&c, field, sizes, 2, 0)
	}
	study.Ascending(&c, "Depths", p.Depths, 3, 0) // a growth needs three
	study.Distinct(&c, "C0s", p.C0s, 2)
	study.Distinct(&c, "Gains", p.Gains, 1)
	for _, positive := range append(slices.Clone(p.C0s), p.Gains...) {
		c.Positive("a value of C0s or Gains", positive)
	}
	c.Expect(p.Ridge > 0,
		"Ridge is %v, want more than 0: it takes the place of Assumption 3 for deep networks", p.Ridge)
	for _, n := range append(slices.Clone(p.Trains), max(2, p.Train), max(2, p.DeepTrain)) {
		c.Expect(n <= 2000, "Train, DeepTrain or Trains has %d, want at most 2000: all eigenvalues are taken", n)
	}
	c.AtLeast("Train", p.Train, 2)
	c.AtLeast("DeepTrain", p.DeepTrain, 2)
	c.AtLeast("DeepDepth", p.DeepDepth, 1)
	checkClasses(&c, "Images", p.Images, p.Classes)
	c.Confidence(p.Confidence)
	return c.Err("assumption 3")
}

// Figure shows the distance of kernels of finite width, the smallest
// eigenvalue over Δ, the Lipschitz constant over the depth, and the scaling
// with the initialization.
func (r *Assumption3Result) Figure() plots.Figure {
	return plots.Figure{
		Name: "oymak2021-assumption3", Style: plots.ICML.Text(), Caption: r.caption(),
		Meta:   study.Meta(assumption3Title, r.Scale, r.Params),
		Panels: [][]plots.Panel{{r.widthPanel(), r.lambdaPanel()}, {r.scalePanel(), r.depthPanel()}},
	}
}

func (r *Assumption3Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("$σ_α$ over %s, in deep networks %s; means over %d seeds with %v %% intervals. "+
		"(a): $K_{α,k}$ is the kernel of width $k$; $n = %d$, deep $n = %d$; (b) and (c): inputs on the sphere in "+
		"$ℝ^{%d}$.",
		strings.Join(p.Activations, ", "), strings.Join(p.DeepActivations, ", "), p.Seeds, 100*p.Confidence,
		p.Train, p.DeepTrain, p.Dim)
	if r.synthetic {
		text += " SYNTHETIC DIGITS, not real ones."
	}
	return text + study.ScaleNote(p)
}

func (r *Assumption3Result) curve(label string, xs []float64, records []*runs.Record, series string) plots.Series {
	return curve(label, xs, columns(records, series), plots.Log10, r.Params.Confidence)
}

func (r *Assumption3Result) widthPanel() plots.Panel {
	p := r.Params
	ks := study.Floats(p.Widths)
	sphere := r.curve("sphere", ks, r.widths[onSphere], "sup")
	return plots.Panel{
		Title: "(a) kernels of finite width", X: plots.Axis{Label: "width $k$", Scale: plots.Log10},
		Y: plots.Axis{Label: `$\sup_α\|K_{α,k} − K_α\|/c_0$`, Scale: plots.Log10},
		Series: []plots.Series{
			sphere, r.curve("digits", ks, r.widths[neural.Digits], "sup"),
			r.curve(fmt.Sprintf("sphere, $D = %d$, relative", p.DeepDepth), study.Floats(p.DeepWidths), r.deep, "sup"),
			powerLaw("slope $−1/2$", sphere, -0.5),
		},
	}
}

func (r *Assumption3Result) lambdaPanel() plots.Panel {
	ns := study.Floats(r.Params.Trains)
	sphere := r.lambdas[onSphere]
	return plots.Panel{
		Title: "(b) Assumption 3", X: plots.Axis{Label: "training inputs $n_T$", Scale: plots.Log10},
		Y: plots.Axis{Label: `smallest $λ_{\min}(K_α)/c_0$`, Scale: plots.Log10},
		Series: []plots.Series{
			r.curve("over the simplex", ns, sphere, "simplex"), r.curve("over $\\|α\\|_1 = 1$", ns, sphere, "sphere"),
			r.curve("no $α$ is below", ns, sphere, "certified"),
			r.curve("simplex, digits", ns, r.lambdas[neural.Digits], "simplex"),
		},
	}
}

func (r *Assumption3Result) scalePanel() plots.Panel {
	largest := r.curve(`$λ_{\max}(K_α)$`, r.Params.C0s, r.features, "largest")
	smallest := r.curve(`$λ_{\min}(K_α)$`, r.Params.C0s, r.features, "smallest")
	return plots.Panel{
		Title: "(c) initialization", X: plots.Axis{Label: "$c_0$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "eigenvalue", Scale: plots.Log10},
		Series: []plots.Series{largest, smallest, powerLaw("slope 1", largest, 1)},
	}
}

func (r *Assumption3Result) depthPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(d) deep kernels", X: plots.Axis{Label: "depth $D$"},
		Y: plots.Axis{Label: "Lipschitz constant in $α$", Scale: plots.Log10},
	}
	for i, gain := range r.Params.Gains {
		label := fmt.Sprintf("gain $s = %v$", gain)
		panel.Series = append(panel.Series, r.curve(label, study.Floats(r.Params.Depths), r.depths[i], "lipschitz"))
	}
	return panel
}

// Check works through the claims of Definition 3, Assumption 3 and the remarks
// on deep networks.
func (r *Assumption3Result) Check() []runs.Claim {
	p := r.Params
	claims := []runs.Claim{
		verdict.Every(noted("[def3-additive] φ_α = Σⱼ αⱼφⱼ, an identity", "Oymak+ 2021, Definition 3",
			"the difference of an entry; rounding allows about 1e-16"), study.Values(r.features, "additive"), 1e-14),
		verdict.Every(noted("[def3-additive] φ_α is the derivative of the network by W",
			"Oymak+ 2021, Definition 3 (10)",
			"the difference from a central difference of step 1e-5"), study.Values(r.features, "derivative"), 1e-8),
		r.rate("[asm3-scaling] λ₀ scales linearly with c₀", "ours is the exponent of λ_min(K̂_α) in c₀",
			p.C0s, r.features, "smallest", 1, 1e-6),
		r.rate("[asm3-scaling] K_α scales linearly with c₀", "ours is the exponent of λ_max(K̂_α) in c₀",
			p.C0s, r.features, "largest", 1, 1e-6),
		r.rate("[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2)",
			"inputs on the sphere; the rate is that of a mean of k neurons",
			study.Floats(p.Widths), r.widths[onSphere], "sup", -0.5, 0.1),
		r.rate("[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2) on digits", "unit-norm images",
			study.Floats(p.Widths), r.widths[neural.Digits], "sup", -0.5, 0.1),
	}
	for _, source := range []string{onSphere, neural.Digits} {
		claims = append(claims, r.checkPositive(source)...)
	}
	claims = append(claims, r.checkSingular()...)
	return append(claims, r.checkDeep()...)
}

// rate judges the exponent of a series over xs. Each rate is judged twice: of the
// smallest and of the largest eigenvalue, of inputs on the sphere and of digits.
func (r *Assumption3Result) rate(name, note string, xs []float64, records []*runs.Record, series string,
	paper, tolerance float64) runs.Claim {
	s, err := verdict.Slopes(xs, study.Rows(records, series), verdict.Family(r.Params.Confidence, 2))
	return verdict.Near(noted(name, assumption3Source, note), s, err, paper, tolerance)
}

// checkPositive judges λ₀ > 0, above rounding, over the simplex by search and
// over ‖α‖₁ = 1 by the bound that no α is below.
func (r *Assumption3Result) checkPositive(source string) []runs.Claim {
	where := map[string]string{onSphere: "sphere", neural.Digits: "digits"}[source]
	var claims []runs.Claim
	for _, kind := range []struct{ series, words string }{
		{"simplex", "smallest λ_min(K̄_α) found on the simplex"},
		{"certified", "λ_min(𝒦)/h, which no α with ‖α‖₁ = 1 is below"},
	} {
		name := fmt.Sprintf("own: %s is positive, %s inputs", kind.words, where)
		claims = append(claims, r.positive(verdict.Claim(name, assumption3Source), r.lambdas[source], kind.series))
	}
	return claims
}

// positive judges the smallest value at the largest n_T against the rounding of
// an eigenvalue, n_T·h·ε·λ_max.
func (r *Assumption3Result) positive(c runs.Claim, records []*runs.Record, series string) runs.Claim {
	last := len(r.Params.Trains) - 1
	n := r.Params.Trains[last]
	least := slices.Min(study.Column(study.Rows(records, series), last))
	largest := slices.Max(study.Column(study.Rows(records, "norm"), last))
	rounding := float64(n*len(r.Params.Activations)) * 0x1p-52 * largest
	c.Paper, c.Ours, c.Tolerance = 0, runs.Number(least), runs.Number(rounding)
	c.Note = fmt.Sprintf("ours is the smallest of %d seeds at n_T = %d; the tolerance is the rounding of an eigenvalue",
		r.Params.Seeds, n)
	switch {
	case least > rounding:
		c.Holds = runs.Holds
	case least < -rounding:
		c.Holds = runs.Fails
	default:
		c.Note += "; inconclusive: within rounding of 0"
	}
	return c
}

// checkSingular shows that each condition for K_α ≻ 0 is needed.
func (r *Assumption3Result) checkSingular() []runs.Claim {
	const zero = 1e-12 // of λ_max
	values := func(name string, of func(float64) float64) []float64 {
		return each(r.singular, func(record *runs.Record) float64 { return of(record.Values[name]) })
	}
	negative := func(x float64) float64 { return -x }
	claims := []runs.Claim{
		verdict.Every(noted("own: K_α ≻ 0 where no two inputs are parallel and σ_α is analytic, not a polynomial",
			assumption3Source, "the number is −λ_min/λ_max; tanh and softplus, 20 inputs in R⁴"),
			values("fine", negative), -zero),
		verdict.Every(noted(
			"own finding: opposite inputs leave K_α ≻ 0 where an activation is not odd up to a constant",
			"ours, not in the paper",
			"the number is −λ_min/λ_max; tanh and softplus with x and −x: 'not parallel' is more than is needed",
		), values("opposite_mixed", negative), -zero),
	}
	for _, one := range []struct{ value, name string }{
		{"copies", "violation: equal inputs make K_α singular"},
		{"opposite", "violation: opposite inputs and odd activations make K_α singular"},
		{"polynomial", "violation: polynomial activations make K_α singular"},
	} {
		claims = append(claims, verdict.Every(noted(one.name, assumption3Source, "the number is |λ_min|/λ_max"),
			values(one.value, math.Abs), zero))
	}
	return claims
}

// checkDeep judges what depth costs. In the log-corrected effective dimension
// h log(C̄LΓn_V/h) of Theorem 1, with C̄ = 3, Γ = 1 and n_V = 1000, "at most a
// factor D" is log(cL_D) ≤ D log(cL₁) with c = 3000/h. A second, stricter look of
// our own asks whether the growth of log L a layer rises with the depth: for an
// exponential it does not.
func (r *Assumption3Result) checkDeep() []runs.Claim {
	p := r.Params
	const source, margin = "Oymak+ 2021, Section 4.2, extensions", 0.1
	var claims []runs.Claim
	for i, gain := range p.Gains {
		costs, rises, factors := p.growth(study.Rows(r.depths[i], "lipschitz"))
		claims = append(claims, verdict.Every(noted(
			fmt.Sprintf("[deep-L] depth costs at most a factor D of validation examples, gain %v", gain), source,
			fmt.Sprintf("the number is log(cL_D)/(D log(cL₁)) for D above the first; "+
				"L changes by a factor of %.3g to %.3g a layer",
				slices.Min(factors), slices.Max(factors))), costs, 1))
		s, err := runs.Summarize(rises, verdict.Family(p.Confidence, len(p.Gains)))
		trend := noted(fmt.Sprintf("own check: growth of log L a layer does not rise with the depth, gain %v", gain),
			"ours, not in the paper",
			"ours is the growth over the later half of the depths less that over the earlier half, "+
				"positive for anything faster than an exponential, but also where a slow start comes first; "+
				"the margin of 0.1 is ours")
		trend.Paper, trend.Tolerance = 0, margin
		claims = append(claims, verdict.AtMost(trend, s, err, margin))
	}
	s, err := verdict.Slopes(study.Floats(p.DeepWidths), study.Rows(r.deep, "sup"), p.Confidence)
	width := noted("[deep-width] sup_α ‖K̂_α − K_α‖/‖K_α‖ of deep networks falls with k", assumption3Source,
		fmt.Sprintf("D = %d; the paper says that it concentrates and gives no rate; -1/2 is that of one layer",
			p.DeepDepth))
	width.Paper, width.Tolerance = -0.5, 0.5
	return append(claims, verdict.AtMost(width, s, err, 0))
}

// growth tells of curves of L over the depths, one a seed: the costs
// log(cL_D)/(D log(cL₁)), by how much the growth of log L a layer rises from the
// earlier half of the depths to the later one, and its factor a layer.
func (p Assumption3Params) growth(curves [][]float64) (costs, rises, factors []float64) {
	c := 3000 / float64(len(p.DeepActivations))
	mid, last := len(p.Depths)/2, len(p.Depths)-1
	for _, l := range curves {
		for d, depth := range p.Depths[1:] { // 1 by definition for the first
			costs = append(costs, math.Log(c*l[d+1])/(float64(depth)/float64(p.Depths[0])*math.Log(c*l[0])))
		}
		between := func(from, to int) float64 {
			return math.Log(l[to]/l[from]) / float64(p.Depths[to]-p.Depths[from])
		}
		rises = append(rises, between(mid, last)-between(0, mid))
		factors = append(factors, math.Exp(between(0, last)))
	}
	return costs, rises, factors
}
