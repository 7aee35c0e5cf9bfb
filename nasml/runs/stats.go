package runs

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Divisors of a standard deviation; papers differ, so a number says its own.
const (
	DivisorSample     = "n-1" // of the unbiased variance
	DivisorPopulation = "n"   // ddof 0, NumPy's default
)

// Summary describes n independent values, usually one a seed. What does not
// exist (the deviation of one value) is [None].
type Summary struct {
	N          int      `json:"n"`
	Mean       float64  `json:"mean"`
	Median     float64  `json:"median"`
	Std        Number   `json:"std"`        // standard deviation, with Divisor
	Divisor    string   `json:"divisor"`    // "n-1" or "n"
	Of         string   `json:"of"`         // what the interval is about: "mean"
	Lo         Number   `json:"lo"`         // interval from Lo
	Hi         Number   `json:"hi"`         // to Hi
	Confidence float64  `json:"confidence"` // of the interval, at least what was asked for
	Warnings   []string `json:"warnings,omitempty"`

	values []float64
}

// Summarize describes values and gives Student's interval for their mean,
//
//	x̄ ± t₍ₙ₋₁, (1+c)/2₎ · s/√n ,
//
// at confidence c in (0, 1). One value has no interval, and a warning says so.
// It returns an error if there is no value or one is not finite.
func Summarize(xs []float64, confidence float64) (Summary, error) {
	if err := checkSample(xs, confidence); err != nil {
		return Summary{}, err
	}
	sample := benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds) // sorts
	estimate := benchmath.AssumeNormal.Summary(sample, confidence)
	s := Summary{
		N: len(xs), Mean: stat.Mean(sample.Values, nil), Median: median(sample.Values),
		Std: None, Divisor: DivisorSample,
		Of: "mean", Lo: bound(estimate.Lo), Hi: bound(estimate.Hi), Confidence: estimate.Confidence,
		values: slices.Clone(xs),
	}
	if s.N > 1 {
		s.Std = Number(stat.StdDev(sample.Values, nil))
	}
	for _, w := range append(sample.Warnings, estimate.Warnings...) {
		s.Warnings = append(s.Warnings, w.Error())
	}
	if !s.Lo.Valid() && len(s.Warnings) == 0 {
		s.Warnings = []string{fmt.Sprintf("need >= 2 samples for a confidence interval of the mean, have %d", s.N)}
	}
	if s.N > 1 && s.Std == 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the same in all %d runs", s.N))
	}
	return s, nil
}

func checkSample(xs []float64, confidence float64) error {
	if len(xs) == 0 {
		return fmt.Errorf("no values to summarize, expected at least one")
	}
	if !(confidence > 0 && confidence < 1) {
		return fmt.Errorf("confidence is %v, expected a number between 0 and 1 such as 0.95", confidence)
	}
	for i, x := range xs {
		if !finite(x) {
			return fmt.Errorf("value %d of %d is %v, expected a finite number", i, len(xs), x)
		}
	}
	return nil
}

func bound(x float64) Number {
	if !finite(x) {
		return None
	}
	return Number(x)
}

// median is the middle of sorted values, or the mean of the two in the middle.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// StdPopulation is the summary with its standard deviation by divisor n, as in
// papers that used NumPy's default. The deviation of one value is then 0.
func (s Summary) StdPopulation() Summary {
	if s.Divisor == DivisorPopulation {
		return s
	}
	s.Divisor = DivisorPopulation
	if s.N == 1 {
		s.Std = 0
	}
	s.Std *= Number(math.Sqrt(float64(s.N-1) / float64(s.N)))
	return s
}

// Within is the summary with an interval that ends where the quantity does, from lo to hi: errors and shares in [0, 1],
// distances and losses in [0, ∞). The truth lies there, so that the interval covers it as often as before.
func (s Summary) Within(lo, hi float64) Summary {
	if s.Lo.Valid() && s.Hi.Valid() {
		s.Lo, s.Hi = Number(min(max(float64(s.Lo), lo), hi)), Number(max(min(float64(s.Hi), hi), lo))
	}
	return s
}

// Runs are the summarized values, in their order.
func (s Summary) Runs() []float64 { return s.values }

