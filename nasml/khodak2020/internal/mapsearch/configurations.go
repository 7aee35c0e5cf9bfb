package mapsearch

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/trial"
)

// logUniform draws from [lo, hi] evenly on a logarithmic scale.
func logUniform(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rng.Float64()*math.Log(hi/lo))
}

// The ranges of Appendix B.2: of γ and of α.
const smallestScale, largestScale = 1e-5, 10

// imageConfigs draws n configurations of Appendix B.2.1: preprocessing, kernel
// and bandwidth. The first ones are the same whatever n is.
func imageConfigs(n int, seed uint64) []features.FourierConfig {
	rng := trial.RNG(seed, "image configurations")
	out := make([]features.FourierConfig, n)
	for i := range out {
		out[i] = features.FourierConfig{
			Kernel:     pick(rng, features.Gaussian, features.Laplacian),
			Preprocess: pick(rng, features.Raw, features.MinMax, features.Standard, features.UnitRows),
			Gamma:      logUniform(rng, smallestScale, largestScale),
		}
	}
	return out
}

// reviewConfigs draws n configurations of Appendix B.2.2. As the code reads
// it, tokenizing on spaces takes punctuation away, the third tokenizer is
// NLTK's, and every configuration has a hash of its own where s.Fresh asks for
// that.
func reviewConfigs(n int, seed uint64, s Setting) []features.NGramConfig {
	rng := trial.RNG(seed, "review configurations")
	spaces := "whitespace"
	if s.Reading == "code" {
		spaces = "simple"
	}
	words := cmp.Or(s.Tokenizer, "treebank")
	hash := rng.Uint32()
	out := make([]features.NGramConfig, n)
	for i := range out {
		out[i] = features.NGramConfig{
			Tokenizer: pick(rng, spaces, "custom", words),
			StopWords: pick(rng, false, true), Lower: pick(rng, false, true),
			Order: 1 + rng.IntN(3), Binary: pick(rng, false, true),
			Weighting: pick(rng, "nb", "sif"), Alpha: logUniform(rng, smallestScale, largestScale),
			Preprocess: pick(rng, "none", "normalize", "average"), HashSeed: hash,
		}
		if s.Fresh {
			out[i].HashSeed += uint32(i)
		}
	}
	return out
}

func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }
