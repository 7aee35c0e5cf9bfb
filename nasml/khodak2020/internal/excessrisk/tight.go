package excessrisk

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/nasml/lab/nasml/trial"
)

// Tight is the case in which the deviation term is tight: |C|
// configurations with independent losses that are 0 or 1 with probability ½.
type Tight struct {
	Part   string  `json:"part"` // "uniform"
	Valid  int     `json:"valid"`
	Counts []int   `json:"counts"`
	Draws  int     `json:"draws"`
	Delta  float64 `json:"delta"`
}

// Run gives for every |C| the mean over draws of max_c (ℓ_𝒟 − ℓ_V) and the
// share of draws beyond the deviation term √((2/|V|)(log|C| + log(1/δ))) and
// beyond Hoeffding's √((log|C| + log(1/δ))/(2|V|)).
func (t Tight) Run(seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "uniform")
	most := slices.Max(t.Counts)
	mean := make([]float64, len(t.Counts))
	stated, hoeffding := make([]float64, len(t.Counts)), make([]float64, len(t.Counts))
	for range t.Draws {
		largest, at := math.Inf(-1), 0
		gaps := make([]float64, len(t.Counts)) // running maximum at each count
		for c := 1; c <= most; c++ {
			largest = max(largest, 0.5-float64(coins(t.Valid, rng))/float64(t.Valid))
			for at < len(t.Counts) && t.Counts[at] == c {
				gaps[at] = largest
				at++
			}
		}
		for i, k := range t.Counts {
			logs := math.Log(float64(k)) + math.Log(1/t.Delta)
			mean[i] += gaps[i] / float64(t.Draws)
			stated[i] += indicator(gaps[i] > math.Sqrt(2*logs/float64(t.Valid))) / float64(t.Draws)
			hoeffding[i] += indicator(gaps[i] > math.Sqrt(logs/(2*float64(t.Valid)))) / float64(t.Draws)
		}
	}
	series := map[string][]float64{"gap": mean, "beyond_stated": stated, "beyond_hoeffding": hoeffding}
	return trial.Result{Series: series}, nil
}

// coins is the number of heads of n fair coins.
func coins(n int, rng *rand.Rand) int {
	heads := 0
	for ; n >= 64; n -= 64 {
		heads += bits.OnesCount64(rng.Uint64())
	}
	return heads + bits.OnesCount64(rng.Uint64()&(1<<n-1))
}

// Ball is Theorem A.1 on the class of all functions with |h| ≤ ε, one
// ball, under the L-Lipschitz loss min(1, L·|h|).
type Ball struct {
	Part      string    `json:"part"` // "ball"
	Lipschitz []float64 `json:"lipschitz"`
	Epsilon   float64   `json:"epsilon"`
	Sample    int       `json:"sample"` // m
	Atoms     int       `json:"atoms"`  // of 𝒟
	Draws     int       `json:"draws"`
}

// Run gives for every L the share of samples with sup_h |ℓ_𝒟 − ℓ_S| ≥ 3ε. The
// supremum is known: the empirical and the population risk are as far apart as
// can be for h = ε on the sampled atoms and 0 elsewhere.
func (t Ball) Run(seed uint64) (trial.Result, error) {
	rng := trial.RNG(seed, "ball")
	broken := make([]float64, len(t.Lipschitz))
	for range t.Draws {
		seen := map[int]bool{}
		for range t.Sample {
			seen[rng.IntN(t.Atoms)] = true
		}
		for i, l := range t.Lipschitz {
			gap := min(1, l*t.Epsilon) * (1 - float64(len(seen))/float64(t.Atoms))
			broken[i] += indicator(gap >= 3*t.Epsilon) / float64(t.Draws)
		}
	}
	return trial.Result{Series: map[string][]float64{"broken": broken}}, nil
}