// Percent is the summary of shares in percent.
func (s Summary) Percent() Summary {
	s.Mean, s.Median, s.Std, s.Lo, s.Hi = 100*s.Mean, 100*s.Median, 100*s.Std, 100*s.Lo, 100*s.Hi
	s.values = slices.Clone(s.values)
	floats.Scale(100, s.values)
	return s
}

// String is the mean with its deviation and interval, for a line of text.
func (s Summary) String() string {
	text := fmt.Sprintf("%.4g, std %v (divisor %s), n = %d", s.Mean, s.Std, s.Divisor, s.N)
	if s.Lo.Valid() && s.Hi.Valid() {
		text += fmt.Sprintf(", %.4g %% interval of the %s [%v, %v]", 100*s.Confidence, s.Of, s.Lo, s.Hi)
	}
	return text
}

// MeanDiff summarizes the paired differences aᵢ − bᵢ: the same seed in both, so that what the seed does to both
// cancels. It returns an error if the lengths differ.
func MeanDiff(a, b []float64, confidence float64) (Summary, error) {
	if len(a) != len(b) {
		return Summary{}, fmt.Errorf("paired difference of %d and %d values, expected one of each for every seed",
			len(a), len(b))
	}
	d := make([]float64, len(a))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return Summarize(d, confidence)
}

// WelchDiff summarizes the difference of the means of independent samples, a's less b's: Mean is x̄ − ȳ, Std its
// standard error √(s²/n + S²/N), and the interval Student's with the degrees of freedom of Welch and Satterthwaite,
//
//	ν = (s²/n + S²/N)² / ((s²/n)²/(n−1) + (S²/N)²/(N−1)) .
//
// N is the number of all values. It returns an error if either has fewer than two.
func WelchDiff(a, b []float64, confidence float64) (Summary, error) {
	first, err := Summarize(a, confidence)
	if err != nil {
		return first, err
	}
	second, err := Summarize(b, confidence)
	if err != nil {
		return second, err
	}
	return first.Minus(second, confidence)
}

// Minus is [WelchDiff] of samples of which only number, mean and deviation are known, as of those in a paper.
func (s Summary) Minus(other Summary, confidence float64) (Summary, error) {
	if s.N < 2 || other.N < 2 {
		return Summary{}, fmt.Errorf("a difference of the means of %d and %d values has no interval, expected two or "+
			"more of each", s.N, other.N)
	}
	if !(confidence > 0 && confidence < 1) {
		return Summary{}, fmt.Errorf("confidence is %v, expected a number between 0 and 1 such as 0.95", confidence)
	}
	u := math.Pow(float64(s.Std), 2) / float64(s.N)
	v := math.Pow(float64(other.Std), 2) / float64(other.N)
	d := Summary{
		N: s.N + other.N, Mean: s.Mean - other.Mean, Std: Number(math.Sqrt(u + v)), Divisor: DivisorSample,
		Of: "mean", Confidence: confidence,
	}
	d.Median = d.Mean
	half := 0.0
	if u+v > 0 {
		nu := (u + v) * (u + v) / (u*u/float64(s.N-1) + v*v/float64(other.N-1))
		half = distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile((1+confidence)/2) * float64(d.Std)
	}
	d.Lo, d.Hi = Number(d.Mean-half), Number(d.Mean+half)
	return d, nil
}

// Bounds returns the mean and the ends of the interval, NaN if there is none, as package plots draws them. Bands and
// bars are what this returns; verdicts read Lo and Hi. To draw another interval, change it here, and its name in
// captions in lab.Interval. Shares and means of logarithms have their own.
func (s Summary) Bounds() (y, lo, hi float64) { return s.Mean, float64(s.Lo), float64(s.Hi) }

// Exp turns the mean of logarithms into a geometric mean, or a factor, with its interval. Std remains the logarithms'.
func (s Summary) Exp() Summary {
	exp := func(x Number) Number { return Number(math.Exp(float64(x))) }
	s.Mean, s.Lo, s.Hi = math.Exp(s.Mean), exp(s.Lo), exp(s.Hi)
	return s
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
