package oymak2021

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/runs"
)

// thm1CoverRadii are the ε of the covers, for a set of radius 1.
var thm1CoverRadii = []float64{0.8, 0.4, 0.2, 0.1}

// thm1RunCover covers a sample of the unit ball of R^h, h = 1, 2, 3 ("ball1"…),
// and of a circle in R^10 ("circle") greedily with balls of radius ε. The
// centres are ε apart, so that their number is at most (1+2/ε)^h and at least
// the size of the smallest cover of the sample by balls of radius ε.
func thm1RunCover(seed uint64) runs.Result {
	const points = 20000
	series := map[string][]float64{}
	for h := 1; h <= 3; h++ {
		rng := runs.RNG(seed, "ball", string(rune('0'+h)))
		sample := make([][]float64, points)
		for i := range sample {
			sample[i] = thm1BallPoint(rng, h)
		}
		series["ball"+string(rune('0'+h))] = thm1CoverSizes(sample)
	}
	rng := runs.RNG(seed, "circle")
	plane := thm1Orthonormal(rng, 10, 2)
	circle := make([][]float64, points/10)
	for i := range circle {
		angle := 2 * math.Pi * rng.Float64()
		circle[i] = make([]float64, 10)
		for k := range circle[i] {
			circle[i][k] = plane.At(k, 0)*math.Cos(angle) + plane.At(k, 1)*math.Sin(angle)
		}
	}
	series["circle"] = thm1CoverSizes(circle)
	return runs.Result{Series: series}
}

// thm1BallPoint is uniform in the unit ball of R^h.
func thm1BallPoint(rng *rand.Rand, h int) []float64 {
	x := make([]float64, h)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	floats.Scale(math.Pow(rng.Float64(), 1/float64(h))/floats.Norm(x, 2), x)
	return x
}

// thm1CoverSizes are the sizes of greedy covers for every radius.
func thm1CoverSizes(sample [][]float64) []float64 {
	var sizes []float64
	for _, eps := range thm1CoverRadii {
		var centres [][]float64
		for _, x := range sample {
			near := false
			for _, c := range centres {
				if floats.Distance(x, c, 2) <= eps {
					near = true
					break
				}
			}
			if !near {
				centres = append(centres, x)
			}
		}
		sizes = append(sizes, float64(len(centres)))
	}
	return sizes
}
