package oymak2021

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func tinyLemma1() Lemma1Params {
	p := Lemma1Quick
	p.Lambdas, p.Trains, p.Decays = []float64{0.1, 0}, []int{4}, []float64{1}
	p.Maps, p.Scales = []int{3, 1}, []float64{1, 100}
	p.Inputs, p.Features, p.Candidates, p.Pool, p.Validation, p.Repeats, p.Seeds = 8, 9, 8, 50, []int{4, 40, 400}, 2, 2
	return p
}

func TestLemma1Run(t *testing.T) {
	r, err := Lemma1(emptyStore(t), tinyLemma1())
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	byName := map[string]runs.Claim{}
	for _, c := range r.Check() {
		byName[c.Name] = c
	}
	require.Equal(t, runs.Holds, byName["own: Lipschitz constant ≤ our bound"].Holds)
	require.InDelta(t, 1, float64(byName["own: c·L is the same for Δ and cΔ at λ = 0"].Ours), 1e-9)
	p := tinyLemma1()
	p.Maps = []int{1}
	one, err := Lemma1(emptyStore(t), p)
	require.NoError(t, err)
	at := slices.IndexFunc(one.Check(), func(c runs.Claim) bool { return strings.HasPrefix(c.Name, "own: c·L") })
	require.Contains(t, one.Check()[at].Note, "not decidable with h = 1")
	p.Maps, p.Lambdas, p.Scales = []int{3}, []float64{0.1}, nil
	alone, err := Lemma1(emptyStore(t), p)
	require.NoError(t, err)
	for _, c := range alone.Check() {
		require.NotContains(t, c.Note, "NaN", c.Name)
	}
	p = tinyLemma1()
	p.Trains = []int{9}
	_, err = Lemma1(t.Context(), p)
	require.ErrorContains(t, err, "n_T ≤ min(d, p) = 8")
}
