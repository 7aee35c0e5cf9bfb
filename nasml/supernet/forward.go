package supernet

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes
)

// Input is what a network is evaluated on.
type Input struct {
	Images  *Node   // [B, H, W, 3], normalised
	Theta   *Node   // operation weights [|E|, |O|], or one matrix an example, [B, |E|, |O|]
	Chosen  *Node   // nil, or 0/1 [|E|, |O|]: see Forward
	Weights []*Node // as Net.Weights
	Stats   []*Node // as Net.Stats
	Train   bool    // BN normalises by the batch; else by Stats where they are tracked
}

// operation is a candidate operation as data.
type operation struct {
	kernel int  // of a ReLU–convolution–BN, else 0
	skip   bool // identity
	pool   bool // 3×3 mean
}

// operations are those of NAS-Bench-201 by name: what leaves a node is computed
// together. All others are of Operations.
var operations = map[string]operation{
	"none":         {},
	"skip_connect": {skip: true},
	"nor_conv_1x1": {kernel: 1},
	"nor_conv_3x3": {kernel: 3},
	"avg_pool_3x3": {pool: true},
}

// Forward returns the logits [B, classes] and the running statistics after the
// batch: BN's of the batch mixed in with weight 0.1 where in.Train, else as
// they came.
//
// A mixed operation is Σₒ θₒ·opₒ(x). With Chosen it is GDAS's sampled one,
//
//	Σₒ cₒ·θₒ·opₒ(x) + (1−cₒ)·θₒ ,
//
// where the θₒ of an operation that is not chosen is a scalar added to every
// element of the map, so that its gradient is the sum of the upstream one; the
// running statistics of such an operation stay. With a one-hot θ = Chosen it is
// the discrete network.
//
// It is a graph function: it panics where the shapes do not fit. Its results
// have the dtype of the inputs, which all must be the same.
func (n *Net) Forward(in Input) (logits *Node, stats []*Node) {
	f := newPass(n, in)
	x := f.bn("stem/bn", window{1, 1}.conv(in.Images, f.weight("stem/conv")))
	cell := 0
	for stage := range stages {
		if stage > 0 {
			x = f.reduction(cell, x)
			cell++
		}
		for range n.Config.Cells {
			x = f.cell(cell, x)
			cell++
		}
	}
	return f.classify(relu(f.bn("last/bn", x))), f.stats
}

// pass is one evaluation of a network.
type pass struct {
	net     *Net
	in      Input
	stats   []*Node
	factors *table // of the operations: θ, or chosen·θ
	scalars *table // (1−chosen)·θ; nil without Chosen
	chosen  *table // nil without Chosen
}

func newPass(n *Net, in Input) *pass {
	f := &pass{net: n, in: in, stats: slices.Clone(in.Stats)}
	f.check()
	entries := len(n.Config.Space.Edges) * len(n.Config.Space.Ops)
	theta := Reshape(in.Theta, -1, entries)
	f.factors = &table{entries: theta}
	if in.Chosen != nil {
		row := Reshape(in.Chosen, 1, entries)
		chosen := BroadcastToShape(row, theta.Shape())
		f.chosen = &table{entries: row}
		f.factors = &table{entries: Mul(chosen, theta)}
		f.scalars = &table{entries: Mul(OneMinus(chosen), theta)}
	}
	return f
}

// check panics where an input does not fit the network.
func (f *pass) check() {
	c, in := f.net.Config, f.in
	batch, e, o := in.Images.Shape().Dim(0), len(c.Space.Edges), len(c.Space.Ops)
	mustBe("the images", in.Images, batch, c.Image, c.Image, 3)
	if in.Theta.Rank() == 3 {
		mustBe("θ", in.Theta, batch, e, o)
	} else {
		mustBe("θ", in.Theta, e, o)
	}
	if in.Chosen != nil {
		mustBe("the chosen operations", in.Chosen, e, o)
	}
	mustFit("weights", in.Weights, f.net.weights)
	mustFit("running statistics", in.Stats, f.net.stats)
}

func mustFit(what string, got []*Node, want []Weight) {
	if len(got) != len(want) {
		panic(fmt.Errorf("supernet: got %d %s, the network has %d", len(got), what, len(want)))
	}
	for i, w := range want {
		mustBe(w.Path, got[i], w.Dims...)
	}
}

func mustBe(what string, x *Node, dims ...int) {
	if !slices.Equal(x.Shape().Dimensions, dims) {
		panic(fmt.Errorf("supernet: %s: got shape %s, want %v", what, x.Shape(), dims))
	}
}

// table is a number for each operation on each edge, [1, |E|·|O|], or [B, |E|·|O|]
// for one table an example.
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

