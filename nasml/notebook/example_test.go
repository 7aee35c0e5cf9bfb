package notebook_test

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021"
	"github.com/nasml/lab/nasml/notebook"
	"github.com/nasml/lab/nasml/oymak2021"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// A cell that varies Figure 2 of Oymak+: only what is new is computed.
func Example() {
	supernet.Activations["mine"] = func(z *graph.Node) *graph.Node { // an activation of your own
		return graph.MulScalar(graph.Sin(z), 0.5)
	}
	p := oymak2021.Figure2Quick
	p.DeltaAlphas = []float64{0.01, 0.1, 0.3}
	p.Activations = [2]string{"mine", "tanh"}
	p.Optimizer, p.Seeds = "adam", 10
	r := notebook.Run(oymak2021.Figure2, p)
	notebook.Show(r)
	notebook.Claims(r)
	notebook.Export(r, "figures", "pdf", "svg", "eps")
}

// A cell that varies a search on NAS-Bench-201, with an update of your own.
func Example_search() {
	simplex.Updates["mine"] = func(theta, grad *graph.Node, eta float64) *graph.Node { // a step on the simplex
		return simplex.EG(theta, graph.Tanh(grad), eta)
	}
	p := li2021.Figure1Quick
	p.Rows = []string{"darts", "gaea-darts", "gaea-darts/erm"} // of search.Methods; "/erm": one level instead of two
	p.Update, p.Seeds = "mine", 10
	p.Hypergradient = "unrolled"             // a name of bilevel.Hypergradients
	p.Channels, p.Cells, p.Image = 16, 1, 32 // of the supernet
	r := notebook.Run(li2021.Figure1, p)
	notebook.Show(r)
}

// A cell with an operation, a space and images of your own.
func Example_own() {
	supernet.Operations["conv_5x5"] = func(l supernet.Layers, x supernet.Map, stride int, search bool) supernet.Map {
		return l.BN("bn", l.Conv("conv", l.ReLU(x), 5, stride, x.C)) // it declares its weights as it goes
	}
	supernet.Spaces["mine"] = supernet.NASBench201.With("conv_5x5") // or of CellSpaces, of OneShots
	pixels, labels := make([]float32, 512*8*8), make([]int, 512)    // your images in their place
	for i := range pixels {
		pixels[i], labels[i/64] = float32(i%11)/11, i/64%5
	}
	// pixels are [N, 8, 8, 1], row-major, as bytes or from 0 to 1; labels are N classes
	if _, err := data.FromArrays("squares", data.Train, 8, 8, 1, pixels, labels); err != nil {
		panic(err)
	}
	p := li2021.Figure1Quick
	p.Rows, p.Space, p.Data, p.Image = []string{"darts", "gaea-darts"}, "mine", "squares", 8
	notebook.Show(notebook.Run(li2021.Figure1, p))
}

// A cell that writes every seed's numbers and the settings of each trial, for plots of your own.
func ExampleExportData() {
	p := oymak2021.Figure2Quick
	r := notebook.Run(oymak2021.Figure2, p)
	notebook.ExportData(r, "figures", "csv", "npz")
}

// The same numbers in Go: the entropies of every search, epoch by epoch, with its method.
func ExampleRecords() {
	p := li2021.Figure1Quick
	r := notebook.Run(li2021.Figure1, p)
	for _, record := range notebook.Records(r).Records {
		fmt.Println(record.Trial.Settings()["settings.method"], record.Trial.Seed, record.Series["entropy"])
	}
}
