package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/activationsearch"
	"github.com/nasml/lab/nasml/oymak2021/internal/neural"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Theorem3Params are the parameters of Theorem 3, neural activation search.
// Its Δ is a finite set here: the corners of the simplex, its middle and some
// random points, so that every α of it is trained.
type Theorem3Params struct {
	Activations []string // candidates σ₁…σ_h, see spectral.NamedActivation; smooth ones
	Alphas      int      // random points of Δ beside the h corners and the middle
	Seeds       int      // a seed fixes data, W₀ and Δ
	Seed        int      // the first of them

	C0      float64 // c₀ = ‖v‖²; the theorem: "a proper choice"
	Steps   int     // T gradient steps of size 1/λ_max(K̂_α)
	Epsilon float64 // ε, the training error that is asked for

	Dim     int       // d of the synthetic inputs
	CosPhi  float64   // their margin ⟨x, e₁⟩y
	Flip    float64   // share of labels turned over where the theorem is violated on purpose
	Images  data.Name // images of two classes
	Classes [2]int

	Widths     []int // k, with WidthTrain examples of product
	WidthTrain int
	Odd        []string // odd activations, for inputs that violate Assumption 3
	Trains     []int    // n_T, with width Width, of every source
	Width      int

	Validations []int // n_V, drawn from the pool
	Pool        int   // examples that stand for the distribution 𝒟
	Draws       int   // validation sets a size

	Sizes      []int    // h of the search spaces, the first h of Dictionary
	Dictionary []string // of activations
	SizeTrain  int      // n_T there
	SizeAlphas int      // random points of Δ there

	Ranks     []int // eigenvectors whose signs are labels, 1 the principal one
	RankPool  int   // inputs, half of them for training
	RankWorld []string

	Confidence float64
}

// Theorem3Paper is wide and long enough for the regime of the theorem: up to
// k = 8192, 600 steps and 17 seeds, an hour on two cores; its trials are shipped.
// The paper prints no experiment, so that all sizes are ours. Every α reaches
// zero error at k = 8192; at k = 512 some runs end above ε = 0.01, which 600
// steps do not decide; the bound holds with its first term alone.
var Theorem3Paper = Theorem3Params{
	Activations: []string{"tanh", "sigmoid", "softplus", "sin"},
	Alphas:      5, Seeds: 17,
	C0: 1, Steps: 600, Epsilon: 0.01,
	Dim: 10, CosPhi: 0.8, Flip: 0.1, Images: data.MNIST, Classes: [2]int{0, 1},
	Widths: []int{2, 8, 32, 128, 512, 2048, 8192}, WidthTrain: 40, Odd: []string{"tanh", "sin"},
	Trains: []int{25, 50, 100, 200}, Width: 512,
	Validations: []int{16, 32, 64, 128, 256, 512, 1024, 2048}, Pool: 2000, Draws: 100,
	Sizes: []int{2, 4, 8, 16}, SizeTrain: 60, SizeAlphas: 100,
	Dictionary: []string{
		"tanh", "softplus", "sin", "sigmoid", "sin*2", "softplus*2", "sigmoid*2", "erf",
		"sin*1.5", "softplus*-1", "tanh*0.5", "sin*0.5", "softplus*-2", "sigmoid*0.5", "erf*0.5", "softplus*0.5",
	},
	Ranks: []int{1, 2, 5, 10, 20, 50, 100, 200}, RankPool: 400, RankWorld: []string{neural.Product, neural.Digits},
	Confidence: 0.95,
}

// Theorem3Quick has narrower networks, fewer α and four seeds, asks for a
// training error of 5 % and takes 20 seconds on two cores. All claims come out as
// at the paper's scale but for the probability of the bound, which four seeds
// leave inconclusive.
var Theorem3Quick = func() Theorem3Params {
	p := Theorem3Paper
	p.Alphas, p.Seeds, p.Steps, p.Epsilon = 1, 4, 250, 0.05
	p.Widths, p.WidthTrain = []int{2, 16, 64, 256, 1024}, 30
	p.Trains, p.Width = []int{20, 40, 80}, 256
	p.Validations, p.Pool, p.Draws = []int{16, 32, 64, 128, 256, 512}, 1000, 40
	p.Sizes, p.SizeAlphas = []int{2, 4, 8}, 40
	p.Ranks, p.RankPool = []int{1, 2, 5, 10, 20, 50, 100}, 200
	return p
}()

const (
	theorem3ID     = "oymak2021/theorem3"
	theorem3Title  = "Neural activation search: all α train to zero error, and validation finds one of the best"
	theorem3Source = "Oymak+ 2021, Theorem 3"
)

