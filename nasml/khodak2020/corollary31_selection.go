package khodak2020

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/khodak2020/internal/excessrisk"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// selectionQuestion asks what training and choosing a configuration cost in risk.
var selectionQuestion = lab.Question[Corollary31Params, risk]{
	Trials: func(p Corollary31Params) (gs risks) {
		add := func(train int, valid, counts []int, reading string) {
			gs.Add(selectionName(reading, train), p.Seeds, excessrisk.Selection{
				Part: "selection", Instance: p.instance(p.Dim), Range: p.Range, Train: train, Valid: valid,
				Counts: counts, Draws: p.Draws, Delta: p.Delta, Lambda: reading,
			})
		}
		// Away from At only the largest |V| and |C| are of interest.
		largest, most := p.Valid[len(p.Valid)-1:], p.Counts[len(p.Counts)-1:]
		for _, reading := range []string{"mean", "sum"} {
			for _, n := range p.Train {
				if n != p.At {
					add(n, largest, most, reading)
				}
			}
			add(p.At, p.Valid, p.Counts, reading)
		}
		add(p.At, p.Valid, p.Counts, "none")
		return gs
	},
	Claims: func(r *corollary31) []runs.Claim {
		return []runs.Claim{
			judgeCoverage(r, r.Claim("[thmA2] excess risk beyond Theorem A.2's bound, share of validation sets").
				From("Theorem A.2"), "sum", "broken_a2", 3),
			judgeCoverage(r, r.Claim("[thm31] excess risk beyond Theorem 3.1's bound, share of validation sets").
				From("Theorem 3.1"), "sum", "broken_31", 3),
			judgeCoverage(r, r.Claim("[corA4] excess risk beyond the bound without regularisation, share").
				From("Corollary A.4"), "none", "broken_a4", 4),
			judgeTrain(r, "mean", "λ of the mean loss"), judgeTrainConstant(r),
			judgeTrain(r, "sum", "λ of the summed loss, as printed"), judgeLambda(r), judgeValid(r),
		}
	},
}

func selectionName(reading string, train int) string {
	return fmt.Sprintf("selection/%s/%d", reading, train)
}

func trainedExcess(r *corollary31, reading string) [][]float64 {
	return columns(len(r.Params.Train), func(i int) []float64 {
		return value(r, selectionName(reading, r.Params.Train[i]), "best")
	})
}

// selectionSeries is a series of the selection at At and the largest |C|, by |V|, with λ of the summed loss.
func selectionSeries(r *corollary31, name string) [][]float64 {
	counts := len(r.Params.Counts)
	return columns(len(r.Params.Valid), func(v int) []float64 {
		return series(r, selectionName("sum", r.Params.At), name, v*counts+counts-1)
	})
}

// rateA1 is √((‖w*‖²+1)/|T|·log(1/δ)) with the mean ‖w*‖² of the seeds; NaN if there are none.
func rateA1(r *corollary31, n int) float64 {
	norms := present(value(r, selectionName("mean", r.Params.At), "norm"))
	return math.Sqrt((stat.Mean(norms, nil) + 1) / float64(n) * math.Log(1/r.Params.Delta))
}

func trainPanel(r *corollary31) plots.Panel {
	xs := study.Floats(r.Params.Train)
	p := panel("(a) training, Cor. A.1",
		plots.Axis{Label: "$|T|$", Scale: plots.Log2}, plots.Axis{Label: "excess risk of $c^*$", Scale: plots.Log10},
		curve(r, "$λ$ of the mean loss", xs, trainedExcess(r, "mean"), true),
		curve(r, "$λ$ of the summed loss", xs, trainedExcess(r, "sum"), true))
	if rate := rateA1(r, 1); !math.IsNaN(rate) {
		p.Series = append(p.Series, plots.Reference("the bound's rate, constant 1", plots.AutoLine, xs,
			func(x float64) float64 { return rate / math.Sqrt(x) }))
	}
	return p
}

