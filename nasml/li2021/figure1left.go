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

// Figure1LeftQuick has searches of three cells on 4,000 images of 8×8 pixels, 1,250
// steps each.
var Figure1LeftQuick = Figure1Params{
	SearchParams: SearchParams{Preset: "quick", Data: data.CIFAR10, Examples: 4000, Seeds: 3, Confidence: 0.95},
	Rows:         []string{"pc-darts@darts", "gaea-pc-darts@darts"},
}

// Figure1LeftLarge has five cells of 16 channels on 10,000 images of 16×16 pixels:
// an hour and a half on two cores. These searches are precomputed.
var Figure1LeftLarge = func() Figure1Params {
	p := Figure1LeftQuick
	p.Channels, p.Cells, p.Image, p.Batch, p.Epochs, p.Examples = 16, 5, 16, 64, 25, 10000
	return p
}()

// Figure1LeftPaper has the settings of Appendix C.1.1, one seed, as the published
// curves have. These are of the authors' program, Preset "code": without warm-up,
// and with a PC-DARTS whose edges weigh 1. It was not run.
var Figure1LeftPaper = func() Figure1Params {
	p := Figure1LeftQuick
	p.Preset, p.Examples, p.Seeds = "paper", 0, 1
	return p
}()

// Figure1Left draws searches on cells with two inputs, with what they can be watched by.
var Figure1Left = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "figure1-left", Kind: lab.Figure, Source: "Section 4.1", Notebook: "figure1_left_entropy",
	Title: "Sparsity on DARTS' space: entropy of operations and edges, discretisation and skip connections",
	Cost: catalog.Cost{
		Quick: "a quarter of an hour on two cores; its searches are precomputed",
		Paper: "hours a search on a GPU, half a day on two cores (forecast)",
	},
	Quick: Figure1LeftQuick, Paper: Figure1LeftPaper,
	Also:    []catalog.Preset[Figure1Params]{{Scale: catalog.Large, Params: Figure1LeftLarge}},
	Shipped: []catalog.Setting{{Scale: catalog.Large}, {Scale: catalog.Quick}},
	Note:    noteOfSearches,
	Rules:   func(p Figure1Params, c *study.Checks) { p.onCells(c, "cells") },
	Compute: func(ctx context.Context, r *figure1) error { return r.Params.compute(ctx, "li2021/figure1-left", r) },
	Draw:    drawFigure1Left,
	Claims:  func(r *figure1) []runs.Claim { return append(judgeFigure1(r), judgeCollapse(r)) },
})

// onCells wants searches on spaces of these kinds, whose cells can be drawn.
func (p Figure1Params) onCells(c *study.Checks, kinds ...string) {
	p.rules(p.Rows, c)
	var names []string
	for _, kind := range kinds {
		names = append(names, search.Kinds[kind].Names()...)
	}
	for _, w := range rowsNamed(p.Rows) {
		space := cmp.Or(w.space(), p.Space)
		c.Expect(slices.Contains(names, space), "row %q is on the space %q, want METHOD@SPACE with a SPACE of %v", w,
			space, names)
	}
	c.Expect(len(p.Gradients) == 0, "Gradients is %v: gradients are compared by li2021/figure1", p.Gradients)
}

// drawFigure1Left draws what [leftPanels] has.
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

// leftPanels are four panels for every space: the entropies of operations and of
// edges of the normal cell, the accuracy of the supernet on validation images with
// θ and discretised, and the share of skip connections in the normal cell's
// discretisation; and the instruments', where they were read.
func leftPanels(r *figure1) (panels [][]plots.Panel) {
	for _, rows := range bySpace(r) {
		panels = append(panels,
			[]plots.Panel{entropiesPanel(r, rows), edgePanel(r, rows)},
			[]plots.Panel{auditPanel(r, rows), skipPanel(r, rows)})
		if read := r.Params.instrumentPanels(rows); len(read) > 0 {
			panels = append(panels, read)
		}
	}
	return panels
}

// edgePanel has the mean entropy of the weights of edges over the nodes of the
// normal cell, where the searches have these.
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
		ofNormal := func(record *runs.Record, e int) float64 {
			var all []float64
			for _, name := range series {
				all = append(all, record.Series[name][e])
			}
			return mean(all)
		}
		panel.Series = append(panel.Series, f.curve(r.Confidence, f.row.title(), 0, atMostUniform, ofNormal))
	}
	return panel
}

// auditPanel has the accuracy of the supernet before and after discretisation.
func auditPanel(r *figure1, rows []found) plots.Panel {
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "supernet, validation (%)", Min: 0}}
	for _, f := range rows {
		for _, of := range []struct{ series, label string }{{"supernet", ""}, {"discrete", ", discretised"}} {
			_, means := f.mean(of.series, 0, r.Confidence)
			var x []float64
			for i := range means {
				x, means[i] = append(x, f.column("evaluated", i)[0]), means[i].Percent()
			}
			panel.Series = append(panel.Series, plots.Band(f.row.title()+of.label, x, means))
		}
	}
	return panel
}

// skipPanel has the share of skip connections.
func skipPanel(r *figure1, rows []found) plots.Panel {
	label := "skip connections"
	if _, ok := supernet.CellSpaces[rows[0].settings.Space]; ok {
		label += ", normal"
	}
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: label, Max: 1}}
	share := func(s []runs.Summary) []runs.Summary {
		for i := range s {
			s[i] = s[i].Within(0, 1)
		}
		return s
	}
	for _, f := range rows {
		// It begins without.
		panel.Series = append(panel.Series, f.curve(r.Confidence, f.row.title(), 1, share, f.skips))
	}
	return panel
}

// curve is a number of every search after every epoch from the first on, as the mean
// over seeds with its interval, which ends within what the quantity can be.
func (f found) curve(
	confidence float64, label string, first int, within func([]runs.Summary) []runs.Summary,
	of func(record *runs.Record, epoch int) float64,
) plots.Series {
	var x []float64
	var means []runs.Summary
	for e := first; ; e++ {
		var values []float64
		for _, record := range f.ran() {
			if e <= epochs(record) {
				values = append(values, of(record, e))
			}
		}
		if len(values) == 0 || len(values) < len(f.ran()) {
			return plots.Band(label, x, within(means))
		}
		x, means = append(x, float64(e)), append(means, summaryOf(values, confidence))
	}
}

// skips is the share of skip connections in the discretised normal cell after an
// epoch.
func (f found) skips(record *runs.Record, epoch int) float64 {
	share, ok := f.skipShare(f.blocksAfter(record, epoch))
	if !ok {
		panic(fmt.Errorf("%s has no genotype", f.row)) // it was searched: θ is finite and of the space
	}
	return share
}

// whose edges skip connections are counted on: the cell's or, of two, the normal one's.
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

// collapsed counts the searches that ended with skip connections on half or more
// of the (normal) cell's edges, the collapse of Zela+ 2020.
func collapsed(r *figure1) (searches, of int) {
	for _, f := range searched(r.Groups) {
		for _, record := range f.ran() {
			if of++; f.skips(record, epochs(record)) >= manySkips {
				searches++
			}
		}
	}
	return searches, of
}

// judgeCollapse judges, as a claim of ours, that no search collapses.
func judgeCollapse(r *figure1) runs.Claim {
	c := verdict.Claim("own: no search ends with skip connections on half or more of "+whose(r)+" edges",
		"Zela+ 2020, Section 3")
	collapsed, of := collapsed(r)
	if of == 0 {
		return verdict.NotRun(c, "no search was run")
	}
	return verdict.None(c, collapsed, of)
}
