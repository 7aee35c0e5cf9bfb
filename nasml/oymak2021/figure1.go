package oymak2021

import (
	"context"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1 (a) and (b), which the paper
// draws as a sketch: training, validation and test loss over all architectures.
// Here they are of trained networks, see thm1Net. Panel (c), a DARTS supernet
// with h = 224, is not part of it.
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

// Figure1Quick takes a quarter of a minute. The paper's panels (a) and (b) are
// a sketch without a setting; all of it is ours.
var Figure1Quick = Figure1Params{
	Line: [2]string{"relu", "sin4"}, Plane: [3]string{"relu", "tanh", "sin4"}, LineSteps: 12, PlaneSteps: 6,
	Data: data.MNIST, Classes: [2]int{3, 5}, Train: 50, Pool: 4000, Validation: []int{10, 40, 500},
	Width: 64, Steps: 300, C0: 1, Rate: 0.7, Loss: "hinge", Seeds: 5, Confidence: 0.95,
}

// Figure1Paper has a wider network, more training images and a finer grid.
var Figure1Paper = func() Figure1Params {
	p := Figure1Quick
	p.LineSteps, p.PlaneSteps = 40, 12
	p.Train, p.Pool, p.Width, p.Steps = 100, 10000, 256, 1000
	p.Validation = []int{10, 40, 100}
	p.Seeds = 5
	return p
}()

const (
	figure1ID    = "oymak2021/figure1"
	figure1Title = "Training, validation and test loss over a continuous set of architectures"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: "Oymak+ 2021", Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/oymak2021/figure1_losses.ipynb",
		Cost:     catalog.Cost{Quick: "a quarter of a minute on two cores", Paper: "about ten minutes on two cores; the project ships its trials"},
	}, Figure1Quick, Figure1Paper, Figure1)
}

//go:embed figure1_run.go theorem1_net.go
var fig1Sources embed.FS

var fig1Code = sync.OnceValues(func() (string, error) { return runs.CodeVersion(fig1Sources) })

// Figure1Result holds the losses of every α for each seed.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper" or empty for own parameters
	line   []*runs.Record
	plane  []*runs.Record
}

// Records are the keys of the trials.
func (r *Figure1Result) Records() []string { return thm1Keys(append(slices.Clone(r.line), r.plane...)) }

// Figure1 trains a network for every α of both grids and every seed. Cancelling
// ctx ends it with the finished seeds stored.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the data cannot be had, and where a training diverges.
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := fig1Code()
	if err != nil {
		return nil, err
	}
	images, err := thm1Images(ctx, p.Data, p.Classes)
	if err != nil {
		return nil, err
	}
	var list []theoremTrial
	for _, c := range []fig1Case{p.sweep(p.Line[:], p.LineSteps), p.sweep(p.Plane[:], p.PlaneSteps)} {
		for _, seed := range runs.Seeds(p.Seeds) {
			list = append(list, theoremTrial{params: c, seed: seed, data: images.Fingerprint, run: func(ctx context.Context) (runs.Result, error) { return c.run(ctx, seed, images) }})
		}
	}
	records, err := computeTrials(ctx, figure1ID, code, list)
	if err != nil {
		return nil, err
	}
	return &Figure1Result{p, runs.Scale(ctx), records[:p.Seeds], records[p.Seeds:]}, nil
}

func (p Figure1Params) check() error {
	var c checker
	p.sweep(p.Line[:], p.LineSteps).Net.check(&c)
	p.sweep(p.Plane[:], p.PlaneSteps).Net.check(&c)
	thm1CheckLoss(&c, p.Loss)
	c.expect(p.LineSteps >= 2 && p.PlaneSteps >= 2, "LineSteps is %d and PlaneSteps %d, want at least 2", p.LineSteps, p.PlaneSteps)
	c.expect(len(p.Validation) > 0 && distinct(p.Validation) && slices.IsSorted(p.Validation) && p.Validation[0] >= 1,
		"Validation is %v, want ascending numbers from 1", p.Validation)
	sets := append(data.Names(), data.Synthetic)
	c.expect(slices.Contains(sets, p.Data), "Data is %q, want one of %v", p.Data, sets)
	c.expect(p.Seeds >= 1, "Seeds is %d, want at least 1", p.Seeds)
	c.expect(p.Confidence > 0 && p.Confidence < 1, "Confidence is %v, want between 0 and 1, such as 0.95", p.Confidence)
	if len(c) > 0 {
		return catalog.Usagef("parameters of figure 1: %s", strings.Join(c, "; "))
	}
	return nil
}

