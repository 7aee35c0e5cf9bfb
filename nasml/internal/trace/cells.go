package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/supernet"
)

// Cells is a trace of architectures and the cells that the authors' programs read off
// them. The difference is the share of cells that differ.
//
// Genotypes are of the DARTS space, by three programs:
//
//	settings                         JSON: "source", "method" and "genotypes": of each group a list of N pairs
//	                                 [normal, reduce] of cells, eight pairs [operation, input] each
//	GROUP/alphas_normal, …_reduce    [N, 14, 8]: α of darts and pcdarts, θ of gaea
//	pcdarts/betas_normal, …_reduce   [N, 14]: β
//	gaea/edges_normal, …_reduce      [N, 14]: weights of edges, on a simplex for each node
//
// A genotype is not counted if where it differs the weight of its pair and that of ours
// differ by rounding: softmax sums the same numbers in another order.
//
// Look-ups are cells of NAS-Bench-1Shot1's supernets, which were asked for in the table of NAS-Bench-101:
//
//	settings                 JSON: "source", "method" and "specs": of each space s1, s2, s3 a list of N pairs
//	                         [adjacency matrix, operations] of cells, pruned or not
//	SPACE/alphas_mixed_op    [N, nodes, 3]: α, or θ, which is read in the same way
//	SPACE/alphas_output      [N, 1, nodes + 1]
//	SPACE/alphas_inputs.I    [N, 1, parents], I = 0, 1, …
//
// They are the same if only the order of their vertices differs. Of equal weights those
// are taken that NumPy's argpartition took in the authors' time (supernet.TiesNumPy).
type Cells struct {
	Source, Method string

	what string // "genotypes" or "specs"
	all  []interface{ agrees() (bool, error) }
}

// About is from the settings.
func (t *Cells) About() About { return About{t.Source, t.Method, len(t.all), shareTolerance} }

// Replay reads the cells off all architectures.
func (t *Cells) Replay(context.Context, compute.Backend) ([]Difference, error) {
	differ, n := 0.0, float64(len(t.all))
	for i, c := range t.all {
		agrees, err := c.agrees()
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", t.what, i, err)
		}
		if !agrees {
			differ++
		}
	}
	return []Difference{{Name: t.what, Step: 1, Absolute: differ, Relative: differ / n, Scale: n}}, nil
}

// discretization is an architecture and what the authors' program made of it.
type discretization struct {
	mixture supernet.Mixture
	theirs  supernet.Genotype
}

// edgesOfGroup are the names of the arrays of edge weights, by group.
var edgesOfGroup = map[string]string{"darts": "", "pcdarts": "betas", "gaea": "edges"}

// gene is ["OPERATION", INPUT] in JSON.
type gene supernet.Gene

// UnmarshalJSON reads the pair.
func (g *gene) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &[]any{&g.Op, &g.From}) }

func newGenotypes(arrays map[string]Array, text string) (Replayable, error) {
	var s struct {
		Source, Method string
		Genotypes      map[string][][2][]gene
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected JSON as in the comment of trace.Cells: %w", err)
	}
	t := &Cells{Source: s.Source, Method: s.Method, what: "genotypes"}
	want := map[string]wanted{}
	for group, list := range s.Genotypes {
		edges, ok := edgesOfGroup[group]
		if !ok || len(list) == 0 {
			return nil, fmt.Errorf("settings: found %d genotypes of %q, expected at least one, of darts, pcdarts "+
				"or gaea", len(list), group)
		}
		for _, kind := range supernet.CellTypes {
			rows := []int{len(list), len(supernet.DARTS.Edges())}
			want[fmt.Sprintf("%s/alphas_%s", group, kind)] = wanted{dims: append(rows, supernet.DARTS.Options())}
			if edges != "" {
				want[fmt.Sprintf("%s/%s_%s", group, edges, kind)] = wanted{dims: rows}
			}
		}
	}
	if err := exactly(want, arrays); err != nil {
		return nil, err
	}
	for _, group := range slices.Sorted(maps.Keys(s.Genotypes)) {
		for i, cells := range s.Genotypes[group] {
			d, err := newDiscretization(arrays, group, i, cells)
			if err != nil {
				return nil, fmt.Errorf("settings: genotype %d of %s: %w", i, group, err)
			}
			t.all = append(t.all, d)
		}
	}
	return t, nil
}

func exactly(want map[string]wanted, arrays map[string]Array) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, want[name].check(name, arrays))
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		if _, ok := want[name]; !ok {
			errs = append(errs, fmt.Errorf("%s: found an array of this name, expected %v", name,
				slices.Sorted(maps.Keys(want))))
		}
	}
	if len(want) == 0 {
		errs = append(errs, fmt.Errorf("settings: found nothing to compare"))
	}
	return firstFew(errs)
}

