package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/li2021/internal/sparsity"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// SparsityParams are the parameters of the sparsity of EG (Sections 3.3 and
// 4.1) and of XNAS' wipe-out (Appendix C.4), on problems of seconds.
type SparsityParams struct {
	// A stream of gradients that all methods see: −Margin at the best operation
	// of an edge, plus noise.
	Edges, Options int
	Margins        []float64 // of the best operation
	Noise          float64   // standard deviation of every entry
	StreamSteps    int
	Below          float64 // entropy, in nats, that counts as sparse

	// A mixture of Units one-operation units, fitted to a discrete teacher.
	Units, Inputs, Batch, Examples, Steps int
	Levels                                []string // "bilevel" (θ on validation data), "erm" (all on training data)
	TargetNoise                           float64

	RateEG, RateSGD, RateAdam float64 // step sizes of θ: EG, SGD on logits, Adam on logits as in DARTS

	// XNAS' wipe-out on random sequences of gradients in [−1, 1].
	Sequences, Horizon int
	Eager              float64 // a control: the exponent of the threshold times so much

	Seeds      int
	Confidence float64 // of the intervals
}

// Rates are those of GAEA and DARTS; the presets differ in the number of seeds and
// steps. What comes out at both: EG decides 5 times sooner than SGD on logits at a
// margin of 0.1, its arg max loses less, and XNAS' wipe-out changes no winner.
var (
	// SparsityQuick has 5 seeds, in about 6 s on two cores.
	SparsityQuick = SparsityParams{
		Edges: 14, Options: 8, Margins: []float64{0.01, 0.1}, Noise: 0.1, StreamSteps: 8000, Below: 0.5,
		Units: 16, Inputs: 6, Batch: 32, Examples: 512, Steps: 2500, Levels: []string{"bilevel", "erm"},
		TargetNoise: 0.1, RateEG: 0.1, RateSGD: 0.1, RateAdam: 3e-4,
		Sequences: 400, Horizon: 60, Eager: 0.25, Seeds: 5, Confidence: 0.95,
	}
	// SparsityPaper has 20 seeds, in about a minute and a half on two cores; its
	// trials are shipped.
	SparsityPaper = func() SparsityParams {
		p := SparsityQuick
		p.Batch, p.Steps, p.StreamSteps, p.Sequences, p.Seeds = 64, 5000, 20000, 4000, 20
		return p
	}()
)

const (
	sparsityID     = "li2021/sparsity"
	sparsityTitle  = "Exponentiated gradient decides faster, and loses less at discretization; XNAS' wipe-out"
	sparsitySource = "Li+ 2021, Sections 3.3 and 4.1"
)

var sparsityStudy = study.Study{
	ID: sparsityID, Title: sparsityTitle, Shipped: shippedRecords,
	Code: code.Define(sparsityID, "li2021/internal/sparsity"),
}

func init() {
	catalog.Register(catalog.Entry{
		ID: sparsityID, Paper: paper, Title: sparsityTitle, Kind: "theorem",
		Notebook: "notebooks/li2021/sparsity_discretization.ipynb",
		Cost: catalog.Cost{
			Quick: "about 6 s on two cores", Paper: "about 1.5 minutes on two cores; the project ships its trials",
		},
	}, SparsityQuick, SparsityPaper, Sparsity)
}

// sparsityCase is a trial with a record for every seed.
type sparsityCase struct {
	sparsity.Trial
	records []*runs.Record
}

// SparsityResult holds entropies and losses.
type SparsityResult struct {
	Params SparsityParams
	Scale  string // "quick", "paper" or empty for own parameters
	cases  []sparsityCase
}

// Sparsity measures how fast EG, SGD on logits and DARTS' Adam on logits lower
// the entropy of θ, on one stream of gradients and on a small search, what is
// lost when the arg max is taken, and what XNAS' wipe-out changes. Cancelling
// ctx keeps what is finished.
func Sparsity(ctx context.Context, p SparsityParams) (*SparsityResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, t := range p.trials() {
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: t, Units: 1 + t.Edges*max(1, t.Batch)*t.Steps/100000,
				Label: fmt.Sprintf("%s %s %s", t.Kind, t.Method, t.Level),
				Run:   func(ctx context.Context, _ study.Step) (trial.Result, error) { return t.Run(ctx, seed) },
			}
		})...)
	}
	records, err := sparsityStudy.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &SparsityResult{Params: p, Scale: runs.Scale(ctx)}
	for i, row := range rowsOf(records, p.Seeds) {
		r.cases = append(r.cases, sparsityCase{p.trials()[i], row})
	}
	return r, nil
}

