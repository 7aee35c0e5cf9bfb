package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/li2021/internal/geometry"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// MirrorParams are the parameters of the comparison of geometries in Sections
// 3.1 to 3.3: on each edge one operation has a mean loss of −Margin, all others
// 0, and the oracle sees entries of ±1.
type MirrorParams struct {
	Edges   int
	Options []int     // |O|
	Oracles []string  // "dense": every entry of the gradient is ±1; "sparse": that of the best operation, all others 0
	Gap     float64   // mean gap of a run, per edge, that counts as reached
	Margin  float64   // of the best operation
	Rates   []float64 // step sizes that tuned runs choose from
	// Further ones, below those, for projected SGD on the dense oracle, whose best step
	// falls like 1/|O|.
	SmallRates []float64
	Draws      int // random points for the identities and norms
	Seeds      int
	CellENAS   [3]int // h of ENAS' controller, |E| and |O| of DARTS' cell

	Confidence float64 // of the intervals
}

// The presets differ in |O| and in the number of seeds. What comes out at both: EG
// needs 0.43 of the steps of its bound at most, and projected SGD's number of steps
// over EG's grows as |O|^0.8, while that of tuned SGD on logits hardly grows
// (|O|^0.07).
var (
	// MirrorQuick goes to |O| = 64, in about a second on two cores, since all but the
	// norms are among the shipped trials of MirrorPaper.
	MirrorQuick = MirrorParams{
		Edges: 4, Options: []int{4, 16, 64}, Oracles: []string{"dense", "sparse"}, Gap: 0.1, Margin: 0.5,
		Rates: []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}, SmallRates: []float64{1e-4, 3e-4, 1e-3},
		Draws: 2000, Seeds: 6,
		CellENAS: [3]int{100, 14, 7}, Confidence: 0.95,
	}
	// MirrorPaper goes to |O| = 256, in about 8 minutes on two cores; its trials are
	// shipped.
	MirrorPaper = func() MirrorParams {
		p := MirrorQuick
		p.Options, p.Draws, p.Seeds = []int{4, 16, 64, 256}, 20000, 8
		return p
	}()
)

const (
	mirrorID    = "li2021/mirror"
	mirrorTitle = "Exponentiated gradient against SGD: iterations and gradient bounds as |O| grows"
)

var mirrorStudy = study.Study{
	ID: mirrorID, Title: mirrorTitle, Shipped: shippedRecords,
	Code: code.Define(mirrorID, "li2021/internal/geometry"),
}

func init() {
	catalog.Register(catalog.Entry{
		ID: mirrorID, Paper: paper, Title: mirrorTitle, Kind: "theorem",
		Notebook: "notebooks/li2021/mirror_geometry.ipynb",
		Cost: catalog.Cost{
			Quick: "about a second on two cores; most of its trials are shipped",
			Paper: "about 8 minutes on two cores; the project ships its trials",
		},
	}, MirrorQuick, MirrorPaper, Mirror)
}

// mirrorCase is a trial with a record for every seed.
type mirrorCase struct {
	geometry.Trial
	records []*runs.Record
}

// MirrorResult holds numbers of iterations, and what was measured of the norms.
type MirrorResult struct {
	Params MirrorParams
	Scale  string // "quick", "paper" or empty for own parameters
	cases  []mirrorCase
}

// Mirror counts the steps that exponentiated gradient, projected SGD and SGD on
// logits need to the same mean gap, and measures the norms that the bounds are
// made of. Cancelling ctx keeps what is finished.
func Mirror(ctx context.Context, p MirrorParams) (*MirrorResult, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, t := range p.trials() {
		units := 1 + t.Edges*t.Options*t.Options/1000
		if t.Kind == "norms" {
			units = 1 + t.Draws*t.Options/100000
		}
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: t, Units: units,
				Label: fmt.Sprintf("%s %s %s, |O| = %d", t.Kind, t.Method, t.Oracle, t.Options),
				Run:   func(ctx context.Context, _ study.Step) (trial.Result, error) { return t.Run(ctx, seed) },
			}
		})...)
	}
	records, err := mirrorStudy.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &MirrorResult{Params: p, Scale: runs.Scale(ctx)}
	for i, row := range rowsOf(records, p.Seeds) {
		r.cases = append(r.cases, mirrorCase{p.trials()[i], row})
	}
	return r, nil
}

