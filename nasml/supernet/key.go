package supernet

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// Those that are this package's own.
var (
	shippedActivations = maps.Clone(Activations)
	shippedSpaces      = maps.Clone(Spaces)
)

// ActivationKey names an entry of [Activations] in the key of a trial: one of
// this package by its name, a reader's by what it computes. It is an error
// where there is no such entry, and where it cannot be known by what it computes
// because it is random or has a state.
func ActivationKey(name string) (string, error) {
	if err := CheckActivation(name); err != nil {
		return "", err
	}
	sigma := Activations[name]
	if own.Same(sigma, shippedActivations[name]) {
		return name, nil
	}
	of := func(in []*Node) []*Node { return []*Node{sigma(in[0])} }
	return own.Name("supernet.Activations[\""+name+"\"]", own.Probe{Of: of, Inputs: []any{probePoints()}})
}

// probePoints are pre-activations: the kink at 0, where networks work, and far
// out, [1, 79].
func probePoints() [][]float64 {
	points := []float64{0, 1e-9, -1e-9, 1e-3, -1e-3, 12, -12, 40, -40, 1000, -1000, 1e6, -1e6}
	for i := range 66 {
		points = append(points, -6.5+float64(i)/5.03)
	}
	return [][]float64{points}
}

// SpaceKey names an entry of [Spaces] in the key of a trial: one of this package
// by its name, a reader's by its content. It is an error where there is no such
// entry.
func SpaceKey(name string) (string, error) {
	space, ok := Spaces[name]
	if !ok {
		return "", fmt.Errorf("unknown space %q", name)
	}
	if ours, ok := shippedSpaces[name]; ok && reflect.DeepEqual(space, ours) {
		return name, nil
	}
	space.Name = ""
	text, err := json.Marshal(space)
	if err != nil {
		return "", fmt.Errorf("space %q: %w", name, err)
	}
	return own.Text(string(text)), nil
}
