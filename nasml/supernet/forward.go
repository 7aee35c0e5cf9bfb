package supernet

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/own"
)

// operation is a candidate operation as data.
type operation struct {
	kernel int  // of a ReLU–convolution–BN, else 0
	skip   bool // identity
	pool   bool // 3×3 mean
}

// operations are those of NAS-Bench-201 by name, computed together for all edges that leave a node. All others are in
// Operations.
var operations = map[string]operation{
	"none":         {},
	"skip_connect": {skip: true},
	"nor_conv_1x1": {kernel: 1},
	"nor_conv_3x3": {kernel: 3},
	"avg_pool_3x3": {pool: true},
}

// inserted finds an operation that Net does not compute by itself: a reader's, or one of DARTS'.
func inserted(name string) (Operation, bool) {
	op := Operations[name]
	if _, ours := operations[name]; ours && own.Same(op, shippedOperations[name]) {
		return nil, false
	}
	return op, op != nil
}

// sampled are the weights of operations in a pass.
type sampled struct {
	factors *table // θ, or chosen·θ
	scalars *table // (1−chosen)·θ; nil without Chosen
	chosen  *table // nil without Chosen
}

func (c Config) sampled(l Layers) (m sampled) {
	if l.planning() {
		return m
	}
	entries, in := len(c.Space.Edges)*len(c.Space.Ops), l.walk.pass
	theta := Reshape(in.Theta[0], -1, entries)
	if len(in.Chosen) == 0 {
		return sampled{factors: &table{entries: theta}}
	}
	row := Reshape(in.Chosen[0], 1, entries)
	chosen := BroadcastToShape(row, theta.Shape())
	return sampled{
		chosen: &table{entries: row}, factors: &table{entries: Mul(chosen, theta)},
		scalars: &table{entries: Mul(OneMinus(chosen), theta)},
	}
}

// table is a number for each operation on each edge, [1, |E|·|O|], or [B, |E|·|O|] for one table an example.
type table struct {
	entries *Node
	rows    map[int][]*Node // by the number of channels
}

// row is entry i, once for each channel of x: [1, C] or [B, C].
func (t *table) row(x *Node, i int) *Node {
	c := x.Shape().Dim(-1)
	if t.rows[c] == nil {
		r, n := t.entries.Shape().Dim(0), t.entries.Shape().Dim(1)
		ones := Ones(x.Graph(), shapes.Make(x.DType(), 1, c))
		wide := Dot(Reshape(t.entries, r*n, 1), ones).Product()
		if t.rows == nil {
			t.rows = map[int][]*Node{}
		}
		t.rows[c] = split(Reshape(wide, r, n*c), n)
	}
	return t.rows[c][i]
}

// shift is the sum of the scalars of the operations into a node that are not chosen, [1, C] or [B, C]; nil if none is
// sampled.
func (m sampled) shift(s Space, node int, x Map) (shift *Node) {
	if m.scalars == nil {
		return nil
	}
	for e, edge := range s.Edges {
		for o := range s.Ops {
			if edge.To != node {
				continue
			}
			if row := m.scalars.row(x.node, e*len(s.Ops)+o); shift == nil {
				shift = row
			} else {
				shift = Add(shift, row)
			}
		}
	}
	return shift
}