// trials lists the trials. Projected SGD and EG are run at the step of their
// bounds; on the dense oracle all three methods are also run at every rate.
func (p MirrorParams) trials() []geometry.Trial {
	var trials []geometry.Trial
	for _, options := range p.Options {
		trials = append(trials, geometry.Trial{Kind: "norms", Edges: p.Edges, Options: options, Draws: p.Draws})
		for _, oracle := range p.Oracles {
			t := geometry.Trial{Oracle: oracle, Edges: p.Edges, Options: options, Gap: p.Gap, Margin: p.Margin}
			for _, method := range []string{"eg", "projected", "softmax"} {
				t.Method, t.Kind, t.Rates = method, "theory", nil
				if method != "softmax" { // no bound names its step
					trials = append(trials, t)
				}
				t.Kind, t.Rates = "tuned", p.Rates
				trials = append(trials, t)
				if method == "projected" && oracle == "dense" && len(p.SmallRates) > 0 {
					t.Rates = p.SmallRates
					trials = append(trials, t)
				}
			}
		}
	}
	return trials
}

func (p MirrorParams) check() error {
	var c study.Checks
	c.AtLeast("Edges", p.Edges, 1)
	study.Ascending(&c, "Options", p.Options, 2, 1)
	study.Ascending(&c, "Rates", p.Rates, 1, 0)
	study.Ascending(&c, "SmallRates", append(slices.Clone(p.SmallRates), p.Rates...), 1, 0)
	checkChoice(&c, "Oracles", p.Oracles, "dense", "sparse")
	c.Expect(p.Margin > 0 && p.Margin <= 1, "Margin is %v, want between 0 and 1: it is a mean of ±1", p.Margin)
	c.Expect(p.Gap > 0 && p.Gap < p.Margin/2,
		"Gap is %v, want above 0 and below Margin/2: the start's is nearly Margin", p.Gap)
	c.AtLeast("Draws", p.Draws, 1)
	c.Expect(slices.Min(p.CellENAS[:]) >= 1, "CellENAS is %v, want h, |E| and |O| of at least 1", p.CellENAS)
	checkCommon(&c, p.Seeds, p.Confidence)
	return c.Err("the comparison of geometries")
}

// Records are the keys of the trials.
func (r *MirrorResult) Records() []string {
	var keys []string
	for _, c := range r.cases {
		keys = append(keys, study.Keys(c.records)...)
	}
	return keys
}

// methodName is a method's name in pictures.
func methodName(method string) string {
	return strings.NewReplacer("eg", "EG", "projected", "projected SGD", "softmax", "SGD on logits").Replace(method)
}

// find lists the cases that fit.
func (r *MirrorResult) find(fits func(geometry.Trial) bool) []mirrorCase {
	var cases []mirrorCase
	for _, c := range r.cases {
		if fits(c.Trial) {
			cases = append(cases, c)
		}
	}
	return cases
}

// steps are the numbers of steps of a method, one a seed: at the step of the
// bound, or at the rate with the least mean. It is nil where no rate reaches
// the gap in every seed.
func (r *MirrorResult) steps(method, oracle string, options int, tuned bool) []float64 {
	kind := "theory"
	if tuned {
		kind = "tuned"
	}
	found := r.find(func(t geometry.Trial) bool {
		return t.Kind == kind && t.Method == method && t.Oracle == oracle && t.Options == options
	})
	if len(found) == 0 {
		return nil
	}
	if !tuned {
		return study.Values(found[0].records, "steps")
	}
	best, _ := bestRate(found)
	return best
}

// bestRate are the numbers of steps at the rate with the least mean among the rates
// of all cases, one a seed, and that rate; nil where none reaches the gap in every
// seed.
func bestRate(cases []mirrorCase) (best []float64, rate float64) {
	for _, c := range cases {
		for i, eta := range c.Rates {
			steps := study.Column(study.Rows(c.records, "steps"), i)
			if slices.Max(steps) < float64(c.Cap()) && (best == nil || mean(steps) < mean(best)) {
				best, rate = steps, eta
			}
		}
	}
	return best, rate
}

// lowest is the least rate of cases, below which nobody has looked.
func lowest(cases []mirrorCase) float64 {
	least := math.Inf(1)
	for _, c := range cases {
		least = min(least, slices.Min(c.Rates))
	}
	return least
}

