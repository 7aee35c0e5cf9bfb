package li2021

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// Figure1Params are the parameters of Figure 1: the searches whose entropy is
// drawn, in a panel for each search space.
type Figure1Params struct {
	SearchParams
	Rows []string // searches by method, "gaea-darts", with "/erm" for the single level, "@darts" for another space

	// Gradients are steps, from 1, at which gradients of second order are compared along
	// a search by the one of Liu+ 2019, "darts/second-order"; empty: none.
	Gradients []int `json:",omitempty"`
}

// Figure1Quick has ten searches of 25 epochs on 4,000 images, about ten minutes on
// two cores in all; they are shipped. Entropy starts at ln 4 and falls under both
// methods, GAEA's from epoch 2 on by 0.01 nats more at the least clear epoch, with
// an interval that holds 0; GAEA loses 5.6 points less by discretisation.
var Figure1Quick = Figure1Params{SearchParams: quickSearch, Rows: []string{"darts", "gaea-darts"}}

// Figure1Paper has the settings of Appendix C.3 and the 50 epochs of the
// published curves, one seed each as they have. It was not run.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{SearchParams: paperSearch, Rows: []string{"darts", "gaea-darts"}}
	p.Epochs, p.Seeds = 50, 1
	return p
}()

const (
	figure1ID    = "li2021/figure1"
	figure1Title = "Sparsity on NAS-Bench-201: entropy of the operation weights during a search on CIFAR-10"
)

// figure1Source is where the paper says what a row is about.
func figure1Source(w row) string {
	panel := map[string]string{"": "right", "nasbench201": "right", "darts": "left", "1shot1-s1": "middle"}[w.space()]
	if panel == "" {
		return "Li+ 2021, Section 4.1"
	}
	return fmt.Sprintf("Li+ 2021, Section 4.1 and Figure 1 (%s)", panel)
}

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: paper, Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure1_entropy.ipynb",
		Cost:     catalog.Cost{Quick: searchCost.Quick, Paper: searchCost.Paper},
		Shipped:  []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Quick, Set: secondOrderSearch}},
	}, Figure1Quick, Figure1Paper, Figure1)
}

// Figure1Result is Figure 1.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper" or empty for own parameters
	all    []found

	gradients []*runs.Record // one a seed; empty where none were asked for
}

// Figure1 runs what the run store lacks of the searches of Figure 1.
// Cancelling ctx ends it after the step under way, with finished searches
// stored and the one under way at its checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the images cannot be had, and where a search diverges.
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	var c study.Checks
	c.Expect(slices.IsSorted(p.Gradients) && (len(p.Gradients) == 0 || p.Gradients[0] >= 1),
		"Gradients is %v, want steps from 1, ascending", p.Gradients)
	if err := c.Err("figure 1"); err != nil {
		return nil, err
	}
	all, err := p.run(ctx, figure1ID, p.Rows)
	if err != nil {
		return nil, err
	}
	gradients, err := p.gradients(ctx)
	if err != nil {
		return nil, err
	}
	return &Figure1Result{p, runs.Scale(ctx), all, gradients}, nil
}

// Records are the keys of the searches.
func (r *Figure1Result) Records() []string { return append(keys(r.all), study.Keys(r.gradients)...) }

// Figure draws the mean entropy over the edges after each epoch, of the normal
// cell where there are two, with the interval of its mean over seeds, and the
// published curve of one seed: a panel a search space.
func (r *Figure1Result) Figure() plots.Figure {
	var panels []plots.Panel
	for _, space := range r.spaces() {
		panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of $θ$ (nats)"}}
		if len(r.spaces()) > 1 {
			panel.Title = study.SpaceTitle(space)
		}
		rows := r.of(space)
		for _, f := range rows {
			x, means, err := f.mean("entropy", 0, r.Params.Confidence)
			if err != nil {
				panic(err) // the records hold finite numbers
			}
			panel.Series = append(panel.Series, plots.Band(f.row.title(), x, atMostUniform(means)))
		}
		for _, f := range rows {
			if x, y := f.publishedEntropy(longest(rows)); len(x) > 0 {
				panel.Series = append(panel.Series, plots.Series{
					Label: "the paper's " + f.row.title(), X: x, Y: y, Reference: true,
				})
			}
		}
		panels = append(panels, panel)
	}
	if len(r.Params.Gradients) > 0 {
		panels = append(panels, r.gradientsPanel())
	}
	rows := [][]plots.Panel{panels}
	for _, space := range r.spaces() {
		if read := r.Params.instrumentPanels(r.of(space)); len(read) > 0 {
			rows = append(rows, read)
		}
	}
	return plots.Figure{
		Name: "li2021-figure1", Style: plots.ICLR, Panels: rows,
		Caption: r.caption(), Meta: study.Meta(r.Params.titled(figure1Title), r.Scale, r.Params),
	}
}

