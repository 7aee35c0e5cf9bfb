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
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// CompareParams are the parameters of a comparison of a reader's own methods with others.
type CompareParams struct {
	SearchParams
	Mine      []string // own searches: a method of one's own in search.Methods, "mine", "mine/erm", "mine@myspace"
	Baselines []string // searches that they are compared with: "darts", "gaea-darts", "gaea-darts@myspace"
	Tabular   []string // methods that query the table of NAS-Bench-201: "rs", or one's own in search.TabularMethods
	Runs      int      // of each of these
	LookUp    string   // the data set of the accuracies: "cifar10", "cifar100" or "ImageNet16-120"
}

// CompareQuick uses the precomputed searches of Table 2 and 500 precomputed runs of random search, so only the searches
// of Mine are computed: a minute or two each on two cores.
var CompareQuick = CompareParams{
	SearchParams: quickSearch, Baselines: []string{"darts", "gaea-darts"}, Tabular: []string{"rs"}, Runs: 500,
	LookUp: string(data.TaskCIFAR10),
}

// ComparePaper is the same at the paper's scale, of which no search is shipped.
var ComparePaper = lab.With(CompareQuick, func(p *CompareParams) { p.SearchParams = paperSearch })

// Comparison is a finished comparison. Its figure has curves and a table; [Comparison.Curves] and [Comparison.Table]
// have one of them.
type Comparison struct {
	Params   CompareParams
	Rows     []Compared // Mine, Baselines, Tabular
	Tabular  bool       // accuracies are the table's; else those of shared weights
	Optimum  float64    // the best accuracy of the table, %; 0 without it
	searches []found
	records  []string
	view     string // "curves", "table" or both
}

// Compared is a row of a comparison, with a value a run.
type Compared struct {
	Name, Title string
	Mine        bool
	// Accuracy (%) is that of the architecture found: after 200 epochs of training by the table of NAS-Bench-201, or,
	// in a space without a table, with the search's shared weights on the images that moved θ.
	Accuracy []float64
	Entropy  []float64 // of θ at the end, nats; none of tabular methods
	Seconds  []float64 // of a search; of tabular methods the simulated seconds

	epochs              []float64   // of which Curves are
	curves, entropyPath [][]float64 // after each epoch, of every search
}

// Compare runs the missing searches and compares custom methods with others on the same images and seeds. If all
// operations are NAS-Bench-201's, accuracies come from its table, which is shipped; else they are those of the shared
// weights. It returns an error if a row or a method is unknown.
func Compare(ctx context.Context, p CompareParams) (*Comparison, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := &Comparison{Params: p, Tabular: p.tabulated(p.all()) == nil}
	if r.Tabular {
		return r, r.lookUp(ctx)
	}
	return r, r.ofSharedWeights(ctx)
}

func (p CompareParams) all() []string { return slices.Concat(p.Mine, p.Baselines) }

func (p CompareParams) check() error {
	var c study.Checks
	c.Expect(len(p.all()) > 0, "Mine or Baselines must name a search, such as \"gaea-darts/erm\"")
	c.Expect(p.Seeds >= 2, "Seeds must be at least 2, since a comparison is over seeds, got %d", p.Seeds)
	c.OneOf("LookUp", p.LookUp, lookUpAll...)
	c.Expect(p.Update == "", "Update must be empty, since it replaces the update of every row, got %q: add "+
		"search.Methods[\"mine\"] with this Update, and set Mine to \"mine\"", p.Update)
	for _, name := range p.Mine {
		c.Expect(!slices.Contains(p.Baselines, name), "%q must be in Mine or in Baselines, not in both", name)
	}
	if err := c.Err("the comparison"); err != nil {
		return err
	}
	_, err := p.plan(p.all())
	return err
}

// column is that of LookUp among the table's data sets.
func (p CompareParams) column() int {
	return slices.IndexFunc(lookupSets, func(s lookupSet) bool { return string(s.task) == p.LookUp })
}

// lookUp fills the rows from the table, by [Table2].
func (r *Comparison) lookUp(ctx context.Context) error {
	p := r.Params
	t, err := Table2(ctx, Table2Params{
		SearchParams: p.SearchParams, Rows: p.all(), Tabular: p.Tabular, Settings: "paper", Runs: max(p.Runs, 1),
	})
	if err != nil {
		return err
	}
	r.records, r.searches = t.Records(), searched(t.Groups)
	at := p.column()
	r.Optimum = lineOf(lines(t, referenceBlock), "Optimal").accuracy[at][0]
	table, err := data.LoadNASBench201("")
	if err != nil {
		return err
	}
	column, err := table.Column(data.Reported201[at])
	if err != nil {
		return err
	}
	for i, f := range r.searches {
		l := lineOf(lines(t, middleBlock), string(f.row))
		row := f.compared(i < len(p.Mine))
		row.Accuracy, row.Seconds = l.accuracy[at], l.seconds
		for _, record := range f.finished() {
			curve, err := f.accuracies(record, column)
			if err != nil {
				return err
			}
			row.curves = append(row.curves, curve)
		}
		row.epochs = epochsFrom(1, len(verdict.MeanCurve(row.curves)))
		r.Rows = append(r.Rows, row)
	}
	queried := study.Map(lines(t, topBlock), func(l line) Compared { return p.tabularRow(l, at) })
	r.Rows = append(r.Rows, queried...)
	return nil
}