var theorem3Kind = code.Define(theorem3ID, "oymak2021/internal/activationsearch")

func init() {
	catalog.Register(catalog.Entry{
		ID: theorem3ID, Paper: "Oymak+ 2021", Title: theorem3Title, Kind: "theorem",
		Notebook: "notebooks/oymak2021/theorem3_activation.ipynb",
		Cost: catalog.Cost{
			Quick: "about 20 seconds on two cores",
			Paper: "about an hour on two cores; the project ships its trials",
		},
	}, Theorem3Quick, Theorem3Paper, Theorem3)
}

// Theorem3Result holds the records of Theorem 3, part by part.
type Theorem3Result struct {
	Params Theorem3Params
	Scale  string // "quick", "paper" or empty for own parameters

	widths    [][]*runs.Record            // [width][seed] gradient descent on product
	paired    []*runs.Record              // [seed] odd activations on pairs
	trains    map[string][][]*runs.Record // [source][n_T][seed] gradient descent
	sizes     [][]*runs.Record            // [h][seed] kernel predictors on product
	ranks     map[string][]*runs.Record   // [source][seed] alignment
	all       []*runs.Record
	synthetic bool // the images are a stand-in
}

// Records are the keys of the trials.
func (r *Theorem3Result) Records() []string { return study.Keys(r.all) }

// Theorem3 runs gradient descent on W of the network of Section 4.2 for every
// α of Δ, from the same W₀, and compares it with its kernel, with the bound
//
//	L^{0-1}(f_α̂) ≤ min_α 2B√(yᵀK̄_α⁻¹y/n_T) + C√((Õ(h)+t)/n_V) + ε + δ
//
// and with what the theorem says on training errors and steps. Cancelling ctx
// loses no finished trial. It is an error where a parameter makes no sense (a
// *catalog.UsageError), where images cannot be had and where training diverges.
func Theorem3(ctx context.Context, p Theorem3Params) (*Theorem3Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	images, err := openDigits(ctx, p.Images, p.Classes)
	if err != nil {
		return nil, err
	}
	plan, err := p.plan(images)
	if err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, point := range plan {
		cases = append(cases, point.cases...)
	}
	records, err := study.Study{ID: theorem3ID, Code: theorem3Kind, Shipped: shippedRecords}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	r := &Theorem3Result{
		Params: p, Scale: runs.Scale(ctx), all: records, synthetic: images.synthetic(),
		trains: map[string][][]*runs.Record{}, ranks: map[string][]*runs.Record{},
	}
	for _, point := range plan {
		point.file(r, records[:len(point.cases)])
		records = records[len(point.cases):]
	}
	return r, nil
}

// theorem3Point is the cases of one point of a figure, a seed each.
type theorem3Point struct {
	cases []study.Case
	file  func(r *Theorem3Result, records []*runs.Record)
}

// sources are those of panel (d).
func (p Theorem3Params) sources() []string {
	return []string{neural.Cap, neural.Digits, neural.Product, neural.Flipped}
}

func (p Theorem3Params) world(source string) neural.World {
	w := neural.World{Data: source}
	if source != neural.Digits {
		w.Dim = p.Dim
	}
	if source == neural.Cap || source == neural.Flipped {
		w.CosPhi = p.CosPhi
	}
	if source == neural.Flipped {
		w.Flip = p.Flip
	}
	return w
}

// plan lists all that is to be computed, the cheap parts first.
func (p Theorem3Params) plan(images *digits) (plan []theorem3Point, err error) {
	add := func(t activationsearch.Part, label string, file func(*Theorem3Result, []*runs.Record)) {
		keyed := t
		var failed error
		if keyed.Activations, failed = activationKeys(t.Activations); failed != nil && err == nil {
			err = fmt.Errorf("theorem 3: %w", failed)
		}
		point := theorem3Point{file: file}
		for _, seed := range seedsFrom(p.Seed, p.Seeds) {
			point.cases = append(point.cases, study.Case{
				Params: keyed, Seed: seed, Data: images.of(t.World), Label: label,
				Run: func(ctx context.Context, _ study.Step) (trial.Result, error) {
					im, err := images.load(ctx, t.World)
					if err != nil {
						return trial.Result{}, err
					}
					return t.Run(ctx, seed, im)
				},
			})
		}
		plan = append(plan, point)
	}
	for _, source := range p.RankWorld {
		add(p.alignment(source), "alignment, "+source,
			func(r *Theorem3Result, records []*runs.Record) { r.ranks[source] = records })
	}
	add(p.pairs(), "pairs x, −x", func(r *Theorem3Result, records []*runs.Record) { r.paired = records })
	for _, h := range p.Sizes {
		add(p.kernel(h), fmt.Sprintf("h = %d", h),
			func(r *Theorem3Result, records []*runs.Record) { r.sizes = append(r.sizes, records) })
	}
	for _, n := range p.Trains {
		for _, source := range p.sources() {
			add(p.descent(source, n, p.Width), fmt.Sprintf("%s, n_T = %d", source, n),
				func(r *Theorem3Result, records []*runs.Record) {
					r.trains[source] = append(r.trains[source], records)
				})
		}
	}
	for _, k := range p.Widths {
		add(p.descent(neural.Product, p.WidthTrain, k), fmt.Sprintf("k = %d", k),
			func(r *Theorem3Result, records []*runs.Record) { r.widths = append(r.widths, records) })
	}
	return plan, err
}

