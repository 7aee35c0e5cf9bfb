package verdict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/nasml/lab/nasml/runs"
)

// Difference is how far the runs of two methods, a and b, are apart.
type Difference struct {
	runs.Summary // of a − b

	// Detectable is the smallest true difference that so many runs, as scattered as these, tell from 0 in at least
	// Power of all repetitions. It is 0 where the differences do not scatter at all.
	Detectable float64

	of   string // the runs in words: "5 seeds", "5 and 500 runs"
	test string // "paired", "Welch"
}

// Power is how often a difference of [Difference].Detectable is seen.
const Power = 0.8

// Paired compares runs with the same seeds, pair by pair, with Student's interval of the mean of aᵢ − bᵢ, see
// [runs.MeanDiff]. It returns an error if the lengths differ or if there are fewer than two pairs.
func Paired(a, b []float64, confidence float64) (Difference, error) {
	s, err := runs.MeanDiff(a, b, confidence)
	if err != nil {
		return Difference{}, err
	}
	if s.N < 2 {
		return Difference{}, fmt.Errorf("a difference of one seed has no interval: %w", errFew)
	}
	nu := float64(s.N - 1)
	least := detectable(float64(s.Std)/math.Sqrt(nu+1), nu, confidence)
	return Difference{s, least, fmt.Sprintf("%d seeds", s.N), "paired"}, nil
}

// Unpaired compares independent samples, by the interval of Welch, see [runs.WelchDiff]. It
// is an error if either has fewer than two runs.
func Unpaired(a, b []float64, confidence float64) (Difference, error) {
	s, err := runs.WelchDiff(a, b, confidence)
	if err != nil {
		return Difference{}, err
	}
	half, of := float64(s.Hi)-s.Mean, fmt.Sprintf("%d and %d runs", len(a), len(b))
	if half == 0 {
		return Difference{s, 0, of, "Welch"}, nil
	}
	first, _ := runs.Summarize(a, confidence)
	second, _ := runs.Summarize(b, confidence)
	u := math.Pow(float64(first.Std), 2) / float64(first.N)
	v := math.Pow(float64(second.Std), 2) / float64(second.N)
	nu := (u + v) * (u + v) / (u*u/float64(first.N-1) + v*v/float64(second.N-1))
	return Difference{s, detectable(float64(s.Std), nu, confidence), of, "Welch"}, nil
}

// detectable is the δ at which Student's test of a mean with standard error se and ν degrees
// of freedom has [Power]: its statistic is then (Z + δ/se)/√(V/ν) with V of χ²_ν, so that
//
//	P(|t| > t*) = ∫₀¹ Φ(δ/se − t* √(Q(u)/ν)) + Φ(−δ/se − t* √(Q(u)/ν)) du ,
//
// where Q are the quantiles of χ²_ν and t* is Student's at (1 + confidence)/2.
func detectable(se, nu, confidence float64) float64 {
	critical := distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile((1 + confidence) / 2)
	scale := distuv.ChiSquared{K: nu}
	const points = 100
	u, weight := make([]float64, points), make([]float64, points)
	quad.Legendre{}.FixedLocations(u, weight, 0, 1)
	for i := range u {
		u[i] = critical * math.Sqrt(scale.Quantile(u[i])/nu) // what the mean over se has to exceed
	}
	lo, hi := 0., 10+3*critical
	for range 60 {
		delta, power := (lo+hi)/2, 0.
		for i := range u {
			power += weight[i] * (distuv.UnitNormal.CDF(delta-u[i]) + distuv.UnitNormal.CDF(-delta-u[i]))
		}
		if power < Power {
			lo = delta
		} else {
			hi = delta
		}
	}
	return se * hi
}

