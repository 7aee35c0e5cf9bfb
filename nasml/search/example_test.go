package search_test

import (
	"context"
	"fmt"
	"log"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
)

// An update of one's own that keeps a state: exponentiated gradient along a
// moving sum of gradients.
func ExampleUpdate() {
	search.Updates["momentum"] = search.Update{
		Moves: search.OnSimplex, Rule: func(o search.Setup) bilevel.Rule {
			return bilevel.Each(1, func(theta, grad *Node, own []*Node, _ bilevel.Move) (*Node, []*Node) {
				v := Add(MulScalar(own[0], 0.9), grad)
				return simplex.EG(theta, v, o.Rate), []*Node{v}
			})
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

// A search as a library: go get github.com/nasml/lab, and these lines.
func ExampleNew() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	images, err := data.SyntheticImages(1, 64, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	check(err) // or data.Load(ctx, data.CIFAR10, data.Train), or data.FromArrays(…)
	s, err := search.AsQuick("gaea-darts")
	check(err)
	s.Image, s.Channels, s.Epochs, s.Batch = 8, 4, 2, 16
	b, err := backend.Open() // XLA, or with GOMLX_BACKEND=go pure Go
	check(err)
	runner, err := search.New(b, s, images)
	check(err)
	defer runner.Close()
	curve, err := runner.Search(ctx, 0, search.Options{})
	check(err)
	fmt.Println(curve.Found, curve.TrainLoss)
}
