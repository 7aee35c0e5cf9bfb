package li2021

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nasml/lab/nasml/lab"
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
	return verdict.Printed{Mean: n.Mean, Std: n.Std, Runs: of, Digit: 0.01}
}

func judgeMeans(r *table2, all []line, paperRuns int) (claims []runs.Claim) {
	for _, l := range all {
		for i := range lookupSets {
			if !l.printed {
				continue
			}
			c := r.Claim("[%s] %s: %s, test accuracy in percent", l.paper.row(i), lookupSets[i].title, l.title).
				Says(l.paper.Accuracy[i].Mean)
			if len(l.accuracy[i]) == 0 {
				claims = append(claims, c.NotRun("%s", l.why(i)))
				continue
			}
			s, err := runs.Summarize(l.accuracy[i], c.Confidence)
			claims = append(claims, verdict.SameMean(c.Claim, s, err, l.paper.Accuracy[i].asPrinted(paperRuns),
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
		c := r.Claim("[%s] %s: seconds of a search on CIFAR-10", l.paper.row(-1), l.title).Says(l.paper.Seconds).
			Noting("no longer than on the paper's P100").Family(len(all))
		if len(l.seconds) == 0 {
			claims = append(claims, c.NotRun(lacking))
			continue
		}
		claims = append(claims, c.Of(runs.Summarize(l.seconds, c.Confidence)).AtMost(l.paper.Seconds))
	}
	return claims
}

// judgeRatio judges one of three ratios of times of a block by the mean of its logarithm over seeds.
func judgeRatio(r *table2, id, block, fast, slow string) runs.Claim {
	ratio := publishedTables().Table2[block][fast].Seconds / publishedTables().Table2[block][slow].Seconds
	c := r.Claim("[%s] search time of %s over %s", id, row(fast).title(), row(slow).title()).Says(ratio).Family(3).
		Noting("geometric mean over seeds; the paper's ratio is of its two times")
	c.Tolerance = 0.1
	a, b := searchedLine(r, fast).seconds, searchedLine(r, slow).seconds
	return r.Params.judged(c.Claim, a, b, func(claim runs.Claim) runs.Claim {
		s, err := runs.MeanDiff(logs(a), logs(b), c.Confidence)
		return verdict.Within(claim, s.Exp(), err, ratio-0.1, ratio+0.1)
	})
}

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
	for _, n := range first.paper.Accuracy {
		paper += fmt.Sprintf(" %.2f ± %.2f", n.Mean, n.Std)
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
		apart, bound, err := verdict.Apart(s, l.paper.Accuracy[i].asPrinted(tabularRuns), confidence, len(lookupSets))
		if err != nil {
			return "", 0, 0, err
		}
		worst, most = max(worst, apart), bound
		means += fmt.Sprintf(" %.2f ± %.2f", s.Mean, s.Std)
	}
	return means, worst, most, nil
}

// best201 is GAEA's ERM search, which the paper recommends; earlier201 are the weight-sharing methods that the
// benchmark's authors ran.
const best201 = "gaea-darts/erm"

var earlier201 = []string{"rsps", "darts/benchmark", "setn", "gdas"}

// similar is the largest distance of "similar" and "comparable" lines, in percentage points; the paper gives no number.
const similar = 1

// small is why searches of the quick preset are compared with each other only.
const small = "searches at quick scale are not comparable with runs at the paper's"

// judgeOrders judges which line is above which, across the blocks. Each claim is listed whether or not its searches
// were run.
func judgeOrders(r *table2) (claims []runs.Claim) {
	for _, pair := range [][3]string{
		{"LI062", "darts/erm", "darts"}, {"LI250", "gaea-darts/erm", "gaea-darts"},
		{"RO019", "gaea-darts", "darts"}, {"RO019", "gaea-darts/erm", "darts/erm"},
	} {
		for i := range lookupSets {
			claims = append(claims, judgePair(r, i, pair[0], pair[1], pair[2]))
		}
	}
	for i := range lookupSets {
		claims = append(claims, judgeOptimal(r, i))
	}
	return append(claims, judgeLines(r)...)
}

func judgeLines(r *table2) (claims []runs.Claim) {
	top, middle, bottom := lines(r, topBlock), lines(r, middleBlock), lines(r, bottomBlock)
	rea, best := lineOf(top, "rea"), lineOf(bottom, best201)
	bilevel, gdas, gaea := lineOf(bottom, "gaea-darts"), lineOf(bottom, "gdas"), lineOf(bottom, "gaea-gdas")
	above := func(i int, id, says string, first line, others ...line) {
		claims = append(claims, judgeAbove(r, i, id, says, first, others...))
	}
	for i := range lookupSets {
		above(i, fmt.Sprintf("LI%03d", 1+i), best.title+", direct search, above "+rea.title, best, rea)
		above(i, "LI060", best.title+" best of all methods", lineOf(middle, best201),
			slices.Concat(top, without(middle, best201))...)
		above(i, "LI060", best.title+" best of all methods, direct search", best,
			slices.Concat(top, without(bottom, best201))...)
		above(i, "LI252", best.title+", direct search, above every method that queries the table", best, top...)
		above(i, "LI010", rea.title+" above every earlier weight-sharing method", rea, named201(middle, earlier201)...)
		above(i, "LI058", "GDAS above every other earlier weight-sharing method", lineOf(middle, "gdas"),
			named201(middle, earlier201[:3])...)
	}
	claims = append(claims, judgeNearOptimal(r, 0, best), judgeNearOptimal(r, 1, best))
	above(0, "LI251", gdas.title+" above "+bilevel.title+", direct search", gdas, bilevel)
	for i := 1; i < len(lookupSets); i++ {
		above(i, "LI251", bilevel.title+" above "+gdas.title+", direct search", bilevel, gdas)
		above(i, "LI061", bilevel.title+" above all methods but GAEA DARTS (ERM), direct search", bilevel,
			slices.Concat(top, without(bottom, best201, bilevel.name))...)
		above(i, "LI061", "GAEA DARTS (ERM) above "+bilevel.title+", direct search", best, bilevel)
	}
	above(1, "LI059", gaea.title+" above "+gdas.title+", direct search", gaea, gdas)
	return append(claims, judgeSimilar(r, gaea, gdas)...)
}

// named201 are the named lines of a block, and without the others.
func named201(block []line, names []string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return !slices.Contains(names, l.name) })
}