func (p SparsityParams) rate(method string) float64 {
	return map[string]float64{"eg": p.RateEG, "softmax": p.RateSGD, "adam": p.RateAdam}[method]
}

func (p SparsityParams) trials() []sparsity.Trial {
	var trials []sparsity.Trial
	for _, margin := range p.Margins {
		for _, noise := range distinctOf(0, p.Noise) {
			for _, method := range sparsity.Methods {
				trials = append(trials, sparsity.Trial{
					Kind: "stream", Method: method, Rate: p.rate(method), Edges: p.Edges, Options: p.Options,
					Margin: margin, Noise: noise, Below: p.Below, Steps: p.StreamSteps,
				})
			}
		}
	}
	for _, level := range p.Levels {
		for _, method := range sparsity.Methods {
			trials = append(trials, sparsity.Trial{
				Kind: "mixture", Method: method, Rate: p.rate(method), Level: level, Edges: p.Units, Inputs: p.Inputs,
				Noise: p.TargetNoise, Batch: p.Batch, Examples: p.Examples, Steps: p.Steps,
			})
		}
	}
	for _, eager := range distinctOf(1, p.Eager) {
		trials = append(trials, sparsity.Trial{
			Kind: "wipeout", Options: p.Options, Steps: p.Horizon, Runs: p.Sequences, Eager: eager,
		})
	}
	return trials
}

func distinctOf(a, b float64) []float64 {
	if a == b {
		return []float64{a}
	}
	return []float64{a, b}
}

func (p SparsityParams) check() error {
	var c study.Checks
	for _, least := range []struct {
		field        string
		value, least int
	}{
		{"Edges", p.Edges, 1}, {"Options", p.Options, 2}, {"StreamSteps", p.StreamSteps, 2}, {"Steps", p.Steps, 1},
		{"Units", p.Units, 1}, {"Inputs", p.Inputs, 1}, {"Batch", p.Batch, 1}, {"Examples", p.Examples, 1},
		{"Sequences", p.Sequences, 1}, {"Horizon", p.Horizon, 2},
	} {
		c.AtLeast(least.field, least.value, least.least)
	}
	study.Ascending(&c, "Margins", p.Margins, 1, 0)
	c.Expect(p.Noise >= 0 && p.TargetNoise >= 0,
		"Noise is %v and TargetNoise %v, want 0 or more", p.Noise, p.TargetNoise)
	c.Expect(p.Below > 0 && p.Below < math.Log(float64(p.Options)),
		"Below is %v, want between 0 and ln Options, where the search starts", p.Below)
	if len(p.Levels) > 0 {
		checkChoice(&c, "Levels", p.Levels, "bilevel", "erm")
	}
	c.Positive("RateEG", p.RateEG)
	c.Positive("RateSGD", p.RateSGD)
	c.Positive("RateAdam", p.RateAdam)
	c.Expect(p.Eager > 0 && p.Eager <= 1, "Eager is %v, want above 0 and at most 1", p.Eager)
	checkCommon(&c, p.Seeds, p.Confidence)
	return c.Err("sparsity")
}

// Records are the keys of the trials.
func (r *SparsityResult) Records() []string {
	var keys []string
	for _, c := range r.cases {
		keys = append(keys, study.Keys(c.records)...)
	}
	return keys
}

// of are a case's values, one a seed.
func (c sparsityCase) of(value string) []float64 { return study.Values(c.records, value) }

// sparsityNames are the methods' names in pictures.
var sparsityNames = map[string]string{"eg": "EG (GAEA)", "softmax": "SGD on logits", "adam": "Adam on logits (DARTS)"}

// find is the case that fits.
func (r *SparsityResult) find(fits func(sparsity.Trial) bool) sparsityCase {
	for _, c := range r.cases {
		if fits(c.Trial) {
			return c
		}
	}
	return sparsityCase{}
}

// stream is a method's case at the largest margin or, easy or not, at another.
func (r *SparsityResult) stream(method string, margin, noise float64) sparsityCase {
	return r.find(func(t sparsity.Trial) bool {
		return t.Kind == "stream" && t.Method == method && t.Margin == margin && t.Noise == noise
	})
}

