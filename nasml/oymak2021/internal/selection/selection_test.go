package selection

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/oymak2021/internal/instance"
)

// One map is α* itself: nothing is chosen, the interpolant fits its labels, and
// without noise yᵀK⁻¹y is at most ‖θ*‖² = 1.
func TestOneMapIsItsOwnChoice(t *testing.T) {
	c := Case{
		Part: "select", Instance: instance.Params{Inputs: 12, Features: 15, Maps: 1, Decay: 1}, Train: 7,
		Validation: []int{3, 6}, Candidates: 1, Pool: 50, Repeats: 4,
	}
	r, err := c.Run(t.Context(), 3)
	require.NoError(t, err)
	require.InDelta(t, r.Values["best"], r.Values["average"], 1e-15)
	for _, risk := range r.Series["risk"] {
		require.InDelta(t, r.Values["best"], risk, 1e-15)
	}
	require.Less(t, r.Values["residual"], 1e-10)
	require.LessOrEqual(t, r.Values["star"], 1.0)
	require.InDelta(t, r.Values["star"], r.Values["complexity"], 1e-12)
}

// In Proposition 1 with one map of full rank the chosen risk is that of least
// squares: it comes down to the limit, and choosing costs nothing.
func TestOneMapComesDownToItsLimit(t *testing.T) {
	c := Case{
		Part: "prop1", Instance: instance.Params{Inputs: 6, Features: 3, Maps: 1, Flips: 0.05},
		Validation: []int{20, 2000}, Fixed: 30, Candidates: 1, Repeats: 5,
	}
	r, err := c.Run(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0}, r.Series["extra"])
	require.InDeltaSlice(t, r.Series["train"], r.Series["end"], 1e-12)
	require.Positive(t, r.Series["end"][1])
	require.Less(t, r.Series["end"][1], r.Series["end"][0]/10)
	require.Zero(t, r.Values["violations"])
}