func without(block []line, names ...string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return slices.Contains(names, l.name) })
}

// searchedLine is the line of a row, of the middle block if it has one.
func searchedLine(r *table2, name string) line {
	return lineOf(append(lines(r, middleBlock), lines(r, bottomBlock)...), name)
}

func judgePair(r *table2, i int, id, better, worse string) runs.Claim {
	paper := publishedTables().Table2[middleBlock]
	c := r.Claim("[%s] %s: %s above %s, percentage points", id, lookupSets[i].title, row(better).title(),
		row(worse).title()).From("Table 2 and Section 4.4").
		Says(paper[better].Accuracy[i].Mean - paper[worse].Accuracy[i].Mean).Family(4 * len(lookupSets)).
		Noting("ours is the difference of the looked-up accuracies over seeds; only its sign is judged")
	judged := r.Params.above(c, searchedLine(r, better).accuracy[i], searchedLine(r, worse).accuracy[i])
	if r.Params.Preset == "quick" && judged.Ours.Valid() && judged.Holds != runs.Holds {
		judged.Note += "; not shown at quick scale"
	}
	return judged
}

func judgeOptimal(r *table2, i int) runs.Claim {
	l := lineOf(lines(r, referenceBlock), "Optimal")
	paper := l.paper.Accuracy[i].Mean
	c := r.Claim("[%s] %s: best architecture of the table, test accuracy in percent", l.paper.row(i),
		lookupSets[i].title).Says(paper).Noting("the paper prints two decimals")
	return verdict.Exactly(c.Claim, l.accuracy[i][0], paper, 0.005+1e-9)
}

// judgeSimilar judges where GAEA GDAS is similar to GDAS as run here, and how it compares with the published GDAS.
func judgeSimilar(r *table2, gaea, gdas line) (claims []runs.Claim) {
	for _, i := range []int{0, 2} {
		c := order(r, i, "LI059", gaea.title+" similar to "+gdas.title+", direct search")
		claims = append(claims, compare(r, i, c, gaea, gdas, func(c runs.Claim, s runs.Summary, err error) runs.Claim {
			c.Tolerance = similar
			return verdict.Within(c, s, err, -similar, similar)
		}))
	}
	for i := range lookupSets {
		claims = append(claims, judgePublished(r, i, gaea))
	}
	return claims
}

