package search_test

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
)

// An update of one's own that keeps a state: exponentiated gradient along a
// moving sum of gradients.
func ExampleUpdate() {
	search.Updates["momentum"] = search.Update{
		Moves: search.OnSimplex, Slots: 1, Step: func(m search.Move) (*Node, []*Node) {
			v := Add(MulScalar(m.Slots[0], 0.9), m.Grad)
			return simplex.EG(m.Theta, v, m.Rate), []*Node{v}
		},
	}
	defer delete(search.Updates, "momentum")
	s, err := search.AsQuick("gaea-darts")
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Update = "momentum"
	fmt.Println(s.Check())
	// Output: <nil>
}
