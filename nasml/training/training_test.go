package training

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/images"
	_ "github.com/nasml/lab/nasml/internal/steady"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/trial"
)

// pure is GoMLX's own backend, which compiles nothing.
func pure(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// pictures are images with three classes that can be told apart.
func pictures(t *testing.T, n, side int) *images.Images {
	t.Helper()
	grey, err := data.SyntheticImages(1, n, data.ImageSpec{Classes: 3, Height: side, Width: side})
	require.NoError(t, err)
	colour := *grey
	colour.Channels, colour.Pixels = 3, nil
	for _, p := range grey.Pixels {
		colour.Pixels = append(colour.Pixels, p, 255-p, p/2)
	}
	return &colour
}

// small is a genotype of two nodes, of operations that are quick in pure Go.
var small = supernet.Genotype{
	Normal: supernet.Cell{Genes: []supernet.Gene{
		{Op: "skip_connect", From: 0}, {Op: "sep_conv_3x3", From: 1}, {Op: "avg_pool_3x3", From: 0},
		{Op: "none", From: 2},
	}, Concat: []int{2, 3}},
	Reduce: supernet.Cell{Genes: []supernet.Gene{
		{Op: "max_pool_3x3", From: 0}, {Op: "skip_connect", From: 1}, {Op: "dil_conv_3x3", From: 1},
		{Op: "skip_connect", From: 2},
	}, Concat: []int{2, 3}},
}

func tiny() Settings {
	s := AsQuick["cifar-10"]
	s.Channels, s.Cells, s.Image, s.Epochs, s.Batch, s.LearningRate = 4, 3, 8, 3, 8, 0.1
	return s
}

func trainer(t *testing.T, s Settings) *Trainer {
	t.Helper()
	all := pictures(t, 39, s.Image)
	first, err := all.Head(26)
	require.NoError(t, err)
	rest, err := all.Slice(26, 39)
	require.NoError(t, err)
	train, test, err := s.InMemory(first, rest)
	require.NoError(t, err)
	x, err := New(pure(t), s, small, train, test)
	require.NoError(t, err)
	t.Cleanup(x.Close)
	return x
}

// memory keeps the last save.
type memory struct {
	saved []byte
	saves int
}

func (m *memory) options() Options {
	return Options{
		Load: func() (io.ReadCloser, error) {
			if m.saved == nil {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(m.saved)), nil
		},
		Save: func(write func(io.Writer) error) error {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				return err
			}
			m.saved = b.Bytes()
			m.saves++
			return nil
		},
	}
}

// An interrupted training ends with the bits of one that was not: the second
// epoch has drop path, the last batch is a smaller one.
func TestInterruptedIsUninterrupted(t *testing.T) {
	x := trainer(t, tiny())
	whole, err := x.Train(t.Context(), 5, Options{})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, whole.Evaluated)
	require.Len(t, whole.TrainError, 3)
	for _, steps := range []int{1, 6, 8} {
		m, done := new(memory), 0
		ctx, stop := context.WithCancel(t.Context())
		o := m.options()
		o.Observe = func(Snapshot) {
			if done++; done == steps {
				stop()
			}
		}
		_, err := x.Train(ctx, 5, o)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, m.saves)
		resumed, err := x.Train(t.Context(), 5, m.options())
		require.NoError(t, err)
		require.Equal(t, whole, resumed, "stopped after %d steps", steps)
	}
	other, err := x.Train(t.Context(), 6, Options{})
	require.NoError(t, err)
	require.NotEqual(t, whole, other, "another seed")
}

// What is saved in between is what is saved at a stop.
func TestSavedInBetween(t *testing.T) {
	x := trainer(t, tiny())
	m := new(memory)
	o := m.options()
	o.SaveEvery = time.Nanosecond
	whole, err := x.Train(t.Context(), 5, o)
	require.NoError(t, err)
	require.Equal(t, 3*x.steps, m.saves)
	again, err := x.Train(t.Context(), 5, m.options())
	require.NoError(t, err)
	require.Equal(t, whole, again)
}

func TestCheckpointOfOtherSettings(t *testing.T) {
	wide := tiny()
	wide.Channels = 8
	m := new(memory)
	o := m.options()
	o.SaveEvery = time.Nanosecond
	_, err := trainer(t, wide).Train(t.Context(), 5, o)
	require.NoError(t, err)
	x := trainer(t, tiny())
	whole, err := x.Train(t.Context(), 5, Options{})
	require.NoError(t, err)
	again, err := x.Train(t.Context(), 5, m.options())
	require.NoError(t, err)
	require.Equal(t, whole, again, "it begins anew")
}

