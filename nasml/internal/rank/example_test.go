package rank_test

import (
	"fmt"

	"github.com/nasml/lab/nasml/internal/rank"
)

// Equal values share the mean of their places.
func ExampleRanks() {
	fmt.Println(rank.Ranks([]float64{10, 30, 20, 20}))
	// Output: [1 4 2.5 2.5]
}

func ExampleSpearmanRho() {
	rho, err := rank.SpearmanRho([]float64{1, 2, 3, 4}, []float64{1, 4, 9, 15})
	fmt.Println(rho, err)
	// Output: 1 <nil>
}

// One pair of six is in the wrong order.
func ExampleKendallTauB() {
	tau, err := rank.KendallTauB([]float64{1, 2, 3, 4}, []float64{1, 2, 4, 3})
	fmt.Printf("%.4f %v\n", tau, err)
	// Output: 0.6667 <nil>
}

// Eight pairs leave a wide interval.
func ExampleCorrelate() {
	a, err := rank.Correlate("spearman", []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{2, 1, 4, 3, 6, 5, 8, 7}, 0.95)
	fmt.Printf("%.3f [%v, %v] %v\n", a.Estimate, a.Lo, a.Hi, err)
	// Output: 0.905 [0.4279, 0.9876] <nil>
}
