package verdict

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/nasml/lab/nasml/internal/steady" // the same cases in every run
	"github.com/nasml/lab/nasml/runs"
	"github.com/nasml/lab/nasml/trial"
)

func summary(t *testing.T, xs ...float64) runs.Summary {
	t.Helper()
	s, err := runs.Summarize(xs, 0.95)
	require.NoError(t, err)
	return s
}

func claim() runs.Claim { return Claim("name", "source") }

func TestOwnClaimsSaySo(t *testing.T) {
	require.Equal(t, "ours, on Theorem 1", Claim("own: more", "Theorem 1").Source)
	require.Equal(t, "Theorem 1", Claim("more", "Theorem 1").Source)
	require.Equal(t, "ours, not in the paper", Claim("control: more", "ours, not in the paper").Source)
}

func TestWithinHasThreeVerdicts(t *testing.T) {
	s := summary(t, 0.9, 1, 1.1) // mean 1, interval 1 ± 0.248
	for _, c := range []struct {
		lo, hi float64
		want   runs.Verdict
	}{
		{0.7, 1.3, runs.Holds}, {0.9, 1.3, runs.NotKnown}, {1.3, 2, runs.Fails}, {-1, 0.7, runs.Fails},
		{math.Inf(-1), 1.3, runs.Holds}, {math.Inf(-1), 1.1, runs.NotKnown}, {1.3, math.Inf(1), runs.Fails},
	} {
		got := Within(claim(), s, nil, c.lo, c.hi)
		require.Equal(t, c.want, got.Holds, "[%v, %v]", c.lo, c.hi)
		require.InDelta(t, 1, float64(got.Ours), 1e-15)
		require.Equal(t, c.want == runs.NotKnown, got.Note != "")
	}
}

func TestANumberWithoutNoiseIsJudgedAsItIs(t *testing.T) {
	require.Equal(t, runs.Holds, AtMost(claim(), summary(t, 0, 0, 0), nil, 0).Holds)
	require.Equal(t, runs.Fails, AtLeast(claim(), summary(t, 2, 2), nil, 3).Holds)
}

func TestWhatHasNoIntervalIsUndecided(t *testing.T) {
	c := AtMost(claim(), summary(t, 1), nil, 5)
	require.Equal(t, runs.NotKnown, c.Holds)
	require.Contains(t, c.Note, "one value has no interval")
	c = AtMost(claim(), runs.Summary{}, errors.New("no seeds"), 5)
	require.Equal(t, "not run: no seeds", c.Note)
	require.False(t, c.Ours.Valid())
}

func TestBetweenSaysHowFar(t *testing.T) {
	s, inf := summary(t, 0.9, 1, 1.1), math.Inf(1)
	for _, c := range []struct {
		lo, hi, tolerance float64
		want              runs.Verdict
	}{
		{0.5, 1.5, 0.7, runs.Holds}, {-inf, 1.5, 0.7, runs.Holds}, {0.7, inf, 0.1, runs.Holds},
		{1.5, 2, 1.2, runs.Fails},
	} {
		got := Between(claim(), s, nil, 0.8, c.lo, c.hi)
		require.Equal(t, c.want, got.Holds)
		require.InDelta(t, 0.8, float64(got.Paper), 0)
		require.InDelta(t, c.tolerance, float64(got.Tolerance), 1e-15)
	}
	require.False(t, Between(claim(), s, nil, 0, -inf, inf).Tolerance.Valid())
}

func TestOverSeeds(t *testing.T) {
	s, err := OverSeeds(3, 0.95, func(seed int) (float64, error) { return float64(seed), nil })
	require.NoError(t, err)
	require.Equal(t, summary(t, 0, 1, 2), s)
	_, err = OverSeeds(3, 0.95, func(seed int) (float64, error) {
		return Slope([]float64{1, 2}, []float64{1, float64(1 - seed)})
	})
	require.ErrorContains(t, err, "seed 1: the point (2, 0) has no logarithm")
}

