package search

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/device"
	"github.com/nasml/lab/nasml/supernet"
)

// hosts is XLA with n devices or more. It compiles quickly what then runs
// slowly, which here is little.
func hosts(t *testing.T, n int) compute.Backend {
	t.Helper()
	if os.Getenv("XLA_FLAGS") == "" {
		require.NoError(t, os.Setenv("XLA_FLAGS", "--xla_backend_optimization_level=0"))
	}
	b, err := backend.OpenDevices(n)
	if err != nil {
		t.Skipf("no %d devices: %v", n, err)
	}
	return b
}

// parallel prepares a search on several devices.
func parallel(t *testing.T, s Settings, n int, statistics Statistics) *Runner {
	t.Helper()
	s.Devices, s.Statistics = n, statistics
	p, err := New(hosts(t, n), s, pictures(t, 3*s.Batch))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// wide is a tensor in float64, integers as they are.
func wide(t *testing.T, x any) any {
	t.Helper()
	switch x := x.(type) {
	case float32:
		return float64(x)
	case *tensors.Tensor:
		single, err := tensors.CopyFlatData[float32](x)
		if err != nil { // labels
			return x
		}
		double := make([]float64, len(single))
		for i, v := range single {
			double[i] = float64(v)
		}
		return tensors.FromFlatDataAndDimensions(double, x.Shape().Dimensions...)
	}
	t.Fatalf("what is %T", x)
	return nil
}

// begin is a search at its first step, in float64, and what the step is given.
func begin(t *testing.T, s *Runner) (r *run, feed []any) {
	t.Helper()
	r, err := s.start(3, Options{})
	require.NoError(t, err)
	r.batches, err = s.drawEpoch(s.images.Len(), 3, 0)
	require.NoError(t, err)
	given, err := r.inputs()
	require.NoError(t, err)
	for _, x := range given {
		feed = append(feed, wide(t, x))
	}
	for _, copy := range r.copies {
		for i, x := range copy {
			copy[i] = wide(t, x).(*tensors.Tensor)
		}
	}
	return r, feed
}

// stepped are the state, the report and θ after two steps, on every device the
// same.
func stepped(t *testing.T, s *Runner, step *Exec) [][]float64 {
	t.Helper()
	r, feed := begin(t, s)
	for i := 0; ; i++ {
		shares, err := r.shares(feed)
		require.NoError(t, err)
		report, err := device.Steps(r.backend, step, shares, r.copies)
		require.NoError(t, err)
		if i == 1 {
			first := flat(t, r.copies[0])
			for d := 1; d < len(r.copies); d++ {
				require.Equal(t, first, flat(t, r.copies[d]), "device %d has left device 0", d)
			}
			return append(first, flat(t, report)...)
		}
	}
}

func flat(t *testing.T, all []*tensors.Tensor) [][]float64 {
	t.Helper()
	out := make([][]float64, len(all))
	for i, x := range all {
		var err error
		out[i], err = tensors.CopyFlatData[float64](x)
		require.NoError(t, err)
	}
	return out
}

// apart is the largest difference between two results of a step.
func apart(t *testing.T, a, b [][]float64) float64 {
	t.Helper()
	require.Len(t, b, len(a))
	most := 0.
	for i := range a {
		require.Len(t, b[i], len(a[i]))
		for j := range a[i] {
			require.False(t, math.IsNaN(a[i][j]) || math.IsNaN(b[i][j]))
			most = math.Max(most, math.Abs(a[i][j]-b[i][j]))
		}
	}
	return most
}

// inParts is a step on one device whose losses are the sum of weight times the
// loss of each of n parts of the batch, each with batch statistics of its own.
func inParts(t *testing.T, s *Runner, n int, weight float64) *Exec {
	t.Helper()
	p, stats := *s.Step, len(s.net.Stats())
	p.losses = func(f Inputs[*Node], aux []*Node, seen *views) bilevel.Problem {
		var inner, outer []bilevel.Loss
		for k := range n {
			of := s.problem(part(f, k, n), aux, seen)
			inner, outer = append(inner, of.Inner), append(outer, of.Outer)
		}
		return bilevel.Problem{
			Inner: together(inner, stats, stats, weight), Outer: together(outer, stats, stats+1, weight),
		}
	}
	step, err := NewExec(s.backend, p.reported)
	require.NoError(t, err)
	t.Cleanup(step.Finalize)
	return step
}

// together is the weighted sum of losses, the mean of the first so many of what
// they leave behind and the sum of the one that counts.
func together(parts []bilevel.Loss, stats, counts int, weight float64) bilevel.Loss {
	return func(w, theta []*Node) (loss *Node, aux []*Node) {
		for k, part := range parts {
			l, own := part(w, theta)
			l = MulScalar(l, weight)
			if k == 0 {
				loss, aux = l, append([]*Node{}, own...)
				continue
			}
			loss = Add(loss, l)
			for i := range stats {
				aux[i] = Add(aux[i], own[i])
			}
			aux[counts] = Add(aux[counts], own[counts])
		}
		for i := range stats {
			aux[i] = DivScalar(aux[i], float64(len(parts)))
		}
		return loss, aux
	}
}

// part is the k-th of n parts of the batches of a feed.
func part(f Inputs[*Node], k, n int) Inputs[*Node] {
	cut := func(x *Node) *Node {
		size := x.Shape().Dim(0) / n
		return SliceAxis(x, 0, AxisRange(k*size, (k+1)*size))
	}
	f.TrainImages, f.TrainLabels = cut(f.TrainImages), cut(f.TrainLabels)
	f.ValidImages, f.ValidLabels = cut(f.ValidImages), cut(f.ValidLabels)
	return f
}

// shared are settings whose batch four devices can share, with these operations
// alone.
func shared(t *testing.T, method string, ops ...string) Settings {
	t.Helper()
	s := tiny(t, method)
	s.Batch, s.TrackStats = 8, true
	s.Without = slices.DeleteFunc(slices.Clone(supernet.NASBench201.Ops),
		func(op string) bool { return slices.Contains(ops, op) })
	return s
}

// few are operations that compile quickly.
var few = []string{"skip_connect", "nor_conv_1x1"}

// temporaries is the memory that one device needs for a program besides its
// inputs and outputs, in bytes, as XLA reports it. GoMLX keeps the number to
// itself.
func temporaries(program *Exec) int64 {
	value := reflect.ValueOf(program).Elem().FieldByName("cache").Index(0)
	for _, field := range []string{"graph", "executable", "exec", "OnDeviceMemoryUsageStats", "Temporary"} {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		value = value.FieldByName(field)
	}
	return value.Int()
}

func TestSeveralDevicesMakeTheStepOfOneInLessMemory(t *testing.T) {
	skipIfShort(t)
	for method, c := range map[string]struct {
		ops    []string
		track  bool
		excess float64 // over the n-th part of the memory; 0: not compared
	}{
		// One device has kernels for convolutions and writes no normalised maps, several
		// have not: of 3 × 3 convolutions two devices need as much as one.
		"darts":      {[]string{"nor_conv_3x3", "avg_pool_3x3"}, true, 0},
		"gaea-darts": {few, false, 1.1},
	} {
		t.Run(method, func(t *testing.T) {
			s := shared(t, method, c.ops...)
			s.Batch, s.TrackStats = 32, c.track // maps outweigh what every device has a copy of
			single, err := New(hosts(t, 1), s, pictures(t, 3*s.Batch))
			require.NoError(t, err)
			defer single.Close()
			want := stepped(t, single, single.trainer)
			for _, n := range []int{2, 4} {
				p := parallel(t, s, n, Synchronised)
				require.Less(t, apart(t, want, stepped(t, p, p.trainer)), 1e-12, "%d devices", n)
				share := float64(temporaries(p.trainer)) / float64(temporaries(single.trainer))
				t.Logf("%d devices: %.2f of the memory", n, share)
				if c.excess > 0 {
					require.Less(t, share, c.excess/float64(n), "%d devices", n)
				}
			}
		})
	}
}

func TestStatisticsOfEachDeviceAreThoseOfItsShare(t *testing.T) {
	skipIfShort(t)
	for name, c := range map[string]struct {
		method        string
		ops           []string
		devices       int
		hypergradient string
	}{
		"darts":      {"darts", []string{"nor_conv_3x3", "avg_pool_3x3"}, 2, "first-order"},
		"gaea-darts": {"gaea-darts", few, 4, "first-order"},
		"unrolled":   {"gaea-darts", few, 2, "unrolled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared(t, c.method, c.ops...)
			s.Bilevel.Hypergradient = c.hypergradient
			single, err := New(pure(t), s, pictures(t, 3*s.Batch))
			require.NoError(t, err)
			defer single.Close()
			several := parallel(t, s, c.devices, PerDevice)
			got := stepped(t, several, several.trainer)
			mean := stepped(t, single, inParts(t, single, c.devices, 1/float64(c.devices)))
			require.Less(t, apart(t, mean, got), 1e-12)

			state := len(got) - 2 // without losses, which differ in any case
			whole := stepped(t, single, single.trainer)
			require.Greater(t, apart(t, whole[:state], got[:state]), 1e-4,
				"the statistics are those of the whole batch")
			sum := stepped(t, single, inParts(t, single, c.devices, 1))
			require.Greater(t, apart(t, sum[:state], got[:state]), 1e-4, "a sum over devices passes for their mean")
		})
	}
}

