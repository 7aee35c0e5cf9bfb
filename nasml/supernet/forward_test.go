package supernet

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/exceptions"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

// setup is a tiny network with random float64 values for everything.
type setup struct {
	net            *Net
	images, labels *tensors.Tensor
	pixels         fmap
	weights, stats []*tensors.Tensor
	values         map[string][]float64
	theta          [][][]float64
}

func newSetup(t *testing.T, c Config, batch int) *setup {
	t.Helper()
	c.Channels, c.Cells, c.Image, c.Classes = 2, 1, 8, 4
	net, err := New(c)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(7, 8))
	s := &setup{net: net, values: map[string][]float64{}, pixels: newMap(batch, 8, 8, 3)}
	fill := func(n int, f func() float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = f()
		}
		return v
	}
	random := func(list []Weight) (out []*tensors.Tensor) {
		for _, w := range list {
			n := 1
			for _, d := range w.Dims {
				n *= d
			}
			draw := func() float64 { return rng.NormFloat64() / math.Sqrt(float64(max(w.FanIn, 1))) }
			if w.Init == InitOnes { // scales and variances
				draw = func() float64 { return 0.5 + rng.Float64() }
			}
			s.values[w.Path] = fill(n, draw)
			out = append(out, tensors.FromFlatDataAndDimensions(s.values[w.Path], w.Dims...))
		}
		return out
	}
	s.weights, s.stats = random(net.Weights()), random(net.Stats())
	copy(s.pixels.v, fill(len(s.pixels.v), rng.NormFloat64))
	s.images = tensors.FromFlatDataAndDimensions(s.pixels.v, batch, 8, 8, 3)
	labels := make([]int32, batch)
	for b := range batch {
		labels[b] = int32(rng.IntN(4))
		s.theta = append(s.theta, nil)
		for range net.Config.Space.Edges {
			s.theta[b] = append(s.theta[b], fill(len(net.Config.Space.Ops), rng.Float64))
		}
	}
	s.labels = tensors.FromValue(labels)
	return s
}

var shared = sync.OnceValue(func() compute.Backend {
	b, err := compute.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	return b
})

// compile builds a graph on (images, labels, θ, weights, statistics and, where
// chosen, the chosen operations); what it returns evaluates it on a setup of the
// same network.
func (s *setup) compile(
	t *testing.T, chosen bool, build func(in Input, labels *Node) []*Node,
) func(s *setup, theta any, chosen ...any) [][]float64 {
	t.Helper()
	exec, err := NewExec(shared(), func(all []*Node) []*Node {
		in := Input{Images: all[0], Theta: all[2], Train: true}
		rest := all[3:]
		in.Weights, rest = rest[:len(s.weights)], rest[len(s.weights):]
		in.Stats, rest = rest[:len(s.stats)], rest[len(s.stats):]
		if chosen {
			in.Chosen = rest[0]
		}
		return build(in, all[1])
	})
	require.NoError(t, err)
	return func(s *setup, theta any, chosen ...any) [][]float64 {
		args := []any{s.images, s.labels, theta}
		for _, w := range slices.Concat(s.weights, s.stats) {
			args = append(args, w)
		}
		results, err := exec.Call(append(args, chosen...)...)
		require.NoError(t, err)
		out := make([][]float64, len(results))
		for i, x := range results {
			require.NoError(t, x.ConstFlatData(func(data any) { out[i] = append(out[i], data.([]float64)...) }))
		}
		return out
	}
}

// run compiles and evaluates once.
func (s *setup) run(
	t *testing.T, theta any, chosen [][]float64, build func(in Input, labels *Node) []*Node,
) [][]float64 {
	t.Helper()
	if chosen != nil {
		return s.compile(t, true, build)(s, theta, chosen)
	}
	return s.compile(t, false, build)(s, theta)
}

func (s *setup) reference(theta [][][]float64, chosen [][]float64, training bool) *reference {
	r := &reference{
		net: s.net, values: s.values, next: map[string][]float64{},
		theta: theta, chosen: chosen, training: training,
	}
	for _, w := range s.net.Stats() {
		r.next[w.Path] = append([]float64(nil), s.values[w.Path]...)
	}
	return r
}

func repeat(theta [][]float64, batch int) [][][]float64 {
	out := make([][][]float64, batch)
	for b := range out {
		out[b] = theta
	}
	return out
}

func flatten(rows [][]float64) (out []float64) {
	for _, row := range rows {
		out = append(out, row...)
	}
	return out
}

// Input is a pass of a network with one block of θ.
type Input struct {
	Images, Theta, Chosen *Node
	Weights, Stats        []*Node
	Train                 bool
}

