// Package rank correlates the ranks of pairs, with intervals.
package rank

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/trial"
)

// Correlation is a rank correlation of pairs, in [−1, 1].
type Correlation struct {
	Estimate func(x, y []float64) (float64, error)
	// Variance is that of atanh of the estimate r over n pairs without ties, and exists for more than Pairs pairs.
	Variance func(r float64, n int) float64
	Pairs    int
}

// Correlations are the rank correlations by name, with the variances of Fieller, Hartley & Pearson (1957, Biometrika
// 44) for Kendall's and of Bonett & Wright (2000, Psychometrika 65) for Spearman's:
//
//	var atanh τ ≈ 0.437/(n−4) , var atanh ρ ≈ (1 + ρ²/2)/(n−3) .
var Correlations = map[string]Correlation{
	"kendall":  {KendallTauB, func(_ float64, n int) float64 { return 0.437 / float64(n-4) }, 4},
	"spearman": {SpearmanRho, func(r float64, n int) float64 { return (1 + r*r/2) / float64(n-3) }, 3},
}

// Association is a rank correlation with its interval.
type Association struct {
	N        int // pairs
	Estimate float64
	Lo, Hi   trial.Number // the interval, within [−1, 1]
	Warnings []string
}

// Correlate is a rank correlation with Fisher's interval,
//
//	tanh(atanh r ± z₍₁₊c₎/₂ · √var) ,
//
// at confidence c in (0, 1), which assumes that monotone functions of x and y are jointly normal. Too few pairs have no
// interval, and a warning says so; so does one of a correlation of ±1, where the interval would be a point. It is an
// error if there are not two pairs, a value is not finite or all values of one side are equal.
func Correlate(name string, x, y []float64, confidence float64) (Association, error) {
	c, err := lookup(name, confidence)
	if err != nil {
		return Association{}, err
	}
	r, err := c.Estimate(x, y)
	if err != nil {
		return Association{}, err
	}
	return Fisher(name, r, len(x), confidence)
}

// Fisher returns Correlate's interval for a correlation of n pairs.
func Fisher(name string, estimate float64, n int, confidence float64) (Association, error) {
	c, err := lookup(name, confidence)
	a := Association{N: n, Estimate: estimate, Lo: trial.None, Hi: trial.None}
	switch {
	case err != nil:
		return a, err
	case n <= c.Pairs:
		a.Warnings = append(a.Warnings, fmt.Sprintf("need > %d pairs for Fisher's interval of %s's correlation, "+
			"have %d", c.Pairs, name, n))
		return a, nil
	case math.Abs(estimate) > 1-1e-12: // but for rounding
		a.Warnings = append(a.Warnings, fmt.Sprintf("all %d pairs are ordered alike: Fisher's interval would be a "+
			"point", n))
		return a, nil
	}
	half := distuv.UnitNormal.Quantile((1+confidence)/2) * math.Sqrt(c.Variance(estimate, n))
	z := math.Atanh(estimate)
	a.Lo, a.Hi = trial.Number(math.Tanh(z-half)), trial.Number(math.Tanh(z+half))
	return a, nil
}

func lookup(name string, confidence float64) (Correlation, error) {
	c, ok := Correlations[name]
	if !ok {
		return c, fmt.Errorf("found the correlation %q, expected one of %q", name,
			slices.Sorted(maps.Keys(Correlations)))
	}
	if !(confidence > 0 && confidence < 1) {
		return c, fmt.Errorf("confidence is %v, expected a number between 0 and 1 such as 0.95", confidence)
	}
	return c, nil
}

// KendallTauB is Kendall's τ_b, the excess of concordant over discordant pairs
// of pairs, of those that are tied on neither side in a geometric mean:
//
//	τ_b = (P − Q) / √((n₀ − n₁)(n₀ − n₂)) , n₀ = n(n−1)/2 ,
//
// with n₁ and n₂ pairs tied in x and in y (Kendall 1945, Biometrika 33); without ties it is τ_a, which is what gonum's
// stat.Kendall is in n² steps; this takes n log n (Knight 1966, JASA 61). It has Correlate's errors.
func KendallTauB(x, y []float64) (float64, error) {
	if err := checkPairs(x, y); err != nil {
		return 0, err
	}
	n := len(x)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(x[i], x[j]), cmp.Compare(y[i], y[j])) })
	u, v := make([]float64, n), make([]float64, n)
	for i, k := range order {
		u[i], v[i] = x[k], y[k]
	}
	tiedX := tiedPairs(n, func(i, j int) bool { return u[i] == u[j] })
	tiedBoth := tiedPairs(n, func(i, j int) bool { return u[i] == u[j] && v[i] == v[j] })
	discordant := inversions(v, make([]float64, n)) // and sorts v
	tiedY := tiedPairs(n, func(i, j int) bool { return v[i] == v[j] })
	all := n * (n - 1) / 2
	excess := all - tiedX - tiedY + tiedBoth - 2*discordant
	return clampUnit(float64(excess) / math.Sqrt(float64(all-tiedX)) / math.Sqrt(float64(all-tiedY))), nil
}

func tiedPairs(n int, equal func(i, j int) bool) int {
	pairs, run := 0, 0
	for i := 1; i < n; i++ {
		if run++; !equal(i-1, i) {
			run = 0
		}
		pairs += run
	}
	return pairs
}

// inversions sorts v and counts the pairs in falling order.
func inversions(v, buffer []float64) int {
	if len(v) < 2 {
		return 0
	}
	half := len(v) / 2
	count := inversions(v[:half], buffer[:half]) + inversions(v[half:], buffer[half:])
	copy(buffer, v)
	left, right := buffer[:half], buffer[half:]
	for k := range v {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			v[k], left = left[0], left[1:]
		} else {
			v[k], right = right[0], right[1:]
			count += len(left)
		}
	}
	return count
}

// SpearmanRho is Spearman's ρ: Pearson's correlation of the ranks. Its errors are Correlate's.
func SpearmanRho(x, y []float64) (float64, error) {
	if err := checkPairs(x, y); err != nil {
		return 0, err
	}
	return clampUnit(stat.Correlation(Ranks(x), Ranks(y), nil)), nil
}

// Ranks are the ranks of values from 1; ties share their mean.
func Ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	ranks := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}

func clampUnit(r float64) float64 { return max(-1, min(1, r)) }

func checkPairs(x, y []float64) error {
	if len(x) != len(y) || len(x) < 2 {
		return fmt.Errorf("found %d and %d values to correlate, expected as many of both, at least 2", len(x), len(y))
	}
	for i := range x {
		if !finite(x[i]) || !finite(y[i]) {
			return fmt.Errorf("pair %d of %d is (%v, %v), expected finite numbers", i, len(x), x[i], y[i])
		}
	}
	for _, side := range [][]float64{x, y} {
		if slices.Min(side) == slices.Max(side) {
			return fmt.Errorf("all %d values of one side are %v, which has no ranks to correlate: expected two "+
				"that differ", len(side), side[0])
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
