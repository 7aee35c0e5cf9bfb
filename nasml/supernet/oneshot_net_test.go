package supernet

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// oneShotRef is the supernet in plain loops, written from the definitions.
type oneShotRef struct {
	c        OneShotConfig
	values   map[string][]float64 // weights and running statistics
	next     map[string][]float64 // running statistics after the batch
	theta    [][][]float64
	training bool
}

// bn normalises by the batch, or by the running statistics.
func (r *oneShotRef) bn(path string, x fmap, affine bool, momentum float64) fmap {
	y, n := newMap(x.b, x.h, x.w, x.c), float64(x.b*x.h*x.w)
	for c := range x.c {
		mean, square := 0.0, 0.0
		x.each(func(b, i, j, at int, v *float64) {
			if at == c {
				mean, square = mean+*v/n, square+*v**v/n
			}
		})
		variance := square - mean*mean
		oldMean, oldVariance := r.values[path+"/mean"][c], r.values[path+"/variance"][c]
		if r.training {
			r.next[path+"/mean"][c] = (1-momentum)*oldMean + momentum*mean
			r.next[path+"/variance"][c] = (1-momentum)*oldVariance + momentum*variance*n/(n-1)
		} else {
			mean, variance = oldMean, oldVariance
		}
		scale, bias := 1.0, 0.0
		if affine {
			scale, bias = r.values[path+"/scale"][c], r.values[path+"/bias"][c]
		}
		y.each(func(b, i, j, at int, v *float64) {
			if at == c {
				*v = (*x.at(b, i, j, c)-mean)/math.Sqrt(variance+1e-5)*scale + bias
			}
		})
	}
	return y
}

func (r *oneShotRef) convBNReLU(path string, x fmap, k, out int) fmap {
	return refReLU(r.bn(path+"/bn", refConv(x, r.values[path+"/conv"], k, out, k/2, 1), true, .997))
}

// refMaxPool is the largest value of a window of what lies inside the map.
func refMaxPool(x fmap, k, stride int) fmap {
	y := newMap(x.b, (x.h+2-k)/stride+1, (x.w+2-k)/stride+1, x.c)
	y.each(func(b, i, j, c int, v *float64) {
		*v = math.Inf(-1)
		for p := max(i*stride-1, 0); p < min(i*stride-1+k, x.h); p++ {
			for q := max(j*stride-1, 0); q < min(j*stride-1+k, x.w); q++ {
				*v = math.Max(*v, *x.at(b, p, q, c))
			}
		}
	})
	return y
}

// reordered are the channels of x in another order, or some of them.
func reordered(x fmap, from []int) fmap {
	y := newMap(x.b, x.h, x.w, len(from))
	y.each(func(b, i, j, c int, v *float64) { *v = *x.at(b, i, j, from[c]) })
	return y
}

// sideBySide are maps times their weights, one after the other.
func sideBySide(w []float64, maps ...fmap) fmap {
	width := 0
	for _, m := range maps {
		width += m.c
	}
	y, at := newMap(maps[0].b, maps[0].h, maps[0].w, width), 0
	for k, m := range maps {
		m.each(func(b, i, j, c int, v *float64) { *y.at(b, i, j, at+c) = w[k] * *v })
		at += m.c
	}
	return y
}

// weighedSum is Σ wₖ·xₖ.
func weighedSum(w []float64, maps ...fmap) fmap {
	y := newMap(maps[0].b, maps[0].h, maps[0].w, maps[0].c)
	for k, m := range maps {
		m.each(func(b, i, j, c int, v *float64) { *y.at(b, i, j, c) += w[k] * *v })
	}
	return y
}

func (r *oneShotRef) node(path string, node int, x fmap) fmap {
	part := x.c / r.c.Partial
	order := make([]int, x.c)
	for c := range order {
		order[c] = c
	}
	through, rest := reordered(x, order[:part]), reordered(x, order[part:])
	var results []fmap
	for _, op := range r.c.Space.Ops {
		switch op {
		case "maxpool3x3":
			results = append(results, refMaxPool(through, 3, 1))
		case "conv3x3-bn-relu":
			results = append(results, r.convBNReLU(path+"/"+op, through, 3, part))
		default:
			results = append(results, r.convBNReLU(path+"/"+op, through, 1, part))
		}
	}
	y := sideBySide([]float64{1, 1}, weighedSum(r.theta[0][node-1], results...), rest)
	for c := range order { // channel g·part + p comes to p·K + g
		order[c%part*r.c.Partial+c/part] = c
	}
	if r.c.Partial == 1 {
		return y
	}
	return reordered(y, order)
}

