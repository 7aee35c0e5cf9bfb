package li2021

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/verdict"
	"github.com/nasml/lab/plots"
)

// lookupSets are the data sets of the table in the paper's order, with their
// titles.
var lookupSets = []struct {
	task  data.Task201
	title string
}{
	{data.TaskCIFAR10, "CIFAR-10"}, {data.TaskCIFAR100, "CIFAR-100"}, {data.TaskImageNet16, "ImageNet16-120"},
}

// Figure4Params are the parameters of Figure 4 (learning curves): the searches
// whose architecture is looked up in the table after every epoch. The paper
// searches on each of the three data sets; here all look-ups are of searches on
// Data.
type Figure4Params struct {
	SearchParams
	Rows     []string // searches by method, with "/erm" for the single level
	LookUp   []string // data sets that architectures are looked up on
	Accuracy string   // of the table: "test" or "valid"
}

var lookUpAll = []string{string(data.TaskCIFAR10), string(data.TaskCIFAR100), string(data.TaskImageNet16)}

// Figure4Quick are long searches on little data, where the bilevel methods
// collapse: six searches of 100 epochs on 2,000 images, about a quarter of an hour
// on two cores; they are shipped. DARTS ends at 5.3 skip connections of 6 on
// average, GAEA at 5.0, and their accuracies cannot be told apart.
var Figure4Quick = func() Figure4Params {
	p := Figure4Params{quickSearch, []string{"darts", "gaea-darts"}, lookUpAll, "test"}
	p.Examples, p.Epochs, p.Seeds = 2000, 100, 3
	return p
}()

// Figure4Paper has the settings of Appendix C.3, 25 epochs, four searches. It was
// not run.
var Figure4Paper = Figure4Params{paperSearch, []string{"darts", "gaea-darts"}, lookUpAll, "test"}

const (
	figure4ID     = "li2021/figure4"
	figure4Title  = "NAS-Bench-201 learning curves: the table's accuracy of the current architecture"
	figure4Source = "Li+ 2021, Figure 4 and Appendix C.3"
)

func init() {
	catalog.Register(catalog.Entry{
		ID: figure4ID, Paper: paper, Title: figure4Title, Kind: "figure",
		Notebook: "notebooks/li2021/figure4_learning_curves.ipynb", Cost: searchCost,
	}, Figure4Quick, Figure4Paper, Figure4)
}

// Figure4Result is Figure 4 or Figure 5.
type Figure4Result struct {
	Params Figure4Params
	Scale  string // "quick", "paper" or empty for own parameters
	entry  learningEntry
	all    []found
	curves map[curveID][][]float64 // by row and data set: of each search, from its first epoch on
	finals map[row][]data.Arch201
}

// learningEntry is what tells Figure 5 from Figure 4.
type learningEntry struct {
	id, title, source, reference string
	note                         string                        // of the published curves; empty: none
	skips                        string                        // row of the claim about skip connections
	drawn                        row                           // whose curves the paper draws
	published                    func() map[string][][]float64 // by data set
}

type curveID struct {
	row  row
	task data.Task201
}

var figure4Entry = learningEntry{
	figure4ID, figure4Title, figure4Source, "the paper's GAEA DARTS (bilevel)", "", "LI249", "gaea-darts",
	func() map[string][][]float64 { return publishedCurves().GAEA },
}

// Figure4 runs what the run store lacks of the searches of Figure 4 and looks
// their architectures up. See Figure1 for cancelling and errors. Where the table of
// NAS-Bench-201 is not there, it draws the paper's curves alone and says so; it is an
// error where it cannot be read.
func Figure4(ctx context.Context, p Figure4Params) (*Figure4Result, error) {
	return learningCurves(ctx, figure4Entry, p)
}

func learningCurves(ctx context.Context, entry learningEntry, p Figure4Params) (*Figure4Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	table, err := data.LoadNASBench201("")
	if err != nil {
		return nil, err
	}
	r := &Figure4Result{
		Params: p, Scale: runs.Scale(ctx), entry: entry,
		curves: map[curveID][][]float64{}, finals: map[row][]data.Arch201{},
	}
	if r.all, err = p.run(ctx, entry.id, p.Rows); err != nil {
		return nil, err
	}
	if table != nil {
		err = r.lookUp(table)
	}
	if err != nil {
		return nil, err
	}
	return r, r.findFinals()
}