// Words says which method is ahead, or that these runs do not tell, and what so many runs cannot see: "EG with momentum
// is 1.3 points above DARTS (95 % CI 0.4 to 2.2; 5 seeds, paired). …".
func (d Difference) Words(a, b, unit string) string {
	interval := fmt.Sprintf("(%.3g %% CI %s to %s; %s, %s)", 100*d.Confidence, short(float64(d.Lo)),
		short(float64(d.Hi)), d.of, d.test)
	switch {
	case d.Lo > 0:
		return fmt.Sprintf("%s is %s %s above %s %s. %s", a, short(d.Mean), unit, b, interval, d.blind(unit))
	case d.Hi < 0:
		return fmt.Sprintf("%s is %s %s below %s %s. %s", a, short(-d.Mean), unit, b, interval, d.blind(unit))
	}
	return fmt.Sprintf("%s and %s cannot be told apart: the difference is %s %s %s. %s", a, b, short(d.Mean), unit,
		interval, d.blind(unit))
}

func (d Difference) blind(unit string) string {
	if d.Detectable == 0 {
		return "All runs differ by the same amount."
	}
	return fmt.Sprintf("With %s a difference below %s %s cannot be seen (power %.0f %%).", d.of, short(d.Detectable),
		unit, 100*Power)
}