func (n *Net) Forward(in Input) (logits *Node, stats []*Node) {
	p := Pass{Images: in.Images, Theta: []*Node{in.Theta}, Weights: in.Weights, Stats: in.Stats, Train: in.Train}
	if in.Chosen != nil {
		p.Chosen = []*Node{in.Chosen}
	}
	o := n.Evaluate(p)
	return o.Logits, o.Stats
}

func loss(net *Net, in Input, labels *Node) *Node {
	logits, _ := net.Forward(in)
	_, loss := Score(logits, labels)
	return loss
}

var variants = map[string]Config{
	"search cells":       {},
	"without none":       {Space: NASBench201.Without("none")},
	"affine and bias":    {Affine: true, ConvBias: true},
	"running statistics": {TrackStats: true},
	"outside of cells":   {TrackOutside: true, Affine: true},
	"all":                {Affine: true, ConvBias: true, TrackStats: true},
}

// someChosen chooses one operation an edge.
func someChosen(s Space) [][]float64 {
	choice := make([]int, len(s.Edges))
	for e := range choice {
		choice[e] = (3*e + 1) % len(s.Ops)
	}
	return s.OneHot(choice)
}

// The fused evaluation is the plain one: logits and running statistics, with
// one θ and one an example, mixed and sampled, in training and evaluation.
func TestForwardIsThePlainLoops(t *testing.T) {
	const batch = 3
	for name, config := range variants {
		s := newSetup(t, config, batch)
		for _, training := range []bool{true, false} {
			for _, chosen := range [][][]float64{nil, someChosen(s.net.Config.Space)} {
				for _, perExample := range []bool{false, true} {
					theta, each := any(s.theta[0]), repeat(s.theta[0], batch)
					if perExample {
						theta, each = s.theta, s.theta
					}
					ref := s.reference(each, chosen, training)
					want := flatten(ref.forward(s.pixels))
					for _, w := range s.net.Stats() {
						want = append(want, ref.next[w.Path]...)
					}
					got := flatten(s.run(t, theta, chosen, func(in Input, _ *Node) []*Node {
						in.Train = training
						logits, stats := s.net.Forward(in)
						return append([]*Node{logits}, stats...)
					}))
					require.InDeltaSlice(t, want, got, 1e-9,
						"%s, training %v, chosen %v, per example %v", name, training, chosen != nil, perExample)
				}
			}
		}
	}
}

// nudged is θ with step added to entry i.
func nudged(theta [][]float64, i int, step float64) [][]float64 {
	to := make([][]float64, len(theta))
	for e := range theta {
		to[e] = slices.Clone(theta[e])
	}
	to[i/len(theta[0])][i%len(theta[0])] += step
	return to
}

// moved is s with step·direction added to weight i.
func (s *setup) moved(i int, step float64, direction []float64) *setup {
	to := *s
	w := s.net.Weights()[i]
	values := slices.Clone(s.values[w.Path])
	floats.AddScaled(values, step, direction)
	to.weights = slices.Clone(s.weights)
	to.weights[i] = tensors.FromFlatDataAndDimensions(values, w.Dims...)
	return &to
}

