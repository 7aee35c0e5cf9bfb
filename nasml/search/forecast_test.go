package search

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/data"
)

// What must hold whatever the machine: the size of the work.
func TestForecastGrowsWithTheWork(t *testing.T) {
	const images = 50000
	paper, err := AsPaper("gaea-darts")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change        func(*Settings)
		least, atMost float64 // factor of the work
	}{
		"twice the epochs":   {func(s *Settings) { s.Epochs *= 2; s.EvaluateEvery *= 2 }, 1.85, 2},
		"twice the cells":    {func(s *Settings) { s.Cells *= 2 }, 2, 2},
		"half the side":      {func(s *Settings) { s.Image /= 2 }, 0.25, 0.35},
		"twice the width":    {func(s *Settings) { s.Channels *= 2 }, 2, 4},
		"one level":          {func(s *Settings) { s.Bilevel.Level = bilevel.ERM }, 1.7, 2},
		"the second order":   {func(s *Settings) { s.Bilevel.Hypergradient = "unrolled" }, 2.5, 3},
		"a smaller batch":    {func(s *Settings) { s.Batch /= 2 }, 1, 1.1},
		"all the operations": {func(s *Settings) { s.Without = nil }, 1, 1.25},
	} {
		s := paper
		c.change(&s)
		require.NoError(t, s.Check(), name)
		ratio := planned(s).probes(images) / planned(paper).probes(images)
		require.GreaterOrEqual(t, ratio, c.least-1e-12, name)
		require.LessOrEqual(t, ratio, c.atMost+1e-12, name)
	}
	base := planned(paper).Forecast(images)
	smaller := paper
	smaller.Batch /= 2
	require.Less(t, planned(smaller).Forecast(images).Bytes, base.Bytes)
	require.Less(t, base.Wall(2), base.Wall(1))
	require.Positive(t, base.Work)
	require.InEpsilon(t, 1.2e9+3*32*32*images, base.Bytes, 0.25, "its steps took 1.2 GB, on few images")
}

// forecastCases are searches of every kind of space, on so many images.
var forecastCases = []struct {
	space, method                         string
	channels, image, cells, batch, images int
}{
	{"nasbench201", "gaea-darts", 8, 16, 1, 64, 2048},
	{"nasbench201", "gaea-darts", 16, 16, 1, 64, 2048},
	{"nasbench201", "gaea-darts", 8, 32, 1, 64, 2048},
	{"nasbench201", "gaea-darts", 16, 32, 1, 64, 2048},
	{"nasbench201", "gaea-darts", 8, 16, 2, 64, 2048},
	{"nasbench201", "gaea-darts", 16, 32, 5, 64, 2048},
	{"darts", "gaea-pc-darts", 8, 8, 3, 16, 512},
	{"darts", "darts", 8, 16, 5, 64, 2048},
	{"1shot1-s1", "darts", 8, 8, 3, 32, 1024},
	{"1shot1-s1", "darts", 16, 16, 6, 64, 2048},
}

// BenchmarkForecast runs some steps by XLA and reports how far the model is from
// them: 1 is right. Memory is the peak of the whole process, so run one case at a time,
// without the cache of compiled programs:
// NASML_XLA_CACHE=off … -bench 'Forecast/darts,gaea-pc-darts' -benchtime 1x.
func BenchmarkForecast(b *testing.B) {
	for _, c := range forecastCases {
		name := fmt.Sprintf("%s,%s,C=%d,%dx%d,N=%d,B=%d",
			c.space, c.method, c.channels, c.image, c.image, c.cells, c.batch)
		b.Run(name, func(b *testing.B) {
			s, err := AsQuickOn(c.space, c.method)
			require.NoError(b, err)
			s.Channels, s.Image, s.Cells, s.Batch = c.channels, c.image, c.cells, c.batch
			s.Epochs, s.EvaluateEvery = 1, 0
			x, err := backend.Open()
			require.NoError(b, err)
			images, err := data.SyntheticImages(1, c.images,
				data.ImageSpec{Classes: 10, Height: c.image, Width: c.image})
			require.NoError(b, err)
			images.Channels, images.Pixels = 3, slices.Concat(images.Pixels, images.Pixels, images.Pixels)
			begin := processorTime(b)
			searcher, err := New(x, s, images)
			require.NoError(b, err)
			defer searcher.Close()
			for b.Loop() {
				work, _ := stepWork(b, searcher, 3, 9)
				b.ReportMetric(work*1e3, "cpu-ms/step")
				b.ReportMetric(processorTime(b)-begin-9*work, "cpu-s-before")
				b.ReportMetric(probe()*planned(s).pass(s.Batch)*s.passes()*float64(s.Batch)/work, "model/measured-work")
				b.ReportMetric(planned(s).Forecast(c.images).Bytes/peakBytes(b), "model/measured-memory")
				b.ReportMetric(peakBytes(b)/1e6, "MB")
			}
		})
	}
}

