package trace

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
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
		require.Equal(t, About{"by hand", method, 2, 1e-9}, trace.About())
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

// TestGenotypesInGroups: the same architectures by rule, and each with arrays and
// a method of its own.
func TestGenotypesInGroups(t *testing.T) {
	text := func(op string) string {
		genes := strings.Repeat("('"+op+"', 0), ('"+op+"', 1), ", 4)
		return "Genotype(normal=[" + genes + "], normal_concat=range(2, 6), reduce=[" + genes +
			"], reduce_concat=range(2, 6))"
	}
	array := func(best int, dims ...int) Array {
		a := Array{Type: "<f8", Dims: dims, Values: make([]float64, size(dims))}
		for i := range a.Values {
			if a.Values[i] = 0.1; i%8 == best {
				a.Values[i] = 0.3
			}
		}
		return a
	}
	replay := func(arrays map[string]Array, settings map[string]any) (float64, error) {
		s, err := json.Marshal(settings)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "genotypes.npz")
		require.NoError(t, writeNPZ(file, arrays, s))
		trace, err := Open(file)
		if err != nil {
			return 0, err
		}
		differences, err := trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.InDelta(t, 2, differences[0].Scale, 0)
		return differences[0].Absolute, nil
	}
	groups := map[string]any{"genotypes": map[string]any{
		"gaea": []string{text("skip_connect")}, "darts": []string{text("sep_conv_3x3")},
	}}
	arrays := map[string]Array{
		"gaea/alphas_normal": array(3, 1, 14, 8), "gaea/alphas_reduce": array(3, 1, 14, 8),
		"darts/alphas_normal": array(4, 1, 14, 8), "darts/alphas_reduce": array(4, 1, 14, 8),
	}
	off, err := replay(arrays, groups)
	require.NoError(t, err)
	require.Zero(t, off)
	arrays["darts/alphas_normal"].Values[8+5] = 0.4 // of edge 2<-1
	off, err = replay(arrays, groups)
	require.NoError(t, err)
	require.InDelta(t, 1, off, 0)

	list := map[string]any{"genotypes": []any{
		map[string]string{"genotype": text("skip_connect"), "method": "gaea"}, text("sep_conv_3x3"),
	}}
	numbered := map[string]Array{
		"0/alphas_normal": array(3, 14, 8), "alphas_reduce.0": array(3, 14, 8),
		"start/1/alphas_normal": array(4, 14, 8), "alphas_reduce/1": array(4, 14, 8),
	}
	off, err = replay(numbered, list)
	require.NoError(t, err)
	require.Zero(t, off)
	numbered["2/alphas_normal"] = array(4, 14, 8)
	_, err = replay(numbered, list)
	require.ErrorContains(t, err, "2/alphas_normal: the settings have 2 genotypes, counted from 0")
	delete(numbered, "2/alphas_normal")
	delete(numbered, "0/alphas_normal")
	_, err = replay(numbered, list)
	require.ErrorContains(t, err, "alphas_normal is missing, of genotype 0")
	_, err = replay(map[string]Array{"pc/alphas_normal": array(4, 1, 14, 8)}, groups)
	require.ErrorContains(t, err, `no genotypes of the group "pc"`)
}