func (p Theorem3Params) alignment(source string) activationsearch.Part {
	return activationsearch.Part{
		Part: "align", World: p.world(source), Activations: p.Activations,
		Train: p.RankPool / 2, Pool: p.RankPool, Ranks: p.Ranks,
	}
}

func (p Theorem3Params) pairs() activationsearch.Part {
	return activationsearch.Part{
		Part: "paired", World: p.world(neural.Paired), Activations: p.Odd, Alphas: p.Alphas,
		Train: p.WidthTrain, Pool: p.WidthTrain, Width: p.Width, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon,
	}
}

func (p Theorem3Params) kernel(h int) activationsearch.Part {
	return activationsearch.Part{
		Part: "kernel", World: p.world(neural.Product), Activations: p.Dictionary[:h], Train: p.SizeTrain,
		Alphas: p.SizeAlphas, Validations: p.Validations, Draws: p.Draws, Pool: p.Pool,
	}
}

func (p Theorem3Params) descent(source string, n, k int) activationsearch.Part {
	return activationsearch.Part{
		Part: "descent", World: p.world(source), Activations: p.Activations, Alphas: p.Alphas, Train: n,
		Width: k, C0: p.C0, Steps: p.Steps, Epsilon: p.Epsilon,
		Validations: p.Validations, Draws: p.Draws, Pool: p.Pool,
	}
}

// check says what is wrong with the parameters, all of it at once.
func (p Theorem3Params) check() error {
	var c study.Checks
	p.checkSpace(&c)
	p.checkSizes(&c)
	checkClasses(&c, "Images", p.Images, p.Classes)
	c.AtLeast("Seeds", p.Seeds, 1)
	c.AtLeast("Seed", p.Seed, 0)
	c.Confidence(p.Confidence)
	return c.Err("theorem 3")
}

// checkSpace looks at the activations and how they are trained.
func (p Theorem3Params) checkSpace(c *study.Checks) {
	for field, names := range map[string][]string{
		"Activations": p.Activations, "Dictionary": p.Dictionary, "Odd": p.Odd,
	} {
		for _, a := range checkActivations(c, field, names) {
			c.Expect(!math.IsInf(a.Bound(), 1),
				"%s has %s, whose first two derivatives are not bounded as the theorem wants", field, a.Name)
		}
	}
	c.AtLeast("Alphas", p.Alphas, 0)
	c.AtLeast("SizeAlphas", p.SizeAlphas, 0)
	c.Positive("C0", p.C0)
	c.AtLeast("Steps", p.Steps, 1)
	c.Expect(p.Epsilon > 0 && p.Epsilon < 1, "Epsilon is %v, want 0 < ε < 1", p.Epsilon)
	c.AtLeast("Dim", p.Dim, 2)
	c.Expect(p.CosPhi > 0 && p.CosPhi < 1, "CosPhi is %v, want between 0 and 1", p.CosPhi)
	c.Expect(p.Flip >= 0 && p.Flip <= 0.5, "Flip is %v, want 0 to 0.5", p.Flip)
}