func (f *pass) entry(e, o int) int { return e*len(f.net.Config.Space.Ops) + o }

func (f *pass) weight(path string) *Node { return f.in.Weights[f.net.index[path]] }

// vector is a weight of the channels, [1, C].
func (f *pass) vector(path string) *Node { return ExpandAxes(f.weight(path), 0) }

// bn is batch normalisation with scale and shift.
func (f *pass) bn(path string, x *Node) *Node {
	y := f.normalized([]bnPath{{path: path}}, x, f.vector(path+"/scale"))[0]
	return Add(y, spread(f.vector(path+"/bias"), y.Shape()))
}

// bnPath names the BN of one operation; chosen, 0 or 1 [1, C], says whether it
// counts in the running statistics, nil that it does.
type bnPath struct {
	path   string
	chosen *Node
}

// normalized is BN(z)·s without shift, in one part for each of the paths,
// whose channels stand side by side in z.
func (f *pass) normalized(paths []bnPath, z, s *Node) []*Node {
	switch _, track := f.net.index[paths[0].path+"/mean"]; {
	case track && !f.in.Train:
		mean, variance := f.running(paths, "/mean"), f.running(paths, "/variance")
		inverse := BroadcastToShape(inverseRoot(variance), s.Shape())
		return split(scaled(Sub(z, spread(mean, z.Shape())), Mul(s, inverse)), len(paths))
	case track:
		f.track(paths, StopGradient(z))
	}
	mustVary(paths[0].path, z)
	return normalized(z, s, len(paths))
}

// mustVary panics where BN would divide 0 by 0.
func mustVary(path string, z *Node) {
	if z.Shape().Size() == z.Shape().Dim(-1) {
		panic(fmt.Errorf("supernet: %s normalises shape %s, one value a channel: take more examples or larger images",
			path, z.Shape()))
	}
}

// running are the running statistics of the paths side by side, [1, C].
func (f *pass) running(paths []bnPath, which string) *Node {
	rows := make([]*Node, len(paths))
	for k, p := range paths {
		rows[k] = StopGradient(ExpandAxes(f.in.Stats[f.net.index[p.path+which]], 0))
	}
	return join(rows)
}

// track mixes the statistics of z into the running ones of the paths:
// 0.9·old + 0.1·new, with the unbiased variance.
func (f *pass) track(paths []bnPath, z *Node) {
	mustVary(paths[0].path, z)
	n := float64(pixels(z))
	mean, variance := moments(z)
	for _, batch := range []struct {
		which string
		value *Node
	}{{"/mean", mean}, {"/variance", MulScalar(variance, n/(n-1))}} {
		for k, value := range split(batch.value, len(paths)) {
			i := f.net.index[paths[k].path+batch.which]
			old := ExpandAxes(f.in.Stats[i], 0)
			next := Add(MulScalar(old, 1-momentum), MulScalar(value, momentum))
			if c := paths[k].chosen; c != nil {
				next = Add(Mul(c, next), Mul(OneMinus(c), old))
			}
			f.stats[i] = StopGradient(Squeeze(next, 0))
		}
	}
}

// BN's constants, PyTorch's defaults.
const (
	epsilon  = 1e-5
	momentum = 0.1 // the weight of the new value in a running statistic
)

// reduction is the residual block of stride 2 between two stages, with twice
// the channels: BN(conv(ReLU(BN(conv(ReLU(x)))))) + conv1×1(mean2×2(x)).
func (f *pass) reduction(cell int, x *Node) *Node {
	path := fmt.Sprintf("cells/%d/", cell)
	y := f.bn(path+"conv_a/bn", window{1, 2}.conv(relu(x), f.weight(path+"conv_a")))
	y = f.bn(path+"conv_b/bn", window{1, 1}.conv(relu(y), f.weight(path+"conv_b")))
	return Add(y, convolution(halved(x), f.weight(path+"downsample")))
}

// classify is the mean over the pixels and the linear layer.
func (f *pass) classify(x *Node) *Node {
	batch := x.Shape().Dim(0)
	mean := DivScalar(sums(x, batch), float64(pixels(x)/batch))
	y := Dot(mean, f.weight("classifier/weight")).Product()
	return Add(y, BroadcastToShape(f.vector("classifier/bias"), y.Shape()))
}

