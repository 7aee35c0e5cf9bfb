package khodak2020

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/khodak2020/internal/excessrisk"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Corollary31Params are the parameters of the theorems of Section 3 and
// Appendix A, checked where every population risk is known exactly: a
// distribution of finitely many atoms with noisy labels ±1, random Fourier
// features of several bandwidths, predictions clipped to [−1, 1], squared loss
// (B = 4).
type Corollary31Params struct {
	Inputs  int     // dimension of x
	Support int     // atoms of 𝒟
	Dim     int     // random features d
	Gamma   float64 // bandwidth γ of the best configuration c*
	Centers int     // the target is a sum of so many kernel functions
	Top     float64 // max |f*|: how far labels are from certain

	Range  [2]float64 // the other bandwidths lie on a logarithmic grid from … to
	Train  []int      // |T| of Corollary A.1 and A.3
	At     int        // |T| where |V| and |C| are varied
	Valid  []int      // |V|
	Counts []int      // |C|, ascending
	Draws  int        // validation sets of each size
	Delta  float64    // δ

	KernelTrain  []int     // |T| = |V| of Corollary A.3
	KernelFactor []float64 // κ: d = κ·√|T|·log(√|T|/δ)

	JointSize   int       // |T| = |V| of joint ERM against the bilevel choice
	JointDim    int       // its d
	JointCount  int       // its |C|
	JointLambda []float64 // its λ

	Scales  []float64 // ε of the version entropy
	Members int       // of an unregularised version space

	TightCounts []int // |C| of the case where the deviation term is tight, ascending
	TightValid  int   // its |V|

	Lipschitz []float64 // L of Theorem A.1 on a ball of radius ε = 0.1

	Seeds      int
	Confidence float64
	StoredOnly bool // show what the run store has and compute nothing
}

// Corollary31Paper is a wide sweep with 100 seeds: the paper states the theorems
// and measures none of them. It takes 12 minutes on two cores.
// All bounds hold: c*'s excess risk falls as |T|^−0.56 and the choice's cost as
// |V|^−1.2, the root of log|C| is reached to 15 %, joint ERM at λ = 10⁻³ has 0.72
// more excess risk than the bilevel choice, and none of 160,000 validation sets
// goes beyond Theorem A.2's bound.
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

// Corollary31Quick has half the dimensions, smaller sets and 16 seeds: a minute on
// two cores. It gives the same but for two slopes in |T|, whose intervals are three
// to five times as wide and leave −1/2 open.
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

const (
	corollary31ID    = "khodak2020/corollary31"
	corollary31Title = "Excess risk of feature map selection: version entropy, bilevel and joint ERM"
)

// theoremA1 is Theorem A.1 on a ball of radius ε, where it is tried with samples
// of m.
var theoremA1 = excessrisk.Ball{Part: "ball", Epsilon: 0.1, Sample: 2000, Atoms: 1_000_000, Draws: 20}

var corollary31Kind = code.Define("khodak2020/corollary31", "khodak2020/internal/excessrisk")

func init() {
	catalog.Register(catalog.Entry{
		ID: corollary31ID, Paper: "Khodak+ 2020", Title: corollary31Title, Kind: "theorem",
		Notebook: "notebooks/khodak2020/corollary31_bilevel.ipynb",
		Cost: catalog.Cost{
			Quick: "a minute on two cores; the project ships its trials",
			Paper: "12 minutes on two cores; the project ships its trials",
		},
		Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Paper}},
	}, Corollary31Quick, Corollary31Paper, Corollary31)
}

// Corollary31Result has the records of every part of the check, one a seed.
type Corollary31Result struct {
	Params Corollary31Params
	Scale  string // "quick", "paper" or empty for own parameters
	parts  map[string][]*runs.Record
	all    []*runs.Record
}

// Records are the keys of the trials.
func (r *Corollary31Result) Records() []string { return study.Keys(r.all) }

// Corollary31 computes what the run store lacks: one trial a part and seed.
// Cancelling ctx ends it after the trials under way, which are stored. It is a
// *catalog.UsageError where a parameter makes no sense.
func Corollary31(ctx context.Context, p Corollary31Params) (*Corollary31Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	parts := p.parts()
	var cases []study.Case
	for _, part := range parts {
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			run := func(context.Context, study.Step) (trial.Result, error) { return part.trial.Run(seed) }
			return study.Case{Params: part.trial, Label: part.name, Run: run}
		})...)
	}
	s := study.Study{ID: corollary31ID, Code: corollary31Kind, Shipped: shippedRecords, StoredOnly: p.StoredOnly}
	records, err := s.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &Corollary31Result{Params: p, Scale: runs.Scale(ctx), parts: map[string][]*runs.Record{}, all: records}
	for i, part := range parts {
		r.parts[part.name] = records[i*p.Seeds : (i+1)*p.Seeds]
	}
	return r, nil
}

