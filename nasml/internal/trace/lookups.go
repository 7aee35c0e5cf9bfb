package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
)

// Lookups is a trace of look-ups in NAS-Bench-101: architectures of
// NAS-Bench-1Shot1's supernets, and the cells that the authors' program asked
// that table for.
//
//	settings                 JSON: "source", "method" and "specs": of each space s1, s2, s3 a list of N pairs
//	                         [adjacency matrix, operations] of cells, pruned or not
//	SPACE/alphas_mixed_op    [N, nodes, 3]: α, or θ, which is read in the same way
//	SPACE/alphas_output      [N, 1, nodes + 1]
//	SPACE/alphas_inputs.I    [N, 1, parents], I = 0, 1, …
//
// The difference is the share of cells that differ: cells are the same if only the
// order of their vertices differs. Of equal weights those are taken that
// NumPy's argpartition took in the authors' time (supernet.TiesNumPy).
type Lookups struct {
	Source, Method string
	all            []lookup
}

// lookup is an architecture of a space and the cell that was looked up.
type lookup struct {
	space  supernet.OneShot
	theta  supernet.OneShotTheta
	theirs data.Cell101
}

// spec101 is a cell as the authors' program asks for it, [matrix, ops] in JSON.
type spec101 struct {
	Matrix [][]int
	Ops    []string
}

// UnmarshalJSON reads the pair.
func (s *spec101) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&s.Matrix, &s.Ops})
}

func newLookups(arrays map[string]Array, text string) (*Lookups, error) {
	var s struct {
		Source, Method string
		Specs          map[string][]spec101
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected JSON as in the comment of trace.Lookups: %w", err)
	}
	want, known := map[string]wanted{}, 0
	for number, space := range oneShotSpaces {
		specs := s.Specs["s"+number]
		if len(specs) == 0 {
			continue
		}
		known++
		product := space.Product()
		for i, p := range oneShotArchitecture(len(product)) {
			want["s"+number+"/"+p.name] = wanted{dims: []int{len(specs), product[i].Rows, product[i].Options}}
		}
	}
	if known != len(s.Specs) {
		return nil, fmt.Errorf("settings: found specs of %d spaces, expected those of s1, s2, s3, at least one each",
			len(s.Specs))
	}
	if err := exactly(want, arrays); err != nil {
		return nil, err
	}
	t := &Lookups{Source: s.Source, Method: s.Method}
	for _, number := range []string{"1", "2", "3"} {
		for i, spec := range s.Specs["s"+number] {
			l, err := newLookup(arrays, number, i, spec)
			if err != nil {
				return nil, fmt.Errorf("settings: spec %d of s%s: %w", i, number, err)
			}
			t.all = append(t.all, l)
		}
	}
	return t, nil
}

// newLookup is look-up i of a space, of arrays that have been checked.
func newLookup(arrays map[string]Array, number string, i int, spec spec101) (l lookup, err error) {
	l.space = oneShotSpaces[number]
	var blocks [][][]float64
	for _, p := range oneShotArchitecture(len(l.space.Product())) {
		a := arrays["s"+number+"/"+p.name].at(i)
		blocks = append(blocks, slices.Collect(slices.Chunk(a.Values, a.Dims[1])))
	}
	if l.theta, err = l.space.ThetaOf(blocks); err != nil {
		return l, err
	}
	cell, err := data.NewCell101(spec.Matrix, spec.Ops)
	if err != nil {
		return l, err
	}
	l.theirs = cell.Canonical()
	return l, nil
}

// About is from the settings.
func (t *Lookups) About() About { return About{t.Source, t.Method, len(t.all), shareTolerance} }

// Replay reads the cells off all architectures.
func (t *Lookups) Replay(context.Context, compute.Backend) ([]Difference, error) {
	differ := 0
	for i, l := range t.all {
		cell, err := l.cell()
		if err != nil {
			return nil, fmt.Errorf("look-up %d: %w", i, err)
		}
		if cell.Canonical() != l.theirs {
			differ++
		}
	}
	return []Difference{share("specs", differ, len(t.all))}, nil
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