// cell evaluates the mixed operations of a cell. What leaves one node is
// computed together: one ReLU, one convolution a kernel size with the kernels
// of all edges side by side, one pooled map.
func (f *pass) cell(cell int, x *Node) *Node {
	s := f.net.Config.Space
	terms := make([][]*Node, s.Nodes) // that arrive at a node
	for j := 1; j < s.Nodes; j++ {
		if shift := f.shift(cell, j, x); shift != nil {
			terms[j] = []*Node{spread(shift, x.Shape())}
		}
	}
	for i := range s.Nodes {
		if i > 0 {
			x = sum(x, terms[i])
		}
		f.leave(cell, i, x, terms)
	}
	return x
}

// sum adds maps in the shape of x; the result is kept.
func sum(x *Node, terms []*Node) *Node {
	if len(terms) == 0 { // every operation into the node is none
		return ZerosLike(x)
	}
	y := terms[0]
	for _, term := range terms[1:] {
		y = Add(y, term)
	}
	return kept(y)
}

// shift is what the operations into node j add to every pixel, [1, C] or [B, C]:
// the scalars of those not chosen and θ times the shift of an affine BN. It is
// nil where there is neither.
func (f *pass) shift(cell, j int, x *Node) *Node {
	s := f.net.Config.Space
	var shift *Node
	add := func(y *Node) {
		if shift != nil {
			y = Add(shift, y)
		}
		shift = y
	}
	for e, edge := range s.Edges {
		for o, name := range s.Ops {
			if edge.To != j {
				continue
			}
			if f.scalars != nil {
				add(f.scalars.row(x, f.entry(e, o)))
			}
			if _, own := inserted(name); !own && f.net.Config.Affine && operations[name].kernel > 0 {
				factor := f.factors.row(x, f.entry(e, o))
				add(Mul(factor, BroadcastToShape(f.vector(opPath(cell, edge, name)+"/bn/bias"), factor.Shape())))
			}
		}
	}
	return shift
}

// leave adds the mixed operations on the edges out of node i, whose map is x,
// to the terms.
func (f *pass) leave(cell, i int, x *Node, terms [][]*Node) {
	s := f.net.Config.Space
	var out []int // edges
	for e, edge := range s.Edges {
		if edge.From == i {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return
	}
	for o, name := range s.Ops {
		if _, own := inserted(name); own {
			for _, e := range out {
				y := f.insertion(opPath(cell, s.Edges[e], name), f.entry(e, o), x)
				j := s.Edges[e].To
				terms[j] = append(terms[j], scaled(y, f.factors.row(x, f.entry(e, o))))
			}
			continue
		}
		y := x
		switch op := operations[name]; {
		case op.kernel > 0:
			for k, y := range f.convolved(cell, out, o, relu(x)) {
				j := s.Edges[out[k]].To
				terms[j] = append(terms[j], y)
			}
			continue
		case op.pool:
			y = pool3(x)
		case !op.skip: // none: 0, with gradient 0
			continue
		}
		for _, e := range out {
			j := s.Edges[e].To
			terms[j] = append(terms[j], scaled(y, f.factors.row(x, f.entry(e, o))))
		}
	}
}

// convolved is θ·BN(conv(x)), without BN's shift, of operation o on each of the
// edges.
func (f *pass) convolved(cell int, edges []int, o int, x *Node) []*Node {
	s, c := f.net.Config.Space, f.net.Config
	var kernels, biases, factors []*Node
	var paths []bnPath
	for _, e := range edges {
		path := opPath(cell, s.Edges[e], s.Ops[o])
		factor := f.factors.row(x, f.entry(e, o))
		if c.Affine {
			factor = Mul(factor, BroadcastToShape(f.vector(path+"/bn/scale"), factor.Shape()))
		}
		bn := bnPath{path: path + "/bn"}
		if f.chosen != nil {
			bn.chosen = f.chosen.row(x, f.entry(e, o))
		}
		kernels, factors, paths = append(kernels, f.weight(path+"/conv")), append(factors, factor), append(paths, bn)
		if c.ConvBias {
			biases = append(biases, f.vector(path+"/conv_bias"))
		}
	}
	z := convolution(x, join(kernels))
	if c.ConvBias {
		z = Add(z, spread(join(biases), z.Shape()))
	}
	return f.normalized(paths, z, join(factors))
}

// Score is the number of examples that the largest logit gets right, int32, the
// first of equal logits counting, and the mean cross entropy, −log softmax of
// the label's logit. logits are [B, classes], labels [B] integers.
func Score(logits, labels *Node) (correct, loss *Node) {
	logp := LogSoftmax(logits)
	hot := OneHot(labels, logits.Shape().Dim(-1), logits.DType())
	loss = Neg(ReduceAllMean(ReduceSum(Mul(hot, logp), -1)))
	correct = ReduceAllSum(ConvertDType(Equal(ArgMax(logits, -1, labels.DType()), labels), labels.DType()))
	return correct, loss
}
