package oymak2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

var theorem3Sources = []string{neural.Cap, neural.Digits, neural.Product, neural.Flipped}

// networkTrials are networks of width Width on every source over n_T, and wider ones on one source.
func networkTrials(p Theorem3Params) (gs descents) {
	for _, n := range p.Trains {
		for _, source := range theorem3Sources {
			gs = append(gs, p.groups("trains", p.descent(source, n, p.Width))...)
		}
	}
	for _, k := range p.Widths {
		gs = append(gs, p.groups("widths", p.descent(neural.Product, p.WidthTrain, k))...)
	}
	return gs
}

func (p Theorem3Params) descent(source string, n, k int) activationsearch.Part {
	return activationsearch.Part{
		Part: "descent", Source: p.source(source), Activations: p.Activations, Alphas: p.Alphas, Train: n,
		Width: k, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon,
		Validations: p.Validations, Draws: p.Draws, Pool: p.Pool,
	}
}

func ofSource(r *theorem3, source string) descents {
	return r.Part("trains").Where(func(t activationsearch.Part) bool { return t.Source.Data == source })
}

// drawNetworks shows the network against its kernel over the width, the training error of the worst α over the
// steps, and the steps taken over those that suffice.
func drawNetworks(r *theorem3, f *lab.Picture) {
	p := r.Params
	f.Row(networkPanel(r), stepPanel(r),
		trainPanel(r, "(c) steps to error $ε$, worst $α$", "taken / sufficient", plots.Log10, worstRatio(p.Steps)))
	f.Say("$σ_α$ over %s; %s; slope: the theorem's rate, whose constant is unknown.",
		strings.Join(p.Activations, ", "), r.Interval("bars", p.Seeds, "seed"))
	f.Say("(a) and (b): $n_T = %d$ product examples; (c): $k = %d$.", p.WidthTrain, p.Width)
}

func overAlphas(series string) func(*runs.Record) float64 {
	return func(record *runs.Record) float64 { return slices.Max(record.Series[series]) }
}

func networkPanel(r *theorem3) plots.Panel {
	draw := func(label, series string) plots.Series {
		return curve(label, study.Floats(r.Params.Widths), listsOf(r.Part("widths"), overAlphas(series)), plots.Log10,
			r.Confidence)
	}
	gap, moved := draw(`largest $|f − f_{\mathrm{lin}}|$`, "gap"), draw(`largest $\|W_T − W_0\|/\|W_0\|$`, "movement")
	return logLog("(a) network and kernel", "width $k$", "worst $α$", gap, moved, powerLaw("slope $∓1/2$", moved, -0.5))
}

// stepPanel draws the curves of at most four widths, the narrowest and the widest among them.
func stepPanel(r *theorem3) plots.Panel {
	panel := plots.Panel{
		Title: "(b) training, all $α$", X: logAxis("gradient step $τ$ + 1"),
		Y: plots.Axis{Label: "0-1 error, worst $α$", Min: -0.03, Max: 1},
	}
	widths := r.Part("widths")
	for _, i := range spread(len(widths), 4) {
		s := plots.Series{Label: fmt.Sprintf("$k = %d$", widths[i].Trial.Width)}
		errors := study.Rows(widths[i].Records, "errors")
		for step := 0.0; step <= float64(r.Params.Steps); step = max(step+1, math.Floor(1.25*step)) {
			s.X, s.Y = append(s.X, step+1), append(s.Y, stat.Mean(study.Column(errors, int(step)), nil))
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// spread are at most m > 1 places of 0…n−1 with both ends.
func spread(n, m int) (places []int) {
	for i := range min(n, m) {
		places = append(places, i*(n-1)/max(1, min(n, m)-1))
	}
	return places
}

func worstRatio(steps int) func(*runs.Record) float64 {
	return func(record *runs.Record) float64 {
		ratios, _ := stepRatios([]*runs.Record{record}, steps)
		return slices.Max(append(ratios, 0))
	}
}

// stepRatios are steps over needed steps for every α. A run that did not reach ε counts with T if T sufficed, else it
// is skipped.
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

func judgeNetworks(r *theorem3) []runs.Claim {
	wide := r.Part("widths")[wideFrom(r.Params.Widths):]
	ks := wide.X(func(t activationsearch.Part) float64 { return float64(t.Width) })
	claim := func(name, series, note string) lab.Statistic {
		return r.Claim("%s", name).
			Noting("ours is the exponent of the largest value over Δ in k, over k = %v; %s", ks, note).
			Of(verdict.Slopes(ks, study.Columns(listsOf(wide, overAlphas(series))), r.Confidence))
	}
	return append([]runs.Claim{
		claim("[thm3-width] distance of network and kernel vanishes with k", "gap",
			"the theorem asks for k ≳ poly(n_T, 1/λ̄₀, 1/ε), so that any negative exponent fits").AtMost(0),
		claim("[thm3-width] ‖W_T − W₀‖/‖W₀‖ falls as k^(−1/2)", "movement",
			"the rate is our reading of the kernel regime").Near(-0.5, 0.1),
	}, judgeTraining(r)...)
}

// wideFrom is the place of the first width from 64 on, at most the last but one: below, the network is far from its
// kernel.
func wideFrom(widths []int) int {
	at := slices.IndexFunc(append(slices.Clone(widths), 64), func(k int) bool { return k >= 64 })
	return max(0, min(at, len(widths)-2))
}

func judgeTraining(r *theorem3) []runs.Claim {
	p := r.Params
	last := len(p.Widths) - 1
	widest, k := r.Part("widths")[last].Records, p.Widths[last]
	learnt := r.Part("trains").Where(func(t activationsearch.Part) bool { return t.Source.Data != neural.Flipped })
	ratios, unknown := stepRatios(append(r.Part("trains").Records(), widest...), p.Steps)
	return []runs.Claim{
		judgeTrained(r, fmt.Sprintf("[thm3-train oymak2021ext/abstract-best-pair RO018] training 0-1 error at most ε "+
			"for all α, k = %d", k), fmt.Sprintf("n_T = %d product examples", p.WidthTrain), widest),
		judgeTrained(r, fmt.Sprintf("[thm3-train] training 0-1 error at most ε for all α, all data, k = %d", p.Width),
			"margin, digits and product data", learnt.Records()),
		verdict.Every(r.Claim("[thm3-iters] steps to ε over those that suffice for the kernel").
			Noting("log(‖r₀‖²/(εn_T))/(2ηλ_min(K̂_α)) with η = 1/λ_max, of order (n_T/λ̄₀)log(1/ε); "+
				"%d further runs ended before as many steps and before ε: no evidence", unknown).Claim, ratios, 1),
	}
}

// judgeTrained judges training errors. A run above ε speaks against the claim only if its steps suffice.
func judgeTrained(r *theorem3, name, what string, records []*runs.Record) runs.Claim {
	p := r.Params
	broken, short := 0, 0
	for _, record := range records {
		for a, e := range record.Series["train_error"] {
			switch {
			case e > p.Epsilon && float64(p.Steps) >= record.Series["needed"][a]:
				broken++
			case e > p.Epsilon:
				short++
			}
		}
	}
	c := r.Claim("%s", name).Noting("%s, T = %d, every α and seed; above ε in %d runs, %d of them with as many steps "+
		"as suffice", what, p.Steps, broken+short, broken).Claim
	c = verdict.Every(c, slices.Concat(study.Rows(records, "train_error")...), p.Epsilon)
	if c.Holds == runs.Fails && broken == 0 {
		c.Holds = runs.NotKnown
		c.Note += ": inconclusive, more Steps decide"
	}
	return c
}