// short is a number with two digits behind the point or, where it is smaller than that, with two digits.
func short(x float64) string {
	if x != 0 && math.Abs(x) < 0.1 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// Ahead judges that a is above b by their difference, and says in the claim's note what [Difference.Words] does.
func Ahead(c runs.Claim, d Difference, err error, a, b, unit string) runs.Claim {
	if err != nil {
		return NotRun(c, err.Error())
	}
	c = Above(c, d.Summary, nil, 0)
	c.Note = d.Words(a, b, unit)
	return c
}

// Distance is how far a curve is from a published one, at the points of both.
type Distance struct {
	Points int
	Mean   float64 // of |yᵢ − pᵢ|
	Most   float64 // the largest |yᵢ − pᵢ|
	At     float64 // x of the largest
	Signed float64 // mean of yᵢ − pᵢ: above 0 where ours lies above
}

// CurveDistance compares a curve with a published one, point by point: y[i] and published[i] are at x[i]. Of curves of
// different length the common beginning counts; if there is none, Points is 0.
func CurveDistance(x, y, published []float64) Distance {
	var d Distance
	for i := range min(len(x), len(y), len(published)) {
		difference := y[i] - published[i]
		d.Points++
		d.Mean += (math.Abs(difference) - d.Mean) / float64(d.Points)
		d.Signed += (difference - d.Signed) / float64(d.Points)
		if math.Abs(difference) > d.Most || i == 0 {
			d.Most, d.At = math.Abs(difference), x[i]
		}
	}
	return d
}

// Claim puts the mean distance into a claim of ours, and says where the curves are
// farthest apart. It is a measure and has no verdict.
func (d Distance) Claim(c runs.Claim, axis string) runs.Claim {
	c.Paper = 0
	if d.Points == 0 {
		return NotRun(c, "the curves have no point in common")
	}
	c.Ours = runs.Number(d.Mean)
	c.Note = joined(fmt.Sprintf("a measure without a verdict: the mean of |ours − the paper's| over %d points (that "+
		"of ours − the paper's is %.3g); farthest at %s %g, by %.3g", d.Points, d.Signed, axis, d.At, d.Most), c.Note)
	return c
}

// MeanCurve is the mean of curves over their common beginning.
func MeanCurve(curves [][]float64) []float64 {
	if len(curves) == 0 {
		return nil
	}
	n := len(curves[0])
	for _, y := range curves {
		n = min(n, len(y))
	}
	mean := make([]float64, n)
	for _, y := range curves {
		for i := range mean {
			mean[i] += y[i] / float64(len(curves))
		}
	}
	return mean
}

// Printed is a mean as a paper prints it: with its standard deviation over so many
// runs, and the unit of its last digit.
type Printed struct {
	Mean, Std float64
	Runs      int
	Digit     float64
}

func (p Printed) summary() runs.Summary {
	return runs.Summary{N: p.Runs, Mean: p.Mean, Std: runs.Number(p.Std), Divisor: runs.DivisorSample, Of: "mean"}
}

// SameMean judges that the mean of our runs is the one that a paper prints. The
// difference of two means over runs is known to its standard error and no better,
//
//	|x̄ − X̄| ≤ t_{ν,(1+c)/2} · √(s²/n + S²/N) + digit/2 ,
//
// with Welch's ν: beyond it the claim fails. Within it the claim holds where that
// bound is below the deviation of single runs, the paper's or else ours; where it is
// not, too few runs were made to tell anything, and the claim is inconclusive.
func SameMean(c runs.Claim, ours runs.Summary, err error, paper Printed, confidence float64) runs.Claim {
	c.Paper = runs.Number(paper.Mean)
	if err != nil {
		return NotRun(c, err.Error())
	}
	c = Measured(c, ours)
	d, err := ours.Minus(paper.summary(), confidence)
	if err != nil {
		c.Note = joined("inconclusive: "+err.Error(), c.Note)
		return c
	}
	bound := (float64(d.Hi)-float64(d.Lo))/2 + paper.Digit/2
	c.Tolerance = runs.Number(bound)
	c.Allowed = fmt.Sprintf("mean %s, the %.3g %% CI of the difference", runs.WithinOf(paper.Mean, bound),
		100*confidence)
	c.Note = joined(fmt.Sprintf("%d runs, standard deviation %v; the paper's is %v over %d", ours.N, ours.Std,
		paper.Std, paper.Runs), c.Note)
	if d.Std > 0 {
		c.Note += fmt.Sprintf("; %.1f standard errors apart", math.Abs(d.Mean)/float64(d.Std))
	}
	switch single := max(paper.Std, float64(ours.Std), paper.Digit); {
	case math.Abs(d.Mean) > bound:
		c.Holds = runs.Fails
	case bound <= single:
		c.Holds = runs.Holds
	default:
		c.Note = joined("inconclusive: too few runs to tell the means apart", c.Note)
	}
	return c
}

// Apart is how many standard errors our mean and a printed one lie apart, and the number that n such comparisons
// together do not exceed at a confidence where all means are the same.
func Apart(ours runs.Summary, paper Printed, confidence float64, n int) (errors, most float64, err error) {
	d, err := ours.Minus(paper.summary(), confidence)
	if err != nil {
		return 0, 0, err
	}
	if !(d.Std > 0) {
		return 0, 0, fmt.Errorf("neither ours nor the paper's runs differ, so there is no standard error")
	}
	beyond := max(0, math.Abs(d.Mean)-paper.Digit/2)
	return beyond / float64(d.Std), distuv.UnitNormal.Quantile((1 + Family(confidence, n)) / 2), nil
}

// Descending judges that the means of independent samples fall from one to the next, as a table's order says: the
// lowest interval of the steps, at the confidence of a [Family] of them, has to lie above 0.
func Descending(c runs.Claim, names []string, samples [][]float64, confidence float64) runs.Claim {
	c.Paper = 0
	if len(samples) < 2 || len(names) != len(samples) {
		return NotRun(c, fmt.Sprintf("%d samples, expected two or more", len(samples)))
	}
	var least runs.Summary
	steps := ""
	for i := range samples[1:] {
		s, err := runs.WelchDiff(samples[i], samples[i+1], Family(confidence, len(samples)-1))
		if err != nil {
			return NotRun(c, fmt.Sprintf("%s and %s: %v", names[i], names[i+1], err))
		}
		steps = joined(steps, fmt.Sprintf("%s less %s %.3g [%.3g, %.3g]", names[i], names[i+1], s.Mean, s.Lo, s.Hi))
		if i == 0 || s.Lo < least.Lo {
			least = s
		}
	}
	c.Note = joined("ours is the step with the lowest interval; "+steps, c.Note)
	return Above(c, least, nil, 0)
}