// spaces are the search spaces of the rows in their order.
func (r *Figure1Result) spaces() []string {
	var all []string
	for _, f := range r.all {
		if !slices.Contains(all, f.settings.Space) {
			all = append(all, f.settings.Space)
		}
	}
	return all
}

// of are the rows of a space.
func (r *Figure1Result) of(space string) []found {
	return slices.DeleteFunc(slices.Clone(r.all), func(f found) bool { return f.settings.Space != space })
}

// caption says at which scale searches were run on each space, and how far they
// are from the paper's curves.
func (r *Figure1Result) caption() string {
	var parts []string
	for _, space := range r.spaces() {
		text := searchCaption(r.Params.SearchParams, r.of(space), r.Params)
		if len(r.spaces()) > 1 {
			text = study.SpaceTitle(space) + ": " + text
		}
		parts = append(parts, text)
	}
	if len(r.Params.Gradients) > 0 {
		parts = append(parts, fmt.Sprintf("Gradients of second order are compared on the same weights and batches "+
			"along a search by the difference with $ε = 0.01/\\|v\\|$ in float64: %d seeds, faint, and their "+
			"geometric means.", r.Params.Seeds))
	}
	if !r.Params.synthetic() {
		parts = append(parts, "The paper's curves are its authors' PDFs of March 2020, 50 epochs, one seed.")
	}
	for _, f := range r.all {
		if d := r.apart(f); d.Points > 0 {
			parts = append(parts, fmt.Sprintf("%s is %.2g nats from the paper's curve on average.", f.row.named(),
				d.Mean))
		}
	}
	for _, f := range r.all {
		if len(f.column("stationarity", 0)) > 0 {
			return strings.Join(parts, " ") + instrumentCaption
		}
	}
	return strings.Join(parts, " ")
}

// publishedEntropy is the paper's curve of a row up to so many epochs, with the
// number of epochs after which its points are. There is none beside synthetic images.
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

// apart is how far the mean entropy of a row is from the published curve, at the
// epochs that both have.
func (r *Figure1Result) apart(f found) verdict.Distance {
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
		for _, record := range f.ran() {
			most = max(most, epochs(record))
		}
	}
	return most
}

// Check judges the claims about entropy and discretisation: that entropy
// starts at ln |O|, that GAEA's is below its base method's from the second
// epoch on, and that the supernet loses less accuracy by discretisation. The
// last stands in Section 4.1 for the DARTS space, with the accuracies, which
// are judged at the paper's scale only; so is how far entropies are from the
// paper's curves.
func (r *Figure1Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, f := range r.all {
		claims = append(claims, r.checkStart(f))
	}
	pairs := r.pairs()
	for _, p := range pairs {
		claims = append(claims, r.checkBelow(p[0], p[1], len(pairs)), r.checkDrop(p[0], p[1], len(pairs)))
	}
	for _, f := range r.all {
		if x, _ := f.publishedEntropy(1); len(x) == 0 {
			continue
		}
		claims = append(claims, r.apart(f).Claim(verdict.Claim(
			fmt.Sprintf("own: %s: distance of our mean entropy from the paper's curve, nats", f.row.named()),
			figure1Source(f.row)), "epoch"))
		for i, what := range []string{"before", "after"} {
			if paper, ok := publishedAudit[f.row]; ok {
				claims = append(claims, r.checkAudit(f, what, paper[i]))
			}
		}
	}
	return append(append(claims, r.checkSecondOrder()...), r.checkGradients()...)
}

// pairs are the rows that are compared: a method and GAEA with it.
func (r *Figure1Result) pairs() (all [][2]found) {
	for _, f := range r.all {
		for _, g := range r.all {
			if f.row.on("gaea-"+f.row.search()) == g.row {
				all = append(all, [2]found{f, g})
			}
		}
	}
	return all
}

// publishedAudit are the accuracies of supernets on validation images before and
// after discretisation, in percent (Section 4.1).
var publishedAudit = map[row][2]float64{
	"pc-darts@darts": {72.17, 15.27}, "gaea-pc-darts@darts": {75.07, 33.23},
}

