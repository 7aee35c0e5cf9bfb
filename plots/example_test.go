package plots_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nasml/lab/plots"
)

// A figure is plain data; drawing it gives the same bytes every time.
func ExampleFigure_Save() {
	dir, err := os.MkdirTemp("", "figure")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	x := []float64{1, 10, 100}
	panel := plots.Panel{
		X: plots.Axis{Label: "$n$", Scale: plots.Log10},
		Y: plots.Axis{Label: "gap, $\\|θ − θ^*\\|_2$", Scale: plots.Log10},
		Series: []plots.Series{
			{Label: "measured", X: x, Y: []float64{1.1, 0.3, 0.1}},
			{Label: "$n^{-1/2}$", X: x, Y: []float64{1, 0.316, 0.1}, Reference: true},
		},
	}
	figure := plots.Figure{Name: "gap", Style: plots.ICML.Column(), Panels: [][]plots.Panel{{panel}}}
	files, err := figure.Save(dir, "pdf", "svg")
	for _, file := range files {
		fmt.Println(filepath.Base(file))
	}
	fmt.Println(err)
	// Output:
	// gap.pdf
	// gap.svg
	// <nil>
}
