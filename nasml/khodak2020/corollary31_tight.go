package khodak2020

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/khodak2020/internal/excessrisk"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// tightQuestion asks whether the root of log|C| is reached.
var tightQuestion = lab.Question[Corollary31Params, risk]{
	Trials: func(p Corollary31Params) (gs risks) {
		gs.Add("uniform", p.Seeds, excessrisk.Tight{
			Part: "uniform", Valid: p.TightValid, Counts: p.TightCounts, Draws: p.Draws, Delta: p.Delta,
		})
		return gs
	},
	Claims: func(r *corollary31) []runs.Claim {
		return []runs.Claim{judgeTight(r), judgeTightEnd(r), judgeDeviation(r)}
	},
}

// ratios are gap·√(2|V|/log|C|) of the tight case, by |C|. The gap is one-sided,
// max_c (ℓ_𝒟 − ℓ_V), whose mean is at most √(log|C|/2|V|); log 2|C| would be that of
// its absolute value.
func ratios(r *corollary31) [][]float64 {
	return columns(len(r.Params.TightCounts), func(k int) []float64 {
		column := series(r, "uniform", "gap", k)
		floats.Scale(math.Sqrt(2*float64(r.Params.TightValid)/math.Log(float64(r.Params.TightCounts[k]))), column)
		return column
	})
}

func tightPanel(r *corollary31) plots.Panel {
	return panel("(c) tight case",
		plots.Axis{Label: "$|C|$", Scale: plots.Log2}, plots.Axis{Label: "gap over its bound", Min: 0, Max: 1.1},
		curve(r, "independent losses", study.Floats(r.Params.TightCounts), ratios(r), false),
		plots.HLine(`$\sqrt{\log|C|/2|V|}$`, 1))
}

// judgeTight is the dependence on |C| where it is largest.
func judgeTight(r *corollary31) runs.Claim {
	c := r.Claim("[corA2-C] max gap at most √(log|C|/2|V|) at every |C|, independent losses").
		From("Corollaries 3.1 and A.2").Says(1).Noting("ours is the largest ratio over |C| with its interval")
	var worst runs.Summary
	for _, column := range ratios(r) {
		s, err := runs.Summarize(present(column), r.Confidence)
		if err != nil {
			return c.NotRun("%v", err)
		}
		if s.Mean > worst.Mean {
			worst = s
		}
	}
	return c.Of(worst, nil).AtMost(1)
}

// judgeTightEnd says that the logarithm is needed: the ratio stays near 1.
func judgeTightEnd(r *corollary31) runs.Claim {
	last := len(r.Params.TightCounts) - 1
	return r.Claim("[corA2-C] the root of the logarithm is reached: ratio at |C| = %d at least 0.8",
		r.Params.TightCounts[last]).From("Corollaries 3.1 and A.2").Says(1).
		Noting("the bound 0.8 is ours; without log|C| the ratio would go to 0").
		Of(runs.Summarize(present(ratios(r)[last]), r.Confidence)).AtLeast(0.8)
}

// judgeDeviation is the probability of the deviation term on the tight case. A
// draw has all |C|.
func judgeDeviation(r *corollary31) runs.Claim {
	shares := present(bySeed(r.Part("uniform").Records(), func(record *runs.Record) float64 {
		return stat.Mean(record.Series["beyond_hoeffding"], nil)
	}))
	return drawShare(r, shares, r.Params.Draws).AtMost(
		r.Claim("[thmA2] deviation beyond √((log|C| + log 1/δ)/2|V|), share, tight case").From("Theorem A.2, step 1").
			Noting("the paper's term is twice this one; ours is the mean share over |C|, at most δ promised").Claim,
		r.Params.Delta)
}
