package sgdsweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/oymak2021/internal/pixels"
)

// testBackend is XLA where it is set up and the pure-Go backend elsewhere: the
// arithmetic must not depend on it.
func testBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := backend.Open()
	if err != nil {
		b, err = compute.NewWithConfig("go")
	}
	require.NoError(t, err)
	return b
}

// tinyImages are 2×3 images of two classes; pixel 4 is always 0.
func tinyImages() *pixels.Images {
	im := &pixels.Images{Name: "tiny", Size: 6, Labels: []uint8{0, 1, 1, 0, 1}}
	im.Pixels = []uint8{
		255, 0, 51, 102, 0, 7,
		0, 204, 13, 99, 0, 255,
		31, 180, 0, 64, 0, 140,
		200, 0, 77, 3, 0, 0,
		90, 120, 1, 0, 0, 33,
	}
	return im
}

func tinyNetwork(panel string) Network {
	return Network{
		Panel: panel, Width: 4, Activations: [2]string{"relu", "sigmoid"}, Output: panel == "b", C0: 1,
		Optimizer: "sgd", LearningRate: 0.3, Momentum: 0.9, Batch: 2, Epochs: 3, Classes: []int{0, 1},
		Labels: "0/1", Inputs: "unit-interval", Loss: "mse", BeyondOne: "allow", Precision: "float64",
	}
}

func tinySweep(t *testing.T, net Network) *Sweep {
	t.Helper()
	s := &Sweep{net: net, seeds: []uint64{3, 8}, deltas: []float64{0.01, 0.2}}
	require.NoError(t, s.setExamples(tinyImages()))
	require.Equal(t, []int{0, 1, 2, 3, 5}, s.active, "the pixel that is always 0 is left out")
	return s
}

func trainTiny(t *testing.T, s *Sweep) *Progress {
	t.Helper()
	p := s.Start()
	require.NoError(t, s.Train(context.Background(), testBackend(t), p, func() error { return nil }))
	return p
}

// reference trains one model by plain loops over float64: an implementation of
// the same formulas that shares nothing with the graph but the random numbers.
type reference struct {
	net    Network
	alpha  float64
	w      [][]float64 // [layer][out·in]
	sizes  [][2]int
	x      [][]float64
	y      []float64
	losses []float64
}

func (r *reference) sigma(z float64) (value, slope float64) {
	s := 1 / (1 + math.Exp(-z))
	relu, step := math.Max(z, 0), 0.0
	if z > 0 {
		step = 1
	}
	return (1-r.alpha)*relu + r.alpha*s, (1-r.alpha)*step + r.alpha*s*(1-s)
}

// backprop returns f(x) and adds (∂L/∂f)·∂f/∂W to grads, where ∂L/∂f is
// dLoss(f).
func (r *reference) backprop(x []float64, dLoss func(f float64) float64, grads [][]float64) float64 {
	h, slopes := [][]float64{x}, [][]float64{}
	for l, size := range r.sizes {
		out, slope := make([]float64, size[0]), make([]float64, size[0])
		for i := range out {
			z := floats.Dot(r.w[l][i*size[1]:(i+1)*size[1]], h[l])
			out[i], slope[i] = z, 1
			if r.net.Panel == "a" || l+1 < len(r.sizes) || r.net.Output {
				out[i], slope[i] = r.sigma(z)
			}
		}
		h, slopes = append(h, out), append(slopes, slope)
	}
	last, v := h[len(h)-1], []float64{1}
	if r.net.Panel == "a" {
		v = headWeights(r.net.Width, r.net.C0)
	}
	f := floats.Dot(v, last)
	delta := slices.Clone(v)
	floats.Scale(dLoss(f), delta)
	for l := len(r.sizes) - 1; l >= 0; l-- {
		floats.Mul(delta, slopes[l])
		below := make([]float64, r.sizes[l][1])
		for i, d := range delta {
			row := r.w[l][i*len(below) : (i+1)*len(below)]
			floats.AddScaled(grads[l][i*len(below):(i+1)*len(below)], d, h[l])
			floats.AddScaled(below, d, row)
		}
		delta = below
	}
	return f
}

