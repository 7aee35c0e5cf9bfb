package oymak2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Figure shows the distance of kernels of finite width, the smallest
// eigenvalue over Δ, the Lipschitz constant over the depth, and the scaling
// with the initialization.
func (r *Assumption3Result) Figure() plots.Figure {
	p := r.Params
	return plots.Figure{
		Name: "oymak2021-assumption3", Style: plots.ICML.Text(),
		Caption: r.caption(),
		Meta:    map[string]string{"title": assumption3Title, "params": thm3Hash(p), "scale": thm3ScaleName(r.Scale)},
		Panels:  [][]plots.Panel{{r.widthPanel(), r.lambdaPanel()}, {r.scalePanel(), r.depthPanel()}},
	}
}

func (r *Assumption3Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("$σ_α$ over %s, in deep networks %s; means over %d seeds with %v %% intervals. (a): $K_{α,k}$ is the kernel of width $k$; $n = %d$, deep $n = %d$; (b) and (c): inputs on the sphere in $R^{%d}$.",
		strings.Join(p.Activations, ", "), strings.Join(p.DeepActivations, ", "), p.Seeds, 100*p.Confidence, p.Train, p.DeepTrain, p.Dim)
	if r.synthetic {
		text += " SYNTHETIC DIGITS, not real ones."
	}
	return text
}

func (r *Assumption3Result) curve(label string, xs []float64, records []*runs.Record, series string) plots.Series {
	return thm3Curve(label, xs, overValidations(records, series), plots.Log10, r.Params.Confidence)
}

func (r *Assumption3Result) widthPanel() plots.Panel {
	p := r.Params
	sphere := r.curve("sphere", thm3Floats(p.Widths), r.widths[asm3Sphere], "sup")
	return plots.Panel{
		Title: "(a) kernels of finite width", X: plots.Axis{Label: "width $k$", Scale: plots.Log10},
		Y: plots.Axis{Label: `$\sup_α\|K_{α,k} − K_α\|/c_0$`, Scale: plots.Log10},
		Series: []plots.Series{
			sphere, r.curve("digits", thm3Floats(p.Widths), r.widths[thm3Images], "sup"),
			r.curve(fmt.Sprintf("sphere, $D = %d$, relative", p.DeepDepth), thm3Floats(p.DeepWidths), r.deep, "sup"),
			thm3Power("slope $−1/2$", sphere, -0.5),
		},
	}
}

func (r *Assumption3Result) lambdaPanel() plots.Panel {
	ns := thm3Floats(r.Params.Trains)
	sphere := r.lambdas[asm3Sphere]
	return plots.Panel{
		Title: "(b) Assumption 3", X: plots.Axis{Label: "training inputs $n_T$", Scale: plots.Log10},
		Y: plots.Axis{Label: `smallest $λ_{\min}(K_α)/c_0$`, Scale: plots.Log10},
		Series: []plots.Series{
			r.curve("over the simplex", ns, sphere, "simplex"), r.curve("over $\\|α\\|_1 = 1$", ns, sphere, "sphere"),
			r.curve("no $α$ is below", ns, sphere, "certified"), r.curve("simplex, digits", ns, r.lambdas[thm3Images], "simplex"),
		},
	}
}

func (r *Assumption3Result) scalePanel() plots.Panel {
	largest := r.curve(`$λ_{\max}(K_α)$`, r.Params.C0s, r.features, "largest")
	return plots.Panel{
		Title: "(c) initialization", X: plots.Axis{Label: "$c_0$", Scale: plots.Log10}, Y: plots.Axis{Label: "eigenvalue", Scale: plots.Log10},
		Series: []plots.Series{largest, r.curve(`$λ_{\min}(K_α)$`, r.Params.C0s, r.features, "smallest"), thm3Power("slope 1", largest, 1)},
	}
}