func TestGreater(t *testing.T) {
	a := []float64{2, 3, 4, 5}
	shift := func(by ...float64) []float64 {
		b := make([]float64, len(a))
		for i := range a {
			b[i] = a[i] - by[i]
		}
		return b
	}
	require.Equal(t, runs.Holds, Greater(claim(), a, shift(1, 1.1, 0.9, 1), 0.95).Holds)
	require.Equal(t, runs.Fails, Greater(claim(), shift(1, 1.1, 0.9, 1), a, 0.95).Holds)
	require.Equal(t, runs.NotKnown, Greater(claim(), a, shift(1, -1, 0.5, -0.4), 0.95).Holds,
		"not significantly greater is not a failure")
	require.Equal(t, runs.Fails, Greater(claim(), a, a, 0.95).Holds, "equal is not greater")
	ends := Greater(claim(), []float64{0, 1}, []float64{0, 0}, 0.5) // mean 1/2, half-width exactly 1/2
	require.Zero(t, float64(ends.Lo))
	require.Equal(t, runs.NotKnown, ends.Holds, "an interval that ends at 0 refutes nothing")
	require.Contains(t, Greater(claim(), nil, nil, 0.95).Note, "not run")
	require.Contains(t, Greater(claim(), a, a[:2], 0.95).Note, "not run")
}

func TestStatementsWithoutException(t *testing.T) {
	require.Equal(t, runs.Holds, None(claim(), 0, 10).Holds)
	require.Equal(t, runs.Fails, None(claim(), 1, 1e6).Holds)
	require.Equal(t, "violated in 1 of 16 cases", None(claim(), 1, 16).Note)
	require.Equal(t, runs.NotKnown, None(claim(), 0, 0).Holds)
	require.Equal(t, runs.Holds, Every(claim(), []float64{1, 2}, 2).Holds)
	require.Equal(t, runs.Fails, Every(claim(), []float64{1, 2.1}, 2).Holds)
	require.Equal(t, runs.NotKnown, Every(claim(), []float64{1, math.NaN()}, 2).Holds)
	require.Equal(t, runs.Holds, Exactly(claim(), 1+1e-13, 1, 1e-12).Holds)
	require.Equal(t, runs.Fails, Exactly(claim(), math.NaN(), 1, 1e-12).Holds)
}

func TestSlopeOfAPowerIsItsExponent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exponent := rapid.Float64Range(-4, 4).Draw(t, "exponent")
		scale := rapid.Float64Range(1e-3, 1e3).Draw(t, "scale")
		x := []float64{1, 3, 10, 40}
		var y []float64
		for _, v := range x {
			y = append(y, scale*math.Pow(v, exponent))
		}
		slope, err := Slope(x, y)
		require.NoError(t, err)
		require.InDelta(t, exponent, slope, 1e-10)
	})
}

func TestWhatHasNoSlope(t *testing.T) {
	for want, points := range map[string][2][]float64{
		"two points":   {{1}, {1}},
		"1 y":          {{1, 2}, {1}},
		"no logarithm": {{1, 2}, {1, 0}},
		"same x":       {{2, 2}, {1, 3}},
	} {
		_, err := Slope(points[0], points[1])
		require.ErrorContains(t, err, want)
		_, err = Slopes(points[0], [][]float64{points[1]}, 0.95)
		require.Error(t, err)
	}
}

// The jackknife of a mean is the mean, with Student's interval.
func TestJackknifeOfAMean(t *testing.T) {
	rng := trial.RNG(1, "jackknife")
	var rows [][]float64
	var values []float64
	for range 12 {
		v := rng.NormFloat64()
		rows, values = append(rows, []float64{v, 7}), append(values, v)
	}
	got, err := Jackknife(rows, 0.9, func(means []float64) (float64, error) {
		require.InDelta(t, 7, means[1], 1e-12)
		return means[0], nil
	})
	require.NoError(t, err)
	want, err := runs.Summarize(values, 0.9)
	require.NoError(t, err)
	require.InDelta(t, want.Mean, got.Mean, 1e-12)
	require.InDelta(t, float64(want.Lo), float64(got.Lo), 1e-12)
	require.InDelta(t, float64(want.Hi), float64(got.Hi), 1e-12)

	_, err = Jackknife(rows[:1], 0.9, nil)
	require.ErrorContains(t, err, "two seeds")
	_, err = Jackknife([][]float64{{1, 2}, {1}}, 0.9, nil)
	require.ErrorContains(t, err, "seed 1 has 1 points")
}

// Means over noisy seeds follow the power where single seeds would not.
func TestSlopeOfMeans(t *testing.T) {
	rng := trial.RNG(2, "slope of means")
	x := []float64{10, 100, 1000}
	var curves [][]float64
	for range 200 {
		var row []float64
		for _, v := range x {
			row = append(row, rng.ExpFloat64()/math.Sqrt(v))
		}
		curves = append(curves, row)
	}
	s, err := SlopeOfMeans(x, curves, 0.99)
	require.NoError(t, err)
	require.Less(t, float64(s.Lo), -0.5)
	require.Greater(t, float64(s.Hi), -0.5)
	require.Less(t, float64(s.Hi-s.Lo), 0.3)
}

