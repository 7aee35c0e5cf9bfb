// Package tabular runs the searches of the top block of Table 2 of Li+ 2021, which query the table of NAS-Bench-201.
package tabular

import (
	"context"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is what all runs of a method depend on besides the table.
type Trial struct {
	Settings search.TabularSettings `json:"settings"`
	Runs     int                    `json:"runs"`
}

// Accuracy names the series of the accuracies of the architectures found, in percent, one per run: those of
// data.Reported201.
var Accuracy = [len(data.Reported201)]string{"cifar10", "cifar100", "imagenet16"}

// Run makes the runs of one method, run i with the seed i, and calls step after each. Architectures are stored by
// number, see data.Arch201.
func (t Trial) Run(ctx context.Context, table *data.NASBench201, step func()) (trial.Result, error) {
	bench, err := search.NewNASBench201(table, t.Settings)
	if err != nil {
		return trial.Result{}, err
	}
	out := trial.Result{Series: map[string][]float64{}}
	add := func(name string, x float64) { out.Series[name] = append(out.Series[name], x) }
	for seed := range uint64(t.Runs) {
		trajectory, err := search.RunTabular(ctx, bench, t.Settings, trial.RNG(seed, "tabular", t.Settings.Method))
		if err != nil {
			return out, err
		}
		a, err := data.NewArch201(trajectory.Final)
		if err != nil {
			return out, err
		}
		add("architecture", float64(a.Number()))
		add("queries", float64(len(trajectory.Steps)))
		for i, query := range data.Reported201 {
			accuracy, err := table.Accuracy(a, query)
			if err != nil {
				return out, err
			}
			add(Accuracy[i], accuracy)
		}
		step()
	}
	return out, nil
}
