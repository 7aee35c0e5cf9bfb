package regret

import (
	"math"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// Spread asks for the spread over the three trainings of a space's best cell, by mean accuracy after 108 epochs.
type Spread struct {
	Space supernet.OneShot `json:"space"`
	Of    string           `json:"of"` // "spread of the best"; tells it from a Lookup
	Split data.Split       `json:"split"`
}

// Values of a Spread, in percent.
const (
	ValueStd    = "std"    // population's standard deviation of the error of the three trainings
	ValueSample = "sample" // likewise with divisor n−1
	ValueSingle = "single" // lowest error of one training of any cell that the table has
)

// Run finds it among the cells that the table has.
func (s Spread) Run(table *data.NASBench101) (trial.Result, error) {
	ask := func(trial int) data.Query101 { return data.Query101{Split: s.Split, Epochs: 108, Trial: trial} }
	best, err := table.BestOf(OneShotCells(s.Space), ask(data.Mean))
	if err != nil {
		return trial.Result{}, err
	}
	single, err := table.BestOf(OneShotCells(s.Space), ask(data.BestTrial))
	if err != nil {
		return trial.Result{}, err
	}
	squares := 0.
	for t := 1; t <= data.Trials101; t++ {
		x, err := table.Accuracy(best.Cell, ask(t))
		if err != nil {
			return trial.Result{}, err
		}
		squares += (x - best.Accuracy) * (x - best.Accuracy)
	}
	return trial.Result{Values: map[string]float64{
		ValueStd: math.Sqrt(squares / data.Trials101), ValueSample: math.Sqrt(squares / (data.Trials101 - 1)),
		ValueSingle: 100 - single.Accuracy, ValueFound: float64(best.Found), ValueAsked: float64(best.Asked),
	}}, nil
}
