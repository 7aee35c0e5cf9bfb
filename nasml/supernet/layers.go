package supernet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/kernels"
)

// Map is a feature map [B, H, W, C] on the way through a network; while the network is planned it has only sizes. The
// output of a BN is not written down: the map is node·scale + shift, which its reader takes into account, or calls
// [Layers.plain].
type Map struct {
	H, W, C   int
	node      *Node
	affine    *Node // scale and shift [2, C], nil: 1 and 0
	rectified bool  // it is max(0, node·scale + shift)
}

// plain writes down what a BN left to the reader of a map.
func (l Layers) plain(x Map) Map {
	if x.affine == nil && !x.rectified || l.planning() {
		return x
	}
	key := memory{fmt.Sprint("plain ", x.rectified), l.scales(x), 1}
	if x.affine == nil {
		key.x = x.node
	}
	if l.walk.memo[key] == nil {
		l.walk.memo[key] = l.weighted([]Map{x}, nil)
	}
	return Map{H: x.H, W: x.W, C: x.C, node: l.walk.memo[key]}
}

// scales are the scale and shift of a map.
func (l Layers) scales(x Map) *Node {
	if x.affine != nil {
		return x.affine
	}
	key := memory{what: fmt.Sprint("unit ", x.C)}
	if l.walk.memo[key] == nil {
		row := func(value float64) *Node { return constantRow(x.node, x.C, value) }
		l.walk.memo[key] = kernels.Affine(row(1), row(0))
	}
	return l.walk.memo[key]
}

// weighted is the sum of maps with weights [1, n], nil: 1.
func (l Layers) weighted(maps []Map, weights *Node) *Node {
	nodes, affine, on := nodesOf(maps), make([]*Node, len(maps)), make([]bool, len(maps))
	for i, m := range maps {
		affine[i], on[i] = l.scales(m), m.rectified
	}
	if weights == nil {
		weights = constantRow(nodes[0], len(maps), 1)
	}
	if slices.Contains(on, true) {
		return kernels.Rectified(weights, nodes, affine, on)
	}
	return kernels.Weighted(weights, nodes, affine)
}

// constantRow is a number n times, [1, n].
func constantRow(like *Node, n int, value float64) *Node {
	return BroadcastToDims(Reshape(ConstAsDType(like.Graph(), like.DType(), value), 1, 1), 1, n)
}

// Layers walks through a network, twice by the same code: first it plans weights and their order, and counts; in a
// graph it computes with them. It declares weights below its path.
type Layers struct {
	walk *walk
	path string

	untracked bool                   // BN keeps no running statistics, and always normalises by the batch
	chosen    func(like *Node) *Node // nil, or 0 or 1 [1, C]: whether this pass counts in running statistics
}

// walk is what all Layers of one walk share.
type walk struct {
	// of the plan
	weights, stats []Weight
	index          map[string]int // of a path in weights, or in stats
	multiplyAdds   int64          // of an example
	err            error          // the first

	affine  bool // BN has scale and shift
	dropped int  // places of drop path passed

	// of a graph, else nil
	net     *CellNet
	pass    Pass
	next    []*Node                    // running statistics after the batch
	batches map[float64][]runningBatch // by momentum: what goes into them at once
	memo    map[memory]*Node
	normal  map[*Node]batchNorm // of what was normalised
}

// memory is a result that is used again: what was done to which node.
type memory struct {
	what   string
	x      *Node
	stride int
}

// In is the walk with a name added to its path.
func (l Layers) In(name string) Layers {
	if l.path != "" {
		name = l.path + "/" + name
	}
	l.path = name
	return l
}

func (l Layers) planning() bool { return l.walk.net == nil }

// fail notes the first error of a plan.
func (l Layers) fail(format string, args ...any) {
	if l.walk.err == nil {
		l.walk.err = fmt.Errorf(l.path+": "+format, args...)
	}
}

// weight declares a weight, and gives it in a graph.
func (l Layers) weight(w Weight) *Node {
	w.Path = l.path + "/" + w.Path
	if l.planning() {
		l.walk.index[w.Path] = len(l.walk.weights)
		l.walk.weights = append(l.walk.weights, w)
		return nil
	}
	return l.walk.pass.Weights[l.walk.net.plan.index[w.Path]]
}

