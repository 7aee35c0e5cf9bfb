package data

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Ops101 are the operations of NAS-Bench-101 (Ying+ 2019, https://arxiv.org/abs/1902.09635), in the order that its
// hashes depend on.
var Ops101 = [3]string{"conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"}

// Operations of the first and of the last vertex.
const (
	Input101  = "input"
	Output101 = "output"
)

// The bounds of the benchmark: cells with more, once pruned, are not in it.
const (
	MaxVertices101 = 7
	MaxEdges101    = 9
	Cells101       = 423624 // that differ
)

// Cell101 is a pruned cell of NAS-Bench-101: vertices in topological order, input first and output last, with an
// operation on each between them. Make one with NewCell101 or ParseCell101. Equal cells are ==; isomorphic ones have
// the same Hash.
type Cell101 struct {
	vertices uint8
	edges    uint64                    // bit 7i+j: an edge from vertex i to vertex j
	ops      [MaxVertices101 - 2]uint8 // of vertices 1, 2, …, as indices to Ops101
}

// NewCell101 returns the cell of an adjacency matrix [V][V] (1: an edge from the row's vertex to the column's) and V
// operations, pruned by the benchmark's own rule: vertices that are not on a path from the input to the output are
// removed. V may be larger than what is left.
//
// It returns an error if the matrix is not square and strictly upper triangular with entries 0 and 1, where an
// operation is unknown or not in its place, where no path leads from input to output, and where the pruned cell has
// more than 7 vertices or 9 edges.
func NewCell101(matrix [][]int, ops []string) (Cell101, error) {
	if err := checkMatrix101(matrix, ops); err != nil {
		return Cell101{}, err
	}
	labels, err := labels101(ops)
	if err != nil {
		return Cell101{}, err
	}
	kept := onPaths(matrix)
	if len(kept) < 2 {
		return Cell101{}, fmt.Errorf("found no path from vertex 0 (input) to vertex %d (output), expected one",
			len(ops)-1)
	}
	if len(kept) > MaxVertices101 {
		return Cell101{}, fmt.Errorf("found a cell of %d vertices once pruned, expected at most %d, input and "+
			"output included", len(kept), MaxVertices101)
	}
	c := Cell101{vertices: uint8(len(kept))}
	for i, from := range kept {
		for j, to := range kept {
			if matrix[from][to] == 1 {
				c.edges |= 1 << (MaxVertices101*i + j)
			}
		}
		if i > 0 && i < len(kept)-1 {
			c.ops[i-1] = labels[from]
		}
	}
	if c.Edges() > MaxEdges101 {
		return Cell101{}, fmt.Errorf("found a cell of %d edges once pruned, expected at most %d", c.Edges(),
			MaxEdges101)
	}
	return c, nil
}

func checkMatrix101(matrix [][]int, ops []string) error {
	if len(matrix) != len(ops) || len(ops) < 2 {
		return fmt.Errorf("found a matrix of %d rows and %d operations, expected as many of both, at least 2",
			len(matrix), len(ops))
	}
	for i, row := range matrix {
		if len(row) != len(matrix) {
			return fmt.Errorf("found %d entries in row %d of the matrix, expected %d: it must be square", len(row), i,
				len(matrix))
		}
		for j, x := range row {
			if x != 0 && x != 1 {
				return fmt.Errorf("found %d in row %d, column %d of the matrix, expected 0 or 1", x, i, j)
			}
		}
	}
	for i := range matrix {
		for j := range i + 1 {
			if matrix[i][j] != 0 {
				return fmt.Errorf("found an edge from vertex %d back to vertex %d, expected an upper triangular "+
					"matrix: number the vertices so that every edge goes to a later one", i, j)
			}
		}
	}
	return nil
}

// labels101 returns indices to Ops101; 0 for input and output.
func labels101(ops []string) ([]uint8, error) {
	last := len(ops) - 1
	if ops[0] != Input101 || ops[last] != Output101 {
		return nil, fmt.Errorf("found the operations %q, expected %q first and %q last", ops, Input101, Output101)
	}
	labels := make([]uint8, len(ops))
	for v := 1; v < last; v++ {
		op := slices.Index(Ops101[:], ops[v])
		if op < 0 {
			return nil, fmt.Errorf("found the unknown operation %q on vertex %d, expected one of %s", ops[v], v,
				strings.Join(Ops101[:], ", "))
		}
		labels[v] = uint8(op)
	}
	return labels, nil
}

func onPaths(matrix [][]int) []int {
	n := len(matrix)
	reached, reaches := make([]bool, n), make([]bool, n)
	reached[0], reaches[n-1] = true, true
	for i := range n {
		for j := i + 1; j < n; j++ {
			reached[j] = reached[j] || reached[i] && matrix[i][j] == 1
		}
	}
	for j := n - 1; j >= 0; j-- {
		for i := range j {
			reaches[i] = reaches[i] || reaches[j] && matrix[i][j] == 1
		}
	}
	var kept []int
	for v := range n {
		if reached[v] && reaches[v] {
			kept = append(kept, v)
		}
	}
	return kept
}

// Vertices counts the vertices, input and output included.
func (c Cell101) Vertices() int { return int(c.vertices) }

// Edges counts the edges.
func (c Cell101) Edges() int { return bits.OnesCount64(c.edges) }

// Edge reports whether an edge goes from one vertex to another.
func (c Cell101) Edge(from, to int) bool { return c.edges>>(MaxVertices101*from+to)&1 == 1 }

// letters101 stand for the operations in the short form of a cell.
const letters101 = "31M"

// String is the short form of the cell: a letter an operation, and the part of
// its matrix above the diagonal, row by row:
//
//	I31O 100101
func (c Cell101) String() string {
	ops, edges := c.short()
	return ops + " " + edges
}

func (c Cell101) short() (ops, edges string) {
	var o, e strings.Builder
	o.WriteByte('I')
	for _, op := range c.ops[:max(c.Vertices(), 2)-2] {
		o.WriteByte(letters101[op])
	}
	o.WriteByte('O')
	for i := range c.Vertices() {
		for j := i + 1; j < c.Vertices(); j++ {
			e.WriteString(strconv.Itoa(int(c.edges >> (MaxVertices101*i + j) & 1)))
		}
	}
	return o.String(), e.String()
}

// ParseCell101 is the inverse of String. It returns an error for other forms and for cells that are not pruned.
func ParseCell101(s string) (Cell101, error) {
	ops, edges, _ := strings.Cut(s, " ")
	c, err := parseShort101(ops, edges)
	if err != nil {
		return Cell101{}, fmt.Errorf("cell %q: %w", s, err)
	}
	return c, nil
}

func parseShort101(letters, edges string) (Cell101, error) {
	n := len(letters)
	if n < 2 || letters[0] != 'I' || letters[n-1] != 'O' || len(edges) != n*(n-1)/2 || strings.Trim(edges, "01") != "" {
		return Cell101{}, fmt.Errorf("found operations %q and edges %q, expected I, one of %s a vertex, O, and "+
			"the V(V−1)/2 digits 0 and 1 above the matrix's diagonal", letters, edges, letters101)
	}
	ops := make([]string, n)
	for v := range ops {
		if op := strings.IndexByte(letters101, letters[v]); op >= 0 {
			ops[v] = Ops101[op]
		} else {
			ops[v] = string(letters[v])
		}
	}
	ops[0], ops[n-1] = Input101, Output101
	matrix, at := make([][]int, n), 0
	for i := range matrix {
		matrix[i] = make([]int, n)
		for j := i + 1; j < n; j++ {
			matrix[i][j] = int(edges[at] - '0')
			at++
		}
	}
	return newPruned101(matrix, ops)
}

// newPruned101 is NewCell101 for a cell that must be pruned already.
func newPruned101(matrix [][]int, ops []string) (Cell101, error) {
	c, err := NewCell101(matrix, ops)
	if n := len(ops); err == nil && c.Vertices() != n {
		err = fmt.Errorf("found %d vertices of which %d are on no path from input to output, expected a pruned cell",
			n, n-c.Vertices())
	}
	return c, err
}

// label is a vertex's part of the hash: edges out, edges in, and operation (input −1, output −2).
func (c Cell101) label(v int) (out, in, op int) {
	for w := range c.Vertices() {
		out += int(c.edges >> (MaxVertices101*v + w) & 1)
		in += int(c.edges >> (MaxVertices101*w + v) & 1)
	}
	switch v {
	case 0:
		return out, in, -1
	case c.Vertices() - 1:
		return out, in, -2
	}
	return out, in, int(c.ops[v-1])
}

// Hash is the benchmark's isomorphism-invariant name of the cell (Ying+ 2019; hash_module of graph_util): every vertex
// starts with the MD5 of its label and V times takes the MD5 of its neighbours' hashes, sorted, and its own; the cell
// has the MD5 of all.
func (c Cell101) Hash() string {
	n := c.Vertices()
	hashes, next := make([]string, n), make([]string, n)
	for v := range hashes {
		out, in, op := c.label(v)
		hashes[v] = md5Hex(fmt.Sprintf("(%d, %d, %d)", out, in, op)) // as Python prints a tuple
	}
	for range n {
		for v := range next {
			var in, out []string
			for w := range n {
				if c.Edge(w, v) {
					in = append(in, hashes[w])
				}
				if c.Edge(v, w) {
					out = append(out, hashes[w])
				}
			}
			slices.Sort(in)
			slices.Sort(out)
			next[v] = md5Hex(strings.Join(in, "") + "|" + strings.Join(out, "") + "|" + hashes[v])
		}
		hashes, next = next, hashes
	}
	slices.Sort(hashes)
	return md5Hex("['" + strings.Join(hashes, "', '") + "']") // as Python prints a list
}

func md5Hex(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }

// Canonical returns the canonical order of vertices: of all topological orders the first by operations, then by edges.
// Cells of the benchmark have the same Hash exactly if their canonical forms are ==, which is much faster.
func (c Cell101) Canonical() Cell101 {
	best, found := c, false
	order := make([]int, 1, MaxVertices101) // the input comes first
	var place func(placed uint8)
	place = func(placed uint8) {
		if len(order) == c.Vertices()-1 {
			if o := c.reorder(append(order, len(order))); !found || o.before(best) {
				best, found = o, true
			}
			return
		}
		for v := 1; v < c.Vertices()-1; v++ {
			if placed>>v&1 == 1 || c.parents(v)&^placed != 0 {
				continue
			}
			order = append(order, v)
			place(placed | 1<<v)
			order = order[:len(order)-1]
		}
	}
	place(1)
	return best
}

func (c Cell101) parents(v int) (set uint8) {
	for w := range v {
		set |= uint8(c.edges>>(MaxVertices101*w+v)&1) << w
	}
	return set
}

func (c Cell101) reorder(order []int) Cell101 {
	o := Cell101{vertices: c.vertices}
	for i, from := range order {
		for j := i + 1; j < len(order); j++ {
			o.edges |= (c.edges >> (MaxVertices101*from + order[j]) & 1) << (MaxVertices101*i + j)
		}
		if i > 0 && i < len(order)-1 {
			o.ops[i-1] = c.ops[from-1]
		}
	}
	return o
}

func (c Cell101) before(d Cell101) bool {
	return cmp.Or(bytes.Compare(c.ops[:], d.ops[:]), cmp.Compare(c.edges, d.edges)) < 0
}
