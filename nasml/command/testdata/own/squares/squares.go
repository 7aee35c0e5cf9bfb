// Package squares declares a figure in another module: noisy areas of squares.
package squares

import (
	"context"
	"embed"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Params are the parameters of Figure 1. The tags are their limits.
type Params struct {
	Sides      []int   `validate:"min=2,ascending,dive,gte=1"` // side lengths
	Seeds      int     `validate:"gte=2"`                      // measurements of each square
	Confidence float64 `validate:"gt=0.5,lt=1"`
}

// Quick and Paper differ in their sides and seeds.
var (
	Quick = Params{Sides: []int{1, 2, 4}, Seeds: 5, Confidence: 0.95}
	Paper = Params{Sides: []int{1, 2, 4, 8}, Seeds: 100, Confidence: 0.95}
)

//go:embed *.go
var sources embed.FS

// Figure1 measures noisy squares.
var Figure1 = lab.Declare(lab.Entry[Params, Square]{
	Of: lab.Paper{ID: "squares", Name: "Me 2026"}, Name: "figure1", Kind: lab.Figure,
	Source: "Figure 1", Notebook: "figure1", Title: "Areas of noisy squares",
	Cost:  catalog.Cost{Quick: "a second", Paper: "a second"},
	Quick: Quick, Paper: Paper,
	Code: code.DefineOwn("squares/figure1", sources), // an edit of these files is a new version
	Trials: func(p Params) (gs lab.Groups[Square]) {
		for _, side := range p.Sides {
			gs.Add("squares", p.Seeds, Square{side})
		}
		return gs
	},
	Draw: func(r *figure1, f *lab.Picture) {
		gs := r.Part("squares")
		f.Row(plots.Panel{
			X: plots.Axis{Label: "side"}, Y: plots.Axis{Label: "area"},
			Series: []plots.Series{r.Curve("measured", gs.X(Square.side), gs.Lists("area"))},
		})
		f.Say("Mean area over side length, %d seeds. Bars: confidence interval.", r.Params.Seeds)
	},
	Claims: func(r *figure1) []runs.Claim {
		return []runs.Claim{r.Claim("own: the area grows as side²").Of(exponent(r)).Near(2, 0.1)}
	},
})

type figure1 = lab.Result[Params, Square]

// exponent is the slope of the areas over the sides on logarithmic axes, over seeds.
func exponent(r *figure1) (runs.Summary, error) {
	gs := r.Part("squares")
	return verdict.Slopes(gs.X(Square.side), study.Columns(gs.Lists("area")), r.Confidence)
}

// Square is a trial without its seed. It is part of the trial's hash.
type Square struct{ Side int }

func (s Square) side() float64 { return float64(s.Side) }

// Run measures the area: side²·(1 + u/100), u standard normal.
func (s Square) Run(_ context.Context, seed uint64) (trial.Result, error) {
	noise := 1 + trial.RNG(seed, "noise").NormFloat64()/100
	return trial.Result{Values: map[string]float64{"area": s.side() * s.side() * noise}}, nil
}
