package convergence

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nasml/lab/nasml/oymak2021/internal/activation"
	"github.com/nasml/lab/nasml/oymak2021/internal/validation"
	"github.com/nasml/lab/nasml/oymak2021/internal/world"
	"github.com/nasml/lab/nasml/trial"
)

// runNet trains a network for every candidate and draws validation samples from
// the pool: series as in runRidge, without the gradient.
func (c Case) runNet(ctx context.Context, seed uint64, images activation.Images) (trial.Result, error) {
	task, err := activation.NewTask(images, *c.Net, seed)
	if err != nil {
		return trial.Result{}, err
	}
	var losses [][]float64
	var risks []float64
	trainError, trainLoss := 0.0, 0.0
	for _, alpha := range world.Candidates(trial.RNG(seed, "candidates"), c.Maps, c.Candidates) {
		train, pool, err := task.Train(ctx, alpha)
		if err != nil {
			return trial.Result{}, err
		}
		each := activation.Losses(c.Loss, task.PoolY, pool)
		losses, risks = append(losses, each), append(risks, validation.Mean(each))
		trainError = max(trainError, validation.Mean(activation.Losses("error", task.Y, train)))
		trainLoss = max(trainLoss, validation.Mean(activation.Losses("squared", task.Y, train)))
	}
	result := c.validateNets(seed, losses, risks)
	result.Values["train"], result.Values["train_loss"] = trainError, trainLoss
	return result, nil
}

// validateNets goes by the losses of every network on every image of the pool.
func (c Case) validateNets(seed uint64, losses [][]float64, risks []float64) trial.Result {
	best, violations, series := slices.Min(risks), 0.0, map[string][]float64{}
	centre := min(c.Maps, len(losses)-1)
	for _, n := range c.Validation {
		var gap, fixed, excess float64
		for rep := range c.Repeats {
			index := validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Net.Pool, n)
			sup, chosen := validation.Choose(losses, risks, index)
			fixed += math.Abs(validation.MeanAt(losses[centre], index) - risks[centre])
			gap, excess = gap+sup, excess+chosen-best
			if chosen-best > 2*sup*(1+1e-12) {
				violations++
			}
		}
		for name, sum := range map[string]float64{"gap": gap, "fixed": fixed, "excess": excess} {
			series[name] = append(series[name], sum/float64(c.Repeats))
		}
	}
	return trial.Result{Series: series, Values: map[string]float64{
		"best": best, "worst": slices.Max(risks), "violations": violations,
	}}
}
