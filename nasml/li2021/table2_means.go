package li2021

import (
	"fmt"
	"math"
	"strings"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// Runs behind a number of Table 2: Dong & Yang 2020 report 500 of each method that queries the table and 3 searches of
// each that shares weights; Li+ made 4.
const (
	tabularRuns = 500
	searchRuns  = 4
)

// judgeTabular judges whether methods that query the table reproduce the paper: each mean, by the standard error of the
// difference, the order of means, and which readings of the settings fit.
func judgeTabular(r *table2) []runs.Claim {
	queried := lines(r, topBlock)
	claims := judgeMeans(r, queried, tabularRuns)
	for i := range lookupSets[:min(len(r.Params.Tabular), 1)*len(lookupSets)] {
		claims = append(claims, judgeOrder(r, i))
	}
	for _, l := range queried[:min(len(r.Params.Readings), 1)*len(queried)] {
		claims = append(claims, judgeReadings(r, l))
	}
	return claims
}

func judgeNumbers(r *table2) []runs.Claim {
	if r.Params.Preset == "quick" {
		return nil
	}
	direct := lines(r, bottomBlock)
	for i := range direct { // whose titles are the middle block's
		direct[i].title += ", direct search"
	}
	all := append(lines(r, middleBlock), direct...)
	return append(append(judgeMeans(r, all, searchRuns), judgeTimes(r, all)...),
		judgeRatio(r, "LI179", middleBlock, "gaea-darts", "darts"),
		judgeRatio(r, "LI180", middleBlock, best201, "darts/erm"),
		judgeRatio(r, "LI181", bottomBlock, "gaea-gdas", "gdas"))
}

// asPrinted is a number of Table 2, printed to two digits after the point.
func (n number) asPrinted(of int) verdict.Printed {
	return verdict.Printed{Mean: n.mean, Std: n.std, Runs: of, Digit: 0.01}
}

// judgeMeans judges whether the means of lines are the paper's, over paperRuns runs, at the confidence of a family.
func judgeMeans(r *table2, all []line, paperRuns int) (claims []runs.Claim) {
	for _, l := range all {
		for i := range lookupSets {
			if !l.printed {
				continue
			}
			c := r.Claim("[%s] %s: %s, test accuracy in percent", l.paper.row(i), lookupSets[i].title, l.title).
				Says(l.paper.accuracy[i].mean)
			if len(l.accuracy[i]) == 0 {
				claims = append(claims, c.NotRun("%s", l.why(i)))
				continue
			}
			s, err := runs.Summarize(l.accuracy[i], c.Confidence)
			claims = append(claims, verdict.SameMean(c.Claim, s, err, l.paper.accuracy[i].asPrinted(paperRuns),
				verdict.Family(c.Confidence, len(all)*len(lookupSets))))
		}
	}
	return claims
}

// judgeTimes judges search times on CIFAR-10 against the paper's, of a P100: on another machine only that a search
// takes no longer. Ratios of times are judged as they are.
func judgeTimes(r *table2, all []line) (claims []runs.Claim) {
	for _, l := range all {
		if !l.printed {
			continue
		}
		c := r.Claim("[%s] %s: seconds of a search on CIFAR-10", l.paper.row(-1), l.title).Says(l.paper.seconds).
			Noting("no longer than on the paper's P100").Family(len(all))
		if len(l.seconds) == 0 {
			claims = append(claims, c.NotRun(lacking))
			continue
		}
		claims = append(claims, c.Of(runs.Summarize(l.seconds, c.Confidence)).AtMost(l.paper.seconds))
	}
	return claims
}

// judgeRatio judges one of three ratios of times of a block by the mean of its logarithm over seeds.
func judgeRatio(r *table2, id, block, fast, slow string) runs.Claim {
	ratio := publishedTable2[block][fast].seconds / publishedTable2[block][slow].seconds
	c := r.Claim("[%s] search time of %s over %s", id, row(fast).title(), row(slow).title()).Says(ratio).Family(3).
		Noting("geometric mean over seeds; the paper's ratio is of its two times")
	c.Tolerance = 0.1
	a, b := searchedLine(r, fast).seconds, searchedLine(r, slow).seconds
	return r.Params.judged(c.Claim, a, b, func(claim runs.Claim) runs.Claim {
		s, err := runs.MeanDiff(logs(a), logs(b), c.Confidence)
		s.Mean, s.Lo, s.Hi = math.Exp(s.Mean), exp(s.Lo), exp(s.Hi)
		return verdict.Within(claim, s, err, ratio-0.1, ratio+0.1)
	})
}

func exp(x runs.Number) runs.Number { return runs.Number(math.Exp(float64(x))) }

// judgeOrder judges the order of the paper's means of the top block, the same in all columns.
func judgeOrder(r *table2, i int) runs.Claim {
	var names []string
	var samples [][]float64
	for _, method := range []string{"rea", "reinforce", "rs", "bohb"} {
		names = append(names, strings.ToUpper(method))
		if l := lineOf(lines(r, topBlock), method); len(l.accuracy[i]) > 0 {
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

// judgeReadings judges whether a reading of a method's settings, its line in the top block included, reproduces the
// paper's numbers: the best-fitting one, by its worst column.
func judgeReadings(r *table2, first line) runs.Claim {
	c := r.Claim("own: a reading of the settings of %s gives the paper's means in all columns, standard errors apart",
		first.title)
	best, most, note := math.Inf(1), 0., ""
	for _, l := range append([]line{first}, lines(r, readingsBlock)...) {
		if l.name != first.name {
			continue
		}
		means, worst, bound, err := l.distance(r.Confidence)
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

// distance is the largest distance of a line's means from the paper's in standard errors, and the largest allowed.
func (l line) distance(confidence float64) (means string, worst, most float64, err error) {
	for i := range lookupSets {
		if len(l.accuracy[i]) == 0 {
			return "", 0, 0, fmt.Errorf("%s", l.why(i))
		}
		s, err := runs.Summarize(l.accuracy[i], confidence)
		if err != nil {
			return "", 0, 0, err
		}
		apart, bound, err := verdict.Apart(s, l.paper.accuracy[i].asPrinted(tabularRuns), confidence, len(lookupSets))
		if err != nil {
			return "", 0, 0, err
		}
		worst, most = max(worst, apart), bound
		means += fmt.Sprintf(" %.2f ± %.2f", s.Mean, s.Std)
	}
	return means, worst, most, nil
}
