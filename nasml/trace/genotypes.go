package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"

	"github.com/nasml/lab/nasml/supernet"
)

// Genotypes is a trace of discretisations in the DARTS space: architectures,
// and what the authors' program made of them.
//
//	settings                        JSON: "genotypes", "method" (or "repo"), "source"
//	alphas_normal, alphas_reduce    [N, |E|, |O|]: α, or θ where the method is one of GAEA's;
//	                                7 operations: without none
//	betas_…, or edges_…             [N, |E|]: β, or the weights themselves; none: 1
//
// "genotypes" is a list of N, each the text that was printed or an object with
// "genotype" and a "method" of its own, or an object of such lists by group;
// then the arrays of a group have GROUP/ before their names, and the group's name
// is the method of those that name none. An architecture may have arrays of its
// own, [|E|, |O|] and [|E|], whose names have its number, from 0, in front (3/) or
// behind (.3, /3). A start/ before the names is passed over. Without a method rows
// that sum to 1 are θ. A difference is the share of genotypes that are others.
type Genotypes struct {
	Source, Method string
	all            []*genotype
	groups         map[string][]*genotype
}

// genotype is one discretisation.
type genotype struct {
	method, text string
	alphas       map[supernet.CellType]Array // [|E|, |O|]
	edges        map[supernet.CellType]Array // [|E|]
	logits       bool                        // edges are β, which a softmax makes weights
}

// UnmarshalJSON reads a text, or an object.
func (g *genotype) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &g.text) == nil {
		return nil
	}
	var o struct{ Genotype, Method, Repo string }
	err := json.Unmarshal(text, &o)
	g.text, g.method = o.Genotype, or(o.Method, o.Repo)
	return err
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func newGenotypes(arrays map[string]Array, text string) (*Genotypes, error) {
	var s struct {
		Source, Method, Repo string
		Genotypes            json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected JSON as in the comment of trace.Genotypes: %w", err)
	}
	t := &Genotypes{Source: s.Source, Method: or(s.Method, s.Repo), groups: map[string][]*genotype{}}
	if json.Unmarshal(s.Genotypes, &t.groups) != nil {
		var list []*genotype
		if err := json.Unmarshal(s.Genotypes, &list); err != nil {
			return nil, fmt.Errorf("settings: expected genotypes as a list of texts, or an object of lists: %w", err)
		}
		t.groups = map[string][]*genotype{"": list}
	}
	t.fill()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		errs = append(errs, t.add(name, arrays[name]))
	}
	if len(t.all) == 0 {
		errs = append(errs, errors.New("settings: there are no genotypes"))
	}
	for i, g := range t.all {
		for _, kind := range supernet.CellTypes {
			if _, ok := g.alphas[kind]; !ok && len(errs) < len(arrays)+2 {
				errs = append(errs, fmt.Errorf("alphas_%s is missing, of genotype %d", kind, i))
			}
		}
	}
	return t, firstFew(errs)
}

// fill lists the genotypes of all groups, and names the methods of those that
// have none.
func (t *Genotypes) fill() {
	for _, group := range slices.Sorted(maps.Keys(t.groups)) {
		for _, g := range t.groups[group] {
			g.method = or(g.method, or(group, t.Method))
			g.alphas, g.edges = map[supernet.CellType]Array{}, map[supernet.CellType]Array{}
		}
		t.all = append(t.all, t.groups[group]...)
	}
}

// genotypeName takes a name apart: group, number, what, of which cell, number.
var genotypeName = regexp.MustCompile(`^(?:start/)?(?:(.*?)/)??(?:(\d+)/)?` +
	`(alphas|betas|edges)_(normal|reduce)(?:[./](\d+))?$`)

