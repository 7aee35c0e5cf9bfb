package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/supernet"
)

// ownOneShot is a trace of NAS-Bench-1Shot1 in the authors' format, without
// outputs: two cells of four channels.
func ownOneShot(t *testing.T, method string, space int, c supernet.OneShotConfig) (map[string]Array, string) {
	t.Helper()
	c.Space = []supernet.OneShot{supernet.OneShot1, supernet.OneShot2, supernet.OneShot3}[space-1]
	c.Skeleton = supernet.Skeleton{Channels: 4, Cells: 2, Image: 4, Classes: 3}
	net, err := supernet.NewOneShot(c)
	require.NoError(t, err)
	s := map[string]any{
		"method": method, "source": "this test", "space": space, "channels": 4, "layers": 2, "image": 4, "classes": 3,
		"steps": 2, "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 3e-4, "clip": 5.0, "arch_rate": 0.1,
	}
	arrays := ownState(net.CellNet, s)
	rng := rand.New(rand.NewPCG(5, 6))
	for i, b := range net.Architecture() {
		a := Array{Type: "<f8", Dims: []int{b.Rows, b.Options}}
		for range b.Rows * b.Options {
			a.Values = append(a.Values, rng.NormFloat64())
		}
		if strings.HasPrefix(method, "gaea") {
			softmax(a.Values, b.Options)
		}
		arrays["start/"+oneShotArchitecture(len(net.Architecture()))[i].name] = a
	}
	for _, part := range []string{"train", "valid"} {
		a := Array{Type: "<f8", Dims: []int{2, 2, 3, 4, 4}}
		for range size(a.Dims) {
			a.Values = append(a.Values, rng.NormFloat64())
		}
		arrays[part+"_images"] = a
		arrays[part+"_labels"] = Array{Type: "<i8", Dims: []int{2, 2}, Values: []float64{0, 1, 2, 0}}
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return arrays, strings.NewReplacer(`"cells.0.node_1.`, `"cells.0._choice_blocks.0.`,
		`"cells.0.input_to_1.`, `"cells.0._input_projections.0.`,
		`"cells.0.input_to_output.`,
		fmt.Sprintf(`"cells.0._input_projections.%d.`, len(c.Space.Parents))).Replace(string(text))
}

// Each supernet is told by the shapes of its first cell.
func TestOneShotIsToldByItsShapes(t *testing.T) {
	for space := 1; space <= 3; space++ {
		for _, c := range []supernet.OneShotConfig{{}, {AddInput: true}, {Partial: 2}, {AddInput: true, Partial: 4}} {
			arrays, settings := ownOneShot(t, "darts", space, c)
			_, err := newAuthors(arrays, settings)
			require.NoError(t, err, "%d, %+v", space, c)
		}
	}
	for by, want := range map[string]string{
		`"space":4`:       "settings: space must be 1, 2 or 3",
		`"space":"darts"`: `settings: space must be 1, 2 or 3`,
		`"space":2`:       "start/alphas_inputs.0: found shape [1 3], expected [1 2]", // weights are as in space 1
	} {
		arrays, settings := ownOneShot(t, "darts", 1, supernet.OneShotConfig{})
		_, err := newAuthors(arrays, strings.Replace(settings, `"space":1`, by, 1))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestOneShotGAEAMovesByWhatIsLeft: from the second step on the gradient that
// moves the architecture is that of the validation images and that of the weights'
// pass before, whose values are taken here without the replay; all weights are
// clamped; and running statistics see the validation images twice.
func TestOneShotGAEAMovesByWhatIsLeft(t *testing.T) {
	arrays, settings := ownOneShot(t, "gaea-darts", 2, supernet.OneShotConfig{})
	trace, found := observed(t, arrays, settings)
	require.True(t, trace.kind.uncleared)
	trace.kind.uncleared = false
	run, err := newAuthorsRun(goBackend(t), trace)
	require.NoError(t, err)
	defer run.close()
	start := run.state
	var plain []map[string]Array
	for step := range 2 {
		f, err := run.observe(step)
		require.NoError(t, err)
		plain = append(plain, f)
	}
	left := trainingGradient(t, trace, run, start, found[0])
	for i, p := range trace.architecture() {
		name := "grad/" + p.name
		require.InDeltaSlice(t, plain[0][name].Values, found[0][name].Values, 1e-14, "nothing is left before the "+
			"first step")
		for k, g := range plain[1][name].Values {
			require.InDelta(t, g+left[i][k], found[1][name].Values[k], 1e-12, name)
		}
		require.Greater(t, farthest(left[i], make([]float64, len(left[i]))), 1e-4)

		theta, sum := trace.Arrays["start/"+p.name], 0.0
		n := theta.Dims[1]
		u := make([]float64, n)
		for k := range u {
			u[k] = math.Max(theta.Values[k]*math.Exp(-0.1*found[0][name].Values[k]), 1e-5)
			sum += u[k]
		}
		for k := range u {
			require.InDelta(t, u[k]/sum, found[0]["after/"+p.name].Values[k], 1e-14)
		}
	}
	const stat = "stem.bn.running_mean" // each pass leaves .003 of what was there
	once, twice := plain[0]["after/"+stat].Values, found[0]["after/"+stat].Values
	require.Greater(t, farthest(once, twice), 1e-9)
	require.Less(t, farthest(once, twice), 1e-4)
}

// trainingGradient is ∇θ of the loss of the first training batch at the weights
// before the first step and θ after it.
func trainingGradient(
	t *testing.T, trace *Authors, run *authorsRun, start []*tensors.Tensor, after map[string]Array,
) [][]float64 {
	t.Helper()
	nw, ns := len(trace.net.Weights()), len(trace.net.Stats())
	args := []any{run.feed(0)[0], run.feed(0)[1]}
	for i := range nw {
		args = append(args, start[i])
	}
	for i := range ns {
		args = append(args, start[2*nw+i])
	}
	for _, p := range trace.architecture() {
		args = append(args, after["after/"+p.name].tensor(run.dtype))
	}
	out, err := CallOnceN(run.backend, func(in []*Node) []*Node {
		theta := in[2+nw+ns:]
		o := trace.net.Evaluate(supernet.Pass{
			Images: in[0], Weights: in[2 : 2+nw], Stats: in[2+nw : 2+nw+ns], Theta: theta, Train: true,
		})
		_, loss := supernet.Score(o.Logits, in[1])
		return Gradient(loss, theta...)
	}, args...)
	require.NoError(t, err)
	var grads [][]float64
	for _, x := range out {
		a, err := arrayOf(x)
		require.NoError(t, err)
		grads = append(grads, a.Values)
	}
	return grads
}

// TestOneShotTracesOfPyTorch replays what nasml/internal/bench/oneshot_traces.py computed
// in float64: the spaces that the authors' traces at hand lack, second order,
// PC-DARTS, and GAEA's uncleared gradient with a warm-up.
func TestOneShotTracesOfPyTorch(t *testing.T) {
	b := goBackend(t)
	files, err := filepath.Glob("testdata/authors/*.npz")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			trace, err := Open(file)
			require.NoError(t, err)
			differences, err := trace.Replay(t.Context(), b)
			require.NoError(t, err)
			require.NotEmpty(t, differences)
			for _, d := range differences {
				require.LessOrEqual(t, d.Relative, 1e-10, "%+v", d)
			}
		})
	}
}