var publishedAuditIDs = map[row]map[string]string{
	"pc-darts@darts":      {"before": "LI035", "after": "LI036"},
	"gaea-pc-darts@darts": {"before": "LI037", "after": "LI038"},
}

// ownScale says why a number of the paper's is not judged at another scale.
const ownScale = "another scale than the paper's: not judged"

// atScale judges where searches have the paper's settings, or its code's.
func (r *Figure1Result) atScale(c runs.Claim, judge func(c runs.Claim) runs.Claim) runs.Claim {
	judged := judge(c)
	if r.Params.reduced() {
		judged.Holds, judged.Note = runs.NotKnown, ownScale
	}
	return judged
}

// checkAudit compares the accuracy of the supernet at the last epoch, before or
// after discretisation.
func (r *Figure1Result) checkAudit(f found, what string, paper float64) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[%s] %s: accuracy of the supernet %s discretisation, percent",
		publishedAuditIDs[f.row][what], f.row.named(), what),
		"Li+ 2021, Section 4.1")
	series := map[string]string{"before": "supernet", "after": "discrete"}[what]
	values := f.column(series, -1)
	for i := range values {
		values[i] *= 100
	}
	s, err := runs.Summarize(values, r.Params.among(2*len(publishedAudit)).Confidence)
	return r.atScale(c, func(c runs.Claim) runs.Claim { return verdict.Near(c, s, err, paper, 5) })
}

// checkStart compares the first entropy with ln |O|, on the seed furthest from it.
func (r *Figure1Result) checkStart(f found) runs.Claim {
	want := math.Log(float64(f.blocks[0].Options))
	c := verdict.Claim(fmt.Sprintf("own: %s: entropy starts at ln %d", f.row.named(), f.blocks[0].Options),
		figure1Source(f.row))
	c.Paper, c.Tolerance = runs.Number(want), 1e-4
	starts := f.column("entropy", 0)
	if len(starts) == 0 {
		return verdict.NotRun(c, "no search was run")
	}
	c.Note = "ours is the seed furthest from it"
	return verdict.Exactly(c, slices.MaxFunc(starts, func(a, b float64) int {
		return cmp.Compare(math.Abs(a-want), math.Abs(b-want))
	}), want, 1e-4)
}

// checkBelow compares entropies epoch by epoch, of one pair of many: the claim is as
// good as its worst epoch.
func (r *Figure1Result) checkBelow(base, gaea found, pairs int) runs.Claim {
	ids := map[string]string{supernet.NASBench201.Name: "LI034 RO019", supernet.DARTS.Name: "LI032"}
	c := verdict.Claim(listed(ids[base.settings.Space],
		fmt.Sprintf("entropy of %s below %s from epoch 2 on", gaea.row.named(), base.row.title())),
		figure1Source(base.row))
	c.Paper = 0
	c.Note = "ours is the difference at the epoch where it is least clear"
	var worst *runs.Claim
	compared := r.Params.among(pairs * max(1, min(base.settings.Epochs, gaea.settings.Epochs)-1))
	for e := 2; ; e++ {
		a, b := gaea.column("entropy", e), base.column("entropy", e)
		if len(a) == 0 || len(b) == 0 {
			break
		}
		d := compared.below(c, a, b)
		if !d.Hi.Valid() {
			return d
		}
		if worst == nil || d.Hi > worst.Hi {
			worst = &d
		}
	}
	if worst == nil {
		return verdict.NotRun(c, "needs two epochs of both")
	}
	return *worst
}

// checkDrop compares the loss of accuracy by discretisation at the last epoch.
func (r *Figure1Result) checkDrop(base, gaea found, pairs int) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[LI039] %s loses less accuracy by discretisation than %s, percentage points",
		gaea.row.named(), base.row.title()), "Li+ 2021, Section 4.1 (DARTS space: 41.84 against 56.90 points)")
	c.Paper = 41.84 - 56.90
	other := "another space and scale than the paper's"
	if base.row.space() == "darts" {
		other = "at the scale of the parameters"
	}
	c.Note = "ours is the difference of the drops at the last epoch, " + other + "; only its sign is judged"
	return r.Params.among(pairs).below(c, gaea.drops(), base.drops())
}

// drops are the losses by discretisation at the end of each search, in
// percentage points.
func (f found) drops() []float64 {
	before, after := f.column("supernet", -1), f.column("discrete", -1)
	out := make([]float64, len(before))
	for i := range before {
		out[i] = 100 * (before[i] - after[i])
	}
	return out
}
