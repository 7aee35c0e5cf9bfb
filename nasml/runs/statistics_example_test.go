package runs_test

import (
	"fmt"

	"github.com/nasml/lab/nasml/runs"
)

// A mean over seeds with Student's interval.
func ExampleSummarize() {
	s, err := runs.Summarize([]float64{1, 2, 3}, 0.95)
	fmt.Printf("%.2f [%.2f, %.2f] %v\n", s.Mean, float64(s.Lo), float64(s.Hi), err)
	// Output: 2.00 [-0.48, 4.48] <nil>
}

// Pairs of one seed: what both share falls out.
func ExampleMeanDiff() {
	d, err := runs.MeanDiff([]float64{11, 21, 31}, []float64{10, 20.1, 29.9}, 0.95)
	fmt.Printf("%.2f [%.2f, %.2f] %v\n", d.Mean, float64(d.Lo), float64(d.Hi), err)
	// Output: 1.00 [0.75, 1.25] <nil>
}

func ExampleWithinOf() {
	fmt.Println(runs.WithinOf(93.36, 0.5))
	// Output: within ±0.5 of 93.36
}
