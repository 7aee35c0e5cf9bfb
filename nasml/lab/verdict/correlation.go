package verdict

import (
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/runs"
)

// Correlations summarizes correlations of independent seeds on Fisher's scale
// z = atanh ρ, where their distribution is nearly normal, and gives mean and
// interval back as correlations,
//
//	tanh(z̄ ± t_{n−1,(1+c)/2} · s_z/√n) ,
//
// which never leave (−1, 1). The deviation is that of the correlations. It is an
// error if one is not within (−1, 1).
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
