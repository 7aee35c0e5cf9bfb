package runs

import (
	"math/rand/v2"

	"github.com/nasml/lab/nasml/trial"
)

// RNG is [trial.RNG], for cells that draw their own examples.
func RNG(seed uint64, parts ...string) *rand.Rand { return trial.RNG(seed, parts...) }
