package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
)

// Lookups is a trace of look-ups in NAS-Bench-101: architectures of
// NAS-Bench-1Shot1's supernets, and the cells that the authors' program asked
// that table for.
//
//	settings                 JSON: "specs", of each architecture the matrix and the operations, pruned or not, as
//	                         {"matrix": [[0, 1, …], …], "ops": ["input", …]} or as a pair; "method", "source"
//	alphas_mixed_op          [N, nodes, 3]: α, or θ, which is read in the same way
//	alphas_output            [N, 1, nodes + 1]
//	alphas_inputs.I          [N, 1, parents], I = 0, 1, …
//
// Shapes say which of the three spaces it is. Of several spaces in one file the
// arrays of each have a name and / before their names, the specs in the order of
// these names, numbers in them by size: space_1/alphas_output, or space_1/0/alphas_output
// of an architecture by itself. N and its axis may be left out of a group that is of
// one architecture; so may the 1. A start/ before the names is passed over.
//
// A difference is the share of cells that are others: cells are the same whose
// vertices are in another order. Of weights that are equal those are taken that
// NumPy's argpartition took in the authors' time (supernet.TiesNumPy).
type Lookups struct {
	Source, Method string
	theirs         []data.Cell101
	asked          []lookup
}

// lookup is an architecture of a space.
type lookup struct {
	space supernet.OneShot
	theta supernet.OneShotTheta
}

// spec101 is a cell as the authors' program asks for it.
type spec101 struct {
	Matrix [][]int  `json:"matrix"`
	Ops    []string `json:"ops"`
}

// UnmarshalJSON reads the object, in which other names are passed over, or the
// pair.
func (s *spec101) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, &[]any{&s.Matrix, &s.Ops})
	}
	type plain spec101
	return json.Unmarshal(text, (*plain)(s))
}

func newLookups(arrays map[string]Array, text string) (*Lookups, error) {
	var s struct {
		Source string    `json:"source"`
		Method string    `json:"method"`
		Specs  []spec101 `json:"specs"`
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected specs as a list of matrices and operations: %w", err)
	}
	t := &Lookups{Source: s.Source, Method: s.Method}
	var errs []error
	for i, spec := range s.Specs {
		cell, err := data.NewCell101(spec.Matrix, spec.Ops)
		if err != nil {
			errs = append(errs, fmt.Errorf("settings: spec %d: %w", i+1, err))
		}
		t.theirs = append(t.theirs, cell.Canonical())
	}
	groups := map[string]map[string]Array{}
	for name, a := range arrays {
		name = strings.TrimPrefix(name, "start/")
		at := strings.LastIndex(name, "/") + 1
		group, plain := strings.TrimSuffix(name[:at], "/"), name[at:]
		if groups[group] == nil {
			groups[group] = map[string]Array{}
		}
		groups[group][plain] = a
	}
	for _, group := range sortedNumbered(groups) {
		if err := t.add(group, groups[group]); err != nil {
			errs = append(errs, err)
		}
	}
	if err := firstFew(errs); err != nil {
		return nil, err
	}
	if len(t.asked) != len(t.theirs) || len(t.asked) == 0 {
		return nil, fmt.Errorf("found %d specs in the settings and %d architectures in the arrays, expected as many "+
			"of both, at least 1", len(t.theirs), len(t.asked))
	}
	return t, nil
}

// sortedNumbered are the names, by the numbers in them.
func sortedNumbered(groups map[string]map[string]Array) (names []string) {
	for name := range groups {
		names = append(names, name)
	}
	slices.SortFunc(names, compareNumbered)
	return names
}

// add takes the architectures of a group of arrays.
func (t *Lookups) add(group string, arrays map[string]Array) error {
	at := func(name string) string { return strings.TrimPrefix(group+"/"+name, "/") }
	ops, ok := arrays["alphas_mixed_op"]
	if !ok || len(ops.Dims) < 2 || len(ops.Dims) > 3 {
		return fmt.Errorf("%s: found shape %v, expected [N, nodes, operations] (see the comment of trace.Lookups)",
			at("alphas_mixed_op"), ops.Dims)
	}
	n := 1
	if len(ops.Dims) == 3 {
		n = ops.Dims[0]
	}
	choosing, err := choosingNodes(arrays)
	if err != nil {
		return fmt.Errorf("%s%w", at(""), err)
	}
	space, err := oneShotOfShapes(ops.Dims[len(ops.Dims)-2], choosing)
	if err != nil {
		return fmt.Errorf("%s: %w", at("alphas_mixed_op"), err)
	}
	product := space.Product()
	found := make([][][][]float64, n) // of each architecture its blocks
	for i, p := range oneShotArchitecture(len(product)) {
		a, ok := arrays[p.name]
		block := product[i]
		size := block.Rows * block.Options
		if !ok || len(a.Values) != n*size || a.Dims[len(a.Dims)-1] != block.Options {
			return fmt.Errorf("%s: found shape %v, expected [%d, %d, %d] in the space %s", at(p.name), a.Dims, n,
				block.Rows, block.Options, space.Name)
		}
		for k, values := range slices.Collect(slices.Chunk(a.Values, block.Rows*block.Options)) {
			found[k] = append(found[k], slices.Collect(slices.Chunk(values, block.Options)))
		}
	}
	for _, blocks := range found {
		theta, err := space.ThetaOf(blocks)
		if err != nil {
			return fmt.Errorf("%s: %w", at("alphas_…"), err)
		}
		t.asked = append(t.asked, lookup{space, theta})
	}
	return nil
}

// choosingNodes counts the nodes that choose their inputs.
func choosingNodes(arrays map[string]Array) (n int, err error) {
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		if strings.HasPrefix(name, "alphas_inputs.") {
			n++
		} else if name != "alphas_mixed_op" && name != "alphas_output" {
			return 0, fmt.Errorf("%s: no array is called this (see the comment of trace.Lookups)", name)
		}
	}
	return n, nil
}

// oneShotOfShapes is the space with so many nodes, of which so many choose.
func oneShotOfShapes(nodes, choosing int) (supernet.OneShot, error) {
	for _, number := range []string{"1", "2", "3"} {
		if s := oneShotSpaces[number]; len(s.Parents) == nodes && len(s.Choosing()) == choosing {
			return s, nil
		}
	}
	return supernet.OneShot{}, fmt.Errorf("found %d nodes of which %d choose their inputs, expected 4 of which 2 or "+
		"3 do, or 5 of which 4 do", nodes, choosing)
}

// About is from the settings.
func (t *Lookups) About() About { return About{t.Source, t.Method, len(t.asked), shareTolerance} }

// Replay reads the cells off all architectures.
func (t *Lookups) Replay(context.Context, compute.Backend) ([]Difference, error) {
	others := 0
	var errs []error
	for i, asked := range t.asked {
		cell, err := asked.cell()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("look-up %d: %w", i+1, err))
		case cell.Canonical() != t.theirs[i]:
			others++
		}
	}
	n := float64(len(t.asked))
	d := Difference{
		Name: "specs", Step: 1, Absolute: float64(others), Relative: float64(others) / n, Scale: n,
	}
	return []Difference{d}, errors.Join(errs...)
}

// cell is the pruned cell of the architecture.
func (l lookup) cell() (data.Cell101, error) {
	arch, err := l.space.Discretize(l.theta, supernet.TiesNumPy)
	if err != nil {
		return data.Cell101{}, err
	}
	matrix, ops, err := l.space.Spec(arch)
	if err != nil {
		return data.Cell101{}, err
	}
	return data.NewCell101(matrix, ops)
}
