package li2021

import (
	"context"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1: the searches whose entropy is drawn, one panel per search space.
type Figure1Params struct {
	SearchParams
	Rows []string // searches by method, "gaea-darts", with "/erm" for the single level, "@darts" for another space

	// Gradients are the steps, from 1, at which second-order gradients are compared along "darts/second-order", a
	// search by the gradient of Liu+ 2019; empty: none.
	Gradients []int `json:",omitempty" validate:"ascending,dive,gte=1"`
}

// Figure1Quick has ten precomputed searches of 25 epochs on 4,000 images, about ten minutes on two cores. Entropy falls
// under both methods, under GAEA by 0.01 nats more at the least clear epoch (the interval contains 0). GAEA loses 5.6
// points less by discretisation.
var Figure1Quick = Figure1Params{SearchParams: quickSearch, Rows: []string{"darts", "gaea-darts"}}

// Figure1Paper has the settings of Appendix C.3 and, like the published curves, 50 epochs and one seed. It was not run.
var Figure1Paper = lab.With(Figure1Quick, func(p *Figure1Params) {
	p.SearchParams = paperSearch
	p.Epochs, p.Seeds = 50, 1
})

const figure1Title = "Sparsity on NAS-Bench-201: entropy of the operation weights during a search on CIFAR-10"

// Figure1 runs searches, and draws how their entropy falls.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "figure1", Kind: lab.Figure, Source: "Section 4.1", Notebook: "figure1_entropy",
	Title: figure1Title, Cost: searchCost, Quick: Figure1Quick, Paper: Figure1Paper,
	Shipped: []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Quick, Set: secondOrderSearch}},
	Note:    noteOfSearches,
	Rules:   func(p Figure1Params, c *study.Checks) { p.rules(p.Rows, c) },
	Compute: func(ctx context.Context, r *figure1) error { return r.Params.compute(ctx, "li2021/figure1", r) },
	Draw:    drawFigure1, Claims: judgeFigure1,
})

type figure1 = lab.Result[Figure1Params, found]

func (p Figure1Params) compute(ctx context.Context, title string, r *figure1) (err error) {
	r.Groups, err = p.run(ctx, title, p.Rows)
	if err != nil || len(p.Gradients) == 0 {
		return err
	}
	gradients, err := p.gradients(ctx)
	r.Groups = append(r.Groups, gradients...)
	return err
}

// bySpace are the rows of each search space.
func bySpace(r *figure1) [][]found {
	return study.By(searched(r.Groups), func(f found) string { return f.settings.Space })
}

// drawFigure1 draws, for each search space, the mean entropy over the edges (of the normal cell, if there are two)
// after each epoch, with its interval over seeds and the published curve of one seed.
func drawFigure1(r *figure1, f *lab.Picture) {
	f.Style, f.Title = plots.ICLR, r.Params.titled(figure1Title)
	f.Row()
	for _, rows := range bySpace(r) {
		f.Add(entropiesPanel(r, rows))
	}
	if len(r.Params.Gradients) > 0 {
		f.Add(gradientsPanel(r))
	}
	for _, rows := range bySpace(r) {
		if read := r.Params.instrumentPanels(rows); len(read) > 0 {
			f.Row(read...)
		}
	}
	sayEntropies(r, f)
}

// entropiesPanel has the rows of a space.
func entropiesPanel(r *figure1, rows []found) plots.Panel {
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of $θ$ (nats)"}}
	if len(bySpace(r)) > 1 {
		panel.Title = study.SpaceTitle(rows[0].settings.Space)
	}
	for _, f := range rows {
		panel.Series = append(panel.Series, f.band(r.Confidence, f.row.title(), nil, values("entropy"), atMostUniform))
	}
	for _, f := range rows {
		panel.Series = append(panel.Series, f.paperEntropy(longest(rows))...)
	}
	return panel
}

func sayEntropies(r *figure1, f *lab.Picture) {
	p, spaces, rows := r.Params, bySpace(r), searched(r.Groups)
	published := ""
	if !p.synthetic() {
		published = "; the paper's curves are of one seed, 50 epochs"
	}
	f.Say("Entropy of $θ$ after each epoch; %s%s.", r.Interval("band", p.Seeds, "seed"), published)
	for _, rows := range spaces {
		text := searchCaption(p.SearchParams, rows, p)
		if len(spaces) > 1 {
			text = study.SpaceTitle(rows[0].settings.Space) + ": " + text
		}
		f.Say("%s", text)
	}
	sayChanges(f, rows)
	if len(p.Gradients) > 0 {
		f.Say("Gradients of second order are compared on the same weights and batches with the difference with "+
			"$ε = 0.01/\\|v\\|$ in float64: %d seeds, faint, and their geometric means.", p.Seeds)
	}
	if slices.ContainsFunc(rows, func(f found) bool { return len(f.column("stationarity", 0)) > 0 }) {
		f.Say("%s", instrumentCaption)
	}
}

// publishedEntropy is the paper's curve of a row and its epochs, up to a number of epochs. On synthetic images there is
// none.
func (f found) publishedEntropy(epochs int) (x, y []float64) {
	if f.synthetic {
		return nil, nil
	}
	key := f.row
	if key.space() == supernet.NASBench201.Name {
		key = row(f.row.search())
	}
	before := 0 // epochs before the first point
	if _, ok := supernet.OneShots[f.settings.Space]; !ok {
		before = 1
	}
	for i, value := range publishedCurves().Entropy[string(key)] {
		if i+before <= epochs {
			x, y = append(x, float64(i+before)), append(y, value)
		}
	}
	return x, y
}

// paperEntropy is that curve as drawn, if there is one.
func (f found) paperEntropy(epochs int) []plots.Series {
	x, y := f.publishedEntropy(epochs)
	if len(x) == 0 {
		return nil
	}
	return []plots.Series{{Label: "the paper's " + f.row.title(), X: x, Y: y, Reference: true}}
}

// distance is the distance of the mean entropy of a row from the published curve, at the epochs that both have.
func (f found) distance() verdict.Distance {
	var x, ours, theirs []float64
	epochs, published := f.publishedEntropy(longest([]found{f}))
	for i, epoch := range epochs {
		if values := f.column("entropy", int(epoch)); len(values) > 0 {
			x, ours, theirs = append(x, epoch), append(ours, mean(values)), append(theirs, published[i])
		}
	}
	return verdict.CurveDistance(x, ours, theirs)
}

// longest is the number of epochs of the longest search that was run.
func longest(rows []found) int {
	most := 0
	for _, f := range rows {
		for _, record := range f.finished() {
			most = max(most, epochs(record))
		}
	}
	return most
}
