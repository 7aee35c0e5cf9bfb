// Package gap measures how far the validation error of a supernet is from its
// test error during a search, Oymak+ 2021, Section 7b.
package gap

import (
	"context"

	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what a search depends on besides seed, code and images.
type Trial struct {
	Settings search.Settings `json:"settings"` // as their Key has them, with Parts and EvaluateEvery
}

// Run runs one search and returns the errors of the supernet, with θ as it is, after the epochs that it was evaluated
// after: "train" on the images of the weights, "validation" on those of the architecture, "test" on others, and in
// "loss" the mean cross entropy of the training batches.
func Run(ctx context.Context, r *search.Runner, seed uint64, o search.Options) (trial.Result, error) {
	c, err := r.Search(ctx, seed, o)
	if err != nil {
		return trial.Result{}, err
	}
	return trial.Result{
		Values: map[string]float64{"epochs": float64(len(c.TrainLoss))},
		Series: map[string][]float64{
			"evaluated": c.Evaluated, "train": errorOf(c.Fitted), "validation": errorOf(c.Supernet),
			"test": errorOf(c.Tested), "loss": c.TrainLoss,
		},
	}, nil
}

func errorOf(accuracy []float64) []float64 {
	out := make([]float64, len(accuracy))
	for i, a := range accuracy {
		out[i] = 1 - a
	}
	return out
}
