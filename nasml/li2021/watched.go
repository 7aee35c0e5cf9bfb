package li2021

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// InstrumentsQuick has one search by DARTS and one by GAEA PC-DARTS on the DARTS space, at the quick scale of Figure 1
// (left), with diagnostics after every epoch. They are precomputed, and so are those of instruments201.
var InstrumentsQuick = watched(Figure1LeftQuick)

// InstrumentsLarge has the middle scale of Figure 1 (left): two searches, five hours on two cores beside other work.
var InstrumentsLarge = watched(Figure1LeftLarge)

// InstrumentsPaper has the paper's settings of the searches. It was not run.
var InstrumentsPaper = watched(Figure1LeftPaper)

func watched(p Figure1Params) Figure1Params {
	p.Rows = []string{"darts@darts", "gaea-pc-darts@darts"}
	p.Seeds, p.Instruments, p.EvaluateEvery = 1, 4, 1
	return p
}

var instruments201 = []string{"Rows=darts@nasbench201,gaea-darts@nasbench201"}

// Instruments reads the instruments after every evaluation of searches.
var Instruments = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "instruments", Kind: lab.Figure, Source: "Section 4.1", Notebook: "instruments",
	Title: "What a search is watched by: entropy, discretisation, curvature, stationarity, Condition 6",
	Cost: catalog.Cost{
		Quick: "ten minutes on two cores, half of it to compile; its searches are precomputed",
		Paper: "15 hours a search on two cores (forecast)",
	},
	Quick: InstrumentsQuick, Paper: InstrumentsPaper,
	Also:    []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: InstrumentsLarge}},
	Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Quick, Set: instruments201}},
	Note:    noteOfSearches,
	Rules: func(p Figure1Params, c *study.Checks) {
		c.AtLeast("Instruments", p.Instruments, 1) // products with Hessians
		p.onCells(c, "cells", "nasbench201")
	},
	Compute: func(ctx context.Context, r *figure1) error { return r.Params.compute(ctx, "li2021/instruments", r) },
	Draw:    drawInstruments, Claims: judgeInstruments,
})

// drawInstruments draws the panels of [Figure1Left] with those of the instruments, and the final cells of every search,
// edges as wide as θ. Edges whose largest weight is on the operation that is best alone are highlighted.
func drawInstruments(r *figure1, f *lab.Picture) {
	f.Style.Aspect = 0.5 // of which a page holds three rows, and the cells
	curves := slices.DeleteFunc(slices.Concat(leftPanels(r)...), func(p plots.Panel) bool {
		return len(p.Series) == 0 // such as the entropy of edges that have no weights
	})
	for panels := range slices.Chunk(curves, 3) {
		f.Row(panels...)
	}
	rows := searched(r.Groups)
	var cells []plots.Panel
	for _, of := range rows {
		for _, record := range of.finished()[:min(1, len(of.finished()))] {
			a, err := of.animation(record)
			if err != nil {
				panic(err) // the searches were on cells with two inputs
			}
			last := len(a.Frames) - 1
			for _, cell := range slices.Concat(a.Frames[last].Panels...) {
				cell.Title = fmt.Sprintf("%s, %s", of.row.title(), a.Labels[last])
				cell.Cell.Width = 1.8 // two of them share a row
				cells = append(cells, cell)
			}
		}
	}
	for panels := range slices.Chunk(cells, 2) {
		f.Row(panels...)
	}
	f.Say("%s", instrumentCaption)
	f.Say("Cells: edges are as wide as $θ$; they stand out where the largest is on the operation with the least loss.")
	f.Say("%s", searchCaption(r.Params.SearchParams, rows, r.Params))
	sayChanges(f, rows)
}

// judgeInstruments judges that searches begin at uniform weights and do not collapse, and for GAEA that θ comes as near
// to a stationary point as Theorem 1 says.
func judgeInstruments(r *figure1) []runs.Claim {
	claims := append(judgeStarts(r), judgeCollapse(r))
	for _, f := range searched(r.Groups) {
		if search.Methods[f.row.method()].Hold == search.OnSimplex { // which the theorem is about
			claims = append(claims, judgeBound(r, f))
		}
	}
	return claims
}

func judgeBound(r *figure1, f found) runs.Claim {
	c := r.Claim("own: %s: evaluations at which Δ lies above Theorem 1's bound of the constants read until then",
		f.row.named()).From("Theorem 1")
	above, of := 0, 0
	for _, record := range f.finished() {
		bounds := f.bounds(f.readingsOf(record))
		for i, delta := range record.Series["stationarity"] {
			if of++; delta > bounds[i] {
				above++
			}
		}
	}
	if of == 0 {
		return c.NotRun("no search was run")
	}
	return verdict.None(c.Claim, above, of)
}