// stat declares a running statistic, and gives its place.
func (l Layers) stat(w Weight) int {
	w.Path = l.path + "/" + w.Path
	if l.planning() {
		l.walk.index[w.Path] = len(l.walk.stats)
		l.walk.stats = append(l.walk.stats, w)
		return 0
	}
	return l.walk.net.plan.index[w.Path]
}

// Apply is a custom layer: compute gets the node of x and the weights, with paths below l's, and returns a node of the
// size out; multiplyAdds are those of an example.
func (l Layers) Apply(x, out Map, weights []Weight, multiplyAdds int64, compute func(x *Node, w []*Node) *Node) Map {
	l.walk.multiplyAdds += multiplyAdds
	nodes := make([]*Node, len(weights))
	for i, w := range weights {
		nodes[i] = l.weight(w)
	}
	if x = l.plain(x); !l.planning() {
		out.node, out.affine, out.rectified = compute(x.node, nodes), nil, false
		mustBe(l.path, out.node, x.node.Shape().Dim(0), out.H, out.W, out.C)
	}
	return out
}

// once is a layer without weights, computed once for each map.
func (l Layers) once(what string, x, out Map, stride int, compute func(x *Node) *Node) Map {
	if l.planning() {
		return out
	}
	x = l.plain(x)
	key := memory{what, x.node, stride}
	if l.walk.memo[key] == nil {
		l.walk.memo[key] = compute(x.node)
	}
	out.node, out.affine, out.rectified = l.walk.memo[key], nil, false
	return out
}

// zero is 0 in the size of x after a stride.
func (l Layers) zero(x Map, stride int) Map {
	y := x.strided(stride)
	if !l.planning() {
		y.node = Zeros(x.node.Graph(), shapes.Make(x.node.DType(), x.node.Shape().Dim(0), y.H, y.W, y.C))
	}
	return y
}

// ReLU is max(x, 0).
func (l Layers) ReLU(x Map) Map { return l.once("relu", x, x, 1, relu) }

// strided is the size of a map after a stride, with padding that keeps it else.
func (x Map) strided(stride int) Map {
	return Map{H: (x.H + stride - 1) / stride, W: (x.W + stride - 1) / stride, C: x.C}
}

// MaxPool is [kernels.MaxPool3x3].
func (l Layers) MaxPool(x Map, stride int) Map {
	return l.once("max", x, x.strided(stride), stride, func(x *Node) *Node { return kernels.MaxPool3x3(x, stride) })
}

// AvgPool is [kernels.AvgPool3x3].
func (l Layers) AvgPool(x Map, stride int) Map {
	return l.once("mean", x, x.strided(stride), stride, func(x *Node) *Node { return kernels.AvgPool3x3(x, stride) })
}

// Conv is a convolution with a k×k kernel, k odd, to out channels, without bias, padded by ⌊k/2⌋.
func (l Layers) Conv(name string, x Map, k, stride, out int) Map {
	y := x.strided(stride)
	y.C = out
	kernel := Weight{name, []int{k, k, x.C, out}, k * k * x.C, InitUniform}
	return l.Apply(x, y, []Weight{kernel}, int64(y.H*y.W*out)*int64(k*k*x.C), func(x *Node, w []*Node) *Node {
		if stride == 1 {
			return convolution(x, w[0])
		}
		return window{k / 2, stride}.conv(x, w[0])
	})
}

type filters struct {
	depthwise, pointwise string
	k, stride, dilation  int
}

// stage is ReLU, a depthwise k×k convolution, a 1×1 convolution that keeps the number of channels, and BN, at once; see
// [kernels.Stage].
func (l Layers) stage(f filters, bn string, x Map) Map {
	y := x.strided(f.stride)
	depthwise := l.weight(Weight{f.depthwise, []int{f.k, f.k, 1, x.C}, f.k * f.k, InitUniform})
	pointwise := l.weight(Weight{f.pointwise, []int{1, 1, x.C, x.C}, x.C, InitUniform})
	l.walk.multiplyAdds += int64(y.H*y.W*x.C) * int64(f.k*f.k+x.C)
	if !l.planning() {
		z, affine, moments := kernels.Stage(x.node, l.scales(x), Reshape(depthwise, f.k, f.k, x.C),
			Reshape(pointwise, x.C, x.C), f.stride, f.dilation)
		y.node = z
		l.walk.normal[z] = batchNorm{affine, moments}
	}
	return l.BN(bn, y)
}

