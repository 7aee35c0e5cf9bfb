package spectral_test

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/oymak2021/spectral"
)

// The spectral estimate of the architecture in the limit: nothing is found below
// ph = n², all of it for p̄h̄ → 0.
func ExampleCorrelationLimit() {
	for _, hBar := range []float64{0, 0.1, 0.5} {
		fmt.Printf("h/n = %.1f: ρ² → %.3f\n", hBar, spectral.CorrelationLimit(2, hBar, 0))
	}
	// Output:
	// h/n = 0.0: ρ² → 1.000
	// h/n = 0.1: ρ² → 0.727
	// h/n = 0.5: ρ² → 0.000
}

// With α* known the risk is 1 − n/p.
func ExampleExpectedRisk() {
	fmt.Printf("%.2f %.2f\n", spectral.ExpectedRisk(100, 200, 1, 0), spectral.RiskLimit(2, 1, 0))
	// Output: 0.50 0.50
}

func ExampleCorrelation2() {
	fmt.Println(spectral.Correlation2([]float64{1, 1}, []float64{-2, -2}), spectral.Correlation2([]float64{1, 0},
		[]float64{0, 1}))
	// Output: 1 0
}

// Of all weights that fit one example, the shortest.
func ExampleMinNorm() {
	theta, err := spectral.MinNorm(mat.NewDense(1, 2, []float64{1, 1}), []float64{2})
	fmt.Printf("%.2f %v\n", theta, err)
	// Output: [1.00 1.00] <nil>
}

func ExampleTopLeft() {
	u, sigma, err := spectral.TopLeft(mat.NewDense(2, 2, []float64{3, 0, 0, 1}))
	fmt.Printf("%.2f %.2f %v\n", u, sigma, err)
	// Output: [1.00 0.00] 3.00 <nil>
}

func ExampleTopEigen() {
	value, vector, err := spectral.TopEigen(2, func(dst, v []float64) { dst[0], dst[1] = 2*v[0]+v[1], v[0]+2*v[1] })
	fmt.Printf("%.4f %.4f %v\n", value, vector, err)
	// Output: 3.0000 [0.7071 0.7071] <nil>
}

func ExampleInverseForm() {
	x, err := spectral.InverseForm(mat.NewSymDense(2, []float64{2, 0, 0, 4}), []float64{2, 2})
	fmt.Println(x, err)
	// Output: 3 <nil>
}

// Means of g² and of cos g, which is e^−½.
func ExampleGaussHermite() {
	rule, err := spectral.GaussHermite(20)
	fmt.Printf("%.4f %v\n", rule.Mean(func(g float64) float64 { return g * g }), err)
	fmt.Printf("%.4f\n", rule.Mean(math.Cos))
	// Output:
	// 1.0000 <nil>
	// 0.6065
}

func ExampleRankOneRisk() {
	star, other := []float64{1, 0}, []float64{0, 1}
	fmt.Println(spectral.RankOneRisk(star, star, star, star, nil), spectral.RankOneRisk(other, star, star, star, nil))
	// Output: 0 2
}
