package oymak2021

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/landscape"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1 (a) and (b), which the paper
// draws as a sketch: training, validation and test loss over all architectures.
// Here they are of trained networks. Panel (c), a DARTS supernet with h = 224,
// stands with Figure 3, see [Figure3].
type Figure1Params struct {
	Line       [2]string // activations of the one-dimensional Δ: σ_α = (1−α)σ₀ + ασ₁
	Plane      [3]string // of the two-dimensional one, the simplex of three
	LineSteps  int       // grid of α ∈ [0, 1]: so many intervals
	PlaneSteps int       // grid of the simplex: multiples of 1/PlaneSteps

	Data         data.Name
	Classes      [2]int
	Train        int   // n_T
	Pool         int   // the test loss is that of so many other images
	Validation   []int // n_V, ascending; the last one is drawn
	Width, Steps int
	C0           float64
	Rate         float64 // of gradient descent, in units of 1/λ_max(K̂_α) at W₀
	Loss         string  // "hinge" (the paper's TVO), "squared" or "error"

	Seeds      int // training and validation samples and W₀
	Confidence float64
}

// The paper's panels (a) and (b) are a sketch without a setting; all of it is
// ours.
var (
	// Figure1Quick trains 205 networks of 64 neurons on 50 images, a quarter of a
	// minute on two cores. All claims hold: every network fits its images, and
	// with 500 validation images the validation loss follows the test loss with
	// correlation 1.00 over both Δ.
	Figure1Quick = Figure1Params{
		Line: [2]string{"relu", "sin4"}, Plane: [3]string{"relu", "tanh", "sin4"}, LineSteps: 12, PlaneSteps: 6,
		Data: data.MNIST, Classes: [2]int{3, 5}, Train: 50, Pool: 4000, Validation: []int{10, 40, 500},
		Width: 64, Steps: 300, C0: 1, Rate: 0.7, Loss: "hinge", Seeds: 5, Confidence: 0.95,
	}
	// Figure1Paper trains 660 networks of 256 neurons on 100 images, 20 to 40 minutes on
	// two cores; its trials are shipped. 100 validation images are enough for a
	// correlation of 1.00; that 10 are worse is not decided over the
	// two-dimensional Δ.
	Figure1Paper = func() Figure1Params {
		p := Figure1Quick
		p.LineSteps, p.PlaneSteps = 40, 12
		p.Train, p.Pool, p.Width, p.Steps = 100, 10000, 256, 1000
		p.Validation = []int{10, 40, 100}
		return p
	}()
)

const (
	figure1ID     = "oymak2021/figure1"
	figure1Title  = "Training, validation and test loss over a continuous set of architectures"
	figure1Source = "Oymak+ 2021, Figure 1"
)

var figure1Kind = code.Define(figure1ID, "oymak2021/internal/landscape")

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: "Oymak+ 2021", Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/oymak2021/figure1_losses.ipynb",
		Cost: catalog.Cost{
			Quick: "a quarter of a minute on two cores",
			Paper: "20 to 40 minutes on two cores; the project ships its trials",
		},
	}, Figure1Quick, Figure1Paper, Figure1)
}

// Figure1Result holds the losses of every α for each seed.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper" or empty for own parameters
	line   []*runs.Record
	plane  []*runs.Record
}

// Records are the keys of the trials.
func (r *Figure1Result) Records() []string { return study.Keys(slices.Concat(r.line, r.plane)) }

// Figure1 trains a network for every α of both grids and every seed. Cancelling
// ctx ends it with the finished seeds stored.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the data cannot be had, and where a training diverges.
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	opened, err := openImages(ctx, p.Data, p.Classes)
	if err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, c := range []landscape.Case{p.sweep(p.Line[:], p.LineSteps), p.sweep(p.Plane[:], p.PlaneSteps)} {
		keyed := c
		if keyed.Net.Activations, err = netKeys(c.Net.Activations); err != nil {
			return nil, fmt.Errorf("figure 1: %w", err)
		}
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			run := func(ctx context.Context, _ study.Step) (trial.Result, error) {
				images, err := imagesOf(ctx, opened)
				if err != nil {
					return trial.Result{}, err
				}
				return c.Run(ctx, seed, images)
			}
			return study.Case{Params: keyed, Data: opened.Fingerprint, Run: run}
		})...)
	}
	records, err := study.Study{ID: figure1ID, Code: figure1Kind, Shipped: shippedRecords}.Run(ctx, cases)
	if err != nil {
		return nil, err
	}
	return &Figure1Result{p, runs.Scale(ctx), records[:p.Seeds], records[p.Seeds:]}, nil
}

