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
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Assumption3Params are the parameters of Definition 3, Assumption 3 and the remarks on deeper networks.
type Assumption3Params struct {
	Activations []string `validate:"min=1,max=8,unique"` // candidates σ₁…σ_h; all signs of α are tried
	Alphas      int      `validate:"gte=0"`              // random points of Δ beside the h corners and the middle
	Seeds       int      `validate:"gte=1"`              // a seed fixes inputs, weights and Δ
	Seed        int      `validate:"gte=0"`              // the first of them

	Dim     int       `validate:"gte=2"` // d of the inputs on the sphere
	Images  data.Name // unit-norm images of two classes
	Classes [2]int    `validate:"unique,dive,gte=0,lte=255"`

	Train  int       `validate:"gte=2,lte=2000"`                     // n of the width sweep; all eigenvalues are taken
	Widths []int     `validate:"min=2,ascending,dive,gt=0"`          // k
	C0s    []float64 `validate:"min=2,unique,dive,positive"`         // c₀ of the initialization
	Trains []int     `validate:"min=2,ascending,dive,gt=0,lte=2000"` // n of λ₀

	DeepActivations []string  `validate:"min=1,unique"`               // of deep networks; bounded: variances stay small
	Depths          []int     `validate:"min=3,ascending,dive,gt=0"`  // D; a growth needs three
	Gains           []float64 `validate:"min=1,unique,dive,positive"` // times √k: deviation of deep weights
	Ridge           float64   `validate:"gt=0"`                       // share of tr(K)/n, for deep kernels
	DeepTrain       int       `validate:"gte=2,lte=2000"`             // their n
	DeepDepth       int       `validate:"gte=1"`                      // depth of the width sweep of deep networks
	DeepWidths      []int     `validate:"min=2,ascending,dive,gt=0"`

	Confidence float64 `validate:"gt=0.5,lt=1"`
}

// Assumption3Paper goes up to k = 16,384, n = 80 and depth 12 for 20 seeds. The paper prints no experiment; all sizes
// are ours. Kernels of finite width approach their limit as k^(−0.50), λ_min stays above 1.4·10⁻⁴ on the simplex, and
// depth costs less than a factor of 0.58·D.
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

// Assumption3Quick has 8 seeds, k up to 4096 and depth up to 8. All verdicts are those of the paper's scale.
var Assumption3Quick = func() Assumption3Params {
	p := Assumption3Paper
	p.Alphas, p.Seeds = 8, 8
	p.Train, p.Widths, p.Trains = 20, []int{32, 64, 128, 256, 512, 1024, 2048, 4096}, []int{5, 10, 20, 40}
	p.Depths, p.DeepTrain, p.DeepWidths = []int{1, 2, 3, 4, 5, 6, 7, 8}, 20, []int{32, 64, 128, 256}
	return p
}()

// onSphere are inputs that are uniform on the sphere, with neural.Product's labels.
const onSphere = neural.Product

// Assumption3 computes the kernels of activation search: whether the feature maps add up (Definition 3), how fast K̂_α
// approaches K_α in the width for all α at once, its smallest eigenvalues, cases that violate the assumption, and how
// the Lipschitz constant of the linearized network grows with its depth.
var Assumption3 = lab.Declare(lab.Entry[Assumption3Params, kernels.Part]{
	Of: ofPaper, Name: "assumption3", Kind: lab.Theorem, Source: "Definition 3 and Assumption 3",
	Title: "Neural feature maps and kernels of activation search, shallow and deep", Notebook: "assumption3_kernels",
	Cost:  catalog.Cost{Quick: "about 5 seconds on two cores", Paper: "about two minutes on two cores; precomputed"},
	Quick: Assumption3Quick, Paper: Assumption3Paper,
	Code:    code.Define("oymak2021/assumption3", "oymak2021/internal/kernels"),
	Seconds: kernelSeconds,
	Rules: func(p Assumption3Params, c *study.Checks) {
		checkActivations(c, "Activations", p.Activations)
		checkActivations(c, "DeepActivations", p.DeepActivations)
		checkSet(c, "Images", p.Images)
	},
	Trials: Assumption3Params.trials,
	Bench: func(ctx context.Context, p Assumption3Params, _ string) (lab.Bench[kernels.Part], error) {
		return digitsBench(ctx, p.Images, p.Classes, slices.Concat(p.Activations, p.DeepActivations),
			func(t *kernels.Part) (*[]string, neural.Source) { return &t.Activations, t.Source })
	},
	Draw:   drawAssumption3,
	Claims: judgeAssumption3,
})

