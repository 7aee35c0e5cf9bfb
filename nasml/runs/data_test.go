package runs

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio/npz"
	"github.com/stretchr/testify/require"
)

func plotted() Data {
	search := func(key, params string, seed uint64, entropy ...float64) *Record {
		return &Record{
			Key: key, Scale: "quick",
			Trial:  Trial{Figure: "me/search", Params: json.RawMessage(params), Seed: seed},
			Values: map[string]float64{"epochs": float64(len(entropy) - 1)},
			Series: map[string][]float64{"entropy": entropy},
		}
	}
	return Data{Name: "me-figure1", Parts: []string{"first", "second"}, Records: []*Record{
		search("aaaaaaaaaaaaaaaa", `{"settings": {"method": "darts", "rate": 0.5, "channels": 8}, "space": "é"}`,
			3, 2, 1.5),
		search("bbbbbbbbbbbbbbbb", `{"settings": {"method": "gaea", "rate": null, "channels": 8}, "ops": [1, 2]}`,
			4, 2, 1, 0.5),
	}}
}

func TestTablesOfRecords(t *testing.T) {
	require.Equal(t, [][]string{
		{"trial", "figure", "part", "scale", "seed", "ops", "settings.channels", "settings.method", "settings.rate",
			"space"},
		{"aaaaaaaaaaaa", "me/search", "first", "quick", "3", "", "8", "darts", "0.5", "é"},
		{"bbbbbbbbbbbb", "me/search", "second", "quick", "4", "[1,2]", "8", "gaea", "", ""},
	}, plotted().Trials())
	require.Equal(t, [][]string{
		{"trial", "seed", "quantity", "place", "value"},
		{"aaaaaaaaaaaa", "3", "epochs", "", "1"},
		{"aaaaaaaaaaaa", "3", "entropy", "0", "2"},
		{"aaaaaaaaaaaa", "3", "entropy", "1", "1.5"},
	}, plotted().Numbers()[:4])
	require.Len(t, plotted().Numbers(), 1+3+4)
}

func TestRecordsInWords(t *testing.T) {
	require.Equal(t, []string{"method darts, space é, rate 0.5", "method gaea, ops [1,2]"},
		InWords(plotted().Records))
	require.Equal(t, []string{"method darts"}, InWords(plotted().Records[:1]), "nothing to tell it apart from")
}

// npyio reads what NumPy does, but for texts.
func TestRecordsForNumPy(t *testing.T) {
	file, err := plotted().NPZ()
	require.NoError(t, err)
	again, err := plotted().NPZ()
	require.NoError(t, err)
	require.Equal(t, file, again)
	r, err := npz.NewReader(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Equal(t, []string{
		"series.entropy.npy", "setting.ops.npy", "setting.settings.channels.npy", "setting.settings.method.npy",
		"setting.settings.rate.npy", "setting.space.npy", "trial.figure.npy", "trial.key.npy", "trial.part.npy",
		"trial.scale.npy", "trial.seed.npy", "value.epochs.npy",
	}, r.Keys())
	require.Equal(t, []int{2, 3}, r.Header("series.entropy.npy").Descr.Shape)
	require.Equal(t, "<U5", r.Header("setting.settings.method.npy").Descr.Type)
	numbers := func(name string) (xs []float64) {
		require.NoError(t, r.Read(name, &xs))
		return xs
	}
	entropy := numbers("series.entropy.npy")
	require.True(t, math.IsNaN(entropy[2]), "behind the end of the shorter one")
	require.Equal(t, []float64{2, 1.5}, entropy[:2])
	require.Equal(t, []float64{2, 1, 0.5}, entropy[3:])
	require.Equal(t, []float64{3, 4}, numbers("trial.seed.npy"))
	rate := numbers("setting.settings.rate.npy")
	require.Equal(t, 0.5, rate[0])
	require.True(t, math.IsNaN(rate[1]))
}

func TestDataAreSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "figures")
	paths, err := plotted().Save(dir)
	require.NoError(t, err)
	require.Equal(t, []string{
		filepath.Join(dir, "me-figure1-numbers.csv"), filepath.Join(dir, "me-figure1-trials.csv"),
		filepath.Join(dir, "me-figure1.npz"),
	}, paths)
	text, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "aaaaaaaaaaaa,3,entropy,1,1.5\n")
	_, err = plotted().Save(dir, "xlsx")
	require.ErrorContains(t, err, `csv or npz, not as "xlsx"`)
}