// A training that diverges is refused, and its last good state is kept.
func TestDivergenceKeepsTheLastGoodState(t *testing.T) {
	s := tiny()
	s.LearningRate, s.Clip = 1e12, 0
	x := trainer(t, s)
	m := new(memory)
	o := m.options()
	o.SaveEvery = time.Nanosecond
	_, err := x.Train(t.Context(), 5, o)
	require.ErrorContains(t, err, "the weights have diverged; lower LearningRate (now 1e+12)")
	r := x.start(5, Options{})
	defer r.free()
	if m.saves > 0 {
		require.NoError(t, r.load(bytes.NewReader(m.saved)))
	}
	for _, tensor := range r.state {
		for _, v := range tensors.MustCopyFlatData[float32](tensor) {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	}
}

// A network of two seconds learns what can be told apart.
func TestItLearns(t *testing.T) {
	s := tiny()
	s.Epochs, s.DropPath, s.EvaluateEvery, s.Augment = 8, 0, 0, images.Augments["none"]
	c, err := trainer(t, s).Train(t.Context(), 1, Options{})
	require.NoError(t, err)
	require.Equal(t, []float64{8}, c.Evaluated)
	require.Less(t, c.TrainLoss[7], c.TrainLoss[0]/2)
	require.Less(t, c.TestError[0], 0.4, "guessing has 0.67")
	require.Zero(t, c.TestTop5[0], "there are three classes")
}

// A step moves by at most η·Clip if there is nothing but the first gradient.
func TestStepIsClipped(t *testing.T) {
	s := tiny()
	s.Clip, s.WeightDecay, s.Epochs = 1e-3, 0, 1
	x := trainer(t, s)
	r := x.start(3, Options{})
	defer r.free()
	r.order = trial.RNG(3, "batches", "0").Perm(x.train.Len())
	before := flat(cut(x.Net, r.state).Weights)
	fed, err := r.inputs()
	require.NoError(t, err)
	_, err = r.advance(fed)
	require.NoError(t, err)
	after, square := flat(cut(x.Net, r.state).Weights), 0.0
	for i := range before {
		square += (after[i] - before[i]) * (after[i] - before[i])
	}
	require.InEpsilon(t, s.LearningRate*s.Clip, math.Sqrt(square), 1e-2, "the gradient is larger than the clip")
}

func flat(all []*tensors.Tensor) (out []float64) {
	for _, x := range all {
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			out = append(out, float64(v))
		}
	}
	return out
}

// Test images that fill up the last batch do not count.
func TestPaddingDoesNotCount(t *testing.T) {
	x := trainer(t, tiny())
	r := x.start(3, Options{})
	defer r.free()
	var padded Curve
	require.NoError(t, r.evaluate(t.Context(), &padded, 1)) // batches of 8 and 5
	r.Batch = 13
	var whole Curve
	require.NoError(t, r.evaluate(t.Context(), &whole, 1))
	require.Equal(t, whole.TestError, padded.TestError)
	require.InEpsilon(t, whole.TestLoss[0], padded.TestLoss[0], 1e-5)
}

// The auxiliary head takes part in the loss with its weight, and in no test.
func TestAuxiliaryHead(t *testing.T) {
	s := tiny()
	s.Image, s.Cells, s.Batch, s.DropPath = 32, 4, 2, 0
	losses := map[float64]float64{}
	for _, weight := range []float64{0.4, 0.8, 1.6} {
		s.Auxiliary = weight
		x := trainer(t, s)
		r := x.start(3, Options{})
		r.order = trial.RNG(3, "batches", "0").Perm(x.train.Len())
		fed, err := r.inputs()
		require.NoError(t, err)
		loss, err := r.advance(fed)
		require.NoError(t, err)
		losses[weight] = loss
		r.free()
	}
	head := (losses[0.8] - losses[0.4]) / 0.4
	require.Greater(t, head, 0.1)
	require.InEpsilon(t, losses[0.4]+1.2*head, losses[1.6], 1e-4)
}

// Drop path is absent in the first epoch, then 0 with probability p·e/E and else
// 1/(1 − p·e/E), example by example.
func TestDropPath(t *testing.T) {
	s := tiny()
	s.DropPath, s.Epochs = 0.6, 3
	x := trainer(t, s)
	r := x.start(3, Options{})
	defer r.free()
	for epoch, p := range []float64{0, 0.2, 0.4} {
		r.at.Epoch = epoch
		rng, lost, n := trial.RNG(1, "drop"), 0, 0
		for range 50 {
			mask := r.drop(8, rng)
			require.Equal(t, []int{8, x.Net.DropPlaces()}, mask.Shape().Dimensions)
			for _, v := range tensors.MustCopyFlatData[float32](mask) {
				if n++; v == 0 {
					lost++
				} else {
					require.InEpsilon(t, 1/(1-p), v, 1e-6)
				}
			}
		}
		require.InDelta(t, p, float64(lost)/float64(n), 4*math.Sqrt(0.25/float64(n)), "four standard deviations")
	}
}