func (p Figure1Params) sweep(activations []string, steps int) fig1Case {
	return fig1Case{
		Net:  thm1Net{Classes: p.Classes, Train: p.Train, Pool: p.Pool, Activations: activations, Width: p.Width, Steps: p.Steps, C0: p.C0, Rate: p.Rate},
		Grid: steps, Validation: p.Validation, Loss: p.Loss,
	}
}

// Figure draws (a) and (b): above over the α of the one-dimensional Δ, below
// for every α of the two-dimensional Δ against its test loss.
func (r *Figure1Result) Figure() plots.Figure {
	p := r.Params
	nv := p.Validation[len(p.Validation)-1]
	lo, hi := math.Inf(1), 0.0
	for _, record := range r.plane {
		lo, hi = min(lo, slices.Min(record.Series["test"])), max(hi, slices.Max(record.Series["test"]))
	}
	label := "$α$ in $(1−α)σ_0 + ασ_1$"
	a := plots.Panel{Title: "(a) one-dimensional Δ", X: plots.Axis{Label: label}, Y: plots.Axis{Label: p.Loss + " loss"},
		Series: []plots.Series{r.curve("training", "train"), r.curve("test", "test")}}
	b := plots.Panel{Title: fmt.Sprintf("(b) one-dimensional Δ, $n_V = %d$", nv), X: plots.Axis{Label: label}, Y: plots.Axis{Label: p.Loss + " loss"},
		Series: []plots.Series{r.curve("validation", fig1Validation(nv)), r.curve("test", "test")}}
	c := plots.Panel{Title: "(a) two-dimensional Δ", X: plots.Axis{Label: "test loss"}, Y: plots.Axis{Label: "training loss", Min: -0.05 * hi, Max: 1.05 * hi},
		Series: []plots.Series{r.cloud("training, each $α$", "train")}}
	d := plots.Panel{Title: fmt.Sprintf("(b) two-dimensional Δ, $n_V = %d$", nv), X: plots.Axis{Label: "test loss"}, Y: plots.Axis{Label: "validation loss"},
		Series: []plots.Series{r.cloud("validation, each $α$", fig1Validation(nv))}}
	diagonal := plots.Series{Label: "equal to the test loss", X: []float64{lo, hi}, Y: []float64{lo, hi}, Reference: true}
	c.Series, d.Series = append(c.Series, diagonal), append(d.Series, diagonal)
	return plots.Figure{Name: "oymak2021-figure1", Caption: r.caption(), Style: plots.ICML.Text(),
		Panels: [][]plots.Panel{{a, b}, {c, d}}, Meta: thm1Meta(figure1Title, r.Scale, p)}
}

func (r *Figure1Result) caption() string {
	p := r.Params
	text := fmt.Sprintf("One hidden layer of %d, %d training images of %s %d and %d. Above: mean over %d seeds with %v %% intervals, $σ_0$ = %s, $σ_1$ = %s. Below: every α of the simplex of %s, %d seeds. The paper's (a) and (b) are a sketch; (c), the DARTS supernet, is not run.",
		p.Width, p.Train, p.Data, p.Classes[0], p.Classes[1], p.Seeds, 100*p.Confidence, p.Line[0], p.Line[1], strings.Join(p.Plane[:], ", "), p.Seeds)
	if p.Data == data.Synthetic {
		text += " SYNTHETIC DATA."
	}
	return text
}

// curve is a loss over the one-dimensional Δ.
func (r *Figure1Result) curve(label, name string) plots.Series {
	means, err := thm1Summaries(thm1Rows(r.line, name), r.Params.Confidence)
	if err != nil { // a stored series is finite
		panic(err)
	}
	var x []float64
	for _, alpha := range fig1Grid(2, r.Params.LineSteps) {
		x = append(x, alpha[1])
	}
	return plots.Band(label, x, means)
}

