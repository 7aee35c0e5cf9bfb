package mixture

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/nasml/lab/nasml/backend"
	"github.com/nasml/lab/nasml/trial"
)

var testPool = []string{"relu", "tanh", "identity", "sigmoid", "sin", "softplus", "square", "0.8*relu+0.2*identity"}

func tinyProblems(h int) Problems {
	return Problems{
		Activations: testPool, Operations: h, Inputs: 3, Width: 4, Spread: 2, Points: 20,
		Concentration: 1, Count: 30, Violation: None,
	}
}

func simulate(t *testing.T, p Problems, seed uint64) trial.Result {
	t.Helper()
	b, err := backend.Open()
	require.NoError(t, err)
	es := NewEvaluators(b)
	defer es.Close()
	r, err := p.Simulate(t.Context(), es, seed, func(int) {})
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
	es := NewEvaluators(b)
	defer es.Close()
	e, err := es.Of(p)
	require.NoError(t, err)
	var distances []float64
	for first := 0; first < p.Count; first += e.Count {
		reports, err := p.reports(e, 1, first)
		require.NoError(t, err)
		for _, r := range reports {
			distances = append(distances, r.Between[0][1])
		}
	}
	mean, std := stat.MeanStdDev(distances, nil)
	require.InDelta(t, sq(1.5)/4, mean, 4*std/math.Sqrt(float64(len(distances))))
}
