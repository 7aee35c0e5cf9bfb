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
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/landscape"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1 (a) and (b): training, validation and test loss over all architectures,
// of trained networks; the paper has a sketch. Panel (c), a DARTS supernet with h = 224, is in [Figure3].
type Figure1Params struct {
	Line       [2]string `validate:"unique"` // activations of the one-dimensional Δ: σ_α = (1−α)σ₀ + ασ₁
	Plane      [3]string `validate:"unique"` // of the two-dimensional one, the simplex of three
	LineSteps  int       `validate:"gte=2"`  // grid of α ∈ [0, 1]: so many intervals
	PlaneSteps int       `validate:"gte=2"`  // grid of the simplex: multiples of 1/PlaneSteps

	Data       data.Name
	Classes    [2]int  `validate:"unique,dive,gte=0,lte=255"`
	Train      int     `validate:"gte=2"`                      // n_T
	Pool       int     `validate:"gte=2"`                      // the test loss is that of so many other images
	Validation []int   `validate:"min=1,ascending,dive,gte=1"` // n_V, ascending; the last one is drawn
	Width      int     `validate:"gte=2,multiple=2"`
	Steps      int     `validate:"gte=1"`
	C0         float64 `validate:"positive"`
	Rate       float64 `validate:"gt=0,lt=2"`                 // of gradient descent, in units of 1/λ_max(K̂_α) at W₀
	Loss       string  `validate:"oneof=hinge squared error"` // "hinge" (the paper's TVO), "squared" or "error"

	Seeds      int     `validate:"gte=1"` // training and validation samples and W₀
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

// The paper's panels (a) and (b) are a sketch without a setting; all of it is ours.
var (
	// Figure1Quick trains 205 networks of 64 neurons on 50 images. All claims hold: every network fits its images, and
	// with 500 validation images the validation loss follows the test loss with correlation 1.00 over both Δ.
	Figure1Quick = Figure1Params{
		Line: [2]string{"relu", "sin4"}, Plane: [3]string{"relu", "tanh", "sin4"}, LineSteps: 12, PlaneSteps: 6,
		Data: data.MNIST, Classes: [2]int{3, 5}, Train: 50, Pool: 4000, Validation: []int{10, 40, 500},
		Width: 64, Steps: 300, C0: 1, Rate: 0.7, Loss: "hinge", Seeds: 5, Confidence: 0.95,
	}
	// Figure1Paper trains 660 networks of 256 neurons on 100 images. 100 validation images are enough for a correlation
	// of 1.00; whether 10 are worse is inconclusive over the two-dimensional Δ.
	Figure1Paper = func() Figure1Params {
		p := Figure1Quick
		p.LineSteps, p.PlaneSteps = 40, 12
		p.Train, p.Pool, p.Width, p.Steps = 100, 10000, 256, 1000
		p.Validation = []int{10, 40, 100}
		return p
	}()
)

// Figure1 trains a network for every α of both grids and every seed. It returns an error if a training diverges.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, landscape.Case]{
	Of: ofPaper, Name: "figure1", Kind: lab.Figure, Source: "Figure 1", Notebook: "figure1_losses",
	Title: "Training, validation and test loss over a continuous set of architectures",
	Cost: catalog.Cost{
		Quick: "7 seconds on two cores",
		Paper: "about seven minutes on two cores (forecast); precomputed",
	},
	Quick: Figure1Quick, Paper: Figure1Paper,
	Code:    code.Define("oymak2021/figure1", "oymak2021/internal/landscape"),
	Seconds: landscapeSeconds,
	Rules: func(p Figure1Params, c *study.Checks) {
		checkNet(c, slices.Concat(p.Line[:], p.Plane[:]), p.Data)
	},
	Trials: func(p Figure1Params) (gs lab.Groups[landscape.Case]) {
		gs.Add("line", p.Seeds, p.sweep(p.Line[:], p.LineSteps))
		gs.Add("plane", p.Seeds, p.sweep(p.Plane[:], p.PlaneSteps))
		return gs
	},
	Bench: func(ctx context.Context, p Figure1Params, _ string) (lab.Bench[landscape.Case], error) {
		return netBench(ctx, p.Data, p.Classes, slices.Concat(p.Line[:], p.Plane[:]),
			func(c *landscape.Case) *activation.Net { return &c.Net })
	},
	Draw: drawFigure1,
	Claims: func(r *figure1) []runs.Claim {
		return append(judgeLosses(r, "one-dimensional Δ", "line"), judgeLosses(r, "two-dimensional Δ", "plane")...)
	},
})

type figure1 = lab.Result[Figure1Params, landscape.Case]

func (p Figure1Params) sweep(activations []string, steps int) landscape.Case {
	return landscape.Case{
		Net: activation.Net{
			Classes: p.Classes, Train: p.Train, Pool: p.Pool, Activations: activations,
			Width: p.Width, Steps: p.Steps, C0: p.C0, Rate: p.Rate,
		},
		Grid: steps, Validation: p.Validation, Loss: p.Loss,
	}
}

