package supernet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Edge goes from node From to node To of a cell.
type Edge struct{ From, To int }

// String prints "2<-0" for the edge from node 0 to node 2.
func (e Edge) String() string { return fmt.Sprintf("%d<-%d", e.To, e.From) }

// Space is a cell search space as data: nodes, edges, candidate operations. Node 0 is the cell's input; node j is the
// sum of the mixed operations of the edges into it; the last node is the cell's output.
type Space struct {
	Name  string
	Nodes int      // of a cell, input included
	Edges []Edge   // in the original's order
	Ops   []string // candidate operations of every edge, in the original's order: NAS-Bench-201's, or of Operations
}

// NASBench201 is the space of Dong & Yang 2020 (https://arxiv.org/abs/2001.00326): four nodes, each connected to all
// before it, five operations an edge; 5⁶ = 15,625 architectures.
var NASBench201 = Space{
	Name:  "nasbench201",
	Nodes: 4,
	Edges: []Edge{{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}},
	Ops:   []string{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"},
}

// Spaces are the known cell spaces by name. Add a custom one with Spaces["mine"] = Space{…}.
var Spaces = map[string]Space{NASBench201.Name: NASBench201}

// Without is the space without the named operations, such as "none". It ignores names that the space lacks.
func (s Space) Without(ops ...string) Space {
	s.Ops = without(s.Ops, ops)
	return s
}

func without(all, names []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(op string) bool { return slices.Contains(names, op) })
}

// With is the space with more operations, behind those that it has.
func (s Space) With(ops ...string) Space {
	s.Ops = append(slices.Clone(s.Ops), ops...)
	return s
}

// Check returns an error if the space is not a cell: an edge that does not go from an earlier node to a later one, an
// edge twice, a node after the first that no edge enters, an operation unknown or twice.
func (s Space) Check() error {
	if s.Nodes < 2 || len(s.Ops) == 0 {
		return fmt.Errorf("space %q has %d nodes and %d operations: a cell needs at least 2 nodes and 1 operation",
			s.Name, s.Nodes, len(s.Ops))
	}
	seen, entered := map[Edge]bool{}, map[int]bool{}
	for _, e := range s.Edges {
		if e.From < 0 || e.From >= e.To || e.To >= s.Nodes || seen[e] {
			return fmt.Errorf("space %q: edge %s must go once from an earlier node to a later one, 0 ≤ from < to < %d",
				s.Name, e, s.Nodes)
		}
		seen[e], entered[e.To] = true, true
	}
	for j := 1; j < s.Nodes; j++ {
		if !entered[j] {
			return fmt.Errorf("space %q: no edge enters node %d", s.Name, j)
		}
	}
	for i, op := range s.Ops {
		_, own := inserted(op)
		if _, ok := operations[op]; !ok && !own || slices.Contains(s.Ops[:i], op) {
			return fmt.Errorf("space %q: operation %q is unknown or named twice: take each of %s at most once, or add "+
				"your own to supernet.Operations", s.Name, op, strings.Join(operationNames(), ", "))
		}
	}
	return nil
}

// operationNames are the operations of cells, with those of a reader.
func operationNames() []string {
	names := slices.Concat(slices.Collect(maps.Keys(operations)), slices.Collect(maps.Keys(Operations)))
	slices.Sort(names)
	return slices.Compact(names)
}

// Argmax is the discretisation of θ [|E|, |O|]: the operation of the largest weight on each edge, the first of equals,
// as in PyTorch on CPU (a uniform θ is a tie on every edge, not an architecture).
func (s Space) Argmax(theta [][]float64) []int {
	choice := make([]int, len(theta))
	for e, row := range theta {
		for o := range row {
			if row[o] > row[choice[e]] {
				choice[e] = o
			}
		}
	}
	return choice
}

// Arch prints the operations of all edges as NAS-Bench-201 does, the nodes
// after the input joined by "+":
//
//	|nor_conv_3x3~0|+|skip_connect~0|none~1|+|avg_pool_3x3~0|…~1|…~2|
func (s Space) Arch(choice []int) string {
	var nodes []string
	for j := 1; j < s.Nodes; j++ {
		node := "|"
		for e, edge := range s.Edges {
			if edge.To == j {
				node += fmt.Sprintf("%s~%d|", s.Ops[choice[e]], edge.From)
			}
		}
		nodes = append(nodes, node)
	}
	return strings.Join(nodes, "+")
}

// Parse is the inverse of Arch: the operation of each edge in the space's order. It returns an error for a string that
// Arch does not print.
func (s Space) Parse(arch string) ([]int, error) {
	nodes := strings.Split(arch, "+")
	if len(nodes) != s.Nodes-1 {
		return nil, fmt.Errorf("architecture %q has %d nodes after the input, the space %q has %d", arch, len(nodes),
			s.Name, s.Nodes-1)
	}
	choice := make([]int, len(s.Edges))
	for e, edge := range s.Edges {
		choice[e] = -1
		for _, part := range strings.Split(nodes[edge.To-1], "|") {
			if op, from, _ := strings.Cut(part, "~"); from == fmt.Sprint(edge.From) {
				choice[e] = slices.Index(s.Ops, op)
			}
		}
		if choice[e] < 0 {
			return nil, fmt.Errorf("architecture %q has none of %s on edge %s", arch, strings.Join(s.Ops, ", "), edge)
		}
	}
	if again := s.Arch(choice); again != arch {
		return nil, fmt.Errorf("architecture %q is not as the space %q prints it, %q", arch, s.Name, again)
	}
	return choice, nil
}

// OneHot is θ [|E|, |O|] of a discrete architecture.
func (s Space) OneHot(choice []int) [][]float64 {
	theta := make([][]float64, len(choice))
	for e, o := range choice {
		theta[e] = make([]float64, len(s.Ops))
		theta[e][o] = 1
	}
	return theta
}