type assumption3 = lab.Result[Assumption3Params, kernels.Part]

func (p Assumption3Params) trials() (gs lab.Groups[kernels.Part]) {
	sphere := neural.Source{Data: onSphere, Dim: p.Dim}
	add := func(t kernels.Part) { gs.Add(t.Part, p.Seeds, t) }
	add(kernels.Part{Part: "features", Source: sphere, Activations: p.Activations, C0s: p.C0s})
	add(kernels.Part{Part: "singular", Source: sphere})
	add(p.deep(sphere, "deep", 1))
	for _, gain := range p.Gains {
		add(p.deep(sphere, "depth", gain))
	}
	for _, source := range []neural.Source{sphere, {Data: neural.Digits}} {
		width := kernels.Part{Part: "width", Source: source, Activations: p.Activations, Alphas: p.Alphas}
		lambda := width
		width.Train, width.Widths = p.Train, p.Widths
		lambda.Part, lambda.Trains = "lambda", p.Trains
		add(width)
		add(lambda)
	}
	for i := range gs {
		gs[i].First = uint64(p.Seed)
	}
	return gs
}

// withInputs are the groups of a part whose inputs are of a source.
func withInputs(r *assumption3, part, source string) lab.Groups[kernels.Part] {
	return r.Part(part).Where(func(t kernels.Part) bool { return t.Source.Data == source })
}

// deep is a part on deep networks: over the widths ("deep") or depths ("depth").
func (p Assumption3Params) deep(source neural.Source, part string, gain float64) kernels.Part {
	t := kernels.Part{
		Part: part, Source: source, Activations: p.DeepActivations, Alphas: p.Alphas, Train: p.DeepTrain, Gain: gain,
	}
	if part == "deep" {
		t.Widths, t.Depths = p.DeepWidths, []int{p.DeepDepth}
	} else {
		t.Depths, t.Ridge = p.Depths, p.Ridge
	}
	return t
}

func drawAssumption3(r *assumption3, f *lab.Picture) {
	p := r.Params
	f.Row(widthPanel(r), lambdaPanel(r))
	f.Row(scalePanel(r), depthPanel(r))
	f.Say("$σ_α$ over %s, in deep networks %s; %s. "+
		"(a): $K_{α,k}$ is the kernel of width $k$; $n = %d$, deep $n = %d$; (b) and (c): inputs on the sphere in "+
		"$ℝ^{%d}$.",
		strings.Join(p.Activations, ", "), strings.Join(p.DeepActivations, ", "), r.Interval("bars", p.Seeds, "seed"),
		p.Train, p.DeepTrain, p.Dim)
}

func logCurve(r *assumption3, label string, xs []float64, gs lab.Groups[kernels.Part], series string) plots.Series {
	return curve(label, xs, study.Columns(gs.Rows(series)), plots.Log10, r.Confidence)
}

func widthPanel(r *assumption3) plots.Panel {
	p, ks := r.Params, study.Floats(r.Params.Widths)
	sphere := logCurve(r, "sphere", ks, withInputs(r, "width", onSphere), "sup")
	return logLog("(a) kernels of finite width", "width $k$", `$\sup_α\|K_{α,k} − K_α\|/c_0$`, sphere,
		logCurve(r, "digits", ks, withInputs(r, "width", neural.Digits), "sup"),
		logCurve(r, fmt.Sprintf("sphere, $D = %d$, relative", p.DeepDepth), study.Floats(p.DeepWidths), r.Part("deep"),
			"sup"),
		powerLaw("slope $−1/2$", sphere, -0.5))
}

func lambdaPanel(r *assumption3) plots.Panel {
	ns, sphere := study.Floats(r.Params.Trains), withInputs(r, "lambda", onSphere)
	return logLog("(b) Assumption 3", "training inputs $n_T$", `smallest $λ_{\min}(K_α)/c_0$`,
		logCurve(r, "over the simplex", ns, sphere, "simplex"),
		logCurve(r, "over $\\|α\\|_1 = 1$", ns, sphere, "sphere"),
		logCurve(r, "no $α$ is below", ns, sphere, "certified"),
		logCurve(r, "simplex, digits", ns, withInputs(r, "lambda", neural.Digits), "simplex"))
}

