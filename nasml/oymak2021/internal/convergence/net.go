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

// runNet trains a network for every candidate and draws validation samples from the pool: series as in runRidge,
// without the gradient.
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
	best, violations, centre := slices.Min(risks), 0.0, min(c.Maps, len(losses)-1)
	series, err := validation.Over(ctx, c.Validation, c.Repeats, func(n, rep int, sums map[string]float64) error {
		index := validation.Draw(trial.RNG(seed, "validation", fmt.Sprint(n, rep)), c.Net.Pool, n)
		gap, chosen := validation.Choose(losses, risks, index)
		if chosen-best > 2*gap*(1+1e-12) {
			violations++
		}
		sums["gap"] += gap
		sums["fixed"] += math.Abs(validation.MeanAt(losses[centre], index) - risks[centre])
		sums["excess"] = sums["excess"] + chosen - best // in this order of rounding
		return nil
	})
	return trial.Result{Series: series, Values: map[string]float64{
		"best": best, "worst": slices.Max(risks), "violations": violations,
		"train": trainError, "train_loss": trainLoss,
	}}, err
}
