package oymak2021

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/kernels"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
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