func scalePanel(r *assumption3) plots.Panel {
	largest := logCurve(r, `$λ_{\max}(K_α)$`, r.Params.C0s, r.Part("features"), "largest")
	smallest := logCurve(r, `$λ_{\min}(K_α)$`, r.Params.C0s, r.Part("features"), "smallest")
	return logLog("(c) initialization", "$c_0$", "eigenvalue", largest, smallest, powerLaw("slope 1", largest, 1))
}

func depthPanel(r *assumption3) plots.Panel {
	panel := logLog("(d) deep kernels", "depth $D$", "Lipschitz constant in $α$")
	panel.X.Scale = plots.Linear
	for i, gain := range r.Params.Gains {
		panel.Series = append(panel.Series, logCurve(r, fmt.Sprintf("gain $s = %v$", gain),
			study.Floats(r.Params.Depths), r.Part("depth")[i:i+1], "lipschitz"))
	}
	return panel
}

func judgeAssumption3(r *assumption3) []runs.Claim {
	p := r.Params
	claims := []runs.Claim{
		verdict.Every(r.Claim("[def3-additive] φ_α = Σⱼ αⱼφⱼ, an identity").From("Definition 3").
			Noting("the difference of an entry; rounding allows about 1e-16").Claim,
			r.Part("features").Values("additive"), 1e-14),
		verdict.Every(r.Claim("[def3-additive] φ_α is the derivative of the network by W").From("Definition 3 (10)").
			Noting("the difference from a central difference of step 1e-5").Claim,
			r.Part("features").Values("derivative"), 1e-8),
		judgeRate(r, "[asm3-scaling] λ₀ scales linearly with c₀", "ours is the exponent of λ_min(K̂_α) in c₀",
			p.C0s, r.Part("features"), "smallest", 1, 1e-6),
		judgeRate(r, "[asm3-scaling] K_α scales linearly with c₀", "ours is the exponent of λ_max(K̂_α) in c₀",
			p.C0s, r.Part("features"), "largest", 1, 1e-6),
		judgeRate(r, "[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2)",
			"inputs on the sphere; the rate is that of a mean of k neurons",
			study.Floats(p.Widths), withInputs(r, "width", onSphere), "sup", -0.5, 0.1),
		judgeRate(r, "[thm3-width] sup_α ‖K̂_α − K_α‖ falls as k^(−1/2) on digits", "unit-norm images",
			study.Floats(p.Widths), withInputs(r, "width", neural.Digits), "sup", -0.5, 0.1),
	}
	return slices.Concat(claims, judgePositive(r, onSphere, "sphere"), judgePositive(r, neural.Digits, "digits"),
		judgeSingular(r), judgeDeep(r))
}

// judgeRate judges the exponent of a series over xs. Each rate is judged twice: of the smallest and of the largest
// eigenvalue, of inputs on the sphere and of digits.
func judgeRate(r *assumption3, name, note string, xs []float64, gs lab.Groups[kernels.Part], series string,
	paper, tolerance float64) runs.Claim {
	c := r.Claim("%s", name).Noting("%s", note).Family(2)
	return c.Of(verdict.Slopes(xs, gs.Rows(series), c.Confidence)).Near(paper, tolerance)
}

// judgePositive judges λ₀ > 0, above rounding, over the simplex by search and over ‖α‖₁ = 1 by the lower bound.
func judgePositive(r *assumption3, source, name string) []runs.Claim {
	judge := func(series, words string) runs.Claim {
		c := r.Claim("own: %s is positive, %s inputs", words, name)
		return judgeLeast(r, c, withInputs(r, "lambda", source), series)
	}
	return []runs.Claim{
		judge("simplex", "smallest λ_min(K̄_α) found on the simplex"),
		judge("certified", "λ_min(𝒦)/h, which no α with ‖α‖₁ = 1 is below"),
	}
}