// dense are convolutions of stride 1 of one map, rectified or not, to out channels each; see [kernels.Dense] and
// [kernels.Linear]. Their weights have the paths of to. BN knows their moments.
func (x Map) dense(to []Layers, name string, k, out int) []Map {
	all, filters := make([]Map, len(to)), make([]*Node, len(to))
	for i, l := range to {
		all[i] = Map{H: x.H, W: x.W, C: out}
		filters[i] = l.weight(Weight{name, []int{k, k, x.C, out}, k * k * x.C, InitUniform})
		l.walk.multiplyAdds += int64(x.H*x.W*out) * int64(k*k*x.C)
	}
	l := to[0]
	if l.planning() {
		return all
	}
	of := kernels.Linear
	if x.rectified {
		of = kernels.Dense
	}
	for i, y := range of(x.node, l.scales(x), filters...) {
		all[i].node = y.Z
		l.walk.normal[y.Z] = batchNorm{y.Normal, y.Moments}
	}
	return all
}

// BN is batch normalisation, with scale and shift in a derived network, without in a search.
func (l Layers) BN(name string, x Map) Map { return l.In(name).bn(x, l.walk.affine, momentum) }

// bn is BN with or without scale and shift; momentum is the weight of the new value in its running statistics.
func (l Layers) bn(x Map, affine bool, momentum float64) Map {
	var scale, bias *Node
	if affine {
		scale = l.weight(Weight{"scale", []int{x.C}, 0, InitOnes})
		bias = l.weight(Weight{"bias", []int{x.C}, 0, InitZeros})
	}
	var mean, variance int
	if !l.untracked {
		mean = l.stat(Weight{"mean", []int{x.C}, 0, InitZeros})
		variance = l.stat(Weight{"variance", []int{x.C}, 0, InitOnes})
	}
	if l.planning() {
		return x
	}
	if x = l.plain(x); l.walk.pass.Train || l.untracked {
		batch := l.normalize(x.node)
		if x.affine = batch.affine; !l.untracked {
			l.track(batch.moments, pixels(x.node), mean, variance, momentum)
		}
	} else {
		row := func(i int) *Node { return StopGradient(ExpandAxes(l.walk.pass.Stats[i], 0)) }
		root := inverseRoot(row(variance))
		x.affine = kernels.Affine(root, Neg(Mul(row(mean), root)))
	}
	if affine {
		x.affine = affinely(x.affine, scale, bias)
	}
	return x
}

// affinely are scales and shifts [2, C] behind which come more of them, [C] each.
func affinely(affine, scale, bias *Node) *Node {
	ones := Ones(scale.Graph(), shapes.Make(scale.DType(), 2, 1))
	both := Dot(ones, ExpandAxes(scale, 0)).Product()
	return Add(Mul(affine, both), kernels.Affine(constantRow(scale, bias.Shape().Dim(0), 0), ExpandAxes(bias, 0)))
}

// runningBatch is what a batch adds to the running statistics in two places.
type runningBatch struct {
	mean, variance int
	kernels.Batch
}

// mixed are the running statistics after the batch.
func (w *walk) mixed() []*Node {
	next := w.next
	for _, momentum := range slices.Sorted(maps.Keys(w.batches)) {
		batches := w.batches[momentum]
		all := make([]kernels.Batch, len(batches))
		for i, b := range batches {
			all[i] = b.Batch
		}
		mean, variance := kernels.Running(momentum, all)
		for i, b := range batches {
			next[b.mean], next[b.variance] = mean[i], variance[i]
		}
	}
	return next
}

// batchNorm is what [kernels.Normal] says of a map.
type batchNorm struct{ affine, moments *Node }

// normalize is BN by the batch.
func (l Layers) normalize(x *Node) batchNorm {
	mustVary(l.path, x)
	found, ok := l.walk.normal[x]
	if !ok {
		found.affine, found.moments = kernels.Normal(x)
		l.walk.normal[x] = found
	}
	return found
}

