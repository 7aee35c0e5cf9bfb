package khodak2020

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/khodak2020/internal/excessrisk"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Corollary31Params are the parameters of the theorems of Section 3 and Appendix A, checked where every population risk
// is known exactly: a distribution of finitely many atoms with noisy labels ±1, random Fourier features of several
// bandwidths, predictions clipped to [−1, 1], squared loss (B = 4).
type Corollary31Params struct {
	Inputs  int     `validate:"gte=1"`      // dimension of x
	Support int     `validate:"gte=1"`      // atoms of 𝒟
	Dim     int     `validate:"gte=1"`      // random features d
	Gamma   float64 `validate:"positive"`   // bandwidth γ of the best configuration c*
	Centers int     `validate:"gte=1"`      // the target is a sum of so many kernel functions
	Top     float64 `validate:"gt=0,lte=1"` // max |f*|: how far labels are from certain

	Range  [2]float64 `validate:"ascending,dive,positive"`    // the other bandwidths: a logarithmic grid from … to
	Train  []int      `validate:"min=1,ascending,dive,gte=1"` // |T| of Corollary A.1 and A.3
	At     int        `validate:"gte=1"`                      // |T| where |V| and |C| are varied
	Valid  []int      `validate:"min=1,ascending,dive,gte=1"` // |V|
	Counts []int      `validate:"min=1,ascending,dive,gte=1"` // |C|
	Draws  int        `validate:"gte=1"`                      // validation sets of each size
	Delta  float64    `validate:"gt=0,lt=1"`                  // δ

	KernelTrain  []int     `validate:"min=1,ascending,dive,gte=1"` // |T| = |V| of Corollary A.3
	KernelFactor []float64 `validate:"min=1,dive,positive"`        // κ: d = κ·√|T|·log(√|T|/δ)

	JointSize   int       `validate:"gte=1"`                    // |T| = |V| of joint ERM against the bilevel choice
	JointDim    int       `validate:"gte=1"`                    // its d
	JointCount  int       `validate:"gte=1"`                    // its |C|
	JointLambda []float64 `validate:"min=1,dive,gte=0,lte=1e9"` // its λ

	Scales  []float64 `validate:"min=1,dive,positive"` // ε of the version entropy
	Members int       `validate:"gte=1"`               // of an unregularised version space

	TightCounts []int `validate:"min=1,ascending,dive,gte=1"` // |C| of the case where the deviation term is tight
	TightValid  int   `validate:"gte=1"`                      // its |V|

	Lipschitz []float64 `validate:"min=1,dive,positive"` // L of Theorem A.1 on a ball of radius ε = 0.1

	Seeds      int     `validate:"gte=1"`
	Confidence float64 `validate:"gt=0.5,lt=1"`
	StoredOnly bool    // show what the run store has and compute nothing
}

// Corollary31Paper is a wide sweep with 100 seeds: the paper states the theorems
// and measures none of them. It takes 12 minutes on two cores.
var Corollary31Paper = Corollary31Params{
	Inputs: 4, Support: 2048, Dim: 128, Gamma: 0.1, Centers: 4, Top: 0.9,
	Range: [2]float64{1e-3, 10},
	Train: []int{32, 64, 128, 256, 512, 1024, 2048}, At: 256,
	Valid: []int{10, 20, 40, 80, 160, 320, 640, 1280}, Counts: []int{2, 4, 8, 16, 32, 64}, Draws: 200, Delta: 0.1,
	KernelTrain: []int{64, 128, 256, 512, 1024, 2048}, KernelFactor: []float64{0.0625, 0.25, 1, 2},
	JointSize: 200, JointDim: 600, JointCount: 12, JointLambda: []float64{1e-3, 0.05, 0.5, 5, 50},
	Scales: []float64{1e-6, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 3}, Members: 256,
	TightCounts: []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, TightValid: 200,
	Lipschitz: []float64{1, 1.25, 4},
	Seeds:     100, Confidence: 0.95,
}

// Corollary31Quick has half the dimensions, smaller sets and 16 seeds: a minute on two
// cores. Two slopes in |T| are inconclusive with it.
var Corollary31Quick = func() Corollary31Params {
	p := Corollary31Paper
	p.Support, p.Dim = 1024, 64
	p.Train = []int{32, 64, 128, 256, 512, 1024}
	p.Valid, p.Counts, p.Draws = []int{10, 20, 40, 80, 160, 320, 640}, []int{2, 4, 8, 16}, 50
	p.KernelTrain, p.KernelFactor = []int{64, 128, 256, 512}, []float64{0.0625, 0.25, 1}
	p.JointSize, p.JointDim, p.JointLambda = 100, 300, []float64{1e-3, 0.05, 0.5, 50}
	p.Members, p.Seeds = 64, 16
	p.TightCounts = []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	return p
}()

