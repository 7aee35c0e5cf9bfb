package spectral

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/combin"
)

// EffectiveDimension is Definition 1 of Oymak+ 2021 on given covering numbers:
// the smallest h_eff with
//
//	N_ε ≤ (C̄/ε)^h_eff
//
// at each of the radii ε. The paper asks for all ε > 0, which no set can meet:
// for ε > C̄ the right side is below 1. So the radii have to lie below C̄, and
// the number has a meaning only together with C̄. It returns an error if there is
// no radius, one is not in (0, C̄), or a number is below 1.
func EffectiveDimension(eps, numbers []float64, c float64) (float64, error) {
	if len(eps) == 0 || len(eps) != len(numbers) {
		return 0, fmt.Errorf("spectral: %d radii and %d covering numbers, expected one of each and at least one",
			len(eps), len(numbers))
	}
	dimension := 0.0
	for i, e := range eps {
		if !(0 < e && e < c) || !(numbers[i] >= 1) {
			return 0, fmt.Errorf("spectral: N_ε = %v at ε = %v, expected N_ε ≥ 1 and 0 < ε < C̄ = %v", numbers[i], e, c)
		}
		dimension = max(dimension, math.Log(numbers[i])/math.Log(c/e))
	}
	return dimension, nil
}

// IntervalCover is the covering number of an interval by intervals of radius ε,
// exactly: ⌈length/2ε⌉, at least 1.
func IntervalCover(length, eps float64) float64 { return max(1, math.Ceil(length/(2*eps))) }

// CircleCover is the covering number of a circle by discs of radius ε, in any
// dimension, exactly: a disc with centres anywhere covers an arc whose chord is
// 2ε, so that it takes ⌈π/arcsin(ε/R)⌉ of them for ε < R and one for ε ≥ R.
func CircleCover(radius, eps float64) float64 {
	if eps >= radius {
		return 1
	}
	return math.Ceil(math.Pi / math.Asin(eps/radius))
}

// BallCover bounds the covering number of a ball of radius R in ℝ^h from above
// by volumes, (1 + 2R/ε)^h for ε < R and 1 beyond; it is at most (3R/ε)^h for
// ε ≤ R, which is how Oymak+ 2021 get h_eff = h with C̄ = 3R.
func BallCover(h int, radius, eps float64) float64 {
	if eps >= radius {
		return 1
	}
	return math.Pow(1+2*radius/eps, float64(h))
}

// BallPacking bounds the covering number of that ball from below, (R/ε)^h: the
// balls' volumes have to add up to its volume.
func BallPacking(h int, radius, eps float64) float64 {
	return max(1, math.Pow(radius/eps, float64(h)))
}

// SparseCover bounds the covering number of the vectors with at most s of h
// entries that are not 0, in a ball of radius R: a ball for each of the supports.
// It grows like ε^−s and not like ε^−h. s from 0 to h.
func SparseCover(h, s int, radius, eps float64) float64 {
	return math.Exp(combin.LogGeneralizedBinomial(float64(h), float64(s))) * BallCover(s, radius, eps)
}

// GreedyCover covers the rows of points by balls of radius ε around some of
// them, the farthest row next, and returns the chosen rows. They are more than ε
// apart, so that at least as many balls of radius ε/2 are needed; of a set that
// the points only sample it under-counts where ε is below their spacing.
func GreedyCover(points *mat.Dense, eps float64) ([]int, error) {
	n, _ := points.Dims()
	if n == 0 || !(eps > 0) {
		return nil, errors.New("spectral: a cover of no points or with a radius that is not positive")
	}
	far := make([]float64, n)
	for i := range far {
		far[i] = math.Inf(1)
	}
	var centres []int
	for next := 0; far[next] > eps; next = floats.MaxIdx(far) {
		centres = append(centres, next)
		for i := range far {
			far[i] = min(far[i], floats.Distance(points.RawRowView(i), points.RawRowView(next), 2))
		}
	}
	return centres, nil
}
