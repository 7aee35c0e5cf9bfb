package sparsity

import (
	"math"
	"slices"

	"github.com/nasml/lab/nasml/trial"
)

// wipeout runs XNAS' update of one edge, L = 1 and η = √(2 ln|O|/T), on random sequences of gradients in [−1, 1], with
// and without wipe-out, the exponent of its threshold times Eager. It also clips gradients of 0.2 (nine in ten) and −5
// (one in ten) to ±0.25 for each example and returns both means.
func (t Trial) wipeout(seed uint64) trial.Result {
	rng := trial.RNG(seed, "wipeout")
	eta := math.Sqrt(2 * math.Log(float64(t.Options)) / float64(t.Steps))
	changed, wiped, mean, clipped := 0.0, 0.0, 0.0, 0.0
	share := 1 / float64(t.Runs)
	for range t.Runs {
		lean, kept, all := make([]float64, t.Options), make([]float64, t.Options), make([]float64, t.Options)
		for o := range lean {
			lean[o] = 0.4 * rng.NormFloat64()
		}
		for step := 1; step <= t.Steps; step++ {
			drift := 0.3 * math.Sin(6*float64(step)/float64(t.Steps)) // leaders change
			for o := range lean {
				g := math.Max(-1, math.Min(1, lean[o]+drift*float64(o%2*2-1)+0.5*rng.NormFloat64()))
				kept[o], all[o] = kept[o]-eta*g, all[o]-eta*g
			}
			threshold := slices.Max(kept) - 2*eta*t.Eager*float64(t.Steps-step)
			for o := range kept {
				if kept[o] < threshold {
					kept[o] = math.Inf(-1)
				}
			}
			if step == 3*t.Steps/4 {
				for _, v := range kept {
					if math.IsInf(v, -1) {
						wiped += share / float64(t.Options)
					}
				}
			}
		}
		if slices.Index(kept, slices.Max(kept)) != slices.Index(all, slices.Max(all)) {
			changed += share
		}
		for range 10 {
			g := 0.2
			if rng.IntN(10) == 0 {
				g = -5
			}
			mean += g * share / 10
			clipped += math.Max(-0.25, math.Min(0.25, g)) * share / 10
		}
	}
	return trial.Result{Values: map[string]float64{"changed": changed, "wiped": wiped, "mean": mean,
		"clipped": clipped}}
}
