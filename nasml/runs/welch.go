package runs

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// WelchDiff summarizes the difference of the means of independent samples, a's
// less b's: Mean is x̄ − ȳ, Std its standard error √(s²/n + S²/N), and the interval
// Student's with the degrees of freedom of Welch and Satterthwaite,
//
//	ν = (s²/n + S²/N)² / ((s²/n)²/(n−1) + (S²/N)²/(N−1)) .
//
// N is the number of all values. It is an error where either has none; where either
// has one, there is no interval.
func WelchDiff(a, b []float64, confidence float64) (Summary, error) {
	first, err := Summarize(a, confidence)
	if err != nil {
		return first, err
	}
	second, err := Summarize(b, confidence)
	if err != nil {
		return second, err
	}
	d := Summary{
		N: len(a) + len(b), Mean: first.Mean - second.Mean, Median: first.Mean - second.Mean, Divisor: DivisorSample,
		Of: "mean", Std: None, Lo: None, Hi: None, Confidence: confidence,
	}
	if first.N < 2 || second.N < 2 {
		return d, nil
	}
	u := math.Pow(float64(first.Std), 2) / float64(first.N)
	v := math.Pow(float64(second.Std), 2) / float64(second.N)
	half := 0.0
	if u+v > 0 {
		nu := (u + v) * (u + v) / (u*u/float64(first.N-1) + v*v/float64(second.N-1))
		half = distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile((1+confidence)/2) * math.Sqrt(u+v)
	}
	d.Std, d.Lo, d.Hi = Number(math.Sqrt(u+v)), Number(d.Mean-half), Number(d.Mean+half)
	return d, nil
}