func (p Figure4Params) check() error {
	var c study.Checks
	c.OneOf("Accuracy", p.Accuracy, "test", "valid")
	for i, task := range p.LookUp {
		c.Expect(slices.Contains(lookUpAll, task) && !slices.Contains(p.LookUp[:i], task),
			"LookUp has %q, want each of %v at most once", task, lookUpAll)
	}
	if err := c.Err("learning curves"); err != nil {
		return err
	}
	return p.tabulated(rowsNamed(p.Rows))
}

// query is what is read of the table. Accuracies on validation images are of
// the benchmark's first release, those on test images of NATS-Bench.
func (p Figure4Params) query(task data.Task201) data.Query201 {
	if p.Accuracy == "test" {
		return data.Query201{Task: task, Split: data.Test, Epochs: 200, Release: data.ReleaseNATS}
	}
	if task == data.TaskCIFAR10 {
		task = data.TaskCIFAR10Valid
	}
	return data.Query201{Task: task, Split: data.Valid, Epochs: 200, Release: data.ReleaseNB201}
}

// lookUp reads the accuracies of all architectures on the way.
func (r *Figure4Result) lookUp(table *data.NASBench201) error {
	for _, set := range lookupSets {
		if !slices.Contains(r.Params.LookUp, string(set.task)) {
			continue
		}
		column, err := table.Column(r.Params.query(set.task))
		if err != nil {
			return err
		}
		for _, f := range r.all {
			for _, record := range f.ran() {
				y, err := f.lookups(record, column)
				if err != nil {
					return err
				}
				id := curveID{f.row, set.task}
				r.curves[id] = append(r.curves[id], y)
			}
		}
	}
	return nil
}

// findFinals notes the architectures that the searches end at.
func (r *Figure4Result) findFinals() error {
	for _, f := range r.all {
		for _, record := range f.ran() {
			a, err := f.final(record)
			if err != nil {
				return err
			}
			r.finals[f.row] = append(r.finals[f.row], a)
		}
	}
	return nil
}

// Records are the keys of the searches.
func (r *Figure4Result) Records() []string { return keys(r.all) }

// Figure draws, a panel a data set, the mean over the searches with every
// search behind it, and the published curves.
func (r *Figure4Result) Figure() plots.Figure {
	caption := searchCaption(r.Params.SearchParams, r.all, r.Params) +
		" Accuracy is the table's, after 200 epochs of training, mean over its trials."
	if !r.Params.synthetic() {
		caption += " Grey: the paper's searches, on each data set itself (their PDF of March 2020)." + r.entry.note
	}
	for _, set := range lookupSets {
		if d := r.apart(set.task); d.Points > 0 {
			caption += fmt.Sprintf(" %s: our mean curve is %.2g points from the mean of the paper's.",
				set.title, d.Mean)
		}
	}
	f := plots.Figure{
		Name: strings.ReplaceAll(r.entry.id, "/", "-"), Style: plots.ICML.Text(), Caption: caption,
		Meta: study.Meta(r.entry.title, r.Scale, r.Params),
	}
	var panels []plots.Panel
	var empty plots.Panel
	for _, set := range lookupSets {
		if slices.Contains(r.Params.LookUp, string(set.task)) {
			p := r.panel(set.task, set.title)
			if len(panels) == 0 {
				p.Y.Label = r.Params.Accuracy + " accuracy (%)"
			}
			if slices.ContainsFunc(p.Series, func(s plots.Series) bool { return len(s.X) > 0 }) {
				panels = append(panels, p)
			} else {
				f.Caption += fmt.Sprintf(" %s: there is neither a search of ours nor one of the paper's.", set.title)
				empty = p
			}
		}
	}
	if len(panels) == 0 {
		panels = []plots.Panel{empty}
	}
	f.Panels = [][]plots.Panel{panels}
	return f
}

func (r *Figure4Result) panel(task data.Task201, title string) plots.Panel {
	// Ours may go on for longer than the paper's 25 epochs, where all happens at first.
	p := plots.Panel{Title: title, X: plots.Axis{Label: "epochs", Scale: plots.Log2}}
	for _, f := range r.all {
		curves := r.curves[curveID{f.row, task}]
		x, mean := meanCurve(curves)
		for _, y := range curves {
			p.Series = append(p.Series, plots.Series{Label: f.row.title(), X: x, Y: y[:len(x)], Faint: true})
		}
		p.Series = append(p.Series, plots.Series{Label: f.row.title(), X: x, Y: mean, Marker: plots.NoMarker})
	}
	if r.Params.Accuracy != "test" || r.Params.synthetic() { // the paper has no others
		return p
	}
	label := r.entry.reference
	for _, y := range r.entry.published()[string(task)] {
		p.Series = append(p.Series, reference(label, y))
		label = ""
	}
	return p
}