// part is a named kind of trial.
type part struct {
	name  string
	trial interface {
		Run(seed uint64) (trial.Result, error)
	}
}

// selectionName names the trials of a training size and a reading of λ.
func selectionName(reading string, train int) string {
	return fmt.Sprintf("selection/%s/%d", reading, train)
}

func kernelName(train int) string { return fmt.Sprintf("kernel/%d", train) }

// parts lists what is computed, a trial a seed of each.
func (p Corollary31Params) parts() []part {
	w := excessrisk.WorldParams{
		Inputs: p.Inputs, Support: p.Support, Dim: p.Dim, Gamma: p.Gamma, Centers: p.Centers, Top: p.Top,
	}
	parts := p.selections(w)
	for _, n := range p.KernelTrain {
		parts = append(parts, part{kernelName(n), excessrisk.Kernel{
			Part: "kernel", World: w, Range: p.Range, Count: min(8, slices.Max(p.Counts)), Train: n,
			Factor: p.KernelFactor, Delta: p.Delta,
		}})
	}
	wide, ball := w, theoremA1
	wide.Dim, ball.Lipschitz = p.JointDim, p.Lipschitz
	return append(parts,
		part{"joint", excessrisk.Joint{
			Part: "joint", World: wide, Range: p.Range, Count: p.JointCount, Size: p.JointSize, Lambda: p.JointLambda,
		}},
		part{"cover", excessrisk.Cover{
			Part: "cover", World: wide, Range: p.Range, Count: slices.Max(p.Counts), Train: p.JointSize, Lambda: 0.5,
			Scales: p.Scales, Members: p.Members,
		}},
		part{"uniform", excessrisk.Tight{
			Part: "uniform", Valid: p.TightValid, Counts: p.TightCounts, Draws: p.Draws, Delta: p.Delta,
		}},
		part{"ball", ball})
}

// selections are the parts that choose among trained configurations. Away from
// p.At only the largest |V| and |C| are of interest.
func (p Corollary31Params) selections(w excessrisk.WorldParams) []part {
	selection := func(train int, valid, counts []int, reading string) part {
		return part{selectionName(reading, train), excessrisk.Selection{
			Part: "selection", World: w, Range: p.Range, Train: train, Valid: valid, Counts: counts,
			Draws: p.Draws, Delta: p.Delta, Lambda: reading,
		}}
	}
	largest, most := p.Valid[len(p.Valid)-1:], p.Counts[len(p.Counts)-1:]
	var parts []part
	for _, reading := range []string{"mean", "sum"} {
		for _, n := range p.Train {
			if n != p.At {
				parts = append(parts, selection(n, largest, most, reading))
			}
		}
		parts = append(parts, selection(p.At, p.Valid, p.Counts, reading))
	}
	return append(parts, selection(p.At, p.Valid, p.Counts, "none"))
}

func (p Corollary31Params) check() error {
	c := new(study.Checks)
	for field, v := range map[string]int{
		"Inputs": p.Inputs, "Support": p.Support, "Dim": p.Dim, "Centers": p.Centers, "At": p.At, "Draws": p.Draws,
		"JointSize": p.JointSize, "JointDim": p.JointDim, "JointCount": p.JointCount, "Members": p.Members,
		"TightValid": p.TightValid, "Seeds": p.Seeds,
	} {
		c.AtLeast(field, v, 1)
	}
	for field, list := range map[string][]int{
		"Train": p.Train, "Valid": p.Valid, "Counts": p.Counts,
		"KernelTrain": p.KernelTrain, "TightCounts": p.TightCounts,
	} {
		study.Ascending(c, field, list, 1, 0)
	}
	for field, list := range map[string][]float64{
		"KernelFactor": p.KernelFactor, "Scales": p.Scales, "Lipschitz": p.Lipschitz,
		"Gamma and Range": {p.Gamma, p.Range[0], p.Range[1]},
	} {
		c.Expect(len(list) > 0, "%s is empty", field)
		for _, v := range list {
			c.Positive(field, v)
		}
	}
	c.Expect(p.Range[0] < p.Range[1], "Range is %v, want from less to more", p.Range)
	c.Expect(len(p.JointLambda) > 0, "JointLambda is empty")
	for _, v := range p.JointLambda {
		c.Expect(v >= 0, "JointLambda has %v, want 0 or more", v)
	}
	c.Expect(p.Top > 0 && p.Top <= 1, "Top is %v, want 0 < max |f*| ≤ 1, or labels have no probability", p.Top)
	c.Expect(p.Delta > 0 && p.Delta < 1, "Delta is %v, want between 0 and 1", p.Delta)
	c.Confidence(p.Confidence)
	if _, err := json.Marshal(p); err != nil {
		c.Expect(false, "%v", err)
	}
	return c.Err("Corollary 3.1")
}