// add takes an array of all architectures of a group, or of one.
func (t *Genotypes) add(name string, a Array) error {
	part := genotypeName.FindStringSubmatch(name)
	if part == nil {
		return fmt.Errorf("%s: no array is called this (see the comment of trace.Genotypes)", name)
	}
	group, ok := t.groups[part[1]]
	if !ok {
		return fmt.Errorf("%s: the settings have no genotypes of the group %q", name, part[1])
	}
	if number := or(part[2], part[5]); number != "" {
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(group) {
			return fmt.Errorf("%s: the settings have %d genotypes, counted from 0", name, len(group))
		}
		group, a.Dims = group[i:i+1], append([]int{1}, a.Dims...)
	}
	n, edges := len(group), len(supernet.DARTS.Edges())
	isEdges := part[3] != "alphas"
	if isEdges && !slices.Equal(a.Dims, []int{n, edges}) ||
		!isEdges && (len(a.Dims) != 3 || !slices.Equal(a.Dims[:2], []int{n, edges})) {
		return fmt.Errorf("%s: found shape %v, expected alphas_… [%d, %d, operations] or betas_…, edges_… [%d, %d]",
			name, a.Dims, n, edges, n, edges)
	}
	rows := size(a.Dims[1:])
	for i, g := range group {
		one := Array{Dims: a.Dims[1:], Values: a.Values[i*rows : (i+1)*rows]}
		if kind := supernet.CellType(part[4]); isEdges {
			g.edges[kind], g.logits = one, part[3] == "betas"
		} else {
			g.alphas[kind] = one
		}
	}
	return nil
}

// onSimplex says whether the operations' weights are θ: those of GAEA's methods,
// and, where no method of a search is named, of rows that sum to 1.
func (g *genotype) onSimplex() bool {
	switch method := strings.ToLower(g.method); {
	case strings.Contains(method, "gaea"), strings.Contains(method, "edarts"):
		return true
	case strings.Contains(method, "darts"):
		return false
	}
	for _, a := range g.alphas {
		if !a.onSimplex() {
			return false
		}
	}
	return true
}

// onSimplex says whether the rows of a matrix sum to 1.
func (a Array) onSimplex() bool {
	if len(a.Dims) == 0 || a.Dims[len(a.Dims)-1] < 1 {
		return false
	}
	for row := range slices.Chunk(a.Values, a.Dims[len(a.Dims)-1]) {
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		if math.Abs(sum-1) > 1e-6 || slices.Min(row) < 0 {
			return false
		}
	}
	return true
}

// discretize is the genotype of the architecture.
func (g *genotype) discretize() (supernet.Genotype, error) {
	space, simplex := supernet.DARTS, g.onSimplex()
	m := supernet.Mixture{
		Operations: map[supernet.CellType][][]float64{}, Edges: map[supernet.CellType][]float64{},
	}
	for kind, a := range g.alphas {
		ops, values := a.Dims[1], slices.Clone(a.Values)
		if ops == supernet.DARTS.Options()-1 {
			space = supernet.DARTS.Without("none")
		}
		if !simplex {
			softmax(values, ops)
		}
		m.Operations[kind] = slices.Collect(slices.Chunk(values, ops))
	}
	for kind, a := range g.edges {
		values := slices.Clone(a.Values)
		if g.logits && !simplex {
			softmaxInto(space, values)
		}
		m.Edges[kind] = values
	}
	return space.Discretize(m)
}

// softmaxInto makes the weights of the edges into each node sum to 1.
func softmaxInto(space supernet.CellSpace, weights []float64) {
	all := space.Edges()
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].To == all[from].To {
			to++
		}
		softmax(weights[from:to], to-from)
		from = to
	}
}

// About is from the settings.
func (t *Genotypes) About() About { return About{t.Source, t.Method, len(t.all), shareTolerance} }

// Replay discretises all architectures. It is an error where one has no
// genotype or the trace's text is none.
func (t *Genotypes) Replay(context.Context, compute.Backend) ([]Difference, error) {
	others := 0
	var errs []error
	for i, g := range t.all {
		theirs, errTheirs := supernet.ParseGenotype(g.text)
		ours, errOurs := g.discretize()
		if err := errors.Join(errTheirs, errOurs); err != nil {
			errs = append(errs, fmt.Errorf("genotype %d: %w", i, err))
		} else if ours.String() != theirs.String() {
			others++
		}
	}
	share := float64(others) / float64(len(t.all))
	d := Difference{
		Name: "genotypes", Step: 1, Absolute: float64(others), Relative: share, Scale: float64(len(t.all)),
	}
	return []Difference{d}, firstFew(errs)
}