func (r *Assumption3Result) depthPanel() plots.Panel {
	panel := plots.Panel{
		Title: "(d) deep kernels", X: plots.Axis{Label: "depth $D$"}, Y: plots.Axis{Label: "Lipschitz constant in $α$", Scale: plots.Log10},
	}
	for i, gain := range r.Params.Gains {
		panel.Series = append(panel.Series, r.curve(fmt.Sprintf("gain $s = %v$", gain), thm3Floats(r.Params.Depths), r.depths[i], "lipschitz"))
	}
	return panel
}

const asm3Source = "Oymak+ 2021, Definition 3 and Assumption 3"

// Check works through the claims of Definition 3, Assumption 3 and the remarks
// on deep networks.
func (r *Assumption3Result) Check() []runs.Claim {
	p := r.Params
	claims := []runs.Claim{
		thm3Every("def3-additive: φ_α = Σⱼ αⱼφⱼ, an identity", "Oymak+ 2021, Definition 3", 1e-14, thm3Values(r.features, "additive"),
			"ours is the largest difference of an entry; rounding allows about 1e-16"),
		thm3Every("def3: φ_α is the derivative of the network by W", "Oymak+ 2021, Definition 3 (10)", 1e-8, thm3Values(r.features, "derivative"),
			"ours is the largest difference from a central difference of step 1e-5"),
		r.slope("asm3-scaling: λ₀ scales linearly with c₀", 1, 1-1e-6, 1+1e-6, p.C0s, r.features, "smallest", "ours is the exponent of λ_min(K̂_α) in c₀"),
		r.slope("asm3-scaling: K_α scales linearly with c₀", 1, 1-1e-6, 1+1e-6, p.C0s, r.features, "largest", "ours is the exponent of λ_max(K̂_α) in c₀"),
		r.slope("thm3-width: sup_α ‖K̂_α − K_α‖ falls as k^(−1/2)", -0.5, -0.6, -0.4, thm3Floats(p.Widths), r.widths[asm3Sphere], "sup", "inputs on the sphere; the rate is that of a mean of k neurons"),
		r.slope("thm3-width: likewise on digits", -0.5, -0.6, -0.4, thm3Floats(p.Widths), r.widths[thm3Images], "sup", "unit-norm images"),
	}
	claims = append(claims, r.checkPositive()...)
	claims = append(claims, r.checkSingular()...)
	return append(claims, r.checkDeep()...)
}

func (r *Assumption3Result) slope(name string, paper, lo, hi float64, xs []float64, records []*runs.Record, series, note string) runs.Claim {
	slopes, err := exponents(xs, overValidations(records, series))
	if err != nil {
		c := runs.NewClaim(name, asm3Source)
		c.Paper, c.Note = runs.Number(paper), "not run: "+err.Error()
		return c
	}
	c := thm3Claim(name, asm3Source, runs.Number(paper), lo, hi, slopes, r.Params.Confidence, note)
	c.Tolerance = runs.Number(hi - paper) // above; below too, where there is a lower end
	return c
}

// checkPositive judges λ₀ > 0, above rounding, over the simplex by search and
// over ‖α‖₁ = 1 by the bound that no α is below.
func (r *Assumption3Result) checkPositive() []runs.Claim {
	var claims []runs.Claim
	for _, source := range []string{asm3Sphere, thm3Images} {
		name := map[string]string{asm3Sphere: "sphere", thm3Images: "digits"}[source]
		for _, kind := range []struct{ series, words string }{{"simplex", "smallest λ_min(K̄_α) found on the simplex"}, {"certified", "own finding: λ_min(𝒦)/h, which no α with ‖α‖₁ = 1 is below"}} {
			claims = append(claims, r.positive(source, kind.series, fmt.Sprintf("asm3: %s is positive, %s inputs", kind.words, name)))
		}
	}
	return claims
}