// series is number at of a series of a part, by seed.
func (r *Corollary31Result) series(part, name string, at int) []float64 {
	return bySeed(r.parts[part], func(record *runs.Record) float64 { return record.Series[name][at] })
}

// value is a value of a part, by seed.
func (r *Corollary31Result) value(part, name string) []float64 {
	return bySeed(r.parts[part], func(record *runs.Record) float64 { return record.Values[name] })
}

// columns are some columns, one for each of so many points.
func columns(points int, of func(i int) []float64) [][]float64 {
	var all [][]float64
	for i := range points {
		all = append(all, of(i))
	}
	return all
}

// trained is the excess risk of the trained c* at every |T|.
func (r *Corollary31Result) trained(reading string) [][]float64 {
	return columns(len(r.Params.Train), func(i int) []float64 {
		return r.value(selectionName(reading, r.Params.Train[i]), "best")
	})
}

// chosen is a series of the selection at p.At and the largest |C|, by |V|, with
// λ of the summed loss.
func (r *Corollary31Result) chosen(series string) [][]float64 {
	counts := len(r.Params.Counts)
	return columns(len(r.Params.Valid), func(v int) []float64 {
		return r.series(selectionName("sum", r.Params.At), series, v*counts+counts-1)
	})
}

// ratios are gap·√(2|V|/log|C|) of the tight case, by |C|. The gap is one-sided,
// max_c (ℓ_𝒟 − ℓ_V), whose mean is at most √(log|C|/2|V|); log 2|C| would be that of
// its absolute value.
func (r *Corollary31Result) ratios() [][]float64 {
	return columns(len(r.Params.TightCounts), func(k int) []float64 {
		column := r.series("uniform", "gap", k)
		floats.Scale(math.Sqrt(2*float64(r.Params.TightValid)/math.Log(float64(r.Params.TightCounts[k]))), column)
		return column
	})
}

// kernel is the excess risk with a factor of features, by |T|.
func (r *Corollary31Result) kernel(factor int) [][]float64 {
	return columns(len(r.Params.KernelTrain), func(i int) []float64 {
		return r.series(kernelName(r.Params.KernelTrain[i]), "excess", factor)
	})
}

// joint is a series of joint ERM against the bilevel choice, by λ.
func (r *Corollary31Result) joint(series string) [][]float64 {
	return columns(len(r.Params.JointLambda), func(i int) []float64 { return r.series("joint", series, i) })
}

// rateA1 is √((‖w*‖²+1)/|T|·log(1/δ)) with the mean ‖w*‖² of the seeds; NaN
// where there are none.
func (r *Corollary31Result) rateA1(n int) float64 {
	norms := known(r.value(selectionName("mean", r.Params.At), "norm"))
	return math.Sqrt((stat.Mean(norms, nil) + 1) / float64(n) * math.Log(1/r.Params.Delta))
}

// Figure draws six panels: the excess risk of the best configuration over |T|;
// the cost of the choice over |V| with Theorem A.2's bound; the deviation over
// |C| where the theory is tight; random features of a kernel; bilevel against
// joint ERM; and the version entropy.
func (r *Corollary31Result) Figure() plots.Figure {
	p := r.Params
	return plots.Figure{
		Name: "khodak2020-corollary31", Style: plots.ICML.Text(),
		Caption: fmt.Sprintf("Means over %d seeds with %v %% intervals. Labels ±1, squared loss of predictions "+
			"clipped to [−1, 1], population risks exact. (a) to (c): $d = %d$, $δ = %v$. (e), (f): $|T| = |V| = %d$, "+
			"$d = %d$.",
			p.Seeds, 100*p.Confidence, p.Dim, p.Delta, p.JointSize, p.JointDim) + study.ScaleNote(p),
		Panels: [][]plots.Panel{
			{r.trainPanel(), r.validPanel(), r.tightPanel()},
			{r.kernelPanel(), r.jointPanel(), r.coverPanel()},
		},
		Meta: study.Meta(corollary31Title, r.Scale, p),
	}
}

// curve is a mean over the seeds at every x, with its interval, as drawn: on a
// logarithmic axis a lower end at or below 0 is cut off at a tenth of the mean.
func (r *Corollary31Result) curve(label string, xs []float64, columns [][]float64, log bool) plots.Series {
	var x []float64
	var means []runs.Summary
	for i, column := range columns {
		s, err := runs.Summarize(known(column), r.Params.Confidence)
		if err != nil || (log && s.Mean <= 0) {
			continue
		}
		if log && s.Lo.Valid() && float64(s.Lo) <= s.Mean/10 {
			s.Lo = runs.Number(s.Mean / 10)
		}
		x, means = append(x, xs[i]), append(means, s)
	}
	return plots.Bars(label, x, means)
}