func validPanel(r *corollary31) plots.Panel {
	xs := study.Floats(r.Params.Valid)
	bound := plots.Series{Label: "bound of Theorem A.2", Reference: true}
	for i, column := range selectionSeries(r, "bound") {
		if column = present(column); len(column) > 0 {
			bound.X, bound.Y = append(bound.X, xs[i]), append(bound.Y, stat.Mean(column, nil))
		}
	}
	return panel(fmt.Sprintf("(b) choice of %d", slices.Max(r.Params.Counts)),
		plots.Axis{Label: "$|V|$", Scale: plots.Log2}, plots.Axis{Label: "risk", Scale: plots.Log10},
		curve(r, "excess over the best trained $c$", xs, selectionSeries(r, "selection"), true),
		curve(r, `$\ell_D − \ell_V$ of the choice`, xs, selectionSeries(r, "gap"), true), bound)
}

// judgeCoverage judges how often a bound was broken, over all |V|, |C|, draws and seeds: P ≤ kδ. The draws of a seed
// share a training set, so that seeds are the independent units.
func judgeCoverage(r *corollary31, c lab.Claim, reading, series string, k float64) runs.Claim {
	records := r.Part(selectionName(reading, r.Params.At)).Records()
	shares := present(bySeed(records, func(record *runs.Record) float64 { return slices.Max(record.Series[series]) }))
	border := k * r.Params.Delta
	c = c.Noting("ours is the share at the worst |V| and |C| of each seed, ε* measured on c*; at most %gδ = %.3g "+
		"promised%s", k, border, slackOf(records))
	c.Tolerance = 0
	share := drawShare(r, shares, r.Params.Draws)
	share.Alike = float64(r.Params.Draws)
	return share.AtMost(c.Claim, border)
}

// slackOf says how much of Theorem A.2's bound the excess risk takes.
func slackOf(records []*runs.Record) string {
	var slack []float64
	for _, record := range records {
		if record != nil {
			for i, e := range record.Series["excess"] {
				slack = append(slack, e/record.Series["bound"][i])
			}
		}
	}
	if len(slack) == 0 {
		return ""
	}
	return fmt.Sprintf("; the excess risk is %.2g of Theorem A.2's bound on average, so that only a constant far too "+
		"small would be seen", stat.Mean(slack, nil))
}

func judgeTrain(r *corollary31, reading, inWords string) runs.Claim {
	return halfRate(r, r.Claim("[corA1] slope of c*'s excess risk over |T| at most −1/2, %s", inWords).
		From("Corollary A.1").Noting("ours is the log–log slope with a jackknife interval over seeds; a bound "+
		"O(|T|^−1/2) asks for no more than −1/2"), r.Params.Train, trainedExcess(r, reading))
}

func judgeTrainConstant(r *corollary31) runs.Claim {
	constant := func(means []float64) (float64, error) {
		worst := 0.0
		for i, m := range means {
			worst = max(worst, m/rateA1(r, r.Params.Train[i]))
		}
		return worst, nil
	}
	return r.Claim("[corA1] constant of √((‖w*‖²+1)/|T|·log 1/δ) that the data need, at most 1, λ of the mean loss").
		From("Corollary A.1").Says(1).
		Noting("the paper has O(·): the constant 1 is ours; ours is the largest ratio over |T|").
		Of(verdict.Jackknife(completeRows(trainedExcess(r, "mean")...), r.Confidence, constant)).AtMost(1)
}

// judgeLambda compares the two readings of λ where |T| is nearest to d.
func judgeLambda(r *corollary31) runs.Claim {
	far := func(n int) float64 { return math.Abs(math.Log(float64(n) / float64(r.Params.Dim))) }
	near := slices.MinFunc(r.Params.Train, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
	c := r.Claim("[corA1-lambda] at |T| ≈ d the printed λ on the summed loss has more excess risk than on the mean").
		From("Corollary A.1 with Setting A.2").Noting("our reading: λ belongs to the mean loss; ours is the "+
		"difference of the excess risks of c*, sum less mean, at |T| = %d, d = %d", near, r.Params.Dim)
	return greater(c, value(r, selectionName("sum", near), "best"), value(r, selectionName("mean", near), "best"))
}

func judgeValid(r *corollary31) runs.Claim {
	return halfRate(r, r.Claim("[corA2] slope of the choice's excess over the best trained c in |V| at most −1/2").
		From("Corollaries 3.1 and A.2").
		Noting("|C| = %d, |T| = %d, jackknife interval over seeds", slices.Max(r.Params.Counts), r.Params.At),
		r.Params.Valid, selectionSeries(r, "selection"))
}