// checkSizes looks at what is varied. A slope needs two values.
func (p Theorem3Params) checkSizes(c *study.Checks) {
	for field, sizes := range map[string][]int{
		"Widths": p.Widths, "Trains": p.Trains, "Validations": p.Validations, "Sizes": p.Sizes, "Ranks": p.Ranks,
	} {
		study.Ascending(c, field, sizes, 2, 0)
	}
	for _, k := range append(slices.Clone(p.Widths), p.Width) {
		c.Expect(k >= 2 && k%2 == 0, "Widths or Width has %d, want even numbers from 2: half of v is positive", k)
	}
	for _, n := range append(slices.Clone(p.Trains), p.WidthTrain, p.SizeTrain) {
		c.Expect(n >= 2 && n <= 2000, "Trains, WidthTrain or SizeTrain has %d, want 2 to 2000: "+
			"all eigenvalues of kernel matrices of this size are taken", n)
	}
	for _, h := range p.Sizes {
		c.Expect(h <= len(p.Dictionary),
			"Sizes has %d, want at most the %d activations of Dictionary", h, len(p.Dictionary))
	}
	for _, j := range p.Ranks {
		c.Expect(j <= p.RankPool, "Ranks has %d, want at most RankPool = %d", j, p.RankPool)
	}
	for _, source := range p.RankWorld {
		c.OneOf("RankWorld", source, p.sources()...)
	}
	c.Expect(p.RankPool >= 4 && p.RankPool <= 2000 && p.RankPool%2 == 0,
		"RankPool is %d, want an even number from 4 to 2000", p.RankPool)
	c.AtLeast("Pool", p.Pool, 10)
	c.AtLeast("Draws", p.Draws, 1)
}

// Figure shows, row by row: the network against its kernel over the width, the
// training error of the worst α over the steps, and the steps taken over
// those that suffice; the data-dependent term and the risk of α̂ over n_T, and
// the validation gap over n_V; that gap over h, and the term and the test
// error for labels along the kernel's eigenvectors.
func (r *Theorem3Result) Figure() plots.Figure {
	const term = `$2B\sqrt{y^⊤K_α^{-1}y/n_T}$`
	return plots.Figure{
		Name: "oymak2021-theorem3", Caption: r.caption(), Style: plots.ICML.Text(),
		Meta: study.Meta(theorem3Title, r.Scale, r.Params),
		Panels: [][]plots.Panel{
			{
				r.widthPanel(), r.stepPanel(),
				r.trainPanel("(c) steps to error $ε$, worst $α$", "taken / sufficient", plots.Log10, r.worstRatio),
			},
			{
				r.trainPanel("(d) data-dependent term", term+", best $α$", plots.Log10, bestTerm),
				r.trainPanel("(e) risk of $α̂$", "0-1 risk", plots.Linear, selectedRisk), r.validationPanel(),
			},
			{
				r.sizePanel(), r.rankPanel("(h) alignment: term", term, plots.Log10, "term"),
				r.rankPanel("(i) alignment: test error", "0-1 test error", plots.Linear, "error"),
			},
		},
	}
}

func (r *Theorem3Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("$σ_α$ over %s; means over %s with %v %% intervals. "+
		"(a) and (b): $n_T = %d$ product examples; (c)–(e): $k = %d$; "+
		"(f) and (g): kernels of infinite width, product, $n_T = %d$.",
		strings.Join(p.Activations, ", "), study.Counted(p.Seeds, "seed"), 100*p.Confidence, p.WidthTrain, p.Width,
		p.SizeTrain)
	text += " $K_α$ is divided by $c_0$. Slopes: the rates of the theorem, whose constants are unknown."
	if r.synthetic {
		text += " SYNTHETIC DIGITS, not real ones."
	}
	return text + study.ScaleNote(p)
}

// each is a number of every record.
func each(records []*runs.Record, of func(*runs.Record) float64) []float64 {
	values := make([]float64, len(records))
	for i, record := range records {
		values[i] = of(record)
	}
	return values
}

// overAlphas is the largest of a series, record by record.
func overAlphas(records []*runs.Record, series string) []float64 {
	return each(records, func(r *runs.Record) float64 { return slices.Max(r.Series[series]) })
}

// overWidths is overAlphas of every width.
func (r *Theorem3Result) overWidths(series string) [][]float64 {
	values := make([][]float64, len(r.widths))
	for i, records := range r.widths {
		values[i] = overAlphas(records, series)
	}
	return values
}

