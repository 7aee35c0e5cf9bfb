// Command library runs a search.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
)

func main() {
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

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
