package trace

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGenotypes: two architectures of PC-DARTS and of GAEA, of which the second
// is uniform, so that all is a tie, by hand.
func TestGenotypes(t *testing.T) {
	first := "[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('max_pool_3x3', 0), ('max_pool_3x3', 1), " +
		"('max_pool_3x3', 0), ('max_pool_3x3', 1), ('max_pool_3x3', 0), ('max_pool_3x3', 1)]"
	other := "[('skip_connect', 1), ('max_pool_3x3', 0), ('max_pool_3x3', 0), ('max_pool_3x3', 1), " +
		"('max_pool_3x3', 0), ('max_pool_3x3', 1), ('dil_conv_5x5', 4), ('max_pool_3x3', 0)]"
	texts := []string{
		"Genotype(normal=" + other + ", normal_concat=range(2, 6), reduce=" + first + ", reduce_concat=range(2, 6))",
		"Genotype(normal=" + first + ", normal_concat=range(2, 6), reduce=" + first + ", reduce_concat=range(2, 6))",
	}
	array := func(fill float64, dims ...int) Array {
		a := Array{Type: "<f8", Dims: dims, Values: make([]float64, size(dims))}
		for i := range a.Values {
			a.Values[i] = fill
		}
		return a
	}
	for _, method := range []string{"pc-darts", "gaea-pcdarts"} {
		fill, edges := 0.0, "betas"
		if method == "gaea-pcdarts" {
			fill, edges = 0.125, "edges"
		}
		arrays := map[string]Array{
			"alphas_normal": array(fill, 2, 14, 8), "alphas_reduce": array(fill, 2, 14, 8),
			edges + "_normal": array(0.2, 2, 14), edges + "_reduce": array(0.2, 2, 14),
		}
		arrays["alphas_normal"].Values[1*8+3] += 0.5  // skip_connect on 2<-1
		arrays["alphas_normal"].Values[1*8+0] += 0.1  // none, which takes part in the softmax
		arrays[edges+"_normal"].Values[13] += 0.3     // 5<-4
		arrays["alphas_normal"].Values[13*8+7] += 0.1 // dil_conv_5x5 there
		settings, err := json.Marshal(map[string]any{"method": method, "source": "by hand", "genotypes": texts})
		require.NoError(t, err)
		open := func(arrays map[string]Array, settings string) (Replayable, error) {
			file := filepath.Join(t.TempDir(), "genotypes.npz")
			require.NoError(t, writeNPZ(file, arrays, []byte(settings)))
			return Open(file)
		}
		trace, err := open(arrays, string(settings))
		require.NoError(t, err)
		require.Equal(t, About{"by hand", method, 2}, trace.About())
		differences, err := trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []Difference{{Name: "genotypes", Step: 1, Scale: 2}}, differences)

		arrays["alphas_reduce"].Values[14*8+1] -= 0.01 // of the second
		trace, err = open(arrays, string(settings))
		require.NoError(t, err)
		differences, err = trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []Difference{{Name: "genotypes", Step: 1, Absolute: 1, Relative: 0.5, Scale: 2}}, differences)

		broken := maps.Clone(arrays)
		broken["alphas_normal"] = array(0, 2, 13, 8)
		_, err = open(broken, string(settings))
		require.ErrorContains(t, err, "alphas_normal: found shape [2 13 8], expected alphas_… [2, 14, operations]")
		delete(broken, "alphas_normal")
		_, err = open(broken, string(settings))
		require.ErrorContains(t, err, "alphas_normal is missing")
		broken["misspelt"] = array(0, 1)
		_, err = open(broken, string(settings))
		require.ErrorContains(t, err, "misspelt: no array is called this")
	}
}
