package roberts

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/runs"
)

func tinyProblems(h int) problems {
	return problems{
		Activations: pool, Operations: h, Inputs: 3, Width: 4, Spread: 2, Points: 20,
		Concentration: 1, Count: 30, Violation: None,
	}
}

func simulate(t *testing.T, p problems, seed uint64) runs.Result {
	t.Helper()
	b, err := backend.Open()
	require.NoError(t, err)
	es := &evaluators{b, map[string]*evaluator{}}
	defer es.close()
	r, err := p.simulate(t.Context(), es, seed, func(int) {})
	require.NoError(t, err)
	return r
}

// A violation of size 0 is none, and leaves every number as it is: the problems
// are the same.
func TestViolationsOfSizeZeroChangeNothing(t *testing.T) {
	want := simulate(t, tinyProblems(3), 7)
	require.EqualValues(t, 30, want.Values["problems"])
	require.EqualValues(t, 90, want.Values["pairs"])
	for _, kind := range []string{NoisyLabels, WrongWeights, WrongAlpha} {
		p := tinyProblems(3)
		p.Violation = kind
		require.Equal(t, want, simulate(t, p, 7), kind)
	}
}

// Large violations do refute the conclusion: the check can fail.
func TestViolationsRefuteTheConclusion(t *testing.T) {
	for _, kind := range []string{NoisyLabels, WrongWeights, WrongAlpha, SignLabels} {
		p := tinyProblems(2)
		p.Violation, p.Level = kind, 1
		if kind == NoisyLabels {
			p.Level = 5
		}
		v := simulate(t, p, 3).Values
		require.Less(t, v["condition_right"], v["condition"], kind)
		require.Equal(t, v["guaranteed"], v["guaranteed_right"], kind)
		require.Zero(t, v["realized"], kind)
	}
}

func TestAlphaOnTheBoundary(t *testing.T) {
	p := tinyProblems(4)
	p.Violation = NotInterior
	v := simulate(t, p, 3).Values
	require.Zero(t, v["interior"])
	require.Equal(t, v["problems"], v["realized"])
	require.Equal(t, v["condition"], v["condition_right"])
	require.Positive(t, v["condition"])
}

// The number of problems in a record changes none of them.
func TestProblemsDoNotDependOnTheirNumber(t *testing.T) {
	p := tinyProblems(3)
	few := simulate(t, p, 1).Series["losses"]
	p.Count = 55
	require.Equal(t, few, simulate(t, p, 1).Series["losses"][:len(few)])
}

// identity − relu = min(z, 0), so that E D = ½ E min(z, 0)² = s²/4 over networks
// of any width.
func TestMeanDistanceBetweenActivations(t *testing.T) {
	b, err := backend.Open()
	require.NoError(t, err)
	p := tinyProblems(2)
	p.Only, p.Spread, p.Count = []string{"relu", "identity"}, 1.5, 1000
	es := &evaluators{b, map[string]*evaluator{}}
	defer es.close()
	e, err := es.of(p)
	require.NoError(t, err)
	var distances []float64
	for first := 0; first < p.Count; first += e.count {
		reports, err := p.reports(e, 1, first)
		require.NoError(t, err)
		for _, r := range reports {
			distances = append(distances, r.Between[0][1])
		}
	}
	mean, std := stat.MeanStdDev(distances, nil)
	require.InDelta(t, sq(1.5)/4, mean, 4*std/math.Sqrt(float64(len(distances))))
}

func TestProportion(t *testing.T) {
	_, lo, hi := proportion{5, 10, 0.95, 1}.Bounds()
	require.InDelta(t, 0.1871, lo, 1e-4) // Clopper and Pearson's tables
	require.InDelta(t, 0.8129, hi, 1e-4)
	_, lo, hi = proportion{0, 10, 0.95, 1}.Bounds()
	require.Zero(t, lo)
	require.InDelta(t, 1-math.Pow(0.025, 0.1), hi, 1e-12)
	_, wide, _ := proportion{15, 30, 0.95, 3}.Bounds()
	require.InDelta(t, 0.1871, wide, 1e-4, "three of a kind count once")
	y, _, _ := proportion{0, 0, 0.95, 1}.Bounds()
	require.True(t, math.IsNaN(y))
	require.Equal(t, runs.NotKnown, proportion{0, 0, 0.95, 1}.always("", "").Holds)
	require.Equal(t, runs.Fails, proportion{99, 100, 0.95, 1}.always("", "").Holds)
	require.Equal(t, runs.NotKnown, proportion{55, 100, 0.95, 1}.above(0.5, "", "").Holds)
	require.Equal(t, runs.Fails, proportion{10, 100, 0.95, 1}.above(0.5, "", "").Holds)
}

// The classes of the simplex from D alone are those of the checker.
func TestSimplexMapAgainstChecker(t *testing.T) {
	g := lines(10, 1, 0)
	d := mustCheck(t, uniform(len(g)), g, g[0]).Between
	seen := map[int]int{}
	for class, points := range newSimplexMap([]string{"a", "b", "c"}, d, 15).points {
		for _, alpha := range points {
			r := mustCheck(t, alpha, g, combine(alpha, g))
			first, _ := r.Conditions()
			want := 2
			if r.ArgMaxRight() {
				want = 1
			}
			if first == 2 {
				want = 0
			}
			require.Equal(t, want, class, "α = %v", alpha)
			seen[class]++
		}
	}
	require.Len(t, seen, 3, "each class has points")
	require.Equal(t, 15*16/2, seen[0]+seen[1]+seen[2])
}
