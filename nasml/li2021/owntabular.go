package li2021

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/nasml/lab/nasml/internal/own"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/trial"
)

// shippedTabular are nasml's own tabular methods.
var shippedTabular = maps.Clone(search.TabularMethods)

// keyedTabular are settings with the method's name in the key of a trial: a custom method is keyed by what it does on a
// small benchmark and registered under that name, so that renaming it does not change its random stream. Without listed
// settings it has random search's budget. It returns an error if the method is not a function of its stream.
func keyedTabular(method string, s search.TabularSettings) (search.TabularSettings, error) {
	f := search.TabularMethods[method]
	if own.Same(f, shippedTabular[method]) {
		return s, nil
	}
	if s.Method == "" {
		s = search.TabularAsPaper["rs"]
	}
	s.Method = method
	name, err := probeTabular(f, s)
	if err != nil {
		return s, err
	}
	again, err := probeTabular(f, s)
	if err != nil {
		return s, err
	}
	if name != again {
		return s, fmt.Errorf("search.TabularMethods[%q] searches in another way when it is called again with the same "+
			"random stream: a trial with it could never be known by what it computes", method)
	}
	search.TabularMethods[name] = f
	s.Method = name
	return s, nil
}

// probeTabular names what a method does with two random streams on a benchmark of six edges with five operations.
func probeTabular(f search.Tabular, s search.TabularSettings) (string, error) {
	method := s.Method
	s.Budget, s.Method = probeQueries, "" // a second a query
	var runs []search.Trajectory
	for seed := range uint64(2) {
		found, err := f(context.Background(), smallBench{}, s, trial.RNG(seed, "probe"))
		if err != nil {
			return "", fmt.Errorf("search.TabularMethods[%q] cannot be run to find out what it does: %w", method, err)
		}
		runs = append(runs, found)
	}
	text, err := json.Marshal(runs)
	if err != nil {
		return "", fmt.Errorf("search.TabularMethods[%q]: %w", method, err)
	}
	return own.Text(string(text)), nil
}

// probeQueries is how many queries a probe has.
const probeQueries = 60

type smallBench struct{}

func (smallBench) Groups() [][]int {
	edges := []int{5, 5, 5}
	return [][]int{edges[:1], edges[:2], edges}
}

func (smallBench) Query(arch []int) (accuracy, seconds float64, err error) {
	for edge, op := range arch {
		accuracy += float64((op*(edge+2)+3*edge)%7) * (1 + float64(edge)/10)
	}
	return accuracy, 1, nil
}