func (p CompareParams) tabularRow(l line, at int) Compared {
	title := l.title
	if l.name == "rs" {
		title = "Random search"
	}
	budget := search.TabularAsPaper[l.name].Budget
	if budget == 0 {
		budget = search.TabularAsPaper["rs"].Budget // as keyedTabular has it
	}
	return Compared{Name: l.name, Title: title, Accuracy: l.accuracy[at], Seconds: []float64{budget}}
}

// ofSharedWeights fills the rows of spaces that no table has.
func (r *Comparison) ofSharedWeights(ctx context.Context) error {
	t, err := Figure1(ctx, Figure1Params{SearchParams: r.Params.SearchParams, Rows: r.Params.all()})
	if err != nil {
		return err
	}
	r.records, r.searches = t.Records(), searched(t.Groups)
	for i, f := range r.searches {
		row := f.compared(i < len(r.Params.Mine))
		row.Seconds = f.seconds()
		for _, record := range f.finished() {
			row.curves = append(row.curves, percents(record.Series["discrete"]))
			row.epochs = record.Series["evaluated"]
		}
		row.Accuracy = percents(f.column("discrete", -1))
		r.Rows = append(r.Rows, row)
	}
	return nil
}

func (f found) compared(mine bool) Compared {
	c := Compared{Name: string(f.row), Title: f.row.named(), Mine: mine, Entropy: f.column("entropy", -1)}
	if own, ok := search.Methods[f.row.method()]; ok && mine && own.Title != "" && f.row.variant() == "" {
		c.Title = strings.TrimSuffix(c.Title, " (bilevel)")
	}
	c.entropyPath = study.Map(f.finished(), values("entropy"))
	return c
}

// Regret is what each run loses to the best architecture of the table, in percentage points; nil without a table.
func (r *Comparison) Regret(c Compared) []float64 {
	if r.Optimum == 0 {
		return nil
	}
	return study.Map(c.Accuracy, func(a float64) float64 { return r.Optimum - a })
}

// Records are the keys of the trials.
func (r *Comparison) Records() []string { return r.records }

// Check compares every row of Mine with every other row: searches by seed, methods that query the table as independent
// runs. All intervals hold together.
func (r *Comparison) Check() (claims []runs.Claim) {
	for _, mine := range r.Rows {
		for _, other := range r.Rows {
			if mine.Mine && !other.Mine {
				claims = append(claims, r.judge(mine, other))
			}
		}
	}
	return claims
}

// judge judges whether mine is above another row, and notes the smallest difference that these runs could show.
func (r *Comparison) judge(mine, other Compared) runs.Claim {
	p := r.Params
	confidence := verdict.Family(p.Confidence, len(p.Mine)*(len(r.Rows)-len(p.Mine)))
	compare := verdict.Paired
	if slices.Contains(p.Tabular, other.Name) {
		compare = verdict.Unpaired
	}
	c := verdict.Claim(fmt.Sprintf("own: %s above %s, percentage points", mine.Title, other.Title), "a comparison")
	if len(mine.Accuracy) != p.Seeds || len(other.Accuracy) < 2 {
		return verdict.NotRun(c, fmt.Sprintf("%d and %d runs", len(mine.Accuracy), len(other.Accuracy)))
	}
	d, err := compare(mine.Accuracy, other.Accuracy, confidence)
	return verdict.Ahead(c, d, err, mine.Title, other.Title, "points")
}

var _ catalog.Result = (*Comparison)(nil)

// Table is the comparison with its table only, for LaTeX.
func (r *Comparison) Table() *Comparison { return r.seenAs("table") }

// Curves is the comparison with its curves only.
func (r *Comparison) Curves() *Comparison { return r.seenAs("curves") }

func (r *Comparison) seenAs(view string) *Comparison {
	of := *r
	of.view = view
	return &of
}