func (r *Theorem3Result) widthPanel() plots.Panel {
	p := r.Params
	draw := func(label, series string) plots.Series {
		return curve(label, study.Floats(p.Widths), r.overWidths(series), plots.Log10, p.Confidence)
	}
	gap, moved := draw(`largest $|f − f_{\mathrm{lin}}|$`, "gap"), draw(`largest $\|W_T − W_0\|/\|W_0\|$`, "movement")
	return plots.Panel{
		Title: "(a) network and kernel", X: plots.Axis{Label: "width $k$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "worst $α$", Scale: plots.Log10},
		Series: []plots.Series{gap, moved, powerLaw("slope $∓1/2$", moved, -0.5)},
	}
}

// stepPanel draws the curves of at most four widths, the narrowest and the
// widest among them.
func (r *Theorem3Result) stepPanel() plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: "(b) training, all $α$", X: plots.Axis{Label: "gradient step $τ$ + 1", Scale: plots.Log10},
		Y: plots.Axis{Label: "0-1 error, worst $α$", Min: -0.03, Max: 1},
	}
	for _, i := range spread(len(p.Widths), 4) {
		s := plots.Series{Label: fmt.Sprintf("$k = %d$", p.Widths[i])}
		errors := study.Rows(r.widths[i], "errors")
		for step := 0.0; step <= float64(p.Steps); step = max(step+1, math.Floor(1.25*step)) {
			s.X, s.Y = append(s.X, step+1), append(s.Y, stat.Mean(study.Column(errors, int(step)), nil))
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// spread are at most m places of 0…n−1 with both ends.
func spread(n, m int) []int {
	var places []int
	for i := range min(n, m) {
		at := 0
		if m > 1 && n > 1 {
			at = i * (n - 1) / (min(n, m) - 1)
		}
		places = append(places, at)
	}
	return places
}

// worstRatio is the largest number of steps taken over those that suffice,
// record by record, of the runs that tell.
func (r *Theorem3Result) worstRatio(records []*runs.Record) []float64 {
	return each(records, func(record *runs.Record) float64 {
		ratios, _ := stepRatios([]*runs.Record{record}, r.Params.Steps)
		return slices.Max(append(ratios, 0))
	})
}

// bestTerm is min_α of the term, record by record.
func bestTerm(records []*runs.Record) []float64 {
	return each(records, func(record *runs.Record) float64 { return slices.Min(record.Series["term"]) })
}

// selectedRisk is the mean risk of α̂ with the largest validation set.
func selectedRisk(records []*runs.Record) []float64 {
	return each(records, func(record *runs.Record) float64 {
		s := record.Series["selected"]
		return s[len(s)-1]
	})
}

// trainPanel has a curve over n_T for each source.
func (r *Theorem3Result) trainPanel(title, label string, scale plots.Scale,
	of func([]*runs.Record) []float64) plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: title, X: plots.Axis{Label: "training examples $n_T$", Scale: plots.Log2},
		Y: plots.Axis{Label: label, Scale: scale},
	}
	for _, n := range p.Trains {
		panel.X.Ticks = append(panel.X.Ticks, plots.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	for _, source := range p.sources() {
		s := curve(sourceNames[source], study.Floats(p.Trains), r.overTrains(source, of), scale, p.Confidence)
		panel.Series = append(panel.Series, s)
	}
	return panel
}

// overTrains is a number of every record of a source, [n_T][seed].
func (r *Theorem3Result) overTrains(source string, of func([]*runs.Record) []float64) [][]float64 {
	var values [][]float64
	for _, records := range r.trains[source] {
		values = append(values, of(records))
	}
	return values
}

func (r *Theorem3Result) validationPanel() plots.Panel {
	p := r.Params
	records := r.sizes[len(r.sizes)-1]
	draw := func(label, series string) plots.Series {
		return curve(label, study.Floats(p.Validations), columns(records, series), plots.Log10, p.Confidence)
	}
	sup, excess := draw("$\\sup_α|L − L_V|$", "sup"), draw("$L(α̂) − \\min_α L$", "excess")
	return plots.Panel{
		Title:  fmt.Sprintf("(f) validation, $h = %d$", p.Sizes[len(p.Sizes)-1]),
		X:      plots.Axis{Label: "validation examples $n_V$", Scale: plots.Log10},
		Y:      plots.Axis{Label: "hinge loss", Scale: plots.Log10},
		Series: []plots.Series{sup, excess, powerLaw("slope $∓1/2$", sup, -0.5)},
	}
}

// overSizes is sup |L − L̂_V| at one n_V, [h][seed].
func (r *Theorem3Result) overSizes(at int) [][]float64 {
	var values [][]float64
	for _, records := range r.sizes {
		values = append(values, study.Column(study.Rows(records, "sup"), at))
	}
	return values
}

func (r *Theorem3Result) sizePanel() plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: "(g) search spaces", X: plots.Axis{Label: "activations $h$", Scale: plots.Log2},
		Y: plots.Axis{Label: `$\sup_α|L − L_V|$`, Scale: plots.Log10},
	}
	for _, at := range spread(len(p.Validations), 3) {
		label := fmt.Sprintf("$n_V = %d$", p.Validations[at])
		panel.Series = append(panel.Series, curve(label, study.Floats(p.Sizes),
			r.overSizes(at), plots.Log10, p.Confidence))
	}
	for _, h := range p.Sizes {
		panel.X.Ticks = append(panel.X.Ticks, plots.Tick{Value: float64(h), Label: fmt.Sprint(h)})
	}
	return panel
}

