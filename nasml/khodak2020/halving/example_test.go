package halving_test

import (
	"context"
	"fmt"
	"math"

	"github.com/nasml/lab/nasml/khodak2020/halving"
)

// Successive halving over eight learning rates: all with little training, the
// better half with twice as much, and so on.
func ExampleHyperband() {
	rates := []float64{1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1}
	rungs, err := halving.Ladder(len(rates), 1, 2, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	tries, err := halving.Hyperband(context.Background(), rates, [][]halving.Rung{rungs}, halving.AsPaper(),
		func(_ context.Context, rate float64, epochs int) (float64, error) {
			return math.Abs(math.Log10(rate/0.03)) + 1/float64(epochs), nil // stands for a validation error
		})
	best := tries[tries[len(tries)-1].Best]
	fmt.Println(len(tries), "tries; best rate", rates[best.Arm], "with", best.Resource, "epochs", err)
	// Output: 15 tries; best rate 0.03 with 8 epochs <nil>
}