func normal(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// checkGradients compares the gradients of f with central differences: every
// nth entry of θ, and every nth weight along a random direction (7 meets every
// kind of them).
func (s *setup) checkGradients(t *testing.T, nth int, f func(in Input, labels *Node) *Node) {
	t.Helper()
	const h = 1e-6
	theta := s.theta[0]
	grads := s.run(t, theta, nil, func(in Input, labels *Node) []*Node {
		return Gradient(f(in, labels), append([]*Node{in.Theta}, in.Weights...)...)
	})
	evaluate := s.compile(t, false, func(in Input, labels *Node) []*Node { return []*Node{f(in, labels)} })
	close := func(plus, minus [][]float64, slope float64, what any) {
		t.Helper()
		require.InDelta(t, (plus[0][0]-minus[0][0])/(2*h), slope, 1e-6*(1+math.Abs(slope)), what)
	}
	for i := 0; i < len(grads[0]); i += nth {
		close(evaluate(s, nudged(theta, i, h)), evaluate(s, nudged(theta, i, -h)), grads[0][i], i)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i, w := range s.net.Weights() {
		if i%nth == 0 {
			d := normal(rng, len(grads[i+1]))
			close(evaluate(s.moved(i, h, d), theta), evaluate(s.moved(i, -h, d), theta),
				floats.Dot(d, grads[i+1]), w.Path)
		}
	}
}

func TestGradientsAreThoseOfFiniteDifferences(t *testing.T) {
	for _, name := range []string{"search cells", "all"} {
		s := newSetup(t, variants[name], 2)
		s.checkGradients(t, 7, func(in Input, labels *Node) *Node { return loss(s.net, in, labels) })
	}
}

// In evaluation by running statistics BN is linear.
func TestGradientsInEvaluation(t *testing.T) {
	s := newSetup(t, variants["all"], 2)
	s.checkGradients(t, 7, func(in Input, labels *Node) *Node {
		in.Train = false
		return loss(s.net, in, labels)
	})
}

// The unrolled hypergradient needs gradients of gradients, here those of
// ⟨∂loss/∂w, u⟩ in θ and in w.
func TestGradientsOfGradients(t *testing.T) {
	s := newSetup(t, variants["all"], 2)
	s.checkGradients(t, 7, func(in Input, labels *Node) *Node {
		sum := ScalarZero(labels.Graph(), in.Theta.DType())
		for i, grad := range Gradient(loss(s.net, in, labels), in.Weights...) {
			u := normal(rand.New(rand.NewPCG(9, uint64(i))), grad.Shape().Size())
			sum = Add(sum, ReduceAllSum(Mul(Reshape(grad, -1), Const(labels.Graph(), u))))
		}
		return sum
	})
}

// none contributes nothing: its gradient is 0, not merely small.
func TestNoneHasNoGradient(t *testing.T) {
	s := newSetup(t, Config{}, 2)
	grad := s.run(t, s.theta[0], nil, func(in Input, labels *Node) []*Node {
		return Gradient(loss(s.net, in, labels), in.Theta)
	})[0]
	for i, g := range grad {
		require.Equal(t, i%5 == 0, g == 0, "θ %d has gradient %g", i, g)
	}
}

// With a one-hot θ the network is the discrete one, chosen or mixed, and the
// weights of the other operations have no gradient.
func TestOneHotIsTheDiscreteNetwork(t *testing.T) {
	s := newSetup(t, Config{}, 2)
	space := s.net.Config.Space
	choice := []int{3, 1, 4, 2, 0, 3}
	hot := space.OneHot(choice)
	build := func(in Input, labels *Node) []*Node {
		logits, _ := s.net.Forward(in)
		_, loss := Score(logits, labels)
		return append([]*Node{logits}, Gradient(loss, in.Weights...)...)
	}
	mixed, sampled := s.run(t, hot, nil, build), s.run(t, hot, hot, build)
	discrete := s.reference(repeat(hot, 2), nil, true)
	require.InDeltaSlice(t, flatten(discrete.forward(s.pixels)), mixed[0], 1e-10)
	for k := range mixed {
		require.InDeltaSlice(t, mixed[k], sampled[k], 1e-12)
	}
	for i, w := range s.net.Weights() {
		part := strings.Split(w.Path, "/")
		if len(part) < 5 && !strings.Contains(w.Path, "nor_conv") {
			continue
		}
		for e, edge := range space.Edges {
			if part[2] == edge.String() && part[3] != space.Ops[choice[e]] {
				require.Zero(t, floats.Norm(mixed[i+1], 1), w.Path)
			}
		}
	}
}

// GDAS: the gradient of an operation that is not chosen is the sum of the
// gradient of the node it enters, the same for all of an edge.
func TestGradientOfWhatIsNotChosen(t *testing.T) {
	const h = 1e-6
	s := newSetup(t, Config{}, 2)
	space, theta := s.net.Config.Space, s.theta[0]
	chosen := someChosen(space)
	grad := s.run(t, theta, chosen, func(in Input, labels *Node) []*Node {
		return Gradient(loss(s.net, in, labels), in.Theta)
	})[0]
	at := func(theta [][]float64) float64 {
		logits := s.reference(repeat(theta, 2), chosen, true).forward(s.pixels)
		return crossEntropy(logits, s.labels.Value().([]int32))
	}
	ops := len(space.Ops)
	for e := range space.Edges {
		var others []float64
		for o := range ops {
			i := e*ops + o
			require.InDelta(t, (at(nudged(theta, i, h))-at(nudged(theta, i, -h)))/(2*h), grad[i], 1e-6, "θ %d", i)
			if chosen[e][o] == 0 {
				others = append(others, grad[i])
			}
		}
		for _, g := range others {
			require.InDelta(t, others[0], g, 1e-12)
		}
		require.NotZero(t, others[0])
	}
}

func crossEntropy(logits [][]float64, labels []int32) float64 {
	total := 0.0
	for b, row := range logits {
		total += (floats.LogSumExp(row) - row[labels[b]]) / float64(len(logits))
	}
	return total
}

// XNAS needs one architecture gradient an example; together they are the
// gradient of the shared θ.
func TestExamplesGradientsAddUp(t *testing.T) {
	const batch = 3
	s := newSetup(t, variants["all"], batch)
	build := func(in Input, labels *Node) []*Node { return Gradient(loss(s.net, in, labels), in.Theta) }
	one := s.run(t, s.theta[0], nil, build)[0]
	each := s.run(t, repeat(s.theta[0], batch), nil, build)[0]
	require.Len(t, each, batch*len(one))
	sum := make([]float64, len(one))
	for b := range batch {
		floats.Add(sum, each[b*len(one):(b+1)*len(one)])
	}
	require.InDeltaSlice(t, one, sum, 1e-12)
	require.Greater(t, floats.Distance(each[:len(one)], each[len(one):2*len(one)], 1), 1e-3, "examples differ")
}

// Running statistics of a batch worked out by hand: mean 0.9·1 + 0.1·2.5,
// variance 0.9·4 + 0.1·(5/3), unbiased, of the values 1, 2, 3, 4.
func TestRunningStatisticsByHand(t *testing.T) {
	net, err := New(Config{Channels: 1, Cells: 1, Image: 4, TrackStats: true})
	require.NoError(t, err)
	out, err := ExecOnceN(goBackend(t), func(x, mean, variance *Node) []*Node {
		w := net.walk(Pass{Train: true, Stats: []*Node{mean, variance}})
		Layers{walk: w}.In("stem/bn").bn(Map{H: 2, W: 2, C: 1, node: x}, false, momentum)
		return w.mixed()
	}, [][][][]float64{{{{1}, {2}}, {{3}, {4}}}}, []float64{1}, []float64{4})
	require.NoError(t, err)
	require.InDelta(t, 0.9+0.25, out[0].Value().([]float64)[0], 1e-15)
	require.InDelta(t, 3.6+0.5/3, out[1].Value().([]float64)[0], 1e-15)
}

func TestScore(t *testing.T) {
	out, err := ExecOnceN(goBackend(t), func(logits, labels *Node) []*Node {
		correct, loss := Score(logits, labels)
		return []*Node{correct, loss}
	}, [][]float64{{1000, 0, -1000}, {0, 0, 0}, {0, 1, 1}, {0, 1, 1}}, []int32{0, 1, 1, 2})
	require.NoError(t, err)
	require.EqualValues(t, 2, out[0].Value(), "the first of equal logits counts")
	tie := 2*math.Log(math.Exp(-1)+2) + math.Log(3)
	require.InDelta(t, tie/4, out[1].Value().(float64), 1e-15)
}

func TestForwardRefusesWhatDoesNotFit(t *testing.T) {
	s := newSetup(t, Config{TrackStats: true}, 2)
	for want, change := range map[string]func(in *Input){
		"the images must have shape [2 8 8 3], got (Float64)[2, 4, 8, 3]": func(in *Input) {
			in.Images = SliceAxis(in.Images, 1, AxisRange(0, 4))
		},
		"θ, operations must have shape [6 5], got (Float64)[6, 4]": func(in *Input) {
			in.Theta = SliceAxis(in.Theta, 1, AxisRange(0, 4))
		},
		"θ, operations must have shape [2 6 5], got (Float64)[1, 6, 5]": func(in *Input) {
			in.Theta = ExpandAxes(in.Theta, 0)
		},
		"the chosen operations must have shape [6 5], got (Float64)[2, 6, 5]": func(in *Input) {
			in.Chosen = BroadcastToDims(ExpandAxes(in.Theta, 0), 2, 6, 5)
		},
		"got 56 weights, the network has 57":           func(in *Input) { in.Weights = in.Weights[1:] },
		"got 0 running statistics, the network has 84": func(in *Input) { in.Stats = nil },
		"stem/conv must have shape [3 3 3 2], got (Float64)[2]": func(in *Input) {
			in.Weights = append(in.Weights[1:2:2], in.Weights[1:]...)
		},
	} {
		err := exceptions.TryCatch[error](func() {
			s.run(t, s.theta[0], nil, func(in Input, _ *Node) []*Node {
				change(&in)
				panicked := exceptions.TryCatch[error](func() { s.net.Forward(in) })
				require.ErrorContains(t, panicked, want)
				return []*Node{ScalarZero(in.Theta.Graph(), in.Theta.DType())}
			})
		})
		require.NoError(t, err)
	}
}