// cloud is a loss of every α of the two-dimensional Δ over its test loss.
func (r *Figure1Result) cloud(label, name string) plots.Series {
	s := plots.Series{Label: label, Line: plots.NoLine}
	for _, record := range r.plane {
		s.X, s.Y = append(s.X, record.Series["test"]...), append(s.Y, record.Series[name]...)
	}
	return s
}

// Check judges (a) and (b) on both Δ; what "near zero" and "follows" mean is
// ours: a range of at most 5 % of that of the test loss, and a correlation of
// at least 0.9.
func (r *Figure1Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, part := range []struct {
		name    string
		records []*runs.Record
	}{{"one-dimensional Δ", r.line}, {"two-dimensional Δ", r.plane}} {
		claims = append(claims, r.checkPart(part.name, part.records)...)
	}
	for _, name := range []string{"figure1c-h", "figure1c-train-zero", "figure1c-val-tracks", "figure1c-overfit", "figure1c-train-fast"} {
		c := runs.NewClaim(name, "Oymak+ 2021, Figure 1(c)")
		c.Note = "not run: the search with a DARTS supernet is not part of this entry"
		claims = append(claims, c)
	}
	return claims
}

// fig1Seed are numbers of one seed, over all α.
type fig1Seed struct {
	trainRange, trainPick, pick, correlation, few float64
}

func (r *Figure1Result) numbers(record *runs.Record) fig1Seed {
	v := r.Params.Validation
	train, test := record.Series["train"], record.Series["test"]
	val, few := record.Series[fig1Validation(v[len(v)-1])], record.Series[fig1Validation(v[0])]
	best, spread := slices.Min(test), slices.Max(test)-slices.Min(test)
	return fig1Seed{
		trainRange:  (slices.Max(train) - min(0, slices.Min(train))) / spread,
		trainPick:   (test[fig1Least(train)] - best) / spread,
		pick:        (test[fig1Least(val)] - best) / spread,
		correlation: stat.Correlation(val, test, nil),
		few:         fig1Gap(few, test) - fig1Gap(val, test),
	}
}

// fig1Least is the position of the smallest number, of several the first.
func fig1Least(v []float64) int { return slices.Index(v, slices.Min(v)) }

// fig1Gap is the largest distance of two curves.
func fig1Gap(a, b []float64) float64 {
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}

func (r *Figure1Result) checkPart(name string, records []*runs.Record) []runs.Claim {
	var ranges, trainPicks, picks, correlations, few, errors []float64
	for _, record := range records {
		n := r.numbers(record)
		ranges, trainPicks, picks = append(ranges, n.trainRange), append(trainPicks, n.trainPick), append(picks, n.pick)
		correlations, few = append(correlations, n.correlation), append(few, n.few)
		errors = append(errors, record.Values["train_error"])
	}
	v := r.Params.Validation
	claim := func(id, source string, paper, lo, hi float64, values []float64, note string) runs.Claim {
		return thm1Claim(id+", "+name, "Oymak+ 2021, Figure 1"+source, paper, lo, hi, values, r.Params.Confidence, note)
	}
	claims := []runs.Claim{
		claim("figure1a: training loss near zero for all α", "(a)", 0, math.Inf(-1), 0.05, ranges, "largest training loss of any α over the range of the test loss"),
		claim("figure1a: largest training 0-1 error", "(a)", 0, 0, 0, errors, "of any α"),
		claim("figure1a: choosing by the training loss is no better than at random", "(a)", 0.5, 0.1, math.Inf(1), trainPicks, "excess test loss of the α with the least training loss, over the range of the test loss"),
		claim("figure1b: validation follows test, correlation over α", "(b)", 1, 0.9, math.Inf(1), correlations, fmt.Sprintf("n_V = %d", v[len(v)-1])),
		claim("figure1b: choosing by the validation loss", "(b)", 0, math.Inf(-1), 0.1, picks, "excess test loss of α̂ over the range of the test loss"),
	}
	if len(v) > 1 {
		claims = append(claims, claim(fmt.Sprintf("own: with too few validation samples (%d) it follows less", v[0]), "(b)", 0, 0, math.Inf(1), few,
			fmt.Sprintf("sup gap at n_V = %d minus that at %d", v[0], v[len(v)-1])))
	}
	return claims
}