// train follows the order of batches that the sweep drew.
func (r *reference) train(s *Sweep, seed int) {
	steps, size := s.steps(), s.net.Batch
	for epoch := range s.net.Epochs {
		order, total := tensors.MustCopyFlatData[int32](s.order(epoch)), 0.0
		for step := range steps {
			rows := order[(step*len(s.seeds)+seed)*size:][:min(size, s.n-step*size)]
			grads := make([][]float64, len(r.w))
			for l := range grads {
				grads[l] = make([]float64, len(r.w[l]))
			}
			for _, row := range rows {
				n := float64(len(rows))
				f := r.backprop(r.x[row], func(f float64) float64 { return 2 * (f - r.y[row]) / n }, grads)
				total += (f - r.y[row]) * (f - r.y[row]) / n
			}
			for l := range r.w {
				floats.AddScaled(r.w[l], -s.net.LearningRate, grads[l])
			}
		}
		r.losses = append(r.losses, total/float64(steps))
	}
}

// newReference takes model (seed j, variant v) of a sweep before training. It
// works on all pixels, those that are always 0 included.
func newReference(t *testing.T, s *Sweep, j, v int) *reference {
	t.Helper()
	r := &reference{net: s.net, alpha: s.alphas()[j*(1+len(s.deltas))+v], sizes: s.net.layers(s.fanIn)}
	full := *s
	full.d, full.active = s.fanIn, []int{0, 1, 2, 3, 4, 5}
	for l, size := range r.sizes {
		r.w = append(r.w, full.heWeights(s.seeds[j], l, size[0], size[1]))
	}
	im := tinyImages()
	for i := range im.Len() {
		x := make([]float64, s.fanIn)
		for p, pixel := range im.Image(i) {
			x[p] = float64(pixel) / 255
		}
		r.x, r.y = append(r.x, x), append(r.y, float64(im.Labels[i]))
	}
	return r
}

// The graph trains every model as plain loops do: batches, padding of the last
// batch, all layers, weights and losses, with all numbers of the examples and without
// those that are 0.
func TestTrainingEqualsPlainLoops(t *testing.T) {
	for _, panel := range []string{"a", "b"} {
		for _, sparse := range []bool{false, true} {
			t.Run(fmt.Sprint(panel, sparse), func(t *testing.T) {
				s := tinySweep(t, tinyNetwork(panel))
				require.False(t, s.sparse, "20 of 25 numbers are not 0")
				s.sparse = sparse
				mustEqualPlainLoops(t, s)
			})
		}
	}
}

func mustEqualPlainLoops(t *testing.T, s *Sweep) {
	t.Helper()
	p := trainTiny(t, s)
	distances, err := s.distances(p)
	require.NoError(t, err)
	for j := range s.seeds {
		base := newReference(t, s, j, 0)
		base.train(s, j)
		for v, delta := range s.deltas {
			other := newReference(t, s, j, v+1)
			other.train(s, j)
			require.InDelta(t, base.alpha+delta, other.alpha, 1e-15)
			var square float64
			for l := range base.w {
				d := floats.Distance(base.w[l], other.w[l], 2)
				square += d * d
			}
			require.Positive(t, square)
			require.InEpsilon(t, math.Sqrt(square), distances[j][v], 1e-9)
			for e := range other.losses {
				require.InEpsilon(t, other.losses[e], p.Losses[e][j*3+v+1], 1e-12)
			}
		}
	}
}

// One step of panel (a) computed by hand: k = 2, d = 1, W = (1, −1), x = 2,
// y = 1, α = ½, c₀ = 2 so that v = (1, −1).
//
//	z = (2, −2), s = 1/(1+e⁻²); σ(z) = (½·2 + ½s, ½(1−s)), f = 1 + s − ½
//	∂L/∂f = 2(f − 1) = 2s − 1; σ′ = (½ + ½s(1−s), ½s(1−s))
//	∇W = (2s−1)·2·(½ + ½s(1−s), −½s(1−s))
func TestOneStepByHand(t *testing.T) {
	n := tinyNetwork("a")
	n.Width, n.C0, n.LearningRate = 2, 2, 0.1
	loss, w := oneStep(t, n, []float64{1, -1}, 2, 1, 0.5)
	s := 1 / (1 + math.Exp(-2))
	require.InDelta(t, (s-0.5)*(s-0.5), loss, 1e-14)
	require.InDelta(t, 1-0.1*(2*s-1)*2*(0.5+0.5*s*(1-s)), w[0], 1e-14)
	require.InDelta(t, -1+0.1*(2*s-1)*2*0.5*s*(1-s), w[1], 1e-14)

	n.Loss = "half-mse"
	half, _ := oneStep(t, n, []float64{1, -1}, 2, 1, 0.5)
	require.InDelta(t, loss/2, half, 1e-15)
}