func (r *Theorem3Result) rankPanel(title, label string, scale plots.Scale, series string) plots.Panel {
	p := r.Params
	panel := plots.Panel{
		Title: title, X: plots.Axis{Label: "labels: sign of eigenvector", Scale: plots.Log10},
		Y: plots.Axis{Label: label, Scale: scale},
	}
	for _, source := range p.RankWorld {
		records := r.ranks[source]
		panel.Series = append(panel.Series,
			curve(sourceNames[source], study.Floats(p.Ranks), columns(records, series), scale, p.Confidence),
			plots.HLine("random labels", stat.Mean(study.Values(records, "random_"+series), nil)))
	}
	return panel
}

// Check works through the claims of Theorem 3 and the remarks after it. The
// theorem gives no constants and only upper bounds: a decrease that is faster
// than it says is no violation.
func (r *Theorem3Result) Check() []runs.Claim {
	claims := r.checkWidth()
	claims = append(claims, r.checkTraining()...)
	claims = append(claims, r.checkValidation()...)
	claims = append(claims, r.checkBound()...)
	claims = append(claims, r.checkAlignment()...)
	return append(claims, r.checkViolations()...)
}

// wide is the place of the first width from 64 on that has two after it: below,
// the network is far from its kernel.
func (r *Theorem3Result) wide() int {
	for i, k := range r.Params.Widths {
		if k >= 64 && i <= len(r.Params.Widths)-2 {
			return i
		}
	}
	return max(0, len(r.Params.Widths)-2)
}

func (r *Theorem3Result) checkWidth() []runs.Claim {
	ks := r.Params.Widths[r.wide():]
	slopes := func(series string) (runs.Summary, error) {
		return verdict.Slopes(study.Floats(ks), transposed(r.overWidths(series)[r.wide():]), r.Params.Confidence)
	}
	gap, gapErr := slopes("gap")
	moved, movedErr := slopes("movement")
	note := fmt.Sprintf("ours is the exponent of the largest value over Δ in k, over k = %v", ks)
	return []runs.Claim{
		verdict.AtMost(noted("[thm3-width] distance of network and kernel vanishes with k", theorem3Source,
			note+"; the theorem asks for k ≳ poly(n_T, 1/λ̄₀, 1/ε), so that any negative exponent fits"),
			gap, gapErr, 0),
		verdict.Near(noted("[thm3-width] ‖W_T − W₀‖/‖W₀‖ falls as k^(−1/2)", theorem3Source,
			note+"; the rate is our reading of the kernel regime"), moved, movedErr, -0.5, 0.1),
	}
}

func (r *Theorem3Result) checkTraining() []runs.Claim {
	p := r.Params
	last := len(p.Widths) - 1
	var all []*runs.Record
	for _, source := range p.sources() {
		all = append(all, slices.Concat(r.trains[source]...)...)
	}
	ratios, unknown := stepRatios(append(all, r.widths[last]...), p.Steps)
	learnt := slices.Concat(r.trains[neural.Cap], r.trains[neural.Digits], r.trains[neural.Product])
	return []runs.Claim{
		r.trained(fmt.Sprintf("[thm3-train oymak2021ext/abstract-best-pair RO018] training 0-1 error at most ε for "+
			"all α, k = %d", p.Widths[last]),
			fmt.Sprintf("n_T = %d product examples", p.WidthTrain), r.widths[last]),
		r.trained(fmt.Sprintf("[thm3-train] training 0-1 error at most ε for all α, all data, k = %d", p.Width),
			"margin, digits and product data",
			slices.Concat(learnt...)),
		verdict.Every(noted("[thm3-iters] steps to ε over those that suffice for the kernel", theorem3Source,
			fmt.Sprintf("log(‖r₀‖²/(εn_T))/(2ηλ_min(K̂_α)) with η = 1/λ_max, of order (n_T/λ̄₀)log(1/ε); "+
				"%d further runs ended before as many steps and before ε: no evidence", unknown)), ratios, 1),
	}
}

// trained judges training errors. A run above ε speaks against the claim only
// where its steps suffice.
func (r *Theorem3Result) trained(name, what string, records []*runs.Record) runs.Claim {
	p := r.Params
	broken, short := 0, 0
	for _, record := range records {
		for a, e := range record.Series["train_error"] {
			switch {
			case e > p.Epsilon && float64(p.Steps) >= record.Series["needed"][a]:
				broken++
			case e > p.Epsilon:
				short++
			}
		}
	}
	c := noted(name, theorem3Source,
		fmt.Sprintf("%s, T = %d, every α and seed; above ε in %d runs, %d of them with as many steps as suffice",
			what, p.Steps, broken+short, broken))
	c = verdict.Every(c, slices.Concat(study.Rows(records, "train_error")...), p.Epsilon)
	if c.Holds == runs.Fails && broken == 0 {
		c.Holds = runs.NotKnown
		c.Note += ": inconclusive, more Steps decide"
	}
	return c
}

