package oymak2021

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
)

func TestLemma2Run(t *testing.T) {
	p := Lemma2Quick
	p.Maps, p.Weights, p.Cases, p.Lambdas, p.Candidates, p.Seeds = []int{1, 2}, []int{1, 3}, 5, []float64{0.1, 1}, 4, 2
	r, err := Lemma2(emptyStore(t), p)
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	claims := r.Check()
	require.Equal(t, runs.Holds, claims[0].Holds)
	require.Equal(t, runs.Fails, claims[5].Holds, "the counterexample")
	p.Lambdas = []float64{0}
	_, err = Lemma2(t.Context(), p)
	require.ErrorContains(t, err, "not strongly convex")
}
