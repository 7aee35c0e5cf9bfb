package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// TestTimesOnAGPU: the reports themselves, and what follows from them: half the
// epochs, a quarter of the pixels.
func TestTimesOnAGPU(t *testing.T) {
	s, err := search.AsPaperOn("darts", "darts")
	require.NoError(t, err)
	require.InEpsilon(t, 1.5*86400/4, gpuSearch(planned(s), 50000), 1e-9)
	s.Epochs /= 2
	require.InEpsilon(t, 1.5*86400/8, gpuSearch(planned(s), 50000), 1e-9)
	require.InEpsilon(t, 10890, gpuSearch(planned(search.AsBenchmark()), 50000), 1e-9)
	s, err = search.AsPaperOn("1shot1-s1", "darts")
	require.NoError(t, err)
	require.Zero(t, gpuSearch(planned(s), 50000), "no paper reports it")

	g := supernet.Published["DARTS_V2"].Genotype
	w := training.AsCode["cifar-10/darts"]
	require.InEpsilon(t, 1.5*86400, gpuTraining(w, g, 50000, 10), 1e-9)
	w.Image, w.Auxiliary = 16, 0
	require.InEpsilon(t, 1.5*86400/4, gpuTraining(w, g, 50000, 10), 0.05)
	require.InEpsilon(t, 12*86400, gpuTraining(training.AsCode["imagenet/darts"], g, 1281167, 1000), 0.01)
}