func TestSmoothedCrossEntropy(t *testing.T) {
	logits := [][]float64{{1, 2, 3, 0}, {-1, 0.5, 0, 2}}
	labels := []int32{2, 0}
	const epsilon = 0.1
	want := 0.0
	for b, row := range logits {
		sum := 0.0
		for _, z := range row {
			sum += math.Exp(z)
		}
		for c, z := range row {
			q := epsilon / 4
			if int32(c) == labels[b] {
				q += 1 - epsilon
			}
			want -= q * (z - math.Log(sum)) / 2
		}
	}
	loss := MustExecOnce(pure(t), func(z, y *Node) *Node { return CrossEntropy(z, y, epsilon) }, logits, labels)
	require.InDelta(t, want, tensors.ToScalar[float64](loss), 1e-12)
}

// The numbers of the authors' programs at their ends (PC-DARTS' train_imagenet.py:
// 147-159, 186-194; DARTS' train_imagenet.py: StepLR of 0.97).
func TestSchedules(t *testing.T) {
	paper := AsPaper["imagenet"]
	for epoch, want := range map[int]float64{
		0: 0.1, 1: 0.2, 4: 0.5, 5: 0.5 * 240 / 245, 100: 0.5 * 145 / 245, 244: 0.5 / 245,
		245: 0.5 * 5 / (245 * 5), 249: 0.5 / (245 * 5),
	} {
		require.InEpsilon(t, want, paper.Rate(epoch), 1e-12, "epoch %d", epoch)
	}
	require.InEpsilon(t, 0.1*math.Pow(0.97, 249), AsCode["imagenet/darts"].Rate(249), 1e-9)
	cifar := AsPaper["cifar-10"]
	require.InEpsilon(t, 0.025, cifar.Rate(0), 1e-12)
	require.InEpsilon(t, 0.0125, cifar.Rate(300), 1e-12)
	require.InDelta(t, 0.025*math.Pow(math.Sin(math.Pi/1200), 2), cifar.Rate(599), 1e-15)
	require.InEpsilon(t, 0.3*599/600, cifar.Drop(599), 1e-12)
}

// Li+ 2021, Appendix C.1.2, against their eval.yaml: the paper has another batch
// and another drop path.
func TestDifferences(t *testing.T) {
	require.Equal(t, []string{"batch: 128, 96", "drop_path: 0.3, 0.2"},
		Differences(AsPaper["cifar-10"], AsCode["cifar-10"]))
	require.Equal(t, []string{"auxiliary_bn: not set, true", "smoothing: not set, 0.1"},
		Differences(AsPaper["imagenet"], AsCode["imagenet"]))
}

// Settings are their own key: what they are as JSON brings them back.
func TestSettingsAreJSON(t *testing.T) {
	for _, all := range []map[string]Settings{AsPaper, AsCode, AsQuick} {
		for name, s := range all {
			require.NoError(t, s.Check(), name)
			text, err := json.Marshal(s)
			require.NoError(t, err)
			var back Settings
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, s, back)
		}
	}
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	for want, change := range map[string]func(s *Settings){
		`Schedule must be one of [`:       func(s *Settings) { s.Schedule = "steps" },
		"above 5 for the linear schedule": func(s *Settings) { s.Schedule, s.Epochs = "linear", 5 },
		"at most 1, got 0":                func(s *Settings) { s.Schedule = "exponential" },
		"got 1 and":                       func(s *Settings) { s.DropPath = 1 },
		"Batch at least 2":                func(s *Settings) { s.Batch = 1 },
		"Jitter":                          func(s *Settings) { s.Crop.Jitter[3] = 0.7 },
	} {
		s := tiny()
		change(&s)
		_, err := New(pure(t), s, small, nil, nil)
		require.ErrorContains(t, err, want)
		require.NotContains(t, strings.TrimSpace(err.Error()), "\n", "one line")
	}
	s := tiny()
	_, _, err := s.InMemory(pictures(t, 9, 12), pictures(t, 9, 12))
	require.ErrorContains(t, err, "after halving: Image must be one of [")
	s.Stem = "imagenet" // which leaves 1×1 pixels of 8×8
	train, test, err := s.InMemory(pictures(t, 9, 8), pictures(t, 9, 8))
	require.NoError(t, err)
	_, err = New(pure(t), s, small, train, test)
	require.ErrorContains(t, err, "halves a map of 1×1 pixels")
}
