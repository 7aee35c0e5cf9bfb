package oymak2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/oymak2021/internal/convergence"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

func cosineTrials(p Theorem1Params) curves {
	return p.included("lipschitz", convergence.Case{
		Part: "lipschitz", Maps: 1, Repeats: p.Repeats, Validation: []int{p.LipschitzValid}, Lipschitz: p.Lipschitz,
	})
}

func cosinePanel(r *theorem1) plots.Panel {
	p, gs := r.Params, r.Part("lipschitz")
	of := func(label, name string) plots.Series {
		return band(label, p.Lipschitz, study.Columns(gs.Rows(name)), r.Confidence)
	}
	return plots.Panel{
		Title: "(f) $f_α(x) = \\cos(Lαx)$: only $L$ grows",
		X:     logAxis("Lipschitz constant $L$"), Y: plots.Axis{Label: "sup of risk gap"},
		Series: []plots.Series{
			of(fmt.Sprintf("$n_V = %d$", p.LipschitzValid), "gap"), of("$n_V = 3$: too few", "few"),
		},
	}
}

func judgeCosine(r *theorem1) []runs.Claim {
	gs, ls := r.Part("lipschitz"), r.Params.Lipschitz
	if len(gs) == 0 {
		return nil
	}
	middle := len(ls) / 2
	slope := func(from, to int) perSeed {
		return func(seed int) (float64, error) {
			return verdict.Slope(ls[from:to], gs[0].Records[seed].Series["gap"][from:to])
		}
	}
	upper := slope(middle, len(ls))
	return []runs.Claim{
		rate(r, "[intro-log-L] gap over the Lipschitz constant", ", Section 1",
			fmt.Sprintf("log–log slope for L from %v on; √log L has (1/2)/log L, about 0.1 here, and √L would have 1/2",
				ls[middle]), upper).Between(0, math.Inf(-1), 0.2),
		rate(r, "[intro-log-L] slope of the gap over the Lipschitz constant falls as it grows", ", Section 1",
			"slope at small L minus slope at large L: a power of L would have none",
			difference(slope(0, middle+1), upper)).Between(0, 0, math.Inf(1)),
		r.Claim("own: condition violated on purpose, n_V = 3 < h̄_eff").
			Noting("ours is the gap at the largest L: three samples do not bound it").
			Mean(study.Column(gs.Rows("few"), len(ls)-1)).Between(1, 0.9, math.Inf(1)),
	}
}
