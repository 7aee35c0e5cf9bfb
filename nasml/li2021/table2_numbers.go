package li2021

import (
	"math"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// table2Numbers asks, of searches at the paper's scale, for the paper's means and times.
var table2Numbers = lab.Question[Table2Params, line]{
	Name: "numbers",
	Claims: func(r *table2) []runs.Claim {
		if r.Params.Preset == "quick" {
			return nil
		}
		direct := r.Part("bottom").Trials()
		for i := range direct { // whose titles are the middle block's
			direct[i].title += ", direct search"
		}
		lines := append(r.Part("middle").Trials(), direct...)
		return append(append(judgeMeans(r, lines, searchRuns), judgeTimes(r, lines)...),
			judgeRatio(r, "LI179", "gaea-darts", "darts", publishedTransfer),
			judgeRatio(r, "LI180", best201, "darts/erm", publishedTransfer),
			judgeRatio(r, "LI181", "gaea-gdas", "gdas", publishedDirect))
	},
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

// judgeMeans judges whether the means of lines are those that the paper prints,
// over so many runs, at a confidence that allows for the number of these claims.
func judgeMeans(r *table2, lines []line, paperRuns int) (claims []runs.Claim) {
	for _, l := range lines {
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
			claims = append(claims, verdict.SameMean(c.Claim, s, err, l.paper.accuracy[i].printed(paperRuns),
				verdict.Family(c.Confidence, len(lines)*len(lookupSets))))
		}
	}
	return claims
}

// judgeTimes judges search times on CIFAR-10 against the paper's, which are of a
// P100: only that a search takes no longer can be asked of another machine. The
// ratios of times are judged as they are.
func judgeTimes(r *table2, lines []line) (claims []runs.Claim) {
	for _, l := range lines {
		if !l.printed {
			continue
		}
		c := r.Claim("[%s] %s: seconds of a search on CIFAR-10", l.paper.row(-1), l.title).Says(l.paper.seconds).
			Noting("no longer than on the paper's P100").Family(len(lines))
		if len(l.seconds) == 0 {
			claims = append(claims, c.NotRun(lacking))
			continue
		}
		s, err := runs.Summarize(l.seconds, c.Confidence)
		claims = append(claims, c.Of(s, err).AtMost(l.paper.seconds))
	}
	return claims
}

// judgeRatio judges one of three ratios of times by the mean of its logarithm over seeds.
func judgeRatio(r *table2, rows string, fast, slow row, published map[row]table2Row) runs.Claim {
	ratio := published[fast].seconds / published[slow].seconds
	c := r.Claim("[%s] search time of %s over %s", rows, fast.title(), slow.title()).Says(ratio).Family(3).
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
