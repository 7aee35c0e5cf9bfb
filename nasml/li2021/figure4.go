package li2021

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// lookupSets are the table's data sets in the paper's order, with their titles.
var lookupSets = []lookupSet{
	{data.TaskCIFAR10, "CIFAR-10"}, {data.TaskCIFAR100, "CIFAR-100"}, {data.TaskImageNet16, "ImageNet16-120"},
}

type lookupSet struct {
	task  data.Task201
	title string
}

// Figure4Params are the parameters of Figure 4 (learning curves): searches whose architecture is looked up in the table
// after every epoch. The paper searches on each of the three data sets; here all searches are on Data.
type Figure4Params struct {
	SearchParams
	Rows     []string // searches by method, with "/erm" for the single level
	LookUp   []string `validate:"unique,dive,oneof=cifar10 cifar100 ImageNet16-120"` // data sets of the table
	Accuracy string   `validate:"oneof=test valid"`                                  // of the table
}

var lookUpAll = []string{string(data.TaskCIFAR10), string(data.TaskCIFAR100), string(data.TaskImageNet16)}

// Figure4Quick has six precomputed searches of 100 epochs on 2,000 images, on which bilevel methods collapse: about a
// quarter of an hour on two cores. DARTS ends at 5.3 skip connections of 6 on average, GAEA at 5.0; their accuracies do
// not differ significantly.
var Figure4Quick = lab.With(Figure4Paper, func(p *Figure4Params) {
	p.SearchParams = quickSearch
	p.Examples, p.Epochs, p.Seeds = 2000, 100, 3
})

// Figure4Paper has the settings of Appendix C.3, 25 epochs, four searches. Two of each method were run, three hours a
// search on two cores. DARTS ends at six skip connections (54.30 %, as in Table 2) and at four (88.20 %); GAEA at two
// and at three (93.83 and 90.49 %).
var Figure4Paper = Figure4Params{paperSearch, []string{"darts", "gaea-darts"}, lookUpAll, "test"}

// Figure4 looks up the architectures of searches after every epoch. Without the table of NAS-Bench-201 it draws the
// paper's curves alone and says so.
var Figure4 = learning{
	name: "figure4", title: "NAS-Bench-201 learning curves: the table's accuracy of the current architecture",
	source: "Figure 4 and Appendix C.3", notebook: "figure4_learning_curves",
	label: "the paper's GAEA DARTS (bilevel)", skips: "LI249", drawn: "gaea-darts",
	shipped:   []catalog.Setting{{Scale: catalog.Paper, Set: []string{"Seeds=2"}}},
	published: func() map[string][][]float64 { return publishedCurves().GAEA },
}.declare(Figure4Quick, Figure4Paper)

// learning is what distinguishes Figure 5 from Figure 4.
type learning struct {
	name, title, source, notebook string
	label                         string                        // of the published curves
	skips                         string                        // row of the claim about skip connections
	drawn                         row                           // whose curves the paper draws
	shipped                       []catalog.Setting             // where not all trials of a scale are
	published                     func() map[string][][]float64 // by data set
}

type learningCurves = lab.Result[Figure4Params, found]

func (l learning) declare(
	quick, paper Figure4Params,
) func(context.Context, Figure4Params) (*learningCurves, error) {
	return lab.Declare(lab.Entry[Figure4Params, found]{
		Of: ofPaper, Name: l.name, Kind: lab.Figure, Source: l.source, Notebook: l.notebook, Title: l.title,
		Cost: searchCost, Quick: quick, Paper: paper, Note: noteOfSearches, Shipped: l.shipped,
		Rules: func(p Figure4Params, c *study.Checks) {
			err := p.tabulated(p.Rows)
			c.Expect(err == nil, "%v", err)
			p.rules(p.Rows, c)
		},
		Compute: func(ctx context.Context, r *learningCurves) error {
			table, err := data.LoadNASBench201("")
			if err != nil {
				return err
			}
			if r.Groups, err = r.Params.run(ctx, ofPaper.ID+"/"+l.name, r.Params.Rows); err != nil {
				return err
			}
			return r.Params.lookUp(r.Groups, table)
		},
		Draw: l.draw, Claims: l.judge,
	})
}

