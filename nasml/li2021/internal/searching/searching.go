// Package searching runs weight-sharing searches of Li+ 2021 for trials.
package searching

import (
	"context"
	"slices"

	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what a search depends on besides seed, code and images.
type Trial struct {
	Settings search.Settings `json:"settings"` // as their Key has them
	Examples int             `json:"examples"`
}

// Run runs one search in whose space θ has these blocks.
func Run(
	ctx context.Context, searcher *search.Runner, blocks simplex.Product, seed uint64, o search.Options,
) (trial.Result, error) {
	curve, err := searcher.Search(ctx, seed, o)
	if err != nil {
		return trial.Result{}, err
	}
	return result(curve, blocks), nil
}

// result is a search as a record has it: its curves, and θ after every epoch in one row. The entropy of the first block
// is "entropy", that of another "entropy of normal edges into 2".
func result(c *search.Curve, blocks simplex.Product) trial.Result {
	var theta, final []float64
	for _, t := range c.Theta {
		theta = append(theta, t...)
	}
	for _, o := range c.Final {
		final = append(final, float64(o))
	}
	series := map[string][]float64{"theta": theta, "final": final}
	for i, entropy := range c.Entropy(blocks) {
		if i == 0 {
			series["entropy"] = entropy
			continue
		}
		series["entropy of "+blocks[i].Name] = entropy
	}
	for name, curve := range map[string][]float64{
		"train_loss": c.TrainLoss, "train_accuracy": c.TrainAccuracy,
		"valid_loss": c.ValidLoss, "valid_accuracy": c.ValidAccuracy,
		"evaluated": c.Evaluated, "supernet": c.Supernet, "discrete": c.Discrete, "curvature": c.Curvature,
		"reading_loss": c.Readings.Loss, "convexity": c.Readings.Convexity, "gradient": c.Readings.Gradient,
		"stationarity": c.Readings.Stationarity, "alone": slices.Concat(c.Readings.Alone...),
		"apart": slices.Concat(c.Readings.Apart...),
	} {
		if len(curve) > 0 {
			series[name] = curve
		}
	}
	return trial.Result{Values: map[string]float64{"epochs": float64(len(c.TrainLoss))}, Series: series}
}
