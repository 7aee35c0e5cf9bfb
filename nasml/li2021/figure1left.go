package li2021

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// Figure1LeftQuick has searches of three cells on 4,000 images of 8×8 pixels, 1,250 steps each.
var Figure1LeftQuick = Figure1Params{
	SearchParams: SearchParams{Preset: "quick", Data: data.CIFAR10, Examples: 4000, Seeds: 3, Confidence: 0.95},
	Rows:         []string{"pc-darts@darts", "gaea-pc-darts@darts"},
}

// Figure1LeftLarge has five cells of 16 channels on 10,000 images of 16×16 pixels: an hour and a half on two cores,
// precomputed.
var Figure1LeftLarge = lab.With(Figure1LeftQuick, func(p *Figure1Params) {
	p.Channels, p.Cells, p.Image, p.Batch, p.Epochs, p.Examples = 16, 5, 16, 64, 25, 10000
})

// Figure1LeftPaper has the settings of Appendix C.1.1 and, like the published curves, one seed. Those curves come from
// the authors' program (Preset "code"), without warm-up and with a PC-DARTS whose edges weigh 1. Searches as that
// program runs them are shipped, see [publishedDARTS]; those with Preset "paper" were not run.
var Figure1LeftPaper = lab.With(Figure1LeftQuick, func(p *Figure1Params) {
	p.Preset, p.Examples, p.Seeds = "paper", 0, 1
})

// publishedDARTS has one search of each method as the authors' program runs it, whose curves the paper shows. Supernets
// are evaluated every ten epochs.
var publishedDARTS = lab.With(Figure1LeftPaper, func(p *Figure1Params) { p.Preset, p.EvaluateEvery = "code", 10 })

// Figure1Left draws searches on cells with two inputs, with what they can be watched by.
var Figure1Left = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "figure1-left", Kind: lab.Figure, Source: "Section 4.1", Notebook: "figure1_left_entropy",
	Title: "Sparsity on DARTS' space: entropy of operations and edges, discretisation and skip connections",
	Cost: catalog.Cost{
		Quick: "a quarter of an hour on two cores; its searches are precomputed",
		Paper: "hours a search on a GPU, 27 hours on two cores for both",
	},
	Quick: Figure1LeftQuick, Paper: Figure1LeftPaper,
	Also:    []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: Figure1LeftLarge}},
	Shipped: []catalog.Setting{{Scale: catalog.Paper, Set: []string{"Preset=code", "EvaluateEvery=10"}}},
	Note:    noteOfSearches,
	Rules:   func(p Figure1Params, c *study.Checks) { p.onCells(c, "cells") },
	Compute: func(ctx context.Context, r *figure1) error { return r.Params.compute(ctx, "li2021/figure1-left", r) },
	Draw:    drawFigure1Left,
	Claims:  func(r *figure1) []runs.Claim { return append(judgeFigure1(r), judgeCollapse(r)) },
})

// onCells checks that all rows search spaces of these kinds, whose cells can be drawn.
func (p Figure1Params) onCells(c *study.Checks, kinds ...string) {
	p.rules(p.Rows, c)
	var names []string
	for _, kind := range kinds {
		names = append(names, search.Kinds[kind].Names()...)
	}
	for _, w := range p.Rows {
		space := cmp.Or(row(w).space(), p.Space)
		c.Expect(slices.Contains(names, space), "the space of row %q must be one of %v (METHOD@SPACE), got %q", w,
			names, space)
	}
	c.Expect(len(p.Gradients) == 0, "Gradients must be empty, got %v: li2021/figure1 compares gradients", p.Gradients)
}

func drawFigure1Left(r *figure1, f *lab.Picture) {
	f.Style = plots.ICLR
	for _, panels := range leftPanels(r) {
		f.Row(panels...)
	}
	sayEntropies(r, f)
	if collapsed, of := collapsed(r); collapsed > 0 {
		f.Say("ALARM: %d of %d searches ended with skip connections on half or more of %s edges.", collapsed, of,
			whose(r))
	}
}

