package sharing

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/data/datatest"
	"github.com/nasml/lab/nasml/internal/rank"
	"github.com/nasml/lab/nasml/li2021/internal/searching"
	"github.com/nasml/lab/nasml/search"
	"github.com/nasml/lab/nasml/supernet"
)

// searcher runs the smallest searches on NAS-Bench-1Shot1.
func searcher(t *testing.T, method string) *search.Runner {
	t.Helper()
	s, err := search.AsQuickOn(supernet.OneShot2.Name, method)
	require.NoError(t, err)
	s.Channels, s.Cells, s.Image, s.Epochs, s.Batch = 4, 1, 8, 1, 8
	if s.Candidates > 0 {
		s.Candidates, s.CandidateBatch = 3, 8
	}
	grey, err := data.SyntheticImages(1, 48, data.ImageSpec{Classes: 3, Height: 8, Width: 8})
	require.NoError(t, err)
	images := *grey
	images.Channels, images.Pixels = 3, nil
	for _, p := range grey.Pixels {
		images.Pixels = append(images.Pixels, p, 255-p, p/2)
	}
	b, err := compute.NewWithConfig("go")
	require.NoError(t, err)
	r, err := search.New(b, s, &images)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// What is judged at the end of a search are different cells of the table, by
// accuracies that whole numbers of the 24 validation images have; the search is the
// same with it and without it, and the same seed gives the same numbers.
func TestRun(t *testing.T) {
	table := datatest.NASBench101(t)
	trial := Trial{Space: supernet.OneShot2, Archs: 12}
	blocks := trial.Space.Product()
	for _, method := range []string{"rsps", "gaea-pc-darts"} {
		runner := searcher(t, method)
		plain, err := searching.Run(t.Context(), runner, blocks, 3, search.Options{})
		require.NoError(t, err)
		found, err := trial.Run(t.Context(), runner, blocks, table, 3, search.Options{})
		require.NoError(t, err)
		again, err := trial.Run(t.Context(), runner, blocks, table, 3, search.Options{})
		require.NoError(t, err)
		require.Equal(t, found, again)
		require.Equal(t, plain.Series["train_accuracy"][0], found.Values["train_accuracy"])

		for _, statistics := range []string{Running, Batch} {
			shared := found.Series[Shared(statistics)]
			require.Len(t, shared, trial.Archs)
			for _, x := range shared {
				require.InDelta(t, math.Round(24*x), 24*x, 1e-9)
			}
			for _, split := range []data.Split{data.Valid, data.Test} {
				own := found.Series[Own(split)]
				require.Len(t, own, trial.Archs)
				for name := range rank.Correlations {
					a, err := rank.Correlate(name, shared, own, 0.95)
					if err != nil { // all accuracies are equal
						require.NotContains(t, found.Values, Value(name, statistics, split))
						continue
					}
					require.Equal(t, a.Estimate, found.Values[Value(name, statistics, split)])
				}
			}
		}
		require.NotEqual(t, found.Series[Shared(Running)], found.Series[Shared(Batch)], method)

		whole := trial
		whole.Batch = 100 // more than there are: all at once
		at, err := whole.Run(t.Context(), runner, blocks, table, 3, search.Options{})
		require.NoError(t, err)
		require.Equal(t, found.Series[Shared(Running)], at.Series[Shared(Running)], "no batch moves running statistics")
		require.NotEqual(t, found.Series[Shared(Batch)], at.Series[Shared(Batch)])
	}
	trial.Archs = 3213 // the table has 3,212 cells of the space
	if !table.Complete() {
		_, err := trial.Run(t.Context(), searcher(t, "rsps"), blocks, table, 3, search.Options{})
		require.ErrorContains(t, err, "cells of the space 1shot1-s2 in the table, expected the 3213")
	}
}

// Architectures are read off the weights that stand for them.
func TestCell(t *testing.T) {
	trial := Trial{Space: supernet.OneShot1}
	for a := range trial.Space.Archs(false) {
		theta, err := trial.Space.Weights01(a)
		require.NoError(t, err)
		cell, err := trial.cell(search.Arch{Theta: theta})
		require.NoError(t, err)
		matrix, ops, err := trial.Space.Spec(a)
		require.NoError(t, err)
		want, err := data.NewCell101(matrix, ops)
		require.NoError(t, err)
		require.Equal(t, want.Canonical(), cell)
	}
}