// drawFigure1 draws (a) and (b): above over α of the one-dimensional Δ, below for every α of the two-dimensional Δ
// against its test loss.
func drawFigure1(r *figure1, f *lab.Picture) {
	p := r.Params
	nv := p.Validation[len(p.Validation)-1]
	validation := landscape.ValidationLoss(nv)
	alpha, loss := plots.Axis{Label: "$α$ in $(1−α)σ_0 + ασ_1$"}, plots.Axis{Label: p.Loss + " loss"}
	f.Row(plots.Panel{
		Title: "(a) one-dimensional Δ", X: alpha, Y: loss,
		Series: []plots.Series{overLine(r, "training", "train"), overLine(r, "test", "test")},
	}, plots.Panel{
		Title: fmt.Sprintf("(b) one-dimensional Δ, $n_V = %d$", nv), X: alpha, Y: loss,
		Series: []plots.Series{overLine(r, "validation", validation), overLine(r, "test", "test")},
	})
	tests := slices.Concat(r.Part("plane").Rows("test")...)
	lo, hi := slices.Min(tests), max(0, slices.Max(tests))
	diagonal := plots.Series{
		Label: "equal to the test loss", X: []float64{lo, hi}, Y: []float64{lo, hi}, Reference: true,
	}
	f.Row(plots.Panel{
		Title: "(a) two-dimensional Δ", X: plots.Axis{Label: "test loss"},
		Y:      plots.Axis{Label: "training loss", Min: -0.05 * hi, Max: 1.05 * hi},
		Series: []plots.Series{overTest(r, "training, each $α$", "train"), diagonal},
	}, plots.Panel{
		Title: fmt.Sprintf("(b) two-dimensional Δ, $n_V = %d$", nv),
		X:     plots.Axis{Label: "test loss"}, Y: plots.Axis{Label: "validation loss"},
		Series: []plots.Series{overTest(r, "validation, each $α$", validation), diagonal},
	})
	f.Say("One hidden layer of %d, %d training images of %s %d and %d; the paper has a sketch.", p.Width, p.Train,
		strings.ToUpper(string(p.Data)), p.Classes[0], p.Classes[1])
	f.Say("Above: $σ_0$ = %s, $σ_1$ = %s, %s; below: every $α$ of the simplex of %s, %d seeds.",
		study.Title(p.Line[0]), study.Title(p.Line[1]), r.Interval("band", p.Seeds, "seed"),
		study.Title(strings.Join(p.Plane[:], ", ")), p.Seeds)
	if p.Data == data.Synthetic {
		f.Say("SYNTHETIC DATA.")
	}
}

func overLine(r *figure1, label, name string) plots.Series {
	x := study.Column(landscape.Grid(2, r.Params.LineSteps), 1)
	return band(label, x, study.Columns(r.Part("line").Rows(name)), r.Confidence)
}

func overTest(r *figure1, label, name string) plots.Series {
	all := func(name string) []float64 { return slices.Concat(r.Part("plane").Rows(name)...) }
	return plots.Series{Label: label, Line: plots.NoLine, X: all("test"), Y: all(name)}
}

type figure1Losses struct{ train, test, few, validation []float64 }

func (l figure1Losses) spread() float64 { return slices.Max(l.test) - slices.Min(l.test) }

// excess is the test loss of the (first) α with the least of some losses, above the least test loss, over the range of
// the test loss.
func (l figure1Losses) excess(losses []float64) float64 {
	return (l.test[floats.MinIdx(losses)] - slices.Min(l.test)) / l.spread()
}

// judgeLosses judges (a) and (b) on one Δ. "Near zero" is a range of at most 5 % of that of the test loss, "follows" a
// correlation of at least 0.9; both are ours.
func judgeLosses(r *figure1, delta, part string) []runs.Claim {
	gs, v := r.Part(part), r.Params.Validation
	first, last := v[0], v[len(v)-1]
	claim := func(panel, name, note string, of func(l figure1Losses) float64) lab.Statistic { // one of each Δ
		return r.Claim("%s, %s", name, delta).From("Figure 1"+panel).Noting("%s", note).Family(2).
			Mean(study.Map(gs.Records(), func(record *runs.Record) float64 {
				at := func(n int) []float64 { return record.Series[landscape.ValidationLoss(n)] }
				return of(figure1Losses{record.Series["train"], record.Series["test"], at(first), at(last)})
			}))
	}
	inf := math.Inf(1)
	claims := []runs.Claim{
		claim("(a)", "[figure1a] training loss near zero for all α",
			"largest training loss of any α over the range of the test loss",
			func(l figure1Losses) float64 {
				return (slices.Max(l.train) - min(0, slices.Min(l.train))) / l.spread()
			}).Between(0, -inf, 0.05),
		r.Claim("[figure1a] largest training 0-1 error, %s", delta).From("Figure 1(a)").Noting("of any α").Family(2).
			Mean(gs.Values("train_error")).Between(0, 0, 0),
		claim("(a)", "[figure1a] choosing by the training loss is no better than at random",
			"excess test loss of the α with the least training loss, over the range of the test loss",
			func(l figure1Losses) float64 { return l.excess(l.train) }).Between(0.5, 0.1, inf),
		claim("(b)", "[figure1b] validation follows test, correlation over α", fmt.Sprintf("n_V = %d", last),
			func(l figure1Losses) float64 { return stat.Correlation(l.validation, l.test, nil) }).Between(1, 0.9, inf),
		claim("(b)", "[figure1b] choosing by the validation loss",
			"excess test loss of α̂ over the range of the test loss",
			func(l figure1Losses) float64 { return l.excess(l.validation) }).Between(0, -inf, 0.1),
	}
	if first == last {
		return claims
	}
	return append(claims, claim("(b)", fmt.Sprintf("own: with too few validation samples (%d) it follows less", first),
		fmt.Sprintf("sup gap at n_V = %d minus that at %d", first, last), func(l figure1Losses) float64 {
			return floats.Distance(l.few, l.test, inf) - floats.Distance(l.validation, l.test, inf)
		}).Between(0, 0, inf))
}
