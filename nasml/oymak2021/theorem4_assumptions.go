package oymak2021

import (
	"fmt"
	"strings"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/lowrank"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// theorem4Assumptions asks how the estimate does outside the assumptions.
var theorem4Assumptions = lab.Question[Theorem4Params, lowrank.Trial]{
	Name: "assumptions", Draw: common(drawCases),
	Trials: func(p Theorem4Params) (gs lab.Groups[lowrank.Trial]) {
		gs.Add("case", p.CaseSeeds, study.Map(p.Cases, func(c Theorem4Case) lowrank.Trial { return c.trial() })...)
		return gs
	},
	Claims: judgeCases,
}

// Theorem4Case is a run with an assumption changed.
type Theorem4Case struct {
	Name     string  `validate:"required"`
	Examples int     `validate:"gte=2"` // n
	Ratio    float64 `validate:"gt=1"`  // p̄
	H        int     `validate:"gte=1"`
	Features string  // "gaussian", "rademacher", "heavy" (multivariate t₃) or "correlated" (0.9 between two operations)
	Noise    float64 `validate:"gte=0"` // σ
	Same     bool    // 𝒱 = 𝒯
	Whiten   bool    // make the operations' features independent first, with their true covariance
}

// theorem4Cases break one assumption each; the first breaks none.
var theorem4Cases = []Theorem4Case{
	{Name: "as assumed", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian"},
	{Name: "$±1$ features", Examples: 500, Ratio: 1.2, H: 3, Features: "rademacher"},
	{Name: "label noise $σ = 1$", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian", Noise: 1},
	{Name: "$V = T$", Examples: 500, Ratio: 1.2, H: 3, Features: "gaussian", Same: true},
	{Name: "heavy-tailed examples", Examples: 500, Ratio: 1.2, H: 3, Features: "heavy"},
	{Name: "correlated operations", Examples: 500, Ratio: 1.2, H: 3, Features: "correlated"},
	{Name: "correlated, whitened", Examples: 500, Ratio: 1.2, H: 3, Features: "correlated", Whiten: true},
	{Name: "$ph = 2n^2$", Examples: 100, Ratio: 5, H: 40, Features: "gaussian"},
}

func (c Theorem4Case) trial() lowrank.Data {
	return lowrank.Data{
		Part: "data", N: c.Examples, P: sizeOf(c.Examples, c.Ratio), H: c.H, Noise: c.Noise,
		Features: c.Features, Same: c.Same, Whiten: c.Whiten,
	}
}

func drawCases(r *theorem4, f *lab.Picture) {
	var rows [][]plots.Entry
	for i, q := range theorem4Points(r, "case") {
		k, limit := r.Params.Cases[i], plots.Entry{Text: fmt.Sprintf("%.2f", q.limit())}
		if k.Features == "correlated" || k.Features == "heavy" || k.Same { // it is not known
			limit = plots.Entry{Text: "–", Grey: true}
		}
		rows = append(rows, []plots.Entry{
			{Text: k.Name}, {Text: fmt.Sprintf("%d, %d, %d", q.n, q.p, q.h)}, {Text: fmt.Sprintf("%.3g", q.product())},
			plusMinus(r.Mean(q.rho2)), limit, boundEntry(q.bound11(), q.noise, q.bound11() > 0),
			plusMinus(r.Mean(q.risk)), plusMinus(r.Mean(q.oracle)), boundEntry(q.bound12(), q.noise, true),
		})
	}
	if len(rows) == 0 {
		return
	}
	columns := study.Map([]string{
		"assumption changed", "$n, p, h$", "$ph/n^2$", "$ρ^2$", "limit", "(11)", "risk", "oracle", "(12)",
	}, func(header string) plots.Column { return plots.Column{Header: header} })
	f.Row(plots.Panel{Table: &plots.Table{Columns: columns, Blocks: []plots.Block{{Rows: rows}}}})
	f.Say("The first row breaks no assumption; ± half of the %v %% CI of the mean of %s.", 100*r.Confidence,
		study.Counted(r.Params.CaseSeeds, "seed"))
}

func plusMinus(s runs.Summary) plots.Entry {
	if !s.Hi.Valid() {
		return plots.Entry{Text: fmt.Sprintf("%.2f", s.Mean)}
	}
	return plots.Entry{Text: fmt.Sprintf("%.2f ± %.2f", s.Mean, float64(s.Hi)-s.Mean)}
}

// boundEntry is a bound of the paper, which has no label noise; it tells nothing if it is below 0.
func boundEntry(bound, noise float64, telling bool) plots.Entry {
	text := fmt.Sprintf("%.2f", bound)
	if !telling {
		text = "below 0"
	}
	if noise > 0 {
		text = "–"
	}
	return plots.Entry{Text: text, Grey: true}
}

// judgeCases shows that the conclusion may fail where an assumption does.
func judgeCases(r *theorem4) []runs.Claim {
	var claims []runs.Claim
	for i, q := range theorem4Points(r, "case") {
		k := r.Params.Cases[i]
		name := strings.NewReplacer("$", "", "^2", "²").Replace(k.Name)
		switch {
		case k.Features == "correlated" && !k.Whiten && k.H > 1:
			c := r.Claim("ours: without independent operations (11) may fail: ρ² of %s is below 1 − 64p̄h̄", name).
				From(notInPaper).Says(q.bound11()).
				Noting("correlation %v between two operations, α* = e₁, %v", lowrank.Correlation, q)
			if q.bound11() <= 0 {
				claims = append(claims, c.NotRun("the bound is not above 0"))
			} else {
				claims = append(claims, c.Mean(q.rho2).AtMost(q.bound11()))
			}
		case q.product() > 1 && q.noise == 0:
			claims = append(claims, r.Claim("ours: beyond ph = n² the algorithm may be worse than predicting 0: "+
				"risk at %s", name).From(notInPaper).Says(1).Mean(q.risk).AtLeast(1))
		}
	}
	return claims
}
