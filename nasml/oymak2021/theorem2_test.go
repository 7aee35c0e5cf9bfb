package oymak2021

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func tinyTheorem2() Theorem2Params {
	p := Theorem2Quick
	p.Maps, p.Trains, p.Validation = []int{2, 1}, []int{5, 10}, []int{2, 5, 10}
	p.Inputs, p.Features, p.Candidates, p.Pool = 12, 14, 5, 60
	p.PropMaps, p.Sizes, p.FixedTrain, p.Repeats, p.Seeds = []int{1, 2}, []int{10, 40}, 20, 2, 2
	return p
}

func TestTheorem2Run(t *testing.T) {
	r, err := Theorem2(emptyStore(t), tinyTheorem2())
	require.NoError(t, err)
	require.NoError(t, r.Figure().Validate())
	for _, c := range r.Check() {
		require.NotContains(t, c.Note, "NaN", c.Name)
	}
	p := tinyTheorem2()
	p.Trains = []int{5, 20}
	_, err = Theorem2(t.Context(), p)
	require.ErrorContains(t, err, "(8) does not hold")
}
