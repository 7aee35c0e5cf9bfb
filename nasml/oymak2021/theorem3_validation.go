package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// kernelTrials are kernels of infinite width over h.
func kernelTrials(p Theorem3Params) descents {
	return p.groups("kernel", study.Map(p.Sizes, func(h int) activationsearch.Part {
		return activationsearch.Part{
			Part: "kernel", Source: p.source(neural.Product), Activations: p.Dictionary[:h], Train: p.SizeTrain,
			Alphas: p.SizeAlphas, Validations: p.Validations, Draws: p.Draws, Pool: p.Pool,
		}
	})...)
}

func selectedRisk(record *runs.Record) float64 { return lastOf(record, "selected") }

func validationPanel(r *theorem3) plots.Panel {
	p := r.Params
	last := len(p.Sizes) - 1
	draw := func(label, series string) plots.Series {
		return curve(label, study.Floats(p.Validations), columns(r.Part("kernel")[last].Records, series), plots.Log10,
			r.Confidence)
	}
	sup, excess := draw("$\\sup_α|L − L_V|$", "sup"), draw("$L(α̂) − \\min_α L$", "excess")
	return logLog(fmt.Sprintf("(c) validation, $h = %d$", p.Sizes[last]), "validation examples $n_V$", "hinge loss",
		sup, excess, powerLaw("slope $∓1/2$", sup, -0.5))
}

// supAt is sup |L − L̂_V| at one n_V, [h][seed].
func supAt(r *theorem3, at int) [][]float64 {
	return listsOf(r.Part("kernel"), func(record *runs.Record) float64 { return record.Series["sup"][at] })
}

func sizePanel(r *theorem3) plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: "(d) search spaces", X: plots.Axis{Label: "activations $h$", Scale: plots.Log2, Ticks: ticks(p.Sizes)},
		Y: logAxis(`$\sup_α|L − L_V|$`),
	}
	for _, at := range spread(len(p.Validations), 3) {
		panel.Series = append(panel.Series, curve(fmt.Sprintf("$n_V = %d$", p.Validations[at]), study.Floats(p.Sizes),
			supAt(r, at), plots.Log10, r.Confidence))
	}
	return panel
}

// judgeValidation judges the gap over n_V and h, and compares α̂ with the best and the worst α.
func judgeValidation(r *theorem3) []runs.Claim {
	p := r.Params
	first, last := 0, len(p.Validations)-1
	overV, constant := gapsOverV(r)
	nv := r.Claim("[thm3-nv] sup |L − L̂_V| falls as n_V^(−1/2)").Says(-0.5).
		Noting("ours is the exponent in n_V, mean over h; an upper bound, so that only a flatter one contradicts it")
	h := r.Claim("[thm3-nv] sup |L − L̂_V| grows at most as √h").Says(0.5).
		Noting("ours is the exponent in h at n_V = %d; a uniform bound needs n_V ≳ h where it is 1/2; "+
			"largest sup·√(n_V/h) of all cells: %.3g", p.Validations[last], constant)
	nv.Tolerance, h.Tolerance = 0.1, 0.1
	excess := columns(r.Part("kernel")[len(p.Sizes)-1].Records, "excess")
	product := ofSource(r, neural.Product)[len(p.Trains)-1].Records
	return []runs.Claim{
		nv.Of(verdict.Slopes(study.Floats(p.Validations), overV, r.Confidence)).AtMost(-0.4),
		h.Of(verdict.Slopes(study.Floats(p.Sizes), study.Columns(supAt(r, last)), r.Confidence)).AtMost(0.6),
		r.Claim("[thm3-bound] L(f_α̂) approaches min_α L with n_V").Says(0).
			Noting("ours is the excess hinge loss of α̂ at n_V = %d less that at %d, h = %d",
				p.Validations[first], p.Validations[last], p.Sizes[len(p.Sizes)-1]).
			Difference(excess[first], excess[last]).Above(0),
		r.Claim("[thm3-bound] α̂ beats the worst α").Says(0).
			Noting("ours is the difference of 0-1 risks on product data, n_V = %d", p.Validations[last]).
			Difference(study.Values(product, "worst"), study.Map(product, selectedRisk)).Above(0),
	}
}

// gapsOverV are the gaps over n_V of every seed, mean over h, and the largest gap·√(n_V/h) of all.
func gapsOverV(r *theorem3) (overV [][]float64, constant float64) {
	p := r.Params
	overV = make([][]float64, p.Seeds)
	for i, g := range r.Part("kernel") {
		for seed, sup := range study.Rows(g.Records, "sup") {
			if i == 0 {
				overV[seed] = make([]float64, len(sup))
			}
			for v, x := range sup {
				overV[seed][v] += x / float64(len(p.Sizes))
				constant = max(constant, x*math.Sqrt(float64(p.Validations[v])/float64(p.Sizes[i])))
			}
		}
	}
	return overV, constant
}