// Corollary31 asks the theorems of Section 3 and Appendix A six questions. Names of claims begin with
// what the claim is about; a name that ends in "(assumption broken)" is a case in which the theorem promises nothing
// and which is expected to come out the other way, so that the check can tell.
var Corollary31 = lab.Declare(lab.Entry[Corollary31Params, risk]{
	Of: paper, Name: "corollary31", Kind: lab.Theorem, Source: "Corollary 3.1", Notebook: "corollary31_bilevel",
	Title: "Excess risk of feature map selection: version entropy, bilevel and joint ERM",
	Cost:  catalog.Cost{Quick: "a minute on two cores; precomputed", Paper: "12 minutes on two cores; precomputed"},
	Quick: Corollary31Quick, Paper: Corollary31Paper,
	Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Paper}},
	Code:    corollary31Code,
	Bench: func(context.Context, Corollary31Params, string) (lab.Bench[risk], error) {
		run := func(_ context.Context, t risk, seed uint64, _ study.Step) (trial.Result, error) { return t.Run(seed) }
		return lab.Bench[risk]{Run: run}, nil
	},
	Draw: func(r *corollary31, f *lab.Picture) {
		p := r.Params
		f.Row(trainPanel(r), validPanel(r), tightPanel(r))
		f.Row(kernelPanel(r), jointPanel(r), coverPanel(r))
		f.Say("Squared loss of predictions clipped to [−1, 1] on labels ±1, population risks exact; %s.",
			r.Interval("bars", p.Seeds, "seed"))
		f.Say("(a) to (c): $d = %d$, $δ = %v$; (e), (f): $|T| = |V| = %d$, $d = %d$.",
			p.Dim, p.Delta, p.JointSize, p.JointDim)
	},
	Questions: []lab.Question[Corollary31Params, risk]{
		entropyQuestion, ballQuestion, selectionQuestion, tightQuestion, kernelQuestion, jointQuestion,
		{Claims: func(r *corollary31) []runs.Claim { return []runs.Claim{judgeNASCount(r)} }},
	},
})

type (
	corollary31 = lab.Result[Corollary31Params, risk]
	risks       = lab.Groups[risk]

	// risk is a trial of one of the questions.
	risk interface {
		Run(seed uint64) (trial.Result, error)
	}
)

var corollary31Code = code.Define("khodak2020/corollary31", "khodak2020/internal/excessrisk")

func (p Corollary31Params) instance(dim int) excessrisk.InstanceParams {
	return excessrisk.InstanceParams{
		Inputs: p.Inputs, Support: p.Support, Dim: dim, Gamma: p.Gamma, Centers: p.Centers, Top: p.Top,
	}
}

func series(r *corollary31, part, name string, at int) []float64 {
	return bySeed(r.Part(part).Records(), func(record *runs.Record) float64 { return record.Series[name][at] })
}

func value(r *corollary31, part, name string) []float64 {
	return bySeed(r.Part(part).Records(), func(record *runs.Record) float64 { return record.Values[name] })
}

// columns are what of returns for each of so many points.
func columns[T any](points int, of func(i int) T) []T { return study.Map(trial.Indices(0, points), of) }

// curve is a mean over the seeds at every x, with its interval, as drawn: on a
// logarithmic axis a lower end at or below 0 is cut off at a tenth of the mean.
func curve(r *corollary31, label string, xs []float64, columns [][]float64, log bool) plots.Series {
	x, means := means(xs, func(i int) (runs.Summary, error) {
		s, err := runs.Summarize(present(columns[i]), r.Confidence)
		if log && s.Mean <= 0 {
			return s, errors.New("a logarithmic axis has no such point")
		}
		if log && s.Lo.Valid() && float64(s.Lo) <= s.Mean/10 {
			s.Lo = runs.Number(s.Mean / 10)
		}
		return s, err
	})
	return plots.Bars(label, x, means)
}

func panel(title string, x, y plots.Axis, series ...plots.Series) plots.Panel {
	return plots.Panel{Title: title, X: x, Y: y, Series: series, Legend: plots.Legend{Position: plots.LegendInside}}
}

// drawShare is how many draws something happened in, from the shares of so many draws a seed.
func drawShare(r *corollary31, shares []float64, draws int) verdict.Share {
	n := float64(draws)
	return verdict.Share{Yes: n * floats.Sum(shares), Of: n * float64(len(shares)), Confidence: r.Confidence}
}

// slopeTolerance is how far a measured exponent may be from a rate's.
const slopeTolerance = 0.05

// halfRate judges that means over seeds fall at least as fast as n^−1/2.
func halfRate(r *corollary31, c lab.Claim, xs []int, columns [][]float64) runs.Claim {
	c.Tolerance = slopeTolerance
	return c.Says(-0.5).Of(verdict.SlopeOfMeans(study.Floats(xs), completeRows(columns...), r.Confidence)).
		AtMost(-0.5 + slopeTolerance)
}

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
