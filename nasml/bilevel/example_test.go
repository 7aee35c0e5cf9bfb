package bilevel_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // small graphs need no XLA
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/bilevel"
)

// With the training loss G = (w − θ)²/2, whose minimizer is w* = θ, and the
// validation loss F = w²/2, the hypergradient at w = θ is θ. First order does not
// see that w* moves with θ; conjugate gradients do.
func ExampleConjugateGradients() {
	backend, err := compute.NewWithConfig("go")
	if err != nil {
		fmt.Println(err)
		return
	}
	half := func(x *Node) *Node { return MulScalar(ReduceAllSum(Square(x)), 0.5) }
	problem := bilevel.Problem{
		Inner: func(w, theta []*Node) (*Node, []*Node) { return half(Sub(w[0], theta[0])), nil },
		Outer: func(w, theta []*Node) (*Node, []*Node) { return half(w[0]), nil },
	}
	for _, name := range []string{"first-order", "cg"} {
		grad := MustExecOnce(backend, func(w, theta *Node) *Node {
			o := bilevel.Options{Eta: Scalar(w.Graph(), w.DType(), 0.1), Terms: 2}
			_, grad, _ := bilevel.Hypergradients[name](problem, o, []*Node{w}, []*Node{theta}, nil)
			return grad[0]
		}, []float64{2, -1}, []float64{2, -1})
		fmt.Printf("%s: %.3f\n", name, grad.Value())
	}
	// Output:
	// first-order: [0.000 0.000]
	// cg: [2.000 -1.000]
}
