package li2021

import (
	"reflect"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/study"
)

// judgeUncleared judges, seed by seed, the differences in the final entropies of operations, inputs and output, in the
// entropy lost by the first epoch that moves θ, and in the mean regret. The paper makes no such claim.
func judgeUncleared(r *uncleared) []runs.Claim {
	var claims []runs.Claim
	var alike [][2]found
	for _, pair := range unclearedPairs(r) {
		for _, part := range oneShotParts {
			claims = append(claims, judgeLastEntropy(r, pair[0], pair[1], part))
		}
		claims = append(claims, judgeMeanRegret(r, pair[0], pair[1]))
		if differInTheGradient(pair) {
			alike = append(alike, pair)
		}
	}
	for _, pair := range alike {
		for _, part := range oneShotParts {
			claims = append(claims, judgeFirstEpoch(r, pair[0], pair[1], part, len(alike)))
		}
	}
	return claims
}

// unclearedPairs are, on every space, a search with the gradient cleared and one without.
func unclearedPairs(r *uncleared) (pairs [][2]found) {
	all := r.Part(searchPart).Trials()
	for _, space := range r.Params.Spaces {
		for i, name := range r.Params.Uncleared {
			base, _ := rowIn(all, oneShotRow(r.Params.Cleared[i], space))
			f, _ := rowIn(all, oneShotRow(name, space))
			pairs = append(pairs, [2]found{base, f})
		}
	}
	return pairs
}

// differInTheGradient reports whether a pair differs in nothing else, so that searches of one seed have the same
// weights when θ begins to move.
func differInTheGradient(pair [2]found) bool {
	same := pair[1].settings
	same.Bilevel.Uncleared = pair[0].settings.Bilevel.Uncleared
	return reflect.DeepEqual(same, pair[0].settings)
}

const onUncleared = "ours, on liamcli/nasbench-1shot1@e369bd7, which Li+ 2021, Section 4.3 and Figures 1 and 2 are from"

// judgeFirstEpoch judges the factor by which more entropy is lost in the first epoch that moves θ, for one of a number
// of pairs. A stale gradient doubles the first step, or more after a warm-up. From uniform θ the lost entropy grows
// with the square of the step, so factors are averaged on a log scale (chosen after a trial of ten epochs, whose
// differences were skew).
func judgeFirstEpoch(r *uncleared, base, f found, part string, pairs int) runs.Claim {
	c := r.Claim("own: %s: more entropy of %s is lost in the first epoch that moves θ, factor, %s",
		spaceTitle(base.row.space()), part, f.row.title()).From(onUncleared).Says(1).Family(pairs).
		Noting("ours is what is lost in parts of what %s loses, over seeds; both begin that epoch alike",
			base.row.title())
	a, b := f.lostFirst(part), base.lostFirst(part)
	return r.Params.judged(c.Claim, a, b, func(runs.Claim) runs.Claim {
		ratios := make([]float64, len(a))
		for i := range a {
			ratios[i] = a[i] / b[i]
		}
		return c.Of(verdict.Ratios(ratios, c.Confidence)).Above(1)
	})
}

// lostFirst is the entropy of a part of θ lost in the first epoch after the warm-up, for each finished search.
func (f found) lostFirst(part string) []float64 {
	warmup := f.settings.Bilevel.Warmup
	lost, after := f.entropyAfter(warmup, part), f.entropyAfter(warmup+1, part)
	for i := range lost {
		lost[i] -= after[i]
	}
	return lost
}

// entropyAfter is the entropy of a part of θ after an epoch, of each finished search.
func (f found) entropyAfter(epoch int, part string) []float64 {
	return study.Map(f.finished(), func(r *runs.Record) float64 {
		x := f.entropyOf(r, part)
		return x[min(epoch, len(x)-1)]
	})
}

// judgeLastEntropy judges that the final entropy differs.
func judgeLastEntropy(r *uncleared, base, f found, part string) runs.Claim {
	c := r.Claim("own: %s: entropy of %s at the end is lower, %s", spaceTitle(base.row.space()), part, f.row.title()).
		From(onUncleared).Says(0).Noting("ours is the difference from %s over seeds, nats", base.row.title())
	end := f.settings.Epochs
	return r.Params.below(c.Family(r.Params.pairs()), f.entropyAfter(end, part), base.entropyAfter(end, part))
}

// judgeMeanRegret judges that the regret differs.
func judgeMeanRegret(r *uncleared, base, f found) runs.Claim {
	c := r.Claim("own: %s: mean regret is higher, %s", spaceTitle(base.row.space()), f.row.title()).
		From(onUncleared).Says(0).Family(r.Params.pairs()).
		Noting("ours is the difference from %s over seeds, of the means over the epochs whose cell the table has",
			base.row.title())
	x, y := pairsOf(f.meanRegrets(), base.meanRegrets())
	if len(x) == 0 {
		return c.NotRun("no pair of searches has a cell in a table that is there")
	}
	return verdict.Greater(c.Claim, x, y, c.Confidence)
}

// pairs is the number of pairs of searches, each of which gets every question.
func (p UnclearedParams) pairs() int { return len(p.Spaces) * len(p.Uncleared) }
