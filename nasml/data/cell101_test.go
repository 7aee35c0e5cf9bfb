package data

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	conv3x3, conv1x1, maxPool = "conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"
)

// The Inception-like cell in the documentation of the benchmark's interface,
// and the same as the benchmark stores it. Its hash stands in public tests of
// others (google-research/google-research, evaluation by quantised NAS-Bench).
func TestCell101HashIsTheBenchmarks(t *testing.T) {
	asked, err := NewCell101([][]int{
		{0, 1, 1, 1, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 1, 0, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 0},
	}, []string{"input", conv1x1, conv3x3, conv3x3, conv3x3, maxPool, "output"})
	require.NoError(t, err)
	stored, err := NewCell101([][]int{
		{0, 1, 1, 1, 1, 0, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0, 0, 0},
	}, []string{"input", conv3x3, conv1x1, maxPool, conv3x3, conv3x3, "output"})
	require.NoError(t, err)
	require.Equal(t, "28cfc7874f6d200472e1a9dcd8650aa0", asked.Hash())
	require.Equal(t, asked.Hash(), stored.Hash())
	require.NotEqual(t, asked, stored)
	require.Equal(t, asked.Canonical(), stored.Canonical())
	require.Equal(t, 7, asked.Vertices())
	require.Equal(t, 9, asked.Edges())

	short, err := ParseCell101("I3O 111")
	require.NoError(t, err)
	require.Equal(t, short.names(), []string{"input", conv3x3, "output"})
	one, err := ParseCell101("I1O 111")
	require.NoError(t, err)
	require.Equal(t, "09fc2d10bdd6225e167a6f81a22a3f06", one.Hash(), "by a Python program of the definition")
}

// drawCell draws a matrix of 2 to 7 vertices, however many of them are on
// paths, and the cell that is left of it, if there is one.
func drawCell(t *rapid.T) (matrix [][]int, ops []string) {
	n := rapid.IntRange(2, 7).Draw(t, "vertices")
	ops = []string{Input101}
	matrix = make([][]int, n)
	for i := range matrix {
		matrix[i] = make([]int, n)
		for j := i + 1; j < n; j++ {
			matrix[i][j] = rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "edge")
		}
		if i > 0 && i < n-1 {
			ops = append(ops, rapid.SampledFrom(Ops101[:]).Draw(t, "op"))
		}
	}
	return matrix, append(ops, Output101)
}

// Renaming vertices changes neither hash nor canonical form; other cells have
// others.
func TestCell101Canonical(t *testing.T) {
	byHash := map[string]Cell101{}
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewCell101(drawCell(t))
		if err != nil {
			t.Skip(err)
		}
		again, err := NewCell101(c.matrix(), c.names())
		require.NoError(t, err)
		require.Equal(t, c, again, "a pruned cell stays as it is")
		parsed, err := ParseCell101(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)

		order := shuffled(c, rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))))
		other := c.reorder(order)
		require.Equal(t, c.Hash(), other.Hash())
		require.Equal(t, c.Canonical(), other.Canonical())
		require.Equal(t, c.Canonical(), c.Canonical().Canonical())
		if seen, ok := byHash[c.Hash()]; ok {
			require.Equal(t, seen, c.Canonical(), "one hash, one canonical form")
		}
		byHash[c.Hash()] = c.Canonical()
	})
	forms := map[Cell101]string{}
	for hash, c := range byHash {
		require.Empty(t, forms[c], "one canonical form, one hash")
		forms[c] = hash
	}
}

// shuffled is a random order in which every edge goes to a later vertex.
func shuffled(c Cell101, rng *rand.Rand) []int {
	order, placed := []int{0}, uint8(1)
	for len(order) < c.Vertices() {
		v := 1 + rng.IntN(c.Vertices()-1)
		tooEarly := v == c.Vertices()-1 && len(order) < v
		if placed>>v&1 == 1 || c.parents(v)&^placed != 0 || tooEarly {
			continue
		}
		order, placed = append(order, v), placed|1<<v
	}
	return order
}

// Pruning keeps exactly what is on a path: here vertex 1 is a loose end, vertex
// 2 has no input, and 3 is left.
func TestCell101Pruned(t *testing.T) {
	c, err := NewCell101([][]int{
		{0, 1, 0, 1, 0},
		{0, 0, 0, 0, 0},
		{0, 0, 0, 0, 1},
		{0, 0, 0, 0, 1},
		{0, 0, 0, 0, 0},
	}, []string{"input", conv1x1, maxPool, conv3x3, "output"})
	require.NoError(t, err)
	require.Equal(t, "I3O 101", c.String())
}

