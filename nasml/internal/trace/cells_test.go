package trace

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/supernet"
)

// openOwn writes a trace and opens it.
func openOwn(t *testing.T, arrays map[string]Array, settings string) (Replayable, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.npz")
	require.NoError(t, writeNPZ(file, arrays, []byte(settings)))
	return Open(file)
}

// filled has one value everywhere.
func filled(value float64, dims ...int) Array {
	a := Array{Type: "<f8", Dims: dims, Values: make([]float64, size(dims))}
	for i := range a.Values {
		a.Values[i] = value
	}
	return a
}

// TestGenotypes: two architectures a program, of which the second is uniform, so that
// all is a tie, by hand.
func TestGenotypes(t *testing.T) {
	max0, max1 := [2]any{"max_pool_3x3", 0}, [2]any{"max_pool_3x3", 1}
	first := [][2]any{max0, max1, max0, max1, max0, max1, max0, max1}
	for group, fill := range map[string]float64{"darts": 0, "pcdarts": 0, "gaea": 0.125} {
		other := [][2]any{{"skip_connect", 1}, max0, max0, max1, max0, max1, {"dil_conv_5x5", 4}, max0}
		arrays := map[string]Array{
			group + "/alphas_normal": filled(fill, 2, 14, 8), group + "/alphas_reduce": filled(fill, 2, 14, 8),
		}
		normal := arrays[group+"/alphas_normal"].Values
		normal[1*8+3] += 0.5  // skip_connect on 3<-1
		normal[1*8+0] += 0.1  // none, which takes part in the softmax
		normal[13*8+7] += 0.1 // dil_conv_5x5 on 5<-4
		if edges := edgesOfGroup[group]; edges != "" {
			arrays[group+"/"+edges+"_normal"] = filled(0.2, 2, 14)
			arrays[group+"/"+edges+"_reduce"] = filled(0.2, 2, 14)
		}
		text := func(cells ...any) string {
			s, err := json.Marshal(map[string]any{
				"method": "genotypes", "source": "by hand", "genotypes": map[string]any{group: cells},
			})
			require.NoError(t, err)
			return string(s)
		}
		settings := text([]any{other, first}, []any{first, first})
		trace, err := openOwn(t, arrays, settings)
		require.NoError(t, err)
		require.Equal(t, About{"by hand", "genotypes", 2, 1e-9}, trace.About())
		differences, err := trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []Difference{{Name: "genotypes", Step: 1, Scale: 2}}, differences, group)

		arrays[group+"/alphas_reduce"].Values[14*8+1] -= 0.01 // max_pool_3x3 on 2<-0 of the second
		trace, err = openOwn(t, arrays, settings)
		require.NoError(t, err)
		differences, err = trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []Difference{{Name: "genotypes", Step: 1, Absolute: 1, Relative: 0.5, Scale: 2}}, differences)

		for settings, says := range map[string]string{
			text([]any{first[1:], first}, []any{first, first}): "genotype 0 of " + group +
				": found cells of 7 and 8 pairs",
			text([]any{first, first}):           group + "/alphas_normal: found shape [2 14 8], expected [1 14 8]",
			text():                              "found 0 genotypes of",
			`{"genotypes": {"pc": [[[], []]]}}`: `found 1 genotypes of "pc", expected at least one, of darts, pcdarts`,
			`{"genotypes": {}}`:                 "found nothing to compare",
			`{"genotypes": ["Genotype(…)"]}`:    "settings: expected JSON as in the comment of trace.Cells",
		} {
			_, err = openOwn(t, arrays, settings)
			require.ErrorContains(t, err, says)
		}
		broken := maps.Clone(arrays)
		broken["misspelt"] = filled(0, 1)
		delete(broken, group+"/alphas_normal")
		_, err = openOwn(t, broken, settings)
		require.ErrorContains(t, err, "alphas_normal is missing")
		require.ErrorContains(t, err, "misspelt: found an array of this name")
	}
}

// TestGenotypesOfTheAuthors discretizes the authors' 120 architectures. Many have equal
// logits, which are broken as theirs. One differs by a tie in the softmax's rounding:
// two rows of the same numbers in another order, where PyTorch's sum ends in another
// last digit than ours.
func TestGenotypesOfTheAuthors(t *testing.T) {
	trace := openAuthors(t, "genotypes")
	require.Equal(t, 120, trace.About().Steps)
	differences, err := trace.Replay(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []Difference{{Name: "genotypes", Step: 1, Scale: 120}}, differences)
	ties := 0
	for _, cell := range trace.(*Cells).all {
		d := cell.(discretization)
		ours, err := supernet.DARTS.Discretize(d.mixture)
		require.NoError(t, err)
		if ours.String() != d.theirs.String() {
			ties++
		}
	}
	require.Equal(t, 1, ties)
}

// A tie of rounding is no difference; a pair of exactly the same weight, which the
// order decides, and one of another weight are.
func TestTiesOfRounding(t *testing.T) {
	arrays := map[string]Array{
		"gaea/alphas_normal": filled(0.125, 1, 14, 8), "gaea/alphas_reduce": filled(0.125, 1, 14, 8),
		"gaea/edges_normal": filled(0.5, 1, 14), "gaea/edges_reduce": filled(0.5, 1, 14),
	}
	const swapped = `["max_pool_3x3", 1], ["max_pool_3x3", 0]`
	const order = `["max_pool_3x3", 0], ["max_pool_3x3", 1]`
	rest := order + ", " + order + ", " + order + "]"
	settings := `{"genotypes": {"gaea": [[[` + swapped + ", " + rest + ", [" + order + ", " + rest + "]]}}"
	for off, differ := range map[float64]float64{0: 1, 1e-16: 0, 1e-9: 1} {
		edges := filled(0.5, 1, 14)
		edges.Values[0] += 8 * off // of 2<-0, which the authors' program took second
		arrays["gaea/edges_normal"] = edges
		trace, err := openOwn(t, arrays, settings)
		require.NoError(t, err)
		differences, err := trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		require.InDelta(t, differ, differences[0].Absolute, 0, off)
	}
}
