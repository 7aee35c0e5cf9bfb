package plots_test

import (
	"fmt"
	"math"

	"github.com/nasml/lab/plots"
)

// A thing keeps its look when another is left out.
func ExampleLooks() {
	looks := plots.Looks("DARTS", "GAEA DARTS", "random search")
	fmt.Println(looks["DARTS"].Marker != looks["GAEA DARTS"].Marker)
	// Output: true
}

// A curve of a function, for a reference line.
func ExampleReference() {
	rate := func(n float64) float64 { return 1 / math.Sqrt(n) }
	s := plots.Reference("$n^{-1/2}$", plots.Dashed, []float64{1, 4}, rate)
	fmt.Println(s.Label, s.X, s.Y)
	// Output: $n^{-1/2}$ [1 4] [1 0.5]
}

func ExampleStyleNamed() {
	s, err := plots.StyleNamed("icml/column")
	fmt.Println(s.Width, err)
	// Output: 3.25 <nil>
}
