// Package evaluating trains architectures of Li+ 2021 from scratch for trials.
package evaluating

import (
	"context"

	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what a training depends on besides seed, code and images.
type Trial struct {
	Settings training.Settings `json:"settings"`
	Genotype supernet.Genotype `json:"genotype"`

	// Operations are what those operations of the genotype compute that are not nasml's, by name.
	Operations map[string]string `json:"operations,omitempty"`

	Examples     int `json:"examples"`      // the first so many, 0: all; of photographs of each class
	TestExamples int `json:"test_examples"` // likewise
}

// Run trains one network.
func Run(ctx context.Context, t *training.Trainer, seed uint64, o training.Options) (trial.Result, error) {
	c, err := t.Train(ctx, seed, o)
	if err != nil {
		return trial.Result{}, err
	}
	last := len(c.Evaluated) - 1
	return trial.Result{
		Values: map[string]float64{
			"epochs": float64(len(c.TrainLoss)), "parameters": float64(t.Net.Parameters()),
			"test_error": c.TestError[last], "test_top5": c.TestTop5[last],
		},
		Series: map[string][]float64{
			"train_loss": c.TrainLoss, "train_error": c.TrainError, "evaluated": c.Evaluated,
			"test_loss": c.TestLoss, "test_error": c.TestError, "test_top5": c.TestTop5,
		},
	}, nil
}
