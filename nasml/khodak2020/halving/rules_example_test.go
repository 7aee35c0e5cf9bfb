package halving_test

import (
	"fmt"

	"github.com/nasml/lab/nasml/khodak2020/halving"
)

// The rungs of successive halving on CIFAR-10: 64 configurations at 1,562 features down to
// one at 100,000.
func ExampleLadder() {
	rungs, err := halving.Ladder(64, 1562.5, 4, 100000)
	fmt.Println(rungs, err)
	// Output: [{64 1562} {16 6250} {4 25000} {1 100000}] <nil>
}

// Fast weight-sharing begins with few features; the text has all of them in the last round.
func ExampleDims() {
	dims, err := halving.Dims(100000, 4, 2, "last-round")
	fmt.Println(dims, err)
	// Output: [12500 25000 50000 100000] <nil>
}

func ExampleRounds() {
	fmt.Println(halving.Rounds(256), halving.Rounds(5))
	// Output: 8 3
}

func ExampleMedian() {
	fmt.Println(halving.Median([]float64{3, 1, 2, 10}))
	// Output: 2.5
}

// In what the authors' program departs from the paper.
func ExampleDifferences() {
	for _, d := range halving.Differences(halving.AsPaper(), halving.AsCode()) {
		fmt.Println(d)
	}
	// Output:
	// empty: worst, wrong
	// full: last-round, retraining
	// incumbent: any, promoted
	// score: loss, error
	// tied: first, last
	// ties: half, first-round
}
