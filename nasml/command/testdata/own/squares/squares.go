// Package squares has a figure of another module: noisy areas of squares.
package squares

import (
	"context"
	"embed"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/code"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
	"github.com/nasml/lab/plots"
)

// Params are the parameters of the figure.
type Params struct {
	Sides      []int // of the squares
	Seeds      int   // measurements of each
	Confidence float64
}

// Quick takes a moment; Paper has more seeds.
var (
	Quick = Params{Sides: []int{1, 2, 4}, Seeds: 5, Confidence: 0.95}
	Paper = Params{Sides: []int{1, 2, 4, 8}, Seeds: 100, Confidence: 0.95}
)

//go:embed *.go
var sources embed.FS

var kind = code.DefineOwn("squares/figure1", sources) // an edit computes anew

func init() {
	catalog.Register(catalog.Entry{
		ID: "squares/figure1", Paper: "Me 2026", Title: "Areas of noisy squares", Kind: "figure",
		Cost: catalog.Cost{Quick: "a second", Paper: "a second"},
	}, Quick, Paper, Figure1)
}

// Result has a record for every side and seed.
type Result struct {
	Params  Params
	records []*runs.Record
}

// Figure1 measures what the run store lacks.
func Figure1(ctx context.Context, p Params) (*Result, error) {
	var c study.Checks
	study.Ascending(&c, "Sides", p.Sides, 2, 0)
	c.AtLeast("Seeds", p.Seeds, 2)
	c.Confidence(p.Confidence)
	if err := c.Err("figure 1"); err != nil {
		return nil, err
	}
	var cases []study.Case
	for _, side := range p.Sides {
		cases = append(cases, study.Each(p.Seeds, func(seed uint64) study.Case {
			return study.Case{
				Params: map[string]int{"side": side},
				Run:    func(context.Context, study.Step) (trial.Result, error) { return measure(side, seed), nil },
			}
		})...)
	}
	records, err := study.Study{ID: "squares/figure1", Code: kind}.Run(ctx, cases)
	return &Result{p, records}, err
}

// measure is side²·(1 + u/100), u standard normal.
func measure(side int, seed uint64) trial.Result {
	noise := 1 + trial.RNG(seed, "noise").NormFloat64()/100
	return trial.Result{Values: map[string]float64{"area": float64(side*side) * noise}}
}

// curves are the areas over the sides, a row a seed.
func (r *Result) curves() [][]float64 {
	curves := make([][]float64, r.Params.Seeds)
	for i, record := range r.records {
		curves[i%r.Params.Seeds] = append(curves[i%r.Params.Seeds], record.Values["area"])
	}
	return curves
}

// Figure draws the areas over the sides.
func (r *Result) Figure() plots.Figure {
	panel := plots.Panel{X: plots.Axis{Label: "side"}, Y: plots.Axis{Label: "area"}}
	for _, row := range r.curves() {
		panel.Series = append(panel.Series, plots.Series{X: study.Floats(r.Params.Sides), Y: row})
	}
	return plots.Figure{Name: "squares-figure1", Style: plots.ICML, Panels: [][]plots.Panel{{panel}}}
}

// Check judges the law: the area grows with the square of the side.
func (r *Result) Check() []runs.Claim {
	s, err := verdict.Slopes(study.Floats(r.Params.Sides), r.curves(), r.Params.Confidence)
	return []runs.Claim{verdict.Near(verdict.Claim("own: the area grows as side²", "Me 2026, Fig. 1"), s, err, 2, 0.1)}
}

// Records are the keys of the trials.
func (r *Result) Records() []string { return study.Keys(r.records) }