// Figure draws, after each epoch, the accuracy of the current architecture and the entropy of θ, as means with
// intervals over seeds, above a table of the final values.
func (r *Comparison) Figure() plots.Figure {
	f := plots.Figure{Name: "comparison", Style: plots.ICLR, Caption: r.caption()}
	title := "Own methods beside others"
	if r.Tabular {
		title += " on NAS-Bench-201"
	}
	f.Meta = study.Meta(title, r.Params.Preset, r.Params)
	if r.view != "table" {
		f.Panels = append(f.Panels, []plots.Panel{r.accuracies(), r.entropies()})
	}
	if r.view != "curves" {
		f.Panels = append(f.Panels, []plots.Panel{{Table: r.table()}})
	}
	if r.view != "" {
		f.Name += "-" + r.view
	}
	return f
}

func (r *Comparison) caption() string {
	text := "Accuracies are those of the shared weights under the architecture that was found, on the images of the " +
		"architecture: no table has this space."
	if r.Tabular {
		text = fmt.Sprintf("Accuracies on %s are the table's, after 200 epochs of training; regret is to its best, "+
			"%.2f %%.", lookupSets[r.Params.column()].title, r.Optimum)
	}
	p := r.Params
	return fmt.Sprintf("%s Means; %s. %s", text, lab.Interval("band", p.Seeds, "seed", p.Confidence),
		searchCaption(r.Params.SearchParams, r.searches, r.Params))
}

// accuracies are the curves of the searches, and the mean of what queries the table as a line.
func (r *Comparison) accuracies() plots.Panel {
	p := plots.Panel{X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "accuracy (%)"}}
	last := 0.
	for _, c := range r.Rows {
		if len(c.epochs) > 0 {
			last = max(last, c.epochs[len(c.epochs)-1])
			means := between(0, 100)(summaries(c.curves, r.Params.Confidence))
			p.Series = append(p.Series, plots.Band(c.Title, c.epochs[:len(means)], means))
		}
	}
	for _, c := range r.Rows {
		if c.curves == nil && len(c.Accuracy) > 0 {
			m := mean(c.Accuracy)
			p.Series = append(p.Series, plots.Series{
				Label: c.Title + ", at the end", X: []float64{1, last}, Y: []float64{m, m}, Reference: true,
			})
		}
	}
	return p
}

func (r *Comparison) entropies() plots.Panel {
	p := plots.Panel{
		X: plots.Axis{Label: "epochs"}, Y: plots.Axis{Label: "entropy of $θ$ (nats)"},
		Legend: plots.Legend{Position: plots.LegendNone},
	}
	for _, c := range r.Rows {
		if len(c.entropyPath) > 0 {
			means := atMostUniform(summaries(c.entropyPath, r.Params.Confidence))
			p.Series = append(p.Series, plots.Band(c.Title, epochsFrom(0, len(means)), means))
		}
	}
	return p
}

// table has a line for each row: mean and interval of the accuracy, regret, final entropy and cost.
func (r *Comparison) table() *plots.Table {
	t := &plots.Table{Columns: []plots.Column{
		{Header: "method"}, {Header: "runs"}, {Header: "accuracy (%)"},
		{Header: fmt.Sprintf("%.3g %% interval", 100*r.Params.Confidence)},
		{Header: "entropy"}, {Header: "cost (s)"},
	}}
	if r.Tabular {
		t.Columns = slices.Insert(t.Columns, regretColumn, plots.Column{Header: "regret"})
	}
	for _, rows := range study.By(r.Rows, func(c Compared) bool { return c.Mine }) { // which come first
		t.Blocks = append(t.Blocks, plots.Block{Rows: study.Map(rows, r.entry)})
	}
	return t
}

func (r *Comparison) entry(c Compared) []plots.Entry {
	accuracy, interval := "not run", ""
	if s, err := runs.Summarize(c.Accuracy, r.Params.Confidence); err == nil {
		s = s.Within(0, 100)
		accuracy = fmt.Sprintf("%.2f", s.Mean)
		if s.Lo.Valid() {
			interval = fmt.Sprintf("%.2f to %.2f", float64(s.Lo), float64(s.Hi))
		}
	}
	cost := thousands(mean(c.Seconds), "")
	if cost != "" && c.curves == nil && r.Tabular {
		cost += " (simulated)"
	}
	texts := []string{c.Title, fmt.Sprint(len(c.Accuracy)), accuracy, interval, twoDigits(c.Entropy), cost}
	out := study.Map(texts, func(text string) plots.Entry { return plots.Entry{Text: text} })
	if r.Tabular {
		out = slices.Insert(out, regretColumn, plots.Entry{Text: twoDigits(r.Regret(c))})
	}
	return out
}

// regretColumn is the place of the regret, which needs a table of accuracies.
const regretColumn = 4

func twoDigits(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", mean(values))
}
