package search

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/internal/checkpoint"
	"github.com/nasml/lab/nasml/simplex"
	"github.com/nasml/lab/nasml/supernet"
)

// pure is GoMLX's own backend, which compiles nothing: XLA takes longer to
// compile these programs than it takes this one to run them.
func pure(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	return b
}

// pictures are images with classes that can be told apart.
func pictures(t *testing.T, n int) *data.Images {
	t.Helper()
	grey, err := data.SyntheticImages(1, n, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	require.NoError(t, err)
	colour := *grey
	colour.Channels, colour.Pixels = 3, nil
	for _, p := range grey.Pixels {
		colour.Pixels = append(colour.Pixels, p, 255-p, p/2)
	}
	return &colour
}

// tiny are settings that compile in seconds.
func tiny(t *testing.T, method string) Settings {
	t.Helper()
	s, err := AsQuick(method)
	require.NoError(t, err)
	s.Channels, s.Image, s.Batch, s.Epochs, s.EvaluateEvery = 2, 8, 4, 2, 1
	if s.Candidates > 0 {
		s.Candidates, s.CandidateBatch = 3, 4
	}
	if s.Control.Steps > 0 {
		s.Control.Steps, s.Control.Samples = 2, 2
	}
	return s
}

func TestEveryMethodSearches(t *testing.T) {
	images := pictures(t, 24)
	for _, method := range slices.Sorted(maps.Keys(quickSettings)) {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := tiny(t, method)
			x, err := New(pure(t), s, images)
			require.NoError(t, err)
			defer x.Close()
			c, err := x.Search(t.Context(), 3, Options{})
			require.NoError(t, err)
			require.Len(t, c.Theta, 3)
			require.Len(t, c.TrainLoss, 2)
			require.Len(t, c.Final, 6)
			entropy := c.Entropy(supernet.NASBench201.Without("none").Product())[0]
			require.InDelta(t, math.Log(4), entropy[0], 1e-5)
			if Methods[method].Hold == Nothing {
				require.InDelta(t, math.Log(4), entropy[2], 1e-5)
				require.Empty(t, c.ValidLoss)
			} else {
				require.NotEqual(t, c.Theta[0], c.Theta[2], "θ has not moved")
				require.Equal(t, []float64{1, 2}, c.Evaluated)
			}
			again, err := x.Search(t.Context(), 3, Options{})
			require.NoError(t, err)
			require.Equal(t, c, again, "the same seed gives the same curve")
		})
	}
}

// interrupted is a search that is stopped after so many steps and goes on from
// what it saved.
func interrupted(t *testing.T, x *Runner, steps int) *Curve {
	t.Helper()
	var saved []byte
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := Options{
		Load: func() (io.ReadCloser, error) {
			if saved == nil {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(saved)), nil
		},
		Save: func(write func(io.Writer) error) error {
			var b bytes.Buffer
			err := write(&b)
			saved = b.Bytes()
			return err
		},
		Observe: func(m Snapshot) {
			if m.Epoch*m.Steps+m.Step >= steps {
				stop()
			}
		},
	}
	_, err := x.Search(ctx, 3, o)
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, saved)
	o.Observe = nil
	c, err := x.Search(t.Context(), 3, o)
	require.NoError(t, err)
	return c
}

func TestAnInterruptedSearchGivesTheSameCurve(t *testing.T) {
	for _, method := range []string{"gaea-darts", "enas", "gdas"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			x, err := New(pure(t), tiny(t, method), pictures(t, 24))
			require.NoError(t, err)
			defer x.Close()
			whole, err := x.Search(t.Context(), 3, Options{})
			require.NoError(t, err)
			for _, steps := range []int{2, 3, 4} { // within an epoch, at its end, in the next
				require.Equal(t, whole, interrupted(t, x, steps), "stopped after %d steps", steps)
			}
		})
	}
}

// A checkpoint of another layout, or of other tensors, is not misread: the
// search begins again.
func TestAnotherCheckpointBeginsAnew(t *testing.T) {
	x, err := New(pure(t), tiny(t, "enas"), pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	whole, err := x.Search(t.Context(), 3, Options{})
	require.NoError(t, err)

	other, err := x.start(4, Options{})
	require.NoError(t, err)
	defer other.free()
	other.at.Epoch, other.at.Step = 1, 1
	write := func(head any, state ...*tensors.Tensor) []byte {
		var b bytes.Buffer
		require.NoError(t, checkpoint.Write(&b, head, state...))
		return b.Bytes()
	}
	right := write(place{other.at, other.theta, checkpoint.Shapes(other.tensors())}, other.tensors()...)
	shapes := checkpoint.Shapes(other.tensors())
	shapes[0], shapes[1] = shapes[1], shapes[0]
	for name, content := range map[string][]byte{
		"without shapes":        write(map[string]any{"position": other.at, "theta": other.theta}, other.tensors()...),
		"shapes in other order": write(place{other.at, other.theta, shapes}, other.tensors()...),
		"without the controller": write(
			place{other.at, other.theta, checkpoint.Shapes(other.tensors())}, other.state()...),
		"cut":            right[:len(right)-1],
		"something else": []byte("no checkpoint at all"),
	} {
		load := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		c, err := x.Search(t.Context(), 3, Options{Load: load})
		require.NoError(t, err, name)
		require.Equal(t, whole, c, name)
	}
	_, err = x.Search(t.Context(), 3, Options{Load: func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }})
	require.ErrorIs(t, err, io.ErrClosedPipe, "what cannot be read may be there")
}