// leftPanels are, for every space: entropies of operations and edges of the normal cell, validation accuracy of the
// supernet with θ and discretised, share of skip connections of the normal cell, and the instruments if they were read.
func leftPanels(r *figure1) (panels [][]plots.Panel) {
	for _, rows := range bySpace(r) {
		curves := []plots.Panel{entropiesPanel(r, rows), edgePanel(r, rows), auditPanel(r, rows), skipPanel(r, rows)}
		curves = slices.DeleteFunc(curves, func(p plots.Panel) bool { return len(p.Series) == 0 }) // no edge weights
		panels = slices.AppendSeq(panels, slices.Chunk(curves, 2))
		if read := r.Params.instrumentPanels(rows); len(read) > 0 {
			panels = append(panels, read)
		}
	}
	return panels
}

// edgePanel has the mean entropy of the edge weights over the nodes of the normal cell, for searches that have edge
// weights.
func edgePanel(r *figure1, rows []found) plots.Panel {
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of edges (nats)"}}
	for _, f := range rows {
		var series []string
		for _, b := range f.blocks {
			if supernet.OnEdges(b) && strings.HasPrefix(b.Name, string(supernet.Normal)) {
				series = append(series, "entropy of "+b.Name)
			}
		}
		if len(series) == 0 {
			continue
		}
		panel.Series = append(panel.Series, f.band(r.Confidence, f.row.title(), nil, func(r *runs.Record) []float64 {
			return means(study.Columns(study.Map(series, func(name string) []float64 { return r.Series[name] })))
		}, atMostUniform))
	}
	return panel
}

func auditPanel(r *figure1, rows []found) plots.Panel {
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "supernet, validation (%)", Min: 0}}
	for _, f := range rows {
		for _, of := range []struct{ series, label string }{{"supernet", ""}, {"discrete", ", discretised"}} {
			var evaluated []float64
			for _, record := range f.finished()[:min(1, len(f.finished()))] {
				evaluated = record.Series["evaluated"]
			}
			panel.Series = append(panel.Series, f.band(r.Confidence, f.row.title()+of.label, evaluated,
				values(of.series), func(s []runs.Summary) []runs.Summary { return study.Map(s, runs.Summary.Percent) }))
		}
	}
	return panel
}

func skipPanel(r *figure1, rows []found) plots.Panel {
	label := "skip connections"
	if _, ok := supernet.CellSpaces[rows[0].settings.Space]; ok {
		label += ", normal"
	}
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: label, Max: 1}}
	for _, f := range rows {
		after := epochsFrom(1, f.settings.Epochs) // it begins without
		panel.Series = append(panel.Series, f.band(r.Confidence, f.row.title(), after, func(r *runs.Record) []float64 {
			return study.Map(after[:epochs(r)], func(e float64) float64 { return f.skips(r, int(e)) })
		}, between(0, 1)))
	}
	return panel
}

func (f found) skips(record *runs.Record, epoch int) float64 {
	share, ok := f.skipShare(f.blocksAfter(record, epoch))
	if !ok {
		panic(fmt.Errorf("%s has no genotype", f.row)) // it was searched: θ is finite and of the space
	}
	return share
}

// whose names the cell on whose edges skip connections are counted.
func whose(r *figure1) string {
	spaces, two := bySpace(r), 0
	for _, rows := range spaces {
		if _, ok := supernet.CellSpaces[rows[0].settings.Space]; ok {
			two++
		}
	}
	switch two {
	case 0:
		return "the cell's"
	case len(spaces):
		return "the normal cell's"
	}
	return "the (normal) cell's"
}

// collapsed counts the searches that ended with skip connections on at least half of the (normal) cell's edges, the
// collapse of Zela+ 2020.
func collapsed(r *figure1) (searches, of int) {
	for _, f := range searched(r.Groups) {
		for _, record := range f.finished() {
			if of++; f.skips(record, epochs(record)) >= manySkips {
				searches++
			}
		}
	}
	return searches, of
}

func judgeCollapse(r *figure1) runs.Claim {
	c := verdict.Claim("own: no search ends with skip connections on half or more of "+whose(r)+" edges",
		"Zela+ 2020, Section 3")
	collapsed, of := collapsed(r)
	if of == 0 {
		return verdict.NotRun(c, "no search was run")
	}
	return verdict.None(c, collapsed, of)
}
