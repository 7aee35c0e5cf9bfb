// Package landscape trains a network for every architecture of a grid and measures its losses.
package landscape

import (
	"context"
	"fmt"

	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/trial"
)

// Case is a sweep over a grid of Δ: what a trial depends on but its seed.
type Case struct {
	Net        activation.Net `json:"net"`
	Grid       int            `json:"grid"`
	Validation []int          `json:"validation"`
	Loss       string         `json:"loss"`
}

// Grid are the points of the simplex of R^h, h = 2 or 3, whose coordinates
// are multiples of 1/steps; with h = 2 by ascending α₂.
func Grid(h, steps int) [][]float64 {
	var all [][]float64
	n := float64(steps)
	for i := range steps + 1 {
		if h == 2 {
			all = append(all, []float64{1 - float64(i)/n, float64(i) / n})
			continue
		}
		for j := range steps + 1 - i {
			all = append(all, []float64{float64(i) / n, float64(j) / n, float64(steps-i-j) / n})
		}
	}
	return all
}

// ValidationLoss names the losses of one n_V.
func ValidationLoss(n int) string { return fmt.Sprintf("validation %d", n) }

// Run trains a network for every α of the grid. Series over α: the losses on the training sample ("train"), on a
// validation sample of each size (see ValidationLoss) and on the pool ("test"). Value: the largest training 0-1 error.
// It returns an error if ctx is cancelled, there are too few images, or a training diverges.
func (c Case) Run(ctx context.Context, seed uint64, images activation.Images) (trial.Result, error) {
	task, err := activation.NewTask(images, c.Net, seed)
	if err != nil {
		return trial.Result{}, err
	}
	worst, series := 0.0, map[string][]float64{}
	index := map[int][]int{}
	for _, n := range c.Validation {
		index[n] = validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n)), c.Net.Pool, n)
	}
	add := func(name string, value float64) { series[name] = append(series[name], value) }
	for _, alpha := range Grid(len(c.Net.Activations), c.Grid) {
		train, pool, err := task.Train(ctx, alpha)
		if err != nil {
			return trial.Result{}, err
		}
		each := activation.Losses(c.Loss, task.PoolY, pool)
		add("test", trial.Mean(each))
		add("train", trial.Mean(activation.Losses(c.Loss, task.Y, train)))
		worst = max(worst, trial.Mean(activation.Losses("error", task.Y, train)))
		for _, n := range c.Validation {
			add(ValidationLoss(n), validation.MeanAt(each, index[n]))
		}
	}
	return trial.Result{Series: series, Values: map[string]float64{"train_error": worst}}, nil
}
