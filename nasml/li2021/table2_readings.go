package li2021

import (
	"fmt"
	"math"
	"strings"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/verdict"
)

// tabularCase is what a line of the top block is run with.
type tabularCase struct {
	method   string
	reading  string // empty: the settings that Params name
	settings search.TabularSettings
}

// tabularLines are the lines of the top block and those with other readings.
func (p Table2Params) tabularLines() ([]tabularCase, error) {
	var all []tabularCase
	for _, method := range p.Tabular {
		all = append(all, tabularCase{method: method, settings: p.tabularSettings(method)})
	}
	for _, name := range p.Readings {
		s, err := reading(name)
		if err != nil {
			return nil, err
		}
		if p.Budget > 0 {
			s.Budget = p.Budget
		}
		all = append(all, tabularCase{s.Method, name, s})
	}
	return all, nil
}

// plusNoise ends the name of a reading whose queries have the noise of one trial.
const plusNoise = "+one-trial"

// reading are the settings of a name of search.TabularVariants, or of one with the
// noise of a single trial.
func reading(name string) (search.TabularSettings, error) {
	variant, noisy := strings.CutSuffix(name, plusNoise)
	s, ok := search.TabularVariants[variant]
	if !ok {
		return s, fmt.Errorf("no reading of a tabular method is called %q", name)
	}
	if noisy {
		s.SeedNoise = search.OneTrialNoise
	}
	return s, nil
}

// readingTitle is what a reading changes, "sample 3 and one trial": its method
// stands before it.
func readingTitle(name string) string {
	_, what, _ := strings.Cut(name, "/")
	what = strings.NewReplacer("+", " and ", "one-trial", "one trial a query", "rate-", "rate ", "sample-", "sample ").
		Replace(what)
	return strings.ReplaceAll(what, "-", " ")
}

// Runs behind a number of Table 2: Dong & Yang 2020 report 500 of each method that
// queries the table and 3 searches of each that shares weights; Li+ made 4.
const (
	tabularRuns = 500
	searchRuns  = 4
)

// printed is a number of Table 2, which has two digits after the point.
func (n number) printed(of int) verdict.Printed {
	return verdict.Printed{Mean: n.mean, Std: n.std, Runs: of, Digit: 0.01}
}

// checkNumbers judges whether the means of lines are those that the paper prints,
// over so many runs, at a confidence that allows for the number of these claims.
func (r *Table2Result) checkNumbers(lines []line, paperRuns int) []runs.Claim {
	var claims []runs.Claim
	for _, l := range lines {
		if !l.printed {
			continue
		}
		for i, set := range lookupSets {
			claims = append(claims, r.checkNumber(l, i, set.title, paperRuns,
				verdict.Family(r.Params.Confidence, len(lines)*len(lookupSets))))
		}
	}
	return claims
}

// checkNumber judges one number of a line.
func (r *Table2Result) checkNumber(l line, i int, title string, paperRuns int, confidence float64) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("%s: %s, test accuracy in percent", title, l.title), table2Source)
	c.Paper, c.Rows = runs.Number(l.paper.accuracy[i].mean), []string{l.paper.row(i)}
	if len(l.accuracy[i]) == 0 {
		return verdict.NotRun(c, whyMissing(l.missing[i]))
	}
	s, err := runs.Summarize(l.accuracy[i], r.Params.Confidence)
	return verdict.SameMean(c, s, err, l.paper.accuracy[i].printed(paperRuns), confidence)
}

// tabularOrder is that of the paper's means, the same in all three columns.
var tabularOrder = []string{"REA", "REINFORCE", "RS", "BOHB"}

// checkOrder judges the paper's order of the top block, column by column.
func (r *Table2Result) checkOrder() []runs.Claim {
	lines := map[string]line{}
	for _, l := range r.tabular {
		lines[l.title] = l
	}
	if len(lines) == 0 {
		return nil
	}
	var claims []runs.Claim
	for i, set := range lookupSets {
		c := verdict.Claim("own: "+set.title+": "+strings.Join(tabularOrder, " > ")+", percentage points", table2Source)
		var names []string
		var samples [][]float64
		for _, name := range tabularOrder {
			if values := lines[name].accuracy[i]; len(values) > 0 {
				names, samples = append(names, name), append(samples, values)
			}
		}
		if len(names) < len(tabularOrder) {
			claims = append(claims, verdict.NotRun(c, fmt.Sprintf("of the four methods %d were run", len(names))))
			continue
		}
		claims = append(claims, verdict.Descending(c, names, samples,
			verdict.Family(r.Params.Confidence, len(lookupSets))))
	}
	return claims
}

// checkReadings says, method by method, which readings of the settings, that of the
// top block among them, give the numbers that the paper prints.
func (r *Table2Result) checkReadings() []runs.Claim {
	if len(r.readings) == 0 {
		return nil
	}
	var claims []runs.Claim
	for _, l := range r.tabular {
		c := verdict.Claim("own: a reading of the settings of "+l.title+" gives the paper's means in all columns, "+
			"standard errors apart", table2Source)
		claims = append(claims, r.checkReading(c, l))
	}
	return claims
}

// checkReading takes the reading that fits best, by the column that it fits worst.
func (r *Table2Result) checkReading(c runs.Claim, first line) runs.Claim {
	best, most := math.Inf(1), 0.
	note := ""
	for _, l := range append([]line{first}, r.readings...) {
		if l.name != first.name {
			continue
		}
		worst := 0.
		note += l.title + ":"
		for i := range lookupSets {
			if len(l.accuracy[i]) == 0 {
				return verdict.NotRun(c, whyMissing(l.missing[i]))
			}
			s, err := runs.Summarize(l.accuracy[i], r.Params.Confidence)
			if err != nil {
				return verdict.NotRun(c, err.Error())
			}
			apart, bound, err := verdict.Apart(s, l.paper.accuracy[i].printed(tabularRuns), r.Params.Confidence,
				len(lookupSets))
			if err != nil {
				return verdict.NotRun(c, err.Error())
			}
			worst, most = max(worst, apart), bound
			note += fmt.Sprintf(" %.2f ± %.2f", s.Mean, s.Std)
		}
		note += fmt.Sprintf(", %.1f standard errors; ", worst)
		best = min(best, worst)
	}
	c.Paper, c.Ours, c.Tolerance = 0, runs.Number(best), runs.Number(most)
	c.Allowed = fmt.Sprintf("at most %.3g", most)
	c.Holds = runs.Judge(best <= most)
	c.Note = fmt.Sprintf("%sthe paper: %.2f ± %.2f %.2f ± %.2f %.2f ± %.2f; ours is of the reading that fits best, in "+
		"the column that it fits worst", note,
		first.paper.accuracy[0].mean, first.paper.accuracy[0].std, first.paper.accuracy[1].mean,
		first.paper.accuracy[1].std, first.paper.accuracy[2].mean, first.paper.accuracy[2].std)
	return c
}