// oneStep is one update of a shallow net with one input on one example.
func oneStep(t *testing.T, n Network, w []float64, x, y, alpha float64) (loss float64, next []float64) {
	t.Helper()
	out, err := ExecOnceN(testBackend(t), func(in []*Node) []*Node {
		weight := OnesLike(Reshape(in[1], 1))
		zero := ScalarZero(in[0].Graph(), in[0].DType())
		loss, state := n.step(batch{in[1], in[2], weight, true}, in[3], zero, in[:1])
		return []*Node{Reshape(loss), state[0]}
	},
		tensors.FromFlatDataAndDimensions(w, 1, 1, 1, len(w)), tensors.FromFlatDataAndDimensions([]float64{x}, 1, 1, 1),
		tensors.FromFlatDataAndDimensions([]float64{y}, 1, 1),
		tensors.FromFlatDataAndDimensions([]float64{alpha}, 1, 1, 1, 1))
	require.NoError(t, err)
	return tensors.ToScalar[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
}

// The gradients of both networks agree with central differences of the loss.
func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, panel := range []string{"a", "b"} {
		s := tinySweep(t, tinyNetwork(panel))
		s.sparse = panel == "b"
		state := s.initialState()
		exec, err := NewExec(testBackend(t), func(in []*Node) []*Node {
			batches := pass{x: in[0], y: in[1], alpha: in[2], order: in[3], weight: in[4], sparse: s.sparse}
			last := batches.pick(Const(in[0].Graph(), int32(2))) // padded
			loss := s.net.losses(last, s.net.first(last, in[5]), in[2], in[6:])
			return append([]*Node{loss}, gradients(loss, in[5:])...)
		})
		require.NoError(t, err)
		defer exec.Finalize()
		args := []any{s.x, s.y, s.tensor(s.alphas(), 2, 3, 1, 1), s.order(0), s.weights()}
		for _, w := range state {
			args = append(args, w)
		}
		evaluate := func() (losses []float64, grads [][]float64) {
			out, err := exec.Call(args...)
			require.NoError(t, err)
			for _, g := range out[1:] {
				grads = append(grads, tensors.MustCopyFlatData[float64](g))
			}
			return tensors.MustCopyFlatData[float64](out[0]), grads
		}
		_, grads := evaluate()
		const h = 1e-6
		for l := range state {
			for _, at := range []int{0, len(grads[l]) / 2, len(grads[l]) - 1} {
				shifted := func(by float64) float64 {
					tensors.MustMutableFlatData(state[l], func(w []float64) { w[at] += by })
					losses, _ := evaluate()
					return floats.Sum(losses)
				}
				up := shifted(h)
				down := shifted(-2 * h)
				shifted(h)
				require.InDelta(t, (up-down)/(2*h), grads[l][at], 1e-8,
					"panel %s, layer %d, weight %d", panel, l, at)
			}
		}
	}
}

// Batching changes no number: a model trained in a sweep of six equals the one
// trained in a sweep of its own.
func TestModelsDoNotTouchEachOther(t *testing.T) {
	together := tinySweep(t, tinyNetwork("b"))
	d2, err := together.distances(trainTiny(t, together))
	require.NoError(t, err)
	alone := tinySweep(t, tinyNetwork("b"))
	alone.seeds, alone.deltas = together.seeds[1:], together.deltas[1:]
	d1, err := alone.distances(trainTiny(t, alone))
	require.NoError(t, err)
	require.InEpsilon(t, d2[1][1], d1[0][0], 1e-9)
}

