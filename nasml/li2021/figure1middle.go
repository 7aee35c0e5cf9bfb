package li2021

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure1MiddleParams are the parameters of Figure 1, middle, on all three spaces
// of NAS-Bench-1Shot1, of which the paper shows the first.
type Figure1MiddleParams struct {
	OneShotParams
	Rows  []string // searches by method, see Figure2Params
	Parts []string // of θ, a row of panels each: "operations" (the paper's), "inputs", "output"
}

// Figure1MiddleQuick has the searches of Figure2Quick. GAEA's entropy of operations
// falls faster on the first two spaces; on the third the interval holds 0. All of it
// is small beside the published curves, which are of thirty times as many steps.
var Figure1MiddleQuick = Figure1MiddleParams{
	OneShotParams: quickOneShot, Rows: []string{"pc-darts", "gaea-pc-darts"},
	Parts: []string{"operations", "inputs", "output"},
}

// Figure1MiddlePaper has those of Figure2Paper; the published curves are of one
// search each. It was not run.
var Figure1MiddlePaper = Figure1MiddleParams{
	OneShotParams: paperOneShot, Rows: Figure1MiddleQuick.Rows, Parts: Figure1MiddleQuick.Parts,
}

// Figure1MiddleLarge is --scale large and has those of Figure2Large.
var Figure1MiddleLarge = Figure1MiddleParams{
	OneShotParams: largeOneShot, Rows: Figure1MiddleQuick.Rows, Parts: Figure1MiddleQuick.Parts,
}

const (
	figure1MiddleID     = "li2021/figure1-middle"
	figure1MiddleTitle  = "Sparsity on NAS-Bench-1Shot1: entropy of operations, inputs and output during a search"
	figure1MiddleSource = "Li+ 2021, Section 4.1 and Figure 1 (middle)"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1MiddleID, Paper: paper, Title: figure1MiddleTitle, Kind: "figure",
		Notebook: "notebooks/li2021/figure1_middle_entropy.ipynb",
		Cost:     catalog.Cost{Quick: oneShotCost.Quick, Paper: oneShotCost.Paper},
		Shipped:  []catalog.Setting{{Scale: catalog.Large}, {Scale: catalog.Quick}},
	}, Figure1MiddleQuick, Figure1MiddlePaper, Figure1Middle,
		catalog.Preset[Figure1MiddleParams]{Scale: catalog.Large, Params: Figure1MiddleLarge})
}

// Figure1MiddleResult is Figure 1, middle.
type Figure1MiddleResult struct {
	Params Figure1MiddleParams
	Scale  string // "quick", "paper" or empty for own parameters
	all    []oneShotFound
}

// Figure1Middle runs what the run store lacks of the searches. Cancelling ctx ends
// it after the step under way, with finished searches stored and the one under way
// at its checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError), where
// the images cannot be had, and where a search diverges.
func Figure1Middle(ctx context.Context, p Figure1MiddleParams) (*Figure1MiddleResult, error) {
	var c study.Checks
	checkChoice(&c, "Parts", p.Parts, oneShotParts...)
	if err := c.Err("figure 1, middle"); err != nil {
		return nil, err
	}
	all, err := p.runOneShot(ctx, figure1MiddleID, p.Rows)
	if err != nil {
		return nil, err
	}
	return &Figure1MiddleResult{p, runs.Scale(ctx), all}, nil
}

// Records are the keys of the searches.
func (r *Figure1MiddleResult) Records() []string { return oneShotKeys(r.all) }

// Figure draws the mean entropy over the nodes after each epoch: a row of panels
// for each part of θ, a panel a space, with the published curves of one search
// where there are some, of operations.
func (r *Figure1MiddleResult) Figure() plots.Figure {
	var panels [][]plots.Panel
	for _, part := range r.Params.Parts {
		var row []plots.Panel
		for _, space := range r.Params.Spaces {
			row = append(row, r.panel(part, space))
		}
		panels = append(panels, row)
	}
	return plots.Figure{
		Name: "li2021-figure1-middle", Style: wide, Panels: panels, Caption: r.caption(),
		Meta: study.Meta(figure1MiddleTitle, r.Scale, r.Params),
	}
}

func (r *Figure1MiddleResult) panel(part, space string) plots.Panel {
	panel := plots.Panel{
		Title: spaceTitle(space), X: plots.Axis{Label: "epochs"},
		Y: plots.Axis{Label: "entropy of " + part + " (nats)"},
	}
	var published []plots.Series
	for _, name := range r.Params.Rows {
		f, _ := findOneShot(r.all, space, name)
		x, means, err := f.entropies(part, r.Params.Confidence)
		if err != nil {
			panic(err) // the records hold finite numbers
		}
		panel.Series = append(panel.Series, plots.Band(f.row.title(), x, means))
		if x, y := f.publishedEntropy(f.settings.Epochs); len(x) > 0 && part == "operations" {
			published = append(published, plots.Series{
				Label: "the paper's " + f.row.title(), X: x, Y: y, Reference: true,
			})
		}
	}
	panel.Series = append(panel.Series, published...)
	return panel
}

