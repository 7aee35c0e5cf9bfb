// Package sharing tests whether the shared weights of a search on NAS-Bench-1Shot1 rank architectures as their own
// trainings do.
package sharing

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/li2021/internal/regret"
	"github.com/nasml/lab/nasml/li2021/internal/searching"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// Trial is a search with a number of architectures that its weights judge at the end.
type Trial struct {
	Search searching.Trial  `json:"search"`
	Space  supernet.OneShot `json:"space"`
	Archs  int              `json:"archs"`
	Batch  int              `json:"batch"` // images that are evaluated at once, at most all; 0: as the search has it
}

// Statistics of batch norm by which shared weights are evaluated.
const (
	Running = "running" // the supernet's, as in the authors' code
	Batch   = "batch"   // of the architecture, on the batch
)

// Shared names the series of accuracies with shared weights, as fractions, one per architecture.
func Shared(statistics string) string { return "shared, " + statistics }

// Own names the series of accuracies after 108 epochs of training, in percent, the mean of three trainings.
func Own(split data.Split) string { return "own, " + string(split) }

// Value names a correlation of rank.Correlations; it is missing if all accuracies are equal.
func Value(correlation, statistics string, split data.Split) string {
	return correlation + ", " + statistics + ", " + string(split)
}

// drawsPerArch bounds the draws per architecture that counts.
const drawsPerArch = 100

// Run runs the search, draws architectures uniformly until Archs different cells are in the table, and evaluates them
// on the search's validation images. It returns an error if the search fails or the table has too few cells of the
// space.
func (t Trial) Run(
	ctx context.Context, runner *search.Runner, blocks simplex.Product, table *data.NASBench101, seed uint64,
	o search.Options,
) (trial.Result, error) {
	series := map[string][]float64{}
	o.Finished = func(e *search.Finished) error {
		archs, err := t.draw(e.Space(), table, seed, series)
		if err != nil {
			return err
		}
		for _, a := range archs {
			for _, statistics := range []string{Running, Batch} {
				x, err := e.Accuracy(ctx, a, search.Evaluation{Batch: t.Batch, ByBatch: statistics == Batch})
				if err != nil {
					return err
				}
				series[Shared(statistics)] = append(series[Shared(statistics)], x)
			}
		}
		return nil
	}
	result, err := searching.Run(ctx, runner, blocks, seed, o)
	if err != nil {
		return trial.Result{}, err
	}
	last := result.Series["train_accuracy"]
	out := trial.Result{Values: map[string]float64{"train_accuracy": last[len(last)-1]}, Series: series}
	return out, correlate(out)
}

// draw draws the architectures, and notes what the table says of them.
func (t Trial) draw(
	space search.Space, table *data.NASBench101, seed uint64, series map[string][]float64,
) (archs []search.Arch, err error) {
	rng, seen := trial.RNG(seed, "ranked"), map[data.Cell101]bool{}
	for range drawsPerArch * t.Archs {
		if len(archs) == t.Archs {
			return archs, nil
		}
		a, err := space.Random(rng)
		if err != nil {
			return nil, err
		}
		cell, err := t.cell(a)
		if errors.Is(err, data.ErrNotInTable) || err == nil && seen[cell] {
			continue
		}
		if err != nil {
			return nil, err
		}
		seen[cell] = true
		known, err := lookUp(table, cell, series)
		if err != nil {
			return nil, err
		}
		if known {
			archs = append(archs, a)
		}
	}
	return nil, fmt.Errorf(
		"found %d cells of the space %s in the table, expected the %d that are asked for: take fewer",
		len(archs), t.Space.Name, t.Archs)
}

// cell is that of an architecture, in canonical form.
func (t Trial) cell(a search.Arch) (data.Cell101, error) {
	arch, err := t.Space.Discretize(a.Theta, supernet.TiesFirst)
	if err != nil {
		return data.Cell101{}, err
	}
	cell, err := regret.OneShotCell(t.Space, arch)
	return cell.Canonical(), err
}

// lookUp adds a cell's accuracies if it is in the table.
func lookUp(table *data.NASBench101, cell data.Cell101, series map[string][]float64) (known bool, err error) {
	found := map[string]float64{}
	for _, split := range []data.Split{data.Valid, data.Test} {
		x, err := table.Accuracy(cell, data.Query101{Split: split, Epochs: 108, Trial: data.Mean})
		if errors.Is(err, data.ErrNotInTable) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		found[Own(split)] = x
	}
	for name, x := range maps.All(found) {
		series[name] = append(series[name], x)
	}
	return true, nil
}

func correlate(out trial.Result) error {
	for _, statistics := range []string{Running, Batch} {
		shared := out.Series[Shared(statistics)]
		if constant(shared) {
			continue
		}
		for _, split := range []data.Split{data.Valid, data.Test} {
			for name, c := range rank.Correlations {
				r, err := c.Estimate(shared, out.Series[Own(split)])
				if err != nil {
					return err
				}
				out.Values[Value(name, statistics, split)] = r
			}
		}
	}
	return nil
}

func constant(x []float64) bool {
	for _, v := range x {
		if v != x[0] {
			return false
		}
	}
	return true
}
