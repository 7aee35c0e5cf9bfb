package simplex_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/nasml/lab/nasml/simplex"
)

// A uniform row has the largest entropy, ln |O| nats; a row that has decided has none.
func ExampleEntropyOf() {
	fmt.Printf("%.4f %.4f\n", simplex.EntropyOf([][]float64{{0.25, 0.25, 0.25, 0.25}}), math.Log(4))
	fmt.Printf("%.1f\n", simplex.EntropyOf([][]float64{{0, 1, 0, 0}}))
	// Output:
	// 1.3863 1.3863
	// 0.0
}

// T steps on a linear loss from the uniform point give softmax(−Tηc).
func ExampleEGOf() {
	theta := [][]float64{{0.5, 0.5}}
	for range 10 {
		theta = simplex.EGOf(theta, [][]float64{{1, 0}}, 0.1)
	}
	fmt.Printf("%.6f %.6f\n", theta[0][1], 1/(1+math.Exp(-1)))
	// Output: 0.731059 0.731059
}

// The Bregman divergence of the entropic mirror map is the Kullback–Leibler divergence.
func ExampleBregmanOf() {
	u, theta := [][]float64{{0.5, 0.5}}, [][]float64{{0.25, 0.75}}
	fmt.Printf("%.4f %.4f\n", simplex.BregmanOf(u, theta), 0.5*math.Log(2)+0.5*math.Log(2./3))
	// Output: 0.1438 0.1438
}

// A row that does not sum to 1 is named.
func ExampleCheck() {
	fmt.Println(simplex.Check([][]float64{{0.5, 0.5}, {0.5, 0.6}}, 1e-6))
	// Output: row 1 of θ sums to 1.1, not to 1 within 1e-06: [0.5 0.6]
}

func ExampleCheckUpdate() {
	fmt.Println(simplex.CheckUpdate("eg"), simplex.CheckUpdate("adam") != nil)
	// Output: <nil> true
}

// φ at the uniform point is −ln |O| for each row.
func ExamplePhi() {
	fmt.Printf("%.4f\n", simplex.Phi([][]float64{{0.5, 0.5}, {0.5, 0.5}}))
	// Output: -1.3863
}

func ExamplePhiConjugateGradient() {
	fmt.Printf("%.3f\n", simplex.PhiConjugateGradient([][]float64{{0, math.Log(3)}}))
	// Output: [[0.250 0.750]]
}

// ⟨g, x⟩ is at most the product of the norm and its dual.
func ExampleNorm() {
	x, g := [][]float64{{0.5, -0.5}, {0.25, -0.25}}, [][]float64{{1, -1}, {1, -1}}
	fmt.Printf("%.3f ≤ %.3f\n", 1.5, simplex.Norm(x)*simplex.DualNorm(g))
	// Output: 1.500 ≤ 1.500
}

// Δ_λ of a linear loss: zero at the best vertex, and at the worst one too.
func ExampleLinearStationarity() {
	grad := [][]float64{{1, 0}}
	for _, theta := range [][]float64{{0.5, 0.5}, {0, 1}, {1, 0}} {
		fmt.Printf("%v %.4f\n", theta, simplex.LinearStationarity([][]float64{theta}, grad, 0.5))
	}
	// Output:
	// [0.5 0.5] 0.2449
	// [0 1] 0.0000
	// [1 0] 0.0000
}

// One mirror step on a single simplex is an exponentiated-gradient step.
func ExampleEntropic() {
	theta := []float64{0.5, 0.5}
	simplex.Entropic{}.Step(theta, []float64{1, 0}, math.Log(3))
	fmt.Printf("%.2f\n", theta)
	// Output: [0.25 0.75]
}

// A step of projected gradient descent reaches a vertex in finite time.
func ExampleFlatSimplex() {
	theta := []float64{0.5, 0.5}
	simplex.FlatSimplex{}.Step(theta, []float64{1, 0}, 1)
	fmt.Println(theta)
	// Output: [0 1]
}

func ExampleBox() {
	x := []float64{0.9, 0}
	simplex.Box{Lo: -1, Hi: 1}.Step(x, []float64{-1, 0.5}, 1)
	fmt.Println(x)
	// Output: [1 -0.5]
}

// Block-stochastic mirror descent on ½‖w‖² + ⟨c, θ⟩: the weights go to 0 and θ to the
// operation of the smallest cost.
func ExampleBlockDescent() {
	x := [][]float64{{1}, {0.5, 0.5}}
	d := simplex.BlockDescent{Spaces: []simplex.Space{simplex.Euclidean{}, simplex.Entropic{}}, Cyclic: true}
	err := d.Run(x, 100, func(int) float64 { return 0.5 }, rand.New(rand.NewPCG(1, 2)),
		func(_ int, _ []int, x, grad [][]float64) error {
			grad[0][0], grad[1][0], grad[1][1] = x[0][0], 0, 1
			return nil
		}, nil)
	fmt.Printf("%.3f %.3f %v\n", x[0], x[1], err)
	// Output: [0.000] [1.000 0.000] <nil>
}

// A quadratic is stationary at its minimum only.
func ExampleStationarity_At() {
	square := func(at simplex.Point) (simplex.Point, error) { return simplex.Point{W: []float64{at.W[0]}}, nil }
	for _, w := range []float64{1, 0} {
		m, err := simplex.Stationarity{Gamma: 0.5}.At(square, simplex.Point{W: []float64{w}})
		fmt.Printf("w = %v: Δ = %.4f %v\n", w, m.Delta, err)
	}
	// Output:
	// w = 1: Δ = 0.2500 <nil>
	// w = 0: Δ = 0.0000 <nil>
}

// θ of PC-DARTS has blocks of several sizes.
func ExampleProduct_Uniform() {
	p := simplex.Product{{"operations", 1, 4}, {"edges into 2", 1, 2}}
	fmt.Println(p.Uniform(), p.Check(p.Uniform(), 1e-9))
	// Output: [[[0.25 0.25 0.25 0.25]] [[0.5 0.5]]] <nil>
}

func ExampleProductNorm() {
	spaces := []simplex.Space{simplex.Euclidean{}, simplex.Entropic{}}
	fmt.Printf("%.3f\n", simplex.ProductNorm(spaces, [][]float64{{3}, {2, -2}}))
	// Output: 5.000
}