// meanCurve is the mean of curves over their common length, from epoch 1 on.
func meanCurve(curves [][]float64) (x, mean []float64) {
	mean = verdict.MeanCurve(curves)
	for e := range mean {
		x = append(x, float64(e+1))
	}
	return x, mean
}

// Check judges what the paper says of the two figures: which methods end at
// nearly all skip connections, and, where both are there, whether GAEA's
// architecture is more accurate than DARTS'.
func (r *Figure4Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, f := range r.all {
		claims = append(claims, r.checkSkips(f))
	}
	for _, f := range r.all {
		for _, g := range r.all {
			if "gaea-"+string(f.row) == string(g.row) {
				for _, set := range lookupSets {
					claims = append(claims, r.checkLead(f.row, g.row, set.task, set.title))
				}
			}
		}
	}
	return append(claims, r.checkApart()...)
}

// apart is how far the mean curve of the row that the paper draws is from the mean of
// the paper's, whose searches are on the data set itself.
func (r *Figure4Result) apart(task data.Task201) verdict.Distance {
	if r.Params.Accuracy != "test" || r.Params.synthetic() { // the paper has no others
		return verdict.Distance{}
	}
	x, mean := meanCurve(r.curves[curveID{r.entry.drawn, task}])
	return verdict.CurveDistance(x, mean, verdict.MeanCurve(r.entry.published()[string(task)]))
}

// checkApart says how far our curves are from the published ones.
func (r *Figure4Result) checkApart() []runs.Claim {
	var claims []runs.Claim
	if r.Params.synthetic() {
		return nil
	}
	for _, set := range lookupSets {
		if len(r.entry.published()[string(set.task)]) == 0 || !slices.Contains(r.Params.LookUp, string(set.task)) {
			continue
		}
		c := verdict.Claim(fmt.Sprintf("own: %s: distance of our mean curve of %s from the mean of the paper's, "+
			"percentage points", set.title, r.entry.drawn.title()), r.entry.source)
		claims = append(claims, r.apart(set.task).Claim(c, "epoch"))
	}
	return claims
}

// nearlyAll is how many of the six edges make "nearly all skip connections".
const nearlyAll = 5

// checkSkips counts the skip connections of the final architectures. The paper
// says that DARTS and XNAS end at nearly all skip connections and that GAEA
// does not; all searches have to agree. The counts are bounded, so that the
// interval of their mean says little.
func (r *Figure4Result) checkSkips(f found) runs.Claim {
	gaea := f.row.method() == "gaea-darts"
	name := f.row.title() + " ends at nearly all skip connections"
	if gaea {
		name = f.row.title() + " does not end at nearly all skip connections"
	}
	c := verdict.Claim("["+r.entry.skips+"] "+name, r.entry.source)
	c.Paper = nearlyAll
	var counts []float64
	for _, a := range r.finals[f.row] {
		counts = append(counts, float64(skips(a)))
	}
	summary, err := runs.Summarize(counts, r.Params.Confidence)
	if err != nil {
		return verdict.NotRun(c, err.Error())
	}
	c.Ours, c.Lo, c.Hi = runs.Number(summary.Mean), summary.Lo, summary.Hi
	c.Note = fmt.Sprintf("ours is the mean number of skip connections on the 6 edges of the final architectures, %v; "+
		"%d and more are called nearly all, and it takes all searches", counts, nearlyAll)
	switch few, many := slices.Min(counts) < nearlyAll, slices.Max(counts) >= nearlyAll; {
	case few && many:
		c.Note = "inconclusive: the searches differ; " + c.Note
	default:
		c.Holds = runs.Judge(many != gaea)
	}
	return c
}

func skips(a data.Arch201) int {
	n := 0
	for _, o := range a.Choice() {
		if data.Ops201[o] == "skip_connect" {
			n++
		}
	}
	return n
}

// checkLead compares the final accuracies of two rows.
func (r *Figure4Result) checkLead(base, gaea row, task data.Task201, title string) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[RO019] %s: %s above %s at the end, percentage points",
		title, gaea.title(), base.title()),
		figure4Source)
	c.Paper = 0
	c.Note = "ours is the difference of the looked-up accuracies"
	return r.Params.above(c, lasts(r.curves[curveID{gaea, task}]), lasts(r.curves[curveID{base, task}]))
}

func lasts(curves [][]float64) []float64 {
	var out []float64
	for _, y := range curves {
		out = append(out, y[len(y)-1])
	}
	return out
}
