package oymak2021

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
)

func tinyTheorem1() Theorem1Params {
	p := Theorem1Quick
	p.TightMaps, p.TightValidation = []int{1, 8}, []int{2, 64, 256}
	p.Maps, p.Validation, p.Lambdas = []int{1, 3}, []int{20, 80}, []float64{0, 0.1}
	p.Inputs, p.Features, p.Train, p.Candidates, p.Ascent = 8, 10, 5, 6, 2
	p.Data, p.Classes, p.NetTrain, p.Pool = data.Synthetic, [2]int{0, 1}, 8, 40
	p.Width, p.Steps, p.NetCandidates = 8, 30, 4
	p.Lipschitz, p.LipschitzValid = []float64{1, 3, 10}, 30
	p.Seeds, p.Repeats = 2, 3
	return p
}

func TestTheorem1WrongParameters(t *testing.T) {
	p := Theorem1Quick
	p.Parts, p.Train, p.Classes, p.Loss, p.NetMaps = []string{"ridges", "net"}, 50, [2]int{1, 1}, "huber", []int{9}
	_, err := Theorem1(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{"ridges", "n_T ≤ min(d, p) = 40", "Classes", "huber", "NetMaps has 9"} {
		require.ErrorContains(t, err, part)
	}
}

func TestTheorem1StoresItsTrials(t *testing.T) {
	ctx, p := emptyStore(t), tinyTheorem1()
	first, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.NoError(t, first.Figure().Validate())
	for _, c := range first.Check() {
		require.NotContains(t, c.Note, "NaN", c.Name)
		require.False(t, math.IsInf(float64(c.Ours), 0), c.Name)
	}
	again, err := Theorem1(ctx, p)
	require.NoError(t, err)
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(again.Check()), "an unchanged call reads "+
		"everything")
	require.Equal(t, first.Records(), again.Records())
	p.Maps = []int{1, 2, 3}
	more, err := Theorem1(ctx, p)
	require.NoError(t, err)
	fresh := 0
	for _, key := range more.Records() {
		if !slices.Contains(first.Records(), key) {
			fresh++
		}
	}
	require.Equal(t, 3*p.Seeds, fresh, "two λ and the bad labels of h = 2")

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	p.Seeds++
	_, err = Theorem1(cancelled, p)
	require.ErrorIs(t, err, context.Canceled)
}

// A part alone has a figure, and claims that say what they lack.
func TestTheorem1PartsAlone(t *testing.T) {
	for _, part := range Theorem1Quick.Parts {
		p := tinyTheorem1()
		p.Parts, p.TightMaps, p.NetMaps, p.Seeds = []string{part}, []int{2}, []int{2}, 1
		r, err := Theorem1(emptyStore(t), p)
		require.NoError(t, err, part)
		require.NoError(t, r.Figure().Validate(), part)
		require.NotEmpty(t, r.Check(), part)
		for _, c := range r.Check() {
			require.False(t, c.Holds == runs.NotKnown && c.Note == "", c.Name)
		}
	}
}

func TestTheorem1ChecksCanFail(t *testing.T) {
	p := tinyTheorem1()
	p.Parts, p.Seeds = []string{"tight"}, 3
	r, err := Theorem1(emptyStore(t), p)
	require.NoError(t, err)
	for _, g := range r.Groups {
		for _, record := range g.Records {
			for name := range record.Series {
				for i, n := range g.Trial.Validation { // a gap that falls like n^(−0.1)
					record.Series[name][i] = math.Pow(float64(n), -0.1)
				}
			}
		}
	}
	claims := r.Check()
	require.Equal(t, runs.Fails, claims[0].Holds, claims[0].Name)
	require.Equal(t, runs.Fails, claims[1].Holds, "no growth in h")
}