func TestNaNInThetaIsAnError(t *testing.T) {
	simplex.Updates["broken"] = func(theta, grad *Node, _ float64) *Node {
		return Add(theta, Log(Neg(Abs(grad)))) // NaN
	}
	defer delete(simplex.Updates, "broken")
	s := tiny(t, "gaea-darts")
	s.Update = "broken"
	x, err := New(pure(t), s, pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	_, err = x.Search(t.Context(), 0, Options{})
	require.ErrorContains(t, err, "epoch 1: step 1 of 3")
	require.ErrorContains(t, err, `θ of skip_connect on edge 1<-0 is NaN`)
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"method":    {func(s *Settings) { s.Method = "dart" }, `"dart"`},
		"space":     {func(s *Settings) { s.Space = "dars" }, `"dars"`},
		"operation": {func(s *Settings) { s.Without = []string{"sep_conv"} }, `"sep_conv"`},
		"update":    {func(s *Settings) { s.Update = "adam" }, "adam"},
		"image":     {func(s *Settings) { s.Image = 10 }, "multiple of 4"},
		"rate":      {func(s *Settings) { s.ArchRate = 0 }, "ArchRate must be positive, got 0"},
		"split":     {func(s *Settings) { s.Split = "third" }, `"third"`},
	} {
		s := tiny(t, "gaea-darts")
		c.change(&s)
		require.ErrorContains(t, s.Check(), c.want, name)
	}
	_, err := New(nil, tiny(t, "darts"), pictures(t, 4))
	require.ErrorContains(t, err, "4")
}

func TestPresetsAreWhole(t *testing.T) {
	listed := map[string]bool{}
	for kind, scales := range Presets {
		space := Kinds[kind].Names()[0]
		for scale, methods := range scales {
			for method := range methods {
				s, err := Preset(space, method, scale)
				require.NoError(t, err)
				require.NoError(t, s.Check(), "%s %s %s", kind, scale, method)
				require.Equal(t, space, s.Space)
				require.Equal(t, s, settingsKey(t, s))
				listed[method] = true
			}
		}
	}
	for method := range Methods {
		require.True(t, listed[method], method)
	}
	_, err := AsCode("xnas")
	require.ErrorContains(t, err, "no settings are listed", "its authors published no code")
	_, err = AsPaperOn("dart", "darts")
	require.ErrorContains(t, err, `unknown search space "dart"`)
}

// A reader's method has the settings of the listed one that it resembles most, on any
// space on which that is.
func TestSettingsOfAnOwnMethod(t *testing.T) {
	of := Presets["nasbench201"]["quick"]
	for name := range of {
		require.Equal(t, name, resembling(of, Methods[name]))
	}
	ours := Methods["gaea-darts"]
	ours.Title, ours.Update = "", "projected"
	require.Equal(t, "gaea-darts", resembling(of, ours))
	ours.Weights = Uniform
	require.Equal(t, "gaea-darts", resembling(of, ours), "how θ is held and the architecture's pass are the same")

	t.Cleanup(func() { delete(Methods, "mine") })
	for _, m := range []Method{
		{Hold: OnSimplex, Weights: Mixture, Architecture: Mixture, Update: "projected", Final: ByArgmax},
		{Hold: Logits, Weights: Gumbel, Architecture: Gumbel, Update: "adam", Final: ByArgmax},
		{Hold: OnSimplex, Weights: Uniform, Architecture: Mixture, Update: "eg", Final: ByRandom},
	} {
		Methods["mine"] = m
		for kind := range Presets {
			if kind != "nasbench201" && m.Weights == Gumbel {
				continue // these spaces do not sample
			}
			for _, scale := range []string{"quick", "paper", "code"} {
				s, err := Preset(Kinds[kind].Names()[0], "mine", scale)
				require.NoError(t, err)
				require.NoError(t, s.Check(), "%s %s %+v", kind, scale, m)
				require.Equal(t, "mine", s.Method)
				require.Empty(t, s.Update, "its own")
			}
		}
	}
}