// Every optimizer's two steps on a scalar quadratic-like net against its
// textbook formula.
func TestOptimizersAgainstTheirFormulas(t *testing.T) {
	for name, want := range map[string]func(w, g1, g2, eta float64) float64{
		"sgd":      func(w, g1, g2, eta float64) float64 { return w - eta*g1 - eta*g2 },
		"momentum": func(w, g1, g2, eta float64) float64 { return w - eta*g1 - eta*(0.9*g1+g2) },
		"adam": func(w, g1, g2, eta float64) float64 {
			m, v := 0.1*g1, 0.001*g1*g1
			w -= eta * (m / 0.1) / (math.Sqrt(v/0.001) + 1e-8)
			m, v = 0.9*m+0.1*g2, 0.999*v+0.001*g2*g2
			return w - eta*(m/(1-0.81))/(math.Sqrt(v/(1-0.998001))+1e-8)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := tinyNetwork("a")
			n.Optimizer = name
			out, err := ExecOnce(testBackend(t), func(w, g1, g2 *Node) *Node {
				rule, all := n.rule(), []*Node{w}
				slots := slices.Repeat([]*Node{ZerosLike(w)}, rule.Slots)
				for step, grad := range []*Node{g1, g2} {
					m := bilevel.Move{Params: all, Grads: []*Node{grad}, Slots: slots}
					m.Done = Scalar(w.Graph(), w.DType(), step)
					all, slots = rule.Step(name, m)
				}
				return all[0]
			}, []float64{0.7}, []float64{0.2}, []float64{-0.5})
			require.NoError(t, err)
			require.InDelta(t, want(0.7, 0.2, -0.5, n.LearningRate), tensors.MustCopyFlatData[float64](out)[0], 1e-12)
		})
	}
}

func TestHeInitialization(t *testing.T) {
	s := &Sweep{net: Network{Panel: "b", Width: 256}, fanIn: 784, active: []int{1, 5, 9}, d: 3}
	for l, size := range s.net.layers(784) {
		if l == 0 {
			continue
		}
		w := s.heWeights(1, l, size[0], size[1])
		require.Len(t, w, size[0]*size[1])
		variance := floats.Dot(w, w) / float64(len(w))
		want := 2 / float64(size[1])
		require.InDelta(t, want, variance, 5*want*math.Sqrt(2/float64(len(w))),
			"layer %d: He's variance 2/fan-in within five standard errors", l)
	}
	first := s.heWeights(1, 0, 256, 3)
	all := &Sweep{net: s.net, fanIn: 784, active: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, d: 10}
	full := all.heWeights(1, 0, 256, 10)
	require.Equal(t, []float64{full[1], full[5], full[9], full[11]}, first[:4], "the active inputs keep their weights")
}

func TestHeadWeightsHaveNormC0(t *testing.T) {
	v := headWeights(64, 2.5)
	require.InDelta(t, 2.5, floats.Dot(v, v), 1e-12)
	require.InDelta(t, 0, floats.Sum(v), 1e-12, "half of each sign")
}

func TestOrderIsAPermutationPerSeed(t *testing.T) {
	s := tinySweep(t, tinyNetwork("a"))
	order := tensors.MustCopyFlatData[int32](s.order(4))
	weights := tensors.MustCopyFlatData[float64](s.weights())
	require.InDelta(t, 3, floats.Sum(weights), 1e-15, "every batch's weights sum to 1")
	for j := range s.seeds {
		var seen []int32
		for step := range s.steps() {
			for b := range s.net.Batch {
				if weights[step*s.net.Batch+b] > 0 {
					seen = append(seen, order[(step*len(s.seeds)+j)*s.net.Batch+b])
				}
			}
		}
		slices.Sort(seen)
		require.Equal(t, []int32{0, 1, 2, 3, 4}, seen)
	}
	require.NotEqual(t, order, tensors.MustCopyFlatData[int32](s.order(5)))
}

// How an epoch is cut into calls changes no bit.
func TestStretchesChangeNothing(t *testing.T) {
	whole, cut := tinySweep(t, tinyNetwork("b")), tinySweep(t, tinyNetwork("b"))
	run := func(s *Sweep, stretch int) *Progress {
		p := s.Start()
		tr, err := s.trainer(testBackend(t))
		require.NoError(t, err)
		defer tr.exec.Finalize()
		for p.Epoch < s.net.Epochs {
			if tr.stretch = stretch; !tr.loops {
				t.Skip("this backend takes one batch a call")
			}
			require.NoError(t, tr.advance(p))
		}
		return p
	}
	a, b := run(whole, 3), run(cut, 2)
	require.Equal(t, a.Losses, b.Losses)
	for l := range a.state {
		require.Equal(t, tensors.MustCopyFlatData[float64](a.state[l]), tensors.MustCopyFlatData[float64](b.state[l]))
	}
}