func TestCell101Errors(t *testing.T) {
	chain := func(n int) ([][]int, []string) {
		m, ops := make([][]int, n), make([]string, n)
		for i := range m {
			m[i], ops[i] = make([]int, n), conv3x3
			if i < n-1 {
				m[i][i+1] = 1
			}
		}
		ops[0], ops[n-1] = Input101, Output101
		return m, ops
	}
	type change func(m [][]int, o []string) ([][]int, []string)
	edited := func(edit func(m [][]int, o []string)) change {
		return func(m [][]int, o []string) ([][]int, []string) {
			edit(m, o)
			return m, o
		}
	}
	for name, c := range map[string]struct {
		n      int
		change change
		want   string
	}{
		"cycle": {5, edited(func(m [][]int, _ []string) { m[3][1] = 1 }), "an edge from vertex 3 back to vertex 1"},
		"self":  {4, edited(func(m [][]int, _ []string) { m[2][2] = 1 }), "an edge from vertex 2 back to vertex 2"},
		"backwards": {4, edited(func(m [][]int, _ []string) { m[1][2], m[2][1] = 0, 1 }),
			"an edge from vertex 2 back to vertex 1, expected an upper triangular matrix"},
		"unknown op": {4, edited(func(_ [][]int, o []string) { o[2] = "conv5x5" }),
			`the unknown operation "conv5x5" on vertex 2, ` +
				`expected one of conv3x3-bn-relu, conv1x1-bn-relu, maxpool3x3`},
		"no input": {3, edited(func(_ [][]int, o []string) { o[0] = conv3x3 }), `expected "input" first`},
		"no path": {4, edited(func(m [][]int, _ []string) { m[1][2] = 0 }),
			"no path from vertex 0 (input) to vertex 3"},
		"not square": {3, edited(func(m [][]int, _ []string) { m[1] = m[1][:2] }), "2 entries in row 1"},
		"op too few": {4, func(m [][]int, o []string) ([][]int, []string) { return m, o[:3] },
			"4 rows and 3 operations"},
		"a two": {3, edited(func(m [][]int, _ []string) { m[0][1] = 2 }), "found 2 in row 0, column 1"},
		"8 vertices": {8, edited(func([][]int, []string) {}),
			"8 vertices once pruned, expected at most 7"},
		"too many": {7, edited(func(m [][]int, _ []string) {
			m[0][2], m[0][3], m[0][4], m[0][5] = 1, 1, 1, 1
		}), "10 edges once pruned, expected at most 9"},
		"nothing": {2, func([][]int, []string) ([][]int, []string) { return nil, nil }, "0 rows and 0 operations"},
		"empty matrix": {2, func(_ [][]int, o []string) ([][]int, []string) { return [][]int{nil, nil}, o },
			"0 entries in row 0"},
	} {
		m, ops := chain(c.n)
		_, err := NewCell101(c.change(m, ops))
		require.ErrorContains(t, err, c.want, name)
	}
	for text, want := range map[string]string{
		"":         "V(V−1)/2",
		"I3O":      "V(V−1)/2",
		"I3O 1112": "V(V−1)/2",
		"I3O 121":  "V(V−1)/2",
		"I5O 111":  `unknown operation "5"`,
		"I3O 011":  "expected a pruned cell",
		"I3O 100":  "no path",
	} {
		_, err := ParseCell101(text)
		require.ErrorContains(t, err, want, text)
	}
	require.NotPanics(t, func() { _ = Cell101{}.String() })
}

func BenchmarkCell101Canonical(b *testing.B) {
	c, err := ParseCell101("I1313MO 111100000010001001101") // 24 orders
	require.NoError(b, err)
	for b.Loop() {
		_ = c.Canonical()
	}
}

// matrix is the adjacency matrix [V][V], strictly upper triangular, from which
// NewCell101 makes the same cell with names.
func (c Cell101) matrix() [][]int {
	matrix := make([][]int, c.vertices)
	for i := range matrix {
		matrix[i] = make([]int, c.vertices)
		for j := range matrix[i] {
			if c.Edge(i, j) {
				matrix[i][j] = 1
			}
		}
	}
	return matrix
}

// names are the operations of all vertices.
func (c Cell101) names() []string {
	ops := []string{Input101}
	for _, op := range c.ops[:max(c.Vertices(), 2)-2] {
		ops = append(ops, Ops101[op])
	}
	return append(ops, Output101)
}