func (r *oneShotRef) cell(path string, x fmap, width int) fmap {
	var states []fmap
	inputs := r.theta[2:]
	for i, parents := range r.c.Space.Parents {
		u := append([]fmap{r.convBNReLU(fmt.Sprintf("%s/input_to_%d", path, i+1), x, 1, width)}, states...)
		w := slices.Repeat([]float64{1}, len(u))
		if parents < len(u) {
			w, inputs = inputs[0][0], inputs[1:]
		}
		states = append(states, r.node(fmt.Sprintf("%s/node_%d", path, i+1), i+1, weighedSum(w, u...)))
	}
	w := r.theta[1][0]
	if r.c.AddInput {
		u := r.convBNReLU(path+"/input_to_output", x, 1, width*len(states))
		return weighedSum([]float64{w[0], 1}, u, sideBySide(w[1:], states...))
	}
	u := r.convBNReLU(path+"/input_to_output", x, 1, width)
	return sideBySide(w, append([]fmap{u}, states...)...)
}

func (r *oneShotRef) forward(images fmap) (logits [][]float64) {
	width := r.c.Channels
	x := r.convBNReLU("stem", images, 3, width)
	for i := range r.c.Cells {
		if i == r.c.Cells/3 || i == 2*r.c.Cells/3 {
			x, width = refMaxPool(x, 2, 2), 2*width
		}
		x = r.cell(fmt.Sprintf("cells/%d", i), x, width)
	}
	x = r.bn("postprocess/bn", refConv(refReLU(x), r.values["postprocess/conv"], 1, width, 0, 1), false, .1)
	for b := range x.b {
		row := slices.Clone(r.values["classifier/bias"])
		for k := range row {
			for i := range x.h {
				for j := range x.w {
					for ch := range x.c {
						row[k] += *x.at(b, i, j, ch) / float64(x.h*x.w) *
							r.values["classifier/weight"][ch*r.c.Classes+k]
					}
				}
			}
		}
		logits = append(logits, row)
	}
	return logits
}

// oneShotSetup is a small supernet with random values for everything.
type oneShotSetup struct {
	net    *OneShotNet
	ref    *oneShotRef
	pixels fmap
	flat   []*tensors.Tensor // images, weights, statistics, θ
}

func newOneShotSetup(t *testing.T, c OneShotConfig) *oneShotSetup {
	t.Helper()
	c.Skeleton = Skeleton{Channels: 4, Cells: 3, Image: 6, Classes: 4}
	net, err := NewOneShot(c)
	require.NoError(t, err)
	c.Partial = max(c.Partial, 1)
	rng := rand.New(rand.NewPCG(3, 4))
	s := &oneShotSetup{net: net, ref: &oneShotRef{c: c, values: map[string][]float64{}}, pixels: newMap(2, 6, 6, 3)}
	copy(s.pixels.v, normal(rng, len(s.pixels.v)))
	s.flat = []*tensors.Tensor{tensors.FromFlatDataAndDimensions(s.pixels.v, 2, 6, 6, 3)}
	for _, w := range slices.Concat(net.Weights(), net.Stats()) {
		values := normal(rng, size(w.Dims))
		for i := range values {
			switch {
			case w.Init == InitOnes: // scales and variances
				values[i] = 0.5 + rng.Float64()
			case w.FanIn > 0:
				values[i] /= math.Sqrt(float64(w.FanIn))
			}
		}
		s.ref.values[w.Path] = values
		s.flat = append(s.flat, tensors.FromFlatDataAndDimensions(values, w.Dims...))
	}
	for _, b := range net.Architecture() {
		var rows [][]float64
		for range b.Rows {
			row := make([]float64, b.Options)
			for i := range row {
				row[i] = 0.1 + rng.Float64()
			}
			rows = append(rows, row)
		}
		s.ref.theta = append(s.ref.theta, rows)
		s.flat = append(s.flat, tensors.FromValue(rows))
	}
	return s
}

// run evaluates a graph on the setup's values.
func (s *oneShotSetup) run(t *testing.T, train bool, build func(p Pass, loss func(Pass) *Node) []*Node) [][]float64 {
	t.Helper()
	return s.compile(t, train, build)(s.flat)
}

