package features

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/trial"
)

// The random numbers of the features are functions of a key and of their place, two counters of 32 bits, so that they
// are the same however a matrix is cut into blocks, on every device, and as a graph makes them they need never be kept.
// The function is Threefry-2x32 with 20 rounds (Salmon+ 2011, "Parallel random numbers: as easy as 1, 2, 3").

var (
	threefryTurns = [2][4]int{{13, 15, 26, 6}, {17, 29, 16, 24}}
	threefryMark  = uint32(0x1BD11BDA)
)

// threefryGraph encrypts the counters a and b with key, of shape [2]; all are uint32.
func threefryGraph(key, a, b *Node) (*Node, *Node) {
	at := func(i int) *Node { return Reshape(Slice(key, AxisElem(i))) }
	keys := [3]*Node{
		at(0),
		at(1),
		BitwiseXor(BitwiseXor(at(0), at(1)), Scalar(key.Graph(), dtypes.Uint32, threefryMark)),
	}
	a, b = Add(a, keys[0]), Add(b, keys[1])
	for round := range 5 {
		for _, turn := range threefryTurns[round%2] {
			a = Add(a, b)
			b = BitwiseOr(BitwiseShiftLeftScalar(b, uint32(turn)), BitwiseShiftRightLogicalScalar(b, uint32(32-turn)))
			b = BitwiseXor(b, a)
		}
		a = Add(a, keys[(round+1)%3])
		b = Add(b, AddScalar(keys[(round+2)%3], float64(round+1)))
	}
	return a, b
}

type draw string

const (
	normal  draw = "normal"
	cauchy  draw = "cauchy"
	uniform draw = "uniform" // on [0, 2π]
)

func drawKey(seed uint64, parts ...string) [2]uint32 {
	k := trial.Source(seed, append([]string{"random Fourier features"}, parts...)...).Uint64()
	return [2]uint32{uint32(k), uint32(k >> 32)}
}

// drawGraph is a matrix of float32 numbers, of which the one in row i and
// column j depends on (key, i, j) alone. It is a graph function.
func drawGraph(key *Node, rows, cols int, of draw) *Node {
	key.AssertDims(2)
	g := key.Graph()
	shape := shapes.Make(dtypes.Uint32, rows, cols)
	a, b := threefryGraph(key, Iota(g, shape, 0), Iota(g, shape, 1))
	u := unitGraph(a)
	switch of {
	case normal: // Box and Muller
		return Mul(Sqrt(MulScalar(Log(u), -2)), Cos(MulScalar(unitGraph(b), 2*math.Pi)))
	case cauchy: // ± cot(πu/2), exact in the tail, which is at small u
		angle := MulScalar(u, math.Pi/2)
		size := Div(Cos(angle), Sin(angle))
		sign := BitwiseAnd(b, Scalar(g, dtypes.Uint32, uint32(1)))
		return Where(Equal(sign, ScalarZero(g, dtypes.Uint32)), size, Neg(size))
	case uniform:
		return MulScalar(u, 2*math.Pi)
	}
	panic(fmt.Errorf("features: unknown distribution %q", of))
}

// unitGraph makes bits uniform numbers on (0, 1): odd multiples of 2⁻²⁴, which
// float32 has exactly, so that neither 0 nor 1 comes out.
func unitGraph(random *Node) *Node {
	n := ConvertDType(BitwiseShiftRightLogicalScalar(random, uint32(9)), dtypes.Float32)
	return MulScalar(AddScalar(n, 0.5), 0x1p-23)
}
