package li2021

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/li2021/internal/tabular"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/study"
	"github.com/nasml/lab/nasml/trial"
)

// table2Tabular asks whether methods that query the table find what the paper prints: each of its means, by the
// standard error of the difference, its order, and which readings of the settings have it.
var table2Tabular = lab.Question[Table2Params, line]{
	Name: "tabular",
	Claims: func(r *table2) []runs.Claim {
		claims := judgeMeans(r, r.Part("tabular").Trials(), tabularRuns)
		if len(r.Params.Tabular) > 0 {
			for i := range lookupSets {
				claims = append(claims, judgeOrder(r, i))
			}
		}
		if len(r.Params.Readings) > 0 {
			for _, l := range r.Part("tabular").Trials() {
				claims = append(claims, judgeReadings(r, l))
			}
		}
		return claims
	},
}

// tabularCase is what a line of the top block is run with: one trial is all runs of a method.
type tabularCase struct {
	method  string
	reading string // empty: the settings that Params name
	trial   tabular.Trial
}

// addTabular runs or reads the lines of the top block and those with other readings.
func addTabular(ctx context.Context, r *table2, table *data.NASBench201, columns [3][]float64) error {
	gs, err := r.Params.tabularCases()
	if err != nil {
		return err
	}
	b := lab.Bench[tabularCase]{
		Study: r.Study(),
		Key:   func(c tabularCase) any { return c.trial },
		Data:  func(tabularCase) string { return table.Fingerprint },
		Label: func(c tabularCase) string { return c.method },
		Units: func(c tabularCase) int { return c.trial.Runs },
		Run: func(ctx context.Context, c tabularCase, _ uint64, step study.Step) (trial.Result, error) {
			return c.trial.Run(ctx, table, func() { step(1, c.method) })
		},
	}
	b.Title = b.ID + ", top block"
	if err := b.Compute(ctx, gs); err != nil {
		return err
	}
	for _, g := range gs {
		r.Groups = append(r.Groups, lab.Group[line]{
			Part: g.Part, Seeds: 1, Trial: g.Trial.line(g.Records[0], columns), Records: g.Records,
		})
	}
	return nil
}

// tabularCases are the lines before they are run.
func (p Table2Params) tabularCases() (gs lab.Groups[tabularCase], err error) {
	add := func(part, method, reading string, s search.TabularSettings) error {
		if p.Budget > 0 {
			s.Budget = p.Budget
		}
		s, err := keyedTabular(method, s)
		gs.Add(part, 1, tabularCase{method, reading, tabular.Trial{Settings: s, Runs: p.Runs}})
		return err
	}
	for _, method := range p.Tabular {
		if err := add("tabular", method, "", p.tabularSettings(method)); err != nil {
			return nil, err
		}
	}
	for _, name := range p.Readings {
		variant, noisy := strings.CutSuffix(name, plusNoise)
		s := search.TabularVariants[variant]
		if noisy {
			s.SeedNoise = search.OneTrialNoise
		}
		if err := add("readings", s.Method, name, s); err != nil {
			return nil, err
		}
	}
	return gs, nil
}

// plusNoise ends the name of a reading whose queries have the noise of one trial.
const plusNoise = "+one-trial"

// tabularSettings are those of a method of the top block.
func (p Table2Params) tabularSettings(method string) search.TabularSettings {
	s := search.TabularAsPaper[method]
	if p.Settings == "code" {
		s = search.TabularAsCode[method]
	}
	for _, name := range p.Variant {
		if v := search.TabularVariants[name]; v.Method == method {
			s = v
		}
	}
	return s
}

// line has the accuracies of a record; older ones name the architectures only.
func (c tabularCase) line(record *runs.Record, columns [3][]float64) line {
	l := line{name: c.method, title: strings.ToUpper(c.method), printed: true}
	if l.paper = publishedTabular[l.title]; c.reading != "" {
		_, what, _ := strings.Cut(c.reading, "/") // "sample-3+one-trial"
		l.title += ", " + strings.NewReplacer("+one-trial", " and one trial a query", "one-trial", "one trial a query",
			"-", " ").Replace(what)
	}
	for i, column := range columns {
		switch {
		case record != nil && record.Series[tabular.Accuracy[i]] != nil:
			l.accuracy[i] = record.Series[tabular.Accuracy[i]]
		case record == nil || record.Series == nil:
			l.missing[i] = "not run"
		default:
			for _, number := range record.Series["architecture"] {
				l.accuracy[i] = append(l.accuracy[i], column[int(number)])
			}
		}
	}
	return l
}

// isTabular reports whether a line is of the top block.
func isTabular(l line) bool { _, ok := publishedTabular[l.title]; return ok }

// tabularOrder is that of the paper's means, the same in all three columns.
var tabularOrder = []string{"rea", "reinforce", "rs", "bohb"}

// judgeOrder judges the paper's order of the top block in a column.
func judgeOrder(r *table2, i int) runs.Claim {
	var names []string
	var samples [][]float64
	for _, method := range tabularOrder {
		names = append(names, strings.ToUpper(method))
		if l := lineOf(r.Part("tabular").Trials(), method); len(l.accuracy[i]) > 0 {
			samples = append(samples, l.accuracy[i])
		}
	}
	c := r.Claim("own: %s: %s, percentage points", lookupSets[i].title, strings.Join(names, " > ")).
		Family(len(lookupSets))
	if len(samples) < len(names) {
		return c.NotRun("of the four methods %d were run", len(samples))
	}
	return verdict.Descending(c.Claim, names, samples, c.Confidence)
}

// judgeReadings judges whether a reading of the settings of a method, that of its line in the top block among them,
// gives the numbers that the paper prints: the one that fits best, by the column that it fits worst.
func judgeReadings(r *table2, first line) runs.Claim {
	c := r.Claim("own: a reading of the settings of %s gives the paper's means in all columns, standard errors apart",
		first.title)
	best, most, note := math.Inf(1), 0., ""
	for _, l := range append([]line{first}, r.Part("readings").Trials()...) {
		if l.name != first.name {
			continue
		}
		means, worst, bound, err := l.apart(r.Confidence)
		if err != nil {
			return c.NotRun("%v", err)
		}
		best, most = min(best, worst), bound
		note += fmt.Sprintf("%s:%s, %.1f standard errors; ", l.title, means, worst)
	}
	paper := ""
	for _, n := range first.paper.accuracy {
		paper += fmt.Sprintf(" %.2f ± %.2f", n.mean, n.std)
	}
	c.Ours, c.Tolerance = runs.Number(best), runs.Number(most)
	c.Allowed, c.Holds = fmt.Sprintf("at most %.3g", most), runs.Judge(best <= most)
	return c.Says(0).Noting("%sthe paper:%s; ours is of the reading that fits best, in the column that it fits worst",
		note, paper).Claim
}

// apart is how many standard errors a line's means are from the paper's at most, and how many they may be.
func (l line) apart(confidence float64) (means string, worst, most float64, err error) {
	for i := range lookupSets {
		if len(l.accuracy[i]) == 0 {
			return "", 0, 0, fmt.Errorf("%s", l.why(i))
		}
		s, err := runs.Summarize(l.accuracy[i], confidence)
		if err != nil {
			return "", 0, 0, err
		}
		apart, bound, err := verdict.Apart(s, l.paper.accuracy[i].printed(tabularRuns), confidence, len(lookupSets))
		if err != nil {
			return "", 0, 0, err
		}
		worst, most = max(worst, apart), bound
		means += fmt.Sprintf(" %.2f ± %.2f", s.Mean, s.Std)
	}
	return means, worst, most, nil
}