func (r *SparsityResult) mixtures(method, level string) sparsityCase {
	return r.find(func(t sparsity.Trial) bool {
		return t.Kind == "mixture" && t.Method == method && t.Level == level
	})
}

// Figure draws the entropy on the stream of gradients, a panel a margin, and
// the loss at discretization over the entropy at the end of the small search.
func (r *SparsityResult) Figure() plots.Figure {
	var row []plots.Panel
	for i, margin := range r.Params.Margins {
		p := plots.Panel{
			Title: fmt.Sprintf("margin %v, noise %v", margin, r.Params.Noise),
			X:     plots.Axis{Label: "step", Scale: plots.Log10},
		}
		if i == 0 {
			p.Y.Label = "entropy (nats)"
		}
		for _, method := range sparsity.Methods {
			p.Series = append(p.Series, r.entropy(method, margin))
		}
		row = append(row, p)
	}
	for _, level := range r.Params.Levels {
		p := plots.Panel{
			Title: map[string]string{"bilevel": "search, bilevel", "erm": "search, single level"}[level],
			X:     plots.Axis{Label: "entropy at the end"},
			Y:     plots.Axis{Label: "loss added by arg max", Scale: plots.Log10},
		}
		for _, method := range sparsity.Methods {
			s := plots.Series{Label: sparsityNames[method], Line: plots.NoLine}
			for _, record := range r.mixtures(method, level).records {
				if record.Values["increase"] > 0 {
					s.X, s.Y = append(s.X, record.Values["entropy"]), append(s.Y, record.Values["increase"])
				}
			}
			p.Series = append(p.Series, s)
		}
		row = append(row, p)
	}
	panels := [][]plots.Panel{row}
	if len(row) > 2 {
		panels = [][]plots.Panel{row[:len(r.Params.Margins)], row[len(r.Params.Margins):]}
	}
	return plots.Figure{
		Name: "li2021-sparsity", Style: plots.ICML.Text(), Panels: panels,
		Caption: fmt.Sprintf("Step sizes of $θ$: EG %v, SGD %v, Adam %v. Entropy: the same gradients for all, "+
			"%d edges × %d operations, mean over %d seeds with %v %% bands. "+
			"Search: %d units, %d steps, a point a seed; arg max without retraining, test MSE.%s",
			r.Params.RateEG, r.Params.RateSGD, r.Params.RateAdam, r.Params.Edges, r.Params.Options, r.Params.Seeds,
			100*r.Params.Confidence, r.Params.Units, r.Params.Steps, study.ScaleNote(r.Params)),
		Meta: study.Meta(sparsityTitle, r.Scale, r.Params),
	}
}

func (r *SparsityResult) entropy(method string, margin float64) plots.Series {
	c := r.stream(method, margin, r.Params.Noise)
	var means []runs.Summary
	x := c.records[0].Series["step"]
	rows := study.Rows(c.records, "entropy")
	for i := range x {
		m, err := runs.Summarize(study.Column(rows, i), r.Params.Confidence)
		if err != nil { // entropies are finite
			panic(err)
		}
		means = append(means, m)
	}
	s := plots.Band(sparsityNames[method], x, means)
	s.Marker = plots.NoMarker
	return s
}

// Check judges, pairing seeds:
//
//   - EG's closed form, odds e^{ηct} for a constant gradient;
//   - that EG is below the entropy Below before both others (Section 3.3, 4.1);
//   - that its mixture is no worse and its arg max loses less (Section 4.1);
//   - that XNAS' wipe-out changes no winner, as a control that a more eager one
//     does, and that clipping for each example can turn a gradient's sign.
func (r *SparsityResult) Check() []runs.Claim {
	var closed []float64
	for _, margin := range r.Params.Margins {
		closed = append(closed, r.stream("eg", margin, 0).of("closed")...)
	}
	form := verdict.Exactly(
		verdict.Claim("own: EG's closed form: odds e^{ηct} for a margin c", sparsitySource),
		slices.Max(closed), 0, 1e-10)
	form.Note = "the largest error of θ over all steps"
	claims := []runs.Claim{form}
	for _, margin := range r.Params.Margins {
		for _, other := range sparsity.Methods[1:] {
			claims = append(claims, r.checkSooner(margin, other))
		}
	}
	for _, level := range r.Params.Levels {
		for _, other := range sparsity.Methods[1:] {
			claims = append(claims, r.checkLess("increase", level, other), r.checkLess("mixture", level, other))
		}
	}
	return append(claims, r.checkWipeout()...)
}

