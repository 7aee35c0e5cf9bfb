package li2021

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/plots"
)

// drawTable2 is the table, with the paper's numbers in grey: mean ± standard deviation over runs, and search times. The
// best of nasml's is bold in the top two blocks and in the bottom one; searches at a reduced scale are marked instead.
func drawTable2(r *table2, f *lab.Picture) {
	p := r.Params
	of := func(block string) []line { return lines(r, block) }
	t := &plots.Table{Columns: []plots.Column{{Header: "method"}}}
	for _, set := range lookupSets {
		t.Columns = append(t.Columns, oursAndPaper(set.title+" (test)")...)
	}
	t.Columns = append(t.Columns, oursAndPaper("search time (s)")...)
	first, direct, reduced := best(append(of(topBlock), of(middleBlock)...)), best(of(bottomBlock)), ""
	if p.reduced() { // what is not comparable is not crowned
		first, direct, reduced = best(of(topBlock)), [3]float64{}, ", * quick scale: not to be compared"
	}
	t.Blocks = slices.DeleteFunc([]plots.Block{
		block(fmt.Sprintf("Hyperparameter optimisation on the table (%d runs, simulated time)", p.Runs), of(topBlock),
			first),
		block("The same, with settings that the sources leave open", of(readingsBlock), [3]float64{}),
		block(fmt.Sprintf("Weight sharing, search on %s%s", strings.ToUpper(string(p.Data)), reduced), of(middleBlock),
			first),
		block("Weight sharing, direct search on each data set"+reduced, of(bottomBlock), direct),
		block("", of(referenceBlock), [3]float64{}),
	}, func(b plots.Block) bool { return len(b.Rows) == 0 })
	f.Row(plots.Panel{Table: t})
	f.Say("Accuracy in percent by the table (NATS-Bench, 200 epochs): mean ± standard deviation over runs; search " +
		"times: ours on the machine of the shipped searches, the paper's on a GPU.")
	if all := searched(r.Groups); len(all) > 0 {
		f.Say("%s", searchCaption(p.SearchParams, all, p))
		sayChanges(f, all)
		if i := slices.IndexFunc(all, found.selects); i >= 0 {
			f.Say("Architectures that are read off $θ$ are of the %s.", search.RuleTitles[all[i].rule])
		}
	}
}

func oursAndPaper(group string) []plots.Column {
	return []plots.Column{{Header: "ours", Group: group}, {Header: "paper", Group: group}}
}

func block(title string, lines []line, best [3]float64) plots.Block {
	rows := study.Map(lines, func(l line) []plots.Entry { return l.entries(best) })
	return plots.Block{Title: title, Rows: rows}
}

func (l line) entries(best [3]float64) []plots.Entry {
	out := []plots.Entry{{Text: l.title}}
	for i := range lookupSets {
		ours, paper := plots.Entry{Text: l.missing[i], Grey: true}, plots.Entry{Grey: true}
		if values := l.accuracy[i]; len(values) > 0 {
			mean, std := moments(values)
			ours = plots.Entry{Text: plusMinus(mean, std) + l.mark, Bold: mean == best[i]}
		}
		if l.block == referenceBlock {
			paper.Text = fmt.Sprintf("%.2f", l.paper.accuracy[i].mean)
		} else if l.printed {
			paper.Text = plusMinus(l.paper.accuracy[i].mean, l.paper.accuracy[i].std)
		}
		out = append(out, ours, paper)
	}
	return append(out, plots.Entry{Text: thousands(mean(l.seconds), l.mark)},
		plots.Entry{Text: thousands(l.paper.seconds, ""), Grey: true})
}

// thousands is a time in whole seconds with a mark; empty if there is none.
func thousands(seconds float64, mark string) string {
	if !(seconds > 0) {
		return ""
	}
	return fmt.Sprintf("%.0f%s", seconds, mark)
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
