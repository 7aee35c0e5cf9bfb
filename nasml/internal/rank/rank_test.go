package rank

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"github.com/nasml/lab/nasml/trial"
)

// SciPy 1.17.1: kendalltau and spearmanr.
func TestRankCorrelationsAreSciPys(t *testing.T) {
	for _, c := range []struct {
		x, y     []float64
		tau, rho float64
	}{
		{[]float64{12, 2, 1, 12, 2}, []float64{1, 4, 7, 1, 0}, -0.4714045207910316, -0.5407380704358752},
		{
			[]float64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3},
			[]float64{2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5},
			0.1009216784699164, 0.1270682438511219,
		},
	} {
		tau, err := KendallTauB(c.x, c.y)
		require.NoError(t, err)
		require.InDelta(t, c.tau, tau, 1e-15)
		rho, err := SpearmanRho(c.x, c.y)
		require.NoError(t, err)
		require.InDelta(t, c.rho, rho, 1e-15)
	}
	require.Equal(t, []float64{2, 4.5, 1, 4.5, 3}, Ranks([]float64{-1, 7, -2, 7, 0}))
}

// drawPairs draws pairs with many ties, or without.
func drawPairs(t *rapid.T, ties bool) (x, y []float64) {
	n := rapid.IntRange(2, 40).Draw(t, "n")
	if !ties {
		for i := range n {
			x = append(x, float64(i))
		}
		return rapid.Permutation(x).Draw(t, "x"), rapid.Permutation(x).Draw(t, "y")
	}
	few := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-3, 3).Draw(t, "")) })
	return rapid.SliceOfN(few, n, n).Draw(t, "x"), rapid.SliceOfN(few, n, n).Draw(t, "y")
}

// The definition, pair by pair; without ties gonum's τ_a.
func TestKendallIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ties := rapid.Bool().Draw(t, "ties")
		x, y := drawPairs(t, ties)
		tau, err := KendallTauB(x, y)
		if slices.Min(x) == slices.Max(x) || slices.Min(y) == slices.Max(y) {
			require.ErrorContains(t, err, "has no ranks to correlate")
			return
		}
		require.NoError(t, err)
		excess, inX, inY := 0.0, 0.0, 0.0
		for i := range x {
			for j := range i {
				a, b := sign(x[i]-x[j]), sign(y[i]-y[j])
				excess, inX, inY = excess+a*b, inX+a*a, inY+b*b
			}
		}
		require.InDelta(t, excess/math.Sqrt(inX*inY), tau, 1e-14)
		if !ties {
			require.InDelta(t, stat.Kendall(x, y, nil), tau, 1e-14)
		}
	})
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// Rank correlations do not see increasing functions, change sign with falling
// ones, are symmetric, lie in [−1, 1], and so do their intervals.
func TestRankCorrelationInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawPairs(t, rapid.Bool().Draw(t, "ties"))
		name := rapid.SampledFrom([]string{"kendall", "spearman"}).Draw(t, "name")
		a, err := Correlate(name, x, y, 0.95)
		if err != nil {
			return
		}
		estimate := func(x, y []float64) float64 {
			r, err := Correlations[name].Estimate(x, y)
			require.NoError(t, err)
			return r
		}
		up, down := make([]float64, len(x)), make([]float64, len(x))
		for i := range x {
			up[i], down[i] = math.Exp(x[i]/10), -x[i]*x[i]*x[i]
		}
		require.InDelta(t, a.Estimate, estimate(up, y), 1e-14)
		require.InDelta(t, -a.Estimate, estimate(down, y), 1e-14)
		require.InDelta(t, a.Estimate, estimate(y, x), 1e-14)
		require.InDelta(t, 1, estimate(x, x), 1e-15)
		require.LessOrEqual(t, math.Abs(a.Estimate), 1.0)
		if a.Lo.Valid() {
			require.LessOrEqual(t, -1.0, float64(a.Lo))
			require.LessOrEqual(t, a.Lo, a.Hi)
			require.LessOrEqual(t, float64(a.Hi), 1.0)
		} else {
			require.NotEmpty(t, a.Warnings)
		}
	})
}

// On jointly normal pairs of correlation r the population has τ = 2/π·asin r and
// ρ = 6/π·asin(r/2): the intervals have them in as many samples as they say,
// up to the error of 400 samples (±0.033 at three deviations) and 0.01 of the
// approximations.
func TestIntervalsCover(t *testing.T) {
	const r, n, samples = 0.6, 60, 400
	truth := map[string]float64{"kendall": 2 / math.Pi * math.Asin(r), "spearman": 6 / math.Pi * math.Asin(r/2)}
	covered := map[string]int{}
	for seed := range uint64(samples) {
		rng := trial.RNG(seed, "pairs")
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64()
			y[i] = r*x[i] + math.Sqrt(1-r*r)*rng.NormFloat64()
		}
		for name, want := range truth {
			a, err := Correlate(name, x, y, 0.95)
			require.NoError(t, err)
			if float64(a.Lo) <= want && want <= float64(a.Hi) {
				covered[name]++
			}
		}
	}
	require.Len(t, covered, 2)
	for what, k := range covered {
		require.InDelta(t, 0.95, float64(k)/samples, 0.043, what)
	}
}

func TestCorrelateRefuses(t *testing.T) {
	x, y := []float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}
	for want, c := range map[string]struct {
		name       string
		x, y       []float64
		confidence float64
	}{
		`found the correlation "pearson", expected one of ["kendall" "spearman"]`: {"pearson", x, y, 0.95},
		"confidence is 1":                            {"kendall", x, y, 1},
		"found 5 and 4 values":                       {"kendall", x, y[:4], 0.95},
		"found 1 and 1 values":                       {"spearman", x[:1], y[:1], 0.95},
		"pair 1 of 2 is (2, NaN)":                    {"spearman", x[:2], []float64{1, math.NaN()}, 0.95},
		"all 2 values of one side are 3, which has":  {"kendall", x[:2], []float64{3, 3}, 0.95},
		"pair 0 of 2 is (+Inf, 1), expected finite ": {"kendall", []float64{math.Inf(1), 0}, []float64{1, 2}, 0.95},
	} {
		_, err := Correlate(c.name, c.x, c.y, c.confidence)
		require.ErrorContains(t, err, want)
	}
	few, err := Correlate("kendall", x[:4], y[:4], 0.95)
	require.NoError(t, err)
	require.False(t, few.Lo.Valid() || few.Hi.Valid())
	require.Equal(t, []string{"need > 4 pairs for Fisher's interval of kendall's correlation, have 4"}, few.Warnings)
	alike, err := Correlate("spearman", x, x, 0.95)
	require.NoError(t, err)
	require.Equal(t, 1.0, alike.Estimate)
	require.False(t, alike.Lo.Valid())
	require.Contains(t, alike.Warnings[0], "all 5 pairs are ordered alike")
}

func BenchmarkKendallTauB(b *testing.B) {
	rng := trial.RNG(1)
	x, y := make([]float64, 10_000), make([]float64, 10_000)
	for i := range x {
		x[i], y[i] = rng.Float64(), rng.Float64()
	}
	for b.Loop() {
		if _, err := KendallTauB(x, y); err != nil {
			b.Fatal(err)
		}
	}
}
