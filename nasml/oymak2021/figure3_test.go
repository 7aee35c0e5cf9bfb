package oymak2021

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/search"
)

// tinyFigure3 searches 40 synthetic images with three channels.
func tinyFigure3(t *testing.T) Figure3Params {
	t.Helper()
	t.Setenv("GOMLX_BACKEND", "go")
	grey, err := data.SyntheticImages(1, 40, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	require.NoError(t, err)
	var pixels []uint8
	for _, v := range grey.Pixels {
		pixels = append(pixels, v, v/2, 255-v)
	}
	var labels []int
	for _, label := range grey.Labels {
		labels = append(labels, int(label))
	}
	_, err = data.FromArrays("coloured", data.Train, 8, 8, 3, pixels, labels)
	require.NoError(t, err)
	p := Figure3Quick
	p.Data, p.Space, p.Channels, p.Batch, p.Epochs, p.At = "coloured", "darts-s2", 2, 4, 2, []int{2}
	p.Train, p.Validation, p.Test, p.Curves, p.Seeds = 8, []int{2, 8}, 10, []int{8}, 2
	return p
}

func TestFigure3FromSearches(t *testing.T) {
	p := tinyFigure3(t)
	r, err := Figure3(emptyStore(t), p)
	require.NoError(t, err)
	require.Len(t, r.Records(), 4)
	f := r.Figure()
	require.NoError(t, f.Validate())
	require.Len(t, f.Panels, 2)
	require.Len(t, f.Panels[0][0].Series, 3)
	require.Equal(t, []float64{1, 2}, f.Panels[1][0].Series[0].X)
	require.Equal(t, []float64{2, 8}, f.Panels[1][1].Series[0].X)
	gap := errorsAt(r, 0, "test", 2)[1] - errorsAt(r, 0, "validation", 2)[1]
	require.Equal(t, gap, gaps(r, 0, 2)[1])
	require.Contains(t, f.Caption, "Varied parameters, not the paper's setting.")

	judged := map[string]runs.Claim{}
	for _, c := range r.Check() {
		judged[c.Name] = c
	}
	require.Equal(t, 56, r.Params.hyperparameters(), "another space than the paper's")
	require.Equal(t, runs.NotKnown, judged["training error zero after 30 epochs"].Holds)
	r.Params.Space = "darts"
	require.Equal(t, 224, r.Params.hyperparameters())
	r.Params.Space = "unknown"
	require.Zero(t, r.Params.hyperparameters())
	require.True(t, judged["the search overfits few validation images"].Ours.Valid())

	var usage *catalog.UsageError
	for _, change := range []func(p *Figure3Params){
		func(p *Figure3Params) { p.Validation = []int{8, 2} },
		func(p *Figure3Params) { p.Curves = []int{3} },
		func(p *Figure3Params) { p.At = []int{3} },
		func(p *Figure3Params) { p.Preset = "fast" },
		func(p *Figure3Params) { p.Method = "dart" },
		func(p *Figure3Params) { p.Space = "dart" },
		func(p *Figure3Params) { p.Image = 7 },
	} {
		wrong := p
		change(&wrong)
		_, err := Figure3(emptyStore(t), wrong)
		require.ErrorAs(t, err, &usage)
	}
}

// A reader's method and any setting of a search are a line each, and in the key.
func TestFigure3TakesOwnMethodsAndSettings(t *testing.T) {
	t.Cleanup(func() { delete(search.Methods, "mine") })
	search.Methods["mine"] = search.Method{
		Hold: search.OnSimplex, Weights: search.Mixture, Architecture: search.Mixture, Update: "projected",
		Final: search.ByArgmax,
	}
	p := tinyFigure3(t)
	p.Method, p.Epochs, p.At = "mine", 1, []int{1}
	ctx := emptyStore(t)
	first, err := Figure3(ctx, p)
	require.NoError(t, err)
	require.NoError(t, first.Figure().Validate())
	p.Vary = func(_ string, s *search.Settings) { s.LearningRate, s.WeightDecay = 0.1, 0 }
	second, err := Figure3(ctx, p)
	require.NoError(t, err)
	require.NotEqual(t, first.Records(), second.Records())

	require.Contains(t, second.Figure().Caption,
		"Changed settings (preset, here): LearningRate: 0.025, 0.1; WeightDecay: 0.0003, 0.")

	p.Vary = func(_ string, s *search.Settings) { s.EvaluateEvery = 2 }
	var usage *catalog.UsageError
	_, err = Figure3(ctx, p)
	require.ErrorAs(t, err, &usage)
}

// A search that is stopped goes on from its checkpoint and ends with the same bits.
func TestAStoppedSearchOfFigure3GoesOn(t *testing.T) {
	p := tinyFigure3(t)
	p.Epochs, p.At = 3, []int{3}
	calm, err := Figure3(emptyStore(t), p)
	require.NoError(t, err)

	dir := t.TempDir()
	ctx, cancel := context.WithCancel(storeContext(t, dir))
	defer cancel()
	stopped := runs.WithProgress(ctx, &stopper{Progress: runs.Silent, after: 6, cancel: cancel})
	_, err = Figure3(stopped, p)
	require.ErrorIs(t, err, context.Canceled)
	resumed, err := Figure3(storeContext(t, dir), p)
	require.NoError(t, err)
	again := resumed.Groups.Records()
	require.Positive(t, again[0].Resumed)
	for i, record := range calm.Groups.Records() {
		require.Equal(t, record.Series, again[i].Series)
	}
}
