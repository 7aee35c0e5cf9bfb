package li2021

import (
	"fmt"
	"slices"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// table2Orders asks which line is above which, across the blocks. Each claim is written whether or not its searches
// have been run.
var table2Orders = lab.Question[Table2Params, line]{
	Name: "orders",
	Claims: func(r *table2) []runs.Claim {
		var claims []runs.Claim
		for _, pair := range [][3]string{
			{"LI062", "darts/erm", "darts"}, {"LI250", "gaea-darts/erm", "gaea-darts"},
			{"RO019", "gaea-darts", "darts"}, {"RO019", "gaea-darts/erm", "darts/erm"},
		} {
			for i := range lookupSets {
				claims = append(claims, judgePair(r, i, pair[0], row(pair[1]), row(pair[2])))
			}
		}
		for i := range lookupSets {
			claims = append(claims, judgeOptimal(r, i))
		}
		return append(claims, judgeLines(r)...)
	},
}

// best201 is the ERM search of GAEA, which the paper recommends, and earlier201 are the
// weight-sharing methods that the benchmark's authors had run.
const best201 = "gaea-darts/erm"

var earlier201 = []string{"rsps", "darts/benchmark", "setn", "gdas"}

// similar is how many percentage points apart "similar" and "comparable" lines may
// be; the paper gives no number.
const similar = 1

// small is why searches of the quick preset are compared with each other only.
const small = "searches at quick scale are not comparable with runs at the paper's"

// searchedLine is the line of a row that was searched, of the middle block where that has it.
func searchedLine(r *table2, w row) line {
	return lineOf(append(r.Part("middle").Trials(), r.Part("bottom").Trials()...), string(w))
}

// judgePair compares two rows of searches.
func judgePair(r *table2, i int, rows string, better, worse row) runs.Claim {
	paper := publishedTransfer[better].accuracy[i].mean - publishedTransfer[worse].accuracy[i].mean
	c := r.Claim("[%s] %s: %s above %s, percentage points", rows, lookupSets[i].title, better.title(), worse.title()).
		From("Table 2 and Section 4.4").Says(paper).
		Noting("ours is the difference of the looked-up accuracies over seeds; only its sign is judged").Claim
	family := r.Params.among(4 * len(lookupSets)) // four pairs in three columns
	c = family.above(c, searchedLine(r, better).accuracy[i], searchedLine(r, worse).accuracy[i])
	if r.Params.Preset == "quick" && c.Ours.Valid() && c.Holds != runs.Holds {
		c.Note += "; not shown at quick scale"
	}
	return c
}

// judgeOptimal compares the best architecture of the table with the paper's.
func judgeOptimal(r *table2, i int) runs.Claim {
	l := lineOf(r.Part("reference").Trials(), "Optimal")
	paper := l.paper.accuracy[i].mean
	c := r.Claim("[%s] %s: best architecture of the table, test accuracy in percent", l.paper.row(i),
		lookupSets[i].title).Says(paper).Noting("the paper prints two decimals")
	return verdict.Exactly(c.Claim, l.accuracy[i][0], paper, 0.005+1e-9)
}

// but are the lines of a block without those named.
func but(block []line, names ...string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return slices.Contains(names, l.name) })
}

// only are those of a block that are named.
func only(block []line, names ...string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return !slices.Contains(names, l.name) })
}

// judgeLines judges what the paper says of lines against each other.
func judgeLines(r *table2) []runs.Claim {
	var claims []runs.Claim
	top, middle, bottom := r.Part("tabular").Trials(), r.Part("middle").Trials(), r.Part("bottom").Trials()
	rea, best := lineOf(top, "rea"), lineOf(bottom, best201)
	leads := func(i int, rows, says string, first line, others ...line) {
		claims = append(claims, judgeAbove(r, i, rows, says, first, others...))
	}
	for i := range lookupSets {
		leads(i, fmt.Sprintf("LI%03d", 1+i), best.title+", direct search, above "+rea.title, best, rea)
		leads(i, "LI060", best.title+" best of all methods", lineOf(middle, best201),
			append(slices.Clone(top), but(middle, best201)...)...)
		leads(i, "LI060", best.title+" best of all methods, direct search", best,
			append(slices.Clone(top), but(bottom, best201)...)...)
		leads(i, "LI252", best.title+", direct search, above every method that queries the table", best, top...)
		leads(i, "LI010", rea.title+" above every earlier weight-sharing method", rea, only(middle, earlier201...)...)
		leads(i, "LI058", "GDAS above every other earlier weight-sharing method", lineOf(middle, "gdas"),
			only(middle, earlier201[:3]...)...)
	}
	claims = append(claims, judgeNearOptimal(r, 0), judgeNearOptimal(r, 1))
	bilevel, gdas := lineOf(bottom, "gaea-darts"), lineOf(bottom, "gdas")
	leads(0, "LI251", gdas.title+" above "+bilevel.title+", direct search", gdas, bilevel)
	for i := 1; i < len(lookupSets); i++ {
		leads(i, "LI251", bilevel.title+" above "+gdas.title+", direct search", bilevel, gdas)
		leads(i, "LI061", bilevel.title+" above all methods but GAEA DARTS (ERM), direct search", bilevel,
			append(slices.Clone(top), but(bottom, best201, bilevel.name)...)...)
		leads(i, "LI061", "GAEA DARTS (ERM) above "+bilevel.title+", direct search", best, bilevel)
	}
	return append(claims, judgeGDAS(r, lineOf(bottom, "gaea-gdas"), gdas)...)
}

