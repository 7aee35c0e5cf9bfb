package oymak2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/runs"
)

const (
	thm3Source = "Oymak+ 2021, Theorem 3"
	// thm3T is the t of the bound's probability, 4(e^{−t} + …) = 0.2.
	thm3T = 3.0
)

// Check works through the claims of Theorem 3 and the remarks after it. The
// theorem gives no constants and only upper bounds: a decrease that is faster
// than it says is no violation.
func (r *Theorem3Result) Check() []runs.Claim {
	claims := r.checkWidth()
	claims = append(claims, r.checkTraining()...)
	claims = append(claims, r.checkValidation()...)
	claims = append(claims, r.checkBound()...)
	claims = append(claims, r.checkAlignment()...)
	return append(claims, r.checkViolations()...)
}

// exponents are the slopes over xs, one a seed, of values [x][seed].
func exponents(xs []float64, values [][]float64) ([]float64, error) {
	var slopes []float64
	for seed := range values[0] {
		var ys []float64
		for i := range xs {
			ys = append(ys, values[i][seed])
		}
		slope, err := thm3Exponent(xs, ys)
		if err != nil {
			return nil, err
		}
		slopes = append(slopes, slope)
	}
	return slopes, nil
}

// slopeClaim judges the exponents; what has no exponent is not run.
func (r *Theorem3Result) slopeClaim(name string, paper runs.Number, lo, hi float64, xs []float64, values [][]float64, note string) runs.Claim {
	slopes, err := exponents(xs, values)
	if err != nil {
		c := runs.NewClaim(name, thm3Source)
		c.Paper, c.Note = paper, "not run: "+err.Error()
		return c
	}
	c := thm3Claim(name, thm3Source, paper, lo, hi, slopes, r.Params.Confidence, note)
	if paper.Valid() {
		c.Tolerance = runs.Number(max(float64(paper)-lo, hi-float64(paper)))
		if math.IsInf(float64(c.Tolerance), 0) {
			c.Tolerance = runs.Number(min(float64(paper)-lo, hi-float64(paper)))
		}
	}
	return c
}

// wide are the widths from 64: below, the network is far from its kernel.
func (r *Theorem3Result) wide() int {
	for i, k := range r.Params.Widths {
		if k >= 64 && i <= len(r.Params.Widths)-2 {
			return i
		}
	}
	return max(0, len(r.Params.Widths)-2)
}

func (r *Theorem3Result) checkWidth() []runs.Claim {
	from := r.wide()
	ks := thm3Floats(r.Params.Widths[from:])
	note := fmt.Sprintf("ours is the exponent of the largest value over Δ in k, over k = %v", r.Params.Widths[from:])
	return []runs.Claim{
		r.slopeClaim("thm3-width: distance of network and kernel vanishes with k", runs.None, math.Inf(-1), 0, ks, r.overWidths("gap")[from:],
			note+"; the theorem asks for k ≳ poly(n_T, 1/λ̄₀, 1/ε), so that any negative exponent fits"),
		r.slopeClaim("thm3-width: ‖W_T − W₀‖/‖W₀‖ falls as k^(−1/2)", -0.5, -0.6, -0.4, ks, r.overWidths("movement")[from:],
			note+"; the rate is our reading of the kernel regime"),
	}
}

func (r *Theorem3Result) checkTraining() []runs.Claim {
	p := r.Params
	var ratios []float64
	unknown := 0
	for _, source := range p.sources() {
		for _, records := range r.trains[source] {
			more, skipped := stepRatios(records, p.Steps)
			ratios, unknown = append(ratios, more...), unknown+skipped
		}
	}
	more, skipped := stepRatios(r.widths[len(r.widths)-1], p.Steps)
	ratios, unknown = append(ratios, more...), unknown+skipped
	return []runs.Claim{
		r.trained(fmt.Sprintf("thm3-train: training 0-1 error at most ε for all α, k = %d", p.Widths[len(p.Widths)-1]),
			fmt.Sprintf("n_T = %d product examples", p.WidthTrain), r.widths[len(r.widths)-1]),
		r.trained(fmt.Sprintf("thm3-train: likewise, k = %d", p.Width), "margin, digits and product data",
			slices.Concat(r.trains[thm3Cap], r.trains[thm3Images], r.trains[thm3Product])...),
		thm3Every("thm3-iters: steps to ε over those that suffice for the kernel", thm3Source, 1, ratios,
			fmt.Sprintf("log(‖r₀‖²/(εn_T))/(2ηλ_min(K̂_α)) with η = 1/λ_max, of order (n_T/λ̄₀)log(1/ε); %d further runs ended before as many steps and before ε: no evidence", unknown)),
	}
}

