package li2021

import (
	"cmp"
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

// Figure1Params are the parameters of Figure 1, right: the searches whose
// entropy is drawn. The left and middle panels are of other search spaces.
type Figure1Params struct {
	SearchParams
	Rows []string // searches by method, "gaea-darts", with "/erm" for the single level
}

// Figure1Quick has ten searches of 25 epochs on 4,000 images, about ten minutes on
// two cores in all; they are shipped. Entropy starts at ln 4 and falls under both
// methods, GAEA's from epoch 2 on by 0.01 nats more at the least clear epoch, with
// an interval that holds 0; GAEA loses 5.6 points less by discretisation.
var Figure1Quick = Figure1Params{quickSearch, []string{"darts", "gaea-darts"}}

// Figure1Paper has the settings of Appendix C.3 and the 50 epochs of the
// published curves, one seed each as they have. It was not run.
var Figure1Paper = func() Figure1Params {
	p := Figure1Params{paperSearch, []string{"darts", "gaea-darts"}}
	p.Epochs, p.Seeds = 50, 1
	return p
}()

const (
	figure1ID     = "li2021/figure1"
	figure1Title  = "Sparsity: entropy of the operation weights during a search, NAS-Bench-201 on CIFAR-10"
	figure1Source = "Li+ 2021, Section 4.1 and Figure 1 (right)"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure1ID, Paper: paper, Title: figure1Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure1_entropy.ipynb",
		Cost:     catalog.Cost{Quick: searchCost.Quick, Paper: searchCost.Paper},
		Shipped:  []catalog.Setting{{Scale: catalog.Quick}, {Scale: catalog.Quick, Set: secondOrderSearch}},
	}, Figure1Quick, Figure1Paper, Figure1)
}

// Figure1Result is Figure 1, right.
type Figure1Result struct {
	Params Figure1Params
	Scale  string // "quick", "paper" or empty for own parameters
	all    []found
}

// Figure1 runs what the run store lacks of the searches of Figure 1, right.
// Cancelling ctx ends it after the step under way, with finished searches
// stored and the one under way at its checkpoint.
//
// It is an error where a parameter makes no sense (a *catalog.UsageError),
// where the images cannot be had, and where a search diverges.
func Figure1(ctx context.Context, p Figure1Params) (*Figure1Result, error) {
	all, err := p.run(ctx, figure1ID, p.Rows)
	if err != nil {
		return nil, err
	}
	return &Figure1Result{p, runs.Scale(ctx), all}, nil
}

// Records are the keys of the searches.
func (r *Figure1Result) Records() []string { return keys(r.all) }

// Figure draws the mean entropy over the edges after each epoch, with the
// interval of its mean over seeds, and the published curve of one seed.
func (r *Figure1Result) Figure() plots.Figure {
	panel := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of $θ$ (nats)"}}
	for _, f := range r.all {
		x, means, err := f.mean("entropy", 0, r.Params.Confidence)
		if err != nil {
			panic(err) // the records hold finite numbers
		}
		panel.Series = append(panel.Series, plots.Band(f.row.title(), x, means))
	}
	for _, f := range r.all {
		if y, ok := publishedCurves().Entropy[string(f.row)]; ok {
			panel.Series = append(panel.Series, reference("the paper's "+f.row.title(), y[:min(len(y), r.longest())]))
		}
	}
	return plots.Figure{
		Name: "li2021-figure1", Style: plots.ICLR, Panels: [][]plots.Panel{{panel}},
		Caption: searchCaption(r.Params.SearchParams, r.all) +
			" The paper's curves are its authors' PDF of March 2020, 50 epochs, one seed.",
		Meta: study.Meta(figure1Title, r.Scale, r.Params),
	}
}

// longest is the number of epochs of the longest search that was run.
func (r *Figure1Result) longest() int {
	most := 0
	for _, f := range r.all {
		for _, record := range f.ran() {
			most = max(most, epochs(record))
		}
	}
	return most
}

// Check judges the claims about entropy and discretisation: that entropy
// starts at ln |O|, that GAEA's is below its base method's from the second
// epoch on, and that the supernet loses less accuracy by discretisation. The
// last stands in Section 4.1 for the DARTS space.
func (r *Figure1Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, f := range r.all {
		claims = append(claims, r.checkStart(f))
	}
	for _, f := range r.all {
		for _, g := range r.all {
			if "gaea-"+string(f.row) == string(g.row) {
				claims = append(claims, r.checkBelow(f, g), r.checkDrop(f, g))
			}
		}
	}
	return append(claims, r.checkSecondOrder()...)
}

// checkStart compares the first entropy with ln |O|, on the seed furthest from it.
func (r *Figure1Result) checkStart(f found) runs.Claim {
	want := math.Log(float64(len(f.space.Ops)))
	c := verdict.Claim(fmt.Sprintf("%s: entropy starts at ln %d", f.row.title(), len(f.space.Ops)), figure1Source)
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

// checkBelow compares entropies epoch by epoch: the claim is as good as its
// worst epoch.
func (r *Figure1Result) checkBelow(base, gaea found) runs.Claim {
	c := verdict.Claim(
		fmt.Sprintf("entropy of %s below %s from epoch 2 on", gaea.row.title(), base.row.title()), figure1Source)
	c.Paper = 0
	c.Note = "ours is the difference at the epoch where it is least clear"
	var worst *runs.Claim
	for e := 2; ; e++ {
		a, b := gaea.column("entropy", e), base.column("entropy", e)
		if len(a) == 0 || len(b) == 0 {
			break
		}
		d := r.Params.below(c, a, b)
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
func (r *Figure1Result) checkDrop(base, gaea found) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("%s loses less accuracy by discretisation than %s, percentage points",
		gaea.row.title(), base.row.title()), "Li+ 2021, Section 4.1 (DARTS space: 41.84 against 56.90 points)")
	c.Paper = 41.84 - 56.90
	c.Note = "ours is the difference of the drops at the last epoch, another space and scale than the paper's; " +
		"only its sign is judged"
	return r.Params.below(c, gaea.drops(), base.drops())
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