func (p Figure1Params) check() error {
	var c study.Checks
	checkNet(&c, p.sweep(p.Line[:], p.LineSteps).Net, p.Loss, p.Data)
	for _, name := range p.Plane {
		err := activation.Check(name)
		c.Expect(err == nil, "Plane: %v", err)
	}
	study.Distinct(&c, "Plane", p.Plane[:], 1)
	c.AtLeast("LineSteps", p.LineSteps, 2)
	c.AtLeast("PlaneSteps", p.PlaneSteps, 2)
	study.Ascending(&c, "Validation", p.Validation, 1, 0)
	c.AtLeast("Seeds", p.Seeds, 1)
	c.Confidence(p.Confidence)
	return c.Err("figure 1")
}

func (p Figure1Params) sweep(activations []string, steps int) landscape.Case {
	return landscape.Case{
		Net: activation.Net{
			Classes: p.Classes, Train: p.Train, Pool: p.Pool, Activations: activations,
			Width: p.Width, Steps: p.Steps, C0: p.C0, Rate: p.Rate,
		},
		Grid: steps, Validation: p.Validation, Loss: p.Loss,
	}
}

// Figure draws (a) and (b): above over the α of the one-dimensional Δ, below
// for every α of the two-dimensional Δ against its test loss.
func (r *Figure1Result) Figure() plots.Figure {
	p := r.Params
	nv := p.Validation[len(p.Validation)-1]
	validation := landscape.ValidationLoss(nv)
	tests := slices.Concat(study.Rows(r.plane, "test")...)
	lo, hi := slices.Min(tests), max(0, slices.Max(tests))
	alpha, loss := plots.Axis{Label: "$α$ in $(1−α)σ_0 + ασ_1$"}, plots.Axis{Label: p.Loss + " loss"}
	diagonal := plots.Series{Label: "equal to the test loss",
		X: []float64{lo, hi}, Y: []float64{lo, hi}, Reference: true}
	a := plots.Panel{
		Title: "(a) one-dimensional Δ", X: alpha, Y: loss,
		Series: []plots.Series{r.curve("training", "train"), r.curve("test", "test")},
	}
	b := plots.Panel{
		Title: fmt.Sprintf("(b) one-dimensional Δ, $n_V = %d$", nv), X: alpha, Y: loss,
		Series: []plots.Series{r.curve("validation", validation), r.curve("test", "test")},
	}
	c := plots.Panel{
		Title: "(a) two-dimensional Δ", X: plots.Axis{Label: "test loss"},
		Y:      plots.Axis{Label: "training loss", Min: -0.05 * hi, Max: 1.05 * hi},
		Series: []plots.Series{r.cloud("training, each $α$", "train"), diagonal},
	}
	d := plots.Panel{
		Title: fmt.Sprintf("(b) two-dimensional Δ, $n_V = %d$", nv),
		X:     plots.Axis{Label: "test loss"}, Y: plots.Axis{Label: "validation loss"},
		Series: []plots.Series{r.cloud("validation, each $α$", validation), diagonal},
	}
	return plots.Figure{
		Name: "oymak2021-figure1", Caption: r.caption(), Style: plots.ICML.Text(),
		Panels: [][]plots.Panel{{a, b}, {c, d}}, Meta: study.Meta(figure1Title, r.Scale, p),
	}
}

func (r *Figure1Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("One hidden layer of %d, %d training images of %s %d and %d. Above: mean over %d seeds with "+
		"%v %% intervals, $σ_0$ = %s, $σ_1$ = %s. Below: every α of the simplex of %s, %d seeds. "+
		"The paper's (a) and (b) are a sketch; (c), the DARTS supernet, is %s.",
		p.Width, p.Train, strings.ToUpper(string(p.Data)), p.Classes[0], p.Classes[1], p.Seeds, 100*p.Confidence,
		p.Line[0], p.Line[1], strings.Join(p.Plane[:], ", "), p.Seeds, figure3ID)
	if p.Data == data.Synthetic {
		text += " SYNTHETIC DATA."
	}
	return text + study.ScaleNote(p)
}

