package li2021_test

import (
	"context"
	"fmt"
	"os"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/li2021"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
)

// A program of your own: EG with momentum beside GAEA and random search. It is small here, on
// synthetic images; li2021.CompareQuick as it is has CIFAR-10, and DARTS' and GAEA's searches are read.
func ExampleCompare() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	_, _ = os.Setenv("NASML_STORE", dir), os.Setenv("GOMLX_BACKEND", "go") // leave both out: your cache, XLA

	search.Updates["eg-momentum"] = search.Update{
		Moves: search.OnSimplex, Rule: func(o search.Setup) bilevel.Rule {
			return bilevel.Each(1, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
				v := Add(MulScalar(own[0], 0.9), grad)
				return simplex.EG(theta, v, o.Rate), []*Node{v}
			})
		},
	}
	search.Methods["mine"] = search.Method{
		Title: "EG with momentum", Update: "eg-momentum", Hold: search.OnSimplex,
		Weights: search.Mixture, Architecture: search.Mixture, Final: search.ByArgmax,
	}
	p := li2021.CompareQuick
	p.Mine, p.Baselines = []string{"mine"}, []string{"gaea-darts"}
	p.Data, p.Examples, p.Image, p.Channels = data.Synthetic, 64, 8, 2
	p.Epochs, p.Batch, p.Seeds = 1, 16, 2
	r, err := li2021.Compare(context.Background(), p)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, row := range r.Rows {
		fmt.Println(row.Title, len(row.Accuracy))
	}
	for _, c := range r.Check() { // c.Note says it in words, with what these seeds cannot show
		fmt.Println(c.Name)
	}
	_, err = r.Table().Figure().Save(dir, "tex")
	fmt.Println(err)
	// Output:
	// EG with momentum 2
	// GAEA DARTS (bilevel) 2
	// Random search 500
	// own: EG with momentum above GAEA DARTS (bilevel), percentage points
	// own: EG with momentum above Random search, percentage points
	// <nil>
}