func TestDivergenceIsAnError(t *testing.T) {
	n := tinyNetwork("a")
	n.LearningRate, n.Epochs = 1e200, 4
	s := tinySweep(t, n)
	p := s.Start()
	err := s.Train(context.Background(), testBackend(t), p, func() error { return nil })
	require.ErrorContains(t, err, "diverged")
	require.ErrorContains(t, err, "LearningRate")
}

// A sweep is the smallest rectangle of what is asked for, and its results come
// in the order of the pairs.
func TestResultsOfPairs(t *testing.T) {
	pairs := []Pair{{8, 0.2}, {3, 0.01}, {8, 0.01}}
	s, err := New(tinyNetwork("a"), tinyImages(), pairs)
	require.NoError(t, err)
	require.Equal(t, []uint64{8, 3}, s.seeds)
	require.Equal(t, []float64{0.2, 0.01}, s.deltas)
	p := s.Start()
	require.NoError(t, s.Train(t.Context(), testBackend(t), p, func() error { return nil }))
	require.Equal(t, s.Batches(), s.Done(p))
	results, err := s.Results(pairs, p)
	require.NoError(t, err)
	distances, err := s.distances(p)
	require.NoError(t, err)
	for i, at := range [][2]int{{0, 0}, {1, 1}, {0, 1}} { // seed, Δα of the pairs
		v := results[i].Values
		require.Equal(t, distances[at[0]][at[1]]/pairs[i].DeltaAlpha, v["distance"])
		require.Equal(t, alphaOf(pairs[i].Seed), v["alpha"])
		require.Equal(t, p.Losses[2][3*at[0]], v["loss"])
		require.Equal(t, p.Losses[2][3*at[0]+1+at[1]], v["loss_perturbed"])
	}
	black := &pixels.Images{Name: "black", Size: 2, Pixels: make([]uint8, 4), Labels: []uint8{0, 1}}
	_, err = New(tinyNetwork("a"), black, pairs)
	require.ErrorContains(t, err, "nothing to learn from")
}

// Saved after an epoch or in the middle of one and gone on from there, a training ends with
// the same bits.
func TestSavedProgressGoesOnBitIdentically(t *testing.T) {
	n := tinyNetwork("a")
	n.Optimizer = "momentum"
	calm := tinySweep(t, n)
	want, err := calm.distances(trainTiny(t, calm))
	require.NoError(t, err)

	s, stop, device := tinySweep(t, n), errors.New("stop"), testBackend(t)
	p := s.Start()
	var file bytes.Buffer
	err = s.Train(t.Context(), device, p, func() error {
		if s.Done(p) < s.steps() {
			return nil
		}
		return errors.Join(stop, p.Save(&file))
	})
	require.ErrorIs(t, err, stop)
	require.Less(t, s.Done(p), s.Batches())
	require.InDelta(t, p.Bytes(), file.Len(), 4096)
	p = s.Start()
	require.NoError(t, p.Load(&file))
	require.NoError(t, s.Train(t.Context(), device, p, func() error { return nil }))
	got, err := s.distances(p)
	require.NoError(t, err)
	require.Equal(t, want, got)

	other := n
	other.Width = 8
	file.Reset()
	require.NoError(t, p.Save(&file))
	require.ErrorIs(t, tinySweep(t, other).Start().Load(&file), checkpoint.ErrOther)
	p.Layout--
	file.Reset()
	require.NoError(t, p.Save(&file))
	require.ErrorIs(t, s.Start().Load(&file), checkpoint.ErrOther, "of as many numbers in another order")
}

func TestPerturbedBeyondOne(t *testing.T) {
	require.InDelta(t, 1.04, Network{BeyondOne: "allow"}.perturbed(0.99, 0.05), 1e-15)
	require.InDelta(t, 0.94, Network{BeyondOne: "reflect"}.perturbed(0.99, 0.05), 1e-15)
	require.InDelta(t, 0.55, Network{BeyondOne: "reflect"}.perturbed(0.5, 0.05), 1e-15)
}