// stepWork are the processor time and the time of a step, s: the means of those
// from first to last, after compiling.
func stepWork(b *testing.B, searcher *Runner, first, last int) (work, wall float64) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var begin, end float64
	var began, ended time.Time
	_, err := searcher.Search(ctx, 1, Options{Observe: func(m Snapshot) {
		switch m.Step {
		case first:
			begin, began = processorTime(b), time.Now()
		case last:
			end, ended = processorTime(b), time.Now()
			cancel()
		}
	}})
	require.ErrorIs(b, err, context.Canceled)
	require.NotZero(b, end)
	return (end - begin) / float64(last-first), ended.Sub(began).Seconds() / float64(last-first)
}

func processorTime(b *testing.B) float64 {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
}

func peakBytes(b *testing.B) (peak float64) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &peak); err == nil {
			return peak * 1e3
		}
	}
	b.Fatal("no VmHWM in /proc/self/status")
	return 0
}

// Cells with two inputs have a cost an operation of every batch, and compile.
func TestForecastOfCells(t *testing.T) {
	s, err := AsQuickOn("darts", "gaea-pc-darts")
	require.NoError(t, err)
	base := planned(s).probes(4000)
	compile := 3 * costsOf["cells"].compiling
	s.Batch *= 2
	require.InEpsilon(t,
		(base-compile)/2, planned(s).probes(4000)-compile, 0.1, "half as many operations, and little else")
	s.Batch /= 2
	s.Space = "darts-s2"
	require.InEpsilon(t, (base-compile)/4, planned(s).probes(4000)-compile, 0.1, "two operations in place of eight")
}

// Cells with operations on nodes move maps that no operation makes, and have a cost a
// map of every batch; random search has one pass a step, and ranks candidates.
func TestForecastOfNodes(t *testing.T) {
	s, err := AsQuickOn("1shot1-s1", "darts")
	require.NoError(t, err)
	space, err := s.Open(10)
	require.NoError(t, err)
	_, elements := space.Size()
	// 12 maps of operations, 4 of projected inputs, 8 of sums, 10 of the output
	require.Equal(t, 34.*(8*8*8+5*5*16+3*3*32), elements)
	s.AddInput = true
	space, err = s.Open(10)
	require.NoError(t, err)
	_, wider := space.Size()
	require.InEpsilon(t, 40./34, wider/elements, 1e-12, "what is added is as wide as all nodes")
	s.AddInput, s.Partial = false, 4
	space, err = s.Open(10)
	require.NoError(t, err)
	_, partial := space.Size()
	require.InEpsilon(t, 25./34, partial/elements, 1e-12, "a quarter of 12 maps")

	random, err := AsQuickOn("1shot1-s1", "rsps")
	require.NoError(t, err)
	base := planned(random).probes(2000)
	random.Candidates *= 2
	require.InDelta(t, 0.2, planned(random).probes(2000)/base-1, 0.15, "100 more candidates on 256 images each")
	require.Positive(t, planned(random).ForecastEvaluations(1000, 32).Work)
}

func planned(s Settings) Plan {
	p, _ := s.Plan(10)
	return p
}