// stepRatios are steps over needed steps for every α; a run that did not reach
// ε counts with T where T sufficed, and else is skipped.
func stepRatios(records []*runs.Record, total int) (ratios []float64, skipped int) {
	for _, record := range records {
		for a, steps := range record.Series["steps"] {
			needed := max(1, record.Series["needed"][a])
			switch {
			case steps >= 0:
				ratios = append(ratios, steps/needed)
			case float64(total) >= needed:
				ratios = append(ratios, max(2, float64(total)/needed))
			default:
				skipped++
			}
		}
	}
	return ratios, skipped
}

func (r *Theorem3Result) checkValidation() []runs.Claim {
	p := r.Params
	last := len(p.Validations) - 1
	overV := make([][]float64, p.Seeds) // [seed][n_V], mean over h
	constant := 0.0
	for i, records := range r.sizes {
		for seed, sup := range study.Rows(records, "sup") {
			if i == 0 {
				overV[seed] = make([]float64, len(sup))
			}
			for v, x := range sup {
				overV[seed][v] += x / float64(len(r.sizes))
				constant = max(constant, x*math.Sqrt(float64(p.Validations[v])/float64(p.Sizes[i])))
			}
		}
	}
	inV, errV := verdict.Slopes(study.Floats(p.Validations), overV, p.Confidence)
	inH, errH := verdict.Slopes(study.Floats(p.Sizes), transposed(r.overSizes(last)), p.Confidence)
	nv := noted("[thm3-nv] sup |L − L̂_V| falls as n_V^(−1/2)", theorem3Source,
		"ours is the exponent in n_V, mean over h; an upper bound, so that only a flatter one contradicts it")
	h := noted("[thm3-nv] sup |L − L̂_V| grows at most as √h", theorem3Source,
		fmt.Sprintf("ours is the exponent in h at n_V = %d; a uniform bound needs n_V ≳ h where it is 1/2; "+
			"largest sup·√(n_V/h) of all cells: %.3g", p.Validations[last], constant))
	nv.Paper, nv.Tolerance, h.Paper, h.Tolerance = -0.5, 0.1, 0.5, 0.1
	rates := []runs.Claim{verdict.AtMost(nv, inV, errV, -0.4), verdict.AtMost(h, inH, errH, 0.6)}
	return append(rates, r.checkSelected()...)
}

// checkSelected compares α̂ with the best and the worst α.
func (r *Theorem3Result) checkSelected() []runs.Claim {
	p := r.Params
	last := len(p.Validations) - 1
	excess := columns(r.sizes[len(r.sizes)-1], "excess")
	product := r.trains[neural.Product][len(p.Trains)-1]
	return []runs.Claim{
		verdict.Greater(noted("[thm3-bound] L(f_α̂) approaches min_α L with n_V", theorem3Source,
			fmt.Sprintf("ours is the excess hinge loss of α̂ at n_V = %d less that at %d, h = %d",
				p.Validations[0], p.Validations[last], p.Sizes[len(p.Sizes)-1])),
			excess[0], excess[last], p.Confidence),
		verdict.Greater(noted("[thm3-bound] α̂ beats the worst α", theorem3Source,
			fmt.Sprintf("ours is the difference of 0-1 risks on product data, n_V = %d", p.Validations[last])),
			study.Values(product, "worst"), selectedRisk(product), p.Confidence),
	}
}

// tailT is the t of the bound's probability, 4(e^{−t} + …) = 0.2.
const tailT = 3.0

// needed is the largest C over n_V that the bound needs for a record, and
// whether its first term says anything.
func (r *Theorem3Result) needed(record *runs.Record) (constant float64, telling bool) {
	p := r.Params
	term := slices.Min(record.Series["term"])
	for v, n := range p.Validations {
		second := math.Sqrt((float64(len(p.Activations)) + tailT) / float64(n))
		constant = max(constant, (record.Series["selected_max"][v]-term-p.Epsilon)/second)
	}
	return constant, term < 1
}