// judgeLeast judges the smallest value at the largest n_T against the rounding of an eigenvalue, n_T·h·ε·λ_max.
func judgeLeast(r *assumption3, claim lab.Claim, gs lab.Groups[kernels.Part], series string) runs.Claim {
	last := len(r.Params.Trains) - 1
	n := r.Params.Trains[last]
	least := slices.Min(study.Column(gs.Rows(series), last))
	largest := slices.Max(study.Column(gs.Rows("norm"), last))
	rounding := float64(n*len(r.Params.Activations)) * 0x1p-52 * largest
	c := claim.Says(0).Noting("ours is the smallest of %d seeds at n_T = %d; the tolerance is the rounding of an "+
		"eigenvalue", r.Params.Seeds, n).Claim
	c.Ours, c.Tolerance = runs.Number(least), runs.Number(rounding)
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

// judgeSingular shows that each condition for K_α ≻ 0 is needed.
func judgeSingular(r *assumption3) []runs.Claim {
	const zero = 1e-12 // of λ_max
	negative := func(name string) []float64 {
		return study.Map(r.Part("singular").Values(name), func(x float64) float64 { return -x })
	}
	singular := func(name, value string) runs.Claim {
		return verdict.Every(r.Claim("%s", name).Noting("the number is |λ_min|/λ_max").Claim,
			study.Map(r.Part("singular").Values(value), math.Abs), zero)
	}
	return []runs.Claim{
		verdict.Every(r.Claim("own: K_α ≻ 0 where no two inputs are parallel and σ_α is analytic, not a polynomial").
			Noting("the number is −λ_min/λ_max; tanh and softplus, 20 inputs in R⁴").Claim,
			negative("fine"), -zero),
		verdict.Every(r.Claim("own finding: opposite inputs leave K_α ≻ 0 where an activation is not odd up to a "+
			"constant").From(notInPaper).Noting("the number is −λ_min/λ_max; tanh and softplus with x and −x: "+
			"'not parallel' is more than is needed").Claim, negative("opposite_mixed"), -zero),
		singular("violation: equal inputs make K_α singular", "copies"),
		singular("violation: opposite inputs and odd activations make K_α singular", "opposite"),
		singular("violation: polynomial activations make K_α singular", "polynomial"),
	}
}

// judgeDeep judges the cost of depth. In the log-corrected effective dimension h log(C̄LΓn_V/h) of Theorem 1, with C̄ =
// 3, Γ = 1 and n_V = 1000, "at most a factor D" is log(cL_D) ≤ D log(cL₁) with c = 3000/h. Our own stricter check is
// whether the growth of log L a layer rises with the depth; for an exponential it does not.
func judgeDeep(r *assumption3) []runs.Claim {
	p := r.Params
	const margin = 0.1
	var claims []runs.Claim
	for i, gain := range p.Gains {
		costs, rises, factors := p.growth(r.Part("depth")[i : i+1].Rows("lipschitz"))
		trend := r.Claim("own check: growth of log L a layer does not rise with the depth, gain %v", gain).
			From(notInPaper).Says(0).Family(len(p.Gains)).
			Noting("ours is the growth over the later half of the depths less that over the earlier half, " +
				"positive for anything faster than an exponential, but also where a slow start comes first; " +
				"the margin of 0.1 is ours")
		trend.Tolerance = margin
		claims = append(claims, verdict.Every(
			r.Claim("[deep-L] depth costs at most a factor D of validation examples, gain %v", gain).
				From("Section 4.2, extensions").
				Noting("the number is log(cL_D)/(D log(cL₁)) for D above the first; L changes by a factor of %.3g to "+
					"%.3g a layer", slices.Min(factors), slices.Max(factors)).Claim, costs, 1),
			trend.Mean(rises).AtMost(margin))
	}
	width := r.Claim("[deep-width] sup_α ‖K̂_α − K_α‖/‖K_α‖ of deep networks falls with k").Says(-0.5).
		Noting("D = %d; the paper says that it concentrates and gives no rate; -1/2 is that of one layer", p.DeepDepth)
	width.Tolerance = 0.5
	return append(claims,
		width.Of(verdict.Slopes(study.Floats(p.DeepWidths), r.Part("deep").Rows("sup"), r.Confidence)).AtMost(0))
}

// growth has, of curves of L over the depths, one a seed: the costs log(cL_D)/(D log(cL₁)), by how much the growth of
// log L a layer rises from the earlier half of the depths to the later one, and its factor a layer.
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