func (r *Assumption3Result) positive(source, series, name string) runs.Claim {
	c := runs.NewClaim(name, asm3Source)
	c.Paper = 0
	n := r.Params.Trains[len(r.Params.Trains)-1]
	least, rounding := math.Inf(1), 0.0
	for _, record := range r.lambdas[source] {
		values, norms := record.Series[series], record.Series["norm"]
		least = min(least, values[len(values)-1])
		rounding = max(rounding, float64(n*len(r.Params.Activations))*0x1p-52*norms[len(norms)-1])
	}
	c.Ours, c.Tolerance = runs.Number(least), runs.Number(rounding)
	c.Note = fmt.Sprintf("ours is the smallest of %d seeds at n_T = %d; the tolerance is the rounding of an eigenvalue", r.Params.Seeds, n)
	switch {
	case least > rounding:
		c.Holds = runs.Holds
	case least < -rounding:
		c.Holds = runs.Fails
	default:
		c.Note += "; undecided: within rounding of 0"
	}
	return c
}

// checkSingular shows that each condition for K_α ≻ 0 is needed.
func (r *Assumption3Result) checkSingular() []runs.Claim {
	const zero = 1e-12 // of λ_max
	least := negated(thm3Values(r.singular, "fine"))
	fine := thm3Every("asm3: K_α ≻ 0 where no two inputs are parallel and σ_α is analytic, not a polynomial", asm3Source, -zero, least, "ours is −λ_min/λ_max; tanh and softplus, 20 inputs in R⁴")
	mixed := thm3Every("own finding: opposite inputs leave K_α ≻ 0 where an activation is not odd up to a constant", "not in the paper", -zero,
		negated(thm3Values(r.singular, "opposite_mixed")), "ours is −λ_min/λ_max; tanh and softplus with x and −x: 'not parallel' is more than is needed")
	claims := []runs.Claim{fine, mixed}
	for _, one := range []struct{ value, name string }{
		{"copies", "violation: equal inputs make K_α singular"},
		{"opposite", "violation: opposite inputs and odd activations make K_α singular"},
		{"polynomial", "violation: polynomial activations make K_α singular"},
	} {
		values := thm3Values(r.singular, one.value)
		for i, v := range values {
			values[i] = math.Abs(v)
		}
		claims = append(claims, thm3Every(one.name, asm3Source, zero, values, "ours is |λ_min|/λ_max"))
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
	c := 3000 / float64(len(p.DeepActivations))
	mid := len(p.Depths) / 2
	var claims []runs.Claim
	for i, gain := range p.Gains {
		var costs, rises, factors []float64
		for _, record := range r.depths[i] {
			l := record.Series["lipschitz"]
			last := len(l) - 1
			for d, depth := range p.Depths {
				if d == 0 { // 1 by definition
					continue
				}
				costs = append(costs, math.Log(c*l[d])/(float64(depth)/float64(p.Depths[0])*math.Log(c*l[0])))
			}
			growth := func(from, to int) float64 {
				return math.Log(l[to]/l[from]) / float64(p.Depths[to]-p.Depths[from])
			}
			rises = append(rises, growth(mid, last)-growth(0, mid))
			factors = append(factors, math.Exp(growth(0, last)))
		}
		claims = append(claims, thm3Every(fmt.Sprintf("deep-L: depth costs at most a factor D of validation examples, gain %v", gain), source, 1, costs,
			fmt.Sprintf("ours is log(cL_D)/(D log(cL₁)) for D above the first; L changes by a factor of %.3g to %.3g a layer", slices.Min(factors), slices.Max(factors))))
		trend := thm3Claim(fmt.Sprintf("own check: growth of log L a layer does not rise with the depth, gain %v", gain), "not in the paper", 0, math.Inf(-1), margin, rises, p.Confidence,
			"ours is the growth over the later half of the depths less that over the earlier half, positive for anything faster than an exponential, but also where a slow start comes first; the margin of 0.1 is ours")
		trend.Tolerance = margin
		claims = append(claims, trend)
	}
	return append(claims, r.slope("deep-width: sup_α ‖K̂_α − K_α‖/‖K_α‖ of deep networks falls with k", -0.5, math.Inf(-1), 0, thm3Floats(p.DeepWidths), r.deep, "sup",
		fmt.Sprintf("D = %d; the paper says that it concentrates and gives no rate; -1/2 is that of one layer", p.DeepDepth)))
}
