package trial_test

import (
	"fmt"

	"github.com/nasml/lab/nasml/trial"
)

// Streams of other names are independent: a new one changes no number.
func ExampleRNG() {
	weights, again := trial.RNG(7, "weights"), trial.RNG(7, "weights")
	noise := trial.RNG(7, "noise")
	fmt.Println(weights.Uint64() == again.Uint64(), weights.Uint64() == noise.Uint64())
	// Output: true false
}
