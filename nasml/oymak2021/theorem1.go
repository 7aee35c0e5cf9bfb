package oymak2021

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Theorem1 measures both sides of Theorem 1, see Theorem1Params. It returns an error if some Φ_α is singular at λ = 0.
var Theorem1 = lab.Declare(lab.Entry[Theorem1Params, convergence.Case]{
	Of: ofPaper, Name: "theorem1", Kind: lab.Theorem, Source: "Theorem 1", Notebook: "theorem1_uniform_convergence",
	Title: "Uniform convergence of validation risk and hypergradient over a continuous Δ",
	Cost:  catalog.Cost{Quick: "20 seconds on two cores", Paper: "about 40 minutes on two cores; precomputed"},
	Quick: Theorem1Quick, Paper: Theorem1Paper,
	Code: theorem1Kind,
	Rules: func(p Theorem1Params, c *study.Checks) {
		checkNet(c, p.Activations, p.Data)
		for _, h := range p.NetMaps {
			c.Expect(h <= len(p.Activations), "NetMaps has %d, but Activations has %d", h, len(p.Activations))
		}
		most := min(p.Inputs, p.Features)
		c.Expect(!slices.Contains(p.Lambdas, 0) || p.Train <= most,
			"Lambdas has 0 with Train %d: the interpolant needs n_T ≤ min(d, p) = %d", p.Train, most)
	},
	Bench:     theorem1Bench,
	Draw:      drawTheorem1,
	Questions: theorem1Questions,
})

// theorem1Questions are the parts, a file each. Theorem 1 is an upper bound: a slope in n_V may be steeper than −1/2,
// one in h smaller than +1/2. The tolerance of 0.1 is ours (0.2 in h, where the logarithm of h_eff counts). The family
// "tight" reaches the rate, and is judged on both sides.
var theorem1Questions = []lab.Question[Theorem1Params, convergence.Case]{
	{Name: "tight", Trials: tightTrials, Claims: judgeTight},
	{Name: "ridge", Trials: ridgeTrials, Claims: judgeRidge},
	{Name: "net", Trials: netTrials, Claims: judgeNet},
	{Name: "lipschitz", Trials: cosineTrials, Claims: judgeCosine},
	{Name: "cover", Trials: coverTrials, Claims: judgeCovers},
}

type (
	theorem1 = lab.Result[Theorem1Params, convergence.Case]
	curves   = lab.Groups[convergence.Case] // over n_V
)

var theorem1Kind = code.Define("oymak2021/theorem1", "oymak2021/internal/convergence")

// drawTheorem1 draws the suprema over the size of the validation sample, a panel for each part that was run.
func drawTheorem1(r *theorem1, f *lab.Picture) {
	p, ridge := r.Params, ridges(r, r.Params.Lambdas[0])
	var panels []plots.Panel
	for _, one := range []struct {
		gs                   curves
		series, title, label string
	}{
		{r.Part("tight"), "gap", "(a) $f_α(x) = ⟨α, g⟩$, exact", "sup of risk gap"},
		{r.Part("tight"), "gradient", "(b) its gradient, exact", "sup of gradient gap"},
		{ridge, "gap", fmt.Sprintf("(c) feature maps, $λ = %v$", p.Lambdas[0]), "sup of risk gap"},
		{ridge, "gradient", "(d) their hypergradient", "sup of hypergradient gap"},
		{r.Part("net"), "gap", "(e) activation search, " + strings.ToUpper(string(p.Data)), "sup of risk gap"},
	} {
		if len(one.gs) > 0 {
			panels = append(panels, supremumPanel(r, one.gs, one.series, one.title, one.label))
		}
	}
	if slices.Contains(p.Parts, "lipschitz") {
		panels = append(panels, cosinePanel(r))
	}
	if len(panels) == 0 { // only covers
		panels = []plots.Panel{coverPanel(r)}
	}
	for row := range slices.Chunk(panels, 2) {
		f.Row(row...)
	}
	f.Say("Supremum over $α$ of |test − validation|, of %d validation samples a seed; dashed: slope −1/2; %s.",
		p.Repeats, r.Interval("band", p.Seeds, "seed"))
	if p.Data == data.Synthetic && slices.Contains(p.Parts, "net") {
		f.Say("(e) on SYNTHETIC DATA.")
	}
}
