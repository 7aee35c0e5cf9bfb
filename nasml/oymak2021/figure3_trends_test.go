package oymak2021

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/lab"
	"github.com/nasml/lab/nasml/runs"
)

// madeUp are searches with so many validation images each, three seeds, whose gap is a
// function of n_V and of the epoch. Seeds differ by little, the same in every n_V.
func madeUp(sizes []int, epochs int, gap func(n, epoch float64) float64) *figure3 {
	r := &figure3{Params: Figure3Quick, Confidence: Figure3Quick.Confidence}
	r.Params.Validation, r.Params.Seeds = sizes, 3
	for _, n := range sizes {
		var row []*runs.Record
		for seed := range 3 {
			series := map[string][]float64{}
			for e := 1.; e <= float64(epochs); e++ {
				test := 0.5 + gap(float64(n), e) + 1e-3*float64(seed)*e/float64(epochs)
				series["validation"] = append(series["validation"], 0.5)
				series["test"] = append(series["test"], test)
				series["train"] = append(series["train"], max(0, 0.9-0.03*e))
			}
			row = append(row, &runs.Record{
				Values: map[string]float64{"epochs": float64(epochs)}, Series: series,
			})
		}
		r.Groups = append(r.Groups, lab.Group[int]{Part: "searches", Seeds: 3, Trial: n, Records: row})
	}
	return r
}

// trendsOf are the claims by the beginnings of their names.
func trendsOf(t *testing.T, r *figure3) func(name string) runs.Claim {
	all := judgeTrends(r)
	return func(name string) runs.Claim {
		for _, c := range all {
			if strings.HasPrefix(c.Name, "own: "+name) {
				return c
			}
		}
		t.Fatalf("no claim %q", name)
		return runs.Claim{}
	}
}

// What Section 7b says, and its opposite: a gap of a − b·log₁₀ n_V that grows in
// proportion to the epochs has the slopes −b and (a − b·mean log₁₀ n_V)/E.
func TestTrendsOfTheGap(t *testing.T) {
	sizes := []int{20, 50, 100, 250, 500, 1000}
	const a, b, epochs = 0.301, 0.1, 40
	for name, c := range map[string]struct {
		sign float64
		want runs.Verdict
	}{"the paper's": {1, runs.Holds}, "the opposite": {-1, runs.Fails}} {
		at := trendsOf(t, madeUp(sizes, epochs, func(n, e float64) float64 {
			return c.sign * (a - b*math.Log10(n)) * e / epochs
		}))
		falls := at("the gap falls over all")
		require.InDelta(t, -b, float64(falls.Ours), 2e-3, "%s: of |gap|, whose sign does not matter", name)
		require.Equal(t, runs.Holds, falls.Holds)
		grows := at("the gap grows over all epochs")
		mean := 0.
		for _, n := range sizes {
			mean += math.Log10(float64(n)) / float64(len(sizes))
		}
		require.InDelta(t, c.sign*(a-b*mean)/epochs, float64(grows.Ours), 1e-3/epochs+1e-12, name)
		require.Equal(t, c.want, grows.Holds, name)
		require.Equal(t, c.want, at("the search overfits with all n_V up to 100").Holds, name)
		require.Contains(t, at("the search overfits").Note, "mean over n_V = 20, 50, 100")
		worse := at("the test risk is worse")
		require.InDelta(t, c.sign*b*(math.Log10(250*500*1000)-math.Log10(20*50*100))/3, float64(worse.Ours), 1e-12)
		require.Equal(t, c.want, worse.Holds, name)
	}
	rising := trendsOf(t, madeUp(sizes, 2, func(n, _ float64) float64 { return b * math.Log10(n) }))
	require.Equal(t, runs.Fails, rising("the gap falls over all").Holds)
}

// Every n_V from 250 on has to track, not only the largest; training errors have to be
// zero after every epoch from 30 on, with every n_V.
func TestEveryNumberOfImagesCounts(t *testing.T) {
	apart := func(at float64) func(n, e float64) float64 {
		return func(n, _ float64) float64 {
			if n == at {
				return 0.2
			}
			return 0
		}
	}
	sizes := []int{20, 250, 1000}
	const tracks, zero = "validation error tracks", "training error zero"
	require.Equal(t, runs.Holds, trendsOf(t, madeUp(sizes, 31, apart(20)))(tracks).Holds)
	middle := trendsOf(t, madeUp(sizes, 31, apart(250)))(tracks)
	require.Equal(t, runs.Fails, middle.Holds)
	require.InDelta(t, 0.201, float64(middle.Ours), 1e-9)

	r := madeUp(sizes, 31, apart(0))
	require.Equal(t, runs.Holds, trendsOf(t, r)(zero).Holds)
	for seed := range r.Groups[1].Records {
		r.Groups[1].Records[seed].Series["train"][30] = 0.1 // after epoch 31
	}
	require.Equal(t, runs.Fails, trendsOf(t, r)(zero).Holds)
	require.Equal(t, runs.NotKnown, trendsOf(t, madeUp(sizes, 29, apart(0)))(zero).Holds)
}

// What cannot be judged says why: a search that was not run, sizes on one side of the
// thresholds, one epoch.
func TestTrendsThatAreNotJudged(t *testing.T) {
	flat := func(_, _ float64) float64 { return 0 }
	r := madeUp([]int{20, 500}, 31, flat)
	r.Groups[1].Records[2] = nil
	for _, c := range judgeTrends(r) {
		require.Equal(t, runs.NotKnown, c.Holds)
		require.Contains(t, c.Note, "not run: 5 of 6 searches", c.Name)
	}
	at := trendsOf(t, madeUp([]int{20, 100}, 1, flat))
	for name, why := range map[string]string{
		"validation error tracks": "not run: Validation is [20 100]", "the test risk": "from 250 on, got [20 100]",
		"the gap grows": "one epoch has no slope", "training error": "the searches need 30 epochs, they have 1",
	} {
		require.Equal(t, runs.NotKnown, at(name).Holds)
		require.Contains(t, at(name).Note, why)
	}
}
