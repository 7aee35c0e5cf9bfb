package khodak2020

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// strong is what we call a strong rank correlation; the paper gives no number.
const strong = 0.5

// judgeSignals judges what the paper says of Figure 1, task by task: a strong positive
// correlation and a stronger one at more features, of all maps and of those above
// chance, because the maps that guess are a cluster that makes a correlation by
// itself; and that the shared weights are much better under the best maps. It also
// says what a shared solve costs.
func judgeSignals(r *figure1) []runs.Claim {
	var claims []runs.Claim
	for _, task := range r.Params.Tasks {
		for _, maps := range []struct{ series, which string }{{"shared", ""}, {"above", ", maps above chance"}} {
			claims = append(claims,
				judgeSignal(r, task, maps.series, maps.which), judgeDims(r, task, maps.series, maps.which))
		}
		claims = append(claims, judgeBest(r, task), judgeCost(r, task, "seconds", "seconds"),
			judgeCost(r, task, "madds", "multiply-adds"))
	}
	return claims
}

// ends are the first and the last dimension.
func (p Figure1Params) ends() (first, last int) { return p.Dims[0], p.Dims[len(p.Dims)-1] }

func judgeSignal(r *figure1, task, series, which string) runs.Claim {
	_, last := r.Params.ends()
	c := taskClaim(r, task, "[figure1-correlation abstract-signal] strong rank correlation, at least %v, at d = %d%s",
		strong, last, which).Says(strong).Noting("the paper prints no number: the border is ours; ours is Spearman's "+
		"ρ on the whole validation set, with an interval over seeds on Fisher's scale%s",
		guessing(r, task, last, series))
	return c.Of(verdict.Correlations(present(correlations(r, task, last, series)), c.Confidence)).AtLeast(strong)
}

// guessing says, for those above chance, how many maps they are.
func guessing(r *figure1, task string, d int, series string) string {
	if series != "above" {
		return ""
	}
	border := examplesOf(r, task).chance()
	counts := present(bySeed(signalRecords(r, task, d), func(r *runs.Record) float64 {
		_, alone := aboveChance(r, border)
		return float64(len(alone))
	}))
	if len(counts) == 0 {
		return ""
	}
	return fmt.Sprintf("; %.0f to %.0f of %d maps are above %.3f by themselves", slices.Min(counts), slices.Max(counts),
		r.Params.Configs, border)
}

func judgeDims(r *figure1, task, series, which string) runs.Claim {
	first, last := r.Params.ends()
	more, fewer := completePairs(correlations(r, task, last, series), correlations(r, task, first, series))
	note := "ours is the difference of atanh ρ, Fisher's scale, paired by seed"
	if len(more) > 0 {
		note += fmt.Sprintf("; mean ρ %.3f and %.3f", stat.Mean(more, nil), stat.Mean(fewer, nil))
	}
	c := taskClaim(r, task, "own: stronger correlation at d = %d than at d = %d%s", last, first, which)
	c.Note = note
	after, err := verdict.Fisher(more)
	before, also := verdict.Fisher(fewer)
	if err := errors.Join(err, also); err != nil {
		return c.NotRun("%v", err)
	}
	return greater(c, after, before)
}

// judgeBest compares, with shared weights, the maps of the upper and of the
// lower half by standalone accuracy.
func judgeBest(r *figure1, task string) runs.Claim {
	_, last := r.Params.ends()
	half := func(upper bool) []float64 {
		return bySeed(signalRecords(r, task, last), func(record *runs.Record) float64 {
			order := make([]int, len(record.Series["alone"]))
			floats.ArgsortStable(slices.Clone(record.Series["alone"]), order)
			if upper {
				slices.Reverse(order)
			}
			sum, n := 0.0, len(order)/2
			for _, i := range order[:n] {
				sum += record.Series["shared"][i] / float64(n)
			}
			return sum
		})
	}
	c := taskClaim(r, task, "[alg1-best-maps] shared weights classify better under the better half of the maps")
	c.Note = "ours is the difference of the mean accuracies with shared weights of the halves by standalone accuracy"
	return greater(c, half(true), half(false))
}

// judgeCost compares a shared solve with the mean standalone one.
func judgeCost(r *figure1, task, value, unit string) runs.Claim {
	_, last := r.Params.ends()
	ratios := bySeed(signalRecords(r, task, last), func(r *runs.Record) float64 {
		return r.Values[value+"_shared"] / r.Values[value+"_alone"]
	})
	const slower = "[wallclock] a shared solve is slower than the average standalone solve, ratio of %s"
	c := taskClaim(r, task, slower, unit).Says(1).
		Noting("geometric mean over the seeds; times of the machine that computed the trials")
	return c.Of(verdict.Ratios(present(ratios), c.Confidence)).AtLeast(1)
}

// correlations is Spearman's ρ between standalone accuracy and a series, for
// every seed of a dimension: NaN where one of them is constant. The series "above"
// is "shared" of the maps that are above chance by themselves.
func correlations(r *figure1, task string, d int, series string) []float64 {
	border := examplesOf(r, task).chance()
	return bySeed(signalRecords(r, task, d), func(r *runs.Record) float64 {
		x, y := r.Series[series], r.Series["alone"]
		if series == "above" {
			x, y = aboveChance(r, border)
		}
		rho, err := rank.SpearmanRho(x, y)
		if err != nil {
			return math.NaN()
		}
		return rho
	})
}

// aboveChance are the accuracies with shared weights and alone of the maps that by
// themselves do better than guessing.
func aboveChance(r *runs.Record, border float64) (shared, alone []float64) {
	for i, a := range r.Series["alone"] {
		if a > border {
			shared, alone = append(shared, r.Series["shared"][i]), append(alone, a)
		}
	}
	return shared, alone
}
