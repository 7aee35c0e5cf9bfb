package notebook_test

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/li2021"
	"github.com/nasml/lab/nasml/notebook"
	"github.com/nasml/lab/nasml/oymak2021"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// A cell that varies Figure 2 of Oymak+: only what is new is computed.
func Example() {
	supernet.Activations["mine"] = func(z *Node) *Node { return MulScalar(Sin(z), 0.5) } // an activation of your own
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
	simplex.Updates["mine"] = func(theta, grad *Node, eta float64) *Node { // a step on the simplex
		return simplex.EG(theta, Tanh(grad), eta)
	}
	p := li2021.Figure1Quick
	p.Rows = []string{"darts", "gaea-darts", "gaea-darts/erm"} // of search.Methods; "/erm": one level instead of two
	p.Update, p.Seeds = "mine", 10
	p.Hypergradient = "unrolled"             // a name of bilevel.Hypergradients
	p.Channels, p.Cells, p.Image = 16, 1, 32 // of the supernet
	r := notebook.Run(li2021.Figure1, p)
	notebook.Show(r)
}
