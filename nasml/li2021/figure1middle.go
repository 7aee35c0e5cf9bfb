package li2021

import (
	"context"
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// Figure1MiddleParams are the parameters of Figure 1 (middle), on all three spaces of NAS-Bench-1Shot1; the paper shows
// the first.
type Figure1MiddleParams struct {
	OneShotParams
	Rows []string // searches by method, see Figure2Params

	// Parts of θ have a row of panels each: "operations" (the paper's), "inputs", "output".
	Parts []string `validate:"min=1,unique,dive,oneof=operations inputs output"`
}

// Figure1MiddleQuick has the searches of Figure2Quick. GAEA's entropy of operations falls faster on the first two
// spaces; on the third the interval contains 0. All of this is small beside the published curves, of thirty times as
// many steps.
var Figure1MiddleQuick = Figure1MiddleParams{
	OneShotParams: quickOneShot, Rows: []string{"pc-darts", "gaea-pc-darts"},
	Parts: []string{"operations", "inputs", "output"},
}

// Figure1MiddlePaper has the searches of Figure2Paper; the published curves are of one search each.
var Figure1MiddlePaper = lab.With(Figure1MiddleQuick, func(p *Figure1MiddleParams) { p.OneShotParams = paperOneShot })

// Figure1MiddleLarge is --scale large and has those of Figure2Large.
var Figure1MiddleLarge = lab.With(Figure1MiddleQuick, func(p *Figure1MiddleParams) { p.OneShotParams = largeOneShot })

// Figure1Middle draws how the entropy of searches falls on NAS-Bench-1Shot1.
var Figure1Middle = lab.Declare(lab.Entry[Figure1MiddleParams, found]{
	Of: ofPaper, Name: "figure1-middle", Kind: lab.Figure, Source: "Section 4.1 and Figure 1 (middle)",
	Title:    "Sparsity on NAS-Bench-1Shot1: entropy of operations, inputs and output during a search",
	Notebook: "figure1_middle_entropy", Cost: oneShotCost, Quick: Figure1MiddleQuick, Paper: Figure1MiddlePaper,
	Also: []catalog.Preset[Figure1MiddleParams]{{Scale: catalog.Large, Params: Figure1MiddleLarge}},
	Note: noteOfSearches, Shipped: shippedOneShot,
	Rules: func(p Figure1MiddleParams, c *study.Checks) { p.oneShotRules(p.Rows, c) },
	Compute: func(ctx context.Context, r *figure1Middle) error {
		gs, err := r.Params.run(ctx, "li2021/figure1-middle", r.Params.rowsOn(r.Params.Rows))
		r.Groups = withLookups(gs)
		return err
	},
	Draw: drawFigure1Middle, Claims: judgeFigure1Middle,
})

type figure1Middle = lab.Result[Figure1MiddleParams, found]

// drawFigure1Middle draws the mean entropy over the nodes after each epoch, a row of panels per part of θ and a panel
// per space, with the published curves of operations. The parts of one space share a row.
func drawFigure1Middle(r *figure1Middle, f *lab.Picture) {
	rows := r.Part(searchPart).Trials()
	for _, part := range r.Params.Parts {
		if len(r.Params.Spaces) > 1 {
			f.Row()
		}
		for _, space := range r.Params.Spaces {
			on := slices.DeleteFunc(slices.Clone(rows), func(f found) bool { return f.oneShot.Name != space })
			panel := partPanel(on, part, r.Confidence)
			for _, f := range on {
				if part == "operations" {
					panel.Series = append(panel.Series, f.paperEntropy(f.settings.Epochs)...)
				}
			}
			f.Add(panel)
		}
	}
	published := "; the paper's curves (operations) are of one seed, 50 epochs"
	if r.Params.synthetic() {
		published = ""
	}
	f.Say("Mean entropy over the nodes after each epoch; %s%s.", r.Interval("band", r.Params.Seeds, "seed"), published)
	f.Say("%s", searchCaption(r.Params.SearchParams, rows, r.Params))
	sayChanges(f, rows)
}

func partPanel(rows []found, part string, confidence float64) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(rows[0].oneShot.Name), X: plots.Axis{Label: "epochs"},
		Y: plots.Axis{Label: "entropy of " + part + " (nats)"},
	}
	for _, f := range rows {
		panel.Series = append(panel.Series, f.entropies(part, confidence))
	}
	return panel
}

// entropyClaims are the distances of the entropy of operations from the published curve, if there is one.
func (f found) entropyClaims(claim func(format string, args ...any) lab.Claim, judge bool) []runs.Claim {
	if _, theirs := f.publishedEntropy(f.settings.Epochs); len(theirs) == 0 {
		return nil
	}
	return deviationClaims(claim, f.short()+", entropy of operations", f.distance(), 0.05,
		"chosen by nasml: the published curve is a single search", judge)
}

// judgeFigure1Middle judges every space and every part of θ; the paper has operations on the first. The distance from
// the published curves is judged at the paper's scale only.
func judgeFigure1Middle(r *figure1Middle) (claims []runs.Claim) {
	rows := r.Part(searchPart).Trials()
	for _, space := range r.Params.Spaces {
		for _, name := range r.Params.Rows {
			f, _ := rowIn(rows, oneShotRow(name, space))
			n := len(f.oneShot.Ops)
			claims = append(claims, f.judgeStart(
				r.Claim("own: %s: entropy of operations starts at ln %d", f.short(), n), n))
			if g, ok := rowIn(rows, oneShotRow("gaea-"+name, space)); ok {
				for _, part := range r.Params.Parts {
					claims = append(claims, judgeFaster(r, f, g, part))
				}
			}
		}
	}
	for _, f := range rows {
		claims = append(claims, f.entropyClaims(r.Claim, !r.Params.reduced())...)
	}
	return claims
}

// judgeFaster compares the mean entropy over all epochs but the start, which is lower if entropy falls faster.
func judgeFaster(r *figure1Middle, base, gaea found, part string) runs.Claim {
	name := fmt.Sprintf("%s: entropy of %s falls faster with %s than with %s", spaceTitle(base.settings.Space), part,
		gaea.row.title(), base.row.title())
	ids, paper := "", 0.
	if part == "operations" {
		ids = "LI033"
		if a, b := base.publishedEntropyMean(), gaea.publishedEntropyMean(); a > 0 && b > 0 {
			paper = b - a
		}
	}
	c := r.Claim("%s", listed(ids, name)).Says(paper).
		Noting("ours is the difference of the means over all epochs, nats; only its sign is judged")
	return r.Params.below(c.Family(len(r.Params.Spaces)), gaea.entropyMeans(part), base.entropyMeans(part))
}

func (f found) publishedEntropyMean() float64 {
	_, y := f.publishedEntropy(f.settings.Epochs)
	if len(y) < 2 {
		return 0
	}
	return mean(y[1:])
}

func (f found) entropyMeans(part string) []float64 {
	return study.Map(f.finished(), func(r *runs.Record) float64 { return mean(f.entropyOf(r, part)[1:]) })
}
