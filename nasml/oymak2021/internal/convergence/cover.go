package convergence

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/oymak2021/internal/world"
	"github.com/nasml/lab/nasml/oymak2021/spectral"
	"github.com/nasml/lab/nasml/trial"
)

// CoverRadii are the ε of the covers, for a set of radius 1.
var CoverRadii = []float64{0.8, 0.4, 0.2, 0.1}

// cover covers a sample of the unit ball of R^h, h = 1, 2, 3 ("ball1"…), and of a circle in R^10 ("circle") greedily
// with balls of radius ε. The centres are ε apart, so that their number is at most (1+2/ε)^h and at least the size of
// the smallest cover of the sample by balls of radius ε.
func cover(seed uint64) trial.Result {
	const points = 20000
	series := map[string][]float64{}
	for h := 1; h <= 3; h++ {
		rng := trial.RNG(seed, "ball", string(rune('0'+h)))
		sample := make([][]float64, points)
		for i := range sample {
			sample[i] = ballPoint(rng, h)
		}
		series["ball"+string(rune('0'+h))] = coverSizes(sample)
	}
	rng := trial.RNG(seed, "circle")
	plane := world.Orthonormal(rng, 10, 2)
	circle := make([][]float64, points/10)
	for i := range circle {
		angle := 2 * math.Pi * rng.Float64()
		circle[i] = make([]float64, 10)
		for k := range circle[i] {
			circle[i][k] = plane.At(k, 0)*math.Cos(angle) + plane.At(k, 1)*math.Sin(angle)
		}
	}
	series["circle"] = coverSizes(circle)
	return trial.Result{Series: series}
}

// ballPoint is uniform in the unit ball of R^h.
func ballPoint(rng *rand.Rand, h int) []float64 {
	x := spectral.Normals(rng, 1, h).RawRowView(0)
	floats.Scale(math.Pow(rng.Float64(), 1/float64(h))/floats.Norm(x, 2), x)
	return x
}

// coverSizes are the sizes of greedy covers for every radius.
func coverSizes(sample [][]float64) []float64 {
	var sizes []float64
	for _, eps := range CoverRadii {
		var centres [][]float64
		for _, x := range sample {
			if !slices.ContainsFunc(centres, func(c []float64) bool { return floats.Distance(x, c, 2) <= eps }) {
				centres = append(centres, x)
			}
		}
		sizes = append(sizes, float64(len(centres)))
	}
	return sizes
}
