package verdict

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/runs"
)

// Slope is the exponent of a power law, the slope of log y over log x by least squares. It returns an error if there
// are fewer than two different x, or if a number is not positive and has no logarithm.
func Slope(x, y []float64) (float64, error) {
	if len(x) < 2 || len(x) != len(y) {
		return 0, fmt.Errorf("a slope needs two points or more, there are %d x and %d y", len(x), len(y))
	}
	lx, ly := make([]float64, len(x)), make([]float64, len(y))
	for i := range x {
		if !(x[i] > 0 && y[i] > 0) || math.IsInf(x[i]+y[i], 1) {
			return 0, fmt.Errorf("the point (%v, %v) has no logarithm, so there is no slope", x[i], y[i])
		}
		lx[i], ly[i] = math.Log(x[i]), math.Log(y[i])
	}
	_, slope := stat.LinearRegression(lx, ly, nil, false)
	if math.IsNaN(slope) {
		return 0, errors.New("all points have the same x, so there is no slope")
	}
	return slope, nil
}

// Slopes summarizes the slopes of curves over x, one curve a seed: Student's
// interval over seeds. It returns an error if a curve has no slope.
func Slopes(x []float64, curves [][]float64, confidence float64) (runs.Summary, error) {
	each := make([]float64, len(curves))
	for i, y := range curves {
		var err error
		if each[i], err = Slope(x, y); err != nil {
			return runs.Summary{}, fmt.Errorf("curve %d of %d: %w", i+1, len(curves), err)
		}
	}
	return runs.Summarize(each, confidence)
}

// SlopeOfMeans summarizes the slope of means over x: curves[seed][point] are averaged over seeds, which a rate of
// expectations speaks of, and the interval is the jackknife's.
func SlopeOfMeans(x []float64, curves [][]float64, confidence float64) (runs.Summary, error) {
	return Jackknife(curves, confidence, func(means []float64) (float64, error) { return Slope(x, means) })
}

// Jackknife summarizes a statistic f of means over seeds, rows[seed][point]: its
// mean and interval are those of the pseudovalues
//
//	n·f(all) − (n−1)·f(all but seed j),   j = 1, …, n
//
// (Tukey 1958). It returns an error if there are fewer than two seeds or if the
// rows differ in length, and where f returns one.
func Jackknife(rows [][]float64, confidence float64, f func(means []float64) (float64, error)) (runs.Summary, error) {
	n := len(rows)
	if n < 2 {
		return runs.Summary{}, errFew
	}
	sums := make([]float64, len(rows[0]))
	for j, row := range rows {
		if len(row) != len(sums) {
			return runs.Summary{}, fmt.Errorf("seed %d has %d points, the first has %d", j, len(row), len(sums))
		}
		for i, v := range row {
			sums[i] += v
		}
	}
	meansWithout := func(row []float64, count int) []float64 {
		means := make([]float64, len(sums))
		for i := range sums {
			means[i] = sums[i]
			if row != nil {
				means[i] -= row[i]
			}
			means[i] /= float64(count)
		}
		return means
	}
	whole, err := f(meansWithout(nil, n))
	if err != nil {
		return runs.Summary{}, err
	}
	pseudo := make([]float64, n)
	for j, row := range rows {
		part, err := f(meansWithout(row, n-1))
		if err != nil {
			return runs.Summary{}, fmt.Errorf("without seed %d: %w", j, err)
		}
		pseudo[j] = float64(n)*whole - float64(n-1)*part
	}
	return runs.Summarize(pseudo, confidence)
}

// PooledSlope is the common exponent of power laws with constants of their own, y[i] over x[i]:
//
//	Σᵢⱼ (log xᵢⱼ − mean)(log yᵢⱼ − mean) / Σᵢⱼ (log xᵢⱼ − mean)² ,
//
// means within i. It returns an error if no x differ, or if a number has no logarithm.
func PooledSlope(x, y [][]float64) (float64, error) {
	var sxy, sxx float64
	for i := range x {
		lx, ly := make([]float64, len(x[i])), make([]float64, len(x[i]))
		for j := range x[i] {
			lx[j], ly[j] = math.Log(x[i][j]), math.Log(y[i][j])
		}
		mx, my := stat.Mean(lx, nil), stat.Mean(ly, nil)
		for j := range lx {
			sxy += (lx[j] - mx) * (ly[j] - my)
			sxx += (lx[j] - mx) * (lx[j] - mx)
		}
	}
	if sxx == 0 || math.IsNaN(sxy) || math.IsInf(sxy, 0) {
		return 0, errors.New("a slope needs two different x, and numbers that are positive")
	}
	return sxy / sxx, nil
}

// Correlations summarizes correlations of independent seeds on Fisher's scale z = atanh ρ, where their distribution is
// nearly normal, and gives mean and interval back as correlations,
//
//	tanh(z̄ ± t_{n−1,(1+c)/2} · s_z/√n) ,
//
// which never leave (−1, 1). The deviation is that of the correlations. It is an error if one is not within (−1, 1).
func Correlations(rho []float64, confidence float64) (runs.Summary, error) {
	z, err := Fisher(rho)
	if err != nil {
		return runs.Summary{}, err
	}
	return onScale(rho, z, math.Tanh, confidence)
}

// Ratios summarizes positive ratios of independent seeds on the logarithm's scale,
// and gives geometric mean and interval back as ratios,
//
//	exp(x̄ ± t_{n−1,(1+c)/2} · s_x/√n),  x = log ratio,
//
// which are never negative, and those of the inverse ratios are the inverse ones.
// The deviation is that of the ratios. It returns an error if one is not positive.
func Ratios(ratios []float64, confidence float64) (runs.Summary, error) {
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		if !(r > 0) {
			return runs.Summary{}, fmt.Errorf("ratio %d of %d is %v, expected a positive one", i+1, len(ratios), r)
		}
		logs[i] = math.Log(r)
	}
	return onScale(ratios, logs, math.Exp, confidence)
}

// onScale summarizes values on another scale, where they are scaled, and gives mean
// and interval back by the way back. Deviation and median are those of the values.
func onScale(values, scaled []float64, back func(float64) float64, confidence float64) (runs.Summary, error) {
	plain, err := runs.Summarize(values, confidence)
	if err != nil {
		return plain, err
	}
	s, err := runs.Summarize(scaled, confidence)
	if err != nil {
		return s, err
	}
	s.Std, s.Mean, s.Median = plain.Std, back(s.Mean), plain.Median
	s.Lo, s.Hi = runs.Number(back(float64(s.Lo))), runs.Number(back(float64(s.Hi)))
	return s, nil
}

// Fisher is atanh ρ of correlations, in which differences are judged.
func Fisher(rho []float64) ([]float64, error) {
	z := make([]float64, len(rho))
	for i, r := range rho {
		if !(math.Abs(r) < 1) {
			return nil, fmt.Errorf("correlation %d of %d is %v, which has no Fisher transform: it takes more pairs",
				i+1, len(rho), r)
		}
		z[i] = math.Atanh(r)
	}
	return z, nil
}
