package runs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Example 1 of the usual comparison of Welch's test; the interval was found by
// integrating Student's density with ν = 27.8873 numerically.
func TestWelchDiff(t *testing.T) {
	a := []float64{27.5, 21, 19, 23.6, 17, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19, 21.7, 21.4}
	b := []float64{27.1, 22, 20.8, 23.4, 23.4, 23.5, 25.8, 22, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4}
	d, err := WelchDiff(a, b, 0.95)
	require.NoError(t, err)
	require.InDelta(t, -2.8333333, d.Mean, 1e-6)
	require.InDelta(t, -4.86802, float64(d.Lo), 1e-4)
	require.InDelta(t, -0.79864, float64(d.Hi), 1e-4)
	one, err := WelchDiff(a[:1], b, 0.95)
	require.NoError(t, err)
	require.False(t, one.Lo.Valid())
	_, err = WelchDiff(nil, b, 0.95)
	require.Error(t, err)
}