// curve is a loss over the one-dimensional Δ.
func (r *Figure1Result) curve(label, name string) plots.Series {
	var x []float64
	for _, alpha := range landscape.Grid(2, r.Params.LineSteps) {
		x = append(x, alpha[1])
	}
	return plots.Band(label, x, meansOf(r.line, name, r.Params.Confidence))
}

// cloud is a loss of every α of the two-dimensional Δ over its test loss.
func (r *Figure1Result) cloud(label, name string) plots.Series {
	return plots.Series{
		Label: label, Line: plots.NoLine,
		X: slices.Concat(study.Rows(r.plane, "test")...), Y: slices.Concat(study.Rows(r.plane, name)...),
	}
}

// Check judges (a) and (b) on both Δ; what "near zero" and "follows" mean is
// ours: a range of at most 5 % of that of the test loss, and a correlation of
// at least 0.9.
func (r *Figure1Result) Check() []runs.Claim {
	return append(r.checkPart("one-dimensional Δ", r.line), r.checkPart("two-dimensional Δ", r.plane)...)
}

// figure1Losses are those of one seed, over all α.
type figure1Losses struct {
	train, test, few, validation []float64
	spread                       float64 // max − min of the test loss
}

func (r *Figure1Result) losses(record *runs.Record) figure1Losses {
	v, series := r.Params.Validation, record.Series
	test := series["test"]
	return figure1Losses{
		series["train"], test, series[landscape.ValidationLoss(v[0])], series[landscape.ValidationLoss(v[len(v)-1])],
		slices.Max(test) - slices.Min(test),
	}
}

// excess is the test loss of the α with the least of some losses, of several the
// first, above the least test loss, over the range of the test loss.
func (l figure1Losses) excess(losses []float64) float64 {
	return (l.test[floats.MinIdx(losses)] - slices.Min(l.test)) / l.spread
}

// trainRange is the largest training loss over the range of the test loss.
func (l figure1Losses) trainRange() float64 {
	return (slices.Max(l.train) - min(0, slices.Min(l.train))) / l.spread
}

func (r *Figure1Result) checkPart(part string, records []*runs.Record) []runs.Claim {
	v := r.Params.Validation
	first, last := v[0], v[len(v)-1]
	confidence := verdict.Family(r.Params.Confidence, 2) // of each Δ
	claim := func(name, panel string, paper, lo, hi float64, of func(l figure1Losses) float64, note string) runs.Claim {
		e := overSeeds(len(records), confidence, func(seed int) (float64, error) {
			return of(r.losses(records[seed])), nil
		})
		return judged(name+", "+part, figure1Source+panel, paper, lo, hi, e, note)
	}
	inf := math.Inf(1)
	claims := []runs.Claim{
		claim("[figure1a] training loss near zero for all α", "(a)", 0, -inf, 0.05, figure1Losses.trainRange,
			"largest training loss of any α over the range of the test loss"),
		judged("[figure1a] largest training 0-1 error, "+part, figure1Source+"(a)", 0, 0, 0,
			overValues(study.Values(records, "train_error"), confidence), "of any α"),
		claim("[figure1a] choosing by the training loss is no better than at random", "(a)", 0.5, 0.1, inf,
			func(l figure1Losses) float64 { return l.excess(l.train) },
			"excess test loss of the α with the least training loss, over the range of the test loss"),
		claim("[figure1b] validation follows test, correlation over α", "(b)", 1, 0.9, inf,
			func(l figure1Losses) float64 { return stat.Correlation(l.validation, l.test, nil) },
			fmt.Sprintf("n_V = %d", last)),
		claim("[figure1b] choosing by the validation loss", "(b)", 0, -inf, 0.1,
			func(l figure1Losses) float64 { return l.excess(l.validation) },
			"excess test loss of α̂ over the range of the test loss"),
	}
	if first == last {
		return claims
	}
	return append(claims, claim(fmt.Sprintf("own: with too few validation samples (%d) it follows less", first),
		"(b)", 0, 0, inf, func(l figure1Losses) float64 {
			return floats.Distance(l.few, l.test, math.Inf(1)) - floats.Distance(l.validation, l.test, math.Inf(1))
		}, fmt.Sprintf("sup gap at n_V = %d minus that at %d", first, last)))
}
