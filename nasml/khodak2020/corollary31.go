package khodak2020

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/floats"

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
	Code: corollary31Code,
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