// against is the confidence of a claim that is made of each of so many cases and of
// all methods but EG.
func (r *SparsityResult) against(cases int) float64 {
	return verdict.Family(r.Params.Confidence, cases*(len(sparsity.Methods)-1))
}

// checkSooner compares the first steps below the entropy, in logarithms.
func (r *SparsityResult) checkSooner(margin float64, other string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[RO019] margin %v: %s needs more steps than EG to an entropy of %v, factor",
		margin, sparsityNames[other], r.Params.Below), sparsitySource)
	c.Paper = 1
	a, b := r.stream(other, margin, r.Params.Noise).of("first"), r.stream("eg", margin, r.Params.Noise).of("first")
	if slices.Max(b) >= float64(r.Params.StreamSteps) {
		c.Note = fmt.Sprintf("inconclusive: EG does not get there in %d steps in every seed", r.Params.StreamSteps)
		c.Ours = 1
		return c
	}
	c.Note = fmt.Sprintf("geometric mean over seeds, the same gradients; not reached in %d steps counts as that many",
		r.Params.StreamSteps)
	d, err := runs.MeanDiff(logs(a), logs(b), r.against(len(r.Params.Margins)))
	c = verdict.Above(c, d, err, 0)
	for _, x := range []*runs.Number{&c.Ours, &c.Lo, &c.Hi} {
		*x = runs.Number(math.Exp(float64(*x)))
	}
	return c
}

// checkLess compares a loss of the small search.
func (r *SparsityResult) checkLess(value, level, other string) runs.Claim {
	id := map[string]string{
		"increase": "[LI036 LI038 LI039] on a small problem:", "mixture": "[LI035 LI037] on a small problem:",
	}[value]
	what := map[string]string{
		"increase": "the arg max adds more loss than EG's", "mixture": "the mixture's loss is above EG's",
	}[value]
	c := verdict.Claim(fmt.Sprintf("%s %s, %s: %s", id, level, sparsityNames[other], what), "Li+ 2021, Section 4.1")
	c.Paper = 0
	a, b := r.mixtures(other, level).of(value), r.mixtures("eg", level).of(value)
	c.Note = fmt.Sprintf("difference of test MSE, pairs of seeds; EG has %.3g, the other %.3g; the paper has "+
		"validation "+
		"accuracies of PC-DARTS' supernet, 75.07 → 33.23 %% against 72.17 → 15.27 %%", mean(b), mean(a))
	d, err := runs.MeanDiff(a, b, r.against(len(r.Params.Levels)))
	return verdict.Above(c, d, err, 0)
}

func (r *SparsityResult) checkWipeout() []runs.Claim {
	const source = "Li+ 2021, Appendix C.4"
	at := func(eager float64) sparsityCase {
		return r.find(func(t sparsity.Trial) bool { return t.Kind == "wipeout" && t.Eager == eager })
	}
	sequences := r.Params.Sequences * r.Params.Seeds
	keep := verdict.Exactly(
		verdict.Claim("[LI254] XNAS' wipe-out takes out what cannot win: share of changed winners", source),
		mean(at(1).of("changed")), 0, 0)
	keep.Note = fmt.Sprintf("%d sequences; after three quarters of the steps %.3g of the operations are out",
		sequences, mean(at(1).of("wiped")))
	claims := []runs.Claim{keep}
	if r.Params.Eager != 1 {
		changed := math.Round(mean(at(r.Params.Eager).of("changed")) * float64(sequences))
		c := verdict.Claim(fmt.Sprintf("control: with %v of the exponent it changes winners, share", r.Params.Eager),
			source)
		c.Paper = 0
		c = verdict.Share{Yes: changed, Of: float64(sequences), Confidence: r.Params.Confidence}.Claim(c)
		c.Holds = runs.Judge(changed > 0) // one example shows it
		claims = append(claims, c)
	}
	clip := verdict.Claim("[LI254 LI255] clipping each example can turn the sign of the mean gradient", source)
	clip.Paper = 0
	clip.Note = fmt.Sprintf("ours is the mean of clipped gradients, of 0.2 in nine cases of ten and −5 in one, "+
		"clipped at ±0.25; unclipped it is %.3g: an example of the paper's hypothesis, no test of it on "+
		"NAS-Bench-201",
		mean(at(1).of("mean")))
	s, err := runs.Summarize(at(1).of("clipped"), r.Params.Confidence)
	return append(claims, verdict.Above(clip, s, err, 0))
}