// Figure draws the numbers of steps over |O|, a panel an oracle, with the
// bounds.
func (r *MirrorResult) Figure() plots.Figure {
	var row []plots.Panel
	for i, oracle := range r.Params.Oracles {
		p := plots.Panel{
			Title: map[string]string{"dense": "entries of $±1$", "sparse": "one entry of $±1$"}[oracle],
			X:     plots.Axis{Label: "operations $|O|$", Scale: plots.Log2}, Y: plots.Axis{Scale: plots.Log10},
		}
		if i == 0 {
			p.Y.Label = fmt.Sprintf("steps to a mean gap of %v", r.Params.Gap)
		}
		for _, tuned := range []bool{false, true} {
			for _, method := range []string{"eg", "projected", "softmax"} {
				if s := r.curve(method, oracle, tuned); len(s.X) > 0 {
					p.Series = append(p.Series, s)
				}
			}
		}
		for _, method := range []string{"eg", "projected"} {
			p.Series = append(p.Series, r.bounds(method, oracle))
		}
		row = append(row, p)
	}
	return plots.Figure{
		Name: "li2021-mirror", Style: plots.ICML.Text(), Panels: [][]plots.Panel{row},
		Caption: fmt.Sprintf("%d edges, the best operation's mean loss %v below the others', geometric mean over "+
			"%d seeds with %v %% intervals. Tuned: the best of %d step sizes.%s", r.Params.Edges, r.Params.Margin,
			r.Params.Seeds, 100*r.Params.Confidence, len(r.Params.SmallRates)+len(r.Params.Rates),
			study.ScaleNote(r.Params)),
		Meta: study.Meta(mirrorTitle, r.Scale, r.Params),
	}
}

func (r *MirrorResult) curve(method, oracle string, tuned bool) plots.Series {
	label := methodName(method) + ", step of the bound"
	if tuned {
		label = methodName(method) + ", tuned"
	}
	s := plots.Series{Label: label, Interval: plots.ErrorBars}
	for _, options := range r.Params.Options {
		if steps := r.steps(method, oracle, options, tuned); steps != nil {
			addGeometric(&s, float64(options), steps, r.Params.Confidence)
		}
	}
	return s
}

func (r *MirrorResult) bounds(method, oracle string) plots.Series {
	s := plots.Series{Label: "bound: EG", Reference: true, Line: plots.Dotted}
	if method != "eg" {
		s = plots.Series{Label: "bound: projected SGD", Reference: true, Line: plots.Dashed}
	}
	for _, options := range r.Params.Options {
		t := geometry.Trial{Method: method, Oracle: oracle, Options: options, Gap: r.Params.Gap}
		s.X, s.Y = append(s.X, float64(options)), append(s.Y, t.Bound())
	}
	return s
}

// Check judges the steps' closed forms (eq. 4 and 5), the norms of Section 3.3,
// the two rates of Section 3.1, the factor |O| between them in bounds and in
// runs, and Appendix B.3.
func (r *MirrorResult) Check() []runs.Claim {
	claims := append(r.checkIdentities(), r.checkNorms()...)
	for _, oracle := range r.Params.Oracles {
		if oracle == "dense" {
			claims = append(claims,
				r.checkBounded("eg", "[LI013] EG's steps over 2 ln|O|/ε², the O(log k)/ε² of the paper"),
				r.checkGrowth("eg", "[LI013] EG's steps grow with ln|O| at most as", math.Log),
				r.checkBounded("projected", "[LI014] projected SGD's steps over (1−1/|O|)|O|/ε², the O(k/ε²) of "+
					"the paper"),
				r.checkGrowth("projected", "[LI014] projected SGD's steps grow with |O|−1 at most as",
					func(k float64) float64 { return k - 1 }),
				r.checkFactor("projected", false, "dense"), r.checkFactor("projected", true, "dense"),
				r.checkFactor("softmax", true, "dense"))
		} else {
			claims = append(claims, r.checkFactor("projected", false, "sparse"))
		}
	}
	return append(claims, r.checkENAS()...)
}

// norms are a measured number over all |O| and seeds.
func (r *MirrorResult) norms(value string) []float64 {
	var out []float64
	for _, c := range r.find(func(t geometry.Trial) bool { return t.Kind == "norms" }) {
		out = append(out, study.Values(c.records, value)...)
	}
	return out
}

// largest is the case of the norms with the largest |O|.
func (r *MirrorResult) largest() mirrorCase {
	all := r.find(func(t geometry.Trial) bool { return t.Kind == "norms" })
	return all[len(all)-1]
}