func newDiscretization(arrays map[string]Array, group string, i int, cells [2][]gene) (d discretization, err error) {
	d.mixture = supernet.Mixture{
		Operations: map[supernet.CellType][][]float64{}, Edges: map[supernet.CellType][]float64{},
	}
	var made []supernet.Cell
	for c, kind := range supernet.CellTypes {
		values := arrays[fmt.Sprintf("%s/alphas_%s", group, kind)].at(i).Values
		if group != "gaea" {
			softmax(values, supernet.DARTS.Options())
		}
		d.mixture.Operations[kind] = slices.Collect(slices.Chunk(values, supernet.DARTS.Options()))
		if edges := edgesOfGroup[group]; edges != "" {
			weights := arrays[fmt.Sprintf("%s/%s_%s", group, edges, kind)].at(i).Values
			if edges == "betas" {
				softmaxInto(supernet.DARTS, weights)
			}
			d.mixture.Edges[kind] = weights
		}
		cell := supernet.Cell{Concat: []int{2, 3, 4, 5}}
		for _, g := range cells[c] {
			cell.Genes = append(cell.Genes, supernet.Gene(g))
		}
		made = append(made, cell)
	}
	d.theirs = supernet.Genotype{Normal: made[0], Reduce: made[1]} // in the order of CellTypes
	if n, r := len(cells[0]), len(cells[1]); n != 8 || r != 8 {
		return d, fmt.Errorf("found cells of %d and %d pairs [operation, input], expected 8 each", n, r)
	}
	return d, d.theirs.Check()
}

func (a Array) at(i int) Array {
	n := size(a.Dims[1:])
	return Array{Type: a.Type, Dims: a.Dims[1:], Values: slices.Clone(a.Values[i*n : (i+1)*n])}
}

func softmaxInto(space supernet.CellSpace, weights []float64) {
	into := map[int]int{}
	for _, e := range space.Edges() {
		into[e.To]++
	}
	for _, node := range slices.Sorted(maps.Keys(into)) {
		softmax(weights[:into[node]], into[node])
		weights = weights[into[node]:]
	}
}

// agrees reports whether ours is the authors' genotype, up to ties by rounding.
func (d discretization) agrees() (bool, error) {
	ours, err := supernet.DARTS.Discretize(d.mixture)
	if err != nil {
		return false, err
	}
	for _, kind := range supernet.CellTypes {
		for k, theirs := range d.theirs.Cell(kind).Genes {
			mine := ours.Cell(kind).Genes[k]
			x, y := d.weight(kind, k, mine), d.weight(kind, k, theirs)
			if tie := x != y && math.Abs(x-y) < 1e-15; mine != theirs && !tie {
				return false, nil
			}
		}
	}
	return true, nil
}

// weight is that of a gene's operation times its edge.
func (d discretization) weight(kind supernet.CellType, k int, g supernet.Gene) float64 {
	space := supernet.DARTS
	to := 2 + k/2
	edge := slices.Index(space.Edges(), supernet.Edge{From: g.From, To: to})
	op := slices.Index(space.Candidates(kind, edge), g.Op)
	if op < 0 {
		return math.NaN()
	}
	weight := d.mixture.Operations[kind][edge][op]
	if edges := d.mixture.Edges[kind]; edges != nil {
		weight *= edges[edge]
	}
	return weight
}

// lookup is an architecture of a space and the cell that was looked up.
type lookup struct {
	space  supernet.OneShot
	theta  [][][]float64
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

func newLookups(arrays map[string]Array, text string) (Replayable, error) {
	var s struct {
		Source, Method string
		Specs          map[string][]spec101
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected JSON as in the comment of trace.Cells: %w", err)
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
	t := &Cells{Source: s.Source, Method: s.Method, what: "specs"}
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

func newLookup(arrays map[string]Array, number string, i int, spec spec101) (l lookup, err error) {
	l.space = oneShotSpaces[number]
	for _, p := range oneShotArchitecture(len(l.space.Product())) {
		a := arrays["s"+number+"/"+p.name].at(i)
		l.theta = append(l.theta, slices.Collect(slices.Chunk(a.Values, a.Dims[1])))
	}
	if err := l.space.CheckTheta(l.theta); err != nil {
		return l, err
	}
	cell, err := data.NewCell101(spec.Matrix, spec.Ops)
	if err != nil {
		return l, err
	}
	l.theirs = cell.Canonical()
	return l, nil
}

func (l lookup) agrees() (bool, error) {
	arch, err := l.space.Discretize(l.theta, supernet.TiesNumPy)
	if err != nil {
		return false, err
	}
	matrix, ops, err := l.space.Spec(arch)
	if err != nil {
		return false, err
	}
	cell, err := data.NewCell101(matrix, ops)
	return err == nil && cell.Canonical() == l.theirs, err
}
