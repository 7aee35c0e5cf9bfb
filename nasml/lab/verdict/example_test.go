package verdict_test

import (
	"fmt"

	"github.com/nasml/lab/nasml/lab/verdict"
	"github.com/nasml/lab/nasml/runs"
)

// A claim holds if the whole interval is near the paper's number, does not hold if none of
// it is, and is inconclusive in between.
func ExampleNear() {
	for _, accuracies := range [][]float64{{93.4, 93.3, 93.5, 93.4}, {90, 96, 92, 95}, {91.4, 91.3, 91.5, 91.4}} {
		s, err := runs.Summarize(accuracies, 0.95)
		c := verdict.Near(verdict.Claim("test accuracy", "Li+ 2021, Table 2"), s, err, 93.36, 0.5)
		fmt.Printf("[%.2f, %.2f] %q %v\n", float64(c.Lo), float64(c.Hi), c.Note, c.Holds == runs.Holds)
	}
	// Output:
	// [93.27, 93.53] "" true
	// [88.87, 97.63] "inconclusive: the confidence interval contains the threshold" false
	// [91.27, 91.53] "" false
}

func ExampleAtMost() {
	s, err := runs.Summarize([]float64{0.8, 0.9, 0.85}, 0.95)
	fmt.Println(verdict.AtMost(verdict.Claim("ratio", "Theorem 4"), s, err, 1).Holds)
	// Output: holds
}

// Two methods with the same seeds are compared pair by pair.
func ExampleGreater() {
	gaea, darts := []float64{94.1, 93.9, 94.2, 94.0}, []float64{93.1, 92.8, 93.3, 92.9}
	c := verdict.Greater(verdict.Claim("GAEA above DARTS", "Table 2"), gaea, darts, 0.95)
	fmt.Printf("%v %.3f [%.3f, %.3f]\n", c.Holds, float64(c.Ours), float64(c.Lo), float64(c.Hi))
	// Output: holds 1.025 [0.873, 1.177]
}

// Twelve claims of one table, so that all intervals cover together at 95 %.
func ExampleFamily() {
	fmt.Printf("%.4f\n", verdict.Family(0.95, 12))
	// Output: 0.9958
}

// The rate of n^−½ over three seeds.
func ExampleSlopes() {
	x := []float64{1, 4, 16}
	s, err := verdict.Slopes(x, [][]float64{{1, 0.5, 0.25}, {1.1, 0.54, 0.27}, {0.9, 0.46, 0.23}}, 0.95)
	fmt.Printf("%.3f %v\n", s.Mean, err)
	// Output: -0.500 <nil>
}

func ExampleSlope() {
	slope, err := verdict.Slope([]float64{1, 10, 100}, []float64{2, 20, 200})
	fmt.Printf("%.3f %v\n", slope, err)
	// Output: 1.000 <nil>
}

// A statement without exception is refuted by one case.
func ExampleNone() {
	c := verdict.None(verdict.Claim("the order of α is that of the losses", "Theorem 7"), 1, 1000)
	fmt.Println(c.Holds, c.Note)
	// Output: does not hold violated in 1 of 1000 cases
}

// A bound holds if the largest of all cases is below it.
func ExampleEvery() {
	c := verdict.Every(verdict.Claim("gap over its bound", "Lemma 1"), []float64{0.1, 0.7, 0.3}, 1)
	fmt.Println(c.Holds, c.Ours)
	// Output: holds 0.7
}

func ExampleExactly() {
	c := verdict.Exactly(verdict.Claim("parameters, M", "Table 1"), 3.169, 3.3, 0.05)
	fmt.Println(c.Holds, c.Allowed)
	// Output: does not hold within ±0.05 of 3.3
}

func ExampleNotRun() {
	fmt.Println(verdict.NotRun(verdict.Claim("top-1 error", "Table 5"), "needs ImageNet").Note)
	// Output: not run: needs ImageNet
}

// How far a curve is from a published one over the epochs that both have.
func ExampleCurveDistance() {
	d := verdict.CurveDistance([]float64{1, 2, 3}, []float64{0.9, 0.8, 0.7}, []float64{1, 0.8, 0.6, 0.5})
	fmt.Printf("%d epochs, %.3f on average, %.3f at most\n", d.Points, d.Mean, d.Most)
	// Output: 3 epochs, 0.067 on average, 0.100 at most
}
