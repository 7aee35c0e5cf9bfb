package li2021

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
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

// Figure1Paper has the settings of Appendix C.3 and, like the published curves, 50 epochs and one seed. The
// searches of Figure4Paper are shipped; they have the 25 epochs of Appendix C.3.
var Figure1Paper = lab.With(Figure1Quick, func(p *Figure1Params) {
	p.SearchParams = paperSearch
	p.Epochs, p.Seeds = 50, 1
})

const figure1Title = "Sparsity on NAS-Bench-201: entropy of the operation weights during a search on CIFAR-10"

// Figure1 runs searches, and draws how their entropy falls.
var Figure1 = lab.Declare(lab.Entry[Figure1Params, found]{
	Of: ofPaper, Name: "figure1", Kind: lab.Figure, Source: "Section 4.1", Notebook: "figure1_entropy",
	Title: figure1Title, Cost: searchCost, Quick: Figure1Quick, Paper: Figure1Paper,
	Shipped: []catalog.Setting{
		{Scale: catalog.Paper, Set: []string{"Epochs=25", "Seeds=2"}}, {Scale: catalog.Quick, Set: secondOrderSearch},
	},
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
	before := 0 // epochs before the first point
	if _, ok := supernet.OneShots[f.settings.Space]; !ok {
		before = 1
	}
	for i, value := range publishedCurves().Entropy[string(f.row.published())] {
		if i+before <= epochs {
			x, y = append(x, float64(i+before)), append(y, value)
		}
	}
	return x, y
}

func (f found) paperEntropy(epochs int) []plots.Series {
	x, y := f.publishedEntropy(epochs)
	if len(x) == 0 {
		return nil
	}
	return []plots.Series{{Label: "the paper's " + f.row.published().title(), X: x, Y: y, Reference: true}}
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

func longest(rows []found) int {
	most := 0
	for _, f := range rows {
		for _, record := range f.finished() {
			most = max(most, epochs(record))
		}
	}
	return most
}

// figure1Claim is a claim about a row, with its source in the paper.
func figure1Claim(r *figure1, w row, format string, args ...any) lab.Claim {
	const and = " and Figure 1 "
	panels := map[string]string{
		"": and + "(right)", "nasbench201": and + "(right)", "darts": and + "(left)", "1shot1-s1": and + "(middle)",
	}
	return r.Claim(format, args...).From("Section 4.1" + panels[w.space()])
}

// judgeFigure1 judges accuracies and distances from the paper's curves at the paper's scale only.
func judgeFigure1(r *figure1) []runs.Claim {
	rows := searched(r.Groups)
	claims := judgeStarts(r)
	pairs := pairs(rows)
	for _, p := range pairs {
		claims = append(claims, judgeBelow(r, p[0], p[1], len(pairs)), judgeDrop(r, p[0], p[1], len(pairs)))
	}
	for _, f := range rows {
		if x, _ := f.publishedEntropy(1); len(x) == 0 {
			continue
		}
		claims = append(claims, f.distance().Claim(figure1Claim(r, f.row,
			"own: %s: distance of our mean entropy from the paper's curve, nats", f.row.named()).Claim, "epoch"))
		claims = append(claims, judgeAudit(r, f)...)
	}
	return slices.Concat(claims, judgeSecondOrder(r), judgeGradients(r))
}

func judgeStarts(r *figure1) (claims []runs.Claim) {
	for _, f := range searched(r.Groups) {
		n := f.blocks[0].Options
		c := figure1Claim(r, f.row, "own: %s: entropy starts at ln %d", f.row.named(), n)
		claims = append(claims, f.judgeStart(c, n))
	}
	return claims
}

// judgeStart compares the first entropy of operations with ln n, on the seed furthest from it.
func (f found) judgeStart(c lab.Claim, n int) runs.Claim {
	want := math.Log(float64(n))
	c.Paper, c.Tolerance = runs.Number(want), 1e-4
	starts := f.column("entropy", 0)
	if len(starts) == 0 {
		return c.NotRun("no search was run")
	}
	furthest := slices.MaxFunc(starts, func(a, b float64) int {
		return cmp.Compare(math.Abs(a-want), math.Abs(b-want))
	})
	return verdict.Exactly(c.Noting("ours is the seed furthest from it").Claim, furthest, want, 1e-4)
}

// pairs are the compared rows: a method and GAEA with it.
func pairs(rows []found) (all [][2]found) {
	for _, f := range rows {
		for _, g := range rows {
			if f.row.on("gaea-"+f.row.search()) == g.row {
				all = append(all, [2]found{f, g})
			}
		}
	}
	return all
}

// publishedAudit are the validation accuracies of supernets before and after discretisation, in percent (Section 4.1),
// with the ids of their claims.
var publishedAudit = map[row][2]struct {
	id       string
	accuracy float64
}{
	"pc-darts@darts": {{"LI035", 72.17}, {"LI036", 15.27}}, "gaea-pc-darts@darts": {{"LI037", 75.07}, {"LI038", 33.23}},
}

const ownScale = "another scale than the paper's: not judged"

// judgeAudit compares the accuracy of the supernet at the last epoch, before and after discretisation, at the paper's
// settings or its code's.
func judgeAudit(r *figure1, f found) (claims []runs.Claim) {
	for i, of := range []struct{ what, series string }{{"before", "supernet"}, {"after", "discrete"}} {
		paper, ok := publishedAudit[f.row]
		if !ok {
			return nil
		}
		c := r.Claim("[%s] %s: accuracy of the supernet %s discretisation, percent", paper[i].id, f.row.named(),
			of.what).Family(2 * len(publishedAudit))
		judged := c.Of(runs.Summarize(percents(f.column(of.series, -1)), c.Confidence)).Near(paper[i].accuracy, 5)
		if r.Params.reduced() {
			judged.Holds, judged.Note = runs.NotKnown, ownScale
		}
		claims = append(claims, judged)
	}
	return claims
}

// judgeBelow compares the entropies of a pair epoch by epoch; the least clear epoch decides the claim.
func judgeBelow(r *figure1, base, gaea found, pairs int) runs.Claim {
	ids := map[string]string{supernet.NASBench201.Name: "LI034 RO019", supernet.DARTS.Name: "LI032"}
	c := figure1Claim(r, base.row, "%s", listed(ids[base.settings.Space],
		"entropy of "+gaea.row.named()+" below "+base.row.title()+" from epoch 2 on")).Says(0).
		Noting("ours is the difference at the epoch where it is least clear").
		Family(pairs * max(1, min(base.settings.Epochs, gaea.settings.Epochs)-1))
	var worst runs.Claim
	for e := 2; ; e++ {
		a, b := gaea.column("entropy", e), base.column("entropy", e)
		switch {
		case (len(a) == 0 || len(b) == 0) && e == 2:
			return c.NotRun("needs two epochs of both")
		case len(a) == 0 || len(b) == 0:
			return worst
		}
		d := r.Params.below(c, a, b)
		if !d.Hi.Valid() && r.Params.Seeds > 1 {
			return d
		}
		if e == 2 || reach(d) > reach(worst) {
			worst = d
		}
	}
}

// reach is how large a difference may be: the upper end of its interval, or with one seed, which has none, itself.
func reach(d runs.Claim) runs.Number {
	if d.Hi.Valid() {
		return d.Hi
	}
	return d.Ours
}

func judgeDrop(r *figure1, base, gaea found, pairs int) runs.Claim {
	other := "another space than the paper's"
	if base.row.space() == "darts" {
		other = "at the scale of the parameters"
	}
	c := r.Claim("[LI039] %s loses less accuracy by discretisation than %s, percentage points", gaea.row.named(),
		base.row.title()).From("Section 4.1 (DARTS space: 41.84 against 56.90 points)").Says(41.84-56.90).
		Noting("ours is the difference of the drops at the last epoch, %s; only its sign is judged", other)
	return r.Params.below(c.Family(pairs), gaea.drops(), base.drops())
}

func (f found) drops() []float64 {
	drops := f.column("supernet", -1)
	for i, after := range f.column("discrete", -1) {
		drops[i] = 100 * (drops[i] - after)
	}
	return drops
}
