package li2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/sparsity"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// SparsityParams are the parameters of the sparsity of EG (Sections 3.3 and 4.1) and of XNAS' wipe-out (Appendix C.4),
// on problems of seconds.
type SparsityParams struct {
	// A stream of gradients that all methods see: −Margin at the best operation of an edge, plus noise.
	Edges       int       `validate:"gte=1"`
	Options     int       `validate:"gte=2"`
	Margins     []float64 `validate:"min=1,ascending,dive,gt=0"` // of the best operation
	Noise       float64   `validate:"gte=0"`                     // standard deviation of every entry
	StreamSteps int       `validate:"gte=2"`
	Below       float64   `validate:"gt=0"` // entropy, in nats, that counts as sparse

	// A mixture of Units one-operation units, fitted to a discrete teacher.
	Units       int      `validate:"gte=1"`
	Inputs      int      `validate:"gte=1"`
	Batch       int      `validate:"gte=1"`
	Examples    int      `validate:"gte=1"`
	Steps       int      `validate:"gte=1"`
	Levels      []string `validate:"unique,dive,oneof=bilevel erm"` // θ on validation data, or all on training data
	TargetNoise float64  `validate:"gte=0"`

	// Step sizes of θ.
	RateEG   float64 `validate:"positive"` // of EG
	RateSGD  float64 `validate:"positive"` // of SGD on logits
	RateAdam float64 `validate:"positive"` // of Adam on logits, as in DARTS

	// XNAS' wipe-out on random sequences of gradients in [−1, 1].
	Sequences int     `validate:"gte=1"`
	Horizon   int     `validate:"gte=2"`
	Eager     float64 `validate:"gt=0,lte=1"` // a control: the exponent of the threshold times so much

	Seeds      int     `validate:"gte=2"`
	Confidence float64 `validate:"gt=0.5,lt=1"` // of the intervals
}

// Rates are those of GAEA and DARTS; the presets differ in seeds and steps. In both, EG decides 5 times sooner than SGD
// on logits at a margin of 0.1, its arg max loses less, and XNAS' wipe-out changes no winner.
var (
	// SparsityQuick has 5 seeds, in about 6 s on two cores.
	SparsityQuick = SparsityParams{
		Edges: 14, Options: 8, Margins: []float64{0.01, 0.1}, Noise: 0.1, StreamSteps: 8000, Below: 0.5,
		Units: 16, Inputs: 6, Batch: 32, Examples: 512, Steps: 2500, Levels: []string{"bilevel", "erm"},
		TargetNoise: 0.1, RateEG: 0.1, RateSGD: 0.1, RateAdam: 3e-4,
		Sequences: 400, Horizon: 60, Eager: 0.25, Seeds: 5, Confidence: 0.95,
	}
	// SparsityPaper has 20 seeds: about a minute and a half on two cores, precomputed.
	SparsityPaper = lab.With(SparsityQuick, func(p *SparsityParams) {
		p.Batch, p.Steps, p.StreamSteps, p.Sequences, p.Seeds = 64, 5000, 20000, 4000, 20
	})
)

// Sparsity measures how fast EG, SGD on logits and DARTS' Adam on logits lower the entropy of θ, on one stream of
// gradients and in a small search, what the arg max loses, and what XNAS' wipe-out changes.
var Sparsity = lab.Declare(lab.Entry[SparsityParams, sparsity.Trial]{
	Of: ofPaper, Name: "sparsity", Kind: lab.Theorem, Source: "Sections 3.3 and 4.1",
	Title:    "Exponentiated gradient decides faster, and loses less at discretization; XNAS' wipe-out",
	Notebook: "sparsity_discretization",
	Cost:     catalog.Cost{Quick: "about 6 s on two cores", Paper: "about 1.5 minutes on two cores; precomputed"},
	Quick:    SparsityQuick, Paper: SparsityPaper,
	Code:  code.Define("li2021/sparsity", "li2021/internal/sparsity"),
	Units: func(t sparsity.Trial) int { return 1 + t.Edges*max(1, t.Batch)*t.Steps/100000 },
	Rules: func(p SparsityParams, c *study.Checks) {
		c.Expect(p.Below < math.Log(float64(p.Options)),
			"Below must be less than ln Options, where the search starts, got %v", p.Below)
	},
	Trials: sparsityTrials,
	Draw:   drawSparsity,
	Claims: judgeSparsity,
})

type sparsityResult = lab.Result[SparsityParams, sparsity.Trial]

var sparsityMethods = map[string]string{
	"eg": "EG (GAEA)", "softmax": "SGD on logits", "adam": "Adam on logits (DARTS)",
}

