// Package mixture is what the weights α of a mixture of operations say of the operations (Roberts+): a checker of the
// paper's assumptions and conditions, two-layer networks whose operations are evaluated with shared weights, and random
// problems of them.
package mixture

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/supernet"
)

// Activation finds an activation function: a name of supernet.Activations, where
// a reader adds own ones, or a combination of such names,
//
//	0.8*relu+0.2*identity
//
// which is the leaky ReLU of slope 0.2. The error lists the known names.
func Activation(expression string) (supernet.Activation, error) {
	type term struct {
		weight float64
		sigma  supernet.Activation
	}
	var terms []term
	for part := range strings.SplitSeq(expression, "+") {
		factor, name, ok := strings.Cut(strings.TrimSpace(part), "*")
		weight := 1.0
		if !ok {
			name = factor
		} else {
			var err error
			if weight, err = strconv.ParseFloat(strings.TrimSpace(factor), 64); err != nil {
				return nil, fmt.Errorf("activation %q: %q is no number, expected a form like 0.8*relu+0.2*identity",
					expression, factor)
			}
		}
		name = strings.TrimSpace(name)
		if err := supernet.CheckActivation(name); err != nil {
			return nil, fmt.Errorf("activation %q: %w", expression, err)
		}
		terms = append(terms, term{weight, supernet.Activations[name]})
	}
	return func(z *Node) *Node {
		sum := MulScalar(terms[0].sigma(z), terms[0].weight)
		for _, t := range terms[1:] {
			sum = Add(sum, MulScalar(t.sigma(z), t.weight))
		}
		return sum
	}, nil
}

// ActivationsOf finds all of them; the error names those that are unknown.
func ActivationsOf(names []string) ([]supernet.Activation, error) {
	found := make([]supernet.Activation, len(names))
	var errs []error
	for i, name := range names {
		var err error
		if found[i], err = Activation(name); err != nil {
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// Operations is f_σᵢ(x, W) = vᵀσᵢ(Wᵀx) of every activation for P networks at
// once, [P, h, n], from x [P, n, k], W [P, k, d], v [P, d].
func Operations(sigmas []supernet.Activation, x, w, v *Node) *Node {
	z := Einsum("pnk,pkd->pnd", x, w)
	outputs := make([]*Node, len(sigmas))
	for i, sigma := range sigmas {
		outputs[i] = ExpandAxes(Einsum("pnd,pd->pn", sigma(z), v), 1)
	}
	return Concatenate(outputs, 1)
}

// Sizes of networks that are evaluated together: how many, points, inputs, hidden units.
type Sizes struct{ Count, Points, Inputs, Width int }

// Evaluator evaluates every operation of networks of the same sizes, in float64.
type Evaluator struct {
	Sizes
	exec *Exec
}

// NewEvaluator builds the graph, which compiles at its first call.
func NewEvaluator(b compute.Backend, names []string, s Sizes) (*Evaluator, error) {
	sigmas, err := ActivationsOf(names)
	if err != nil {
		return nil, err
	}
	exec, err := NewExec(b, func(x, w, v *Node) *Node { return Operations(sigmas, x, w, v) })
	if err != nil {
		return nil, fmt.Errorf("building the graph of %v: %w", names, err)
	}
	return &Evaluator{s, exec}, nil
}

// Close frees what was compiled.
func (e *Evaluator) Close() { e.exec.Finalize() }

// Outputs is [count][h][points] from flat x, W and v.
func (e *Evaluator) Outputs(x, w, v []float64) ([][][]float64, error) {
	out, err := e.exec.Call1(
		tensors.FromFlatDataAndDimensions(x, e.Count, e.Points, e.Inputs),
		tensors.FromFlatDataAndDimensions(w, e.Count, e.Inputs, e.Width),
		tensors.FromFlatDataAndDimensions(v, e.Count, e.Width))
	if err != nil {
		return nil, fmt.Errorf("evaluating the operations: %w", err)
	}
	values := out.Value().([][][]float64)
	return values, out.FinalizeAll()
}

// Probe is what the activations give at a few points, in six digits. It is part
// of a trial's key: a custom function that changes under its name is another one.
func Probe(b compute.Backend, names []string) (string, error) {
	points := []float64{-30, -3, -1, -0.3, 0, 0.2, 0.7, 2, 30}
	e, err := NewEvaluator(b, names, Sizes{1, len(points), 1, 1})
	if err != nil {
		return "", err
	}
	defer e.Close()
	values, err := e.Outputs(points, []float64{1}, []float64{1})
	if err != nil {
		return "", err
	}
	var text []string
	for _, row := range values[0] {
		for _, y := range row {
			text = append(text, strconv.FormatFloat(y, 'g', 6, 64))
		}
	}
	return strings.Join(text, " "), nil
}
