package features_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/nasml/lab/nasml/features"
)

// Ridge regression on features that are known by their products only. Here they
// are a small matrix; they may as well be made again for every product.
func ExampleFitRidge() {
	phi := mat.NewDense(4, 2, []float64{1, 0, 0, 1, 1, 1, 2, 1})
	y := mat.NewDense(4, 1, []float64{3, 4, 6, 8}) // 2φ₁ + 3φ₂ + 1
	model, err := features.FitRidge(
		context.Background(),
		features.OfDense(phi),
		y,
		features.RidgeParams{Lambda: 1e-9, Solver: "lsqr", Tol: 1e-12},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("w = %.2f, b = %.2f\n", model.Weights.RawMatrix().Data, model.Intercept)
	// Output: w = [2.00 3.00], b = [1.00]
}
