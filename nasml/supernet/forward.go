package supernet

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph" // the formulas drown in graph. prefixes

	"github.com/nasml/lab/nasml/internal/kernels"
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
// It is a graph function: it panics if the shapes do not fit. Its results
// have the dtype of the inputs, which all must be the same.
func (n *Net) Forward(in Input) (logits *Node, stats []*Node) {
	f := newPass(n, in)
	x := f.batchNorm("stem/bn", window{1, 1}.conv(in.Images, f.weight("stem/conv")))
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
	return f.classify(relu(f.batchNorm("last/bn", x))), f.stats
}

// pass is one evaluation of a network.
type pass struct {
	net     *Net
	in      Input
	stats   []*Node
	factors *table // of the operations: θ, or chosen·θ
	scalars *table // (1−chosen)·θ; nil without Chosen
	chosen  *table // nil without Chosen
	units   map[int]*Node
}

func newPass(n *Net, in Input) *pass {
	f := &pass{net: n, in: in, stats: slices.Clone(in.Stats), units: map[int]*Node{}}
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

// check panics if an input does not fit the network.
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

// unit are a scale of 1 and a shift of 0 for maps like x.
func (f *pass) unit(x *Node) *Node {
	c := x.Shape().Dim(-1)
	if f.units[c] == nil {
		f.units[c] = kernels.Affine(constantRow(x, c, 1), constantRow(x, c, 0))
	}
	return f.units[c]
}

// normed is what a network knows of a map z before its BN: how [kernels.Normal]
// scales and shifts it, and its moments.
type normed struct{ z, affine, moments *Node }

func normalOf(z *Node) normed {
	affine, moments := kernels.Normal(z)
	return normed{z, affine, moments}
}

// batchNorm is batch normalisation with scale and shift, as a map.
func (f *pass) batchNorm(path string, z *Node) *Node {
	return plain(z, f.bn(path, normalOf(z)))
}

// plain is a map with its scales and shifts, written down.
func plain(x, affine *Node) *Node {
	return kernels.Weighted(constantRow(x, 1, 1), []*Node{x}, []*Node{affine})
}

// bn is batch normalisation with scale and shift, as scales and shifts.
func (f *pass) bn(path string, n normed) *Node {
	return affinely(f.normalized(bnPath{path: path}, n), f.weight(path+"/scale"), f.weight(path+"/bias"))
}

// bnPath names the BN of one operation; chosen, 0 or 1 [1, C], reports whether it
// counts in the running statistics, nil that it does.
type bnPath struct {
	path   string
	chosen *Node
}

// normalized is BN without scale and shift of its own, as scales and shifts: by the
// batch, or by running statistics if there are such and none is trained.
func (f *pass) normalized(p bnPath, n normed) *Node {
	switch _, track := f.net.index[p.path+"/mean"]; {
	case track && !f.in.Train:
		inverse := inverseRoot(f.running(p, "/variance"))
		return kernels.Affine(inverse, Neg(Mul(f.running(p, "/mean"), inverse)))
	case track:
		f.track(p, n)
	}
	mustVary(p.path, n.z)
	return n.affine
}

// mustVary panics if BN would divide 0 by 0.
func mustVary(path string, z *Node) {
	if z.Shape().Size() == z.Shape().Dim(-1) {
		panic(fmt.Errorf("supernet: %s normalises shape %s, one value a channel: take more examples or larger images",
			path, z.Shape()))
	}
}

// running is a running statistic, [1, C].
func (f *pass) running(p bnPath, which string) *Node {
	return StopGradient(ExpandAxes(f.in.Stats[f.net.index[p.path+which]], 0))
}

// track mixes the moments of a batch into the running ones: 0.9·old + 0.1·new, with
// the unbiased variance.
func (f *pass) track(p bnPath, batch normed) {
	mustVary(p.path, batch.z)
	n := float64(pixels(batch.z))
	for row, which := range []string{"/mean", "/variance"} {
		value := Slice(batch.moments, AxisElem(row))
		if row == 1 {
			value = MulScalar(value, n/(n-1))
		}
		i := f.net.index[p.path+which]
		old := ExpandAxes(f.in.Stats[i], 0)
		next := Add(MulScalar(old, 1-momentum), MulScalar(value, momentum))
		if c := p.chosen; c != nil {
			next = Add(Mul(c, next), Mul(OneMinus(c), old))
		}
		f.stats[i] = StopGradient(Squeeze(next, 0))
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
	a := normalOf(window{1, 2}.conv(relu(x), f.weight(path+"conv_a")))
	b := dense(a.z, f.bn(path+"conv_a/bn", a), f.weight(path+"conv_b"))
	down := convolution(halved(x), f.weight(path+"downsample"))
	return kernels.Weighted(constantRow(x, 2, 1), []*Node{b.z, down}, []*Node{f.bn(path+"conv_b/bn", b), f.unit(down)})
}

// dense is [kernels.Dense].
func dense(x, affine, kernel *Node) normed {
	y := kernels.Dense(x, affine, kernel)[0]
	return normed{y.Z, y.Normal, y.Moments}
}

// classify is the mean over the pixels and the linear layer.
func (f *pass) classify(x *Node) *Node {
	batch := x.Shape().Dim(0)
	mean := DivScalar(sums(x, batch), float64(pixels(x)/batch))
	y := Dot(mean, f.weight("classifier/weight")).Product()
	return Add(y, BroadcastToShape(f.vector("classifier/bias"), y.Shape()))
}

// part is what arrives at a node over an edge from an operation: the map scale·x +
// shift, which counts by the factor of an entry of the table.
type part struct {
	x, affine *Node
	entry     int
}

// cell evaluates the mixed operations of a cell. No map of a single operation is
// ever written down but that of its convolution.
func (f *pass) cell(cell int, x *Node) *Node {
	parts := make([][]part, f.net.Config.Space.Nodes) // that arrive at a node
	for i := range parts {
		if i > 0 {
			x = f.arrive(i, x, parts[i])
		}
		f.leave(cell, i, x, parts)
	}
	return x
}

// arrive is the map of a node, like others of its cell: the sum of its parts, and
// of the scalars of operations that are not chosen.
func (f *pass) arrive(node int, like *Node, parts []part) *Node {
	y := ZerosLike(like) // where every operation into the node is none
	if len(parts) > 0 {
		y = f.mixed(parts)
	}
	if shift := f.shift(node, like); shift != nil {
		y = Add(y, spread(shift, like.Shape()))
	}
	return y
}

// mixed is Σ θ (scale·x + shift) of parts.
func (f *pass) mixed(parts []part) *Node {
	var maps, affine []*Node
	var entries []int
	for _, p := range parts {
		maps, affine, entries = append(maps, p.x), append(affine, p.affine), append(entries, p.entry)
	}
	weights := picked(f.factors.entries, entries)
	if weights.Shape().Dim(0) == 1 {
		return kernels.Weighted(weights, maps, affine)
	}
	for i := range maps { // every example has its own weights
		maps[i] = plain(maps[i], affine[i])
	}
	return MixedSum(maps, weights)
}

// shift are the scalars of the operations into a node that are not chosen, added
// up, [1, C] or [B, C]; nil where none is sampled.
func (f *pass) shift(node int, x *Node) (shift *Node) {
	if f.scalars == nil {
		return nil
	}
	for e, edge := range f.net.Config.Space.Edges {
		for o := range f.net.Config.Space.Ops {
			if edge.To != node {
				continue
			}
			if row := f.scalars.row(x, f.entry(e, o)); shift == nil {
				shift = row
			} else {
				shift = Add(shift, row)
			}
		}
	}
	return shift
}

// leave adds the operations on the edges out of node i, whose map is x, to the parts.
func (f *pass) leave(cell, i int, x *Node, parts [][]part) {
	s := f.net.Config.Space
	for o, name := range s.Ops {
		var pooled *Node
		for e, edge := range s.Edges {
			if edge.From != i {
				continue
			}
			p := part{x: x, affine: f.unit(x), entry: f.entry(e, o)}
			_, own := inserted(name)
			switch op := operations[name]; {
			case own:
				p.x = f.insertion(opPath(cell, edge, name), p.entry, x)
			case op.kernel > 0:
				p.x, p.affine = f.convolved(opPath(cell, edge, name), p.entry, x)
			case op.pool:
				if pooled == nil {
					pooled = kernels.AvgPool3x3(x, 1)
				}
				p.x = pooled
			case !op.skip: // none: 0, with gradient 0
				continue
			}
			parts[edge.To] = append(parts[edge.To], p)
		}
	}
}

// convolved is ReLU, a convolution and BN, as a map with its scales and shifts.
func (f *pass) convolved(path string, entry int, x *Node) (z, affine *Node) {
	n := dense(x, f.unit(x), f.weight(path+"/conv"))
	if f.net.Config.ConvBias {
		n = normalOf(Add(n.z, spread(f.vector(path+"/conv_bias"), n.z.Shape())))
	}
	bn := bnPath{path: path + "/bn"}
	if f.chosen != nil {
		bn.chosen = f.chosen.row(n.z, entry)
	}
	affine = f.normalized(bn, n)
	if f.net.Config.Affine {
		affine = affinely(affine, f.weight(path+"/bn/scale"), f.weight(path+"/bn/bias"))
	}
	return n.z, affine
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
