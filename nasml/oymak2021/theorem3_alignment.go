package oymak2021

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

func alignmentTrials(p Theorem3Params) descents {
	return p.groups("align", study.Map(p.RankWorld, func(source string) activationsearch.Part {
		return activationsearch.Part{
			Part: "align", Source: p.source(source), Activations: p.Activations,
			Train: p.RankPool / 2, Pool: p.RankPool, Ranks: p.Ranks,
		}
	})...)
}

func pairedTrials(p Theorem3Params) descents {
	return p.groups("paired", activationsearch.Part{
		Part: "paired", Source: p.source(neural.Paired), Activations: p.Odd, Alphas: p.Alphas,
		Train: p.WidthTrain, Pool: p.WidthTrain, Width: p.Width, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon,
	})
}

func rankPanel(r *theorem3, title, label string, scale plots.Scale, series string) plots.Panel {
	panel := logLog(title, "labels: sign of eigenvector", label)
	panel.Y.Scale = scale
	for _, g := range r.Part("align") {
		panel.Series = append(panel.Series, curve(sourceNames[g.Trial.Source.Data], study.Floats(r.Params.Ranks),
			columns(g.Records, series), scale, r.Confidence),
			plots.HLine("random labels", stat.Mean(study.Values(g.Records, "random_"+series), nil)))
	}
	return panel
}

func judgeAlignment(r *theorem3) []runs.Claim {
	var claims []runs.Claim
	for _, g := range r.Part("align") {
		for _, series := range []string{"term", "error"} {
			claims = append(claims, r.Claim("[thm3-align] %s smaller for the principal eigenvector than for random "+
				"labels, %s inputs", series, sourceNames[g.Trial.Source.Data]).From("Section 4.2").Says(0).
				Noting("ours is random less eigenvector %d", r.Params.Ranks[0]).Family(len(r.Params.RankWorld)).
				Difference(study.Values(g.Records, "random_"+series), study.Column(study.Rows(g.Records, series), 0)).
				Above(0))
		}
	}
	return claims
}

// judgeViolations shows cases outside the theorem, where its conclusion fails.
func judgeViolations(r *theorem3) []runs.Claim {
	p := r.Params
	flipped := listsOf(ofSource(r, neural.Flipped), bestTerm)
	errors := listsOf(r.Part("widths"), overAlphas("train_error"))
	mostTrain, widest := len(p.Trains)-1, len(p.Widths)-1
	below := study.Map(slices.Concat(r.Part("paired").Rows("train_error")...), // for every α and seed
		func(e float64) float64 { return 0.5 - e })
	return []runs.Claim{
		r.Claim("violation: flipped labels make the first term grow with n_T").From(notInPaper).Says(0).
			Noting("ours is the term at n_T = %d less that at %d; above 1 it says nothing", p.Trains[mostTrain],
				p.Trains[0]).
			Difference(flipped[mostTrain], flipped[0]).Above(0),
		verdict.Every(r.Claim("violation: inputs x, −x with one label, odd activations: training error at least 1/2 "+
			"for every α").From(notInPaper).
			Noting("the number is 1/2 less the training error, k = %d; an odd network has f(−x) = −f(x), "+
				"K_α is singular and Assumption 3 fails", p.Width).Claim, below, 0),
		r.Claim("violation: too narrow, k = %d: training error above that at k = %d", p.Widths[0], p.Widths[widest]).
			Says(0).Noting("ours is the difference for the worst α; the theorem asks for k ≳ poly(n_T, …)").
			Difference(errors[0], errors[widest]).Above(0),
	}
}
