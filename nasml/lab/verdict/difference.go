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

	// Detectable is the smallest true difference that so many runs, as scattered as these,
	// tell from 0 in at least Power of all repetitions. It is 0 where the differences do
	// not scatter at all.
	Detectable float64

	of   string // the runs in words: "5 seeds", "5 and 500 runs"
	test string // "paired", "Welch"
}

// Power is how often a difference of [Difference].Detectable is seen.
const Power = 0.8

// Paired compares runs with the same seeds, pair by pair, with Student's interval of the
// mean of aᵢ − bᵢ, see [runs.MeanDiff]. It returns an error if the lengths differ or if
// there are fewer than two pairs.
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

// Words says which method is ahead, or that these runs do not tell, and what so many runs
// cannot see: "EG with momentum is 1.3 points above DARTS (95 % CI 0.4 to 2.2; 5 seeds,
// paired). …".
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

// blind says what is too small to be seen.
func (d Difference) blind(unit string) string {
	if d.Detectable == 0 {
		return "All runs differ by the same amount."
	}
	return fmt.Sprintf("With %s a difference below %s %s cannot be seen (power %.0f %%).", d.of, short(d.Detectable),
		unit, 100*Power)
}

// short is a number with two digits behind the point or, where it is smaller than that,
// with two digits.
func short(x float64) string {
	if x != 0 && math.Abs(x) < 0.1 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// Ahead judges that a is above b by their difference, and says in the claim's note what
// [Difference.Words] does.
func Ahead(c runs.Claim, d Difference, err error, a, b, unit string) runs.Claim {
	if err != nil {
		return NotRun(c, err.Error())
	}
	c = Above(c, d.Summary, nil, 0)
	c.Note = d.Words(a, b, unit)
	return c
}
