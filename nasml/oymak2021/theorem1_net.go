package oymak2021

import (
	"context"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

func netTrials(p Theorem1Params) curves {
	return p.included("net", study.Map(p.NetMaps, func(h int) convergence.Case {
		return convergence.Case{
			Part: "net", Maps: h, Validation: p.Validation, Repeats: p.Repeats,
			Candidates: p.NetCandidates, Loss: p.Loss,
			Net: &activation.Net{
				Classes: p.Classes, Train: p.NetTrain, Pool: p.Pool, Activations: p.Activations[:h],
				Width: p.Width, Steps: p.Steps, C0: p.C0, Rate: p.Rate,
			},
		}
	})...)
}

func theorem1Bench(ctx context.Context, p Theorem1Params, _ string) (lab.Bench[convergence.Case], error) {
	names := p.Activations
	if !slices.Contains(p.Parts, "net") {
		names = nil
	}
	return netBench(ctx, p.Data, p.Classes, names, func(c *convergence.Case) *activation.Net {
		if c.Net != nil {
			net := *c.Net
			c.Net = &net
		}
		return c.Net
	})
}

func judgeNet(r *theorem1) []runs.Claim {
	gs := r.Part("net")
	if len(gs) == 0 {
		return nil
	}
	const of = "log–log slope; sup over trained candidates; 𝒟 is the empirical distribution of the pool"
	return []runs.Claim{
		rate(r, "[thm1-eq2] gap over n_V (activation search)", " (2)", of,
			slopes(gs, stored("gap"), 1)).Between(-0.5, math.Inf(-1), -0.4),
		rate(r, "[thm1-eq2-h] gap over h (activation search)", " (2)", of,
			growth(gs, stored("gap"), 1)).Between(0.5, math.Inf(-1), 0.7),
		judgeSelection(r, "[thm1-eq3] risk of α̂ ≤ min L + 2 sup gap (activation search)", gs),
		verdict.Exactly(r.Claim("[oymak2021ext/abstract-best-pair figure1a] training 0-1 error is zero at every α "+
			"(activation search)").From("Theorem 1 and Figure 1(a)").
			Noting("the largest of all networks; the largest mean squared training loss is %.2g",
				slices.Max(gs.Values("train_loss"))).Claim, slices.Max(gs.Values("train")), 0, 0),
	}
}
