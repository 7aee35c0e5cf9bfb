package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
)

func main() {
	s, err := search.AsQuickOn("darts", os.Args[1])
	if err != nil {
		panic(err)
	}
	n := 1000
	for i, p := range []*int{&s.Channels, &s.Cells, &s.Image, &s.Batch, &s.Epochs, &n} {
		if len(os.Args) > 2+i {
			*p, _ = strconv.Atoi(os.Args[2+i])
		}
	}
	ctx := context.Background()
	o, err := data.View{Name: data.CIFAR10, Split: data.Train, First: n}.Open(ctx)
	if err != nil {
		panic(err)
	}
	im, err := o.Images(ctx)
	if err != nil {
		panic(err)
	}
	b, err := backend.Open()
	if err != nil {
		panic(err)
	}
	fmt.Println("forecast", s.Forecast(im.Len()))
	x, err := search.New(b, s, im)
	if err != nil {
		panic(err)
	}
	t0 := time.Now()
	last := t0
	c, err := x.Search(ctx, 0, search.Options{Observe: func(m search.Moment) {
		fmt.Printf("%d/%d %.1fs loss %.3f\n", m.Step, m.Steps, time.Since(last).Seconds(), m.Loss)
		last = time.Now()
	}})
	if err != nil {
		panic(err)
	}
	fmt.Println(time.Since(t0), c.Found)
	fmt.Println(c.Evaluated, c.Supernet, c.Discrete)
	sp, _ := s.Open(10)
	for i, e := range c.Entropy(sp.Network().Architecture()) {
		fmt.Println(sp.Network().Architecture()[i].Name, e)
	}
	status, _ := os.ReadFile("/proc/self/status")
	_ = status
}