func (p Figure4Params) sets() []lookupSet {
	return slices.DeleteFunc(slices.Clone(lookupSets), func(s lookupSet) bool {
		return !slices.Contains(p.LookUp, string(s.task))
	})
}

// query names an accuracy of the table: on validation images of the benchmark's first release, on test images of
// NATS-Bench.
func (p Figure4Params) query(task data.Task201) data.Query201 {
	if p.Accuracy == "test" {
		return data.Query201{Task: task, Split: data.Test, Epochs: 200, Release: data.ReleaseNATS}
	}
	if task == data.TaskCIFAR10 {
		task = data.TaskCIFAR10Valid
	}
	return data.Query201{Task: task, Split: data.Valid, Epochs: 200, Release: data.ReleaseNB201}
}

func (p Figure4Params) lookUp(searches lab.Groups[found], table *data.NASBench201) error {
	for i := range searches {
		f := &searches[i].Trial
		f.curves = map[data.Task201][][]float64{}
		for _, set := range p.sets() {
			column, err := table.Column(p.query(set.task))
			if err != nil {
				return err
			}
			for _, record := range f.finished() {
				y, err := f.accuracies(record, column)
				if err != nil {
					return err
				}
				f.curves[set.task] = append(f.curves[set.task], y)
			}
		}
	}
	return nil
}

// paper are the published curves on a data set; the paper has none of validation images.
func (l learning) paper(p Figure4Params, set lookupSet) [][]float64 {
	if p.Accuracy != "test" || p.synthetic() {
		return nil
	}
	return l.published()[string(set.task)]
}

// draw draws, for each data set, the mean over the searches with every search behind it, and the published curves.
func (l learning) draw(r *learningCurves, f *lab.Picture) {
	p := r.Params
	published := ""
	if !p.synthetic() {
		published = "; grey: the paper's searches, on each data set itself"
	}
	means := "One search each"
	if p.Seeds > 1 {
		means = fmt.Sprintf("Mean over %d seeds and every search behind it (thin)", p.Seeds)
	}
	f.Say("%s, by the table's accuracy after 200 epochs of training%s.", means, published)
	f.Say("%s", searchCaption(p.SearchParams, searched(r.Groups), p))
	sayChanges(f, r.Groups.Trials())
	all := study.Map(p.sets(), func(set lookupSet) plots.Panel { return l.panel(r, set) })
	panels := slices.DeleteFunc(slices.Clone(all), func(panel plots.Panel) bool {
		bare := !slices.ContainsFunc(panel.Series, func(s plots.Series) bool { return len(s.X) > 0 })
		if bare {
			f.Say("%s: there is neither a search of ours nor one of the paper's.", panel.Title)
		}
		return bare
	})
	if len(panels) == 0 {
		panels = append(all, plots.Panel{})[:1]
	}
	panels[0].Y.Label = p.Accuracy + " accuracy (%)"
	f.Row(panels...)
}

func (l learning) panel(r *learningCurves, set lookupSet) plots.Panel {
	// Ours may go on for longer than the paper's 25 epochs, where all happens at first.
	p := plots.Panel{Title: set.title, X: plots.Axis{Label: "epochs", Scale: plots.Log2}}
	for _, f := range r.Groups.Trials() {
		curves := f.curves[set.task]
		x, mean := meanCurve(curves)
		for _, y := range curves {
			p.Series = append(p.Series, plots.Series{Label: f.row.title(), X: x, Y: y[:len(x)], Faint: true})
		}
		p.Series = append(p.Series, plots.Series{Label: f.row.title(), X: x, Y: mean, Marker: plots.NoMarker})
	}
	label := l.label
	for _, y := range l.paper(r.Params, set) {
		p.Series = append(p.Series, publishedSeries(label, y, len(y)))
		label = ""
	}
	return p
}

// meanCurve is the mean of curves over their common length, from epoch 1 on.
func meanCurve(curves [][]float64) (x, mean []float64) {
	mean = verdict.MeanCurve(curves)
	return epochsFrom(1, len(mean)), mean
}

// distance is that of the mean curve of the row that the paper draws from the mean of the paper's, whose searches are
// on the data set itself.
func (l learning) distance(r *learningCurves, set lookupSet) verdict.Distance {
	f, _ := rowIn(r.Groups.Trials(), l.drawn)
	x, mean := meanCurve(f.curves[set.task])
	return verdict.CurveDistance(x, mean, verdict.MeanCurve(l.paper(r.Params, set)))
}

