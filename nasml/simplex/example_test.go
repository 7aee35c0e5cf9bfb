package simplex_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // small graphs need no XLA
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/simplex"
)

// One step of exponentiated gradient moves weight from what makes the loss grow
// to what makes it fall, and stays on the simplex.
func ExampleEG() {
	backend, err := compute.NewWithConfig("go")
	if err != nil {
		fmt.Println(err)
		return
	}
	theta, grad := [][]float64{{0.25, 0.25, 0.25, 0.25}}, [][]float64{{1, 0, 0, -1}}
	next := MustExecOnce(backend, func(theta, grad *Node) *Node { return simplex.EG(theta, grad, 0.5) }, theta, grad)
	fmt.Printf("%.3f\n", next.Value())
	// Output: [[0.143 0.235 0.235 0.387]]
}

// An update of one's own is an entry of a map. It goes into the keys of trials
// by what it computes: an edited body is recomputed, a new name is not.
func Example_ownUpdate() {
	simplex.Updates["cautious"] = func(theta, grad *Node, eta float64) *Node {
		return simplex.EG(theta, Tanh(grad), eta) // no gradient counts for more than 1
	}
	defer delete(simplex.Updates, "cautious")
	first, err := simplex.UpdateKey("cautious")
	if err != nil {
		fmt.Println(err)
		return
	}
	simplex.Updates["cautious"] = func(theta, grad *Node, eta float64) *Node {
		return simplex.EG(theta, MulScalar(Tanh(grad), 2), eta)
	}
	second, err := simplex.UpdateKey("cautious")
	fmt.Println(first == second, err)
	// Output: false <nil>
}