// A trace is told from a search of first order, of cleared gradients, and of all
// channels.
func TestOneShotTracesOfOtherSearchesDiffer(t *testing.T) {
	for file, change := range map[string]func(a *Authors){
		"1shot1-s3-darts-2nd":           func(a *Authors) { a.Settings.Unrolled = false },
		"1shot1-s3-gaea-pcdarts-warmup": func(a *Authors) { a.kind.uncleared = false },
		"1shot1-s2-darts":               func(a *Authors) { a.Settings.ArchWeightDecay = 0 },
		"1shot1-s1-pcdarts":             func(a *Authors) { a.Settings.ArchRate *= 1.001 },
	} {
		trace, err := Open(filepath.Join("testdata/authors", file+".npz"))
		require.NoError(t, err)
		change(trace.(*Authors))
		differences, err := trace.Replay(t.Context(), goBackend(t))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(differences, func(d Difference) bool {
			return strings.Contains(d.Name, "alphas_") && d.Relative > 1e-4
		}), file)
	}
}

// TestLookups: a cell is told whose vertices are in another order, and one that is
// another; files that are none say what is wrong in one line.
func TestLookups(t *testing.T) {
	row := func(x ...float64) Array { return Array{Type: "<f4", Dims: []int{1, 1, len(x)}, Values: x} }
	arrays := map[string]Array{
		"s1/alphas_mixed_op": {
			Type: "<f4", Dims: []int{1, 4, 3}, Values: []float64{0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1},
		},
		"s1/alphas_output":   row(0, 2, 1, 0, 0), // of nodes 1 and 2, which read the input and, node 2, node 1
		"s1/alphas_inputs.0": row(0, 1, 2), "s1/alphas_inputs.1": row(0, 1, 2, 0),
	}
	const conv = `"conv3x3-bn-relu"`
	open := func(specs string, arrays map[string]Array) (Replayable, error) {
		return openOwn(t, arrays, `{"method": "darts", "specs": {`+specs+`}}`)
	}
	for spec, share := range map[string]float64{
		`[[0,1,1,0],[0,0,1,1],[0,0,0,1],[0,0,0,0]], ["input", ` + conv + `, ` + conv + `, "output"]`: 0,
		`[[0,0,1,1,0],[0,0,0,0,0],[0,0,0,1,1],[0,0,0,0,1],[0,0,0,0,0]], ["input", "maxpool3x3", ` + conv + `, ` +
			conv + `, "output"]`: 0, // a node in front that nothing reaches
		`[[0,1,1,0],[0,0,1,1],[0,0,0,1],[0,0,0,0]], ["input", ` + conv + `, "maxpool3x3", "output"]`: 1,
	} {
		trace, err := open(`"s1": [[`+spec+`]]`, arrays)
		require.NoError(t, err)
		require.Equal(t, 1, trace.About().Steps)
		differences, err := trace.Replay(t.Context(), nil)
		require.NoError(t, err)
		want := Difference{Name: "specs", Step: 1, Absolute: share, Relative: share, Scale: 1}
		require.Equal(t, []Difference{want}, differences)
	}
	const good = `"s1": [[[[0,1],[0,0]], ["input", "output"]]]`
	other := func(space string) string { return strings.Replace(good, "s1", space, 1) }
	for specs, want := range map[string]string{
		other("s2"): "s2/alphas_inputs.0 is missing: expected shape [1 1 2]",
		other("s4"): "expected those of s1, s2, s3",

		`"s1": [[[[0,1,0],[0,0,1],[0,1,0]], ["input", ` + conv + `, "output"]]]`: "spec 0 of s1: found an edge from ",
		`"s1": [[[[0,1,0],[1,0,1],[0,0,0]], ["input", ` + conv + `, "output"]]]`: "spec 0 of s1: found an edge from ",
		`"s1": [[[[0,1,0],[0,0,1],[0,0,0]], ["input", "conv5x5", "output"]]]`:    "conv5x5",
		`"s1": 7`: "expected JSON as in the comment of trace.Cells",
	} {
		_, err := open(specs, arrays)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	for name := range arrays {
		fewer := maps.Clone(arrays)
		fewer["s1/misspelt"] = fewer[name]
		delete(fewer, name)
		_, err := open(good, fewer)
		require.ErrorContains(t, err, name+" is missing: expected shape [1 ")
		require.ErrorContains(t, err, "s1/misspelt: found an array of this name")
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestLookupsOfTheAuthors reads the authors' 90 cells.
func TestLookupsOfTheAuthors(t *testing.T) {
	trace := openAuthors(t, "1shot1-lookup")
	differences, err := trace.Replay(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []Difference{{Name: "specs", Step: 1, Scale: 90}}, differences)
}