func (s *oneShotSetup) compile(
	t *testing.T, train bool, build func(p Pass, loss func(Pass) *Node) []*Node,
) func(flat []*tensors.Tensor) [][]float64 {
	t.Helper()
	nw, ns := len(s.net.Weights()), len(s.net.Stats())
	exec, err := NewExec(shared(), func(all []*Node) []*Node {
		p := Pass{
			Images: all[0], Weights: all[1 : 1+nw], Stats: all[1+nw : 1+nw+ns], Theta: all[1+nw+ns:], Train: train,
		}
		return build(p, func(p Pass) *Node {
			_, loss := Score(s.net.Evaluate(p).Logits, Const(p.Images.Graph(), []int32{1, 3}))
			return loss
		})
	})
	require.NoError(t, err)
	return func(flat []*tensors.Tensor) [][]float64 {
		args := make([]any, len(flat))
		for i, x := range flat {
			args[i] = x
		}
		results, err := exec.Call(args...)
		require.NoError(t, err)
		out := make([][]float64, len(results))
		for i, x := range results {
			require.NoError(t, x.ConstFlatData(func(data any) { out[i] = append(out[i], data.([]float64)...) }))
		}
		return out
	}
}

var oneShotVariants = map[string]OneShotConfig{
	"S1, beside":        {},
	"S1, added":         {AddInput: true},
	"S2, added, K = 2":  {Space: OneShot2, AddInput: true, Partial: 2},
	"S3, beside, K = 4": {Space: OneShot3, Partial: 4},
}

// Logits and running statistics are those of plain loops, in training and in
// evaluation, for both supernets, all spaces and partial channels.
func TestOneShotForwardIsThePlainLoops(t *testing.T) {
	for name, c := range oneShotVariants {
		if c.Space.Ops == nil {
			c.Space = OneShot1
		}
		for _, train := range []bool{true, false} {
			s := newOneShotSetup(t, c)
			s.ref.training, s.ref.next = train, map[string][]float64{}
			for _, w := range s.net.Stats() {
				s.ref.next[w.Path] = slices.Clone(s.ref.values[w.Path])
			}
			want := s.ref.forward(s.pixels)
			got := s.run(t, train, func(p Pass, _ func(Pass) *Node) []*Node {
				o := s.net.Evaluate(p)
				return append([]*Node{o.Logits}, o.Stats...)
			})
			require.InDeltaSlice(t, slices.Concat(want...), got[0], 1e-10, name)
			for i, w := range s.net.Stats() {
				require.InDeltaSlice(t, s.ref.next[w.Path], got[i+1], 1e-10, "%s: %s", name, w.Path)
			}
		}
	}
}

// along is the derivative of the first result along a direction of input i, by
// central differences, with steps so small that no ReLU and no maximum changes
// sides.
func (s *oneShotSetup) along(t *testing.T, evaluate func([]*tensors.Tensor) [][]float64, i int, d []float64) float64 {
	const h = 1e-7
	at := func(h float64) float64 {
		moved := slices.Clone(s.flat)
		require.NoError(t, s.flat[i].ConstFlatData(func(data any) {
			x := slices.Clone(data.([]float64))
			for k := range x {
				x[k] += h * d[k]
			}
			moved[i] = tensors.FromFlatDataAndDimensions(x, s.flat[i].Shape().Dimensions...)
		}))
		return evaluate(moved)[0][0]
	}
	return (at(h) - at(-h)) / (2 * h)
}

// checkOneShotGradients compares the gradients of a number in θ and in every nth
// weight with central differences.
func checkOneShotGradients(
	t *testing.T, c OneShotConfig, nth int, number func(s *oneShotSetup, p Pass, loss func(Pass) *Node) *Node,
) {
	t.Helper()
	s := newOneShotSetup(t, c)
	nw, ns := len(s.net.Weights()), len(s.net.Stats())
	evaluate := s.compile(t, true, func(p Pass, loss func(Pass) *Node) []*Node {
		y := number(s, p, loss)
		return append([]*Node{y}, Gradient(y, slices.Concat(p.Weights, p.Theta)...)...)
	})
	grads := evaluate(s.flat)[1:]
	rng := rand.New(rand.NewPCG(5, 6))
	for k, g := range grads {
		if k < nw && k%nth != 0 {
			continue
		}
		i := 1 + k
		if k >= nw {
			i += ns
		}
		d, dot := normal(rng, len(g)), 0.0
		for j := range d {
			dot += d[j] * g[j]
		}
		want := s.along(t, evaluate, i, d)
		require.InDelta(t, want, dot, 1e-5*math.Max(1, math.Abs(want)), "input %d", i)
	}
}

func TestOneShotGradientsAreThoseOfFiniteDifferences(t *testing.T) {
	for _, name := range []string{"S1, added", "S3, beside, K = 4"} {
		alone := func(_ *oneShotSetup, p Pass, loss func(Pass) *Node) *Node { return loss(p) }
		checkOneShotGradients(t, oneShotVariants[name], 9, alone)
	}
}

