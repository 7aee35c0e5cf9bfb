package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/bilevel"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
	"github.com/nasml/lab/nasml/training"
)

// Peaks of trainings of one epoch, GB, as measured with all of a process in it. The last
// is none of those that the constants were fitted to.
func TestMemoryOfTrainings(t *testing.T) {
	for _, c := range []struct {
		genotype                      string
		channels, cells, image, batch int
		peak                          float64
	}{
		{"GAEA_PC_DARTS_cifar", 8, 5, 16, 50, 0.90},
		{"GAEA_PC_DARTS_cifar", 16, 8, 32, 96, 2.01},
		{"GAEA_PC_DARTS_cifar", 16, 8, 32, 24, 1.30},
		{"DARTS_V2", 36, 8, 32, 48, 2.06},
		{"DARTS_V2", 16, 20, 32, 96, 3.54},
		{"PC_DARTS_cifar", 24, 11, 32, 64, 2.25},
	} {
		s := training.AsQuick["cifar-10"]
		s.Channels, s.Cells, s.Image, s.Batch = c.channels, c.cells, c.image, c.batch
		cost := Training(s, supernet.Published[c.genotype].Genotype, 200, 100, 10)
		require.InEpsilon(t, c.peak*1e9, cost.Bytes, 0.15, "%+v", c)
	}
}

// A cell of one pool on an input, and one of skip connections: two inputs, what
// operations keep, two nodes; the second and third cells halve and double.
func TestElementsOfATraining(t *testing.T) {
	g, err := supernet.ParseGenotype("Genotype(normal=[('max_pool_3x3', 0), ('skip_connect', 1)], " +
		"normal_concat=range(2, 3), reduce=[('sep_conv_3x3', 0), ('dil_conv_5x5', 1)], reduce_concat=range(2, 3))")
	require.NoError(t, err)
	s := training.Settings{Stem: "cifar", Channels: 4, Cells: 3, Image: 8}
	require.InDelta(t, (2+1+1)*8*8*4+(2+3+1)*4*4*8+(2+3+1)*2*2*16, elements(s, g), 0)
}

func TestCosts(t *testing.T) {
	sum := Cost{7200, 1e9, 1200}.Then(Cost{3600, 2e9, 0})
	require.Equal(t, Cost{10800, 2e9, 1200}, sum)
	require.Equal(t, ", about 3 h and 2.0 GB on this machine's processors, or 20 min on a GTX 1080 Ti by the times "+
		"that its papers report (forecast)", sum.String())
	require.Equal(t, ", about 36 h and 2.0 GB on this machine's processors (forecast)",
		Cost{1.5 * 86400, 2e9, 3}.String())
	require.Equal(t, ", about 2 h on a GTX 1080 Ti by the times that its papers report (forecast)",
		Cost{0, 2e9, 7200}.String(), "on a GPU of this machine's")
	for _, c := range []Cost{{299, 2e9, 1e6}, {0, 2e9, 299}, {}} {
		require.Empty(t, c.String())
	}
	require.Equal(t, "3 days", Roughly(3*86400))

	s, err := search.AsPaperOn("darts", "gaea-pc-darts")
	require.NoError(t, err)
	t.Setenv("GOMLX_BACKEND", "")
	require.Positive(t, Search(s, 50000).Seconds)
	t.Setenv("GOMLX_BACKEND", "xla:cuda")
	require.Zero(t, Search(s, 50000).Seconds, "nothing is known of a GPU")
	require.Zero(t, Training(training.AsPaper["cifar-10"], supernet.Genotype{}, 1, 1, 10), "there is no such network")
}

// An epoch takes half of the images, or all, or the part that is for the weights.
func TestImagesOfAnEpoch(t *testing.T) {
	s, err := search.AsPaperOn("darts", "darts")
	require.NoError(t, err)
	one := s
	one.Bilevel.Level = bilevel.ERM
	require.Equal(t, 1000, Trained(one, 1000))
	require.Equal(t, 500, Trained(s, 1000))
	require.Equal(t, s.Epochs, Units(s, 1000), "500 images, once for the weights and once for θ")
	s.Parts = search.Shares{Train: 300, Validation: 100}
	require.Equal(t, 300, Trained(s, 1000))
}
