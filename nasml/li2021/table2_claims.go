package li2021

import (
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/verdict"
)

// The claims of Table 2 that compare lines across its blocks, and those about search
// times. Each is written whether or not its searches have been run.

// better is the ERM search of GAEA, which the paper recommends, and earlier are the
// weight-sharing methods that the benchmark's authors had run.
const better = "gaea-darts/erm"

var earlier = []string{"rsps", "darts/benchmark", "setn", "gdas"}

// similar is how many percentage points apart "similar" and "comparable" lines may
// be; the paper gives no number.
const similar = 1

// small is why searches of the quick preset are compared with each other only.
const small = "searches at quick scale are not comparable with runs at the paper's"

// lineOf is the line of a name in a block; an empty one where there is none.
func lineOf(block []line, name string) line {
	if i := slices.IndexFunc(block, func(l line) bool { return l.name == name }); i >= 0 {
		return block[i]
	}
	return line{name: name, title: row(name).title()}
}

// directly are the lines of the bottom block, by titles that tell them from those of
// the middle one.
func directly(block []line) []line {
	out := slices.Clone(block)
	for i := range out {
		out[i].title += ", direct search"
	}
	return out
}

// but are the lines of a block without those named.
func but(block []line, names ...string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return slices.Contains(names, l.name) })
}

// only are those of a block that are named.
func only(block []line, names ...string) []line {
	return slices.DeleteFunc(slices.Clone(block), func(l line) bool { return !slices.Contains(names, l.name) })
}

// checkComparisons judges what the paper says of lines against each other.
func (r *Table2Result) checkComparisons() []runs.Claim {
	var claims []runs.Claim
	rea, best := lineOf(r.tabular, "rea"), lineOf(r.bottom, better)
	for i := range lookupSets {
		claims = append(claims,
			r.leads(fmt.Sprintf("[LI%03d] %s, direct search, above %s", 1+i, best.title, rea.title), i, best, rea),
			r.leads(fmt.Sprintf("[LI060] %s best of all methods", best.title), i, lineOf(r.middle, better),
				append(slices.Clone(r.tabular), but(r.middle, better)...)...),
			r.leads(fmt.Sprintf("[LI060] %s best of all methods, direct search", best.title), i, best,
				append(slices.Clone(r.tabular), but(r.bottom, better)...)...),
			r.leads("[LI252] "+best.title+", direct search, above every method that queries the table", i, best,
				r.tabular...),
			r.leads("[LI010] "+rea.title+" above every earlier weight-sharing method", i, rea,
				only(r.middle, earlier...)...),
			r.leads("[LI058] GDAS above every other earlier weight-sharing method", i, lineOf(r.middle, "gdas"),
				only(r.middle, earlier[:3]...)...))
	}
	claims = append(claims, r.checkOracle(0), r.checkOracle(1))
	return append(append(claims, r.checkBilevel()...), r.checkGDAS()...)
}

// checkBilevel judges where GAEA DARTS (bilevel) stands in the bottom block.
func (r *Table2Result) checkBilevel() []runs.Claim {
	bilevel, gdas := lineOf(r.bottom, "gaea-darts"), lineOf(r.bottom, "gdas")
	claims := []runs.Claim{
		r.leads("[LI251] "+gdas.title+" above "+bilevel.title+", direct search", 0, gdas, bilevel),
	}
	for i := 1; i < len(lookupSets); i++ {
		claims = append(claims,
			r.leads("[LI251] "+bilevel.title+" above "+gdas.title+", direct search", i, bilevel, gdas),
			r.leads("[LI061] "+bilevel.title+" above all methods but GAEA DARTS (ERM), direct search", i, bilevel,
				append(slices.Clone(r.tabular), but(r.bottom, better, bilevel.name)...)...),
			r.leads("[LI061] GAEA DARTS (ERM) above "+bilevel.title+", direct search", i, lineOf(r.bottom, better),
				bilevel))
	}
	return claims
}