// checkBound compares the risk of α̂ with the bound, at t = 3.
func (r *Theorem3Result) checkBound() []runs.Claim {
	p := r.Params
	var constants []float64
	telling, violated := 0, map[uint64]bool{}
	for _, source := range []string{neural.Cap, neural.Digits, neural.Product} {
		for _, record := range slices.Concat(r.trains[source]...) {
			constant, tells := r.needed(record)
			constants = append(constants, constant)
			if tells {
				telling++
			}
			if constant > 1 {
				violated[record.Trial.Seed] = true
			}
		}
	}
	bound := verdict.Every(noted("[thm3-bound] 0-1 risk of α̂ within the bound, C = 1", theorem3Source,
		fmt.Sprintf("ours is the C that the largest risk over all validation sets needs (0: the first term suffices); "+
			"the first term says something, < 1, in %d of %d runs; C is not given in the paper",
			telling, len(constants))), constants, 1)
	n := float64(p.Trains[0])
	allowed := 4 * (math.Exp(-tailT) + math.Pow(n, -3) + math.Exp(-10*float64(len(p.Activations))))
	outside := verdict.Share{Yes: float64(len(violated)), Of: float64(p.Seeds), Confidence: p.Confidence}
	probability := outside.AtMost(noted("[thm3-prob] share of seeds outside the bound, C = 1, t = 3", theorem3Source,
		"seeds of which any validation set of any run is outside"), allowed)
	return []runs.Claim{bound, probability, r.checkTerm(), r.checkCap()}
}

func (r *Theorem3Result) checkTerm() runs.Claim {
	terms := transposed(r.overTrains(neural.Cap, bestTerm))
	s, err := verdict.Slopes(study.Floats(r.Params.Trains), terms, r.Params.Confidence)
	return verdict.Near(noted("[thm3-bound] first term falls as n_T^(−1/2) on aligned labels", theorem3Source,
		"ours is the exponent of min_α 2B√(yᵀK̄_α⁻¹y/n_T) in n_T for labels with a margin"), s, err, -0.5, 0.1)
}

func (r *Theorem3Result) checkCap() runs.Claim {
	var ratios []float64
	for _, record := range slices.Concat(r.trains[neural.Cap]...) {
		for a, term := range record.Series["term"] {
			ratios = append(ratios, term/record.Series["cap"][a])
		}
	}
	return verdict.Every(noted("own finding: first term at most 2B/(cos φ |Σαⱼ Eσⱼ′| √n_T) on labels with a margin",
		"ours, not in the paper", "ours is the ratio; K̄_α ⪰ (Σαⱼ Eσⱼ′)²XXᵀ, and y = Xe₁/cos φ"), ratios, 1)
}

func (r *Theorem3Result) checkAlignment() []runs.Claim {
	p := r.Params
	confidence := verdict.Family(p.Confidence, len(p.RankWorld))
	var claims []runs.Claim
	for _, source := range p.RankWorld {
		records := r.ranks[source]
		for _, series := range []string{"term", "error"} {
			c := noted(fmt.Sprintf("[thm3-align] %s smaller for the principal eigenvector than for random labels, "+
				"%s inputs",
				series, sourceNames[source]), "Oymak+ 2021, Section 4.2",
				fmt.Sprintf("ours is random less eigenvector %d", p.Ranks[0]))
			random, principal := study.Values(records, "random_"+series), study.Column(study.Rows(records, series), 0)
			claims = append(claims, verdict.Greater(c, random, principal, confidence))
		}
	}
	return claims
}

// checkViolations shows cases outside the theorem, where its conclusion fails.
func (r *Theorem3Result) checkViolations() []runs.Claim {
	p := r.Params
	flipped, widest := r.overTrains(neural.Flipped, bestTerm), len(p.Widths)-1
	var below []float64 // ½ − error, of every α and seed
	for _, e := range slices.Concat(study.Rows(r.paired, "train_error")...) {
		below = append(below, 0.5-e)
	}
	errors := r.overWidths("train_error")
	return []runs.Claim{
		verdict.Greater(noted("violation: flipped labels make the first term grow with n_T", "ours, not in the paper",
			fmt.Sprintf("ours is the term at n_T = %d less that at %d; above 1 it says nothing",
				p.Trains[len(p.Trains)-1], p.Trains[0])), flipped[len(flipped)-1], flipped[0], p.Confidence),
		verdict.Every(noted("violation: inputs x, −x with one label, odd activations: "+
			"training error at least 1/2 for every α", "ours, not in the paper",
			fmt.Sprintf("the number is 1/2 less the training error, k = %d; an odd network has f(−x) = −f(x), "+
				"K_α is singular and Assumption 3 fails", p.Width)), below, 0),
		verdict.Greater(noted(fmt.Sprintf("violation: too narrow, k = %d: training error above that at k = %d",
			p.Widths[0], p.Widths[widest]), theorem3Source,
			"ours is the difference for the worst α; the theorem asks for k ≳ poly(n_T, …)"),
			errors[0], errors[widest], p.Confidence),
	}
}