func (r *MirrorResult) checkIdentities() []runs.Claim {
	const rounding = 1e-11
	identity := func(name, source, value, note string) runs.Claim {
		c := verdict.Claim(name, source)
		c.Note = note
		c = verdict.Every(c, r.norms(value), rounding)
		c.Paper, c.Tolerance = 0, rounding
		return c
	}
	const note = "the error of the objective at the step against its closed form, at random points and gradients"
	return []runs.Claim{
		identity("[LI011] the SGD step minimizes eq. 4, value −η²‖g‖²/2", "Li+ 2021, eq. 4", "step", note),
		identity("[LI012] the EG step minimizes eq. 5, value −Σ log Z", "Li+ 2021, eq. 5", "eg_step", note),
		identity("[LI012] no random feasible point is better than the EG step", "Li+ 2021, eq. 5", "better",
			"the amount by which one is"),
	}
}

func (r *MirrorResult) checkNorms() []runs.Claim {
	const source = "Li+ 2021, Section 3.3"
	convex := verdict.Claim("[LI020] D_φ(x‖y) over ‖x−y‖₁²/|E| is at least ½", source)
	convex.Paper, convex.Ours = 0.5, runs.Number(slices.Min(r.norms("convex")))
	convex.Holds = runs.Judge(float64(convex.Ours) >= 0.5*(1-1e-9))
	convex.Note = "the least over random pairs"
	dual := verdict.Claim("[LI020] ⟨g, x⟩ over √|E|‖g‖_∞·‖x‖₁/√|E| is at most 1", source)
	dual.Note = "random pairs"
	attained := verdict.Claim("[LI020] ⟨g, x⟩ = √|E|‖g‖_∞·‖x‖₁/√|E| is attained", source)
	c := r.largest()
	k, of := float64(c.Options), func(value string) float64 { return mean(study.Values(c.records, value)) }
	factor := verdict.Exactly(verdict.Claim(
		fmt.Sprintf("[LI019] ‖g‖₂/‖g‖_∞ of a gradient with entries ±1, |O| = %d", c.Options), "Li+ 2021, Section 3.2"),
		math.Sqrt(of("ratio_dense")), math.Sqrt(k), 1e-9)
	factor.Note = "up to √k: attained"
	bounds := verdict.Exactly(verdict.Claim(
		fmt.Sprintf("[LI021 LI022] the bounds' G_θ² of SGD over that of EG, entries ±1, |O| = %d", c.Options), source),
		of("ratio_dense"), k, 1e-9)
	bounds.Note = fmt.Sprintf("up to |O|: attained, |E||O| against |E|; for entries of a sine it is %.4g, and %.4g "+
		"where one entry is not 0", of("ratio_sine"), of("ratio_sparse"))
	return []runs.Claim{
		convex, verdict.Every(dual, r.norms("dual"), 1),
		verdict.Exactly(attained, slices.Min(r.norms("attained")), 1, 1e-12), factor, bounds,
	}
}

// checkBounded judges the steps at the bound's own rate against the bound, on
// the worst |O|.
func (r *MirrorResult) checkBounded(method, name string) runs.Claim {
	c := verdict.Claim(name, "Li+ 2021, Section 3.1")
	c.Paper = 1
	var lists [][]float64
	for _, one := range r.find(func(t geometry.Trial) bool {
		return t.Kind == "theory" && t.Method == method && t.Oracle == "dense"
	}) {
		var ratios []float64
		for _, steps := range study.Values(one.records, "steps") {
			ratios = append(ratios, steps/one.Bound())
		}
		lists = append(lists, ratios)
	}
	s, err := verdict.Worst(lists, r.Params.Confidence)
	c.Note = fmt.Sprintf("on the worst of %d values of |O|; T is on a grid of 2^¼", len(lists))
	return verdict.AtMost(c, s, err, math.Pow(2, 0.25))
}

// checkGrowth judges the exponent of the steps over ln |O|, or over |O|−1, as
// the bounds have it.
func (r *MirrorResult) checkGrowth(method, name string, of func(float64) float64) runs.Claim {
	const tolerance = 0.15 // T is on a grid, |O| finite
	c := verdict.Claim(name+" a power of 1", "Li+ 2021, Section 3.1")
	c.Paper, c.Tolerance = 1, tolerance
	c.Note = "slope on log–log axes, mean over the seeds"
	s, err := r.exponent(func(options int) []float64 { return r.steps(method, "dense", options, false) }, of)
	return verdict.AtMost(c, s, err, 1+tolerance)
}

