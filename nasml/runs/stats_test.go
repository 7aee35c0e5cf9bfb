package runs

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/trial"
)

func summary(t require.TestingT, xs []float64, confidence float64) Summary {
	s, err := Summarize(xs, confidence)
	require.NoError(t, err)
	return s
}

// Two-sided quantiles of Student's t, from the table in NIST/SEMATECH
// e-Handbook of Statistical Methods, section 1.3.6.7.2.
func TestSummarizeAgainstTheTTable(t *testing.T) {
	for _, c := range []struct {
		n          int
		confidence float64
		t          float64
	}{
		{2, 0.95, 12.706}, {3, 0.90, 2.920}, {5, 0.95, 2.776}, {10, 0.99, 3.250}, {20, 0.95, 2.093}, {31, 0.80, 1.310},
	} {
		xs := make([]float64, c.n)
		for i := range xs {
			xs[i] = float64(i * i)
		}
		s := summary(t, xs, c.confidence)
		quantile := (float64(s.Hi) - s.Mean) / (float64(s.Std) / math.Sqrt(float64(c.n)))
		require.InDelta(t, c.t, quantile, 0.0005, "n = %d, confidence %v", c.n, c.confidence)
	}
}

func TestSummarizeByHand(t *testing.T) {
	xs := []float64{6, 2, 4}
	s := summary(t, xs, 0.95)
	require.Equal(t, []float64{6, 2, 4}, xs, "the values stay in their order")
	require.Equal(t, 3, s.N)
	require.Equal(t, 4.0, s.Mean)
	require.Equal(t, 4.0, s.Median)
	require.Equal(t, Number(2), s.Std) // √((4+4+0)/2)
	require.Equal(t, "n-1", s.Divisor)
	require.Equal(t, "mean", s.Of)
	require.InDelta(t, 4-4.303*2/math.Sqrt(3), float64(s.Lo), 1e-3)
	require.Empty(t, s.Warnings)
	require.Contains(t, s.String(), "4, std 2 (divisor n-1), n = 3, 95 % interval of the mean [-0.9683, 8.968]")

	p := s.StdPopulation()
	require.InDelta(t, math.Sqrt(8.0/3), float64(p.Std), 1e-15)
	require.Equal(t, "n", p.Divisor)
	require.Equal(t, p, p.StdPopulation(), "not scaled twice")
}

func TestOneValueHasNoInterval(t *testing.T) {
	s := summary(t, []float64{5}, 0.95)
	require.Equal(t, 5.0, s.Mean)
	require.False(t, s.Lo.Valid() || s.Hi.Valid() || s.Std.Valid())
	require.Equal(t, []string{"need >= 2 samples for a confidence interval of the mean, have 1"}, s.Warnings)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(data), `"lo":null,"hi":null`)
	require.Equal(t, Number(0), s.StdPopulation().Std)
}

func TestEqualValuesWarn(t *testing.T) {
	s := summary(t, []float64{5, 5, 5}, 0.95)
	require.Equal(t, Number(5), s.Lo)
	require.Equal(t, Number(5), s.Hi)
	require.Contains(t, s.Warnings[0], "the same in all 3 runs")
}

func TestSummarizeErrors(t *testing.T) {
	_, err := Summarize(nil, 0.95)
	require.ErrorContains(t, err, "no values")
	_, err = Summarize([]float64{1, math.NaN()}, 0.95)
	require.ErrorContains(t, err, "value 1 of 2 is NaN")
	for _, c := range []float64{0, 1, 95, math.NaN()} {
		_, err = Summarize([]float64{1, 2}, c)
		require.ErrorContains(t, err, "expected a number between 0 and 1")
	}
	_, err = MeanDiff([]float64{1}, []float64{1, 2}, 0.95)
	require.ErrorContains(t, err, "1 and 2 values")
}