// track mixes the moments of n pixels into the running ones: (1 − momentum)·old + momentum·new, with the unbiased
// variance. Networks whose passes may sample do it map by map, others at once.
func (l Layers) track(moments *Node, n, mean, variance int, momentum float64) {
	old := l.walk.pass.Stats
	if !l.walk.net.samples {
		l.walk.batches[momentum] = append(l.walk.batches[momentum], runningBatch{mean, variance, kernels.Batch{
			Moments: moments, Mean: old[mean], Variance: old[variance], Pixels: n,
		}})
		return
	}
	for row, i := range []int{mean, variance} {
		value := Slice(moments, AxisElem(row))
		if row == 1 {
			value = MulScalar(value, float64(n)/float64(n-1))
		}
		before := ExpandAxes(old[i], 0)
		next := Add(MulScalar(before, 1-momentum), MulScalar(value, momentum))
		if l.chosen != nil {
			c := l.chosen(next)
			next = Add(Mul(c, next), Mul(OneMinus(c), before))
		}
		l.walk.next[i] = StopGradient(Squeeze(next, 0))
	}
}

// FactorizedReduce halves the size of a map: ReLU, two 1×1 convolutions of stride 2 side by side, the second of the map
// without its first row and column, BN. Sizes and the number of channels out must be even.
func (l Layers) FactorizedReduce(x Map, out int) Map {
	if x.H%2 != 0 || x.W%2 != 0 || out%2 != 0 {
		l.fail("halves a map of %d×%d pixels to %d channels: all three must be even; take larger images or more "+
			"channels",
			x.H, x.W, out)
	}
	x = l.ReLU(x)
	halves := []Map{l.corner("conv_1", x, out/2, 0), l.corner("conv_2", x, out/2, 1)}
	return l.BN("bn", l.concat(halves))
}

// corner is a 1×1 convolution of stride 2 that starts at a pixel (at, at).
func (l Layers) corner(name string, x Map, out, at int) Map {
	y := Map{H: x.H / 2, W: x.W / 2, C: out}
	kernel := Weight{name, []int{1, 1, x.C, out}, x.C, InitUniform}
	part := l.once(fmt.Sprint("corner ", at), x, Map{H: y.H, W: y.W, C: x.C}, 2, func(x *Node) *Node {
		return strided(x, cut{1, at, 2, y.H}, cut{2, at, 2, y.W})
	})
	return l.Apply(part, y, []Weight{kernel}, int64(y.H*y.W*out)*int64(x.C), func(x *Node, w []*Node) *Node {
		return convolution(x, w[0])
	})
}

// concat puts maps of one width beside each other.
func (l Layers) concat(maps []Map) Map {
	y := Map{H: maps[0].H, W: maps[0].W, C: len(maps) * maps[0].C}
	nodes := make([]*Node, len(maps))
	for i, m := range maps {
		nodes[i] = l.plain(m).node
	}
	if !l.planning() {
		y.node = join(nodes)
	}
	return y
}

func (l Layers) add(maps []Map) Map {
	y := Map{H: maps[0].H, W: maps[0].W, C: maps[0].C}
	if !l.planning() {
		y.node = l.weighted(maps, nil)
	}
	return y
}

// drop is a place of drop path: it drops the path x of the examples that Pass.Drop names, and scales it for the others.
func (l Layers) drop(x Map) Map {
	place := l.walk.dropped
	l.walk.dropped++
	if l.planning() || !l.walk.pass.Train || l.walk.pass.Drop == nil {
		return x
	}
	x = l.plain(x)
	ones := Ones(x.node.Graph(), shapes.Make(x.node.DType(), 1, x.C))
	factors := Dot(picked(l.walk.pass.Drop, []int{place}), ones).Product()
	x.node = Mul(x.node, everywhere(factors, x.node.Shape()))
	return x
}

// classify is the mean over the pixels and a linear layer.
func (l Layers) classify(x Map, classes int) *Node {
	weights := []Weight{
		{"weight", []int{x.C, classes}, x.C, InitUniform}, {"bias", []int{classes}, x.C, InitUniform},
	}
	y := l.Apply(x, Map{H: 1, W: 1, C: classes}, weights, int64(x.C*classes), func(x *Node, w []*Node) *Node {
		batch := x.Shape().Dim(0)
		mean := DivScalar(sums(x, batch), float64(pixels(x)/batch))
		y := Dot(mean, w[0]).Product()
		y = Add(y, BroadcastToShape(ExpandAxes(w[1], 0), y.Shape()))
		return Reshape(y, -1, 1, 1, classes)
	})
	if l.planning() {
		return nil
	}
	return Reshape(y.node, -1, classes)
}
