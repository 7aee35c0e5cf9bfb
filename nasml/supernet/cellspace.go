package supernet

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/nasml/lab/nasml/internal/own"
)

// CellSpace is a search space of cells with two inputs as data, as in DARTS (Liu+ 2019,
// https://arxiv.org/abs/1806.09055): states 0 and 1 are the outputs of the two cells before, every further state (node)
// sums the edges from all states before it, and the cell's output is the concatenation of the nodes. Cells that keep
// the size and cells that halve it are searched apart.
type CellSpace struct {
	Name  string
	Nodes int      // states after the two inputs; a genotype keeps two edges into each
	Ops   []string // candidate operations of an edge, names of Operations, in the original's order

	// EdgeOps, if it has a type of cell, names the candidates of each of its edges instead, as many for all.
	EdgeOps map[CellType][][]string
}

// CellType tells the two cells of a CellSpace apart.
type CellType string

// The types of cells.
const (
	Normal CellType = "normal"
	Reduce CellType = "reduce" // what leaves the inputs has stride 2
)

// CellTypes are both types in the order of the architecture's parameters.
var CellTypes = []CellType{Normal, Reduce}

const (
	inputs    = 2 // of a cell
	edgesInto = 2 // edges into a node of a genotype
)

// DARTS is the space of Liu+ 2019, of PC-DARTS (Xu+ 2020) and of Li+ 2021, Section 4.2: four nodes, 14 edges, eight
// operations.
var DARTS = CellSpace{
	Name: "darts", Nodes: 4,
	Ops: []string{
		"none", "max_pool_3x3", "avg_pool_3x3", "skip_connect",
		"sep_conv_3x3", "sep_conv_5x5", "dil_conv_3x3", "dil_conv_5x5",
	},
}

// CellSpaces are the known spaces of cells with two inputs by name. Add a custom one with CellSpaces["mine"] =
// CellSpace{…}. DARTS fails on S1 to S4 (Zela+ 2020, https://arxiv.org/abs/1909.09656, Section 3; candidates from
// automl/RobustDARTS@07f54ba, src/spaces.py).
var CellSpaces = map[string]CellSpace{
	DARTS.Name: DARTS,
	"darts-s1": {Name: "darts-s1", Nodes: 4, EdgeOps: map[CellType][][]string{
		Normal: pairs("sd3 sd5 sd5 ss3 sd3 ms ss3 ss3 sd3 ss3 ms sd3 d3d5 d3d5"),
		Reduce: pairs("ma md3 ma ma sd5 ma ms3 sd3 sd5 ma ma sd5 sd5 sd5"),
	}},
	"darts-s2": {Name: "darts-s2", Nodes: 4, Ops: []string{"skip_connect", "sep_conv_3x3"}},
	"darts-s3": {Name: "darts-s3", Nodes: 4, Ops: []string{"none", "skip_connect", "sep_conv_3x3"}},
	"darts-s4": {Name: "darts-s4", Nodes: 4, Ops: []string{"noise", "sep_conv_3x3"}},
}

// pairs spells out the two candidates of every edge.
func pairs(edges string) [][]string {
	const skip, max, mean = "skip_connect", "max_pool_3x3", "avg_pool_3x3"
	const sep3, dil3, dil5 = "sep_conv_3x3", "dil_conv_3x3", "dil_conv_5x5"
	words := map[string][]string{
		"sd3": {skip, dil3}, "sd5": {skip, dil5}, "ss3": {skip, sep3}, "ms": {max, skip}, "d3d5": {dil3, dil5},
		"ma": {max, mean}, "md3": {max, dil3}, "ms3": {max, sep3},
	}
	var out [][]string
	for word := range strings.FieldsSeq(edges) {
		out = append(out, words[word])
	}
	return out
}

// Without is the space without the named operations, such as "none". It ignores names that the space lacks.
func (s CellSpace) Without(ops ...string) CellSpace {
	s.Ops = without(s.Ops, ops)
	return s
}

// With is the space with more operations, behind those that it has.
func (s CellSpace) With(ops ...string) CellSpace {
	s.Ops = append(slices.Clone(s.Ops), ops...)
	return s
}

// Edges are the edges of a cell, by node, then by origin: 2<-0, 2<-1, 3<-0, …
func (s CellSpace) Edges() []Edge {
	var edges []Edge
	for to := inputs; to < inputs+s.Nodes; to++ {
		for from := range to {
			edges = append(edges, Edge{from, to})
		}
	}
	return edges
}

// Candidates are the operations of an edge, given by its place in Edges.
func (s CellSpace) Candidates(cell CellType, edge int) []string {
	if own := s.EdgeOps[cell]; own != nil {
		return own[edge]
	}
	return s.Ops
}

// Options is the number of candidates of an edge.
func (s CellSpace) Options() int { return len(s.Candidates(Normal, 0)) }

// Check returns an error if the space is invalid: fewer than one node, an operation unknown or twice on an edge, edges
// without candidates or with different numbers of them.
func (s CellSpace) Check() error {
	if s.Nodes < 1 {
		return fmt.Errorf("space %q must have at least 1 node, got %d", s.Name, s.Nodes)
	}
	edges := s.Edges()
	for _, cell := range CellTypes {
		if own := s.EdgeOps[cell]; own != nil && len(own) != len(edges) {
			return fmt.Errorf("space %q names the operations of %d edges of the %s cell, which has %d",
				s.Name, len(own), cell, len(edges))
		}
		for e := range edges {
			if err := s.checkOps(s.Candidates(cell, e)); err != nil {
				return fmt.Errorf("space %q, edge %s of the %s cell: %w", s.Name, edges[e], cell, err)
			}
		}
	}
	return nil
}

func (s CellSpace) checkOps(ops []string) error {
	if len(ops) == 0 || len(ops) != s.Options() {
		return fmt.Errorf("it must have at least 1 operation and as many as every edge, %d, got %d", s.Options(),
			len(ops))
	}
	for i, op := range ops {
		if err := knownOperation(op); err != nil {
			return err
		}
		if slices.Contains(ops[:i], op) {
			return fmt.Errorf("operation %q is named twice", op)
		}
	}
	return nil
}

// knownOperation returns an error that lists Operations if op is not one.
func knownOperation(op string) error {
	if _, ok := Operations[op]; !ok {
		return own.Unknown("operation", op, Operations, "supernet.Operations")
	}
	return nil
}

// Architectures is the number of genotypes: two of the edges into each node,
// and on each one of its operations but none (Liu+ 2019, Section 2.3),
//
//	∏_types ∏_nodes Σ_{e<f} |Oₑ|·|O_f|  =  (∏_{k=1..n} (k+1)k/2 · 7²)² for DARTS, about 10¹⁸.
//
// Cells that only differ in the names of their nodes are counted apart.
func (s CellSpace) Architectures() *big.Int {
	total := big.NewInt(1)
	for _, cell := range CellTypes {
		into := make([]int64, s.Nodes) // Σ_{e<f} |Oₑ|·|O_f| of the edges so far
		sizes := make([]int64, s.Nodes)
		for e, edge := range s.Edges() {
			node, size := edge.To-inputs, int64(len(some(s.Candidates(cell, e))))
			into[node] += size * sizes[node]
			sizes[node] += size
		}
		for _, pairs := range into {
			total.Mul(total, big.NewInt(pairs))
		}
	}
	return total
}

// some are the operations but none.
func some(ops []string) []string { return without(ops, []string{none}) }

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
