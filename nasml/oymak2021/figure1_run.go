package oymak2021

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
)

// fig1Case is a sweep over a grid of Δ: what a trial depends on but its seed.
type fig1Case struct {
	Net        thm1Net `json:"net"`
	Grid       int     `json:"grid"`
	Validation []int   `json:"validation"`
	Loss       string  `json:"loss"`
}

// fig1Grid are the points of the simplex of R^h, h = 2 or 3, whose coordinates
// are multiples of 1/steps; with h = 2 by ascending α₂.
func fig1Grid(h, steps int) [][]float64 {
	var all [][]float64
	for i := range steps + 1 {
		if h == 2 {
			all = append(all, []float64{1 - float64(i)/float64(steps), float64(i) / float64(steps)})
			continue
		}
		for j := range steps + 1 - i {
			all = append(all, []float64{float64(i) / float64(steps), float64(j) / float64(steps), float64(steps-i-j) / float64(steps)})
		}
	}
	return all
}

// fig1Validation names the losses of one n_V.
func fig1Validation(n int) string { return fmt.Sprintf("validation %d", n) }

// run trains a network for every α of the grid: its losses on the training
// sample, on a validation sample of each size, and on the pool.
func (c fig1Case) run(ctx context.Context, seed uint64, images *data.Images) (runs.Result, error) {
	task, err := newThm1Task(images, c.Net, seed)
	if err != nil {
		return runs.Result{}, err
	}
	worst, series := 0.0, map[string][]float64{}
	index := map[int][]int{}
	for _, n := range c.Validation {
		index[n] = thm1Draw(runs.RNG(seed, "validation", fmt.Sprint(n)), c.Net.Pool, n)
	}
	add := func(name string, value float64) { series[name] = append(series[name], value) }
	for _, alpha := range fig1Grid(len(c.Net.Activations), c.Grid) {
		train, pool, err := task.train(ctx, alpha)
		if err != nil {
			return runs.Result{}, err
		}
		each := thm1Each(c.Loss, task.yPool, pool)
		all := make([]int, len(each))
		for i := range all {
			all[i] = i
		}
		add("test", thm1MeanAt(each, all))
		add("train", thm1MeanAt(thm1Each(c.Loss, task.y, train), all[:c.Net.Train]))
		worst = max(worst, thm1MeanAt(thm1Each("error", task.y, train), all[:c.Net.Train]))
		for _, n := range c.Validation {
			add(fig1Validation(n), thm1MeanAt(each, index[n]))
		}
	}
	return runs.Result{Series: series, Values: map[string]float64{"train_error": worst}}, nil
}