// trained judges training errors. A run above ε speaks against the claim only
// where its steps suffice.
func (r *Theorem3Result) trained(name, what string, points ...[]*runs.Record) runs.Claim {
	p := r.Params
	var all []float64
	broken, short := 0, 0
	for _, record := range slices.Concat(points...) {
		for a, e := range record.Series["train_error"] {
			all = append(all, e)
			switch {
			case e > p.Epsilon && float64(p.Steps) >= record.Series["needed"][a]:
				broken++
			case e > p.Epsilon:
				short++
			}
		}
	}
	c := thm3Every(name, thm3Source, p.Epsilon, all,
		fmt.Sprintf("%s, T = %d, every α and seed; above ε in %d runs, %d of them with as many steps as suffice", what, p.Steps, broken+short, broken))
	if c.Holds == runs.Fails && broken == 0 {
		c.Holds = runs.NotKnown
		c.Note += ": undecided, more Steps decide"
	}
	return c
}

// stepRatios are steps over needed steps for every α; a run that did not reach
// ε counts with T where T sufficed, and else is skipped.
func stepRatios(records []*runs.Record, total int) (ratios []float64, skipped int) {
	for _, record := range records {
		for a, steps := range record.Series["steps"] {
			needed := max(1, record.Series["needed"][a])
			switch {
			case steps >= 0:
				ratios = append(ratios, steps/needed)
			case float64(total) >= needed:
				ratios = append(ratios, max(2, float64(total)/needed))
			default:
				skipped++
			}
		}
	}
	return ratios, skipped
}

func (r *Theorem3Result) checkValidation() []runs.Claim {
	p := r.Params
	last := len(p.Validations) - 1
	var overH [][]float64 // at the largest n_V
	var constants []float64
	overV := make([][]float64, len(p.Validations)) // mean over h
	for i, records := range r.sizes {
		sup := overValidations(records, "sup")
		overH = append(overH, sup[last])
		for v, values := range sup {
			for seed, x := range values {
				constants = append(constants, x*math.Sqrt(float64(p.Validations[v])/float64(p.Sizes[i])))
				if i == 0 {
					overV[v] = append(overV[v], 0)
				}
				overV[v][seed] += x / float64(len(r.sizes))
			}
		}
	}
	trains := r.trains[thm3Product]
	product := trains[len(trains)-1]
	var selected []float64
	for _, record := range product {
		selected = append(selected, record.Series["selected"][last])
	}
	return []runs.Claim{
		r.slopeClaim("thm3-nv: sup |L − L̂_V| falls as n_V^(−1/2)", -0.5, math.Inf(-1), -0.4, thm3Floats(p.Validations), overV,
			"ours is the exponent in n_V, mean over h; an upper bound, so that only a flatter one contradicts it"),
		r.slopeClaim("thm3-nv: and grows at most as √h", 0.5, math.Inf(-1), 0.6, thm3Floats(p.Sizes), overH,
			fmt.Sprintf("ours is the exponent in h at n_V = %d; a uniform bound needs n_V ≳ h where it is 1/2; largest sup·√(n_V/h) of all cells: %.3g", p.Validations[last], slices.Max(constants))),
		thm3Greater("thm3-bound: L(f_α̂) approaches min_α L with n_V", thm3Source, overValidations(r.sizes[len(r.sizes)-1], "excess")[0], overValidations(r.sizes[len(r.sizes)-1], "excess")[last], p.Confidence,
			fmt.Sprintf("ours is the excess hinge loss of α̂ at n_V = %d less that at %d, h = %d", p.Validations[0], p.Validations[last], p.Sizes[len(p.Sizes)-1])),
		thm3Greater("thm3-bound: α̂ beats the worst α", thm3Source, thm3Values(product, "worst"), selected, p.Confidence,
			fmt.Sprintf("ours is the difference of 0-1 risks on product data, n_V = %d", p.Validations[last])),
	}
}

// checkBound compares the risk of α̂ with the bound, at t = 3.
func (r *Theorem3Result) checkBound() []runs.Claim {
	p := r.Params
	h := float64(len(p.Activations))
	var constants, violated []float64
	telling, cells := 0, 0
	for seed := range p.Seeds {
		violates := 0.0
		for _, source := range []string{thm3Cap, thm3Images, thm3Product} {
			for _, records := range r.trains[source] {
				record := records[seed]
				term := slices.Min(record.Series["term"])
				cells++
				if term < 1 {
					telling++
				}
				for v, n := range p.Validations {
					second := math.Sqrt((h + thm3T) / float64(n))
					c := max(0, record.Series["selected_max"][v]-term-p.Epsilon) / second
					constants = append(constants, c)
					if c > 1 {
						violates = 1
					}
				}
			}
		}
		violated = append(violated, violates)
	}
	bound := thm3Every("thm3-bound: 0-1 risk of α̂ within the bound, C = 1", thm3Source, 1, constants,
		fmt.Sprintf("ours is the C that the largest risk over all validation sets needs (0: the first term alone suffices); the first term says something, < 1, in %d of %d runs; C is not given in the paper", telling, cells))
	return []runs.Claim{bound, r.probability(violated), r.checkTerm(), r.checkCap()}
}

