package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/supernet"
)

// Genotypes is a trace of discretizations in the DARTS space: architectures of three
// programs, and the cells that these printed.
//
//	settings                         JSON: "source", "method" and "genotypes": of each group a list of N pairs
//	                                 [normal, reduce] of cells, eight pairs [operation, input] each
//	GROUP/alphas_normal, …_reduce    [N, 14, 8]: α of darts and pcdarts, θ of gaea
//	pcdarts/betas_normal, …_reduce   [N, 14]: β
//	gaea/edges_normal, …_reduce      [N, 14]: weights of edges, on a simplex for each node
//
// The difference is the share of genotypes that differ. A pair that differs is a tie,
// and the genotype is not counted, if its weight and that of our pair differ by
// rounding: softmax sums the same numbers in another order.
type Genotypes struct {
	Source, Method string
	all            []discretization
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

func newGenotypes(arrays map[string]Array, text string) (*Genotypes, error) {
	var s struct {
		Source, Method string
		Genotypes      map[string][][2][]gene
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected JSON as in the comment of trace.Genotypes: %w", err)
	}
	t := &Genotypes{Source: s.Source, Method: s.Method}
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

// exactly reports arrays that are missing, of another shape, or not expected.
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

// newDiscretization is genotype i of a group, of arrays that have been checked.
func newDiscretization(arrays map[string]Array, group string, i int, cells [2][]gene) (d discretization, err error) {
	d.mixture = supernet.Mixture{
		Operations: map[supernet.CellType][][]float64{}, Edges: map[supernet.CellType][]float64{},
	}
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
		*map[supernet.CellType]*supernet.Cell{
			supernet.Normal: &d.theirs.Normal, supernet.Reduce: &d.theirs.Reduce,
		}[kind] = cell
	}
	if n, r := len(cells[0]), len(cells[1]); n != 8 || r != 8 {
		return d, fmt.Errorf("found cells of %d and %d pairs [operation, input], expected 8 each", n, r)
	}
	return d, d.theirs.Check()
}

// at is row i of the first axis, a copy.
func (a Array) at(i int) Array {
	n := size(a.Dims[1:])
	return Array{Type: a.Type, Dims: a.Dims[1:], Values: slices.Clone(a.Values[i*n : (i+1)*n])}
}

// softmaxInto makes the weights of the edges into each node sum to 1.
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

// About is from the settings.
func (t *Genotypes) About() About { return About{t.Source, t.Method, len(t.all), shareTolerance} }

// Replay discretizes all architectures.
func (t *Genotypes) Replay(context.Context, compute.Backend) ([]Difference, error) {
	differ := 0
	for _, d := range t.all {
		ours, err := supernet.DARTS.Discretize(d.mixture)
		if err != nil {
			return nil, err
		}
		if !d.agrees(ours) {
			differ++
		}
	}
	return []Difference{share("genotypes", differ, len(t.all))}, nil
}

// share is the difference of a trace of which so many of all things differ.
func share(name string, differ, all int) Difference {
	n := float64(all)
	return Difference{Name: name, Step: 1, Absolute: float64(differ), Relative: float64(differ) / n, Scale: n}
}

// agrees reports whether ours is the authors' genotype, but for ties of rounding.
func (d discretization) agrees(ours supernet.Genotype) bool {
	for _, kind := range supernet.CellTypes {
		for k, theirs := range d.theirs.Cell(kind).Genes {
			mine := ours.Cell(kind).Genes[k]
			x, y := d.weight(kind, k, mine), d.weight(kind, k, theirs)
			if tie := x != y && math.Abs(x-y) < 1e-15; mine != theirs && !tie {
				return false
			}
		}
	}
	return true
}

// weight is that of a gene into the node of place k: of its operation times its edge.
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
