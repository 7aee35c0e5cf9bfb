package verdict

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

// Four seeds whose interval of plain correlations ends at 1.002.
func TestAnIntervalOfCorrelationsStaysBelow1(t *testing.T) {
	rho := []float64{0.80, 0.85, 0.93, 0.96}
	plain, err := runs.Summarize(rho, 0.95)
	require.NoError(t, err)
	require.Greater(t, float64(plain.Hi), 1.0)
	s, err := Correlations(rho, 0.95)
	require.NoError(t, err)
	require.Less(t, float64(s.Hi), 1.0)
	z := math.Atanh(0.80) + math.Atanh(0.85) + math.Atanh(0.93) + math.Atanh(0.96)
	require.InDelta(t, math.Tanh(z/4), s.Mean, 1e-12)
	require.InDelta(t, float64(plain.Std), float64(s.Std), 1e-12)
	_, err = Correlations([]float64{1, 0.5}, 0.95)
	require.ErrorContains(t, err, "no Fisher transform")
	one, err := Correlations([]float64{0.5}, 0.95)
	require.NoError(t, err)
	require.False(t, one.Lo.Valid())
}

// Theory against simulation: correlations of 12 jointly normal pairs with ρ = 0.9,
// five seeds. Fisher's z has a bias of ρ/2(n−1), a third of its standard error here.
func TestFishersIntervalCovers(t *testing.T) {
	rng := trial.RNG(5, "fisher")
	const samples, pairs, rho = 2000, 12, 0.9
	holds := 0
	for range samples {
		var all []float64
		for range 5 {
			var xy, xx, yy, x1, y1 float64
			for range pairs {
				x := rng.NormFloat64()
				y := rho*x + math.Sqrt(1-rho*rho)*rng.NormFloat64()
				xy, xx, yy, x1, y1 = xy+x*y, xx+x*x, yy+y*y, x1+x, y1+y
			}
			all = append(all, (xy-x1*y1/pairs)/math.Sqrt((xx-x1*x1/pairs)*(yy-y1*y1/pairs)))
		}
		s, err := Correlations(all, 0.95)
		require.NoError(t, err)
		if float64(s.Lo) <= rho && rho <= float64(s.Hi) {
			holds++
		}
	}
	require.InDelta(t, 0.95, float64(holds)/samples, 0.03)
}

// The interval of ratios is positive, and that of the inverse ratios is the inverse.
func TestRatios(t *testing.T) {
	s, err := Ratios([]float64{0.5, 8, 1}, 0.95)
	require.NoError(t, err)
	require.InDelta(t, math.Cbrt(4), s.Mean, 1e-12)
	require.Positive(t, float64(s.Lo))
	inverse, err := Ratios([]float64{2, 0.125, 1}, 0.95)
	require.NoError(t, err)
	require.InEpsilon(t, 1/s.Mean, inverse.Mean, 1e-12)
	require.InEpsilon(t, 1/float64(s.Hi), float64(inverse.Lo), 1e-12)
	_, err = Ratios([]float64{1, 0}, 0.95)
	require.ErrorContains(t, err, "ratio 2 of 2 is 0, expected a positive one")
}