func sparsityTrials(p SparsityParams) (gs lab.Groups[sparsity.Trial]) {
	rates := map[string]float64{"eg": p.RateEG, "softmax": p.RateSGD, "adam": p.RateAdam}
	add := func(t sparsity.Trial, methods ...string) {
		for _, t.Method = range methods {
			t.Rate = rates[t.Method]
			gs.Add(t.Kind, p.Seeds, t)
		}
	}
	for _, margin := range p.Margins {
		for _, noise := range slices.Compact([]float64{0, p.Noise}) {
			add(sparsity.Trial{
				Kind: "stream", Edges: p.Edges, Options: p.Options, Margin: margin, Noise: noise, Below: p.Below,
				Steps: p.StreamSteps,
			}, sparsity.Methods...)
		}
	}
	for _, level := range p.Levels {
		add(sparsity.Trial{
			Kind: "mixture", Level: level, Edges: p.Units, Inputs: p.Inputs, Noise: p.TargetNoise, Batch: p.Batch,
			Examples: p.Examples, Steps: p.Steps,
		}, sparsity.Methods...)
	}
	for _, eager := range slices.Compact([]float64{1, p.Eager}) {
		add(sparsity.Trial{Kind: "wipeout", Options: p.Options, Steps: p.Horizon, Runs: p.Sequences, Eager: eager}, "")
	}
	return gs
}

// sparsityStream, sparsityMixture and sparsityWipeout are the trials of a method on the stream of gradients, in the
// small search, and of XNAS with a fraction of the exponent.
func sparsityStream(r *sparsityResult, method string, margin, noise float64) lab.Groups[sparsity.Trial] {
	return r.Part("stream").Where(func(t sparsity.Trial) bool {
		return t.Method == method && t.Margin == margin && t.Noise == noise
	})
}

func sparsityMixture(r *sparsityResult, method, level string) lab.Groups[sparsity.Trial] {
	return r.Part("mixture").Where(func(t sparsity.Trial) bool { return t.Method == method && t.Level == level })
}

func sparsityWipeout(r *sparsityResult, eager float64) lab.Groups[sparsity.Trial] {
	return r.Part("wipeout").Where(func(t sparsity.Trial) bool { return t.Eager == eager })
}

// drawSparsity draws the entropy on the stream of gradients, one panel per margin, and the loss of discretisation over
// the final entropy of the small search.
func drawSparsity(r *sparsityResult, f *lab.Picture) {
	p := r.Params
	for i, margin := range p.Margins {
		panel := plots.Panel{
			Title: fmt.Sprintf("margin %v, noise %v", margin, p.Noise),
			X:     plots.Axis{Label: "step", Scale: plots.Log10},
		}
		if i == 0 {
			panel.Y.Label = "entropy (nats)"
		}
		for _, method := range sparsity.Methods {
			gs := sparsityStream(r, method, margin, p.Noise)
			curve := r.Band(sparsityMethods[method], gs.Rows("step")[0], study.Columns(gs.Rows("entropy")))
			curve.Marker = plots.NoMarker
			panel.Series = append(panel.Series, curve)
		}
		f.Add(panel)
	}
	for i, level := range p.Levels {
		panel := plots.Panel{
			Title: map[string]string{"bilevel": "search, bilevel", "erm": "search, single level"}[level],
			X:     plots.Axis{Label: "entropy at the end"},
			Y:     plots.Axis{Label: "loss added by arg max", Scale: plots.Log10},
		}
		for _, method := range sparsity.Methods {
			panel.Series = append(panel.Series, lossAtTheEnd(method, sparsityMixture(r, method, level)))
		}
		if i == 0 && len(p.Margins)+len(p.Levels) > 2 {
			f.Row()
		}
		f.Add(panel)
	}
	f.Say("Entropy: the same gradients for all, %d edges × %d operations, step sizes EG %v, SGD %v, Adam %v; %s.",
		p.Edges, p.Options, p.RateEG, p.RateSGD, p.RateAdam, r.Interval("band", p.Seeds, "seed"))
	f.Say("Search: %d units, %d steps, a point a seed, test MSE of the arg max without retraining.", p.Units, p.Steps)
}

// lossAtTheEnd has a point per seed, except for losses that a log axis cannot show.
func lossAtTheEnd(method string, gs lab.Groups[sparsity.Trial]) plots.Series {
	s := plots.Series{Label: sparsityMethods[method], Line: plots.NoLine}
	for _, record := range gs.Records() {
		if record.Values["increase"] > 0 {
			s.X, s.Y = append(s.X, record.Values["entropy"]), append(s.Y, record.Values["increase"])
		}
	}
	return s
}