// probability compares the share of seeds with a violation with the one that
// the theorem allows, by the exact one-sided bound for zero violations.
func (r *Theorem3Result) probability(violated []float64) runs.Claim {
	p := r.Params
	n := float64(p.Trains[0])
	allowed := 4 * (math.Exp(-thm3T) + math.Pow(n, -3) + math.Exp(-10*float64(len(p.Activations))))
	c := runs.NewClaim("thm3-prob: share of seeds outside the bound, C = 1, t = 3", thm3Source)
	var sum float64
	for _, v := range violated {
		sum += v
	}
	seeds := float64(len(violated))
	c.Paper, c.Ours = runs.Number(allowed), runs.Number(sum/seeds)
	c.Lo, c.Hi = binomialInterval(int(sum), len(violated), p.Confidence)
	c.Note = fmt.Sprintf("a seed counts where any validation set of any run is outside; %d seeds", len(violated))
	switch {
	case float64(c.Hi) <= allowed:
		c.Holds = runs.Holds
	case float64(c.Lo) > allowed:
		c.Holds = runs.Fails
	default:
		c.Note += "; undecided: the interval holds what the theorem allows, more seeds decide"
	}
	return c
}

func (r *Theorem3Result) checkTerm() runs.Claim {
	var values [][]float64
	for _, records := range r.trains[thm3Cap] {
		values = append(values, r.bestTerm(records))
	}
	return r.slopeClaim("thm3-bound: first term falls as n_T^(−1/2) on aligned labels", -0.5, -0.6, -0.4, thm3Floats(r.Params.Trains), values,
		"ours is the exponent of min_α 2B√(yᵀK̄_α⁻¹y/n_T) in n_T for labels with a margin")
}

func (r *Theorem3Result) checkCap() runs.Claim {
	var ratios []float64
	for _, records := range r.trains[thm3Cap] {
		for _, record := range records {
			for a, term := range record.Series["term"] {
				ratios = append(ratios, term/record.Series["cap"][a])
			}
		}
	}
	return thm3Every("own finding: first term at most 2B/(cos φ |Σαⱼ Eσⱼ′| √n_T) on labels with a margin", "not in the paper", 1, ratios,
		"ours is the ratio; K̄_α ⪰ (Σαⱼ Eσⱼ′)²XXᵀ, and y = Xe₁/cos φ")
}

func (r *Theorem3Result) checkAlignment() []runs.Claim {
	p := r.Params
	var claims []runs.Claim
	for _, source := range p.RankWorld {
		records := r.ranks[source]
		for _, series := range []string{"term", "error"} {
			principal := overValidations(records, series)[0]
			claims = append(claims, thm3Greater(fmt.Sprintf("thm3-align: %s smaller for the principal eigenvector than for random labels, %s inputs", series, thm3Names[source]),
				"Oymak+ 2021, Section 4.2", thm3Values(records, "random_"+series), principal, p.Confidence, fmt.Sprintf("ours is random less eigenvector %d", p.Ranks[0])))
		}
	}
	return claims
}

// checkViolations shows cases outside the theorem, where its conclusion fails.
func (r *Theorem3Result) checkViolations() []runs.Claim {
	p := r.Params
	flipped := r.trains[thm3Flipped]
	first, last := r.bestTerm(flipped[0]), r.bestTerm(flipped[len(flipped)-1])
	grows := thm3Greater("violation: flipped labels make the first term grow with n_T", "not in the paper", last, first, p.Confidence,
		fmt.Sprintf("ours is the term at n_T = %d less that at %d; above 1 it says nothing", p.Trains[len(p.Trains)-1], p.Trains[0]))
	var below []float64 // ½ − error, of every α and seed
	for _, record := range r.paired {
		for _, e := range record.Series["train_error"] {
			below = append(below, 0.5-e)
		}
	}
	paired := thm3Every("violation: inputs x, −x with one label, odd activations: training error at least 1/2 for every α", "not in the paper", 0, below,
		fmt.Sprintf("1/2 less the training error, k = %d; an odd network has f(−x) = −f(x), K_α is singular and Assumption 3 fails", p.Width))
	narrow := thm3Greater(fmt.Sprintf("violation: too narrow, k = %d: training error above that at k = %d", p.Widths[0], p.Widths[len(p.Widths)-1]), thm3Source,
		overAlphas(r.widths[0], "train_error"), overAlphas(r.widths[len(r.widths)-1], "train_error"), p.Confidence,
		"ours is the difference for the worst α; the theorem asks for k ≳ poly(n_T, …)")
	return []runs.Claim{grows, paired, narrow}
}