func TestASearchOnTwoDevicesIsThatOnOne(t *testing.T) {
	skipIfShort(t)
	s := shared(t, "gaea-darts", few...)
	single, err := New(pure(t), s, pictures(t, 3*s.Batch))
	require.NoError(t, err)
	defer single.Close()
	want, err := single.Search(t.Context(), 3, Options{})
	require.NoError(t, err)
	p := parallel(t, s, 2, Synchronised)
	got, err := p.Search(t.Context(), 3, Options{})
	require.NoError(t, err)
	require.Equal(t, want.Final, got.Final)
	require.Equal(t, want.Evaluated, got.Evaluated)
	for e := range want.Theta {
		require.InDeltaSlice(t, want.Theta[e], got.Theta[e], 1e-5)
	}
	require.InDeltaSlice(t, want.TrainLoss, got.TrainLoss, 1e-5)
	require.InDeltaSlice(t, want.ValidLoss, got.ValidLoss, 1e-5)
	require.Equal(t, want.TrainAccuracy, got.TrainAccuracy)
	require.Equal(t, want.Supernet, got.Supernet)
	for _, steps := range []int{1, 2} { // within an epoch, in the next
		require.Equal(t, got, interrupted(t, p, steps), "stopped after %d steps", steps)
	}
}

func TestDevicesThatCannotShareAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		change func(*Settings)
		want   string
	}{
		"batch": {"darts", func(s *Settings) { s.Devices = 3 },
			"Batch must be a multiple of Devices, 3, got 8"},
		"negative": {"darts", func(s *Settings) { s.Devices = -1 }, "Devices must be at least 0, got -1"},
		"unknown": {"darts", func(s *Settings) { s.Devices, s.Statistics = 2, "local" },
			`Statistics must be "" (synchronised) or "device", got "local"`},
		"one": {"darts", func(s *Settings) { s.Statistics = PerDevice }, "must be empty with one device"},
		"one each": {"darts", func(s *Settings) { s.Devices, s.Statistics = 8, PerDevice },
			"Batch must be at least 16, two for batch norm on each of 8 devices, got 8"},
		"an example": {"xnas", func(s *Settings) { s.Devices, s.Statistics = 2, PerDevice },
			"empty for XNAS, which takes a gradient of every example"},
		"too many": {"darts", func(s *Settings) { s.Devices = 2 },
			"Devices must be at most 1 on the backend \"Go Backend\", got 2"},
		"rest": {"darts", func(s *Settings) { s.Devices, s.Bilevel.KeepLast = 4, true },
			"batch 2 of 2 has 2 examples, which 4 devices cannot share equally"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared(t, c.method, few...)
			c.change(&s)
			b := pure(t)
			if name == "rest" {
				b = manyDevices{b}
			}
			images := pictures(t, 20)
			r, err := New(b, s, images)
			require.Equal(t, err != nil, r == nil, "not an interface that holds a nil pointer")
			if s.Devices < 2 {
				err = s.Check()
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// manyDevices is a backend that says it has many.
type manyDevices struct{ compute.Backend }

func (manyDevices) NumDevices() int { return 64 }

func TestOneDeviceKeepsTheKeysOfSettings(t *testing.T) {
	raw, err := json.Marshal(shared(t, "darts", few...))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "devices")
	require.NotContains(t, string(raw), "statistics")
}

// skipIfShort leaves out what compiles for a minute.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles several programs by XLA")
	}
}

