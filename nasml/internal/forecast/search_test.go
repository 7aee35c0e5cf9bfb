package forecast

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/search"
)

// Processor time of parts of searches as measured on two processors that had other work too, in units of the model's
// probe, and so whatever this machine does. A step has both passes.
func TestWorkOfSearches(t *testing.T) {
	for _, c := range []struct {
		space, method                          string
		channels, image, cells, batch          int
		probe, compiling, step, peakGB, probes float64 // s, GB, and the model's compiling

	}{
		{"1shot1-s1", "gaea-pc-darts", 8, 8, 3, 32, 2.21e-3, 8.6, 0.0212, 0.48, 2700},
		{"1shot1-s1", "gaea-pc-darts", 8, 16, 3, 32, 2.23e-3, 8.1, 0.0407, 0.46, 2700},
		{"darts", "gaea-pc-darts", 8, 8, 3, 16, 2.20e-3, 18.5, 0.0420, 0.74, 4800},
		{"darts", "gaea-pc-darts", 16, 16, 5, 64, 2.22e-3, 39.5, 0.5527, 1.09, 8000},
		{"nasbench201", "gaea-darts", 8, 16, 1, 64, 2.25e-3, 4.4, 0.0608, 0.32, 400},
	} {
		s, err := search.AsQuickOn(c.space, c.method)
		require.NoError(t, err)
		s.Channels, s.Image, s.Cells, s.Batch, s.Epochs, s.EvaluateEvery = c.channels, c.image, c.cells, c.batch, 2, 0
		none := s
		none.Epochs = 0
		const images = 4096
		compiling := forecastOf(planned(none), 0)
		perProbe := compilingOf(planned(s)) / c.probes // s
		require.InEpsilon(t, c.compiling/c.probe, compiling.Work/perProbe, 0.2, "%+v", c)
		steps := forecastOf(planned(s), images).Work - forecastOf(planned(none), images).Work
		steps /= float64(s.Epochs * images / 2 / s.Batch)
		require.InEpsilon(t, c.step/c.probe, steps/perProbe, 0.2, "%+v", c)
		require.InEpsilon(t, c.peakGB*1e9, forecastOf(planned(s), images).Bytes, 0.2, "%+v", c)
	}
}

// Peaks of whole searches of hours at the papers' settings, GB, the least and the most in their records.
func TestMemoryOfLongSearches(t *testing.T) {
	for _, c := range []struct {
		space, method string
		least, most   float64
	}{
		{"darts", "gaea-pc-darts", 8.96, 9.11},
		{"1shot1-s1", "gaea-pc-darts", 2.50, 3.18},
		{"nasbench201", "gaea-darts", 2.50, 3.29},
	} {
		s, err := search.AsPaperOn(c.space, c.method)
		require.NoError(t, err)
		peak := Search(s, 50000).Bytes / 1e9
		require.Less(t, peak, 1.5*c.least, "%+v", c)
		require.Greater(t, peak, c.most/1.5, "%+v", c)
	}
}

// What differentiates twice is compiled for long, takes memory for that, and time at every evaluation.
func TestInstrumentsCost(t *testing.T) {
	s, err := search.AsQuickOn("darts", "darts")
	require.NoError(t, err)
	s.Channels, s.Image, s.Cells, s.Batch, s.Epochs, s.EvaluateEvery = 16, 16, 5, 64, 25, 1
	plain := forecastOf(planned(s), 10000)
	s.Curvature, s.Instruments = 4, 4
	with := forecastOf(planned(s), 10000)
	require.InEpsilon(t, 5.6e9, with.Bytes, 0.1, "the process was at 5.6 GB")
	require.Less(t, plain.Bytes, 2e9)
	rarely := s
	rarely.EvaluateEvery = 25
	more := with.Work - plain.Work
	s.EvaluateEvery, s.Curvature, s.Instruments = 25, 0, 0
	require.Greater(t, forecastOf(planned(rarely), 10000).Work,
		forecastOf(planned(s), 10000).Work+2*compilingOf(planned(s)))
	require.Less(t, forecastOf(planned(rarely), 10000).Work-forecastOf(planned(s), 10000).Work, more,
		"fewer evaluations")
	s = rarely
	s.EvaluateEvery = 1
	require.InDelta(t, with.Wall(runtime.NumCPU()), Search(s, 10000).Seconds, 1e-6)
}

func planned(s search.Settings) search.Plan {
	p, _ := s.Plan(10)
	return p
}
