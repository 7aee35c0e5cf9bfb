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

	"github.com/nasml/lab/nasml/supernet"
)

// Genotypes is a trace of discretisations in the DARTS space: architectures,
// and what the authors' program made of them.
//
//	settings                        JSON: "genotypes", the N texts that it printed; "method", "source"
//	alphas_normal, alphas_reduce    [N, |E|, |O|]: α, or θ where the method begins with gaea;
//	                                7 operations: without none
//	betas_…, or edges_…             [N, |E|]: β, or the weights themselves; none: 1
//
// A start/ before the names is passed over. A difference is the share of
// genotypes that are others.
type Genotypes struct {
	Source, Method string
	texts          []string
	mixtures       []supernet.Mixture
	space          supernet.CellSpace
}

func newGenotypes(arrays map[string]Array, text string) (*Genotypes, error) {
	var s struct {
		Source    string   `json:"source"`
		Method    string   `json:"method"`
		Repo      string   `json:"repo"`
		Genotypes []string `json:"genotypes"`
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("settings: expected genotypes as a list of texts: %w", err)
	}
	if s.Method == "" {
		s.Method = s.Repo
	}
	t := &Genotypes{Source: s.Source, Method: s.Method, texts: s.Genotypes, space: supernet.DARTS}
	t.mixtures = make([]supernet.Mixture, len(t.texts))
	for i := range t.mixtures {
		t.mixtures[i].Operations = map[supernet.CellType][][]float64{}
		t.mixtures[i].Edges = map[supernet.CellType][]float64{}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		errs = append(errs, t.add(strings.TrimPrefix(name, "start/"), arrays[name]))
	}
	for _, kind := range supernet.CellTypes {
		if len(t.mixtures) == 0 || t.mixtures[0].Operations[kind] == nil {
			errs = append(errs, fmt.Errorf("alphas_%s is missing, or there are no genotypes", kind))
		}
	}
	return t, firstFew(errs)
}

// add takes an array of all architectures.
func (t *Genotypes) add(name string, a Array) error {
	what, kindText, _ := strings.Cut(name, "_")
	kind, n, edges := supernet.CellType(kindText), len(t.texts), len(t.space.Edges())
	isEdges := what == "betas" || what == "edges"
	if !slices.Contains(supernet.CellTypes, kind) || what != "alphas" && !isEdges {
		return fmt.Errorf("%s: no array is called this (see the comment of trace.Genotypes)", name)
	}
	if isEdges && slices.Equal(a.Dims, []int{n, edges}) {
		t.addEdges(kind, a, what == "betas" && !t.onSimplex())
		return nil
	}
	if !isEdges && len(a.Dims) == 3 && slices.Equal(a.Dims[:2], []int{n, edges}) {
		t.addOperations(kind, a)
		return nil
	}
	return fmt.Errorf("%s: found shape %v, expected alphas_… [%d, %d, operations] or betas_…, edges_… [%d, %d]",
		name, a.Dims, n, edges, n, edges)
}

func (t *Genotypes) onSimplex() bool { return strings.HasPrefix(t.Method, "gaea") }

func (t *Genotypes) addOperations(kind supernet.CellType, a Array) {
	edges, ops := a.Dims[1], a.Dims[2]
	if ops == t.space.Options()-1 {
		t.space = t.space.Without("none")
	}
	if !t.onSimplex() {
		softmax(a.Values, ops)
	}
	for i, values := range slices.Collect(slices.Chunk(a.Values, edges*ops)) {
		t.mixtures[i].Operations[kind] = slices.Collect(slices.Chunk(values, ops))
	}
}

func (t *Genotypes) addEdges(kind supernet.CellType, a Array, logits bool) {
	for i, values := range slices.Collect(slices.Chunk(a.Values, a.Dims[1])) {
		if logits {
			softmaxInto(t.space, values)
		}
		t.mixtures[i].Edges[kind] = values
	}
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
func (t *Genotypes) About() About { return About{t.Source, t.Method, len(t.texts)} }

// Replay discretises all architectures. It is an error where one has no
// genotype or the trace's text is none.
func (t *Genotypes) Replay(context.Context, compute.Backend) ([]Difference, error) {
	others := 0
	var errs []error
	for i, text := range t.texts {
		theirs, errTheirs := supernet.ParseGenotype(text)
		ours, errOurs := t.space.Discretize(t.mixtures[i])
		if err := errors.Join(errTheirs, errOurs); err != nil {
			errs = append(errs, fmt.Errorf("genotype %d: %w", i+1, err))
		} else if ours.String() != theirs.String() {
			others++
		}
	}
	share := float64(others) / float64(len(t.texts))
	d := Difference{
		Name: "genotypes", Step: 1, Absolute: float64(others), Relative: share, Scale: float64(len(t.texts)),
	}
	return []Difference{d}, firstFew(errs)
}