// The unrolled hypergradient needs gradients of gradients.
func TestOneShotGradientsOfGradients(t *testing.T) {
	number := func(_ *oneShotSetup, p Pass, loss func(Pass) *Node) *Node {
		g := p.Images.Graph()
		sum := ScalarZero(g, p.Images.DType())
		for i, grad := range Gradient(loss(p), p.Weights...) {
			u := normal(rand.New(rand.NewPCG(9, uint64(i))), grad.Shape().Size())
			sum = Add(sum, ReduceAllSum(Mul(Reshape(grad, -1), Const(g, u))))
		}
		return sum
	}
	checkOneShotGradients(t, oneShotVariants["S1, beside"], 15, number)
}

// 32 pixels become 17 and these 9, as in the authors' network; the padding
// never wins, and of equal values the first has the gradient.
func TestOneShotDownSampling(t *testing.T) {
	pool := func(x *Node) *Node {
		l := Layers{walk: &walk{net: &CellNet{}, memo: map[memory]*Node{}}}
		return l.maxPool2Padded(Map{H: x.Shape().Dim(1), W: x.Shape().Dim(2), C: 1, node: x}).node
	}
	for n, want := range map[int]int{32: 17, 17: 9, 12: 7, 7: 4, 1: 1} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		x := newMap(1, n, n, 1)
		for i := range x.v {
			x.v[i] = -1 - rng.Float64()
		}
		out, err := ExecOnce(shared(), pool, tensors.FromFlatDataAndDimensions(x.v, 1, n, n, 1))
		require.NoError(t, err)
		require.Equal(t, []int{1, want, want, 1}, out.Shape().Dimensions)
		require.NoError(t, out.ConstFlatData(func(data any) {
			require.Equal(t, refMaxPool(x, 2, 2).v, data.([]float64))
		}))
	}
	gradient := func(x *Node) *Node { return Gradient(ReduceAllSum(pool(x)), x)[0] }
	grad, err := ExecOnce(shared(), gradient, tensors.FromFlatDataAndDimensions(make([]float64, 9), 1, 3, 3, 1))
	require.NoError(t, err)
	require.NoError(t, grad.ConstFlatData(func(data any) {
		require.Equal(t, []float64{1, 1, 0, 1, 1, 0, 0, 0, 0}, data.([]float64))
	}))
}

// What the search is given: blocks, their names, and the architecture of them.
func TestOneShotArchitecture(t *testing.T) {
	net, err := NewOneShot(OneShotConfig{Space: OneShot2})
	require.NoError(t, err)
	names := []string{"operations", "output", "inputs of node 2", "inputs of node 3", "inputs of node 4"}
	options := []int{3, 5, 2, 3, 4}
	var theta [][][]float64
	for i, b := range net.Architecture() {
		require.Equal(t, names[i], b.Name)
		require.Equal(t, options[i], b.Options)
		require.Equal(t, max(1, 4*(1-i)), b.Rows)
		theta = append(theta, slices.Repeat([][]float64{ascendingRow(b.Options)}, b.Rows))
	}
	a, err := net.Space.Discretize(theta, TiesFirst)
	require.NoError(t, err)
	require.Equal(t, OneShotArch{Ops: []int{2, 2, 2, 2}, Parents: [][]int{{0}, {1}, {1, 2}, {2, 3}, {2, 3, 4}}}, a)
	_, err = net.Space.Discretize(theta[1:], TiesFirst)
	require.ErrorContains(t, err, "found 4 blocks of weights, expected 5")
	theta[2] = nil
	_, err = net.Space.Discretize(theta, TiesFirst)
	require.ErrorContains(t, err, "found 0 rows of weights of the inputs of node 2")
	require.Contains(t, slices.Collect(maps.Values(OneShots)), net.Space)
}

func ascendingRow(n int) (row []float64) {
	for i := range n {
		row = append(row, float64(i))
	}
	return row
}

func TestNewOneShotRefuses(t *testing.T) {
	for want, c := range map[string]OneShotConfig{
		"18 channels of which 1/K, K = 4":   {Skeleton: Skeleton{Channels: 18}, Partial: 4},
		"cells -1":                          {Skeleton: Skeleton{Cells: -1}},
		"node 1 has 2 parents":              {Space: OneShot{"mine", opsOneShot, []int{2}, 1, OneShotKnown{}}},
		`operation "conv5x5" is unknown or`: {Space: OneShot{"mine", []string{"conv5x5"}, []int{1}, 1, OneShotKnown{}}},
	} {
		_, err := NewOneShot(c)
		require.ErrorContains(t, err, want)
	}
}