func (r *Figure1MiddleResult) caption() string {
	text := oneShotCaption(r.Params.OneShotParams, r.all, r.Params) +
		" Bands: interval of the mean over seeds. The paper's curves are its authors' PDF of March 2020, 50 epochs, " +
		"one seed, of operations."
	for _, f := range r.all {
		if d, ok := r.deviation(f); ok && d.Epochs > 0 {
			text += fmt.Sprintf(" %s, distance from the paper's: %s.", f.short(), d)
		}
	}
	return text
}

// deviation is that of the operations' mean entropy from the published curve;
// false where there is none.
func (r *Figure1MiddleResult) deviation(f oneShotFound) (deviation, bool) {
	_, theirs := f.publishedEntropy(f.settings.Epochs)
	x, means, err := f.entropies("operations", r.Params.Confidence)
	if err != nil || len(theirs) == 0 || len(x) == 0 {
		return deviation{}, false
	}
	y := make([]float64, len(means))
	for i, m := range means {
		y[i] = m.Mean
	}
	return deviate(x, y, theirs, 0), true
}

// Check judges that entropies begin at that of uniform weights and that GAEA's
// falls faster than its base method's, on every space and for every part of θ; of
// the paper is the first space and the operations. How far curves are from the
// published ones is judged at the paper's scale only.
func (r *Figure1MiddleResult) Check() []runs.Claim {
	var claims []runs.Claim
	for _, space := range r.Params.Spaces {
		for _, name := range r.Params.Rows {
			f, _ := findOneShot(r.all, space, name)
			claims = append(claims, r.checkStart(f))
			if g, ok := findOneShot(r.all, space, "gaea-"+name); ok {
				for _, part := range r.Params.Parts {
					claims = append(claims, r.checkFaster(f, g, part))
				}
			}
		}
	}
	for _, f := range r.all {
		if d, ok := r.deviation(f); ok {
			claims = append(claims, deviationClaims(f.short()+", entropy of operations", figure1MiddleSource, d, 0.05,
				!r.Params.reduced())...)
		}
	}
	return claims
}

// checkStart compares the first entropy of the operations with ln |O|, on the seed
// furthest from it.
func (r *Figure1MiddleResult) checkStart(f oneShotFound) runs.Claim {
	n := len(f.space.Ops)
	c := verdict.Claim(fmt.Sprintf("own: %s: entropy of operations starts at ln %d", f.short(), n), figure1MiddleSource)
	want := math.Log(float64(n))
	c.Paper, c.Tolerance = runs.Number(want), 1e-4
	starts := f.column("entropy", 0)
	if len(starts) == 0 {
		return verdict.NotRun(c, "no search was run")
	}
	c.Note = "ours is the seed furthest from it"
	return verdict.Exactly(c, starts[furthest(starts, want)], want, 1e-4)
}

func furthest(x []float64, from float64) int {
	far := make([]float64, len(x))
	for i, v := range x {
		far[i] = math.Abs(v - from)
	}
	return slices.Index(far, slices.Max(far))
}

// checkFaster compares the mean entropy over the epochs from the first on: it is
// lower where entropy falls faster, whatever it does in the end.
func (r *Figure1MiddleResult) checkFaster(base, gaea oneShotFound, part string) runs.Claim {
	name := fmt.Sprintf("%s: entropy of %s falls faster with %s than with %s", spaceTitle(base.settings.Space), part,
		gaea.row.title(), base.row.title())
	ids := ""
	if part == "operations" {
		ids = "LI033"
	}
	c := verdict.Claim(listed(ids, name), figure1MiddleSource)
	c.Paper = 0
	a, b := base.publishedEntropyMean(), gaea.publishedEntropyMean()
	if part == "operations" && a > 0 && b > 0 {
		c.Paper = runs.Number(b - a)
	}
	c.Note = "ours is the difference of the means over all epochs, nats; only its sign is judged"
	return r.Params.among(len(r.Params.Spaces)).below(c, gaea.entropyMeans(part), base.entropyMeans(part))
}

// publishedEntropyMean is the mean of the published curve over as many epochs as
// the search has, without the start; 0 where there is none.
func (f oneShotFound) publishedEntropyMean() float64 {
	_, y := f.publishedEntropy(f.settings.Epochs)
	if len(y) < 2 {
		return 0
	}
	return mean(y[1:])
}

// entropyMeans are the means over all epochs but the start of the entropy of a
// part of θ, by seed.
func (f oneShotFound) entropyMeans(part string) []float64 {
	var out []float64
	for _, r := range f.ran() {
		out = append(out, mean(f.entropyOf(r, part)[1:]))
	}
	return out
}
