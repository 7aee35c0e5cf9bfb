package supernet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/own"
)

// Those that are this package's own.
var (
	shippedActivations = maps.Clone(Activations)
	shippedSpaces      = maps.Clone(Spaces)
	shippedCellSpaces  = maps.Clone(CellSpaces)
	shippedOneShots    = maps.Clone(OneShots)
	shippedOperations  = maps.Clone(Operations)
)

// ActivationKey names an entry of [Activations] in the key of a trial: one of this package by its name, a reader's by
// what it computes. It returns an error if the entry is missing, or cannot be known by what it computes because it is
// random or has a state.
func ActivationKey(name string) (string, error) {
	const where = "supernet.Activations"
	return own.Entry("activation", name, where, Activations, shippedActivations, func(sigma Activation) []own.Probe {
		of := func(in []*Node) []*Node { return []*Node{sigma(in[0])} }
		return []own.Probe{{Of: of, Inputs: []any{probePoints()}}}
	})
}

// probePoints are pre-activations around the kink at 0, in the usual range, and far out, [1, 79].
func probePoints() [][]float64 {
	points := []float64{0, 1e-9, -1e-9, 1e-3, -1e-3, 12, -12, 40, -40, 1000, -1000, 1e6, -1e6}
	for i := range 66 {
		points = append(points, -6.5+float64(i)/5.03)
	}
	return [][]float64{points}
}

// SpaceKey names an entry of [Spaces] in the key of a trial: one of this package by its name, a reader's by its
// content, including what its custom operations compute: see [OperationKey]. It returns an error if the entry is
// missing.
func SpaceKey(name string) (string, error) {
	space := Spaces[name]
	space.Name = ""
	return spaceKey(name, Spaces, shippedSpaces, space, space.Ops)
}

// spaceKey is the name of an entry if it and its operations are as shipped, else a hash of their content.
func spaceKey[S any](name string, all, shipped map[string]S, content S, ops []string) (string, error) {
	computed, err := ownOperations(ops)
	if err != nil {
		return "", fmt.Errorf("space %q: %w", name, err)
	}
	if len(computed) == 0 {
		return contentKey(name, all, shipped, content)
	}
	return contentKey(name, all, nil, struct {
		Space      S
		Operations map[string]string
	}{content, computed})
}

// ownOperations are what operations compute that are not as they were shipped.
func ownOperations(ops []string) (map[string]string, error) {
	computed := map[string]string{}
	for _, op := range ops {
		if _, ok := Operations[op]; !ok {
			continue // one that only its kind of network knows
		}
		key, err := OperationKey(op)
		if err != nil {
			return nil, err
		}
		if key != op {
			computed[op] = key
		}
	}
	return computed, nil
}

// OneShotKey is the same for [OneShots], without what is only known about a space.
func OneShotKey(name string) (string, error) {
	space := OneShots[name]
	space.Name, space.Known = "", OneShotKnown{}
	return spaceKey(name, OneShots, shippedOneShots, space, space.Ops)
}

// CellSpaceKey is the same for [CellSpaces].
func CellSpaceKey(name string) (string, error) {
	space := CellSpaces[name]
	space.Name = ""
	var ops []string
	for _, t := range CellTypes {
		for e := range space.Edges() {
			ops = append(ops, space.Candidates(t, e)...)
		}
	}
	for _, op := range ops {
		if err := knownOperation(op); err != nil {
			return "", fmt.Errorf("space %q: %w", name, err)
		}
	}
	return spaceKey(name, CellSpaces, shippedCellSpaces, space, ops)
}

// contentKey is the name of an entry if it is as shipped, else a hash of its content.
func contentKey[S any](name string, all, shipped map[string]S, content any) (string, error) {
	space, ok := all[name]
	if !ok {
		return "", fmt.Errorf("unknown space %q", name)
	}
	if ours, ok := shipped[name]; ok && reflect.DeepEqual(space, ours) {
		return name, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("space %q: %w", name, err)
	}
	return own.Text(string(text)), nil
}

// OperationKey names an entry of [Operations] in the key of a trial: one of this package by its name, a reader's by
// what it computes and how its weights begin. It returns an error if the entry is missing or returns no map, or cannot
// be known by what it computes because it is random or has a state.
func OperationKey(name string) (string, error) {
	if err := knownOperation(name); err != nil {
		return "", err
	}
	op := Operations[name]
	if ours, ok := shippedOperations[name]; ok && own.Same(op, ours) {
		return name, nil
	}
	what := "supernet.Operations[\"" + name + "\"]"
	var probes []own.Probe
	weights := ""
	for _, stride := range []int{1, 2} {
		for _, search := range []bool{true, false} {
			n, err := newCellNet(Skeleton{}, !search, func(l Layers) Outcome {
				y := op(l.In(name), Map{H: 6, W: 6, C: 4, node: l.walk.pass.Images}, stride, search)
				return Outcome{Logits: l.plain(y).node}
			})
			if err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
			for _, w := range append(slices.Clone(n.plan.weights), n.plan.stats...) {
				weights += fmt.Sprintln(w.Dims, w.FanIn, w.Init)
			}
			probes = append(probes, n.probe())
		}
	}
	key, err := own.Name(what, probes...)
	return own.Text(key + weights), err
}

// probe evaluates a network of one operation in training.
func (n *CellNet) probe() own.Probe {
	wave := func(at float64, dims ...int) *tensors.Tensor {
		flat := make([]float64, size(dims))
		for i := range flat {
			flat[i] = math.Sin(at + 1.7*float64(i))
		}
		return tensors.FromFlatDataAndDimensions(flat, dims...)
	}
	inputs := []any{wave(0.3, 2, 6, 6, 4)}
	for i, w := range append(slices.Clone(n.plan.weights), n.plan.stats...) {
		inputs = append(inputs, wave(float64(i), w.Dims...))
	}
	weights := len(n.plan.weights)
	return own.Probe{Inputs: inputs, Of: func(in []*Node) []*Node {
		p := Pass{Images: in[0], Weights: in[1 : 1+weights], Stats: in[1+weights:], Train: true}
		return []*Node{n.run(Layers{walk: n.walk(p)}).Logits}
	}}
}