// Shifting and scaling the values shifts and scales what describes them.
func TestSummarizeIsEquivariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-100, 100), 2, 30).Draw(t, "xs")
		a := rapid.Float64Range(0.1, 10).Draw(t, "a")
		b := rapid.Float64Range(-100, 100).Draw(t, "b")
		ys := make([]float64, len(xs))
		for i, x := range xs {
			ys[i] = a*x + b
		}
		s, want := summary(t, ys, 0.9), summary(t, xs, 0.9)
		require.InDelta(t, a*want.Mean+b, s.Mean, 1e-9)
		require.InDelta(t, a*want.Median+b, s.Median, 1e-9)
		require.InDelta(t, a*float64(want.Std), float64(s.Std), 1e-9)
		require.InDelta(t, a*float64(want.Lo)+b, float64(s.Lo), 1e-8)
		require.InDelta(t, a*float64(want.Hi)+b, float64(s.Hi), 1e-8)
	})
}

// Theory against simulation: a 95 % interval holds the mean in 95 % of samples.
func TestIntervalCovers(t *testing.T) {
	rng := trial.RNG(1, "coverage")
	const samples = 4000
	covered := 0
	for range samples {
		xs := make([]float64, 5)
		for i := range xs {
			xs[i] = rng.NormFloat64()
		}
		s := summary(t, xs, 0.95)
		if s.Lo <= 0 && 0 <= s.Hi {
			covered++
		}
	}
	require.InDelta(t, 0.95, float64(covered)/samples, 0.014) // four standard errors
}

func TestPairedComparison(t *testing.T) {
	a := []float64{1.1, 5.2, 9.1, 3.2, 7.1} // b plus 0.1 or 0.2: unpaired, the spread would hide it
	b := []float64{1.0, 5.0, 9.0, 3.0, 7.0}
	d, err := MeanDiff(a, b, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 0.14, d.Mean, 1e-12)
}

// Worked by hand: variances 20/3 and 1, so 5/3 and 1/3 of the means.
func TestDifferenceOfIndependentMeans(t *testing.T) {
	d, err := WelchDiff([]float64{2, 4, 6, 8}, []float64{1, 2, 3}, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 3, d.Mean, 1e-12)
	require.InDelta(t, math.Sqrt(20./12+1./3), float64(d.Std), 1e-12)
	const nu = 4 / (25./27 + 1./18) // (5/3 + 1/3)² / ((5/3)²/3 + (1/3)²/2)
	half := float64(d.Hi) - d.Mean
	require.InDelta(t, (1+0.95)/2, distuv.StudentsT{Sigma: 1, Nu: nu}.CDF(half/float64(d.Std)), 1e-12)
	require.InDelta(t, d.Mean-half, float64(d.Lo), 1e-12)

	printed := Summary{N: 500, Mean: 93.92, Std: 0.30}
	same, err := printed.Minus(printed, 0.95)
	require.NoError(t, err)
	require.InDelta(t, 0.30*math.Sqrt(2./500), float64(same.Std), 1e-12)
	_, err = printed.Minus(Summary{N: 1, Mean: 93}, 0.95)
	require.ErrorContains(t, err, "500 and 1 values")
	_, err = printed.Minus(printed, 1)
	require.ErrorContains(t, err, "confidence is 1")
}

// Theory against simulation: with unequal deviations and numbers the interval holds
// the difference in 95 % of samples, where one of equal deviations would not.
func TestWelchsIntervalCovers(t *testing.T) {
	rng := trial.RNG(7, "welch")
	const samples = 4000
	holds := 0
	for range samples {
		a, b := make([]float64, 5), make([]float64, 40)
		for i := range a {
			a[i] = 3 + 4*rng.NormFloat64()
		}
		for i := range b {
			b[i] = 1 + rng.NormFloat64()
		}
		d, err := WelchDiff(a, b, 0.95)
		require.NoError(t, err)
		if d.Lo <= 2 && d.Hi >= 2 {
			holds++
		}
	}
	require.InDelta(t, 0.95, float64(holds)/samples, 0.015)
}

// The values come back in their order, and in percent with all that is said of them.
func TestRunsOfASummary(t *testing.T) {
	values := []float64{3, 1, 2}
	s, err := Summarize(values, 0.95)
	require.NoError(t, err)
	percent, err := Summarize([]float64{300, 100, 200}, 0.95)
	require.NoError(t, err)
	require.Equal(t, values, s.Runs())
	require.Equal(t, []float64{300, 100, 200}, s.Percent().Runs())
	require.InDelta(t, float64(percent.Hi), float64(s.Percent().Hi), 1e-12)
	require.Equal(t, values, s.Runs())
}
