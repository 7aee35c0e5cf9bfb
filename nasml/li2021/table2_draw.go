package li2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/plots"
)

// Figure is the table, with the paper's numbers in grey beside ours: mean ±
// standard deviation over runs. The best of ours in the top two blocks and in
// the bottom one is bold.
func (r *Table2Result) Figure() plots.Figure {
	t := &plots.Table{Columns: []plots.Column{{Header: "method"}}}
	for _, set := range lookupSets {
		t.Columns = append(t.Columns, plots.Column{Header: "ours", Group: set.title + " (test)"}, plots.Column{Header: "paper", Group: set.title + " (test)"})
	}
	top := best(append(slices.Clone(r.tabular), r.middle...))
	t.Blocks = []plots.Block{
		r.block(fmt.Sprintf("Hyperparameter optimisation on the table (%d runs, simulated time)", r.Params.Runs), r.tabular, top),
		r.block(fmt.Sprintf("Weight sharing, search on %s", strings.ToUpper(string(r.Params.Data))), r.middle, top),
		r.block("Weight sharing, direct search on each data set", r.bottom, best(r.bottom)),
	}
	t.Blocks = slices.DeleteFunc(t.Blocks, func(b plots.Block) bool { return len(b.Rows) == 0 })
	resNet := line{title: "ResNet", paper: publishedReference["ResNet"], printed: true}
	t.Blocks = append(t.Blocks, r.block("", []line{resNet, r.optimal}, [3]float64{}))
	return plots.Figure{
		Name: "li2021-table2", Style: plots.ICML.Text(), Panels: [][]plots.Panel{{{Table: t}}},
		Caption: r.caption(), Meta: meta(table2Title, r.Scale, r.Params),
	}
}

func (r *Table2Result) caption() string {
	parts := []string{"Accuracy in percent from the table (NATS-Bench, 200 epochs, mean over its trials); mean ± standard deviation (divisor n−1) over runs."}
	if len(r.all) > 0 {
		parts = append(parts, searchCaption(r.Params.SearchParams, r.all), r.pickNote())
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// pickNote says of which epoch the architectures are, where it is not the last.
func (r *Table2Result) pickNote() string {
	for _, f := range r.all {
		if f.picks() {
			return fmt.Sprintf("Architectures that are read off $θ$ are of the %s.", search.PickTitles[f.pick])
		}
	}
	return ""
}

func (r *Table2Result) block(title string, lines []line, best [3]float64) plots.Block {
	b := plots.Block{Title: title}
	for _, l := range lines {
		b.Rows = append(b.Rows, r.entries(l, best))
	}
	return b
}

// entries are a line's texts.
func (r *Table2Result) entries(l line, best [3]float64) []plots.Entry {
	out := []plots.Entry{{Text: l.title}}
	for i := range lookupSets {
		ours := plots.Entry{Text: l.missing[i], Grey: true}
		if values := l.accuracy[i]; len(values) > 0 {
			mean, std := moments(values)
			ours = plots.Entry{Text: plusMinus(mean, std), Bold: mean == best[i]}
		}
		paper := plots.Entry{Grey: true}
		if l.printed {
			paper.Text = plusMinus(l.paper.accuracy[i].mean, l.paper.accuracy[i].std)
			if publishedReference[l.title] != (table2Row{}) {
				paper.Text = fmt.Sprintf("%.2f", l.paper.accuracy[i].mean)
			}
		}
		out = append(out, ours, paper)
	}
	return out
}

func plusMinus(mean, std float64) string {
	if math.IsNaN(std) {
		return fmt.Sprintf("%.2f", mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", mean, std)
}

// moments are mean and standard deviation (divisor n−1), NaN for one value.
func moments(values []float64) (mean, std float64) {
	s, err := runs.Summarize(values, 0.95)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return s.Mean, float64(s.Std)
}

// best are the highest means of lines.
func best(lines []line) [3]float64 {
	var out [3]float64
	for _, l := range lines {
		for i := range out {
			if len(l.accuracy[i]) > 0 {
				mean, _ := moments(l.accuracy[i])
				out[i] = max(out[i], mean)
			}
		}
	}
	return out
}

// Check judges Table 2: that each method of the top block lies within the
// paper's mean ± its deviation; that ERM finds better architectures than the
// bilevel problem and GAEA better ones than DARTS; and, at the paper's scale
// only, that each line of searches lies within the paper's interval.
func (r *Table2Result) Check() []runs.Claim {
	var claims []runs.Claim
	for _, l := range r.tabular {
		for i, set := range lookupSets {
			claims = append(claims, r.checkNumber(l, i, set.title))
		}
	}
	for _, pair := range [][2]string{{"darts/erm", "darts"}, {"gaea-darts/erm", "gaea-darts"}, {"gaea-darts", "darts"}, {"gaea-darts/erm", "darts/erm"}} {
		for i, set := range lookupSets {
			claims = append(claims, r.checkPair(pair[0], pair[1], i, set.title))
		}
	}
	if r.Params.Preset != "quick" {
		for _, l := range r.middle {
			for i, set := range lookupSets {
				if l.printed {
					claims = append(claims, r.checkNumber(l, i, set.title))
				}
			}
		}
	}
	return claims
}

// checkNumber compares a mean with the paper's.
func (r *Table2Result) checkNumber(l line, i int, title string) runs.Claim {
	c := runs.NewClaim(fmt.Sprintf("%s: %s, test accuracy in percent", title, l.title), table2Source)
	paper := l.paper.accuracy[i]
	c.Paper, c.Tolerance = runs.Number(paper.mean), runs.Number(paper.std)
	if len(l.accuracy[i]) == 0 {
		c.Note = l.missing[i]
		return c
	}
	s, err := runs.Summarize(l.accuracy[i], r.Params.Confidence)
	if err != nil {
		c.Note = "not run: " + err.Error()
		return c
	}
	c.Ours, c.Lo, c.Hi = runs.Number(s.Mean), s.Lo, s.Hi
	c.Holds = runs.Judge(math.Abs(s.Mean-paper.mean) <= paper.std)
	c.Note = fmt.Sprintf("%d runs, standard deviation %v; the tolerance is the paper's standard deviation", s.N, s.Std)
	return c
}

// checkPair compares two rows of searches.
func (r *Table2Result) checkPair(better, worse string, i int, title string) runs.Claim {
	c := runs.NewClaim(fmt.Sprintf("%s: %s above %s, percentage points", title, row(better).title(), row(worse).title()), table2Source+" and Section 4.4")
	c.Paper = runs.Number(publishedTransfer[row(better)].accuracy[i].mean - publishedTransfer[row(worse)].accuracy[i].mean)
	c.Note = "ours is the difference of the looked-up accuracies over seeds; only its sign is judged"
	a, b := r.find(better), r.find(worse)
	c = r.Params.judgeDifference(c, a.accuracy[i], b.accuracy[i], 1)
	if r.Params.Preset == "quick" && c.Ours.Valid() && c.Holds != runs.Holds {
		c.Note += "; not shown at quick scale"
	}
	return c
}

// find is the line of a row that was searched.
func (r *Table2Result) find(name string) line {
	for _, l := range append(slices.Clone(r.middle), r.bottom...) {
		if l.name == name {
			return l
		}
	}
	return line{}
}
