package supernet

import (
	"hash/fnv"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// noise is a map of independent N(0, 1) numbers in the size of x, whose values it ignores (Zela+ 2020, Section 3, S4;
// automl/RobustDARTS@07f54ba, src/operations.py). It is drawn again in every pass, also in tests.
//
// The generator is seeded by the bits of the pass's images and the place in the network, so that a pass is a function:
// an interrupted search goes on as it would have, and all derivatives of a step are of one loss. Without augmentation
// the same images bring the same noise.
func noise(l Layers, x Map, stride int, _ bool) Map {
	return l.Apply(x, x.strided(stride), nil, 0, func(x *Node, _ []*Node) *Node {
		y := x.Shape().Clone()
		for axis := 1; axis <= 2; axis++ {
			y.Dimensions[axis] = (y.Dimensions[axis] + stride - 1) / stride
		}
		return gaussian(generator(l.path, l.walk.pass.Images), y)
	})
}

// generator is the state of a random generator for a place and images. Sums of integers wrap around, so that their
// order does not matter.
func generator(place string, images *Node) *Node {
	name := fnv.New64a()
	name.Write([]byte(place))
	bits := Bitcast(ConvertDType(StopGradient(images), dtypes.Float32), dtypes.Uint32)
	bits = ConvertDType(bits, dtypes.Uint64)
	first, second := ReduceAllSum(bits), ReduceAllSum(Mul(bits, bits))
	return Stack([]*Node{Const(images.Graph(), name.Sum64()), first, second}, 0)
}

// gaussian draws from N(0, 1) by Box and Muller's
//
//	√(−2 log(1 − u))·cos 2πv ,  u, v uniform in [0, 1) ,
//
// which is finite for all of these.
func gaussian(state *Node, shape shapes.Shape) *Node {
	state, u := RandomUniform(state, shape)
	_, v := RandomUniform(state, shape)
	radius := Sqrt(MulScalar(Log(OneMinus(u)), -2))
	return StopGradient(Mul(radius, Cos(MulScalar(v, 2*math.Pi))))
}