// checkGDAS judges GAEA GDAS against GDAS as it was run here and as it was published.
func (r *Table2Result) checkGDAS() []runs.Claim {
	gaea, gdas := lineOf(r.bottom, "gaea-gdas"), lineOf(r.bottom, "gdas")
	claims := []runs.Claim{
		r.leads("[LI059] "+gaea.title+" above "+gdas.title+", direct search", 1, gaea, gdas),
	}
	for _, i := range []int{0, 2} {
		claims = append(claims, r.differ("[LI059] "+gaea.title+" similar to "+gdas.title+", direct search", i, gaea,
			gdas, func(c runs.Claim, s runs.Summary, err error) runs.Claim {
				c.Tolerance = similar
				return verdict.Within(c, s, err, -similar, similar)
			}))
	}
	for i := range lookupSets {
		published := publishedTransfer["gdas"].accuracy[i].mean
		c := verdict.Claim(fmt.Sprintf("[LI245] %s: %s comparable to the published GDAS, percentage points",
			lookupSets[i].title, gaea.title), "Li+ 2021, Appendix C.3")
		lo, hi := -float64(similar), float64(similar)
		if i == 2 {
			c.Name, lo, hi = fmt.Sprintf("%s: %s slightly below the published GDAS, percentage points",
				lookupSets[i].title, gaea.title), -2*similar, 0
		}
		c.Note = fmt.Sprintf("ours less the published %v; what comparable and slightly mean is ours", published)
		c.Paper = runs.Number(gaea.paper.accuracy[i].mean - published)
		if r.Params.Preset == "quick" {
			claims = append(claims, verdict.NotRun(c, small))
			continue
		}
		s, err := runs.Summarize(less(gaea.accuracy[i], published), r.Params.among(len(lookupSets)).Confidence)
		claims = append(claims, verdict.Within(c, s, err, lo, hi))
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

// checkOracle judges how far GAEA's best line is from the best architecture.
func (r *Table2Result) checkOracle(i int) runs.Claim {
	best, top := lineOf(r.bottom, better), r.optimal.paper.accuracy[i].mean
	c := verdict.Claim(fmt.Sprintf("[LI006] %s: %s near the best architecture, percentage points below it",
		lookupSets[i].title, best.title), "Li+ 2021, Abstract")
	c.Paper, c.Tolerance = runs.Number(top-best.paper.accuracy[i].mean), similar
	switch {
	case r.Params.Preset == "quick":
		return verdict.NotRun(c, small)
	case len(best.accuracy[i]) == 0:
		return verdict.NotRun(c, whyMissing(orNotRun(best.missing[i])))
	}
	c.Note = "near is within one percentage point, which is ours"
	s, err := runs.Summarize(less(best.accuracy[i], r.optimal.accuracy[i][0]), r.Params.among(2).Confidence)
	s.Mean, s.Lo, s.Hi = -s.Mean, -s.Hi, -s.Lo
	return verdict.AtMost(c, s, err, similar)
}

// leads judges that a line is above every one of others on a data set: by one that it
// is below, else by the one that it is least clearly above, at a confidence that
// allows for their number.
func (r *Table2Result) leads(name string, i int, first line, others ...line) runs.Claim {
	var worst *runs.Claim
	for _, other := range others {
		c := r.differ(name, i, first, other, func(c runs.Claim, s runs.Summary, err error) runs.Claim {
			return verdict.Above(c, s, err, 0)
		}, len(others))
		if !c.Lo.Valid() {
			return c
		}
		if worst == nil || worse(c, *worst) {
			worst = &c
		}
	}
	if worst == nil {
		return verdict.NotRun(r.order(name, i), "there is no other line to compare with")
	}
	if len(others) > 1 {
		worst.Note += fmt.Sprintf("; the least clear of %d", len(others))
	}
	return *worst
}

// worse says whether a comparison speaks more against its claim than another.
func worse(a, b runs.Claim) bool {
	if fails := a.Holds == runs.Fails; fails != (b.Holds == runs.Fails) {
		return fails
	}
	return a.Lo < b.Lo
}

// order begins a claim about lines on a data set.
func (r *Table2Result) order(name string, i int) runs.Claim {
	c := verdict.Claim(name+", percentage points", table2Source+" and Section 4.4")
	c.Name = lookupSets[i].title + ": " + c.Name
	return c
}

// differ compares two lines: searches by seed, and runs of methods that query the
// table as independent samples. Of is how many comparisons the claim makes; it is made
// of every column.
func (r *Table2Result) differ(name string, i int, a, b line,
	judge func(runs.Claim, runs.Summary, error) runs.Claim, of ...int) runs.Claim {
	c := r.order(name, i)
	if a.paper.first > 0 && b.paper.first > 0 {
		c.Paper = runs.Number(a.paper.accuracy[i].mean - b.paper.accuracy[i].mean)
	}
	if r.Params.Preset == "quick" && isTabular(a) != isTabular(b) {
		return verdict.NotRun(c, small)
	}
	for _, l := range []line{a, b} {
		if len(l.accuracy[i]) == 0 {
			return verdict.NotRun(c, l.title+": "+whyMissing(orNotRun(l.missing[i])))
		}
	}
	n := len(lookupSets) // columns
	if len(of) > 0 {
		n *= of[0]
	}
	confidence := verdict.Family(r.Params.Confidence, n)
	c.Note = fmt.Sprintf("ours is %s less %s", a.title, b.title)
	if isTabular(a) || isTabular(b) {
		s, err := runs.WelchDiff(a.accuracy[i], b.accuracy[i], confidence)
		return judge(c, s, err)
	}
	return r.Params.judged(c, a.accuracy[i], b.accuracy[i], func(c runs.Claim) runs.Claim {
		s, err := runs.MeanDiff(a.accuracy[i], b.accuracy[i], confidence)
		return judge(c, s, err)
	})
}

func orNotRun(why string) string {
	if why == "" {
		return "not run"
	}
	return why
}

// isTabular says whether a line is of the top block.
func isTabular(l line) bool { _, ok := publishedTabular[l.title]; return ok }

// checkOptimal compares the best architectures of the table with the paper's.
func (r *Table2Result) checkOptimal() []runs.Claim {
	var claims []runs.Claim
	for i, set := range lookupSets {
		c := verdict.Claim(fmt.Sprintf("[%s] %s: best architecture of the table, test accuracy in percent",
			r.optimal.paper.row(i), set.title), table2Source)
		c.Paper = runs.Number(r.optimal.paper.accuracy[i].mean)
		c.Note = "the paper prints two decimals"
		claims = append(claims, verdict.Exactly(c, r.optimal.accuracy[i][0], float64(c.Paper), 0.005+1e-9))
	}
	return claims
}

// checkTimes judges search times on CIFAR-10 against the paper's, which are of a
// P100: only that a search takes no longer can be asked of another machine. The
// ratios of times are judged as they are.
func (r *Table2Result) checkTimes() []runs.Claim {
	var claims []runs.Claim
	for b, block := range [][]line{r.middle, r.bottom} {
		for _, l := range block {
			if !l.printed {
				continue
			}
			c := verdict.Claim(fmt.Sprintf("[%s] %s%s: seconds of a search on CIFAR-10", l.paper.row(-1), l.title,
				[]string{"", ", direct search"}[b]), table2Source)
			c.Paper = runs.Number(l.paper.seconds)
			c.Note = "no longer than on the paper's P100"
			seconds := r.seconds(l.name)
			if len(seconds) == 0 {
				claims = append(claims, verdict.NotRun(c, whyMissing("not run")))
				continue
			}
			s, err := runs.Summarize(seconds, r.Params.among(len(r.middle)+len(r.bottom)).Confidence)
			claims = append(claims, verdict.AtMost(c, s, err, l.paper.seconds))
		}
	}
	return append(claims,
		r.checkRatio("LI179", "gaea-darts", "darts", publishedTransfer),
		r.checkRatio("LI180", better, "darts/erm", publishedTransfer),
		r.checkRatio("LI181", "gaea-gdas", "gdas", publishedDirect))
}

// seconds are those of the searches of a row.
func (r *Table2Result) seconds(name string) []float64 {
	var out []float64
	for _, f := range r.all {
		if string(f.row) == name {
			for _, record := range f.ran() {
				out = append(out, record.Seconds/float64(max(1, record.Batch)))
			}
		}
	}
	return out
}

// ratios is the number of ratios of times that are judged.
const ratios = 3

// checkRatio judges the ratio of two times by the mean of its logarithm over seeds.
func (r *Table2Result) checkRatio(id, fast, slow string, published map[row]table2Row) runs.Claim {
	c := verdict.Claim(fmt.Sprintf("[%s] search time of %s over %s", id, row(fast).title(), row(slow).title()),
		table2Source)
	ratio := published[row(fast)].seconds / published[row(slow)].seconds
	c.Paper, c.Tolerance = runs.Number(ratio), 0.1
	c.Note = "geometric mean over seeds; the paper's ratio is of its two times"
	a, b := r.seconds(fast), r.seconds(slow)
	return r.Params.judged(c, a, b, func(c runs.Claim) runs.Claim {
		s, err := runs.MeanDiff(logarithms(a), logarithms(b), r.Params.among(ratios).Confidence)
		s.Mean, s.Lo, s.Hi = math.Exp(s.Mean), exp(s.Lo), exp(s.Hi)
		return verdict.Within(c, s, err, ratio-0.1, ratio+0.1)
	})
}

func exp(x runs.Number) runs.Number { return runs.Number(math.Exp(float64(x))) }

func logarithms(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}