// judge judges which methods end at nearly all skip connections and, if both were run, whether GAEA's architecture is
// more accurate than DARTS'. It also measures the distance from the published curves.
func (l learning) judge(r *learningCurves) []runs.Claim {
	rows := r.Groups.Trials()
	claims := study.Map(rows, func(f found) runs.Claim { return l.judgeSkips(r, f) })
	for _, p := range pairs(rows) {
		claims = append(claims, judgeLead(r, p[0], p[1])...)
	}
	for _, set := range r.Params.sets() {
		if len(l.paper(r.Params, set)) > 0 {
			claims = append(claims, l.distance(r, set).Claim(r.Claim("own: %s: distance of our mean curve of %s "+
				"from the mean of the paper's, percentage points", set.title, l.drawn.title()).Claim, "epoch"))
		}
	}
	return claims
}

// nearlyAll is how many of the six edges make "nearly all skip connections".
const nearlyAll = 5

// judgeSkips counts the skip connections of the final architectures. The paper says that DARTS and XNAS end at nearly
// all skip connections and that GAEA does not; all searches have to agree, at least two.
func (l learning) judgeSkips(r *learningCurves, f found) runs.Claim {
	gaea, says := f.row.method() == "gaea-darts", "ends"
	if gaea {
		says = "does not end"
	}
	c := r.Claim("[%s] %s %s at nearly all skip connections", l.skips, f.row.title(), says).Says(nearlyAll)
	var counts []float64
	for _, record := range f.finished() {
		a, err := f.final(record)
		if err != nil {
			return c.NotRun("%v", err)
		}
		counts = append(counts, float64(strings.Count(a.String(), "skip_connect")))
	}
	summary, err := runs.Summarize(counts, c.Confidence)
	if err != nil {
		return c.NotRun("%v", err)
	}
	c.Ours, c.Lo, c.Hi = runs.Number(summary.Mean), summary.Lo, summary.Hi
	c = c.Noting("ours is the mean number of skip connections on the 6 edges of the final architectures, %v; "+
		"%d and more are called nearly all, and it takes all searches", counts, nearlyAll)
	few, many := slices.Min(counts) < nearlyAll, slices.Max(counts) >= nearlyAll
	if one := len(counts) == 1; one || few && many {
		why := map[bool]string{true: "one search decides nothing", false: "the searches differ"}[one]
		return c.Noting("inconclusive: %s; %s", why, c.Note).Claim
	}
	c.Holds = runs.Judge(many != gaea)
	return c.Claim
}

func judgeLead(r *learningCurves, base, gaea found) (claims []runs.Claim) {
	ends := func(f found, set lookupSet) []float64 { return study.Map(f.curves[set.task], last[float64]) }
	for _, set := range lookupSets {
		c := r.Claim("[RO019] %s: %s above %s at the end, percentage points", set.title, gaea.row.title(),
			base.row.title()).Says(0).Noting("ours is the difference of the looked-up accuracies")
		claims = append(claims, r.Params.above(c, ends(gaea, set), ends(base, set)))
	}
	return claims
}

// Figure5Params are the parameters of Figure 5 (XNAS), those of Figure 4.
type Figure5Params = Figure4Params

// Figure5Quick has three precomputed searches by XNAS of 100 epochs on 2,000 images, about ten minutes on two cores.
// They end at 4.7 skip connections of 6 on average.
var Figure5Quick = lab.With(Figure4Quick, func(p *Figure5Params) { p.Rows = []string{"xnas"} })

// Figure5Paper is XNAS with what Appendix C.4 says. It was not run.
var Figure5Paper = Figure5Params{paperSearch, []string{"xnas"}, lookUpAll, "test"}

// Figure5 is Figure4 for XNAS.
var Figure5 = learning{
	name: "figure5", title: "NAS-Bench-201 learning curves of XNAS", source: "Figure 5 and Appendix C.4",
	notebook: "figure5_xnas", label: "the paper's searches", skips: "LI253", drawn: "xnas",
	// The axis of XNAS' curve on CIFAR-10 was fitted to its final accuracy, 54.30, and is not verified otherwise.
	published: func() map[string][][]float64 { return publishedCurves().XNAS },
}.declare(Figure5Quick, Figure5Paper)