// Clopper and Pearson's table: 8 of 10 at 95 % is [0.4439, 0.9748].
func TestShareHasClopperAndPearsonsInterval(t *testing.T) {
	y, lo, hi := Share{Yes: 8, Of: 10, Confidence: 0.95}.Bounds()
	require.InDelta(t, 0.8, y, 1e-15)
	require.InDelta(t, 0.4439, lo, 5e-5)
	require.InDelta(t, 0.9748, hi, 5e-5)
	_, lo, hi = Share{Yes: 0, Of: 20, Confidence: 0.95}.Bounds()
	require.Zero(t, lo)
	require.InDelta(t, 1-math.Pow(0.025, 1.0/20), hi, 1e-9) // closed form
	_, wide, _ := Share{Yes: 80, Of: 100, Confidence: 0.95, Alike: 10}.Bounds()
	require.InDelta(t, 0.4439, wide, 5e-5, "ten draws of ten cases each count as ten")
}

func TestVerdictsOfShares(t *testing.T) {
	all, most, none := Share{
		Yes:        50,
		Of:         50,
		Confidence: 0.95,
	}, Share{
		Yes:        40,
		Of:         50,
		Confidence: 0.95,
	}, Share{
		Confidence: 0.95,
	}
	require.Equal(t, runs.Holds, all.Always(claim()).Holds)
	require.Equal(t, runs.Fails, most.Always(claim()).Holds)
	require.Equal(t, runs.NotKnown, none.Always(claim()).Holds)
	require.Equal(t, runs.Holds, most.Above(claim(), 0.5).Holds)
	require.Equal(t, runs.NotKnown, most.Above(claim(), 0.8).Holds)
	require.Equal(t, runs.Fails, most.Above(claim(), 0.95).Holds)
	require.Equal(t, runs.Fails, most.AtMost(claim(), 0.5).Holds)
	require.Equal(t, runs.Holds, Share{Yes: 0, Of: 1000, Confidence: 0.95}.AtMost(claim(), 0.05).Holds)
	require.Contains(t, none.AtMost(claim(), 1).Note, "not run")
	require.Equal(t, Share{Yes: 45, Of: 60, Confidence: 0.95}, most.Add(5, 10))
}

func TestAClaimSaysWhatIsAllowed(t *testing.T) {
	s := summary(t, 0.9, 1, 1.1)
	for want, c := range map[string]runs.Claim{
		"at most 2": AtMost(claim(), s, nil, 2), "at least 0.5": AtLeast(claim(), s, nil, 0.5),
		"above 0.5": Above(claim(), s, nil, 0.5), "below 2": Below(claim(), s, nil, 2),
		"above 0":             Greater(claim(), []float64{1, 2}, []float64{0, 2}, 0.95),
		"CI within ±0.5 of 1": Near(claim(), s, nil, 1, 0.5), "CI from 0.5 to 2": Between(claim(), s, nil, 1, 0.5, 2),
		"within ±1e-09 of 1": Exactly(claim(), 1, 1, 1e-9), "exactly 0": None(claim(), 0, 1),
		"every case at most 2": Every(claim(), []float64{1}, 2),
		"exactly 1":            Share{Yes: 1, Of: 1, Confidence: 0.95}.Always(claim()),
		"at most 0":            AtMost(claim(), runs.Summary{}, errors.New("no seeds"), 0),
	} {
		require.Equal(t, want, c.Allowed)
	}
}

func TestWarningsOfASummaryAreShown(t *testing.T) {
	require.Contains(t, AtMost(claim(), summary(t, 2, 2), nil, 3).Note, "the same in all 2 runs")
	require.Contains(t, AtMost(claim(), summary(t, 2), nil, 3).Note, "need >= 2 samples")
	require.Empty(t, AtMost(claim(), summary(t, 2, 2.1), nil, 3).Note)
}

func TestConfidenceOfAFamily(t *testing.T) {
	require.InDelta(t, 0.99, Family(0.95, 5), 1e-12)
	require.InDelta(t, 0.95, Family(0.95, 0), 1e-12)
}
