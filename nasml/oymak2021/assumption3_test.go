package oymak2021

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/catalog"
	"github.com/nasml/lab/nasml/data"
	"github.com/nasml/lab/nasml/runs"
)

// tinyAssumption3 runs in a second.
func tinyAssumption3() Assumption3Params {
	p := Assumption3Quick
	p.Images = data.Synthetic
	p.Seeds, p.Alphas, p.Train = 3, 2, 6
	p.Activations = []string{"tanh", "softplus"}
	p.DeepActivations = []string{"tanh", "sin"}
	p.Widths, p.Trains, p.DeepWidths = []int{64, 1024}, []int{4, 8}, []int{16, 64}
	p.Depths, p.Gains, p.DeepTrain = []int{1, 2, 3}, []float64{1}, 6
	return p
}

func TestAssumption3IsReadBackAndHolds(t *testing.T) {
	ctx, p := emptyStore(t), tinyAssumption3()
	first, err := Assumption3(ctx, p)
	require.NoError(t, err)
	again, err := Assumption3(ctx, p)
	require.NoError(t, err)
	require.Equal(t, first.Records(), again.Records())
	require.Equal(t, runs.ClaimTable(first.Check()), runs.ClaimTable(again.Check()))
	require.NoError(t, first.Figure().Validate())
	for _, c := range first.Check() {
		require.NotEqual(t, runs.Fails, c.Holds, c.Name)
	}
	for _, record := range withInputs(first, "lambda", onSphere).Records() {
		for i, found := range record.Series["simplex"] {
			require.LessOrEqual(t, record.Series["certified"][i], record.Series["sphere"][i])
			require.LessOrEqual(t, record.Series["sphere"][i], found)
		}
	}
}

func TestAssumption3ClaimsFollowTheNumbers(t *testing.T) {
	r, err := Assumption3(emptyStore(t), tinyAssumption3())
	require.NoError(t, err)
	for _, record := range r.Groups.Records() {
		for name, values := range record.Series {
			for i := range values {
				switch name {
				case "sup": // no decrease
					values[i] = float64(1 + i)
				case "smallest": // no growth
					values[i] = 1
				case "simplex", "certified":
					values[i] = -1
				case "lipschitz": // faster than any exponential
					values[i] = math.Exp(20 * float64(i*i))
				}
			}
		}
		for name := range record.Values {
			record.Values[name] = 0.1 // no identity, no zero eigenvalue
		}
	}
	failing := 0
	for _, c := range r.Check() {
		if c.Holds == runs.Fails {
			failing++
		} else { // λ_max, and the two that ask for a positive eigenvalue
			require.Regexp(t, "K_α scales|K_α ≻ 0", c.Name)
		}
	}
	require.Equal(t, len(r.Check())-3, failing)
}

func TestAssumption3WrongParameters(t *testing.T) {
	p := Assumption3Quick
	p.Activations = []string{"tanh", "tanh"}
	p.DeepActivations = []string{"tan"}
	p.Ridge, p.Gains, p.C0s = 0, []float64{-1}, []float64{1}
	p.Depths = []int{1, 2}
	_, err := Assumption3(t.Context(), p)
	var usage *catalog.UsageError
	require.ErrorAs(t, err, &usage)
	for _, part := range []string{"no duplicates", "unknown activation", "Ridge", "Gains", "C0s", "Depths"} {
		require.ErrorContains(t, err, part)
	}
}

func TestAssumption3StopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(emptyStore(t))
	cancel()
	_, err := Assumption3(ctx, tinyAssumption3())
	require.ErrorIs(t, err, context.Canceled)
}