// panel is one with its legend inside.
func panel(title string, x, y plots.Axis, series ...plots.Series) plots.Panel {
	return plots.Panel{Title: title, X: x, Y: y, Series: series, Legend: plots.Legend{Position: plots.LegendInside}}
}

func (r *Corollary31Result) trainPanel() plots.Panel {
	xs := study.Floats(r.Params.Train)
	p := panel("(a) training, Cor. A.1",
		plots.Axis{Label: "$|T|$", Scale: plots.Log2}, plots.Axis{Label: "excess risk of $c^*$", Scale: plots.Log10},
		r.curve("$λ$ of the mean loss", xs, r.trained("mean"), true),
		r.curve("$λ$ of the summed loss", xs, r.trained("sum"), true))
	if rate := r.rateA1(1); !math.IsNaN(rate) {
		bound := plots.Series{Label: "the bound's rate, constant 1", X: xs, Reference: true}
		for _, x := range xs {
			bound.Y = append(bound.Y, rate/math.Sqrt(x))
		}
		p.Series = append(p.Series, bound)
	}
	return p
}

func (r *Corollary31Result) validPanel() plots.Panel {
	xs := study.Floats(r.Params.Valid)
	bound := plots.Series{Label: "bound of Theorem A.2", Reference: true}
	for i, column := range r.chosen("bound") {
		if column = known(column); len(column) > 0 {
			bound.X, bound.Y = append(bound.X, xs[i]), append(bound.Y, stat.Mean(column, nil))
		}
	}
	return panel(fmt.Sprintf("(b) choice of %d", slices.Max(r.Params.Counts)),
		plots.Axis{Label: "$|V|$", Scale: plots.Log2}, plots.Axis{Label: "risk", Scale: plots.Log10},
		r.curve("excess over the best trained $c$", xs, r.chosen("selection"), true),
		r.curve(`$\ell_D − \ell_V$ of the choice`, xs, r.chosen("gap"), true), bound)
}

func (r *Corollary31Result) tightPanel() plots.Panel {
	return panel("(c) tight case",
		plots.Axis{Label: "$|C|$", Scale: plots.Log2}, plots.Axis{Label: "gap over its bound", Min: 0, Max: 1.1},
		r.curve("independent losses", study.Floats(r.Params.TightCounts), r.ratios(), false),
		plots.HLine(`$\sqrt{\log|C|/2|V|}$`, 1))
}

func (r *Corollary31Result) kernelPanel() plots.Panel {
	p := panel("(d) kernels, Cor. A.3",
		plots.Axis{Label: "$|T| = |V|$", Scale: plots.Log2}, plots.Axis{Label: "excess risk", Scale: plots.Log10})
	xs := study.Floats(r.Params.KernelTrain)
	for i, kappa := range r.Params.KernelFactor {
		p.Series = append(p.Series, r.curve(fmt.Sprintf("$κ = %v$", kappa), xs, r.kernel(i), true))
	}
	return p
}

func (r *Corollary31Result) jointPanel() plots.Panel {
	xs, label := besideZero(r.Params.JointLambda)
	return panel("(e) bilevel and joint ERM",
		plots.Axis{Label: label, Scale: plots.Log10}, plots.Axis{Label: "excess risk", Scale: plots.Log10},
		r.curve("joint ERM", xs, r.joint("joint"), true),
		r.curve("bilevel", xs, r.joint("bilevel"), true),
		r.curve("best trained $c$", xs, r.joint("best"), true))
}

// besideZero are λ on a logarithmic axis, where 0 has no place: it stands a
// decade below the smallest one.
func besideZero(lambdas []float64) (xs []float64, label string) {
	smallest := 1.0
	if positive := slices.DeleteFunc(slices.Clone(lambdas), func(v float64) bool { return v == 0 }); len(positive) > 0 {
		smallest = slices.Min(positive)
	}
	label = "$λ$"
	for _, v := range lambdas {
		if v == 0 {
			v, label = smallest/10, "$λ$ (0 at the left end)"
		}
		xs = append(xs, v)
	}
	return xs, label
}

func (r *Corollary31Result) coverPanel() plots.Panel {
	entropy := func(label, series string) plots.Series {
		all := columns(len(r.Params.Scales), func(i int) []float64 { return r.series("cover", series, i) })
		return r.curve(label, r.Params.Scales, all, false)
	}
	return panel("(f) version entropy",
		plots.Axis{Label: "$ε$", Scale: plots.Log10}, plots.Axis{Label: "$Λ$ (nats)"},
		entropy("strongly convex, all of $C$", "upper"), entropy("one $c$ without regularisation", "unregularised"),
		plots.HLine(`$\log|C|$`, r.entropyLimit()))
}

// entropyLimit is log|C| of the largest |C|.
func (r *Corollary31Result) entropyLimit() float64 {
	return math.Log(float64(slices.Max(r.Params.Counts)))
}