// BenchmarkDevices runs some steps of GAEA DARTS on 1, 2 and 4 devices and
// reports the memory of one device besides a step's inputs and outputs, as XLA
// planned it, and the time of a step. Host devices share the processor: they
// show what memory a GPU would need, and no speed.
func BenchmarkDevices(b *testing.B) {
	for _, c := range []struct {
		devices    int
		statistics Statistics
	}{{1, Synchronised}, {2, Synchronised}, {2, PerDevice}, {4, Synchronised}, {4, PerDevice}} {
		b.Run(fmt.Sprintf("%d%s", c.devices, c.statistics), func(b *testing.B) {
			s, err := AsQuick("gaea-darts")
			require.NoError(b, err)
			s.Devices, s.Statistics, s.Epochs, s.EvaluateEvery = c.devices, c.statistics, 1, 0
			x, err := backend.OpenDevices(c.devices)
			require.NoError(b, err)
			images, err := data.SyntheticImages(1, 2048, data.ImageSpec{Classes: 10, Height: s.Image, Width: s.Image})
			require.NoError(b, err)
			images.Channels, images.Pixels = 3, slices.Concat(images.Pixels, images.Pixels, images.Pixels)
			for b.Loop() {
				r, err := New(x, s, images)
				require.NoError(b, err)
				work, wall := stepWork(b, r, 3, 9)
				b.ReportMetric(work*1e3, "cpu-ms/step")
				b.ReportMetric(wall*1e3, "ms/step")
				b.ReportMetric(float64(temporaries(r.trainer))/1e6, "MB/device")
				r.Close()
			}
		})
	}
}