// judgeSparsity judges, pairing seeds:
//
//   - EG's closed form, odds e^{ηct} for a constant gradient;
//   - that EG is below the entropy Below before both others (Sections 3.3 and 4.1);
//   - that its mixture is no worse and its arg max loses less (Section 4.1);
//   - that XNAS' wipe-out changes no winner, a more eager one does, and clipping can turn a gradient's sign.
func judgeSparsity(r *sparsityResult) []runs.Claim {
	var closed []float64
	for _, margin := range r.Params.Margins {
		closed = append(closed, sparsityStream(r, "eg", margin, 0).Values("closed")...)
	}
	claims := []runs.Claim{verdict.Exactly(r.Claim("own: EG's closed form: odds e^{ηct} for a margin c").
		Noting("the largest error of θ over all steps").Claim, slices.Max(closed), 0, 1e-10)}
	for _, margin := range r.Params.Margins {
		for _, other := range sparsity.Methods[1:] {
			claims = append(claims, judgeSooner(r, margin, other))
		}
	}
	for _, level := range r.Params.Levels {
		for _, other := range sparsity.Methods[1:] {
			claims = append(claims, judgeLess(r, "increase", level, other), judgeLess(r, "mixture", level, other))
		}
	}
	return append(claims, judgeWipeout(r)...)
}

// others is the number of methods that each case compares with EG.
var others = len(sparsity.Methods) - 1

func judgeSooner(r *sparsityResult, margin float64, other string) runs.Claim {
	p := r.Params
	c := r.Claim("[RO019] margin %v: %s needs more steps than EG to an entropy of %v, factor", margin,
		sparsityMethods[other], p.Below).Says(1).Family(others * len(p.Margins))
	first := func(method string) []float64 { return sparsityStream(r, method, margin, p.Noise).Values("first") }
	a, b := first(other), first("eg")
	if slices.Max(b) >= float64(p.StreamSteps) {
		c.Ours = 1
		return c.Noting("inconclusive: EG does not get there in %d steps in every seed", p.StreamSteps).Claim
	}
	s, err := runs.MeanDiff(logs(a), logs(b), c.Confidence)
	return c.Noting("geometric mean over seeds, the same gradients; not reached in %d steps counts as that many",
		p.StreamSteps).Of(s.Exp(), err).Above(1)
}

func judgeLess(r *sparsityResult, value, level, other string) runs.Claim {
	rows := map[string]string{"increase": "[LI036 LI038 LI039]", "mixture": "[LI035 LI037]"}[value]
	what := map[string]string{
		"increase": "the arg max adds more loss than EG's", "mixture": "the mixture's loss is above EG's",
	}[value]
	a, b := sparsityMixture(r, other, level).Values(value), sparsityMixture(r, "eg", level).Values(value)
	return r.Claim("%s on a small problem: %s, %s: %s", rows, level, sparsityMethods[other], what).From("Section 4.1").
		Noting("difference of test MSE, pairs of seeds; EG has %.3g, the other %.3g; the paper has validation "+
			"accuracies of PC-DARTS' supernet, 75.07 → 33.23 %% against 72.17 → 15.27 %%", mean(b), mean(a)).
		Says(0).Family(others*len(r.Params.Levels)).Difference(a, b).Above(0)
}

func judgeWipeout(r *sparsityResult) []runs.Claim {
	claim := func(format string, args ...any) lab.Claim { return r.Claim(format, args...).From("Appendix C.4") }
	once, sequences := sparsityWipeout(r, 1), r.Params.Sequences*r.Params.Seeds
	claims := []runs.Claim{verdict.Exactly(
		claim("[LI254] XNAS' wipe-out takes out what cannot win: share of changed winners").
			Noting("%d sequences; after three quarters of the steps %.3g of the operations are out", sequences,
				mean(once.Values("wiped"))).Claim, mean(once.Values("changed")), 0, 0)}
	if eager := r.Params.Eager; eager != 1 {
		changed := math.Round(mean(sparsityWipeout(r, eager).Values("changed")) * float64(sequences))
		c := verdict.Share{Yes: changed, Of: float64(sequences), Confidence: r.Confidence}.
			Claim(claim("control: with %v of the exponent it changes winners, share", eager).Says(0).Claim)
		c.Holds = runs.Judge(changed > 0) // one example shows it
		claims = append(claims, c)
	}
	return append(claims, claim("[LI254 LI255] clipping each example can turn the sign of the mean gradient").Says(0).
		Noting("ours is the mean of clipped gradients, of 0.2 in nine cases of ten and −5 in one, clipped at ±0.25; "+
			"unclipped it is %.3g: an example of the paper's hypothesis, no test of it on NAS-Bench-201",
			mean(once.Values("mean"))).Mean(once.Values("clipped")).Above(0))
}
