package mapsearch

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nasml/lab/nasml/khodak2020/halving"
	"github.com/nasml/lab/nasml/trial"
)

// Signal is Figure 1 of a task: configurations with shared weights and by
// themselves.
type Signal struct {
	Setting
	Configs int `json:"configs"`
	Dim     int `json:"dim"` // d
}

// Run trains with the random streams of a seed and calls step after every solve,
// [Signal.Calls] of them. It returns the accuracy of every configuration with the
// shared weights of the first round, and by itself, on the whole validation set
// ("shared", "alone"), the accuracy on the examples that were assigned to it
// ("cell", −1 where there were none), and what the shared solve and the mean one
// by itself took.
func (t Signal) Run(ctx context.Context, data Data, seed uint64, step func(note string)) (trial.Result, error) {
	return signal(ctx, data.problem(t.Setting, t.Configs, seed), t.Configs, t.Dim, seed, step)
}

// Calls is how many solves there are: the shared one and one a configuration.
func (t Signal) Calls() int { return t.Configs + 1 }

func signal(ctx context.Context, p problem, n, d int, seed uint64, step func(string)) (trial.Result, error) {
	s := &search{p: p, seed: seed}
	rng := trial.RNG(seed, "signal")
	all := halving.Assign(p.points(trainSplit), n, rng)
	shared, together, err := p.train(ctx, all, d, s.drawSeed("shared"), false)
	if err != nil {
		return trial.Result{}, err
	}
	step(fmt.Sprintf("shared, d = %d", d))
	cells := halving.Assign(p.points(validSplit), n, rng)
	_, errs, err := shared.values(ctx, validSplit, cells)
	if err != nil {
		return trial.Result{}, err
	}
	own, counts, err := halving.Means(cells, errs, n, "worst")
	if err != nil {
		return trial.Result{}, err
	}
	series := map[string][]float64{}
	var single cost
	for c := range n {
		if counts[c] == 0 {
			own[c] = 2
		}
		accuracy := func(m model) (float64, error) {
			_, errs, err := m.values(ctx, validSplit, []int{c})
			return 1 - trial.Mean(errs), err
		}
		with, err := accuracy(shared)
		if err != nil {
			return trial.Result{}, err
		}
		m, spent, err := p.train(ctx, []int{c}, d, s.drawSeed("alone", strconv.Itoa(c)), true)
		if err != nil {
			return trial.Result{}, err
		}
		by, err := accuracy(m)
		if err != nil {
			return trial.Result{}, err
		}
		single.add(spent)
		for name, v := range map[string]float64{"shared": with, "alone": by, "cell": 1 - own[c]} {
			series[name] = append(series[name], v)
		}
		step(fmt.Sprintf("configuration %d of %d, d = %d", c+1, n, d))
	}
	return trial.Result{Series: series, Values: map[string]float64{
		"seconds_shared": together.seconds, "seconds_alone": single.seconds / float64(n),
		"madds_shared": together.madds, "madds_alone": single.madds / float64(n),
	}}, nil
}

// Map is what tells configurations apart at a glance: of images the kernel and its
// bandwidth γ, of reviews the weighting and its α.
type Map struct {
	Kind  string
	Scale float64
}

// Maps are the configurations that [Signal.Run] trains, in their order.
func (t Signal) Maps(seed uint64) []Map {
	var maps []Map
	if t.Task == ReviewTask {
		for _, c := range reviewConfigs(t.Configs, seed, t.Setting) {
			maps = append(maps, Map{c.Weighting, c.Alpha})
		}
		return maps
	}
	for _, c := range imageConfigs(t.Configs, seed) {
		maps = append(maps, Map{string(c.Kernel), c.Gamma})
	}
	return maps
}