// judgeGDAS judges GAEA GDAS against GDAS as it was run here and as it was published.
func judgeGDAS(r *table2, gaea, gdas line) []runs.Claim {
	claims := []runs.Claim{
		judgeAbove(r, 1, "LI059", gaea.title+" above "+gdas.title+", direct search", gaea, gdas),
	}
	for _, i := range []int{0, 2} {
		c := order(r, i, "LI059", gaea.title+" similar to "+gdas.title+", direct search")
		claims = append(claims, compare(r, i, c, gaea, gdas, func(c runs.Claim, s runs.Summary, err error) runs.Claim {
			c.Tolerance = similar
			return verdict.Within(c, s, err, -similar, similar)
		}))
	}
	for i, set := range lookupSets {
		published := publishedTransfer["gdas"].accuracy[i].mean
		says, lo, hi := "comparable to", -1.*similar, 1.*similar
		if i == 2 {
			says, lo, hi = "slightly below", -2.*similar, 0
		}
		c := r.Claim("[LI245] %s: %s %s the published GDAS, percentage points", set.title, gaea.title, says).
			From("Appendix C.3").Says(gaea.paper.accuracy[i].mean-published).Family(len(lookupSets)).
			Noting("ours less the published %v; what comparable and slightly mean is ours", published)
		if r.Params.Preset == "quick" {
			claims = append(claims, c.NotRun(small))
			continue
		}
		s, err := runs.Summarize(less(gaea.accuracy[i], published), c.Confidence)
		claims = append(claims, verdict.Within(c.Claim, s, err, lo, hi))
	}
	return claims
}

func less(values []float64, x float64) []float64 {
	var out []float64
	for _, v := range values {
		out = append(out, v-x)
	}
	return out
}

// judgeNearOptimal judges how far GAEA's best line is from the best architecture.
func judgeNearOptimal(r *table2, i int) runs.Claim {
	best, optimal := lineOf(r.Part("bottom").Trials(), best201), lineOf(r.Part("reference").Trials(), "Optimal")
	c := r.Claim("[LI006] %s: %s near the best architecture, percentage points below it", lookupSets[i].title,
		best.title).From("Abstract").Says(optimal.paper.accuracy[i].mean - best.paper.accuracy[i].mean).Family(2)
	c.Tolerance = similar
	switch {
	case r.Params.Preset == "quick":
		return c.NotRun(small)
	case len(best.accuracy[i]) == 0:
		return c.NotRun("%s", best.why(i))
	}
	s, err := runs.Summarize(less(best.accuracy[i], optimal.accuracy[i][0]), c.Confidence)
	s.Mean, s.Lo, s.Hi = -s.Mean, -s.Hi, -s.Lo
	return c.Noting("near is within one percentage point, which is ours").Of(s, err).AtMost(similar)
}

// judgeAbove judges that a line is above every one of others on a data set: by one that it
// is below, else by the one that it is least clearly above, at a confidence that
// allows for their number.
func judgeAbove(r *table2, i int, rows, says string, first line, others ...line) runs.Claim {
	c := order(r, i, rows, says)
	if len(others) == 0 {
		return c.NotRun("there is no other line to compare with")
	}
	above := func(c runs.Claim, s runs.Summary, err error) runs.Claim { return verdict.Above(c, s, err, 0) }
	var worst runs.Claim
	for n, other := range others {
		one := compare(r, i, c.Family(len(others)), first, other, above)
		if !one.Lo.Valid() {
			return one
		}
		if n == 0 || worse(one, worst) {
			worst = one
		}
	}
	if len(others) > 1 {
		worst.Note += fmt.Sprintf("; the least clear of %d", len(others))
	}
	return worst
}

// worse reports whether a comparison speaks more against its claim than another.
func worse(a, b runs.Claim) bool {
	if fails := a.Holds == runs.Fails; fails != (b.Holds == runs.Fails) {
		return fails
	}
	return a.Lo < b.Lo
}

// order begins a claim about lines on a data set, which is made of every column.
func order(r *table2, i int, rows, says string) lab.Claim {
	return r.Claim("[%s] %s: %s, percentage points", rows, lookupSets[i].title, says).From("Table 2 and Section 4.4")
}

// compare judges the difference of two lines, at a confidence that allows for all columns: searches by seed, and runs
// of methods that query the table as independent samples.
func compare(
	r *table2, i int, c lab.Claim, a, b line, judge func(runs.Claim, runs.Summary, error) runs.Claim,
) runs.Claim {
	if a.paper.first > 0 && b.paper.first > 0 {
		c = c.Says(a.paper.accuracy[i].mean - b.paper.accuracy[i].mean)
	}
	if r.Params.Preset == "quick" && isTabular(a) != isTabular(b) {
		return c.NotRun(small)
	}
	for _, l := range []line{a, b} {
		if len(l.accuracy[i]) == 0 {
			return c.NotRun("%s: %s", l.title, l.why(i))
		}
	}
	c = c.Noting("ours is %s less %s", a.title, b.title)
	confidence := c.Family(len(lookupSets)).Confidence
	if isTabular(a) || isTabular(b) {
		s, err := runs.WelchDiff(a.accuracy[i], b.accuracy[i], confidence)
		return judge(c.Claim, s, err)
	}
	return r.Params.judged(c.Claim, a.accuracy[i], b.accuracy[i], func(c runs.Claim) runs.Claim {
		s, err := runs.MeanDiff(a.accuracy[i], b.accuracy[i], confidence)
		return judge(c, s, err)
	})
}
