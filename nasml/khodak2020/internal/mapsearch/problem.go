// Package mapsearch selects feature maps, as the experiments of Khodak+ 2020 do:
// ridge regression on random Fourier features of images, a linear SVM on hashed
// n-grams of reviews, weight sharing and the searches that it is compared with.
package mapsearch

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"

	"github.com/nasml/lab/nasml/features"
	"github.com/nasml/lab/nasml/trial"
)

// The two tasks of the paper.
const (
	ImageTask  = "cifar-10"
	ReviewTask = "imdb"
)

// Setting is what a trial of a task depends on besides its search.
type Setting struct {
	Task    string  `json:"task"`
	Reading string  `json:"reading"`          // "paper" or "code"
	Fresh   bool    `json:"fresh"`            // every configuration has random features or a hash of its own
	Lambda  float64 `json:"lambda"`           // λ of λ‖w‖² + Σℓ
	Tol     float64 `json:"tol"`              // of the solver: LSQR or the SVM
	Epochs  int     `json:"epochs,omitempty"` // of the SVM at most
	// Tokenizer is the third one of reviews, which the two readings differ in;
	// empty: "treebank".
	Tokenizer string `json:"tokenizer,omitempty"`
}

// Data are the examples of a task, of which every trial makes a problem with
// its own pool of configurations.
type Data interface {
	problem(s Setting, configs int, seed uint64) problem
}

// split names the examples that something is done with.
type split int

const (
	trainSplit split = iota
	validSplit
	testSplit
)

// cost is what a step took: seconds of wall time, and multiply-adds of the
// products (features and solver), which do not depend on the machine.
type cost struct{ seconds, madds float64 }

func (c *cost) add(d cost) { c.seconds += d.seconds; c.madds += d.madds }

// problem is feature map selection on one data set, with a drawn pool of
// configurations.
type problem interface {
	// points are the examples of each split.
	points(s split) int
	// train fits one classifier on the training examples, example i under
	// configuration of[i] of the pool (one for all: a list of length 1), on d
	// features. The draws of the features are those of seed.
	train(ctx context.Context, of []int, d int, seed uint64, alone bool) (model, cost, error)
}

// model is a trained classifier.
type model interface {
	// values are the loss and the error (0 or 1) of every example of a split
	// under configuration of[i], or of[0] for all.
	values(ctx context.Context, s split, of []int) (losses, errs []float64, err error)
}

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