// exponent is the slope over |O| of values, one a seed.
func (r *MirrorResult) exponent(
	values func(options int) []float64, of func(float64) float64,
) (runs.Summary, error) {
	var x []float64
	curves := make([][]float64, r.Params.Seeds)
	for _, options := range r.Params.Options {
		y := values(options)
		if y == nil {
			return runs.Summary{}, fmt.Errorf("no step size reaches the gap at |O| = %d", options)
		}
		x = append(x, of(float64(options)))
		for seed := range curves {
			curves[seed] = append(curves[seed], y[seed])
		}
	}
	return verdict.Slopes(x, curves, r.Params.Confidence)
}

// checkFactor judges how the steps of a method over those of EG grow with |O|:
// like |O| where the exponent is 1. On the sparse oracle, where both norms of
// the gradient are the same, EG should have no advantage.
func (r *MirrorResult) checkFactor(method string, tuned bool, oracle string) runs.Claim {
	how := "at the bounds' steps"
	if tuned {
		how = "tuned"
	}
	name := fmt.Sprintf("[LI022] %s over EG, %s, grows like |O|: exponent", methodName(method), how)
	if oracle == "sparse" {
		name = fmt.Sprintf("control: %s over EG on gradients with one entry, %s: no growth, exponent",
			methodName(method), how)
	}
	c := verdict.Claim(name, "Li+ 2021, Section 3.3")
	values := func(options int) []float64 {
		a, b := r.steps(method, oracle, options, tuned), r.steps("eg", oracle, options, tuned)
		if a == nil || b == nil {
			return nil
		}
		var out []float64
		for i := range a {
			out = append(out, a[i]/b[i])
		}
		return out
	}
	s, err := r.exponent(values, func(k float64) float64 { return k })
	if err != nil {
		return verdict.NotRun(c, err.Error())
	}
	largest := r.Params.Options[len(r.Params.Options)-1]
	note := fmt.Sprintf("the ratio is %.3g at |O| = %d", mean(values(largest)), largest) +
		r.tuning(method, tuned, oracle)
	if oracle == "sparse" {
		c.Paper, c.Note = 0, note+"; EG is then the slower one by its ln|O|"
		return verdict.AtMost(c, s, nil, 0)
	}
	c.Paper, c.Note = 1, note+"; the paper says up to |O|, of the bounds; above ½ counts as growing like |O|"
	return verdict.Above(c, s, nil, 0.5)
}

// tuning says at which rates a tuned method was, from the fewest operations to the
// most, and where that is the least of all that were tried.
func (r *MirrorResult) tuning(method string, tuned bool, oracle string) string {
	if !tuned {
		return ""
	}
	note, edge := "; its best steps are", ""
	for _, options := range r.Params.Options {
		found := r.find(func(t geometry.Trial) bool {
			return t.Kind == "tuned" && t.Method == method && t.Oracle == oracle && t.Options == options
		})
		_, rate := bestRate(found)
		note += fmt.Sprintf(" %g", rate)
		if rate == lowest(found) {
			edge = ", of which the least is the end of what was tried"
		}
	}
	return note + edge
}

func (r *MirrorResult) checkENAS() []runs.Claim {
	const source = "Li+ 2021, Appendix B.3"
	h, edges, options := float64(r.Params.CellENAS[0]), float64(r.Params.CellENAS[1]), float64(r.Params.CellENAS[2])
	enas := verdict.Exactly(
		verdict.Claim("[LI029] G² of ENAS with entries bounded by 1: the dimension h²", source), h*h, 1e4, 0)
	enas.Note = "arithmetic: ‖g‖₂² ≤ dimension·‖g‖_∞²; O(·) leaves the constant open"
	darts := verdict.Exactly(
		verdict.Claim("[LI030] G² of DARTS with entries bounded by 1: |E||O|", source), edges*options, 98, 0)
	darts.Note = "arithmetic; |O| = 7 leaves the zero operation out, and one of the two cells is counted"
	ordinal := verdict.Claim("[LI031] Monte-Carlo gradients have a larger second moment than exact ones", source)
	ordinal.Paper = 1
	c := r.largest()
	s, err := runs.Summarize(study.Values(c.records, "monte_carlo"), r.Params.Confidence)
	ordinal.Note = fmt.Sprintf("E‖ĝ‖²/‖g‖² of the score-function gradient without a baseline over the exact one, "+
		"|E| = %d, |O| = %d, losses U(0, 1); that iterations follow is the theorem's bound, the searches of ENAS and "+
		"DARTS themselves are left out", c.Edges, c.Options)
	return []runs.Claim{enas, darts, verdict.Above(ordinal, s, err, 1)}
}
