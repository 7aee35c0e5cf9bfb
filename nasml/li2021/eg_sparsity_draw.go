package li2021

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// sparsityNames are the methods' names in pictures.
var sparsityNames = map[string]string{"eg": "EG (GAEA)", "softmax": "SGD on logits", "adam": "Adam on logits (DARTS)"}

// of are a case's values, one a seed.
func (c SparsityCase) of(value string) []float64 {
	var out []float64
	for _, record := range c.records {
		out = append(out, record.Values[value])
	}
	return out
}

// find is the case that fits.
func (r *SparsityResult) find(fits func(sparsityTrial) bool) SparsityCase {
	for _, c := range r.Cases {
		if fits(c.sparsityTrial) {
			return c
		}
	}
	return SparsityCase{}
}

// stream is a method's case at the largest margin or, easy or not, at another.
func (r *SparsityResult) stream(method string, margin, noise float64) SparsityCase {
	return r.find(func(t sparsityTrial) bool {
		return t.Kind == "stream" && t.Method == method && t.Margin == margin && t.Noise == noise
	})
}

func (r *SparsityResult) mixtures(method, level string) SparsityCase {
	return r.find(func(t sparsityTrial) bool { return t.Kind == "mixture" && t.Method == method && t.Level == level })
}

// Figure draws the entropy on the stream of gradients, a panel a margin, and
// the loss at discretization over the entropy at the end of the small search.
func (r *SparsityResult) Figure() plots.Figure {
	var row []plots.Panel
	for i, margin := range r.Params.Margins {
		p := plots.Panel{Title: fmt.Sprintf("margin %v, noise %v", margin, r.Params.Noise), X: plots.Axis{Label: "step", Scale: plots.Log10}}
		if i == 0 {
			p.Y.Label = "entropy (nats)"
		}
		for _, method := range sparsityMethods {
			p.Series = append(p.Series, r.entropy(method, margin))
		}
		row = append(row, p)
	}
	for _, level := range r.Params.Levels {
		p := plots.Panel{
			Title: map[string]string{"bilevel": "search, bilevel", "erm": "search, single level"}[level],
			X:     plots.Axis{Label: "entropy at the end"}, Y: plots.Axis{Label: "loss added by arg max", Scale: plots.Log10},
		}
		for _, method := range sparsityMethods {
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
		Caption: fmt.Sprintf("Step sizes of $θ$: EG %v, SGD %v, Adam %v. Entropy: the same gradients for all, %d edges × %d operations, mean over %d seeds with %v %% bands. Search: %d units, %d steps, a point a seed; arg max without retraining, test MSE.%s",
			r.Params.RateEG, r.Params.RateSGD, r.Params.RateAdam, r.Params.Edges, r.Params.Options, r.Params.Seeds, 100*r.Params.Confidence,
			r.Params.Units, r.Params.Steps, scaleNote(r.Scale)),
		Meta: meta(sparsityTitle, r.Scale, r.Params),
	}
}

func (r *SparsityResult) entropy(method string, margin float64) plots.Series {
	c := r.stream(method, margin, r.Params.Noise)
	var means []runs.Summary
	x := c.records[0].Series["step"]
	for i := range x {
		var values []float64
		for _, record := range c.records {
			values = append(values, record.Series["entropy"][i])
		}
		m, err := runs.Summarize(values, r.Params.Confidence)
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
	const source = "Li+ 2021, Sections 3.3 and 4.1"
	closed := 0.0
	for _, margin := range r.Params.Margins {
		closed = math.Max(closed, maxOf(r.stream("eg", margin, 0).of("closed")))
	}
	form := exactly(runs.NewClaim("EG's closed form: odds e^{ηct} for a margin c", source), 0, closed, 1e-10)
	form.Note = "the largest error of θ over all steps"
	claims := []runs.Claim{form}
	for _, margin := range r.Params.Margins {
		for _, other := range sparsityMethods[1:] {
			claims = append(claims, r.checkSooner(margin, other))
		}
	}
	for _, level := range r.Params.Levels {
		for _, other := range sparsityMethods[1:] {
			claims = append(claims, r.checkLess("increase", level, other), r.checkLess("mixture", level, other))
		}
	}
	return append(claims, r.checkWipeout()...)
}

// checkSooner compares the first steps below the entropy, in logarithms.
func (r *SparsityResult) checkSooner(margin float64, other string) runs.Claim {
	c := runs.NewClaim(fmt.Sprintf("margin %v: %s needs more steps than EG to an entropy of %v, factor", margin, sparsityNames[other], r.Params.Below), "Li+ 2021, Sections 3.3 and 4.1")
	c.Paper = 1
	a, b := r.stream(other, margin, r.Params.Noise).of("first"), r.stream("eg", margin, r.Params.Noise).of("first")
	c.Note = fmt.Sprintf("geometric mean over seeds, the same gradients; not reached in %d steps counts as that many", r.Params.StreamSteps)
	if maxOf(logs(b)) >= math.Log(float64(r.Params.StreamSteps)) {
		c.Note = fmt.Sprintf("undecided: EG does not get there in %d steps in every seed", r.Params.StreamSteps)
		c.Ours = 1
		return c
	}
	d, err := runs.MeanDiff(logs(a), logs(b), r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c = opposite(atMost(c, d, 0))
	c.Ours, c.Lo, c.Hi = runs.Number(math.Exp(float64(c.Ours))), runs.Number(math.Exp(float64(c.Lo))), runs.Number(math.Exp(float64(c.Hi)))
	return c
}

// checkLess compares a loss of the small search.
func (r *SparsityResult) checkLess(value, level, other string) runs.Claim {
	id := map[string]string{"increase": "LI036, LI038 on a small problem:", "mixture": "LI035, LI037 on a small problem:"}[value]
	what := map[string]string{"increase": "the arg max adds more loss than EG's", "mixture": "the mixture's loss is above EG's"}[value]
	c := runs.NewClaim(fmt.Sprintf("%s %s, %s: %s", id, level, sparsityNames[other], what), "Li+ 2021, Section 4.1")
	c.Paper = 0
	a, b := r.mixtures(other, level).of(value), r.mixtures("eg", level).of(value)
	d, err := runs.MeanDiff(a, b, r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Note = fmt.Sprintf("difference of test MSE, pairs of seeds; EG has %.3g, the other %.3g; the paper has validation accuracies of PC-DARTS' supernet, 75.07 → 33.23 %% against 72.17 → 15.27 %%", mean(b), mean(a))
	return opposite(atMost(c, d, 0))
}

func (r *SparsityResult) checkWipeout() []runs.Claim {
	const source = "Li+ 2021, Appendix C.4"
	at := func(eager float64) SparsityCase {
		return r.find(func(t sparsityTrial) bool { return t.Kind == "wipeout" && t.Eager == eager })
	}
	keep := exactly(runs.NewClaim("LI254: XNAS' wipe-out takes out what cannot win: share of changed winners", source), 0, mean(at(1).of("changed")), 0)
	keep.Note = fmt.Sprintf("%d sequences; after three quarters of the steps %.3g of the operations are out", r.Params.Sequences*r.Params.Seeds, mean(at(1).of("wiped")))
	claims := []runs.Claim{keep}
	if r.Params.Eager != 1 {
		c := runs.NewClaim(fmt.Sprintf("control: with %v of the exponent it changes winners, share", r.Params.Eager), source)
		n := r.Params.Sequences * r.Params.Seeds
		changed := mean(at(r.Params.Eager).of("changed"))
		lo, hi := wilson(int(math.Round(changed*float64(n))), n, r.Params.Confidence)
		c.Paper, c.Ours, c.Lo, c.Hi = 0, runs.Number(changed), runs.Number(lo), runs.Number(hi)
		c.Holds = runs.Judge(changed > 0)
		claims = append(claims, c)
	}
	clip := runs.NewClaim("LI254: clipping each example can turn the sign of the mean gradient", source)
	s, err := runs.Summarize(at(1).of("clipped"), r.Params.Confidence)
	if err != nil {
		clip.Note = "not run: " + err.Error()
		return append(claims, clip)
	}
	clip.Paper = 0
	clip.Note = fmt.Sprintf("ours is the mean of clipped gradients, of 0.2 in nine cases of ten and −5 in one, clipped at ±0.25; unclipped it is %.3g: an example of the paper's hypothesis, no test of it on NAS-Bench-201", mean(at(1).of("mean")))
	return append(claims, opposite(atMost(clip, s, 0)))
}