func TestWherePaperAndCodeDiffer(t *testing.T) {
	paper, err := AsPaper("gaea-darts")
	require.NoError(t, err)
	code, err := AsCode("gaea-darts")
	require.NoError(t, err)
	require.Contains(t, Differences(paper, code), "channels: 16, 24")
	require.Contains(t, Differences(paper, code), `update: "", "eg-clamp-normalize"`)
	require.Empty(t, Differences(paper, paper))

	for method, want := range map[string][]string{
		"darts":      nil,
		"gaea-darts": {"evaluate_every: 5, 1", `update: "", "eg-clamp-normalize"`},
		"pc-darts":   {"bilevel.warmup: 15, 0", "edge_weights: true, not set", "evaluate_every: 5, 1"},
		"gaea-pc-darts": {
			"bilevel.warmup: 10, 0", `edge_update: not set, "eg"`, "evaluate_every: 5, 1",
			`update: "", "eg-clamp-normalize"`,
		},
	} {
		paper, err := AsPaperOn("darts", method)
		require.NoError(t, err)
		code, err := AsCodeOn("darts", method)
		require.NoError(t, err)
		require.Equal(t, want, Differences(paper, code), method)
	}
}

func TestTheCodeOfGAEAStopsItsScheduleHalfWay(t *testing.T) {
	code, err := AsCode("gaea-darts")
	require.NoError(t, err)
	require.InDelta(t, 0.0138, code.rate(24), 4e-4) // reference: 0.0138 after 25 of 50 epochs
	paper, err := AsPaper("gaea-darts")
	require.NoError(t, err)
	require.InDelta(t, 0.001, paper.rate(24), 1e-3/10)
	gdas, err := AsCode("gaea-gdas")
	require.NoError(t, err)
	require.InDelta(t, 3.42, gdas.tau(149), 0.01)
	require.InDelta(t, 10, gdas.tau(50), 1e-12)
	gdas, err = AsPaper("gaea-gdas")
	require.NoError(t, err)
	require.InDelta(t, 0.1, gdas.tau(149), 1e-12)
}

func TestLikeliestArchitectures(t *testing.T) {
	theta := [][]float64{{0.6, 0.3, 0.1}, {0.5, 0.5, 0}}
	require.Equal(t, [][]int{{0, 0}, {0, 1}, {1, 0}}, likeliest(theta, 3))
	require.Len(t, likeliest(theta, 100), 9)
}

// With BN=0 the authors of NAS-Bench-201 evaluate by running statistics outside of
// cells, in training and evaluation; what Li+ ran themselves is not concerned.
func TestWhoseBatchNormTracksOutsideOfCells(t *testing.T) {
	outside := []string{"enas", "gdas", "rsps", "setn"}
	for scale, methods := range Presets["nasbench201"] {
		var found []string
		for method, of := range methods {
			if s := of(); s.TrackOutside {
				require.False(t, s.TrackStats, "%s, %s", method, scale)
				found = append(found, method)
			}
		}
		require.ElementsMatch(t, outside, found, scale)
	}
	require.True(t, AsBenchmark().TrackOutside)
	quick, err := AsQuick("gaea-darts")
	require.NoError(t, err)
	text, err := json.Marshal(quick)
	require.NoError(t, err)
	require.NotContains(t, string(text), "track_outside", "the keys of other methods' trials stay")
}

// A search ranks its candidates by the running statistics that its steps have moved:
// with those of the start the same weights answer otherwise.
func TestCandidatesSeeRunningStatistics(t *testing.T) {
	x, err := New(pure(t), tiny(t, "rsps"), pictures(t, 24))
	require.NoError(t, err)
	defer x.Close()
	r, err := x.start(3, Options{})
	require.NoError(t, err)
	defer r.free()
	require.Len(t, Cut(r.Step, r.state()).Stats, 12, "six batch norms")
	require.NoError(t, r.loop.Epoch(t.Context()))
	state := Cut(r.Step, r.state())
	logits := func(stats []*tensors.Tensor) []float32 {
		arch, err := r.space.Arch(make([]int, 6))
		require.NoError(t, err)
		images, _, err := r.batch(r.validation[:4], nil)
		require.NoError(t, err)
		args := []any{images, matrix(r.product[0], arch.Theta[0])}
		for _, w := range append(slices.Clone(state.Weights), stats...) {
			args = append(args, w)
		}
		weights := len(state.Weights)
		out := MustExecOnceN(r.backend, func(in []*Node) []*Node {
			return []*Node{r.net.Evaluate(supernet.Pass{
				Images: in[0], Theta: in[1:2], Weights: in[2 : 2+weights], Stats: in[2+weights:],
			}).Logits}
		}, args...)
		return tensors.MustCopyFlatData[float32](out[0])
	}
	require.NotEqual(t, logits(r.net.InitStats()), logits(state.Stats))
}