// judgePublished judges GAEA GDAS beside the published GDAS; what comparable and slightly mean is ours.
func judgePublished(r *table2, i int, gaea line) runs.Claim {
	published := publishedTables().Table2[middleBlock]["gdas"].Accuracy[i].Mean
	says, lo, hi := "comparable to", -1.*similar, 1.*similar
	if i == 2 {
		says, lo, hi = "slightly below", -2.*similar, 0
	}
	c := r.Claim("[LI245] %s: %s %s the published GDAS, percentage points", lookupSets[i].title, gaea.title, says).
		From("Appendix C.3").Says(gaea.paper.Accuracy[i].Mean-published).Family(len(lookupSets)).
		Noting("ours less the published %v; what comparable and slightly mean is ours", published)
	switch {
	case r.Params.Preset == "quick":
		return c.NotRun(small)
	case len(gaea.accuracy[i]) == 0:
		return c.NotRun("%s: %s", gaea.title, gaea.why(i))
	}
	s, err := runs.MeanDiff(gaea.accuracy[i], slices.Repeat([]float64{published}, len(gaea.accuracy[i])), c.Confidence)
	return verdict.Within(c.Claim, s, err, lo, hi)
}

func judgeNearOptimal(r *table2, i int, best line) runs.Claim {
	optimal := lineOf(lines(r, referenceBlock), "Optimal")
	c := r.Claim("[LI006] %s: %s near the best architecture, percentage points below it", lookupSets[i].title,
		best.title).From("Abstract").Says(optimal.paper.Accuracy[i].Mean - best.paper.Accuracy[i].Mean).Family(2)
	c.Tolerance = similar
	switch {
	case r.Params.Preset == "quick":
		return c.NotRun(small)
	case len(best.accuracy[i]) == 0:
		return c.NotRun("%s", best.why(i))
	}
	return c.Noting("near is within one percentage point, which is ours").
		Difference(slices.Repeat(optimal.accuracy[i], len(best.accuracy[i])), best.accuracy[i]).AtMost(similar)
}

// judgeAbove judges that a line is above all others on a data set: by one that it is below, else by the least clear
// one, at the confidence of a family.
func judgeAbove(r *table2, i int, id, says string, first line, others ...line) runs.Claim {
	c := order(r, i, id, says)
	if len(others) == 0 {
		return c.NotRun("there is no other line to compare with")
	}
	var all []runs.Claim
	for _, other := range others {
		one := compare(r, i, c.Family(len(others)), first, other,
			func(c runs.Claim, s runs.Summary, err error) runs.Claim { return verdict.Above(c, s, err, 0) })
		if !one.Lo.Valid() {
			return one
		}
		all = append(all, one)
	}
	worst := slices.MinFunc(all, func(a, b runs.Claim) int {
		if fails := a.Holds == runs.Fails; fails != (b.Holds == runs.Fails) {
			return map[bool]int{true: -1, false: 1}[fails]
		}
		return cmp.Compare(a.Lo, b.Lo)
	})
	if len(others) > 1 {
		worst.Note += fmt.Sprintf("; the least clear of %d", len(others))
	}
	return worst
}

func order(r *table2, i int, id, says string) lab.Claim {
	return r.Claim("[%s] %s: %s, percentage points", id, lookupSets[i].title, says).From("Table 2 and Section 4.4")
}

// compare judges the difference of two lines, at a confidence for all columns: searches by seed, runs of methods that
// query the table as independent samples.
func compare(
	r *table2, i int, c lab.Claim, a, b line, judge func(runs.Claim, runs.Summary, error) runs.Claim,
) runs.Claim {
	if a.paper.First > 0 && b.paper.First > 0 {
		c = c.Says(a.paper.Accuracy[i].Mean - b.paper.Accuracy[i].Mean)
	}
	queries := a.block == topBlock || b.block == topBlock
	if r.Params.Preset == "quick" && queries && a.block != b.block {
		return c.NotRun(small)
	}
	for _, l := range []line{a, b} {
		if len(l.accuracy[i]) == 0 {
			return c.NotRun("%s: %s", l.title, l.why(i))
		}
	}
	c = c.Noting("ours is %s less %s", a.title, b.title)
	difference := runs.MeanDiff
	if queries {
		difference = runs.WelchDiff
	} else if n := r.Params.Seeds; len(a.accuracy[i]) != n || len(b.accuracy[i]) != n {
		return c.NotRun("%d and %d of %d seeds", len(a.accuracy[i]), len(b.accuracy[i]), n)
	}
	s, err := difference(a.accuracy[i], b.accuracy[i], c.Family(len(lookupSets)).Confidence)
	return judge(c.Claim, s, err)
}
